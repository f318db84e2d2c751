"""The dual ranking, and stability over two parameters."""

import numpy as np
import pytest

from weirlab.theory.bcn import BcnPoint
from weirlab.theory.plane import Plane, margin_plane
from weirlab.theory.ranking import PARAMETERS, Demand, margin_elasticities, rank_parameters

POINT = BcnPoint(0.2, 1.0, 31, 0.03, 1.0, 1.0, 0.002, 1e-3, 256, 400.0)


def test_an_output_generated_hotspot_demands_more_than_an_input_generated_one():
    """By a factor of 20 from Gi, of 400 from Gd: HSD/mu = 160 against 8."""
    og, ig = Demand(32, 0.2, 0.03), Demand(8, 1.0, 0.03)
    assert og.increase / ig.increase == pytest.approx(20)
    assert og.decrease / ig.decrease == pytest.approx(400)


@pytest.mark.parametrize("quantity", ["flows", "service", "sampling"])
def test_the_listed_elasticities_are_those_of_the_equations(quantity):
    rank = {"HSD": "flows", "mu": "service", "p": "sampling"}
    listed = next(row for row in rank_parameters() if rank[row.name] == quantity)
    values = {"flows": 32.0, "service": 0.2, "sampling": 0.03}
    base = Demand(**values)
    doubled = Demand(**{**values, quantity: 2 * values[quantity]})
    assert doubled.increase / base.increase == pytest.approx(2.0**listed.increase)
    assert doubled.decrease / base.decrease == pytest.approx(2.0**listed.decrease)


def test_the_delay_margin_answers_to_weight_and_not_to_the_set_point():
    elasticities = margin_elasticities(POINT)
    assert set(elasticities) == set(PARAMETERS)
    assert elasticities["q_eq_frames"] == pytest.approx(0, abs=1e-9)
    assert elasticities["gi"] == pytest.approx(elasticities["ru_fps"], abs=1e-6)


def test_a_plane_turns_unstable_where_the_margin_says():
    plane = margin_plane(
        POINT,
        ("delay_s", [0.0, 1.0]),
        ("gi", [0.5, 1.0, 2.0, 4.0, 8.0]),
        lambda point: point.increase.delay_margin_s,
    )
    assert plane.values.shape == (5, 2)
    assert list(plane.values[:, 0]) == sorted(plane.values[:, 0], reverse=True)
    level = (plane.values[1, 0] + plane.values[2, 0]) / 2
    ((left, right),) = plane.contour(level)
    assert {left[0], right[0]} == {0.0, 1.0}
    assert (left[1], right[1]) == pytest.approx((1.5, 1.5))


def test_a_contour_crosses_the_cells_between_its_sides():
    """x + y = 1.5 on the unit squares of a 3 x 3 grid: three pieces, joined, all on that line."""
    plane = Plane(np.arange(3.0), np.arange(3.0), np.add.outer(np.arange(3.0), np.arange(3.0)))
    pieces = plane.contour(1.5)
    assert len(pieces) == 3
    assert all(x + y == pytest.approx(1.5) for piece in pieces for x, y in piece)
    assert plane.contour(9.0) == []


def test_a_contour_leaves_cells_without_a_number_out():
    values = np.add.outer(np.arange(3.0), np.arange(3.0))
    values[0, 0] = np.nan
    assert len(Plane(np.arange(3.0), np.arange(3.0), values).contour(1.5)) == 2


def test_a_plane_refuses_what_is_no_parameter():
    with pytest.raises(ValueError, match="'gain' is not one of"):
        margin_plane(POINT, ("gain", [1]), ("gi", [1]), lambda point: point.phase_margin_deg)
    with pytest.raises(ValueError, match="twice"):
        margin_plane(POINT, ("gi", [1]), ("gi", [1]), lambda point: point.phase_margin_deg)
