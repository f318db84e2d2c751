"""Measures of congestion control against cases worked out by hand."""

import polars as pl
import pytest
from hypothesis import given, strategies as st

from made_records import MS, deliveries, intervals, ports, records, values
from weirlab import measures
from weirlab.measures import MissingRecordError
from weirlab.units import Rate

TEN_MS = 10 * MS
MBPS = 8.0  # one frame of 1000 B in 1 ms is 8 Mbit/s


def queues(levels, drops=None, port=0, every=MS):
    """Intervals with these queues [B] at their ends, and drops."""
    frame = intervals([0] * len(levels), every)
    drops = drops or [0] * len(levels)
    return frame.with_columns(
        port=pl.lit(port), queue_bytes=pl.Series(levels * 2), drops=pl.Series(list(drops) * 2)
    )


def one_entry(*rows):
    """Both flows in one entry of traffic."""
    names = pl.DataFrame(
        {"flow": [0, 1], "name": ["p", "q"], "traffic": [0, 0], "from": ["a", "b"], "to": ["b", "a"]}
    )
    return records(flow_names=names, flow_deliveries=deliveries(dict(enumerate(rows)), by="flow"))


def test_series_by_flow_serve_fairness_in_a_window():
    # In the second and third ms 30 and 10 frames: 120 and 40 Mbit/s around a fair share of 80.
    made = one_entry([9, 15, 15, 0], [1, 5, 5, 0])
    assert values(
        measures.taken("rms-fairness", made, [0], target=Rate(80e6), window=(MS, 3 * MS))
    ) == pytest.approx([0.5, 0.5])
    assert values(measures.taken("jain-fairness", made, [0], window=(MS, 3 * MS))) == pytest.approx(
        [0.8, 0.8]
    )


def test_series_of_single_flows_and_of_entries_may_stand_beside_each_other():
    made = records(
        flow_deliveries=deliveries({0: [15, 15]}, by="flow"),
        deliveries=deliveries({1: [5, 5]}, by="traffic"),
    )
    assert values(
        measures.taken("rms-fairness", made, [0, 1], target=Rate(80e6), window=(0, 2 * MS))
    ) == pytest.approx([0.5, 0.5])


def test_the_rate_of_an_entry_is_that_of_its_flows_together():
    made = one_entry([9, 15, 15, 0], [1, 5, 5, 0])
    assert values(measures.taken("delivered-rate", made, [0], window=(MS, 3 * MS))) == pytest.approx(
        [160e6, 160e6]
    )
    both = records(
        flow_deliveries=deliveries({0: [15, 15]}, by="flow"),
        deliveries=deliveries({1: [5, 5]}, by="traffic"),
    )
    assert values(measures.taken("delivered-rate", both, [0, 1], window=(0, 2 * MS))) == pytest.approx(
        [160e6, 160e6]
    )


def test_the_error_of_rates_is_that_of_the_worst_flow_or_the_mean():
    made = one_entry([15, 15], [8, 8])
    assert values(
        measures.taken("rate-error", made, [0], target=Rate(80e6), window=(0, 2 * MS))
    ) == pytest.approx([0.5, 0.5])
    assert values(
        measures.taken("rate-error", made, [0], target=Rate(80e6), window=(0, 2 * MS), take="mean")
    ) == pytest.approx([0.35, 0.35])


def test_rates_have_converged_when_no_later_interval_is_beyond_the_bound():
    made = one_entry([20, 10, 14, 10, 10], [0, 10, 6, 10, 10])
    # Index 1, 0, 0.4, 0, 0 around 80 Mbit/s.
    assert values(measures.taken("time-to-converge", made, [0], target=Rate(80e6), within=0.5)) == [MS, MS]
    assert values(measures.taken("time-to-converge", made, [0], target=Rate(80e6), within=0.3)) == [
        3 * MS,
        3 * MS,
    ]
    assert values(measures.taken("time-to-converge", made, [0], target=Rate(80e6), within=1.0)) == [0, 0]


