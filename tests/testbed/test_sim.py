"""Whole scenarios as the system under test: what counts, what is late, what the sender could not offer."""

from __future__ import annotations

import re

import pytest

from weirlab.errors import InputError, TestbedError, UnsupportedError
from weirlab.scenario import Scenario, loads
from weirlab.searches import Ending, Irregularity, build, run_search
from weirlab.testbed import open_testbed
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.sim import ScenarioTestbed

# Frames of 64 B and 20 B of preamble and gap: 672 bit. 10 Mbit/s in, 5 Mbit/s out.
LINE_FPS = 10e6 / 672
BOTTLENECK_FPS = 5e6 / 672
TEXT = """
weirlab: 1
name: bottleneck
network:
  kind: graph
  link: {rate: 10 Mbit/s, delay: 10 us}
  switch: {latency: 1 us}
  nodes: {a: {kind: host}, b: {kind: host}, s: {kind: switch}}
  links: {in: {join: [a, s]}, out: {join: [s, b], rate: 5 Mbit/s}}
queues: {egress: {at: "s->b", kind: drop-tail, limit: 10 frames}}
traffic:
  offered: {from: a, to: b, source: {kind: constant, frame_size: 64 B}}
search:
  vary: traffic.offered.source.rate
  between: [100 frame/s, 14 kframe/s]
  goals: {NDR: {loss: 0 %, width: 0.5 %}, PDR: {loss: 0.5 %, width: 0.5 %}}
  trial: {duration: 2 s, settle: 0.5 s}
run: {seed: 5}
"""


def scenario(**changed: object) -> Scenario:
    return loads(TEXT, {name.replace("__", "."): value for name, value in changed.items()})


def spec(load_fps: float, **more) -> TrialSpec:
    return TrialSpec(
        **{"index": 0, "intended_load_fps": load_fps, "duration_s": 2.0, "frame_size_bytes": 64} | more
    )


def test_below_the_bottleneck_everything_arrives():
    trial = ScenarioTestbed(scenario()).trial(spec(7000.0))
    assert (trial.intended_frames, trial.sent_frames, trial.received_frames) == (14000, 14000, 14000)
    assert trial.effective_duration_s == 2.5
    assert trial.offered_load_fps == 7000.0
    assert dict(trial.facts) == {"dropped_frames": 0}


def test_above_the_bottleneck_what_exceeds_it_and_the_queue_is_lost():
    trial = ScenarioTestbed(scenario()).trial(spec(9000.0))
    assert trial.sent_frames == 18000
    # The bottleneck sends for the 2 s of the trial, then the 10 frames that wait and the one in transmission.
    assert trial.received_frames == pytest.approx(2.0 * BOTTLENECK_FPS + 11, abs=2)
    assert trial.facts["dropped_frames"] == trial.sent_frames - trial.received_frames


def test_delays_are_those_of_the_path():
    # Two transmissions of 672 bit, two cables of 10 us, 1 us in the switch.
    path_s = 672 / 10e6 + 672 / 5e6 + 2 * 10e-6 + 1e-6
    latency = ScenarioTestbed(scenario()).trial(spec(1000.0)).latency_s
    assert latency["min"] == latency["max"] == pytest.approx(path_s, rel=1e-6)
    assert latency["p50"] == pytest.approx(path_s, rel=1 / 32)
    loaded = ScenarioTestbed(scenario()).trial(spec(9000.0)).latency_s
    assert list(loaded) == ["min", "p50", "p90", "p99", "p99.9", "max"]
    assert list(loaded.values()) == sorted(loaded.values())
    assert loaded["max"] == pytest.approx(path_s + 10 * 672 / 5e6, rel=0.1)


def test_frames_still_under_way_after_the_time_to_settle_are_not_lost_but_the_testers_fault():
    patient = scenario(queues__egress__limit="1000 frames")
    trial = ScenarioTestbed(patient).trial(spec(7600.0))
    assert trial.received_frames == trial.sent_frames
    hasty = scenario(queues__egress__limit="1000 frames", search__trial__settle="10 ms")
    # 160 frames a second more than the bottleneck carries for 2 s, less those that it sends in 10 ms.
    waiting = (7600.0 - BOTTLENECK_FPS) * 2.0 - BOTTLENECK_FPS * 0.01
    with pytest.raises(TestbedError, match=r"still under way 10 ms after .*search\.trial\.settle") as error:
        ScenarioTestbed(hasty).trial(spec(7600.0))
    (live,) = re.findall(r"([\d,]+) of 15,200 frames", str(error.value))
    assert int(live.replace(",", "")) == pytest.approx(waiting, abs=3)
    (enough,) = re.findall(r"set search\.trial\.settle to (.+?) or more", str(error.value))
    drained = scenario(queues__egress__limit="1000 frames", search__trial__settle=enough)
    trial = ScenarioTestbed(drained).trial(spec(7600.0))
    assert trial.received_frames == trial.sent_frames


