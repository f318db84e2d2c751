"""Studies: every point once, whatever interrupts them."""

import _thread
import json
import shutil

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weirlab
from weirlab.errors import InputError, Interrupted, ScenarioError, UnsupportedError
from weirlab.files import locked_directory
from weirlab.results import Manifest
from weirlab.scenario import loads
from weirlab.studies import Study, points_of, run_study

SCENARIO = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 30 %, frame_size: 1000 B}}
run: {duration: 2 ms, seed: 7}
measure:
  loss: {kind: loss-ratio, of: a}
  queue: {kind: mean-queue, of: switch-0->host-2}
study:
  replicates: 3
  factors:
    traffic.a.source.load: [20 %, 45 %, 60 %]
    buffer: {small: {queues.out.limit: 3 kB}, large: {queues.out.limit: 100 kB}}
"""


@pytest.fixture
def scenario():
    return loads(SCENARIO)


def test_points_are_all_combinations_and_the_last_factor_varies_fastest(scenario):
    points = points_of(scenario)
    assert [tuple(point.levels.values()) for point in points] == [
        (load, buffer) for load in ("20 %", "45 %", "60 %") for buffer in ("small", "large")
    ]
    assert [point.number for point in points] == list(range(6))
    assert str(points[2].scenario.queues["out"].limit) == "3 kB"
    assert points[2].scenario.study is None


def test_a_point_of_a_study_is_what_the_point_alone_is(scenario):
    study = run_study(scenario)
    point = points_of(scenario)[5]
    alone = weirlab.run(point.scenario, seed=7, replicates=3).measures
    among = study.measures.filter(study.measures["point"] == 5).drop("point")
    assert_frame_equal(among, alone, check_dtypes=False)


def test_a_point_of_a_design_is_translated_once_for_its_check_its_run_and_its_measures(monkeypatch):
    from weirlab.scenario import resolve

    calls = []
    real = resolve._translated
    monkeypatch.setattr(resolve, "_translated", lambda given: calls.append(given) or real(given))
    design = {
        "kind": "latin-hypercube",
        "points": 4,
        "parameters": {"queues.out.limit": {"between": "3000 B .. 100000 B"}},
    }
    scenario = loads(SCENARIO, {"study.design": design, "study.factors.buffer": None})
    calls.clear()
    study = run_study(scenario)
    assert study.points.height == 12
    combinations = 3
    cuts = 5
    assert len(calls) <= 3 + 3 * combinations + study.points.height + cuts, (
        "the base, each combination when checked and run, its first point; one is made again after a batch"
    )


def test_what_was_translated_last_is_taken_for_no_other_scenario():
    first = loads(SCENARIO).assign({"study": None})
    second = first.model_copy(update={"queues": first.queues.__class__({})})
    assert first.resolve().spec_json != second.resolve().spec_json
    assert first.resolve().spec_json == loads(SCENARIO).resolve().spec_json


def test_more_load_loses_more_and_a_larger_buffer_less(scenario):
    study = run_study(scenario)
    loss = (
        study.measures.filter(study.measures["measure"] == "loss")
        .group_by("point", maintain_order=True)
        .agg(pl.col("value").mean())
    )
    low_small, _, mid_small, mid_large, high_small, high_large = loss["value"].to_list()
    assert low_small < mid_small < high_small
    assert mid_large < mid_small
    assert high_large < high_small


def test_the_order_of_factors_and_the_number_of_threads_change_nothing(scenario):
    other = loads(SCENARIO.replace("[20 %, 45 %, 60 %]", "[60 %, 45 %, 20 %]"))

    def by_levels(study: Study) -> dict[tuple[str, ...], list[float]]:
        levels = {
            row["point"]: tuple(map(str, list(row.values())[1:]))
            for row in study.points.iter_rows(named=True)
        }
        found: dict[tuple[str, ...], list[float]] = {}
        for row in study.measures.iter_rows(named=True):
            found.setdefault(levels[row["point"]], []).append(row["value"])
        return found

    assert by_levels(run_study(scenario, threads=1)) == by_levels(run_study(other, threads=4))


def test_a_study_is_kept_point_by_point(scenario, tmp_path):
    study = run_study(scenario, directory=tmp_path / "s", overrides={"run.seed": "7"})
    assert study.complete
    loaded = Study.load(tmp_path / "s")
    for name in ("points", "runs", "measures"):
        assert_frame_equal(getattr(loaded, name), getattr(study, name))
        assert (tmp_path / "s" / "tables" / f"{name}.parquet").exists()
    assert Manifest.read(tmp_path / "s").status == "complete"
    assert loaded.runs["seed"].to_list() == [7, 8, 9] * 6
    assert "complete: 6 of 6 points" in (tmp_path / "s" / "journal.txt").read_text()


def interrupted_after(points: int, directory, scenario) -> None:
    """Run a study until some points are on disk, then press Ctrl-C."""

    def watch(done: int, total: int) -> None:
        if done > total * points / 6:
            _thread.interrupt_main()

    with pytest.raises(Interrupted, match=r"interrupted after \d of 6 points; runs that have ended are kept"):
        run_study(scenario, directory=directory, threads=1, progress=watch)


def test_ctrl_c_keeps_the_finished_points_and_the_study_goes_on_from_there(scenario, tmp_path):
    whole = run_study(scenario)
    # Long enough that a point does not end before it is interrupted.
    interrupted_after(2, tmp_path / "s", scenario)
    kept = Study.load(tmp_path / "s")
    assert 0 < kept.points.height < 6
    assert not kept.complete
    assert Manifest.read(tmp_path / "s").status == "interrupted"
    study = run_study(scenario, directory=tmp_path / "s")
    assert study.kept >= kept.points.height
    assert_frame_equal(study.measures, whole.measures)
    assert Manifest.read(tmp_path / "s").status == "complete"


def objects_in(directory):
    return sorted(directory.rglob("results/*/*.parquet"))


def test_a_damaged_object_does_not_count_and_its_runs_are_made_again(scenario, tmp_path):
    interrupted_after(2, tmp_path / "s", scenario)
    whole = run_study(scenario, directory=tmp_path / "s")
    (tmp_path / "s" / "manifest.json").write_text(
        (tmp_path / "s" / "manifest.json").read_text().replace('"complete"', '"interrupted"')
    )
    first = objects_in(tmp_path / "s")[0]
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    assert Study.load(tmp_path / "s").points.height < 6
    again = run_study(scenario, directory=tmp_path / "s")
    assert again.complete
    assert_frame_equal(again.measures, whole.measures)


def test_an_object_that_was_cut_short_does_not_count(scenario, tmp_path):
    whole = run_study(scenario, directory=tmp_path / "s")
    for each in objects_in(tmp_path / "s"):
        each.write_bytes(each.read_bytes()[:-30])
    assert_frame_equal(run_study(scenario, directory=tmp_path / "s").measures, whole.measures)


def test_more_replicates_extend_a_study_and_repeat_nothing(scenario, tmp_path, monkeypatch):
    run_study(scenario, directory=tmp_path / "s")
    from weirlab.studies import plan

    seeds = []
    real = plan.simulate
    monkeypatch.setattr(
        plan, "simulate", lambda s, given, **how: seeds.extend(given) or real(s, given, **how)
    )
    longer = run_study(scenario, directory=tmp_path / "s", replicates=5, threads=1)
    assert sorted(seeds) == [10] * 6 + [11] * 6
    assert_frame_equal(longer.measures, run_study(scenario, replicates=5).measures)


def test_more_levels_extend_a_study_and_repeat_nothing(scenario, tmp_path, monkeypatch):
    run_study(scenario, directory=tmp_path / "s")
    from weirlab.studies import plan

    levels = ["20 %", "45 %", "60 %", "70 %"]
    wider = scenario.assign({'study.factors."traffic.a.source.load"': levels})
    ran = []
    real = plan.simulate
    monkeypatch.setattr(plan, "simulate", lambda s, given, **how: ran.append(given) or real(s, given, **how))
    longer = run_study(wider, directory=tmp_path / "s", threads=1)
    assert longer.points.height == 8
    assert sum(map(len, ran)) == 2 * 3
    assert_frame_equal(longer.measures, run_study(wider).measures)


def test_two_studies_of_one_store_share_what_both_have(scenario, tmp_path):
    first = run_study(scenario, directory=tmp_path / "a", store=tmp_path / "shared")
    other = scenario.assign({"name": "called-otherwise", "description": "the same runs"})
    second = run_study(other, directory=tmp_path / "b", store=tmp_path / "shared")
    assert second.kept == 6
    assert_frame_equal(first.measures, second.measures)


def test_results_of_another_engine_are_never_mixed_in(scenario, tmp_path, monkeypatch):
    from weirlab.execution import batches, runner
    from weirlab.store import store
    from weirlab.studies import running

    run_study(scenario, directory=tmp_path / "s")
    for module in (batches, runner, store, running):
        monkeypatch.setattr(module, "engine", lambda: "0.0.1-of-tomorrow")
    assert run_study(scenario, directory=tmp_path / "s").kept == 0
    assert len(store.Store.open(tmp_path / "s" / "store").engines()) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"assign": {"run.duration": "3 ms"}}, r"another study: scenario\.run\.duration was \"2 ms\" there"),
        ({"seed": 8}, "another study: seed was 7 there and is 8 here"),
        ({"replicates": 2}, "another study: replicates was 3 there and is 2 here"),
    ],
)
def test_another_study_does_not_go_on_in_the_same_directory(scenario, tmp_path, change, message):
    run_study(scenario, directory=tmp_path / "s")
    changed = scenario.assign(change.pop("assign", {}))
    with pytest.raises(InputError, match=message):
        run_study(changed, directory=tmp_path / "s", **change)


def test_a_directory_with_other_files_is_left_alone(scenario, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        run_study(scenario, directory=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_combination_that_is_not_legal_is_told_before_anything_runs(tmp_path):
    text = SCENARIO.replace(
        "buffer: {small", "hosts: {three: {}, two: {network.hosts: 2}}\n    buffer: {small"
    )
    with pytest.raises(ScenarioError, match="host-2"):
        run_study(loads(text), directory=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_without_factors_a_study_is_one_point():
    text = SCENARIO.split("  factors:")[0]
    study = run_study(loads(text))
    assert study.points.height == study.planned == 1
    assert study.runs.height == 3


def test_a_scenario_without_a_study_has_no_points(scenario):
    with pytest.raises(InputError, match="has no 'study' section"):
        points_of(scenario.assign({"study": None}))


def test_a_study_of_a_search_is_refused_with_its_place():
    text = """
    weirlab: 1
    name: many-searches
    testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
    traffic: {x: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
    search:
      vary: traffic.x.source.rate
      between: 1 kframe/s .. 2 Mframe/s
      goals: {NDR: {loss: 0 %}}
      trial: {duration: 1 s}
    study: {replicates: 2}
    """
    with pytest.raises(
        UnsupportedError,
        match="search: a study of this is not run on the simulator; start it with 'weir search'",
    ):
        points_of(loads(text))


def test_a_study_that_another_process_runs_is_left_alone(scenario, tmp_path):
    run_study(scenario, directory=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with locked_directory(tmp_path), pytest.raises(InputError, match="another process is working"):
        run_study(scenario, directory=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_study_that_goes_on_keeps_the_provenance_of_its_beginning(scenario, tmp_path):
    interrupted_after(2, tmp_path, scenario)
    first = Manifest.read(tmp_path)
    run_study(scenario, directory=tmp_path, overrides={"run.seed": "9"})
    whole = Manifest.read(tmp_path)
    assert (whole.provenance, whole.overrides) == (first.provenance, first.overrides)
    assert len(whole.sittings) == 1
    assert whole.status == "complete"


def as_an_older_version_kept_it(directory):
    """Turn the directory of a study into one whose finished points are lines of a log."""
    study = Study.load(directory)
    about = json.loads((directory / "study.json").read_text())["asked"]
    lines = [{"weirlab_points": 1, "weirlab": "0.1.0", **about}]
    for point in study.points.iter_rows(named=True):
        number = point.pop("point")
        lines.append(
            {
                "point": number,
                "levels": point,
                "runs": study.runs.filter(point=number).drop("point").to_dicts(),
                "measures": study.measures.filter(point=number).drop("point").to_dicts(),
            }
        )
    (directory / "points.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (directory / "study.json").unlink()
    shutil.rmtree(directory / "store")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The directory of a study of an older version that came to its end."""
    directory = tmp_path_factory.mktemp("study") / "s"
    run_study(loads(SCENARIO), directory=directory)
    as_an_older_version_kept_it(directory)
    return directory


def test_a_study_of_an_older_version_is_read_as_it_is(scenario, finished):
    found, again = Study.load(finished), run_study(scenario)
    for name in ("points", "runs", "measures"):
        assert_frame_equal(getattr(found, name), getattr(again, name))


def test_a_study_of_an_older_version_is_not_continued(scenario, finished):
    with pytest.raises(InputError, match=r"of an older version.*run it again in another directory"):
        run_study(scenario, directory=finished)


def test_an_older_log_without_a_new_field_is_read_with_its_default(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "s")
    log = tmp_path / "s" / "points.jsonl"
    first, *lines = log.read_text().splitlines()
    header = json.loads(first)
    del header["scenario"]["events"]
    log.write_text("\n".join([json.dumps(header), *lines]) + "\n")
    assert Study.load(tmp_path / "s").points.height == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry.update(point=99), r"point 99, but the study has points 0 to 5"),
        (lambda entry: entry.update(point=-1), r"point -1, but"),
        (lambda entry: entry.update(point=True), r"point: .*\(got True\)"),
        (lambda entry: entry.update(point=2.0), r"point: .*\(got 2.0\)"),
        (lambda entry: entry.update(point=1), r"point 1 (for the second time|has the levels)"),
        (lambda entry: entry.update(levels={"a": "b"}), r"has the levels .* \(got \{'a': 'b'\}\)"),
        (lambda entry: entry["runs"].pop(), "the replicates are not those of the study"),
        (lambda entry: entry["runs"][1].update(seed=1), "the replicates are not those of the study"),
        (lambda entry: entry["runs"][1].update(sent_frames=-5), "a count that is none"),
        (lambda entry: entry["measures"][0].update(value="much"), r"measures.0.value: .*\(got much\)"),
        (lambda entry: entry["measures"][0].update(replicate=7), "of replicate 7"),
        (lambda entry: entry.pop("measures"), "measures"),
    ],
)
def test_an_edited_point_is_refused_and_never_counted(finished, tmp_path, change, message):
    shutil.copytree(finished, tmp_path / "s")
    log = tmp_path / "s" / "points.jsonl"
    header, *lines = log.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    change(entries[3])
    log.write_text("\n".join([header, *map(json.dumps, entries)]) + "\n")
    before = log.read_bytes()
    with pytest.raises(InputError, match=rf"points\.jsonl:[2-7]: damaged log of points \(.*{message}"):
        Study.load(tmp_path / "s")
    assert log.read_bytes() == before


