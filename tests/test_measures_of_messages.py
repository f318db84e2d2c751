"""Measures of messages, imbalance and convergence against cases worked out by hand."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, strategies as st

from made_records import MS, deliveries, records, values
from weirlab.measures import taken
from weirlab.units import Rate, Size, Span

US = 10**6


def made(rows):
    """Messages of the first replicate as (start, size, delivered or None, ideal); the second has one."""
    starts, sizes, ends, ideals = zip(*rows, (0, 1000, 3 * US, US), strict=True)
    count = len(starts)
    return records(
        messages=pl.DataFrame(
            {
                "replicate": [0] * (count - 1) + [1],
                "message": list(range(count)),
                "traffic": [0] * count,
                "size_bytes": sizes,
                "start_ps": starts,
                "delivered_ps": ends,
                "acknowledged_ps": [None if end is None else end + US for end in ends],
                "ideal_ps": ideals,
            },
            schema_overrides={"delivered_ps": pl.UInt64, "acknowledged_ps": pl.UInt64},
        )
    )


FOUR = [(0, 100, 2 * US, US), (0, 200, 6 * US, 2 * US), (US, 300, 11 * US, 2 * US), (5 * US, 400, None, US)]


def test_percentiles_are_values_of_messages_and_unknown_where_one_has_not_ended():
    run = made(FOUR)
    assert values(taken("slowdown", run, [0], at=0.5)) == [3.0, 3.0]
    assert values(taken("slowdown", run, [0], at=0.75)) == [5.0, 3.0]
    assert values(taken("slowdown", run, [0], at=0.76)) == [None, 3.0]
    assert values(taken("message-time", run, [0], at=0.25)) == [2 * US, 3 * US]
    assert values(taken("message-time", run, [0], at=0.25, until="acknowledged")) == [3 * US, 4 * US]


def test_the_mean_is_unknown_where_a_message_has_not_ended():
    assert values(taken("slowdown", made(FOUR), [0])) == [None, 3.0]
    assert values(taken("slowdown", made(FOUR[:3]), [0])) == [pytest.approx(10 / 3), 3.0]


def test_messages_count_by_their_start_and_their_length():
    run = made(FOUR)
    assert values(taken("slowdown", run, [0], at=1.0, window=(0, US)))[0] == 3.0
    assert values(taken("slowdown", run, [0], at=1.0, window=(0, US + 1)))[0] == 5.0
    assert values(taken("slowdown", run, [0], at=1.0, sizes=(Size(200), Size(300))))[0] == 5.0
    assert values(taken("slowdown", run, [1], at=1.0)) == [None, None]


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=30),
    st.floats(0.01, 1.0),
)
def test_a_percentile_is_the_least_value_that_the_share_does_not_exceed(times, at):
    run = made([(0, 100, time * US, US) for time in times])
    found = values(taken("slowdown", run, [0], at=at))[0]
    below = [time for time in times if time <= found]
    less = [time for time in times if time < found]
    assert len(below) >= at * len(times) - 1e-6
    assert len(less) < at * len(times)


def two_ports(**columns):
    """Rows of ports 0 and 1 in both replicates."""
    base = {"replicate": [0, 0, 1, 1], "port": [0, 1, 0, 1], "bytes": [0] * 4, "paused_ps": [0] * 4}
    return records(ports=pl.DataFrame(base | columns))


def test_imbalance_is_the_greatest_load_over_the_mean():
    run = two_ports(bytes=[3000, 1000, 500, 500])
    assert values(taken("link-imbalance", run, [0, 1])) == [1.5, 1.0]
    assert values(taken("link-imbalance", run, [0])) == [1.0, 1.0]
    assert values(taken("link-imbalance", two_ports(), [0, 1])) == [None, None]


def test_the_index_of_loads_is_one_where_they_are_even_and_a_half_where_one_of_two_has_all():
    run = two_ports(bytes=[3000, 1000, 500, 500])
    assert values(taken("link-imbalance", run, [0, 1], take="jain")) == [0.8, 1.0]
    assert values(taken("link-imbalance", two_ports(bytes=[9, 0, 0, 0]), [0, 1], take="jain")) == [0.5, None]


def test_the_depth_of_stops_is_the_greatest_and_zero_where_nothing_is_stopped():
    causes = pl.DataFrame({"replicate": [0, 0, 0], "port": [0, 1, 2], "depth": [1, 3, 7]})
    assert values(taken("pause-depth", records(hold_causes=causes), [0, 1])) == [3.0, 0.0]


def test_the_share_of_pauses_is_that_of_time_and_ports():
    run = two_ports(paused_ps=[5 * MS, 1 * MS, 0, 0])
    assert values(taken("pause-fraction", run, [0, 1])) == [pytest.approx(0.3), 0.0]


def test_flows_settle_when_all_stay_near_their_share():
    names = pl.DataFrame(
        {"flow": [0, 1], "name": ["p", "q"], "traffic": [0, 0], "from": ["a", "b"], "to": ["b", "a"]}
    )
    # 10 frames of 1000 B in 1 ms: 80 Mbit/s. Both are near from 2 to 3 ms, and from 4 ms on.
    series = deliveries({0: [20, 10, 10, 3, 10, 10, 11], 1: [0, 10, 10, 10, 10, 9, 10]}, by="flow")
    run = records(flow_names=names, flow_deliveries=series)
    settled = lambda after, hold: values(  # noqa: E731
        taken(
            "settling-time",
            run,
            [0],
            target=Rate(80e6),
            within=0.1001,
            after=Span(after * MS),
            hold=Span(hold * MS),
        )
    )
    assert settled(0, 2) == [MS, MS]
    assert settled(0, 3) == [4 * MS, 4 * MS]
    assert settled(3, 1) == [MS, MS]
    assert settled(0, 4) == [None, None]


def test_flows_are_back_when_all_have_the_rate_from_before():
    names = pl.DataFrame(
        {"flow": [0, 1, 2], "name": ["p", "q", "r"], "traffic": [0] * 3, "from": ["a"] * 3, "to": ["b"] * 3}
    )
    # A link fails at 2 ms. The first flow is back from 4 ms on, the second from 3 ms on; the third had
    # nothing before.
    frames = {0: [20, 20, 3, 9, 19, 21], 1: [10, 10, 0, 10, 10, 10], 2: [0, 0, 5, 0, 9, 0]}
    series = deliveries(frames, by="flow")
    run = records(flow_names=names, flow_deliveries=series)

    def back(bound: float) -> list[float | None]:
        return values(
            taken("settling-time", run, [0], target=None, within=bound, after=Span(2 * MS), hold=Span(2 * MS))
        )

    assert back(0.06) == [2 * MS, 2 * MS]
    assert back(0.6) == [MS, MS]
    assert back(0.01) == [None, None]


def test_what_flows_had_before_is_counted_from_when_they_came():
    # From 2 ms on, without a disturbance: the rate before 4 ms is that after it.
    names = pl.DataFrame({"flow": [0], "name": ["p"], "traffic": [0], "from": ["a"], "to": ["b"]})
    series = deliveries({0: [0, 0, 10, 10, 10, 10]}, by="flow")
    run = records(flow_names=names, flow_deliveries=series)
    assert values(
        taken("settling-time", run, [0], target=None, within=0.01, after=Span(4 * MS), hold=Span(2 * MS))
    ) == [0, 0]


def test_a_ramp_before_is_no_part_of_what_flows_had():
    # Slow start up to 3 ms, 10 frames/ms then; a link fails at 5 ms, and the flow is back from 7 ms on.
    names = pl.DataFrame({"flow": [0], "name": ["p"], "traffic": [0], "from": ["a"], "to": ["b"]})
    series = deliveries({0: [1, 2, 4, 10, 10, 2, 6, 10, 10]}, by="flow")
    run = records(flow_names=names, flow_deliveries=series)
    assert values(
        taken("settling-time", run, [0], target=None, within=0.1, after=Span(5 * MS), hold=Span(2 * MS))
    ) == [2 * MS, 2 * MS]


def rounds(*rows):
    """Rounds of the first replicate as (start, over or None), 1000 B each; the second has one of 1 us."""
    starts, ends = zip(*rows, (0, US), strict=True)
    count = len(starts)
    base = {"replicate": [0] * (count - 1) + [1], "traffic": [0] * count, "carried_bytes": [1000] * count}
    return records(rounds=pl.DataFrame({**base, "start_ps": starts, "over_ps": ends}))


def test_an_iteration_that_the_end_cut_short_does_not_count():
    run = rounds((0, US), (US, 3 * US), (10 * MS - US, None))
    assert values(taken("bus-bandwidth", run, [0])) == [6e9, 8e9]
    assert values(taken("bus-bandwidth", run, [0], at=0.5)) == [4e9, 8e9]


def test_an_iteration_that_hangs_counts_as_slower_than_all_others():
    run = rounds((0, US), (US, 3 * US), (3 * US, None))
    assert values(taken("bus-bandwidth", run, [0])) == [None, 8e9]
    assert values(taken("bus-bandwidth", run, [0], at=0.3)) == [0.0, 8e9]
    assert values(taken("bus-bandwidth", run, [0], at=0.5)) == [4e9, 8e9]
    assert values(taken("bus-bandwidth", rounds((0, None)), [0])) == [None, 8e9]
