"""Classification of loads after RFC 9971: the worked example of its text, laws, and the published library."""

from __future__ import annotations

import random
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from MLRsearch.discrete_load import DiscreteLoad
from MLRsearch.discrete_result import DiscreteResult
from MLRsearch.discrete_width import DiscreteWidth
from MLRsearch.goal_result import GoalResult as PeerResult
from MLRsearch.load_rounding import LoadRounding
from MLRsearch.measurement_database import MeasurementDatabase
from MLRsearch.target_spec import TargetSpec
from MLRsearch.trial_measurement import MeasurementResult

from weirlab.errors import InputError
from weirlab.searches.classify import Criterion, LoadClass, Sample, Tally, relevant_bounds
from weirlab.searches.goals import preset

VECTORS: dict[str, Any] = tomllib.loads((Path(__file__).parent / "data/rfc9971-vectors.toml").read_text())
LOWER, UPPER, UNDECIDED = LoadClass.LOWER, LoadClass.UPPER, LoadClass.UNDECIDED


def criterion_of_vectors(goal: str) -> Criterion:
    entry = VECTORS["goals"][goal]
    return Criterion(
        entry["loss_ratio"], entry["exceed_ratio"], entry["final_duration_s"], entry["duration_sum_s"]
    )


def tally(criterion: Criterion, samples: list[Sample]) -> Tally:
    counted = Tally(criterion)
    for sample in samples:
        counted.add(sample)
    return counted


@pytest.mark.parametrize("goal", VECTORS["goals"])
def test_every_point_of_the_worked_example_of_the_rfc_is_classified_as_its_code_says(goal: str) -> None:
    counted = Tally(criterion_of_vectors(goal))
    for number, point in enumerate(VECTORS["points"], start=1):
        count, duration_s, loss_ratio = point["trials"]
        for _ in range(count):
            counted.add(Sample(duration_s, duration_s, loss_ratio))
        assert counted.load_class == point["expect"][goal], f"point {number}"


@pytest.mark.parametrize("goal", VECTORS["conditional_throughput_fps"])
def test_the_conditional_throughput_of_the_worked_example_is_that_of_the_rfc(goal: str) -> None:
    counted = Tally(criterion_of_vectors(goal))
    for point in VECTORS["points"]:
        count, duration_s, loss_ratio = point["trials"]
        for _ in range(count):
            counted.add(Sample(duration_s, duration_s, loss_ratio))
    throughput = VECTORS["load_fps"] * (1.0 - counted.conditional_loss_ratio)
    assert throughput == pytest.approx(VECTORS["conditional_throughput_fps"][goal], rel=1e-12)


# ---- the published library

LOSSES = (0.0, 0.0, 1e-9, 0.001, 0.0049999, 0.005, 0.0050001, 0.01, 0.5, 1.0)
DURATIONS = (0.3, 0.7, 1.0, 1.0, 4.0, 10.0, 17.3, 30.0, 60.0)


def random_criterion(chance: random.Random) -> Criterion:
    duration_s = chance.choice((0.7, 1.0, 10.0, 17.3, 30.0, 60.0))
    return Criterion(
        loss_ratio=chance.choice((0.0, 0.005, 0.01)),
        exceed_ratio=chance.choice((0.0, 0.0, 0.1, 0.2, 0.25, 0.3, 1.0 / 3.0, 0.5, 0.7, 0.75)),
        duration_s=duration_s,
        duration_sum_s=duration_s * chance.choice((1.0, 1.1, 1.37, 2.0, 2.5, 5.0, 20.9, 21.0)),
    )


def random_sample(chance: random.Random, overhead_s: float) -> Sample:
    duration_s = chance.choice(DURATIONS)
    return Sample(duration_s, duration_s + overhead_s, chance.choice(LOSSES))