def test_a_point_that_stands_twice_is_refused(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "s")
    log = tmp_path / "s" / "points.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines, lines[3]]))
    with pytest.raises(InputError, match=r"points\.jsonl:8: .*for the second time"):
        Study.load(tmp_path / "s")


def test_two_studies_cannot_run_into_one_directory(scenario, tmp_path):
    pytest.importorskip("fcntl", reason="files are locked on POSIX systems only")
    refused = []

    def watch(done: int, total: int) -> None:
        if not refused:
            with pytest.raises(InputError, match="another process is working in this directory") as caught:
                run_study(scenario, directory=tmp_path / "s")
            refused.append(caught)

    run_study(scenario, directory=tmp_path / "s", progress=watch)
    assert refused
    assert Manifest.read(tmp_path / "s").status == "complete"
    assert Study.load(tmp_path / "s").complete


def test_a_manifest_that_does_not_fit_the_points_is_refused(scenario, tmp_path):
    run_study(scenario, directory=tmp_path / "s")
    path = tmp_path / "s" / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 8'))
    with pytest.raises(InputError, match=r"does not fit the manifest\.json .* seed was 7 at its start"):
        Study.load(tmp_path / "s")


def test_a_level_that_removes_traffic_is_told_to_remove_what_measures_it():
    text = """
weirlab: 1
name: with-and-without
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s}}
traffic:
  a: {from: host-0, to: host-2, source: {kind: poisson, load: 40 %, frame_size: 1500 B}}
  b: {from: host-1, to: host-2, source: {kind: poisson, load: 40 %, frame_size: 1500 B}}
run: {duration: 100 us}
measure: {lost: {kind: loss-ratio, of: b}}
study: {factors: {neighbour: {none: {traffic.b: null}, one: {}}}}
"""
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    (problem,) = caught.value.problems
    assert problem.path == "study.factors.neighbour.none"
    assert "no traffic is called 'b'" in problem.message
    assert problem.message.endswith("remove it in this level, too (measure.lost: null)")
    loads(text.replace("traffic.b: null", "traffic.b: null, measure.lost: null"))
