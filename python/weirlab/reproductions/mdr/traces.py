"""The published searches, replayed: the algorithm receives their outcomes, and must ask for their trials.

A row of a published trace is a duration, a load and an outcome. The loss ratio itself was not published; the
algorithm only needs to know on which side of the goals it lies. What a search asks for is compared with the
row whose turn it is, or with one of its two neighbours: that is counted as a trial in another order.

Source: CSIT MDR, section 2.8.5
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from weirlab.reproductions.mdr.searches import (
    BINARY_OVERHEAD_S,
    MAX_FPS,
    MDR_OVERHEAD_S,
    SUITES,
    Case,
    search_of,
)
from weirlab.reproductions.published import MdrTraces, read
from weirlab.searches import ControlledSearch
from weirlab.testbed.base import Trial, TrialSpec

TRACES = read("mdr-traces", MdrTraces)
PLR = TRACES["packet_loss_ratio"]
SAME = 1e-3
"""Relative distance at which a load is taken for a published one."""

_LOSS_RATIOS = (0.0, PLR / 2.0, 0.006)
"""A loss ratio for each published outcome. The last is less than the width, so that it does not set MRR2."""

CASES: Mapping[str, Case] = MappingProxyType(
    {
        "mdr_10_1": Case("vhost", "mdr", 10.0, 0),
        "mdr_10_2": Case("vhost", "mdr", 10.0, 1),
        "mdr_10_3": Case("vhost", "mdr", 10.0, 2),
        "mdr_60": Case("vhost", "mdr", 60.0, 0),
        "ndr_60": Case("vhost", "ndr-binary", 60.0, 0),
    }
)
"""Which search each published trace shows."""


class _Row(NamedTuple):
    """A trial that was published, or that must have come before those."""

    duration_s: float
    load_fps: float
    loss_ratio: float


@dataclass(frozen=True)
class Replay:
    """What came of telling a search the outcomes of a published one."""

    name: str
    published: int
    """Trials of the published search, with those that its graph leaves out."""
    search: ControlledSearch
    matched: Sequence[int]
    """For each trial asked for, the place of the published one that it is."""
    distance: float
    """Greatest relative distance of a load from the published one, of the trials that the graph shows."""

    @property
    def complete(self) -> bool:
        """Whether every published trial was asked for, and no other."""
        return sorted(self.matched) == list(range(self.published)) and self.search.ask() is None

    @property
    def trials(self) -> Sequence[Trial]:
        """The trials, with loss ratios that stand for their published outcomes."""
        return self.search.trials


def replayed(name: str) -> Replay:
    """Replay a published search; it ends where the algorithm asks for something else."""
    case = CASES[name]
    overhead_s = MDR_OVERHEAD_S if case.algorithm == "mdr" else BINARY_OVERHEAD_S
    rows, not_drawn = _rows(name)
    search = search_of(case)
    spec = search.ask()
    if spec is not None and spec.purpose == "warm-up":
        search.tell(_answered(spec, 1.0 - rows[-1].load_fps / MAX_FPS, 0.0))
    matched: list[int] = []
    distance = 0.0
    while (spec := search.ask()) is not None:
        place = _place(spec, rows, len(matched))
        if place is None:
            break
        if place >= not_drawn:
            distance = max(distance, abs(spec.intended_load_fps / rows[place].load_fps - 1.0))
        matched.append(place)
        search.tell(_answered(spec, rows[place].loss_ratio, overhead_s))
    return Replay(name, len(rows), search, matched, distance)


def _rows(name: str) -> tuple[list[_Row], int]:
    """The published trials, and how many at the beginning its graph leaves out."""
    drawn = [
        _Row(duration_s, mpps * 1e6, _LOSS_RATIOS[outcome])
        for duration_s, mpps, outcome in TRACES["searches"][name]["trials"]
    ]
    if CASES[name].algorithm == "mdr":
        # The first trial gives MRR, which is the load of the second.
        first = [_Row(TRACES["initial_trial_duration_s"], MAX_FPS, 1.0 - drawn[0].load_fps / MAX_FPS)]
    else:
        # Halving begins far above the region that the graph shows; all these trials lose.
        lowest_fps = SUITES[CASES[name].device].threshold_fps
        first, load_fps = [], MAX_FPS
        while load_fps > (1.0 + SAME) * drawn[0].load_fps:
            first.append(_Row(drawn[0].duration_s, load_fps, _LOSS_RATIOS[-1]))
            load_fps = (load_fps + lowest_fps) / 2.0
    return [*first, *drawn], len(first)


def _place(spec: TrialSpec, rows: Sequence[_Row], turn: int) -> int | None:
    """Which published trial this is."""
    for place in (turn, turn + 1, turn - 1):
        if (
            0 <= place < len(rows)
            and math.isclose(spec.intended_load_fps, rows[place].load_fps, rel_tol=SAME)
            and math.isclose(spec.duration_s, rows[place].duration_s, rel_tol=SAME)
        ):
            return place
    return None


def _answered(spec: TrialSpec, loss_ratio: float, overhead_s: float) -> Trial:
    frames = 10**9
    return Trial(
        spec=spec,
        intended_frames=frames,
        sent_frames=frames,
        received_frames=round(frames * (1.0 - loss_ratio)),
        effective_duration_s=spec.duration_s + overhead_s,
        offered_load_fps=spec.intended_load_fps,
    )