def test_rates_that_end_beyond_the_bound_have_not_converged():
    made = one_entry([10, 10, 20], [10, 10, 0])
    assert values(measures.taken("time-to-converge", made, [0], target=Rate(80e6), within=0.5)) == [
        None,
        None,
    ]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.floats(0.01, 0.5))
def test_a_wider_bound_is_kept_no_later(counts, bound):
    made = one_entry(counts, counts[::-1])
    narrow, wide = (
        values(measures.taken("time-to-converge", made, [0], target=Rate(80e6), within=limit))[0]
        for limit in (bound, 2 * bound)
    )
    assert narrow is None or (wide is not None and wide <= narrow)


def test_the_spread_of_a_queue_is_its_standard_deviation_over_time():
    made = records(intervals=queues([0, 2000, 0, 2000]))
    assert values(measures.taken("queue-spread", made, [0])) == pytest.approx([1000.0] * 2)
    assert values(measures.taken("queue-spread", made, [0], window=(MS, 2 * MS))) == [0.0, 0.0]


def test_queues_that_move_against_each_other_have_no_spread_together():
    both = pl.concat([queues([0, 2000]), queues([2000, 0], port=1)])
    assert values(measures.taken("queue-spread", records(intervals=both), [0, 1])) == [0.0, 0.0]


