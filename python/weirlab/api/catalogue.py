"""`weirlab.scenarios`: the ready-made scenarios, by what they show."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

from weirlab.documents import over, section
from weirlab.errors import InputError
from weirlab.scenario.file.ready import ready_made

Kind = Literal["run", "search", "bulk", "emulate"]

_LOSSES = "Loads, queues and losses"
_TCP = "TCP and Rapid"
_CONTROL = "Congestion notification and PAUSE"
_HOTSPOTS = "Hotspots"
_OF_KIND = {
    "search": "The rates that a device carries",
    "bulk": "Bulk data over a path",
    "emulate": "Real programs over an emulated path",
}
TOPICS = (_LOSSES, _OF_KIND["search"], _TCP, _OF_KIND["bulk"], _OF_KIND["emulate"], _CONTROL, _HOTSPOTS)
"""What scenarios show, in the order of the list."""


@dataclass(frozen=True)
class ReadyMade:
    """A ready-made scenario."""

    name: str
    kind: Kind
    """The command, or function, that starts it."""
    topic: str
    """What it shows, in a few words that several share."""
    description: str
    file: Path

    @property
    def text(self) -> str:
        """The file."""
        return self.file.read_text(encoding="utf-8")


class Catalogue(Mapping[str, ReadyMade]):
    """Ready-made scenarios by name."""

    def __init__(self, entries: Mapping[str, ReadyMade]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> ReadyMade:
        """Raises KeyError with what is near."""
        if name not in self._entries:
            from weirlab.scenario.file.problems import unknown

            raise KeyError(unknown(name, self._entries))
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def by_topic(self) -> dict[str, list[ReadyMade]]:
        """The entries of each topic, in the order of the list."""
        groups = {topic: [each for each in self.values() if each.topic == topic] for topic in TOPICS}
        return {topic: group for topic, group in groups.items() if group}

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        longest = max(map(len, self), default=0)
        lines = []
        for topic, group in self.by_topic().items():
            lines.append(f"{topic}: weirlab.{group[0].kind}(NAME)")
            lines += [f"  {each.name:<{longest}}  {each.description}" for each in group]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts, left = [], '<td style="text-align:left">'
        for topic, group in self.by_topic().items():
            rows = "".join(
                f"<tr>{left}<code>{each.name}</code></td>{left}{html.escape(each.description)}</td></tr>"
                for each in group
            )
            call = f"<code>weirlab.{group[0].kind}(NAME)</code>"
            parts.append(f"<b>{html.escape(topic)}</b>: {call}<table>{rows}</table>")
        return "".join(parts)


def scenarios(*, kind: Kind | None = None, search: str | None = None) -> Catalogue:
    """The ready-made scenarios, as `weir scenarios` lists them.

    Args:
        kind: Only those that this command starts: `run`, `search`, `bulk` or `emulate`.
        search: Only those whose name, topic or text has this word.

    Raises:
        InputError: None is like that.
    """
    found = {name: _entry(name, file) for name, file in ready_made().items()}
    if kind is not None:
        found = {name: each for name, each in found.items() if each.kind == kind}
    if search is not None:
        found = {
            name: each
            for name, each in found.items()
            if search.lower() in f"{name} {each.topic} {each.text}".lower()
        }
    if not found:
        raise InputError("no ready-made scenario is like that; 'weir scenarios' lists all")
    return Catalogue(found)


def _entry(name: str, file: Path) -> ReadyMade:
    """Description, kind and topic, without the validation that a list does not need.

    A file without a description is described by the first sentence of the comment that it starts with.
    """
    import yaml

    text = file.read_text(encoding="utf-8")
    # BaseLoader makes text, lists and mappings only.
    content = yaml.load(text, Loader=yaml.BaseLoader)
    comment = " ".join(line.removeprefix("#").strip() for line in takewhile(_is_comment, text.splitlines()))
    description = content.get("description") or re.split(r"(?<=\.)\s", comment, maxsplit=1)[0]
    merged = _merged(file, content)
    kind = _kind(merged)
    return ReadyMade(name, kind, _topic(kind, merged), " ".join(description.split()), file)


def _merged(file: Path, content: Mapping[str, object]) -> dict[str, object]:
    """The sections of a file and of those that it extends."""
    import yaml

    merged: Mapping[str, object] = content
    while "extends" in content:
        file = file.parent / str(content["extends"])
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        merged = over(merged, content)
    return dict(merged)


def _kind(merged: Mapping[str, object]) -> Kind:
    """The command that starts it."""
    bed = merged.get("testbed")
    if "search" in merged:
        return "search"
    if "campaign" in merged:
        return "bulk"
    return "emulate" if isinstance(bed, Mapping) and _word(bed) == "netns" and "hops" in bed else "run"


def _topic(kind: Kind, merged: Mapping[str, object]) -> str:
    """What it shows."""
    if kind != "run":
        return _OF_KIND[kind]
    if "hotspots" in merged:
        return _HOTSPOTS
    traffic = [each for each in section(merged, "traffic").values() if isinstance(each, Mapping)]
    if {_word(each.get("transport")) for each in traffic} & {"tcp", "rapid"}:
        return _TCP
    return _CONTROL if "control" in merged else _LOSSES


def _word(section: object) -> object:
    """The kind of a section, which may be all that is written."""
    return section.get("kind") if isinstance(section, Mapping) else section


def _is_comment(line: str) -> bool:
    return line.startswith("#")
