"""Quantities of scenario files: text with a unit in, a value whose type is its unit out.

Parsing and printing of times, sizes and rates is that of the compiled core (one parser for both languages);
what only files need stands here: fractions, ranges, limits in frames, loads.

| type | holds | written as |
|---|---|---|
| `Span` | `.ps` (int), `.s` | `0.5 us`, `20 ms` |
| `Size` | `.bytes` (int) | `150 kB` (150 000 B), `150 KiB` (153 600 B) |
| `Rate` | `.bps` (int) | `10 Gbit/s` |
| `FrameRate` | `.millifps` (int, 1/1000 frame/s), `.fps` | `10.6 Mframe/s` |
| `Frames` | `.count` (int) | `16 frames` |
| `Window`, `LoadRange` | `.low`, `.high` | `20 ms .. 80 ms` or `[20 ms, 80 ms]` |
| `Fraction` | float in [0, 1] | `49 %`, `0.49`, `3e-4` |
| `Count`, `Natural`, `Number`, `Flag` | int >= 1, int >= 0, finite float, bool | `8`, `0`, `12.42`, `true` |

All are immutable and compare by value; `str` of a quantity is text that parses back to it. As pydantic fields
they take text or the type itself, and in the JSON schema they are text with a pattern and examples.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weirlab import _core
from weirlab.errors import UnitError

__all__ = [
    "AnyLoad",
    "AnyRate",
    "Count",
    "Flag",
    "Fraction",
    "FrameRate",
    "Frames",
    "Interval",
    "Limit",
    "LoadRange",
    "Natural",
    "Number",
    "PositiveFraction",
    "PositiveFrameRate",
    "PositiveRate",
    "PositiveSize",
    "PositiveSpan",
    "Rate",
    "Size",
    "Span",
    "Threshold",
    "Window",
    "per_cent",
]

_NUMBER = r"\+?(\d[\d_]*(\.\d*)?|\.\d+)([eE][+-]?\d+)?"


def _text(value: object, expected: str) -> str:
    """A scalar as the text that the parsers read. Raises UnitError for anything else."""
    if value is None or isinstance(value, dict | list | tuple):
        raise UnitError(f"write {expected} (got {_shown(value)})")
    return str(value)


def _shown(value: object) -> str:
    """A value as a message shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"'{value}'"


