"""What the goals of a search ask for, in words, and in what it deviates from RFC 9971."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from weirlab.fields.base import kind_of
from weirlab.report.page import Head, Table, number, percent
from weirlab.scenario import Scenario
from weirlab.searches import FoundRates, SearchGoal

MARK = "†"
"""Behind the name of a goal whose search deviates from RFC 9971."""


def terms(goal: SearchGoal) -> str:
    """Loss ratio, exceed ratio and duration sum of a goal, such as ``loss ≤ 0.5 %, exceeded in ≤ 50 % of
    21 s``."""
    loss = f"loss ≤ {percent(goal.loss_ratio)}"
    if _by_one_trial(goal):
        return loss
    return f"{loss}, exceeded in ≤ {percent(goal.exceed_ratio)} of {goal.duration_sum_s:g} s"


def deviations(goal: SearchGoal, result: FoundRates, scenario: Scenario) -> list[str]:
    """In what the search for a goal, as the scenario asks for it and as it went, is not that of RFC 9971;
    empty where it is conformant.

    Source: RFC 9971, sections 4.5 to 4.9, as docs/searching.md goes through them.
    """
    from weirlab.scenario import plan

    if scenario.search is None:
        return []
    found = []
    algorithm = scenario.search.algorithm
    if not isinstance(algorithm, plan.Binary | plan.Mdr | plan.Mlr | plan.Weir):
        found.append(f"'{kind_of(type(algorithm))}' is an algorithm of another package")
    if isinstance(algorithm, plan.Binary | plan.Mdr):
        found.append("one trial decides a load")
    if isinstance(algorithm, plan.Mdr):
        found.append("a later trial of a load replaces an earlier one")
    if scenario.search.trial.unsent == "excluded":
        found.append("unsent frames are not lost")
    if isinstance(algorithm, plan.Weir):
        of_weir = {
            "early stop": algorithm.early_stop,
            "checks": algorithm.checks and goal.exceed_ratio == 0.0,
            "guard": algorithm.guard,
            "sweep": algorithm.sweep,
            "steady trials count for no goal": algorithm.steady.s > 0.0,
        }
        found += [word for word, deviates in of_weir.items() if deviates]
    if any(trial.spec.purpose == "repeat" for trial in result.trials):
        found.append("trials that the tester spoiled are left out")
    return found


def marked_name(goal: SearchGoal, result: FoundRates, scenario: Scenario) -> str:
    """The name of a goal, with a mark behind it where its search deviates from RFC 9971."""
    return f"{goal.name} {MARK}" if deviations(goal, result, scenario) else goal.name


def terms_table(result: FoundRates, scenario: Scenario) -> Table:
    """One row per goal: what it asks for, and in what its search deviates from RFC 9971."""
    rows: list[dict[Head, str]] = []
    for found in result.goals:
        goal = found.goal
        lacking = deviations(goal, result, scenario)
        sum_s = goal.duration_s if goal.duration_sum_s is None else goal.duration_sum_s
        rows.append(
            {
                "goal:": marked_name(goal, result, scenario),
                "loss ≤": percent(goal.loss_ratio),
                "final trial [s]": number(goal.duration_s),
                "exceed ratio ≤": percent(goal.exceed_ratio),
                "duration sum [s]": number(sum_s),
                "width ≤": percent(goal.width),
                "RFC 9971:": "deviates: " + ", ".join(lacking) if lacking else "conformant",
            }
        )
    return Table.by_head(
        "Goals",
        rows,
        note="A load meets a goal when trials with more loss take at most the exceed ratio of the duration "
        "sum. The meaning of each deviation is in docs/searching.md, Deviations from RFC 9971.",
    )


def meaning(result: FoundRates, scenario: Scenario) -> str:
    """What the rates of a search are, in sentences."""
    said = []
    goals = sorted((found.goal for found in result.goals), key=_decision)
    alike = [list(group) for _, group in groupby(goals, key=_decision)]
    for group in alike:
        whose = "A rate" if len(alike) == 1 else f"The rate of {_listed([goal.name for goal in group])}"
        said.append(f"{whose} is the highest load at which {_met(group[0])}.")
    said.append(
        "Of a regular one, a load that did not meet the goal lies no farther above than the goal's width."
    )
    lost = scenario.search is not None and scenario.search.trial.unsent == "lost"
    said.append(
        "Loss counts against the frames that were intended: those not sent are lost."
        if lost
        else "Loss counts against the frames that were sent."
    )
    return " ".join(said)


def _by_one_trial(goal: SearchGoal) -> bool:
    return goal.exceed_ratio == 0.0 and goal.duration_sum_s in (None, goal.duration_s)


def _decision(goal: SearchGoal) -> tuple[float, float, float]:
    """What decides about a load besides the loss ratio."""
    sum_s = goal.duration_s if goal.duration_sum_s is None else goal.duration_sum_s
    return (goal.duration_s, goal.exceed_ratio, sum_s)


def _met(goal: SearchGoal) -> str:
    if _by_one_trial(goal):
        return f"a trial of {goal.duration_s:g} s met the goal"
    if goal.exceed_ratio == 0.0:
        return (
            f"trials of {goal.duration_s:g} s met the goal for {goal.duration_sum_s:g} s, and none failed it"
        )
    return (
        f"trials of {goal.duration_s:g} s that lose more than the goal allows take at most "
        f"{percent(goal.exceed_ratio)} of {goal.duration_sum_s:g} s, whatever those not made would bring"
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
