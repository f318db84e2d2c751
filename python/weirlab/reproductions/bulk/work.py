"""What is measured: campaigns in simulated time, and where the machine permits it on real stacks."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weirlab.campaigns import Campaign, PointSummary, run_campaign, summaries
from weirlab.campaigns.tables import interval_table, measurement_table
from weirlab.errors import MissingCapability
from weirlab.reproductions.bulk.single import WINDOW_FACTOR, durations, idle, lanes, middlebox, rivals
from weirlab.reproductions.frame import Effort
from weirlab.scenario import Scenario, load
from weirlab.stats import data_rates, rate_variability

RANDOM = "CERN, random losses"
SITES = {"CERN": "bulk-cern", RANDOM: "bulk-cern-random", "Caltech": "bulk-caltech"}
"""The scenario of each path."""
LIVE = (RANDOM, "Caltech")
"""Those measured on real stacks: five cycles of the path where others come and go would say little."""
CONFIGURATIONS = ((2, 256), (8, 64))
"""Streams and windows in KiB, in the order of the scenarios."""
CONTROLS = {"cubic": "CUBIC", "bbr": "BBR"}
"""What came after Reno, by its name in scenarios."""
_CYCLES, _CYCLES_QUICK = 40, 10
_CYCLES_CHANGING = {"bulk-cern": (200, 60)}
"""Where the state of the path changes from cycle to cycle it takes as many as in the text."""
_CYCLES_SINCE = 2
"""Of each congestion control of today, on real stacks."""
_PING_BYTES = 64
"""A ping of 56 B, and its answer, each with the 8 B of its ICMP header."""

Sites = Mapping[str, list[PointSummary]]
"""By site: the configurations in their order."""


@dataclass(frozen=True)
class Data:
    """What was measured."""

    simulated: Sites
    live: Sites
    """The same on real stacks; empty where that was not possible."""
    why_not_live: str
    since: Mapping[tuple[str, str], Sites]
    """With other congestion control, by `simulated` or `Linux` and the name of that."""
    tables: Mapping[str, pl.DataFrame]
    """Simulated: `measurements` and `by_second` of the sites, `streams`, `shared`, `in2p3`, `windows`,
    `daresbury`, `durations`, `lanes`, `middlebox`, `idle`, `rivals`. On real stacks: `live` (the sites),
    `cpu`, `cpu_streams`."""


_TABLES = {
    "streams": ("bulk-streams", (7, 7)),  # the spread of three is chance
    "shared": ("bulk-streams-shared", (7, 3)),
    "in2p3": ("bulk-in2p3", (60, 12)),
    "windows": ("bulk-in2p3-windows", (10, 4)),
    "daresbury": ("bulk-daresbury", (20, 4)),
}
"""Campaigns that are a table each: their scenarios and cycles, in full and quick."""
_SINGLE = {
    "durations": durations,
    "lanes": lanes,
    "middlebox": middlebox,
    "idle": idle,
    "rivals": rivals,
}


def measure_all(effort: Effort) -> Data:
    """Make all measurements; live campaigns go on where an earlier sitting ended."""
    many = len(_TABLES) + len(_SINGLE) + 3
    numbers = itertools.count(1)

    def ended() -> None:
        if effort.progress is not None:
            effort.progress(next(numbers), many)

    simulated, tables = _sites(effort)
    ended()
    since = _since(effort)
    ended()
    for key, (name, cycles) in _TABLES.items():
        tables[key] = _with_exact(_campaign(name, effort, {}, cycles=cycles))
        ended()
    for key, measure in _SINGLE.items():
        tables[key] = measure(effort)
        ended()
    live, why_not = _Live(effort), ""
    found: Sites = {}
    try:
        found, tables["live"] = live.sites()
        since |= live.since()
        tables |= live.cpu()
    except MissingCapability as lack:
        found, why_not = {}, str(lack)
        tables.pop("live", None)
    ended()
    return Data(simulated, found, why_not, since, tables)


def _sites(effort: Effort) -> tuple[Sites, dict[str, pl.DataFrame]]:
    """The paths of `SITES`: each point, and the tables `measurements` and `by_second`."""
    changes = {"testbed.window_factor": WINDOW_FACTOR}
    made = {site: _campaign(name, effort, changes, cycles=_cycles(name)) for site, name in SITES.items()}
    kinds = {"measurements": measurement_table, "by_second": interval_table}
    return {site: summaries(campaign) for site, campaign in made.items()}, {
        key: pl.concat(table(campaign).with_columns(site=pl.lit(site)) for site, campaign in made.items())
        for key, table in kinds.items()
    }


def _since(effort: Effort) -> dict[tuple[str, str], Sites]:
    """The same paths with what came after Reno."""
    kind_of = "traffic.bulk.transport.congestion_control.kind"
    changes = {"testbed.window_factor": WINDOW_FACTOR}
    return {
        ("simulated", called): {
            site: summaries(_campaign(name, effort, {**changes, kind_of: kind}, cycles=_cycles(name)))
            for site, name in SITES.items()
        }
        for kind, called in CONTROLS.items()
    }


def _campaign(
    name: str,
    effort: Effort,
    changes: Mapping[str, object],
    *,
    cycles: tuple[int, int] = (_CYCLES, _CYCLES_QUICK),
) -> Campaign:
    """A ready-made campaign in simulated time."""
    many, few = cycles
    given = {
        "testbed.kind": "sim",
        "campaign.cycles": few if effort.quick else many,
        "run.seed": effort.seed,
        **changes,
    }
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / name
        return run_campaign(load(name).assign(given), place, on=effort.on, store=effort.store)


def _cycles(name: str) -> tuple[int, int]:
    """How often a site is measured: more often where others come and go for minutes."""
    return _CYCLES_CHANGING.get(name, (_CYCLES, _CYCLES_QUICK))


def _with_exact(campaign: Campaign) -> pl.DataFrame:
    """Its measurements, and `exact_variability`: 1 - mean / greatest data rate of the pings."""
    exact = [
        (
            kept.place.cycle,
            kept.place.point,
            rate_variability(data_rates(kept.measurement.pings.rtts_s, _PING_BYTES, _PING_BYTES)),
        )
        for kept in campaign.kept
        if kept.measurement is not None and kept.measurement.transfer is not None
        if kept.measurement.pings is not None and kept.measurement.pings.rtts_s
    ]
    schema = {"cycle": pl.Int64, "point": pl.Int64, "exact_variability": pl.Float64}
    rows = pl.DataFrame(exact, schema=schema, orient="row")
    return measurement_table(campaign).join(rows, on=["cycle", "point"], how="left", maintain_order="left")


class _Live:
    """The campaigns on real stacks; each method raises MissingCapability where there can be none."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort

    def sites(self) -> tuple[Sites, pl.DataFrame]:
        """Windows against streams, with Reno: each point, and each measurement with its `site`."""
        made = {site: self._run(SITES[site], load(SITES[site])) for site in LIVE}
        tables = [
            measurement_table(campaign).with_columns(site=pl.lit(site)) for site, campaign in made.items()
        ]
        return {site: summaries(campaign) for site, campaign in made.items()}, pl.concat(tables)

    def since(self) -> dict[tuple[str, str], Sites]:
        """The same with what came later, in fewer cycles."""
        found: dict[tuple[str, str], Sites] = {}
        for kind, called in CONTROLS.items():
            made = {}
            for site in LIVE:
                scenario = load(SITES[site]).assign(
                    {
                        "traffic.bulk.transport.congestion_control.kind": kind,
                        "campaign.cycles": _CYCLES_SINCE,
                        "campaign.cycle": [
                            {"name": "loaded", "run": ["bulk", "ping"], "for": "40 s"},
                            {"name": "unloaded", "run": "ping", "for": "10 s"},
                        ],
                    }
                )
                campaign = self._run(f"{SITES[site]}-{kind}", scenario)
                made[site] = summaries(campaign)
            found["Linux", called] = made
        return found

    def cpu(self) -> dict[str, pl.DataFrame]:
        """CPU against goodput, for 10 and for 60 s, and against streams."""
        short = load("bulk-cpu")
        long = short.assign(
            {
                "campaign.cycles": 1,
                "campaign.cycle": [{"name": "loaded", "run": "bulk", "for": "60 s"}],
                "study.factors": {
                    "traffic.bulk.streams": [1, 4],
                    "traffic.bulk.transport.window": ["16 KiB", "64 KiB", "256 KiB"],
                },
            }
        )
        both = [
            measurement_table(self._run(name, scenario))
            for name, scenario in (("bulk-cpu", short), ("bulk-cpu-60", long))
        ]
        name = "bulk-cpu-streams"
        return {"cpu": pl.concat(both), "cpu_streams": measurement_table(self._run(name, load(name)))}

    def _run(self, name: str, scenario: Scenario) -> Campaign:
        """A campaign, or what is missing of it."""
        if self._effort.quick:
            raise MissingCapability("a quick run measures in simulated time alone")
        if self._effort.directory is None:
            raise MissingCapability("no directory to keep measurements in")
        seeded = scenario.assign({"run.seed": self._effort.seed})
        return run_campaign(seeded, self._effort.directory / "campaigns" / name)
