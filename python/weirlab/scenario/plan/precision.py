"""How precise the measures of a study are to be: replicates until intervals are narrow enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from weirlab.errors import UnitError
from weirlab.fields.base import Model, Named
from weirlab.fields.values import Count
from weirlab.units import FrameRate, Rate, Size, Span, scalar_text

LEAST_REPLICATES = 10
"""Replicates from which the interval of a sequential rule was seen to hold what it says."""
MOST_REPLICATES = 1_000_000
_KINDS: dict[str, type[Span] | type[Size] | type[Rate]] = {"ps": Span, "B": Size, "bit/s": Rate}
_WRITTEN = {*_KINDS, "frame/s"}
"""Units of measures in which values are written."""
_EXPECTED = "half of an interval's width, as '5 %' of the mean, or as '20 us', '1.5 kB', '1 Mbit/s', '0.001'"

_BOUND_EXPECTED = "a value in the unit of the measure, as '20 us', '1.5 kB', '90 Mbit/s', '0.1 %'"


@dataclass(frozen=True)
class HalfWidth:
    """The greatest half width of an interval that is narrow enough."""

    amount: float
    unit: str
    """`%`: a share of the mean; else the unit of the measure, empty where a plain number was written."""
    text: str
    """As it was written."""

    @property
    def relative(self) -> bool:
        """Whether it is a share of the mean."""
        return self.unit == "%"

    def allows(self, half: float, mean: float) -> bool:
        """Whether an interval of this half width about this mean is narrow enough."""
        return half <= (self.amount * abs(mean) if self.relative else self.amount)

    def fits(self, unit: str) -> bool:
        """Whether it can be asked of a measure with this unit."""
        return self.relative or _fits(self, unit)


@dataclass(frozen=True)
class Bound:
    """What the mean of a measure may be at most, or at least."""

    amount: float
    unit: str
    """`%`: of a share; else the unit of the measure, empty where a plain number was written."""
    text: str
    """As it was written."""

    def fits(self, unit: str) -> bool:
        """Whether it can be asked of a measure with this unit."""
        return _fits(self, unit) or (self.unit, unit) == ("%", "1")


def _fits(value: HalfWidth | Bound, unit: str) -> bool:
    """Whether a value has the unit of a measure. One without a unit is for measures whose unit nobody can
    write; 0 is the same in all."""
    return value.unit == unit or (not value.unit and (unit not in _WRITTEN or value.amount == 0))


def _read(value: object) -> HalfWidth:
    if isinstance(value, HalfWidth):
        return value
    found = HalfWidth(*_parts(value, _EXPECTED))
    if found.amount <= 0:
        raise UnitError(f"more than zero is needed (got '{found.text}')")
    return found


def _read_bound(value: object) -> Bound:
    return value if isinstance(value, Bound) else Bound(*_parts(value, _BOUND_EXPECTED))


def _parts(value: object, expected: str) -> tuple[float, str, str]:
    """The number, its unit as measures have it, and the text. Raises UnitError."""
    text = scalar_text(value, expected).strip()
    try:
        amount, unit = _amount(text)
        if not math.isfinite(amount):
            raise ValueError
    except ValueError:
        raise UnitError(f"write {expected} (got '{text}')") from None
    return amount, unit, text


def _amount(text: str) -> tuple[float, str]:
    """The number, and its unit as measures have it. Raises ValueError."""
    if text.endswith("%"):
        return float(text[:-1]) / 100, "%"
    for unit, kind in _KINDS.items():
        try:
            return float(kind.parse(text).stored), unit
        except UnitError:
            continue
    try:
        return FrameRate.parse(text).fps, "frame/s"
    except UnitError:
        return float(text), ""


AnyHalfWidth = Annotated[
    HalfWidth,
    BeforeValidator(_read),
    PlainSerializer(lambda width: width.text, return_type=str),
    WithJsonSchema({"type": ["string", "number"], "examples": ["5 %", "20 us", 0.001]}),
]
"""Half of an interval's width, relative or in the unit of a measure."""

AnyBound = Annotated[
    Bound,
    BeforeValidator(_read_bound),
    PlainSerializer(lambda bound: bound.text, return_type=str),
    WithJsonSchema({"type": ["string", "number"], "examples": ["0.1 %", "90 Mbit/s", "20 us"]}),
]
"""A value in the unit of a measure."""


class Until(Model):
    """Further replicates of each point, until half the width of each named 95 % interval is at most the given
    value."""

    half_widths: Named[AnyHalfWidth] = Named()
    """Half widths for the means of measures, by name: `5 %` of the mean, or a value in the unit of the
    measure."""
    differences: Named[AnyHalfWidth] = Named()
    """Half widths for the differences from the baseline of `compare`; `5 %` is a share of the baseline's
    mean."""
    most: Count
    """Most replicates of a point."""

    def asked(self) -> dict[str, Named[AnyHalfWidth]]:
        """All that is asked, by field."""
        return {"half_widths": self.half_widths, "differences": self.differences}


class Compare(Model):
    """A paired comparison: one level of a factor against the others, with the same seeds."""

    factor: str
    """Name of the factor."""
    baseline: str | None = None
    """Level from which the differences are counted. Absent: the first."""
