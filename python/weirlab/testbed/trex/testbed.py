"""The trials of a TRex server, as the testbed of a search."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirlab.errors import (
    ImpossibleTrial,
    InputError,
    Problem,
    TestbedError,
    TrialTimeout,
    UnsupportedError,
)
from weirlab.scenario.network.layout import FIXED_NODES, Layout
from weirlab.scenario.traffic.flows import flows_of
from weirlab.testbed.base import Direction, Trial, TrialSpec
from weirlab.testbed.mixes import settle_s_of
from weirlab.testbed.refusals import only_the_load
from weirlab.testbed.trex.connection import Connection
from weirlab.testbed.trex.counters import Clock, MonotonicClock
from weirlab.testbed.trex.server import Server
from weirlab.testbed.trex.settings import TrexSettings, plan, settings_of
from weirlab.testbed.trex.streams import WIRE_OVERHEAD_BYTES, Traffic
from weirlab.testbed.trex.stretch import Budget, Stretch, Tester

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario


_WHAT = "a TRex server"

_THERE, _BACK = ("sender", ("receiver",)), ("receiver", ("sender",))
_ROUNDING = 1.0001
"""How far above its line rate the server itself lets a port go. Source: trex-core,
src/stx/stl/trex_stl_port.cpp, calculate_effective_factor."""


class TrexTestbed:
    """The `Testbed` of a TRex server in stateless mode. Sources of the procedure: RFC 2544 section 23 for its
    phases; trex-core pull request 1212 for reading counters only after the traffic has stopped, and for the
    ramp-up."""

    def __init__(self, settings: TrexSettings, *, clock: Clock | None = None) -> None:
        """Connect and take the ports.

        Raises:
            MissingCapability: pyzmq is not installed.
            InputError: The server has not these ports.
            TestbedError: No server answers, it is another kind or version, or the ports are taken.
        """
        self._settings = settings
        self._clock = clock or MonotonicClock()
        endpoint = f"tcp://{settings.server}:{settings.rpc_port}"
        connection = Connection(endpoint, timeout_s=settings.timeout_s, retries=settings.retries)
        self._server = Server(connection)
        self._tester = Tester(self._server, settings, self._clock)
        self._trusts_live_counters = True
        self._in_session = False
        self._most_strays = 0
        """Most frames of others in a trial so far."""
        try:
            self._begin_session()
        except BaseException:
            self.close()
            raise

    def refuses(self, scenario: Scenario) -> list[Problem]:
        """All but a constant load between the two sides of the device, one way or both."""
        return refusals(scenario)

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:  # noqa: ARG002 (the protocol's name)
        """Refused: a TRex server measures trials."""
        message = f"{_WHAT} is measured by a search; write 'kind: sim' and a network to simulate"
        raise UnsupportedError([scenario.problem_at(("testbed",), message)])

    def trial(self, spec: TrialSpec) -> Trial:
        """Measure one trial.

        Raises:
            InputError: The load is above the line rate, or the frame size is none that TRex can send.
            TestbedError: No believable result could be had. The ports are stopped if the server still
            answers;
                if not, their traffic ends when the trial would have ended.
        """
        began_s = self._clock.now()
        traffic = plan(self._settings, spec)
        try:
            if not self._in_session:
                self._begin_session()
            self._check_line_rate(spec, traffic)
            self._check_destinations(traffic)
            stretch = self._send(spec, traffic)
        except BaseException as error:
            self._abandon(answers=not isinstance(error, TrialTimeout))
            raise
        return self._result(spec, stretch, self._clock.now() - began_s)

    def close(self) -> None:
        """Stop and release the ports. May be called twice."""
        with contextlib.suppress(TestbedError):
            self._server.release()
        self._in_session = False

    def _begin_session(self) -> None:
        self._server.connect()
        for port in self._settings.ports:
            self._server.acquire(port, force=self._settings.force)
            self._check_capabilities(port)
        self._tester.disturbed()
        self._in_session = True

    def _abandon(self, *, answers: bool) -> None:
        """Leave no traffic behind, and begin the next trial with a new session."""
        if self._in_session:
            with contextlib.suppress(TestbedError):
                self._server.stop(self._settings.ports, repeatable=answers)
        self._in_session = False

    def _check_capabilities(self, port: int) -> None:
        info = self._server.ports[port]
        needs = {
            "flow_stats": "count: groups" if self._settings.count == "groups" else "",
            "latency": "latency" if self._settings.latency_fps > 0.0 else "",
        }
        for capability, option in needs.items():
            if option and capability not in info.capabilities:
                raise InputError(
                    f"port {port} of TRex at {self._server.endpoint} (driver {info.driver}) has no "
                    f"{capability}: leave out '{option}'"
                )

    def _check_line_rate(self, spec: TrialSpec, traffic: Sequence[Traffic]) -> None:
        for each in traffic:
            speed_bps = self._server.ports[each.lane.sender].speed_bps
            size_bytes = each.mix.mean_bytes
            most_fps = speed_bps / (8.0 * (size_bytes + WIRE_OVERHEAD_BYTES))
            if 0.0 < most_fps * _ROUNDING < each.rate_fps:
                raise InputError(
                    f"trial {spec.index}: {each.rate_fps:.6g} frames/s from port {each.lane.sender} are "
                    f"above its line rate: {speed_bps / 1e9:g} Gbit/s carry {most_fps:.6g} frames/s of "
                    f"{size_bytes:.6g} B"
                )

    def _check_destinations(self, traffic: Sequence[Traffic]) -> None:
        """Raise InputError for a port that does not know where to send: the server would refuse to start, and
        after an earlier trial lose what it sent."""
        for each in traffic:
            if not self._server.ports[each.lane.sender].has_destination:
                raise InputError(
                    f"port {each.lane.sender} of TRex at {self._server.endpoint} does not know the MAC "
                    f"address that its frames go to: give 'dest_mac' or 'default_gw' in trex_cfg.yaml, or "
                    f"have it resolved in the TRex console ('l3' and 'arp'); then start again"
                )

    def _send(self, spec: TrialSpec, traffic: Sequence[Traffic]) -> Stretch:
        """Send the load, early stop included. Live counters that made it stop wrongly are not trusted again,
        and the load is sent once more."""
        if spec.loss_budget is not None and self._trusts_live_counters:
            budgets = [Budget(spec.duration_s, spec.loss_budget * spec.intended_frames)]
            if spec.look_s is not None:
                intended = round(spec.intended_load_fps * spec.look_s)
                budgets.insert(0, Budget(spec.look_s, spec.loss_budget * intended))
            stretch = self._tester.send(traffic, spec.duration_s, budgets)
            if not stretch.stopped_early or stretch.lost > budgets[0].most_lost:
                return stretch
            self._trusts_live_counters = False
        return self._tester.send(traffic, spec.duration_s, [])

    def _result(self, spec: TrialSpec, stretch: Stretch, took_s: float) -> Trial:
        facts: dict[str, float | int | str | None] = dict(stretch.facts)
        strays = 0
        directions = []
        for lane, count in zip(stretch.lanes, stretch.counts, strict=True):
            if count.sent < 0 or count.received < 0:
                raise TestbedError(
                    f"trial {spec.index}: the counters of TRex went back: was the server restarted, or did "
                    f"someone else reset them?"
                )
            surplus = max(0, count.received - count.sent)
            if surplus > self._settings.stray_frames:
                raise ImpossibleTrial(
                    f"trial {spec.index}: port {lane.receiver} received {count.received} frames of "
                    f"{count.sent} that were sent to it: something else sends there ('count: groups' counts "
                    f"the frames of the trial alone)"
                )
            strays += surplus
            name = f"port-{lane.sender}-{lane.receiver}"
            received = count.received - surplus
            directions.append(Direction(name=name, sent_frames=count.sent, received_frames=received))
        facts["stray_frames"] = strays
        if self._settings.count == "ports":
            self._most_strays = max(self._most_strays, strays)
            facts["strays_can_hide"] = self._most_strays
        if self._settings.latency_fps > 0.0 and stretch.delays is None:
            facts["latency"] = "none: the load is less than twice the share that 'latency' asks for"
        elif stretch.delays is not None and not stretch.delays.total:
            facts["latency"] = "none: TRex sent no histogram of delays (field hdrh)"
        facts["live_counters"] = "trusted" if self._trusts_live_counters else "late: no early stop"
        sent = sum(each.sent_frames for each in directions)
        lost = sent - sum(each.received_frames for each in directions)
        intended = _intended_frames(spec, stretch, sent)
        return Trial(
            spec=spec,
            intended_frames=intended,
            sent_frames=sent,
            received_frames=sum(each.received_frames for each in directions),
            # A port counts damaged frames and those that it had no room for together.
            doubtful_frames=min(lost, stretch.facts["receive_errors"]),
            effective_duration_s=took_s,
            offered_load_fps=spec.intended_load_fps * sent / intended if intended else 0.0,
            latency_s=stretch.delays.percentiles() if stretch.delays else {},
            stopped_early=stretch.stopped_early,
            per_direction=tuple(directions),
            facts=facts,
        )


def refusals(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that no TRex server can honour."""
    problems = only_the_load(scenario, _WHAT)
    if problems or scenario.search is None:
        return problems
    name = scenario.search.vary.split(".")[1]
    flows = flows_of(scenario.traffic[name], Layout(FIXED_NODES, frozenset(FIXED_NODES), ()))
    ends = [
        (FIXED_NODES[flow.source], tuple(FIXED_NODES[target] for target in flow.targets)) for flow in flows
    ]
    if sorted(ends) not in ([_THERE], sorted([_THERE, _BACK])):
        message = f"{_WHAT} sends from 'sender' to 'receiver', or both ways"
        problems.append(scenario.problem_at(("traffic", name), message))
    return problems


def opened(scenario: Scenario) -> TrexTestbed:
    """The server, which is asked for nothing yet."""
    from weirlab.scenario.testbeds import Trex

    assert isinstance(scenario.testbed, Trex)
    return TrexTestbed(settings_of(scenario.testbed, scenario, settle_s=settle_s_of(scenario)))


def _intended_frames(spec: TrialSpec, stretch: Stretch, sent: int) -> int:
    """What the load asked for. How long a trial lasted that was stopped early is known only within the time
    that its messages took: what was sent counts as intended as far as that explains it."""
    if not stretch.stopped_early:
        return spec.intended_frames
    least, most = (round(spec.intended_load_fps * seconds) for seconds in stretch.sending_s)
    return min(max(sent, least), most)