class Peer:
    """The classification of MLRsearch 1.2.1, driven by samples at a few loads."""

    def __init__(self, criterion: Criterion) -> None:
        self.rounding = LoadRounding(min_load=1e4, max_load=1e7, float_goals=[0.005])
        self.target = TargetSpec(
            loss_ratio=criterion.loss_ratio,
            exceed_ratio=criterion.exceed_ratio,
            discrete_width=DiscreteWidth(rounding=self.rounding, float_width=0.005).rounded_down(),
            trial_duration=criterion.duration_s,
            duration_sum=criterion.duration_sum_s,
            expansion_coefficient=2,
            fail_fast=False,
            preceding=None,
        )
        self.database = MeasurementDatabase((self.target,))

    def add(self, place: int, sample: Sample) -> None:
        load = DiscreteLoad(rounding=self.rounding, int_load=100 + place)
        million = 1_000_000_000
        result = MeasurementResult(
            intended_duration=sample.duration_s,
            intended_load=float(load),
            offered_count=million,
            loss_count=round(sample.loss_ratio * million),
            duration_with_overheads=sample.effective_duration_s,
        )
        self.database.add(DiscreteResult.with_load(result, load))

    def load_class(self, place: int) -> LoadClass:
        load = DiscreteLoad(rounding=self.rounding, int_load=100 + place)
        at_best, at_worst = self.database[load].estimates(self.target)
        if at_best != at_worst:
            return UNDECIDED
        return LOWER if at_best else UPPER

    def bounds(self) -> tuple[int | None, int | None]:
        found = self.database.get_relevant_bounds(self.target)
        return (
            None if found.clo is None else int(found.clo) - 100,
            None if found.chi is None else int(found.chi) - 100,
        )

    def conditional_loss_ratio(self) -> float | None:
        found = PeerResult.from_bounds(self.database.get_relevant_bounds(self.target))
        if found.relevant_lower_bound is None:
            return None
        ratio: float = found.relevant_lower_bound.target_to_stat[self.target].pessimistic_loss_ratio
        return ratio


@pytest.mark.parametrize("first_seed", range(0, 20_000, 5_000))
def test_twenty_thousand_random_trial_sets_are_classified_as_the_published_library_does(
    first_seed: int,
) -> None:
    seen = dict.fromkeys(LoadClass, 0)
    throughputs = 0
    for seed in range(first_seed, first_seed + 5_000):
        chance = random.Random(seed)
        criterion, overhead_s = random_criterion(chance), chance.choice((0.0, 0.43, 0.5))
        places = range(chance.randint(1, 4))
        peer, ours = Peer(criterion), [Tally(criterion) for _ in places]
        for place in places:
            low_share = chance.random()
            for _ in range(chance.randint(1, 12)):
                sample = random_sample(chance, overhead_s)
                if chance.random() < low_share:
                    sample = sample._replace(loss_ratio=0.0)
                peer.add(place, sample)
                ours[place].add(sample)
        classes = [each.load_class for each in ours]
        assert classes == [peer.load_class(place) for place in places], f"seed {seed}"
        bounds = relevant_bounds(classes)
        assert bounds == peer.bounds(), f"seed {seed}"
        if bounds.lower is not None:
            assert ours[bounds.lower].conditional_loss_ratio == peer.conditional_loss_ratio(), f"seed {seed}"
            throughputs += 1
        for load_class in classes:
            seen[load_class] += 1
    assert min(seen.values()) > 1_000, "the random sets must reach all three classes"
    assert throughputs > 1_000


# ---- laws

samples = st.builds(
    lambda duration_s, loss_ratio: Sample(duration_s, duration_s, loss_ratio),
    st.sampled_from(DURATIONS),
    st.sampled_from(LOSSES),
)
criteria = st.integers(0, 10_000).map(
    lambda seed: random_criterion(random.Random(seed))._replace(
        exceed_ratio=random.Random(seed).choice((0.0, 0.25, 0.5, 0.75))
    )
)
"""Shares that are exact in binary: of others, what is just allowed is rounded, as by the library."""


@given(criteria, st.lists(samples, max_size=20), st.randoms())
def test_the_order_of_trials_does_not_matter(
    criterion: Criterion, some: list[Sample], chance: random.Random
) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert tally(criterion, some).load_class == tally(criterion, shuffled).load_class


