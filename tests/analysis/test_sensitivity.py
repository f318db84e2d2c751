"""Sensitivity of a study to the parameters of its design, on results that are known."""

import math

import numpy as np
import polars as pl
import pytest

from weirlab.analysis.sensitivity import COLUMNS, SAME, design_points, sensitivity
from weirlab.report.sensitivity import without_weights
from weirlab.scenario import loads
from weirlab.scenario.plan.combinations import level_names

BASE = """
weirlab: 1
name: known
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s}}
traffic:
  load: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 40 %, frame_size: 1000 B}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 50 kB}}
run: {duration: 1 ms}
measure: {loss: {kind: loss-ratio, of: load}, delay: {kind: mean-delay, of: load}}
study:
  factors: {buffer: {one: {}, two: {traffic.load.source.frame_size: 500 B}}}
  design:
    DESIGN
    parameters:
      traffic.load.start: {between: 1 us .. 9 us}
      queues.out.limit: {between: 2000 B .. 200000 B, scale: logarithmic}
      traffic.load.source.load: {between: 10 % .. 60 %}
"""
START, LIMIT, LOAD = "traffic.load.start", "queues.out.limit", "traffic.load.source.load"


def made(design, value, skip=()):
    """A study whose measure `loss` is `value(parts, buffer)`, in two replicates around it; `delay` is 1."""
    scenario = loads(BASE.replace("DESIGN", design))
    rows = [{"point": i, **levels} for i, levels in enumerate(level_names(scenario)) if i not in skip]
    points = pl.DataFrame(rows, schema_overrides={"point": pl.UInt32})
    ranges = scenario.study.design.parameters
    measures = []
    for row in rows:
        parts = [ranges[name].part(row[name]) for name in (START, LIMIT, LOAD)]
        middle = value(*parts, row["buffer"])
        for replicate, found in enumerate((middle - 0.1, middle + 0.1)):
            measures.append(
                {"point": row["point"], "measure": "loss", "replicate": replicate, "value": found}
            )
            measures.append({"point": row["point"], "measure": "delay", "replicate": replicate, "value": 1.0})
    overrides = {"point": pl.UInt32}
    return scenario, points, pl.DataFrame(measures, schema_overrides=overrides)


def row_of(table, parameter, **where):
    for column, wanted in ({"measure": "loss", "parameter": parameter} | where).items():
        table = table.filter(pl.col(column) == wanted)
    return table.row(0, named=True)


def test_a_level_lies_at_the_part_that_made_it():
    scenario = loads(BASE.replace("DESIGN", "kind: latin-hypercube\n    points: 4"))
    for given in scenario.study.design.parameters.values():
        for part in (0.0, 0.3, 1.0):
            assert given.part(given.level(part)) == pytest.approx(part, abs=1e-3)


def test_elementary_effects_of_a_sum_are_its_slopes():
    pytest.importorskip("SALib", reason="needs the extra 'sensitivity'")
    study = made("kind: morris\n    trajectories: 6", lambda a, b, c, buffer: 2 * a - 5 * b)
    table = sensitivity(*study)
    assert table.columns == ["buffer", "measure", "parameter", "points", *COLUMNS["morris"], "reason"]
    assert table.filter(measure="loss", buffer="two").get_column("parameter").to_list() == [
        LIMIT,
        START,
        LOAD,
    ]
    limit = row_of(table, LIMIT, buffer="one")
    assert (limit["mu_star"], limit["mu"], limit["points"]) == (
        pytest.approx(5, rel=1e-2),
        pytest.approx(-5, rel=1e-2),
        24,
    )
    assert limit["sigma"] == pytest.approx(0, abs=0.05)
    assert row_of(table, LOAD, buffer="one")["mu_star"] == pytest.approx(0, abs=1e-6)


def test_sobol_indices_are_those_of_the_ishigami_function():
    """Known in closed form: first-order parts of the variance and total ones, with a = 7 and b = 0.1."""
    pytest.importorskip("SALib", reason="needs the extra 'sensitivity'")

    def ishigami(*given):
        x, y, z = (math.pi * (2 * part - 1) for part in given[:3])
        return math.sin(x) + 7 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x)

    table = sensitivity(*made("kind: sobol\n    base: 1024", ishigami))
    first = [row_of(table, name, buffer="one")["s1"] for name in (START, LIMIT, LOAD)]
    total = [row_of(table, name, buffer="one")["st"] for name in (START, LIMIT, LOAD)]
    assert first == pytest.approx([0.3139, 0.4424, 0.0], abs=0.06)
    assert total == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.06)
    for name, truth in zip((START, LIMIT, LOAD), (0.5576, 0.4424, 0.2437), strict=True):
        row = row_of(table, name, buffer="two")
        assert 0 < row["st_half"] < 0.15
        assert abs(row["st"] - truth) < 2 * row["st_half"]


