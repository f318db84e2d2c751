"""What the report of the ZRL reproduction shows besides verdicts: planes with theory over them, and the
response to a hotspot."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import polars as pl

from weirlab.analysis.boundaries import ESCAPE, LASTS, STARVES
from weirlab.plots.plane import AxisOf, Line, heat_map
from weirlab.plots.style import LIGHT, Plot, alt, finished
from weirlab.report.page import Details, Section, Table, Text, figure, number
from weirlab.reproductions import Findings
from weirlab.reproductions.published import Zrl, read
from weirlab.reproductions.zrl.planes import GAINS, PLANES, SAMPLINGS, Plane
from weirlab.reproductions.zrl.rows import TOLERANCE
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.large import (
    SharedMemory,
    escape_time,
    high_watermark,
    starvation_gain,
    starvation_sampling,
)

WINDOW_SLOTS = 30_000
"""From the start of the hotspot to the window in which throughput is taken."""
_EXPLAINED = Text(
    "Cells: mean over seeds; above the maximum where the second half of the hotspot also carries what PAUSE "
    "held back in the first. Frame: the cells of the range that the text calls optimal. Lines: theory. Above "
    f"'{ESCAPE}' PAUSE has ended when the throughput is taken; above '{STARVES}' a "
    f"single message takes a flow to the floor, which starves the hot port left of '{LASTS}'."
)


_SIDES = (
    AxisOf("sampling probability Ps", SAMPLINGS, logarithmic=True),
    AxisOf("decrease gain Gd [1/frame]", GAINS, logarithmic=True),
)


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What comes before the verdicts, what comes after the claims, and all plots."""
    cells, series = findings.tables["cells"], findings.tables["series"]
    plots = [
        _plane_plot(plane, cells, measure, title)
        for plane in PLANES
        if plane.name in set(cells.get_column("plane"))
        for measure, title in (
            ("throughput", "aggregate throughput"),
            ("hot-port", "utilisation of the hot port"),
        )
    ]
    responses = [_throughput_plot(series), _queue_plot(series)]
    return (
        [Section("Response to a hotspot", [figure(plot) for plot in responses])],
        [Section("Planes", [_EXPLAINED, *(figure(plot) for plot in plots), *_folded(spread_table(cells))])],
        [*responses, *plots],
    )


def _folded(table: Table | None) -> list[Details]:
    return [] if table is None else [Details(f"{table.caption}: {len(table.rows)}", [table])]


def spread_table(cells: pl.DataFrame) -> Table | None:
    """The cells whose throughput is not the same for all seeds: those on their way out of PAUSE, and those
    where bursts make a difference; None where there are none.

    `cells`: columns `plane gd ps throughput`, a row for each seed.
    """
    titles = {plane.name: plane.title for plane in PLANES}
    value = pl.col("throughput")
    rows = (
        cells.group_by("plane", "gd", "ps", maintain_order=True)
        .agg(
            value.mean().alias("mean"), value.min().alias("least"), value.max().alias("most"), seeds=pl.len()
        )
        .filter(pl.col("seeds") > 1, pl.col("most") - pl.col("least") > TOLERANCE)
    )
    if rows.is_empty():
        return None
    short = partial(number, digits=3)
    return Table.of(
        f"Cells whose throughput varies by more than {TOLERANCE:g} between seeds",
        rows,
        {"plane:": ("plane", titles.__getitem__), "Gd": ("gd", "{:g}".format), "Ps": ("ps", "{:g}".format)},
        {name: (name, short) for name in ("mean", "least", "most")},
        {"seeds": ("seeds", str)},
        note="All others are the same for all seeds within that: the plateau, and what never escapes.",
    )


def _plane_plot(plane: Plane, cells: pl.DataFrame, measure: str, title: str) -> Plot:
    rows = cells.filter(pl.col("plane") == plane.name).group_by("gd", "ps").agg(pl.col(measure).mean())
    found = {(gd, ps): value for gd, ps, value in rows.iter_rows()}
    values = [[found.get((gd, ps), math.nan) for ps in SAMPLINGS] for gd in GAINS]
    box = read("zrl-congestion-benchmark", Zrl)["optimal_range"]
    input_generated = plane.name.startswith("ig")
    top = 1.0 if input_generated or measure == "throughput" else 0.2
    return heat_map(
        f"{plane.name}-{measure}",
        f"{plane.title}: {title}",
        x=_SIDES[0],
        y=_SIDES[1],
        values=values,
        value_title="share of capacity" if measure == "throughput" else "share of the line rate",
        domain=(0.0, top if measure == "hot-port" else 0.9),
        lines=[] if input_generated else theory_lines(plane),
        labels=True,
        box=(*box["sampling_probability"], *box["decrease_gain"]),
    )


def theory_lines(plane: Plane) -> list[Line]:
    """Boundaries of the plane of an output-generated hotspot, from `weirlab.theory.large`; slots for
    seconds."""
    part = 2 if plane.name.endswith("half") else 1
    memory = SharedMemory(high_watermark(256 * plane.ports, plane.ports, 0), 0.85)

    def point(gd: float, ps: float) -> BcnPoint:
        return BcnPoint(0.2, 1.0, plane.ports - 1, ps, 1.0, 1.0, gd, 1e-3, 256 / part)

    (least, *_, most), (low, *_, high) = (side.edges() for side in _SIDES)
    steps = [least * (most / least) ** (i / 60) for i in range(61)]
    escape = [(ps, _least_gain(partial(_escape, ps, point, memory))) for ps in steps]
    starving = [(ps, starvation_gain(point(0.0, ps), memory)) for ps in steps]
    limit = starvation_sampling(point(0.01, 0.01))
    return [
        Line(ESCAPE, [escape]),
        Line(STARVES, [starving]),
        Line(LASTS, [[(limit, low), (limit, high)]]),
    ]


def _escape(ps: float, point: Callable[[float, float], BcnPoint], memory: SharedMemory, gd: float) -> float:
    return escape_time(point(gd, ps), memory)


def _least_gain(time: Callable[[float], float]) -> float:
    """The gain at which the escape takes as long as the window is away, by bisection."""
    low, high = math.log(1e-5), math.log(1.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if time(math.exp(middle)) <= WINDOW_SLOTS else (middle, high)
    return math.exp(high)


def _throughput_plot(series: pl.DataFrame) -> Plot:
    return _series_plot(
        series.with_columns(value=pl.col("throughput")),
        "response-throughput",
        "Aggregate throughput",
        "share of capacity",
    )


def _queue_plot(series: pl.DataFrame) -> Plot:
    return _series_plot(
        series.with_columns(value=pl.col("hot_queue_bytes") / 64),
        "response-queue",
        "Queue of the hot output",
        "frames",
    )


def _series_plot(rows: pl.DataFrame, name: str, title: str, unit: str) -> Plot:
    shown = rows.select(ms=pl.col("t_ps") / 1e9, value="value", type="type")
    colors = alt.Scale(domain=["OG", "IG"], range=[LIGHT["blue"], LIGHT["orange"]])
    chart = (
        alt.Chart(shown)
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("ms:Q", title="time [ms]"),
            y=alt.Y("value:Q", title=f"{title.lower()} [{unit}]"),
            color=alt.Color("type:N", scale=colors, sort=["OG", "IG"]),
        )
    )
    return finished(
        [chart],
        name=name,
        title=f"{title}: hotspot from 0.2 ms on, Ps = 0.03, Gd = 0.002",
        description=f"{title} of the output-generated and the input-generated hotspot over time.",
        note="OG: output-generated; IG: input-generated.",
    )
