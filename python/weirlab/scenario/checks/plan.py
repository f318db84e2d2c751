"""What is wrong with run, search and campaign beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirlab.measures.base import FlowMeasure
from weirlab.scenario.file.problems import did_you_mean, listed
from weirlab.scenario.network.layout import Layout
from weirlab.scenario.network.selecting import Fault, traffic_amiss
from weirlab.scenario.plan import Binary, Goal, Mdr, Mlr, Search, Weir
from weirlab.scenario.plan.presets import PRESETS
from weirlab.scenario.plan.strict import lenient
from weirlab.scenario.testbeds import Netns
from weirlab.scenario.traffic import Departing
from weirlab.scenario.traffic.hotspots import InputGenerated
from weirlab.spec import Where
from weirlab.units import FrameRate

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


NEEDS_FLOWS = "a {} counts frames by the totals of flows; leave 'flows: false' out"


def check_run(scenario: Scenario) -> Iterator[Fault]:
    """Faults of `run`, and of what must stand with what."""
    if scenario.search is not None and scenario.campaign is not None:
        yield ("campaign",), "cannot be combined with 'search'; a scenario has one of them"
    used = isinstance(scenario.testbed, Netns) and scenario.testbed.on_path
    planned = scenario.search is not None or scenario.campaign is not None or used
    if scenario.run.duration is None and not planned:
        yield ("run",), "how long? write 'run: {duration: 100 ms}'"
    if not scenario.run.flows:
        yield from _without_flows(scenario)
    rushes = any(isinstance(hotspot, InputGenerated) for hotspot in scenario.hotspots.values())
    if not scenario.traffic and not used and not rushes:
        yield ("traffic",), "is missing: who sends what to whom"


def _without_flows(scenario: Scenario) -> Iterator[Fault]:
    """What reads the totals of flows, which this run does not keep."""
    at: Where = ("run", "flows")
    users = {"study": scenario.study, "search": scenario.search, "campaign": scenario.campaign}
    for name, section in users.items():
        if section is not None:
            yield at, NEEDS_FLOWS.format(name)
    for name, measure in scenario.measure.items():
        if isinstance(measure, FlowMeasure):
            yield ("measure", name), "is of flows, which 'run.flows: false' leaves out"


def check_search(scenario: Scenario, layout: Layout | None) -> Iterator[Fault]:
    """Faults of `search`."""
    search = scenario.search
    if search is None:
        return
    entries = {f"traffic.{name}.source.rate": name for name in scenario.traffic}
    name = entries.get(search.vary)
    if name is None:
        hint = did_you_mean(search.vary, entries) or f"; write {listed(map(repr, entries), 4)}"
        yield ("search", "vary"), f"there is no rate at '{search.vary}'{hint}"
        return
    source = scenario.traffic[name].source
    if not isinstance(source, Departing):
        yield ("search", "vary"), f"the source of '{name}' has no rate that a search could set"
    elif source.load is not None:
        yield ("traffic", name, "source", "load"), "is what the search varies as 'rate'; leave it out"
    yield from _goals(search)
    yield from lenient(search)
    low = search.between.low
    if not isinstance(low, FrameRate) and layout is not None and not layout.ports and isinstance(low, float):
        yield (
            ("search", "between"),
            "this testbed has no line rate; write frame rates, such as [10 kframe/s, 400 kframe/s]",
        )
    elif (low if isinstance(low, float) else low.stored) == 0:
        yield ("search", "between"), "the least load is more than zero"


def _goals(search: Search) -> Iterator[Fault]:
    """Faults of the goals, and of what they ask of trials."""
    if not search.goals:
        yield ("search", "goals"), "at least one goal is needed, such as NDR: {loss: 0 %, width: 0.5 %}"
        return
    faults = [fault for name, goal in search.goals.items() for fault in _goal(search, name, goal)]
    yield from faults
    has_preset = [goal.preset is not None for goal in search.goals.values()]
    duration = search.trial.duration
    if duration is None and not all(has_preset):
        message = "how long is a final trial? write 'trial: {duration: 10 s}'"
        yield ("search", "trial"), message
        return
    if duration is not None and all(has_preset):
        message = "changes nothing: each goal has the trials of its preset; leave it out"
        yield ("search", "trial", "duration"), message
    if faults:
        return
    first = search.algorithm.initial_duration if isinstance(search.algorithm, Mdr | Mlr | Weir) else None
    shortest = min((terms.duration for terms in search.terms.values()), key=lambda span: span.s)
    if first is not None and first > shortest:
        at: Where = ("search", "algorithm", "initial_duration")
        yield at, f"is longer than the final trials ({shortest})"


def _goal(search: Search, name: str, goal: Goal) -> Iterator[Fault]:
    path: Where = ("search", "goals", name)
    algorithm = search.algorithm
    if goal.preset is not None:
        for field in ("loss", "exceed", "duration_sum"):
            if getattr(goal, field) is not None:
                yield (*path, field), f"is part of the preset '{goal.preset}'; leave out the one or the other"
    elif goal.loss is None:
        yield path, f"asks for nothing; write 'loss: 0 %', or one of the presets {listed(PRESETS, 4)}"
    elif goal.loss >= 1:
        yield (*path, "loss"), "a loss ratio below 100 % is needed"
    if goal.width is not None and not 1e-6 <= goal.width < 1:
        yield (*path, "width"), "a width from 0.0001 % to below 100 % is needed"
    if goal.width is not None and isinstance(algorithm, Binary) and algorithm.threshold:
        yield (*path, "width"), "cannot be combined with the algorithm's 'threshold'; write one of them"
    if isinstance(algorithm, Binary | Mdr):
        asked = PRESETS[goal.preset] if goal.preset else goal
        if asked.exceed or asked.duration_sum is not None:
            field = "preset" if goal.preset else "exceed" if goal.exceed else "duration_sum"
            message = (
                f"{algorithm.kind} decides about a load by one trial; take the algorithm 'weir' or 'mlr'"
            )
            yield (*path, field), message
    elif goal.exceed is not None and goal.exceed >= 1:
        yield (*path, "exceed"), "an exceed ratio below 100 % is needed"
    else:
        yield from _repeated(search, path, goal)


def _repeated(search: Search, path: Where, goal: Goal) -> Iterator[Fault]:
    """Faults of a goal that asks for several trials of a load. Source: RFC 9971, section 4.6.2: a duration
    sum below the final trial duration is not recommended."""
    duration = search.trial.duration
    if goal.exceed and goal.duration_sum is None:
        message = (
            "is a share of 'duration_sum', which is missing: how long do the trials of a load last together? "
            "write both, such as 'exceed: 50 %, duration_sum: 21 s' with trials of 1 s, or leave this out"
        )
        yield (*path, "exceed"), message
    if goal.duration_sum is not None and duration is not None and goal.duration_sum < duration:
        message = f"is shorter than one final trial ({duration}); write that or more, or leave this out"
        yield (*path, "duration_sum"), message


def check_campaign(scenario: Scenario) -> Iterator[Fault]:
    """Faults of `campaign`."""
    if scenario.campaign is None:
        return
    taken: set[str] = set()
    for i, step in enumerate(scenario.campaign.cycle):
        path: Where = ("campaign", "cycle", i)
        yield from traffic_amiss(step.run, list(scenario.traffic), (*path, "run"))
        if step.name in taken:
            yield (*path, "name"), f"two parts of the cycle are called '{step.name}'"
        taken.add(step.name)
