"""Trials through a real router, the kernel's or dpdk-testpmd, in network namespaces of this machine.

See ``docs/testbed-netns.md`` for what such a measurement is worth.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, Self

from weirlab import _core
from weirlab.errors import (
    InputError,
    MissingCapability,
    Problem,
    TestbedError,
    TrialTimeout,
    UnsupportedError,
)
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.linux_router import MTU, RECEIVER, SENDER, LinuxRouter, Losses, Placement
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.refusals import only_the_load
from weirlab.testbed.testpmd import LARGEST_FRAME_BYTES as LARGEST_OF_TESTPMD
from weirlab.testbed.testpmd import TestpmdRouter
from weirlab.testbed.turns import alone_on_this_machine

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario

__all__ = ["NetnsTestbed", "Placement", "Router", "refusals"]

Router = Literal["linux", "testpmd"]
_ROUTERS: Mapping[Router, type[LinuxRouter]] = {"linux": LinuxRouter, "testpmd": TestpmdRouter}
FRAME_OVERHEAD_BYTES = 14 + 4 + 20 + 8
"""What a frame has around the UDP payload: Ethernet header and FCS, IPv4 and UDP headers."""
SMALLEST_FRAME_BYTES = 64
"""RFC 2544 section 9.1. Its 18 bytes of payload hold the 16 bytes of a probe's header."""
LARGEST_FRAME_BYTES = MTU + 14 + 4
PORT = 7
"""Where probes go: UDP port 7, the port that RFC 2544 (appendix C) gives to test frames."""
LARGEST_RECEIVE_BUFFER_BYTES = 1 << 30
"""More than the kernel grants. It doubles what it is asked for, and a small frame takes about 1 kB of that:
two million frames may wait."""
RECEIVE_BUFFER_SHARE = 16
"""A smaller machine gives one part in so many of its memory, twice that in the worst case. Nothing is taken
before frames wait."""
FLIGHT_S = 0.1
"""A probe that did not arrive after this time counts as lost when a trial may be stopped early."""
CLOCK_STEP_LIMIT_S = 50e-6
"""Delays are not reported when the real-time clock was set by more than this during a trial."""


