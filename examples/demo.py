"""The main job in one go: NDR and PDR of a simulated device and of a real Linux router, and a packet-level
run.

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

ROUTER = (
    "search.goals.NDR.width=5 %",
    "search.goals.PDR.width=5 %",
    "search.goals.NDR.duration_sum=5 s",
    "search.goals.PDR.duration_sum=5 s",
)
"""Wide and short: this machine's neighbours move the result by more."""


def weir(*arguments: str) -> int:
    """Run a command, showing it; its exit code."""
    print(f"\n$ weir {shlex.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", "weirlab", *arguments], check=False).returncode


def main() -> int:
    top = Path("results") / f"demo-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    device, router, incast = top / "simulated-device", top / "linux-router", top / "incast"
    failed = (
        weir("search", "search-knee", "--set", "search.algorithm.kind=weir", "--out", str(device), "--report")
        != 0
    )
    assignments = [part for assignment in ROUTER for part in ("--set", assignment)]
    weir("search", "router-ndr", *assignments, "--out", str(router), "--report")
    failed |= weir("run", "incast", "--out", str(incast), "--report") != 0

    print("\nIn short")
    summary("simulated device, 64 B, both directions", device)
    if (router / "result.json").exists():
        summary("Linux router of this machine, 64 B", router)
    else:
        print("  Linux router of this machine: not measured, see the message above and `weir doctor`")
    for place in (device, router, incast):
        if (place / "report.html").exists():
            print(f"  report: {place / 'report.html'}")
    return int(failed)


def summary(what: str, place: Path) -> None:
    """Print the rates that a search found."""
    result = json.loads((place / "result.json").read_text(encoding="utf-8"))
    rates = []
    for goal in result["goals"]:
        lower = goal["lower"]
        found = f"{lower['load_fps'] / 1e6:.4g} Mframe/s" if lower else "not found"
        rate = f"{goal['name']} {found}"
        rates.append(rate if goal["regular"] else f"{rate} (irregular: {goal['remark']})")
    print(f"  {what}: {', '.join(rates)}")


if __name__ == "__main__":
    sys.exit(main())
