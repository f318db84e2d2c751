"""What pydantic found, in words for the writer of a file: where, what is wrong, what was meant perhaps."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError

from weirlab.errors import Problem
from weirlab.fields.base import Model, OpenKinds, kind_of
from weirlab.foreign import kinds
from weirlab.scenario.file.document import Node, join_path

Path = tuple[str | int, ...]

INSTEAD: Mapping[str, str] = {
    "throughput": "throughput is what a search finds (RFC 1242); the rate that arrives is 'delivered-rate'",
    "pfc": "priority flow control is 'lossless: {}' of a pool in 'buffers' (`weir scenarios pfc` shows one); "
    "'control: {pause: ...}' holds all frames of a link (IEEE 802.3 Annex 31B)",
    "red": "RED is the kind 'red' of a queue; 'marking' of a queue marks frames between two lengths of it",
    "leaf-spine": "a leaf-spine is the kind 'xgft': 'children: [8, 4], parents: [1, 4]' has 8 hosts at each "
    "of 4 leaves, and 4 spines",
    "drr": "queues of the kind 'classes' serve traffic classes by priority and weights (deficit round "
    "robin); 'fq-codel' serves flows in turns",
    "events": "what happens during a run is described in 'events': links that go down, rates, buffers "
    "and holds that change",
}
"""What there is instead of fields and kinds that people look for, by their word."""
_SYNONYMS: Mapping[str, str] = {
    "priority_flow_control": "pfc",
    "priority-flow-control": "pfc",
    "leafspine": "leaf-spine",
    "spine-leaf": "leaf-spine",
    "wred": "red",
    "dwrr": "drr",
    "wrr": "drr",
    "wfq": "drr",
    "ets": "drr",
    "scheduler": "drr",
    "schedulers": "drr",
    "event": "events",
    "failures": "events",
    "schedule": "events",
}


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when something known is near, else nothing."""
    near = _nearest(given, known)
    return f"; did you mean '{near}'?" if near else ""


def unknown(name: str, known: Collection[str]) -> str:
    """That there is nothing of a name, what is near, and what there is."""
    return f"no {name!r}{did_you_mean(name, known)}. There are {', '.join(known) or 'none'}".replace(
        "?.", "?"
    )


def with_words_of(given: str, known: Iterable[str]) -> list[str]:
    """Those known that share a word with what was given, where words are parted by hyphens and the like."""
    words = {word for word in re.split(r"[^a-z0-9]+", given.lower()) if len(word) > 2}
    return [name for name in known if words & set(re.split(r"[^a-z0-9]+", name.lower()))]


