"""Chakra execution traces (MLCommons), as tasks for the simulator.

One file for each rank: messages of protocol buffers, each behind its length, the whole possibly compressed by
gzip. The first is the metadata of the file, each further one a node: an operation, with the nodes that it
waits for. Only the fields that say what is sent are read.

Computations and accesses to memory take their `duration_micros`. `comm_size` of a collective operation is
what each rank puts in: of all-gather, gather and scatter the part of a rank. The k-th operation of a group
(`pg_name`) is the same at all ranks whose files name the group. DEVIATION: the schema names no root: it is
the first rank of the group; an operation smaller than its parts sends 1 B in each; a barrier is an all-reduce
of 1 B a part by trees; see `programs` for the others.

Source: Chakra schema.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from weirlab.errors import InputError
from weirlab.files import ordinary
from weirlab.scenario.traffic import chains
from weirlab.scenario.traffic.messages import Algorithms
from weirlab.scenario.traffic.programs import Node, Program
from weirlab.scenario.traffic.tables import MAX_BYTES

_PS_PER_US = 1_000_000
_LONGEST_US = 10**12
"""Longest computation: as long as one in GOAL, and far below what a time holds."""
_METADATA, _SEND, _RECEIVE, _COLLECTIVE, _COMPUTATIONS = 1, 5, 6, 7, (2, 3, 4)
"""Types of nodes; those that load, store and compute are alike."""
_OPERATIONS: Mapping[int, chains.Operation] = {
    0: "all-reduce",
    1: "reduce",
    2: "all-gather",
    3: "gather",
    4: "scatter",
    5: "broadcast",
    6: "all-to-all",
    7: "reduce-scatter",
    8: "reduce-scatter",
}
_PER_RANK = ("all-gather", "gather", "scatter")
"""Operations whose size is that of a part."""
_BARRIER = 9
# Fields of a node, and of an attribute.
_ID, _NAME, _TYPE, _CONTROL_DEPENDENCIES, _DATA_DEPENDENCIES, _DURATION, _ATTRIBUTE = 1, 2, 3, 4, 5, 7, 10
_INTEGERS = {7, 9, 11, 13, 19, 21, 23, 25}
_ZIGZAG = {15, 17}
_DOCUMENTATION, _STRING = 2, 29
_WIDTHS = {1: 8, 5: 4}
"""Bytes of the fixed wire types."""
Value = int | bytes


def chakra_in(pattern: Path, hosts: int, algorithms: Algorithms) -> chains.Chain:
    """The tasks in files whose names have the rank for `*`: of as many ranks as there are hosts, or fewer.

    Raises InputError.
    """
    files = _files(pattern, hosts)
    program = Program(
        lambda node, message: InputError(f"{files[node.rank]}: node {node.number}: {message}"),
        lambda node: f"node {node.number} of {files[node.rank].name}",
    )
    groups: _Groups = defaultdict(lambda: defaultdict(list))
    for rank, file in enumerate(files):
        _read(rank, file, program, groups, len(files))
    for name, members in sorted(groups.items()):
        _operate(name, members, program, algorithms)
    return program.chain(pattern)


def _files(pattern: Path, hosts: int) -> list[Path]:
    """The file of each rank. Raises InputError."""
    if pattern.name.count("*") != 1:
        raise InputError(f"{pattern}: write '*' for the rank in the name of the files, as in 'job.*.et'")
    before, after = map(re.escape, pattern.name.split("*"))
    ranked = re.compile(f"{before}(0|[1-9][0-9]{{0,5}}){after}")
    try:
        found = {
            int(name[1]): path for path in pattern.parent.iterdir() if (name := ranked.fullmatch(path.name))
        }
    except OSError as error:
        raise InputError(f"{pattern.parent}: cannot be read: {error.strerror}") from None
    for rank in range(max(found, default=0) + 1):
        if rank not in found:
            missing = pattern.with_name(pattern.name.replace("*", str(rank)))
            raise InputError(f"{missing}: is missing: ranks count from 0, and each has a file")
    if len(found) > hosts:
        message = f"there are files of {len(found)} ranks, and 'from' names {hosts} hosts: name one for each"
        raise InputError(f"{pattern}: {message}")
    return [found[rank] for rank in sorted(found)]


class _WrongError(Exception):
    """What is wrong with a node, or with the bytes of a file."""


@dataclass
class _Traced:
    """A node of a trace as it is read."""

    number: int = 0
    name: str = ""
    kind: int = 0
    before: list[int] = field(default_factory=list)
    duration_us: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)

    def value(self, name: str, most: int | None = None, default: int | None = None) -> int:
        """An attribute that is a whole number, up to `most`. Raises _WrongError."""
        value = self.attributes.get(name, default)
        if isinstance(value, int) and value >= 0 and (most is None or value <= most):
            return value
        limits = "0 or more" if most is None else f"0 to {most}"
        got = "it is no whole number" if isinstance(value, bytes) else f"got {value}"
        raise _WrongError(f"needs {name}, {limits} ({'it is not there' if value is None else got})")


@dataclass
class _Part:
    """What one rank puts into a collective operation."""

    node: Node
    kind: int
    size: int


_Groups = Mapping[str, Mapping[int, list[_Part]]]


def _read(rank: int, file: Path, program: Program, groups: _Groups, ranks: int) -> None:
    """Add the tasks of a rank. Raises InputError."""
    nodes: dict[int, Node] = {}
    waiting: list[tuple[Node, list[int]]] = []
    for traced in _nodes(file):
        node = Node(rank, traced.number)
        try:
            if traced.number in nodes:
                raise _WrongError("is there twice")
            _add(traced, node, program, groups, ranks)
        except _WrongError as error:
            raise program.fault(node, f"'{traced.name}' {error}" if traced.name else str(error)) from None
        nodes[traced.number] = node
        waiting.append((node, traced.before))
        program.nodes.append(node)
    for node, before in waiting:
        for number in before:
            if number not in nodes:
                raise program.fault(node, f"waits for node {number}, which is not in the file")
            node.after.append(nodes[number])


def _add(traced: _Traced, node: Node, program: Program, groups: _Groups, ranks: int) -> None:
    """Let a task be what its node says. Raises _WrongError."""
    kind, value = traced.kind, traced.value
    if kind in _COMPUTATIONS:
        if traced.duration_us == 0 and traced.attributes.get("num_ops"):
            raise _WrongError("has num_ops and no duration_micros: write the trace with durations")
        if traced.duration_us > _LONGEST_US:
            raise _WrongError(f"takes {traced.duration_us} us; a computation takes {_LONGEST_US} us at most")
        node.delay_ps = traced.duration_us * _PS_PER_US
    elif kind == _SEND:
        program.send(node, value("comm_dst", ranks - 1), value("comm_size"), value("comm_tag", default=0))
    elif kind == _RECEIVE:
        program.receive(node, value("comm_src", ranks - 1), value("comm_size"), value("comm_tag", default=0))
    elif kind == _COLLECTIVE:
        group = traced.attributes.get("pg_name", b"")
        name = group.decode(errors="replace") if isinstance(group, bytes) else str(group)
        groups[name][node.rank].append(_Part(node, value("comm_type"), value("comm_size")))
    elif kind != _METADATA:
        raise _WrongError(f"is of the unknown type {kind}: 1 is metadata, 2 to 4 compute, 5 to 7 communicate")


def _operate(name: str, group: Mapping[int, list[_Part]], program: Program, algorithms: Algorithms) -> None:
    """Add the messages of the operations of a group. Raises InputError."""
    for parts in zip_longest(*(group[rank] for rank in sorted(group))):
        present = [part for part in parts if part is not None]
        first = present[0]
        where = first.node
        try:
            if len(present) < len(parts):
                lacking = next(rank for rank, part in zip(sorted(group), parts, strict=True) if part is None)
                of = f"of the group '{name}'" if name else "without a group"
                raise _WrongError(
                    f"is an operation {of} that rank {lacking} lacks: all ranks of one take part"
                )
            for part in present:
                where = part.node
                if (part.kind, part.size) != (first.kind, first.size):
                    same = f"comm_type {first.kind} and comm_size {first.size}"
                    got = f"got {part.kind} and {part.size}"
                    raise _WrongError(f"needs {same}, as {program.named(first.node)} ({got})")
            where = first.node
            program.expanded += _expand([part.node for part in present], first.kind, first.size, algorithms)
            chains.refuse_more_tasks(program.expanded)
        except (_WrongError, chains.ChainError) as error:
            raise program.fault(where, str(error)) from None


def _expand(nodes: Sequence[Node], kind: int, size: int, algorithms: Algorithms) -> int:
    """Let the nodes of an operation wait for its messages; returns how many tasks these are. Raises
    _WrongError, ChainError."""
    ranks = len(nodes)
    if ranks < 2:
        raise _WrongError(
            "is a collective operation of one rank: name its group in the files of the others, too"
        )
    operation: chains.Operation
    if kind == _BARRIER:
        operation = "all-reduce"
        chain = chains.collective(operation, "tree", ranks, chains.least_bytes(operation, ranks))
    elif kind in _OPERATIONS:
        operation = _OPERATIONS[kind]
        algorithm = algorithms.of(operation)
        pieces = algorithms.pieces if chains.is_cut(operation, algorithm) else 1
        whole = size * ranks if operation in _PER_RANK else size
        least = chains.least_bytes(operation, ranks, pieces)
        chain = chains.collective(operation, algorithm, ranks, max(least, whole), pieces=pieces)
    else:
        known = ", ".join(dict.fromkeys(_OPERATIONS.values()))
        raise _WrongError(
            f"has comm_type {kind}; known are {known} and barrier: write others as sends and receives"
        )
    tasks: list[Node] = []
    for sender, receiver, data, _, after in chain.tasks:
        node = Node(nodes[sender].rank, nodes[sender].number, after=[tasks[before] for before in after])
        if sender == receiver:
            node.after.append(nodes[sender].started())
        else:
            node.peer, node.size = nodes[receiver].rank, data
            for rank in chains.waiting_for(operation, sender, receiver):
                nodes[rank].after.append(node)
        tasks.append(node)
    return len(tasks)


def _nodes(file: Path) -> Iterator[_Traced]:
    """The nodes of a file, behind its metadata. Raises InputError."""
    data = _content(file)
    at = 0
    try:
        if not data:
            raise _WrongError("the file is empty")
        while at < len(data):
            size, begin = _varint(data, at)
            if begin + size > len(data):
                raise _WrongError("a message is longer than the file")
            message = data[begin : begin + size]
            if at > 0:
                yield _node(message)
            elif any(number == _ID and isinstance(value, int) for number, value in _fields(message)):
                raise _WrongError("metadata comes first, and there is a node")
            at = begin + size
    except _WrongError as error:
        raise InputError(f"{file}: is no Chakra trace: byte {at}: {error}") from None


def _content(file: Path) -> memoryview:
    """What is in a file, unpacked. Raises InputError."""
    ordinary(file, MAX_BYTES)
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            content = (gzip.GzipFile(fileobj=raw) if packed else raw).read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{file}: cannot be unpacked: {error}") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{file}: is longer than {MAX_BYTES} B")
    return memoryview(content)


def _node(data: memoryview) -> _Traced:
    """A node. Raises _WrongError."""
    traced = _Traced()
    for number, value in _fields(data):
        if number in (_CONTROL_DEPENDENCIES, _DATA_DEPENDENCIES):
            traced.before += [value] if isinstance(value, int) else _packed(value)
        elif number == _ATTRIBUTE:
            name, content = _attribute(_bytes(value))
            traced.attributes[name] = content
        elif number == _NAME:
            traced.name = bytes(_bytes(value)).decode(errors="replace")
        elif number in (_ID, _TYPE, _DURATION):
            if not isinstance(value, int):
                raise _WrongError(f"field {number} of a node is a number")
            setattr(traced, {_ID: "number", _TYPE: "kind", _DURATION: "duration_us"}[number], value)
    return traced


def _attribute(data: memoryview) -> tuple[str, Value]:
    """Name and value of an attribute; an empty text for what is neither whole number nor text. Raises
    _WrongError."""
    name: str = ""
    content: Value = 0
    for number, value in _fields(data):
        if number == 1:
            name = bytes(_bytes(value)).decode(errors="replace")
        elif number == _STRING:
            return name, bytes(_bytes(value))
        elif isinstance(value, int) and number in _INTEGERS:
            content = value - (value >> 63 << 64)
        elif isinstance(value, int) and number in _ZIGZAG:
            content = value >> 1 ^ -(value & 1)
        elif number > _DOCUMENTATION:
            content = b""
    return name, content


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _WrongError("there is a number where text or a message is")
    return value


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field. Raises _WrongError."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if tag & 7 == 2:
            size, at = _varint(data, at)
        elif (size := _WIDTHS.get(tag & 7, 0)) == 0:
            raise _WrongError(f"a field has the unknown wire type {tag & 7}")
        if at + size > len(data):
            raise _WrongError("a field is longer than its message")
        part = data[at : at + size]
        at += size
        yield tag >> 3, part if tag & 7 == 2 else int.from_bytes(part, "little")


def _packed(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits in each byte, lowest first, and where it ends. Raises _WrongError."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise _WrongError("a number has no end")
