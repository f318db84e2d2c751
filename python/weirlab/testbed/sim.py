"""The simulated testbed: device models, and whole scenarios as the system under test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.errors import Problem, TestbedError, UnsupportedError
from weirlab.results import Provenance
from weirlab.runs import Run, simulate
from weirlab.scenario.resolve import unsupported
from weirlab.scenario.traffic.offered import at_load, offered
from weirlab.testbed.base import Direction, Trial, TrialSpec
from weirlab.testbed.devices import Device, Offer, Spell
from weirlab.testbed.refusals import DEVICE, only_the_load
from weirlab.units import Span

if TYPE_CHECKING:
    from weirlab.records import Records
    from weirlab.scenario import Scenario


_TRIAL_DELAYS = "record.delays-of-the-trial"
_PATIENCE = 50
"""How many times longer than the time to settle is waited once, to find out which would have been enough."""
_MOST_DIRECTIONS = 16
"""Flows beyond this are not listed in each trial: a log of thousands of flows is of no use to anybody."""


class DeviceTestbed:
    """A tester in front of a device model. A trial takes no real time.

    A trial with a loss budget stops ``detection_s`` after the loss that exceeds it."""

    def __init__(
        self,
        device: Device,
        *,
        seed: int = 1,
        overhead_s: float = 0.0,
        tester_limit_fps: float = math.inf,
        detection_s: float = 0.05,
    ) -> None:
        """Args:
        overhead_s: What a trial takes beyond its duration: waiting for late frames, reading counters. A
            warm-up has none, as nothing is read after it.
        tester_limit_fps: Most that the tester can send [frames/s, summed over all directions].
        detection_s: How long a loss takes to be seen: the live counters are that old.
        """
        self._device = device
        self._seed = seed
        self._overhead_s = overhead_s
        self._tester_limit_fps = tester_limit_fps
        self._detection_s = detection_s
        self._past: tuple[Spell, ...] = ()

    def recall(self, trials: Sequence[Trial]) -> None:
        """Take trials as made here: the device goes on in the state in which they left it."""
        self._past = ()
        for trial in trials:
            sent_s = trial.effective_duration_s - self._overhead_of(trial.spec)
            self._remember(trial.spec, sent_s, trial.offered_load_fps)

    def refuses(self, scenario: Scenario) -> list[Problem]:
        """All but a constant load: a device model sees frames/s, their size and a duration, nothing else."""
        return only_the_load(scenario, DEVICE)

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:  # noqa: ARG002 (the protocol's name)
        """Refused: a device model measures trials, it carries no packets."""
        message = "a simulated device is measured by a search; write a network to simulate instead"
        raise UnsupportedError([scenario.problem_at(("testbed", "device"), message)])

    def trial(self, spec: TrialSpec) -> Trial:
        """The trial that ``spec`` asks for; the same one for the same ``spec`` after the same trials. One
        that begins before earlier ones have ended begins anew there: they are forgotten."""
        self._past = tuple(spell for spell in self._past if spell.end_s <= spec.elapsed_s)
        decided_s = self._decided_s(spec) + self._detection_s
        stopped = bool(decided_s < spec.duration_s)  # of a user's device it may be one of numpy's
        sending_s = min(decided_s, spec.duration_s)
        offer = self._offer(spec, sending_s)
        self._remember(spec, sending_s, offer.load_fps)
        return Trial(
            spec=spec,
            intended_frames=round(spec.intended_load_fps * sending_s),
            sent_frames=offer.frames,
            received_frames=self._device.received_frames(offer),
            effective_duration_s=sending_s + self._overhead_of(spec),
            offered_load_fps=offer.load_fps,
            stopped_early=stopped,
        )

    def _offer(self, spec: TrialSpec, duration_s: float) -> Offer:
        """The beginning of a trial, up to ``duration_s``."""
        load_fps = min(spec.intended_load_fps, self._tester_limit_fps)
        return Offer(
            frames=round(load_fps * duration_s),
            duration_s=duration_s,
            frame_size_bytes=spec.frame_size_bytes,
            index=spec.index,
            elapsed_s=spec.elapsed_s,
            seed=self._seed,
            steady_fps=load_fps,
            past=self._past,
        )

    def _overhead_of(self, spec: TrialSpec) -> float:
        return 0.0 if spec.purpose == "warm-up" else self._overhead_s

    def _remember(self, spec: TrialSpec, sent_s: float, load_fps: float) -> None:
        self._past += (Spell(spec.elapsed_s, spec.elapsed_s + sent_s, load_fps),)

    def _decided_s(self, spec: TrialSpec) -> float:
        """When the loss budget is exceeded [s after the beginning]; infinite if it never is."""
        if spec.loss_budget is None:
            return math.inf
        for until_s in (spec.look_s, spec.duration_s):
            if until_s is not None:
                most = math.floor(spec.loss_budget * round(spec.intended_load_fps * until_s))
                if self._lost(spec, until_s) > most:
                    return self._time_of_loss(spec, most + 1, until_s)
        return math.inf

    def _time_of_loss(self, spec: TrialSpec, frames: int, until_s: float) -> float:
        """When the loss reaches ``frames``, to a millisecond, knowing that it has by ``until_s``."""
        before_s, after_s = 0.0, until_s
        while after_s - before_s > 1e-3:
            middle_s = (before_s + after_s) / 2.0
            if self._lost(spec, middle_s) < frames:
                before_s = middle_s
            else:
                after_s = middle_s
        return after_s

    def _lost(self, spec: TrialSpec, until_s: float) -> int:
        offer = self._offer(spec, until_s)
        return offer.frames - self._device.received_frames(offer)

    def close(self) -> None:
        """There is nothing to take down."""


class ScenarioTestbed:
    """A scenario on the packet-level simulator: run as it stands, or measured as the system under test.

    A trial is a run in which the traffic that `search.vary` names offers the load for the duration, after
    which the network has the time `search.trial.settle` to deliver what is under way. A frame that is still
    under way then is neither received nor lost: the trial gives no result. All flows of that traffic
    together are the load, each is a direction. Chance in a trial derives from the scenario's seed, the index
    of the trial and the time elapsed.

    A sender cannot exceed the rate of its link: a load beyond is offered at that rate, and counts as sent
    only so far."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def refuses(self, scenario: Scenario) -> list[Problem]:
        """Every part that the simulator has no form for."""
        return list(unsupported(scenario))

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:
        """Execute ``scenario`` once per seed."""
        provenance = Provenance.now()
        records = simulate(scenario, seeds)
        return Run(scenario=scenario, seeds=tuple(seeds), records=records, provenance=provenance.ended())

    def trial(self, spec: TrialSpec) -> Trial:
        """Measure one trial; the same one for the same ``spec``. Raises RunFailed when the simulation breaks
        a law, and TestbedError when frames are still under way at its end."""
        what = offered(self._scenario)
        scenario = self._scenario
        if spec.frame_size_bytes != what.frame_size_bytes:
            source = f"traffic.{what.traffic}.source"
            scenario = scenario.assign(
                {f"{source}.payload": None, f"{source}.frame_size": f"{spec.frame_size_bytes} B"}
            )
            what = offered(scenario)
        load_fps = min(spec.intended_load_fps, what.line_fps or math.inf)
        records = self._measure(spec, scenario, load_fps)
        flows = _of_traffic(records, "flows", what.traffic)
        sent, received, dropped, live = (
            int(flows[f"{name}_frames"].sum()) for name in ("sent", "delivered", "dropped", "live")
        )
        begin_s = scenario.traffic[what.traffic].start.s
        assert scenario.search is not None
        settle = scenario.search.trial.settle
        if live > 0:
            raise TestbedError(
                f"trial {spec.index}: {live:,} of {sent:,} frames were still under way {settle} after the "
                f"last was sent, so nobody knows whether they are lost; "
                f"{self._advice(spec, scenario, load_fps, settle)}"
            )
        return Trial(
            spec=spec,
            # A random source sends now more, now less than its mean; that is not the tester's fault.
            intended_frames=sent if load_fps == spec.intended_load_fps else max(sent, spec.intended_frames),
            sent_frames=sent,
            received_frames=received,
            effective_duration_s=begin_s + spec.duration_s + settle.s,
            offered_load_fps=load_fps,
            latency_s=_latency_s(flows, _of_traffic(records, "delays", what.traffic)),
            per_direction=_directions(records, flows),
            facts={"dropped_frames": dropped},
        )

    def _measure(self, spec: TrialSpec, scenario: Scenario, load_fps: float) -> Records:
        run = at_load(scenario, load_fps, spec.duration_s)
        run = run.assign({_TRIAL_DELAYS: {"delays": offered(scenario).traffic}})
        seed = np.random.SeedSequence([scenario.run.seed, spec.index, round(spec.elapsed_s * 1e9)])
        return simulate(run, [int(seed.generate_state(1, np.uint64)[0])], threads=1)

    def _advice(self, spec: TrialSpec, scenario: Scenario, load_fps: float, settle: Span) -> str:
        """Which time to settle would have been enough for a trial: found by waiting much longer once."""
        patience = Span(max(_PATIENCE * settle.ps, Span.from_s(1.0).ps))
        records = self._measure(spec, scenario.assign({"search.trial.settle": patience}), load_fps)
        flows = _of_traffic(records, "flows", offered(scenario).traffic)
        if int(flows["live_frames"].sum()) > 0:
            return (
                f"nor do they all arrive within {patience}: a queue without limit loses nothing, whatever "
                f"the load; give it a limit, or search below what it carries"
            )
        longest_ps = float(flows.select(pl.col("delay_max_ps").max()).item())
        return f"set search.trial.settle to {_rounded_up(longest_ps)} or more, the longest delay at this load"

    def close(self) -> None:
        """There is nothing to take down."""


