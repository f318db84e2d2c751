"""What limited a flow, seen at both ends, and in captures that lack something."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from traces.captures import MSS, Talk, pcap
from weirlab.cli.app import application
from weirlab.runs import run
from weirlab.scenario import loads
from weirlab.traces import diagnose, read_trace
from weirlab.traces.coverage import coverage
from weirlab.traces.findings import KINDS
from weirlab.traces.remedies import HARMLESS, REMEDIES, STALL_REMEDIES

LIMITS = {"window-limited", "slow-reader", "application-limited", "sender-limited", "slow-start-limited"}
MS = 1_000_000
ENDS = ("sender", "receiver")


def captured(
    place: Path,
    transport: str,
    *,
    rate: str,
    delay: str,
    queue: str = "{kind: drop-tail, limit: 300 kB}",
    streams: int = 1,
) -> dict[str, Path]:
    """Captures at both ends of transfers of 5 s over one bottleneck."""
    text = f"""\
weirlab: 1
name: limits
network:
  kind: dumbbell
  pairs: 1
  access: {{rate: 1 Gbit/s}}
  bottleneck: {{rate: {rate}, delay: {delay}}}
queues: {{bottleneck: {{at: left->right, {queue[1:]}}}
traffic:
  main: {{from: left-0, to: right-0, source: {{kind: bulk}}, streams: {streams},
         transport: {{kind: tcp, {transport}}}}}
run: {{duration: 5 s}}
record:
  sender: {{frames: [left-0->left, left->left-0], as: pcapng}}
  receiver: {{frames: [right->right-0, right-0->right], as: pcapng}}
"""
    done = run(loads(text))
    for end in ENDS:
        (place / f"{end}.pcapng").write_bytes(done.captures[f"{end}-0.pcapng"])
    return {end: place / f"{end}.pcapng" for end in ENDS}


def limits(file: Path) -> set[str]:
    return LIMITS & {finding.kind for finding in diagnose(read_trace(file))}


@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_reader_slower_than_the_path_is_found_at_both_ends(
    tmp_path: Path, control: str, share: float
) -> None:
    transport = f"congestion_control: {control}, window: 200 kB, reading: {{rate: {40 * share:.0f} Mbit/s}}"
    for end, file in captured(tmp_path, transport, rate="40 Mbit/s", delay="5 ms").items():
        assert limits(file) == {"slow-reader"}, end


@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
def test_a_small_window_is_found_at_both_ends_and_no_sender_is_blamed(tmp_path: Path, control: str) -> None:
    transport = f"congestion_control: {control}, window: 60 kB"
    for end, file in captured(tmp_path, transport, rate="40 Mbit/s", delay="15 ms").items():
        assert limits(file) == {"window-limited"}, end
        (row, *_) = read_trace(file).flows().iter_rows(named=True)
        assert row["window_limited_ps"] > 0.7 * 5e12, end


@pytest.mark.parametrize(("full", "verdict"), [(1, set()), (2, {"notice"}), (3, {"problem"})])
def test_a_window_that_is_full_now_and_then_is_one_limit_among_others(
    tmp_path: Path, full: int, verdict: set[str]
) -> None:
    """In so many of five round trips the sender fills it, otherwise half of it."""
    talk, number = Talk(shift=0), 0
    talk.shake_hands(40 * MS)
    for turn in range(100):
        count = 8 if turn % 5 < full else 4
        for each in range(number, number + count):
            talk.now += 10_000
            talk.data(each)
        number += count
        talk.now += 40 * MS
        talk.ack(number, window=8 * MSS)
    found = diagnose(read_trace(pcap(tmp_path / "window.pcap", talk)))
    assert {finding.verdict for finding in found if finding.kind == "window-limited"} == verdict


def test_a_window_of_a_path_that_is_full_is_no_limit(tmp_path: Path) -> None:
    transport = "congestion_control: cubic, window: 150 kB"
    for end, file in captured(tmp_path, transport, rate="20 Mbit/s", delay="15 ms").items():
        (row, *_) = read_trace(file).flows().iter_rows(named=True)
        assert row["goodput_bps"] > 18e6
        assert limits(file) == set(), end


@pytest.mark.parametrize(
    ("transport", "queue"),
    [
        ("congestion_control: reno, ecn: true", "{kind: threshold, limit: 300 kB, k_min: 12 kB}"),
        ("congestion_control: dctcp", "{kind: threshold, limit: 300 kB, k_min: 12 kB}"),
        ("congestion_control: prague", "{kind: dual-pi2, limit: 300 kB}"),
    ],
)
def test_a_sender_that_marks_hold_back_is_not_blamed(tmp_path: Path, transport: str, queue: str) -> None:
    for end, file in captured(tmp_path, transport, rate="20 Mbit/s", delay="5 ms", queue=queue).items():
        (row, *_) = read_trace(file).flows().iter_rows(named=True)
        # A sender's capture shows what tells of the marks, a receiver's the marks, too.
        assert row["echoed_marks"] > 3
        assert (row["congestion_marks"] > 3) == (end == "receiver")
        assert limits(file) == set(), end


def test_every_finding_says_what_to_do_and_each_kind_once(tmp_path: Path) -> None:
    assert {*REMEDIES, "stalls"} == {*KINDS}
    assert {*HARMLESS} <= {*REMEDIES}
    file = captured(tmp_path, FLOWS["slow-reader"], rate="40 Mbit/s", delay="15 ms", streams=2)["sender"]
    trace = read_trace(file)
    assert {*STALL_REMEDIES} == {*trace["cause_names"].get_column("name")}
    assert [finding.kind for finding in diagnose(trace)].count("slow-reader") == 2
    assert (
        CliRunner().invoke(application(), ["diagnose", str(file)]).output.count(REMEDIES["slow-reader"]) == 1
    )


LACKS: Mapping[str, Mapping[str, int]] = {
    "no SYN": {"after": 1},
    "no handshake": {"after": 3},
    "from the middle": {"after": 1500},
    "no options": {"snap": 54},
    "some options": {"snap": 62},
    "no scale of windows": {"snap": 70},
    "from the middle, without options": {"after": 1500, "snap": 54},
    "40 packets": {"until": 80},
    "200 packets from the middle": {"after": 1500, "until": 1800},
}
FLOWS = {
    "slow-reader": "congestion_control: cubic, window: 200 kB, reading: {rate: 15 Mbit/s}",
    "window-limited": "congestion_control: cubic, window: 60 kB",
    "": "congestion_control: bbr",
}


@pytest.mark.parametrize("truth", FLOWS)
@pytest.mark.parametrize("lack", LACKS)
def test_nothing_false_is_said_of_a_capture_that_lacks_something(
    tmp_path: Path, truth: str, lack: str
) -> None:
    for end, whole in captured(tmp_path, FLOWS[truth], rate="40 Mbit/s", delay="15 ms").items():
        file = tmp_path / "part.pcapng"
        file.write_bytes(part(whole.read_bytes(), **LACKS[lack]))
        trace = read_trace(file)
        found = {finding.kind for finding in diagnose(trace)} & LIMITS
        assert found <= {truth}, end
        looked = coverage(trace)
        if truth and truth not in found and looked.directions:
            assert truth in KINDS
            assert truth in looked.reasons, end


def part(content: bytes, *, after: int = 0, until: int = 1 << 30, snap: int = 1 << 16) -> bytes:
    """A pcapng file without its first packets, up to a number, with so many bytes of each at most."""
    out: list[bytes] = []
    at = number = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        block = content[at : at + length]
        at += length
        if kind != 6:
            out.append(block)
            continue
        number += 1
        if after < number <= until:
            out.append(_snapped(block, snap))
    return b"".join(out)


def _snapped(block: bytes, snap: int) -> bytes:
    fields: tuple[Any, ...] = struct.unpack_from("<IIIII", block, 8)
    kept = block[28 : 28 + min(fields[3], snap)]
    body = struct.pack("<IIIII", *fields[:3], len(kept), fields[4]) + kept + bytes(-len(kept) % 4)
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", 6) + length + body + length
