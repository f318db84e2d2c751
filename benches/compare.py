"""Packet-hops per CPU second: Weirlab beside ns-3, same workloads, same machine, same minutes.

    python benches/compare.py [--quick] [--rounds N] [--only w1] [--json results/bench.json]

Both programs run alternately; every pair gives a ratio, and the median of the ratios is held against the
goal. So a figure is always one of two programs on the same machine in the same minute: absolute speeds move
by tens of per cent with what else the machine does. The slotted engine is held against ns-3 on `w4`, which is
the same switch under the same load. Compared is the CPU time of the whole process as the kernel counts it,
start and set-up included. ns-3 runs as it comes, which the goals were set against, and tuned, with the
fastest of its schedulers. The counts of both sides must be exactly right, or the comparison fails; of TCP
(w2), which every byte of a header shifts, ours must be exactly right, and those of ns-3 near them. Exit code:
0 every goal met, 1 a goal missed or a count wrong, 2 nothing could be measured.

Without ns-3 (package libns3-dev) only Weirlab runs, and no ratio is judged. See benches/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processes import run_to_end

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples"
PEER = ROOT / "build" / "peers" / "weir-bench-ns3"
PEER_TCP = PEER.with_name("weir-bench-ns3-tcp")
PEER_MESSAGES = PEER.with_name("weir-peer-ns3-messages")
ROUNDS = 5
MEMORY_GOAL_BYTES = 64_000_000
SCHEDULERS = {"as it comes": "Map", "tuned": "PriorityQueue"}
"""Of ns-3."""
PROBED_MEMORY_GOAL_BYTES = 96_000_000
"""With records, which are results and fill memory with the length of a run."""
PROBES_GOALS = {100: 1.3, 10: 2.0}
"""How many times longer a run may take in which every port is recorded in such intervals [us]. 100 us is the
finest of ready-made scenarios; 10 us is a row for every few frames."""
HOW_TO_GET_NS3 = "No ns-3 to compare with: 'apt-get install libns3-dev make' (Debian, Ubuntu) brings it."


@dataclass(frozen=True)
class Counts:
    """What one run of a workload must give, to the frame."""

    generated: int
    delivered: int
    dropped: int
    packet_hops: int


@dataclass(frozen=True)
class Near:
    """How far the counts of TCP on ns-3 may lie from ours: shares of them."""

    packet_hops: float
    delivered_bytes: float
    """Of ours as they would be with the frames of ns-3."""
    frame_bytes: tuple[int, int]
    """That carry a full segment on a link, ours and those of ns-3."""


@dataclass(frozen=True)
class Workload:
    """One row of the comparison."""

    name: str
    arguments: list[str]
    repeats: int
    """Runs inside one process, as many on either side, so that the start of the process weighs little."""
    goal: float
    """Least ratio to ns-3 as it comes."""
    ours: Counts
    peer: Counts | Near
    """Differs from ``ours`` where ns-3 breaks ties the other way round: arrival before end of service."""
    program: str = "workload"
    """Our example that runs it."""
    peer_arguments: list[str] | None = None
    """Where they are not the same as ours."""
    probes: bool = True
    """Whether it also runs with every port recorded."""
    delivered_bytes: int | None = None
    """By all connections together; None: there are none."""
    most_rounds: int | None = None
    """ns-3 takes most of a minute for a round of TCP."""


_W1 = Counts(generated=162_614, delivered=83_331, dropped=79_180, packet_hops=245_943)
_W4 = Counts(generated=1_062_448, delivered=1_061_790, dropped=0, packet_hops=2_123_938)
WORKLOADS = [
    Workload("w1", ["w1"], repeats=12, goal=18, ours=_W1, peer=_W1),
    Workload(
        "w3-8",
        ["w3", "--k", "8"],
        repeats=4,
        goal=20,
        ours=Counts(generated=170_766, delivered=102_064, dropped=61_597, packet_hops=712_643),
        peer=Counts(generated=170_766, delivered=102_258, dropped=61_602, packet_hops=713_029),
    ),
    Workload(
        "w3-16",
        ["w3", "--k", "16"],
        repeats=1,
        goal=30,
        ours=Counts(generated=1_365_007, delivered=798_640, dropped=510_232, packet_hops=5_547_882),
        peer=Counts(generated=1_365_007, delivered=799_409, dropped=510_255, packet_hops=5_549_416),
    ),
    Workload("w4", ["w4"], repeats=2, goal=18, ours=_W4, peer=_W4),
    Workload(
        "w2",
        ["w2"],
        repeats=10,
        goal=50,
        ours=Counts(generated=1_200_587, delivered=1_194_393, dropped=3_329, packet_hops=3_589_373),
        peer=Near(packet_hops=0.02, delivered_bytes=0.01, frame_bytes=(1518, 1502)),
        delivered_bytes=1_068_237_384,
        most_rounds=1,
        probes=False,
    ),
    Workload(
        "slotted",
        ["--hotspot", "none", "--slots", "400000"],
        repeats=1,
        goal=120,
        ours=Counts(generated=10_988_409, delivered=10_988_282, dropped=0, packet_hops=21_976_665),
        peer=_W4,
        program="hotspot",
        peer_arguments=["w4"],
        probes=False,
    ),
    Workload(
        "slotted-bcn",
        ["--hotspot", "og", "--ps", "0.03", "--gd", "0.002", "--slots", "400000"],
        repeats=1,
        goal=60,
        ours=Counts(generated=10_988_409, delivered=10_729_033, dropped=0, packet_hops=21_458_420),
        peer=_W4,
        program="hotspot",
        peer_arguments=["w4"],
        probes=False,
    ),
]


class BenchError(Exception):
    """The comparison cannot go on."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Cost:
    """What one process has cost."""

    packet_hops: int
    """Of all repeats."""
    cpu_s: float
    peak_rss_bytes: int
    delivered_bytes: int
    """By connections, of one repeat."""

    @property
    def hops_per_s(self) -> float:
        return self.packet_hops / self.cpu_s


