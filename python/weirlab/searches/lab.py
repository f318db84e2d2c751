"""The search laboratory: any controllers on any simulated devices, over many seeds.

Of each search it keeps what it cost and how good its bounds are against the truth, which a simulated device
can be asked for: the smallest load at which a trial of final length exceeds the goal with probability 1/2.

A file of your own adds controllers and devices:

    from weirlab.searches.mdr import Mdr
    from weirlab.testbed.devices import Knee

    CONTROLLERS = {"mdr-4": lambda goals, loads: Mdr(goals, loads, intermediate_phases=4)}
    DEVICES = {"slow": Knee(capacity_fps=1e6)}

A device may also be a function of a `random.Random`, which draws one for each seed: so no controller is lucky
with the place of a knee among the loads that it tries.

One file: what is compared, drawn, searched and judged makes one table.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_type_hints

import polars as pl

from weirlab.errors import InputError
from weirlab.execution.mapping import mapped
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.controlled import ControlledSearch
from weirlab.searches.controller import Controller
from weirlab.searches.evidence import Stationarity
from weirlab.searches.goals import preset
from weirlab.searches.lab_devices import Family
from weirlab.searches.lab_files import Known, blamed, known
from weirlab.searches.lab_kept import Row, Searches
from weirlab.searches.lab_peer import MlrSearchLibrary
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.devices import Device
from weirlab.testbed.sim import DeviceTestbed

FRAME_SIZE_BYTES = 64
_RETESTS = 10
_MAX_TRIALS = 5000
_UNJUDGED = 30
_CELLS_AT_ONCE = 4
"""How many a worker takes at once: each takes up to some seconds."""


class Found(NamedTuple):
    """What a contestant found for one goal [frames/s]; None where a bound is missing."""

    lower_fps: float | None
    upper_fps: float | None
    regular: bool
    marked: bool
    """Whether it says that the device has changed, and the result does not stand."""
    told: bool = False
    """Whether it says that the device changed before the bounds were measured that stand."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is compared, by name."""

    controllers: Sequence[str]
    devices: Sequence[str]
    goals: Sequence[str]
    """Names of sets of goals: see `goal_sets`."""
    searches: int
    """Searches per cell, with seeds one after the other."""
    first_seed: int = 0
    width: float = 0.00581
    """Relative width of every goal."""
    overhead_s: float = 0.43
    """What each trial takes beyond its duration."""
    detection_s: float = 0.05
    """How long a loss takes to be seen, for controllers that stop trials."""
    max_fps: float = 29.76e6
    """Highest load; it differs by up to 5 % between the seeds."""
    min_fps: float = 2e4
    file: Path | None = None
    """A file that defines further controllers or devices."""


PEERS = {"mlrsearch-1.2.1": MlrSearchLibrary}
"""Other programs' searches, which own their loop."""


def goal_sets(width: float) -> dict[str, list[SearchGoal]]:
    """The sets of goals: NDR and PDR with final trials of 10, 30 or 60 s, and those of CSIT."""
    sets = {
        f"{duration_s:g}s": [
            SearchGoal.ndr(duration_s=duration_s, width=width),
            SearchGoal.pdr(duration_s=duration_s, width=width),
        ]
        for duration_s in (10.0, 30.0, 60.0)
    }
    sets["csit"] = [
        preset("csit-ndr", width=width, label="NDR"),
        preset("csit-pdr", width=width, label="PDR"),
    ]
    return sets