class NetnsTestbed:
    """Measures trials through a router. Needs root on Linux; a context manager, or call ``close``.

    Frames that the tester's own receiver lost, because its socket was full, passed the router but cannot be
    checked: they count as not sent. Many of them make a trial one whose load was beyond the tester.

    Trials on one machine take turns, whatever process they belong to: two at once would measure each other.

    Nothing is left behind: the namespaces have no names and end with this object, at the latest with this
    process, however that ends.
    """

    def __init__(
        self,
        *,
        router: Router = "linux",
        settle_s: float = 0.2,
        placement: Placement | None = None,
        real_time: bool = True,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        """Build namespaces, links and routes.

        Args:
            router: ``linux``: the kernel forwards; ``testpmd``: dpdk-testpmd copies frames, and keeps the
                router's CPU busy all the time.
            settle_s: A trial ends once nothing has arrived for this time after the last frame was sent.
            placement: Which CPU does what; by default the best use of those that this process may run on.
            real_time: Whether sender and receiver ask for real-time priority. Without it the load is
                uneven.
            receive_buffer_bytes: The most that may wait while the receiver does not run; by default what
                suits the memory of this machine.

        Raises:
            MissingCapability: not Linux, not root, or the kernel has no namespaces or veth pairs; no
                dpdk-testpmd, or no CPU for it.
        """
        if not (math.isfinite(settle_s) and settle_s >= 0.0):
            raise InputError(f"the time to settle must be 0 s or more (got {settle_s:g})")
        if sys.platform != "linux":
            raise MissingCapability("the testbed 'netns' needs Linux")
        self._settle_s = settle_s
        self._real_time = real_time
        self._receive_buffer_bytes = receive_buffer_bytes or _receive_buffer_bytes()
        self._placement = placement or Placement.on(sorted(os.sched_getaffinity(0)))
        self._router = _ROUTERS[router](self._placement.router)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def placement(self) -> Placement:
        """Which CPU does what."""
        return self._placement

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """The namespaces of ``sender``, ``router`` and ``receiver``."""
        return self._router.namespaces

    def refuses(self, scenario: Scenario) -> list[Problem]:
        """Every part of ``scenario`` that this testbed cannot honour."""
        return refusals(scenario)

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:
        """Refused: this testbed measures the trials of a search and runs nothing else."""
        del seeds
        only_search = scenario.problem_at(("testbed",), "a router is measured by a search, trial by trial")
        raise UnsupportedError(self.refuses(scenario) or [only_search])

    def trial(self, spec: TrialSpec) -> Trial:
        """Measure one trial.

        Raises:
            InputError: the frame size, number of directions or load is not one that this testbed can offer.
            TestbedError: the tester was at fault, or the system refused something.
            TrialTimeout: frames still arrived long after the last one was sent.
        """
        frames = _frames(spec, self._router.largest_frame_bytes)
        self._router.check()
        with alone_on_this_machine():
            began = time.monotonic()
            before = self._router.losses()
            try:
                outcome = self._measure(spec, frames)
            except ValueError as error:
                raise InputError(f"trial {spec.index}: {error}") from error
            except TimeoutError as error:
                raise TrialTimeout(f"trial {spec.index}: {error}") from error
            except OSError as error:
                raise TestbedError(f"trial {spec.index}: {error}") from error
            losses = self._router.losses() - before
            effective_s = time.monotonic() - began
        self._router.check()
        _check(spec, frames, outcome, losses)
        sent = outcome["sent"] - outcome["receiver_drops"]
        return Trial(
            spec=spec,
            intended_frames=outcome["intended"],
            sent_frames=sent,
            received_frames=outcome["received"],
            duplicated_frames=outcome["duplicated"],
            reordered_frames=outcome["reordered"],
            effective_duration_s=effective_s,
            offered_load_fps=sent / _sending_s(spec, outcome),
            latency_s=_latency(outcome),
            stopped_early=_was_cut_short(spec, outcome),
            facts=self._facts(outcome, losses),
        )

    def close(self) -> None:
        """Take everything down. May be called twice."""
        self._router.close()

    def _measure(self, spec: TrialSpec, frames: int) -> _core._UdpTrial:
        budget = spec.loss_budget
        return _core.udp_trial(
            source=f"{SENDER}:0",
            destination=f"{RECEIVER}:{PORT}",
            payload_bytes=spec.frame_size_bytes - FRAME_OVERHEAD_BYTES,
            frames=frames,
            duration_ps=round(spec.duration_s * 1e12),
            settle_ps=round(self._settle_s * 1e12),
            run_id=secrets.randbits(32),
            sender_namespace=self.namespaces["sender"].path,
            receiver_namespace=self.namespaces["receiver"].path,
            sender_cpu=self._placement.sender,
            receiver_cpu=self._placement.receiver,
            real_time=self._real_time,
            receive_buffer_bytes=self._receive_buffer_bytes,
            loss_budget_frames=None if budget is None else math.floor(budget * frames),
            flight_ps=round(FLIGHT_S * 1e12),
        )

    def _facts(self, outcome: _core._UdpTrial, losses: Losses) -> dict[str, float | int | str | None]:
        lateness = outcome["lateness_ns"] or {}
        lost = _device_losses(outcome)
        return {
            "lateness_p50_s": _seconds(lateness.get("p50")),
            "lateness_p99_s": _seconds(lateness.get("p99")),
            "lateness_max_s": _seconds(lateness.get("max")),
            "real_time": int(outcome["sender_real_time"] and outcome["receiver_real_time"]),
            "sender_cpu": self._placement.sender,
            "router_cpu": self._placement.router,
            "receiver_cpu": self._placement.receiver,
            "frames_per_call": outcome["sent"] / max(1, outcome["batches"]),
            "blocked": outcome["blocked"],
            "strangers": outcome["strangers"],
            "receiver_drops": outcome["receiver_drops"],
            "lost_at_entrance": losses.at_entrance,
            "lost_at_exit": losses.at_exit,
            "lost_elsewhere": lost - losses.at_entrance - losses.at_exit,
            "softnet_drops": losses.softnet,
            "clock_step_s": outcome["clock_step_ns"] / 1e9,
        }


def _receive_buffer_bytes() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(LARGEST_RECEIVE_BUFFER_BYTES, memory // RECEIVE_BUFFER_SHARE)


def _frames(spec: TrialSpec, largest_bytes: int) -> int:
    """How many frames to send; raises InputError when the trial is not one for this testbed."""
    if spec.directions != 1:
        raise InputError(
            f"trial {spec.index}: the testbed 'netns' offers load in one direction (got {spec.directions})"
        )
    if not SMALLEST_FRAME_BYTES <= spec.frame_size_bytes <= largest_bytes:
        raise InputError(
            f"trial {spec.index}: the testbed 'netns' sends frames of {SMALLEST_FRAME_BYTES} to "
            f"{largest_bytes} B (got {spec.frame_size_bytes})"
        )
    if spec.intended_frames == 0:
        raise InputError(
            f"trial {spec.index}: {spec.intended_load_fps:g} frames/s are no frame in {spec.duration_s:g} s"
        )
    return spec.intended_frames


def _check(spec: TrialSpec, frames: int, outcome: _core._UdpTrial, losses: Losses) -> None:
    """Raise what makes a trial worthless."""

    def fault(text: str) -> NoReturn:
        raise TestbedError(f"trial {spec.index}: {text}")

    if losses.handed_over < outcome["sent"]:
        fault(
            f"the sender's interface counted {losses.handed_over} frames of {outcome['sent']} sent: it "
            "does not cut batches into frames"
        )
    if outcome["stopped"] and _device_losses(outcome) <= (spec.loss_budget or 0.0) * frames:
        fault("it was stopped for the loss of frames that the device had not lost")


def _device_losses(outcome: _core._UdpTrial) -> int:
    return outcome["sent"] - outcome["receiver_drops"] - outcome["received"]


def _was_cut_short(spec: TrialSpec, outcome: _core._UdpTrial) -> bool:
    """Whether the trial was stopped before it had sent all; a loss that is seen later stops nothing."""
    return outcome["stopped"] and outcome["intended"] < spec.intended_frames


def _sending_s(spec: TrialSpec, outcome: _core._UdpTrial) -> float:
    """How long the load was offered: for the duration; longer when the sender was late; shorter when it was
    stopped."""
    sending_s = outcome["sending_ps"] / 1e12
    due_s = outcome["intended"] / spec.intended_load_fps if outcome["stopped"] else spec.duration_s
    return max(sending_s, due_s)


def _latency(outcome: _core._UdpTrial) -> dict[str, float]:
    if outcome["delay_ns"] is None or abs(outcome["clock_step_ns"]) > CLOCK_STEP_LIMIT_S * 1e9:
        return {}
    return {name: delay / 1e9 for name, delay in outcome["delay_ns"].items()}


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def refusals(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that a router between one sender and one receiver cannot honour. Needs
    no privilege."""
    found = only_the_load(scenario, "a router")
    return found + [scenario.problem_at(path, message) for path, message in _own_refusals(scenario)]


def _own_refusals(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], str]]:
    from weirlab.scenario.flows import Flow, flows_of, frame_sizes
    from weirlab.scenario.layout import FIXED_NODES, Layout
    from weirlab.scenario.testbeds import Netns
    from weirlab.scenario.traffic import Departing, Udp

    if isinstance(scenario.testbed, Netns) and scenario.testbed.router is None:
        yield ("testbed", "path"), "this version has no path emulator; write 'router: linux'"
    if scenario.search is None:
        return
    measured = scenario.search.vary.split(".")[1]
    place, traffic = ("traffic", measured), scenario.traffic[measured]
    flows = flows_of(traffic, Layout(FIXED_NODES, frozenset(FIXED_NODES), ()))
    if flows != [Flow(FIXED_NODES.index("sender"), (FIXED_NODES.index("receiver"),))]:
        yield place, "the load goes one way, from 'sender' to 'receiver'"
    if not isinstance(traffic.transport, Udp):
        yield (*place, "transport"), "a router forwards IP packets; write 'transport: {kind: udp}'"
    sizes = frame_sizes(traffic.source) if isinstance(traffic.source, Departing) else ()
    of_testpmd = isinstance(scenario.testbed, Netns) and scenario.testbed.router == "testpmd"
    largest = LARGEST_OF_TESTPMD if of_testpmd else LARGEST_FRAME_BYTES
    for size, _ in sizes:
        if not SMALLEST_FRAME_BYTES <= size <= largest:
            limits = f"{SMALLEST_FRAME_BYTES} to {largest} B"
            yield (*place, "source", "frame_size"), f"frames of {limits} can be sent (got {size} B)"
