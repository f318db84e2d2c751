"""Crossings, held against closed forms."""

import math

import pytest

from weirlab.theory.roots import crossing


@pytest.mark.parametrize("sign", [1, -1])
def test_a_crossing_is_found_to_the_last_digit_but_one(sign):
    assert crossing(lambda x: sign * (x * x - 2), 0, 5) == pytest.approx(math.sqrt(2), rel=5e-16)


def test_a_crossing_near_zero_keeps_its_digits():
    assert crossing(lambda x: x - 1e-7, 0, 1) == pytest.approx(1e-7, rel=1e-14)


def test_places_on_one_side_are_refused():
    with pytest.raises(ValueError, match="no change of sign between 2 and 5"):
        crossing(lambda x: x * x - 2, 2, 5)
