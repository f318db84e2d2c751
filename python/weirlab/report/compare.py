"""Several results on one page: what changed, by how much, and what differs between their scenarios."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

from weirlab.campaigns import Campaign
from weirlab.comparisons import (
    Compared,
    Difference,
    Setting,
    difference,
    settings,
)
from weirlab.documents import fields_of
from weirlab.plots.overlay import overlaid_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.shared import display_unit, footer, scenario_details


def changes(results: Sequence[Compared]) -> list[tuple[Compared, Difference]]:
    """Each quantity that a further result shares with the first."""
    first = {quantity.key: quantity for quantity in results[0].quantities}
    return [
        (
            other,
            replace(
                difference(first[quantity.key], quantity),
                exact=quantity.at in results[0].exact and quantity.at in other.exact,
            ),
        )
        for other in results[1:]
        for quantity in other.quantities
        if quantity.key in first
    ]


def difference_table(results: Sequence[Compared], found: Sequence[tuple[Compared, Difference]]) -> page.Table:
    """A row for each quantity and further result; the change with its interval, and whether that leaves zero
    out."""
    several = len(results) > 2
    points = any(each.after.at for _, each in found)
    columns = [
        *([page.Column("result", numeric=False)] if several else []),
        *([page.Column("point", numeric=False)] if points else []),
        *page.heads("quantity: | verdict:"),
        page.Column("change [%]"),
        *page.heads("before | after | unit: | change | 95 % interval"),
    ]
    rows = []
    for other, each in found:
        largest = max((abs(v) for v in (each.first, each.second) if math.isfinite(v)), default=0.0)
        factor, unit = display_unit(each.after.unit, largest)
        half = (each.high - each.low) / 2 * factor
        rows.append(
            [
                *([other.name] if several else []),
                *([each.after.at] if points else []),
                each.after.name,
                _verdict(each),
                _signed(page.number(100 * each.relative, 3), each.relative),
                page.mean_text(each.first * factor, half),
                page.mean_text(each.second * factor, half),
                unit,
                _signed(page.mean_text(each.change * factor, half), each.change),
                _interval(each, factor),
            ]
        )
    return page.Table(f"Compared with {results[0].name}", columns, rows, note=_note(results, found))


def setting_table(results: Sequence[Compared], found: Sequence[Setting]) -> page.Table:
    """What differs besides: a row for each field and fact, a column for each result."""
    columns = page.heads("what: | of:")
    columns += [page.Column(result.name, numeric=False) for result in results]
    return page.Table("What differs", columns, [[each.name, each.of, *each.values] for each in found])


def comparison_sentences(
    results: Sequence[Compared], found: Sequence[tuple[Compared, Difference]]
) -> list[str]:
    """What changed: the sentence that matters first."""
    failed = [f"{each.name}: {fault}; not compared." for each in results for fault in each.failed]
    if not found:
        return [f"{results[0].name} and {results[1].name} have no quantity in common.", *failed]
    exact = sum(each.exact for _, each in found)
    clear = sorted((each for each in found if each[1].clear), key=lambda each: -abs(_share(each[1])))
    unknown = sum(1 for _, each in found if math.isnan(each.low))
    total = len(found)
    sentences = []
    if clear:
        other, most = clear[0]
        where = f" at {most.after.at}" if most.after.at else ""
        by = f" {page.number(100 * abs(most.relative), 3)} %" if math.isfinite(most.relative) else ""
        more = "higher" if most.change > 0 else "lower"
        sentences.append(
            f"{len(clear)} of {total} quantities changed, most of all {most.after.name}{where}, which "
            f"is{by} {more} in {other.name} than in {results[0].name}."
        )
    elif exact == total:
        sentences.append(f"Nothing changed: all {total} quantities are the same.")
    elif unknown < total:
        sentences.append(
            f"No change was found in {total} quantities: all intervals that could be computed include zero."
        )
    if exact and (clear or exact < total):
        which = "" if exact == total else f" for {exact} of them"
        sentences.append(f"No interval{which}: all repetitions of each result are the same.")
    if unknown == total:
        sentences.append(f"{total} quantities, none of which has an interval: each has a single value.")
    elif unknown:
        sentences.append(f"{unknown} of them have no interval: there are fewer than two values.")
    if unknown:
        sentences.append("Run with more replicates to learn what chance alone does.")
    return [*sentences, *failed]


def values_text(found: Difference) -> str:
    """What a quantity was and is: `mean delay 123.2 µs before, 242.7 µs after`."""
    largest = max((abs(v) for v in (found.first, found.second) if math.isfinite(v)), default=0.0)
    factor, unit = display_unit(found.after.unit, largest)
    before, after = (f"{page.number(value * factor)} {unit}".strip() for value in (found.first, found.second))
    return f"{found.after.name} {before} before, {after} after"


def difference_document(other: Compared, found: Difference) -> dict[str, object]:
    """A difference as JSON values, in the units of the records."""
    return {
        "result": other.name,
        "quantity": found.after.name,
        "at": found.after.at,
        "unit": found.after.unit,
        "before": found.first,
        "after": found.second,
        **fields_of(found, "change", "low", "high", "relative", "pairs", "clear", "exact"),
    }


def _command(results: Sequence[Compared]) -> str:
    return shlex.join(["weir", "compare", *(str(each.directory) for each in results), "--report"])


def _largest(results: Sequence[Compared], found: Sequence[tuple[Compared, Difference]]) -> list[str]:
    """The largest change, where no interval of any can say which is clear."""
    if any(not math.isnan(each.low) or each.exact for _, each in found):
        return []
    known = [pair for pair in found if math.isfinite(pair[1].relative) and pair[1].change]
    if not known:
        return []
    other, most = max(known, key=lambda pair: abs(pair[1].relative))
    where = f" at {most.after.at}" if most.after.at else ""
    more = "higher" if most.change > 0 else "lower"
    share = page.number(100 * abs(most.relative), 3)
    return [
        f"The largest difference: {most.after.name}{where} is {share} % {more} in {other.name} than in "
        f"{results[0].name}."
    ]


def comparison_page(results: Sequence[Compared]) -> tuple[page.Page, list[Plot]]:
    """The page of results of one kind, and its plots."""
    found = changes(results)
    blocks: list[page.Block] = [difference_table(results, found)] if found else []
    plots = overlaid_plots([(each.name, each.records) for each in results if each.records is not None])
    if results[0].manifest.kind == "campaign":
        from weirlab.report.compare_campaigns import campaign_blocks

        campaigns = [Campaign.load(each.directory) for each in results]
        more, plots = campaign_blocks([each.name for each in results], campaigns)
        blocks += more
    other = settings(results)
    unlike: page.Block = (
        setting_table(results, other) if other else page.Text("Nothing: the results are repeats.")
    )
    sections = [
        page.Section("Differences", blocks or [page.Text("They have no quantity in common.")]),
        *([page.Section("Series", [page.figure(plot) for plot in plots])] if plots else []),
        page.Section("What differs", [unlike]),
        page.Section("Scenarios", [scenario_details(each.scenario, each.name) for each in results]),
        page.Section("How to repeat this", [page.Code(_command(results))]),
    ]
    made = page.Page(
        title=" and ".join(each.name for each in results),
        kind=f"Comparison of {_PLURALS[results[0].manifest.kind]}",
        subtitle=f"Changes are from {results[0].name}.",
        lead=[],
        story=[*_largest(results, found), *comparison_sentences(results, found)],
        sections=sections,
        footer=footer(results[0].manifest.provenance),
    )
    return made, plots


_PLURALS = {"run": "runs", "study": "studies", "search": "searches", "campaign": "campaigns"}


_CHANCE = "Of quantities that did not change, one in 20 is reported as changed by chance."


def _share(found: Difference) -> float:
    return found.relative if math.isfinite(found.relative) else math.inf


def _signed(text: str, value: float) -> str:
    digits = text.lstrip("-")
    if not any(digit in "123456789" for digit in digits):
        return digits  # rounded to nothing, of either sign
    return f"+{text}" if value > 0 else text


def _interval(found: Difference, factor: float) -> str:
    if found.exact:
        return "exact"
    if math.isnan(found.low):
        return "–"
    middle, half = (found.low + found.high) / 2 * factor, (found.high - found.low) / 2 * factor
    if abs(middle - found.change * factor) <= 1e-9 * abs(half):
        return page.half_width_text(found.change * factor, half)
    return f"{page.number(found.low * factor)} to {page.number(found.high * factor)}"


def _verdict(found: Difference) -> str:
    if math.isnan(found.low):
        return "no interval" if found.change else "the same"
    if not found.clear:
        return "the same" if found.low == found.high == 0 else "no change found"
    return "higher" if found.change > 0 else "lower"


def _note(results: Sequence[Compared], found: Sequence[tuple[Compared, Difference]]) -> str:
    if results[0].manifest.kind == "search":
        return "The middles of the bounds that each search found; the interval is from bounds to bounds."
    exact = "No interval where all repetitions of each result are the same."
    if all(each.exact for _, each in found):
        return exact
    if any(each.exact for _, each in found):
        return f"{_interval_note(results, found)} {exact}"
    return _interval_note(results, found)


def _interval_note(results: Sequence[Compared], found: Sequence[tuple[Compared, Difference]]) -> str:
    pairs = {each.pairs for _, each in found if not each.exact}
    if pairs == {0}:
        return f"Interval of Welch's t over the {results[0].repeats} of each result. {_CHANCE}"
    how = "Interval of Student's t over the differences by seed, which both results share"
    how = f"{how}; where they do not, of Welch's t." if 0 in pairs else f"{how}."
    return f"{how} {_CHANCE}"
