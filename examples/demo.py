"""The main job in one go: NDR and PDR of a simulated device and of a real Linux router, after a calibration
of the tester with a router whose rate is known, and a packet-level run.

Each step is a command that can be typed as it is shown; each leaves a directory with its trials or tables
and a report. The router needs Linux and the right to make network namespaces; without, the step is left out,
with the reason.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from weirlab.testbed.shaped import known_rate_fps

ROUTER = (
    "search.goals.NDR.width=5 %",
    "search.goals.PDR.width=5 %",
    "search.goals.NDR.duration_sum=5 s",
    "search.goals.PDR.duration_sum=5 s",
)
"""Wide and short: this machine's neighbours move the result by more."""
LIMIT = ("--timeout", "2 min")
"""Of trials. What is not decided then has its best estimate all the same."""

WITHIN = 0.01
"""Share by which the calibration may miss the rate that is known."""


def weir(*arguments: str) -> int:
    """Run a command, showing it; its exit code."""
    print(f"\n$ weir {shlex.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", "weirlab", *arguments], check=False).returncode


def main() -> int:
    top = Path("results") / f"demo-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    device, shaped, router, incast = (
        top / name for name in ("simulated-device", "shaped-router", "linux-router", "incast")
    )
    failed = (
        weir("search", "search-knee", "--set", "search.algorithm.kind=weir", "--out", str(device), "--report")
        != 0
    )
    assignments = [part for assignment in ROUTER for part in ("--set", assignment)]
    weir("search", "router-shaped", *LIMIT, "--out", str(shaped), "--report")
    weir("search", "router-ndr", *assignments, *LIMIT, "--out", str(router), "--report")
    failed |= weir("run", "incast", "--out", str(incast), "--report") != 0

    print("\nIn short")
    print("  NDR: the highest load without a lost frame; PDR: with at most 0.5 % lost; about: the load that")
    print("  half of all trials pass, with its 95 % interval, which also a busy machine has.")
    summary("simulated device, 64 B, both directions", device)
    if (shaped / "result.json").exists():
        calibration(shaped)
    if (router / "result.json").exists():
        summary("Linux router of this machine, 64 B", router)
        forwarding(router)
    else:
        print("  Linux router of this machine: not measured, see the message above and `weir doctor`")
    for place in (device, shaped, router, incast):
        if (place / "report.html").exists():
            print(f"  report: {place / 'report.html'}")
    return int(failed)


def summary(what: str, place: Path) -> None:
    """Print the rates that a search found."""
    result = json.loads((place / "result.json").read_text(encoding="utf-8"))
    print(f"  {what}: {', '.join(rate(goal) for goal in result['goals'])}")


def forwarding(place: Path) -> None:
    """Print what a frame cost the router, and its inverse, where that is known."""
    cost = json.loads((place / "result.json").read_text(encoding="utf-8"))["forwarding"]
    if cost is not None:
        print(
            f"  its CPU time: {1e6 * cost['cpu_s_per_frame']:.3g} us for each frame +- "
            f"{100 * cost['relative_error']:.2g} %: one CPU would forward "
            f"{cost['capacity_fps'] / 1e6:.3g} Mframe/s"
        )


def rate(goal: dict[str, Any]) -> str:
    """A goal's rate where it is regular; else the best estimate, and why there is no more."""
    lower, half = goal["lower"], goal["half"]
    if goal["regular"]:
        return f"{goal['name']} {lower['load_fps'] / 1e6:.4g} Mframe/s"
    why = f"no {goal['name']}: {', '.join(goal['irregularities'])}"
    if half is None:
        return f"{goal['name']} not found ({why})"
    return f"{estimate(half)} ({why})"


def estimate(half: dict[str, Any]) -> str:
    """The load that half of the trials pass, with its interval; where that is too wide, its ends."""
    if half["is_usable"]:
        return f"about {half['load_fps'] / 1e6:.3g} Mframe/s +- {100 * half['relative_error']:.2g} %"
    low, high = ("?" if end is None else f"{end / 1e6:.3g}" for end in (half["low_fps"], half["high_fps"]))
    return f"between {low} and {high} Mframe/s, too wide to use"


def calibration(place: Path) -> None:
    """Say how well the tester found a rate that is known."""
    (goal,) = json.loads((place / "result.json").read_text(encoding="utf-8"))["goals"]
    half = goal["half"]
    found = goal["lower"] or (half if half is not None and half["is_usable"] else None)
    known = known_rate_fps(64)
    if found is None:
        print(f"  calibration, a router of {known / 1e3:.4g} kframe/s: not found ({goal['remark']})")
        return
    off = found["load_fps"] / known - 1.0
    verdict = "right" if abs(off) <= WITHIN else "do not believe what follows"
    print(
        f"  calibration, a router of {known / 1e3:.4g} kframe/s: found {found['load_fps'] / 1e3:.4g}, "
        f"{100 * off:+.2g} %: {verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
