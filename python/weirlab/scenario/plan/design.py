"""Points that fill a space of parameters: the design of a study."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weirlab.errors import UnitError
from weirlab.fields.base import BY_KIND, Model, Named
from weirlab.fields.values import Count, Natural
from weirlab.foreign import optional
from weirlab.heavy import np
from weirlab.scenario.plan.contest import Contest
from weirlab.scenario.plan.levels import Factors, Level

_ENDS = re.compile(r"\s*([-+.\deE_]+)\s*([^\d\s.][^.]*?)?\s*\.\.\s*([-+.\deE_]+)\s*([^\d\s.][^.]*?)?\s*")
_DECIMALS = {"B": 0, "frames": 0, "bit/s": 0, "ps": 0, "kB": 3, "kbit/s": 3, "ns": 3}
"""Behind the point of a value, by unit: nothing is finer than 1 B, 1 bit/s or 1 ps."""


def _read_ends(value: object) -> tuple[float, float, str]:
    if isinstance(value, tuple):
        return value
    match = _ENDS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise UnitError(f"write a range such as '5e-4 .. 5e-2' or '320 B .. 12800 B' (got '{value}')")
    low_unit, high_unit = (match[2] or "").strip(), (match[4] or "").strip()
    if low_unit and low_unit != high_unit:
        raise UnitError(
            f"both ends have one unit, as in '320 B .. 12800 B' (got '{low_unit}' and '{high_unit}')"
        )
    try:
        low, high = float(match[1]), float(match[3])
    except ValueError:
        raise UnitError(f"write a range such as '5e-4 .. 5e-2' (got '{value}')") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UnitError(f"the first end of a range is less than the second (got '{value}')")
    return (low, high, high_unit)


def _ends_text(ends: tuple[float, float, str]) -> str:
    low, high, unit = ends
    suffix = f" {unit}" if unit else ""
    return f"{low!r}{suffix} .. {high!r}{suffix}"


Ends = Annotated[
    tuple[float, float, str],
    BeforeValidator(_read_ends),
    PlainSerializer(_ends_text),
    WithJsonSchema({"type": "string", "pattern": r"^.+\.\..+$", "examples": ["5e-4 .. 5e-2"]}),
]
"""Two numbers with one unit."""


class ParameterRange(Model):
    """Where a parameter may lie."""

    between: Ends
    """Both ends, as numbers or quantities of one unit."""
    scale: Literal["linear", "logarithmic"] = "linear"
    """Whether equal steps are equal differences, or equal ratios."""

    def level(self, part: float) -> str:
        """The value at `part`, 0 to 1, of the way, as a scenario file holds it: six digits, and bytes, frames
        and bit/s as whole numbers."""
        low, high, unit = self.between
        value = low * (high / low) ** part if self.scale == "logarithmic" else low + part * (high - low)
        decimals = _DECIMALS.get(unit)
        if decimals == 0:
            return f"{round(value)} {unit}"
        return f"{value if decimals is None else round(value, decimals):.6g} {unit}".strip()

    def part(self, level: str) -> float:
        """The part of the way, 0 to 1, at which a `level` lies, but for its rounding."""
        low, high, unit = self.between
        value = float(level.removesuffix(unit))
        if self.scale == "logarithmic":
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


class _Parameters:
    """How pydantic reads ranges by dotted path."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        given = core_schema.dict_schema(core_schema.str_schema(), handler.generate_schema(ParameterRange))
        return core_schema.no_info_before_validator_function(
            lambda value: dict(value) if isinstance(value, Named) else value,
            core_schema.no_info_after_validator_function(Named, given),
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda named, serialize: serialize(dict(named)), schema=given
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema["schema"]["schema"])


class _Design(Model):
    """What all designs share."""

    parameters: Annotated[Named[ParameterRange], _Parameters()]
    """Ranges by the dotted path of the parameter."""
    seed: Natural = 1
    """Seed of the design; that of the runs is `run.seed`."""


