"""Scenarios whose copy may lie elsewhere: files next to the scenario file are named in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from weirlab.fields.base import Model, NamesFile
from weirlab.scenario.file.document import join_path
from weirlab.scenario.model import Scenario
from weirlab.scenario.testbeds import Command
from weirlab.spec import Where


def movable(scenario: Scenario) -> Scenario:
    """The same with the full path of every file and directory that it names, so that a copy of it in a
    result means the same files."""
    named = {join_path(path): full for path, full in _full_names(scenario)}
    return scenario.assign(named) if named else scenario


def moved(scenario: Scenario, plain: dict[str, object]) -> dict[str, object]:
    """`plain`, which is a scenario as data, with such paths. It is changed in place."""
    for path, full in _full_names(scenario):
        part: Any = plain
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = full
    return plain


def _full_names(scenario: Scenario) -> Iterator[tuple[Where, str]]:
    beside = Path(scenario.file).parent
    for path, name in _named_files(scenario, ()):
        yield path, str((beside / name).resolve())
    if isinstance(scenario.testbed, Command) and scenario.testbed.directory is None:
        yield ("testbed", "directory"), str(beside.resolve())


def _named_files(part: object, at: Where) -> Iterator[tuple[Where, str]]:
    """Place and value of every field that names a file relative to the scenario file."""
    if isinstance(part, Model):
        names = _fields_of_files(type(part))
        for name, field in type(part).model_fields.items():
            value, place = getattr(part, name), (*at, field.alias or name)
            if name in names and isinstance(value, str):
                yield place, value
            else:
                yield from _named_files(value, place)
    elif isinstance(part, Mapping):
        for key, value in part.items():
            yield from _named_files(value, (*at, key))
    elif isinstance(part, list | tuple):
        for item, value in enumerate(part):
            yield from _named_files(value, (*at, item))


@cache
def _fields_of_files(model: type[Model]) -> frozenset[str]:
    return frozenset(
        name
        for name, field in model.model_fields.items()
        if any(isinstance(each, NamesFile) for each in _metadata(field))
    )


def _metadata(field: FieldInfo) -> Iterator[object]:
    """Of a field, and of each type that it may have."""
    yield from field.metadata
    for kind in get_args(field.annotation):
        yield from getattr(kind, "__metadata__", ())
