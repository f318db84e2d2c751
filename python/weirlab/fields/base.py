"""What all scenario models share: frozen, closed to unknown fields, unions by `kind`, entries by name.

One file: models, unions and selectors are read by the same validators.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weirlab.errors import UnitError, WeirlabError
from weirlab.foreign import NO_FAULT, fault, point_of

V = TypeVar("V")


_built: ContextVar[type[Model] | None] = ContextVar("_built", default=None)


class Late:
    """Reads values of a model by its own validator, which is built when there is one to read: most files have
    few of the parts that there are, and to build all of them takes a tenth of a short run."""

    def __init__(self, model: type[Model]) -> None:
        self.model = model

    def __call__(self, value: object) -> object:
        return self.model.__pydantic_validator__.validate_python(value)


class Model(BaseModel):
    """A part of a scenario: immutable, with no field that is not described."""

    # Docstrings of fields are read when they are asked for (`meaning`), validators built when they are used:
    # to do it for each class would cost every command a third of a second.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        """Build the validator of this model, without those of the models in it."""
        outer = _built.set(cls)
        try:
            return super().model_rebuild(**options)
        finally:
            _built.reset(outer)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _built.get() is cls:
            return handler(source)
        return core_schema.no_info_plain_validator_function(Late(cls))

    def has_default(self, field: str) -> bool:
        """Whether a field has the value that it has when it is left out, written in the file or not: a
        scenario that is saved in full is judged as the file that it was. True where there is no such field.
        """
        known = type(self).model_fields.get(field)
        return known is None or getattr(self, field) == known.get_default(call_default_factory=True)

    def __dir__(self) -> Iterable[str]:
        """What a part is made of, without what pydantic adds for itself."""
        added = set(dir(BaseModel))
        return [name for name in super().__dir__() if name.startswith("__") or name not in added]

    @classmethod
    def meaning(cls, field: str) -> str:
        """What a field is for: the text below it in the class, or in the one that it comes from; empty where
        there is none."""
        for owner in cls.__mro__:
            if issubclass(owner, Model):
                texts = _texts(owner.__module__)
                if text := texts.get((owner.__qualname__, field)):
                    return text
        return ""


@cache
def _texts(module: str) -> Mapping[tuple[str, str], str]:
    """The texts below the fields of all classes of a module, by class and field."""
    texts = {}
    for owner in ast.parse(inspect.getsource(sys.modules[module])).body:
        if not isinstance(owner, ast.ClassDef):
            continue
        for field, text in itertools.pairwise(owner.body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                texts[owner.name, field.target.id] = inspect.cleandoc(text.value.value)
    return texts


@functools.cache
def kind_of(model: type[Model]) -> str:
    """The `kind` that chooses `model` in a union, or for models without one the field that does."""
    if "kind" in model.model_fields:
        return str(get_args(model.model_fields["kind"].annotation)[0])
    return next(iter(model.model_fields))


class _Chosen:
    """How pydantic tells the models of a union apart. A kind alone, as `reno`, is short for `{kind: reno}`,
    in unions of which some model needs nothing else.

    Tags are written `<kind>`, so that they can be told from fields in the place of an error.
    """

    def __init__(self, *, by_field: bool) -> None:
        self.by_field = by_field

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        models = get_args(source) or (source,)
        kinds = [kind_of(model) for model in models]

        def choose(value: object) -> str | None:
            if isinstance(value, Model):
                return f"<{kind_of(type(value))}>"
            if not isinstance(value, Mapping):
                return None
            if self.by_field:
                return next((f"<{kind}>" for kind in kinds if kind in value), None)
            return f"<{value['kind']}>" if isinstance(value.get("kind"), str) else None

        choices = {
            f"<{kind}>": handler.generate_schema(model) for kind, model in zip(kinds, models, strict=True)
        }
        # A value is written as the model that it is.
        as_it_is = core_schema.simple_ser_schema("any")
        union: CoreSchema = core_schema.tagged_union_schema(choices, choose, serialization=as_it_is)
        if not self._has_short(models):
            return union
        return core_schema.no_info_before_validator_function(
            lambda value: {"kind": value} if isinstance(value, str) else value, union
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """A chain of `if kind ... then`, so that an editor judges an entry as the kind that it says it is."""
        has_short = schema["type"] != "tagged-union"
        union = schema["schema"] if has_short else schema
        choices = handler(union)["oneOf"]
        kinds = [tag.strip("<>") for tag in union["choices"]]
        rules = [
            {"if": self._says(kind), "then": choice} for kind, choice in zip(kinds, choices, strict=True)
        ]
        if self.by_field:
            return {"type": "object", "allOf": rules, "anyOf": [{"required": [kind]} for kind in kinds]}
        whole = {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"enum": kinds}},
            "allOf": rules,
        }
        return {"anyOf": [whole, {"enum": kinds}]} if has_short else whole

    def _has_short(self, models: Iterable[type[Model]]) -> bool:
        if self.by_field:
            return False
        fields = [[field for name, field in m.model_fields.items() if name != "kind"] for m in models]
        return any(not any(field.is_required() for field in of_model) for of_model in fields)

    def _says(self, kind: str) -> JsonSchemaValue:
        if self.by_field:
            return {"required": [kind]}
        return {"required": ["kind"], "properties": {"kind": {"const": kind}}}


BY_KIND = _Chosen(by_field=False)
"""Marks a union of models that `kind` tells apart."""
BY_FIELD = _Chosen(by_field=True)
"""Marks a union of models that are told apart by the first field of each."""


class OpenKinds(_Chosen):
    """Marks a union of models that `kind` tells apart, to which other packages add: the entry points of a
    group name their models by kind. They are looked for when a kind is unknown, and only then."""

    def __init__(self, group: str, *bases: type[Model]) -> None:
        """Args:
        bases: What a model of another package is a subclass of: one of them.
        """
        super().__init__(by_field=False)
        self.group, self.bases = group, bases

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        known = {kind_of(model): model for model in get_args(source)}
        union = super().__get_pydantic_core_schema__(source, handler)

        def read(value: object, own: ValidatorFunctionWrapHandler) -> object:
            kind = kind_of(type(value)) if isinstance(value, self.bases) else _kind_in(value)
            if kind is None or kind in known or (model := self.model(kind)) is None:
                return own(value)
            try:
                return _reader(model).validate_python(value)
            except (ValidationError, WeirlabError, *NO_FAULT):
                raise
            except BaseException as error:
                raise UnitError(fault(self.group, kind, "reading the fields", error)) from error

        return core_schema.no_info_wrap_validator_function(read, union)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return super().__get_pydantic_json_schema__(schema["schema"], handler)

    def model(self, kind: str) -> type[Model] | None:
        """The model of a kind that another package adds. Raises UnitError where it is none."""
        return _added(self.group, self.bases, kind)


def _kind_in(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, Mapping) else value
    return kind if isinstance(kind, str) else None


@cache
def _added(group: str, bases: tuple[type[Model], ...], kind: str) -> type[Model] | None:
    if (found := offered(group, kind)) is None:
        return None
    source, model = found
    wanted = " or ".join(base.__name__ for base in bases)
    if not (isinstance(model, type) and issubclass(model, bases)):
        raise UnitError(f"{source} is no subclass of {wanted}: the package that it is in has to derive it so")
    declared = model.model_fields.get("kind")
    if declared is None or get_args(declared.annotation) != (kind,):
        raise UnitError(f"{source} needs a field 'kind: Literal[\"{kind}\"]', as its entry point has it")
    return model


def offered(group: str, name: str) -> tuple[str, object] | None:
    """What another package offers under a name by an entry point of the group, behind words for its source;
    None where none does. Raises UnitError where it cannot be loaded."""
    if (point := point_of(group, name)) is None:
        return None
    try:
        return f"'{point.value}', which an entry point of the group '{group}' names,", point.load()
    except NO_FAULT:
        raise
    except BaseException as error:
        raise UnitError(fault(group, name, f"loading '{point.value}'", error)) from error


@cache
def _reader(model: type[Model]) -> TypeAdapter[object]:
    tagged: Any = Annotated[model, BY_KIND]
    return TypeAdapter(tagged)


class Named(Mapping[str, V]):
    """Immutable entries by name, in the order of the file."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, V] | None = None) -> None:
        self._entries: dict[str, V] = dict(entries or {})

    def __getitem__(self, name: str) -> V:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        """Order counts: later rules replace earlier ones."""
        return isinstance(other, Named) and list(self._entries.items()) == list(other._entries.items())

    def __hash__(self) -> int:
        return hash(tuple(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return (Named, (self._entries,))

    @classmethod
    def _validated(cls, given: object, validate: ValidatorFunctionWrapHandler) -> Named[V]:
        """The entries; those that are legal already stay as they are."""
        if not isinstance(given, Named):
            return cls(validate(given))
        entries = validate(given._entries)
        same = all(entry is given._entries.get(name) for name, entry in entries.items())
        return given if same and len(entries) == len(given) else cls(entries)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        (value,) = get_args(source)
        entries = core_schema.dict_schema(handler.generate_schema(Name), handler.generate_schema(value))
        return core_schema.no_info_wrap_validator_function(
            cls._validated,
            entries,
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda named, serialize: serialize(named._entries), schema=entries
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        (entry,) = handler(schema)["patternProperties"].values()
        names = {"pattern": f"^{_NAME.pattern}$"}
        return {"type": "object", "propertyNames": names, "additionalProperties": entry}


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_GLOB = r"(@[A-Za-z]*|[A-Za-z0-9_*?\[\]-]+)"


def _read_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        shown = (
            "nothing"
            if value is None or value == ""
            else "a mapping"
            if isinstance(value, dict)
            else "a list"
        )
        raise UnitError(f"write some text (got {shown})")
    return value


def _read_name(value: object) -> str:
    text = _read_text(value)
    if not _NAME.fullmatch(text):
        raise UnitError(f"a name is made of letters, digits, '-' and '_' (got '{text}')")
    return text


def _read_selector(value: object) -> tuple[str, ...]:
    return _read_patterns(value, ports=False)


def _read_port_selector(value: object) -> tuple[str, ...]:
    return _read_patterns(value, ports=True)


def _read_patterns(value: object, *, ports: bool) -> tuple[str, ...]:
    what = (
        "ports as 'switch-0->host-3', '@switches->*'" if ports else "nodes as 'host-3', 'ep-[0-3]', '@hosts'"
    )
    items = value if isinstance(value, list | tuple) else [value]
    if not items:
        raise UnitError(f"name {what} or a list of them (got an empty list)")
    shape = re.compile(rf"\s*{_GLOB}\s*->\s*{_GLOB}\s*" if ports else rf"\s*{_GLOB}\s*")
    texts = []
    for item in items:
        if not isinstance(item, str) or not shape.fullmatch(item):
            shown = f"'{item}'" if isinstance(item, str) else "nothing" if item is None else "no text"
            raise UnitError(f"name {what} or a list of them (got {shown})")
        texts.append(re.sub(r"\s", "", item))
    return tuple(texts)


_ONE_OR_LIST = PlainSerializer(lambda patterns: patterns[0] if len(patterns) == 1 else list(patterns))


def _selector_schema(example: list[str]) -> WithJsonSchema:
    text = {"type": "string", "minLength": 1}
    return WithJsonSchema(
        {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}], "examples": example}
    )


def _read_traffic_selector(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    shape = re.compile(r"[A-Za-z0-9_*?\[\]-]+")
    if not items or not all(isinstance(item, str) and shape.fullmatch(item) for item in items):
        shown = f"'{value}'" if isinstance(value, str) else "nothing" if not value else "a list"
        raise UnitError(f"name entries of 'traffic', such as 'load' or '*', or a list of them (got {shown})")
    return tuple(items)


Text = Annotated[str, BeforeValidator(_read_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""Any text but none at all."""


class NamesFile:
    """Marks text that names a file or a directory, relative to the scenario file."""


File = Annotated[Text, NamesFile()]
"""The name of a file, or of a directory."""
Name = Annotated[
    str,
    BeforeValidator(_read_name),
    WithJsonSchema({"type": ["string", "integer"], "pattern": f"^{_NAME.pattern}$"}),
]
"""Letters, digits, `-` and `_`; no dots, as names are parts of dotted paths."""
Selector = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_selector),
    _ONE_OR_LIST,
    _selector_schema(["ep-4", "edge-*", "ep-[0-3]", "@hosts"]),
]
"""Nodes: a name, a glob, `@hosts`, `@switches`, or a list of these."""
TrafficSelector = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_traffic_selector),
    _ONE_OR_LIST,
    _selector_schema(["load", "*"]),
]
"""Entries of `traffic`: a name, a glob, or a list of these."""
PortSelector = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_port_selector),
    _ONE_OR_LIST,
    _selector_schema(["switch-0->host-3", "@switches->*"]),
]
"""Ports: `a->b`, the transmitter of a towards b, with globs on both sides, or a list of these."""
