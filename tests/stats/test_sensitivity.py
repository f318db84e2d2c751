"""Rank correlations and PAWN indices: peers, laws, and results that are known."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from weirlab.stats.sensitivity import pawn, pawn_of_chance, rank_correlation, within_strata


def points(count=400, seed=1):
    return np.random.default_rng(seed).random((count, 3))


def test_ranks_run_from_minus_one_to_one_within_each_stratum_and_ties_share_theirs():
    assert within_strata([5, 7, 6, 1, 1, 3], [0, 0, 0, 1, 1, 1]).tolist() == [-1, 1, 0, -0.5, -0.5, 1]
    assert within_strata([4, 4, 4]).tolist() == [0, 0, 0]


def test_the_rank_correlation_is_that_of_scipy_and_its_interval_that_of_a_peer():
    # The example of the R package statpsych, whose limits are printed on its page for ci.spear.
    y = [1, 4, 9, 12, 35, 18, 10, 22, 24, 1, 6, 8, 13, 16, 19]
    y[0] = 21
    x = [67, 28, 30, 28, 52, 40, 25, 37, 44, 10, 14, 20, 28, 40, 51]
    found = rank_correlation(x, y)
    assert found.rho == pytest.approx(spearmanr(x, y).statistic)
    assert (found.rho, found.low, found.high) == pytest.approx((0.8699639, 0.5840951, 0.9638297), abs=1e-7)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    chance = np.random.default_rng(3)
    truth = 6 / np.pi * np.arcsin(0.5 / 2)  # of normal pairs with a correlation of 0.5
    held = 0
    for _ in range(1000):
        u, v = chance.standard_normal((2, 60))
        found = rank_correlation(u, 0.5 * u + np.sqrt(0.75) * v)
        held += found.low <= truth <= found.high
    assert 0.93 <= held / 1000 <= 0.97


def test_what_the_strata_do_is_no_effect_of_a_parameter():
    x = points()
    strata = np.arange(400) // 40
    shifted = 1000.0 * strata + x[:, 0]
    assert rank_correlation(x[:, 0], shifted, strata).rho > 0.99
    assert abs(rank_correlation(x[:, 0], shifted).rho) < 0.3
    assert pawn(x[:, 1], shifted, strata) < pawn_of_chance(shifted, strata) < pawn(x[:, 0], shifted, strata)


def test_pawn_is_that_of_salib():
    analyze = pytest.importorskip("SALib.analyze.pawn", reason="needs the extra 'sensitivity'").analyze
    x = points(2000)
    y = np.sin(6 * x[:, 0]) + 3 * x[:, 1] ** 2
    problem = {"num_vars": 3, "names": ["a", "b", "c"], "bounds": [[0, 1]] * 3}
    theirs = analyze(problem, x, y)["median"]
    # SALib leaves the greatest value out of the last slice.
    assert [pawn(x[:, i], y) for i in range(3)] == pytest.approx(theirs, abs=0.005)


def test_pawn_sees_what_neither_grows_nor_falls():
    x = points(1000)
    y = (x[:, 0] - 0.5) ** 2
    assert abs(rank_correlation(x[:, 0], y).rho) < 0.1
    assert pawn(x[:, 0], y) > 3 * pawn_of_chance(y)
    assert pawn(x[:, 1], y) < pawn_of_chance(y)


def test_a_parameter_without_effect_exceeds_the_level_of_chance_in_one_case_of_20():
    chance = np.random.default_rng(8)
    y = chance.random(200)
    level = pawn_of_chance(y, draws=1000)
    above = sum(pawn(chance.random(200), y) > level for _ in range(1000))
    assert 25 <= above <= 80


def test_a_constant_result_has_no_correlation_and_no_index():
    x = points()[:, 0]
    assert np.isnan(rank_correlation(x, np.ones(400)).rho)
    assert pawn(x, np.ones(400)) == 0.0


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: rank_correlation([1, 2, 3], [1, 2, 3]), "needs 4 pairs"),
        (lambda: rank_correlation([1, 2, 3, 4], [1, 2, 3]), r"got 4 and 3"),
        (lambda: pawn([1, 2, 3], [1, 2, 3]), "10 slices need at least 20 points"),
        (lambda: within_strata([1.0, np.nan]), "finite"),
    ],
)
def test_too_little_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
