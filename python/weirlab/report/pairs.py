"""What a study says of the levels that it compares, and of the precision that it was asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from weirlab.comparisons import Paired
from weirlab.plots.study import effect_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.shared import display_unit
from weirlab.scenario.plan.combinations import short_names
from weirlab.studies import Reached, Study


def pair_table(study: Study, found: Sequence[Paired]) -> page.Table:
    """The differences from the baseline by point, each with half of its interval."""
    section = study.section
    assert section.compare is not None
    factors = short_names([column for column in study.points.columns if column != "point"])
    shown = _units(found)
    cells: dict[int, dict[str, str]] = {}
    for each in found:
        factor = shown[each.measure][0]
        mean, half = each.found.change * factor, (each.found.high - each.found.low) / 2 * factor
        sign = "+" if mean > 0 else ""
        text = f"{sign}{page.mean_text(mean, half)}"
        cells.setdefault(each.point, {})[each.measure] = (
            f"{text} {page.half_width_text(mean, half)}" if math.isfinite(half) else text
        )
    rows = [
        [
            *(str(point[factor]) for factor in factors),
            *(cells[point["point"]].get(name, "–") for name in shown),
        ]
        for point in study.points.iter_rows(named=True)
        if point["point"] in cells
    ]
    return page.Table(
        f"Difference from {section.baseline} ({factors[section.compare.factor]}): mean ± half of the 95 % "
        "interval",
        [
            *(page.Column(name, numeric=False) for name in factors.values()),
            *(page.Column(name, unit) for name, (_, unit) in shown.items()),
        ],
        rows,
        where="tables/differences.parquet",
        note="Of pairs with the same seed; Student's t. Each interval holds alone.",
    )


def pair_sections(study: Study, found: Sequence[Paired]) -> tuple[list[page.Section], list[Plot]]:
    """The section of the page, and its plots."""
    section = study.section
    if not found or section.compare is None:
        return [], []
    factors = [column for column in study.points.columns if column != "point"]
    apart = pl.DataFrame(
        [
            (
                each.point,
                f"{each.measure}: difference from {section.baseline}",
                i,
                value,
                each.found.after.unit,
            )
            for each in found
            for i, value in each.differences.items()
        ],
        schema=study.measures.schema,
        orient="row",
    )
    points = study.points.filter(pl.col("point").is_in([each.point for each in found]))
    drawn = effect_plots(points, apart, factors, zero=True) if section.design is None else []
    plots = [
        replace(
            plot,
            name=re.sub(
                r"[^\w.-]+", "-", plot.name.replace(f": difference from {section.baseline}", "-difference")
            ),
        )
        for plot in drawn
    ]
    blocks: list[page.Block] = [
        pair_table(study, found),
        *(page.figure(plot) for plot in plots),
        _details(study, found),
    ]
    return [page.Section("Comparison", [page.Text(pair_sentence(study, found)), *blocks])], plots


def pair_sentence(study: Study, found: Sequence[Paired]) -> str:
    """How many differences chance does not explain, and the greatest."""
    section = study.section
    clear = [each for each in found if each.found.clear]
    saved = sorted(each.saved for each in found if math.isfinite(each.saved))
    pairing = ""
    if saved:
        middle = saved[len(saved) // 2]
        pairing = f" Seeds of their own would need {page.number(middle, 2)} times the runs (median)."
    if not clear:
        return (
            f"Compared with {section.baseline}, none of {len(found)} differences is clear: no interval "
            f"leaves zero out.{pairing}"
        )
    most = max(
        clear, key=lambda each: abs(each.found.relative) if math.isfinite(each.found.relative) else 0.0
    )
    return (
        f"Compared with {section.baseline}, {len(clear)} of {len(found)} differences are clear; the most: "
        f"{most.measure} is {_by(most)} at {_where(study, most.point)}.{pairing}"
    )


def _by(each: Paired) -> str:
    more = "higher" if each.found.change > 0 else "lower"
    relative = each.found.relative
    return f"{page.number(100 * abs(relative), 3)} % {more}" if math.isfinite(relative) else more


def _where(study: Study, point: int) -> str:
    row = study.points.row(by_predicate=pl.col("point") == point, named=True)
    names = short_names([factor for factor in row if factor != "point"])
    return ", ".join(f"{name} {row[factor]}" for factor, name in names.items())


def _details(study: Study, found: Sequence[Paired]) -> page.Details:
    shown = _units(found)

    def scaled_(each: Paired, value: float, digits: int = 4) -> str:
        return page.number(value * shown[each.measure][0], digits)

    def interval(each: Paired) -> str:
        ends = (scaled_(each, end, 3) for end in (each.found.low, each.found.high))
        return " … ".join(ends) if math.isfinite(each.found.low) else "–"

    table = page.Table.of(
        "Verdicts",
        found,
        {
            "point:": lambda each: _where(study, each.point),
            "measure:": "measure",
            "verdict:": _verdict,
            "baseline": lambda each: scaled_(each, each.found.first),
            "here": lambda each: scaled_(each, each.found.second),
            "unit:": lambda each: shown[each.measure][1],
            "95 % interval of the difference": interval,
            "here over baseline": lambda each: _ratio(*each.ratio),
            "pairs": lambda each: str(len(each.differences)),
            "runs saved [times]": ("saved", partial(page.number, digits=2)),
        },
        where="tables/differences.parquet",
        note="Here over baseline: geometric mean seed by seed, and its 95 % interval. Runs saved: how many "
        "times the runs seeds of their own would take for the same interval.",
    )
    return page.Details(f"Verdicts: {len(found)} differences", [table])


def _ratio(mean: float, low: float, high: float) -> str:
    ends = f" ({page.number(low)} … {page.number(high)})" if math.isfinite(low) else ""
    return f"{page.number(mean)}{ends}" if math.isfinite(mean) else "–"


def _verdict(each: Paired) -> str:
    if math.isnan(each.found.low):
        return "unknown"
    if not each.found.clear:
        return "no clear difference"
    return "higher" if each.found.change > 0 else "lower"


def _units(found: Sequence[Paired]) -> dict[str, tuple[float, str]]:
    """Factor and unit in which the differences of each measure are shown."""
    largest: dict[str, tuple[str, float]] = {}
    for each in found:
        _, before = largest.get(each.measure, ("", 0.0))
        size = abs(each.found.change) or abs(each.found.first)
        largest[each.measure] = each.found.after.unit, max(before, size)
    return {name: display_unit(unit, most) for name, (unit, most) in largest.items()}


# --- precision


def precision_sentence(study: Study) -> str:
    """Whether all points are as precise as asked; nothing where nothing was asked."""
    section = study.section
    if section.until is None or not study.reached:
        return ""
    short_of = [each for each in study.reached if not each.reached]
    counts = study.replicates_of.values()
    least, most = min(counts, default=0), max(counts, default=0)
    runs = (
        f"{sum(counts)} runs, {least} a point"
        if least == most
        else f"{sum(counts)} runs, {least} to {most} a point"
    )
    if not short_of:
        return f"As precise as asked at all points: {runs}."
    worst = max(short_of, key=_part)
    return (
        f"Not as precise as asked at {len(short_of)} of {len(study.reached)} points, which ended at "
        f"{section.until.most} replicates; the widest: {reached_text(worst, study)} at "
        f"{_where(study, worst.point)} (asked: {worst.asked.text}). {runs}."
    )


def reached_text(each: Reached, study: Study) -> str:
    """Half the width of an interval, as it was asked for: `queue ± 7 %`."""
    name = f"{each.measure}{' (difference)' if each.difference else ''}"
    if math.isnan(each.half_width):
        return f"{name} has too few values"
    if each.asked.relative:
        share = each.half_width / abs(each.mean) if each.mean else math.inf
        return (
            f"{name} ± {page.number(100 * share, 2)} %" if math.isfinite(share) else f"{name} has the mean 0"
        )
    unit = study.scenario.measure[each.measure].unit
    factor, text = display_unit(unit, each.half_width)
    return f"{name} ± {page.number(each.half_width * factor, 2)} {text}".rstrip()


def _part(each: Reached) -> float:
    allowed = each.asked.amount * (abs(each.mean) if each.asked.relative else 1.0)
    part = each.half_width / allowed if allowed > 0 else math.inf
    return math.inf if math.isnan(part) else part
