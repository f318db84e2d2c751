"""MDR search: the rules of its text that the published traces do not show."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest

from weirlab.errors import InputError
from weirlab.searches import ControlledSearch, Ending, Irregularity, LoadRange, SearchGoal
from weirlab.searches.mdr import Mdr
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.devices import DeepBuffer, Gradual, Knee, WarmUp
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e4, 1e7)
WIDTH = 0.01


def goals(duration_s: float = 30.0) -> list[SearchGoal]:
    return [
        SearchGoal.ndr(duration_s=duration_s, width=WIDTH),
        SearchGoal.pdr(duration_s=duration_s, width=WIDTH),
    ]


def searched(device, **settings) -> ControlledSearch:
    """A search that has ended."""
    wanted = settings.pop("goals", goals())
    search = ControlledSearch(Mdr(wanted, LOADS, **settings), frame_size_bytes=64)
    bed = DeviceTestbed(device)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return search


def specs(search: ControlledSearch) -> list[TrialSpec]:
    return [trial.spec for trial in search.trials]


def test_the_defaults_are_those_of_the_text():
    settings = searched(Knee(capacity_fps=3e6)).settings()["algorithm"]
    assert settings == {"kind": "mdr", "intermediate_phases": 2, "phase_timeout_s": 600.0}
    assert specs(searched(Knee(capacity_fps=3e6)))[0].duration_s == 1.0


def test_the_initial_phase_measures_the_maximum_then_what_was_received_of_it():
    first, second, third, *_ = specs(searched(Knee(capacity_fps=3e6)))
    assert [spec.duration_s for spec in (first, second, third)] == [1.0, 1.0, 1.0]
    assert first.intended_load_fps == LOADS.max_fps
    assert second.intended_load_fps == 3e6
    # Nothing was lost at 3e6: the interval is still made wide enough for the final width.
    assert third.intended_load_fps == pytest.approx(3e6 * (1.0 - 0.999 * WIDTH))


def test_a_clean_first_trial_still_gives_a_first_interval_of_the_final_width():
    first, second, *_ = specs(searched(Knee(capacity_fps=1e9)))
    assert second.intended_load_fps == pytest.approx(LOADS.max_fps * (1.0 - 0.999 * WIDTH))
    assert first.intended_load_fps == LOADS.max_fps


@pytest.mark.parametrize("phases", range(5))
def test_durations_grow_geometrically_over_the_phases(phases):
    search = searched(Gradual(), intermediate_phases=phases)
    durations_s = sorted({spec.duration_s for spec in specs(search)})
    assert durations_s[0] == 1.0
    assert durations_s[-1] == 30.0
    if phases > 0:
        ratios = [b / a for a, b in pairwise(durations_s)]
        assert ratios == pytest.approx([30.0 ** (1.0 / phases)] * phases)
    in_order = [spec.duration_s for spec in specs(search)]
    assert in_order == sorted(in_order)
    assert search.result().regular


def test_short_final_trials_shorten_the_initial_ones():
    search = searched(Knee(capacity_fps=3e6), goals=goals(0.5))
    assert {spec.duration_s for spec in specs(search)} == {0.5}


class LosesOneFrame:
    def received_frames(self, offer):
        return offer.frames - 1


def doubled(width: float, times: int) -> float:
    for _ in range(times):
        width = 1.999 * width - width * width
    return width


def test_an_invalid_lower_bound_is_moved_down_by_twice_the_width_each_time():
    ndr = goals(1.0)[:1]
    loads = [s.intended_load_fps for s in specs(searched(LosesOneFrame(), goals=ndr, intermediate_phases=0))]
    falls = [1.0 - b / a for a, b in pairwise(loads)]
    initial = 0.999 * WIDTH
    assert falls[:6] == pytest.approx([initial, initial, *(doubled(WIDTH, times) for times in range(1, 5))])
    assert loads[-1] == LOADS.min_fps
    assert loads.count(LOADS.min_fps) == 1


def test_an_invalid_upper_bound_is_moved_up_by_twice_the_width_each_time():
    """A device that only the first trial finds slow."""

    class SlowAtFirst:
        def received_frames(self, offer):
            return offer.frames // 4 if offer.index == 0 else offer.frames

    ndr = goals(1.0)[:1]
    loads = [s.intended_load_fps for s in specs(searched(SlowAtFirst(), goals=ndr, intermediate_phases=0))]
    assert loads[:2] == pytest.approx([LOADS.max_fps, LOADS.max_fps / 4])
    rises = [1.0 - a / b for a, b in pairwise(loads[3:7])]
    assert 1.0 - loads[1] / loads[3] == pytest.approx(doubled(WIDTH, 1))
    assert rises == pytest.approx([doubled(WIDTH, times) for times in range(2, 5)])
    assert LOADS.max_fps in loads[7:]


def test_the_middle_of_an_interval_is_geometric():
    search = ControlledSearch(Mdr(goals(1.0), LOADS, intermediate_phases=0), frame_size_bytes=64)
    bed = DeviceTestbed(Gradual(onset_fps=2e6, capacity_fps=8e6))
    halved = 0
    while (spec := search.ask()) is not None:
        bounds = [pair for pair in search.state().bounds.values() if None not in pair]
        middles = [(lower * upper) ** 0.5 for lower, upper in bounds]
        halved += any(spec.intended_load_fps == pytest.approx(middle, rel=1e-12) for middle in middles)
        search.tell(bed.trial(spec))
    assert halved >= 3


def test_the_upper_bound_at_the_maximum_is_measured_with_the_final_duration_and_then_believed():
    search = searched(Knee(capacity_fps=1e9))
    at_max = [spec.duration_s for spec in specs(search) if spec.intended_load_fps == LOADS.max_fps]
    assert at_max[-1] == 30.0
    assert at_max.count(30.0) == 1
    assert all(set(goal.irregularities) == {Irregularity.NO_UPPER_BOUND} for goal in search.result().goals)


@dataclass
class OnlyWhenLong:
    """Loses half of each trial that is shorter than 10 s, and nothing of the others below 1e6 frames/s."""

    def received_frames(self, offer):
        if offer.duration_s < 10.0:
            return offer.frames // 2
        return min(offer.frames, round(1e6 * offer.duration_s))


def test_an_interval_at_the_minimum_is_not_refined_until_the_minimum_is_measured_again():
    search = searched(OnlyWhenLong(), phase_timeout_s=3000.0)
    short = [spec.intended_load_fps for spec in specs(search) if spec.duration_s < 10.0]
    assert short.count(LOADS.min_fps) == 2
    second_phase = [spec.intended_load_fps for spec in specs(search) if 1.0 < spec.duration_s < 10.0]
    assert sorted(second_phase) == sorted(short)[1:3]  # both bounds again, nothing between them
    first_long = next(spec for spec in specs(search) if spec.duration_s >= 10.0)
    assert first_long.intended_load_fps == LOADS.min_fps
    result = search.result()
    assert result.regular
    assert result.goals[0].lower.load_fps == pytest.approx(1e6, rel=WIDTH)


def test_bounds_that_an_earlier_phase_found_are_all_measured_with_the_final_duration():
    for device in (Knee(capacity_fps=3e6), Gradual(), DeepBuffer(capacity_fps=5e6), WarmUp(capacity_fps=5e6)):
        for goal in searched(device).result().goals:
            assert goal.lower.trial.spec.duration_s == 30.0
            assert goal.upper.trial.spec.duration_s == 30.0


@dataclass
class WorseWhenLong:
    """A knee that loses a frame of every trial of 30 s, at any load: the final phase has to go far down."""

    def received_frames(self, offer):
        forwarded = min(offer.frames, round(5e6 * offer.duration_s))
        return forwarded - 1 if offer.duration_s >= 30.0 else forwarded


def test_a_search_that_takes_too_long_in_one_phase_gives_up_and_keeps_what_it_has():
    result = searched(WorseWhenLong(), phase_timeout_s=100.0).result()
    assert result.ending is Ending.TIMED_OUT
    assert result.message == "final phase took 120.0 s, more than 100 s"
    final_s = [t.effective_duration_s for t in result.trials if t.spec.duration_s == 30.0]
    assert sum(final_s[:-1]) <= 100.0 < sum(final_s)
    ndr, pdr = result.goals
    for goal in (ndr, pdr):
        assert Irregularity.TIMED_OUT in goal.irregularities
        assert result.message in goal.remark
    assert ndr.lower is None
    assert ndr.upper is not None
    assert pdr.lower is not None


def test_phases_that_are_fast_enough_do_not_add_up_to_a_timeout():
    unlimited = searched(Gradual()).result()
    per_phase: dict[float, float] = {}
    for trial in unlimited.trials:
        per_phase[trial.spec.duration_s] = (
            per_phase.get(trial.spec.duration_s, 0.0) + trial.effective_duration_s
        )
    assert unlimited.time_s > max(per_phase.values())
    limited = searched(Gradual(), phase_timeout_s=max(per_phase.values())).result()
    assert limited.ending is Ending.FINISHED


def test_any_list_of_rates_is_found_in_one_search_and_named_in_the_order_of_the_goals():
    ratios = {"half": 0.005, "none": 0.0, "tenth": 0.001, "most": 0.008}
    wanted = [
        SearchGoal(name=name, loss_ratio=ratio, width=WIDTH, duration_s=30.0)
        for name, ratio in ratios.items()
    ]
    result = searched(Gradual(), goals=wanted).result()
    assert result.regular
    assert [goal.goal.name for goal in result.goals] == list(ratios)
    found = {goal.goal.loss_ratio: goal.lower.load_fps for goal in result.goals}
    assert [found[ratio] for ratio in sorted(found)] == sorted(found.values())
    one_by_one = {
        goal.loss_ratio: searched(Gradual(), goals=[goal]).result().goals[0].lower.load_fps for goal in wanted
    }
    for ratio, lower_fps in found.items():
        assert lower_fps == pytest.approx(one_by_one[ratio], rel=2.5 * WIDTH)


def test_one_search_for_two_rates_is_cheaper_than_two_searches():
    both = searched(Knee(capacity_fps=3e6)).result().time_s
    alone = [searched(Knee(capacity_fps=3e6), goals=[goal]).result().time_s for goal in goals()]
    assert both < sum(alone)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Mdr(goals(), LOADS, intermediate_phases=-1), "intermediate phases must be 0 or more"),
        (
            lambda: Mdr(goals(), LoadRange(0.9, 1e6)),
            "the lowest load, 0.9 frames/s, sends no whole frame in a",
        ),
        (lambda: Mdr(goals(), LOADS, phase_timeout_s=0.0), "timeout of a phase must be above 0 s"),
        (lambda: Mdr([goals(10.0)[0], goals(20.0)[1]], LOADS), "one final trial duration for all goals"),
        (
            lambda: Mdr([SearchGoal.ndr(duration_s=1.0, width=None)], LOADS),
            "goal NDR: an MDR search needs a width",
        ),
        (
            lambda: Mdr(
                [SearchGoal(name="A", loss_ratio=0.0, width=0.01, duration_s=1.0, exceed_ratio=0.5)], LOADS
            ),
            "goal A: mdr decides a load by one trial",
        ),
        (
            lambda: Mdr(
                [SearchGoal(name="A", loss_ratio=0.0, width=0.01, duration_s=1.0, duration_sum_s=2.0)], LOADS
            ),
            "goal A: mdr decides a load by one trial",
        ),
    ],
)
def test_what_mdr_cannot_do_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()
