"""Several loads at a time: transfers both ways, UDP, each from its start to its stop."""

import json
import math

import pytest

from weirlab.campaigns import Campaign, plan_of, run_campaign, summaries
from weirlab.campaigns.measurement import Measurement, Pings, Stream, Transfer
from weirlab.campaigns.plan import Datagrams
from weirlab.campaigns.reading import read_transfer
from weirlab.errors import UnsupportedError
from weirlab.report.bulk import loads_table
from weirlab.scenario import load, loads

FILE = """weirlab: 1
name: both
testbed: {kind: netns, hops: {wan: {forward: {rate: 20 Mbit/s, delay: 10 ms}}}}
traffic:
  up:
    from: sender
    to: receiver
    streams: 2
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: cubic}}
  down:
    from: receiver
    to: sender
    start: 2 s
    stop: 6 s
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}}
  voice:
    from: receiver
    to: sender
    source: {kind: constant, rate: 50 frame/s, payload: 160 B}
    transport: {kind: udp}
  ping: {from: sender, to: receiver, source: {kind: ping, every: 1 s}}
campaign:
  cycles: 2
  cycle: [{name: unloaded, run: ping, for: 2 s}, {name: loaded, run: [up, down, voice, ping], for: 8 s}]
"""


def planned(**changes):
    return plan_of(loads(FILE, changes))


def refused(**changes):
    with pytest.raises(UnsupportedError) as caught:
        planned(**changes)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_a_step_has_all_loads_that_it_runs_each_with_its_time_and_direction():
    loaded = planned().steps[0][1]
    assert (loaded.load.forward, loaded.load.streams, loaded.load_name) == (True, 2, "up")
    down, voice = loaded.beside["down"], loaded.beside["voice"]
    assert (down.forward, down.start_s, down.seconds(8.0)) == (False, 2.0, 4.0)
    # 50 datagrams of 160 B a second.
    assert voice == Datagrams(False, 1, 64_000.0, 160)
    assert loaded.load.seconds(8.0) == voice.seconds(8.0) == 8.0
    assert planned().steps[0][0].loads == ()


@pytest.mark.parametrize("changes", [{"stop": "4500 ms"}, {"start": "9 s", "stop": None}])
def test_iperf3_runs_for_whole_seconds_of_the_step(changes):
    ((place, message),) = refused(**{f"traffic.down.{field}": value for field, value in changes.items()})
    assert place == "campaign.cycle.1.for"
    assert "whole seconds" in message
    assert "down" in message


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        (
            {"source.payload": None, "source.frame_size": "200 B"},
            "source",
            "'payload'",
        ),
        ({"source.payload": "8 B"}, "source.payload", "datagrams of 16 B"),
    ],
)
def test_udp_that_iperf3_cannot_send_is_refused_with_its_place(changes, place, words):
    ((where, message), *_) = refused(**{f"traffic.voice.{field}": value for field, value in changes.items()})
    assert where == f"traffic.voice.{place}"
    assert words in message


def test_pings_run_as_long_as_their_step():
    ((place, message),) = refused(**{"traffic.ping.start": "1 s"})
    assert (place, "as long as their step" in message) == ("traffic.ping.start", True)


def test_the_simulator_says_what_of_it_it_cannot_do():
    told = refused(**{"testbed.kind": "sim"})
    assert [place for place, _ in told] == [
        "traffic.down.start",
        "traffic.down.stop",
        "traffic.voice.source",
        "campaign.cycle.1.run",
    ]
    assert "more than one bulk transfer in simulated time" in told[-1][1]


UDP = {"socket": 5, "seconds": 4.0, "bytes": 32_000, "jitter_ms": 1.5, "lost_packets": 20, "packets": 200}


def test_udp_tells_what_arrived_what_was_lost_and_its_jitter():
    cpu = {f"{side}_{part}": 1.5 for side in ("host", "remote") for part in ("total", "user", "system")}
    interval = {"streams": [{"bits_per_second": 64_000}], "sum": {"bits_per_second": 64_000}}
    end = {"streams": [{"udp": UDP}], "cpu_utilization_percent": cpu}
    (stream,) = read_transfer(json.dumps({"intervals": [interval], "end": end})).streams
    assert (stream.received_bytes, stream.datagrams, stream.lost_datagrams) == (28_800, 200, 20)
    assert stream.jitter_s == pytest.approx(0.0015)
    assert stream.retransmits is None


def transfer(received_bytes, **of_udp):
    return Transfer((Stream(received_bytes, 8.0, None, None, None, **of_udp),), (), {}, {})


def made(what, path, seed):
    cycle = made.calls // 2
    made.calls += 1
    main = transfer(1_000_000 * (1 + cycle)) if what.load is not None else None
    of_udp = {"datagrams": 100, "lost_datagrams": 10 * cycle, "jitter_s": 0.001}
    beside = {"down": transfer(500_000), "voice": transfer(7_200, **of_udp)} if what.beside else {}
    return Measurement(
        main, Pings(1, (0.02,), 0.02, 0.02), 0.0, 8.0, 0.0, 0.0, (), None, lost=0, dropped=0, beside=beside
    )


def test_each_load_is_kept_and_told_beside_the_first_transfer(tmp_path):
    made.calls = 0
    campaign = run_campaign(loads(FILE), tmp_path, measure=made)
    assert Campaign.load(tmp_path).kept == campaign.kept
    (point,) = summaries(campaign)
    assert point.goodput_bps == 1.5e6  # the median of 1 and 2 MB in 8 s, of the first transfer
    up, down, voice = point.loads
    assert (up.name, up.direction, up.transport, up.goodput_bps) == ("up", "forward", "tcp", 1.5e6)
    assert (down.name, down.direction, down.goodput_bps, down.transfers) == ("down", "backward", 5e5, 2)
    assert (voice.transport, voice.offered_bps, voice.lost) == ("udp", 64_000.0, 0.05)
    assert math.isnan(up.lost)
    table = loads_table([point])
    assert [row[0] for _, row in table.shown] == ["up (TCP)", "down (TCP)", "voice (UDP)"]


def test_a_step_of_udp_alone_is_a_loaded_one(tmp_path):
    made.calls = 0
    changes = {"campaign.cycle.1.run": ["voice", "ping"]}
    (point,) = summaries(run_campaign(loads(FILE, changes), tmp_path, measure=made))
    assert point.transfers == 0
    assert math.isfinite(point.rtt_difference_s)
    assert [each.name for each in point.loads] == ["voice"]


def test_a_plan_with_one_transfer_has_no_table_of_loads(tmp_path):
    made.calls = 0
    changes = {"campaign.cycle.1.run": ["up", "ping"]}
    (point,) = summaries(run_campaign(loads(FILE, changes), tmp_path, measure=made))
    assert loads_table([point]) is None


def test_the_ready_made_file_loads_both_directions_at_once():
    loaded = plan_of(load("rrul")).steps[0][1]
    assert {each.forward for each in loaded.loads} == {True, False}
    assert sum(isinstance(each, Datagrams) for each in loaded.loads) == 2
