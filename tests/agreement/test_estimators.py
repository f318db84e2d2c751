"""Estimators against paths whose available bandwidth and capacity are known."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from weirlab.errors import ScenarioError
from weirlab.evaluation import measured
from weirlab.measures.estimates import estimates
from weirlab.records import Records
from weirlab.runs import simulate
from weirlab.scenario import load

LINK_BPS = 1e9


def run(seeds: int = 1, **assign: Any) -> Records:
    changes = {key.replace("__", "."): value for key, value in assign.items()}
    scenario = load("estimators", {"study": None, **changes})
    return simulate(scenario, list(range(1, seeds + 1)), threads=1)


def crossed(kind: str, load_percent: int) -> dict[str, Any]:
    burst = {"mean_burst": 8} if kind == "bursts" else {}
    return {"kind": kind, "load": f"{load_percent} %", "payload": "1472 B", **burst}


def pbprobe() -> dict[str, Any]:
    return {"kind": "pbprobe"}


def ranges(records: Records) -> tuple[float, float]:
    """Mean lower and upper end of what was estimated."""
    found = estimates(records, [0])
    return float(found.get_column("low_bps").mean()), float(found.get_column("high_bps").mean())


@pytest.mark.parametrize("load_percent", [10, 30, 50, 70, 90])
def test_pathload_brackets_what_constant_cross_traffic_leaves(load_percent: int) -> None:
    low, high = ranges(run(traffic__cross__source=crossed("constant", load_percent)))
    left = LINK_BPS * (1 - load_percent / 100)
    # omega is 2 % of the rate at which a train arrives, 0.53 to 0.91 Gbit/s.
    assert low - 5e6 <= left <= high + 5e6
    assert high - low <= 25e6


@pytest.mark.parametrize("load_percent", [30, 50, 70])
def test_the_range_of_pathload_holds_what_poisson_traffic_leaves_on_average(load_percent: int) -> None:
    low, high = ranges(run(traffic__cross__source=crossed("poisson", load_percent)))
    left = LINK_BPS * (1 - load_percent / 100)
    # The lower end of a grey region is looked for to within 12 Mbit/s.
    assert low - 12e6 <= left <= high
    assert high - low < 0.35 * left


@pytest.mark.parametrize("load_percent", [10, 30, 50, 70])
def test_pbprobe_sees_the_capacity_less_what_always_comes_between(load_percent: int) -> None:
    """Constant cross traffic of the load x leaves no bulk alone: of bulks that arrive at the rate C of a
    link, C / (1 + x) leave it (the fluid limit)."""
    low, high = ranges(
        run(traffic__probe__source=pbprobe(), traffic__cross__source=crossed("constant", load_percent))
    )
    assert low == pytest.approx(high)
    assert low == pytest.approx(LINK_BPS / (1 + load_percent / 100), rel=0.01)


def test_pbprobe_finds_a_bulk_that_nothing_came_between_where_traffic_pauses() -> None:
    low, _ = ranges(run(traffic__probe__source=pbprobe(), traffic__cross__source=crossed("bursts", 10)))
    assert low == pytest.approx(LINK_BPS, rel=0.005)


TIGHT: dict[str, Any] = {
    "network": {
        "kind": "graph",
        "link": {"rate": "1 Gbit/s", "delay": "0.2 ms"},
        "nodes": {
            "left": {"kind": "host", "count": 3},
            "right": {"kind": "host", "count": 3},
            "a": {"kind": "switch"},
            "b": {"kind": "switch"},
            "c": {"kind": "switch"},
        },
        "links": {
            "in": {"join": ["left-[0-1]", "a"]},
            "narrow": {"join": ["a", "b"], "rate": "500 Mbit/s"},
            "cross-in": {"join": ["left-2", "b"]},
            "tight": {"join": ["b", "c"]},
            "out": {"join": ["c", "right-[0-2]"]},
        },
    },
    "queues": {"all": {"at": "@switches->*", "kind": "drop-tail", "limit": "300 frames"}},
}


def test_pathload_sees_the_tight_link_and_pbprobe_the_narrow_one() -> None:
    """A link of 500 Mbit/s that is idle, behind it one of 1 Gbit/s of which 300 are left."""
    cross = crossed("poisson", 70)
    low, high = ranges(run(**TIGHT, traffic__cross__source=cross))
    assert low <= 300e6 <= high
    assert high < 400e6
    low, _ = ranges(
        run(**TIGHT, traffic__probe__source=pbprobe(), traffic__cross__source=crossed("poisson", 30))
    )
    assert low == pytest.approx(500e6, rel=0.02)


def test_losses_end_a_fleet_and_count_as_too_fast() -> None:
    """A queue of few frames: streams above what is left lose packets instead of being delayed by more."""
    records = run(queues__router__limit="5 frames", traffic__cross__source=crossed("constant", 50))
    low, high = ranges(records)
    assert low - 10e6 <= 500e6 <= high + 10e6
    lossy = records.named("probe_trains").filter(pl.col("received") < 0.85 * pl.col("packets"))
    assert lossy.height > 0
    assert set(lossy.drop_nulls("rate_bps").get_column("fleet_name")) <= {"above", "none"}


def test_a_receiver_that_gathers_packets_widens_the_range_but_does_not_hide_the_path() -> None:
    records = run(
        traffic__probe__adapter={"coalescing": "100 us"}, traffic__cross__source=crossed("constant", 50)
    )
    low, high = ranges(records)
    assert low <= 500e6 * 1.1
    assert high >= 500e6 * 0.9
    assert high - low < 250e6


def test_late_timers_split_streams_and_leave_the_estimate_near_the_truth() -> None:
    late = {"late": "0.5 %", "by": "4 ms"}
    low, high = ranges(run(traffic__probe__timing=late, traffic__cross__source=crossed("poisson", 50)))
    assert low - 50e6 <= 500e6 <= high + 50e6


def test_probing_takes_the_share_of_the_time_that_it_may() -> None:
    records = run(traffic__cross__source=crossed("constant", 50))
    sent = records["flows"].filter(pl.col("flow") == 0).item(0, "sent_bytes")
    seconds = records["runs"].item(0, "end_ps") / 1e12
    # A tenth of the time at the rates tried, half of the link and near it for most of them.
    assert sent * 8 / seconds < 0.1 * LINK_BPS


def test_the_same_seed_gives_the_same_estimates() -> None:
    one, other = (run(traffic__cross__source=crossed("poisson", 50)) for _ in range(2))
    assert one["bandwidth_estimates"].equals(other["bandwidth_estimates"])
    assert one["probe_trains"].equals(other["probe_trains"])


def test_measures_of_estimates_are_those_of_the_table() -> None:
    scenario = load("estimators", {"traffic.cross.source": crossed("poisson", 50)})
    records = simulate(scenario, [1], threads=1)
    found = records["bandwidth_estimates"]
    middles = (found.get_column("low_bps") + found.get_column("high_bps")) / 2
    values = dict(measured(records, scenario).select("measure", "value").iter_rows())
    assert values["bias"] == pytest.approx(middles.mean() / 500e6 - 1)
    assert values["spread"] == pytest.approx(middles.std() / 500e6)
    assert values["low"] == pytest.approx(found.get_column("low_bps").quantile(0.1, "linear") / 500e6 - 1)


@pytest.mark.parametrize(
    ("assign", "message"),
    [
        ({"traffic.probe.transport.kind": "raw"}, r"sends datagrams: \{kind: udp\}"),
        ({"traffic.probe.source.packets": "20"}, r"36 to 10000 packets \(got 20\)"),
        ({"traffic.probe.source.share": "0.0"}, r"share"),
        ({"measure.bias.of": "cross"}, r"'cross' estimates nothing"),
        ({"traffic.probe.source.measurements": "0"}, r"measurements"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(assign: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load("estimators", assign).resolve()
