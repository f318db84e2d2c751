"""The JSON schema of scenario files, by which editors complete and check them.

Scalars are what YAML 1.2 makes of them: quantities are text with a pattern, numbers without a unit are
numbers or text. A file with `extends` is judged more loosely, as what it leaves out may stand in its parent.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from weirlab.fields.base import Late, Model
from weirlab.scenario.model import Scenario
from weirlab.units import FrameRate, Rate, Size, Span

_QUANTITIES = {
    kind.__name__: {"type": "string", "pattern": kind.pattern(), "examples": list(kind.examples)}
    for kind in (Span, Size, Rate, FrameRate)
}

_EXTENDS = {
    "type": "string",
    "description": "Another scenario file, relative to this one, that this one is merged into; null removes.",
}


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with the meanings of fields; these describe defaults that are mappings."""

    ignored_warning_kinds = {"non-serializable-default"}  # noqa: RUF012 (as pydantic declares it)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model: type[Model] = schema["cls"]
        made = super().model_schema(schema)
        for name, field in model.model_fields.items():
            shown = made.get("properties", {}).get(field.alias or name)
            if shown is not None and (meaning := model.meaning(name)):
                shown["description"] = meaning
        return made

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        if schema["type"] == "function-plain" and isinstance(late := schema["function"]["function"], Late):
            late.model.model_rebuild()
            schema = late.model.__pydantic_core_schema__
        return super().generate_inner(schema)


def json_schema() -> dict[str, object]:
    """The JSON schema (draft 2020-12) of a scenario file."""
    full = _tidy(Scenario.model_json_schema(schema_generator=_Generator))
    models: dict[str, object] = full["$defs"]
    root = {key: full[key] for key in ("properties", "required", "additionalProperties")}
    loose = _loosened(root)
    loose["properties"]["extends"] = _EXTENDS
    loose["required"] = ["extends"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weirlab scenario",
        "description": "One experiment: network, traffic, duration, what to record, to search or to vary.",
        "type": "object",
        "if": {"required": ["extends"]},
        "then": loose,
        "else": root,
        "$defs": {
            **_QUANTITIES,
            **models,
            **{f"{name}.Partial": _loosened(model) for name, model in models.items()},
        },
    }


def _tidy(schema: Any) -> Any:
    """Without titles made of names, without `null` for what may be left out, quantities by reference."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _tidy(value) for key, value in schema.items() if not _is_noise(key, value)}
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        schema = {**schema.pop("anyOf")[0], **schema}
    for name, quantity in _QUANTITIES.items():
        if quantity.items() <= schema.items():
            rest = {key: value for key, value in schema.items() if key not in quantity}
            return {"$ref": f"#/$defs/{name}", **rest}
    return schema


def _is_noise(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (
        key == "default" and (value is None or isinstance(value, dict))
    )


def _loosened(schema: Any) -> Any:
    """The schema of a part of a file whose rest stands elsewhere: nothing is required, null removes."""
    if isinstance(schema, list):
        return [_loosened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "if" in schema:
        return {"if": schema["if"], "then": _loosened(schema["then"])}
    loose = {key: _loosened(value) for key, value in schema.items() if key not in ("required", "properties")}
    reference = loose.get("$ref", "")
    if reference and reference.removeprefix("#/$defs/") not in _QUANTITIES:
        loose["$ref"] = f"{reference}.Partial"
    if "properties" in schema:
        loose["properties"] = {
            name: {"anyOf": [_loosened(field), {"type": "null"}]}
            for name, field in schema["properties"].items()
        }
    if isinstance(loose.get("additionalProperties"), dict):
        loose["additionalProperties"] = {"anyOf": [loose["additionalProperties"], {"type": "null"}]}
    return loose