def test_points_that_fill_the_space_rank_the_parameters_whatever_the_factors_add():
    def value(a, b, c, buffer):
        return (1000 if buffer == "two" else 0) + 3 * c - b**3

    study = made("kind: latin-hypercube\n    points: 80", value, skip=(5, 90))
    together = sensitivity(*study, by=[])
    loss = together.filter(measure="loss")
    assert loss.get_column("parameter").to_list() == [LOAD, LIMIT, START]
    assert loss.get_column("points").to_list() == [158] * 3
    load, limit, start = loss.iter_rows(named=True)
    assert load["rho_low"] > 0.8
    assert limit["rho_high"] < 0 < limit["pawn"] - limit["pawn_chance"]
    assert start["rho_low"] < 0 < start["rho_high"]
    apart = sensitivity(*study)
    assert apart.get_column("buffer").unique().sort().to_list() == ["one", "two"]


def test_a_measure_that_never_changes_has_no_numbers():
    table = sensitivity(*made("kind: latin-hypercube\n    points: 20", lambda *given: 0.0))
    delay = table.filter(measure="delay")
    assert delay.height == 6
    assert delay.select(COLUMNS["latin-hypercube"]).null_count().row(0) == (6,) * 5
    assert set(delay.get_column("reason")) == {SAME}


def test_a_combination_whose_trajectories_are_not_whole_is_left_out():
    pytest.importorskip("SALib", reason="needs the extra 'sensitivity'")
    table = sensitivity(*made("kind: morris\n    trajectories: 4", lambda a, *rest: a, skip=(3,)))
    assert table.drop_nulls("mu").get_column("buffer").unique().to_list() == ["two"]
    assert set(table.filter(buffer="one").get_column("reason")) == {
        "no combination of the factors has a value at all of its points"
    }


def test_too_few_points_are_told_instead_of_numbers():
    table = sensitivity(*made("kind: latin-hypercube\n    points: 6", lambda a, *rest: a), by=[])
    assert table.select(COLUMNS["latin-hypercube"]).null_count().row(0) == (table.height,) * 5
    assert set(table.get_column("reason")) == {"20 points with a value are needed (got 12)"}


def test_one_point_for_each_combination_tells_nothing_of_the_parameters():
    scenario, points, measures = made("kind: latin-hypercube\n    points: 20", lambda a, *rest: a)
    design = scenario.study.design.model_copy(update={"points": 1})
    one = scenario.model_copy(update={"study": scenario.study.model_copy(update={"design": design})})
    table = sensitivity(one, points, measures, by=[]).filter(measure="loss")
    assert table.select(COLUMNS["latin-hypercube"]).null_count().row(0) == (3,) * 5
    (reason,) = set(table.get_column("reason"))
    assert reason.endswith("each has one point with a value")
    assert without_weights(table) == [f"no weights for loss: {reason}"]


def test_a_measure_that_only_the_factors_change_hangs_on_no_parameter():
    """Its rank correlation would be 0 / 0."""
    value = {"one": 0.5, "two": 0.7}
    table = sensitivity(*made("kind: latin-hypercube\n    points: 20", lambda *at: value[at[3]]), by=[])
    assert set(table.filter(measure="loss").get_column("reason")) == {SAME + " of a combination"}


def test_the_measures_of_a_point_stand_beside_the_parts_of_its_parameters():
    study = made("kind: latin-hypercube\n    points: 20", lambda a, b, c, buffer: a + 10 * b)
    points = design_points(*study)
    assert points.height == 40
    np.testing.assert_allclose(points["loss"], points[START] + 10 * points[LIMIT], atol=1e-9)


def test_a_study_without_a_design_is_refused():
    scenario = loads(BASE[: BASE.index("  design:")])
    with pytest.raises(ValueError, match="known has no design"):
        sensitivity(scenario, pl.DataFrame(), pl.DataFrame())
