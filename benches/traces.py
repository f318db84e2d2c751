"""Packets per CPU second while a capture is read: `weirlab.traces`, `weir trace`, and tshark beside them.

    python benches/traces.py [--rounds N]

The capture is that of a simulated run, so that it is the same everywhere: eight TCP connections and UDP at a
bottleneck, both directions, a million frames of which 96 B are kept. The goal is for the reading:
the analysis of all flows and the packets of the largest, without the start of Python and without tables on
disk. Exit code: 0,
or 1 when the goal is missed, a frame is missing, or a command fails.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from processes import Ended, run_to_end

import weirlab
from weirlab.traces import read_trace

ROUNDS = 3
GOAL_PER_S = 1_000_000
FRAMES = 1_000_000
WEIR = [sys.executable, "-m", "weirlab"]
SCENARIO = f"""\
weirlab: 1
name: capture
extends: {Path(weirlab.__file__).parent / "scenarios" / "tcp-dumbbell.yaml"}
record:
  wire: {{frames: [left->right, right->left], as: pcapng}}
"""


def end(command: list[str]) -> Ended:
    """Run a command that must not fail."""
    ended = run_to_end(command)
    if ended.exit_code != 0:
        raise SystemExit(f"bench: '{' '.join(command)}' ended with {ended.exit_code}\n{ended.complaints}")
    return ended


def read(capture: Path) -> float:
    """CPU seconds that reading takes."""
    before = time.process_time()
    trace = read_trace(capture)
    took = time.process_time() - before
    packets = int(trace.flows().get_column("packets").sum())
    if packets != FRAMES:
        raise SystemExit(f"bench: {packets} packets were found in {FRAMES} frames")
    return took


def main() -> int:
    """Make a capture, read it, tell."""
    parser = argparse.ArgumentParser(description="Packets per CPU second while a capture is read.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"readings by each program ({ROUNDS})")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("at least one round is needed")
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        directory = Path(name)
        scenario = directory / "capture.yaml"
        scenario.write_text(SCENARIO)
        end([*WEIR, "run", str(scenario), "--out", str(directory / "run")])
        capture = directory / "run" / "wire-0.pcapng"
        took: dict[str, list[float]] = {"read_trace": [], "weir trace": []}
        if shutil.which("tshark"):
            took["tshark -q -z conv,tcp"] = []
        for i in range(rounds):
            took["read_trace"].append(read(capture))
            whole = [*WEIR, "trace", str(capture), "--out", str(directory / f"trace-{i}")]
            took["weir trace"].append(end(whole).cpu_s)
            if "tshark -q -z conv,tcp" in took:
                took["tshark -q -z conv,tcp"].append(
                    end(["tshark", "-r", str(capture), "-q", "-z", "conv,tcp"]).cpu_s
                )
    print(f"{'':<24} {'CPU [s]':>20} {'Mpacket/s':>10}")
    for what, seconds in took.items():
        middle = statistics.median(seconds)
        spread = f"{middle:.2f} ({min(seconds):.2f}-{max(seconds):.2f})"
        print(f"{what:<24} {spread:>20} {FRAMES / middle / 1e6:>10.2f}")
    print(f"{FRAMES} packets; rounds: {rounds}; median (least-most)")
    rate = FRAMES / statistics.median(took["read_trace"])
    if rate < GOAL_PER_S:
        print(f"missed: {rate / 1e6:.2f} million packets per CPU second, wanted {GOAL_PER_S / 1e6:g} million")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
