"""Servers of iperf3 that have to run at the far end: named, and tried before anything is measured."""

import json

import pytest

from weirlab.campaigns import campaign, plan_of, real, run_campaign
from weirlab.cli.campaign_words import CampaignWords, host_words
from weirlab.errors import TestbedError

BED = {"kind": "iperf3", "server": "192.0.2.7"}


def scenario_of(**words):
    return CampaignWords(**words).to(BED, {})


def transfer():
    stream = {"sender": {}, "receiver": {"bytes": 1, "seconds": 1}}
    cpu = {f"{end}_{part}": 1 for end in ("host", "remote") for part in ("total", "user", "system")}
    return {"intervals": [], "end": {"streams": [stream], "cpu_utilization_percent": cpu}}


@pytest.fixture
def asked(monkeypatch):
    """Ports at which a server is asked; one listens at 5201, a busy one at 5203."""
    ports = []

    def output(_end, command, _limit_s, *, fine=(0,)):
        if command[0] == "ping":
            return "5 packets transmitted, 0 received"
        port = command[command.index("-p") + 1]
        ports.append(port)
        failure = {"error": "the server is busy running a test. try again later"}
        if port not in ("5201", "5203"):
            failure = {"error": "unable to connect to server: Connection refused"}
        return json.dumps(transfer() if port == "5201" else failure)

    monkeypatch.setattr(real, "require", lambda: None)
    monkeypatch.setattr(real, "output", output)
    monkeypatch.setattr(real.RealHosts, "facts", lambda _hosts: {})
    return ports


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "to 192.0.2.7, port 5201, where 'iperf3 -s' has to run"),
        (
            {"way": "both"},
            "to 192.0.2.7, ports 5201 and 5202, where 'iperf3 -s' and 'iperf3 -s -p 5202' have to run",
        ),
        (
            {"way": "both", "udp": "1mbit"},
            "ports 5201, 5202, 5203 and 5204, where 'iperf3 -s', 'iperf3 -s -p",
        ),
    ],
)
def test_the_first_line_names_a_server_for_each_load(words, said):
    assert said in host_words(plan_of(scenario_of(**words)))


def test_a_server_that_does_not_answer_is_told_before_anything_is_measured(asked, tmp_path):
    with pytest.raises(TestbedError) as caught:
        run_campaign(scenario_of(way="both", udp="1mbit"), tmp_path / "kept")
    message = str(caught.value)
    assert (
        "start 'iperf3 -s', 'iperf3 -s -p 5202', 'iperf3 -s -p 5203' and 'iperf3 -s -p 5204' there" in message
    )
    assert "port 5202: iperf3: unable to connect to server: Connection refused" in message
    assert "port 5201:" not in message
    assert "port 5203:" not in message  # busy, so it runs
    assert asked == ["5201", "5202", "5203", "5204"]
    assert not (tmp_path / "kept").exists()


def test_servers_that_answer_are_used_and_a_failure_says_at_which_port(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "ATTEMPTS", 1)
    reached = []
    monkeypatch.setattr(real.RealHosts, "reach", lambda _hosts, servers: reached.append(servers))
    monkeypatch.setattr("weirlab.campaigns.tools.output", real.output)
    found = run_campaign(scenario_of(way="both", lasts="1 s"), tmp_path / "kept")
    assert reached == [2]
    assert any(
        "port 5202: iperf3: unable to connect" in reason for kept in found.failed for reason in kept.failures
    )
    assert reached == [2]
