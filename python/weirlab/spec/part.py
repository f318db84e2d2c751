"""What all classes of the spec have in common: frozen fields, where they come from, and their JSON.

These are no dataclasses: a hundred of those take 45 ms to define, these 2 ms, and every command waits for it.
Type checkers see them as dataclasses.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform, overload

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

    _defaults: ClassVar[Mapping[str, object]] = {}
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
        return json_of(self)


def json_of(parts: object) -> str:
    """A part, or several in a list, as the compiled core takes them."""
    return json.dumps(parts, default=_fields, check_circular=False)


class Runs(Sequence[int]):
    """Ids of which most follow one another, in their order, as few ranges in memory and in JSON. All hosts
    but one are two, also where there are thousands."""

    __slots__ = ("_ranges",)

    def __init__(self, ids: Iterable[int]) -> None:
        if isinstance(ids, Runs):
            self._ranges: tuple[range, ...] = ids._ranges
            return
        ranges: list[range] = []
        for each in ids:
            if ranges and ranges[-1].stop == each:
                ranges[-1] = range(ranges[-1].start, each + 1)
            else:
                ranges.append(range(each, each + 1))
        self._ranges = tuple(ranges)

    def without(self, absent: int) -> Runs:
        """The same without one of them."""
        rest = Runs(())
        parts = (
            (range(run.start, absent), range(absent + 1, run.stop)) if absent in run else (run,)
            for run in self._ranges
        )
        rest._ranges = tuple(part for both in parts for part in both if part)
        return rest

    def entries(self) -> list[int | list[int]]:
        """Ids, and pairs of the first and the last of three and more, as the compiled core writes them."""
        found: list[int | list[int]] = []
        for run in self._ranges:
            found += [[run[0], run[-1]]] if len(run) > 2 else run
        return found

    def __len__(self) -> int:
        return sum(map(len, self._ranges))

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(self._ranges)

    def __contains__(self, each: object) -> bool:
        return any(each in run for run in self._ranges)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            return tuple(self)[place]
        left = place + len(self) if place < 0 else place
        for run in self._ranges:
            if 0 <= left < len(run):
                return run[left]
            left -= len(run)
        raise IndexError(f"no place {place} among {len(self)} ids")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Runs):
            return self._ranges == other._ranges
        return (
            isinstance(other, (list, tuple))
            and len(other) == len(self)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Runs({self.entries()})"


def _fields(part: object) -> dict[str, object] | list[int | list[int]]:
    """The fields of a part as they are called in JSON."""
    if isinstance(part, Part):
        fields = vars(part)
        return {name.rstrip("_"): value for name, value in fields.items()} if part._renamed else fields
    if isinstance(part, Runs):
        return part.entries()
    raise TypeError(f"{part!r} has no form in a spec")


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
        elif isinstance(value, (list, tuple, Runs)) and step is not None and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            break
    return found
