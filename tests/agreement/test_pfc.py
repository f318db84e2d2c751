"""Frames of priority flow control as tshark reads them, and holds against the records."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from weirlab.analysis.buffers import short_buffers
from weirlab.analysis.cycles import pause_cycles
from weirlab.errors import ScenarioError
from weirlab.evaluation import measured
from weirlab.measures import MissingRecordError, taken
from weirlab.records import Records
from weirlab.report.control import deadlocks
from weirlab.runs import run, simulate
from weirlab.scenario import load, loads

INCAST = """weirlab: 1
name: incast
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 1 us}}
buffers:
  all:
    at: "@switches"
    size: 200 kB
    ingress:
      kept: {classes: [3, 5], alpha: 0.5, lossless: {}}
      rest: {classes: [0], size: 20 kB}
    flow_control: {quanta: 2000}
traffic:
  kept: {from: "host-[0-2]", to: host-3, class: 3, source: {kind: poisson, load: 60 %, frame_size: 1500 B}}
  rest: {from: host-0, to: host-1, source: {kind: poisson, load: 20 %, frame_size: 500 B}}
run: {duration: 1 ms, seed: 1}
record: {wire: {frames: ["switch-0->host-0"], as: pcapng}, rest: {flow: "*", every: 100 us}}
"""


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_tshark_reads_the_frames_as_802_1qbb(tmp_path: Path) -> None:
    outcome = run(loads(INCAST))
    file = tmp_path / "wire.pcapng"
    file.write_bytes(outcome.captures["wire-0.pcapng"])
    fields = [
        "macc.opcode",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c3",
        "macc.cbfc.pause_time.c5",
        "eth.dst",
    ]
    words = ["tshark", "-r", str(file), "-Y", "macc", "-T", "fields", *(w for f in fields for w in ("-e", f))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    frames = [line.split("\t") for line in done.stdout.splitlines()]
    assert {frame[0] for frame in frames} == {"0x0101"}
    assert {int(frame[1], 0) for frame in frames} == {1 << 3}, "class 5 has no traffic"
    assert {frame[4] for frame in frames} == {"01:80:c2:00:00:01"}
    times = [int(frame[2], 0) for frame in frames]
    assert set(times) == {0, 2000}
    ports = outcome.records.named("control_frames").filter(pl.col("port_name") == "switch-0->host-0")
    assert len(frames) == ports.get_column("frames").sum()


def test_lossless_classes_lose_nothing_and_others_are_not_held() -> None:
    records = simulate(loads(INCAST), [1, 2, 3], threads=1)
    assert records["drops"].is_empty()
    assert records["holds"].get_column("class").unique().to_list() == [3]
    used = records["buffer_inputs"].filter(pl.col("class") == 3)
    assert (used.get_column("headroom_max_bytes") > 0).all()
    names = records["port_names"]
    ports = names.filter(pl.col("name").str.starts_with("host-0->")).get_column("port").to_list()
    held, rest = (
        taken("pause-time", records, ports, take="total", **{"class": 3}),
        taken("pause-time", records, ports, take="total", **{"class": 0}),
    )
    # A third of the line is left for each of three hosts, which send at line rate while they may.
    shares = held.get_column("value") / 1e9
    assert all(0.55 < share < 0.67 for share in shares)
    assert rest.get_column("value").to_list() == [0.0, 0.0, 0.0]
    assert (
        taken("pause-time", records, ports, take="end", **{"class": 0}).get_column("value").to_list()
        == [None] * 3
    )


def test_a_stopped_link_holds_all_classes() -> None:
    paused = loads(INCAST.replace("quanta: 2000", "quanta: 2000, stops: link"))
    records = simulate(paused, [1], threads=1)
    assert records["drops"].is_empty()
    assert records["ports"].get_column("paused_ps").sum() > 0
    assert set(records["holds"].get_column("class").to_list()) == set(range(8))


def test_the_ready_made_network_loses_no_frame_of_its_storage() -> None:
    records = simulate(load("pfc"), [1], threads=1)
    dropped = dict(records.named("drops").group_by("flow_name").agg(pl.col("frames").sum()).iter_rows())
    assert {name.split("/")[0] for name in dropped} == {"local"}


def test_holds_are_traced_to_the_output_where_it_began() -> None:
    records = simulate(load("pfc"), [1, 2], threads=1)
    names = dict(records["port_names"].select("port", "name").iter_rows())
    causes = records["hold_causes"]
    of_host = causes.filter(pl.col("root_port").replace_strict(names) == "level1-1->host-4")
    depths = {(names[row["port"]], row["depth"]) for row in of_host.iter_rows(named=True)}
    way = {
        ("level2-0->level1-1", 1),
        ("level1-0->level2-0", 2),
        *((f"host-{i}->level1-0", 3) for i in range(3)),
    }
    assert depths == way
    assert causes.get_column("stops").sum() == records["buffer_inputs"].get_column("stops").sum()


def test_a_ring_stands_still_for_good_and_is_reported() -> None:
    scenario = load("pfc-deadlock")
    (cycle,) = pause_cycles(scenario)
    assert "class 3" in cycle
    records = simulate(scenario, [1, 2, 3], threads=1)
    assert records["deadlocks"].get_column("replicate").unique().to_list() == [0, 1, 2]
    closed = records["deadlocks"].get_column("since_ps").max()
    until = records["deadlocks"].get_column("found_ps") - records["deadlocks"].get_column("since_ps")
    # A stop is repeated every 20 us, and looks are 100 us apart: found in the course of the run.
    assert until.max() <= 120_000_000
    assert records["deadlocks"].get_column("over_ps").null_count() == records["deadlocks"].height
    late = records["deliveries"].filter(pl.col("t_ps") > closed + 100_000_000)
    assert late.height > 0
    assert late.get_column("frames").sum() == 0, "nothing moves after it has closed"
    (first, *_) = deadlocks(records)
    assert first.startswith("Deadlock in replicate 0: class 3 is held at ")
    assert "and was found at" in first
    assert "none is ever released" in first
    watched = scenario.assign(
        {"buffers.all.watchdog": {"poll": "50 us", "detection": "100 us", "restoration": "100 us"}}
    )
    broken = simulate(watched, [1, 2, 3], threads=1)
    assert broken["storms"].height > 0
    late = broken["deliveries"].filter(pl.col("t_ps") > closed + 500_000_000)
    assert late.get_column("frames").sum() > 0, "the watchdog breaks it"
    causes = broken.named("drops").get_column("cause_name").unique().to_list()
    assert causes == ["watchdog"]
    ended = broken["deadlocks"].filter(pl.col("over_ps").is_not_null())
    assert ended.height > 0, "it was known, and is known to be over"


def test_traffic_that_leaves_the_ring_at_once_does_not_deadlock() -> None:
    beside = {f"traffic.to-{(i + 2) % 4}.to": f"host-{(i + 1) % 4}" for i in range(4)}
    records = simulate(load("pfc-deadlock").assign(beside), [1], threads=1)
    assert records["deadlocks"].is_empty()


def test_the_watchdog_saves_the_innocent_from_a_storm() -> None:
    scenario = load("pfc-storm")
    records = simulate(scenario, [1], threads=1)
    storm = records.named("storms").row(0, named=True)
    assert storm["port_name"] == "level1-1->host-4"
    assert storm["found_ps"] == 800_000_000, (
        "the second look that sees it is that of 0.4 ms, and 0.4 ms later"
    )
    assert storm["over_ps"] is not None
    assert set(records.named("drops").get_column("cause_name")) == {"watchdog"}
    alone = simulate(scenario.assign({"buffers.all.watchdog.action": "alert"}), [1], threads=1)
    assert alone["drops"].is_empty()

    def innocent(found: Records) -> int:
        names = dict(found["traffic_names"].select("name", "traffic").iter_rows())
        rows = found["deliveries"].filter(pl.col("traffic") == names["innocent"], pl.col("t_ps") > 1e9)
        return int(rows.get_column("frames").sum())

    assert innocent(records) > 2 * innocent(alone)


def test_a_victim_waits_in_the_class_of_others_and_not_in_its_own() -> None:
    def delay(number: int) -> float:
        records = simulate(load("pfc-victim", {"traffic.victim.class": number}), [1], threads=1)
        rows = records.named("flows").filter(pl.col("flow_name").str.starts_with("victim"))
        return float(rows.select(pl.col("delay_sum_ps") / pl.col("delivered_frames")).item())

    assert delay(3) > 5 * delay(0)


FILLING = """weirlab: 1
name: filling
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s, delay: 1 us, framing: none}}
buffers: {all: {at: "@switches", size: 1 MB, ingress: {all: {classes: [0], alpha: 8}}}}
traffic:
  load: {from: [host-0, host-1], to: host-2, source: {kind: constant, load: 100 %, frame_size: 1250 B}}