def _rounded_up(ps: float) -> Span:
    """The next longer span of two digits."""
    unit = 10.0 ** (math.floor(math.log10(ps)) - 1)
    return Span(round(math.ceil(ps / unit) * unit))


def _of_traffic(records: Records, table: str, traffic: str) -> pl.DataFrame:
    """Rows of a table for the flows of one entry of traffic."""
    groups = records["traffic_names"].filter(pl.col("name") == traffic).select("traffic")
    flows = records["flow_names"].join(groups, on="traffic", how="semi").select("flow")
    return records[table].join(flows, on="flow", how="semi")


def _directions(records: Records, flows: pl.DataFrame) -> tuple[Direction, ...]:
    """The counts of each flow, as far as few enough to be listed one by one."""
    if len(flows) > _MOST_DIRECTIONS:
        return ()
    named = flows.join(records["flow_names"], on="flow").sort("flow")
    return tuple(
        Direction(
            name=f"{row['from']}-{row['to']}",
            sent_frames=row["sent_frames"],
            received_frames=row["delivered_frames"],
        )
        for row in named.iter_rows(named=True)
    )


def _latency_s(flows: pl.DataFrame, delays: pl.DataFrame) -> Mapping[str, float]:
    """One-way delay percentiles over all flows. Those in between are the upper ends of their bins, at most
    1/32 too high; the extremes are exact."""
    bins = delays.group_by("low_ps", "high_ps").agg(pl.col("frames").sum()).sort("low_ps")
    counted = bins["frames"].cum_sum()
    if bins.is_empty() or counted[-1] == 0:
        return {}
    return dict(_percentiles_s(bins["high_ps"], counted, flows))


def _percentiles_s(
    upper_ps: pl.Series, counted: pl.Series, flows: pl.DataFrame
) -> Iterator[tuple[str, float]]:
    largest_ps = float(flows.select(pl.col("delay_max_ps").max()).item())
    yield "min", float(flows.select(pl.col("delay_min_ps").min()).item()) / 1e12
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
        place = counted.search_sorted(math.ceil(share * counted[-1]))
        yield name, min(float(upper_ps[place]), largest_ps) / 1e12
    yield "max", largest_ps / 1e12
