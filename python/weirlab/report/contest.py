"""What a study found to be best, and how far that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from weirlab.plots.contest import round_plot
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.shared import display_unit
from weirlab.scenario.file.problems import listed
from weirlab.scenario.plan.combinations import short_names
from weirlab.scenario.plan.contest import Halving
from weirlab.studies import Finalist, Standing, Study


def contest_sentences(study: Study) -> list[str]:
    """What is best, and whether it can be told from the next; nothing without a contest."""
    contest = study.contest
    if contest is None:
        return []
    found = []
    named = short_names(_names(study))
    for group in _groups(study):
        best, rest = group[0], [each for each in group[1:] if math.isfinite(each.mean)]
        factor, unit = _shown(study)
        mean, half = best.mean * factor, (best.high - best.low) / 2 * factor
        text = f"{page.interval_text(mean, half)} {unit}".rstrip()
        where = ", ".join(f"{named[name]} {level}" for name, level in best.levels.items())
        head = f"Best{' at ' + where if where else ''}: {_named(study, best)}, with {contest.measure} {text}"
        seeds = f"over {contest.verdict} new seeds"
        if not math.isfinite(best.mean):
            head = f"No best at {where}" if where else "No best"
            found.append(f"{head}: every finalist has a run without {contest.measure}.")
            continue
        like = [each for each in rest if not _is_behind(each)]
        if not rest:
            tail = ""
        elif like:
            many = f"{len(like)} of {len(rest)}" if len(like) < len(rest) else "The"
            tail = f" {many} other finalist{'s' if len(rest) > 1 else ''} cannot be distinguished from it."
        elif better := [each for each in rest if contest.sign * each.behind < 0]:
            tail = f" {len(better)} of {len(rest)} other finalists with a better {contest.measure}"
            tail += f" rank{'s' if len(better) == 1 else ''} after it by the limits."
        else:
            away = abs(rest[0].behind) * factor
            tail = f" Each other finalist is worse; the next by {page.number(away, 2)} {unit}".rstrip() + "."
        if lacking := len(group) - 1 - len(rest):
            tail += f" {lacking} of the others had runs without an answer."
        tail += _limit_words(study, best)
        found.append(f"{head} {seeds}.{tail}")
    if not found:
        done = max((each.round for each in study.standings), default=0)
        found.append(f"No verdict yet: {done} rounds have ended.")
    return found


def _limit_words(study: Study, best: Finalist) -> str:
    """Whether the best keeps the limits."""
    by_kept: dict[str, list[str]] = {}
    for each in study.limits:
        if each.point == best.point:
            by_kept.setdefault(each.kept, []).append(each.limit)
    words = {
        "no": "It breaks {}: no finalist keeps all limits.",
        "open": "Whether it keeps {} is open.",
        "yes": "It keeps {}.",
    }
    said = [text.format(listed(by_kept[kept])) for kept, text in words.items() if kept in by_kept]
    return "".join(f" {sentence}" for sentence in said)


def _limit_columns(study: Study) -> list[tuple[page.Column, dict[int, str]]]:
    """A column for each limit, with what each finalist has of it."""
    assert study.contest is not None
    found = []
    for limit in study.contest.limits:
        mine = [each for each in study.limits if each.limit == str(limit)]
        most = max((abs(each.mean) for each in mine if math.isfinite(each.mean)), default=0.0)
        factor, unit = display_unit(study.scenario.measure[limit.measure].unit, most)
        texts = {}
        for each in mine:
            mean, half = each.mean * factor, (each.high - each.low) / 2 * factor
            texts[each.point] = page.interval_text(mean, half) + _KEPT[each.kept]
        found.append((page.Column(str(limit), unit), texts))
    return found


_KEPT = {"yes": "", "no": ", broken", "open": ", open"}


def verdict_table(study: Study) -> page.Table:
    """The finalists, the best first, with intervals that hold together."""
    contest = study.contest
    assert contest is not None
    factor, unit = _shown(study)
    names = _names(study)
    named = short_names(names)
    limits = _limit_columns(study)
    rows: list[dict[page.Head, str]] = []
    for each in study.finalists:
        levels = study.points.row(by_predicate=_is(each.point), named=True)
        mean, half = each.mean * factor, (each.high - each.low) / 2 * factor
        behind, around = each.behind * factor, (each.behind_high - each.behind_low) / 2 * factor
        rows.append(
            {
                "rank": str(each.rank),
                **{page.Column(named[name], numeric=False): str(levels[name]) for name in names},
                page.Column(contest.measure, unit): page.interval_text(mean, half),
                f"from the best [{unit}]": ("–" if each.rank == 1 else page.interval_text(behind, around)),
                f"chosen by [{unit}]": (
                    page.number(each.chosen_by * factor) if math.isfinite(each.chosen_by) else "–"
                ),
                **{column: texts.get(each.point, "–") for column, texts in limits},
            }
        )
    return page.Table.by_head(
        f"Verdict: {contest.measure} over {contest.verdict} new seeds",
        rows,
        where="tables/verdict.parquet",
        note="± half of intervals that hold together with 95 % confidence (Bonferroni), and so for the best "
        "one, too. Chosen by: the mean of the runs that chose it, which is too good on average.",
    )


def contest_sections(study: Study) -> tuple[list[page.Section], list[Plot]]:
    """The sections of the page, and their plots."""
    if study.contest is None:
        return [], []
    text: list[page.Block] = [page.Text(sentence) for sentence in contest_sentences(study)]
    verdict = [verdict_table(study)] if study.finalists else []
    plots = list(_plots(study))
    sections = [page.Section("Verdict", [*text, *verdict])]
    if plots:
        sections.append(page.Section("Rounds", [*(page.figure(plot) for plot in plots), _rounds(study)]))
    return sections, plots


def _plots(study: Study) -> Iterator[Plot]:
    assert study.contest is not None
    factor, unit = _shown(study)
    words = ("goes on", "left out") if isinstance(study.contest, Halving) else ("better half", "other half")
    groups: dict[str, list[Standing]] = {}
    for each in study.standings:
        groups.setdefault(", ".join(each.levels.values()), []).append(each)
    words_of = {row["point"]: _words(study, row) for row in study.points.iter_rows(named=True)}
    for apart, standings in list(groups.items())[:6]:
        rows = [
            (each.round, each.value * factor, each.kept, words_of[each.point])
            for each in standings
            if math.isfinite(each.value)
        ]
        yield round_plot(rows, measure=study.contest.measure, unit=unit, apart=apart, words=words)


def _rounds(study: Study) -> page.Details:
    """How many went on from each round, with how many runs."""
    counts: dict[tuple[str, int], list[Standing]] = {}
    for each in study.standings:
        counts.setdefault((", ".join(each.levels.values()), each.round), []).append(each)
    apart = any(where for where, _ in counts)
    factor, unit = _shown(study)
    assert study.contest is not None
    sign = study.contest.sign
    rows: list[dict[page.Head, str]] = []
    for (where, round_), standings in counts.items():
        ended = [each for each in standings if math.isfinite(each.value) and math.isfinite(each.excess)]
        _, best = min(((each.excess, each.value * sign) for each in ended), default=(0.0, math.nan))
        rows.append(
            {
                **({"at:": where} if apart else {}),
                "round": str(round_),
                "points": str(len(standings)),
                "replicates": str(standings[0].replicates),
                "kept": str(sum(each.kept for each in standings)),
                page.Column(f"best {study.contest.measure}", unit): page.number(best * sign * factor),
            }
        )
    table = page.Table.by_head("Rounds", rows, where="tables/rounds.parquet")
    return page.Details(f"Points and replicates of {len(rows)} rounds", [table])


def _groups(study: Study) -> Iterator[Sequence[Finalist]]:
    """The finalists of each contest, the best first."""
    groups: dict[tuple[str, ...], list[Finalist]] = {}
    for each in study.finalists:
        groups.setdefault(tuple(each.levels.values()), []).append(each)
    yield from groups.values()


def _is_behind(each: Finalist) -> bool:
    return each.behind_low > 0 or each.behind_high < 0


def _is(point: int) -> pl.Expr:
    return pl.col("point") == point


def _named(study: Study, each: Finalist) -> str:
    levels = study.points.row(by_predicate=_is(each.point), named=True)
    return _words(study, {name: level for name, level in levels.items() if name not in each.levels})


def _names(study: Study) -> list[str]:
    return [name for name in study.points.columns if name not in ("point", "stage")]


def _words(study: Study, row: Mapping[str, object]) -> str:
    named = short_names(_names(study))
    return ", ".join(f"{named[name]} {level}" for name, level in row.items() if name in named)


def _shown(study: Study) -> tuple[float, str]:
    """Factor and unit in which the measure is shown."""
    assert study.contest is not None
    values = [each.mean for each in study.finalists] or [each.value for each in study.standings]
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return display_unit(study.scenario.measure[study.contest.measure].unit, largest)
