"""Messages beside those of ns-3: the same fat tree, the same flow table, DCTCP, per-flow ECMP.

Links of 10 Gbit/s and 1 us, k = 4, queues of 500 packets that mark above 65, handshakes, an acknowledgement
for each segment. Frames of full segments have 1492 B on both sides: 1434 B and 58 B of headers here, 1450 B
and 42 B (point-to-point) there. So flows are whole numbers of segments. Which flows collide differs: the
hashes differ.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from weirlab.runs import run
from weirlab.scenario import load

ROOT = Path(__file__).parents[2]
HOSTS, GBPS, MS, LOAD, FRAME = 16, 10, 10, 0.4, 1492
BINS = ((1, 1), (2, 9), (10, 99), (100, 1000))
"""Least and greatest number of segments of a message."""
REPLICATES = 8
TEXT = f"""\
weirlab: 1
name: peer
network: {{kind: fat-tree, k: 4, link: {{rate: {GBPS} Gbit/s, delay: 1 us, framing: none}}}}
queues:
  all: {{at: "@switches->*", kind: drop-tail, limit: 500 frames, marking: {{k_min: {65 * FRAME} B}}}}
traffic:
  m:
    source: {{kind: flow-table, file: flows.csv, handshake: true}}
    transport:
      kind: tcp
      congestion_control: {{kind: dctcp}}
      segment: 1434 B
      timestamps: false
      delayed_ack: 1
      min_rto: 5 ms
      window: 64 MB
run: {{duration: {MS} ms}}
"""
Flow = tuple[int, int, int, int]


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that runs a flow table in ns-3."""
    make = ["make", "--silent", "-C", str(ROOT / "benches" / "peers")]
    if (
        shutil.which("make") is None
        or subprocess.run([*make, "present"], check=False, timeout=60).returncode != 0
    ):
        pytest.skip("needs ns-3: apt-get install libns3-dev make")
    directory = tmp_path_factory.mktemp("ns3")
    program = directory / "weir-peer-ns3-messages"
    subprocess.run([*make, f"BUILD={directory}", "CXXFLAGS=-O1", str(program)], check=True, timeout=300)
    return program


def flows(seed: int) -> list[Flow]:
    """Start [ps], sender, receiver, segments: Poisson at 40 % of each line rate, bounded Pareto."""
    rng = np.random.default_rng(seed)
    shape, most = 0.7, 1000.0

    def sizes(count: int) -> np.ndarray:
        share = rng.random(count)
        return np.floor((1 - share * (1 - most**-shape)) ** (-1 / shape)).astype(int)

    gap_s = float(np.mean(sizes(200_000))) * FRAME * 8 / (LOAD * GBPS * 1e9)
    found: list[Flow] = []
    for sender in range(HOSTS):
        start = rng.exponential(gap_s)
        while start < 0.6e-3 * MS:
            receiver = int(rng.integers(HOSTS - 1))
            found.append((int(start * 1e12), sender, receiver + (receiver >= sender), int(sizes(1)[0])))
            start += rng.exponential(gap_s)
    return sorted(found)


def ours(table: list[Flow], directory: Path) -> np.ndarray:
    """Time of each message [ps]."""
    rows = "".join(f"{start},host-{a},host-{b},{1434 * n}\n" for start, a, b, n in table)
    (directory / "flows.csv").write_text("start_ps,from,to,bytes\n" + rows)
    (directory / "peer.yaml").write_text(TEXT)
    found = run(load(directory / "peer.yaml"), seed=1).records["messages"].sort("message")
    taken = found.select(pl.col("delivered_ps").cast(pl.Float64) - pl.col("start_ps").cast(pl.Float64))
    return taken.to_series().to_numpy()


def theirs(program: Path, table: list[Flow], salt: int) -> np.ndarray:
    """The same in ns-3."""
    rows = "".join(f"{start} {a} {b} {n}\n" for start, a, b, n in table)
    command = [
        str(program),
        "--k=4",
        f"--gbps={GBPS}",
        f"--ms={MS}",
        "--mark=65",
        "--limit=500",
        f"--salt={salt}",
    ]
    answer = subprocess.run(command, input=rows, capture_output=True, text=True, check=True, timeout=300)
    delivered = np.array(json.loads(answer.stdout)["delivered_ps"], dtype=float)
    assert (delivered > 0).all(), "all messages end"
    return delivered - np.array([start for start, *_ in table], dtype=float)


def test_completion_times_are_those_of_ns3(peer: Path, tmp_path: Path) -> None:
    differences: dict[tuple[tuple[int, int], str], list[float]] = {}
    for seed in range(1, REPLICATES + 1):
        table = flows(seed)
        a, b = ours(table, tmp_path), theirs(peer, table, seed)
        assert not np.isnan(a).any(), "all messages end"
        segments = np.array([n for *_, n in table])
        for least, most in BINS:
            chosen = (segments >= least) & (segments <= most)
            for name, statistic in (("mean", np.mean), ("median", np.median)):
                ratio = math.log(float(statistic(a[chosen]) / statistic(b[chosen])))
                differences.setdefault(((least, most), name), []).append(ratio)
    # 3 %: two machines of TCP that share no line of code; their slow starts differ.
    for place, ratios in differences.items():
        error = statistics.stdev(ratios) / math.sqrt(REPLICATES)
        assert abs(statistics.mean(ratios)) < 3.5 * error + 0.03, (place, statistics.mean(ratios), error)
    assert statistics.mean(error_of(ratios) for ratios in differences.values()) < 0.1, "a test that can fail"


def error_of(ratios: list[float]) -> float:
    """Standard error of a mean."""
    return statistics.stdev(ratios) / math.sqrt(len(ratios))
