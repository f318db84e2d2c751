"""The tables of the documentation of scenario files, made from the models.

    python -m weirlab.scenario.reference docs/scenarios.md docs/measures.md

writes anew what stands between a mark and `<!-- end -->`, for every mark in the page:

- `<!-- fields: Run AnySource -->`: the fields of some models, or of those of a union
- `<!-- kinds: AnySource -->`: what a union of models offers, and the fields of each
- `<!-- units: AnyMeasure -->`: measures with their units

and, whatever pages are named, what the shell completes (`weirlab.scenario.completing`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from weirlab import units
from weirlab.fields import base, values
from weirlab.fields.base import Model, Named, kind_of
from weirlab.measures import base as measures, registry
from weirlab.scenario import completing, control, model, network, plan, record, testbeds, traffic
from weirlab.scenario.control import bcn, dcqcn, limiter, qcn
from weirlab.scenario.network import aqm, buffers, classes, delays, events, path, switching
from weirlab.scenario.plan import Level, contest, design, precision
from weirlab.scenario.traffic import controllers, hotspots, messages, probing, rapid, rdma

_MODULES = (
    aqm,
    bcn,
    buffers,
    classes,
    contest,
    control,
    controllers,
    dcqcn,
    delays,
    design,
    events,
    hotspots,
    limiter,
    measures,
    messages,
    model,
    network,
    path,
    precision,
    plan,
    probing,
    qcn,
    rapid,
    rdma,
    record,
    registry,
    switching,
    testbeds,
    traffic,
)

_SCALARS: list[tuple[object, str]] = [
    (units.Span, "time"),
    (values.PositiveSpan, "time > 0"),
    (units.Size, "size"),
    (values.PositiveSize, "size > 0"),
    (units.Rate, "bit rate"),
    (values.PositiveRate, "bit rate > 0"),
    (units.FrameRate, "frame rate"),
    (values.PositiveFrameRate, "frame rate > 0"),
    (values.AnyRate, "bit rate or frame rate"),
    (values.LoadRange, "range of loads"),
    (values.Fraction, "fraction"),
    (values.PositiveFraction, "fraction > 0"),
    (values.Count, "whole number ≥ 1"),
    (values.Natural, "whole number ≥ 0"),
    (values.FrameCount, "whole number ≥ 0"),
    (values.PortNumber, "whole number from 1 to 65535"),
    (values.Number, "number"),
    (values.Flag, "`true` or `false`"),
    (values.Counter, "size > 0 or `none`"),
    (values.Limit, "size, frames or `unlimited`"),
    (values.Threshold, "size or frames"),
    (units.Frames, "frames"),
    (values.Window, "range of times"),
    (values.SizeRange, "range of sizes"),
    (design.Ends, "range of numbers"),
    (precision.AnyHalfWidth, "width"),
    (precision.AnyBound, "value with a unit"),
    (base.Name, "name"),
    (base.TrafficSelector, "traffic"),
    (base.Selector, "nodes"),
    (base.PortSelector, "ports"),
    (traffic.Mix, "`imix`, or sizes with weights"),
    (traffic.FlowEnds, "`a->b`"),
    (str, "text"),
]


def _models() -> dict[str, type[Model]]:
    found = (value for module in _MODULES for value in vars(module).values())
    return {value.__name__: value for value in found if isinstance(value, type) and issubclass(value, Model)}


def _members(alias: str) -> list[type[Model]]:
    """The models of the union `alias`."""
    (union,) = {vars(module)[alias] for module in _MODULES if alias in vars(module)}
    inner = get_args(union)[0]
    return list(get_args(inner)) or [inner]


def _fields(described: type[Model], without: type[Model] = Model) -> Iterator[str]:
    """Rows of a table of fields: name, value, default, meaning. `kind` is left out."""
    hints = get_type_hints(described, include_extras=True)
    rows = []
    for name, field in described.model_fields.items():
        shown = field.alias or name
        if shown == "kind" or name in without.model_fields:
            continue
        value = _value(hints[name], f"{described.__name__}.{shown}")
        meaning = " ".join(described.meaning(name).split())
        rows.append(f"| `{shown}` | {value} | {_default(field)} | {meaning} |")
    if rows:
        yield from ("| field | value | default | meaning |", "|---|---|---|---|", *rows, "")


def _value(hint: object, place: str) -> str:
    """What may stand for a value of this type."""
    for known, text in _SCALARS:
        if hint == known:
            return text
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return "`1`" if arguments[0] == Literal[1] else _value(arguments[0], place)
    if origin in (Union, UnionType):
        members = [member for member in arguments if member is not type(None)]
        if len(members) == 1:
            return _value(members[0], place)
        return ", ".join(f"`{kind_of(member)}`" for member in members)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is Named:
        if arguments[0] == tuple[Level, ...]:
            return "levels by factor"
        if arguments[0] == tuple[str, ...]:
            return "names of levels by factor"
        return f"by name: {_value(arguments[0], place)}"
    if origin is tuple:
        several = "list of" if ... in arguments else "two:"
        return f"{several} {_value(arguments[0], place)}"
    if isinstance(hint, type) and issubclass(hint, Model):
        return f"[{hint.__name__}](#fields-of-{hint.__name__.lower()})"
    raise TypeError(f"no words for the type of {place}: {hint}")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    match field.default:
        case None:
            return ""
        case Named():
            return "none"
        case Model() as value:
            given = {name: getattr(value, name) for name in type(value).model_fields}
            plain = {name: field.default for name, field in type(value).model_fields.items()}
            own = [f"{name}: {_plain(entry)}" for name, entry in given.items() if entry != plain[name]]
            return f"`{{{', '.join(own)}}}`" if own else "defaults"
        case value:
            return f"`{_plain(value)}`"


def _plain(value: object) -> str:
    """A value as a file has it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return str(value)


