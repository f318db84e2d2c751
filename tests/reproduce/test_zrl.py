"""The ZRL congestion benchmark: single cells against the printed numbers, and the whole space in small."""

import math

import polars as pl
import pytest

from weirlab.evaluation import measured
from weirlab.report.reproduce_zrl import spread_table, theory_lines
from weirlab.reproductions.frame import Effort
from weirlab.reproductions.verdicts import Claim
from weirlab.reproductions.zrl.claims import claims
from weirlab.reproductions.zrl.data import exact_maximum, plateau_share
from weirlab.reproductions.zrl.planes import GD, PLANES, SAMPLE, SINGLE, Work, sample_every
from weirlab.reproductions.zrl.rows import PUBLISHED, TOLERANCE, in_box, rows
from weirlab.runs import simulate
from weirlab.scenario import load
from weirlab.studies import planned, run_study


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


def made(plane: str, throughput: float, hot: float, settles: float = 0.1) -> pl.DataFrame:
    """Every cell of a plane alike."""
    grid = [(gd, ps) for gd in (0.0005, 0.001, 0.002, 0.005, 0.05) for ps in (0.01, 0.02, 0.03, 0.05, 0.1)]
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
                "hot-settles": settles,
                "hot-peak": 20.0 * settles,
                "hot-spread": 5.0 * settles,
                "slow-for": settles,
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
        (g, p) for g in (0.002, 0.005) for p in (0.02, 0.03, 0.05)
    }


def test_a_plateau_asks_for_a_fed_hot_port():
    best = exact_maximum("og-32")
    assert plateau_share(made("og-32", best, 0.2), "og-32") == 1
    assert plateau_share(made("og-32", best, 0.1), "og-32") == 0
    assert plateau_share(made("og-32", best - 0.02, 0.2), "og-32") == 0


def singles(**more: float) -> pl.DataFrame:
    alike = {"seed": 1, "throughput": 0.2, "hot-port": 0.2, "drops": 0.0, "bcn-": 6}
    lossy = {"og-32-no-pause": 100.0}
    return pl.DataFrame([{"case": case, **alike, "drops": lossy.get(case, 0.0), **more} for case in SINGLE])


def judged(*cells: pl.DataFrame) -> dict[str, Claim]:
    return {claim.statement: claim for claim in claims(pl.concat(cells), singles())}


def starting(found: dict[str, Claim], words: str) -> Claim:
    (claim,) = (claim for statement, claim in found.items() if words in statement)
    return claim


def test_rows_and_claims_follow_from_the_cells():
    cells = pl.concat([made("og-8", exact_maximum("og-8"), 0.15), made("og-32", exact_maximum("og-32"), 0.2)])
    verdicts = {row.name: row.verdict for row in rows(cells, singles())}
    assert verdicts["OG, N = 8: least in the claimed range"] == "holds"
    assert verdicts["IG, N = 32, without control, own port counted"] == "misfit"
    found = judged(cells)
    assert starting(found, "Operation is lossless").verdict == "holds"
    assert starting(found, "input-generated hotspot is severe").verdict == "known misfit"
    assert starting(found, "baseline settings").verdict == "holds"
    assert starting(found, "baseline settings").straw, "a switch without control misses the maximum, too"


def test_a_switch_that_starves_the_hot_port_or_has_no_control_meets_no_maximum():
    made_rows = rows(made("og-32", exact_maximum("og-32"), 0.2), singles())
    maxima = [row for row in made_rows if "claimed range" in row.name]
    assert len(maxima) == 2
    assert all(row.straws and not row.straw for row in maxima)
    (arithmetic,) = (row for row in made_rows if row.about == "identity")
    assert "severity" in arithmetic.name


def test_lossless_operation_is_told_only_where_frames_would_be_lost_without_pause():
    found = {claim.statement: claim for claim in claims(made("og-32", 0.83, 0.2), singles(drops=0.0))}
    assert starting(found, "Operation is lossless").holds is False


def test_transients_are_compared_cell_by_cell_and_cells_that_are_alike_tell_nothing():
    slow, quick = made("og-32", 0.83, 0.2, 0.6), made("ig-32", 0.648, 1.0, 0.1)
    found = judged(slow, quick)
    words = ("recover more slowly", "so does their throughput", "overshoot more", "higher fluctuations")
    assert all(starting(found, each).holds for each in words)
    turned = judged(made("og-32", 0.83, 0.2, 0.1), made("ig-32", 0.648, 1.0, 0.6))
    alike = judged(made("og-32", 0.83, 0.2, 0.1), made("ig-32", 0.648, 1.0, 0.1))
    for each in words:
        assert starting(turned, each).holds is False
        assert starting(alike, each).holds is False


def test_a_response_that_does_not_change_does_not_improve():
    assert starting(judged(made("og-32", 0.83, 0.2)), "improves as Ps and Gd").holds is False
    better = made("og-32", 0.83, 0.2).with_columns(
        *(
            (pl.col(name) / (1000 * pl.col("gd") + 10 * pl.col("ps"))).alias(name)
            for name in ("hot-settles", "hot-peak")
        )
    )
    assert starting(judged(better), "improves as Ps and Gd").holds is True


def test_each_side_of_the_claimed_range_is_judged_against_its_edge():
    worse = made("og-32", 0.83, 0.2).with_columns(
        pl.when(pl.col("gd") < 0.002).then(0.9).otherwise(pl.col("hot-settles")).alias("hot-settles"),
        pl.when(pl.col("gd") > 0.005).then(0.1).otherwise(pl.col("hot-port")).alias("hot-port"),
    )
    found = judged(worse)
    assert starting(found, "Gd below 0.002").holds is True
    assert starting(found, "Gd above 0.005").holds is True
    assert starting(found, "Ps below 0.02").holds is False
    assert starting(found, "Ps above 0.05").holds is False


def test_where_the_queue_does_not_settle_at_the_edge_the_throughput_tells_beyond_it():
    never = made("og-32", 0.83, 0.2).with_columns(pl.lit(1.0).alias("hot-settles"))
    assert starting(judged(never), "Gd below 0.002").holds is False
    slower = never.with_columns(pl.when(pl.col("gd") < 0.002).then(0.5).otherwise(0.0).alias("slow-for"))
    assert starting(judged(slower), "Gd below 0.002").holds is True


@pytest.mark.parametrize("case", SINGLE)
def test_every_single_case_gives_its_numbers(case):
    name, changes = SINGLE[case]
    work = Work(Effort(quick=True), seeds=1)
    (row,) = work.run([(load(name).assign(changes), {"case": case})])
    assert 0 < row["throughput"] <= 1
    controlled = load(name).assign(changes).control is not None
    assert (row["hot-peak"] is not None) is controlled
    assert (row["drops"] > 0) is (case == "og-32-no-pause")


def test_the_response_of_a_run_is_that_of_its_hot_queue():
    work = Work(Effort(quick=True), seeds=1)
    slow, quick = work.run(
        [
            (load("zrl-og").assign({GD: 0.001, SAMPLE: sample_every(0.03)}), {}),
            (load("zrl-og").assign({GD: 0.005, SAMPLE: sample_every(0.05)}), {}),
        ]
    )
    # 8192 frames of memory are 32 set points: the hot queue fills nearly all of it.
    assert 25 < slow["hot-peak"] < 32
    assert slow["hot-settles"] == 1.0
    assert slow["slow-for"] > 0.3
    assert 1 < quick["hot-peak"] < 5
    assert 0 < quick["hot-settles"] < 0.2
    assert quick["slow-for"] == 0
    assert quick["hot-spread"] < slow["hot-spread"]


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
