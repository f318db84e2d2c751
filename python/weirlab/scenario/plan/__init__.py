"""How long to run, what to search, what to repeat, what to vary."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weirlab.errors import UnitError
from weirlab.fields.base import Model, Name, Named, OpenKinds, Text, TrafficSelector
from weirlab.fields.values import Count, Flag, Fraction, LoadRange, Natural, PositiveFrameRate, PositiveSpan
from weirlab.scenario.plan.conditions import Condition, as_condition
from weirlab.scenario.plan.contest import Halving
from weirlab.scenario.plan.design import AnyDesign, Optimise
from weirlab.scenario.plan.levels import Factors, Level as Level, label, thawed
from weirlab.scenario.plan.precision import Compare, Until
from weirlab.scenario.plan.presets import PRESETS, Terms
from weirlab.scenario.plan.strict import strictly
from weirlab.units import Span


class Run(Model):
    """One run."""

    duration: PositiveSpan | None = None
    """How long; needed unless a search or a campaign says so."""
    seed: Natural = 1
    """Where all chance comes from; replicate `i` takes `seed + i`."""
    engine: Literal["event", "slotted"] = "event"
    """`event`: any network and any traffic; `slotted`: all frames of one size, in steps of their transmission
    time, many times faster; for stars and fat trees."""
    flows: Flag = True
    """Whether totals of each flow are kept; without them a run of thousands of hosts needs less memory.
    Measures of flows, studies, searches and campaigns need them."""


class Goal(Model):
    """A rate to find: the highest load whose loss ratio does not exceed `loss`. Either `loss` is given, with
    what belongs to it, or `preset`."""

    loss: Fraction | None = None
    """Highest loss ratio; 0 % for the NDR."""
    preset: Literal["rfc2544", "tst009", "csit-ndr", "csit-pdr"] | None = None
    """A goal by its name, with its own loss ratio, trial duration, exceed ratio and duration sum."""
    width: Fraction | None = None
    """Distance of the bounds at which the search ends, relative to the upper one. Absent: 0.5 %, unless the
    algorithm has a `threshold`."""
    exceed: Fraction | None = None
    """Share of `duration_sum` that trials with more loss may take (RFC 9971); below 100 %. Absent: none.
    Algorithms `weir` and `mlr` only."""
    duration_sum: PositiveSpan | None = None
    """Summed duration of the trials that decide about a load. Absent: one trial."""
    hint: PositiveFrameRate | None = None
    """The rate that an earlier search found, summed over all flows: where this one starts. It saves time and
    decides nothing: every bound is measured again. Algorithms `weir` and `mlr` only."""

    def terms(self, trial: TrialPlan) -> Terms:
        """What decides whether a load meets this goal, in trials of this plan."""
        if self.preset is not None:
            return PRESETS[self.preset]
        assert self.loss is not None
        assert trial.duration is not None
        return Terms(
            loss=self.loss,
            duration=trial.duration,
            exceed=self.exceed or 0.0,
            duration_sum=self.duration_sum,
        )


class TrialPlan(Model):
    """How each trial is made."""

    duration: PositiveSpan | None = None
    """Of a final trial. Absent: that of the goals' presets."""
    warm_up: Span = Span(0)
    """Traffic at the highest load before the first trial; its result does not count."""
    settle: Span = Span.from_s(0.5)
    """Wait after the last frame, so that frames in transit arrive and count."""
    unsent: Literal["excluded", "lost"] = "excluded"
    """Frames that the tester failed to send: `excluded` from the loss ratio, or `lost` (RFC 9971)."""


CONTROLLERS = "weirlab.controllers"
"""Group of entry points of algorithms from other packages."""


class _Choosing(Model):
    """How a search chooses loads."""

    TAKES_HINTS: ClassVar[bool] = False
    """Whether the hints of goals decide where it starts."""


class Algorithm(_Choosing):
    """How a search of another package chooses loads."""

    @abstractmethod
    def controller(self, goals: Sequence[Any], loads: Any, hints_fps: Mapping[str, float]) -> Any:
        """The controller, a `weirlab.searches.controller.Controller`.

        Args:
            goals: What it looks for, as `weirlab.searches.SearchGoal`.
            loads: Where it looks, a `weirlab.searches.LoadRange` [frames/s].
            hints_fps: Loads [frames/s] that the scenario expects, by goal; empty without `TAKES_HINTS`.
        """


class Binary(_Choosing):
    """Plain binary search: one goal after the other, all trials of the final duration."""

    kind: Literal["binary"]
    threshold: PositiveFrameRate | None = None
    """The search ends when two consecutive loads differ by less, whatever the goals' width. Absent: their
    width decides."""


