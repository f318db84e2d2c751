"""What is measured: campaigns in simulated time, and where the machine permits it on real stacks."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from weirlab.bulk import PointSummary, plan_of, run_campaign, summaries
from weirlab.bulk.simulated import measure_simulated
from weirlab.bulk.summary import goodput_bps
from weirlab.bulk.tables import measurement_table
from weirlab.errors import MissingCapability
from weirlab.reproduce.frame import Effort
from weirlab.scenario import load

__all__ = ["DURATIONS_S", "LIVE", "RANDOM", "SITES", "Data", "measure_all"]

RANDOM = "CERN, random losses"
SITES = {"CERN": "bulk-cern", RANDOM: "bulk-cern-random", "Caltech": "bulk-caltech"}
"""The scenario of each path."""
LIVE = (RANDOM, "Caltech")
"""Those measured on real stacks: five cycles of the path where others come and go would say little."""
CONFIGURATIONS = ((2, 256), (8, 64))
"""Streams and windows in KiB, in the order of the scenarios."""
DURATIONS_S = (10, 320, 40, 80, 160, 20)
"""In the published order. Source: SLAC 2000, 'Effect of duration of measurement'."""
_FACTOR_OF_LARGE = 1.2
"""What Linux grants of windows of 64 KiB and above; see the page on bulk transfers."""
_CYCLES, _CYCLES_QUICK = 40, 10


@dataclass(frozen=True)
class Data:
    """What was measured."""

    simulated: Mapping[str, list[PointSummary]]
    """By site: the configurations in their order."""
    live: Mapping[str, list[PointSummary]]
    """The same on real stacks; empty where that was not possible."""
    why_not_live: str
    cubic: Mapping[str, list[PointSummary]]
    """Simulated, with CUBIC."""
    tables: Mapping[str, pl.DataFrame]
    """`measurements` of the sites, `streams`, `in2p3`, `durations`, `lanes`, `middlebox`."""


def measure_all(effort: Effort) -> Data:
    """Make all measurements; live campaigns go on where an earlier sitting ended."""
    steps = [*SITES, "streams", "in2p3", "durations", "lanes", "middlebox", "live"]

    def done(step: str) -> None:
        if effort.progress is not None:
            effort.progress(steps.index(step) + 1, len(steps))

    simulated, cubic, sites = {}, {}, []
    for site, name in SITES.items():
        simulated[site], rows = _campaign(name, effort, {"testbed.window_factor": _FACTOR_OF_LARGE})
        sites.append(rows.with_columns(site=pl.lit(site)))
        cubic[site], _ = _campaign(
            name,
            effort,
            {
                "testbed.window_factor": _FACTOR_OF_LARGE,
                "traffic.bulk.transport.congestion_control.kind": "cubic",
            },
        )
        done(site)
    tables = {"measurements": pl.concat(sites)}
    _, tables["streams"] = _campaign("bulk-streams", effort, {}, cycles=(7, 3))
    done("streams")
    _, tables["in2p3"] = _campaign("bulk-in2p3", effort, {}, cycles=(30, 6))
    done("in2p3")
    tables["durations"] = _durations(effort)
    done("durations")
    tables["lanes"] = _lanes(effort)
    done("lanes")
    tables["middlebox"] = _middlebox(effort)
    done("middlebox")
    live, why_not = _live(effort)
    done("live")
    return Data(simulated, live, why_not, cubic, tables)


def _campaign(
    name: str,
    effort: Effort,
    changes: Mapping[str, Any],
    *,
    cycles: tuple[int, int] = (_CYCLES, _CYCLES_QUICK),
) -> tuple[list[PointSummary], pl.DataFrame]:
    """A ready-made campaign in simulated time: its points, and its measurements."""
    many, few = cycles
    given = {
        "testbed.kind": "sim",
        "campaign.cycles": few if effort.quick else many,
        "run.seed": effort.seed,
        **changes,
    }
    with tempfile.TemporaryDirectory() as directory:
        campaign = run_campaign(load(name).assign(given), Path(directory) / name)
    return summaries(campaign), measurement_table(campaign)


def _durations(effort: Effort) -> pl.DataFrame:
    """Both configurations, in turn for each duration: `streams duration_s goodput_bps`.

    Over a path whose state does not depend on the time: one where others come and go, or losses do, begins
    each measurement in the same state, which is more of a short one than of a long one.
    """
    scenario = load("windows-against-streams")
    plan = plan_of(scenario.assign({"testbed.kind": "sim", "run.seed": effort.seed}))
    rows = []
    for number in range(2 if effort.quick else 8):
        for duration_s in DURATIONS_S:
            for point, steps in enumerate(plan.steps):
                what = dataclasses.replace(steps[0], duration_s=float(duration_s), probe=None)
                seed = _seed(effort.seed, number, duration_s, point)
                told = measure_simulated(what, plan.paths[point], seed, window_factor=_FACTOR_OF_LARGE)
                assert told.transfer is not None
                assert what.load is not None
                rows.append((what.load.streams, float(duration_s), goodput_bps(told.transfer)))
    return pl.DataFrame(rows, schema=["streams", "duration_s", "goodput_bps"], orient="row")


def _lanes(effort: Effort) -> pl.DataFrame:
    """One stream and eight through one small router, and through four side by side, without other losses:
    `lanes streams goodput_bps synchrony`.

    `synchrony`: of the seconds in which any stream sent again, the mean share of the streams that did.
    """
    rows = []
    for lanes, streams in ((1, 1), (1, 8), (4, 1), (4, 8)):
        forward = {"rate": "10 Mbit/s", "delay": "40 ms", "buffer": "20 kB", "lanes": lanes}
        backward = {"rate": "100 Mbit/s", "delay": "40 ms"}
        scenario = load(SITES["CERN"]).assign(
            {
                "testbed": {"kind": "sim", "hops": {"wan": {"forward": forward, "backward": backward}}},
                "traffic.bulk.streams": streams,
                "traffic.bulk.transport.window": "1 MiB",
                "study": None,
            }
        )
        plan = plan_of(scenario)
        what = dataclasses.replace(plan.steps[0][0], probe=None)
        for number in range(3 if effort.quick else 12):
            told = measure_simulated(what, plan.paths[0], _seed(effort.seed, lanes, streams, number))
            assert told.transfer is not None
            resent = np.array([stream.interval_retransmits for stream in told.transfer.streams]) > 0
            shares = resent.mean(axis=0)[resent.any(axis=0)]
            rows.append(
                (lanes, streams, goodput_bps(told.transfer), float(shares.mean()) if shares.size else 0.0)
            )
    return pl.DataFrame(rows, schema=["lanes", "streams", "goodput_bps", "synchrony"], orient="row")


def _middlebox(effort: Effort) -> pl.DataFrame:
    """A stream of 256 KiB over a clean path, with and without a firewall that takes the window scale away:
    `strips goodput_bps`."""
    rows = []
    for strips in (False, True):
        line = {"rate": "100 Mbit/s", "delay": "40 ms"}
        hop = {"forward": line, "strips_window_scale": strips}
        scenario = load(SITES["CERN"]).assign(
            {
                "testbed": {"kind": "sim", "hops": {"wan": hop}},
                "traffic.bulk.streams": 1,
                "traffic.bulk.transport.window": "256 KiB",
                "study": None,
            }
        )
        plan = plan_of(scenario)
        what = dataclasses.replace(plan.steps[0][0], probe=None)
        told = measure_simulated(what, plan.paths[0], effort.seed)
        assert told.transfer is not None
        rows.append((strips, goodput_bps(told.transfer)))
    return pl.DataFrame(rows, schema=["strips", "goodput_bps"], orient="row")


def _live(effort: Effort) -> tuple[dict[str, list[PointSummary]], str]:
    """The campaigns of the sites on real stacks, or why there are none."""
    if effort.quick:
        return {}, "a quick run measures in simulated time alone"
    if effort.directory is None:
        return {}, "no directory to keep measurements in"
    found = {}
    for site in LIVE:
        name = SITES[site]
        scenario = load(name).assign({"run.seed": effort.seed})
        try:
            campaign = run_campaign(scenario, effort.directory / "campaigns" / name)
        except MissingCapability as lack:
            return {}, str(lack)
        found[site] = summaries(campaign)
    return found, ""


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])
