"""What a run made of its hotspots, held against the records and against theory."""

import pytest

from benchmark_switch import switch
from weirlab import runs
from weirlab.analysis.outcome import HotspotOutcome, hot_ports, hotspot_outcomes, outcome_json
from weirlab.evaluation import evaluate
from weirlab.scenario import load, loads

SWITCH = (
    switch(8)
    + """\
hotspots:
  hot: {kind: output-generated, at: host-0, service: 20 %, window: 51.2 us .. 512 us}
run: {duration: 512 us, seed: 3, engine: slotted}
"""
)
SERIES = 'record: {outputs: {queue: "switch-0->*", every: 25.6 us}}\n'
BCN = """
control:
  bcn:
    congestion_point: {at: switch-0->*, q_eq: 256 frames, frame_size: 64 B, w: 1, sample_every: 640 B,
      sampling: {kind: per-frame}}
    reaction_point: {at: "@hosts", gi: 1, gd: 0.02, ru: 10 Mbit/s, min_rate: 10 Mbit/s, pacing_jitter: 0}
"""


def outcome(text: str, replicates: int = 1) -> HotspotOutcome:
    (found,) = hotspot_outcomes(runs.run(loads(text), replicates=replicates, threads=1))
    return found


def mean(found: HotspotOutcome, name: str, span: str) -> float:
    (quantity,) = (each for each in found.quantities if (each.name, each.span) == (name, span))
    values = [value for value in quantity.values if value is not None]
    return sum(values) / len(values)


def test_without_control_the_hot_port_is_fed_and_all_others_are_held_to_its_rate():
    found = outcome(SWITCH + SERIES)
    assert found.port_name == "switch-0->host-0"
    assert found.window == (51_200_000, 512_000_000)
    assert not found.unrecorded
    assert mean(found, "hot port", "second half") == pytest.approx(0.2, abs=0.001)
    assert mean(found, "hot port, of what it serves", "second half") == pytest.approx(1, abs=0.005)
    assert mean(found, "innocent ports", "second half") < 0.4
    assert mean(found, "PAUSE frames that stop", "run") > 0
    assert mean(found, "dropped frames", "run") == 0
    recovery = found.of("recovery of throughput")
    assert recovery is not None
    assert recovery.values == [None]
    assert found.of("hot queue at its set point") is None, "nothing asks for one"


def test_with_control_the_outputs_carry_what_theory_allows_and_recover():
    found = outcome(SWITCH + SERIES + BCN, replicates=2)
    throughput, ideal = found.of("aggregate throughput"), found.facts.throughput_max
    assert throughput is not None
    assert throughput.ideal == ideal == pytest.approx((0.85 * 7 + 0.2) / 8)
    assert mean(found, "aggregate throughput", "second half") == pytest.approx(ideal, abs=0.02)
    assert mean(found, "innocent ports", "second half") == pytest.approx(0.85, abs=0.02)
    assert mean(found, "BCN frames, negative", "run") > 0
    assert all(value is not None for value in found.of("recovery of throughput").values)


def test_the_aggregate_is_the_mean_of_hot_and_innocent_ports():
    found = outcome(SWITCH + SERIES)
    for span in ("hotspot", "second half"):
        parts = mean(found, "hot port", span) + 7 * mean(found, "innocent ports", span)
        assert mean(found, "aggregate throughput", span) == pytest.approx(parts / 8, rel=1e-9)


def test_without_series_there_are_numbers_of_the_whole_run():
    found = outcome(SWITCH)
    assert found.unrecorded
    assert {each.span for each in found.quantities} == {"run"}
    assert mean(found, "mean hot queue", "run") > 0
    assert found.of("recovery of throughput") is None


def test_series_of_the_hot_port_alone_do_not_pass_for_those_of_all_outputs():
    found = outcome(SWITCH + SERIES.replace("switch-0->*", "switch-0->host-0"))
    assert found.unrecorded


def test_a_window_between_the_edges_of_intervals_is_measured_on_the_edges_inside_it():
    found = outcome((SWITCH + SERIES).replace("51.2 us .. 512 us", "61.44 us .. 501.76 us"))
    assert found.window == (76_800_000, 486_400_000)


