"""Where the optimum of a study of hotspots lies, on results that are known."""

from dataclasses import replace

import polars as pl
import pytest

from weirlab.analysis.optimum import optimum_of
from weirlab.report.optimum import few_points, ranking_table, region_table
from weirlab.report.sensitivity import sensitivity_of, sensitivity_sections
from weirlab.results import Provenance
from weirlab.runs import resolve
from weirlab.scenario import load
from weirlab.scenario.plan.combinations import possible
from weirlab.studies import Study

GD = "control.bcn.reaction_point.gd"
SAMPLE = "control.bcn.congestion_point.sample_every"
FEWER = {
    "study.design.points": 60,
    'study.factors."hotspots.hot.severity"': ["1.5", "4.25"],
    'study.factors."hotspots.hot.degree"': ["8 %", "95 %"],
    'study.factors."traffic.background.source.mean_burst"': ["1"],
    "study.factors.topology": {"32-in-2": {}},
}
SERVICE = 2 * 0.85 / 31 / 1.5
"""Of the hot output where two others of 32 hosts send to it, and it has a severity of 1.5."""
MAXIMUM = {
    "OG 1.5 8 %": (32 * 0.85 - (1.5 - 1) * SERVICE) / 32,
    "IG 1.5 8 %": (29 * 0.85 - 28 * 0.85 / 31 + 1) / 32,
}
"""Aggregate throughput: all but what exceeds the service; of 29 hosts what does not go to the hot output, and
what that serves."""


@pytest.fixture(scope="module")
def scenario():
    return load("zrl-full", FEWER)


@pytest.fixture(scope="module")
def made(scenario):
    """A study in which only points with a small gain are fed, and only those that sample often carry all."""
    points, impossible = possible(scenario, resolve)
    ranges = scenario.study.design.parameters
    rows, measures = [], []
    for point in points:
        gain, rare = (ranges[name].part(point.levels[name]) for name in (GD, SAMPLE))
        service = {"OG 1.5 8 %": SERVICE, "OG 1.5 95 %": 0.530108}.get(
            " ".join(list(point.levels.values())[1:4]), 1.0 if point.levels["type"] == "IG" else 0.01
        )
        rows.append({"point": point.number, **point.levels})
        values = {
            "throughput": 0.9 if rare < 0.4 else 0.05 - 0.01 * rare,
            "hot-port": service if gain < 0.5 else 0.1 * service,
            "hot-queue": 1000.0,
            "drops": 0.0,
        }
        measures += [
            {"point": point.number, "measure": name, "replicate": 0, "value": value, "unit": "1"}
            for name, value in values.items()
        ]
    overrides = {"point": pl.UInt32}
    runs = [{"point": row["point"], "replicate": 0, "seed": 1, "sent_frames": 1} for row in rows]
    return Study(
        scenario=scenario,
        seeds=(1,),
        planned=len(points),
        points=pl.DataFrame(rows, schema_overrides=overrides),
        runs=pl.DataFrame(runs, schema_overrides=overrides),
        measures=pl.DataFrame(measures, schema_overrides=overrides),
        impossible=tuple(impossible),
        provenance=Provenance.now(),
    )


@pytest.fixture(scope="module")
def optimum(scenario, made):
    return optimum_of(scenario, made.points, made.measures)


def test_the_measures_of_the_network_and_of_the_hot_output_are_found(optimum):
    assert (optimum.throughput, optimum.hot) == ("throughput", "hot-port")
    assert optimum.traffic == ("type", "hotspots.hot.severity", "hotspots.hot.degree")


def test_the_greatest_throughput_is_that_of_theory(optimum):
    found = {
        f"{row['type']} {row['hotspots.hot.severity']} {row['hotspots.hot.degree']}": row["throughput_max"]
        for row in optimum.combinations.iter_rows(named=True)
    }
    assert len(found) == 7  # three hosts of 32 cannot send 4.25 line rates
    for name, value in MAXIMUM.items():
        assert found[name] == pytest.approx(value, abs=1e-6)


