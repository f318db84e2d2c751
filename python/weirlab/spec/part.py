"""What all classes of the spec have in common: frozen fields, where they come from, and their JSON.

These are no dataclasses: a hundred of those take 45 ms to define, these 2 ms, and every command waits for it.
Type checkers see them as dataclasses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

Where = tuple[str | int, ...]
"""A path in a scenario, such as `("queues", "ports", "limit")`."""


class At:
    """Where in the scenario a part of the spec comes from, and its fields.

        At("traffic", "load", start_ps="start", frame_size=("source", "frame_size"))

    A field comes from the path of the part, and then that of the field. One that is not named comes from the
    field of the scenario that is called like it, but for its unit (`start_ps` from `start`), and where there
    is none from the part as a whole.
    """

    __slots__ = ("fields", "path")

    def __init__(self, *path: str | int, **fields: str | Where) -> None:
        self.path: Where = path
        self.fields: Mapping[str, Where] = {
            name: (*path, at) if isinstance(at, str) else (*path, *at) for name, at in fields.items()
        }

    def __repr__(self) -> str:
        return f"At{self.path}"


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Frozen:
    """Fields by name alone, which do not change."""

    # Where it comes from lies beside the fields, so that these are the JSON as they are.
    __slots__ = ("__dict__", "origin")

    _defaults: ClassVar[Mapping[str, Any]] = {}
    _names: ClassVar[frozenset[str]] = frozenset()
    _renamed: ClassVar[bool] = False

    def __init__(self, *, origin: At | None = None, **fields: Any) -> None:
        """Raises TypeError for a field that is missing, or that there is not."""
        cls = type(self)
        if cls._defaults:
            fields = {**cls._defaults, **fields}
        names = cls._names
        if fields.keys() != names or (origin is not None and not origin.fields.keys() <= names):
            given = set(fields) | (set() if origin is None else set(origin.fields))
            what, amiss = ("has no", given - names) if given - names else ("lacks", names - given)
            raise TypeError(f"{cls.__name__} {what} {', '.join(sorted(amiss))}")
        object.__setattr__(self, "origin", origin)
        self.__dict__.update(fields)

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        names = own.get("__annotations__", ())
        cls._names |= frozenset(names)
        cls._defaults = {**cls._defaults, **{name: own[name] for name in names if name in own}}
        cls._renamed |= any(name.endswith("_") for name in names)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make another one (got {name} = {value!r})")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name}")


class Part(_Frozen):
    """A part of a spec. Parts are equal when their fields are, wherever they come from."""

    __slots__ = ()

    if TYPE_CHECKING:
        origin: At | None = None
        """Where it comes from; None: from what it is a part of."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def json(self) -> str:
        """The part as the compiled core takes it."""
        return json.dumps(self, default=_fields, check_circular=False)


def _fields(part: object) -> dict[str, Any]:
    """The fields of a part as they are called in JSON."""
    if not isinstance(part, Part):
        raise TypeError(f"{part!r} has no form in a spec")
    fields = vars(part)
    return {name.rstrip("_"): value for name, value in fields.items()} if part._renamed else fields


_UNITS = ("_ps", "_bps", "_bytes", "_frames", "_packets", "_rounds", "_segments")


def _own(name: str, fields: Collection[str]) -> Where:
    """The field of the scenario that is called like one of the spec, but for its unit; none: nothing."""
    units = [unit for unit in _UNITS if name.endswith(unit)]
    names = (name.rstrip("_"), *(name.removesuffix(unit) for unit in units))
    return next(((each,) for each in names if each in fields), ())


def origin_of(part: Part, pointer: str, fields: Callable[[Where], Collection[str]] = lambda _: ()) -> Where:
    """Where in the scenario that comes from which stands at the JSON `pointer` in a part; `fields` gives the
    names of the fields that the scenario has at a path."""
    value: object = part
    found: Where = ()
    for step in (*pointer.split("/")[1:], None):
        if isinstance(value, Part):
            origin = value.origin
            name = f"{step}_" if value._renamed and f"{step}_" in value._names else step
            if origin is not None:
                found = origin.path
                if name is not None:
                    found = origin.fields.get(name) or (*found, *_own(name, fields(found)))
            value = None if name is None else getattr(value, name, None)
        elif isinstance(value, (list, tuple)) and step is not None and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            break
    return found
