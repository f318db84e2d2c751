"""What is said where all replicates are the same."""

import shutil

import pytest

import weirlab
from weirlab.report.shared import SAME
from weirlab.scenario import loads

SCENARIO = """
weirlab: 1
name: regular
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s}}
traffic:
  load: {from: "host-[0-1]", to: host-2, source: {kind: constant, load: 60 %, frame_size: 1000 B}}
run: {duration: 1 ms}
measure: {loss: {kind: loss-ratio, of: load}, delay: {kind: mean-delay, of: load}}
"""
FACTORS = "study: {factors: {traffic.load.source.load: [30 %, 60 %]}}\n"
RANDOM = {"traffic.load.source.kind": "poisson"}


@pytest.mark.parametrize(
    ("assign", "replicates", "said"), [({}, 3, True), (RANDOM, 3, False), ({}, 1, False)]
)
def test_a_run_says_that_nothing_is_random_where_its_replicates_are_the_same(assign, replicates, said):
    # Nothing is lost in any replicate, so that one of the measures is the same even where the frames are not.
    result = weirlab.run(loads(SCENARIO), assign=assign, replicates=replicates)
    assert (SAME in result.summary()) == said


@pytest.mark.parametrize(
    ("assign", "replicates", "said"), [({}, 2, True), (RANDOM, 2, False), ({}, 1, False)]
)
def test_a_study_says_that_nothing_is_random_where_all_points_repeat_themselves(assign, replicates, said):
    result = weirlab.study(loads(SCENARIO + FACTORS), assign=assign, replicates=replicates)
    assert (SAME in result.summary()) == said


def test_a_study_says_how_many_points_repeat_themselves_where_others_do_not():
    factors = "study: {factors: {traffic.load.source.kind: [constant, poisson]}}\n"
    summary = weirlab.study(loads(SCENARIO + factors), replicates=3).summary()
    assert "At 1 of 2 points all replicates are the same: their intervals say nothing." in summary
    assert SAME not in summary


def test_differences_without_chance_are_exact(tmp_path):
    loads_by_name = {"before": "60 %", "after": "65 %", "again": "60 %"}
    for name, load in loads_by_name.items():
        assign = {"traffic.load.source.load": load}
        weirlab.run(loads(SCENARIO), assign=assign, replicates=3, out=tmp_path / name)
    found = weirlab.compare(tmp_path / "before", tmp_path / "after")
    assert all(each.exact for _, each in found.changes)
    assert "No interval: all repetitions of each result are the same." in found.summary()
    assert "exact" in found._repr_html_()
    assert "Student" not in found._repr_html_()
    assert "chance alone" not in " ".join(found.summary())
    same = weirlab.compare(tmp_path / "before", tmp_path / "again").summary()
    assert list(same) == ["Nothing changed: all 6 quantities are the same."]


def test_differences_from_a_result_with_chance_are_not_exact(tmp_path):
    weirlab.run(loads(SCENARIO), replicates=3, out=tmp_path / "regular")
    weirlab.run(loads(SCENARIO), assign=RANDOM, replicates=3, out=tmp_path / "random")
    found = weirlab.compare(tmp_path / "regular", tmp_path / "random")
    assert not any(each.exact for _, each in found.changes)
    assert "No interval" not in " ".join(found.summary())


def test_studies_with_chance_are_not_exact_where_their_measures_never_vary(tmp_path):
    lossless = {**RANDOM, "measure.delay": None}
    for name, more in (("regular", {"measure.delay": None}), ("random", lossless)):
        weirlab.study(loads(SCENARIO + FACTORS), assign=more, replicates=3, out=tmp_path / name)
    again = weirlab.study(loads(SCENARIO + FACTORS), assign=lossless, replicates=3, out=tmp_path / "again")
    assert again.measures.get_column("value").n_unique() == 1
    by_name = {name: tmp_path / name for name in ("regular", "random", "again")}
    assert not any(each.exact for _, each in weirlab.compare(by_name["random"], by_name["again"]).changes)
    assert all(
        each.exact for _, each in weirlab.compare(by_name["regular"], _copy(by_name["regular"])).changes
    )


def _copy(place):
    other = place.with_name("copy")
    shutil.copytree(place, other)
    return other