def compare(
    experiment: Experiment,
    *,
    processes: int | None = 1,
    on: str | None = None,
    store: str | Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    kept: Path | None = None,
) -> pl.DataFrame:
    """Run the experiment: a row for each goal of each search, in the order of its names and seeds.

    Args:
        kept: A file to which the searches are written as they end. Those that it holds are not made again.
        processes: The result does not depend on their number. None: one per CPU that this process may use.
        on: Who works instead of processes of this machine, as in `weirlab.execution.opened`.
        store: A path or URL of results that are shared, as in `weirlab.execution.mapping.mapped`.
        on_progress: Called with the cells done and all of them; a cell is a device, a set of goals and a
            seed.
    """
    _names(experiment)
    cells = [
        (device, goals, seed)
        for goals in experiment.goals
        for device in experiment.devices
        for seed in range(experiment.first_seed, experiment.first_seed + experiment.searches)
    ]
    with Searches(kept, asdict(experiment)) as log:
        missing = []
        for cell in cells:
            names = [name for name in experiment.controllers if not log.rows(cell, name)]
            if names:
                missing.append(_Work(*cell, names, log.truths(cell)))
        # What is compared is no part of a search: experiments share those that they have in common.
        searched = replace(experiment, controllers=(), devices=(), goals=(), searches=1, first_seed=0)
        mapped(
            partial(_cell, searched),
            missing,
            processes=processes,
            on=on,
            store=store,
            at_once=_CELLS_AT_ONCE,
            on_progress=on_progress,
            on_results=lambda some: log.add(row for rows in some for row in rows),
        )
        rows = [row for cell in cells for name in experiment.controllers for row in log.rows(cell, name)]
    return pl.DataFrame(rows, schema=_SCHEMA, infer_schema_length=None)


class _Work(NamedTuple):
    """What a worker does at once: searches of these controllers on one device with one set of goals and one
    seed."""

    device: str
    goals: str
    seed: int
    controllers: Sequence[str]
    truths: Mapping[str, float | None]
    """By goal, as far as they are known."""


_KINDS = {str: pl.String, int: pl.Int64, float: pl.Float64, float | None: pl.Float64, bool: pl.Boolean}
_SCHEMA = {name: _KINDS[kind] for name, kind in get_type_hints(Row).items()}