def test_recovery_counts_from_the_begin_of_the_hotspot_not_from_the_next_edge():
    odd = {"traffic.background.source.mean_burst": 24, "record.outputs.every": "153.6 us", "measure": {}}
    (found,) = hotspot_outcomes(runs.run(load("zrl-og").assign(odd), threads=1))
    assert found.window[0] == 307_200_000
    (recovery,) = found.of("recovery of throughput").values
    assert recovery > 0
    assert (204_800_000 + recovery) % 153_600_000 == 0, "it is at an edge"


def of_bursts(every: str, **more: object) -> HotspotOutcome:
    changes = {"record.outputs.every": every, "measure": {}, **more}
    (found,) = hotspot_outcomes(runs.run(load("zrl-og-8").assign(changes), threads=1))
    return found


def test_the_length_of_intervals_changes_recovery_by_no_more_than_the_window():
    mean_burst = {"traffic.background.source.mean_burst": 24}
    fine, coarse = (of_bursts(every, **mean_burst) for every in ("5.12 us", "102.4 us"))
    (early,), (late,) = (each.of("recovery of throughput").values for each in (fine, coarse))
    assert 0 < early < 409_600_000
    assert "Recovery of throughput: means over 204.8 us." in coarse.remarks
    assert abs(late - early) <= 204_800_000


def test_the_length_of_intervals_changes_the_return_of_a_smooth_queue_by_no_more_than_an_interval():
    fine, coarse = (of_bursts(every) for every in ("5.12 us", "102.4 us"))
    (early,), (soon,), (later,) = (
        each.of(name).values
        for each, name in (
            (fine, "recovery of throughput"),
            (fine, "hot queue at its set point"),
            (coarse, "hot queue at its set point"),
        )
    )
    assert early == 0 < soon, "the outputs are full long before the hot queue has drained"
    assert abs(later - soon) <= 102_400_000


def test_recovery_is_not_told_where_bursts_alone_move_the_throughput_by_more_than_counts():
    found = of_bursts("51.2 us", **{"traffic.background.source.mean_burst": 144})
    assert mean(found, "aggregate throughput", "second half") > 0.95 * found.facts.throughput_max
    assert found.of("recovery of throughput") is None
    assert found.remarks == (
        "Recovery of throughput is not reported: the throughput varies too much over 25% of the hotspot.",
    )


def test_there_is_nothing_to_recover_from_where_the_output_serves_all():
    found = of_bursts("51.2 us", **{"hotspots.hot.service": "100 %"})
    assert found.of("recovery of throughput") is None
    assert found.of("hot queue at its set point") is None
    assert found.remarks == ("Nothing to recover from: the hot output serves all that it is offered.",)


def test_a_full_aggregate_beside_a_hot_queue_far_above_its_set_point_is_no_recovery_of_the_queue():
    changes = {"run.seed": 11, "measure": {}}
    (found,) = hotspot_outcomes(runs.run(load("zrl-og").assign(changes), threads=1))
    assert found.of("recovery of throughput").values == [0.0]
    assert found.of("recovery").values == [None]
    assert found.of("mean hot queue, in set points").values[0] > 2
    assert mean(found, "mean hot queue", "second half") > 10 * 256 * 64
    assert found.of("hot queue at its set point").values == [None]


def test_values_above_perfect_control_and_windows_cut_by_a_tenth_are_remarked():
    changes = {"traffic.background.source.mean_burst": 24, "measure": {}, "record.outputs.every": "614.4 us"}
    (found,) = hotspot_outcomes(runs.run(load("zrl-og").assign(changes), threads=1))
    assert found.window == (614_400_000, 3_276_800_000)
    assert "The edges of the recorded intervals cut 13% of the time of the hotspot off." in found.remarks
    assert found.of("aggregate throughput").values[0] > 1.01 * found.facts.throughput_max
    (above,) = (each for each in found.remarks if each.startswith("Above perfect control"))
    assert "(aggregate throughput, innocent ports)" in above


def test_flows_to_the_hot_port_wait_longer_than_those_to_others():
    found = outcome(SWITCH + SERIES + BCN)
    assert mean(found, "burst delay of hot flows", "run") > 3 * mean(
        found, "burst delay of other flows", "run"
    )
    assert 0 < mean(found, "RJFI", "run") <= 1


