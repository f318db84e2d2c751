"""Series with shared memories, of limiters and of flows: the same in both engines, and no more than a limiter
allows."""

from __future__ import annotations

import polars as pl
import pytest

import weirlab
from weirlab.errors import ScenarioError
from weirlab.evaluation import evaluate
from weirlab.scenario import Scenario, load, loads

SHORT = {
    "run.duration": "512 us",
    "hotspots.hot.window": "51.2 us .. 512 us",
    "record.rates": {"limiter": "host-[0-3]", "every": "25.6 us"},
    "measure": {},
}


def short(**changes: str) -> Scenario:
    return load("zrl-og-8").assign({**SHORT, **changes})


@pytest.mark.parametrize("engine", ["slotted", "event"])
def test_limiters_of_pairs_of_hosts_are_recorded_beside_a_shared_memory(engine: str) -> None:
    records = weirlab.run(short(**{"run.engine": engine})).records
    rows = records["limiters"].join(records["flow_names"].select("flow", "from", "to"), on="flow")
    assert rows.select("from", "to").unique().height == 4 * 7
    assert rows.filter(pl.col("flow") == rows["flow"][0]).height == 20
    limited = rows.filter(pl.col("limited_ps") > 0)
    assert limited.height > 0
    assert set(limited.get_column("to")) == {"host-0"}, "only the hot output asks for less"
    mean_bps = limited.get_column("rate_bit") * 1e12 / limited.get_column("limited_ps")
    assert float(mean_bps.max()) <= 10e9
    assert float(mean_bps.min()) >= 10e6, "not below Ru"
    free = rows.filter(pl.col("limited_ps") == 0)
    assert free.get_column("rate_bit").sum() == 0
    made = records["reaction_points"].filter(pl.col("made") > 0).join(rows, on="flow", how="semi")
    assert set(made.get_column("flow")) == set(limited.get_column("flow"))
    totals = limited.group_by("flow").agg(pl.col("limited_ps").sum()).sort("flow")
    assert totals.get_column("limited_ps").to_list() == made.sort("flow").get_column("limited_ps").to_list()


def test_both_engines_record_the_same_limiters_where_samples_are_not_left_to_chance() -> None:
    even = {
        "control.bcn.congestion_point.sampling": {"kind": "uniform", "jitter": 0},
        "control.bcn.congestion_point.notification": {"lane": "beside"},
    }
    slotted, event = (
        weirlab.run(short(**{"run.engine": engine}).assign(even)).records["limiters"]
        for engine in ("slotted", "event")
    )
    assert slotted.filter(pl.col("limited_ps") > 0).height > 20
    assert slotted.equals(event)


def test_bursts_that_start_by_chance_send_their_load_from_the_first_slots_on() -> None:
    """32 hosts, 20 slots, 40 seeds: a standard error of at most .02 where bursts have 144 frames."""
    first = {
        "traffic.background.source.mean_burst": 144,
        "run.duration": "1.024 us",
        "hotspots": {},
        "record": {},
        "measure": {},
    }

    def share(starts: str) -> float:
        scenario = load("zrl-none").assign({**first, "traffic.background.source.starts": starts})
        flows = weirlab.run(scenario, replicates=40).records["flows"]
        return float(flows.get_column("sent_frames").sum()) / (40 * 32 * 19)

    assert share("chance") == pytest.approx(0.85, abs=0.06)
    assert share("between") < 0.5


@pytest.mark.parametrize("engine", ["slotted", "event"])
def test_hot_traffic_that_starts_by_chance_has_the_same_load_in_the_first_interval_as_in_the_last(
    engine: str,
) -> None:
    """4 hosts send bursts of 30 frames to one, with a load of 60 %: each is a chain of two states, with 20
    idle slots between two bursts in the mean, geometric from none on.

    The mean of W slots of a stationary chain has at most the variance load (1 - load) / W (1 + r) / (1 - r);
    here r = 1 - s/B - (1 - s), where s/(1 - s) is the mean number of idle slots.
    """
    share, burst, slots, seeds, senders = 0.6, 30.0, 100, 60, 4
    idle = burst * (1 - share) / share
    gap = idle / (1 + idle)
    correlation = 1 - gap / burst - (1 - gap)
    variance = share * (1 - share) / slots * (1 + correlation) / (1 - correlation)
    error = (variance / (seeds * senders)) ** 0.5

    def sent(starts: str, until: int) -> float:
        hot = {
            "kind": "input-generated",
            "at": "host-0",
            "flows": [{"from": f"host-[1-{senders}]", "load": share}],
            "mean_burst": burst,
            "frame_size": "64 B",
            "starts": starts,
        }
        changes = {
            "run": {"duration": f"{until * 51.2:.1f} ns", "engine": engine, "seed": 5},
            "traffic": {},
            "hotspots": {"hot": hot},
            "record": {},
            "measure": {},
        }
        flows = weirlab.run(load("zrl-none").assign(changes), replicates=seeds).records["flows"]
        return float(flows.get_column("sent_frames").sum()) / (seeds * senders)

    # The first frame is generated at the end of the first slot.
    first = sent("chance", slots + 1) / slots
    last = (sent("chance", 20 * slots + 1) - sent("chance", 19 * slots + 1)) / slots
    assert first == pytest.approx(share, abs=3 * error)
    assert first == pytest.approx(last, abs=3 * 2**0.5 * error)
    assert sent("between", slots + 1) / slots < share - 3 * error


