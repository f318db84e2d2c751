"""Margins of the loops of a queue, over any two of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from weirlab.analysis.queues import ControlledQueue
from weirlab.errors import InputError, UnitError
from weirlab.heavy import np
from weirlab.scenario.file.problems import did_you_mean
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.plane import Plane, margin_plane
from weirlab.theory.qcn import QcnPoint
from weirlab.units import Rate, Span

LEVELS = 41
"""Points along an axis, unless it says otherwise."""
MOST_CELLS = 5000
"""Of a plane: as many as a picture takes; each costs milliseconds."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that an axis can vary."""

    field: str
    """Of `BcnPoint` or `QcnPoint`."""
    title: str
    unit: str = ""
    shown: float = 1.0
    """Factor from the unit of the field to that of pictures."""


PARAMETERS = {
    "p": Parameter("sampling", "sampling probability"),
    "gd": Parameter("gd", "decrease gain", "1/frame"),
    "gi": Parameter("gi", "increase gain", "Ru/frame"),
    "ru": Parameter("ru_fps", "rate unit", "bit/s"),
    "w": Parameter("w", "weight of the queue's change"),
    "q_eq": Parameter("q_eq_frames", "set point", "frames"),
    "n": Parameter("flows", "flows"),
    "delay": Parameter("delay_s", "delay of the loop", "µs", 1e6),
}
"""What stands before '=' in `--over`."""


@dataclass(frozen=True)
class Axis:
    """Levels of one parameter."""

    name: str
    """As in `PARAMETERS`."""
    levels: tuple[float, ...]
    """`ru` in bit/s, `delay` in s."""

    @property
    def logarithmic(self) -> bool:
        """Whether equal steps are equal ratios."""
        return self.levels[0] > 0 and self.levels[-1] / self.levels[0] >= 10

    @property
    def factor(self) -> float:
        """From the unit of the levels to that of pictures."""
        return PARAMETERS[self.name].shown

    @property
    def title(self) -> str:
        """For the axis of a picture."""
        parameter = PARAMETERS[self.name]
        return f"{self.name}: {parameter.title}" + (f" [{parameter.unit}]" if parameter.unit else "")


@dataclass(frozen=True)
class Loop:
    """Margins of one loop of a queue."""

    name: str
    """`increase`, `decrease` or `QCN`."""
    crossover_rad_s: float
    phase_margin_deg: float
    delay_margin_s: float
    sampled_delay_margin_s: float
    """NaN where only the continuous one is known."""
    delay_s: float

    @property
    def decisive_s(self) -> float:
        """The margin that counts: between samples where it is known."""
        known = self.sampled_delay_margin_s
        return self.delay_margin_s if known != known else known

    @property
    def stable(self) -> bool:
        """Whether the delay of the loop is less than it bears."""
        return self.delay_s < self.decisive_s


def loops_of(point: BcnPoint | QcnPoint) -> list[Loop]:
    """The loops of a queue: two of BCN, one of QCN. A gain of 0 makes no loop. Raises InputError for a QCN
    that has no equilibrium."""
    if isinstance(point, BcnPoint):
        return [
            Loop(
                name,
                loop.crossover_rad_s,
                loop.phase_margin_deg,
                loop.delay_margin_s,
                loop.sampled_delay_margin_s,
                loop.delay_s,
            )
            for name, loop in point.loops.items()
        ]
    try:
        margins = point.crossover_rad_s, point.phase_margin_deg, point.delay_margin_s
    except ValueError as error:
        raise InputError(f"QCN has no equilibrium here: {error}") from None
    return [Loop("QCN", *margins, float("nan"), point.delay_s)]


def spare_delay_s(point: BcnPoint | QcnPoint) -> float:
    """Delay that the worse loop bears beyond what it has; negative where it is unstable. Raises InputError
    for a QCN that has no equilibrium."""
    return _borne_s(replace(point, delay_s=0.0)) - point.delay_s