def test_fairness_and_delays_of_the_second_half_are_told_where_each_flow_is_recorded():
    short = {
        "run.duration": "1024 us",
        "hotspots.hot.window": "0 us .. 1024 us",
        "measure": {
            "late": {
                "kind": "relative-fairness",
                "of": "*",
                "hotspot": "hot",
                "window": "512 us .. 1024 us",
            }
        },
        "record.flows": {"flow": "*", "by": "flow", "every": "51.2 us"},
    }
    run = runs.run(load("zrl-og-8").assign(short), threads=1)
    (found,) = hotspot_outcomes(run)
    assert mean(found, "RJFI", "second half") == evaluate(run).get_column("value").item()
    assert mean(found, "RJFI", "second half") < mean(found, "RJFI", "run")
    assert mean(found, "burst delay of hot flows", "second half") > mean(
        found, "burst delay of hot flows", "run"
    )
    sent = "BCN frames, negative"
    assert 0 < mean(found, sent, "second half") < mean(found, sent, "run")
    bare = {key: value for key, value in short.items() if not key.startswith(("record", "measure"))}
    (bare_found,) = hotspot_outcomes(runs.run(load("zrl-og-8").assign({**bare, "measure": {}}), threads=1))
    assert [each.span for each in bare_found.quantities if each.name == "RJFI"] == ["run"]


def test_a_run_without_totals_of_flows_has_all_that_ports_tell():
    found = outcome((SWITCH + SERIES).replace("run: {", "run: {flows: false, "))
    assert found.of("RJFI") is None
    assert found.of("aggregate throughput") is not None


def test_a_hotspot_that_streams_go_to_has_no_ideal_and_is_measured_all_the_same():
    text = """
weirlab: 1
name: streams
network: {kind: star, hosts: 4, link: {rate: 1 Gbit/s, delay: 5 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  stream:
    from: host-1
    to: host-0
    transport: {kind: tcp, congestion_control: {kind: cubic}}
    source: {kind: bulk}
  load: {from: host-2, to: host-3, source: {kind: constant, load: 50 %, frame_size: 1500 B}}
hotspots:
  slow: {kind: output-generated, at: host-0, service: 20 %, window: 4 ms .. 10 ms}
  idle: {kind: output-generated, at: host-1, service: 20 %}
run: {duration: 10 ms}
record: {outputs: {queue: "switch-0->*", every: 1 ms}}
"""
    slow, idle = hotspot_outcomes(runs.run(loads(text), threads=1))
    assert slow.of("RJFI") is None
    assert slow.of("aggregate throughput").ideal is None
    assert slow.of("recovery of throughput") is None
    assert slow.facts.remarks == ("TCP offers what it can get: severity and throughput do not count stream",)
    assert mean(slow, "hot port, of what it serves", "second half") == pytest.approx(1, abs=0.05)
    assert mean(slow, "hot port", "second half") == pytest.approx(0.2, abs=0.02)
    assert mean(slow, "innocent ports", "second half") == pytest.approx(0.25, abs=0.01)
    assert mean(slow, "dropped frames", "run") > 0
    assert mean(idle, "hot port", "hotspot") < 0.1, "acknowledgements alone"


def test_outcomes_are_told_as_json_values():
    found = outcome(SWITCH + SERIES)
    (told,) = outcome_json([found])
    assert told["hotspot"] == "hot"
    assert told["port"] == "switch-0->host-0"
    drops = next(each for each in told["quantities"] if each["name"] == "dropped frames")
    assert drops == {
        "name": "dropped frames", "span": "run", "unit": "frames", "mean": 0.0, "ideal": 0.0, "values": [0.0],
    }  # fmt: skip


def test_the_hot_ports_of_a_scenario_are_in_the_order_of_the_file():
    second = "  other: {kind: output-generated, at: host-5, service: 50 %}\n"
    scenario = loads(SWITCH.replace("run: {", second + "run: {"))
    names = scenario.resolve().ports
    assert [names[port] for port in hot_ports(scenario)] == ["switch-0->host-0", "switch-0->host-5"]
    assert hot_ports(loads(SWITCH.partition("hotspots:")[0] + "run: {duration: 1 us}\n")) == []
