"""Messages on fabrics: the same flows on the same fat tree in ns-3, and what a network of 1024 hosts costs.

    python benches/fabric.py [--tables N] [--ms 2.5,5,10]

- 16 hosts at 10 Gbit/s, DCTCP, per-flow ECMP: mean completion times here over those of ns-3 by size, with
  95 % intervals over the tables (Student's t), and the ratio of the CPU times of the whole processes. Goal:
  50 times as fast. Each message takes the same links on both sides.
- 1024 hosts at 100 Gbit/s, sizes of a web search at 50 % load, and incasts of 60 to 1: CPU time and memory
  of the whole `weir run`. Goals: 10 ms in 60 s of CPU time and 1 GB; a byte sent costs at most 1.25 times as
  much in 10 ms as in 5 ms.

Exit code: 0, or 1 when a goal is missed. Without ns-3 the first part is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare import EXAMPLES, HOW_TO_GET_NS3, PEER_MESSAGES, BenchError, build_ours, build_peer
from processes import run_to_end

HOSTS, GBPS, MS, LOAD, SEGMENT, FRAME = 16, 10, 10, 0.4, 1434, 1492
"""Frames of full segments have 1492 B on both sides: here with 58 B of headers, there 1450 B and 42 B."""
MARK, LIMIT = 65, 500
"""Full frames: above the first a queue marks, above the second it drops. Both sides count bytes."""
BINS = ((1, 1), (2, 9), (10, 99), (100, 1000))
"""Least and greatest number of segments of a message."""
SHAPE = 0.7
SPEED_GOAL = 50
TABLES = 6
LARGE_MS = (2.5, 5, 10)
LARGE_CPU_S, LARGE_BYTES, LARGE_BEND = 60, 1e9, 1.25
TEXT = f"""\
weirlab: 1
name: peer
network: {{kind: fat-tree, k: 4, link: {{rate: {GBPS} Gbit/s, delay: 1 us, framing: none}}}}
queues:
  all: {{at: "@switches->*", kind: drop-tail, limit: {LIMIT * FRAME} B, marking: {{k_min: {MARK * FRAME} B}}}}
traffic:
  m:
    source: {{kind: flow-table, file: flows.csv, handshake: true}}
    transport:
      kind: tcp
      congestion_control: {{kind: dctcp}}
      segment: {SEGMENT} B
      timestamps: false
      delayed_ack: 1
      min_rto: 5 ms
      window: 64 MB
run: {{duration: {MS} ms}}
"""
_LARGE_TRANSPORT = """
    transport:
      kind: tcp
      congestion_control: {kind: dctcp}
      segment: 4096 B
      initial_window: 40
      timestamps: false
      min_rto: 1 ms
"""
LARGE = f"""\
weirlab: 1
name: large
network: {{kind: fat-tree, k: 16, link: {{rate: 100 Gbit/s, delay: 1 us}}}}
queues: {{all: {{at: "@switches->*", kind: drop-tail, limit: 2 MB, marking: {{k_min: 300 kB}}}}}}
traffic:
  web:
    from: host-*
    to: host-*
    pattern: {{kind: uniform}}
    source: {{kind: messages, sizes: {{kind: published, name: websearch}}, load: 50 %}}{_LARGE_TRANSPORT}
  incast:
    from: host-*
    to: host-*
    pattern: {{kind: groups, senders: 60}}
    source: {{kind: messages, sizes: {{kind: fixed, size: 500 kB}}, load: 2 %}}{_LARGE_TRANSPORT}