class Mdr(_Choosing):
    """Multiple drop rates: NDR and PDR in one search, trials geometrically longer from phase to phase."""

    kind: Literal["mdr"]
    initial_duration: PositiveSpan | None = None
    """Duration of the first trials. Absent: 1 s, or the final duration if that is shorter."""
    intermediate_phases: Natural = 2
    """Phases between the first and the final trial duration."""
    phase_timeout: PositiveSpan = Span.from_s(600)
    """Longest time of a phase."""


class Mlr(_Choosing):
    """MLRsearch after RFC 9971: any goals at once, every trial to its end."""

    TAKES_HINTS: ClassVar[bool] = True

    kind: Literal["mlr"]
    initial_duration: PositiveSpan | None = None
    """Duration of the shortest trials. Absent: 1 s, or the final duration if that is shorter."""
    preceding_targets: Natural = 2
    """Coarser targets, with shorter trials, before each goal."""
    effective: Literal["trial", "with-waits"] = "trial"
    """What a trial adds to `duration_sum`: its duration, or that and the waits around it."""


class Weir(_Choosing):
    """The default: `mlr` that stops trials whose outcome is decided, and tests its upper bound again."""

    TAKES_HINTS: ClassVar[bool] = True

    kind: Literal["weir"]
    initial_duration: PositiveSpan | None = None
    """Duration of the shortest trials. Absent: 1 s, or the final duration if that is shorter."""
    early_stop: Flag = True
    """Stop a trial as soon as more is lost than the goal allows."""
    guard: Flag = True
    """Test an upper bound again at the end: has the device changed?"""
    checks: Natural = 1
    """Short trials that a load has to pass before its full one where the device has contradicted itself, and
    one more for each stricter goal; or `checks` after it, where it was made without them. 0: none."""
    steady: Span = Span(0)
    """Before the search, trials of this duration at the highest load until two agree. 0: none."""
    sweep: Natural = 0
    """How many loads to try below the lower bound, looking for loss inversion."""
    effective: Literal["trial", "with-waits"] = "trial"
    """What a trial adds to `duration_sum`: its duration, or that and the waits around it."""


AnyAlgorithm = Annotated[Binary | Mdr | Mlr | Weir, OpenKinds(CONTROLLERS, Algorithm)]
"""Packages of other people add to them: entry points of the group name subclasses of `Algorithm` by kind."""


class Search(Model):
    """A search for the highest loads that meet some goals."""

    vary: Text
    """Path of the load, `traffic.NAME.source.rate`."""
    between: LoadRange
    """Least and greatest load, summed over all flows of that traffic."""
    goals: Named[Goal]
    """What to find, by name."""
    trial: TrialPlan = TrialPlan()
    """How each trial is made."""
    algorithm: AnyAlgorithm = Weir(kind="weir")
    """What chooses the loads."""
    strict: Flag = False
    """A search that conforms to RFC 9971: trials run to their end, unsent frames count as lost, and bounds
    get no additional tests. With a goal `rfc2544` each trial is followed by the waits of RFC 2544."""
    timeout: PositiveSpan | None = None
    """Longest time of all trials together. Absent: twice that of a binary search for each goal."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        return strictly(given)

    @property
    def terms(self) -> dict[str, Terms]:
        """What each goal asks of a load, by name."""
        return {name: goal.terms(self.trial) for name, goal in self.goals.items()}

    @property
    def shortest_trial(self) -> Span | None:
        """The shortest trial that it may make; None while the file does not say how long trials are."""
        known = (
            PRESETS[goal.preset].duration if goal.preset else self.trial.duration
            for goal in self.goals.values()
        )
        spans = [*known]
        if isinstance(self.algorithm, Mdr | Mlr | Weir):
            spans.append(self.algorithm.initial_duration or Span.from_s(1))
        found = [span for span in spans if span is not None]
        return min(found, key=lambda span: span.ps) if found and len(found) == len(spans) else None


class Step(Model):
    """A part of a cycle."""

    name: Name
    """What the part is called in the records."""
    run: TrafficSelector
    """Names of the traffic that runs."""
    for_: PositiveSpan = Field(alias="for")
    """How long."""


class Campaign(Model):
    """Measurements in cycles, repeated over a long time."""

    cycles: Count
    """How many cycles."""
    order: Literal["listed", "random"] = "listed"
    """Of the points of a study within a cycle."""
    cycle: tuple[Step, ...] = Field(min_length=1)
    """The parts of a cycle."""


def _read_names(value: object) -> tuple[str, ...]:
    """Names of levels: one, or a list."""
    names = value if isinstance(value, list | tuple) else [value]
    if not names or any(isinstance(name, dict | list | tuple) for name in names):
        raise UnitError(f"write the name of a level, or a list of names (got '{label(value)}')")
    return tuple(map(label, names))


class _Excluded:
    """How pydantic reads and writes combinations of levels: the levels of each factor by its name."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        names = core_schema.no_info_plain_validator_function(_read_names)
        given = core_schema.dict_schema(core_schema.str_schema(), names, min_length=1)
        return core_schema.no_info_before_validator_function(
            lambda value: dict(value) if isinstance(value, Named) else value,
            core_schema.no_info_after_validator_function(Named, given),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda named: {factor: list(levels) for factor, levels in named.items()}
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        name = {"type": ["string", "number", "boolean", "null"]}
        levels = {"anyOf": [name, {"type": "array", "minItems": 1, "items": name}]}
        return {"type": "object", "minProperties": 1, "additionalProperties": levels}


def _one_or_several(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


_TEXTS = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})


