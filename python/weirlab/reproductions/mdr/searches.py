"""The searches behind the numbers: which there are, and what one of them gave.

Devices are the two that were fitted to the published comparison, and archetypes for the question how many
intermediate phases are good. A search's seed derives from the study's seed, the device, the trial duration
and the number of the search, so that all algorithms meet the same devices, and no result depends on which
other searches are made.

Source: CSIT MDR, section 2.8.4
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from weirlab.reproductions.published import MdrSearch, read
from weirlab.searches import ControlledSearch, FoundRates, GoalResult, LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.searches.controller import Controller
from weirlab.searches.mdr import INTERMEDIATE_PHASES, PHASE_TIMEOUT_S, Mdr
from weirlab.searches.mlr import Mlr
from weirlab.searches.weir import Weir
from weirlab.testbed import devices
from weirlab.testbed.base import Trial
from weirlab.testbed.sim import DeviceTestbed

PUBLISHED = read("mdr-search", MdrSearch)
SETTINGS = PUBLISHED["settings"]
MAX_FPS = SETTINGS["maximum_transmit_rate_mpps"]["64B 10GE link"] * 1e6
MIN_FPS = SETTINGS["minimum_transmit_rate_mpps"] * 1e6
PLR = SETTINGS["pdr_loss_ratio"]
WARM_UP_S = SETTINGS["binary_warmup_s"]
FRAME_SIZE_BYTES = 64
DIRECTIONS = 2

DURATIONS_S = (10, 30, 60)
ALGORITHMS = ("mdr", "ndr-binary", "pdr-binary", "mlr", "weir")
BINARY_OVERHEAD_S = 0.43
"""What a trial of the binary searches took beyond its duration: with it, and 5 s of warm-up, 9 and 11 trials
take the published times."""
MDR_OVERHEAD_S = 0.50
"""Time between two trials in the published graphs of MDR searches."""
NEAR = 0.05
"""Relative distance from the bounds found up to which a load counts as interesting."""


@dataclass(frozen=True)
class Suite:
    """A device of the published comparison, and the settings of its searches."""

    device: devices.Device
    width: float
    """Final relative width of MDR: the one that the binary search reaches."""
    threshold_fps: float
    """Stop rule of the binary search, and its lowest load; 50 and 10 kpps per direction."""
    binary_trials: int


SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        "ip4": Suite(devices.Ip4Published(), width=0.0109, threshold_fps=2 * 50e3, binary_trials=9),
        "vhost": Suite(devices.VhostPublished(), width=0.00777, threshold_fps=2 * 10e3, binary_trials=11),
    }
)

DEVICES: Mapping[str, Callable[[np.random.Generator], devices.Device]] = MappingProxyType(
    {
        "knee": lambda _: devices.Knee(capacity_fps=10e6, run_spread=0.002, trial_spread=0.0005),
        "ip4": lambda _: SUITES["ip4"].device,
        "vhost": lambda _: SUITES["vhost"].device,
        "random-drops": lambda _: devices.RandomDrops(),
        "deep-buffer": lambda chance: devices.DeepBuffer(buffer_frames=round(6e5 * chance.uniform(0.8, 1.2))),
        "warm-up": lambda chance: devices.WarmUp(time_constant_s=8.0 * chance.uniform(0.8, 1.2)),
    }
)
"""From well to badly behaved, each as it is in one search: those without chance of their own differ by up to
20 % in the parameter that makes them what they are."""


@dataclass(frozen=True)
class Case:
    """One search to make."""

    device: str
    algorithm: str
    duration_s: float
    """Final trial duration."""
    index: int
    phases: int = INTERMEDIATE_PHASES
    """Intermediate phases of an MDR search."""
    phase_timeout_s: float = PHASE_TIMEOUT_S


def seed_of(case: Case, seed: int) -> int:
    """The seed of the simulated device in this search."""
    text = f"{case.device} {case.duration_s:g} {case.index}"
    words = np.random.SeedSequence([seed, *text.encode()]).generate_state(1, np.uint64)
    return int(words[0])


def search_of(case: Case) -> ControlledSearch:
    """The search at its beginning."""
    binary = case.algorithm.endswith("-binary")
    return ControlledSearch(
        _controller(case),
        frame_size_bytes=FRAME_SIZE_BYTES,
        directions=DIRECTIONS,
        warm_up_s=WARM_UP_S if binary else 0.0,
    )


def made(case: Case, seed: int) -> FoundRates:
    """Make the search on its device."""
    binary = case.algorithm.endswith("-binary")
    of_device = seed_of(case, seed)
    bed = DeviceTestbed(
        DEVICES[case.device](np.random.default_rng(of_device)),
        seed=of_device,
        overhead_s=BINARY_OVERHEAD_S if binary else MDR_OVERHEAD_S,
    )
    search = search_of(case)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return search.result()


def measured(case: Case, seed: int) -> dict[str, object]:
    """What came of the search, as a row."""
    return {
        "device": case.device,
        "algorithm": case.algorithm,
        "duration_s": float(case.duration_s),
        "phases": case.phases if case.algorithm == "mdr" else None,
        "index": case.index,
        **summary_of(made(case, seed), case.duration_s),
    }


def summary_of(result: FoundRates, final_s: float) -> dict[str, object]:
    """Figures of a search whose final trials have the duration ``final_s``: times [s], counts of trials but
    the warm-up, bounds [frames/s]."""
    bounds = {
        f"{goal.goal.name.lower()}_{side}_fps": None if bound is None else bound.load_fps
        for goal in result.goals
        for side, bound in (("lower", goal.lower), ("upper", goal.upper))
    }
    trials = [trial for trial in result.trials if trial.spec.purpose != "warm-up"]
    final = [trial for trial in trials if math.isclose(trial.spec.duration_s, final_s)]
    return {
        "time_s": result.time_s,
        "trials": len(trials),
        "final_trials": len(final),
        "final_s": math.fsum(trial.effective_duration_s for trial in final),
        "outside_s": math.fsum(trial.effective_duration_s for trial in _outside(trials, result.goals)),
        **{name: bounds.get(name) for name in _BOUNDS},
        "regular": result.regular,
        "ending": str(result.ending),
    }


_BOUNDS = ("ndr_lower_fps", "ndr_upper_fps", "pdr_lower_fps", "pdr_upper_fps")


def _outside(trials: Sequence[Trial], goals: Sequence[GoalResult]) -> list[Trial]:
    """Trials farther than `NEAR` from all bounds that were found."""
    loads = [bound.load_fps for goal in goals for bound in (goal.lower, goal.upper) if bound is not None]
    if not loads:
        return list(trials)
    low_fps, high_fps = min(loads) * (1.0 - NEAR), max(loads) * (1.0 + NEAR)
    return [trial for trial in trials if not low_fps <= trial.spec.intended_load_fps <= high_fps]


def _controller(case: Case) -> Controller:
    suite = SUITES.get(case.device)
    ndr = SearchGoal.ndr(duration_s=case.duration_s)
    pdr = SearchGoal.pdr(PLR, duration_s=case.duration_s)
    if case.algorithm.endswith("-binary"):
        threshold_fps = SUITES["ip4"].threshold_fps if suite is None else suite.threshold_fps
        goal = ndr if case.algorithm == "ndr-binary" else pdr
        return Binary(
            [_with_width(goal, None)], LoadRange(threshold_fps, MAX_FPS), threshold_fps=threshold_fps
        )
    width = SETTINGS["final_relative_width"] if suite is None else suite.width
    goals = [_with_width(ndr, width), _with_width(pdr, width)]
    loads = LoadRange(MIN_FPS, MAX_FPS)
    match case.algorithm:
        case "mdr":
            return Mdr(goals, loads, intermediate_phases=case.phases, phase_timeout_s=case.phase_timeout_s)
        case "mlr":
            return Mlr(goals, loads)
        case "weir":
            return Weir(goals, loads)
    raise ValueError(f"there is no algorithm {case.algorithm!r}")


def _with_width(goal: SearchGoal, width: float | None) -> SearchGoal:
    return SearchGoal(name=goal.name, loss_ratio=goal.loss_ratio, width=width, duration_s=goal.duration_s)
