"""Published searches: their trials replayed one by one, their numbers of trials, their mean times."""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from weirlab.search import ControlledSearch, LoadRange, SearchGoal
from weirlab.search.binary import Binary
from weirlab.search.mdr import Mdr
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Device, Ip4Published, Knee, VhostPublished
from weirlab.testbed.sim import DeviceTestbed

DATA = Path(__file__).parent / "data"
TRACES: dict[str, Any] = tomllib.loads((DATA / "mdr-traces.toml").read_text())
TABLES: dict[str, Any] = tomllib.loads((DATA / "mdr-search.toml").read_text())

MAX_FPS = TRACES["max_load_mpps"] * 1e6
MIN_FPS = TRACES["min_load_mpps"] * 1e6
PLR = TRACES["packet_loss_ratio"]
LOSS_OF_OUTCOME = (0.0, PLR / 2.0, 0.006)
"""A loss ratio for each published outcome. The last is less than the width, so that it does not set MRR2."""

SUITES = {
    # Range per direction 14.83 and 14.87 Mpps, thresholds 50 and 10 kpps per direction; all doubled here.
    "ip4": {"min_fps": 2 * 50e3, "threshold_fps": 2 * 50e3, "trials": 9, "device": Ip4Published()},
    "vhost": {"min_fps": 2 * 10e3, "threshold_fps": 2 * 10e3, "trials": 11, "device": VhostPublished()},
}
RELATIVE_WIDTH = {"ip4": 0.0109, "vhost": 0.00777}
"""The final widths that binary search reaches on the two suites, which MDR was given for the comparison."""


def goals(duration_s: float, width: float | None) -> list[SearchGoal]:
    return [
        SearchGoal.ndr(duration_s=duration_s, width=width),
        SearchGoal.pdr(PLR, duration_s=duration_s, width=width),
    ]


def answer(spec: TrialSpec, loss_ratio: float) -> Trial:
    frames = 10**9
    return Trial(
        spec=spec,
        intended_frames=frames,
        sent_frames=frames,
        received_frames=round(frames * (1.0 - loss_ratio)),
        effective_duration_s=spec.duration_s,
        offered_load_fps=spec.intended_load_fps,
    )


def asked_when_told(search: ControlledSearch, outcomes: Sequence[tuple[float, int]]) -> list[TrialSpec]:
    """All specs that the search asks for when each load is answered with the published outcome of the row
    [load, outcome] that comes next, or of one of its neighbours when only that has the load asked for."""
    asked = []
    while (spec := search.ask()) is not None:
        place = len(asked)
        assert place < len(outcomes), f"asks for trial {place} of {len(outcomes)}"
        near = [place, place + 1, place - 1]
        _, outcome = next(
            outcomes[i] for i in near if outcomes[i][0] == pytest.approx(spec.intended_load_fps, rel=1e-3)
        )
        asked.append(spec)
        search.tell(answer(spec, LOSS_OF_OUTCOME[outcome]))
    return asked


def replayed(name: str) -> tuple[list[TrialSpec], list[tuple[float, float, int]], ControlledSearch]:
    """What MDR asks for after its first trial, the published rows, and the search."""
    rows = [(duration_s, mpps * 1e6, outcome) for duration_s, mpps, outcome in TRACES[name]["trials"]]
    final_s = TRACES[name]["final_trial_duration_s"]
    controller = Mdr(goals(final_s, TRACES["final_relative_width"]), LoadRange(MIN_FPS, MAX_FPS))
    search = ControlledSearch(controller, frame_size_bytes=64, directions=2)
    first = search.ask()
    assert first is not None
    assert (first.intended_load_fps, first.duration_s) == (MAX_FPS, 1.0)
    search.tell(answer(first, 1.0 - rows[0][1] / MAX_FPS))
    return asked_when_told(search, [(load_fps, outcome) for _, load_fps, outcome in rows]), rows, search


SWAPPED = {"mdr_60": [(4, 5), (6, 7)]}
"""Neighbouring rows that were published in the other order: a tie between two intervals of equal width."""


@pytest.mark.parametrize("name", ["mdr_10_1", "mdr_10_2", "mdr_10_3", "mdr_60"])
def test_mdr_asks_for_every_trial_of_a_published_search(name):
    asked, rows, search = replayed(name)
    for first, second in SWAPPED.get(name, []):
        rows[first], rows[second] = rows[second], rows[first]
    assert len(asked) == len(rows)
    for spec, (duration_s, load_fps, _) in zip(asked, rows, strict=True):
        assert spec.intended_load_fps == pytest.approx(load_fps, rel=5e-4)
        assert spec.duration_s == pytest.approx(duration_s, abs=5e-4)
    assert search.result().regular


def test_the_swapped_pairs_of_the_published_search_have_intervals_of_equal_width():
    asked, rows, _ = replayed("mdr_60")
    loads = [spec.intended_load_fps for spec in asked]
    for first, second in SWAPPED["mdr_60"]:
        assert loads[first] == pytest.approx(rows[second][1], rel=5e-4)
        assert loads[second] == pytest.approx(rows[first][1], rel=5e-4)
    # The NDR lies between loads 2 and 1, the PDR between loads 0 and 3; loads 4 and 5 halve both intervals.
    assert loads[2] / loads[1] == pytest.approx(loads[0] / loads[3], rel=1e-9)
    assert loads[4] == pytest.approx((loads[2] * loads[1]) ** 0.5)
    assert loads[5] == pytest.approx((loads[0] * loads[3]) ** 0.5)