def _parent(described: type[Model]) -> type[Model]:
    parent = described.__mro__[1]
    assert issubclass(parent, Model)
    return parent


def _summary(described: type[Model]) -> str:
    return " ".join((described.__doc__ or "").split()).replace("|", r"\|")


def _named(names: str) -> Iterator[type[Model]]:
    models = _models()
    for name in names.split():
        yield from [models[name]] if name in models else _members(name)


def _field_block(names: str) -> Iterator[str]:
    for described in _named(names):
        name = described.__name__
        kind = f" (`kind: {kind_of(described)}`)" if "kind" in described.model_fields else ""
        yield f'<a id="fields-of-{name.lower()}"></a>**{name}**{kind}: {_summary(described)}'
        yield ""
        yield from _fields(described)


def _kind_block(alias: str) -> Iterator[str]:
    members = _members(alias)
    by_kind = "kind" in members[0].model_fields
    yield from (f"| {'kind' if by_kind else 'field'} | what it is |", "|---|---|")
    for member in members:
        yield f"| `{kind_of(member)}` | {_summary(member)} |"
    yield ""
    shared = {parent: None for member in members if (parent := _parent(member)).model_fields}
    for parent in shared:
        heirs = [f"`{kind_of(member)}`" for member in members if issubclass(member, parent)]
        yield f"Fields of {', '.join(heirs)}:"
        yield ""
        yield from _fields(parent)
    for member in members:
        rows = list(_fields(member, without=_parent(member)))
        if rows:
            yield f"Fields of `{kind_of(member)}`:"
            yield ""
            yield from rows


def _unit_block(alias: str) -> Iterator[str]:
    yield from ("| kind | unit | definition |", "|---|---|---|")
    for measure in _members(alias):
        assert issubclass(measure, measures.Measure), "only measures have units"
        yield f"| `{kind_of(measure)}` | {measure.UNIT} | {_summary(measure)} |"
    yield ""


def _block(mark: str, what: str) -> str:
    blocks = {"fields": _field_block, "kinds": _kind_block, "units": _unit_block}
    return "\n".join(blocks[mark](what))


_MARKED = re.compile(r"(<!-- (fields|kinds|units): ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rewritten(page: str) -> str:
    """The page with all its tables made anew."""
    return _MARKED.sub(lambda match: f"{match[1]}{_block(match[2], match[3])}{match[4]}", page)


def described_models(page: str) -> set[str]:
    """Names of the models that the page describes."""
    found: set[str] = set()
    for _, mark, what, _ in _MARKED.findall(page):
        found |= {model.__name__ for model in (_named(what) if mark == "fields" else _members(what))}
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(rewritten(Path(name).read_text()))
    completing.FILE.write_text(completing.text(), encoding="utf-8")