def test_ports_with_different_intervals_have_no_common_queue():
    both = pl.concat([queues([0, 0]), queues([0] * 4, port=1, every=MS // 2)])
    with pytest.raises(MissingRecordError, match="not recorded in the same intervals"):
        measures.taken("queue-spread", records(intervals=both), [0, 1])


def test_the_time_of_drops_is_that_of_the_intervals_with_drops():
    made = records(intervals=queues([0] * 6, drops=[0, 3, 1, 0, 7, 0]))
    assert values(measures.taken("drop-time", made, [0])) == [3 * MS] * 2
    assert values(measures.taken("drop-time", made, [0], take="longest")) == [2 * MS] * 2
    assert values(measures.taken("drop-time", made, [0], window=(3 * MS, 6 * MS), take="longest")) == [MS] * 2


def test_a_port_that_was_not_recorded_is_named():
    with pytest.raises(MissingRecordError, match="this needs a series of b->a"):
        measures.taken("drop-time", records(intervals=queues([0])), [1])


def levels(bins, port=0):
    rows = [(r, port, low, high, time) for r in range(2) for low, high, time in bins]
    return pl.DataFrame(
        rows, schema=["replicate", "port", "low_bytes", "high_bytes", "time_ps"], orient="row"
    )


def test_percentiles_of_a_queue_are_weighted_by_time():
    made = records(queue_levels=levels([(0, 1000, 9 * MS), (1000, 2000, MS)]))
    assert values(measures.taken("queue-percentile", made, [0], percentile=0.45)) == pytest.approx(
        [500.0] * 2
    )
    assert values(measures.taken("queue-percentile", made, [0], percentile=0.95)) == pytest.approx(
        [1500.0] * 2
    )
    assert values(measures.taken("queue-percentile", made, [0], percentile=1.0)) == pytest.approx(
        [2000.0] * 2
    )


def test_the_distribution_of_a_queue_must_be_of_the_window():
    made = records(queue_levels=levels([(0, 1000, 4 * MS)]))
    assert values(
        measures.taken("queue-percentile", made, [0], percentile=0.5, window=(MS, 5 * MS))
    ) == pytest.approx([500.0] * 2)
    with pytest.raises(MissingRecordError, match="over another time"):
        measures.taken("queue-percentile", made, [0], percentile=0.5)
    with pytest.raises(MissingRecordError, match="queues of b->a were not recorded"):
        measures.taken("queue-percentile", made, [1], percentile=0.5)


def totals(**columns):
    """Port 0 and 1 of both replicates; columns hold their values in this order."""
    both = pl.concat([ports([0, 0]), ports([0, 0]).with_columns(port=pl.lit(1, pl.Int64))]).sort(
        "replicate", "port"
    )
    return both.with_columns(**{name: pl.Series(given) for name, given in columns.items()})


def test_pauses_are_told_as_total_longest_and_end():
    made = records(
        ports=totals(
            paused_ps=[4 * MS, 2 * MS, 0, 0],
            paused_longest_ps=[MS, 2 * MS, 0, 0],
            paused_last_ps=[5.0 * MS, 7.0 * MS, None, None],
        )
    )
    assert values(measures.taken("pause-time", made, [0, 1])) == [3 * MS, 0]
    assert values(measures.taken("pause-time", made, [0, 1], take="longest")) == [2 * MS, 0]
    assert values(measures.taken("pause-time", made, [0, 1], take="end")) == [7 * MS, None]
    assert values(measures.taken("pause-time", made, [0], take="end")) == [5 * MS, None]


def test_the_last_drop_is_the_latest_of_all_ports():
    made = records(ports=totals(last_drop_ps=[MS, None, None, None]))
    assert values(measures.taken("last-drop", made, [0, 1])) == [MS, None]


def test_control_frames_are_counted_by_kind_and_by_the_queue_that_caused_them():
    frames = pl.DataFrame(
        {"replicate": [0, 0, 0], "port": [1, 1, 1], "queue_port": [0, 0, 1], "kind": [0, 1, 1],
         "frames": [5, 7, 100], "bytes": [320, 448, 6400]}
    )  # fmt: skip
    kinds = pl.DataFrame({"kind": [0, 1], "name": ["bcn-", "xoff"]})
    made = records(control_frames=frames, kind_names=kinds)
    assert values(measures.taken("control-frames", made, [0])) == [12, 0]
    assert values(measures.taken("control-frames", made, [0], type="xoff")) == [7, 0]
    assert values(measures.taken("control-frames", made, [0], type="cnp")) == [0, 0]


def test_control_frames_of_a_window_are_those_of_its_intervals():
    frames = pl.DataFrame(
        {"replicate": [0, 0, 0, 1], "queue_port": [0, 0, 0, 0], "kind": [0, 1, 1, 1],
         "t_ps": [MS, MS, 3 * MS, 2 * MS], "frames": [5, 7, 2, 4]}
    )  # fmt: skip
    kinds = pl.DataFrame({"kind": [0, 1], "name": ["bcn-", "xoff"]})
    made = records(control_intervals=frames, kind_names=kinds, intervals=intervals([1, 1, 1]))
    assert values(measures.taken("control-frames", made, [0], window=(0, 3 * MS))) == [14, 4]
    assert values(measures.taken("control-frames", made, [0], type="xoff", window=(0, MS))) == [7, 0]
    assert values(measures.taken("control-frames", made, [0], type="xoff", window=(MS, 3 * MS))) == [2, 4]
    assert values(measures.taken("control-frames", made, [0], type="bcn-", window=(MS, 2 * MS))) == [0, 0]
    with pytest.raises(MissingRecordError, match="series of b->a"):
        measures.taken("control-frames", made, [1], window=(0, MS))


def test_drops_are_told_by_cause():
    drops = pl.DataFrame(
        {
            "replicate": [0, 0, 0],
            "port": [0, 0, 1],
            "flow": [0, 0, 0],
            "cause": [0, 2, 2],
            "frames": [3, 5, 7],
        },
        schema_overrides={"replicate": pl.UInt32},
    )
    names = pl.DataFrame({"cause": [0, 1, 2], "name": ["queue-full", "buffer-full", "limiter-full"]})
    made = records(drops=drops, cause_names=names)
    causes = ("queue-full", "limiter-full", "buffer-full")
    of_cause = {cause: values(measures.taken("drops", made, [0], cause=cause)) for cause in causes}
    assert of_cause == {"queue-full": [3.0, 0.0], "limiter-full": [5.0, 0.0], "buffer-full": [0.0, 0.0]}
