"""Programs of ranks: computations and messages that wait for each other, whatever format they come in.

The k-th send of a rank to another with a tag is received by the k-th matching receive there, in the order of
the files, of the same size. A receive is over when its message is delivered and what it waits for is over.
DEVIATION: a send is over when its message is delivered, whatever its length (rendezvous); computations of a
rank do not wait for a free processor; a message has 1 B at least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from weirlab.errors import InputError
from weirlab.scenario.traffic.chains import Chain, ChainError


@dataclass
class Node:
    """A task of a program before it has a place among all."""

    rank: int
    number: int
    """Where it is in the file, for messages about faults."""
    peer: int | None = None
    """Who receives what it sends; None: it sends nothing."""
    size: int = 0
    delay_ps: int = 0
    after: list[Node] = field(default_factory=list)
    start: Node | None = None
    """When it starts, if others wait for that."""
    place: int = -1

    def started(self) -> Node:
        """A task that is over when this one starts."""
        if self.start is None:
            self.start = Node(self.rank, self.number, after=self.after)
            self.after = [self.start]
        return self.start


Fault = Callable[[Node, str], InputError]
"""What is wrong with a task, with its place."""
Channel = tuple[int, int, int]
"""Sender, receiver, tag."""


@dataclass
class Program:
    """The tasks of all ranks."""

    fault: Fault
    named: Callable[[Node], str]
    """A task as messages about others name it."""
    nodes: list[Node] = field(default_factory=list)
    sends: dict[Channel, list[Node]] = field(default_factory=lambda: defaultdict(list))
    receives: dict[Channel, list[Node]] = field(default_factory=lambda: defaultdict(list))
    expanded: int = 0
    """Tasks that other tasks consist of, and that `nodes` does not list."""

    def send(self, node: Node, peer: int, size: int, tag: int) -> None:
        """Let a task be a message to another rank."""
        node.peer, node.size = peer, size
        self.sends[node.rank, peer, tag].append(node)

    def receive(self, node: Node, peer: int, size: int, tag: int) -> None:
        """Let a task be over when a message of another rank is delivered."""
        node.size = size
        self.receives[peer, node.rank, tag].append(node)

    def chain(self, file: Path) -> Chain:
        """The tasks, read from `file`, in an order in which none waits for a later one. Raises InputError."""
        try:
            chain = self._chain()
        except ChainError as error:
            raise InputError(f"{file}: {error}") from None
        if all(sender == receiver for sender, receiver, *_ in chain.tasks):
            raise InputError(f"{file}: no rank sends anything to another")
        return chain

    def _chain(self) -> Chain:
        for channel in sorted({*self.sends, *self.receives}):
            self._match(channel)
        chain = Chain()
        for node in self._in_order(self.nodes):
            after = [earlier.place for earlier in node.after]
            if node.peer is None or node.peer == node.rank:
                node.place = chain.compute(node.rank, node.delay_ps, after)
            else:
                node.place = chain.send(node.rank, node.peer, max(1, node.size), after)
        return chain

    def _match(self, channel: Channel) -> None:
        """Let each receive wait for its message. Raises InputError where there is none."""
        sender, receiver, tag = channel
        for message, node in zip_longest(self.sends.get(channel, ()), self.receives.get(channel, ())):
            if node is None:
                raise self.fault(message, f"rank {receiver} never receives it (tag {tag})")
            if message is None:
                raise self.fault(node, f"rank {sender} never sends it (tag {tag})")
            if node.size != message.size:
                expected = f"receives {node.size} B; rank {sender} sends {message.size} B (tag {tag})"
                raise self.fault(node, f"{expected} in {self.named(message)}")
            node.after.append(message)

    def _in_order(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """Each task behind those that it waits for. Raises InputError for tasks that wait for each other."""
        done: set[int] = set()
        for root in nodes:
            waiting: list[tuple[Node, Iterator[Node]]] = [(root, iter(root.after))]
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
                    raise self.fault(before, "waits for itself, over what it requires or receives")
                else:
                    under_way.add(id(before))
                    waiting.append((before, iter(before.after)))
