"""YAML text as a tree of nodes that know where they stand.

All scalars stay text, as PyYAML's BaseLoader reads them: `on`, `no` and `12:30` are what they look like. A
plain `null`, `~` or nothing at all is None. Anchors and aliases work, within a bound; merge keys (`<<`), tags
and several documents in a file are refused: YAML 1.2 has no merge keys, a scenario needs no types of its own,
and a file is one experiment.

The tree is built from PyYAML's events, so that depth and size are bounded before anything grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from weirlab.errors import Problem, ScenarioError

MAX_FILE_BYTES = 1_000_000
MAX_DEPTH = 50
MAX_NODES = 100_000


class Place(NamedTuple):
    """Where something stands; line and column count from 1, 0 when there is no such place."""

    file: str = ""
    line: int = 0
    column: int = 0


NOWHERE = Place()
"""The place of what was made in Python."""


@dataclass(frozen=True)
class Node:
    """A value of a document: None, text, entries by name or items in order.

    `place` is where the value begins, or its key when it is an entry of a mapping.
    """

    value: str | dict[str, Node] | list[Node] | None
    place: Place

    @classmethod
    def of(cls, value: Any, place: Place = NOWHERE) -> Node:
        """Plain data as a tree of which every node stands at `place`. Other scalars become text."""
        match value:
            case _ if hasattr(value, "model_dump"):
                return cls.of(value.model_dump(mode="json", by_alias=True, exclude_none=True), place)
            case Mapping():
                return cls({str(key): cls.of(item, place) for key, item in value.items()}, place)
            case list() | tuple():
                return cls([cls.of(item, place) for item in value], place)
            case None:
                return cls(None, place)
            case bool():
                return cls("true" if value else "false", place)
            case _:
                return cls(str(value), place)

    def plain(self) -> Any:
        """The same without places: None, str, dict and list."""
        match self.value:
            case dict():
                return {key: item.plain() for key, item in self.value.items()}
            case list():
                return [item.plain() for item in self.value]
            case _:
                return self.value

    def entry(self, key: str | int) -> Node | None:
        """The entry or item `key`, if there is one."""
        if isinstance(self.value, dict):
            return self.value.get(str(key))
        if isinstance(self.value, list) and str(key).isdigit() and int(key) < len(self.value):
            return self.value[int(key)]
        return None

    def nearest(self, path: tuple[str | int, ...]) -> Node:
        """The node at `path`, or the last one on the way that exists."""
        node = self
        for key in path:
            found = node.entry(key)
            if found is None:
                break
            node = found
        return node

    def count(self) -> int:
        """Number of nodes of the tree."""
        match self.value:
            case dict():
                return 1 + sum(item.count() for item in self.value.values())
            case list():
                return 1 + sum(item.count() for item in self.value)
            case _:
                return 1


def join_path(path: tuple[str | int, ...]) -> str:
    """A dotted path; names that hold a dot stand in double quotes."""
    return ".".join(f'"{key}"' if "." in str(key) else str(key) for key in path)


def read(path: Path) -> Node:
    """The document in the file `path`. Raises ScenarioError."""
    file = str(path)

    def refused(message: str) -> ScenarioError:
        return ScenarioError([Problem(message, file=file)])

    try:
        if path.is_dir():
            raise refused("this is a directory; name a scenario file (of a result, its scenario.yaml)")
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, ValueError):  # also of a name that no file can have
        raise refused("there is no such file") from None
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise refused(f"larger than {MAX_FILE_BYTES // 1000} kB: this is no scenario file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise ScenarioError(
            [Problem("this is not UTF-8 text; save the file as UTF-8", file=file, line=line, column=column)]
        ) from None
    return parse(text, file)


def parse(text: str, file: str = "") -> Node:
    """The document in `text`. Raises ScenarioError with all faults up to one that ends the reading."""
    composer = _Composer(text, file)
    try:
        root = composer.document()
    except yaml.MarkedYAMLError as error:
        composer.complain(_syntax_message(error), composer.place(error.problem_mark))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(file, before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
        composer.complain(_no_text(chr(error.character)), place)
    except _UnreadableError:
        pass
    if composer.problems:
        raise ScenarioError(composer.problems)
    return root


def _no_text(character: str) -> str:
    return f"the character {character!r} is not possible in a text file"


class _UnreadableError(Exception):
    """Reading cannot go on; the problem is noted."""


class _Composer:
    """Builds the tree of one document and collects its faults."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=yaml.BaseLoader))
        self.anchors: dict[str, Node | None] = {}
        self.nodes = 0

    def place(self, mark: Any) -> Place:
        return Place(self.file, mark.line + 1, mark.column + 1)

    def complain(self, message: str, place: Place) -> None:
        self.problems.append(Problem(message, file=place.file, line=place.line, column=place.column))

    def document(self) -> Node:
        next(self.events)  # StreamStart
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            self.complain(
                "the file is empty; a scenario begins with 'weirlab: 1' and 'name: ...'",
                Place(self.file, 1, 1),
            )
            raise _UnreadableError
        root = self.node(next(self.events), 0)
        next(self.events)  # DocumentEnd
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            self.complain(
                "a second document begins here; a file holds one scenario", self.place(event.start_mark)
            )
        elif not isinstance(root.value, dict):
            self.complain("a scenario is a mapping that begins with 'weirlab: 1' and 'name: ...'", root.place)
        return root

    def node(self, event: Any, depth: int) -> Node:
        place = self.place(event.start_mark)
        self.take(1, place)
        if depth > MAX_DEPTH:
            self.complain(f"nested more than {MAX_DEPTH} deep", place)
            raise _UnreadableError
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, place)
        if event.tag is not None:
            self.complain(f"tags such as '{event.tag}' are not used in scenarios", place)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = Node(self.value(event, depth), place)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            if odd := yaml.reader.Reader.NON_PRINTABLE.search(event.value):  # an escape in quotes
                self.complain(_no_text(odd[0]), self.place(event.start_mark))
                return "?"
            nothing = event.style is None and event.value in ("", "~", "null", "Null", "NULL")
            return None if nothing else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(inner := next(self.events), yaml.SequenceEndEvent):
                items.append(self.node(inner, depth + 1))
            return items
        return self.mapping(depth)

    def mapping(self, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.node(event, depth + 1)
            entry = self.node(next(self.events), depth + 1)
            name = key.value if key.value is not None else "null"
            if not isinstance(name, str):
                self.complain("a name is expected here, not a list or a mapping", key.place)
            elif name == "<<":
                self.complain(
                    "merge keys ('<<') are not used in scenarios; use 'extends: FILE' or an alias", key.place
                )
            elif name in entries:
                first = entries[name].place
                self.complain(f"'{name}' is here twice; first in line {first.line}", key.place)
            else:
                entries[name] = Node(entry.value, key.place)
        return entries

    def alias(self, event: Any, place: Place) -> Node:
        if event.anchor not in self.anchors:
            known = "; text that begins with '*' needs quotes" if not self.anchors else ""
            self.complain(f"there is no anchor '&{event.anchor}' above{known}", place)
            return Node(None, place)
        target = self.anchors[event.anchor]
        if target is None:
            self.complain(f"'*{event.anchor}' contains itself", place)
            return Node(None, place)
        self.take(target.count(), place)
        return target

    def take(self, nodes: int, place: Place) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            self.complain(f"more than {MAX_NODES} values: this is no scenario file", place)
            raise _UnreadableError


_QUOTES = "; put quotes around text that begins with one of @ * & % ! ` or holds [ ] {{ }} , : #"

_HINTS: tuple[tuple[str, str], ...] = (
    (r"found character '\\t'", "there is a tab; indent with spaces"),
    (
        r"found character '(.)' that cannot start",
        "text that begins with '{0}' needs quotes, such as \"{0}...\"",
    ),
    (r"scanning an alias", "text that begins with '*' needs quotes, such as \"*->switch-0\""),
    (
        r"mapping values are not allowed",
        "a ':' is not possible here; check the indentation and the lines before",
    ),
    (r"but got '<stream end>'|unexpected end of stream", "the file ends inside {context}"),
    (r"but got '(.+)'", "'{0}' is not possible inside {context}" + _QUOTES),
    (r"expected <block end>", "the indentation does not fit to the lines before"),
)


def _syntax_message(error: yaml.MarkedYAMLError) -> str:
    """What PyYAML found, in words for the writer of the file."""
    said = f"{error.context or ''}: {error.problem or ''}"
    context = ""
    if error.context_mark is not None:
        thing = (error.context or "").removeprefix("while parsing a ").removeprefix("while scanning a ")
        names = {
            "flow sequence": "the list [...]",
            "flow mapping": "the mapping {...}",
            "quoted scalar": "the quoted text",
        }
        context = f"{names.get(thing, thing)} that begins in line {error.context_mark.line + 1}"
    for pattern, message in _HINTS:
        if match := re.search(pattern, said):
            return message.format(*match.groups(), context=context)
    return f"not YAML: {said.strip(': ')}"
