"""Plain binary search: its loads, its stop rules, several goals one after the other."""

from __future__ import annotations

import pytest

from weirlab.errors import InputError
from weirlab.searches import ControlledSearch, LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.testbed.devices import Knee
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e4, 1.01e6)


def ndr(width: float | None = None) -> SearchGoal:
    return SearchGoal.ndr(duration_s=1.0, width=width)


def searched(device, *goals: SearchGoal, threshold_fps: float | None = None) -> ControlledSearch:
    controller = Binary(goals, LOADS, threshold_fps=threshold_fps)
    search = ControlledSearch(controller, frame_size_bytes=64)
    bed = DeviceTestbed(device)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return search


def loads(search: ControlledSearch) -> list[float]:
    return [trial.spec.intended_load_fps for trial in search.trials]


def test_the_first_load_is_the_maximum_and_the_others_are_arithmetic_middles():
    search = searched(Knee(capacity_fps=3e5), ndr(), threshold_fps=1e5)
    assert loads(search) == [1.01e6, 5.1e5, 2.6e5, 3.85e5]


@pytest.mark.parametrize(("threshold_fps", "trials"), [(5e5, 2), (2.6e5, 2), (2.5e5, 3), (2.4e5, 3)])
def test_it_ends_when_the_next_load_is_nearer_than_the_threshold(threshold_fps, trials):
    # Steps of a range of 1e6: 5e5, 2.5e5, 1.25e5 ...; a step of the threshold itself is still made.
    assert len(loads(searched(Knee(capacity_fps=6e5), ndr(), threshold_fps=threshold_fps))) == trials


def test_without_a_threshold_it_ends_within_the_width():
    search = searched(Knee(capacity_fps=3e5), ndr(0.05))
    (goal,) = search.result().goals
    assert goal.regular
    assert goal.width <= 0.05
    earlier = loads(search)[:-1]
    upper = min(load for load in earlier if load > 3e5)
    lower = max(load for load in [LOADS.min_fps, *earlier] if load <= 3e5)
    assert upper - lower > 0.05 * upper


def test_one_clean_trial_at_the_maximum_is_the_whole_search():
    for threshold_fps, width in ((1e4, None), (None, 0.01)):
        search = searched(Knee(capacity_fps=1e9), ndr(width), threshold_fps=threshold_fps)
        assert loads(search) == [LOADS.max_fps]


def test_the_lowest_load_is_measured_when_no_other_met_the_goal():
    for threshold_fps, width in ((1e4, None), (None, 0.01)):
        search = searched(Knee(capacity_fps=1.0005e4), ndr(width), threshold_fps=threshold_fps)
        assert loads(search)[-1] == LOADS.min_fps
        (goal,) = search.result().goals
        assert goal.lower.load_fps == LOADS.min_fps


def test_the_lowest_load_is_not_measured_otherwise():
    assert LOADS.min_fps not in loads(searched(Knee(capacity_fps=3e5), ndr(0.01)))


def test_each_goal_has_a_search_of_its_own():
    device = Knee(capacity_fps=3e5)
    pdr = SearchGoal.pdr(duration_s=2.0, width=0.001)
    both = searched(device, ndr(0.001), pdr)
    alone = [searched(device, ndr(0.001)), searched(device, pdr)]
    assert loads(both) == loads(alone[0]) + loads(alone[1])
    assert {trial.spec.duration_s for trial in both.trials} == {1.0, 2.0}
    found = [goal.lower.load_fps for goal in both.result().goals]
    assert found[0] < found[1]


@pytest.mark.parametrize(
    ("goal", "threshold_fps", "message"),
    [
        (ndr(), None, "ends at a width or at a threshold"),
        (ndr(0.01), 1e4, "ends at a width or at a threshold"),
        (ndr(), 0.0, "must be above 0 "),
        (
            SearchGoal(name="A", loss_ratio=0.0, width=0.1, duration_s=1.0, exceed_ratio=0.5),
            None,
            "binary decides",
        ),
    ],
)
def test_what_binary_search_cannot_do_is_refused(goal, threshold_fps, message):
    with pytest.raises(InputError, match=message):
        Binary([goal], LOADS, threshold_fps=threshold_fps)
