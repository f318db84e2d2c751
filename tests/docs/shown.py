"""How commands of the pages are run where that is not as they stand: shorter, live, or not at all, and why.

Where a page names a host of the reader's, the far end of an emulated path stands for it, or a server that the
test starts.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Way:
    """How a command is run."""

    more: str = ""
    """Options that make it shorter; KEPT is a store of all pages: what one ran is there for others."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Words that others stand for."""
    live: bool = False
    """Over real paths of this machine."""
    far: str = ""
    """What runs at the far end of the emulated path that leads to the host of the reader's."""
    codes: tuple[int, ...] = (0,)
    """Exit codes: others where the page says so, or where a search may run out of time."""
    why_not: str = ""
    """Why it is not run."""


def live(more: str = "", *, far: str = "", **instead: str) -> Way:
    return Way(more, instead, live=True, far=far)


def not_run(reason: str) -> Way:
    return Way(why_not=reason)


_TWO = "sh -c 'iperf3 -s & exec iperf3 -s -p 5202'"
_ADVISED = "--cycles 3 --for 1s --streams 1,4"
_CYCLE = (
    "--set 'campaign.cycle=[{name: loaded, run: [%s], for: 2 s}, {name: unloaded, run: [ping], for: 2 s}]'"
)
_FEW = "--set 'study={factors: {traffic.bulk.streams: [1, 2]}}'"
_ONE = "--set 'study.factors={type: {OG: {}}}'"
_TYPES = "--set 'study.factors={type: {OG: {}, IG: {hotspots.hot.kind: input-generated}}}'"
_LAB = "--searches 1 --devices knee"
_SSH = "a host of the reader's, over SSH"

SEARCH = Way("--timeout '5 s'", live=True, codes=(0, 1))

WAYS: Mapping[str, Way] = {
    # Published studies: --quick.
    "reproduce bcn": not_run("300 runs of each configuration: minutes; --quick is run"),
    "reproduce bcn --quick": Way("--store KEPT", codes=(1,)),
    "reproduce bcn --report": Way("--quick --store KEPT", codes=(1,)),
    "reproduce bulk *": not_run("minutes; tests/reproduce runs it with --quick"),
    "reproduce mdr": not_run("300 searches of each cell: minutes; --quick is run"),
    "reproduce zrl": not_run("minutes; --quick is run"),
    "reproduce NAME *": Way("--store KEPT", instead={"NAME": "mdr"}),
    "reproduce zrl --on *": Way("--quick"),
    "reproduce * --report": Way("--quick --store KEPT"),
    "reproduce * --quick": Way("--store KEPT"),
    # Studies of minutes and more: fewer points.
    "study estimators": Way(
        "--replicates 1 --set study.exclude= --set study.factors.load= --set study.factors.hosts="
    ),
    "study zrl-morris *": Way(f"{_ONE} --set study.design.trajectories=2 --store KEPT"),
    "study zrl-sobol *": Way(f"{_ONE} --set study.design.base=4 --store KEPT"),
    "study zrl-full --report": Way(
        f"{_TYPES} --set study.design.points=12 --out results/zrl-full --store KEPT"
    ),
    "study zrl-full * --report": Way(f"{_TYPES} --set study.design.points=12"),
    "study zrl-128-[23] *": Way(f"{_ONE} --replicates 1"),
    "search-lab strict.py *": Way(_LAB + " --goals 10s"),
    "search-lab *": Way(_LAB),
    # Files for clusters are written; the cluster is missing.
    "study load-and-buffer --on ssh:*": not_run(f"{_SSH}; tests/live/test_clusters.py has one"),
    # Real paths of this machine.
    "bulk 192.0.2.7": live("--for 2s", far=_TWO),
    "bulk 192.0.2.7 --way both": live("--for 2s", far=_TWO),
    "bulk 192.0.2.7 * --advise": live(f"{_ADVISED} --window 256KiB", far=_TWO),
    "bulk me@*": not_run(f"{_SSH}; tests/live/test_bulk_ssh.py has one"),
    "bulk --rate * --window * --advise": live(f"{_ADVISED} --window 256KiB"),
    "bulk --rate * --advise": live(_ADVISED),
    "bulk --rate *": live("--cycles 1 --for 2s"),
    "bulk windows-against-streams * testbed.kind=sim *": Way(),
    "bulk windows-against-streams --set campaign.cycles=*": live(f"{_CYCLE % 'bulk, ping'} {_FEW}"),
    "bulk windows-against-streams *": live(f"--cycles 1 {_CYCLE % 'bulk, ping'} {_FEW}"),
    "bulk rrul*": live(f"--cycles 1 {_CYCLE % 'up, down, ping'} --set study="),
    "bulk shared-uplink": live(f"--cycles 1 {_CYCLE % 'laptop, ping'} --set study="),
    "bulk responsiveness *": live(f"--cycles 1 {_CYCLE % 'upload, ping, requests'} --set study="),
    "bulk fill.yaml --out results/real *": live(f"--cycles 1 {_CYCLE % 'up, ping'}"),
    "emulate --delay 25ms --down *": live(),
    "emulate * --internet *": not_run("needs the Internet"),
    "emulate * flent *": not_run("needs netperf; tests/live/test_flent.py runs flent"),
    "emulate * iperf3 *": live(**{"-t 20": "-t 2"}),
    "emulate * COMMAND": live(COMMAND="true"),
    "emulate *weir path*": live(**{"weir path": "weir path --time 3s"}),
    "emulate *": live(),
    "path * --ssh *": not_run(_SSH),
    "path *": live("--time '3 s'", far="sleep 60"),
    "rapid key *": Way(),
    "rapid *": not_run("two hosts; tests/live/test_rapid.py has them"),
    "search router-ndr --view": not_run("a browser; tests/viewer"),
    "search router-sizes*": not_run("a search for each size: minutes"),
    "search router-*": SEARCH,
    "view*": not_run("serves until it is stopped; tests/viewer"),
}
"""By patterns of commands; the first that matches a command counts."""

