"""Quantities: text with a unit in, a value whose type is its unit out.

Parsing and printing of times, sizes and rates is that of the compiled core: one parser for both languages.

| type | holds | written as |
|---|---|---|
| `Span` | `.ps` (int), `.s` | `0.5 us`, `20 ms` |
| `Size` | `.bytes` (int) | `150 kB` (150 000 B), `150 KiB` (153 600 B) |
| `Rate` | `.bps` (int) | `10 Gbit/s` |
| `FrameRate` | `.millifps` (int, 1/1000 frame/s), `.fps` | `10.6 Mframe/s` |
| `Frames` | `.count` (int) | `16 frames` |

All are immutable and compare by value; `str` of a quantity is text that parses back to it. As pydantic fields
they take text or the type itself, and in a JSON schema they are text with a pattern and examples. What else
the fields of scenario files hold (fractions, counts, limits, ranges) stands in `weirlab.fields.values`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weirlab import _core
from weirlab.errors import UnitError

# Regular expressions of what the parsers read, for JSON schemas.
NUMBER_PATTERN = r"\+?(\d[\d_]*(\.\d*)?|\.\d+)([eE][+-]?\d+)?"


def scalar_text(value: object, expected: str) -> str:
    """A scalar as the text that the parsers read. Raises UnitError for anything else."""
    if value is None or isinstance(value, dict | list | tuple):
        raise UnitError(f"write {expected} (got {shown(value)})")
    return str(value)


def shown(value: object) -> str:
    """A value as a message shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"'{value}'"


@dataclass(frozen=True, order=True, repr=False)
class Quantity:
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
        return rf"^\s*{NUMBER_PATTERN}\s*({'|'.join(cls.units)})\s*$"

    @classmethod
    def _coerce(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        return cls.parse(scalar_text(value, f"a {cls.title}, such as '{cls.examples[0]}'"))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._coerce, serialization=core_schema.to_string_ser_schema(when_used="always")
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": cls.pattern(), "examples": list(cls.examples)}


class Span(Quantity):
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


class Size(Quantity):
    """An amount of data, stored in bytes."""

    kind = "size"
    title = "size"
    units = ("B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")
    examples = ("64 B", "150 kB", "64 KiB")

    @property
    def bytes(self) -> int:
        """Bytes."""
        return self.stored


class Rate(Quantity):
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


class FrameRate(Quantity):
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


FRAMES_PATTERN = r"^\s*(\d[\d_]*)\s*frames?\s*$"


@dataclass(frozen=True, order=True)
class Frames:
    """A number of frames, whatever their size."""

    count: int

    @classmethod
    def parse(cls, text: str) -> Frames:
        """Read `16 frames`. Raises UnitError."""
        match = re.match(FRAMES_PATTERN, text)
        if not match:
            raise UnitError(f"write a number of frames as '16 frames' (got '{text}')")
        return cls(int(match[1]))

    def __str__(self) -> str:
        return f"{self.count} frames"

    @classmethod
    def _coerce(cls, value: object) -> Frames:
        if isinstance(value, Frames):
            return value
        return cls.parse(scalar_text(value, "a number of frames as '16 frames'"))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._coerce, serialization=core_schema.to_string_ser_schema(when_used="always")
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": FRAMES_PATTERN, "examples": ["16 frames"]}


T = TypeVar("T")


@dataclass(frozen=True)
class Interval(Generic[T]):
    """From `low` to `high`, where `low` is less."""

    low: T
    high: T

    def __str__(self) -> str:
        return f"{self.low} .. {self.high}"