@dataclass(frozen=True, order=True, repr=False)
class _Quantity:
    """One integer of a kind that the compiled core knows."""

    stored: int
    """The value in its stored unit, which each kind names."""

    kind: ClassVar[str]
    title: ClassVar[str]
    units: ClassVar[tuple[str, ...]]
    examples: ClassVar[tuple[str, ...]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `text`. Raises UnitError, which names what was expected and what was found."""
        try:
            return cls(_core.parse_quantity(cls.kind, text))
        except ValueError as error:
            raise UnitError(str(error)) from None

    def __str__(self) -> str:
        return _core.format_quantity(self.kind, self.stored)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"

    @classmethod
    def pattern(cls) -> str:
        """Regular expression of the texts that `parse` reads."""
        return rf"^\s*{_NUMBER}\s*({'|'.join(cls.units)})\s*$"

    @classmethod
    def _coerce(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        return cls.parse(_text(value, f"a {cls.title}, such as '{cls.examples[0]}'"))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._coerce, serialization=core_schema.to_string_ser_schema(when_used="always")
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": cls.pattern(), "examples": list(cls.examples)}


class Span(_Quantity):
    """A length of time, stored in picoseconds."""

    kind = "span"
    title = "duration"
    units = ("ps", "ns", "us", "µs", "μs", "ms", "s", "min", "h")
    examples = ("0.5 us", "20 ms", "10 s")

    @property
    def ps(self) -> int:
        """Picoseconds."""
        return self.stored

    @property
    def s(self) -> float:
        """Seconds."""
        return self.stored / 1e12

    def __str__(self) -> str:
        return super().__str__() if self.stored else "0 s"

    @classmethod
    def from_s(cls, seconds: float) -> Span:
        """The nearest whole number of picoseconds."""
        return cls(round(seconds * 1e12))


class Size(_Quantity):
    """An amount of data, stored in bytes."""

    kind = "size"
    title = "size"
    units = ("B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")
    examples = ("64 B", "150 kB", "64 KiB")

    @property
    def bytes(self) -> int:
        """Bytes."""
        return self.stored


class Rate(_Quantity):
    """A bit rate, stored in bit/s."""

    kind = "rate"
    title = "rate"
    units = (
        *("bit/s", "bps", "kbit/s", "kbps", "Mbit/s", "Mbps", "Gbit/s", "Gbps", "Tbit/s", "Tbps"),
        *("B/s", "kB/s", "MB/s", "GB/s"),
    )
    examples = ("10 Gbit/s", "300 Mbit/s")

    @property
    def bps(self) -> int:
        """Bits per second."""
        return self.stored


class FrameRate(_Quantity):
    """A rate of frames, stored in thousandths of a frame per second."""

    kind = "frame-rate"
    title = "frame rate"
    units = (
        *("frame/s", "frames/s", "fps", "pps", "kframe/s", "kframes/s", "kfps", "kpps"),
        *("Mframe/s", "Mframes/s", "Mfps", "Mpps", "Gframe/s", "Gframes/s"),
    )
    examples = ("10.6 Mframe/s", "400 kframe/s")

    @property
    def fps(self) -> float:
        """Frames per second."""
        return self.stored / 1e3

    @classmethod
    def from_fps(cls, fps: float) -> FrameRate:
        """The nearest thousandth of a frame per second."""
        return cls(round(fps * 1e3))


_FRAMES_PATTERN = r"^\s*(\d[\d_]*)\s*frames?\s*$"


@dataclass(frozen=True, order=True)
class Frames:
    """A number of frames, whatever their size."""

    count: int

    @classmethod
    def parse(cls, text: str) -> Frames:
        """Read `16 frames`. Raises UnitError."""
        match = re.match(_FRAMES_PATTERN, text)
        if not match:
            raise UnitError(f"write a number of frames as '16 frames' (got '{text}')")
        return cls(int(match[1]))

    def __str__(self) -> str:
        return f"{self.count} frames"

    @classmethod
    def _coerce(cls, value: object) -> Frames:
        if isinstance(value, Frames):
            return value
        return cls.parse(_text(value, "a number of frames as '16 frames'"))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._coerce, serialization=core_schema.to_string_ser_schema(when_used="always")
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": _FRAMES_PATTERN, "examples": ["16 frames"]}


T = TypeVar("T")


@dataclass(frozen=True)
class Interval(Generic[T]):
    """From `low` to `high`, where `low` is less."""

    low: T
    high: T

    def __str__(self) -> str:
        return f"{self.low} .. {self.high}"


class _Between:
    """How pydantic reads an `Interval` whose ends are of the annotated kind `item`."""

    def __init__(self, item: Any, example: str) -> None:
        self.item = item
        self.example = example

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        item = handler.generate_schema(self.item)
        ends = core_schema.tuple_schema([item, item])
        return core_schema.no_info_before_validator_function(
            self._split,
            core_schema.no_info_after_validator_function(_ordered, ends),
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda interval, serialize: list(serialize((interval.low, interval.high))), schema=ends
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        text = {"type": "string", "pattern": r"^.+\.\..+$", "examples": [self.example]}
        return {"anyOf": [handler(schema), text]}

    def _split(self, value: object) -> object:
        """Both ends of a range as a tuple."""
        if isinstance(value, Interval):
            return (value.low, value.high)
        if isinstance(value, str) and ".." in value:
            low, _, high = value.partition("..")
            return (low.strip(), high.strip())
        if isinstance(value, list | tuple) and len(value) == 2:
            return tuple(value)
        low, _, high = self.example.partition(" .. ")
        raise UnitError(f"write a range as '{self.example}' or [{low}, {high}] (got {_shown(value)})")


def _ordered(ends: tuple[Any, Any]) -> Interval[Any]:
    low, high = ends
    if type(low) is not type(high):
        raise UnitError(f"both ends of a range are quantities of one kind (got '{low}' and '{high}')")
    if not low < high:
        raise UnitError(f"the first end of a range is less than the second (got '{low}' and '{high}')")
    return Interval(low, high)


def _fraction(value: object) -> float:
    text = _text(value, "a fraction such as '49 %' or '0.49'")
    number = text.strip().removesuffix("%").strip()
    bare = number == text.strip()
    if not re.fullmatch(rf"-?{_NUMBER}", number):
        raise UnitError(f"write a fraction such as '49 %' or '0.49' (got '{text}')")
    exact = Decimal(number) / (1 if bare else 100)
    if not 0 <= exact <= 1:
        hint = f"; did you mean '{number} %'?" if bare and 1 < exact <= 100 else ""
        raise UnitError(f"a fraction lies between 0 % and 100 % (got '{text}'){hint}")
    return float(exact)


def per_cent(fraction: float) -> str:
    """`fraction` as a text in per cent that reads back as the same number."""
    return f"{(Decimal(repr(fraction)) * 100).normalize():f} %"


def _count(least: int, bits: int) -> Any:
    def read(value: object) -> int:
        text = _text(value, "a whole number, such as '8'")
        if not re.fullmatch(r"\s*[+-]?\d[\d_]*\s*", text):
            raise UnitError(f"write a whole number, such as '8' (got '{text}')")
        digits = text.strip().replace("_", "").lstrip("+")
        if digits.startswith("-") or int(digits[:20]) < least:
            raise UnitError(f"at least {least} is needed (got '{text}')")
        if len(digits) > 20 or int(digits) >= 2**bits:
            raise UnitError(f"less than 2^{bits} is needed (got '{text}')")
        return int(digits)

    return read


def _number(value: object) -> float:
    text = _text(value, "a number, such as '12.42'")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UnitError(f"write a number, such as '12.42' (got '{text}')")
    return number


def _flag(value: object) -> bool:
    text = _text(value, "'true' or 'false'")
    if text.lower() not in ("true", "false"):
        raise UnitError(f"write 'true' or 'false' (got '{text}')")
    return text.lower() == "true"


def _positive(value: object, read: ValidatorFunctionWrapHandler) -> Any:
    quantity = read(value)
    if quantity == 0 or getattr(quantity, "stored", 1) == 0:
        raise UnitError(f"more than zero is needed (got '{value}')")
    return quantity


def _first_of(value: object, kinds: tuple[Any, ...], expected: str) -> Any:
    """`value` as the first kind that reads it; the error names all of them."""
    if isinstance(value, kinds):
        return value
    text = _text(value, expected)
    for kind in kinds:
        try:
            return kind.parse(text)
        except UnitError:
            continue
    raise UnitError(f"write {expected} (got '{text}')")


def _limit(value: object) -> Any:
    if value == "unlimited":
        return "unlimited"
    return _first_of(value, (Size, Frames), "a limit as '150 kB', '300 frames' or 'unlimited'")


def _threshold(value: object) -> Any:
    return _first_of(value, (Size, Frames), "an amount as '150 kB' or '16 frames'")


def _any_rate(value: object) -> Any:
    return _first_of(value, (Rate, FrameRate), "a rate as '300 Mbit/s' or '400 kframe/s'")


def _any_load(value: object) -> Any:
    if isinstance(value, float) or (isinstance(value, str) and value.rstrip().endswith("%")):
        return _fraction(value)
    return _first_of(
        value, (Rate, FrameRate), "a load as '400 kframe/s', '300 Mbit/s' or '80 %' (of the line rate)"
    )


_AS_TEXT = PlainSerializer(str, return_type=str)


def _texts(*quantities: type[_Quantity], more: tuple[dict[str, Any], ...] = ()) -> WithJsonSchema:
    choices = [
        {"type": "string", "pattern": quantity.pattern(), "examples": list(quantity.examples)}
        for quantity in quantities
    ]
    return WithJsonSchema({"anyOf": [*choices, *more]})


def _whole(least: int) -> WithJsonSchema:
    return WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": least}, {"type": "string", "pattern": r"^\d[\d_]*$"}]}
    )


_PER_CENT = {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*%?\s*$", "examples": ["49 %"]}
_FRAMES_SCHEMA = {"type": "string", "pattern": _FRAMES_PATTERN, "examples": ["16 frames"]}

PositiveSpan = Annotated[Span, WrapValidator(_positive)]
"""A time of more than zero."""
PositiveSize = Annotated[Size, WrapValidator(_positive)]
"""A size of more than zero."""
PositiveRate = Annotated[Rate, WrapValidator(_positive)]
"""A bit rate of more than zero."""
PositiveFrameRate = Annotated[FrameRate, WrapValidator(_positive)]
"""A frame rate of more than zero."""
Fraction = Annotated[
    float,
    BeforeValidator(_fraction),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, _PER_CENT], "examples": ["49 %", 0.49]}
    ),
]
"""A share of a whole, in [0, 1]."""
PositiveFraction = Annotated[Fraction, WrapValidator(_positive)]
"""A share of a whole, in (0, 1]."""
Count = Annotated[int, BeforeValidator(_count(1, 32)), _whole(1)]
"""A whole number, at least 1 and below 2^32."""
Natural = Annotated[int, BeforeValidator(_count(0, 64)), _whole(0)]
"""A whole number, at least 0 and below 2^64."""
Number = Annotated[
    float,
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": rf"^\s*-?{_NUMBER}\s*$"}]}),
]
"""A finite number without a unit."""
Flag = Annotated[
    bool,
    BeforeValidator(_flag),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}),
]
"""Yes or no, written `true` or `false`."""
Limit = Annotated[
    Size | Frames | Literal["unlimited"],
    BeforeValidator(_limit),
    _AS_TEXT,
    _texts(Size, more=(_FRAMES_SCHEMA, {"const": "unlimited"})),
]
"""How much may wait: bytes, a number of frames, or any amount."""
Threshold = Annotated[
    Size | Frames, BeforeValidator(_threshold), _AS_TEXT, _texts(Size, more=(_FRAMES_SCHEMA,))
]
"""An amount in bytes or in frames."""
AnyRate = Annotated[Rate | FrameRate, BeforeValidator(_any_rate), _AS_TEXT, _texts(Rate, FrameRate)]
"""A bit rate or a frame rate."""
AnyLoad = Annotated[
    Rate | FrameRate | float,
    BeforeValidator(_any_load),
    PlainSerializer(lambda load: per_cent(load) if isinstance(load, float) else str(load), return_type=str),
    _texts(FrameRate, Rate, more=(_PER_CENT,)),
]
"""A bit rate, a frame rate, or a share of the line rate."""
Window = Annotated[Interval[Span], _Between(Span, "20 ms .. 80 ms")]
"""From one time of a run to a later one."""
LoadRange = Annotated[Interval[Any], _Between(AnyLoad, "10 kframe/s .. 400 kframe/s")]
"""From one load to a higher one of the same kind."""
