"""What a machine that is device and tester at once did to a trial, and how many losses that explains.

A trial through a router of this machine loses frames when the router cannot go on, and when it does not get
its CPU: another program, another guest of the hypervisor, or a sender that was kept from sending and makes up
for it in a burst. None of these is the device's. Each can be bounded: of a load of ``r`` frames/s, a router
that has no CPU for ``t`` seconds loses at most ``r t`` more than it would have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weirlab.documents import fields_of
from weirlab.testbed.account import MachineAccount
from weirlab.testbed.linux_router import Placement

MARGIN_S = 0.02
"""What others used of the router's CPU counts beyond this: it is a difference of sums that the kernel rounds
to ticks of 10 ms."""
CATCHING_UP = 3.0
"""A sender that was kept from its CPU for a time catches up at one and a half times its load: the frames of
three such times leave late."""
UNSEEN_SHARE = 0.05
"""Where the kernel does not report how long its network work waited: share of the router's CPU that other
programs may use before all of it counts as time that the router waited."""


@dataclass(frozen=True, kw_only=True)
class OthersTime:
    """Time that others took from a trial."""

    cause: str
    """In words."""
    seconds: float
    """How long the router or the sender could not go on because of it."""
    frames: int
    """Losses that it explains at most."""


@dataclass(frozen=True, kw_only=True)
class TrialAccount:
    """The account of one trial."""

    machine: MachineAccount
    placement: Placement
    load_fps: float
    """Offered, summed over all directions."""
    queue_losses: int
    """Frames that were lost in the queues before and behind the router. A router that has no CPU loses them
    there and nowhere else."""
    late_frames: int
    """Frames that left more than 1 ms after they were due."""
    sender_waited_s: float | None
    """How long the sending threads were ready and waited for their CPU; None: the kernel does not report
    it."""
    receiver_waited_s: float | None
    receiver_on_cpu_s: float | None
    """How long the receiving threads ran."""

    @property
    def router_cpu(self) -> int:
        """The CPU that does the router's work."""
        return self.placement.sender if self.placement.router is None else self.placement.router

    @property
    def router_softirq_s(self) -> float | None:
        """Time that the router's CPU worked off interrupts, nearly all of it forwarding. In ticks of 4 or
        10 ms; None where the kernel does not report it."""
        found = self.machine.cpus.get(self.router_cpu)
        return None if found is None else found.interrupts_s

    @property
    def others(self) -> list[OthersTime]:
        """What others took from the trial; empty where nothing that could cost a frame."""
        return [each for each in self._others() if each.frames > 0]

    @property
    def disturbed_frames(self) -> int:
        """Losses that all of it together explains at most."""
        late, router = self._sender_late().frames, sum(each.frames for each in self._router_held_up())
        return late + min(router, self.queue_losses)

    @property
    def words(self) -> str:
        """The same in words; empty where there was nothing."""
        return "; ".join(each.cause for each in self.others)

    def facts(self) -> dict[str, float | int | str | None]:
        """Figures for the log."""
        return {
            **self.machine.facts(),
            **fields_of(self, "router_softirq_s", "sender_waited_s", "receiver_waited_s"),
            **fields_of(self, "receiver_on_cpu_s", "late_frames"),
        }

    def _others(self) -> Iterator[OthersTime]:
        yield from self._router_held_up()
        yield self._sender_late()

    def _router_held_up(self) -> Iterator[OthersTime]:
        stolen_s = self._stolen_s(self.router_cpu)
        yield self._time(stolen_s, f"a hypervisor took the router's CPU away for {_ms(stolen_s)}")
        waited_s = self._router_waited_s()
        yield self._time(waited_s, f"the router waited {_ms(waited_s)} for its CPU, which others used")

    def _sender_late(self) -> OthersTime:
        kept_s = (self.sender_waited_s or 0.0) + self._stolen_s(self.placement.sender)
        late_frames = min(self.late_frames, round(CATCHING_UP * self.load_fps * kept_s))
        return OthersTime(
            cause=f"{late_frames} frames left in bursts, as the sender was kept from its CPU for "
            f"{_ms(kept_s)}",
            seconds=kept_s,
            frames=late_frames,
        )

    def _time(self, seconds: float, cause: str) -> OthersTime:
        return OthersTime(cause=cause, seconds=seconds, frames=round(self.load_fps * seconds))

    def _stolen_s(self, cpu: int) -> float:
        found = self.machine.cpus.get(cpu)
        return 0.0 if found is None else found.stolen_s

    def _router_waited_s(self) -> float:
        """How long at most others than the tester had the router's CPU while it had work to do.

        The kernel leaves network work that goes on for too long to a thread (ksoftirqd), which competes with
        programs. It waited for others no longer than it waited, and no longer than others ran."""
        found = self.machine.cpus.get(self.router_cpu)
        if self.placement.router is None or found is None:
            return 0.0
        shared = self.placement.receiver == self.router_cpu
        own_s = (self.receiver_on_cpu_s or 0.0) if shared else 0.0
        own_s += self.machine.softirq_ran_s.get(self.router_cpu, 0.0)
        others_s = max(0.0, self.machine.duration_s - found.idle_s - found.stolen_s - own_s - MARGIN_S)
        waited_s = self.machine.softirq_wait_s.get(self.router_cpu)
        if waited_s is not None:
            return min(waited_s, others_s)
        return others_s if others_s > UNSEEN_SHARE * self.machine.duration_s else 0.0


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"