@given(st.lists(samples, min_size=1, max_size=20))
def test_without_exceed_ratio_one_lossy_trial_however_short_makes_an_upper_bound(some: list[Sample]) -> None:
    strict = Criterion(0.0, 0.0, 60.0, 60.0)
    lossy = any(sample.loss_ratio > 0.0 for sample in some)
    assert (tally(strict, some).load_class is UPPER) == lossy


@given(criteria, st.lists(samples, max_size=20))
def test_a_lower_bound_forwards_at_least_what_its_goal_asks(criterion: Criterion, some: list[Sample]) -> None:
    counted = tally(criterion, some)
    if counted.load_class is LOWER:
        assert counted.conditional_loss_ratio <= criterion.loss_ratio


@given(criteria, st.lists(samples, max_size=20))
def test_one_more_full_trial_without_loss_never_makes_a_load_worse(
    criterion: Criterion, some: list[Sample]
) -> None:
    order = [UPPER, UNDECIDED, LOWER]
    before = tally(criterion, some).load_class
    after = tally(criterion, [*some, Sample(60.0, 60.0, 0.0)]).load_class
    assert order.index(after) >= order.index(before)


@given(criteria, st.lists(samples, max_size=20))
def test_a_load_is_decided_once_its_duration_sum_is_measured(
    criterion: Criterion, some: list[Sample]
) -> None:
    counted = tally(criterion, some)
    if counted.full_low_s + counted.high_s >= counted.criterion.duration_sum_s:
        assert counted.load_class is not UNDECIDED


def test_eight_trials_of_1_s_with_their_waits_decide_a_load_of_csit() -> None:
    criterion = Criterion.of(preset("csit-ndr"))
    low = [Sample(1.0, 1.43, 0.0)] * 8
    assert tally(criterion, low[:7]).load_class is UNDECIDED
    assert tally(criterion, low).load_class is LOWER
    assert tally(criterion, [Sample(1.0, 1.43, 0.1)] * 8).load_class is UPPER


@given(st.lists(st.sampled_from(list(LoadClass)), max_size=12))
def test_the_relevant_lower_bound_lies_below_every_upper_bound(classes: list[LoadClass]) -> None:
    bounds = relevant_bounds(classes)
    uppers = [place for place, each in enumerate(classes) if each is UPPER]
    assert bounds.upper == (uppers[0] if uppers else None)
    if bounds.lower is not None:
        assert classes[bounds.lower] is LOWER
        assert all(bounds.lower < upper for upper in uppers)
        assert LOWER not in classes[bounds.lower + 1 : bounds.upper]


def test_under_loss_inversion_the_upper_bound_is_believed() -> None:
    assert relevant_bounds([LOWER, UPPER, LOWER, UPPER]) == (0, 1)
    assert relevant_bounds([UPPER, LOWER]) == (None, 0)
    assert relevant_bounds([]) == (None, None)


# ---- presets


def test_the_presets_are_those_of_the_worked_example_and_of_csit() -> None:
    assert Criterion.of(preset("rfc2544")) == criterion_of_vectors("RFC2544")
    assert Criterion.of(preset("tst009")) == criterion_of_vectors("TST009")
    assert Criterion.of(preset("csit-pdr")) == (0.005, 0.5, 1.0, 21.0)
    assert preset("csit-ndr", width=0.01).width == 0.01


def test_an_unknown_preset_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="rfc2544, tst009, csit-ndr, csit-pdr"):
        preset("rfc2545")


def test_the_classes_of_growing_trial_sets_change_only_through_undecided_or_by_more_than_the_sum() -> None:
    """A decided load may flip, but not before the trials outweigh its duration sum."""
    criterion = Criterion(0.0, 0.5, 1.0, 21.0)
    counted, classes = Tally(criterion), []
    for loss_ratio in [0.0] * 11 + [1.0] * 12:
        counted.add(Sample(1.0, 1.0, loss_ratio))
        classes.append(counted.load_class)
    assert classes[10] is LOWER
    assert classes[-1] is UPPER
    assert sum(a is not b for a, b in pairwise(classes)) == 2
