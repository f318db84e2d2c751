"""`weir compare`: what changed, and the exit code of CI."""

import json
from xml.etree import ElementTree

import pytest

import weirlab

TWICE = ("--set", "traffic.a.source.load=65 %")


@pytest.fixture
def runs(weir, tmp_path):
    for name, more in (("before", ()), ("after", TWICE), ("again", ())):
        assert weir("run", "run.yaml", "--replicates", "4", "--out", tmp_path / name, *more).code == 0
    return [tmp_path / name for name in ("before", "after", "again")]


def test_changes_have_intervals_by_seed_and_the_field_that_differs_is_named(weir, runs):
    outcome = weir("compare", *runs[:2], "--json")
    assert outcome.code == 0
    document = json.loads(outcome.out)
    rate = next(each for each in document["differences"] if each["quantity"] == "a: delivered rate")
    assert rate["pairs"] == 4
    assert rate["low"] <= rate["change"] <= rate["high"]
    fields = {each["name"]: each["values"] for each in document["settings"] if each["of"] == "scenario"}
    assert fields == {"traffic.a.source.load": ["0.6", "0.65"]}


def test_fields_have_the_names_that_a_file_gives_them(weir, runs, tmp_path):
    assert weir("run", "run.yaml", "--set", "traffic.a.class=3", "--out", tmp_path / "classed").code == 0
    document = json.loads(weir("compare", runs[0], tmp_path / "classed", "--json").out)
    assert "traffic.a.class" in {each["name"] for each in document["settings"]}


def test_repeats_with_the_same_seeds_are_the_same(weir, runs):
    outcome = weir("compare", runs[0], runs[2])
    assert outcome.code == 0
    assert "No change was found" in outcome.out
    assert "higher" not in outcome.out
    assert "lower" not in outcome.out


def test_conditions_decide_the_exit_code_and_are_written_as_junit(weir, runs, tmp_path):
    report = tmp_path / "delay.xml"
    met, unmet = "mean delay > +0.1 %", "loss > 99 %"
    outcome = weir("compare", *runs[:2], "--fail-if", met, "--fail-if", unmet, "--junit", report)
    assert outcome.code == 1
    assert f"FAILED: {met}, in after" in outcome.out
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    failed = {case.get("name"): case.find("failure") is not None for case in suite}
    assert failed == {met: True, unmet: False}
    assert weir("compare", *runs[:2], "--fail-if", unmet).code == 0


def test_the_page_has_the_series_of_all_runs_and_what_differs(weir, runs):
    outcome = weir("compare", *runs, "--report")
    assert outcome.code == 0
    page = (runs[0] / "comparison.html").read_text()
    for words in (
        "before and after and again",
        "Comparison of runs",
        "Waiting bytes",
        "traffic.a.source.load",
    ):
        assert words in page
    assert (runs[0] / "plots" / "comparison-overlaid-queue.svg").exists()


def test_searches_are_compared_by_their_bounds(weir, tmp_path):
    for name, capacity in (("slow", "1 Mframe/s"), ("fast", "1.2 Mframe/s")):
        device = f"testbed.device.capacity={capacity}"
        assert weir("search", "search.yaml", "--set", device, "--out", tmp_path / name).code == 0
    outcome = weir("compare", tmp_path / "slow", tmp_path / "fast", "--json")
    goals = {each["quantity"]: each for each in json.loads(outcome.out)["differences"]}
    assert goals["NDR"]["clear"]
    assert goals["NDR"]["low"] <= 200_000 <= goals["NDR"]["high"]


def test_studies_are_compared_point_by_point(weir, tmp_path):
    for name, seed in (("one", "1"), ("two", "77")):
        assert weir("study", "study.yaml", "--seed", seed, "--out", tmp_path / name).code == 0
    outcome = weir("compare", tmp_path / "one", tmp_path / "two", "--json")
    found = [(each["at"], each["quantity"]) for each in json.loads(outcome.out)["differences"]]
    assert found == [("load 30 %", "loss"), ("load 60 %", "loss")]


def test_what_cannot_be_compared_is_refused_with_the_reason(weir, runs, tmp_path):
    assert weir("search", "search.yaml", "--out", tmp_path / "rates").code == 0
    for arguments, words in (
        ((runs[0],), "name two results or more"),
        ((runs[0], runs[0]), "named twice"),
        ((runs[0], tmp_path), "not a result"),
        ((runs[0], tmp_path / "rates"), "holds a search"),
        ((*runs[:2], "--fail-if", "colour > 3"), "have no 'colour'"),
    ):
        outcome = weir("compare", *arguments)
        assert outcome.code == 2, arguments
        assert words in outcome.err


def test_python_gives_the_same_changes_as_frames(weir, runs):
    found = weirlab.compare(*runs[:2])
    assert found.differences.get_column("pairs").to_list() == [4] * found.differences.height
    assert found.settings.filter(of="scenario").get_column("name").to_list() == ["traffic.a.source.load"]
    assert "quantities" in str(found.summary())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda document: document.pop("goals"), "it has no list 'goals'; restore the file, or search again"),
        (lambda document: document.update(goals=5), "it has no list 'goals'"),
        (
            lambda document: document["goals"][0].pop("name"),
            "goal 1 of 2: not the result of a search: it has no",
        ),
        (
            lambda document: document["goals"][0].pop("upper"),
            "goal 1 of 2: not the result of a search: 'upper' is",
        ),
        (lambda document: document["goals"][0].update(lower=5), "'lower' needs a 'load_fps' above 0 (got 5)"),
    ],
    ids=["goals", "number", "name", "upper", "rate"],
)
def test_a_damaged_search_is_refused_in_words(weir, tmp_path, damage, said):
    for name in ("slow", "fast"):
        weir("search", "search.yaml", "--out", tmp_path / name)
    file = tmp_path / "fast" / "result.json"
    document = json.loads(file.read_text())
    damage(document)
    file.write_text(json.dumps(document))
    outcome = weir("compare", tmp_path / "slow", tmp_path / "fast")
    assert outcome.code == 2
    assert f"{file}: " in outcome.err
    assert said in outcome.err
    assert "Error(" not in outcome.err