def _nearest(given: str, known: Iterable[str]) -> str:
    by_case = {name.lower(): name for name in known}
    if len(longer := [name for name in by_case if re.split(r"[-_]", name)[0] == given.lower()]) == 1:
        return by_case[longer[0]]
    near = difflib.get_close_matches(given.lower(), list(by_case), n=1, cutoff=0.6)
    return by_case[near[0]] if near else ""


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names with commas, the first `most` of them."""
    names = list(names)
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def explain(error: ValidationError, root: type[Model], tree: Node) -> list[Problem]:
    """Every fault of `error` with its place in `tree`, which was read as `root`."""
    found = _without_names(error.errors(include_url=False), root)
    unknown = [fault for fault in found if fault["type"] == "extra_forbidden"]
    misspelt = {(*fault["loc"][:-1], _nearest_field(fault, root)) for fault in unknown}
    missing = [fault for fault in found if fault["type"] == "missing"]
    # One problem where a field has a wrong name, not one more for the field that was meant.
    lacks: dict[Path, list[str]] = {fault["loc"][:-1]: [] for fault in unknown}
    for fault in missing:
        loc = fault["loc"]
        if loc not in misspelt and loc[:-1] in lacks:
            lacks[loc[:-1]].append(f"'{loc[-1]}' is missing{_meaning(fault, root)}")
    reported = [
        fault
        for fault in found
        if not (fault["type"] == "missing" and fault["loc"][:-1] in lacks)
        and not (fault["type"] == "too_short" and _has_faulty_items(fault, found))
    ]
    return [
        _problem(fault, root, tree, lacks.pop(fault["loc"][:-1], []) if fault in unknown else [])
        for fault in reported
    ]


def _has_faulty_items(fault: Any, found: Iterable[Any]) -> bool:
    """Whether a list that is too short has items that are not counted, as they have faults of their own."""
    loc = fault["loc"]
    return any(each["loc"][: len(loc)] == loc for each in found if each is not fault)


def _without_names(found: Iterable[Any], root: type[Model]) -> list[Any]:
    """The faults; the first of those of entries that are fields, written without the name of an entry."""
    kept, nameless = [], set()
    for fault in found:
        loc = fault["loc"]
        is_field = fault["type"] == "union_tag_not_found" and not isinstance(fault["input"], dict)
        if is_field and loc[-1] in fields_at(root, loc):
            if loc[:-1] in nameless:
                continue
            nameless.add(loc[:-1])
        kept.append(fault)
    return kept


def _nearest_field(fault: Any, root: type[Model]) -> str:
    """The field that an unknown one was perhaps meant to be."""
    if fault["type"] != "extra_forbidden":
        return ""
    return _nearest(str(fault["loc"][-1]), fields_at(root, fault["loc"][:-1]))


def _problem(fault: Any, root: type[Model], tree: Node, lacks: list[str]) -> Problem:
    path = tuple(item for item in fault["loc"] if not _is_tag(item))
    while path and isinstance(path[-1], int) and tree.nearest(path[:-1]).entry(path[-1]) is None:
        path = path[:-1]
    message = _message(fault, root, path, tree)
    message = "; ".join([message, *lacks])
    if fault["type"] == "union_tag_invalid":
        path = (*path, "kind")
    place = tree.nearest(path).place
    return Problem(message, path=join_path(path), file=place.file, line=place.line, column=place.column)


def _is_tag(item: str | int) -> bool:
    return isinstance(item, str) and (item == "[key]" or (item.startswith("<") and item.endswith(">")))


def _message(fault: Any, root: type[Model], path: Path, tree: Node) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            return _unknown_field(fault, root, path, tree)
        case "missing":
            return f"is missing{_meaning(fault, root)}"
        case "union_tag_invalid":
            return _unknown_kind(context, _opened(_annotation_at(root, fault["loc"])))
        case "union_tag_not_found":
            return _no_kind(fault, root)
        case "literal_error":
            known = [text.strip("'") for text in context["expected"].replace(" or ", ", ").split(", ")]
            got = shown(fault["input"])
            return f"write {_one_of(known)} (got {got}){did_you_mean(str(fault['input']), known)}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"a mapping is expected here{_meaning(fault, root)} (got {shown(fault['input'])})"
        case "tuple_type" | "list_type":
            return f"a list is expected here, such as [a, b] (got {shown(fault['input'])})"
        case "too_short" | "too_long":
            return f"{context.get('actual_length', 0)} items are here; {_bound(context)}"
        case "less_than":
            return f"less than {context['lt']} is needed (got {shown(fault['input'])})"
        case "value_error":
            return f"{context['error']}"
        case _:
            return f"{fault['msg']} (got {shown(fault['input'])})"


def shown(value: object) -> str:
    """A value as a message shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return f"a mapping with {listed(map(str, value), 4)}" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"'{value}'"


def _bound(context: Any) -> str:
    if "max_length" in context:
        return f"at most {context['max_length']} may"
    return f"at least {context['min_length']} must"


