"""What the report of the MDR reproduction shows besides verdicts: the tables as they were printed, the
experiment with phases, and the search-time graphs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from weirlab.plots.phases import phase_plot
from weirlab.plots.search import progress_plot
from weirlab.plots.style import Plot
from weirlab.report.page import Column, Details, Section, Table, Text, figure, heads, percent
from weirlab.reproductions import Findings
from weirlab.reproductions.mdr import phases
from weirlab.reproductions.mdr.graphs import Graph, read_graph
from weirlab.reproductions.mdr.searches import DURATIONS_S, PUBLISHED, SUITES
from weirlab.reproductions.mdr.tables import published_time

WINDOW_FPS = (3.25e6, 4.10e6)
"""Loads of all graphs: the published ones are drawn over the same range, too."""
_TITLES = {
    "mdr_10_1": "MDR, 10 s trials (1)",
    "mdr_10_2": "MDR, 10 s trials (2)",
    "mdr_10_3": "MDR, 10 s trials (3)",
    "mdr_60": "MDR, 60 s trials",
    "ndr_60": "NDR binary search, 60 s trials",
    "pdr_60": "PDR binary search, 60 s trials",
}
_REPLAYS = Text(
    "Given the outcomes that the published graphs show, our algorithms request these trials. A loss ratio "
    "here only represents its outcome. The trials of the published PDR binary search are not known."
)
_NAMES = {"mdr": "MDR", "ndr-binary": "NDR binary", "pdr-binary": "PDR binary"}


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What comes before the verdicts, what comes after the claims, and all plots."""
    cells = findings.tables["cells"]
    compared = findings.tables["phases"]
    phase = phase_plot(compared, phases.WELL_BEHAVED)
    trials = findings.tables["graph_trials"]
    our_plots, published_plots = _graphs(trials, "ours"), _graphs(trials, "published")
    before = [Section("Search times", [_times(cells), _details(cells)])]
    after = [
        Section(
            "Intermediate phases",
            [
                Text(
                    "The text chose two intermediate phases by limited experimentation and asks for more. "
                    "Each search here has no timeout; a phase has its share of the way from trials of 1 s to "
                    "those of the final duration."
                ),
                Text(phases.says(compared)),
                figure(phase),
                _phase_table(compared),
            ],
        ),
        Section(
            "Search-time graphs",
            [
                Text(
                    "The searches of the six published graphs, made here on the simulated vhost device: the "
                    "first of their cells. All graphs have the same vertical axis, the first three the same "
                    "horizontal one. Solid lines: lower bounds; dashed: upper bounds, as far as they are "
                    "valid. A bar is as long as its trial."
                ),
                *(figure(plot) for plot in our_plots),
                Details("The published searches, replayed", [_REPLAYS, *map(figure, published_plots)]),
            ],
        ),
    ]
    return before, after, [phase, *our_plots, *published_plots]


def _times(cells: pl.DataFrame) -> Table:
    """Both published tables in their layout, ours below each row, and the controllers that have no row
    there."""
    ours = {
        (row["device"], int(row["duration_s"]), row["algorithm"]): (row["mean_s"], row["avgdev_s"])
        for row in cells.iter_rows(named=True)
    }
    columns = [(suite, duration_s) for suite in SUITES for duration_s in DURATIONS_S]
    rows: list[list[str]] = []
    for algorithm, name in _NAMES.items():
        rows.append([name, "published", *(_pm(*published_time(*cell, algorithm)) for cell in columns)])
        rows.append(["", "ours", *(_pm(*ours[*cell, algorithm]) for cell in columns)])
    rows.append(["NDR + PDR binary", "published", *(_pm(*published_time(*c, "binary-sum")) for c in columns)])
    sums = (
        _pm(*(a + b for a, b in zip(ours[*c, "ndr-binary"], ours[*c, "pdr-binary"], strict=True)))
        for c in columns
    )
    rows.append(["", "ours", *sums])
    shares = (_pm(*PUBLISHED["suites"][suite]["mdr_percent_of_ndr_binary"][str(d)]) for suite, d in columns)
    rows.append(["MDR as % of NDR binary", "published", *shares])
    rows.append(["", "ours", *(_percent_of_binary(ours, cell, "mdr") for cell in columns)])
    for algorithm in ("mlr", "weir"):
        rows.append([algorithm, "ours", *(_pm(*ours[*cell, algorithm]) for cell in columns)])
        shares = (_percent_of_binary(ours, cell, algorithm) for cell in columns)
        rows.append([f"{algorithm} as % of NDR binary", "ours", *shares])
    many = int(cells.item(0, "searches"))
    return Table(
        "Mean time of a search ± avgdev [s]",
        [
            *heads("search: | whose:"),
            *(Column(f"{suite}, {duration_s} s") for suite, duration_s in columns),
        ],
        rows,
        note=f"avgdev: standard deviation of the mean of six searches, as published; ours is that of {many} "
        "searches over the square root of 6. Columns: suite and final trial duration. mlr and weir are "
        "controllers of our own, on the same devices; nothing was published for them.",
    )


