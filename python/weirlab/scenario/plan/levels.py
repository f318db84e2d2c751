"""Levels of factors: what they are called, and what they set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weirlab.errors import UnitError
from weirlab.fields.base import Named


@dataclass(frozen=True)
class Level:
    """One level of a factor: a set of assignments."""

    name: str
    assignments: Named[Any]
    """Values by dotted path: text, None (which removes), tuples or mappings."""


def _read_factor(value: object) -> Any:
    if isinstance(value, dict):
        for name, assignments in value.items():
            if not isinstance(assignments, dict):
                message = "is a mapping of paths to values, such as {run.seed: 2}, or {} for no change"
                raise UnitError(f"level '{name}' {message}")
    elif not isinstance(value, list | tuple):
        raise UnitError(f"a factor is a list of values of one path, or levels by name (got '{value}')")
    if not value:
        raise UnitError("a factor needs at least one level")
    return value


def _levels(factors: Mapping[str, Mapping[str, object] | Sequence[object]]) -> Named[tuple[Level, ...]]:
    """Levels of each factor; those of a list are called after their values."""
    read: dict[str, tuple[Level, ...]] = {}
    for path, levels in factors.items():
        if isinstance(levels, Mapping):
            read[path] = tuple(Level(name, _frozen(given)) for name, given in levels.items())
        else:
            known = tuple(level for level in levels if isinstance(level, Level))
            read[path] = known or tuple(
                Level(label(value), Named({path: _frozen(value)})) for value in levels
            )
    return Named(read)


def _frozen(value: Any) -> Any:
    """`value` with nothing in it that could be changed."""
    if isinstance(value, dict):
        return Named({key: _frozen(item) for key, item in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def thawed(value: Any) -> Any:
    if isinstance(value, Named):
        return {key: thawed(item) for key, item in value.items()}
    return list(map(thawed, value)) if isinstance(value, tuple) else value


def label(value: object) -> str:
    """A level's name after its value."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {label(item)}" for key, item in value.items())
    return ", ".join(map(label, value)) if isinstance(value, list | tuple) else str(value)


def _dump_factors(factors: Named[tuple[Level, ...]]) -> dict[str, dict[str, dict[str, object]]]:
    return {
        name: {level.name: thawed(level.assignments) for level in levels} for name, levels in factors.items()
    }


class Factors:
    """How pydantic reads and writes the factors of a study."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        factor = core_schema.no_info_plain_validator_function(_read_factor)
        given = core_schema.dict_schema(core_schema.str_schema(), factor)
        return core_schema.no_info_before_validator_function(
            lambda value: dict(value) if isinstance(value, Named) else value,
            core_schema.no_info_after_validator_function(_levels, given),
            serialization=core_schema.plain_serializer_function_ser_schema(_dump_factors),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        levels: dict[str, object] = {"type": "object", "minProperties": 1}
        levels["additionalProperties"] = {"type": "object"}
        return {
            "type": "object",
            "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1, "items": {}}, levels]},
        }
