"""What the shell completes behind `--set`: the fields of scenarios, and the words that they take.

`python -m weirlab.scenario.reference` writes them into `fields.json`, which completion reads: to load the
models takes longer than a Tab may.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, TypedDict, Union, get_args, get_origin

from weirlab.fields.base import Model, Named, kind_of
from weirlab.scenario.model import Scenario

FILE = Path(__file__).resolve().parent / "fields.json"


class Held(TypedDict, total=False):
    """What a field may hold."""

    words: list[str]
    of: dict[str, str]
    """Models by kind."""
    each: Held
    """What each entry by name holds."""


_WITHOUT = {"weirlab", "name", "description"}


def _described(annotation: object, found: dict[type[Model], None]) -> Held:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _described(arguments[0], found)
    if origin is Named:
        return {"each": _described(arguments[0], found)}
    if origin in (Union, UnionType):
        whole: Held = {}
        for part in arguments:
            held = _described(part, found)
            if "words" in held:
                whole["words"] = whole.get("words", []) + held["words"]
            if "of" in held:
                whole["of"] = whole.get("of", {}) | held["of"]
            if "each" in held:
                whole["each"] = held["each"]
        return whole
    if origin is Literal:
        return {"words": [str(word) for word in arguments]}
    if annotation is bool:
        return {"words": ["true", "false"]}
    if isinstance(annotation, type) and issubclass(annotation, Model):
        found[annotation] = None
        return {"of": {kind_of(annotation): annotation.__name__}}
    return {}


def fields() -> dict[str, dict[str, Held]]:
    """Of each model its fields, as files call them."""
    left: dict[type[Model], None] = {Scenario: None}
    models: dict[str, dict[str, Held]] = {}
    while left:
        model = next(iter(left))
        del left[model]
        if model.__name__ in models:
            continue
        found: dict[type[Model], None] = {}
        models[model.__name__] = {
            field.alias or name: _described(field.annotation, found)
            for name, field in model.model_fields.items()
            if not (model is Scenario and name in _WITHOUT)
        }
        left |= found
    return models


def text() -> str:
    """The file as it should be."""
    return json.dumps(fields(), separators=(",", ":"), sort_keys=True) + "\n"
