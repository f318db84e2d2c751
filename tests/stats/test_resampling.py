"""How far statistics of two sets of runs lie apart, held against sets that were drawn."""

import numpy as np
import pytest
from scipy import stats

from weirlab.stats import STATISTICS, mean_margin, resampling, statistic_margin

SHAPES = {
    "normal": lambda rng, count: rng.normal(size=count),
    "skewed": lambda rng, count: rng.gamma(3.0, 0.05, count),
    "bounded above": lambda rng, count: 1.0 - rng.exponential(0.01, count),
}


def test_the_margin_of_means_is_the_interval_of_welch():
    margin = mean_margin(2.0, 12, 5.0, 7, confidence=0.95)
    told = stats.ttest_ind_from_stats(0.0, 2.0, 12, margin.above, 5.0, 7, equal_var=False)
    # The whole number of degrees below makes it a little wider.
    assert 0.04 < told.pvalue <= 0.05
    assert margin.below == margin.above


def test_what_does_not_vary_has_no_margin():
    assert mean_margin(0.0, 10, 0.0, 10).above == 0
    for statistic in STATISTICS.values():
        margin = statistic_margin([3.0] * 20, 20, statistic)
        assert (margin.below, margin.above, margin.error) == (0, 0, 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["min", "max", "std"])
def test_other_runs_lie_within_the_margin_nearly_always(shape, name, monkeypatch):
    """Of 40 pairs of sets 0.4 are expected outside of 99 %; five or more have a probability of 1e-4."""
    monkeypatch.setattr("weirlab.stats.resampling._DRAWS", 400)
    resampling._drawn.cache_clear()
    rng, statistic, outside = np.random.default_rng(11), STATISTICS[name], 0
    for _ in range(40):
        ours, other = (SHAPES[shape](rng, 100) for _ in range(2))
        margin = statistic_margin(ours, 100, statistic)
        apart = float((statistic(ours[None]) - statistic(other[None]))[0])
        outside += not -margin.below <= apart <= margin.above
    assert outside < 5


def test_a_margin_tells_sets_apart_that_differ():
    rng = np.random.default_rng(3)
    margin = statistic_margin(rng.normal(size=300), 300, STATISTICS["std"])
    assert 0.05 < margin.above < 0.4
    assert margin.error == pytest.approx(1 / np.sqrt(2 * 299), rel=0.3)


def test_the_same_values_have_the_same_margin():
    values = np.random.default_rng(5).normal(size=50)
    first, second = (statistic_margin(values, 60, STATISTICS["max"]) for _ in range(2))
    assert first == second


def test_a_bound_is_respected():
    values = np.random.default_rng(7).exponential(size=60)
    bounded = statistic_margin(values, 60, STATISTICS["min"], low=0.0)
    # Ours cannot lie further above another least value than that is above 0.
    assert bounded.above <= values.min()
