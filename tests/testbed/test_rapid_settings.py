"""What a live Rapid is set to, and the key that both ends hold. Nothing is sent here."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given, strategies as st

from weirlab.cli.app import execute
from weirlab.errors import InputError
from weirlab.scenario import load
from weirlab.testbed.rapid import VARIANTS, Settings, make_key, read_key, transport_of
from weirlab.testbed.rapid.settings import _ready_made
from weirlab.testbed.rapid.transfer import Transfer, resolve
from weirlab.units import Rate

RATE = "200 Mbit/s"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("ipv6", [False, True])
def test_a_packet_is_as_long_as_the_path_takes_and_counts_as_what_the_link_carries(variant, ipv6):
    core = json.loads(Settings(link=RATE, variant=variant).core_json(ipv6=ipv6))
    headers_bytes = 42 + 8 + (40 if ipv6 else 20)
    assert core["segment_bytes"] + headers_bytes == 1500
    # The core takes 70 B for the headers of a segment; the rest of 1538 B is what it calls framing.
    assert core["segment_bytes"] + 70 + core["congestion_control"]["framing_bytes"] == 1538


def test_variants_differ_where_the_published_one_failed():
    def control(variant):
        return json.loads(Settings(link=RATE, variant=variant).core_json(ipv6=False))["congestion_control"]

    flawed, better = control("flawed"), control("better")
    assert flawed["estimator"]["kind"] == "gap"
    frame_ps = 1500 * 8 * 10**12 / 200e6
    assert flawed["estimator"]["epsilon_ps"] / frame_ps == pytest.approx(10 / 12, rel=1e-3)
    assert (flawed["ramp"]["clip"], better["ramp"]["clip"]) == (False, True)
    assert better["estimator"]["kind"] == "fluid"
    assert (Settings(link=RATE, variant="flawed").spin_ps, Settings(link=RATE).spin_ps) == (0, 50_000_000)


def first_stream(settings):
    """How long the first full stream takes, s, and the share of the link at which it starts."""
    rate = json.loads(settings.core_json(ipv6=False))["congestion_control"]["rate"]
    return 80 * settings.packet_bytes * 8 / rate["initial_bps"], rate["initial_bps"] / settings.link.bps


@pytest.mark.parametrize("variant", ["better", "ideal"])
def test_no_first_stream_takes_long_unless_it_would_start_above_a_quarter_of_the_link(variant):
    for link, share in (
        ("1 Gbit/s", 0.052),
        ("200 Mbit/s", 0.052),
        ("100 Mbit/s", 0.096),
        ("20 Mbit/s", 0.25),
    ):
        seconds, starts_at = first_stream(Settings(link=link, variant=variant, around=0))
        assert starts_at == pytest.approx(share, rel=0.01), link
        assert seconds < 0.101 or share == 0.25
    slow = Settings(link="20 Mbit/s", variant=variant)
    starts = json.loads(slow.core_json(ipv6=False))["congestion_control"]["rate"]["start_packets"]
    fast = json.loads(Settings(link=RATE, variant=variant).core_json(ipv6=False))["congestion_control"][
        "rate"
    ]
    assert (starts, fast["start_packets"]) == (8, None)


def test_the_start_of_the_flawed_variant_is_the_published_one_on_every_link():
    seconds, starts_at = first_stream(Settings(link="20 Mbit/s", variant="flawed", around=0))
    assert (seconds, starts_at) == (pytest.approx(0.923, rel=0.01), pytest.approx(0.052))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_is_its_ready_made_scenario_with_each_segment_acknowledged(variant):
    name, fields = transport_of(load(f"rapid-{variant}"))
    there = Settings(link="1 Gbit/s", taken_from=name, transport_fields=fields).core_json(ipv6=False)
    here = Settings(link="1 Gbit/s", variant=variant).core_json(ipv6=False)
    each = {"delayed_ack_segments": 1, "delayed_ack_timeout_ps": 5 * 10**9}
    assert json.loads(here) == json.loads(there) | each


def test_a_variant_does_not_depend_on_the_files_of_the_working_directory(tmp_path, monkeypatch):
    before = Settings(link=RATE).core_json(ipv6=False)
    (tmp_path / "rapid-better").write_text("another file of this name")
    monkeypatch.chdir(tmp_path)
    _ready_made.cache_clear()
    assert Settings(link=RATE).core_json(ipv6=False) == before


@given(
    bps=st.integers(min_value=10**5, max_value=10**11),
    variant=st.sampled_from(VARIANTS),
    mtu=st.integers(min_value=576, max_value=8970),
    ipv6=st.booleans(),
)
def test_every_link_and_packet_gives_settings_that_the_core_takes(bps, variant, mtu, ipv6):
    settings = Settings(link=Rate(bps), variant=variant, mtu=mtu)
    core = json.loads(settings.core_json(ipv6=ipv6))
    rate = core["congestion_control"]["rate"]
    assert 0 < rate["least_bps"] <= rate["initial_bps"] <= rate["most_bps"] == bps


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"congestion_control.eta": "many"}, "congestion_control.rapid.eta|congestion_control.eta"),
        ({"congestion_control.etta": "5"}, "there is no such field"),
        ({"segment.x": "5"}, "'segment' has no parts"),
        ({"congestion_control.kind": "reno"}, "only 'rapid' is sent over UDP"),
        ({"congestion_control": None}, "only 'rapid' is sent over UDP"),
    ],
)
def test_changes_that_cannot_be_are_told_with_their_place(changes, wrong):
    with pytest.raises(InputError, match=wrong):
        Settings(link=RATE, changes=changes).core_json(ipv6=False)


def test_a_change_replaces_what_the_variant_has():
    core = json.loads(Settings(link=RATE, changes={"congestion_control.eta": "5"}).core_json(ipv6=False))
    assert core["congestion_control"]["rate"]["eta"] == 5


def test_a_transport_of_a_scenario_is_sent_as_it_stands_there():
    name, fields = transport_of(load("rapid-better"))
    assert name == "rapid-better, traffic rapid"
    settings = Settings(
        link="1 Gbit/s", taken_from=name, transport_fields=fields, changes={"delayed_ack": "3"}
    )
    again = Settings.model_validate(settings.model_dump(mode="json"))
    core = json.loads(again.core_json(ipv6=False))
    there = load("rapid-better").traffic["rapid"].transport.congestion_control
    rate = core["congestion_control"]["rate"]
    assert (rate["tau_ps"], rate["eta"]) == (there.tau.ps, there.eta)
    assert rate["backlog"]["target_ps"] == there.backlog.target.ps
    assert core["congestion_control"]["estimator"]["kind"] == "fluid"
    # What the path and the end of the transfer say is not the scenario's; what --set says is neither.
    assert (core["segment_bytes"], core["send_buffer_bytes"], core["delayed_ack_segments"]) == (1430, None, 3)


@pytest.mark.parametrize(
    ("scenario", "traffic", "wrong"),
    [
        ("tcp-dumbbell", None, r"--traffic one of those by Rapid \(there is: none\)"),
        ("rapid-better", "cross", r"no traffic 'cross' .*\(there is: rapid\)"),
    ],
)
def test_a_scenario_without_such_a_transport_is_refused(scenario, traffic, wrong):
    with pytest.raises(InputError, match=wrong):
        transport_of(load(scenario), traffic)


def test_a_key_is_random_read_back_and_for_its_owner_alone(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    make_key(first)
    make_key(second)
    assert read_key(first) != read_key(second)
    assert len(read_key(first)) == 64
    assert first.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="exists already"):
        make_key(first)
    first.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        read_key(first)
    second.write_text("  short \n")
    with pytest.raises(InputError, match=r"got 5"):
        read_key(second)
    with pytest.raises(InputError, match="makes a key"):
        read_key(tmp_path / "nothing")


def test_addresses_are_written_as_the_core_reads_them():
    assert resolve("127.0.0.1", 8642) == ("127.0.0.1:8642", False)
    assert resolve("::1", 8642) == ("[::1]:8642", True)
    with pytest.raises(InputError, match="not a host that is known"):
        resolve("no such host", 8642)


def test_goodput_counts_whole_intervals_of_the_time_in_which_new_data_was_sent():
    settings = Settings(link=RATE, duration="0.4 s", every="0.1 s")
    rates = pl.DataFrame({"end_s": [0.1, 0.2, 0.3, 0.4, 0.5], "acked_bytes": [0, 1000, 2000, 3000, 9000]})
    transfer = Transfer(settings, "here", {}, {"rates": rates})
    assert transfer.goodput_bps() == pytest.approx(6000 * 8 / 0.4)
    assert transfer.goodput_bps(0.5) == pytest.approx(5000 * 8 / 0.2)


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--link", "fast"], "--link: write a rate"),
        (["--link", "0 Mbit/s"], "--link: more than zero"),
        (["--link", RATE, "--variant", "best"], "--variant: "),
        (["--link", RATE, "--duration", "2 h"], "--duration: "),
        (["--link", RATE, "--duration", "7200 s"], "--duration: at most 3600 s"),
        (["--link", RATE, "--every", "1 us"], "--every: from 1 ms"),
        (["--link", RATE, "--mtu", "100"], "--mtu: "),
        (["--link", RATE, "--spin", "1 s"], "--spin: at most"),
        (["--link", RATE, "-4", "-6"], "name one of them"),
        (["--link", RATE, "--variant", "ideal", "--scenario", "rapid-better"], "give one of them"),
        (["--link", RATE, "--traffic", "rapid"], "names a traffic of --scenario"),
        (["--link", RATE, "--scenario", "tcp-dumbbell"], "(there is: none)"),
        (["--link", RATE, "--set", "nonsense"], "write PATH=VALUE"),
        (["--link", RATE], "makes a key"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line_and_leaves_nothing(
    words, wrong, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert execute(["rapid", "send", "127.0.0.1", "--key", "nothing.key", *words]) == 2
    told = capsys.readouterr().err
    assert wrong in told
    assert len(told.splitlines()) == 1
    assert told.count("(got ") <= 1
    assert list(tmp_path.iterdir()) == []
