"""Bulk throughput, windows against streams, as SLAC measured it in 2000: from the simulator, and from real
Linux over emulated paths.
"""

from __future__ import annotations

import dataclasses

import polars as pl

from weirlab.campaigns import PointSummary
from weirlab.reproductions.bulk.claims import claims
from weirlab.reproductions.bulk.rows import rows
from weirlab.reproductions.bulk.work import Data, measure_all
from weirlab.reproductions.frame import Effort, Findings


def reproduce(effort: Effort) -> Findings:
    """Make all measurements, and compare."""
    data = measure_all(effort)
    remarks = list(_REMARKS)
    if data.why_not_live:
        remarks.insert(0, f"Nothing was measured on real stacks: {data.why_not_live}.")
    return Findings.of(
        "bulk",
        effort,
        rows=rows(data),
        claims=claims(data),
        remarks=remarks,
        tables={**data.tables, "sites": _sites(data)},
    )


def _sites(data: Data) -> pl.DataFrame:
    """The points of all sites, however measured."""
    made = [
        {"how": how, "site": site, **_numbers(point)}
        for how, sites in (
            ("simulated", data.simulated),
            ("Linux", data.live),
            *((", ".join(which), sites) for which, sites in data.since.items()),
        )
        for site, points in sites.items()
        for point in points
    ]
    return pl.DataFrame(made)


def _numbers(point: PointSummary) -> dict[str, object]:
    fields = dataclasses.asdict(point)
    return {"configuration": ", ".join(fields.pop("levels").values()), **fields}


_REMARKS = (
    "The paths are chosen, not known: rate, buffer, losses and the traffic of others were searched in the "
    "simulator until medians and round-trip times were those printed. That one path gives all of them shows "
    "that they go together, and nothing about the networks of 2000.",
    "Linux grants 1.2 times the window that it is asked for; so do the simulated streams (1.13 for 55 KiB). "
    "The published 26.8 Mbit/s exceed what eight windows of 64 KiB carry at 165 ms, 25.4 Mbit/s: its windows "
    "were larger than their names, too.",
    "Not checked: that losses of several packets of one stream, and slow starts after them, are rarer with "
    "many streams; which is easier to set up, streams or windows; libraries of parallel sockets; what future "
    "versions of TCP may do. The routes and the characteristics of the paths have no number in the text.",
)
