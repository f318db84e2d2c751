"""`weir results`, and studies that are prepared for clusters."""

import os
import re
import stat
import subprocess
import sys

import polars as pl
import pytest
import yaml

from weirlab.store import Store
from weirlab.studies import Study


@pytest.fixture
def stored(weir, place):
    assert weir("study", "study.yaml", "--out", "s", "--store", "lab").code == 0
    return place / "lab"


def test_a_store_lists_its_studies_and_how_far_they_are(weir, stored):
    outcome = weir("results", "lab")
    assert outcome.code == 0
    assert re.search(r"small .* 4 +4 +0 ", outcome.out)
    (row,) = weir("results", "lab", "--json").json["rows"]
    assert (row["done"], row["planned"], row["failed"], row["stale"]) == (4, 4, 0, False)
    assert weir("results", "s", "--json").json["rows"] == [row]
    assert weir("results", "lab", "--where", "failed > 0", "--json").json["rows"] == []


def test_questions_are_answered_with_what_the_study_found(weir, stored, place):
    query = (
        "SELECT l.level, AVG(m.value) AS mean FROM measures m JOIN levels l "
        "ON m.plan = l.plan AND m.point = l.point WHERE measure = 'loss' GROUP BY l.level ORDER BY l.level"
    )
    rows = weir("results", "lab", "--sql", query, "--json").json["rows"]
    study = Study.load(place / "s")
    joined = study.measures.filter(measure="loss").join(study.points, on="point")
    factor = study.points.columns[1]
    means = joined.group_by(factor).agg(pl.col("value").mean()).sort(factor)
    assert [(row["level"], row["mean"]) for row in rows] == list(means.iter_rows())
    refused = weir("results", "lab", "--sql", "SELECT * FROM nothing")
    assert refused.code == 2
    assert "tables are studies, runs, measures, points, levels" in refused.err


def test_a_factor_is_a_column_under_its_short_name(weir, stored, place):
    query = (
        "SELECT load, AVG(value) AS mean FROM measures JOIN points USING (plan, point) "
        "WHERE measure = 'loss' GROUP BY load ORDER BY load"
    )
    rows = weir("results", "lab", "--sql", query, "--json").json["rows"]
    study = Study.load(place / "s")
    joined = study.measures.filter(measure="loss").join(study.points, on="point")
    factor = "traffic.a.source.load"
    means = joined.group_by(factor).agg(pl.col("value").mean()).sort(factor)
    assert [(row["load"], row["mean"]) for row in rows] == list(means.iter_rows())


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT lod FROM points", "did you mean 'load'? Columns of points are study, plan, point, load;"),
        ("SELECT xyzzy FROM measures", "; columns of points are study, plan, point, load;"),
        ('SELECT "traffic.a.source.load" FROM points', "; load is a column of points;"),
        ("SELECT load FROM measures", "; load is a column of points;"),
        ("SELECT m.level FROM measures m", "; level is a column of levels;"),
    ],
)
def test_a_wrong_column_leads_to_the_one_that_is_meant(weir, stored, query, hint):
    refused = weir("results", "lab", "--sql", query)
    assert refused.code == 2
    assert hint in refused.err


def test_a_question_on_levels_that_finds_nothing_is_answered_with_the_factors(weir, stored):
    where = "SELECT * FROM levels WHERE factor = "
    assert "Factors are traffic.a.source.load." in weir("results", "lab", "--sql", f"{where}'load'").out
    found = weir("results", "lab", "--sql", f"{where}'traffic.a.source.load'").out
    assert "Factors are" not in found
    assert "2 rows" in found


def test_values_without_their_unit_are_followed_by_it(weir, stored):
    said = weir("results", "lab", "--sql", "SELECT measure, AVG(value) FROM measures GROUP BY measure").out
    assert "Units: loss as a ratio." in said
    assert "Units:" not in weir("results", "lab", "--sql", "SELECT measure, value, unit FROM measures").out
    assert "Units:" not in weir("results", "lab").out


def test_only_measures_that_a_question_names_are_followed_by_their_units(weir):
    other = "measure.rate={kind: delivered-rate, of: a}"
    assert weir("study", "study.yaml", "--set", other, "--store", "two").code == 0
    query = "SELECT AVG(value) AS rate FROM measures WHERE measure = 'loss'"
    assert "Units: loss as a ratio." in weir("results", "two", "--sql", query).out


