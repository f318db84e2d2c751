"""Measures of hotspots against cases worked out by hand."""

import polars as pl
import pytest

from weirlab import measures
from weirlab.measures import MissingRecordError
from weirlab.records import Records

US = 10**6  # ps


def values(frame: pl.DataFrame) -> list[float | None]:
    return frame.get_column("value").to_list()


def made(**tables: pl.DataFrame) -> Records:
    runs = pl.DataFrame(
        {"replicate": [0], "seed": [1], "events": [0], "packet_hops": [0], "end_ps": [10 * US]},
        schema_overrides={"replicate": pl.UInt32, "end_ps": pl.UInt64},
    )
    names = pl.DataFrame(
        {
            "flow": [0, 1, 2, 3],
            "name": ["a", "b", "c", "d"],
            "traffic": [0, 0, 0, 1],
            "from": ["h1", "h2", "h3", "h1"],
            "to": ["h0", "h0", "h4", "h0"],
            "carries": ["data"] * 4,
        }
    )
    return Records({"runs": runs, "flow_names": names, **tables})


def bursts(counts: list[int], sums: list[float], longest: list[float | None]) -> pl.DataFrame:
    many = len(counts)
    return pl.DataFrame(
        {
            "replicate": [0] * many,
            "flow": list(range(many)),
            "bursts": counts,
            "delay_sum_ps": sums,
            "delay_min_ps": longest,
            "delay_max_ps": longest,
        },
        schema_overrides={"replicate": pl.UInt32},
    )


def delivered(sizes: list[int]) -> pl.DataFrame:
    columns = {name: [0] * 4 for name in ("sent_frames", "sent_bytes", "delivered_frames", "dropped_frames")}
    more = {name: [0] * 4 for name in ("live_frames", "delay_sum_ps", "delay_min_ps", "delay_max_ps")}
    return pl.DataFrame(
        {"replicate": [0] * 4, "flow": [0, 1, 2, 3], **columns, **more, "delivered_bytes": sizes},
        schema_overrides={"replicate": pl.UInt32},
    )


def test_the_delay_of_bursts_is_weighted_by_bursts():
    records = made(bursts=bursts([3, 1, 0], [30.0, 50.0, 0.0], [12.0, 50.0, None]))
    assert values(measures.taken("burst-delay", records, [0])) == [20.0]
    assert values(measures.taken("burst-delay", records, [0], take="longest")) == [50.0]


def test_the_delay_of_bursts_in_a_window_is_that_of_those_that_end_in_it():
    # Intervals of 10 ps: bursts of flow 0 end in the first and third, of flow 1 in the second and third.
    by_interval = pl.DataFrame(
        {
            "replicate": [0, 0, 0, 0],
            "flow": [0, 0, 1, 1],
            "t_ps": [10, 30, 20, 30],
            "bursts": [2, 1, 1, 3],
            "delay_sum_ps": [8.0, 5.0, 9.0, 21.0],
        },
        schema_overrides={"replicate": pl.UInt32},
    )
    series = pl.DataFrame(
        [
            {"replicate": 0, "flow": flow, "t_ps": t_ps, "frames": 0, "bytes": 0}
            for flow in (0, 1, 2)
            for t_ps in (10, 20, 30)
        ],
        schema_overrides={"replicate": pl.UInt32},
    )
    totals = bursts([3, 4, 0], [13.0, 30.0, 0.0], [5.0, 9.0, None])
    records = made(bursts=totals, burst_intervals=by_interval, flow_deliveries=series)
    assert values(measures.taken("burst-delay", records, [0])) == [43 / 7]
    assert values(measures.taken("burst-delay", records, [0], window=(0, 30))) == [43 / 7]
    assert values(measures.taken("burst-delay", records, [0], window=(10, 30))) == [35 / 5]
    assert values(measures.taken("burst-delay", records, [0], window=(10, 20))) == [9.0]
    assert values(measures.taken("burst-delay", records, [0], window=(0, 10))) == [4.0]
    with pytest.raises(MissingRecordError, match="does not start and end"):
        measures.taken("burst-delay", records, [0], window=(5, 30))
    with pytest.raises(MissingRecordError, match="of the whole run only"):
        measures.taken("burst-delay", records, [0], take="longest", window=(0, 30))


def test_flows_without_a_whole_burst_do_not_count_for_the_fairness_of_delays():
    records = made(bursts=bursts([3, 1, 0], [30.0, 30.0, 0.0], [12.0, 30.0, None]))
    # Means 10 and 30: 40^2 / (2 (100 + 900)).
    assert values(measures.taken("delay-fairness", records, [0])) == pytest.approx([0.8])


def test_bursts_that_nobody_recorded_are_asked_for():
    with pytest.raises(MissingRecordError, match="sources of the kind 'bursts'"):
        measures.taken("burst-delay", made(), [0])


def test_relative_fairness_is_one_where_everybody_has_the_same_part_of_its_share():
    records = made(flows=delivered([100, 300, 9, 0]))
    assert values(measures.relative_fairness(records, [0], "h0", {"h1": 0.1, "h2": 0.3})) == pytest.approx(
        [1]
    )


def test_relative_fairness_adds_the_flows_of_a_sender_and_leaves_other_receivers_out():
    records = made(flows=delivered([100, 300, 999, 200]))
    # h1: 300, h2: 300, over shares 1 and 3: x = 300 and 100.
    index = 400**2 / (2 * (300**2 + 100**2))
    found = measures.relative_fairness(records, [0, 1], "h0", {"h1": 1.0, "h2": 3.0})
    assert values(found) == pytest.approx([index])


def series(sizes: list[int]) -> pl.DataFrame:
    columns = ("frames", "drops", "queue_bytes", "queue_max_bytes", "queue_byte_ps")
    many = len(sizes)
    times = [(i + 1) * US for i in range(many)]
    return pl.DataFrame(
        {
            "replicate": [0] * many,
            "port": [0] * many,
            "t_ps": times,
            "bytes": sizes,
            **{name: [0] * many for name in columns},
        },
        schema_overrides={"replicate": pl.UInt32, "t_ps": pl.UInt64},
    )


@pytest.mark.parametrize(
    ("sizes", "recovery"),
    [
        ([10, 2, 2, 9, 8, 9], 2 * US),  # slow until 3 us, counted from 1 us
        ([10, 9, 9, 9, 8, 9], 0.0),
        ([10, 9, 2, 9, 2, 9], 4 * US),  # only the last slow interval counts
        ([10, 2, 9, 9, 9, 2], None),  # never for good
        ([10, 2, 2, 2, 9, 9], None),  # three slow intervals, and two after them: no more than PAUSE by turns
        ([10, 2, 2, 9, 9, 9, 2, 2, 9], None),  # by turns, and the window ends while it runs
        ([10, 2, 2, 9, 2, 9, 9], 4 * US),  # kept for as long as it lacked at a stretch
    ],
)
def test_recovery_lasts_until_the_last_slow_interval(sizes, recovery):
    records = made(
        intervals=series(sizes),
        port_names=pl.DataFrame({"port": [0], "name": ["s->h0"]}).with_columns(
            rate_bps=pl.lit(8), framing_bytes=pl.lit(0)
        ),
    )
    found = measures.recovery_time(records, [0], 8 / US, US, window=(US, len(sizes) * US))
    assert values(found) == [recovery]
