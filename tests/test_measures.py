"""Measures against cases worked out by hand, and laws."""

import polars as pl
import pytest
from hypothesis import given, strategies as st

import weirlab
from made_records import MS, flows, intervals, ports, records, values
from weirlab import measures
from weirlab.evaluation import evaluate, summary
from weirlab.measures import MissingRecordError
from weirlab.runs import run
from weirlab.scenario import loads
from weirlab.units import Rate


def test_utilisation_is_time_on_the_wire_over_time():
    # 1230 B + 20 B at 1 Gbit/s are 10 us: 500 frames fill 5 of 10 ms.
    made = records(ports=ports([500, 1000]))
    assert values(measures.taken("utilisation", made, [0])) == pytest.approx([0.5, 1.0])


def test_a_window_counts_its_intervals_and_no_others():
    made = records(intervals=intervals([100, 50, 0, 10, 0, 0, 0, 0, 0, 100]))
    assert values(measures.taken("utilisation", made, [0], window=(MS, 4 * MS))) == pytest.approx([0.2, 0.2])
    assert values(measures.taken("mean-queue", made, [0], window=(0, 2 * MS))) == pytest.approx([3750.0] * 2)
    assert values(measures.taken("max-queue", made, [0], window=(MS, 3 * MS))) == [5000.0] * 2


def test_a_window_of_the_whole_run_agrees_with_the_totals():
    counts = [10, 20, 30, 0, 0, 0, 0, 0, 5, 35]
    made = records(intervals=intervals(counts), ports=ports([100, 100]))
    whole = values(measures.taken("utilisation", made, [0]))
    assert values(measures.taken("utilisation", made, [0], window=(0, 10 * MS))) == pytest.approx(whole)