def _percent_of_binary(
    ours: Mapping[tuple[str, int, str], tuple[float, float]], cell: tuple[str, int], algorithm: str
) -> str:
    binary_s = ours[*cell, "ndr-binary"][0]
    return _pm(*(100.0 * time_s / binary_s for time_s in ours[*cell, algorithm]))


def _pm(mean: float, avgdev: float) -> str:
    return f"{mean:.1f} ± {avgdev:.1f}"


def _details(cells: pl.DataFrame) -> Details:
    tenths = "{:.1f}".format
    table = Table.of(
        "Ours: means of many searches",
        cells,
        {
            "device:": "device",
            "trials [s]": ("duration_s", "{:g}".format),
            "search:": ("algorithm", lambda name: str(_NAMES.get(name, name))),
            "time [s]": ("mean_s", tenths),
            "sd [s]": ("sd_s", tenths),
            "longest [s]": ("longest_s", tenths),
            "trials": ("trials", tenths),
            "final": ("final_trials", tenths),
            "their time": ("final_share", percent),
            "NDR [Mframe/s]": ("ndr_lower_fps", _millions),
            "sd [Mframe/s]": ("ndr_lower_sd_fps", _millions),
            "PDR [Mframe/s]": ("pdr_lower_fps", _millions),
            "regular": ("regular", percent),
        },
        note="final: trials of the final duration; their time: its share of the whole. Rates are lower "
        "bounds, sd that between searches. Irregular: MDR that exceeded its timeout of 600 s for a phase; "
        "weir that found the device changed.",
    )
    return Details("Trials, rates and spread of each cell", [table])


def _millions(fps: float | None) -> str:
    return "–" if fps is None else f"{fps / 1e6:.3f}"


def _phase_table(compared: pl.DataFrame) -> Table:
    rows = []
    for (device, duration_s), group in compared.group_by("device", "duration_s", maintain_order=True):
        cells = [
            f"{row['mean_s']:.1f} ± {row['error_s']:.1f}"
            for row in group.sort("phases").iter_rows(named=True)
        ]
        rows.append([str(device), f"{duration_s:g}", *cells])
    return Table(
        "Mean time of a search ± standard error [s], by number of intermediate phases",
        [
            *heads("device: | trials [s]"),
            *(Column(f"{number} phases" if number != 1 else "1 phase") for number in phases.PHASES),
        ],
        rows,
        note=f"{compared.item(0, 'searches')} searches per cell; the same devices for every number of "
        "phases. Final width 1.09 % on ip4, 0.777 % on vhost, 0.5 % on the others. Counts of trials and the "
        "rates found: tables/phases.parquet.",
    )


def _graphs(trials: pl.DataFrame, whose: str) -> list[Plot]:
    graphs = {
        name: read_graph(trials, name, whose)
        for name in trials.filter(whose=whose)["graph"].unique(maintain_order=True)
    }
    until_s = {name: _end_s(graph) for name, graph in graphs.items()}
    short_s = max(end_s for name, end_s in until_s.items() if name.startswith("mdr_10"))
    return [
        progress_plot(
            graph.trials,
            graph.states,
            graph.result.goals,
            name=f"{whose}-{name.replace('_', '-')}",
            title=f"{_TITLES[name]}, {whose}",
            window_fps=WINDOW_FPS,
            until_s=1.02 * (short_s if name.startswith("mdr_10") else until_s[name]),
        )
        for name, graph in graphs.items()
    ]


def _end_s(graph: Graph) -> float:
    last = graph.trials[-1]
    return last.spec.elapsed_s + last.effective_duration_s
