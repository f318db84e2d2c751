"""Published searches: their trials replayed one by one, their numbers of trials, their mean times."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest

from weirlab.reproductions.mdr.searches import DURATIONS_S, MAX_FPS, SUITES, Case, made, search_of
from weirlab.reproductions.mdr.tables import published_time
from weirlab.reproductions.mdr.traces import CASES, TRACES, replayed
from weirlab.testbed.devices import Device, Knee
from weirlab.testbed.sim import DeviceTestbed

BINARY = ["ndr-binary", "pdr-binary"]
MDR_TRACES = [name for name, case in CASES.items() if case.algorithm == "mdr"]
SWAPPED = {"mdr_60": [(4, 5), (6, 7)]}
"""Neighbouring rows that were published in the other order: a tie between two intervals of equal width."""


@pytest.mark.parametrize("name", MDR_TRACES)
def test_mdr_asks_for_every_trial_of_a_published_search(name):
    rows = [(duration_s, mpps * 1e6) for duration_s, mpps, _ in TRACES["searches"][name]["trials"]]
    for first, second in SWAPPED.get(name, []):
        rows[first], rows[second] = rows[second], rows[first]
    replay = replayed(name)
    first_trial, *asked = [trial.spec for trial in replay.trials]
    assert (first_trial.intended_load_fps, first_trial.duration_s) == (MAX_FPS, 1.0)
    assert len(asked) == len(rows)
    for spec, (duration_s, load_fps) in zip(asked, rows, strict=True):
        assert spec.intended_load_fps == pytest.approx(load_fps, rel=5e-4)
        assert spec.duration_s == pytest.approx(duration_s, abs=5e-4)
    assert replay.search.result().regular


def test_the_swapped_pairs_of_the_published_search_have_intervals_of_equal_width():
    _, *loads = [trial.spec.intended_load_fps for trial in replayed("mdr_60").trials]
    # The NDR lies between loads 2 and 1, the PDR between loads 0 and 3; loads 4 and 5 halve both intervals.
    assert loads[2] / loads[1] == pytest.approx(loads[0] / loads[3], rel=1e-9)
    assert loads[4] == pytest.approx((loads[2] * loads[1]) ** 0.5)
    assert loads[5] == pytest.approx((loads[0] * loads[3]) ** 0.5)


def test_the_published_searches_are_62_trials_with_the_first_ones_that_are_not_drawn():
    assert sum(len(replayed(name).trials) for name in MDR_TRACES) == 62


def test_binary_search_asks_for_every_trial_of_the_published_ndr_search():
    drawn = [mpps * 1e6 for _, mpps, _ in TRACES["searches"]["ndr_60"]["trials"]]
    asked = [trial.spec for trial in replayed("ndr_60").trials if trial.spec.purpose == "search"]
    assert len(asked) == 3 + len(drawn) == 11
    for spec, load_fps in zip(asked, [MAX_FPS, 14.89e6, 7.455e6, *drawn], strict=True):
        assert spec.intended_load_fps == pytest.approx(load_fps, rel=5e-4)
        assert spec.duration_s == 60.0


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("algorithm", BINARY)
def test_binary_search_takes_the_published_number_of_trials_whatever_the_device_does(suite, algorithm):
    devices: list[Device] = [
        SUITES[suite].device,
        *(Knee(capacity_fps=mpps * 1e6) for mpps in (1, 3, 12, 25)),
    ]
    for device in devices:
        search, bed = search_of(Case(suite, algorithm, 10.0, 0)), DeviceTestbed(device, seed=7)
        while (spec := search.ask()) is not None:
            search.tell(bed.trial(spec))
        loads = [trial.spec.intended_load_fps for trial in search.trials if trial.spec.purpose == "search"]
        assert len(loads) == SUITES[suite].binary_trials
        assert loads[0] == MAX_FPS
        assert search.result().regular
        steps = [abs(b - a) for a, b in pairwise(loads)]
        assert steps == pytest.approx([steps[0] / 2**n for n in range(len(steps))])


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("algorithm", BINARY)
@pytest.mark.parametrize("duration_s", DURATIONS_S)
def test_binary_search_takes_the_published_time(suite, algorithm, duration_s):
    published_s, _ = published_time(suite, duration_s, algorithm)
    assert made(Case(suite, algorithm, duration_s, 0), 1).time_s == pytest.approx(published_s, abs=0.5)


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("duration_s", DURATIONS_S)
def test_mdr_takes_about_the_published_time_on_average(suite, duration_s):
    times_s = [made(Case(suite, "mdr", duration_s, index), 1).time_s for index in range(100)]
    published_s, _ = published_time(suite, duration_s, "mdr")
    error_s = statistics.stdev(times_s) / 100**0.5
    assert abs(statistics.mean(times_s) - published_s) < 0.1 * published_s + 2.0 * error_s


@pytest.mark.parametrize(("suite", "least_gain"), [("ip4", 0.5), ("vhost", 0.2)])
def test_mdr_is_faster_than_one_binary_search_as_published(suite, least_gain):
    """Source: CSIT MDR, section 2.8.4.3: more than 50 % faster on the consistent suite at 30 and 60 s."""
    for duration_s in (30, 60):
        mdr_s = statistics.mean(made(Case(suite, "mdr", duration_s, index), 2).time_s for index in range(40))
        binary_s, _ = published_time(suite, duration_s, "ndr-binary")
        assert mdr_s < (1.0 - least_gain) * binary_s
