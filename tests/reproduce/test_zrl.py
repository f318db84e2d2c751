"""The ZRL congestion benchmark: single cells against the printed numbers, and the whole space in small."""

import math

import polars as pl
import pytest

from weirlab.measures import measured
from weirlab.report.reproduce_zrl import spread_table, theory_lines
from weirlab.reproduce.frame import Effort
from weirlab.reproduce.zrl.claims import claims, exact_maximum, plateau_share
from weirlab.reproduce.zrl.planes import GD, PLANES, SAMPLE, SINGLE, Work, sample_every
from weirlab.reproduce.zrl.rows import PUBLISHED, TOLERANCE, in_box, rows
from weirlab.runs import simulate
from weirlab.scenario import load
from weirlab.study import planned, run_study


def values(scenario, seed: int = 1) -> dict[str, float]:
    found = measured(simulate(scenario, [seed], threads=1), scenario)
    return dict(found.select("measure", "value").iter_rows())


@pytest.mark.parametrize(
    ("name", "maximum"), [("zrl-og-8", "og_n8"), ("zrl-og", "og_n32"), ("zrl-ig", "ig_n32")]
)
def test_the_claimed_range_reaches_the_printed_maximum_without_a_loss(name, maximum):
    found = values(load(name).assign({SAMPLE: sample_every(0.03)}))
    assert found["throughput"] == pytest.approx(PUBLISHED["throughput_max"][maximum], abs=TOLERANCE)
    assert found["drops"] == 0


def test_a_host_that_empties_its_egress_buffer_slowly_holds_the_link_and_costs_no_more_than_a_slow_output():
    scenario = load("zrl-egress").assign({SAMPLE: sample_every(0.03)})
    found = values(scenario)
    assert found["throughput"] == pytest.approx(PUBLISHED["throughput_max"]["og_n32"], abs=TOLERANCE)
    # The link carries 20 % of the line rate: it runs at the full rate for a fifth of the hotspot, and is held
    # for the rest, but for the slots in which nothing waits for it.
    assert found["hot-port"] == pytest.approx(0.2, abs=TOLERANCE)
    hotspot_ps = 60_000 * 51_200
    assert 0.6 * hotspot_ps < found["held"] <= 0.81 * hotspot_ps
    assert found["drops"] == 0


def test_without_control_a_slow_host_holds_everybody_to_its_rate():
    found = values(load("zrl-egress").assign({"control": None}))
    assert found["hot-port"] == pytest.approx(0.2, abs=TOLERANCE)
    assert found["throughput"] < 0.5
    assert found["drops"] == 0


def test_without_control_the_hot_output_holds_everybody_to_its_rate():
    found = values(load("zrl-none").assign(SINGLE["og-8-none"][1]))
    assert found["throughput"] == pytest.approx(0.2, abs=TOLERANCE)
    assert found["hot-port"] == pytest.approx(0.2, abs=1e-3)
    assert found["drops"] == 0


def test_a_low_gain_does_not_escape_from_pause_and_a_high_one_starves_the_hot_port():
    base = load("zrl-og-8")
    slow = values(base.assign({GD: 0.0005, SAMPLE: sample_every(0.01)}))
    fierce = values(base.assign({GD: 0.05, SAMPLE: sample_every(0.01)}))
    assert slow["throughput"] < 0.5
    assert slow["hot-port"] == pytest.approx(0.2, abs=1e-3)
    assert fierce["throughput"] > 0.7
    assert fierce["hot-port"] < 0.15


def test_theory_draws_the_escape_between_the_cells_that_do_and_do_not():
    """N = 32 at Ps = 0.03: Gd = .001 reaches .41 in simulation, .002 reaches .83."""
    plane = next(plane for plane in PLANES if plane.name == "og-32")
    (escape,) = (line.pieces[0] for line in theory_lines(plane) if line.label.startswith("escape"))
    at = min(escape, key=lambda point: abs(point[0] - 0.03))
    assert 0.001 < at[1] < 0.002


def made(plane: str, throughput: float, hot: float) -> pl.DataFrame:
    """Every cell of a plane alike."""
    grid = [(gd, ps) for gd in (0.0005, 0.002, 0.005, 0.05) for ps in (0.01, 0.02, 0.05, 0.1)]
    return pl.DataFrame(
        [
            {
                "plane": plane,
                "gd": gd,
                "ps": ps,
                "seed": 1,
                "throughput": throughput,
                "hot-port": hot,
                "drops": 0.0,
            }
            for gd, ps in grid
        ]
    )


