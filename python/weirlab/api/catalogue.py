"""`weirlab.scenarios`: the ready-made scenarios, by what they show."""

from __future__ import annotations

import html
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Literal

from weirlab.documents import over, section
from weirlab.errors import InputError
from weirlab.scenario.file.ready import ready_made

Kind = Literal["run", "search", "bulk", "emulate"]

_LOSSES = "Loads, queues and losses"
_TCP = "TCP and Rapid"
_FABRICS = "Fabrics: messages, RDMA and collectives"
_CONTROL = "Congestion notification, PAUSE and PFC"
_HOTSPOTS = "Hotspots"
_OF_KIND = {
    "search": "The rates that a device carries",
    "bulk": "Bulk data over a path",
    "emulate": "Real programs over an emulated path",
}
TOPICS = (
    _LOSSES,
    _OF_KIND["search"],
    _TCP,
    _FABRICS,
    _OF_KIND["bulk"],
    _OF_KIND["emulate"],
    _CONTROL,
    _HOTSPOTS,
)
"""What scenarios show, in the order of the list."""

_ALSO = {
    "collective": "gpu ai ml machine learning training nccl mpi hpc allreduce allgather alltoall",
    "rdma": "roce rocev2 infiniband nvme storage gpu hpc ultra ethernet uec verbs",
    "incast": "storage partition-aggregate fan-in microburst",
    "messages": "flows workload fabric",
    "bcn|qcn": "congestion notification ethernet 802.1qau",
    "tcp|rapid": "congestion control",
    "leaves|leaf": "leaf-spine clos datacenter data center",
    "fat tree|fat-tree": "clos datacenter data center",
    "marking|dual-pi2|marks": "ecn",
    "codel|fq-codel|pie|dual-pi2|red": "aqm bufferbloat active queue management",
    "classes": "qos diffserv priority",
    "lossless": "pfc priority flow control",
    "pings?|calls?|requests": "latency voip video gaming responsiveness",
    "balancing|spray|spraying": "reordering load balancing ecmp multipath",
    "token bucket": "shaping shaper policing",
    "buffer": "buffer sizing",
    "link-down": "failure outage failover reroute",
    "campaign": "iperf iperf3 rsync download upload file transfer backup wan",
    "campaign|streams": "satellite window scaling parallel streams",
    "goals": "rfc2544 rfc 2544 rfc9971 benchmark throughput ndr pdr dut device router switch firewall",
    "netns": "linux kernel real",
    "design": "sweep sensitivity",
    "optimise": "optimize optimisation optimization",
}
"""What a file may say, as a pattern of whole words, and what else people call that: `--search` finds both."""


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
    words: str = field(repr=False, default="")
    """What a search looks at: name, kind, the file with those that it extends, and other words for these."""

    def has(self, wanted: str) -> bool:
        """Whether words of it start like this, one after the other; `-` and a space are the same."""
        pattern = re.escape(_plain(wanted)).replace(r"\ ", " ")
        return re.search(rf"\b{pattern}", self.words) is not None

    @property
    def text(self) -> str:
        """The file."""
        return self.file.read_text(encoding="utf-8")

    @property
    def about(self) -> str:
        """The description, and the rest of the comment at the start of the file without its commands."""
        lines = takewhile(_is_comment, self.text.splitlines())
        comment = " ".join(line.removeprefix("# ") for line in lines if not line.startswith("#  "))
        more = re.sub(":$", ".", comment.removeprefix(self.description).strip())
        return f"{self.description} {more}".strip()


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
        columns = shutil.get_terminal_size().columns
        longest = max(map(len, self), default=0)
        lines = []
        for topic, group in self.by_topic().items():
            lines.append(f"{topic}: weirlab.{group[0].kind}(NAME)")
            for each in group:
                lead = f"  {each.name:<{longest}}  "
                text = shortened(each.description, columns - len(lead))
                lines += textwrap.wrap(text, columns, initial_indent=lead, subsequent_indent=" " * len(lead))
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
        search: Only those whose name or text has this word, or what is also called so (`gpu`, `storage`).
            Of several words that are nowhere together, all must be there.

    Raises:
        InputError: None is like that.
    """
    found = {name: _entry(name, file) for name, file in ready_made().items()}
    if kind is not None:
        found = {name: each for name, each in found.items() if each.kind == kind}
    if search is not None:
        together = {name: each for name, each in found.items() if each.has(search)}
        found = together or {name: each for name, each in found.items() if all(map(each.has, search.split()))}
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
    description = content.get("description") or re.split(r"(?<=[.?])\s", comment, maxsplit=1)[0]
    merged = _merged(file, content)
    kind = _kind(merged)
    topic = _topic(kind, merged)
    said = f"{name} {kind} {text} {merged}".lower()
    also = [words for of, words in _ALSO.items() if re.search(rf"\b({of})\b", said)]
    return ReadyMade(name, kind, topic, " ".join(description.split()), file, _plain(" ".join([said, *also])))


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("-", " ").split())


def shortened(text: str, room: int) -> str:
    """A description that fits into a line: all of it, or as many of its clauses as do; where the first alone
    is too long, all of it again, for several lines."""
    if len(text) <= room:
        return text
    ends = [found.start() for found in re.finditer(r"[:;.](?= |$)", text) if found.start() <= room]
    return text[: ends[-1]] if ends and ends[-1] >= _LEAST_SHARE * room else text


_LEAST_SHARE = 0.4
"""Of a line, that a description is not cut below."""


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
    has = {_word(each.get(part)) for each in traffic for part in ("source", "transport")}
    if has & {"collective", "goal", "chakra", "messages", "flow-table", "rdma"}:
        return _FABRICS
    if has & {"tcp", "rapid"}:
        return _TCP
    return _CONTROL if {"control", "buffers"} & merged.keys() else _LOSSES


def _word(section: object) -> object:
    """The kind of a section, which may be all that is written."""
    return section.get("kind") if isinstance(section, Mapping) else section


def _is_comment(line: str) -> bool:
    return line.startswith("#")