@pytest.mark.parametrize("window", [(MS // 2, 2 * MS), (0, 2 * MS + 1), (0, 11 * MS)])
def test_a_window_between_the_edges_of_intervals_is_refused(window):
    made = records(intervals=intervals([1] * 10))
    with pytest.raises(MissingRecordError, match="does not start and end on recorded intervals"):
        measures.taken("utilisation", made, [0], window=window)


def test_a_port_without_series_is_named():
    made = records(intervals=intervals([1] * 10))
    with pytest.raises(MissingRecordError, match="needs a series of b->a"):
        measures.taken("mean-queue", made, [0, 1], window=(0, MS))


def test_queues_of_the_whole_run():
    made = records(ports=ports([1, 1], queue_byte_ps=(1500.0 * 10 * MS, 0.0), queue_max=(9000, 0)))
    assert values(measures.taken("mean-queue", made, [0])) == pytest.approx([1500.0, 0.0])
    assert values(measures.taken("max-queue", made, [0])) == [9000.0, 0.0]


def test_loss_counts_drops_and_not_what_is_under_way():
    made = records(flows=flows([100, 50, 0, 10], [80, 50, 0, 10], [15, 0, 0, 0]))
    assert values(measures.taken("loss-ratio", made, [0])) == [0.15, None]
    assert values(measures.taken("loss-ratio", made, [0, 1])) == pytest.approx([0.1, 0.0])


def test_delivered_rate_is_in_bits_without_framing():
    made = records(flows=flows([10, 0, 20, 5], [10, 0, 20, 5], [0, 0, 0, 0]))
    # 10 frames of 1000 B in 10 ms.
    assert values(measures.taken("delivered-rate", made, [0])) == pytest.approx([8e6, 16e6])
    assert values(measures.taken("delivered-rate", made, [0, 1])) == pytest.approx([8e6, 20e6])


def test_delays_are_weighted_by_frames_and_unknown_where_nothing_arrived():
    made = records(
        flows=flows(
            [4, 1, 1, 1],
            [4, 1, 0, 0],
            [0, 0, 1, 1],
            total=[40.0, 60.0, 0.0, 0.0],
            high=[15.0, 60.0, None, None],
        )
    )
    assert values(measures.taken("mean-delay", made, [0, 1])) == [20.0, None]
    assert values(measures.taken("max-delay", made, [0, 1])) == [60.0, None]


def histogram(bins):
    rows = [(0, 0, low, high, frames) for low, high, frames in bins]
    return pl.DataFrame(rows, schema=["replicate", "flow", "low_ps", "high_ps", "frames"], orient="row")


def test_percentiles_are_interpolated_within_their_bin():
    made = records(flows=flows([10] * 4, [10] * 4, [0] * 4), delays=histogram([(100, 110, 5), (200, 220, 5)]))
    assert values(measures.taken("delay-percentile", made, [0], percentile=0.5)) == [110.0, None]
    assert values(measures.taken("delay-percentile", made, [0], percentile=0.75))[0] == pytest.approx(210.0)
    assert values(measures.taken("delay-percentile", made, [0], percentile=1.0))[0] == 220.0
    assert values(measures.taken("delay-percentile", made, [0], percentile=0.0))[0] == 100.0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20).filter(any), st.floats(0, 1), st.floats(0, 1))
def test_percentiles_grow_with_their_share_and_stay_within_the_bins(counts, one, other):
    bins = [(100 * i, 100 * i + 100, count) for i, count in enumerate(counts)]
    made = records(flows=flows([10] * 4, [10] * 4, [0] * 4), delays=histogram(bins))
    low, high = (
        measures.taken("delay-percentile", made, [0], percentile=share).item(0, "value")
        for share in sorted((one, other))
    )
    filled = [i for i, count in enumerate(counts) if count]
    assert 100 * filled[0] <= low <= high <= 100 * filled[-1] + 100


def test_no_percentile_leaves_the_delays_that_were_seen():
    # All frames took 205 ps: their bin reaches from 200 to 220.
    seen = flows([10] * 4, [10] * 4, [0] * 4, low=[205] * 4, high=[205] * 4)
    made = records(flows=seen, delays=histogram([(200, 220, 10)]))
    assert values(measures.taken("delay-percentile", made, [0], percentile=0.01))[0] == 205.0
    assert values(measures.taken("delay-percentile", made, [0], percentile=0.99))[0] == 205.0


def test_delays_that_were_not_recorded_are_not_made_up():
    made = records(flows=flows([1] * 4, [1] * 4, [0] * 4), delays=histogram([]).cast(pl.UInt64))
    with pytest.raises(MissingRecordError, match="delays were not recorded"):
        measures.taken("delay-percentile", made, [0], percentile=0.5)


def test_fairness_of_one_to_three():
    made = records(flows=flows([30, 10, 20, 20], [30, 10, 20, 20], [0] * 4))
    # x = 3, 1: (3 + 1)^2 / (2 (9 + 1)) = 0.8.
    assert values(measures.taken("jain-fairness", made, [0, 1])) == pytest.approx([0.8, 1.0])
    # 24 and 8 Mbit/s around 16: both half of the target off.
    assert values(measures.taken("rms-fairness", made, [0, 1], target=Rate(16e6))) == pytest.approx(
        [0.5, 0.0]
    )


@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=4))
def test_jains_index_lies_between_one_nth_and_one_whatever_the_scale(counts):
    index = values(measures.taken("jain-fairness", records(flows=flows(counts, counts, [0] * 4)), [0, 1]))
    tenfold = [10 * count for count in counts]
    assert values(
        measures.taken("jain-fairness", records(flows=flows(tenfold, tenfold, [0] * 4)), [0, 1])
    ) == pytest.approx(index)
    for place, value in enumerate(index):
        delivered = sum(counts[2 * place : 2 * place + 2])
        assert (value is None) == (delivered == 0)
        assert value is None or 0.5 - 1e-12 <= value <= 1 + 1e-12


def test_fairness_in_a_window_needs_a_series_for_each_flow():
    names = records()["flow_names"].with_columns(traffic=pl.lit(0))
    made = records(flows=flows([1] * 4, [1] * 4, [0] * 4), flow_names=names)
    with pytest.raises(MissingRecordError, match="needs a series of each flow"):
        measures.taken("jain-fairness", made, [0], window=(0, MS))