def test_cells_that_differ_between_seeds_are_listed_with_their_range():
    values = {(0.0005, 0.1): (0.761, 0.830, 0.815), (0.002, 0.02): (0.829, 0.830, 0.831)}
    cells = pl.DataFrame(
        [
            {"plane": "og-32", "gd": gd, "ps": ps, "seed": seed, "throughput": value}
            for (gd, ps), found in values.items()
            for seed, value in enumerate(found, start=1)
        ]
    )
    table = spread_table(cells)
    assert table.rows == [["OG, N = 32", "0.0005", "0.1", "0.802", "0.761", "0.830", "3"]]
    assert spread_table(cells.filter(seed=1)) is None, "a quick run has one seed"


def test_the_box_is_the_claimed_range_with_its_edges():
    inside = in_box(made("og-32", 0.83, 0.2))
    assert set(inside.select("gd", "ps").iter_rows()) == {
        (g, p) for g in (0.002, 0.005) for p in (0.02, 0.05)
    }


def test_a_plateau_asks_for_a_fed_hot_port():
    best = exact_maximum("og-32")
    assert plateau_share(made("og-32", best, 0.2), "og-32") == 1
    assert plateau_share(made("og-32", best, 0.1), "og-32") == 0
    assert plateau_share(made("og-32", best - 0.02, 0.2), "og-32") == 0


def test_rows_and_claims_follow_from_the_cells():
    cells = pl.concat([made("og-8", exact_maximum("og-8"), 0.15), made("og-32", exact_maximum("og-32"), 0.2)])
    alike = {"seed": 1, "throughput": 0.2, "hot-port": 0.2, "drops": 0.0, "bcn-": 6}
    single = pl.DataFrame([{"case": case, **alike} for case in SINGLE])
    verdicts = {row.name: row.verdict for row in rows(cells, single)}
    assert verdicts["OG, N = 8: least in the claimed range"] == "holds"
    assert verdicts["IG, N = 32, without control, own port counted"] == "misfit"
    found = {claim.statement[:30]: claim for claim in claims(cells, single)}
    assert found["Operation is lossless: no fram"].verdict == "holds"
    assert found["Aggregate throughput shows the"].verdict == "known misfit"
    assert found["The input-generated hotspot is"].verdict == "known misfit"
    assert found["BCN with the baseline settings"].verdict == "holds"


def test_progress_counts_every_piece_of_work():
    told = []
    work = Work(Effort(quick=True, progress=lambda done, total: told.append((done, total))), seeds=1)
    work.tell()
    assert told == [(1, 3 * 42 + len(SINGLE) + 2)]


def test_the_whole_space_is_144_traffic_scenarios_and_20_000_runs_of_those_that_can_be():
    """Of the smaller topology, 8 of 72 cannot be; of the larger one, 4 (severity 12 at a degree of 8 %)."""
    study = load("zrl-full").study
    assert math.prod(map(len, study.factors.values())) == 144
    assert study.design.points * (144 - 12) >= 20_000
    small = load("zrl-full", {"study.design.points": 1, "study.factors.topology": {"32-in-2": {}}})
    points, impossible = planned(small)
    assert (len(points), len(impossible)) == (64, 8)
    assert all("would have to send" in each.reason for each in impossible)
    assert {(each.levels["type"], each.levels["hotspots.hot.degree"]) for each in impossible} == {
        ("IG", "8 %")
    }


def test_a_reduced_design_of_the_whole_space_runs_and_loses_nothing():
    fewer = {
        "study.design.points": 2,
        'study.factors."hotspots.hot.severity"': ["4.25"],
        'study.factors."hotspots.hot.degree"': ["8 %", "40 %"],
        'study.factors."traffic.background.source.mean_burst"': ["24"],
        "study.factors.topology": {"32-in-2": {}},
    }
    study = run_study(load("zrl-full", fewer), threads=1)
    assert study.complete
    assert study.points.height == 6
    assert len(study.impossible) == 1
    drops = study.measures.filter(pl.col("measure") == "drops").get_column("value")
    assert drops.to_list() == [0.0] * 6