@lru_cache(maxsize=MOST_CELLS)
def _borne_s(point: BcnPoint | QcnPoint) -> float:
    """Delay that the worse loop bears, all included, whatever it has."""
    if isinstance(point, BcnPoint):
        return min(loop.decisive_s for loop in loops_of(point))
    try:
        return point.delay_margin_s
    except ValueError as error:
        raise InputError(f"QCN has no equilibrium here: {error}") from None


def read_axes(text: str) -> tuple[Axis, Axis]:
    """The two axes in a text such as `p=0.01..0.1,gd=5e-4..0.05` or `delay=0us..300us:31,gi=1..20`.

    A number after ':' is the number of levels. Levels stand at equal ratios where the last is ten times the
    first or more, else at equal distances. Raises InputError.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) != 2:
        raise InputError(f"--over {text}: a plane has two parameters, as in --over p=0.01..0.1,gd=5e-4..0.05")
    first, second = (_read_axis(part) for part in parts)
    if first.name == second.name:
        raise InputError(f"--over {text}: '{first.name}' is given twice")
    cells = len(first.levels) * len(second.levels)
    if cells > MOST_CELLS:
        raise InputError(
            f"--over {text}: at most {MOST_CELLS} cells; write fewer levels "
            f"(got {len(first.levels)} x {len(second.levels)} = {cells})"
        )
    return first, second


def _read_axis(part: str) -> Axis:
    name, equals, rest = (piece.strip() for piece in part.partition("="))
    if name not in PARAMETERS:
        known = did_you_mean(name, PARAMETERS) or f"; there are {', '.join(PARAMETERS)}"
        raise InputError(f"--over {part}: no parameter is called '{name}'{known}")
    ends, colon, count = rest.partition(":")
    low, dots, high = ends.partition("..")
    if not equals or not dots:
        raise InputError(f"--over {part}: write a range, such as {name}=LOW..HIGH or {name}=LOW..HIGH:21")
    levels = LEVELS if not colon else _count(part, count.strip())
    first, last = _value(part, name, low.strip()), _value(part, name, high.strip())
    if not first < last:
        raise InputError(f"--over {part}: the first end is less than the second")
    if first <= 0 and name not in ("delay", "w"):
        raise InputError(f"--over {part}: '{name}' is more than 0")
    if name == "p" and last > 1:
        raise InputError(f"--over {part}: a probability is at most 1")
    even = first <= 0 or last / first < 10
    steps = np.linspace(first, last, levels) if even else np.geomspace(first, last, levels)
    return Axis(name, tuple(map(float, steps)))


def _count(part: str, text: str) -> int:
    if not text.isdigit() or not 2 <= int(text) <= 500:
        raise InputError(f"--over {part}: 2 to 500 levels (got '{text}')")
    return int(text)


def _value(part: str, name: str, text: str) -> float:
    try:
        if name == "delay":
            return Span.parse(text).s
        if name == "ru":
            return float(Rate.parse(text).bps)
        value = float(text)
    except UnitError as error:
        raise InputError(f"--over {part}: {error}") from None
    except ValueError:
        raise InputError(f"--over {part}: write a number (got '{text}')") from None
    if not 0 <= value < float("inf"):
        raise InputError(f"--over {part}: write a number that is not negative (got '{text}')")
    return value


def over_plane(queue: ControlledQueue, axes: Sequence[Axis]) -> Plane:
    """The spare delay [s] of a queue over two parameters; NaN where QCN has no equilibrium.

    Raises InputError for a parameter that the scheme does not have.
    """
    x, y = axes
    for axis in axes:
        if PARAMETERS[axis.name].field not in queue.point.__dataclass_fields__:
            raise InputError(f"--over: {queue.scheme} has no parameter '{axis.name}'")
    scale = {axis.name: 1 / (8 * queue.frame_bytes) if axis.name == "ru" else 1.0 for axis in axes}

    def value(point: Any) -> float:
        try:
            return spare_delay_s(point)
        except InputError:
            return float("nan")

    plane = margin_plane(
        queue.point,
        (PARAMETERS[x.name].field, [level * scale[x.name] for level in x.levels]),
        (PARAMETERS[y.name].field, [level * scale[y.name] for level in y.levels]),
        value,
    )
    return replace(plane, x=np.asarray(x.levels), y=np.asarray(y.levels))
