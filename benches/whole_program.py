"""What a user waits for: commands from their start to their end, on ready-made scenarios.

    python benches/whole_program.py [--rounds N]

Modules are compiled once, as an installation from a wheel has them, in a round that does not count.
Wall times depend on what else the machine does, CPU times less. Where ns-3 is there, its whole process on
`w1`, which `weir run incast` simulates, too, is timed for comparison. Exit code: 0, or 1 when the least CPU
time of a command, of a point of a study or of the notes on 2048 hosts is above its goal, or a command fails.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from compare import PEER, build_peer
from processes import Ended, run_to_end

ROUNDS = 10
WEIR = [sys.executable, "-m", "weirlab"]
SCENARIOS = ["incast", "fat-tree-permutation", "slotted-switch", "load-and-buffer", "search-knee"]
COMPLETION = "weir search s<Tab>"
NOTES, POINT = "notes on 2048 hosts", "point of a study"
NS3 = "ns-3, w1"
GOALS_S = {
    "weir --help": 0.12,
    COMPLETION: 0.15,
    "weir check incast": 0.5,
    "weir run incast": 0.6,
    NOTES: 1.0,
    POINT: 0.003,
}
"""Most CPU time: of a whole process; of notes without what comes before them, and of points without their
simulation."""

_NOTES = """
import time
from weirlab.analysis.notes import notes_of
from weirlab.scenario import load
network = {"children": ["16", "16", "8"], "parents": ["1", "16", "16"]}
scenario = load("zrl-128-3", {f"network.{field}": value for field, value in network.items()})
scenario.resolve()
begun = time.process_time()
notes_of(scenario)
print(time.process_time() - begun)
"""
_POINT = """
import time
from weirlab import _core
from weirlab.scenario import loads
from weirlab.studies import run_study
TEXT = '''weirlab: 1
name: points
network: {{kind: star, hosts: 5, link: {{rate: 10 Gbit/s, delay: 0.5 us}}}}
traffic:
  load: {{from: 'host-[0-3]', to: host-4, source: {{kind: poisson, load: 1 %, frame_size: 1500 B}}}}
run: {{duration: 100 us}}
measure: {{loss: {{kind: loss-ratio, of: load}}}}
study: {{factors: {{traffic.load.source.load: [{}]}}}}
'''
study = loads(TEXT.format(", ".join(f"{1 + i / 10:.1f} %" for i in range(200))))
run_study(loads(TEXT.format("1 %, 2 %")), threads=1)
simulate, simulated_s = _core.simulate, []
def timed(*args):
    begun = time.process_time()
    tables = simulate(*args)
    simulated_s.append(time.process_time() - begun)
    return tables
_core.simulate = timed
begun = time.process_time()
run_study(study, threads=1)
assert len(simulated_s) == 200
print((time.process_time() - begun - sum(simulated_s)) / 200)
"""
_COMPLETE = """
import os
os.environ |= {"_WEIR_COMPLETE": "complete_bash", "COMP_WORDS": "weir search s", "COMP_CWORD": "2"}
from weirlab.cli import main
main()
"""


def commands(directory: Path) -> dict[str, list[str]]:
    """What is timed; results go to new places under ``directory``."""
    timed = {
        "weir --help": [*WEIR, "--help"],
        COMPLETION: [sys.executable, "-c", _COMPLETE],
        "weir check incast": [*WEIR, "check", "incast"],
    }
    for name in SCENARIOS:
        verb = "search" if name.startswith("search-") else "run"
        timed[f"weir {verb} {name}"] = [*WEIR, verb, name, "--out", str(directory / name)]
    timed |= {NOTES: [sys.executable, "-c", _NOTES], POINT: [sys.executable, "-c", _POINT]}
    return timed | ({NS3: [str(PEER), "w1"]} if build_peer() else {})


def one_round(compiled: Path) -> Iterator[tuple[str, Ended]]:
    """Every command once; Python keeps compiled modules under ``compiled``, whatever the caller has set."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        for name, command in commands(Path(directory)).items():
            yield name, run_to_end(command, environment)


def cost_s(name: str, runs: Sequence[Ended]) -> list[float]:
    """CPU times: of the process, or what it prints of a part of it."""
    return [float(run.printed) if name in (NOTES, POINT) else run.cpu_s for run in runs]


def main() -> int:
    """Run everything, round by round, and report."""
    parser = argparse.ArgumentParser(description="How long the commands take, from start to end.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each command ({ROUNDS})")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("at least one round is needed")

    ended: dict[str, list[Ended]] = {}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as compiled:
        for counts in [False, *[True] * rounds]:
            for name, this in one_round(Path(compiled)):
                if this.exit_code != 0:
                    print(f"bench: '{name}' ended with {this.exit_code}\n{this.complaints}", file=sys.stderr)
                    return 1
                if counts:
                    ended.setdefault(name, []).append(this)

    print(f"{'command':<32} {'wall [s]':>18} {'CPU, least [s]':>14} {'median':>7} {'goal':>6} {'memory':>8}")
    missed = []
    for name, runs in ended.items():
        wall, cpu = [run.wall_s for run in runs], cost_s(name, runs)
        goal = GOALS_S.get(name)
        memory = max(run.peak_rss_bytes for run in runs) / 1e6
        spread = f"{statistics.median(wall):.2f} ({min(wall):.2f}-{max(wall):.2f})"
        wanted = "" if goal is None else f"{goal:g}"
        times = f"{min(cpu):>14.4f} {statistics.median(cpu):>7.4f}"
        print(f"{name:<32} {spread:>18} {times} {wanted:>6} {memory:>5.0f} MB")
        if goal is not None and min(cpu) > goal:
            missed.append(f"missed: {name} takes {min(cpu):.4f} s of CPU time, at most {goal:g} s is wanted")
    print(f"rounds: {rounds}; wall: median (least-most)")
    if NS3 in ended:
        ratio = min(cost_s("weir run incast", ended["weir run incast"])) / min(cost_s(NS3, ended[NS3]))
        print(f"weir run incast takes {ratio:.2f} times the CPU time of the whole ns-3 process on w1")
    print("\n".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