class LatinHypercube(_Design):
    """Points that fill the space: each range is cut into as many equal parts, and each part has one point."""

    kind: Literal["latin-hypercube"]
    points: Count
    """Points for each combination of the factors; each combination has different points."""


class Morris(_Design):
    """Trajectories of steps in one parameter at a time: which parameters matter. Needs SALib."""

    kind: Literal["morris"]
    trajectories: Count = 10
    """Each has one point more than there are parameters."""


class Sobol(_Design):
    """Saltelli's sampling for Sobol indices: what part of the variance each parameter causes. Needs SALib."""

    kind: Literal["sobol"]
    base: Count = Field(64, examples=[64])
    """Base sample, a power of two; times the number of parameters and two: points."""


class Optimise(_Design, Contest):
    """Points that an evolution strategy chooses by the results of those before: what is best. Needs cmaes."""

    kind: Literal["optimise"]
    parameters: Annotated[Named[ParameterRange], _Parameters()] = Named()
    """Ranges by the dotted path of the parameter."""
    choices: Annotated[Named[tuple[Level, ...]], Factors()] = Named()
    """Parameters without a range, written like factors. A list of three numbers or more is ordered; other
    levels are not."""
    generations: Count = 20
    """How often new points are chosen by earlier results; at most 999."""
    population: Count | None = None
    """Points of a generation. Absent: 4 + 3 ln(parameters and choices)."""
    most: Count | None = None
    """Most replicates of a point while its generation cannot be ranked. Absent: `study.replicates`."""

    @property
    def size(self) -> int:
        """Points of a generation. Source: Hansen 2016, table 1."""
        return self.population or 4 + math.floor(3 * math.log(len(self.parameters) + len(self.choices)))

    @property
    def names(self) -> list[str]:
        """What is varied."""
        return [*self.parameters, *self.choices]

    def levels(self, parts: Sequence[float], places: Sequence[int]) -> dict[str, str]:
        """The names of a point's levels, by parts of ranges and places among choices."""
        ranged = {
            name: given.level(part)
            for (name, given), part in zip(self.parameters.items(), parts, strict=True)
        }
        return ranged | {
            name: levels[place].name
            for (name, levels), place in zip(self.choices.items(), places, strict=True)
        }

    def changes(self, levels: Mapping[str, str]) -> dict[str, object]:
        """What these levels set, by path."""
        found: dict[str, object] = {name: levels[name] for name in self.parameters}
        for name, choices in self.choices.items():
            found |= next(each.assignments for each in choices if each.name == levels[name])
        return found


Sampled = LatinHypercube | Morris | Sobol
"""Designs whose points are known before anything runs."""
AnyDesign = Annotated[LatinHypercube | Morris | Sobol | Optimise, BY_KIND]


def design_rows(design: Sampled, combination: int) -> np.ndarray:
    """The points of a combination of factors, as parts 0 to 1 of the ranges: shape (points, parameters).

    Raises MissingCapability without SALib where it is needed. Source: Morris 1991; Saltelli 2010.
    """
    count = len(design.parameters)
    if isinstance(design, LatinHypercube):
        # One point in each stratum of each parameter, drawn as SciPy's `LatinHypercube` does.
        chance = np.random.default_rng([design.seed, combination]).spawn(1)[0]
        within = chance.random((design.points, count))
        strata = [chance.permutation(design.points) for _ in range(count)]
        return (np.transpose(strata) + 1 - within) / design.points
    problem = unit_problem(design)
    sample = salib("SALib.sample.morris" if isinstance(design, Morris) else "SALib.sample.sobol").sample
    if isinstance(design, Morris):
        return np.asarray(sample(problem, design.trajectories, seed=design.seed))
    return np.asarray(sample(problem, design.base, calc_second_order=False, seed=design.seed))


def unit_problem(design: Morris | Sobol) -> dict[str, object]:
    """The parameters as SALib knows them: parts of their ranges."""
    names = list(design.parameters)
    return {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}


def salib(module: str) -> Any:
    """A module of SALib. Raises MissingCapability, which says how to get it."""
    return optional(module, who="this design needs", package="SALib", extra="sensitivity")
