"""Quantiles, held against SciPy and against each other."""

import math

import pytest
from hypothesis import given, strategies as st
from scipy import special, stats

from weirlab.stats.distributions import beta_quantile, f_quantile, t_quantile, t_tails

PROBABILITIES = [1e-12, 1e-6, 0.001, 0.025, 0.3, 0.4999, 0.5, 0.6, 0.9, 0.975, 0.9995, 1 - 1e-9]
SIZES = [1, 2, 3, 4, 7, 10, 29, 100, 1000, 4000, 9999]


@pytest.mark.parametrize("degrees", [*SIZES, 10_000, 10**6, 10**9])
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_of_t_are_those_of_scipy(degrees, probability):
    assert t_quantile(probability, degrees) == pytest.approx(
        special.stdtrit(degrees, probability),
        rel=1e-10,
        abs=1e-12,  # near 0, SciPy itself has fewer digits
    )


@pytest.mark.parametrize("degrees", SIZES)
@pytest.mark.parametrize("below", SIZES)
def test_quantiles_of_f_are_those_of_scipy(degrees, below):
    for probability in PROBABILITIES:
        theirs = special.fdtri(degrees, below, probability)
        assert f_quantile(probability, degrees, below) == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize("a", [0.5, *SIZES])
@pytest.mark.parametrize("b", [0.5, *SIZES])
def test_quantiles_of_shares_are_those_of_scipy(a, b):
    for probability in PROBABILITIES:
        theirs = special.betaincinv(a, b, probability)
        assert beta_quantile(probability, a, b) == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize("degrees", SIZES)
@pytest.mark.parametrize("t", [0, 0.001, 0.1, 1, 3, 40])
def test_tails_of_t_are_those_of_scipy(t, degrees):
    assert t_tails(t, degrees) == pytest.approx(2 * stats.t.sf(t, degrees), rel=1e-10, abs=1e-300)


@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 20_000))
def test_a_quantile_of_t_leaves_its_probability_beyond_it(probability, degrees):
    tails = t_tails(t_quantile(probability, degrees), degrees)
    assert tails == pytest.approx(2 * min(probability, 1 - probability), rel=1e-8)


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 500), st.integers(1, 500))
def test_a_ratio_and_its_inverse_have_quantiles_that_are_inverse(probability, above, below):
    other = f_quantile(1 - probability, below, above)
    assert math.log(f_quantile(probability, above, below)) == pytest.approx(-math.log(other), abs=1e-8)


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 3), (1.0, 3), (0.5, 0), (math.nan, 3)])
def test_there_is_no_quantile_outside(probability, degrees):
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, degrees)
    with pytest.raises(ValueError, match="no quantile"):
        f_quantile(0.0, 2, 2)
