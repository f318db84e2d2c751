"""Managed queues compared with those of ns-3: the same line, the same senders.

The line has 10 Mbit/s and a round trip of 50 ms; packets of the load take 1.2 ms. ns-3 keeps one packet
more between the managed queue and the line, in the device, where no management looks.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weirlab.evaluation import evaluate
from weirlab.runs import run
from weirlab.scenario import loads

ROOT = Path(__file__).parents[2]
SECONDS, FROM_S = 60, 10
PACKET_S = 0.0012
TEXT = """\
weirlab: 1
name: managed
network:
  kind: dumbbell
  pairs: 2
  access: {rate: 1 Gbit/s, delay: 1 ms, framing: none}
  bottleneck: {rate: 10 Mbit/s, delay: 23 ms, framing: none}
queues: {bottleneck: {at: left->right, kind: KIND}}
traffic: {TRAFFIC}
run: {duration: 60 s}
record: {level: {queue: left->right, every: 1 s}}
measure: {queue: {kind: mean-queue, of: left->right, window: 10 s .. 60 s}}
"""
UDP = """load: {from: left-0, to: right-0, transport: {kind: raw},
           source: {kind: constant, rate: 12 Mbit/s, frame_size: 1500 B}}"""
RENO = """load: {from: left-0, to: right-0, source: {kind: bulk},
           transport: {kind: tcp, congestion_control: {kind: reno}, recovery: halving, segment: 1430 B}},
    sparse: {from: left-1, to: right-1, transport: {kind: raw},
             source: {kind: constant, rate: 80 kbit/s, frame_size: 200 B}}"""


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs the workload in ns-3, each once."""
    make = ["make", "--silent", "-C", str(ROOT / "benches" / "peers")]
    if (
        shutil.which("make") is None
        or subprocess.run([*make, "present"], check=False, timeout=60).returncode != 0
    ):
        pytest.skip("needs ns-3: apt-get install libns3-dev make")
    directory = tmp_path_factory.mktemp("ns3")
    program = directory / "weir-peer-ns3-aqm"
    subprocess.run([*make, f"BUILD={directory}", "CXXFLAGS=-O1", str(program)], check=True, timeout=300)

    @functools.cache
    def told(kind: str, load: str, seed: int = 1) -> dict[str, Any]:
        command = [str(program), f"--queue={kind}", f"--load={load}", f"--seed={seed}"]
        command += [f"--seconds={SECONDS}", f"--from={FROM_S}"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        return dict(json.loads(done.stdout))

    return told


def ours(kind: str, load: str, replicates: int = 1) -> dict[str, Any]:
    """The same numbers, as means over replicates."""
    text = TEXT.replace("KIND", kind).replace("TRAFFIC", UDP if load == "udp" else RENO)
    done = run(loads(text), replicates=replicates)
    queue = evaluate(done).filter(pl.col("measure") == "queue")["value"]
    found: dict[str, Any] = {"mean_queue_bytes": float(queue.to_numpy().mean())}
    flows = done.records.named("flows").filter(pl.col("carries") == "data")
    for name in ("load", "sparse") if load == "reno" else ("load",):
        mine = flows.filter(pl.col("traffic_name") == name)
        delays_s = mine["delay_sum_ps"] / mine["delivered_frames"] / 1e12
        found[name] = {
            "delivered_packets": float(mine["delivered_frames"].to_numpy().mean()),
            "dropped": float(mine["dropped_frames"].to_numpy().mean()),
            "mean_delay_s": float(delays_s.to_numpy().mean()),
        }
    return found


@pytest.mark.parametrize(("kind", "drops_within"), [("codel", 0.01), ("fq-codel", 0.01), ("pie", 0.002)])
def test_a_sender_that_does_not_listen_loses_and_waits_as_in_ns_3(
    peer: Any, kind: str, drops_within: float
) -> None:
    theirs, mine = peer(kind, "udp"), ours(kind, "udp")
    assert mine["load"]["delivered_packets"] == pytest.approx(theirs["load"]["delivered_packets"], abs=2)
    assert mine["load"]["dropped"] == pytest.approx(theirs["load"]["dropped"], rel=drops_within)
    assert mine["mean_queue_bytes"] == pytest.approx(theirs["mean_queue_bytes"], rel=0.05)
    delay_s = theirs["load"]["mean_delay_s"] - PACKET_S
    assert mine["load"]["mean_delay_s"] == pytest.approx(delay_s, rel=0.04)


@pytest.mark.parametrize("kind", ["codel", "fq-codel"])
def test_a_reno_connection_and_a_sparse_flow_fare_as_in_ns_3(peer: Any, kind: str) -> None:
    theirs, mine = peer(kind, "reno"), ours(kind, "reno")
    packets, dropped = (theirs["load"][name] for name in ("delivered_packets", "dropped"))
    # 4.8 and 5.0 % fewer than in ns-3: here what arrived in a recovery opens no window after it (RFC 6582,
    # section 3.2).
    assert mine["load"]["delivered_packets"] == pytest.approx(packets, rel=0.06)
    assert mine["load"]["dropped"] == pytest.approx(dropped, rel=0.15)
    # Which of its few frames come while the queue drops is a matter of phase: one more or less.
    assert abs(mine["sparse"]["dropped"] - theirs["sparse"]["dropped"]) <= 1
    for name in ("load", "sparse"):
        assert mine[name]["mean_delay_s"] == pytest.approx(theirs[name]["mean_delay_s"], abs=PACKET_S)


def test_a_reno_connection_under_pie_fares_as_in_ns_3(peer: Any) -> None:
    # With the seeds 2 and 4 the connection of ns-3 stands still for good after its first losses.
    told = [peer("pie", "reno", seed) for seed in (1, 3, 5)]

    def theirs(flow: str, what: str) -> float:
        return sum(each[flow][what] for each in told) / len(told)

    mine = ours("pie", "reno", replicates=3)
    assert mine["load"]["delivered_packets"] == pytest.approx(theirs("load", "delivered_packets"), rel=0.02)
    # Drops by chance: from 82 to 201 in single runs of ns-3.
    assert 0.5 < mine["load"]["dropped"] / theirs("load", "dropped") < 2
    waiting_bytes = sum(each["mean_queue_bytes"] for each in told) / len(told) + 1500
    assert mine["mean_queue_bytes"] == pytest.approx(waiting_bytes, rel=0.1)
    for name in ("load", "sparse"):
        assert mine[name]["mean_delay_s"] == pytest.approx(theirs(name, "mean_delay_s"), rel=0.06)
