"""The report of a study: measures by factor, with intervals over replicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import polars as pl

from weirlab.analysis.boundaries import boundaries
from weirlab.comparisons import pairs
from weirlab.measures.rows import FRAMES
from weirlab.plots.study import effect_plots, plane_plots
from weirlab.plots.style import Plot
from weirlab.report import page, shared
from weirlab.report.contest import contest_sections, contest_sentences
from weirlab.report.network import still_sections
from weirlab.report.pairs import pair_sections, pair_sentence, precision_sentence
from weirlab.report.sensitivity import sensitivity_sections
from weirlab.results import Manifest
from weirlab.scenario.plan.combinations import short_names
from weirlab.stats import mean_interval
from weirlab.studies import Study

_CARDS = 3
"""Measures shown at the head of the page."""


def study_page(
    study: Study, manifest: Manifest, sensitivity: pl.DataFrame | None = None
) -> tuple[page.Page, list[Plot]]:
    """The page, and its plots; `sensitivity` is what `sensitivity_of` found, where that is known."""
    factors = _factors(study)
    levels, names = study.section.factors.values(), short_names([*study.section.factors]).values()
    lead: list[page.Block] = []
    replicates = replicates_text(study)
    if precision := precision_sentence(study):
        lead.append(page.Text(precision))
    lead.append(
        page.Numbers(
            [
                page.Card(
                    "Points",
                    f"{study.points.height}" + ("" if study.complete else f" of {study.planned}"),
                    " × ".join(
                        f"{len(each)} levels of {name}" for each, name in zip(levels, names, strict=True)
                    ),
                    tone="good" if study.complete else "bad",
                ),
                page.Card(
                    "Replicates",
                    replicates,
                    f"seeds {study.seeds[0]} … {_last_seed(study)}, the same for all points"
                    if study.contest is None
                    else "the same seeds for all points of a round, others for the verdict",
                ),
                _losses(study),
                *(each.card() for each in _ranges(study)),
            ]
        )
    )
    found, plots = sensitivity_sections(study, sensitivity)
    compared, compared_plots = pair_sections(study, pairs(study))
    contested, contested_plots = contest_sections(study)
    # The points of a design fill a space: no level of a parameter is met twice. Those of a contest have runs
    # of different stages.
    levels_only = not _has_design(study) and study.contest is None
    effects = effect_plots(study.points, study.measures, factors) if levels_only else []
    maps = (
        []
        if not levels_only
        else plane_plots(study.points, study.measures, factors, partial(boundaries, study.scenario))
    )
    none_yet = "No point has been run yet." if study.points.is_empty() and study.scenario.measure else ""
    made = shared.result_page(
        "Study",
        manifest,
        study.scenario,
        lead=lead,
        sections=[
            *contested,
            *compared,
            *found,
            shared.section("Results", effect_table(study)),
            shared.section("Planes", plots=maps),
            shared.section("Measures by factor", plots=effects, otherwise=none_yet),
            *still_sections(study.scenario),
            shared.section(
                "Combinations that cannot be", _impossible_table(study) if study.impossible else None
            ),
            shared.section("Frames", _frame_table(study)),
        ],
        story=_story(study),
    )
    return made, [*contested_plots, *compared_plots, *plots, *maps, *effects]


def study_sentences(study: Study) -> list[str]:
    """How much was run and lost, and between which values the first measures lie."""
    points = f"{study.points.height}" + ("" if study.complete else f" of {study.planned}")
    losses = _losses(study)
    many = f"{points} points of {replicates_text(study)} replicates"
    sentences = [str(each) for each in _ranges(study)]
    lost = f"{losses.value} dropped frames {losses.detail}" if losses.tone != "good" else losses.detail
    sentences.insert(0, f"{many}: {lost}.")
    if precision := precision_sentence(study):
        sentences.insert(0, precision)
    if compared := pairs(study):
        sentences.insert(0, pair_sentence(study, compared))
    sentences = [*contest_sentences(study), *sentences]
    if text := _same_sentence(study):
        sentences.append(text)
    if many_failed := study.failures.height:
        first = study.failures.row(0, named=True)
        sentences.append(
            f"Runs without a result: {many_failed}; the first: point {first['point']}, replicate "
            f"{first['replicate']}: {first['reason']}. The others did not stop for them."
        )
    sentences += [f"{note[0].upper()}{note[1:]}." for note in study.notes if not note.startswith("failed")]
    if study.impossible:
        sentences.append(
            f"Combinations that cannot be: {len(study.impossible)}; see impossible.json in the directory of "
            "the result."
        )
    return sentences


def replicates_text(study: Study) -> str:
    """How many replicates points have: one number, or the least and the greatest."""
    counts = set(study.replicates_of.values()) if _decides(study) else set()
    if not counts:
        return str(len(study.seeds))
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} … {max(counts)}"


def _last_seed(study: Study) -> int:
    if not _decides(study):
        return study.seeds[-1]
    return study.seeds[max(study.replicates_of.values(), default=1) - 1]


def _decides(study: Study) -> bool:
    """Whether results decide how many replicates points have."""
    return bool(study.reached) or study.contest is not None


def _has_design(study: Study) -> bool:
    return study.section.design is not None


def _losses(study: Study) -> page.Card:
    """Whether operation was lossless."""
    dropped = study.runs.get_column("dropped_frames")
    lossy = int((dropped > 0).sum())
    detail = f"in {lossy:,} of {dropped.len():,} runs" if lossy else f"lossless in all {dropped.len():,} runs"
    back = int(study.runs.get_column("acknowledgement_frames").sum())
    if back:
        lost = int(study.runs.get_column("dropped_acknowledgements").sum())
        detail += f"; also {page.number(lost)} acknowledgements" if lost else ", acknowledgements too"
    return page.Card("Dropped frames", page.number(int(dropped.sum())), detail, tone="" if lossy else "good")


def _story(study: Study) -> list[str]:
    """From where to where the first measures go, then what is said of the study as a whole."""
    ranges = _ranges(study)
    told = [str(each) for each in ranges[:2]]
    others = [each for each in study_sentences(study) if each not in told]
    return [*(each.spelled_out() for each in ranges[:2]), *others[: 3 - len(told)]]


@dataclass(frozen=True)
class _Range:
    """Least and greatest mean of a measure, with the points where they were found."""

    measure: str
    means: tuple[str, str]
    unit: str
    places: tuple[str, str]

    def card(self) -> page.Card:
        means = f"{' … '.join(self.means)} {self.unit}".rstrip()
        return page.Card(self.measure, means, " … ".join(self.places))

    def __str__(self) -> str:
        return f"{self.measure}: {self.card().value}, {self.card().detail}."

    def spelled_out(self) -> str:
        (least, most), (where, there) = self.means, self.places
        most = f"{most} {self.unit}".rstrip()
        return f"The mean of {self.measure} is least {where} ({least}), and greatest {there} ({most})."


def _ranges(study: Study) -> list[_Range]:
    """Of the first measures."""
    factors = _factors(study)
    ranges = []
    for name in list(study.scenario.measure)[:_CARDS] if study.contest is None else ():
        rows = study.measures.filter(pl.col("measure") == name).drop_nulls("value")
        means = rows.group_by("point", "unit", maintain_order=True).agg(pl.col("value").mean()).sort("value")
        if means.height < 2:
            continue
        named = means.join(study.points, on="point", how="left", maintain_order="left")
        least, most = named.row(0, named=True), named.row(-1, named=True)
        factor, unit = shared.display_unit(least["unit"], max(abs(least["value"]), abs(most["value"])))
        low, high = (page.number(row["value"] * factor, 3) for row in (least, most))
        names = short_names(factors).items()
        where, there = (
            "at " + ", ".join(f"{name} {row[path]}" for path, name in names) for row in (least, most)
        )
        ranges.append(_Range(name, (low, high), unit, (where, there)))
    return ranges


def effect_table(study: Study) -> page.Table:
    """Mean of every measure at every point, with the half-width of its 95 % interval."""
    factors = _factors(study)
    units = dict(study.measures.select("measure", "unit").unique().iter_rows())
    names = [name for name in study.scenario.measure if name in units]
    values: dict[tuple[int, str], list[float]] = {}
    known = study.measures.select("point", "measure", "value").drop_nulls("value")
    for point, measure, value in known.iter_rows():
        values.setdefault((point, measure), []).append(value)
    shown = {}
    for name in names:
        reported = [abs(value) for (_, measure), each in values.items() if measure == name for value in each]
        shown[name] = shared.display_unit(units[name], max(reported, default=0.0))
    rows = []
    counts = study.replicates_of
    sequential = _decides(study)
    for point in study.points.iter_rows(named=True):
        cells = [str(point[factor]) for factor in factors] or [str(point["point"])]
        many = counts.get(point["point"], 0) if sequential else len(study.seeds)
        cells += [str(many)] if sequential else []
        for name in names:
            interval = mean_interval(values.get((point["point"], name), []))
            factor = shown[name][0]
            if interval is None:
                cells.append("–")
                continue
            text = page.number(interval.mean * factor)
            if interval.count > 1:
                mean, half = interval.mean * factor, interval.half_width * factor
                text = page.interval_text(mean, half)
            if interval.count < many:
                text += f" ({interval.count} of {many})"
            cells.append(text)
        rows.append(cells)
    several = len(study.seeds) > 1
    return page.Table(
        "Measures by point" + (": mean ± half of the 95 % interval" if several else ""),
        [
            *(page.Column(name, numeric=False) for name in short_names(factors or ["point"]).values()),
            *([page.Column("runs")] if sequential else []),
            *(page.Column(name, shown[name][1]) for name in names),
        ],
        rows,
        where="tables/measures.parquet",
        note=f"{replicates_text(study)} replicates each; Student's t. Behind a mean of fewer: how many."
        + f" {_same_sentence(study)}".rstrip()
        if several
        else "One replicate each.",
    )


def _same_sentence(study: Study) -> str:
    """Which points have replicates that found the same, frame for frame; empty where none has."""
    values = study.measures.select("point", "replicate", "measure", "value").sort("point", "measure")
    tables = [study.runs.sort("point", maintain_order=True), *([values] if study.scenario.measure else [])]
    if shared.are_same(tables):
        return shared.SAME
    points = set(study.runs["point"])
    same = points.intersection(*(_repeated(table) for table in tables))
    if not same:
        return ""
    return f"At {len(same)} of {len(points)} points all replicates are the same: their intervals say nothing."


def _repeated(table: pl.DataFrame) -> set[int]:
    """The points with several replicates, of which each row says the same."""
    keys = [name for name in ("point", "measure") if name in table.columns]
    kept = table.drop("replicate", "seed", strict=False)
    counts = kept.group_by(keys).agg(pl.all().n_unique(), pl.len().alias("rows in all"))
    values = [name for name in kept.columns if name not in keys]
    is_same = (pl.col("rows in all") > 1) & pl.all_horizontal(pl.col(values) == 1)
    return set(counts.group_by("point").agg(is_same.all().alias("same")).filter("same")["point"])


def _impossible_table(study: Study) -> page.Table:
    """What the study left out, and why."""
    factors = list(study.impossible[0].levels)
    return page.Table(
        f"Not run, as they cannot be: {len(study.impossible)}",
        [page.Column(name, numeric=False) for name in (*short_names(factors).values(), "reason")],
        [[*(each.levels[factor] for factor in factors), each.reason] for each in study.impossible],
        where="impossible.json",
    )


def _frame_table(study: Study) -> page.Details:
    factors = _factors(study)
    sums = study.runs.group_by("point").agg(
        pl.col(*FRAMES, "acknowledgement_frames", "dropped_acknowledgements").sum()
    )
    back = bool(sums.get_column("acknowledgement_frames").sum())
    rows = study.points.join(sums, on="point", how="left", maintain_order="left")

    def loss(row: Mapping[str, int]) -> str:
        return page.percent(row["dropped_frames"] / row["sent_frames"] if row["sent_frames"] else None)

    named = short_names(factors or ["point"]).items()
    levels: dict[str, page.Cell] = {f"{name}:": (factor, str) for factor, name in named}
    acknowledgements: dict[str, page.Cell] = {
        "acknowledgements": "acknowledgement_frames",
        "dropped of them": "dropped_acknowledgements",
    }
    table = page.Table.of(
        "Frames by point, sums over replicates",
        rows,
        levels,
        dict(zip(("sent", "delivered", "dropped", "under way"), FRAMES, strict=True)),
        {"loss ratio": loss},
        acknowledgements if back else {},
        where="tables/runs.parquet",
        note="Sent and dropped: data alone." if back else "",
    )
    return page.Details(f"What was sent and what became of it: {len(table.rows)} rows", [table])


def _factors(study: Study) -> list[str]:
    return [column for column in study.points.columns if column != "point"]