SCENARIO = """
weirlab: 1
name: measured
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic:
  a: {from: host-0, to: host-2, source: {kind: poisson, load: 40 %, frame_size: 1000 B}}
  b: {from: host-1, to: host-2, source: {kind: poisson, load: 80 %, frame_size: 1000 B}}
run: {duration: 20 ms}
record:
  out: {queue: switch-0->host-2, every: 1 ms}
  series: {flow: "*", every: 1 ms}
  delays: {delays: "*"}
measure:
  busy: {kind: utilisation, of: switch-0->host-2, window: 10 ms .. 20 ms}
  queue: {kind: mean-queue, of: switch-0->host-2}
  most: {kind: max-queue, of: switch-0->host-2}
  goodput: {kind: delivered-rate, of: "*", window: 10 ms .. 20 ms}
  loss: {kind: loss-ratio, of: "*"}
  mean: {kind: mean-delay, of: "*"}
  p99: {kind: delay-percentile, of: "*", percentile: 99 %}
  max: {kind: max-delay, of: "*"}
  jain: {kind: jain-fairness, of: "*", window: 10 ms .. 20 ms}
  rms: {kind: rms-fairness, of: "*", target: 500 Mbit/s}
"""


def test_every_measure_of_a_scenario_is_evaluated_and_obeys_theory(tmp_path):
    file = tmp_path / "m.yaml"
    file.write_text(SCENARIO)
    run = weirlab.run(file, replicates=3)
    table = run.measures
    assert table.columns == ["measure", "replicate", "value", "unit"]
    assert table.get_column("measure").unique(maintain_order=True).to_list() == list(run.scenario.measure)
    by_name = {name: group for (name,), group in table.group_by("measure")}
    for name, group in by_name.items():
        assert group.get_column("replicate").to_list() == [0, 1, 2], name
        assert group.get_column("value").null_count() == 0, name
    mean = {name: group.get_column("value").mean() for name, group in by_name.items()}
    # The port is asked for 1.2 of what it carries: busy, and a sixth is lost, less what the buffer holds.
    assert mean["busy"] == pytest.approx(1.0, abs=0.001)
    assert 0.08 < mean["loss"] < 0.2
    assert mean["goodput"] == pytest.approx(1e9 * 1000 / 1020, rel=0.002)
    assert mean["mean"] <= mean["p99"] <= mean["max"]
    assert mean["queue"] <= mean["most"] <= 150_000
    # b delivers about twice as much as a: 9 / (2 x 5).
    assert 0.85 < mean["jain"] < 0.95


def test_a_summary_holds_means_intervals_and_values():
    table = pl.DataFrame(
        {"measure": ["m", "m"], "replicate": [0, 1], "value": [1.0, 3.0], "unit": ["B", "B"]}
    )
    (row,) = summary(table)
    assert row["mean"] == 2.0
    assert row["values"] == [1.0, 3.0]
    # t(0.975, 1) = 12.706, s / sqrt(n) = 1.
    assert row["high"] - row["mean"] == pytest.approx(12.706, rel=1e-4)
    (single,) = summary(table.head(1))
    assert single["low"] is None


def test_a_measure_of_a_replicate_is_the_same_to_the_last_bit_whoever_is_evaluated_with_it():
    scenario = loads(
        """
weirlab: 1
name: batches
network: {kind: star, hosts: 4, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-2]", to: host-3, source: {kind: poisson, load: 37 %, frame_size: 700 B}}
run: {duration: 3 ms}
record: {out: {queue: "switch-0->*", every: 100 us}, in: {flow: a, every: 100 us, by: flow}}
measure:
  rate: {kind: delivered-rate, of: a}
  part: {kind: delivered-rate, of: a, window: 0.7 ms .. 2.8 ms}
  loss: {kind: loss-ratio, of: a}
  delay: {kind: mean-delay, of: a}
  busy: {kind: utilisation, of: switch-0->host-3, window: 0.7 ms .. 2.8 ms}
  queue: {kind: mean-queue, of: switch-0->host-3, window: 0.7 ms .. 2.8 ms}
  jain: {kind: jain-fairness, of: a}
  rms: {kind: rms-fairness, of: a, target: 0.31 Gbit/s}
"""
    )
    together = evaluate(run(scenario, replicates=40))
    for replicate in range(40):
        alone = evaluate(run(scenario, seed=1 + replicate))
        found = together.filter(replicate=replicate).get_column("value").to_list()
        assert alone.get_column("value").to_list() == found
