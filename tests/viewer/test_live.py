"""What is known of results while they grow."""

import json
import threading
from shutil import copyfile

import polars as pl
import pytest

import weirlab
from made_campaigns import FILE as CAMPAIGN, measured
from made_studies import keep_only
from weirlab.campaigns import run_campaign
from weirlab.runs import run
from weirlab.scenario import load, loads
from weirlab.viewer.following import Appended
from weirlab.viewer.live import LiveRun, live_of
from weirlab.viewer.live_campaign import LiveCampaign
from weirlab.viewer.live_search import LiveSearch, LiveSearches
from weirlab.viewer.live_study import LiveStudy
from weirlab.working import PROGRESS, ProgressLog, at_work, followed

from .conftest import RUN, SEARCH, STUDY


def test_only_whole_lines_that_are_new_are_read(tmp_path):
    path = tmp_path / "log"
    lines = Appended(path)
    assert list(lines) == []
    path.write_bytes(b'{"a": 1}\n{"a": ')
    assert list(lines) == [{"a": 1}]
    with path.open("ab") as file:
        file.write(b'2}\nno JSON\n[]\n{"a": 3}\n')
    assert list(lines) == [{"a": 2}, {"a": 3}]
    assert list(lines) == []


def test_bounds_of_a_search_close_in(tmp_path):
    found = weirlab.search(loads(SEARCH), out=tmp_path / "whole")
    log = (tmp_path / "whole" / "trials.jsonl").read_text().splitlines(keepends=True)
    growing = tmp_path / "growing"
    growing.mkdir()
    for name in ("scenario.yaml", "manifest.json"):
        (growing / name).write_text((tmp_path / "whole" / name).read_text())
    live = LiveSearch(growing)
    (growing / "trials.jsonl").write_text("".join(log[:4]))
    with at_work(growing, "search", "knee"):
        state = live.state()
        assert (state["status"], state["done"]) == ("running", 3)
        assert state["left_s"] > 0
        early = state["charts"][0]["bounds"][-1]
        (growing / "trials.jsonl").write_text("".join(log))
        state = live.state()
    assert state["done"] == len(found.trials)
    chart = state["charts"][0]
    last = next(row for row in reversed(chart["bounds"]) if row["series"] == "NDR")
    assert last["low"] == pytest.approx(found.goals[0].lower.load_fps / 1e6)
    assert last["high"] - last["low"] < early["high"] - (early["low"] or 0)
    state = live.state()
    assert (state["status"], state["goes_on"], state["left_s"]) == ("complete", False, None)


def test_a_log_that_does_not_fit_is_no_bug(tmp_path):
    weirlab.search(loads(SEARCH), out=tmp_path)
    lines = (tmp_path / "trials.jsonl").read_text().splitlines()
    (tmp_path / "trials.jsonl").write_text("\n".join([lines[0], lines[2], ""]))
    assert "cannot be followed" in LiveSearch(tmp_path).state()["sentence"]


def test_points_of_a_study_fill_its_plane(tmp_path):
    place = tmp_path / "study"
    whole = weirlab.study(loads(STUDY), out=place)
    keep_only(place, 4)
    live = LiveStudy(place, tmp_path)
    with at_work(place, "study", "small"):
        state = live.state()
        assert (state["status"], state["done"], state["total"]) == ("running", 8, 12)
        chart = state["charts"][0]
        assert (chart["kind"], len(chart["rows"])) == ("heat", 4)
        assert chart["across"] == ["30 %", "45 %", "60 %"]
        assert chart["upwards"] == ["10 kB", "30 kB"]
    weirlab.study(loads(STUDY), out=place)
    state = live.state()
    assert (state["status"], state["done"], len(state["charts"][0]["rows"])) == ("complete", 12, 6)
    means = whole.measures.group_by("point").agg(pl.col("value").mean())["value"].to_list()
    assert sorted(row["y"] for row in state["charts"][0]["rows"]) == pytest.approx(sorted(means))


def test_rows_that_could_not_be_read_are_read_the_next_time(tmp_path, monkeypatch):
    place = tmp_path / "study"
    weirlab.study(loads(STUDY), out=place)
    live = LiveStudy(place, tmp_path)

    def refused(*_):
        raise OSError("no route to the store")

    with monkeypatch.context() as patch:
        patch.setattr("weirlab.store.Store.read", refused)
        with pytest.raises(OSError, match="no route"):
            live.look()
    live.look()
    assert live.done == 12


def test_what_a_run_has_counted_becomes_rates_over_simulated_time(tmp_path):
    live = LiveRun(tmp_path)
    with at_work(tmp_path, "run", "small"):
        assert live.state()["sentence"].startswith("started")
        log = ProgressLog(tmp_path, None)
        # In each millisecond 100 frames of 1250 B are delivered, which is 1 Gbit/s, and 10 dropped.
        log.news(0, [(n * 10**9, n * 120, n * 100, n * 125_000, n * 10, n * 10) for n in range(6)])
        log(500, 1000)
        state = live.state()
        assert state["sentence"] == "50 % of the simulated time"
        rates, drops, alive = state["charts"]
        assert [row["y"] for row in rates["rows"]] == pytest.approx([1.0] * 5)
        assert [row["y"] for row in drops["rows"]] == pytest.approx([0.01] * 5)
        assert [(row["x"], row["y"]) for row in alive["rows"]] == [(float(n), n * 10) for n in range(6)]
    assert live.state()["status"] == "ended"


