"""Make the corpus, and judge by it."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from dataclasses import asdict
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent))

from corpus import live, scoring, simulated
from corpus.case import Case, Made
from corpus.families import live_cases

_ATTEMPTS = 3


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="corpus", description="Captures of known cause, and how many are found."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="make captures; what is there already stays")
    make.add_argument("directory", type=Path)
    make.add_argument("--seed", type=int, action="append", required=True, help="may be given several times")
    make.add_argument("--only", default="*", help="names of cases, such as 'lossy-*'")
    make.add_argument("--simulated", action="store_true", help="without the emulator: needs no root")
    score = commands.add_parser("score", help="precision and recall of what was found")
    score.add_argument("directory", type=Path, nargs="+")
    score.add_argument("--only", default="*")
    score.add_argument("--peers", action="store_true", help="tshark and tcptrace on the same files, too")
    score.add_argument("--faults", action="store_true", help="show each capture that was misjudged")
    score.add_argument("--json", type=Path, help="write the figures to this file")
    words = parser.parse_args()
    if words.command == "make":
        return _make(words.directory, words.seed, words.only, simulated_only=words.simulated)
    return scoring.show(words.directory, words.only, peers=words.peers, faults=words.faults, out=words.json)


def _make(directory: Path, seeds: list[int], only: str, *, simulated_only: bool) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "counts.jsonl"
    there = {json.loads(line)["case"] for line in log.read_text().splitlines()} if log.exists() else set()
    cases: list[Case] = []
    for seed in seeds:
        cases += [*simulated.simulated_cases(seed), *(() if simulated_only else live_cases(seed))]
    cases = [case for case in cases if fnmatch.fnmatch(case.name, only) and case.name not in there]
    for number, case in enumerate(cases, 1):
        print(f"{number} of {len(cases)}: {case.name}", flush=True)
        with log.open("a") as lines:
            for made in _made(case, directory):
                lines.write(json.dumps(asdict(made)) + "\n")
    return 0


def _made(case: Case, directory: Path) -> list[Made]:
    for _ in range(_ATTEMPTS):
        files, counted = (simulated if case.hops is None else live).made(case, directory)
        late_s = max((way.get("late_p99_s", 0.0) for way in counted.get("ways", {}).values()), default=0.0)
        if late_s <= live.DISTURBED_S:
            break
        print(f"  the emulator was late by {1e3 * late_s:.1f} ms", flush=True)
    is_simulated, drawn = case.hops is None, dict(case.facts)
    return [
        Made(case.name, case.family, case.causes, place, file.name, is_simulated, drawn, counted)
        for place, file in files.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
