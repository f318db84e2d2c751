"""Pages of reproductions: our numbers next to the published ones, and tables that can be read."""

import pytest

from weirlab.heavy import pl
from weirlab.plots.reproduction import ratio_plots
from weirlab.report.reproduce import _story
from weirlab.report.reproduce_ai_fabric import sections
from weirlab.reproductions import Findings, Row


def drawn(plot):
    """The rows of a plot by what they are called."""
    data = plot.chart.to_dict()["datasets"].values()
    return {row["number"]: row for rows in data for row in rows if "number" in row}


def test_ratios_are_drawn_by_source_with_what_counts_as_equal():
    rows = [
        Row(name="tail", published=200.0, ours=220.0, tolerance=10.0, unit="us", source="htsim"),
        Row(name="first", published=50.0, ours=50.0, tolerance=5.0, tolerance_below=1.0, source="htsim"),
        Row(name="queue", published=4.0, ours=4.1, tolerance=0.5, source="HPCC, 5.2"),
        Row(name="none", published=0.0, ours=1.0, tolerance=0.5, source="htsim"),
        Row(name="missing", published=3.0, ours=None, tolerance=0.5, source="htsim"),
        Row(name="negative", published=3.0, ours=-1.0, tolerance=0.5, source="htsim"),
    ]
    htsim, hpcc = ratio_plots(rows)
    assert (htsim.title, hpcc.title) == ("Ours over htsim", "Ours over HPCC")
    found = drawn(htsim)
    assert set(found) == {"tail", "first"}
    assert (found["tail"]["ratio"], found["tail"]["verdict"]) == (1.1, "misfit")
    assert (found["first"]["low"], found["first"]["high"]) == (pytest.approx(0.98), pytest.approx(1.1))
    assert found["tail"]["published"] == "200 us"


def test_many_numbers_are_parted_evenly():
    rows = [Row(name=f"row {i}", published=1.0, ours=1.0, tolerance=0.1, source="s") for i in range(130)]
    plots = ratio_plots(rows)
    assert [len(drawn(plot)) for plot in plots] == [44, 44, 42]
    assert plots[1].title == "Ours over s, part 2 of 3"


def test_a_legend_names_the_verdicts_that_are_drawn():
    rows = [
        Row(name="near", published=200.0, ours=201.0, tolerance=10.0),
        Row(name="far", published=200.0, ours=220.0, tolerance=10.0),
        Row(name="either", published=200.0, ours=201.0, tolerance=10.0, rivals={"other": 195.0}),
    ]
    (plot,) = ratio_plots(rows)
    for verdict in ("holds", "undecided", "misfit"):
        assert plot.svg().count(f">{verdict}</text>") == 1
    assert ">known misfit</text>" not in plot.svg()


def test_the_story_says_why_rows_are_undecided_and_whether_any_differs():
    near = Row(name="near", published=200.0, ours=201.0, tolerance=10.0)
    either = Row(name="either", published=200.0, ours=201.0, tolerance=10.0, rivals={"other": 195.0})
    findings = Findings(name="x", title="X", source="", quick=True, rows=[near, either], claims=[])
    assert _story(findings) == [
        "1 of 2 numbers and claims of X hold.",
        "1 is undecided: the published numbers of all rivals, such as other controllers, lie within the "
        "tolerance, too.",
        "None differs.",
    ]


def test_tests_of_fabrics_have_a_row_for_each_condition_in_units_that_can_be_read():
    means = {"job": ("ps", 1.236e9), "bandwidth": ("bit/s", 61.25e9), "jfi": ("1", 0.9)}
    rows = [
        {"id": "9.1", "condition": name, "measure": measure, "unit": unit, "mean": mean, "cv": cv}
        for name, cv in (("1 MB, ECMP", 0.021), ("8 MB, ECMP", None))
        for measure, (unit, mean) in means.items()
    ]
    rows.append({**rows[0], "condition": "16 MB, ECMP", "mean": None, "cv": None})
    table = pl.DataFrame(rows).with_columns(deviation=pl.col("mean") * pl.col("cv"))
    findings = Findings(
        name="ai-fabric", title="", source="", quick=True, rows=[], claims=[], tables={"tests": table}
    )
    (section,), after, (plot,) = sections(findings)
    assert after == []
    _, shown = section.blocks
    assert shown.caption == "9.1, all-reduce"
    assert [(each.name, each.unit) for each in shown.columns[1:]] == [
        ("job", "ms"),
        ("bandwidth", "Gbit/s"),
        ("jfi", ""),
    ]
    assert shown.rows == [
        ["1 MB, ECMP", "1.236 ± 2.1 %", "61.25 ± 2.1 %", "0.9000 ± 2.1 %"],
        ["8 MB, ECMP", "1.236", "61.25", "0.9000"],
        ["16 MB, ECMP", "–", "–", "–"],
    ]
    assert plot.title == "9.1, all-reduce: bus bandwidth"