def _one_of(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _unknown_field(fault: Any, root: type[Model], path: Path, tree: Node) -> str:
    known = fields_at(root, fault["loc"][:-1])
    if len(path) == 1:
        known.append("extends")
    name, given = str(path[-1]), fault["input"]
    kind = given.get("kind") if isinstance(given, dict) else None
    # A field that is there already was hardly meant once more.
    written = tree.nearest(path[:-1]).plain() or ()
    hint = (
        _instead(name)
        or _instead(str(kind))
        or did_you_mean(name, [field for field in known if field not in written])
        or f"; fields here: {', '.join(known)}"
    )
    return f"unknown field (got {shown(given)}){hint}"


def _instead(word: str) -> str:
    word = word.lower()
    said = INSTEAD.get(_SYNONYMS.get(word, word), "")
    return f"; {said}" if said else ""


def _unknown_kind(context: Any, opened: OpenKinds | None) -> str:
    kind = context["tag"].strip("<>")
    known = [tag.strip("'<> ") for tag in context["expected_tags"].split(",")]
    known += [] if opened is None else [added for added in kinds(opened.group) if added not in known]
    hint = _instead(kind) or did_you_mean(kind, known)
    text = f"unknown kind '{kind}'{hint}; kinds: {', '.join(known)}"
    if opened is None or hint:
        return text
    return (
        f"{text}; packages can add more (entry points of the group '{opened.group}'), and none installed "
        f"adds '{kind}': if it comes from one, install that"
    )


def _no_kind(fault: Any, root: type[Model]) -> str:
    models = _models(_annotation_at(root, fault["loc"]))
    known = [kind_of(model) for model in models]
    if not isinstance(fault["input"], dict):
        if fault["loc"][-1] in fields_at(root, fault["loc"]):
            parent, name = fault["loc"][-2], fault["loc"][-1]
            return f"entries have names: write '{parent}: {{NAME: {{{name}: ..., ...}}}}'"
        return f"a mapping is expected here, such as {{kind: {known[0]}, ...}} (got {shown(fault['input'])})"
    if any("kind" in model.model_fields for model in models):
        return f"say which kind, such as 'kind: {known[0]}'; kinds: {', '.join(known)}"
    near = next((hint for key in fault["input"] if (hint := did_you_mean(str(key), known))), "")
    return f"say what, with one of the fields {', '.join(known)}{near}"


def _meaning(fault: Any, root: type[Model]) -> str:
    """What a field is for: the first sentence of its description."""
    owner, name = _field_at(root, fault["loc"])
    sentence = owner.meaning(name).replace("\n", " ").split(". ")[0].rstrip(".") if owner is not None else ""
    examples = _examples(owner.model_fields[name]) if owner is not None else []
    example = f", such as '{examples[0]}'" if examples else ""
    return (f": {sentence[0].lower()}{sentence[1:]}" if sentence else "") + example


def _examples(field: Any) -> list[Any]:
    if field.examples:
        return list(field.examples)
    for candidate in (field.annotation, *get_args(field.annotation)):
        if examples := getattr(candidate, "examples", None):
            return list(examples)
    return []


def fields_at(root: type[Model], loc: Path) -> list[str]:
    """Names of the fields that may stand at `loc` (tags of unions included)."""
    models = _models(_annotation_at(root, loc))
    return list(dict.fromkeys(field.alias or name for m in models for name, field in m.model_fields.items()))


def names_at(root: type[Model], path: Path) -> list[str] | None:
    """Names of the fields that may stand at `path`; None where entries have names of their own."""
    fields = fields_at(root, path)
    return fields or None


def fields_by_kind(root: type[Model], path: Path) -> dict[str, set[str]]:
    """Names of the fields that each kind has of what may stand at `path`."""
    return {
        kind_of(model): {field.alias or name for name, field in model.model_fields.items()}
        for model in _models(_annotation_at(root, path))
        if "kind" in model.model_fields
    }


def _field_at(root: type[Model], loc: Path) -> tuple[type[Model] | None, str]:
    """The model and the field that the end of `loc` names; None when that is an entry or an item."""
    for model in _models(_annotation_at(root, loc[:-1])):
        for name, field in model.model_fields.items():
            if (field.alias or name) == loc[-1]:
                return model, name
    return None, ""


def _annotation_at(root: type[Model], loc: Path) -> Any:
    """The type of what stands at `loc`."""
    current: Any = root
    for item in loc:
        if _is_tag(item):
            chosen = [m for m in _models(current) if f"<{kind_of(m)}>" == item]
            current = chosen[0] if chosen else _added(current, str(item)) or current
            continue
        current = _step(current, item)
    return current


def _added(annotation: Any, tag: str) -> type[Model] | None:
    """The model that another package adds to a union."""
    opened = _opened(annotation)
    return None if opened is None else opened.model(tag.strip("<>"))


def _opened(annotation: Any) -> OpenKinds | None:
    """What marks a union to which other packages add."""
    return next((mark for mark in get_args(annotation) if isinstance(mark, OpenKinds)), None)


def _step(annotation: Any, item: str | int) -> Any:
    """The type of the entry `item` of something of type `annotation`."""
    for model in _models(annotation):
        for name, field in model.model_fields.items():
            if (field.alias or name) == item:
                return _marked(field)
    for part in _parts(annotation):
        if (inner := get_args(part)) and not isinstance(part, type):
            return inner[0] if len(inner) <= 2 else inner[-1]
    return None


def _marked(field: Any) -> Any:
    """The type of a field with what marks it, which pydantic keeps apart."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _parts(annotation: Any) -> list[Any]:
    """The members of a union, with what annotates them taken away."""
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [part for member in get_args(annotation) for part in _parts(member)]
    return [annotation]


def _models(annotation: Any) -> list[type[Model]]:
    return [part for part in _parts(annotation) if isinstance(part, type) and issubclass(part, Model)]
