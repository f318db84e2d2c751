"""Probing senders from scenario files: what is written down, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from weirlab.analysis.notes import notes_of
from weirlab.errors import ScenarioError, WeirlabError
from weirlab.runs import run, simulate
from weirlab.scenario import load, loads

SHORT = {"run.duration": "1 s", "traffic.cross.start": "0.4 s", "traffic.cross.stop": "0.9 s"}


def short(name: str, **more: Any) -> Any:
    assign = {**SHORT, "traffic.rapid.transport.congestion_control.initial_rate": "400 Mbit/s"}
    return load(name, {**assign, **{key.replace("__", "."): value for key, value in more.items()}})


@pytest.fixture(scope="module")
def ideal() -> Any:
    return simulate(short("rapid-ideal", record__streams={"p_streams": "rapid", "packets": True}), [1])


def test_streams_are_written_down_with_their_rates_and_estimates(ideal: Any) -> None:
    streams = ideal.named("probe_streams")
    assert set(streams.get_column("outcome_name")) == {"estimated"}
    assert streams.select((pl.col("low_rate_bps") <= pl.col("rate_bps")).all()).item()
    assert streams.select((pl.col("rate_bps") <= pl.col("high_rate_bps")).all()).item()
    assert streams.select((pl.col("available_bps") <= 1e9).all()).item()
    assert ideal["probe_states"].is_empty()
    crossed = streams.filter(pl.col("t_ps").is_between(650_000_000_000, 900_000_000_000))
    available = 1e9 - 300e6 * 1536 / 1470
    assert float(crossed.get_column("available_bps").median()) == pytest.approx(available, rel=0.1)


def test_packets_of_a_stream_leave_with_falling_gaps_that_make_its_rate(ideal: Any) -> None:
    packets = ideal["probe_packets"].filter(pl.col("stream") == 20)
    stream = ideal["probe_streams"].filter(pl.col("stream") == 20).row(0, named=True)
    gaps = np.diff(packets.get_column("sent_ps").to_numpy().astype(np.int64))
    assert packets.height == 80
    assert np.all(np.diff(gaps) <= 2)
    assert 1538 * 8e12 / gaps[-1] == pytest.approx(stream["high_rate_bps"], rel=1e-3)
    assert packets.select(pl.col("received_ps").is_not_null().all()).item()


def test_the_blind_estimator_falls_into_recovery_and_logs_it() -> None:
    records = simulate(short("rapid-timely"), [1])
    states = records.named("probe_states")
    counters = records["connections"].row(0, named=True)
    off = states.filter(pl.col("state_name") != "on").height
    assert off == counters["recoveries"] + counters["timeouts"] > 0
    told = records["probe_streams"].drop_nulls("available_bps")
    assert told.select(pl.col("excursion_start").is_null().mean()).item() > 0.95


def test_late_timers_break_streams() -> None:
    late = {"late": "0.5 %", "by": "4 ms"}
    intact = []
    for more in ({}, {"traffic__rapid__timing": late}):
        streams = simulate(short("rapid-ideal", **more), [1])["probe_streams"]
        intact.append(streams.select((pl.col("fitting_gaps") > 0.9 * pl.col("packets")).mean()).item())
    assert intact[0] > 0.99
    assert intact[1] < 0.8


@pytest.mark.parametrize(
    ("assign", "message"),
    [
        ({"traffic.rapid.transport.congestion_control.rho": "0.5"}, r"a number above 1 and at most 100"),
        ({"traffic.rapid.transport.congestion_control.rates": "200"}, r"2 to 80 rates \(got 200\)"),
        ({"traffic.rapid.transport.timestamps": "false"}, r"have no place for it"),
        ({"traffic.rapid.adapter.queue": "0 frames"}, r"holds at least 1 frame"),
        ({"record.streams": {"p_streams": "cross"}}, r"no 'rapid' carries it"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(assign: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load("rapid-ideal", assign).resolve()


def test_estimators_are_chosen_by_kind_and_unknown_ones_are_named() -> None:
    text = load("rapid-ideal").to_yaml()
    with pytest.raises(ScenarioError, match=r"unknown kind 'trent'"):
        loads(text.replace("kind: trend", "kind: trent"))


def test_a_bounded_adapter_holds_no_more_beside_pause(tmp_path: Path) -> None:
    file = tmp_path / "held.yaml"
    file.write_text("""\
weirlab: 1
name: held
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s, delay: 1 us}}
queues: {egress: {at: "switch-0->*", kind: drop-tail, limit: 300 kB}}
control: {pause: {all: {at: switch-0, xoff: 100 kB, xon: 90 kB}}}
traffic:
  load:
    from: host-[0-1]
    to: host-2
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: cubic}}
    adapter: {queue: 5 frames}
