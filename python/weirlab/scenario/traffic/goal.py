"""Schedules of programs in GOAL, as tasks for the simulator.

    num_ranks 2
    rank 0 {
    l1: calc 1000
    l2: send 4096b to 1 tag 7
    l2 requires l1
    }
    rank 1 {
    l1: recv 4096b from 0 tag 7
    }

A computation takes its number of nanoseconds. The k-th send of a rank to another with a tag is received by
the k-th matching receive there, in the order of the file. A receive is over when its message is delivered and
what it requires is over. DEVIATION: a send is over when its message is delivered, whatever its length
(rendezvous); computations of a rank do not wait for a free processor, whatever `cpu` says; a message has 1 B
at least.

Source: Hoefler 2009, 2.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weirlab.errors import InputError
from weirlab.scenario.traffic.chains import Chain
from weirlab.scenario.traffic.tables import MAX_BYTES, fault

_PS_PER_NS = 1000
_DIGITS = 15
"""Of a number: 11 days in nanoseconds, and 1 PB."""
_LONG = re.compile(rf"\b\d{{{_DIGITS + 1},}}")
_RANKS = re.compile(r"num_ranks\s+(\d+)")
_RANK = re.compile(r"rank\s+(\d+)\s*\{")
_TASK = re.compile(
    r"(?P<label>\w+)\s*:\s*(?:(?P<calc>calc)\s+(?P<ns>\d+)"
    r"|(?P<way>send|recv)\s+(?P<bytes>\d+)b\s+(?P<end>to|from)\s+(?P<peer>\d+)(?:\s+tag\s+(?P<tag>\d+))?)"
    r"(?:\s+(?:cpu|nic)\s+\d+)*"
)
_WAIT = re.compile(r"(?P<later>\w+)\s+(?P<kind>i?requires)\s+(?P<earlier>\w+)")
Channel = tuple[int, int, int]
"""Sender, receiver, tag."""
_ENDS = {"send": "to", "recv": "from"}


@dataclass
class _Node:
    """A task of a program before it has a place among all."""

    rank: int
    line: int
    peer: int | None = None
    """Who receives what it sends; None: it sends nothing."""
    size: int = 0
    delay_ps: int = 0
    after: list[_Node] = field(default_factory=list)
    start: _Node | None = None
    """When it starts, if others wait for that."""
    place: int = -1

    def started(self) -> _Node:
        """A task that is over when this one starts."""
        if self.start is None:
            self.start = _Node(self.rank, self.line, after=self.after)
            self.after = [self.start]
        return self.start


def goal_in(path: Path, hosts: int) -> Chain:
    """The tasks in a file, which has as many ranks as there are hosts, or fewer. Raises InputError."""
    nodes = _read(path, hosts)
    chain = Chain()
    for node in _in_order(path, nodes):
        after = [earlier.place for earlier in node.after]
        if node.peer is None or node.peer == node.rank:
            node.place = chain.compute(node.rank, node.delay_ps, after)
        else:
            node.place = chain.send(node.rank, node.peer, max(1, node.size), after)
    return chain


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: is longer than {MAX_BYTES} B")
        with path.open(encoding="utf-8") as file:
            for line, text in enumerate(file, start=1):
                bare = re.split(r"//|#", text, maxsplit=1)[0].strip()
                if bare:
                    yield line, bare
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


class _Reader:
    """What the lines say so far. Methods raise InputError."""

    def __init__(self, path: Path, hosts: int) -> None:
        self.path, self.hosts = path, hosts
        self.line = 0
        self.nodes: list[_Node] = []
        self.ranks: int | None = None
        self.rank: int | None = None
        """Whose block is open."""
        self._seen: set[int] = set()
        self._labels: dict[str, _Node] = {}
        # By sender, receiver and tag.
        self.sends: dict[Channel, list[_Node]] = defaultdict(list)
        self.receives: dict[Channel, list[_Node]] = defaultdict(list)

    def fault(self, message: str) -> InputError:
        """At the line that was read last."""
        return fault(self.path, max(self.line, 1), 1, message)

    def read(self, line: int, text: str) -> None:
        """One line."""
        self.line = line
        if found := _LONG.search(text):
            raise self.fault(f"a number of more than {_DIGITS} digits (got '{found[0][:20]}...')")
        if self.rank is not None and text == "}":
            self.rank = None
            return
        inside = self.rank is not None
        for pattern, act in self._INSIDE if inside else self._OUTSIDE:
            if found := pattern.fullmatch(text):
                act(self, found)
                return
        expected = "a task, 'A requires B' or '}'" if inside else "'num_ranks N' or 'rank R {'"
        raise self.fault(f"expected {expected} (got '{text}')")

    def _count(self, found: re.Match[str]) -> None:
        if self.ranks is not None:
            raise self.fault(f"'num_ranks' is there already: {self.ranks}")
        self.ranks = int(found[1])
        if not 1 <= self.ranks <= self.hosts:
            message = f"the program has {self.ranks} ranks, and 'from' names {self.hosts} hosts"
            raise self.fault(f"{message}: name one for each")

    def _begin(self, found: re.Match[str]) -> None:
        rank = int(found[1])
        if self.ranks is None or rank >= self.ranks or rank in self._seen:
            known = f"ranks are 0 to {self.ranks - 1}, each once" if self.ranks else "'num_ranks' comes first"
            raise self.fault(f"{known} (got {rank})")
        self._seen.add(rank)
        self.rank, self._labels = rank, {}

    def _task(self, found: re.Match[str]) -> None:
        assert self.rank is not None
        assert self.ranks is not None
        if found["label"] in self._labels:
            raise self.fault(f"rank {self.rank} has a task '{found['label']}' already")
        node = self._labels[found["label"]] = _Node(self.rank, self.line)
        self.nodes.append(node)
        if found["calc"]:
            node.delay_ps = int(found["ns"]) * _PS_PER_NS
            return
        peer, tag = int(found["peer"]), int(found["tag"] or 0)
        if _ENDS[found["way"]] != found["end"] or peer >= self.ranks:
            message = f"write 'send Nb to R' and 'recv Nb from R', R below {self.ranks}"
            raise self.fault(f"{message} (got '{found[0]}')")
        if found["way"] == "send":
            node.peer, node.size = peer, int(found["bytes"])
            self.sends[self.rank, peer, tag].append(node)
        else:
            self.receives[peer, self.rank, tag].append(node)

    def _wait(self, found: re.Match[str]) -> None:
        for label in (found["later"], found["earlier"]):
            if label not in self._labels:
                raise self.fault(f"rank {self.rank} has no task '{label}' before this line")
        earlier, later = self._labels[found["earlier"]], self._labels[found["later"]]
        before = earlier if found["kind"] == "requires" else earlier.started()
        (later.start or later).after.append(before)

    _OUTSIDE = ((_RANKS, _count), (_RANK, _begin))
    _INSIDE = ((_TASK, _task), (_WAIT, _wait))


def _read(path: Path, hosts: int) -> list[_Node]:
    """All tasks, with what they wait for."""
    program = _Reader(path, hosts)
    for line, text in _lines(path):
        program.read(line, text)
    if program.ranks is None or program.rank is not None:
        missing = "'num_ranks N'" if program.ranks is None else "'}'"
        raise program.fault(f"ends too early: {missing} is missing")
    _match(path, program.sends, program.receives)
    return program.nodes


def _match(
    path: Path,
    sends: Mapping[Channel, Sequence[_Node]],
    receives: Mapping[Channel, Sequence[_Node]],
) -> None:
    """Let each receive wait for its message. Raises InputError where there is none."""
    for key in sorted({*sends, *receives}):
        sent, received = sends.get(key, []), receives.get(key, [])
        for message, node in zip(sent, received, strict=False):
            node.after.append(message)
        count = min(len(sent), len(received))
        for lonely, missing in ((sent[count:], "receives"), (received[count:], "sends")):
            if lonely:
                who = key[1] if missing == "receives" else key[0]
                message_text = f"rank {who} never {missing} it (tag {key[2]})"
                raise fault(path, lonely[0].line, 1, message_text)


def _in_order(path: Path, nodes: Iterable[_Node]) -> Iterator[_Node]:
    """Each task behind those that it waits for. Raises InputError for tasks that wait for each other."""
    done: set[int] = set()
    for root in nodes:
        waiting: list[tuple[_Node, Iterator[_Node]]] = [(root, iter(root.after))]
        under_way = {id(root)}
        if id(root) in done:
            continue
        while waiting:
            node, rest = waiting[-1]
            before = next((each for each in rest if id(each) not in done), None)
            if before is None:
                waiting.pop()
                under_way.discard(id(node))
                done.add(id(node))
                yield node
            elif id(before) in under_way:
                raise fault(path, before.line, 1, "waits for itself, over what it requires or receives")
            else:
                under_way.add(id(before))
                waiting.append((before, iter(before.after)))
