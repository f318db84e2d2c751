"""Trials through a real router, the kernel's or dpdk-testpmd, in network namespaces of this machine.

See ``docs/testbed-netns.md`` for what such a measurement is worth.

One file: a trial is one object, from the load to its account.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NoReturn

from weirlab import _core
from weirlab.errors import (
    InputError,
    MissingCapability,
    Problem,
    TestbedError,
    TrialTimeout,
    UnsupportedError,
)
from weirlab.files import Closing
from weirlab.scenario.traffic.offered import mean_bytes
from weirlab.testbed.account import Reading, frequencies
from weirlab.testbed.base import Direction, Trial, TrialSpec
from weirlab.testbed.disturbance import TrialAccount
from weirlab.testbed.linux_router import (
    BACK,
    MTU,
    THERE,
    LinuxRouter,
    Losses,
    Placement,
    Route,
    softnet_drops,
)
from weirlab.testbed.mixes import Mix, mix_of, runs, settle_s_of
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.refusals import MOST_FRAME_BYTES, only_the_load
from weirlab.testbed.shaped import ShapedRouter
from weirlab.testbed.testpmd import LARGEST_FRAME_BYTES as LARGEST_OF_TESTPMD, TestpmdRouter
from weirlab.testbed.turns import alone_on_this_machine

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario

Router = Literal["linux", "shaped", "testpmd"]
_ROUTERS: Mapping[Router, type[LinuxRouter]] = {
    "linux": LinuxRouter,
    "shaped": ShapedRouter,
    "testpmd": TestpmdRouter,
}
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


class NetnsTestbed(Closing):
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
        mix: Mix | None = None,
    ) -> None:
        """Build namespaces, links and routes.

        Args:
            router: ``linux``: the kernel forwards; ``shaped``: at a rate that is known
                (`weirlab.testbed.shaped`); ``testpmd``: dpdk-testpmd copies frames, and keeps the router's
                CPU busy all the time.
            settle_s: A trial ends once nothing has arrived for this time after the last frame was sent.
            placement: Which CPU does what; by default the best use of those that this process may run on.
            real_time: Whether sender and receiver ask for real-time priority. Without it the load is
                uneven.
            receive_buffer_bytes: The most that may wait while the receiver does not run; by default what
                suits the memory of this machine.
            mix: Frame sizes with their weights, whose mean all trials bear; see `weirlab.testbed.mixes.runs`
                for the order they leave in. None: the one size of each trial.

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
        self._mix = mix
        self._runs = None if mix is None else runs(mix)
        self._receive_buffer_bytes = receive_buffer_bytes or _receive_buffer_bytes()
        self._placement = placement or Placement.on(sorted(os.sched_getaffinity(0)))
        self._router = _ROUTERS[router](self._placement.router)
        self._placement = replace(self._placement, router=self._router.cpu)

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
        frames = _frames(spec, self._router.largest_frame_bytes, self._mix)
        routes = (THERE, BACK)[: spec.directions]
        self._router.check()
        with alone_on_this_machine():
            began = time.monotonic()
            before, softnet = [self._router.losses(route) for route in routes], softnet_drops()
            try:
                outcome = self._measure(spec, routes, frames)
            except ValueError as error:
                raise InputError(f"trial {spec.index}: {error}") from error
            except TimeoutError as error:
                raise TrialTimeout(f"trial {spec.index}: {error}") from error
            except OSError as error:
                raise TestbedError(f"trial {spec.index}: {error}") from error
            losses = [self._router.losses(route) - then for route, then in zip(routes, before, strict=True)]
            softnet = softnet_drops() - softnet
            effective_s = time.monotonic() - began
        self._router.check()
        _check(spec, outcome, routes, losses)
        directions = tuple(
            Direction(
                name=route.name,
                sent_frames=counts["sent"] - counts["receiver_drops"],
                received_frames=counts["received"],
            )
            for route, counts in zip(routes, outcome["directions"], strict=True)
        )
        account = self._account(spec, outcome, losses)
        sent_frames = sum(each.sent_frames for each in directions)
        received_frames = _sum(outcome, "received")
        return Trial(
            spec=spec,
            intended_frames=_sum(outcome, "intended"),
            sent_frames=sent_frames,
            received_frames=received_frames,
            disturbed_frames=min(account.disturbed_frames, sent_frames - received_frames),
            disturbance=account.words,
            duplicated_frames=_sum(outcome, "duplicated"),
            reordered_frames=_sum(outcome, "reordered"),
            effective_duration_s=effective_s,
            offered_load_fps=sum(
                each.sent_frames / _sending_s(spec, counts, stopped=outcome["stopped"])
                for each, counts in zip(directions, outcome["directions"], strict=True)
            ),
            latency_s=_latency(outcome),
            stopped_early=_was_cut_short(spec, outcome),
            per_direction=directions,
            facts=self._facts(outcome, losses, softnet) | account.facts(),
        )

    def close(self) -> None:
        """Take everything down. May be called twice."""
        self._router.close()

    def _measure(self, spec: TrialSpec, routes: Sequence[Route], frames: Sequence[int]) -> _core._UdpTrial:
        budget, look_s = spec.loss_budget, None if spec.loss_budget is None else spec.look_s
        return _core.udp_trial(
            directions=[
                {
                    "source": f"{route.source_address}:0",
                    "destination": f"{route.target_address}:{PORT}",
                    "frames": count,
                    "run_id": run_id,
                    "sender_namespace": self.namespaces[route.source].path,
                    "receiver_namespace": self.namespaces[route.target].path,
                    "sender_cpu": self._placement.sender,
                    "receiver_cpu": self._placement.receiver,
                }
                for route, count, run_id in zip(routes, frames, _run_ids(len(routes)), strict=True)
            ],
            payload_runs=[
                (size - FRAME_OVERHEAD_BYTES, count)
                for size, count in self._runs or [(spec.frame_size_bytes, 1)]
            ],
            duration_ps=round(spec.duration_s * 1e12),
            settle_ps=round(self._settle_s * 1e12),
            real_time=self._real_time,
            receive_buffer_bytes=self._receive_buffer_bytes,
            loss_budget_frames=None if budget is None else math.floor(budget * spec.intended_frames),
            look_ps=None if look_s is None else round(look_s * 1e12),
            look_budget_frames=_look_budget(spec),
            flight_ps=round(FLIGHT_S * 1e12),
            accounts=Reading.files(),
        )

    def _account(self, spec: TrialSpec, outcome: _core._UdpTrial, losses: Sequence[Losses]) -> TrialAccount:
        """What else happened while the frames were sent."""
        before, after = (Reading.of(at_ps / 1e12, texts) for at_ps, texts in outcome["accounts"])
        return TrialAccount(
            machine=after - before,
            placement=self._placement,
            load_fps=spec.intended_load_fps,
            queue_losses=sum(each.at_entrance + each.at_exit for each in losses),
            late_frames=_sum(outcome, "late"),
            sender_waited_s=_thread_s(outcome, "sender_waited_ns"),
            receiver_waited_s=_thread_s(outcome, "receiver_waited_ns"),
            receiver_on_cpu_s=_thread_s(outcome, "receiver_on_cpu_ns"),
        )

    def _facts(
        self, outcome: _core._UdpTrial, losses: Sequence[Losses], softnet: int
    ) -> dict[str, float | int | str | None]:
        directions = outcome["directions"]
        at_entrance = sum(each.at_entrance for each in losses)
        at_exit = sum(each.at_exit for each in losses)
        return {
            **{f"lateness_{name}_s": _latest_s(directions, name) for name in ("p50", "p99", "max")},
            "real_time": int(
                all(each["sender_real_time"] and each["receiver_real_time"] for each in directions)
            ),
            "sender_cpu": self._placement.sender,
            "router_cpu": self._placement.router,
            "receiver_cpu": self._placement.receiver,
            "frames_per_call": _sum(outcome, "sent") / max(1, _sum(outcome, "batches")),
            "blocked": _sum(outcome, "blocked"),
            "strangers": _sum(outcome, "strangers"),
            "receiver_drops": _sum(outcome, "receiver_drops"),
            "lost_at_entrance": at_entrance,
            "lost_at_exit": at_exit,
            "lost_elsewhere": _device_losses(outcome) - at_entrance - at_exit,
            "softnet_drops": softnet,
            "clock_step_s": outcome["clock_step_ns"] / 1e9,
            "frequency_hz": min(frequencies().values(), default=None),
        }


