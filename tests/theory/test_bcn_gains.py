"""The gains that the rule of the text gives for a set point, against those that it prints."""

import pytest

from weirlab.theory.bcn import bcn_gains


def test_the_gains_of_the_calibration_are_those_printed_but_for_rounding():
    """Source: BCN Calibration 2006, parameters: gi 0.53 and gd 2.6e-4 per page of 64 B, for 375 pages."""
    gi, gd = bcn_gains(375, 2)
    assert (gi, gd) == (pytest.approx(0.53, abs=0.005), pytest.approx(2.6e-4, abs=0.1e-4))
    pages = 1500 / 64
    assert bcn_gains(16, 2) == (pytest.approx(gi * pages), pytest.approx(gd * pages))


def test_the_largest_feedback_adds_a_tenth_of_the_line_or_takes_half_of_a_rate():
    for q_eq, w in [(16, 2), (256, 1), (26, 0)]:
        gi, gd = bcn_gains(q_eq, w, line_over_ru=1e3)
        assert gi * (1 + 2 * w) * q_eq == pytest.approx(1e3 / 10)
        assert gd * (1 + 2 * w) * q_eq == pytest.approx(0.5)


def test_without_a_set_point_there_are_no_gains():
    with pytest.raises(ValueError, match="set point"):
        bcn_gains(0, 2)