@pytest.mark.parametrize("engine", ["slotted", "event"])
def test_fairness_over_a_window_is_that_of_what_was_delivered_in_it(engine: str) -> None:
    """What waits in the hot queue leaves it alike for all: the whole run is fairer than its end."""
    rjfi = {"kind": "relative-fairness", "of": "*", "hotspot": "hot"}
    changes = {
        "run.engine": engine,
        "run.duration": "1024 us",
        "hotspots.hot.window": "51.2 us .. 1024 us",
        "record.arrivals": {"flow": "background", "by": "flow", "every": "51.2 us"},
        "measure": {
            "run": rjfi,
            "all": {**rjfi, "window": "0 us .. 1024 us"},
            "late": {**rjfi, "window": "512 us .. 1024 us"},
        },
    }
    run = weirlab.run(load("zrl-og-8").assign(changes))
    found = dict(evaluate(run).select("measure", "value").iter_rows())
    assert found["all"] == pytest.approx(found["run"], rel=1e-12)
    assert 1 / 7 <= found["late"] < found["run"]
    rows = run.records["flow_deliveries"].join(run.records["flow_names"].select("flow", "to"), on="flow")
    late = rows.filter(pl.col("to") == "host-0", pl.col("t_ps") > 512 * 10**6)
    sums = late.group_by("flow").agg(pl.col("bytes").sum()).get_column("bytes").to_numpy().astype(float)
    assert sums.size == 7
    assert found["late"] == pytest.approx(sums.sum() ** 2 / (7 * (sums**2).sum()), rel=1e-9)


WINDOWS = {"first": "0 us .. 256 us", "second": "256 us .. 512 us"}


def in_windows(engine: str) -> dict[str, float]:
    """Feedback and delays of bursts over a run and its halves, with samples that are not left to chance."""
    asked = {
        "positive": {"kind": "control-frames", "of": "switch-0->*", "type": "bcn+"},
        "negative": {"kind": "control-frames", "of": "switch-0->*", "type": "bcn-"},
        "stops": {"kind": "control-frames", "of": "switch-0->*", "type": "xoff"},
        "delay": {"kind": "burst-delay", "of": "*"},
    }
    halves = {
        f"{name}-{half}": {**measure, "window": window}
        for name, measure in asked.items()
        for half, window in WINDOWS.items()
    }
    changes = {
        "run.engine": engine,
        "run.duration": "512 us",
        "hotspots.hot.window": "51.2 us .. 512 us",
        "control.bcn.congestion_point.sampling": {"kind": "uniform", "jitter": 0},
        "control.bcn.congestion_point.notification": {"lane": "beside"},
        "traffic.background.source.mean_burst": 10,
        "network.switch.memory.size": "512 frames",
        "record": {
            "outputs": {"queue": "switch-0->*", "every": "25.6 us"},
            "flows": {"flow": "background", "by": "flow", "every": "25.6 us"},
        },
        "measure": {**asked, **halves},
    }
    return dict(
        evaluate(weirlab.run(load("zrl-og-8").assign(changes))).select("measure", "value").iter_rows()
    )


def test_feedback_and_bursts_of_the_halves_are_those_of_the_run_in_both_engines() -> None:
    slotted, event = in_windows("slotted"), in_windows("event")
    assert slotted == event
    for kind in ("positive", "negative", "stops"):
        assert slotted[f"{kind}-first"] + slotted[f"{kind}-second"] == slotted[kind]
    assert 10 < slotted["negative-first"] < slotted["negative"] - 10
    assert slotted["stops"] > 0
    early, late = sorted((slotted["delay-first"], slotted["delay-second"]))
    assert early < slotted["delay"] < late


BURSTS = """
weirlab: 1
name: bursts
network:
  kind: star
  hosts: 2
  link: {rate: 10 Gbit/s, framing: none}
  switch: {memory: {kind: shared, size: 64 frames, frame_size: 64 B}}
traffic:
  load: {from: host-0, to: host-1, source: {kind: bursts, load: 50 %, frame_size: 64 B, mean_burst: 1}}
run: {duration: 5.12 us}
record: {flows: {flow: load, by: flow, every: 512 ns}}
measure:
  all: {kind: burst-delay, of: load}
  part: {kind: burst-delay, of: load, window: 1024 ns .. 2048 ns}
"""


@pytest.mark.parametrize("engine", ["slotted", "event"])
def test_a_burst_of_one_frame_counts_when_its_frame_arrives(engine: str) -> None:
    """All frames wait alike, so that the mean of any part is that of the run."""
    run = weirlab.run(loads(BURSTS, assign={"run.engine": engine}))
    found = dict(evaluate(run).select("measure", "value").iter_rows())
    assert found["part"] == found["all"] > 0
    rows = run.records["burst_intervals"]
    arrived = run.records["flow_deliveries"].filter(pl.col("frames") > 0)
    assert rows.height > 5
    assert rows.get_column("t_ps").to_list() == arrived.get_column("t_ps").to_list()
    assert rows.get_column("bursts").to_list() == arrived.get_column("frames").to_list()


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ({"kind": "burst-delay", "of": "*", "window": "0 us .. 256 us"}, "by: flow"),
        ({"kind": "burst-delay", "of": "*", "take": "longest", "window": "0 us .. 256 us"}, "whole run only"),
        ({"kind": "control-frames", "of": "host-1->*", "window": "0 us .. 256 us"}, "over time"),
    ],
)
def test_what_a_window_needs_is_asked_for(measure: dict[str, str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load("zrl-og-8").assign({"measure": {"late": measure}})
