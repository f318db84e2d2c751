"""What the report of the BCN reproduction shows besides verdicts: the four tables as they were printed, and
the pictures that the slides name."""

from __future__ import annotations

import polars as pl

from weirlab.plots.bcn import queue_and_rates, range_plot
from weirlab.plots.style import Plot
from weirlab.report.page import Column, Section, Table, Text, figure
from weirlab.reproductions import Findings
from weirlab.reproductions.bcn import tables
from weirlab.reproductions.bcn.cases import CASES, LITERAL_CASES, TABLES, Case
from weirlab.reproductions.bcn.traces import PICTURES, WORST_PICTURE, Picture


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What comes before the verdicts, what comes after the claims, and all plots."""
    ours = tables.our_spreads(findings.tables["configurations"])
    ranges = [_range(table, ours) for table in TABLES]
    before = [
        Section(
            "Published tables",
            [
                Text(
                    "Minimum, mean, maximum and standard deviation over the runs: "
                    f"{tables.PUBLISHED_RUNS} published, {next(iter(ours.values())).runs} of ours."
                ),
                *(_table(findings, ours, table, drift=drift) for table in TABLES for drift in (True, False)),
                *(figure(plot) for plot in ranges),
            ],
        ),
        Section("The restart rule of BCN(0,0) to the letter", [_LETTER, _literal(findings, ours)]),
    ]
    traces = [_trace(findings, picture) for picture in (*PICTURES, WORST_PICTURE)]
    after = [
        Section("Queue and rates over time", [_PICTURES, *(figure(plot) for plot in traces)]),
        Section("A victim of PAUSE", [_VICTIM, _victim_table(findings.tables["victims"])]),
    ]
    return before, after, [*ranges, *traces]


_LETTER = Text(
    "The text: each time the timer expires the rate is set to Rmin, then Tmax is doubled and Rmin halved. "
    "The rows above restart at the lesser of 1 Gbit/s and the rate before the stop, and only double Tmax."
)
_PICTURES = Text(
    "The slides show these pictures; their text has only their titles. One run each, all six schemes with "
    "drift and the same seed, and the least fair of all runs of Pause + BCN(MAX) without drift."
)
_VICTIM = Text(
    "The published network has no flow that PAUSE could hurt without reason. Here one more host shares the "
    "edge switch of ep-0 and offers 3 Gbit/s to a separate receiver behind the core switch."
)


def _table(findings: Findings, ours: dict[tables.Key, tables.Spread], table: str, *, drift: bool) -> Table:
    cases = [case for case in CASES if case.drift is drift]
    return _beside(findings, ours, table, cases, f"{TABLES[table]}, {'with' if drift else 'without'} drift")


def _literal(findings: Findings, ours: dict[tables.Key, tables.Spread]) -> Table:
    rows = [row for table in TABLES for row in _rows(findings, ours, table, LITERAL_CASES, named=True)]
    return Table("Restart at Rmin, then Tmax doubled and Rmin halved", _COLUMNS, rows)


def _beside(
    findings: Findings, ours: dict[tables.Key, tables.Spread], table: str, cases: list[Case], caption: str
) -> Table:
    return Table(caption, _COLUMNS, _rows(findings, ours, table, cases, named=False))


_COLUMNS = [
    Column("configuration", numeric=False),
    *(Column(f"{whose}: min mean max std") for whose in ("published", "ours")),
    *(Column(f"verdict: {statistic}", numeric=False) for statistic in tables.STATISTICS),
]


def _rows(
    findings: Findings,
    ours: dict[tables.Key, tables.Spread],
    table: str,
    cases: list[Case] | tuple[Case, ...],
    *,
    named: bool,
) -> list[list[str]]:
    rows = []
    for case in cases:
        published, here = tables.published_spreads()[table, case], ours[table, case]
        label = f"{table}: {case.title}, {'with' if case.drift else 'without'} drift" if named else case.title
        rows.append(
            [
                label,
                _numbers(published, 2),
                _numbers(here, 3),
                *(
                    tables.verdict_of(findings.rows, table, case, statistic)
                    for statistic in tables.STATISTICS
                ),
            ]
        )
    return rows


def _numbers(spread: tables.Spread, digits: int) -> str:
    figures = (spread.least, spread.mean, spread.greatest)
    return "\u2002".join([*(f"{value:.{digits}f}" for value in figures), f"{spread.sd:.3f}"])


def _range(table: str, ours: dict[tables.Key, tables.Spread]) -> Plot:
    sides = {"published": tables.published_spreads(), "ours": ours}
    rows = [
        {
            "label": case.name,
            "whose": whose,
            "least": spreads[table, case].least,
            "mean": spreads[table, case].mean,
            "greatest": spreads[table, case].greatest,
            "sd": spreads[table, case].sd,
        }
        for case in CASES
        for whose, spreads in sides.items()
    ]
    return range_plot(pl.DataFrame(rows), name=f"{table}-ranges", title=TABLES[table], x_title=TABLES[table])


def _trace(findings: Findings, picture: Picture) -> Plot:
    queue = findings.tables["queues"].filter(pl.col("picture") == picture.name)
    rates = findings.tables["rates"].filter(pl.col("picture") == picture.name)
    return queue_and_rates(
        queue,
        rates,
        name=f"trace-{picture.name}",
        title=f"{picture.title} ({picture.case.name}, seed {queue.item(0, 'seed')})",
        set_point_kb=24.0,
        limit_kb=150.0,
        fair_gbps=2.5,
    )


def _victim_table(victims: pl.DataFrame) -> Table:
    means = victims.group_by("variant", maintain_order=True).agg(
        pl.col("delivered_share", "mean_delay_us", "paused_ms").mean(), pl.col("max_delay_us").max()
    )
    return Table.of(
        "The victim, means of all runs",
        means,
        {
            "configuration:": "variant",
            "delivered of offered, first 5 ms [%]": ("delivered_share", lambda x: f"{100.0 * x:.1f}"),
            "mean delay [µs]": ("mean_delay_us", "{:.1f}".format),
            "longest delay [µs]": ("max_delay_us", "{:.0f}".format),
            "its link paused [ms]": ("paused_ms", "{:.2f}".format),
        },
        note=f"{victims.height // means.height} runs of 20 ms each.",
    )