INSTEAD = {
    "/shared/lab": "shared/lab",
    "/scratch/$USER/lab": "shared/lab",
    "s3://lab/runs": "s3://weir/lab",
}
"""Places of the reader's, and those that stand for them."""

FIRST = {
    "docs/clusters.md": [
        "study load-and-buffer --store shared/lab",
        "study load-and-buffer --store s3://weir/lab",
    ],
    "docs/scaling.md": ["study my-study.yaml --store shared/lab"],
    "docs/searching.md": ["search search-knee --out results/search-knee-20260101-120000"],
}
"""What the reader of a page has run before."""
FIRST_LIVE = {
    "docs/searching.md": [
        "search search-knee --set testbed.device.capacity='300 kframe/s' "
        "--set search.between='[10 kframe/s, 1.5 Mframe/s]' --out results/router-ndr-20260101-120000"
    ]
}
"""The same, of live tests: also where this machine is too busy for its router to have a rate."""

SHORTER_PYTHON = {"range(7)": "range(1)"}
"""In blocks of Python."""
LIVE_PYTHON = {"docs/testbed-netns.md", "docs/measurements/router.md"}
"""Pages whose Python needs real paths."""
FRAGMENTS = {
    "docs/searching.md": "from weirlab.scenario import load\nfrom weirlab.searches import build\n"
    "from weirlab.testbed import open_testbed\nscenario = load('search-knee')\n"
    "search, testbed = build(scenario), open_testbed(scenario)\n"
}
"""What stands before a fragment (`py`) of a page."""

_STRICT = """
from weirlab.searches.weir import Weir

def strict(goals, loads):
    return Weir(goals, loads, early_stop=False, guard=False, checks=0)


CONTROLLERS = {"weir-strict": strict}
"""


def give(there: Path) -> None:
    """Make what the readers of pages have: captures, files of their own, and the examples."""
    (there / "examples").symlink_to(ROOT / "examples")
    capture = ROOT / "examples/slow-transfer.pcap"
    for name in ("capture.pcap", "capture.pcapng"):
        shutil.copy(capture, there / name)
    (there / "dag.erf").write_bytes(_erf(capture.read_bytes()))
    (there / "strict.py").write_text(_STRICT, encoding="utf-8")
    scenarios = ROOT / "python/weirlab/scenarios"
    for name, source in (
        ("my-study", "load-and-buffer"),
        ("study-of-loads", "load-and-buffer"),
        ("knees", "search-knee"),
    ):
        text = (scenarios / f"{source}.yaml").read_text(encoding="utf-8")
        if name == "study-of-loads":
            text = text.replace("name: load-and-buffer", "name: loads")
        if name == "knees":
            text += "\nstudy: {replicates: 2, factors: {traffic.offered.source.frame_size: [64 B, 512 B]}}\n"
        (there / f"{name}.yaml").write_text(text, encoding="utf-8")


def _erf(pcap: bytes) -> bytes:
    """The packets of a pcap file (little endian, us, raw IP) as records of DAG cards for Ethernet."""
    records, place = [], 24
    while place < len(pcap):
        seconds, micros, kept, length = (
            int.from_bytes(pcap[place + at : place + at + 4], "little") for at in (0, 4, 8, 12)
        )
        frame = bytes(12) + b"\x08\x00" + pcap[place + 16 : place + 16 + kept]
        stamp = (seconds << 32 | (micros << 32) // 1_000_000).to_bytes(8, "little")
        head = (
            bytes([2, 4]) + (18 + len(frame)).to_bytes(2, "big") + bytes(2) + (18 + length).to_bytes(2, "big")
        )
        records.append(stamp + head + bytes(2) + frame)
        place += 16 + kept
    return b"".join(records)


def way_of(arguments: Sequence[str]) -> Way:
    """How a command is run."""
    command = " ".join(arguments)
    return next((way for pattern, way in WAYS.items() if fnmatchcase(command, pattern)), Way())
