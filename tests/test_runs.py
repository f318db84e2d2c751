"""Runs: seeds, determinism, conservation, and the way to the disk."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weirlab
from weirlab import runs
from weirlab.errors import InputError, Interrupted, RunFailed, ScenarioError, UnsupportedError
from weirlab.records import Records
from weirlab.results import Manifest
from weirlab.runs import Run, check_conservation, replicate_seeds
from weirlab.scenario import loads

SCENARIO = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 60 %, frame_size: 1000 B}}
run: {duration: 5 ms, seed: 7}
record: {out: {queue: switch-0->host-2, every: 100 us}}
"""


@pytest.fixture
def scenario():
    return loads(SCENARIO)


def same(left: Records, right: Records) -> None:
    assert set(left) == set(right)
    for name in left:
        assert_frame_equal(left[name], right[name])


def test_the_seed_is_that_of_the_scenario_unless_another_is_given(scenario):
    assert weirlab.run(scenario).seeds == (7,)
    assert weirlab.run(scenario, seed=0).seeds == (0,)
    assert weirlab.run(scenario, seed=3, replicates=3).seeds == (3, 4, 5)


def test_seeds_wrap_around_and_refuse_what_is_none():
    assert replicate_seeds(2**64 - 1, 2) == (2**64 - 1, 0)
    for seed, replicates in ((-1, 1), (2**64, 1), (1, 0)):
        with pytest.raises(InputError):
            replicate_seeds(seed, replicates)


def test_records_do_not_depend_on_the_number_of_threads(scenario):
    same(
        weirlab.run(scenario, replicates=4, threads=1).records,
        weirlab.run(scenario, replicates=4, threads=3).records,
    )


def test_a_replicate_alone_is_the_same_as_among_others(scenario):
    many = weirlab.run(scenario, seed=7, replicates=3).records
    alone = weirlab.run(scenario, seed=9).records
    third = many["flows"].filter(pl.col("replicate") == 2).drop("replicate")
    assert_frame_equal(third, alone["flows"].drop("replicate"))
    first = many["flows"].filter(pl.col("replicate") == 0).drop("replicate")
    assert not first.equals(third)


def test_frames_are_conserved_and_some_are_lost(scenario):
    records = weirlab.run(scenario, replicates=2).records
    check_conservation(records)
    assert records["flows"].get_column("dropped_frames").sum() > 0


def test_a_lost_frame_fails_the_run_and_is_named(scenario):
    records = weirlab.run(scenario, replicates=2).records
    broken = records["flows"].with_columns(
        live_frames=pl.when((pl.col("replicate") == 1) & (pl.col("flow") == 0))
        .then(pl.col("live_frames") + 1)
        .otherwise(pl.col("live_frames"))
    )
    with pytest.raises(
        RunFailed, match=r"1 flows; the first is 'a/host-0->host-2' in replicate 1: sent \d+ frames"
    ):
        check_conservation(Records({**records, "flows": broken}))


def test_what_is_saved_is_what_is_loaded(scenario, tmp_path):
    run = weirlab.run(scenario, replicates=2)
    run.run.save(tmp_path, overrides={"run.seed": "7"})
    loaded = Run.load(tmp_path)
    assert loaded.scenario == run.scenario
    assert loaded.seeds == run.seeds
    assert loaded.provenance == run.provenance
    same(loaded.records, run.records)
    assert Manifest.read(tmp_path).overrides == {"run.seed": "7"}


def test_the_saved_scenario_runs_again_to_the_same_records(scenario, tmp_path):
    run = weirlab.run(scenario)
    run.run.save(tmp_path)
    same(weirlab.run(tmp_path / "scenario.yaml").records, run.records)


def test_a_run_that_did_not_end_is_not_loaded(scenario, tmp_path):
    weirlab.run(scenario).run.save(tmp_path)
    manifest = (tmp_path / "manifest.json").read_text().replace('"complete"', '"running"')
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=r"did not end \(running\)"):
        Run.load(tmp_path)


def test_a_crash_while_saving_leaves_no_manifest(scenario, tmp_path, monkeypatch):
    run = weirlab.run(scenario)
    monkeypatch.setattr(runs.Records, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        run.run.save(tmp_path)
    assert not (tmp_path / "manifest.json").exists()


def test_a_file_that_is_wrong_says_what_and_where(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text(SCENARIO.replace("load: 60 %", "laod: 60 %"))
    with pytest.raises(ScenarioError, match=r"wrong\.yaml:7:\d+: .*did you mean 'load'"):
        weirlab.run(file)


def test_a_scenario_for_another_testbed_is_not_silently_simulated():
    text = """
    weirlab: 1
    name: emulated
    testbed: {kind: netns, hops: {link: {forward: {rate: 30 Mbit/s, delay: 1 ms}}}}
    """
    with pytest.raises(UnsupportedError, match="for real programs"):
        weirlab.run(loads(text))


def test_progress_grows_to_its_end(scenario):
    told = []
    long = scenario.assign({"run.duration": "2 s"})
    weirlab.run(long, progress=lambda done, total: told.append((done, total)))
    assert told
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert all(0 <= done <= total for done, total in told)


def test_what_the_progress_callback_raises_ends_the_run(scenario):
    def stop(done: int, total: int) -> None:
        raise Interrupted("enough")

    with pytest.raises(Interrupted, match="enough"):
        weirlab.run(scenario.assign({"run.duration": "1000 s"}), progress=stop)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_thread_cannot_work(scenario, threads):
    with pytest.raises(InputError, match="at least 1 thread"):
        weirlab.run(scenario, threads=threads)


SEND = """
weirlab: 1
name: more
network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic: {a: {from: host-0, to: host-1, source: {kind: constant, frame_size: 1000 B}}}
"""
SEARCH = """
search:
  vary: traffic.a.source.rate
  between: 1 kframe/s .. 9 kframe/s
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 10 ms}
"""
STUDY = "study: {replicates: 2}\nrun: {duration: 1 ms}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SEND + SEARCH, "is a search; start it with weirlab.search"),
        (
            SEND.replace("constant,", "constant, load: 10 %,") + STUDY,
            "is a study; start it with weirlab.study",
        ),
    ],
    ids=["search", "study"],
)
def test_a_search_or_a_study_is_not_run_as_if_it_were_a_single_run(text, message):
    with pytest.raises(InputError, match=message):
        weirlab.run(loads(text))


def test_a_ready_made_scenario_is_run_by_its_name():
    result = runs.run("slotted-switch")
    assert repr(result).startswith("<Run of slotted-switch: seed 1, <")
