"""What all controllers share: asking and telling, warm-up, the tester's faults, results and their wording."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

import pytest

from weirlab.errors import ImpossibleTrial, InputError
from weirlab.searches import ControlledSearch, Ending, Irregularity, LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.searches.controlled import OFFERED_ATTEMPTS
from weirlab.searches.controller import Finding, Wish
from weirlab.searches.evidence import Stationarity
from weirlab.searches.lab import drawn
from weirlab.searches.lab_devices import DEVICES
from weirlab.searches.mdr import Mdr
from weirlab.searches.weir import Weir
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Knee
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e4, 1e6)
NDR = SearchGoal.ndr(duration_s=10.0, width=0.01)
PDR = SearchGoal.pdr(duration_s=10.0, width=0.01)
KNEE = Knee(capacity_fps=4e5)


def binary(*goals: SearchGoal, **settings) -> ControlledSearch:
    return ControlledSearch(Binary(goals or [NDR], LOADS), frame_size_bytes=64, **settings)


def mdr(**settings) -> ControlledSearch:
    return ControlledSearch(Mdr([NDR, PDR], LOADS), frame_size_bytes=64, **settings)


def weir(loads: LoadRange = LOADS) -> ControlledSearch:
    return ControlledSearch(Weir([NDR, PDR], loads), frame_size_bytes=64)


def trial(spec: TrialSpec, *, sent: float = 1.0, received: float = 1.0) -> Trial:
    """A trial in which shares of the intended frames were sent and received."""
    return Trial(
        spec=spec,
        intended_frames=spec.intended_frames,
        sent_frames=round(sent * spec.intended_frames),
        received_frames=round(received * spec.intended_frames),
        effective_duration_s=spec.duration_s + 0.5,
        offered_load_fps=sent * spec.intended_load_fps,
    )


def finish(search: ControlledSearch, bed: DeviceTestbed):
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return search.result()


def test_asking_twice_gives_the_same_answer():
    search = mdr()
    for _ in range(5):
        assert search.ask() == search.ask()
        search.tell(DeviceTestbed(KNEE).trial(search.ask()))


def test_telling_a_trial_that_was_not_asked_for_is_refused_and_changes_nothing():
    search = mdr()
    first = search.ask()
    search.tell(trial(first, received=0.5))
    expected = search.ask()
    with pytest.raises(ValueError, match="told of"):
        search.tell(trial(first, received=0.5))
    assert search.ask() == expected
    assert len(search.trials) == 1


def test_telling_after_the_end_is_refused():
    search = binary()
    finish(search, DeviceTestbed(KNEE))
    assert search.ask() is None
    with pytest.raises(ValueError, match="asked for None"):
        search.tell(search.trials[-1])


def test_trials_are_numbered_and_carry_the_time_of_those_before():
    search = mdr(directions=2)
    finish(search, DeviceTestbed(KNEE, overhead_s=0.25))
    elapsed_s = 0.0
    for place, done in enumerate(search.trials):
        assert (done.spec.index, done.spec.elapsed_s) == (place, elapsed_s)
        assert done.spec.directions == 2
        elapsed_s += done.effective_duration_s
    assert search.result().time_s == pytest.approx(elapsed_s)


def test_a_warm_up_comes_first_at_the_maximum_load_and_decides_nothing():
    plain, warmed = mdr(), mdr(warm_up_s=5.0)
    first = warmed.ask()
    assert (first.purpose, first.duration_s, first.intended_load_fps) == ("warm-up", 5.0, LOADS.max_fps)
    assert warmed.state().phase == "warm-up"
    warmed.tell(trial(first, received=0.01, sent=0.7))
    bed = DeviceTestbed(KNEE)
    assert finish(warmed, bed).goals[0].lower.load_fps == finish(plain, bed).goals[0].lower.load_fps


def test_a_trial_that_the_tester_spoiled_is_repeated_once():
    search = binary()
    first = search.ask()
    search.tell(trial(first, sent=0.99, received=0.99))
    again = search.ask()
    assert again.purpose == "repeat"
    assert again.index == 1
    assert (again.intended_load_fps, again.duration_s) == (first.intended_load_fps, first.duration_s)
    search.tell(trial(again, received=0.4))
    assert search.ask().purpose == "search"
    result = finish(search, DeviceTestbed(KNEE))
    assert result.regular
    assert result.goals[0].lower.load_fps == pytest.approx(4e5, rel=0.01)


def test_a_load_that_the_tester_missed_within_the_tolerance_is_not_repeated():
    search = binary()
    search.tell(trial(search.ask(), sent=0.9951, received=0.4))
    assert search.ask().purpose == "search"


@pytest.mark.parametrize("make", [binary, mdr])
def test_a_tester_that_is_slower_than_the_device_gives_a_tester_limited_result(make):
    limit_fps = 3e5
    result = finish(make(), DeviceTestbed(KNEE, tester_limit_fps=limit_fps))
    assert result.ending is Ending.FINISHED
    for goal in result.goals:
        assert set(goal.irregularities) == {Irregularity.TESTER_LIMITED}
        assert goal.lower.load_fps <= limit_fps * 1.0051
        assert goal.lower.load_fps == pytest.approx(limit_fps, rel=0.02)
        assert "of 3" in goal.remark
        assert "frames/s the tester sent 300,000" in goal.remark


def test_a_load_beyond_the_tester_is_offered_twice_and_never_again():
    bed = DeviceTestbed(KNEE, tester_limit_fps=3e5)
    search = mdr()
    finish(search, bed)
    spoiled = [t for t in search.trials if t.unsent_ratio > 0.005]
    assert len(spoiled) >= 2
    loads = [t.spec.intended_load_fps for t in spoiled]
    assert loads[0::2] == loads[1::2]
    assert loads[0::2] == sorted(set(loads), reverse=True)


def test_the_tester_is_never_blamed_for_what_the_device_lost():
    result = finish(mdr(), DeviceTestbed(KNEE, tester_limit_fps=9e5))
    assert result.regular
    assert result.goals[0].lower.load_fps == pytest.approx(4e5, rel=0.02)


def test_a_tester_that_sends_too_much_is_impossible_and_the_trial_is_asked_for_again():
    search = binary()
    spec = search.ask()
    with pytest.raises(ImpossibleTrial, match="frames were sent where 10000000 were intended"):
        search.tell(trial(spec, sent=1.01))
    assert search.ask() == spec
    assert len(search.trials) == 0


def test_frames_that_were_not_sent_count_as_lost_only_on_request():
    excluded, lost = binary(), binary(unsent="lost")
    for search in (excluded, lost):
        search.tell(trial(search.ask(), sent=0.999, received=0.999))
    assert excluded.ask() is None
    assert lost.ask().intended_load_fps < LOADS.max_fps


def test_an_early_stop_is_no_fault_of_the_tester():
    search = binary()
    spec = search.ask()
    half = spec.intended_frames // 2
    search.tell(
        Trial(
            spec=spec,
            intended_frames=half,
            sent_frames=half,
            received_frames=half - 1,
            effective_duration_s=5.0,
            offered_load_fps=spec.intended_load_fps,
            stopped_early=True,
        )
    )
    assert search.ask().purpose == "search"


@pytest.mark.parametrize("make", [binary, mdr])
def test_a_device_that_never_loses_has_no_upper_bound(make):
    result = finish(make(), DeviceTestbed(Knee(capacity_fps=1e9)))
    for goal in result.goals:
        assert set(goal.irregularities) == {Irregularity.NO_UPPER_BOUND}
        assert goal.lower.load_fps == LOADS.max_fps
        assert goal.upper is None
        assert "no upper bound seen: 1,000,000 frames/s still met the goal" in goal.remark


@pytest.mark.parametrize("make", [binary, mdr])
def test_a_device_that_forwards_nothing_has_no_lower_bound(make):
    result = finish(make(), DeviceTestbed(Knee(capacity_fps=1.0)))
    for goal in result.goals:
        assert set(goal.irregularities) == {Irregularity.NO_LOWER_BOUND}
        assert goal.lower is None
        assert goal.upper.load_fps <= LOADS.min_fps * 1.011


def test_a_search_that_has_not_ended_gives_an_unfinished_result_with_the_bounds_so_far():
    search = binary(NDR, PDR)
    bed = DeviceTestbed(KNEE)
    while search.state().phase == "NDR":
        search.tell(bed.trial(search.ask()))
    search.tell(bed.trial(search.ask()))
    result = search.result()
    assert result.ending is Ending.UNFINISHED
    ndr, pdr = result.goals
    assert ndr.regular
    assert Irregularity.UNFINISHED in pdr.irregularities
    assert pdr.lower is None
    assert pdr.upper.load_fps == LOADS.max_fps


def test_the_reason_of_an_end_from_outside_replaces_unfinished():
    search = binary(NDR, PDR)
    bed = DeviceTestbed(KNEE)
    while search.state().phase == "NDR":
        search.tell(bed.trial(search.ask()))
    result = search.result().ended(Ending.TESTBED_FAILED, "the link is down")
    ndr, pdr = result.goals
    assert ndr.regular
    assert pdr.irregularities == {Irregularity.TESTBED_FAILED: "the link is down"}
    assert (result.ending, result.message) == (Ending.TESTBED_FAILED, "the link is down")
    assert not result.regular


def test_the_bounds_shown_are_only_valid_ones():
    search = mdr()
    assert search.state().bounds == {"NDR": (None, None), "PDR": (None, None)}
    bed = DeviceTestbed(KNEE)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
        for lower_fps, upper_fps in search.state().bounds.values():
            assert lower_fps is None or lower_fps <= 4e5
            assert upper_fps is None or upper_fps > 4e5


@pytest.mark.parametrize("make", [lambda: binary(NDR, PDR), mdr, weir])
def test_the_time_left_is_known_after_the_first_trial_and_falls_to_nothing(make):
    search = make()
    bed = DeviceTestbed(KNEE, overhead_s=0.5)
    assert search.time_left_s() is None
    estimates, truths = [], []
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
        estimates.append(search.time_left_s())
        truths.append(search.result().time_s)
    truths = [truths[-1] - used_s for used_s in truths]
    assert estimates[-1] == 0.0
    assert truths[0] / 3 < estimates[0] < truths[0] * 3
    for estimate, truth in zip(estimates, truths, strict=True):
        # Whether the next final trial passes, and so takes 10.5 s, nobody knows.
        assert estimate == pytest.approx(truth, abs=max(0.5 * truths[0], 10.5))


@pytest.mark.parametrize("device", ["drops", "vhost", "noisy", "buffer", "regime", "outages"])
def test_the_time_left_is_always_known_and_no_farther_off_than_a_search_of_another_device(device):
    search = weir(LoadRange(2e4, 29.76e6))
    bed = DeviceTestbed(drawn(DEVICES[device], 1), seed=1, overhead_s=0.43)
    estimates = []
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
        estimates.append(search.time_left_s())
    assert None not in estimates
    assert estimates[-1] == 0.0
    assert max(estimates) < 3.0 * search.result().time_s


def test_estimating_the_time_left_is_cheap():
    """Counted in trials that the rehearsal makes, as a clock would depend on the machine."""
    search = weir(LoadRange(2e4, 29.76e6))
    bed = DeviceTestbed(drawn(DEVICES["drops"], 1), seed=1, overhead_s=0.43)
    most = 0
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
        with patch.object(Weir, "tell", autospec=True, side_effect=Weir.tell) as told:
            search.time_left_s()
        most = max(most, told.call_count)
    assert 0 < most <= 100


def test_the_time_left_of_a_sweep_is_counted_and_not_played():
    """Else a sweep of many loads rehearses all of them after each: it takes time with the cube of them."""
    search = ControlledSearch(Weir([NDR, PDR], LoadRange(2e4, 29.76e6), sweep=150), frame_size_bytes=64)
    bed = DeviceTestbed(Knee(capacity_fps=9e6), overhead_s=0.4)
    before: list[float] = []
    estimates, truths = [], []
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
        if spec.purpose != "sweep":
            before.append(search.time_left_s())
            continue
        with patch.object(Weir, "tell", autospec=True, side_effect=Weir.tell) as told:
            estimates.append(search.time_left_s())
        assert told.call_count <= 1
        truths.append(search.result().time_s)
    assert len(estimates) == 150
    assert estimates == pytest.approx([truths[-1] - used_s for used_s in truths], rel=0.1)
    assert min(before) > 150


def test_estimating_the_time_left_does_not_disturb_the_search():
    quiet, watched = mdr(), mdr()
    bed = DeviceTestbed(Knee(capacity_fps=4e5, trial_spread=0.01), seed=3)
    while (spec := quiet.ask()) is not None:
        watched.time_left_s()
        assert watched.ask() == spec
        answer = bed.trial(spec)
        quiet.tell(answer)
        watched.tell(answer)
    assert watched.ask() is None


def test_settings_are_json_and_tell_searches_apart():
    settings = [
        mdr(),
        mdr(directions=2),
        mdr(unsent="lost"),
        mdr(warm_up_s=5.0),
        binary(),
        binary(PDR),
        ControlledSearch(Mdr([NDR, PDR], LOADS, intermediate_phases=1), frame_size_bytes=64),
        ControlledSearch(Mdr([NDR, PDR], LoadRange(1e4, 2e6)), frame_size_bytes=64),
    ]
    texts = [json.dumps(search.settings(), allow_nan=False) for search in settings]
    assert len(set(texts)) == len(texts)
    assert texts[0] == json.dumps(mdr().settings())


class Straying:
    """A controller with a fault: it leaves the range."""

    goals = (NDR,)
    loads = LOADS
    phase = "straying"

    def settings(self):
        return {"kind": "straying"}

    def ask(self):
        return Wish(LOADS.max_fps * 1.001, 1.0)

    def tell(self, outcome):
        raise AssertionError("nothing was asked")

    def findings(self):
        return [Finding(lower=None, upper=None, ended=False)]


def test_a_controller_that_leaves_the_range_is_stopped():
    with pytest.raises(
        ValueError, match=r"straying asked for 1.001e\+06 frames/s, outside of 10000 .. 1e\+06"
    ):
        ControlledSearch(Straying(), frame_size_bytes=64)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: binary(NDR, NDR), "goals with names that differ"),
        (lambda: binary(unsent="ignored"), "unsent frames are 'excluded' or 'lost'"),
        (lambda: binary(warm_up_s=-1.0), "the warm-up must be 0 s or more"),
        (lambda: LoadRange(2e6, 1e6), "min load 2e\\+06 is not below max load 1e\\+06"),
        (lambda: LoadRange(0.0, 1e6), "must be finite and above 0"),
        (lambda: LoadRange(1.0, float("inf")), "must be finite and above 0"),
        (lambda: SearchGoal.pdr(1.0, duration_s=1.0), "goal PDR: loss ratio must lie in \\[0, 1\\)"),
        (lambda: SearchGoal.ndr(duration_s=1.0, width=0.0), "goal NDR: width must lie in"),
        (lambda: SearchGoal.ndr(duration_s=0.0), "goal NDR: trial duration must be above 0 s"),
        (lambda: SearchGoal.ndr(duration_s=float("nan")), "goal NDR: trial duration must be above 0 s"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def in_doubt(spec: TrialSpec, lost: int, doubtful: int) -> Trial:
    return replace(trial(spec), received_frames=spec.intended_frames - lost, doubtful_frames=doubtful)


MANY = SearchGoal(
    name="NDR", loss_ratio=0.0, width=0.01, duration_s=1.0, exceed_ratio=0.5, duration_sum_s=21.0
)


def many_trials_a_load() -> ControlledSearch:
    return ControlledSearch(Weir([MANY], LOADS), frame_size_bytes=64)


@pytest.mark.parametrize("slow", range(1, 20))
def test_a_load_that_was_offered_in_full_survives_two_slow_trials_in_a_row(slow: int):
    """They are repeated, and the search finds what it finds with a tester that is never disturbed."""
    bed = DeviceTestbed(KNEE)
    expected = finish(many_trials_a_load(), bed).goals[0]
    search = many_trials_a_load()
    offered: set[float] = set()
    disturbed = 0
    while (spec := search.ask()) is not None:
        made = bed.trial(spec)
        known = spec.intended_load_fps in offered
        if known and spec.index >= slow and disturbed < 2:
            disturbed += 1
            made = replace(
                made,
                sent_frames=round(0.98 * made.sent_frames),
                received_frames=min(made.received_frames, round(0.98 * made.sent_frames)),
                offered_load_fps=0.98 * made.offered_load_fps,
            )
        else:
            offered.add(spec.intended_load_fps)
        search.tell(made)
    (found,) = search.result().goals
    assert disturbed == 2
    assert found.regular
    assert (found.lower.load_fps, found.upper.load_fps) == (expected.lower.load_fps, expected.upper.load_fps)


def test_a_load_that_was_offered_is_given_up_when_the_tester_does_not_come_back():
    """A bounded number of repetitions; the tester may have become slower for good."""
    search = many_trials_a_load()
    bed = DeviceTestbed(Knee(capacity_fps=2e6))
    for _ in range(2):  # of a third of a second and of one second
        search.tell(bed.trial(search.ask()))
    for _ in range(OFFERED_ATTEMPTS):
        assert search.ask().intended_load_fps == LOADS.max_fps
        search.tell(trial(search.ask(), sent=0.98, received=0.98))
    assert search.ask() is None or search.ask().intended_load_fps < LOADS.max_fps
    (found,) = finish(search, bed).goals
    assert set(found.irregularities) == {Irregularity.TESTER_LIMITED}


def test_an_upper_bound_that_failed_in_full_stays_the_devices_when_the_tester_gets_slow():
    """The guard cannot offer the load again: it says nothing, and takes nothing away."""
    search = ControlledSearch(Weir([NDR], LOADS), frame_size_bytes=64)
    bed = DeviceTestbed(KNEE)
    guarded = 0
    while (spec := search.ask()) is not None:
        above = search.state().bounds["NDR"][1] == spec.intended_load_fps
        if above and (guarded or spec.purpose == "guard"):
            guarded += 1
            search.tell(trial(spec, sent=0.9, received=0.9))
        else:
            search.tell(bed.trial(spec))
    (found,) = search.result().goals
    assert guarded >= 2, "the guard was tried, and repeated"
    assert found.regular
    assert found.upper.trial.unsent_ratio == 0.0
    assert found.evidence.stationarity is Stationarity.NOT_TESTED
    assert all(each.unsent_ratio == 0.0 for each in found.evidence.upper_trials)


def test_a_loss_that_the_tester_may_have_caused_is_never_the_devices():
    search = binary()
    first = search.ask()
    search.tell(in_doubt(first, lost=7, doubtful=7))
    assert search.ask().purpose == "repeat", "once more"
    search.tell(in_doubt(search.ask(), lost=7, doubtful=7))
    (found,) = finish(search, DeviceTestbed(Knee(capacity_fps=2e6))).goals
    assert Irregularity.TESTER_LIMITED in found.irregularities


@pytest.mark.parametrize(("lost", "doubtful"), [(7, 6), (50_000, 7)])
def test_doubt_about_some_frames_is_no_matter_where_enough_others_were_lost(lost, doubtful):
    search = binary()
    search.tell(in_doubt(search.ask(), lost=lost, doubtful=doubtful))
    assert search.ask().purpose == "search"


@pytest.mark.parametrize(("unsent", "repeated"), [("lost", True), ("excluded", False)])
def test_where_unsent_frames_are_lost_doubt_counts_on_top_of_them(unsent, repeated):
    search = binary(SearchGoal.pdr(0.0065, duration_s=10.0, width=0.01), unsent=unsent)
    spec = search.ask()
    # 0.3 % were not sent, 0.4 % lost, a quarter of these in doubt: 0.7 % of the intended, or 0.6 %.
    doubtful = round(0.001 * spec.intended_frames)
    search.tell(replace(trial(spec, sent=0.997, received=0.993), doubtful_frames=doubtful))
    asked = search.ask()
    assert (asked is not None and asked.purpose == "repeat") is repeated


def test_more_frames_in_doubt_than_were_lost_are_impossible():
    with pytest.raises(ImpossibleTrial, match="7 lost frames are in doubt, but only 6 were lost"):
        in_doubt(binary().ask(), lost=6, doubtful=7)
