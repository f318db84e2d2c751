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

A computation takes its number of nanoseconds. DEVIATION: whatever `cpu` says; see `programs` for the others.

Source: Hoefler 2009, 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from weirlab.errors import InputError
from weirlab.files import ordinary
from weirlab.scenario.traffic.chains import Chain
from weirlab.scenario.traffic.programs import Node, Program
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
_ENDS = {"send": "to", "recv": "from"}


def goal_in(path: Path, hosts: int) -> Chain:
    """The tasks in a file, which has as many ranks as there are hosts, or fewer. Raises InputError."""
    return _read(path, hosts).chain(path)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    ordinary(path, MAX_BYTES)
    try:
        with path.open(encoding="utf-8") as file:
            for line, text in enumerate(file, start=1):
                bare = re.split(r"//|#", text, maxsplit=1)[0].strip()
                if bare:
                    yield line, bare
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        message = "is not text: give the schedule from which 'txt2bin' made it"
        raise InputError(f"{path}: cannot be read: {message} ({error})") from None


class _Reader:
    """What the lines say so far. Methods raise InputError."""

    def __init__(self, path: Path, hosts: int) -> None:
        self.path, self.hosts = path, hosts
        self.line = 0
        self.program = Program(
            lambda node, message: fault(path, node.number, 1, message), lambda node: f"line {node.number}"
        )
        self.ranks: int | None = None
        self.rank: int | None = None
        """Whose block is open."""
        self._seen: set[int] = set()
        self._labels: dict[str, Node] = {}

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
        node = self._labels[found["label"]] = Node(self.rank, self.line)
        self.program.nodes.append(node)
        if found["calc"]:
            node.delay_ps = int(found["ns"]) * _PS_PER_NS
            return
        peer, tag = int(found["peer"]), int(found["tag"] or 0)
        if _ENDS[found["way"]] != found["end"] or peer >= self.ranks:
            message = f"write 'send Nb to R' and 'recv Nb from R', R below {self.ranks}"
            raise self.fault(f"{message} (got '{found[0]}')")
        add = self.program.send if found["way"] == "send" else self.program.receive
        add(node, peer, int(found["bytes"]), tag)

    def _wait(self, found: re.Match[str]) -> None:
        for label in (found["later"], found["earlier"]):
            if label not in self._labels:
                raise self.fault(f"rank {self.rank} has no task '{label}' before this line")
        earlier, later = self._labels[found["earlier"]], self._labels[found["later"]]
        before = earlier if found["kind"] == "requires" else earlier.started()
        (later.start or later).after.append(before)

    _OUTSIDE = ((_RANKS, _count), (_RANK, _begin))
    _INSIDE = ((_TASK, _task), (_WAIT, _wait))


def _read(path: Path, hosts: int) -> Program:
    """All tasks, with what they require."""
    reader = _Reader(path, hosts)
    for line, text in _lines(path):
        reader.read(line, text)
    if reader.ranks is None or reader.rank is not None:
        missing = "'num_ranks N'" if reader.ranks is None else "'}'"
        raise reader.fault(f"ends too early: {missing} is missing")
    return reader.program