@dataclass
class Row:
    """The costs of one workload, round by round."""

    workload: Workload
    ours: list[Cost] = field(default_factory=list)
    probed: dict[int, list[Cost]] = field(default_factory=dict)
    """By the interval in us."""
    peer: dict[str, list[Cost]] = field(default_factory=dict)
    """By the keys of SCHEDULERS; empty without ns-3."""

    def ratios(self, variant: str) -> list[float]:
        """How many times more packet-hops per CPU second than a variant of ns-3, for each pair of runs."""
        pairs = zip(self.ours, self.peer[variant], strict=True)
        return [ours.hops_per_s / peer.hops_per_s for ours, peer in pairs]

    def slowdowns(self, probe_us: int) -> list[float]:
        """How many times longer a run takes with a record of every port, for each pair of runs."""
        return [
            probed.cpu_s / ours.cpu_s for probed, ours in zip(self.probed[probe_us], self.ours, strict=True)
        ]

    @property
    def ratio_missed(self) -> bool:
        return bool(self.peer) and statistics.median(self.ratios("as it comes")) < self.workload.goal

    @property
    def peak_rss_bytes(self) -> int:
        """Of runs without probes."""
        return max(cost.peak_rss_bytes for cost in self.ours)

    def probe_misses(self, probe_us: int) -> list[str]:
        """What a run with records of every port missed."""
        found = []
        slowdown, goal = statistics.median(self.slowdowns(probe_us)), PROBES_GOALS[probe_us]
        if slowdown > goal:
            found.append(f"{slowdown:.2f} x slower recorded each {probe_us} us, wanted at most {goal} x")
        memory = max(cost.peak_rss_bytes for cost in self.probed[probe_us])
        if memory >= PROBED_MEMORY_GOAL_BYTES:
            found.append(
                f"{memory / 1e6:.0f} MB of memory recorded each {probe_us} us, wanted below "
                f"{PROBED_MEMORY_GOAL_BYTES / 1e6:.0f} MB"
            )
        return found

    @property
    def misses(self) -> list[str]:
        """The goals that were not met, as sentences."""
        name, found = self.workload.name, []
        if self.ratio_missed:
            ratio = statistics.median(self.ratios("as it comes"))
            found.append(f"{name}: {ratio:.1f} x ns-3, wanted {self.workload.goal:g} x")
        for probe_us in self.probed:
            found += [f"{name}: {miss}" for miss in self.probe_misses(probe_us)]
        if self.peak_rss_bytes >= MEMORY_GOAL_BYTES:
            found.append(f"{name}: {self.peak_rss_bytes / 1e6:.0f} MB of memory, wanted below 64 MB")
        return found


