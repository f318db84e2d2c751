"""A flow that was captured at several points is judged at one, and packets count as the wire has them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from traces.captures import ACK, MSS, Talk, pcap
from weirlab.runs import run
from weirlab.scenario import loads
from weirlab.traces import Trace, diagnose, read_trace

NEAR = "left-0->left, left->left-0"
FAR = "right->right-0, right-0->right"
TEXT = """\
weirlab: 1
name: captured
network:
  kind: dumbbell
  pairs: 1
  access: {rate: 1 Gbit/s}
  bottleneck: {rate: 50 Mbit/s, delay: 10 ms, loss: {kind: random, ratio: 0.3 %}}
queues: {bottleneck: {at: left->right, kind: drop-tail, limit: 100 frames}}
traffic:
  bulk: {from: left-0, to: right-0, source: {kind: bulk}, streams: 2,
         transport: {kind: tcp, congestion_control: {kind: reno}}}
run: {duration: 4 s, seed: 3}
record: {taps: {frames: [TAPS], as: pcapng}}
"""


def traced(taps: str, directory: Path) -> Trace:
    file = directory / f"{len(taps)}.pcapng"
    file.write_bytes(run(loads(TEXT.replace("TAPS", taps))).captures["taps-0.pcapng"])
    return read_trace(file)


@pytest.fixture(scope="module")
def near_and_both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    directory = tmp_path_factory.mktemp("points")
    return traced(NEAR, directory), traced(f"{NEAR}, {FAR}", directory)


def test_a_second_point_changes_nothing_that_is_told_of_a_flow(near_and_both: tuple[Trace, Trace]) -> None:
    near, both = near_and_both
    apart = pl.col("elsewhere_packets")
    assert (
        near["flows"]
        .select(pl.exclude("elsewhere_packets"))
        .equals(both["flows"].select(pl.exclude("elsewhere_packets")))
    )
    assert near["flows"].select(apart.sum()).item() == 0
    assert both["flows"].select(apart.sum()).item() > 10_000


def test_it_is_said_where_flows_were_judged(near_and_both: tuple[Trace, Trace]) -> None:
    near, both = near_and_both
    names = [{finding.kind for finding in diagnose(trace)} for trace in (near, both)]
    assert names[1] - names[0] == {"capture-of-several-points"}
    judged = both["points"].filter(pl.col("judged") == 1)
    assert set(judged.get_column("point")) == set(NEAR.split(", "))


def joined(parts: int) -> Talk:
    """Ten packets of `parts` segments each; the third is sent again after its loss."""
    talk = Talk()
    talk.shake_hands(10_000_000)
    for number in (0, 1, 2, 3, 4, 2, 5, 6, 7, 8, 9):
        talk.now += 1_000_000 if number != 2 else 40_000_000
        talk.say(True, 1000 + number * parts * MSS, 5000, flags=ACK, payload=parts * MSS)
        talk.now += 12_000_000
        talk.say(False, 5000, 1000 + number * parts * MSS + parts * MSS, window=500)
    return talk


@pytest.mark.parametrize("parts", [1, 7])
def test_joined_packets_count_as_the_segments_of_the_wire(tmp_path: Path, parts: int) -> None:
    trace = read_trace(pcap(tmp_path / "joined.pcap", joined(parts)))
    flow = trace["flows"].row(0, named=True)
    assert flow["data_packets"] == 11
    assert (flow["segments"], flow["retransmitted_segments"]) == (11 * parts, parts)
    told = any(finding.kind == "capture-of-joined-segments" for finding in diagnose(trace))
    assert told == (parts > 1)
