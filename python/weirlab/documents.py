"""Documents of JSON values that come from outside: files, programs, other processes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def typed(kind: type[T], document: object) -> T:
    """A document as a dataclass or a typed dictionary. Raises ValueError, which names what is wrong."""
    from pydantic import ValidationError

    try:
        found: T = _reader(cast(Hashable, kind)).validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']} (got {str(first['input'])[:80]})") from error
    return found


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def fields_of(of: object, *names: str) -> dict[str, Any]:
    """Attributes of an object by their names, for a document or a table that calls them so, too."""
    return {name: getattr(of, name) for name in names}


def section(document: object, *names: str) -> Mapping[str, object]:
    """The mapping within a document that has these names on the way to it; empty where there is none."""
    for name in names:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def over(mine: Mapping[str, object], below: object) -> Mapping[str, object]:
    """What a mapping says, over what another says below it."""
    if not isinstance(below, Mapping):
        return mine
    own = {
        name: over(value, below.get(name)) if isinstance(value, Mapping) else value
        for name, value in mine.items()
    }
    return {**below, **own}
