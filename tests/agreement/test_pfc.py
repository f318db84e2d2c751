"""Frames of priority flow control as tshark reads them, and holds against the records."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from weirlab.measures.signals import pause_time
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
    held, rest = pause_time(records, ports, "total", 3), pause_time(records, ports, "total", 0)
    # A third of the line is left for each of three hosts, which send at line rate while they may.
    shares = held.get_column("value") / 1e9
    assert all(0.55 < share < 0.67 for share in shares)
    assert rest.get_column("value").to_list() == [0.0, 0.0, 0.0]
    assert pause_time(records, ports, "end", 0).get_column("value").to_list() == [None] * 3


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
