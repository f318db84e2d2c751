"""Campaigns that stop anywhere go on where they stopped, and their numbers are those of the statistics."""

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from made_campaigns import FILE, StopsAfter, measured
from weirlab.campaigns import Campaign, run_campaign, summaries, tools
from weirlab.campaigns.campaign import ATTEMPTS, LOG
from weirlab.campaigns.hosts import Bed, ThisMachine
from weirlab.errors import InputError, Interrupted, MissingCapability, TestbedError
from weirlab.report.bulk import point_tables
from weirlab.results import Manifest
from weirlab.scenario import loads


@pytest.mark.parametrize("count", range(12))
def test_a_campaign_that_was_interrupted_anywhere_loses_and_repeats_nothing(tmp_path, count):
    scenario = loads(FILE)
    whole = run_campaign(scenario, tmp_path / "whole", measure=measured)
    first, second = StopsAfter(count, KeyboardInterrupt()), StopsAfter(100, None)
    with pytest.raises(Interrupted, match=f"after {count} of 12"):
        run_campaign(scenario, tmp_path / "cut", measure=first)
    again = run_campaign(scenario, tmp_path / "cut", measure=second)
    assert again.complete
    assert again.kept == whole.kept
    assert len(first.places + second.places) == len(set(first.places + second.places)) == 12
    assert Campaign.load(tmp_path / "cut").kept == whole.kept


def test_a_log_that_was_cut_in_the_middle_of_a_line_goes_on_before_it(tmp_path):
    scenario = loads(FILE)
    whole = run_campaign(scenario, tmp_path, measure=measured)
    log = tmp_path / LOG
    content = log.read_bytes()
    for cut in range(content.index(b"\n") + 1, len(content), 97):
        log.write_bytes(content[:cut])
        assert run_campaign(scenario, tmp_path, measure=measured).kept == whole.kept
        assert log.read_bytes() == content


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from made_campaigns import FILE, measured
from weirlab.campaigns import run_campaign
from weirlab.scenario import loads
def slow(what, path, seed):
    print("measuring", flush=True)
    time.sleep(0.02)
    return measured(what, path, seed)