_Counts = Literal[
    "intended",
    "sent",
    "received",
    "lost_early",
    "duplicated",
    "reordered",
    "strangers",
    "receiver_drops",
    "late",
    "blocked",
    "batches",
]
_Times = Literal["sender_waited_ns", "receiver_waited_ns", "receiver_on_cpu_ns"]


def _sum(outcome: _core._UdpTrial, name: _Counts) -> int:
    """A count, over all directions."""
    return sum(each[name] for each in outcome["directions"])


def _thread_s(outcome: _core._UdpTrial, name: _Times) -> float | None:
    """A time of the tester's threads, over all directions; None where the kernel does not report it."""
    known = [each[name] for each in outcome["directions"]]
    return None if None in known else sum(time_ns for time_ns in known if time_ns is not None) / 1e9


def _run_ids(count: int) -> list[int]:
    """A number for each direction, and none twice in a row."""
    first = secrets.randbits(32)
    return [(first + number) % (1 << 32) for number in range(count)]


def _latest_s(directions: Sequence[_core._UdpDirection], name: str) -> float | None:
    """A percentile of the lateness, in the direction where it is greatest."""
    known = [each["lateness_ns"][name] for each in directions if each["lateness_ns"] is not None]
    return max(known) / 1e9 if known else None


def _look_budget(spec: TrialSpec) -> int:
    """Most frames that may be lost of those intended until the look."""
    if spec.look_s is None or spec.loss_budget is None:
        return 0
    return math.floor(spec.loss_budget * round(spec.intended_load_fps * spec.look_s))