def summary(frame: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """A row for each controller, device and set of goals: mean and spread of the time, its ratio to that of
    ``baseline``, and by goal the error of the lower bound and the chance that its repetition fails.

    Shares of searches, each counted where it holds for one of the goals: ``marked`` and ``told`` say that the
    device changed; ``gave_up`` have a result that is not regular, so that their time may be that of an early
    end; ``wrong_marked`` have one that is wrong and not regular, ``wrong_silent`` one that is wrong and
    regular. A result is wrong where the truth, which is that of a device that has been under test
    for long, lies more than a width outside of its bounds.
    """
    cell = ["controller", "goals", "device"]
    searches = frame.group_by([*cell, "seed"], maintain_order=True).agg(
        pl.col("time_s").first(),
        pl.col("trials").first(),
        pl.col("marked").any(),
        pl.col("told").any(),
        (~pl.col("regular")).any().alias("gave_up"),
        (pl.col("wrong") & ~pl.col("regular")).any().alias("wrong_marked"),
        (pl.col("wrong") & pl.col("regular")).any().alias("wrong_silent"),
    )
    times = searches.group_by(cell, maintain_order=True).agg(
        pl.col("time_s").mean(),
        pl.col("time_s").std().alias("time_sd_s"),
        pl.col("trials").mean(),
        pl.col("marked", "told", "gave_up", "wrong_marked", "wrong_silent").mean(),
    )
    base = times.filter(pl.col("controller") == baseline).select("goals", "device", base_s=pl.col("time_s"))
    bounds = (
        frame.group_by([*cell, "goal"], maintain_order=True)
        .agg(
            pl.col("lower_error").mean().alias("error"),
            pl.col("lower_error").std().alias("error_sd"),
            pl.col("retest_failure").mean().alias("retest"),
            pl.col("regular").mean().alias("regular"),
        )
        .pivot("goal", index=cell, values=["error", "error_sd", "retest", "regular"])
    )
    return (
        times.join(base, on=["goals", "device"], how="left")
        .with_columns(ratio=pl.col("time_s") / pl.col("base_s"))
        .drop("base_s")
        .join(bounds, on=cell, how="left")
    )


GAVE_UP = 0.5
"""Share of searches without a regular result from which the time of a cell is not that of a search."""


def means(table: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """Over the devices of `summary`, for each set of goals and controller: the geometric mean and the highest
    ratio of the times, and the mean share that is wrong silently.

    Devices on which it, or ``baseline``, gave up in `GAVE_UP` of the searches or more are left out: to end
    early with a mark is right, but not fast. Their names stand in ``left_out``. None is a mean of nothing.
    """
    base = table.filter(pl.col("controller") == baseline).select(
        "goals", "device", base_gave_up=pl.col("gave_up")
    )
    out = pl.max_horizontal("gave_up", "base_gave_up") >= GAVE_UP
    return (
        table.join(base, on=["goals", "device"], how="left")
        .group_by("goals", "controller", maintain_order=True)
        .agg(
            pl.col("ratio").filter(~out).log().mean().exp().alias("mean"),
            pl.col("ratio").filter(~out).max().alias("worst"),
            pl.col("wrong_silent").filter(~out).mean().alias("wrong_silent"),
            (~out).sum().alias("devices"),
            pl.col("device").filter(out).alias("left_out"),
        )
    )


def truth_fps(
    device: Device, goal: SearchGoal, loads: LoadRange, seed: int, *, since_s: float = 1e3
) -> float | None:
    """The smallest load where a trial of final length exceeds the goal with probability 1/2, by repeated
    trials: on a grid of 150 loads, then halved to 0.02 %. None where no load does.

    Args:
        since_s: How long the device has been under test: it is warm. One that carries something over from
            trial to trial is offered each load for `_UNJUDGED` trials before it is judged there.
    """
    bed = DeviceTestbed(device, seed=seed)
    unjudged = _UNJUDGED if getattr(device, "carries_state", False) else 0

    def exceeds(load_fps: float, trials: int) -> bool:
        for number in range(-unjudged, 0):
            _exceeds(bed, goal, load_fps, number, since_s)
        failures = 0
        for number in range(trials):
            failures += _exceeds(bed, goal, load_fps, number, since_s)
            if 2 * failures >= trials or 2 * (number + 1 - failures) > trials:
                break
        return 2 * failures >= trials

    step = loads.max_fps / 150.0
    above = next((n for n in range(1, 151) if exceeds(n * step, 9) and exceeds(n * step, 25)), None)
    if above is None:
        return None
    low_fps, high_fps = max((above - 1) * step, loads.min_fps), above * step
    while high_fps / low_fps > 1.0002:
        middle_fps = math.sqrt(low_fps * high_fps)
        if exceeds(middle_fps, 25):
            high_fps = middle_fps
        else:
            low_fps = middle_fps
    return math.sqrt(low_fps * high_fps)


def _exceeds(bed: DeviceTestbed, goal: SearchGoal, load_fps: float, number: int, since_s: float) -> bool:
    """Whether a trial of final length loses more than the goal allows, outside of any search."""
    spec = TrialSpec(
        index=1_000_000 + number,
        elapsed_s=since_s + number * (goal.duration_s + 0.43),
        intended_load_fps=load_fps,
        duration_s=goal.duration_s,
        frame_size_bytes=FRAME_SIZE_BYTES,
    )
    return bed.trial(spec).loss_ratio > goal.loss_ratio


def drawn(device: Device | Family, seed: int) -> Device:
    """A device, or the one of a family that a seed gives."""
    return device(random.Random(f"device {seed}")) if callable(device) else device


def _cell(experiment: Experiment, work: _Work) -> list[Row]:
    """The rows of some searches on one device with one set of goals and one seed."""
    device_name, goals_name, seed = work.device, work.goals, work.seed
    controllers, devices, own = _names(experiment)
    spread = random.Random(f"max load {seed}").uniform(0.95, 1.05)
    loads = LoadRange(experiment.min_fps, experiment.max_fps * spread)
    goals = goal_sets(experiment.width)[goals_name]
    on_own_device = device_name in own.devices
    with blamed(experiment.file if on_own_device else None, f"device {device_name!r}"):
        device = drawn(devices[device_name], seed)
        truths = [
            work.truths[goal.name] if goal.name in work.truths else truth_fps(device, goal, loads, seed)
            for goal in goals
        ]
    rows: list[Row] = []
    for name in work.controllers:
        bed = DeviceTestbed(
            device, seed=seed, overhead_s=experiment.overhead_s, detection_s=experiment.detection_s
        )
        is_own = on_own_device or name in own.controllers
        with blamed(experiment.file if is_own else None, f"controller {name!r} on device {device_name!r}"):
            if name in controllers:
                controller = controllers[name](goals, loads)
                _refuse_other_goals(name, controller, goals)
                found, time_s, trials = _searched(controller, bed)
            else:
                found, time_s, trials = PEERS[name]().search(bed, goals, loads)
            failures = [
                _retest_failure(bed, goal, each.lower_fps, time_s)
                for goal, each in zip(goals, found, strict=True)
            ]
        for goal, truth, each, failure in zip(goals, truths, found, failures, strict=True):
            lower_fps = each.lower_fps
            rows.append(
                {
                    "controller": name,
                    "device": device_name,
                    "goals": goals_name,
                    "seed": seed,
                    "goal": goal.name,
                    "time_s": time_s,
                    "trials": trials,
                    "lower_fps": lower_fps,
                    "upper_fps": each.upper_fps,
                    "regular": each.regular,
                    "marked": each.marked,
                    "told": each.told,
                    "wrong": _is_wrong(each, truth, experiment.width),
                    "truth_fps": truth,
                    "lower_error": None if lower_fps is None or truth is None else lower_fps / truth - 1.0,
                    "retest_failure": failure,
                }
            )
    return rows


def _refuse_other_goals(name: str, controller: Controller, goals: Sequence[SearchGoal]) -> None:
    """Raise InputError for a controller that does not look for what it was given."""
    asked = [goal.name for goal in goals]
    taken = [goal.name for goal in controller.goals]
    found = len(controller.findings())
    if found != len(goals):
        what = f"{found} finding" if found == 1 else f"{found} findings"
        raise InputError(
            f"controller {name!r} returned {what} for {len(goals)} goals ({', '.join(asked)}): one for "
            "each is needed, in their order"
        )
    if taken != asked:
        raise InputError(
            f"controller {name!r} has the goals {', '.join(taken)}, but was given {', '.join(asked)}: it "
            "has to keep all of them, in that order"
        )


def _is_wrong(found: Found, truth_fps: float | None, width: float) -> bool:
    """Whether the truth lies more than a width outside of the bounds; None: beyond the highest load."""
    lower_fps, upper_fps = found.lower_fps, found.upper_fps
    if truth_fps is None:
        return upper_fps is not None or lower_fps is None
    if lower_fps is not None and truth_fps < lower_fps * (1.0 - width):
        return True
    return upper_fps is None or truth_fps > upper_fps / (1.0 - width)


def _searched(controller: Controller, bed: DeviceTestbed) -> tuple[list[Found], float, int]:
    search = ControlledSearch(controller, frame_size_bytes=FRAME_SIZE_BYTES)
    for _ in range(_MAX_TRIALS):
        spec = search.ask()
        if spec is None:
            break
        search.tell(bed.trial(spec))
    result = search.result()
    found = [
        Found(
            None if goal.lower is None else goal.lower.offered_fps,
            None if goal.upper is None else goal.upper.offered_fps,
            goal.regular,
            goal.evidence is not None
            and goal.evidence.stationarity in (Stationarity.CHANGED, Stationarity.CHANGING),
            goal.evidence is not None and goal.evidence.stationarity is Stationarity.SETTLED,
        )
        for goal in result.goals
    ]
    return found, result.time_s, len(result.trials)


def _retest_failure(
    bed: DeviceTestbed, goal: SearchGoal, lower_fps: float | None, since_s: float
) -> float | None:
    """Share of trials of final length at the lower bound, right after the search, that exceed the goal."""
    if lower_fps is None:
        return None
    return sum(_exceeds(bed, goal, lower_fps, number, since_s) for number in range(_RETESTS)) / _RETESTS


def _names(experiment: Experiment) -> Known:
    """What the experiment compares. Raises InputError for a name that there is not."""
    found = known(experiment.file)
    for what, names, those in (
        ("controller", experiment.controllers, [*found.controllers, *PEERS]),
        ("device", experiment.devices, list(found.devices)),
        ("set of goals", experiment.goals, list(goal_sets(0.5))),
    ):
        for number, name in enumerate(names):
            if name in names[:number]:
                raise InputError(f"the {what} {name!r} is named twice")
            if name not in those:
                raise InputError(f"no {what} is called {name!r}; there are {', '.join(those)}")
    return found
