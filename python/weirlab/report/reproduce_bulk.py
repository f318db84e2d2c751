"""What the report of the bulk reproduction shows besides verdicts: the table of the text, and its kinds of
plots."""

from __future__ import annotations

import dataclasses

import polars as pl

from weirlab.campaigns.tables import INTERVALS, MEASUREMENTS
from weirlab.plots.bulk import bulk_plots
from weirlab.plots.style import Plot
from weirlab.report.page import Column, Section, Table, figure, heads
from weirlab.reproductions import Findings
from weirlab.reproductions.published import Bulk, read

_CHAPTERS = {
    "streams": ("Streams to CERN", ("streams-", "goodput-")),
    "shared": (
        "Streams to CERN where others leave little",
        ("streams-mbps", "streams-drtt", "streams-delay"),
    ),
    "in2p3": ("Delay and variability to IN2P3", ("goodput-", "predictability", "distribution-")),
    "daresbury": ("From Daresbury", ("streams-delay", "goodput-")),
    "durations": ("Duration of the measurement", ("durations",)),
    "cpu": ("CPU against goodput", ("cpu-goodput",)),
    "cpu_streams": ("CPU against streams", ("cpu-streams",)),
}
"""Which plots of which table the page has, and under which heading; of tables that there are."""
_STACKED = {0: "2 x 256 KiB to CERN", 1: "8 x 64 KiB to CERN"}
"""Points of `bulk-cern` whose streams are drawn over time."""


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What comes before the verdicts, what comes after the claims, and all plots."""
    stacks = _stacks(findings)
    chapters, plots = [Section("Streams over time", [figure(plot) for plot in stacks])], stacks
    for table, (title, wanted) in _CHAPTERS.items():
        if table not in findings.tables:
            continue
        drawn = [
            dataclasses.replace(plot, name=f"{table}-{plot.name}".replace("_", "-"))
            for plot in bulk_plots(
                _complete(findings.tables[table]), pl.DataFrame(schema=INTERVALS), {}, zeros=True
            )
            if plot.name.startswith(wanted)
        ]
        chapters.append(Section(title, [figure(plot) for plot in drawn]))
        plots += drawn
    return [Section("Windows against streams", [_table(findings.tables["sites"])])], chapters, plots


def _stacks(findings: Findings) -> list[Plot]:
    of_site = [findings.tables[name].filter(site="CERN") for name in ("measurements", "by_second")]
    drawn = bulk_plots(of_site[0], of_site[1], _STACKED)
    return [plot for plot in drawn if plot.name.startswith("streams-over-time")]


def _complete(rows: pl.DataFrame) -> pl.DataFrame:
    """The table with all columns of measurements; null where it has none."""
    absent = [
        pl.lit(None, dtype=kind).alias(name)
        for name, kind in MEASUREMENTS.items()
        if name not in rows.columns
    ]
    return rows.with_columns(absent)


def _table(sites: pl.DataFrame) -> Table:
    """The table of the text, with ours below."""
    rows = [
        [
            "published",
            entry["site"],
            f"{entry['streams']} x {entry['window_kbytes']} KiB",
            f"{entry['median_mbps']:.2f}",
            f"{entry['iqr_mbps']:.2f}",
            *(
                f"{time_ms:.1f}"
                for trip in (entry["loaded_rtt_ms"], entry["unloaded_rtt_ms"])
                for time_ms in (trip["min"], trip["avg"])
            ),
            "",
        ]
        for entry in read("bulk-throughput", Bulk)["windows_streams"]
    ]
    for entry in sites.iter_rows(named=True):
        times = [
            1e3 * entry[f"{when}_{what}_s"] for when in ("loaded", "unloaded") for what in ("min", "mean")
        ]
        rows.append(
            [
                entry["how"],
                entry["site"],
                entry["configuration"],
                f"{entry['goodput_bps'] / 1e6:.2f}",
                f"{entry['goodput_iqr_bps'] / 1e6:.2f}",
                *(f"{time:.1f}" for time in times),
                f"{entry['transfers']}",
            ]
        )
    names = ("", "site", "streams x window")
    return Table(
        "Published and ours",
        [
            *(Column(name, numeric=False) for name in names),
            *heads("median [Mbit/s] | IQR [Mbit/s]"),
            *(Column(name, "ms") for name in ("min loaded", "mean loaded", "min unloaded", "mean unloaded")),
            Column("cycles"),
        ],
        rows,
    )
