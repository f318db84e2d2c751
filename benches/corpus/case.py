"""What a case is: parameters in, captures and what is true of them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Transfer:
    """One or more connections of Linux TCP over an emulated path; the words are options of `programs`."""

    sender: Mapping[str, Any]
    """Options of the program that sends: `seconds` or `bytes`, `cc`, `sndbuf`, `pace_bps`, `chunk`,
    `every_s`."""
    receiver: Mapping[str, Any] = field(default_factory=dict)
    """Options of the program that reads: `rcvbuf`, `read_bps`, `pauses`."""
    backward: bool = False
    """From the far end to the near one: traffic beside what is judged."""
    start_s: float = 0.0


@dataclass(frozen=True)
class Case:
    """What is made. Exactly one of `hops` and `scenario` is given."""

    name: str
    family: str
    causes: tuple[str, ...]
    """Findings that it is made for: `truth` says whether they came true."""
    seed: int
    hops: Mapping[str, Any] | None = None
    """An emulated path, as in a scenario file."""
    transfers: Sequence[Transfer] = ()
    scenario: str | None = None
    """A scenario of the simulator, with records `sender` and `receiver` of frames."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was drawn."""


@dataclass(frozen=True)
class Made:
    """A capture, and what was counted while it was made: a line of `counts.jsonl`."""

    case: str
    family: str
    causes: tuple[str, ...]
    place: str
    """`sender` or `receiver`."""
    file: str
    """Beside `counts.jsonl`."""
    simulated: bool
    drawn: Mapping[str, Any]
    """Parameters of the case."""
    counted: Mapping[str, Any]
    """By the emulator and the kernels, or by the simulator."""

    @property
    def name(self) -> str:
        return f"{self.case}-{self.place}"

    @property
    def single(self) -> bool:
        """Whether it was made for one cause alone."""
        return len(self.causes) == 1


def log_uniform(chance: Any, low: float, high: float) -> float:
    """A number whose logarithm is uniform: scales of networks span decades."""
    drawn: float = low * (high / low) ** chance.random()
    return drawn
