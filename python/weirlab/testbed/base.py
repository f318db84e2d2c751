"""What a testbed is: the tester and the system under test, able to run a scenario or to measure a trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from weirlab.documents import fields_of
from weirlab.errors import ImpossibleTrial, InputError, Problem

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario


Purpose = Literal["search", "warm-up", "steady", "repeat", "guard", "sweep"]
"""Why a trial is made: to find a bound, to warm up the device (its result decides nothing), to see whether
the device answers twice the same, because the tester did not offer the load of the trial before, to see
whether an upper bound still holds, or to look for losses below the bounds."""


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """One measurement to make (RFC 2544 section 23): a constant load of equal frames for a duration."""

    index: int
    """Place of the trial in its search, from 0. Chance in a simulated device derives from it, so that a
    resumed search repeats what it would have seen."""
    elapsed_s: float = 0.0
    """Sum of the effective durations of the trials before: the time of a simulated device when this one
    begins."""
    intended_load_fps: float
    """Frames/s, summed over all directions."""
    duration_s: float
    frame_size_bytes: int
    """L2 size with FCS, without preamble and gap."""
    directions: int = 1
    purpose: Purpose = "search"
    loss_budget: float | None = None
    """Loss ratio beyond which the outcome is decided: more than this share of all frames that the trial
    intends is lost. A testbed with live counters may then stop early. None: run to the end."""
    look_s: float | None = None
    """A time before the end at which the outcome is decided too if more than ``loss_budget`` of the frames
    intended until then are lost: the trial is then a short one. A testbed may leave it out, and run on."""

    def __post_init__(self) -> None:
        for name in ("intended_load_fps", "duration_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"trial {self.index}: {name} must be above 0 (got {value:g})")
        if self.look_s is not None and not 0.0 < self.look_s < self.duration_s:
            raise InputError(f"trial {self.index}: look_s must lie within the trial (got {self.look_s:g} s)")
        if self.loss_budget is not None and not 0.0 <= self.loss_budget <= 1.0:
            raise InputError(f"trial {self.index}: loss budget must lie in [0, 1] (got {self.loss_budget})")
        if self.frame_size_bytes < 1 or self.directions < 1:
            raise InputError(
                f"trial {self.index}: frame size and directions must be 1 or more "
                f"(got {self.frame_size_bytes} B, {self.directions})"
            )

    @property
    def intended_frames(self) -> int:
        """Frames that the load asks for in the whole duration, to the nearest."""
        return round(self.intended_load_fps * self.duration_s)

    @property
    def load_per_direction_fps(self) -> float:
        """Frames/s in each direction."""
        return self.intended_load_fps / self.directions


@dataclass(frozen=True, kw_only=True)
class Direction:
    """What one direction of a trial gave."""

    name: str
    """Whence and whither, such as ``sender-receiver``."""
    sent_frames: int
    received_frames: int
    """Distinct frames that arrived."""

    @property
    def loss_ratio(self) -> float | None:
        """(sent - received) / sent, in [0, 1]; None where nothing was sent."""
        if self.sent_frames == 0:
            return None
        return (self.sent_frames - self.received_frames) / self.sent_frames


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a trial gave. Counts are sums over all directions."""

    spec: TrialSpec
    intended_frames: int
    """Frames that the load asked for while the trial sent: in all of its duration, or until it was
    stopped."""
    sent_frames: int
    received_frames: int
    """Distinct frames that arrived; duplicates do not count."""
    duplicated_frames: int = 0
    reordered_frames: int = 0
    doubtful_frames: int = 0
    """Of the frames that were sent and did not arrive, those that the tester itself may have lost."""
    disturbed_frames: int = 0
    """Of the same, those that may be lost because of the ``disturbance``."""
    disturbance: str = ""
    """What else the machine did meanwhile that can cost frames, whether it did or not, such as work of other
    programs or of another guest of its hypervisor; empty where there was nothing."""
    effective_duration_s: float
    """Time that the trial took, waits included. Above 0."""
    offered_load_fps: float
    """Frames/s that were really sent (RFC 2285 section 3.5.2), summed over all directions."""
    latency_s: Mapping[str, float] = field(default_factory=dict)
    """One-way delay percentiles by name: ``p50 p90 p99 p99.9 min max``. Empty where it was not measured."""
    stopped_early: bool = False
    """Whether the loss budget ended the trial. The loss ratio is then a lower bound."""
    per_direction: tuple[Direction, ...] = ()
    """The counts of each direction, where the testbed can tell them apart. Their sums are those of the
    trial."""
    facts: Mapping[str, float | int | str | None] = field(default_factory=dict)
    """What else the testbed knows of this trial, such as the lateness of its sender."""

    def __post_init__(self) -> None:
        for fault in chain(self._miscounted(), self._misdirected(), self._mistimed()):
            raise ImpossibleTrial(f"trial {self.spec.index}: {fault}")

    def _miscounted(self) -> Iterator[str]:
        names = ("intended", "sent", "received", "duplicated", "reordered", "doubtful", "disturbed")
        counts = fields_of(self, *(f"{each}_frames" for each in names))
        for name, count in counts.items():
            if type(count) is not int:
                yield f"{name} is no whole number ({count!r})"
            elif count < 0:
                yield f"{name} is negative ({count})"
        if type(self.stopped_early) is not bool:
            yield f"stopped_early is neither true nor false ({self.stopped_early!r})"
        sent, received = self.sent_frames, self.received_frames
        if received > sent:
            yield f"received {received} frames of {sent} sent"
        for name, what in (("doubtful_frames", "are in doubt"), ("disturbed_frames", "are disturbed")):
            if counts[name] > sent - received:
                yield f"{counts[name]} lost frames {what}, but only {sent - received} were lost"
        if sent == 0:
            yield f"no frame was sent at {self.spec.intended_load_fps:g} frames/s"
        if self.intended_frames == 0:
            yield f"{sent} frames were sent where none was intended"
        if self.reordered_frames > received:
            yield f"{self.reordered_frames} of {received} received frames came out of order"

    def _misdirected(self) -> Iterator[str]:
        for each in self.per_direction:
            if not 0 <= each.received_frames <= each.sent_frames:
                yield f"{each.name} received {each.received_frames} frames of {each.sent_frames} sent"
        for name in ("sent_frames", "received_frames"):
            total, whole = sum(getattr(each, name) for each in self.per_direction), getattr(self, name)
            if self.per_direction and total != whole:
                yield f"{name} of the directions add up to {total}, not to {whole}"

    def _mistimed(self) -> Iterator[str]:
        for name, figure in {**self.latency_s, **self.facts}.items():
            if isinstance(figure, float) and not math.isfinite(figure):
                yield f"{name} is {figure}"
        if not (math.isfinite(self.effective_duration_s) and self.effective_duration_s > 0.0):
            yield f"it took {self.effective_duration_s:g} s"
        if not (math.isfinite(self.offered_load_fps) and self.offered_load_fps > 0.0):
            yield f"offered_load_fps is {self.offered_load_fps:g}, though {self.sent_frames} frames were sent"

    @property
    def ran_s(self) -> float:
        """How long it offered its load [s]."""
        return (
            self.intended_frames / self.spec.intended_load_fps if self.stopped_early else self.spec.duration_s
        )

    @property
    def loss_ratio(self) -> float:
        """(sent - received) / sent, in [0, 1] (RFC 1242 section 3.6, there a percentage). Unsent frames are
        the tester's fault and do not count.

        The quotient of two whole numbers is rounded once: a loss of exactly a goal's ratio equals it, and a
        single lost frame is never 0."""
        return (self.sent_frames - self.received_frames) / self.sent_frames

    @property
    def loss_ratio_of_intended(self) -> float:
        """(intended - received) / intended, in [0, 1]: unsent frames count as lost (the default of
        RFC 9971)."""
        expected = max(self.intended_frames, self.sent_frames)
        return (expected - self.received_frames) / expected

    @property
    def unsent_ratio(self) -> float:
        """Share of the intended frames that the tester did not send, in [0, 1]."""
        return max(0, self.intended_frames - self.sent_frames) / self.intended_frames


class Testbed(Protocol):
    """Where a scenario runs or a trial is measured."""

    def refuses(self, scenario: Scenario) -> list[Problem]:
        """Every part of ``scenario`` that this testbed cannot honour; empty when it can honour all."""
        ...

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:
        """Execute ``scenario`` once per seed."""
        ...

    def trial(self, spec: TrialSpec) -> Trial:
        """Measure one trial. Raises TestbedError when no believable result could be had."""
        ...

    def close(self) -> None:
        """Take down what the testbed built. May be called twice."""
        ...


@runtime_checkable
class Recalls(Protocol):
    """A testbed whose device is in a state that earlier trials left it in, and that can be put there again:
    a simulated one. A real device keeps its state by itself, or has lost it."""

    def recall(self, trials: Sequence[Trial]) -> None:
        """Take these trials of a search that is resumed as made here."""
        ...