def test_a_name_that_studies_give_to_measures_of_several_units_has_all_of_these(weir):
    for measure in ("loss-ratio", "delivered-rate"):
        words = ("--set", f"measure={{x: {{kind: {measure}, of: a}}}}", "--set", f"name={measure}")
        assert weir("study", "study.yaml", *words, "--store", "both").code == 0
    said = weir("results", "both", "--sql", "SELECT study, AVG(value) FROM measures GROUP BY study").out
    assert "Units: x as a ratio or in bit/s." in said
    assert "Units:" not in weir("results", "both", "--where", "study <> 'measures'").out


def test_a_study_that_decides_itself_is_not_further_than_planned(weir, place):
    short = ("--set", "run.duration=2 ms", "--set", "study.design.generations=2")
    assert weir("study", "load-split", *short, "--store", "split").code == 0
    (row,) = weir("results", "split", "--json").json["rows"]
    assert row["planned"] == row["done"] > 0


def test_a_table_is_exported_once(weir, stored, place):
    words = ("results", "lab", "--sql", "SELECT * FROM runs", "--export", "runs.parquet")
    assert weir(*words).code == 0
    runs = pl.read_parquet(place / "runs.parquet")
    assert runs.height == 4
    assert runs["seconds"].min() > 0
    assert runs["origin"].null_count() == 0
    assert "there is such a file" in weir(*words).err
    assert weir("results", "lab", "--export", "runs.txt").code == 2


def test_stale_results_are_marked_and_pruned(weir, stored):
    store = Store.open(stored)
    store.write(store.rows(), made_by="0.0.1-other")
    outcome = weir("results", "lab")
    assert "Stale results were made by another engine" in outcome.out
    assert "removed: 1 stale" in weir("results", "lab", "--prune", "stale", "--compact").err
    assert "True" not in weir("results", "lab").out
    assert "--prune everything: write stale" in weir("results", "lab", "--prune", "everything").err


def test_an_answer_says_that_it_leaves_stale_results_out(weir, stored):
    store = Store.open(stored)
    store.write(store.rows(), made_by="0.0.1-other")
    left_out = "esults of another engine are left out; --stale includes them"
    query = "SELECT COUNT(*) AS many FROM runs"
    assert left_out in weir("results", "lab", "--sql", query).out
    refused = weir("results", "lab", "--sql", "SELECT nothing FROM runs").err
    assert left_out in " ".join(refused.split())
    everything = weir("results", "lab", "--sql", query, "--stale")
    assert left_out not in everything.out
    assert re.search(r"^ *8 *$", everything.out, re.MULTILINE)
    assert left_out not in weir("results", "lab", "--sql", "SELECT * FROM studies").out
    weir("results", "lab", "--prune", "stale")
    assert left_out not in weir("results", "lab", "--sql", query).out


def test_a_damaged_plan_is_named_and_made_whole_by_its_study(weir, stored, place):
    (plan,) = (place / "lab" / "plans").iterdir()
    plan.write_bytes(plan.read_bytes()[:100])
    outcome = weir("results", "lab")
    assert outcome.code == 0
    assert f"plans/{plan.name}: damaged" in outcome.err
    assert weir("results", "lab", "--json").json["rows"][0]["study"] == "?"
    assert weir("study", "study.yaml", "--out", "s").code == 0
    outcome = weir("results", "lab", "--json")
    assert [(row["study"], row["done"]) for row in outcome.json["rows"]] == [("small", 4)]
    assert "damaged" not in outcome.err


def test_a_plan_that_only_another_version_reads_is_listed_beside_the_others(weir, stored):
    store = Store.open(stored)
    (name,) = store.documents("plans")
    document = store.document("plans", name)
    text = str(document["scenario"]).replace("weirlab: 1", "weirlab: 1\nno_longer_known: 3 ms", 1)
    old = store.keep("plans", {**document, "name": "old", "scenario": text})
    rows = store.rows().with_columns(plan=pl.lit(old))
    store.write(rows)
    listed = {row["study"]: row for row in weir("results", "lab", "--json").json["rows"]}
    assert (listed["old"]["planned"], listed["old"]["done"]) == (None, rows.height)
    assert listed["small"]["planned"] == 4
    points = weir("results", "lab", "--sql", "SELECT DISTINCT study FROM points", "--json").json["rows"]
    assert points == [{"study": "small"}]


