"""Messages that wait for each other: collective operations, as tasks for the simulator.

A rank is a place in a list of hosts. A task is a message from one rank to another, or a computation of one;
it begins its delay after all that it waits for is over. What has a root has it at the first rank.

Source: NCCL tests, PERFORMANCE.md, "Bus bandwidth" (data that each rank sends at best). MPICH, src/mpi/coll
(binomial trees).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal

Operation = Literal[
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
]
Algorithm = Literal["ring", "halving-doubling", "tree", "rounds", "direct", "binomial"]
Task = tuple[int, int, int, int, Sequence[int]]
"""Sender, receiver, bytes, delay [ps], and the tasks before it that it waits for."""
MOST_TASKS = 1 << 22
"""Of a job: about 4 GB of memory until it runs."""


class ChainError(Exception):
    """What is wrong with an operation, and the field that says so."""

    def __init__(self, message: str, *place: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass
class Chain:
    """Tasks in the order in which they were added."""

    tasks: list[Task] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)
    """Where each round ends, and the data that each rank has to send in it at best [B]."""

    def send(self, sender: int, receiver: int, size: int, after: Sequence[int]) -> int:
        """A message; returns its place. Raises ChainError where there are too many tasks."""
        return self._add((sender, receiver, size, 0, after))

    def compute(self, rank: int, delay_ps: int, after: Sequence[int]) -> int:
        """A computation; returns its place. Raises ChainError where there are too many tasks."""
        return self._add((rank, rank, 0, delay_ps, after))

    def _add(self, task: Task) -> int:
        if len(self.tasks) == MOST_TASKS:
            refuse_more_tasks(MOST_TASKS + 1)
        self.tasks.append(task)
        return len(self.tasks) - 1

    def on(self, hosts: Sequence[int]) -> list[Task]:
        """The tasks with hosts for ranks."""
        return [(hosts[a], hosts[b], size, delay, after) for a, b, size, delay, after in self.tasks]


def refuse_more_tasks(count: int, *place: str) -> None:
    """Raise ChainError for more messages and computations than `MOST_TASKS`."""
    if count > MOST_TASKS:
        message = f"more than {MOST_TASKS:,} messages and computations: ask for fewer"
        raise ChainError(message, "source", *place)


def share_at_best(operation: Operation, ranks: int) -> Fraction:
    """Data that the link of a rank has to carry at best, as a share of the size: the factor of bus bandwidth.

    Source: NCCL tests, PERFORMANCE.md, "Bus bandwidth", and src/gather.cu.
    """
    if operation in ("broadcast", "reduce"):
        return Fraction(1)
    return Fraction(ranks - 1, ranks) * (2 if operation == "all-reduce" else 1)


def collective(
    operation: Operation,
    algorithm: Algorithm,
    ranks: int,
    size: int,
    *,
    iterations: int = 1,
    compute_ps: int = 0,
    pieces: int = 1,
) -> Chain:
    """`iterations` times a computation of each rank and then the operation.

    A rank computes again when it has received all of the iteration before and, where there is a root, sent
    all. Raises ChainError.
    """
    step = ALGORITHMS[operation].get(algorithm)
    if step is None:
        known = "' or '".join(ALGORITHMS[operation])
        raise ChainError(f"{operation} has no '{algorithm}': write '{known}'", "source", "algorithm")
    if ranks < 2:
        raise ChainError(f"a collective operation has 2 ranks or more: name more hosts (got {ranks})", "from")
    if algorithm == "halving-doubling" and ranks & (ranks - 1):
        message = f"'halving-doubling' needs 2, 4, 8, ... ranks; write another one (got {ranks} hosts)"
        raise ChainError(message, "source", "algorithm")
    if pieces > 1 and not is_cut(operation, algorithm):
        raise ChainError(f"'{algorithm}' sends no pieces: leave this out (got {pieces})", "source", "pieces")
    least = least_bytes(operation, ranks, pieces)
    if size < least:
        message = f"is cut into up to {least} parts, of 1 B at least (got {size} B)"
        raise ChainError(message, "source", "size")
    chain = Chain()
    carried = round(size * share_at_best(operation, ranks))
    received: list[list[int]] = [[] for _ in range(ranks)]
    for number in range(iterations):
        ready = [chain.compute(rank, compute_ps, received[rank]) for rank in range(ranks)]
        first = len(chain.tasks)
        step(chain, ranks, size, ready, pieces)
        received = [[] for _ in range(ranks)]
        for place, task in enumerate(chain.tasks[first:], start=first):
            for rank in waiting_for(operation, *task[:2]):
                received[rank].append(place)
        chain.rounds.append((len(chain.tasks), carried))
        if number == 0:
            refuse_more_tasks(len(chain.tasks) * iterations, "iterations")
    return chain


def is_cut(operation: Operation, algorithm: Algorithm) -> bool:
    """Whether data goes in pieces, one behind the other."""
    return algorithm == "tree" or (algorithm == "ring" and operation in ("broadcast", "reduce"))


def waiting_for(operation: Operation, sender: int, receiver: int) -> Sequence[int]:
    """The ranks for which an operation is not over before this message is: its receiver, and where there is
    a root, its sender, too."""
    return (sender, receiver) if operation in _ROOTED else (receiver,)


def least_bytes(operation: Operation, ranks: int, pieces: int = 1) -> int:
    """The smallest size: each part has 1 B."""
    return pieces if operation in ("broadcast", "reduce") else max(ranks, 2 * pieces)


def _parts(size: int, count: int) -> list[int]:
    """Whole bytes, as even as can be."""
    return [size * (i + 1) // count - size * i // count for i in range(count)]


def _ring(chain: Chain, ranks: int, size: int, ready: Sequence[int], times: int) -> None:
    """`times` (n - 1) steps: each rank passes on to the next what it received in the step before."""
    parts = _parts(size, ranks)
    last = list(ready)
    for step in range(times * (ranks - 1)):
        last = [
            # What rank r has received came from r - 1.
            chain.send(rank, (rank + 1) % ranks, parts[(rank - step) % ranks], [last[rank]])
            for rank in range(ranks)
        ]
        last = [last[(rank - 1) % ranks] for rank in range(ranks)]


def _exchange(
    chain: Chain, ranks: int, size: int, ready: Sequence[Sequence[int]], distances: Sequence[int]
) -> Sequence[Sequence[int]]:
    """Ranks exchange with those at these distances (XOR) one after the other; with that at distance d the
    part d/n of the size, in which is what it has received before. Returns what each has
    received."""
    last = ready
    for distance in distances:
        part = max(1, round(Fraction(size * distance, ranks)))
        sent = [chain.send(rank, rank ^ distance, part, last[rank]) for rank in range(ranks)]
        last = [[*before, sent[rank ^ distance]] for rank, before in enumerate(last)]
    return last


def _each(ready: Sequence[int]) -> list[list[int]]:
    return [[before] for before in ready]


def _falling(ranks: int) -> list[int]:
    return [1 << i for i in reversed(range(ranks.bit_length() - 1))]


def _tree(chain: Chain, ranks: int, size: int, ready: Sequence[int], pieces: int) -> None:
    """Two binary trees, each with half of the data in `pieces` parts: up to the root, and down again. The
    second is the first with ranks in reverse, so that leaves of one are inside the other if n is even.
    """
    root, below = _in_order(ranks)
    for half, names in zip(_parts(size, 2), (range(ranks), range(ranks)[::-1]), strict=True):
        for part in _parts(half, pieces):
            waiting = [(root, _summed(chain, root, below, names, part, ready))]
            while waiting:
                rank, after = waiting.pop()
                for child in below[rank]:
                    waiting.append((child, [chain.send(names[rank], names[child], part, after)]))


def _summed(
    chain: Chain,
    rank: int,
    below: Sequence[Sequence[int]],
    names: Sequence[int],
    part: int,
    ready: Sequence[int],
) -> list[int]:
    """Those below a rank send it their sums; returns what it waits for until it has its own."""
    sums = [(child, _summed(chain, child, below, names, part, ready)) for child in below[rank]]
    sent = [chain.send(names[child], names[rank], part, after) for child, after in sums]
    return [ready[names[rank]], *sent]


def _in_order(ranks: int) -> tuple[int, list[list[int]]]:
    """A binary tree whose ranks are in order from left to right, every second a leaf: its root, and the
    children of each."""
    below: list[list[int]] = [[] for _ in range(ranks)]

    def root(low: int, high: int) -> int:
        # Of low + 1 to high the number that is divisible by the highest power of two.
        shift = (low ^ high).bit_length() - 1
        middle = (high >> shift << shift) - 1
        for a, b in ((low, middle), (middle + 1, high)):
            if a < b:
                below[middle].append(root(a, b))
        return middle

    return root(0, ranks), below


def _to_all(chain: Chain, ranks: int, size: int, ready: Sequence[int], *, in_rounds: bool) -> None:
    """Each rank sends each other its part. In rounds: to the i-th next in round i, when it has received what
    was meant for it in the round before."""
    parts = _parts(size, ranks)
    last = list(ready)
    for distance in range(1, ranks):
        sent = [
            chain.send(
                rank,
                (rank + distance) % ranks,
                parts[(rank + distance) % ranks],
                [last[rank] if in_rounds else ready[rank]],
            )
            for rank in range(ranks)
        ]
        last = [sent[(rank - distance) % ranks] for rank in range(ranks)]


def _to_root(
    chain: Chain, ranks: int, ready: Sequence[int], data: Callable[[int, int], int], *, up: bool
) -> None:
    """A binomial tree: the rank at distance 2^i sends to its parent what those from it on, below twice the
    distance, have (`data` of two ends), the nearest first; or the parent to it, the farthest first. A rank
    takes part in one message at a time.

    Source: MPICH, bcast_intra_binomial.c, reduce_intra_binomial.c, gather_intra_binomial.c,
    scatter_intra_binomial.c.
    """
    last = list(ready)
    distances = [1 << i for i in range((ranks - 1).bit_length())]
    for distance in distances if up else distances[::-1]:
        for parent in range(0, ranks - distance, 2 * distance):
            child = parent + distance
            ends = (child, parent) if up else (parent, child)
            size = data(child, min(child + distance, ranks))
            last[parent] = last[child] = chain.send(*ends, size, [last[parent], last[child]])


def _along(chain: Chain, ranks: Sequence[int], size: int, ready: Sequence[int], pieces: int) -> None:
    """From the first of these ranks to the last over all between them, in `pieces` parts: each passes one on
    when it has it, and the next has the one before."""
    links = list(pairwise(ranks))
    free = [[ready[a], ready[b]] for a, b in links]
    for part in _parts(size, pieces):
        here: list[int] = []
        for link, (a, b) in enumerate(links):
            here = free[link] = [chain.send(a, b, part, [*free[link], *here])]


def _rooted(*, up: bool, whole: bool) -> Mapping[Algorithm, Step]:
    """Operations to the first rank, or from it: of the whole array, or of a part of each rank."""

    def tree(chain: Chain, ranks: int, size: int, ready: Sequence[int], _: int) -> None:
        _to_root(
            chain,
            ranks,
            ready,
            lambda first, end: size if whole else size * end // ranks - size * first // ranks,
            up=up,
        )

    def ring(chain: Chain, ranks: int, size: int, ready: Sequence[int], pieces: int) -> None:
        _along(chain, range(ranks)[:: -1 if up else 1], size, ready, pieces)

    def direct(chain: Chain, ranks: int, size: int, ready: Sequence[int], _: int) -> None:
        for rank, part in enumerate(_parts(size, ranks)[1:], start=1):
            ends = (rank, 0) if up else (0, rank)
            chain.send(*ends, part, [ready[0], ready[rank]])

    return {"binomial": tree, "ring": ring} if whole else {"binomial": tree, "direct": direct}


Step = Callable[[Chain, int, int, Sequence[int], int], object]
"""Adds one operation: chain, ranks, size, what each rank waits for before it begins, pieces."""
ALGORITHMS: Mapping[Operation, Mapping[Algorithm, Step]] = {
    "all-reduce": {
        "ring": lambda chain, n, size, ready, _: _ring(chain, n, size, ready, 2),
        "halving-doubling": lambda chain, n, size, ready, _: _exchange(
            chain, n, size, _exchange(chain, n, size, _each(ready), _falling(n)), _falling(n)[::-1]
        ),
        "tree": _tree,
    },
    "reduce-scatter": {
        "ring": lambda chain, n, size, ready, _: _ring(chain, n, size, ready, 1),
        "halving-doubling": lambda chain, n, size, ready, _: _exchange(
            chain, n, size, _each(ready), _falling(n)
        ),
    },
    "all-gather": {
        "ring": lambda chain, n, size, ready, _: _ring(chain, n, size, ready, 1),
        "halving-doubling": lambda chain, n, size, ready, _: _exchange(
            chain, n, size, _each(ready), _falling(n)[::-1]
        ),
    },
    "all-to-all": {
        "rounds": lambda chain, n, size, ready, _: _to_all(chain, n, size, ready, in_rounds=True),
        "direct": lambda chain, n, size, ready, _: _to_all(chain, n, size, ready, in_rounds=False),
    },
    "broadcast": _rooted(up=False, whole=True),
    "reduce": _rooted(up=True, whole=True),
    "gather": _rooted(up=True, whole=False),
    "scatter": _rooted(up=False, whole=False),
}
"""How each operation may be done; the first is the default."""
_ROOTED = ("broadcast", "reduce", "gather", "scatter")