def test_a_queue_without_limit_is_named_when_no_time_to_settle_would_be_enough():
    endless = scenario(queues__egress__limit="100000 frames", search__trial__settle="1 ms")
    with pytest.raises(TestbedError, match="give it a limit, or search below what it carries"):
        ScenarioTestbed(endless).trial(spec(13_000.0))


def test_a_path_longer_than_the_time_to_settle_is_no_loss():
    plan = scenario(network__link__delay="200 ms", search__trial__settle="10 ms")
    result = run_search(build(plan), open_testbed(plan))
    assert result.ending is Ending.TESTBED_FAILED
    assert "search.trial.settle" in result.message
    long_enough = scenario(network__link__delay="200 ms", search__trial__settle="1 s")
    ndr, _ = run_search(build(long_enough), open_testbed(long_enough)).goals
    assert ndr.regular
    assert ndr.lower.load_fps <= BOTTLENECK_FPS + 11 / 2 <= ndr.upper.load_fps * 1.001


def test_a_sender_offers_no_more_than_its_link_carries():
    trial = ScenarioTestbed(scenario()).trial(spec(20_000.0))
    assert trial.intended_frames == 40_000
    assert trial.sent_frames == pytest.approx(2.0 * LINE_FPS, abs=1)
    assert trial.offered_load_fps == pytest.approx(LINE_FPS, rel=1e-6)
    assert trial.unsent_ratio == pytest.approx(1.0 - LINE_FPS / 20_000.0, rel=1e-3)


def test_the_same_trial_is_the_same_and_another_one_differs_where_there_is_chance():
    bed = ScenarioTestbed(scenario(traffic__offered__source__kind="poisson"))
    trial = bed.trial(spec(7000.0))
    assert bed.trial(spec(7000.0)) == trial
    assert trial.intended_frames == trial.sent_frames
    others = [spec(7000.0, index=1), spec(7000.0, elapsed_s=2.5)]
    seed = ScenarioTestbed(scenario(traffic__offered__source__kind="poisson", run__seed=6))
    counts = {
        (t.sent_frames, t.received_frames) for t in (trial, *map(bed.trial, others), seed.trial(spec(7000.0)))
    }
    assert len(counts) == 4
    # Poisson: 14000 expected, standard deviation 118.
    assert all(abs(sent - 14000) < 5 * 118 for sent, _ in counts)


def test_a_trial_may_have_frames_of_another_size():
    trial = ScenarioTestbed(scenario()).trial(spec(500.0, frame_size_bytes=1000))
    path_s = 1020 * 8 / 10e6 + 1020 * 8 / 5e6 + 2 * 10e-6 + 1e-6
    assert trial.latency_s["max"] == pytest.approx(path_s, rel=1e-6)


def test_several_senders_are_directions_and_their_frames_are_summed():
    both = scenario(
        traffic__offered={
            "pattern": {"kind": "list", "flows": ["a->b", "b->a"]},
            "source": {"kind": "constant", "frame_size": "64 B"},
        }
    )
    search = build(both)
    first = search.ask()
    assert first.directions == 2
    assert first.load_per_direction_fps == 7000.0
    trial = ScenarioTestbed(both).trial(spec(6000.0, directions=2))
    assert trial.sent_frames == trial.received_frames == 12_000
    counts = [(each.name, each.sent_frames, each.received_frames) for each in trial.per_direction]
    assert counts == [("a-b", 6_000, 6_000), ("b-a", 6_000, 6_000)]


def test_other_traffic_does_not_count_but_takes_its_share():
    alone = ScenarioTestbed(scenario()).trial(spec(7000.0))
    shared = scenario(
        traffic__other={
            "from": "a",
            "to": "b",
            "source": {"kind": "constant", "rate": "2 kframe/s", "frame_size": "64 B"},
        }
    )
    beside = ScenarioTestbed(shared).trial(spec(7000.0))
    assert alone.sent_frames == beside.sent_frames == 14_000
    assert alone.loss_ratio == 0.0
    assert beside.loss_ratio > 0.05