def test_only_fed_points_that_carry_all_are_optimal(optimum):
    """Half of the points are fed, and 40 % of them carry all: a fifth."""
    mild = optimum.combinations.filter(pl.col("hotspots.hot.severity") == "1.5")
    assert mild.get_column("fed").to_list() == pytest.approx([0.5] * 4, abs=0.02)
    assert mild.get_column("optimal").to_list() == pytest.approx([0.2] * 4, abs=0.08)
    points = optimum.points.filter(pl.col("optimal") == 1.0)
    assert points.get_column(GD).max() < 0.5
    assert points.get_column(SAMPLE).max() < 0.4


def test_the_best_tenth_holds_all_that_are_as_good_and_tells_where_they_lie(optimum):
    region = optimum.regions.filter(
        pl.col("type") == "OG",
        pl.col("hotspots.hot.severity") == "1.5",
        pl.col("hotspots.hot.degree") == "8 %",
    )
    gain, rare = (region.filter(parameter=name).row(0, named=True) for name in (GD, SAMPLE))
    assert 0 <= gain["low"] < gain["middle"] < gain["high"] < 0.5
    assert rare["high"] < 0.4
    others = optimum.regions.filter(parameter="control.bcn.reaction_point.gi")
    assert 0.35 < others.get_column("middle").mean() < 0.65
    best = optimum.points.filter(pl.col("best") == 1.0, pl.col("stratum") == 0)
    assert best.height == optimum.points.filter(pl.col("optimal") == 1.0, pl.col("stratum") == 0).height > 6


def test_points_without_a_fed_output_have_no_region(scenario, made):
    starved = made.measures.with_columns(
        value=pl.when(pl.col("measure") == "hot-port").then(0.0).otherwise(pl.col("value"))
    )
    nothing = optimum_of(scenario, made.points, starved)
    assert nothing.points.get_column("optimal").sum() == nothing.points.get_column("best").sum() == 0
    assert nothing.regions.get_column("middle").null_count() == nothing.regions.height


def test_the_share_along_a_range_falls_where_points_starve(optimum):
    slices = optimum.slices(GD, "type").filter(group="IG")
    assert slices.get_column("optimal").to_list()[5:] == [0.0] * 5
    assert min(slices.get_column("optimal").to_list()[:5]) > 0.1


def test_levels_are_compared_over_their_combinations(optimum):
    levels = optimum.by_level()
    types = levels.filter(factor="type")
    assert types.get_column("combinations").to_list() == [4, 3]
    assert types.get_column("demand").to_list() == pytest.approx([(13508.9), 900], rel=1e-3)


def test_a_level_without_an_optimal_point_has_an_interval_with_a_width(optimum):
    """Three combinations of 60 points each: Wilson's interval of none in 180."""
    nothing = replace(optimum, combinations=optimum.combinations.with_columns(optimal=pl.lit(0.0)))
    row = nothing.by_level().filter(factor="type", level="IG").row(0, named=True)
    assert (row["optimal"], row["low"]) == (0.0, 0.0)
    assert row["high"] == pytest.approx(0.0209, abs=1e-4)


def test_the_report_has_the_regions_in_units_and_theory_beside_the_simulation(scenario, made, optimum):
    sections, plots = sensitivity_sections(made)
    assert [section.title for section in sections] == ["Sensitivity", "Where the optimum lies"]
    assert {"optimum-og", "optimum-plane-ig", "sensitivity-throughput"} <= {plot.name for plot in plots}
    table = region_table(made, optimum)
    assert [column.unit for column in table.columns if column.name == "ru"] == ["Mbit/s"]
    ranking = ranking_table(scenario, sensitivity_of(made))
    assert [row[0] for row in ranking.rows][:2] == ["sampling probability", "decrease gain"]
    assert ranking.rows[0][4].startswith("1: ")
    assert "(chance)" in ranking.rows[2][4]


def test_a_study_without_a_hot_output_has_no_optimum():
    other = load("zrl-full", FEWER | {"measure.hot-port": None})
    assert optimum_of(other, pl.DataFrame(), pl.DataFrame()) is None


def test_an_optimum_that_rests_on_few_points_says_so(optimum):
    (warning,) = few_points(optimum)
    assert warning.text.startswith(
        "A combination has 60 points: its share of optimal ones is known to ± 12.9 %"
    )
    assert "its best 10% are 6 of them" in warning.text
    enough = replace(optimum, combinations=optimum.combinations.with_columns(points=100))
    assert few_points(enough) == []