def test_what_is_no_store_is_refused(weir, place):
    assert "no store of results" in weir("results", str(place)).err


def test_a_mistake_in_where_to_run_leaves_no_directory(weir, place):
    assert (
        "--on tcp://head: write the host and the port"
        in weir("study", "study.yaml", "--on", "tcp://head", "--out", "none").err
    )
    assert not (place / "none").exists()


IN_PART_IMPOSSIBLE = (
    *("--set", "network.hosts=4", "--set", 'study.factors."network.hosts"=[3, 4]'),
    *("--set", "study.factors.ends={near: {}, far: {traffic.a.from: host-3}}"),
)


def test_a_study_that_cannot_run_leaves_no_directory(weir, place):
    refused = weir("study", "study.yaml", *IN_PART_IMPOSSIBLE)
    assert refused.code == 2
    assert "at traffic.a.source.load 30 %, network.hosts 3, ends far" in refused.err
    assert not any((place / "results").glob("*"))


def test_a_study_says_how_many_of_its_points_it_has_run(weir):
    words = ("study", "study.yaml", *IN_PART_IMPOSSIBLE, "--set", "study.impossible=list", "--out", "s")
    assert "6 points of 2 replicates in " in weir(*words).out
    assert "6 points of 2 replicates, 0 of them in " in weir(*words).out


def test_a_page_of_a_study_that_was_run_is_the_page_of_what_is_kept(weir, place):
    def page() -> str:
        text = (place / "s/report.html").read_text()
        return re.sub(r"clip\d+", "clip", text)  # drawings of a process are counted

    assert weir("study", "study.yaml", "--out", "s", "--report").code == 0
    written = page()
    assert weir("report", "s").code == 0
    assert page() == written


def test_options_of_studies_are_refused_for_runs(weir):
    assert "which --on, --store and --limit are for" in weir("run", "run.yaml", "--on", "local:2").err
    assert weir("study", "study.yaml", "--limit", "5 parsec").code == 2


@pytest.mark.skipif(os.name != "posix", reason="shell scripts")
def test_the_script_for_slurm_starts_scheduler_and_workers_and_runs_the_study(weir, place):
    pytest.importorskip("distributed")
    outcome = weir("study", "study.yaml", "--on", "slurm:2", "--store", "lab", "--out", "far")
    assert "sbatch --time=4:00:00 small.sbatch" in outcome.out
    assert not (place / "far").exists()
    # In place of SLURM's: as many processes as tasks, here.
    programs = place / "programs"
    programs.mkdir()
    python = sys.executable
    for name, text in {
        "srun": 'for _ in 1 2; do "$@" & done; wait',
        "dask": f'what=$1; shift; exec {python} -m distributed.cli.dask_$what "$@"',
        "weir": f'exec {python} -m weirlab "$@"',
        "hostname": "echo 127.0.0.1",
    }.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(stat.S_IRWXU)
    done = subprocess.run(
        ["bash", "small.sbatch"],
        cwd=place,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "WEIRLAB_PORT": "18786"},
        capture_output=True,
        text=True,
        timeout=120,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Study.load(place / "far").complete
    assert "on tcp://127.0.0.1:18786" in (place / "far" / "journal.txt").read_text()


def test_the_manifests_for_kubernetes_are_whole(weir, place):
    refused = weir("study", "study.yaml", "--on", "kubernetes:5")
    assert "--store s3://" in refused.err
    written = weir("study", "study.yaml", "--on", "kubernetes:5", "--store", "s3://lab/runs")
    assert (written.code, "The image has to hold study.yaml" in written.out) == (0, True)
    service, scheduler, workers, job = yaml.safe_load_all((place / "small.yaml").read_text())
    assert service["spec"]["selector"] == scheduler["spec"]["template"]["metadata"]["labels"]
    assert workers["spec"]["replicas"] == 5
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][:3] == ["weir", "study", "study.yaml"]
    assert container["command"][-2:] == ["--on", "tcp://weirlab-small-scheduler:8786"]
    assert "write the number of workers" in weir("study", "study.yaml", "--on", "slurm:many").err


def test_nobody_is_asked_to_remove_the_scenario_for_its_manifests(weir, place):
    (place / "study.yaml").rename(place / "small.yaml")
    refused = weir("study", "small.yaml", "--on", "kubernetes:5", "--store", "s3://lab/runs")
    assert "small.yaml: this is the scenario; give the scenario another 'name'" in refused.err
