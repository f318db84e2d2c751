"""The analysis of traces agrees with that of tshark on the same file; docs/traces.md has the rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from traces.captures import Talk, paced, pcap
from weirlab.trace import Trace, read_trace

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


def tshark(file: Path, condition: str) -> int:
    """How many frames fulfil a condition."""
    words = ["tshark", "-r", str(file), "-Y", condition, "-T", "fields", "-e", "frame.number"]
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
