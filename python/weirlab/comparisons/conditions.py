"""Conditions on which a comparison fails: `p99_delay > +5 %`, `loss > 0.1 %`, `goodput < -100 Mbit/s`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from weirlab.comparisons.differences import Difference, contrast
from weirlab.errors import InputError
from weirlab.stats import mean_interval
from weirlab.units import FrameRate, Rate, Size, Span

Verdict = Literal["met", "not met", "undecided"]

_TEXT = re.compile(r"^(?P<name>.+?)\s*(?P<sign>[<>])\s*(?P<change>[+-]?)\s*(?P<amount>\d\S*.*)$")
_READERS: dict[str, Callable[[str], float]] = {
    "bit/s": lambda text: Rate.parse(text).bps,
    "ps": lambda text: Span.parse(text).ps,
    "B": lambda text: Size.parse(text).bytes,
    "frame/s": lambda text: FrameRate.parse(text).fps,
}
"""Limits with a unit, by the unit of the quantity."""


@dataclass(frozen=True)
class Judgement:
    """What became of a condition for one quantity of one result."""

    verdict: Verdict
    """`met`: beyond the limit with 95 % confidence, so that the comparison fails. `undecided`: beyond it or
    not, as far as these values say."""
    estimate: float
    """How far the quantity is beyond its limit, in its own unit."""


@dataclass(frozen=True)
class Condition:
    """A limit of a quantity, or of its change."""

    text: str
    name: str
    above: bool
    """Whether it is met above the limit, else below."""
    sign: Literal["", "+", "-"]
    """Of a limit of the change from the first result; empty of a limit of the level itself."""
    relative: bool
    """Whether the limit is a percentage: of the first result, or of 1 where it is not of a change."""
    amount: str
    """The limit as it was written, without its sign of percent."""

    def applies(self, found: Difference) -> bool:
        """Whether this is the quantity that is meant: by its name, or the end of it after a colon."""
        return self.name in (found.after.name, found.after.name.partition(": ")[2])

    def judged(self, found: Difference) -> Judgement:
        """Whether the condition is met. Raises InputError where the limit has another unit."""
        limit = self._limit(found.after.unit)
        side = 1.0 if self.above else -1.0
        if self.sign:
            factor = 1 + limit if self.relative else 1.0
            beyond, low, high, _ = contrast(found.before, found.after, factor)
            shift = 0.0 if self.relative else limit
        else:
            beyond, low, high = _level(found)
            shift = limit
        ends = sorted(side * (end - shift) for end in (low, high))
        beyond = side * (beyond - shift)
        if math.isnan(beyond):
            return Judgement("undecided", beyond)
        if math.isnan(ends[0]):  # a single value, which has no interval: it is judged as it is
            return Judgement("met" if beyond > 0 else "not met", beyond)
        verdict: Verdict = "met" if ends[0] > 0 else "not met" if ends[1] <= 0 else "undecided"
        return Judgement(verdict, beyond)

    def _limit(self, unit: str) -> float:
        sign = -1.0 if self.sign == "-" else 1.0
        if self.relative:
            if not self.sign and unit != "1":
                raise InputError(
                    f"--fail-if '{self.text}': {self.name} is in {unit}; give a limit in that unit, or a "
                    "change as '+5 %'"
                )
            return sign * _number(self.amount, self.text) / 100
        if unit in _READERS:
            try:
                return sign * _READERS[unit](self.amount)
            except ValueError as error:
                raise InputError(f"--fail-if '{self.text}': {error}") from error
        return sign * _number(self.amount, self.text, unit)


def condition(text: str) -> Condition:
    """A condition from its text: NAME, `>` or `<`, and a limit. A limit with a sign is one of the change from
    the first result. Raises InputError with what is wrong."""
    found = _TEXT.match(text.strip())
    if found is None:
        raise InputError(
            f"--fail-if '{text}': write a quantity, > or <, and a limit, such as 'mean delay > +5 %' for a "
            "change, or 'loss > 0.1 %' for a level"
        )
    amount = found["amount"].strip()
    relative = amount.endswith("%")
    return Condition(
        text=text.strip(),
        name=found["name"].strip(),
        above=found["sign"] == ">",
        sign=cast('Literal["", "+", "-"]', found["change"]),
        relative=relative,
        amount=amount.removesuffix("%").strip(),
    )


def _level(found: Difference) -> tuple[float, float, float]:
    if found.after.bounds is not None:
        return (found.second, *found.after.bounds)
    interval = mean_interval(list(found.after.values.values()))
    if interval is None:
        return math.nan, math.nan, math.nan
    return interval.mean, interval.low, interval.high


def _number(text: str, of: str, unit: str = "") -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        wanted = f"a number, in {unit}" if unit and unit != "1" else "a number"
        raise InputError(f"--fail-if '{of}': the limit '{text}' is not {wanted}")
    return value


def unmatched(conditions: Sequence[Condition], found: Sequence[Difference]) -> str:
    """The message for a condition that no quantity meets by its name; empty where each has one."""
    for each in conditions:
        if not any(each.applies(one) for one in found):
            known = ", ".join(dict.fromkeys(one.after.name for one in found))
            return f"--fail-if '{each.text}': these results have no '{each.name}'; they have {known}"
    return ""
