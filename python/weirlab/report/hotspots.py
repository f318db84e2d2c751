"""What the report of a run says of its hotspots: how hard they were, and what was carried meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from weirlab.analysis.outcome import HotspotOutcome, Quantity, set_point_bytes
from weirlab.analysis.recovery import RECOVERED
from weirlab.plots.hotspots import hotspot_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.shared import display_unit, time_text
from weirlab.report.theory import hotspot_table
from weirlab.runs import Run
from weirlab.stats import mean_interval

_SPANS = {"hotspot": "the hotspot", "second half": "its second half", "run": "the run"}
_STARVED = 0.9


def hotspot_section(run: Run, outcomes: Sequence[HotspotOutcome]) -> tuple[list[page.Section], list[Plot]]:
    """A section and its plots; nothing where there is no hotspot."""
    if not outcomes:
        return [], []
    blocks: list[page.Block] = [hotspot_table([outcome.facts for outcome in outcomes])]
    plots: list[Plot] = []
    for outcome in outcomes:
        drawn = hotspot_plots(run.records, outcome, set_point_bytes(run.scenario))
        blocks += [
            page.Numbers(_cards(outcome)),
            *_warnings(outcome),
            outcome_table(outcome),
            *(page.figure(plot) for plot in drawn),
        ]
        plots += drawn
    return [page.Section("Hotspots", blocks)], plots


def hotspot_story(outcomes: Sequence[HotspotOutcome]) -> list[str]:
    """What each hotspot cost those who had nothing to do with it, or all where only that is known."""
    said = []
    for outcome in outcomes:
        for name, who in (("innocent ports", "Innocent ports"), ("aggregate throughput", "All outputs")):
            found = outcome.of(name)
            mean = None if found is None else _mean(found)
            if found is None or mean is None or not found.ideal:
                continue
            recovered = outcome.of("recovery of throughput")
            lasting = (
                "" if recovered is None or _mean(recovered) is not None else "; throughput did not recover"
            )
            span = "the second half" if found.span == "second half" else "the time"
            said.append(
                f"{who} carried {page.percent(mean)} of the line rate in {span} of hotspot "
                f"'{outcome.facts.name}', where {page.percent(found.ideal)} is possible{lasting}."
            )
            break
    return said


def outcome_table(outcome: HotspotOutcome) -> page.Table:
    """What was measured of a hotspot, compared with what perfect control would give."""
    several = any(len(each.values) > 1 for each in outcome.quantities)
    begin, end = (time_text(edge) for edge in outcome.window)
    note = (
        f"The hotspot is measured from {begin} to {end}. Recovery of throughput: from its start until the "
        f"outputs together carry {RECOVERED:.0%} of the maximum throughput, or of what they settle at, and "
        "keep it; hot queue at its set point: until it is back there; recovery: the later of both; a dash "
        "where they are not. RJFI: "
        "Jain's index of what each sender got of the hot output in the whole run, and in the second half "
        "where each flow is recorded, over its max-min fair share during the hotspot, background flows "
        "included. Fairness of delays: Jain's index of the mean burst delays of flows, our own."
    )
    note = " ".join([note, *outcome.remarks])
    rows = [_row(each, several=several) for each in outcome.quantities]
    return page.Table.by_head(f"{outcome.facts.name}: measured", rows, note=note)


def _row(quantity: Quantity, *, several: bool) -> dict[page.Head, str]:
    interval = mean_interval([value for value in quantity.values if value is not None])
    mean = None if interval is None else interval.mean
    factor, unit = (1.0, quantity.unit)
    if quantity.unit != "frames":
        factor, unit = display_unit(quantity.unit, abs(mean or 0.0))
    measured, around = page.number(None if mean is None else mean * factor), "–"
    if interval is not None and interval.count > 1:
        half = interval.half_width * factor
        measured = page.mean_text(interval.mean * factor, half)
        around = page.half_width_text(interval.mean * factor, half)
    return {
        "quantity:": quantity.name,
        "during:": _SPANS[quantity.span],
        "measured": measured,
        **({"95 % interval": around} if several else {}),
        "unit:": unit,
        "with perfect control": "" if quantity.ideal is None else page.number(quantity.ideal * factor),
    }


def _cards(outcome: HotspotOutcome) -> list[page.Card]:
    cards = []
    for label, name in (("Aggregate throughput", "aggregate throughput"), ("Hot port", "hot port")):
        found = outcome.of(name)
        mean = None if found is None else _mean(found)
        if found is None or mean is None or not found.ideal:
            continue
        good = mean >= _STARVED * found.ideal
        text = f"of at most {page.number(found.ideal, 3)} of the line rate, in {_SPANS[found.span]}"
        cards.append(page.Card(label, page.number(mean, 3), text, tone="good" if good else "middling"))
    if (throughput := outcome.of("recovery of throughput")) is not None:
        cards.append(_recovery_card(outcome, throughput))
    if (lost := outcome.of("dropped frames")) is not None:
        total = sum(value or 0.0 for value in lost.values)
        cards.append(
            page.Card(
                "Lossless",
                "no" if total else "yes",
                f"{page.number(int(total))} frames dropped in the run",
                tone="bad" if total else "good",
            )
        )
    return cards


def _recovery_card(outcome: HotspotOutcome, throughput: Quantity) -> page.Card:
    """Of throughput and hot queue: full outputs alone are no recovery while the hot queue is far too long."""
    both, queue = outcome.of("recovery"), outcome.of("hot queue at its set point")
    reported = throughput if both is None else both
    good = all(value is not None for value in reported.values)
    at_once = all(value == 0 for value in throughput.values)
    kept = "kept throughout" if at_once else f"kept from {_time(throughput)} on{_known_of(throughput)}"
    text = f"{RECOVERED:.0%} of the throughput: {kept if _mean(throughput) is not None else 'not kept'}"
    if queue is not None:
        text += f"; hot queue at its set point: {_time(queue)}{_known_of(queue)}"
        late = outcome.of("mean hot queue, in set points")
        if late is not None and (times := _mean(late)) is not None:
            text += f" ({page.number(times, 2)} set points in the second half)"
    title = "Recovery of throughput" if both is None else "Recovery"
    return page.Card(title, _time(reported), text, tone="good" if good else "middling")


def _warnings(outcome: HotspotOutcome) -> list[page.Callout]:
    found = []
    fed, throughput = outcome.of("hot port, of what it serves"), outcome.of("aggregate throughput")
    share = None if fed is None else _mean(fed)
    reached = None if throughput is None or throughput.ideal is None else _mean(throughput)
    if share is not None and share < _STARVED and reached is not None and throughput is not None:
        full = reached >= _STARVED * (throughput.ideal or 0.0)
        hidden = ", which the aggregate throughput hides" if full else ""
        found.append(
            page.Callout(
                "The hot port is starved", f"It carries {page.percent(share)} of what it serves{hidden}."
            )
        )
    if outcome.unrecorded:
        found.append(
            page.Callout(
                "Numbers of the whole run only",
                "A hotspot is measured by itself where the queues of all ports towards hosts are recorded: "
                "an entry {queue: PORTS, every: TIME} in 'record', with several intervals in its window.",
                "",
            )
        )
    return found


def _time(quantity: Quantity) -> str:
    mean = _mean(quantity)
    return "none" if mean is None else time_text(mean)


def _known_of(quantity: Quantity) -> str:
    known, many = sum(value is not None for value in quantity.values), len(quantity.values)
    return f", {known} of {many} replicates" if many > 1 else ""


def _mean(quantity: Quantity) -> float | None:
    interval = mean_interval([value for value in quantity.values if value is not None])
    return None if interval is None else interval.mean
