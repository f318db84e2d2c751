"""`weir run` and `weir study`: what they print, keep and continue."""

import json
from pathlib import Path

import polars as pl

import weirlab
from cli.kept_results import results
from made_studies import keep_only
from weirlab.results import Manifest
from weirlab.runs import Run
from weirlab.studies import Study

# --- run ---


def test_run_prints_a_summary_and_keeps_a_result_that_can_be_loaded(weir, place):
    outcome = weir("run", "run.yaml", "--replicates", "2", "--seed", "5")
    assert outcome.code == 0
    (directory,) = results(place)
    assert str(directory.relative_to(place)) in outcome.out
    assert "loss" in outcome.out
    assert Run.load(directory).seeds == (5, 6)
    expected = {"scenario.yaml", "resolved.json", "manifest.json", "result.json", "tables"}
    assert {path.name for path in directory.iterdir()} == expected


def test_run_with_json_prints_one_document_that_agrees_with_the_file(weir, place):
    outcome = weir("run", "run.yaml", "--json")
    assert outcome.json["kind"] == "run"
    assert outcome.json["measures"][0]["measure"] == "loss"
    totals = outcome.json["totals"]
    assert totals["sent_frames"] == sum(totals[f"{name}_frames"] for name in ("delivered", "dropped", "live"))
    (directory,) = results(place)
    assert json.loads((directory / "result.json").read_text()) == outcome.json


def test_changes_of_the_command_line_are_honoured_and_noted(weir, place):
    outcome = weir(
        "run", "run.yaml", "--set", "run.duration=1 ms", "--set", "measure=", "--out", "r", "--json"
    )
    assert outcome.json["measures"] == []
    assert Run.load(place / "r").records["runs"]["end_ps"].to_list() == [10**9]
    assert Manifest.read(place / "r").overrides == {"run.duration": "1 ms", "measure": ""}


def test_lists_and_mappings_can_be_set(weir):
    value = "traffic.a.from=[host-0, host-1]"
    assert weir("run", "run.yaml", "--set", value, "--json").code == 0
    value = "traffic.a.source={kind: constant, load: 10 %, frame_size: 100 B}"
    assert weir("run", "run.yaml", "--set", value, "--json").json["totals"]["dropped_frames"] == 0


def test_a_result_is_never_overwritten(weir, place):
    assert weir("run", "run.yaml", "--out", "r").code == 0
    before = (place / "r" / "manifest.json").read_bytes()
    outcome = weir("run", "run.yaml", "--out", "r")
    assert outcome.code == 2
    assert "holds a result already" in outcome.err
    assert (place / "r" / "manifest.json").read_bytes() == before


def test_run_can_write_its_report_at_once(weir, place):
    outcome = weir("run", "run.yaml", "--out", "r", "--report")
    assert (place / "r" / "report.html").exists()
    assert "r/report.html" in outcome.out


def test_a_run_that_fails_leaves_no_directory(weir, place):
    text = (place / "run.yaml").read_text().replace("loss-ratio, of: a}", "loss-ratio, of: a}, x: {kind: no}")
    (place / "bad.yaml").write_text(text)
    assert weir("run", "bad.yaml", "--out", "r").code == 2
    assert not (place / "r").exists()


# --- study ---


def test_run_of_a_study_runs_every_point(weir, place):
    outcome = weir("run", "study.yaml", "--out", "s")
    assert outcome.code == 0
    assert "2 points of 2 replicates" in outcome.out
    assert "60 %" in outcome.out
    assert Study.load(place / "s").complete
    document = json.loads((place / "s" / "result.json").read_text())
    assert [point["levels"] for point in document["points"]] == [
        {"traffic.a.source.load": "30 %"},
        {"traffic.a.source.load": "60 %"},
    ]


def test_study_runs_a_study_and_refuses_what_is_none(weir, place):
    outcome = weir("study", "study.yaml", "--replicates", "1", "--out", "s")
    assert outcome.code == 0
    assert "2 points of 1 replicates" in outcome.out
    refused = weir("study", "run.yaml")
    assert refused.code == 2
    assert "has no section 'study'; run it with:  weir run run.yaml" in refused.err


def test_a_study_with_a_design_says_what_its_measures_hang_on(weir, place):
    design = "kind: latin-hypercube, points: 20, parameters: {traffic.a.source.load: {between: 10 % .. 45 %}}"
    text = (place / "run.yaml").read_text() + f"study: {{design: {{{design}}}}}\n"
    text = text.replace("kind: loss-ratio, of: a", "kind: utilisation, of: switch-0->host-2")
    (place / "filled.yaml").write_text(text)
    outcome = weir("run", "filled.yaml", "--out", "f", "--report")
    assert outcome.code == 0
    assert "PAWN" in outcome.out
    (row,) = json.loads((place / "f/result.json").read_text())["sensitivity"]
    assert row["parameter"] == "traffic.a.source.load"
    assert row["rho"] > 0.9
    assert pl.read_parquet(place / "f/tables/sensitivity.parquet").row(0, named=True) == row
    assert (place / "f/plots/sensitivity-loss.png").exists()


def test_a_study_goes_on_in_its_directory(weir, place):
    weir("run", "study.yaml", "--out", "s")
    keep_only(place / "s", 1)
    outcome = weir("run", "study.yaml", "--out", "s")
    assert outcome.code == 0
    assert "continued s" in outcome.err
    assert "2 points of 2 replicates, 1 of them in " in outcome.out
    assert ", 1 kept from before" in outcome.out
    assert json.loads((place / "s" / "result.json").read_text())["kept_points"] == 1
    assert Study.load(place / "s").complete
    assert "another study" in weir("run", "study.yaml", "--out", "s", "--set", "run.duration=1 ms").err


# --- the others ---


def test_report_prints_the_path_of_its_page(weir, place):
    weir("run", "run.yaml", "--out", "r")
    outcome = weir("report", "r")
    assert outcome.out == "r/report.html\n"
    assert outcome.err.splitlines()[-1] == weirlab.read("r").summary()[0]
    document = weir("report", "r", "--json").json
    assert document["page"] == "r/report.html"
    assert all(Path(path).exists() for path in document["plots"])
    assert weir("report", "r", "--no-pictures", "--json").json["plots"] == []