def test_the_simulator_tells_what_it_counts_while_it_runs(tmp_path):
    seen = []

    def progress(done, total):
        path = tmp_path / "run" / PROGRESS
        if path.exists():
            seen.append(LiveRun(tmp_path / "run").state())

    weirlab.run(loads(RUN), assign={"run.duration": "4 s"}, out=tmp_path / "run", progress=progress)
    assert seen[0]["status"] == "running"
    last = seen[-1]
    assert last["done"] == last["total"]
    rates = [row["y"] for row in last["charts"][0]["rows"]]
    assert len(rates) >= 4
    assert max(rates) <= 1.0
    assert min(rates[1:]) > 0.9
    assert not (tmp_path / "run" / PROGRESS).exists()


@pytest.mark.parametrize("kind", ["path", "rapid", "something new"])
def test_work_without_a_log_of_its_own_shows_how_far_it_is_and_what_it_measured(tmp_path, kind):
    with followed(tmp_path, kind, "there") as log:
        live = live_of(tmp_path, kind, tmp_path)
        state = live.state()
        assert (state["status"], state["total"], state["charts"]) == ("running", None, [])
        log.measured("Capacity", "Mbit/s", "link 1", 90.0)
        log.measured("Capacity", "Mbit/s", "link 2", 10.0)
        log.measured("Capacity", "Mbit/s", "link 1", 100.0)
        log(250, 1000)
        state = live.state()
        assert state["sentence"].startswith("25 % of the ")
        assert state["left_s"] == pytest.approx(3 * live._last.elapsed_s)
        (chart,) = state["charts"]
        assert [(row["series"], row["y"]) for row in chart["rows"]] == [
            ("link 1", 90.0),
            ("link 2", 10.0),
            ("link 1", 100.0),
        ]
        assert [row[1:3] for row in state["table"]["rows"]] == [
            ["link 1", "100 Mbit/s"],
            ["link 2", "10 Mbit/s"],
        ]
    assert live.state()["status"] == "ended"


def test_a_capture_is_followed_while_it_is_read(tmp_path):
    capture = tmp_path / "capture.pcapng"
    captured = {"wire": {"frames": "switch-0->host-2", "as": "pcapng"}}
    weirlab.run(loads(RUN), assign={"record": captured}, out=tmp_path / "run")
    copyfile(next((tmp_path / "run").glob("*.pcapng")), capture)
    place, seen = tmp_path / "trace", []
    weirlab.trace(
        capture, out=place, progress=lambda *_: seen.append(live_of(place, "trace", tmp_path).state())
    )
    assert {state["status"] for state in seen} == {"running"}
    assert not (place / "work.json").exists()
    assert live_of(place, "trace", tmp_path).state()["status"] == "complete"


def test_measurements_of_a_campaign_arrive_one_by_one(tmp_path):
    go, arrived = threading.Semaphore(0), threading.Semaphore(0)

    def measure(what, path, seed):
        arrived.release()
        go.acquire()
        return measured(what, path, seed)

    worker = threading.Thread(
        target=run_campaign, args=(loads(CAMPAIGN), tmp_path), kwargs={"measure": measure}
    )
    worker.start()
    try:
        for done in range(3):
            arrived.acquire()
            live = LiveCampaign(tmp_path)
            state = live.state()
            assert (state["done"], state["total"], state["status"]) == (done, 12, "running")
            go.release()
    finally:
        for _ in range(12):
            go.release()
        worker.join()
    state = live.state()
    assert (state["status"], state["done"]) == ("complete", 12)
    chart = state["charts"][0]
    assert (chart["kind"], chart["across"], len(chart["rows"])) == ("levels", ["1", "2"], 6)
    assert "failed" not in state["sentence"]


def test_a_study_of_searches_shows_those_that_ended(tmp_path):
    text = SEARCH + "study: {factors: {search.trial.duration: [5 s, 10 s]}}\n"
    weirlab.search(loads(text), out=tmp_path)
    state = LiveSearches(tmp_path).state()
    assert (state["status"], state["done"], state["total"]) == ("complete", 2, 2)
    assert all(row[1] == "complete" and "NDR" in row[2] for row in state["table"]["rows"])


def test_states_are_json(tmp_path):
    weirlab.study(loads(STUDY), out=tmp_path)
    assert json.loads(json.dumps(LiveStudy(tmp_path, tmp_path).state()))


def test_a_run_reports_a_deadlock_while_it_goes_on(tmp_path):
    log, live, sentences = ProgressLog(tmp_path, None), LiveRun(tmp_path), []

    def progress(done, total):
        log(done, total)
        live.look()
        sentences.append(live.sentence())

    progress.news = log.news
    found = run(load("pfc-deadlock", {"run.duration": "60 ms"}), replicates=1, progress=progress)
    many = len(found.records["deadlocks"])
    assert many == 8
    assert sentences[-1].endswith(
        f"; deadlock: {many} traffic classes of ports in replicate 0 wait for one another"
    )
    after = ProgressLog(tmp_path, None)
    after.news(0, [(10**12, 1, 1, 1, 0, 0, 0)])
    after(1000, 1000)
    live.look()
    assert "deadlock" not in live.sentence(), "it is over"
