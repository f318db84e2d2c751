"""Tables of searches for terminal and page: the rates, what speaks for them, and each direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weirlab.plots.style import scaled
from weirlab.report.page import Column, Head, Table, heads, number, percent
from weirlab.report.search_terms import MARK, deviations, marked_name
from weirlab.report.shared import seconds_text, sparkline
from weirlab.scenario import Scenario
from weirlab.scenario.plan.combinations import short_names
from weirlab.searches import FoundRates, GoalResult
from weirlab.searches.base import SearchState
from weirlab.searches.forwarding import forwarding_cost
from weirlab.searches.half import HalfLoad
from weirlab.searches.points import OVERHEAD_BYTES
from weirlab.searches.sweep import swept

_BARS = 50
"""Most bars in a line."""


def bound_lines(states: Sequence[SearchState], result: FoundRates) -> list[str]:
    """How the bounds of each goal came together, trial by trial: bars of the share of the upper bound that
    lies between them, as logarithms from 100 % to the least width. `states[i]` is where the search stood
    when it asked for trial `i`; the last is its end. Nothing where no goal ever had two bounds."""
    lines = []
    for goal in result.goals:
        bounds = [state.bounds.get(goal.goal.name, (None, None)) for state in states]
        widths = [1 - low / high if low and high else 1.0 for low, high in bounds]
        known = [width for width in widths if 0 < width < 1]
        if not known:
            continue
        least = min(known)
        # Least is the first bar above none.
        heights = [1 + 7 * math.log(max(width, least) / least) / math.log(1 / least) for width in widths]
        cells = (
            [heights[i * len(heights) // _BARS] for i in range(_BARS)] if len(heights) > _BARS else heights
        )
        lines.append(f"{goal.goal.name:<4} {sparkline(cells)} {percent(widths[-1])} of the upper bound")
    if not lines:
        return []
    trials = len(states) - 1
    return [f"Distance between the bounds over {trials} trials (logarithms, from 100 %):", *lines]


_CONDITIONAL = (
    "Conditional throughput (RFC 9971): what is forwarded at the rate found in all but the share of the time "
    "in which the goal may be exceeded."
)


def goal_table(result: FoundRates, scenario: Scenario) -> Table:
    """One row per goal: the bounds, the conditional throughput where the algorithm classifies loads, and what
    they mean per direction and in bits."""
    frame_size, directions = shape(result, scenario)
    loads = [bound.load_fps for goal in result.goals for bound in (goal.lower, goal.upper) if bound]
    factor, unit = scaled(max(loads, default=1.0), "frame_rate")
    classified = any(goal.evidence is not None for goal in result.goals)
    marked = any(deviations(goal.goal, result, scenario) for goal in result.goals)

    def rate(fps: float | None) -> str:
        return number(None if fps is None else fps * factor, 5)

    rows: list[dict[Head, str]] = []
    for goal in result.goals:
        lower = None if goal.lower is None else goal.lower.offered_fps
        l2, l1 = bit_rates(lower, frame_size)
        conditional: dict[Head, str] = {
            f"conditional\nthroughput [{unit}]": rate(goal.conditional_throughput_fps)
        }
        rows.append(
            {
                "goal:": marked_name(goal.goal, result, scenario),
                "loss ≤": percent(goal.goal.loss_ratio),
                f"rate\n(offered) [{unit}]": rate(lower),
                f"intended\nload [{unit}]": rate(None if goal.lower is None else goal.lower.load_fps),
                **(conditional if classified else {}),
                f"upper bound [{unit}]": rate(None if goal.upper is None else goal.upper.offered_fps),
                "width": percent(goal.width),
                f"per direction [{unit}]": rate(None if lower is None else lower / directions),
                "L2 [Gbit/s]": l2,
                "L1 [Gbit/s]": l1,
                "result:": "regular" if goal.regular else "irregular: " + ", ".join(goal.irregularities),
            }
        )
    return Table.by_head(
        "Rates found (lower bounds), sums over all directions",
        rows,
        tones=["good" if goal.regular else "bad" for goal in result.goals],
        note="A rate is what the device was really offered, the intended load what the tester was asked for. "
        f"Directions: {directions}; frames of {frame_size} B (L2 with FCS)."
        + (f" {_CONDITIONAL}" if classified else "")
        + (f" {MARK}: the search deviates from RFC 9971, see Goals." if marked else ""),
    )


def evidence_table(result: FoundRates) -> Table:
    """What the trials at the lower bounds allow to be said of one more trial there. Empty where the
    algorithm does not classify loads."""
    return Table.of(
        "Evidence at the bounds",
        [(goal.goal, goal.evidence) for goal in result.goals if goal.evidence is not None and goal.lower],
        {
            "goal:": lambda each: each[0].name,
            "trials [lower + upper]": lambda each: (
                f"{len(each[1].lower_trials)} + {len(each[1].upper_trials)}"
            ),
            "of full length": lambda each: str(each[1].full_trials),
            "too much loss": lambda each: str(each[1].exceeding_trials),
            "chance that one more fails": lambda each: percent(each[1].exceed_estimate),
            "95 % interval": lambda each: " … ".join(map(percent, each[1].exceed_interval or ())) or "–",
            "reached after": lambda each: seconds_text(each[1].time_s),
            "stationarity:": lambda each: each[1].stationarity_told,
        },
        note="'Reached after': time of all trials of the search until the goal was reached, waits and trials "
        "for other goals included. The interval is that of Clopper and Pearson; the chance is "
        "(failures + 1) / (trials + 2). "
        "'–': one trial says nothing about the next one; a goal without 'duration_sum' asks for no more.",
    )


def direction_table(result: FoundRates) -> Table:
    """The counts of each direction in the trials that stand for the bounds. Empty where there is one
    direction, or the testbed cannot distinguish them."""
    rows = []
    for goal in result.goals:
        for side, bound in (("lower", goal.lower), ("upper", goal.upper)):
            directions = () if bound is None else bound.trial.per_direction
            if bound is None or len(directions) < 2:
                continue
            for each in directions:
                rows.append(
                    [
                        goal.goal.name,
                        side,
                        str(bound.trial.spec.index),
                        each.name,
                        number(each.sent_frames),
                        number(each.sent_frames - each.received_frames),
                        "–" if each.loss_ratio is None else percent(each.loss_ratio),
                    ]
                )
    return Table(
        "Directions at the bounds",
        heads("goal: | bound: | trial | direction: | sent [frames] | lost [frames] | loss ratio"),
        rows,
        note="Goals are judged by the sum over all directions.",
    )


def sweep_text(result: FoundRates) -> str:
    """What the sweep below the bounds looked at, and what it cannot have seen; empty where there was none."""
    if (found := swept(result)) is None:
        return ""
    factor, unit = scaled(found.high_fps, "frame_rate")
    low, high = (number(load_fps * factor, 4) for load_fps in (found.low_fps, found.high_fps))
    apart = percent(found.apart)
    return (
        f"Swept for loss inversion: {found.trials} trials of {found.duration_s:g} s, the loads from {low} to "
        f"{high} {unit} at most {apart} apart. A band of losses narrower than {apart} may lie between two of "
        "them and is then not seen; more loads ('sweep') are closer."
    )


def _half_text(goal: GoalResult, found: HalfLoad, busy: bool) -> str:
    """The load that half of the trials pass, or why it is none, for a sentence. `busy`: whether the rest of
    the machine disturbed trials."""
    factor, unit = scaled(found.load_fps, "frame_rate")
    left_out = f", {found.left_out} disturbed ones left out" if found.left_out else ""
    basis = f"95 % interval, {found.trials} trials{left_out}"
    if not found.is_usable:
        if goal.regular:
            return f"{found.trials} trials settled the rate; a best estimate would need more."
        half, wide = "half of the trials pass somewhere", "which is too wide to use"
        match [end and number(end * factor, 3) for end in (found.low_fps, found.high_fps)]:
            case str(low), str(high):
                where = f"{half} between {low} and {high} {unit} ({basis}), {wide}"
            case str(low), _:
                where = f"{half} above {low} {unit} ({basis}), {wide}"
            case _, str(high):
                where = f"{half} below {high} {unit} ({basis}), {wide}"
            case _:
                where = f"{found.trials} trials do not say which load half of them pass"
        remedy = "End other programs, allow" if busy else "Allow"
        return f"no best estimate: {where}. {remedy} more trials (a longer time limit), and search again."
    doubt = ""
    if found.is_doubtful:
        doubt = f"; a fit without a curve says {number(found.isotonic_fps * factor, 3)} {unit}"
    about = f"about {number(found.load_fps * factor, 3)} {unit} ± {100 * (found.relative_error or 0.0):.2g} %"
    return f"best estimate: half of the trials pass at {about} ({basis}{doubt})."


def half_texts(result: FoundRates) -> list[str]:
    """A sentence for each goal with the load that half of the trials pass, or that it is not known well
    enough; one about what a frame cost a router of this machine, and one about what the rest of the machine
    cost."""
    texts = []
    busy = any(trial.disturbance for trial in result.trials)
    for goal in result.goals:
        if (found := goal.half) is not None:
            texts.append(f"{goal.goal.name}: {_half_text(goal, found, busy)}")
    if (forwarding := forwarding_cost(result.trials)) is not None:
        factor, unit = scaled(forwarding.capacity_fps, "frame_rate")
        texts.append(
            f"The router used {1e6 * forwarding.cpu_s_per_frame:.3g} us of its CPU for each frame "
            f"(± {100 * forwarding.relative_error:.2g} %, {forwarding.trials} trials): at that cost, one CPU "
            f"whole forwards {number(forwarding.capacity_fps * factor, 3)} {unit}."
        )
    if (cost := result.disturbance) is not None:
        counted = f", {cost.counted_trials} counted without that" if cost.counted_trials else ""
        again = "1 was" if cost.repeated_trials == 1 else f"{cost.repeated_trials} were"
        texts.append(
            f"The rest of the machine disturbed trials: {again} made again "
            f"({seconds_text(cost.repeated_s)}){counted}. In the last of them {cost.last}."
        )
    return texts


def bit_rates(load_fps: float | None, frame_size: int) -> list[str]:
    """L2 and L1 rates [Gbit/s] of a load."""
    if load_fps is None:
        return ["–", "–"]
    return [number(load_fps * 8 * (frame_size + extra) / 1e9, 4) for extra in (0, OVERHEAD_BYTES)]


def shape(result: FoundRates, scenario: Scenario) -> tuple[int, int]:
    """Frame size [B] and number of directions."""
    if result.trials:
        spec = result.trials[0].spec
        return spec.frame_size_bytes, spec.directions
    from weirlab.scenario.traffic.offered import offered

    what = offered(scenario)
    return what.frame_size_bytes, what.flows


def stacked(tables: Sequence[tuple[Mapping[str, str], Table]]) -> Table:
    """Tables of one kind below each other, each row with the levels by factor of its table before it."""
    levels, first = tables[0]
    factors = [Column(name, numeric=False) for name in short_names([*levels]).values()]
    rows = [[*levels.values(), *row] for levels, table in tables for row in table.rows]
    return replace(first, columns=[*factors, *first.columns], rows=rows)