def build_ours() -> None:
    """Build the examples that run our side."""
    if shutil.which("cargo") is None:
        raise BenchError(
            "cargo is not on the PATH: install a Rust toolchain (https://rustup.rs)", exit_code=2
        )
    command = ["cargo", "build", "--release", "--quiet", "-p", "weir-sim", "--examples"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise BenchError("our side does not build", exit_code=2)


def build_peer() -> bool:
    """Build the ns-3 side. False when ns-3 is not installed."""
    make = ["make", "--silent", "-C", str(ROOT / "benches" / "peers"), f"BUILD={PEER.parent}"]
    present = [*make, "present"]
    if shutil.which("make") is None or subprocess.run(present, stderr=subprocess.DEVNULL).returncode != 0:
        return False
    if subprocess.run([*make, str(PEER), str(PEER_TCP), str(PEER_MESSAGES)], check=False).returncode != 0:
        raise BenchError("ns-3 is installed, but its side does not build", exit_code=2)
    return True


def run(command: list[str], repeats: int) -> tuple[Cost, dict[str, Any]]:
    """Run one process to its end: what it cost, and what it told."""
    ended = run_to_end(command)
    if ended.exit_code != 0:
        raise BenchError(f"'{' '.join(command)}' ended with {ended.exit_code}\n{ended.complaints}")
    told = json.loads(ended.printed)
    cost = Cost(
        packet_hops=int(told["packet_hops"]) * repeats,
        cpu_s=ended.cpu_s,
        peak_rss_bytes=int(told.get("peak_rss_bytes") or ended.peak_rss_bytes),
        delivered_bytes=sum(told.get("delivered_bytes", [])),
    )
    return cost, told


def measure(workload: Workload, *options: str) -> Cost:
    """Run our side to its end and check what it counted."""
    command = [str(EXAMPLES / workload.program), *workload.arguments, *options]
    cost = counted(command, workload.repeats, workload.ours)
    if workload.delivered_bytes not in (None, cost.delivered_bytes):
        raise BenchError(
            f"'{' '.join(command)}' delivered {cost.delivered_bytes} B, right is {workload.delivered_bytes} B"
        )
    return cost


def measure_peer(workload: Workload, expected: Counts, scheduler: str) -> Cost:
    """Run ns-3 to its end and check what it counted."""
    command = [str(PEER), *(workload.peer_arguments or workload.arguments), "--scheduler", scheduler]
    return counted(command, workload.repeats, expected)


def counted(command: list[str], repeats: int, expected: Counts) -> Cost:
    """Run one process to its end and check what it counted."""
    if repeats > 1:
        command = [*command, "--repeat", str(repeats)]
    cost, told = run(command, repeats)
    counts = Counts(**{name: int(told[name]) for name in Counts.__dataclass_fields__})
    if counts != expected:
        raise BenchError(f"'{' '.join(command)}' counted {counts}, right is {expected}")
    return cost


def measure_tcp(workload: Workload, near: Near) -> Cost:
    """Run ns-3 with TCP once, and check that what it counted is near to what is right for us."""
    command = [str(PEER_TCP)]
    cost, _ = run(command, 1)
    ours, theirs = near.frame_bytes
    assert workload.delivered_bytes is not None
    for what, counted, right, share in (
        ("packet-hops", cost.packet_hops, workload.ours.packet_hops, near.packet_hops),
        ("bytes", cost.delivered_bytes, workload.delivered_bytes * ours / theirs, near.delivered_bytes),
    ):
        if abs(counted / right - 1) > share:
            raise BenchError(
                f"'{command[0]}' counted {counted} {what}, within {share:.0%} of {right:.0f} is right"
            )
    return cost


def compare(workloads: list[Workload], *, rounds: int, with_peer: bool) -> list[Row]:
    """Run every workload on both sides, alternately."""
    rows = [Row(workload) for workload in workloads]
    variants = SCHEDULERS if with_peer else {}
    total = rounds * len(rows)
    for step in range(total):
        row = rows[step % len(rows)]
        work = row.workload
        if work.most_rounds is not None and step // len(rows) >= work.most_rounds:
            continue
        if sys.stderr.isatty():
            print(f"\r{step + 1}/{total} {work.name:<10}", end="", file=sys.stderr, flush=True)
        row.ours.append(measure(work))
        if isinstance(work.peer, Near):
            if with_peer:
                row.peer["as it comes"] = [measure_tcp(work, work.peer)]
            continue
        for probe_us in PROBES_GOALS if work.probes else ():
            cost = measure(work, "--probe-us", str(probe_us))
            row.probed.setdefault(probe_us, []).append(cost)
        for variant, scheduler in variants.items():
            row.peer.setdefault(variant, []).append(measure_peer(work, work.peer, scheduler))
    if sys.stderr.isatty():
        print("\r" + " " * 20 + "\r", end="", file=sys.stderr)
    return rows


def ns3_version() -> str:
    """The version of ns-3 that the peer is linked with."""
    linked = subprocess.run(["ldd", str(PEER)], check=True, capture_output=True, text=True).stdout
    found = re.search(r"libns3(?:\.\d+)?-core(?:-\w+)?\.so\.(\d+)", linked)
    return f"3.{found[1]}" if found else "of unknown version"


def machine() -> dict[str, object]:
    """Where this was measured."""
    cpu = ""
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        cpu = found[1] if found else ""
    return {"cpu": cpu or platform.machine(), "cpus": os.cpu_count(), "kernel": platform.release()}


def report(rows: list[Row], *, peer: str | None) -> str:
    """All results as one JSON document."""
    return json.dumps(
        {
            "machine": machine(),
            "peer": peer,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "workloads": [
                {
                    "name": row.workload.name,
                    "repeats": row.workload.repeats,
                    "goal": row.workload.goal,
                    "hops_per_s": [round(cost.hops_per_s) for cost in row.ours],
                    "peers": {
                        variant: {
                            "scheduler": SCHEDULERS[variant],
                            "hops_per_s": [round(cost.hops_per_s) for cost in costs],
                            "ratio": [round(ratio, 3) for ratio in row.ratios(variant)],
                        }
                        for variant, costs in row.peer.items()
                    },
                    "slowdown_by_probes": {
                        f"{probe_us} us": [round(slowdown, 3) for slowdown in row.slowdowns(probe_us)]
                        for probe_us in row.probed
                    },
                    "counts": dataclasses.asdict(row.workload.ours),
                    "peak_rss_bytes": row.peak_rss_bytes,
                    "misses": row.misses,
                }
                for row in rows
            ],
        },
        indent=2,
    )


def counts_table(rows: list[Row]) -> Any:
    """What each side counted in one run: exactly this, or the comparison would have failed."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(title="Counted in each run", box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    names = list(Counts.__dataclass_fields__)
    for heading in ["", *(name.replace("_", "-") for name in names)]:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in rows:
        table.add_row(row.workload.name, *(f"{getattr(row.workload.ours, name):,}" for name in names))
        peer = row.workload.peer
        if row.peer and isinstance(peer, Near):
            hops = row.peer["as it comes"][0].packet_hops
            table.add_row("  ns-3", "", "", "", f"{hops:,} (within {peer.packet_hops:.0%})")
        elif row.peer and isinstance(peer, Counts):
            table.add_row("  ns-3", *(f"{getattr(peer, name):,}" for name in names))
    return table


def show(rows: list[Row], *, peer: str | None, load: tuple[float, float]) -> None:
    """Print the table."""
    # Here and not above: what this process occupies counts as the memory of the processes that it starts.
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    def rate(costs: list[Cost], digits: int) -> str:
        return f"{statistics.median(cost.hops_per_s for cost in costs) / 1e6:.{digits}f}"

    def spread(values: list[float], digits: int) -> str:
        middle = statistics.median(values)
        return f"{middle:.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"

    def memory(costs: list[Cost]) -> str:
        return f"{max(cost.peak_rss_bytes for cost in costs) / 1e6:.1f} MB"

    def verdict(missed: bool) -> str:
        return "[red]missed" if missed else "[green]met"

    table = Table(
        title=f"Million packet-hops per CPU second: Weirlab{' beside ns-3 ' + peer if peer else ''}",
        caption="median (least-most); recorded: slowdown by a record of every port",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for heading in ["", "Weirlab", "ns-3", "ratio", "goal", "memory", ""]:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in rows:
        table.add_row(row.workload.name, rate(row.ours, 1), "", "", "", memory(row.ours), "")
        for variant, costs in row.peer.items():
            judged = variant == "as it comes"
            table.add_row(
                "  ns-3" if judged else f"  ns-3 {variant}",
                "",
                rate(costs, 3),
                spread(row.ratios(variant), 1),
                f">= {row.workload.goal:g}" if judged else "",
                "",
                verdict(row.ratio_missed) if judged else "",
            )
        for probe_us in row.probed:
            table.add_row(
                f"  recorded each {probe_us} us",
                rate(row.probed[probe_us], 1),
                "",
                spread(row.slowdowns(probe_us), 2),
                f"<= {PROBES_GOALS[probe_us]}",
                memory(row.probed[probe_us]),
                verdict(bool(row.probe_misses(probe_us))),
            )
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(table)
    console.print(counts_table(rows))
    facts = machine()
    console.print(
        f"{facts['cpu']}, {facts['cpus']} CPUs, load {load[0]:.2f} before and {load[1]:.2f} after; "
        f"rounds: {max(len(row.ours) for row in rows)}",
        highlight=False,
    )


def main() -> int:
    """Read the options, measure, tell."""
    parser = argparse.ArgumentParser(description="Weirlab beside ns-3: packet-hops per CPU second.")
    parser.add_argument("--quick", action="store_true", help="one round instead of several")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of runs per workload ({ROUNDS})")
    parser.add_argument("--only", choices=[work.name for work in WORKLOADS], help="one workload alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    if rounds < 1:
        parser.error("at least one round is needed")
    workloads = [work for work in WORKLOADS if options.only in (None, work.name)]
    try:
        build_ours()
        with_peer = build_peer()
        before = os.getloadavg()[0]
        rows = compare(workloads, rounds=rounds, with_peer=with_peer)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    peer = ns3_version() if with_peer else None
    show(rows, peer=peer, load=(before, os.getloadavg()[0]))
    if not with_peer:
        print(HOW_TO_GET_NS3)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(report(rows, peer=peer) + "\n")
    misses = [miss for row in rows for miss in row.misses]
    for miss in misses:
        print(f"missed: {miss}")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
