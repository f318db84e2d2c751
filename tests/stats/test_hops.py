"""Links from round-trip times, against paths whose links are known."""

from __future__ import annotations

import numpy as np
import pytest

from weirlab.stats.hops import crossing, link_between, queueing_times, rtt_floor
from weirlab.stats.robust import fit_robust_line

SIZES = np.linspace(548, 1500, 24).round()
RATES_BPS = (10e6, 50e6, 20e6)
ADDED_S = (4e-3, 6e-3, 8e-3)


def floors(noise_s: float = 0.0, seed: int = 1):
    """Of each hop of a path, exact but for errors of this deviation."""
    chance = np.random.default_rng(seed)
    found, so_far = [], np.zeros(SIZES.size)
    for rate_bps, added_s in zip(RATES_BPS, ADDED_S, strict=True):
        so_far = so_far + added_s + 8 * SIZES / rate_bps
        found.append(rtt_floor(SIZES, so_far + noise_s * chance.normal(size=SIZES.size)))
    return found


def test_exact_times_give_exact_links():
    known = floors()
    for before, own, rate_bps, added_s in zip([None, *known], known, RATES_BPS, ADDED_S, strict=False):
        link = link_between(before, own)
        assert link.resolved
        assert link.capacity_bps == pytest.approx(rate_bps, rel=1e-9)
        assert link.round_trip_s == pytest.approx(added_s, rel=1e-9)


def test_intervals_of_capacities_hold_the_truth_as_often_as_they_say():
    held = []
    for seed in range(200):
        known = floors(noise_s=3e-6, seed=seed)
        for before, own, rate_bps in zip([None, *known], known, RATES_BPS, strict=False):
            link = link_between(before, own)
            held.append(link.capacity_low_bps <= rate_bps <= (link.capacity_high_bps or np.inf))
    # 95 %, with four standard deviations of the count.
    assert sum(held) >= 0.95 * 600 - 22


def test_a_fast_link_behind_a_slow_one_has_a_lower_bound_only():
    chance = np.random.default_rng(2)
    slow = 4e-3 + 8 * SIZES / 10e6 + 5e-6 * chance.random(SIZES.size)
    fast = slow + 1e-3 + 8 * SIZES / 10e9 + 5e-6 * chance.random(SIZES.size)
    link = link_between(rtt_floor(SIZES, slow), rtt_floor(SIZES, fast))
    assert not link.resolved
    assert link.capacity_bps is link.capacity_high_bps is None
    assert 100e6 < link.capacity_low_bps < 10e9


def test_round_trips_that_become_shorter_tell_no_capacity_at_all():
    link = link_between(rtt_floor(SIZES, 1e-6 * SIZES), rtt_floor(SIZES, 0.5e-6 * SIZES))
    assert link.capacity_bps is link.capacity_low_bps is link.capacity_high_bps is None


def test_the_floor_is_the_least_on_request_and_a_low_quantile_otherwise():
    sizes, rtts = [100] * 41 + [200], [*range(41), 7.0]
    assert list(rtt_floor(sizes, rtts, share=0.0).rtts_s) == [0.0, 7.0]
    assert list(rtt_floor(sizes, rtts).rtts_s) == [2.0, 7.0]


def test_waiting_does_not_change_slopes():
    # A queue that is busy four fifths of the time: 4 % of the probes meet none on both ways.
    chance = np.random.default_rng(3)
    sizes = np.repeat(SIZES, 400)
    waits = chance.exponential(5e-4, (2, sizes.size)) * (chance.random((2, sizes.size)) < 0.8)
    link = link_between(None, rtt_floor(sizes, 2e-3 + 8 * sizes / 10e6 + waits.sum(axis=0)))
    assert link.capacity_low_bps < 10e6 < link.capacity_high_bps
    assert link.capacity_bps == pytest.approx(10e6, rel=0.03)


def test_what_is_beyond_the_line_is_waiting():
    line = fit_robust_line([1, 2, 3, 4], [3, 5, 7, 9])
    assert queueing_times(line, [1, 10], [3.5, 21]) == pytest.approx([0.5, 0.0])


def test_the_loss_of_a_link_is_what_the_hop_before_does_not_explain():
    found = crossing((900, 1000), (720, 1000))
    assert found.loss_ratio == pytest.approx(0.2)
    assert 0.15 < found.low < 0.2 < found.high < 0.25


def test_a_hop_that_answers_more_than_the_one_before_shows_no_loss():
    found = crossing((950, 1000), (960, 1000))
    assert found.loss_ratio == found.low == 0.0
    assert 0.0 < found.high < 0.02


def test_without_loss_there_still_is_an_upper_end():
    found = crossing(None, (300, 300))
    assert found.loss_ratio == found.low == 0.0
    assert 0.005 < found.high < 0.02


def test_nothing_can_be_said_behind_a_hop_that_answers_nothing():
    assert crossing((0, 100), (50, 100)) is None