def test_a_search_finds_the_rate_of_the_bottleneck():
    plan = scenario()
    result = run_search(build(plan), open_testbed(plan))
    assert result.regular
    ndr, pdr = result.goals
    # In 2 s ten more frames fit into the queue.
    assert ndr.lower.load_fps <= BOTTLENECK_FPS + 11 / 2 <= ndr.upper.load_fps * 1.001
    assert pdr.lower.load_fps == pytest.approx(BOTTLENECK_FPS / 0.995, rel=0.006)


def test_a_search_that_ends_at_the_senders_link_is_tester_limited():
    plan = scenario(network__links__out__rate="10 Mbit/s", search__between=["100 frame/s", "100 kframe/s"])
    result = run_search(build(plan), open_testbed(plan))
    for goal in result.goals:
        assert set(goal.irregularities) == {Irregularity.TESTER_LIMITED}
        assert goal.lower.load_fps == pytest.approx(LINE_FPS, rel=0.006)


def test_a_search_up_to_the_senders_link_sees_no_upper_bound():
    plan = scenario(network__links__out__rate="10 Mbit/s", search__between=["1 %", "100 %"])
    for goal in run_search(build(plan), open_testbed(plan)).goals:
        assert set(goal.irregularities) == {Irregularity.NO_UPPER_BOUND}
        assert goal.lower.load_fps == pytest.approx(LINE_FPS, rel=1e-6)


def test_a_scenario_runs_as_it_stands_too():
    plain = scenario(search=None, run__duration="1 s", traffic__offered__source__rate="1 kframe/s")
    run = open_testbed(plain).run(plain, seeds=[1, 2])
    assert run.seeds == (1, 2)
    assert run.records["flows"]["delivered_frames"].to_list() == [1000, 1000]


@pytest.mark.parametrize(("kind", "lack"), [("ping", "echo requests"), ("requests", "HTTP requests")])
def test_what_the_simulator_has_no_form_for_is_refused_with_its_place(kind, lack):
    plan = scenario(traffic__probe={"from": "a", "to": "b", "source": {"kind": kind, "every": "1 s"}})
    with pytest.raises(UnsupportedError, match=rf"source: .* has no {lack}"):
        open_testbed(plan)


def test_closing_twice_is_fine():
    bed = open_testbed(scenario())
    bed.close()
    bed.close()


DEVICE = """
weirlab: 1
name: device
testbed: {kind: sim, device: {kind: knee, capacity: 5 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 14 Mframe/s]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 1 s}
"""
COMMAND = {"testbed": {"kind": "command", "run": ["true", "{load_fps}"]}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"control.responses": {"all": {"at": "receiver", "pause": "1 us"}}}, "control"),
        (
            {
                "traffic.other": {
                    "from": "sender",
                    "to": "receiver",
                    "source": {"kind": "ping", "every": "1 s"},
                }
            },
            "traffic.other: ",
        ),
        (
            {"traffic.offered.source.kind": "poisson"},
            "traffic.offered.source.kind: .* is offered a constant load",
        ),
        ({"traffic.offered.start": "1 s"}, "traffic.offered.start: each trial sends for its whole duration"),
        ({"traffic.offered.stop": "1 s"}, "traffic.offered.stop: each trial sends for its whole duration"),
        (
            {"traffic.offered.source.frame_size": "63 B"},
            r"traffic.offered.source.frame_size: Ethernet frames have 64 to 16384 B with FCS \(got 63 B\)",
        ),
        ({"traffic.offered.source.frame_size": "1 GB"}, r"\(got 1000000000 B\)"),
        (
            {"traffic.offered.source.frame_size": None, "traffic.offered.source.mix": {"64 B": 1, "20 B": 1}},
            r"traffic.offered.source.mix: .*\(got 20 B\)",
        ),
        ({"traffic.offered.timing": {"late": "1 %", "by": "1 ms"}}, "traffic.offered.timing: "),
    ],
)
@pytest.mark.parametrize("bed", [{}, COMMAND], ids=["device", "command"])
def test_beds_that_know_only_loads_refuse_the_rest(bed, changed, message):
    with pytest.raises(InputError, match=message):
        open_testbed(loads(DEVICE, bed | changed))


@pytest.mark.parametrize("bed", [{}, COMMAND], ids=["device", "command"])
def test_beds_that_know_only_loads_run_no_scenario(bed):
    plan = loads(DEVICE, bed)
    with pytest.raises(UnsupportedError, match="is measured by a search"):
        open_testbed(plan).run(plan, seeds=[1])
