"""What work will need, said before most of it."""

import pytest

from execution_plans import MadePlan
from test_contests import CHOSEN, HALVED
from test_study_designs import BASE, UNTIL
from weirlab.errors import InputError
from weirlab.execution import Receipt, carry
from weirlab.execution.costs import OBJECT_BYTES, PROCESS_BYTES, Costs
from weirlab.execution.executors import Ended
from weirlab.scenario import loads
from weirlab.store import Store
from weirlab.studies import RunsPlan, run_study
from weirlab.studies.asking import asking_of


def receipt(runs, seconds, **more):
    return Receipt(
        done=runs, seconds=seconds, bytes=100 * runs, objects=1, disk_bytes=OBJECT_BYTES + 20 * runs, **more
    )


def test_the_first_batch_of_a_process_says_nothing_of_the_others():
    costs = Costs()
    assert costs.need(100, 100, 1, own=True) is None
    costs.add(receipt(1, 3.0, is_first=True))
    assert not costs.known
    assert costs.need(100, 100, 1, own=True).seconds == pytest.approx(300)
    costs.add(receipt(10, 1.0))
    assert costs.known
    assert costs.need(100, 100, 1, own=True).seconds == pytest.approx(10)


def test_a_process_that_begins_late_says_as_little_with_its_first_batch():
    costs = Costs()
    costs.crew = 2
    for runs, seconds, is_first in [(4, 1.0, True), (100, 1.0, False), (4, 2.0, True)]:
        costs.add(receipt(runs, seconds, is_first=is_first))
    assert not costs.known
    costs.add(receipt(100, 1.0))
    assert costs.known
    assert costs.need(1000, 1000, 2, own=False).seconds == pytest.approx(5)


class Here:
    """Executes batches in this process, and keeps what they were."""

    workers = per_worker = 1
    batch_s = 10.0
    dashboard = ""
    busy = False

    def __init__(self):
        self.batches, self._ended = [], []

    def submit(self, work, batch):
        self.batches.append(batch)
        self._ended.append(Ended(len(self.batches), value=work(batch, own_process=False)))
        return len(self.batches)

    def ended(self, _):
        ended, self._ended = self._ended, []
        return ended


def test_a_pilot_has_a_few_runs_of_each_of_its_points_and_then_many_as_they_come_later(tmp_path):
    executor = Here()
    carry(MadePlan(points=13, replicates=300), Store.open(tmp_path, create=True), executor)
    first, pilot = (batch.places for batch in executor.batches[:2])
    assert [stop - start for start, stop in first] == [4]
    few, more = pilot[:12], pilot[12:]
    assert {stop - start for start, stop in few} == {4}
    assert len({start // 300 for start, _ in few}) == 12
    assert [start for start, _ in more] == [stop for _, stop in few]
    assert {stop - start for start, stop in more} == {252}


def test_time_follows_workers_rounds_and_longer_runs():
    costs = Costs()
    costs.crew = 0
    costs.add(receipt(10, 10.0))
    seconds = lambda *given, **more: costs.need(*given, own=False, **more).seconds  # noqa: E731
    assert seconds(1000, 1000, 10) == pytest.approx(100)
    assert seconds(1000, 4000, 10) == pytest.approx(400), "runs that are four times as long"
    assert seconds(1000, 1000, 1000) == pytest.approx(1)
    assert seconds(1000, 1000, 1000, rounds=100) == pytest.approx(100), "ten of them work at a time"


def test_memory_is_that_of_workers_here_and_rows():
    costs = Costs()
    costs.crew = 0
    costs.add(receipt(10, 10.0, memory_bytes=10**9))
    here = costs.need(1000, 1000, 4, own=True)
    there = costs.need(1000, 1000, 4, own=False)
    assert here.memory_bytes == 4 * (10**9 + PROCESS_BYTES) + 3 * 100 * 1000
    assert there.memory_bytes == 3 * 100 * 1000


@pytest.mark.parametrize("on", [None, "local:2"])
def test_disk_and_runs_are_said_within_a_factor_of_two(tmp_path, on):
    said = []
    store = Store.open(tmp_path, create=True)
    plan = MadePlan(points=400, replicates=3, seconds=0.004)
    carry(plan, store, on, threads=1, judge=lambda *needs: said.append(needs))
    [(least, most)] = said
    assert least == most
    assert 0.8 * 1200 <= least.runs <= 1200
    written = sum(path.stat().st_size for path in (tmp_path / "results").rglob("*.parquet"))
    tables = 0.5 * store.rows().estimated_size()
    assert 0.5 < least.disk_bytes / (written + tables) < 2


@pytest.mark.parametrize(
    "text",
    [
        UNTIL,
        HALVED,
        HALVED.replace("verdict: 20", "verdict: 20, duration: 0.1 ms"),
        CHOSEN,
        CHOSEN.replace("most: 8", "most: 2"),
    ],
)
def test_the_runs_of_a_study_that_decides_itself_lie_where_it_was_said(text):
    scenario = loads(text)
    plan = RunsPlan(scenario, 1, scenario.study.replicates)
    (least, _), (most, _) = asking_of(plan).expected()
    runs = run_study(scenario).runs.height
    if "duration: 0.1 ms" in text or text == HALVED:
        assert runs == least == most
    elif "most: 2" in text:
        assert 0.5 * most <= runs <= least == most, "points that are chosen twice are run once"
    else:
        assert least * 0.5 <= runs <= most
        assert least < most


def test_short_runs_of_halving_cost_their_part():
    text = HALVED.replace("verdict: 20", "verdict: 20, duration: 0.25 ms")
    plan = RunsPlan(loads(text), 1, 2)
    (runs, cost), _ = asking_of(plan).expected()
    # Ten points of a quarter, five of a half, three of whole runs, two replicates each; two finalists.
    assert runs == 2 * (10 + 5 + 3) + 2 * 20
    assert cost / 4 == pytest.approx(2 * (10 / 4 + 5 / 2 + 3) + 2 * 20)


@pytest.mark.parametrize("on", [None, "local:2"])
def test_what_the_disk_cannot_hold_is_refused_before_most_of_it_is_run(tmp_path, monkeypatch, on):
    monkeypatch.setattr(Store, "free_bytes", lambda _: 10_000)
    text = BASE.replace("replicates: 10", "replicates: 20_000")
    with pytest.raises(InputError, match=r"on disk, but 10 kB are free for the store .*--store"):
        run_study(loads(text), directory=tmp_path / "kept", threads=1, on=on)
    made = Store.open(tmp_path / "kept" / "store").rows().height
    assert made < 60_000


def test_a_study_that_may_end_soon_or_late_is_told_both_ways(tmp_path):
    said = []

    def judge(estimate):
        said.append(estimate)
        raise InputError("seen enough")

    scenario = loads(UNTIL, {"study.until.most": "20_000", "study.until.half_widths.queue": "1 %"})
    with pytest.raises(InputError, match="seen enough"):
        run_study(scenario, directory=tmp_path, judge=judge)
    [estimate] = said
    assert estimate.runs < estimate.most.runs <= 6 * 20_000
    assert " to " in str(estimate)
