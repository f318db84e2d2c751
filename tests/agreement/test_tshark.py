"""The analysis of traces agrees with that of tshark on the same file; docs/traces.md has the rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from traces.captures import Talk, paced, pcap
from weirlab.runs import run
from weirlab.scenario import loads
from weirlab.traces import Trace, read_trace

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


PSEUDOWIRES = ("mpls.label==3000,pwethcw", "mpls.label==3001,pwethnocw")
"""tshark has to be told behind which labels Ethernet follows, with a control word and without."""


def tshark(file: Path, condition: str) -> int:
    """How many frames fulfil a condition."""
    words = ["tshark", "-r", str(file), "-Y", condition, "-T", "fields", "-e", "frame.number"]
    words += [word for pseudowire in PSEUDOWIRES for word in ("-d", pseudowire)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    return len(done.stdout.splitlines())


def total(trace: Trace, *columns: str) -> int:
    return int(
        trace["flows"]
        .filter(pl.col("protocol") == 6)
        .select(pl.sum_horizontal(pl.col(*columns)).sum())
        .item()
    )


def agree(file: Path) -> None:
    """Every rule of docs/traces.md."""
    trace = read_trace(file)
    again = tshark(file, "tcp.analysis.retransmission")
    reordered = tshark(file, "tcp.analysis.out_of_order")
    assert trace.facts["frames"] == tshark(file, "frame")
    assert total(trace, "packets") == tshark(file, "tcp")
    assert total(trace, "retransmitted", "reordered", "duplicates") == again + reordered
    assert again <= total(trace, "retransmitted") <= again + reordered
    assert total(trace, "dup_acks") >= tshark(file, "tcp.analysis.duplicate_ack")
    assert 0 < total(trace, "rtts") <= tshark(file, "tcp.analysis.ack_rtt")
    assert total(trace, "probes") == tshark(file, "tcp.analysis.keep_alive && tcp.len > 0")
    assert total(trace, "syn") == tshark(file, "tcp.flags.syn == 1")


@pytest.mark.parametrize("version", [4, 6])
def test_losses_that_were_made_are_counted_alike(tmp_path: Path, version: int) -> None:
    talk = paced(2000, 200_000, 20_000_000, Talk(version=version), lost=frozenset(range(50, 2000, 37)))
    agree(pcap(tmp_path / "lossy.pcap", talk))


def test_a_snapped_file_of_the_other_byte_order_is_counted_alike(tmp_path: Path) -> None:
    talk = paced(500, 200_000, 20_000_000, Talk(vlan=b"\x81\x00\x00\x05"), lost=frozenset({100, 101, 102}))
    agree(pcap(tmp_path / "odd.pcap", talk, big=True, nanoseconds=False, snap=96))


ACCURATE = """weirlab: 1
name: accurate
network: {kind: dumbbell, pairs: 1, access: {rate: 1 Gbit/s, delay: 1 ms},
  bottleneck: {rate: 20 Mbit/s, delay: 4 ms}}
queues: {out: {at: left->right, kind: dual-pi2}}
traffic:
  load: {from: left-0, to: right-0, source: {kind: bulk, size: 1 MB}, transport: {kind: tcp,
    congestion_control: {kind: prague}}}
run: {duration: 4 s}
record: {wire: {frames: [left-0->left, left->left-0], as: pcapng}}
"""


def test_flags_and_counters_of_accurate_ecn_in_a_simulated_capture_are_read_as_what_they_are(
    tmp_path: Path,
) -> None:
    done = run(loads(ACCURATE))
    file = tmp_path / "wire.pcapng"
    file.write_bytes(done.captures["wire-0.pcapng"])
    asks = "tcp.flags.syn == 1 && tcp.flags.ack == 0"
    assert tshark(file, f"{asks} && tcp.flags.ae == 1 && tcp.flags.cwr == 1 && tcp.flags.ece == 1") == 1
    agrees = "tcp.flags.syn == 1 && tcp.flags.ack == 1"
    assert tshark(file, f"{agrees} && tcp.flags.ae == 0 && tcp.flags.cwr == 1 && tcp.flags.ece == 0") == 1
    # Data bears ECT(1) and the counter of an end to which nothing comes, 5.
    data = tshark(file, "tcp.len > 0")
    assert tshark(file, "tcp.len > 0 && ip.dsfield.ecn == 1 && tcp.flags.ace == 5") == data
    # The counters of the last acknowledgement add up to what has come, but for the initial value of one.
    words = ["-T", "fields", "-e", "tcp.options.acc_ecn.ee1b", "-e", "tcp.options.acc_ecn.eceb"]
    told = subprocess.run(
        ["tshark", "-r", str(file), "-Y", "tcp.options.acc_ecn.eceb", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.splitlines()
    ect, ce = map(int, told[-1].split())
    connection = done.records["connections"].row(0, named=True)
    assert ect - 1 + ce == connection["delivered_bytes"] == 1_000_000
    assert ce == connection["marked_bytes"] > 0
    assert tshark(file, "_ws.malformed || tcp.checksum.status == 0") == 0
