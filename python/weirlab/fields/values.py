"""What the fields of scenario files hold besides plain quantities, as pydantic types.

| type | value | written as |
|---|---|---|
| `Fraction` | float in [0, 1] | `49 %`, `0.49`, `3e-4` |
| `Count`, `Natural`, `FrameCount` | int >= 1, int >= 0, int >= 0 | `8`, `0`, `3` |
| `PortNumber` | int in [1, 65535] | `5201` |
| `Number` | finite float | `12.42` |
| `Flag` | bool | `true`, `false` |
| `Counter` | `Size` or `"none"` | `10 MB`, `none` |
| `Limit` | `Size`, `Frames` or `"unlimited"` | `150 kB`, `300 frames`, `unlimited` |
| `Threshold` | `Size` or `Frames` | `112.5 kB`, `16 frames` |
| `AnyRate` | `Rate` or `FrameRate` | `300 Mbit/s`, `10 kframe/s` |
| `AnyLoad` | `Rate`, `FrameRate` or float in [0, 1] | `300 Mbit/s`, `10 kframe/s`, `80 %` |
| `Window`, `SizeRange`, `LoadRange` | `Interval` of these | `20 ms .. 80 ms`, `[20 ms, 80 ms]` |

`Positive...` are the same without zero. Each takes text, or the value itself when made in Python.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
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

from weirlab.errors import UnitError
from weirlab.units import (
    FRAMES_PATTERN,
    NUMBER_PATTERN,
    FrameRate,
    Frames,
    Interval,
    Quantity,
    Rate,
    Size,
    Span,
    scalar_text,
    shown,
)


class _Between:
    """How pydantic reads an `Interval` whose ends are of the annotated kind `item`."""

    def __init__(self, item: object, example: str) -> None:
        self.item = item
        self.example = example

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
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
        raise UnitError(f"write a range as '{self.example}' or [{low}, {high}] (got {shown(value)})")


def _ordered(ends: tuple[Any, Any]) -> Interval[Any]:
    low, high = ends
    if type(low) is not type(high):
        raise UnitError(f"both ends of a range are quantities of one kind (got '{low}' and '{high}')")
    if not low < high:
        raise UnitError(f"the first end of a range is less than the second (got '{low}' and '{high}')")
    return Interval(low, high)


def _fraction(value: object) -> float:
    text = scalar_text(value, "a fraction such as '49 %' or '0.49'")
    number = text.strip().removesuffix("%").strip()
    bare = number == text.strip()
    if not re.fullmatch(rf"-?{NUMBER_PATTERN}", number):
        raise UnitError(f"write a fraction such as '49 %' or '0.49' (got '{text}')")
    exact = Decimal(number) / (1 if bare else 100)
    if not 0 <= exact <= 1:
        hint = f"; did you mean '{number} %'?" if bare and 1 < exact <= 100 else ""
        raise UnitError(f"a fraction lies between 0 % and 100 % (got '{text}'){hint}")
    return float(exact)


def per_cent(fraction: float) -> str:
    """`fraction` as a text in per cent that reads back as the same number."""
    return f"{(Decimal(repr(fraction)) * 100).normalize():f} %"


def _count(least: int, bits: int) -> object:
    def read(value: object) -> int:
        text = scalar_text(value, "a whole number, such as '8'")
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
    text = scalar_text(value, "a number, such as '12.42'")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UnitError(f"write a number, such as '12.42' (got '{text}')")
    return number


def _flag(value: object) -> bool:
    text = scalar_text(value, "'true' or 'false'")
    if text.lower() not in ("true", "false"):
        raise UnitError(f"write 'true' or 'false' (got '{text}')")
    return text.lower() == "true"


def _positive(value: object, read: ValidatorFunctionWrapHandler) -> object:
    quantity = read(value)
    if quantity == 0 or getattr(quantity, "stored", 1) == 0:
        raise UnitError(f"more than zero is needed (got '{value}')")
    return quantity


def _first_of(value: object, kinds: tuple[Any, ...], expected: str) -> Any:
    """`value` as the first kind that reads it; the error is one that helps, or names all of them."""
    if isinstance(value, kinds):
        return value
    text = scalar_text(value, expected)
    refusals = []
    for kind in kinds:
        try:
            return kind.parse(text)
        except UnitError as error:
            refusals.append(error)
    for refusal in refusals:
        if re.search("did you mean|negative|finer than|can hold", str(refusal)):
            raise refusal
    raise UnitError(f"write {expected} (got '{text}')")


def _limit(value: object) -> object:
    if value == "unlimited":
        return "unlimited"
    return _first_of(value, (Size, Frames), "a limit as '150 kB', '300 frames' or 'unlimited'")


def _counter(value: object) -> object:
    if value == "none":
        return "none"
    return _first_of(value, (Size,), "a size as '10 MB', or 'none'")


def _threshold(value: object) -> object:
    return _first_of(value, (Size, Frames), "an amount as '150 kB' or '16 frames'")


def _any_rate(value: object) -> object:
    return _first_of(value, (Rate, FrameRate), "a rate as '300 Mbit/s' or '400 kframe/s'")


def _any_load(value: object) -> object:
    if isinstance(value, float) or (isinstance(value, str) and value.rstrip().endswith("%")):
        return _fraction(value)
    return _first_of(
        value, (Rate, FrameRate), "a load as '400 kframe/s', '300 Mbit/s' or '80 %' (of the line rate)"
    )


_AS_TEXT = PlainSerializer(str, return_type=str)


def _texts(*quantities: type[Quantity], more: tuple[dict[str, object], ...] = ()) -> WithJsonSchema:
    choices = [
        {"type": "string", "pattern": quantity.pattern(), "examples": list(quantity.examples)}
        for quantity in quantities
    ]
    return WithJsonSchema({"anyOf": [*choices, *more]})


def _whole(least: int, most: int | None = None) -> WithJsonSchema:
    number = {"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most})
    return WithJsonSchema({"anyOf": [number, {"type": "string", "pattern": r"^\d[\d_]*$"}]})


_MOST_PORT = 65_535


def _port(number: int) -> int:
    if number > _MOST_PORT:
        raise UnitError(f"a port is a number from 1 to {_MOST_PORT} (got '{number}')")
    return number


_PER_CENT = {"type": "string", "pattern": rf"^\s*{NUMBER_PATTERN}\s*%?\s*$", "examples": ["49 %"]}
_FRAMES_SCHEMA = {"type": "string", "pattern": FRAMES_PATTERN, "examples": ["16 frames"]}

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
FrameCount = Annotated[int, BeforeValidator(_count(0, 32)), _whole(0)]
"""A whole number of frames, at least 0 and below 2^32."""
PortNumber = Annotated[int, BeforeValidator(_count(1, 32)), AfterValidator(_port), _whole(1, _MOST_PORT)]
"""Of TCP or UDP: 1 to 65535."""
Number = Annotated[
    float,
    BeforeValidator(_number),
    WithJsonSchema(
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": rf"^\s*-?{NUMBER_PATTERN}\s*$"}]}
    ),
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
Counter = Annotated[
    Size | Literal["none"],
    BeforeValidator(_counter),
    _AS_TEXT,
    _texts(Size, more=({"const": "none"},)),
    WrapValidator(_positive),
]
"""The bytes after which something happens, more than zero, or none: it does not."""
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
SizeRange = Annotated[Interval[Size], _Between(Size, "10 kB .. 100 kB")]

LoadRange = Annotated[Interval[Any], _Between(AnyLoad, "10 kframe/s .. 400 kframe/s")]
"""From one load to a higher one of the same kind."""