class Study(Model):
    """Repetitions of the scenario over combinations of factor levels."""

    replicates: Count = 1
    """Runs of each combination, with consecutive seeds; with `until` the minimum."""
    until: Until | None = None
    """Further replicates of a point while its intervals are wider than requested. Absent: none beyond
    `replicates`."""
    compare: Compare | None = None
    """Differences between the levels of a factor, seed by seed. Absent: none."""
    halving: Halving | None = None
    """Finds the best points by a few runs of all and more runs of the better ones. Absent: all have the same
    number of runs."""
    factors: Annotated[Named[tuple[Level, ...]], Factors()] = Named()
    """Levels by path, or by a name of your own where each level is a set of assignments."""
    exclude: tuple[Annotated[Named[tuple[str, ...]], _Excluded()], ...] = ()
    """Combinations to leave out: those with one of the named levels for every named factor."""
    where: Annotated[tuple[str, ...], BeforeValidator(_one_or_several), _TEXTS] = ()
    """Conditions that every point fulfils, such as `limit >= 15 kB or load < 90 %`; one, or a list."""
    design: AnyDesign | None = None
    """Points in a space of parameters, for each combination of the factors. Absent: these alone."""
    impossible: Literal["refuse", "list"] = "refuse"
    """Infeasible combinations of factors: the study is refused, or they are listed with the reason."""

    @property
    def contest(self) -> Halving | Optimise | None:
        """What the study is to find the best of, if anything."""
        return self.design if isinstance(self.design, Optimise) else self.halving

    @property
    def names(self) -> list[str]:
        """What its points differ in: factors, and parameters and choices of the design."""
        design = self.design
        more = design.names if isinstance(design, Optimise) else design.parameters if design else ()
        return [*self.factors, *more]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What `where` says. Raises UnitError where that cannot be read."""
        return tuple(map(as_condition, self.where))

    def pair(self, levels: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], bool] | None:
        """What points have in common that are compared with each other, and whether the one with these levels
        is their baseline; None where nothing is compared."""
        if self.compare is None:
            return None
        rest = tuple((name, level) for name, level in levels.items() if name != self.compare.factor)
        return rest, levels[self.compare.factor] == self.baseline

    @property
    def baseline(self) -> str:
        """The level from which `compare` counts; empty where nothing is compared."""
        if self.compare is None:
            return ""
        return self.compare.baseline or self.factors[self.compare.factor][0].name

    def known(self, names: Mapping[str, str], levels: Sequence[Level]) -> dict[str, str]:
        """What conditions may speak of at a combination: texts by factor, and by path that a level sets."""
        paths = {path: label(thawed(value)) for each in levels for path, value in each.assignments.items()}
        return {**paths, **names}

    def has_row(self, known: Mapping[str, str], row: Mapping[str, str]) -> bool:
        """Whether a point of the design is in the study, at a combination of which this is `known`."""
        given = self._of_rows
        return not given or all(each.holds({**known, **row}) for each in given)

    @property
    def _of_rows(self) -> tuple[Condition, ...]:
        """Conditions that speak of parameters of the design."""
        parameters = self.names[len(self.factors) :]
        return tuple(each for each in self.conditions if any(map(each.mentions, parameters)))

    def combinations(self) -> Iterator[tuple[int, dict[str, str], tuple[Level, ...]]]:
        """The combinations of levels that are not left out: the place of each among all, the names of its
        levels by factor, and the levels."""
        of_rows = self._of_rows
        given = [each for each in self.conditions if each not in of_rows]
        for place, levels in enumerate(itertools.product(*self.factors.values())):
            names = {factor: level.name for factor, level in zip(self.factors, levels, strict=True)}
            if not any(
                all(names[factor] in reported for factor, reported in each.items()) for each in self.exclude
            ) and all(each.holds(self.known(names, levels)) for each in given):
                yield place, names, levels