run: {duration: 101 us, seed: 1}
record: {ports: {queue: "switch-0->host-2", every: 1 us}}
measure: {level: {kind: buffer-percentile, of: "switch-0->host-2", percentile: 50 %, window: 1 us .. 101 us}}
"""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_buffer_that_fills_evenly_has_at_most_a_share_of_its_end_for_that_share_of_the_time(share):
    # A frame comes more than leaves each microsecond, from 2 us on.
    scenario = loads(FILLING).assign({"measure.level.percentile": share})
    (value,) = measured(run(scenario).records, scenario).get_column("value")
    assert value == pytest.approx(1250 * (100 * share - 1), abs=1250)


def test_a_percentile_of_a_buffer_is_of_intervals_that_make_up_its_window():
    records = run(loads(FILLING)).records
    (port,) = records["port_names"].filter(name="switch-0->host-2").get_column("port")
    assert taken("buffer-percentile", records, [port], percentile=0.5, window=(10**6, 5 * 10**6)).item(0, 1)
    with pytest.raises(MissingRecordError, match="does not start and end on recorded intervals"):
        taken("buffer-percentile", records, [port], percentile=0.5, window=(1_500_000, 5 * 10**6))
    other = {"record.finer": {"queue": "switch-0->host-1", "every": "300 ns"}}
    with pytest.raises(ScenarioError, match=r"level\.window: .*intervals of 300 ns, in which the buffer"):
        loads(FILLING).assign(other)


def test_a_percentile_of_a_buffer_needs_a_switch_with_one():
    with pytest.raises(ScenarioError, match="leave a switch of 'buffers'"):
        loads(FILLING).assign({"measure.level.of": "host-0->switch-0"})
    with pytest.raises(ScenarioError, match="leave a switch of 'buffers'"):
        loads(FILLING).assign({"buffers": None})
    with pytest.raises(ScenarioError, match=r"buffers\.all\.at: no node is called 'switch-9'"):
        loads(FILLING.replace("@switches", "switch-9"))
    with pytest.raises(ScenarioError) as found:
        loads(FILLING.replace("size: 1 MB", "size: 1 Mb"))
    assert "buffers.all.size" in str(found.value)
    assert "measure" not in str(found.value)


@pytest.mark.parametrize(("longest", "told"), [("1100 B", 0), ("1000 B", 1)])
def test_frames_of_messages_are_longer_than_said_only_where_they_are(longest, told):
    messages = (
        "messages, sizes: {kind: fixed, size: 2 kB}, every: 1 ms, packet: {payload: 1000 B, headers: 64 B}"
    )
    text = FILLING.replace("constant, load: 100 %, frame_size: 1250 B", messages)
    text = text.replace("alpha: 8}}", f"alpha: 8, lossless: {{}}}}}}, flow_control: {{longest: {longest}}}")
    assert len(list(short_buffers(loads(text)))) == told


@pytest.mark.parametrize(
    "transport",
    [
        "{kind: rdma, congestion_control: {kind: line-rate}}",
        "{kind: tcp, congestion_control: {kind: reno}, segment: 8000 B, initial_window: 1000, window: 64 MB}",
    ],
)
def test_headroom_is_enough_for_the_frames_of_messages(transport):
    text = f"""weirlab: 1
name: messages
network: {{kind: star, hosts: 9, link: {{rate: 100 Gbit/s, delay: 1 us}}}}
buffers:
  all: {{at: "@switches", size: 4 MB, ingress: {{all: {{classes: [0], alpha: 0.125, lossless: {{}}}}}}}}
traffic:
  load:
    from: host-[0-7]
    to: host-8
    source:
      kind: messages
      sizes: {{kind: fixed, size: 2 MB}}
      every: 1 s
      gaps: {{kind: constant}}
      packet: {{payload: 8000 B, headers: 64 B}}
    transport: {transport}
run: {{duration: 3 ms, seed: 1}}
"""
    records = run(loads(text)).records
    assert records["buffer_inputs"].get_column("stops").sum() > 10
    assert records["drops"].get_column("frames").sum() == 0
