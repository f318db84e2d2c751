"""What a user waits for: the command from its start to its end, on ready-made scenarios.

    python benches/whole_program.py [--rounds N]

Wall times depend on what else the machine does, CPU times hardly. Exit code: 0, or 1 when `weir --help` takes
more CPU time than its goal or a command fails.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from processes import Ended, run_to_end

ROUNDS = 5
HELP_GOAL_S = 0.3
WEIR = [sys.executable, "-m", "weirlab"]
SCENARIOS = ["incast", "fat-tree-permutation", "slotted-switch", "load-and-buffer", "search-knee"]


def commands(directory: Path) -> dict[str, list[str]]:
    """What is timed; results go to new places under ``directory``."""
    timed = {"weir --help": [*WEIR, "--help"]}
    for name in SCENARIOS:
        verb = "search" if name.startswith("search-") else "run"
        timed[f"weir {verb} {name}"] = [*WEIR, verb, name, "--out", str(directory / name)]
    return timed


def main() -> int:
    """Run everything, round by round, and tell."""
    parser = argparse.ArgumentParser(description="How long the commands take, from start to end.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each command ({ROUNDS})")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("at least one round is needed")

    ended: dict[str, list[Ended]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
            for name, command in commands(Path(directory)).items():
                this = run_to_end(command)
                if this.exit_code != 0:
                    print(f"bench: '{name}' ended with {this.exit_code}\n{this.complaints}", file=sys.stderr)
                    return 1
                ended.setdefault(name, []).append(this)

    print(f"{'command':<32} {'wall [s]':>18} {'CPU [s]':>8} {'memory':>8}")
    for name, runs in ended.items():
        wall = [run.wall_s for run in runs]
        cpu = statistics.median(run.cpu_s for run in runs)
        memory = max(run.peak_rss_bytes for run in runs) / 1e6
        spread = f"{statistics.median(wall):.2f} ({min(wall):.2f}-{max(wall):.2f})"
        print(f"{name:<32} {spread:>18} {cpu:>8.2f} {memory:>5.0f} MB")
    print(f"rounds: {rounds}; median (least-most)")

    helped = min(run.cpu_s for run in ended["weir --help"])
    if helped > HELP_GOAL_S:
        print(f"missed: weir --help takes {helped:.2f} s of CPU time, wanted below {HELP_GOAL_S} s")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