def _receive_buffer_bytes() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(LARGEST_RECEIVE_BUFFER_BYTES, memory // RECEIVE_BUFFER_SHARE)


def _frames(spec: TrialSpec, largest_bytes: int, mix: Mix | None = None) -> list[int]:
    """How many frames to send in each direction, as many in each to one frame; raises InputError when the
    trial is not one for this testbed."""
    if spec.directions > 2:
        raise InputError(
            f"trial {spec.index}: the testbed 'netns' sends one way or both ways (got {spec.directions})"
        )
    sizes = mix or ((spec.frame_size_bytes, 1),)
    if mean_bytes(sizes) != spec.frame_size_bytes:
        raise InputError(
            f"trial {spec.index}: frames of {spec.frame_size_bytes} B are requested, the testbed sends a mix "
            f"of {mean_bytes(sizes)} B on average"
        )
    for size, _ in sizes:
        if not SMALLEST_FRAME_BYTES <= size <= largest_bytes:
            raise InputError(
                f"trial {spec.index}: the testbed 'netns' sends frames of {SMALLEST_FRAME_BYTES} to "
                f"{largest_bytes} B (got {size})"
            )
    each, more = divmod(spec.intended_frames, spec.directions)
    if each == 0:
        raise InputError(
            f"trial {spec.index}: {spec.load_per_direction_fps:g} frames/s give no frame in "
            f"{spec.duration_s:g} s"
        )
    return [each + (number < more) for number in range(spec.directions)]


def _check(
    spec: TrialSpec, outcome: _core._UdpTrial, routes: Sequence[Route], losses: Sequence[Losses]
) -> None:
    """Raise what makes a trial worthless."""

    def fault(text: str) -> NoReturn:
        raise TestbedError(f"trial {spec.index}: {text}")

    for route, counts, lost in zip(routes, outcome["directions"], losses, strict=True):
        if lost.handed_over < counts["sent"]:
            fault(
                f"the interface of the {route.source} counted {lost.handed_over} frames of {counts['sent']} "
                "sent: it does not cut batches into frames"
            )
    if outcome["stopped"] and not _was_decided(spec, outcome):
        fault("it was stopped for the loss of frames that the device had not lost")


def _was_decided(spec: TrialSpec, outcome: _core._UdpTrial) -> bool:
    """Whether the counts at the end are those for which a trial may be stopped."""
    if _device_losses(outcome) > (spec.loss_budget or 0.0) * spec.intended_frames:
        return True
    drops = _sum(outcome, "receiver_drops")
    return spec.look_s is not None and _sum(outcome, "lost_early") - drops > _look_budget(spec)


def _device_losses(outcome: _core._UdpTrial) -> int:
    return _sum(outcome, "sent") - _sum(outcome, "receiver_drops") - _sum(outcome, "received")


def _was_cut_short(spec: TrialSpec, outcome: _core._UdpTrial) -> bool:
    """Whether the trial was stopped before it had sent all; a loss that is seen later stops nothing."""
    return outcome["stopped"] and _sum(outcome, "intended") < spec.intended_frames


def _sending_s(spec: TrialSpec, counts: _core._UdpDirection, *, stopped: bool) -> float:
    """How long the load was offered in a direction: for the duration; longer when the sender was late;
    shorter when it was stopped."""
    due_s = counts["intended"] / spec.load_per_direction_fps if stopped else spec.duration_s
    return max(counts["sending_ps"] / 1e12, due_s)


def _latency(outcome: _core._UdpTrial) -> dict[str, float]:
    if outcome["delay_ns"] is None or abs(outcome["clock_step_ns"]) > CLOCK_STEP_LIMIT_S * 1e9:
        return {}
    return {name: delay / 1e9 for name, delay in outcome["delay_ns"].items()}


def refusals(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that a router between two ends cannot honour. Needs no
    privilege."""
    from weirlab.scenario.testbeds import Netns

    if isinstance(scenario.testbed, Netns) and scenario.testbed.router is None:
        message = "an emulated path is for real programs, with 'weir emulate' or 'weir bulk'"
        return [scenario.problem("testbed", message)]
    found = only_the_load(scenario, "a router")
    return found + [scenario.problem_at(path, message) for path, message in _own_refusals(scenario)]


def opened(scenario: Scenario) -> NetnsTestbed:
    """A router between two ends."""
    from weirlab.scenario.testbeds import Netns

    assert isinstance(scenario.testbed, Netns)
    router = scenario.testbed.router or "linux"
    return NetnsTestbed(router=router, settle_s=settle_s_of(scenario), mix=mix_of(scenario))


def _own_refusals(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], str]]:
    from weirlab.scenario.network.layout import FIXED_NODES, Layout
    from weirlab.scenario.testbeds import Netns
    from weirlab.scenario.traffic import Departing, Udp
    from weirlab.scenario.traffic.flows import Flow, flows_of, frame_sizes

    if scenario.search is None:
        return
    measured = scenario.search.vary.split(".")[1]
    place, traffic = ("traffic", measured), scenario.traffic[measured]
    flows = flows_of(traffic, Layout(FIXED_NODES, frozenset(FIXED_NODES), ()))
    sender, receiver = FIXED_NODES.index("sender"), FIXED_NODES.index("receiver")
    there, back = Flow(sender, (receiver,)), Flow(receiver, (sender,))
    if flows != [there] and sorted(flows, key=lambda flow: flow.source) != sorted(
        [there, back], key=lambda flow: flow.source
    ):
        yield place, "the load goes from 'sender' to 'receiver', or both ways"
    if not isinstance(traffic.transport, Udp):
        yield (*place, "transport"), "a router forwards IP packets; write 'transport: {kind: udp}'"
    sizes = frame_sizes(traffic.source) if isinstance(traffic.source, Departing) else ()
    of_testpmd = isinstance(scenario.testbed, Netns) and scenario.testbed.router == "testpmd"
    largest = LARGEST_OF_TESTPMD if of_testpmd else LARGEST_FRAME_BYTES
    mix = mix_of(scenario)
    field = "frame_size" if mix is None else "mix"
    for size, _ in sizes:
        # What no Ethernet frame is has been refused already.
        if largest < size <= MOST_FRAME_BYTES:
            limits = f"{SMALLEST_FRAME_BYTES} to {largest} B"
            yield (*place, "source", field), f"frames of {limits} can be sent (got {size} B)"
    if mix is not None:
        try:
            runs(mix)
        except InputError as error:
            yield (*place, "source", "mix"), str(error)