run_campaign(loads(FILE), {directory!r}, measure=slow)
"""


def test_a_campaign_survives_being_killed(tmp_path):
    directory = tmp_path / "killed"
    program = KILLED.format(tests=str(Path(__file__).parents[1]), directory=str(directory))
    kills = 0
    while not ((directory / LOG).exists() and (directory / LOG).read_bytes().count(b"\n") > 8):
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            child.stdout.readline()
        time.sleep(0.001 * kills)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        kills += 1
        assert kills < 30
    whole = run_campaign(loads(FILE), tmp_path / "whole", measure=measured)
    assert run_campaign(loads(FILE), directory, measure=measured).kept == whole.kept
    assert kills > 1


def test_what_this_host_lacks_is_told_before_anything_is_kept(tmp_path, monkeypatch):
    def refuses(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(tools, "require", lambda **_: None)
    monkeypatch.setattr(tools.subprocess, "run", refuses)
    with pytest.raises(MissingCapability, match="needs iperf3, which cannot be run here: Operation not perm"):
        run_campaign(loads(FILE), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_campaign_is_not_continued(tmp_path):
    run_campaign(loads(FILE), tmp_path, measure=measured)
    with pytest.raises(InputError, match="the log of another campaign"):
        run_campaign(loads(FILE.replace("delay: 1 ms", "delay: 2 ms")), tmp_path, measure=measured)


def as_before(header, path):
    """The first line of a log as a version wrote it that did not know the value at a path, which had its
    default."""
    content = json.loads(header)
    *above, last = path
    place = content
    for name in above:
        place = place[name]
    del place[last]
    return json.dumps(content).encode()


@pytest.mark.parametrize("unknown", [["scenario", "traffic", "bulk", "class"], ["scenario", "events"]])
def test_a_campaign_of_a_version_without_a_field_goes_on_where_the_field_has_its_default(tmp_path, unknown):
    with pytest.raises(Interrupted):
        run_campaign(loads(FILE), tmp_path, measure=StopsAfter(5, KeyboardInterrupt()))
    log = tmp_path / LOG
    first, *lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([as_before(first, unknown), *lines]))
    assert len(Campaign.load(tmp_path).kept) == 5
    rest = StopsAfter(100, None)
    assert run_campaign(loads(FILE), tmp_path, measure=rest).complete
    assert len(rest.places) == 7


def test_another_value_of_a_field_that_an_earlier_version_did_not_know_is_another_campaign(tmp_path):
    run_campaign(loads(FILE), tmp_path, measure=measured)
    log = tmp_path / LOG
    first, *lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([as_before(first, ["scenario", "traffic", "bulk", "streams"]), *lines]))
    with pytest.raises(InputError, match=r"another campaign: scenario\.traffic\.bulk\.streams was 1 there"):
        run_campaign(loads(FILE), tmp_path, measure=measured)


def test_a_measurement_that_fails_is_tried_again_and_its_failures_are_kept(tmp_path):
    tries = []

    def fails(what, path, seed):
        tries.append(seed)
        if len(tries) < ATTEMPTS or what.load is None:
            raise TestbedError("iperf3: no route")
        return measured(what, path, seed)

    campaign = run_campaign(loads(FILE), tmp_path, measure=fails)
    assert campaign.complete
    assert campaign.kept[0].failures == ("iperf3: no route",) * (ATTEMPTS - 1)
    assert campaign.kept[1].measurement is None
    assert [point.failed for point in summaries(campaign)] == [3, 3]
    assert Campaign.load(tmp_path).kept == campaign.kept


def test_what_failed_is_tried_again_by_the_next_sitting_and_nothing_else_is(tmp_path):
    def fails(what, path, seed):
        if what.load is None:
            raise TestbedError("ping: unreachable")
        return measured(what, path, seed)

    scenario = loads(FILE)
    broken = run_campaign(scenario, tmp_path, measure=fails)
    assert broken.failures == {"ping: unreachable": 6}
    manifest = Manifest.read(tmp_path)
    assert manifest.status == "failed"
    assert manifest.remark == "6 of 12 measurements failed, 6 with: ping: unreachable"
    again = StopsAfter(100, None)
    healed = run_campaign(scenario, tmp_path, measure=again)
    assert len(again.places) == 6
    assert healed.failures == {}
    assert healed.kept == run_campaign(scenario, tmp_path / "whole", measure=measured).kept
    assert Campaign.load(tmp_path).kept == healed.kept
    assert Manifest.read(tmp_path).status == "complete"


def test_a_campaign_is_extended_by_cycles_and_never_shortened(tmp_path):
    run_campaign(loads(FILE), tmp_path / "grown", measure=measured)
    more = StopsAfter(100, None)
    grown = run_campaign(loads(FILE, {"campaign.cycles": 5}), tmp_path / "grown", measure=more)
    assert len(more.places) == 8
    assert (
        grown.kept == run_campaign(loads(FILE, {"campaign.cycles": 5}), tmp_path / "5", measure=measured).kept
    )
    assert Campaign.load(tmp_path / "grown").kept == grown.kept
    with pytest.raises(InputError, match=r"cycle 3, but campaign\.cycles is 2: .* more cycles, not fewer"):
        run_campaign(loads(FILE, {"campaign.cycles": 2}), tmp_path / "grown", measure=measured)


def test_the_server_of_a_transfer_listens_where_the_traffic_goes():
    ends = Bed(ThisMachine(), ThisMachine(), "10.0.0.1", "2001:db8::1")
    assert tools._bound("2001:db8::1", ends) == ["-B", "2001:db8::1"]
    assert tools._bound("far.example", ends) == []
    assert tools._bound("10.0.0.1", replace(ends, listens_everywhere=True)) == []


def test_the_spread_of_a_single_cycle_is_not_known(tmp_path):
    campaign = run_campaign(loads(FILE.replace("cycles: 3", "cycles: 1")), tmp_path, measure=measured)
    found = summaries(campaign)
    assert [point.transfers for point in found] == [1, 1]
    assert all(math.isnan(point.goodput_iqr_bps) for point in found)
    carried, _ = point_tables(found, "single", 1)
    at = [column.name for column in carried.columns].index("IQR")
    assert [row[at] for row in carried.rows] == ["–", "–"]


def test_the_summary_of_a_point_is_what_the_statistics_say(tmp_path):
    one, two = summaries(run_campaign(loads(FILE), tmp_path, measure=measured))
    assert (one.levels, two.levels) == ({"traffic.bulk.streams": "1"}, {"traffic.bulk.streams": "2"})
    assert (one.goodput_bps, two.goodput_bps) == (1e6, 4e6)
    assert two.goodput_iqr_bps == 0
    assert two.transfers == 3
    assert two.rtt_difference_s == pytest.approx(0.002)
    assert two.loaded_variability == pytest.approx(1 - 0.010 / 0.012)
    assert two.loaded_loss == 0.5
    assert two.window_bytes == pytest.approx(2e6 * 0.01 / 8)
    assert two.fairness == 1
    assert (two.loaded_p95_s, two.loaded_p99_s) == (0.014, 0.014)
    assert two.induced_s == pytest.approx(0.002)
    assert two.loaded_per_minute == pytest.approx(60 / 0.012)
    assert two.unloaded_per_minute == pytest.approx(60 / 0.010)
    assert two.connections_per_minute == pytest.approx(60 / 0.012)
    assert two.sender_cpu_percent == 4


def test_what_was_not_measured_is_not_a_number(tmp_path):
    with pytest.raises(Interrupted):
        run_campaign(loads(FILE), tmp_path, measure=StopsAfter(1, KeyboardInterrupt()))
    one, two = summaries(Campaign.load(tmp_path))
    assert one.goodput_bps == 1e6
    assert one.loaded_p95_s == pytest.approx(0.0119)  # between 10 and 12 ms
    assert math.isnan(one.induced_s)
    assert math.isnan(one.unloaded_per_minute)
    assert math.isnan(one.rtt_difference_s)
    assert math.isnan(two.goodput_bps)
    assert json.loads((tmp_path / "manifest.json").read_text())["status"] == "interrupted"