run: {duration: 20 ms}
""")
    records = run(load(file)).records
    ports = records["ports"].join(records["port_names"].select("port", "name"), on="port")
    held = ports.filter(name="host-0->switch-0").row(0, named=True)
    assert held["paused_count"] > 0
    # Five frames wait, and one is on its way out.
    assert held["queue_max_bytes"] <= 6 * 1518
    assert records["flows"].get_column("dropped_frames").sum() == 0


NARROW = """weirlab: 1
name: narrow
network:
  kind: dumbbell
  pairs: 2
  access: {rate: 1 Gbit/s, delay: 0 us}
  bottleneck: {rate: 100 Mbit/s, delay: 0.75 ms}
queues: {router: {at: left->right, kind: drop-tail, limit: 300 frames}}
traffic:
  rapid:
    from: left-0
    to: right-0
    source: {kind: bulk}
    transport:
      kind: tcp
      delayed_ack: 1
      window: 64 MiB
      congestion_control:
        kind: rapid
        n: 80
        rho: 3
        initial_rate: 5 Mbit/s
        tau: 20 ms
        eta: 8
        estimator: {kind: fluid}
        denoising: {kind: batches, within: 6 us}
        backlog: {target: 1.5 ms, within: 40 ms}
  cross:
    from: left-1
    to: right-1
    start: 1 s
    source: {kind: constant, rate: 30 Mbit/s, payload: 1470 B}
    transport: {kind: udp}
run: {duration: 4 s, seed: 1}
record: {streams: {p_streams: rapid}}
"""


def test_the_fluid_estimator_is_right_behind_a_slower_link_that_it_is_told() -> None:
    told = loads(NARROW.replace("kind: fluid", "kind: fluid, bottleneck: 100 Mbit/s"))
    streams = simulate(told, [1])["probe_streams"].filter(pl.col("t_ps") > 1_500_000_000_000)
    # Where nothing grew the estimate is a lower bound.
    available = streams.filter(pl.col("excursion_start").is_not_null()).get_column("available_bps")
    assert available.len() > 80
    truth = 100e6 - 30e6 * 1536 / 1470
    assert float(available.quantile(0.1)) == pytest.approx(truth, rel=0.1)
    assert float(available.quantile(0.5)) == pytest.approx(truth, rel=0.03)
    assert float(available.quantile(0.9)) == pytest.approx(truth, rel=0.1)


def test_a_bottleneck_that_the_fluid_estimator_is_not_told_is_noted() -> None:
    (note,) = notes_of(loads(NARROW))
    assert note.startswith("traffic.rapid.transport.congestion_control.estimator: 'fluid' takes the rate")
    assert "left->right has 100 Mbit/s" in note
    assert "write 'estimator: {kind: fluid, bottleneck: 100 Mbit/s}'" in note
    for change in (
        ("kind: fluid", "kind: fluid, bottleneck: 100 Mbit/s"),
        ("kind: fluid", "kind: trend"),
        ("access: {rate: 1 Gbit/s", "access: {rate: 100 Mbit/s"),
    ):
        assert notes_of(loads(NARROW.replace(*change))) == [], change


def test_a_bottleneck_without_a_rate_is_refused() -> None:
    with pytest.raises(ScenarioError, match="bottleneck"):
        loads(NARROW.replace("kind: fluid", "kind: fluid, bottleneck: 0 bit/s"))


PAUSED = {
    "control.pause": {"all": {"at": "left", "xoff": "300 kB", "xon": "250 kB"}},
    "queues.router.limit": "600 kB",
}


def test_beside_pause_a_probing_sender_waits_and_nothing_is_lost() -> None:
    records = run(load("rapid-flawed", {**PAUSED, "run.duration": "3.5 s", "measure": {}})).records
    flows = records["flows"]
    assert flows.get_column("dropped_frames").sum() == 0
    kept = pl.col("sent_frames") == pl.col("delivered_frames") + pl.col("live_frames")
    assert flows.select(kept.all()).item()
    held = records["ports"].join(records["port_names"].select("port", "name"), on="port")
    assert held.filter(name="left-0->left").item(0, "paused_count") > 100
    (row,) = records["connections"].iter_rows(named=True)
    assert row["retransmits"] == 0
    # While UDP is on both share the link, and all of it is used.
    progress = records["tcp"].filter(pl.col("t_ps").is_in([2_500_000_000_000, 3_500_000_000_000]))
    (before, after) = progress.sort("t_ps").get_column("acked_bytes").to_list()
    assert 300e6 < (after - before) * 8 < 646e6


def test_pause_does_not_hold_a_probing_sender_beside_other_traffic_of_its_host() -> None:
    more = {
        "traffic.more": {
            "from": "left-0",
            "to": "right-1",
            "source": {"kind": "constant", "rate": "1 Mbit/s", "payload": "1000 B"},
            "transport": {"kind": "udp"},
        }
    }
    with pytest.raises(WeirlabError, match="sends other traffic"):
        run(load("rapid-flawed", {**PAUSED, **more, "run.duration": "10 ms", "measure": {}}))
