"""Many replicates: what they need is known before, and what has ended is kept."""

import pytest

import weirlab
from weirlab import runs
from weirlab.errors import InputError, Interrupted
from weirlab.report import write_report
from weirlab.scenario import load

SHORT = {"run.duration": "1 ms", "measure.utilisation": None, "measure.queue": None, "record": None}


@pytest.fixture
def scenario():
    return load("incast", SHORT)


def test_batches_give_what_one_call_gives(scenario):
    captured = scenario.assign({"record": {"wire": {"frames": "switch-0->host-4", "as": "pcapng"}}})
    whole = runs.run(captured, replicates=7, threads=7)
    parts = runs.run(captured, replicates=7, threads=2)
    assert parts.seeds == whole.seeds
    assert dict(parts.captures) == dict(whole.captures)
    for name in whole.records:
        assert parts.records[name].equals(whole.records[name]), name


def test_an_interruption_keeps_the_replicates_that_have_ended(scenario, tmp_path, monkeypatch):
    simulate, calls = runs._simulate, []

    def interrupted(*given, **options):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return simulate(*given, **options)

    monkeypatch.setattr("weirlab.runs._simulate", interrupted)
    monkeypatch.setattr("weirlab.runs._BATCH_S", 0.0)
    with pytest.raises(Interrupted, match=r"interrupted after 4 of 50 replicates; they are kept in .*kept"):
        weirlab.run(scenario, replicates=50, threads=2, out=tmp_path / "kept")
    kept = weirlab.read(tmp_path / "kept")
    assert len(kept.seeds) == 4
    assert "Interrupted after 4 of 50 replicates." in kept.summary()
    whole = weirlab.run(scenario, replicates=4) if calls.clear() is None else None
    assert kept.records["flows"].equals(whole.records["flows"])
    page = write_report(tmp_path / "kept", pictures=False).page.read_text(encoding="utf-8")
    assert "This result is not complete: the work was interrupted." in page
    assert "interrupted after 4 of 50 replicates" in page


def test_an_interruption_before_anything_has_ended_is_one_like_any_other(scenario, monkeypatch):
    monkeypatch.setattr("weirlab.runs._simulate", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        runs.run(scenario, replicates=50)


@pytest.mark.parametrize("study", [False, True])
def test_what_cannot_fit_into_memory_is_refused_after_the_first_replicates(scenario, study):
    if study:
        factors = {"factors": {"run.duration": ["1 ms", "2 ms"]}}
        scenario = scenario.assign({"study": factors})
    function = weirlab.study if study else weirlab.run
    with pytest.raises(InputError, match=r"runs take about [\d,]+ h, .* of memory are free; run fewer"):
        function(scenario, replicates=999_999_999)


def test_the_estimate_is_told_and_may_stop_the_work(scenario):
    told = []

    def judge(estimate):
        told.append(estimate)
        raise Interrupted("not started")

    with pytest.raises(Interrupted, match="not started"):
        runs.run(scenario, replicates=1000, threads=2, judge=judge)
    (estimate,) = told
    assert estimate.runs == 1000
    whole = runs.run(scenario, replicates=100, threads=2)
    per_replicate = whole.records.size_bytes() / 100
    assert estimate.disk_bytes == pytest.approx(1000 * per_replicate, rel=0.2)
    assert estimate.memory_bytes == pytest.approx(3 * estimate.disk_bytes, rel=0.01)


def test_a_disk_that_is_too_small_is_named(tmp_path, monkeypatch):
    from weirlab.cli.progress import Meter, judge_in

    judge = judge_in(tmp_path, Meter("simulating"))
    judge(runs.Estimate(10, 1.0, 0, 1000))
    with pytest.raises(InputError, match=r"but .* [kMGT]B are free in .*name another place with --out"):
        judge(runs.Estimate(10, 1.0, 0, 10**18))


def test_hours_are_asked_for_at_a_terminal_and_said_elsewhere(tmp_path, monkeypatch, capsys):
    from weirlab.cli.progress import Meter, judge_in

    judge = judge_in(tmp_path, Meter("simulating"))
    judge(runs.Estimate(10, 7200.0, 0, 1000))
    assert "10 runs take about 2 h" in capsys.readouterr().err
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    with pytest.raises(Interrupted, match="not started"):
        judge(runs.Estimate(10, 7200.0, 0, 1000))


def test_progress_reaches_its_end_over_all_batches(scenario):
    told = []
    runs.run(scenario, replicates=9, threads=2, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert all(done <= total == 9000 for done, total in told)