run: {{duration: 10 ms}}
"""
Flow = tuple[int, int, int, int]
"""Start [ps], sender, receiver, segments."""


def flows(seed: int) -> list[Flow]:
    """Poisson arrivals at 40 % of each line rate, sizes of a bounded Pareto distribution."""
    chance = random.Random(seed)
    most = float(BINS[-1][1])

    def size() -> int:
        return int((1 - chance.random() * (1 - most**-SHAPE)) ** (-1 / SHAPE))

    # Of the whole number of segments: the sum of P(size >= n).
    mean = sum((n**-SHAPE - most**-SHAPE) / (1 - most**-SHAPE) for n in range(1, BINS[-1][1]))
    gap_s = mean * FRAME * 8 / (LOAD * GBPS * 1e9)
    found: list[Flow] = []
    for sender in range(HOSTS):
        start = chance.expovariate(1 / gap_s)
        while start < 0.6e-3 * MS:
            receiver = chance.randrange(HOSTS - 1)
            found.append((int(start * 1e12), sender, receiver + (receiver >= sender), size()))
            start += chance.expovariate(1 / gap_s)
    return sorted(found)


@dataclass(frozen=True)
class Ran:
    """A table of flows that was run."""

    taken_us: list[float]
    """Completion time of each message."""
    cpu_s: float
    """Of the whole process."""


Runner = Callable[[Sequence[Flow], int], Ran]
"""Runs a table with a seed."""


def write(directory: Path, table: Sequence[Flow]) -> None:
    """The scenario of a table, `peer.yaml`."""
    rows = "".join(f"{start},host-{a},host-{b},{SEGMENT * n}\n" for start, a, b, n in table)
    (directory / "flows.csv").write_text("start_ps,from,to,bytes\n" + rows)
    (directory / "peer.yaml").write_text(TEXT)


def ours(table: Sequence[Flow], seed: int) -> Ran:
    """In a process of the engine alone, which reads the resolved scenario as ns-3 reads its flows."""
    from weirlab.scenario import load

    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        write(Path(directory), table)
        spec = load(Path(directory, "peer.yaml")).resolve().spec_json
    return _ran([str(EXAMPLES / "workload"), "spec", "--seed", str(seed)], spec, table)


def salt(seed: int) -> int:
    """Of the hashes by which switches choose: the first word of the stream `messages/ways`."""
    most = 2**64 - 1

    def mix(z: int) -> int:
        z = (z + 0x9E3779B97F4A7C15) & most
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & most
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & most
        return z ^ z >> 31

    name, state = b"messages/ways", mix(seed)
    for at in range(0, len(name), 8):
        state = mix(state ^ int.from_bytes(name[at : at + 8], "little"))
    state = mix(state ^ len(name))
    first, last = mix(state), mix((state + 3 * 0x9E3779B97F4A7C15) & most)
    both = (first + last) & most
    return ((both << 23 | both >> 41) + first) & most


def theirs(table: Sequence[Flow], seed: int, program: Path = PEER_MESSAGES, *options: str) -> Ran:
    """The same in ns-3."""
    rows = "".join(f"{start} {a} {b} {n}\n" for start, a, b, n in table)
    fixed = [f"--gbps={GBPS}", f"--ms={MS}", f"--mark={MARK}", f"--limit={LIMIT}", f"--salt={salt(seed)}"]
    return _ran([str(program), *fixed, *options], rows, table)


def _ran(command: list[str], given: str, table: Sequence[Flow]) -> Ran:
    ended = run_to_end(command, given=given)
    if ended.exit_code != 0:
        raise BenchError(f"'{' '.join(command)}' ended with {ended.exit_code}\n{ended.complaints}")
    delivered: list[int] = json.loads(ended.printed)["delivered_ps"]
    if not all(0 < at < 1e9 * MS for at in delivered):
        raise BenchError(f"'{' '.join(command)}' did not deliver all messages")
    return Ran([(at - start) / 1e6 for at, (start, *_) in zip(delivered, table, strict=True)], ended.cpu_s)


def mean_us(ran: Ran, table: Sequence[Flow], least: int, most: int) -> float:
    """Of the messages with so many segments."""
    return statistics.fmean(t for t, (*_, n) in zip(ran.taken_us, table, strict=True) if least <= n <= most)


Logs = dict[tuple[int, int], list[float]]
"""By the bins of sizes, of each table: the logarithm of the mean completion time here over that of ns-3."""


def compare(tables: int, here: Runner, there: Runner) -> tuple[Logs, list[float]]:
    """What both sides make of tables of flows, and how many times as much CPU time ns-3 takes, of each."""
    logs: Logs = {bin_: [] for bin_ in BINS}
    speeds = []
    for seed in range(1, tables + 1):
        table = flows(seed)
        a, b = here(table, seed), there(table, seed)
        speeds.append(b.cpu_s / a.cpu_s)
        for bin_, found in logs.items():
            found.append(math.log(mean_us(a, table, *bin_) / mean_us(b, table, *bin_)))
    return logs, speeds


def interval(logs: Sequence[float]) -> tuple[float, float]:
    """Of a ratio, from its logarithms: the estimate, and half of the 95 % interval."""
    from weirlab.stats.distributions import t_quantile

    ratio = math.exp(statistics.fmean(logs))
    return ratio, ratio * t_quantile(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))


@dataclass(frozen=True)
class Large:
    """A run of the large network."""

    cpu_s: float
    peak_rss_bytes: int
    frame_bytes: int
    """Sent by all links together."""


def large(ms: float) -> Large:
    """The whole command, with its tables written to disk."""
    import polars as pl

    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        scenario, out = Path(directory, "large.yaml"), Path(directory, "out")
        scenario.write_text(LARGE)
        command = [sys.executable, "-m", "weirlab", "run", str(scenario), "--out", str(out)]
        ended = run_to_end([*command, "--set", f"run.duration={ms:g} ms"])
        if ended.exit_code != 0:
            raise BenchError(f"'{' '.join(command)}' ended with {ended.exit_code}\n{ended.complaints}")
        sent = pl.read_parquet(out / "tables" / "ports.parquet")["bytes"].to_numpy().sum()
    return Large(ended.cpu_s, ended.peak_rss_bytes, int(sent))


def against_ns3(tables: int) -> list[str]:
    """Print how both compare on so many tables; the goals that were missed."""
    logs, speeds = compare(tables, ours, theirs)
    print(f"Mean completion times over those of ns-3, 95 % intervals of {tables} tables:")
    for (least, most), found in logs.items():
        ratio, half = interval(found)
        print(f"  {least:>4} to {most:>4} segments  {ratio:.3f} +- {half:.3f}")
    speed = statistics.median(speeds)
    print(
        f"CPU time of ns-3 over ours: {speed:.0f} ({min(speeds):.0f} to {max(speeds):.0f}); goal {SPEED_GOAL}"
    )
    return [f"{speed:.0f} times as fast as ns-3, wanted {SPEED_GOAL}"] if speed < SPEED_GOAL else []


def thousand_hosts(lengths_ms: Sequence[float]) -> list[str]:
    """Print what runs of such lengths cost; the goals that were missed."""
    missed, per_byte = [], []
    for ms in lengths_ms:
        run = large(ms)
        per_byte.append(run.cpu_s / run.frame_bytes)
        print(
            f"1024 hosts, {ms:g} ms: {run.cpu_s:.1f} s of CPU time, {run.peak_rss_bytes / 1e6:.0f} MB, "
            f"{run.frame_bytes / 1e9:.1f} GB over links, {per_byte[-1] * 1e9:.2f} s a GB"
        )
        if ms <= LARGE_MS[-1] and run.cpu_s > LARGE_CPU_S:
            missed.append(f"1024 hosts, {ms:g} ms: {run.cpu_s:.1f} s, wanted {LARGE_CPU_S} s")
        if run.peak_rss_bytes > LARGE_BYTES:
            missed.append(f"1024 hosts, {ms:g} ms: {run.peak_rss_bytes / 1e6:.0f} MB, wanted 1000 MB")
    if len(per_byte) > 1 and (bend := per_byte[-1] / per_byte[-2]) > LARGE_BEND:
        missed.append(f"a byte costs {bend:.2f} times as much in the longest run, wanted {LARGE_BEND}")
    return missed


def _lengths(text: str) -> list[float]:
    """Of runs [ms], the longest last."""
    found = sorted(float(ms) for ms in text.split(",") if ms)
    if not all(0 < ms < math.inf for ms in found):
        raise ValueError
    return found


def main() -> int:
    """Run both parts, and report."""
    parser = argparse.ArgumentParser(description="Messages on fabrics: compared with ns-3, and 1024 hosts.")
    parser.add_argument("--tables", type=int, default=TABLES, help=f"of flows, for ns-3 ({TABLES}); 0: none")
    lengths = ",".join(f"{ms:g}" for ms in LARGE_MS)
    parser.add_argument(
        "--ms", default=lengths, type=_lengths, help=f"lengths of runs of 1024 hosts ({lengths}); '': none"
    )
    options = parser.parse_args()
    if options.tables < 0 or options.tables == 1:
        parser.error(f"--tables: an interval needs two tables (got {options.tables})")
    load = os.getloadavg()[0]
    try:
        build_ours()
        with_peer = options.tables > 0 and build_peer()
        missed = against_ns3(options.tables) if with_peer else []
        missed += thousand_hosts(options.ms)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    print(f"load {load:.1f} before and {os.getloadavg()[0]:.1f} after")
    if options.tables and not with_peer:
        print(HOW_TO_GET_NS3)
    for miss in missed:
        print(f"missed: {miss}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