def test_the_published_searches_are_62_trials_with_the_first_ones_that_are_not_drawn():
    assert sum(1 + len(replayed(name)[0]) for name in TRACES if name.startswith("mdr_")) == 62


def test_binary_search_asks_for_every_trial_of_the_published_ndr_search():
    rows = [(MAX_FPS, 2), (14.89e6, 2), (7.455e6, 2)]
    rows += [(mpps * 1e6, outcome) for _, mpps, outcome in TRACES["ndr_60"]["trials"]]
    goal = SearchGoal.ndr(duration_s=60.0, width=None)
    controller = Binary([goal], LoadRange(MIN_FPS, MAX_FPS), threshold_fps=SUITES["vhost"]["threshold_fps"])
    asked = asked_when_told(ControlledSearch(controller, frame_size_bytes=64, directions=2), rows)
    assert len(asked) == len(rows) == 11
    for spec, (load_fps, _) in zip(asked, rows, strict=True):
        assert spec.intended_load_fps == pytest.approx(load_fps, rel=5e-4)


def search_with(algorithm: str, suite: str, final_s: float) -> ControlledSearch:
    if algorithm == "mdr":
        return ControlledSearch(
            Mdr(goals(final_s, RELATIVE_WIDTH[suite]), LoadRange(MIN_FPS, MAX_FPS)),
            frame_size_bytes=64,
            directions=2,
        )
    goal = goals(final_s, None)[0 if algorithm == "ndr_binary" else 1]
    settings = SUITES[suite]
    loads = LoadRange(settings["min_fps"], MAX_FPS)
    return ControlledSearch(
        Binary([goal], loads, threshold_fps=settings["threshold_fps"]),
        frame_size_bytes=64,
        directions=2,
        warm_up_s=TABLES["settings"]["binary_warmup_s"],
    )


def finished(search: ControlledSearch, bed: DeviceTestbed):
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return search.result()


@pytest.mark.parametrize("suite", ["ip4", "vhost"])
@pytest.mark.parametrize("algorithm", ["ndr_binary", "pdr_binary"])
def test_binary_search_takes_the_published_number_of_trials_whatever_the_device_does(suite, algorithm):
    devices: list[Device] = [
        SUITES[suite]["device"],
        *(Knee(capacity_fps=mpps * 1e6) for mpps in (1, 3, 12, 25)),
    ]
    for device in devices:
        result = finished(search_with(algorithm, suite, 10.0), DeviceTestbed(device, seed=7))
        searched = [trial for trial in result.trials if trial.spec.purpose == "search"]
        assert len(searched) == SUITES[suite]["trials"]
        assert searched[0].spec.intended_load_fps == MAX_FPS
        assert result.regular
        loads = [trial.spec.intended_load_fps for trial in searched]
        steps = [abs(b - a) for a, b in pairwise(loads)]
        assert steps == pytest.approx([steps[0] / 2**n for n in range(len(steps))])


@pytest.mark.parametrize("suite", ["ip4", "vhost"])
@pytest.mark.parametrize("algorithm", ["ndr_binary", "pdr_binary"])
@pytest.mark.parametrize("final_s", [10, 30, 60])
def test_binary_search_takes_the_published_time(suite, algorithm, final_s):
    bed = DeviceTestbed(SUITES[suite]["device"], seed=1, overhead_s=0.43)
    published_s, _ = TABLES[suite][algorithm][str(final_s)]
    assert finished(search_with(algorithm, suite, final_s), bed).time_s == pytest.approx(published_s, abs=0.5)


@pytest.mark.parametrize("suite", ["ip4", "vhost"])
@pytest.mark.parametrize("final_s", [10, 30, 60])
def test_mdr_takes_about_the_published_time_on_average(suite, final_s):
    times_s = [
        finished(
            search_with("mdr", suite, final_s),
            DeviceTestbed(SUITES[suite]["device"], seed=seed, overhead_s=0.5),
        ).time_s
        for seed in range(100)
    ]
    published_s, _ = TABLES[suite]["mdr"][str(final_s)]
    error_s = statistics.stdev(times_s) / 100**0.5
    assert abs(statistics.mean(times_s) - published_s) < 0.1 * published_s + 2.0 * error_s


@pytest.mark.parametrize(("suite", "least_gain"), [("ip4", 0.5), ("vhost", 0.2)])
def test_mdr_is_faster_than_one_binary_search_as_published(suite, least_gain):
    """Source: CSIT MDR, section 2.8.4.3: more than 50 % faster on the consistent suite at 30 and 60 s."""
    for final_s in (30, 60):
        bed_mdr = [DeviceTestbed(SUITES[suite]["device"], seed=seed, overhead_s=0.5) for seed in range(40)]
        mdr_s = statistics.mean(finished(search_with("mdr", suite, final_s), bed).time_s for bed in bed_mdr)
        binary_s, _ = TABLES[suite]["ndr_binary"][str(final_s)]
        assert mdr_s < (1.0 - least_gain) * binary_s
