"""What is wrong with a study beyond single fields."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from weirlab.errors import Problem, ScenarioError, UnitError
from weirlab.scenario.checks.plan import NEEDS_FLOWS
from weirlab.scenario.file.problems import did_you_mean, listed
from weirlab.scenario.model import split_path
from weirlab.scenario.network.selecting import Fault
from weirlab.scenario.plan import Level, Study
from weirlab.scenario.plan.combinations import design_levels
from weirlab.scenario.plan.conditions import as_condition, unknown_words
from weirlab.scenario.plan.contest import MOST_PLACES, Contest, Halving
from weirlab.scenario.plan.design import LatinHypercube, Optimise
from weirlab.scenario.plan.precision import LEAST_REPLICATES, MOST_REPLICATES, Bound, HalfWidth
from weirlab.spec import Where

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def check_study(scenario: Scenario) -> list[Problem]:
    """Faults of the levels, each assigned alone."""
    if scenario.study is None:
        return []
    problems: list[Problem] = []
    base = scenario.assign({"study": None})
    given: list[tuple[Where, str, tuple[Level, ...]]] = [
        (("study", "factors"), factor, levels) for factor, levels in scenario.study.factors.items()
    ]
    if isinstance(scenario.study.design, Optimise):
        choices = scenario.study.design.choices.items()
        given += [(("study", "design", "choices"), name, levels) for name, levels in choices]
    for where, factor, levels in given:
        names = [level.name for level in levels]
        for level in levels:
            path: Where = (*where, factor, level.name)
            if names.count(level.name) > 1:
                problems.append(scenario.problem_at(path, f"two levels are called '{level.name}'"))
                break
            try:
                made = base.assign(level.assignments)
                if not made.run.flows:
                    problems.append(scenario.problem_at(path, NEEDS_FLOWS.format("study")))
            except ScenarioError as error:
                removes = None in level.assignments.values()
                told = (_with_remedy(problem) if removes else problem for problem in error.problems)
                problems += [_in_level(scenario, path, problem) for problem in told]
    beyond = [
        *_exclusions(scenario.study),
        *_replacements(scenario.study),
        *_conditions(scenario.study),
        *_compared(scenario.study),
        *_precision(scenario),
        *_contest(scenario),
    ]
    problems += [scenario.problem_at(path, message) for path, message in beyond]
    return [*problems, *_design_problems(scenario, base), *_short_problems(scenario, base)]


def _replacements(study: Study) -> Iterator[Fault]:
    """Factors, and parameters of a design, that replace what an earlier one sets: the path itself or one
    above it. The levels of the earlier one would name what was not run. One that sets a part of what an
    earlier one sets changes that part of it, and is legal."""
    setters: list[tuple[str, Where, list[tuple[str, str]]]] = [
        (
            f"factor '{factor}'",
            ("study", "factors", factor),
            [(level.name, path) for level in levels for path in level.assignments],
        )
        for factor, levels in study.factors.items()
    ]
    if isinstance(study.design, Optimise):
        setters += [
            (
                f"choice '{name}'",
                ("study", "design", "choices", name),
                [(level.name, path) for level in levels for path in level.assignments],
            )
            for name, levels in study.design.choices.items()
        ]
    for name in study.design.parameters if study.design is not None else ():
        setters.append((f"parameter '{name}'", ("study", "design", "parameters", name), [("", name)]))
    refused: set[Where] = set()
    for (other, other_at, others), (_, at, paths) in itertools.combinations(setters, 2):
        met = {pair for pair in itertools.product(_unique(paths), _unique(others)) if _replaces(*pair)}
        for (level, path), (their_level, theirs) in itertools.product(paths, others) if met else ():
            levels = {str(other_at[-1]): their_level, str(at[-1]): level}
            if at in refused or (path, theirs) not in met or _kept_apart(study, levels):
                continue
            refused.add(at)
            also = f"as does {other}" if path == theirs else f"and {other} sets '{theirs}'"
            yield (
                at,
                f"sets '{path}', {also}: points would have one value under the names of both; set it in one "
                "(null removes one that 'extends' brought), or 'exclude' what sets it twice",
            )


def _unique(paths: Iterable[tuple[str, str]]) -> list[str]:
    return list(dict.fromkeys(path for _, path in paths))


def _replaces(path: str, other: str) -> bool:
    """Whether a path is another one, or above it."""
    above = split_path(path)
    return split_path(other)[: len(above)] == above


def _kept_apart(study: Study, levels: Mapping[str, str]) -> bool:
    """Whether a study leaves out every combination of these levels of its factors."""
    return any(all(levels.get(factor) in names for factor, names in each.items()) for each in study.exclude)


def _exclusions(study: Study) -> Iterator[Fault]:
    """Faults of what a study leaves out."""
    known = {factor: [level.name for level in levels] for factor, levels in study.factors.items()}
    faults: list[Fault] = []
    for i, each in enumerate(study.exclude):
        for factor, names in each.items():
            path: Where = ("study", "exclude", i, factor)
            if factor not in known:
                hint = did_you_mean(factor, known) or f"; there are {listed(known) or 'none'}"
                faults.append((path, f"there is no factor '{factor}'{hint}"))
                continue
            for name in names:
                if name not in known[factor]:
                    hint = did_you_mean(name, known[factor]) or f"; there are {listed(known[factor])}"
                    faults.append((path, f"'{factor}' has no level '{name}'{hint}"))
    if not faults and study.exclude and not study.where and next(study.combinations(), None) is None:
        faults.append((("study", "exclude"), "leaves no combination of levels"))
    yield from faults


def _conditions(study: Study) -> Iterator[Fault]:
    """Faults of `where`: what cannot be read, names nothing, or makes no sense at some combination."""
    if not study.where:
        return
    everywhere = study.model_copy(update={"where": ()})
    combinations = list(everywhere.combinations())
    names = frozenset(level.name for levels in study.factors.values() for level in levels)
    known: dict[str, str] = {}
    for _, factors, levels in combinations:
        known.update(everywhere.known(factors, levels))
    parameters = dict(next(design_levels(everywhere, combinations[0][0]), {})) if combinations else {}
    faulty = False
    for i, text in enumerate(study.where):
        path: Where = ("study", "where", i)
        try:
            condition = as_condition(text)
            if amiss := unknown_words(condition, {**known, **parameters}, names):
                raise UnitError(amiss)
            spoken_of = [name for name in parameters if condition.mentions(name)]
            if spoken_of and not isinstance(study.design, LatinHypercube | Optimise):
                raise UnitError(
                    f"speaks of '{spoken_of[0]}', a parameter of the design, whose points belong together: "
                    "with one of them left out there is no result; a latin-hypercube can do without"
                )
            for _, factors, levels in combinations:
                here = everywhere.known(factors, levels)
                try:
                    condition.holds({**here, **parameters})
                except UnitError as error:
                    at = ", ".join(f"{factor} {name}" for factor, name in factors.items())
                    raise UnitError(f"at {at}: {error}" if at else str(error)) from None
        except UnitError as error:
            faulty = True
            yield path, str(error)
    if not faulty and next(study.combinations(), None) is None:
        yield ("study", "where"), "leaves no combination of levels"


def _compared(study: Study) -> Iterator[Fault]:
    """Faults of `compare`."""
    if study.compare is None:
        return
    factor, baseline = study.compare.factor, study.compare.baseline
    if factor not in study.factors:
        hint = did_you_mean(factor, study.factors) or f"; there are {listed(study.factors) or 'none'}"
        yield ("study", "compare", "factor"), f"there is no factor '{factor}'{hint}"
        return
    if isinstance(study.design, LatinHypercube):
        yield (
            ("study", "compare"),
            "a latin-hypercube has other points for each level: nothing is paired; compare factors alone",
        )
    names = [level.name for level in study.factors[factor]]
    if len(names) < 2:
        yield ("study", "compare", "factor"), f"'{factor}' has one level; a comparison needs two"
    if baseline is not None and baseline not in names:
        hint = did_you_mean(baseline, names) or f"; there are {listed(names)}"
        yield ("study", "compare", "baseline"), f"'{factor}' has no level '{baseline}'{hint}"


def _precision(scenario: Scenario) -> Iterator[Fault]:
    """Faults of `until`."""
    study = scenario.study
    if study is None or study.until is None:
        return
    until = study.until
    at: Where = ("study", "until")
    if scenario.search is not None or scenario.campaign is not None:
        what = "search" if scenario.search is not None else "campaign"
        yield at, f"a {what} is repeated `replicates` times, whatever it finds; leave this out"
        return
    if study.replicates < LEAST_REPLICATES:
        yield (
            ("study", "replicates"),
            f"with 'until', at least {LEAST_REPLICATES}: intervals of fewer are too uncertain to end by (got "
            f"{study.replicates})",
        )
    if until.most <= study.replicates:
        yield (*at, "most"), f"is more than 'replicates', which is {study.replicates} (got {until.most})"
    if until.most > MOST_REPLICATES:
        yield (*at, "most"), f"at most 1 000 000 (got {until.most})"
    if not until.half_widths and not until.differences:
        yield at, "asks for nothing; write 'half_widths: {NAME: 5 %}' with the name of a measure"
    if until.differences and study.compare is None:
        yield (*at, "differences"), "of what? write 'compare: {factor: NAME}' with it"
    for field, asked in until.asked().items():
        for name, width in asked.items():
            path: Where = (*at, field, name)
            yield from _misfit(scenario, path, name, width, "or a share of the mean, '5 %' ")


def _misfit(
    scenario: Scenario, at: Where, name: str, value: HalfWidth | Bound, more: str = ""
) -> Iterator[Fault]:
    """Whether a value can be asked of a measure."""
    if name not in scenario.measure:
        hint = did_you_mean(name, scenario.measure) or f"; there are {listed(scenario.measure) or 'none'}"
        yield at, f"there is no measure '{name}'{hint}"
    elif not value.fits(unit := scenario.measure[name].unit):
        example = {"ps": "'20 us'", "B": "'1 kB'", "bit/s": "'1 Mbit/s'", "frame/s": "'1 kframe/s'"}
        own = example.get(unit, "a plain number, such as '0.001'")
        yield at, f"does not fit '{name}'; write {own} {more}(got '{value.text}')"


def _contest(scenario: Scenario) -> Iterator[Fault]:
    """Faults of `halving` and of an optimisation."""
    study = scenario.study
    contest = study.contest if study is not None else None
    if study is None or contest is None:
        return
    at: Where = ("study", "halving") if isinstance(contest, Halving) else ("study", "design")
    if scenario.search is not None or scenario.campaign is not None:
        what = "search" if scenario.search is not None else "campaign"
        yield at, f"a {what} is repeated at every point; leave this out"
        return
    if study.halving is not None and contest is not study.halving:
        yield ("study", "halving"), "an optimisation chooses its points itself; leave one of them out"
    for field in ("until", "compare"):
        if getattr(study, field) is not None:
            yield (
                ("study", field),
                f"cannot be combined with '{'.'.join(map(str, at[1:]))}', which decides itself",
            )
    yield from _misfit(scenario, (*at, "measure"), contest.measure, Bound(0.0, "", ""))
    yield from _limits(scenario, contest, at)
    if contest.verdict < 2:
        yield (*at, "verdict"), "an interval needs 2 replicates or more (got 1)"
    for name in study.names:
        if name == "stage":
            yield ("study",), "a factor or choice 'stage': this name is taken by the tables; choose another"
    if isinstance(contest, Halving):
        yield from _halving(scenario, study, contest)
    else:
        yield from _optimise(study, contest)


def _limits(scenario: Scenario, contest: Contest, at: Where) -> Iterator[Fault]:
    """Limits that do not fit their measure, or each other."""
    for field in ("at_most", "at_least"):
        for name, bound in getattr(contest, field).items():
            yield from _misfit(scenario, (*at, field, name), name, bound)
    for name, least in contest.at_least.items():
        most = contest.at_most.get(name)
        if most is not None and most.amount < least.amount:
            yield (*at, "at_least", name), f"is above 'at_most', which is '{most.text}' (got '{least.text}')"


def _halving(scenario: Scenario, study: Study, halving: Halving) -> Iterator[Fault]:
    at: Where = ("study", "halving")
    if not 0.01 <= halving.keep <= 0.9:
        yield (*at, "keep"), f"a share from 1 % to 90 % is needed (got {halving.keep:.6g})"
    whole = scenario.run.duration
    if halving.duration is not None and whole is not None and halving.duration >= whole:
        yield (*at, "duration"), f"is shorter than 'run.duration', which is {whole} (got {halving.duration})"
    for i, factor in enumerate(halving.apart):
        if factor not in study.factors:
            hint = did_you_mean(factor, study.factors) or f"; there are {listed(study.factors) or 'none'}"
            yield (*at, "apart", i), f"there is no factor '{factor}'{hint}"


def _optimise(study: Study, design: Optimise) -> Iterator[Fault]:
    at: Where = ("study", "design")
    if not design.names:
        yield at, "varies nothing; write 'parameters: {PATH: {between: LEAST .. GREATEST}}', or 'choices'"
        return
    for name, levels in design.choices.items():
        if len(levels) < 2:
            yield (*at, "choices", name), "has one level; a choice needs two"
        if name in study.factors or name in design.parameters:
            yield (*at, "choices", name), f"there is another factor or parameter '{name}'"
    if not 2 <= design.size <= 1000:
        yield (*at, "population"), f"2 to 1000 points are needed (got {design.size})"
    if design.generations > 999:
        yield (*at, "generations"), f"at most 999 (got {design.generations})"
    most = study.replicates if design.most is None else design.most
    if most < study.replicates:
        yield (*at, "most"), f"is 'replicates' or more, which is {study.replicates} (got {most})"
    if most > MOST_REPLICATES:
        yield (*at, "most"), f"at most 1 000 000 (got {most})"
    combinations = math.prod(map(len, study.factors.values()))
    places = combinations * (design.generations * design.size + design.finalists) * max(most, design.verdict)
    if places > MOST_PLACES:
        yield at, f"may take {places:,} runs; at most {MOST_PLACES:,} are planned: ask for fewer"


def _design_problems(scenario: Scenario, base: Scenario) -> list[Problem]:
    """Faults of the ranges of a design: both ends of each must be legal."""
    assert scenario.study is not None
    design = scenario.study.design
    problems: list[Problem] = []
    for name, given in design.parameters.items() if design is not None else ():
        path: Where = ("study", "design", "parameters", name)
        if given.scale == "logarithmic" and given.between[0] <= 0:
            problems.append(scenario.problem_at(path, "a logarithmic range starts above 0"))
            continue
        try:
            for part in (0.0, 1.0):
                base.assign({name: given.level(part)})
        except ScenarioError as error:
            problems += [_in_level(scenario, path, problem) for problem in error.problems]
    return problems


def _short_problems(scenario: Scenario, base: Scenario) -> list[Problem]:
    """What cannot be in the short runs of halving."""
    halving = scenario.study.halving if scenario.study is not None else None
    if halving is None or halving.duration is None:
        return []
    try:
        base.assign({"run.duration": str(halving.duration)})
    except ScenarioError as error:
        path: Where = ("study", "halving", "duration")
        return [_in_level(scenario, path, problem) for problem in error.problems]
    return []


def _with_remedy(problem: Problem) -> Problem:
    """A problem of a level that removes something which a measure or a record is of."""
    section, *names = split_path(problem.path) if problem.path else ("",)
    if section not in ("measure", "record") or not names:
        return problem
    remedy = f"where it is not needed, remove it in this level, too ({section}.{names[0]}: null)"
    return dataclasses.replace(problem, message=f"{problem.message}; {remedy}")


def _in_level(scenario: Scenario, path: Where, problem: Problem) -> Problem:
    """A problem that a level causes, at the place of that level."""
    inside = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return scenario.problem_at(path, inside)
