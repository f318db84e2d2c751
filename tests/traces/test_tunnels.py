"""What is in tunnels is judged as if there were none; what is not looked into is counted and said."""

from __future__ import annotations

import random
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from agreement.test_tshark import tshark
from traces.captures import Talk, paced, pcap, steady
from traces.tunnels import IN_IP, LABELLED, LAYERS, NEED_IP, PLAIN_GRE, Layer, gre, vxlan, within
from weirlab.traces import Trace, diagnose, read_trace

MS = 1_000_000
LOST = frozenset(range(20, 200, 15))
SAME = [
    "from",
    "to",
    "data_packets",
    "new_bytes",
    "retransmitted",
    "handshake_ps",
    "rtt_min_ps",
    "recoveries",
]


def lossy(version: int = 4) -> Talk:
    return paced(200, MS, 10 * MS, Talk(version=version), lost=LOST)


def facts(trace: Trace) -> list[tuple[object, ...]]:
    return trace["flows"].filter(pl.col("protocol") == 6).select(SAME).rows()


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_a_connection_in_a_tunnel_is_the_one_that_it_is_without(
    tmp_path: Path, layer: Layer, version: int
) -> None:
    plain = read_trace(pcap(tmp_path / "plain.pcap", lossy(version)))
    file = pcap(tmp_path / "tunnel.pcap", within(lossy(version), layer))
    inside = read_trace(file)
    assert facts(inside) == facts(plain)
    assert inside["flows"].filter(pl.col("packets") > 0).height == 2
    kinds = {finding.kind for finding in diagnose(inside)}
    assert kinds == {finding.kind for finding in diagnose(plain)} == {"lossy-path"}
    if shutil.which("tshark") and version == 4:
        again = "tcp.analysis.retransmission or tcp.analysis.out_of_order"
        assert tshark(file, "tcp") == len(lossy().frames)
        assert tshark(file, again) == inside["flows"].get_column("retransmitted").sum() == len(LOST)


def stacks(count: int) -> list[tuple[Layer, ...]]:
    """Stacks of tunnels, drawn at random."""
    chance = random.Random(7)
    made = []
    while len(made) < count:
        layers = [chance.choice(LAYERS) for _ in range(chance.randint(2, 4))]
        # Behind a label, a tag or a session there is no type that says what it is; and tshark does not know
        # tags and sessions right behind GRE.
        whole = all(
            place == 0
            or layer not in NEED_IP + PLAIN_GRE
            or layers[place - 1] in IN_IP
            or (layer in PLAIN_GRE and layers[place - 1] in LABELLED)
            for place, layer in enumerate(layers)
        )
        if whole:
            made.append(tuple(layers))
    return made


def names(layers: tuple[Layer, ...]) -> str:
    return "-".join(layer.__name__ for layer in layers)


@pytest.mark.parametrize("layers", stacks(12), ids=names)
def test_any_stack_of_tunnels_is_looked_through(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    file = pcap(tmp_path / "stack.pcap", within(lossy(), *layers))
    assert facts(read_trace(file)) == facts(read_trace(pcap(tmp_path / "plain.pcap", lossy())))
    if shutil.which("tshark"):
        assert tshark(file, "tcp") == len(lossy().frames)


def test_the_same_packets_within_a_tunnel_and_behind_its_end_are_taken_at_two_points(tmp_path: Path) -> None:
    talk = steady(300)
    out = within(talk, vxlan)
    both = sorted([*talk.frames, *((now + 20_000, frame) for now, frame in out.frames)])
    trace = read_trace(pcap(tmp_path / "both.pcap", replace(talk, frames=both)))
    points = trace["points"].get_column("point").unique().to_list()
    assert any("VXLAN 5001" in point for point in points)
    (several,) = (found for found in diagnose(trace) if found.kind == "capture-of-several-points")
    assert several.values["elsewhere_packets"] == len(talk.frames)
    assert facts(trace)[0][2:5] == facts(read_trace(pcap(tmp_path / "one.pcap", talk)))[0][2:5]


def test_congestion_that_was_noted_on_the_outer_packet_counts(tmp_path: Path) -> None:
    talk = steady(60)
    frames = [
        (now, frame[:15] + bytes([frame[15] | 2]) + frame[16:]) for now, frame in talk.frames
    ]  # capable of it
    out = within(replace(talk, frames=frames), gre).frames
    marked = [(now, frame[:15] + bytes([frame[15] | 3]) + frame[16:]) for now, frame in out]
    trace = read_trace(pcap(tmp_path / "marked.pcap", replace(talk, frames=marked)))
    assert trace["flows"].item(0, "congestion_marks") == trace["flows"].item(0, "packets")


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (0x88E5, bytes(60), "of the Ethernet type 0x88e5 (MACsec)"),
        (0x8847, struct.pack(">I", 5000 << 12 | 0x140) + b"\x99" * 60, "MPLS without IP in it"),
    ],
)
def test_frames_of_unknown_types_are_counted_and_named(
    tmp_path: Path, kind: int, body: bytes, words: str
) -> None:
    talk = steady(100)
    odd = [(now + 1, bytes(12) + struct.pack(">H", kind) + body) for now, _ in talk.frames[:40]]
    trace = read_trace(pcap(tmp_path / "odd.pcap", replace(talk, frames=sorted([*talk.frames, *odd]))))
    assert trace.facts["unknown_frames"] == 40
    (finding,) = (found for found in diagnose(trace) if found.kind == "capture-not-understood")
    assert f"40 {words}" in finding.text or f"40 of the Ethernet type {kind:#06x} ({words})" in finding.text


def test_address_resolution_and_control_of_links_are_no_unknown_frames(tmp_path: Path) -> None:
    talk = steady(100)
    kinds = (0x0806, 0x88CC, 0x8808, 0x8809, 0x8863, 0x0026)
    times = [now for now, _ in talk.frames[:9]]
    odd = [(now, bytes(12) + struct.pack(">H", kind) + bytes(46)) for kind in kinds for now in times]
    trace = read_trace(pcap(tmp_path / "odd.pcap", replace(talk, frames=sorted([*talk.frames, *odd]))))
    assert (trace.facts["unknown_frames"], trace.facts["other_frames"]) == (0, 54)
    assert "capture-not-understood" not in {finding.kind for finding in diagnose(trace)}


def test_a_header_within_a_tunnel_that_was_cut_off_is_counted(tmp_path: Path) -> None:
    file = pcap(tmp_path / "cut.pcap", within(lossy(), vxlan), snap=60)
    trace = read_trace(file)
    assert trace.facts["short_frames"] == len(lossy().frames)
    assert "capture-cut-short" in {finding.kind for finding in diagnose(trace)}
