"""Cases over the emulator: Linux TCP between two namespaces of our own, captured at both ends."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from corpus.case import Case
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.path import EmulatedPath
from weirlab.testbed.path_report import PathReport
from weirlab.testbed.turns import alone_on_this_machine

_PROGRAM = str(Path(__file__).with_name("programs.py"))
_PORT = 5300
_LONGEST_S = 60.0
_RECORDED = 400_000
_SNAP = 128
_COUNTERS = (
    "TcpExtTCPTimeouts",
    "TcpExtTCPDSACKRecv",
    "TcpExtTCPSpuriousRTOs",
    "TcpExtTCPLossProbes",
    "TcpExtTCPLostRetransmit",
    "TcpRetransSegs",
    "TcpOutSegs",
    "TcpExtTCPOFOQueue",
)
_BLOCK_S = 1.2
"""tcpdump is given packets in blocks of up to a second, and takes no more once it is told to end."""
DISTURBED_S = 5e-3
"""Lateness of the emulator (99th percentile) beyond which a case is made again: the machine was in the
way."""


def made(case: Case, directory: Path) -> tuple[dict[str, Path], dict[str, Any]]:
    """The captures of a case by place, and what emulator and kernels counted."""
    assert case.hops is not None
    text = yaml.safe_dump(
        {
            "weirlab": 1,
            "name": case.name.replace("+", "-"),
            "testbed": {"kind": "netns", "hops": dict(case.hops)},
        }
    )
    plan = path_plan(loads(text))
    assert plan is not None
    with alone_on_this_machine(), EmulatedPath(plan, seed=case.seed, record=_RECORDED) as path:
        if case.facts.get("ecn"):
            for namespace in (path.near, path.far):
                namespace.inside(_ask_for_marks)
        with _captured(path, case.name, directory) as files:
            senders = _transferred(path, case)
        counters = {"sender": path.near.inside(_counters), "receiver": path.far.inside(_counters)}
        report = path.close()
    return files, {
        "senders": senders,
        "kernel": counters,
        "ways": _ways(report),
        "silent_s": _silent_s(report),
        "degraded": list(report.degraded),
    }


@contextlib.contextmanager
def _captured(path: EmulatedPath, name: str, directory: Path) -> Iterator[dict[str, Path]]:
    files, processes = {}, []
    for place, namespace, device in (("sender", path.near, "far"), ("receiver", path.far, "near")):
        files[place] = directory / f"{name}-{place}.pcap"
        words = [
            "tcpdump",
            "-i",
            device,
            "-w",
            str(files[place]),
            "-s",
            str(_SNAP),
            "-B",
            "8192",
            "-Z",
            "root",
        ]
        words += ["--time-stamp-precision=nano", "tcp"]
        processes.append(_started(namespace, words, stderr=subprocess.PIPE))
    try:
        for process in processes:
            for line in process.stderr or ():
                if "listening on" in line:
                    break
        yield files
        time.sleep(_BLOCK_S)
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _started(namespace: Namespace, words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(words, text=True, start_new_session=True, **options)

    return namespace.inside(start)


def _transferred(path: EmulatedPath, case: Case) -> list[dict[str, Any]]:
    """Run all transfers; what the kernels say of them in the end."""
    python = [sys.executable, "-S", "-E", _PROGRAM]
    began, waiting, found = time.monotonic(), [], []
    servers = []
    try:
        for place, transfer in enumerate(case.transfers):
            ends = (path.near, path.far) if not transfer.backward else (path.far, path.near)
            options = json.dumps(dict(transfer.receiver))
            servers.append(_started(ends[1], [*python, "receive", str(_PORT + place), options]))
        for place, transfer in sorted(enumerate(case.transfers), key=lambda each: each[1].start_s):
            time.sleep(max(0.0, began + transfer.start_s - time.monotonic()))
            source = path.far if transfer.backward else path.near
            address = path.near_address if transfer.backward else path.far_address
            words = [*python, "send", address, str(_PORT + place), json.dumps(dict(transfer.sender))]
            waiting.append((transfer, _started(source, words, stdout=subprocess.PIPE)))
        for transfer, process in waiting:
            try:
                said, _ = process.communicate(timeout=max(1.0, began + _LONGEST_S - time.monotonic()))
            except subprocess.TimeoutExpired:
                said = ""
            found.append({"backward": transfer.backward, **(json.loads(said) if said else {})})
    finally:
        for process in [*servers, *(process for _, process in waiting)]:
            if process.poll() is None:
                process.kill()
            process.wait()
    return found


def _ask_for_marks() -> None:
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1")


def _counters() -> dict[str, int]:
    """Counters of TCP in the namespace of the calling thread."""
    found = {}
    for file in ("/proc/thread-self/net/netstat", "/proc/thread-self/net/snmp"):
        lines = Path(file).read_text().splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            for name, value in zip(names.split()[1:], values.split()[1:], strict=True):
                found[names.split(":")[0] + name] = int(value)
    return {name: found.get(name, 0) for name in _COUNTERS}


def _ways(report: PathReport) -> dict[str, dict[str, Any]]:
    """What each direction did, and how long packets waited in its queue beyond their own transmission."""
    return {f"{way.hop} {way.direction}": {**way.counts, **_waits(way)} for way in report.lines}


def _waits(way: Any) -> dict[str, Any]:
    record = way.record
    line = json.loads(way.line)
    at, left = record["t_ps"], record["departed_ps"]
    if not len(left):
        return {}
    delay_ps = left - at[record["departed"]]
    late = way.lateness_s or {"p99": 0.0}
    quantiles = np.quantile(delay_ps - line.get("delay_ps", 0), [0.05, 0.25, 0.5, 0.75, 0.95]) / 1e12
    dropped = np.sort(at[record["dropped"]]) if len(record["dropped"]) else np.array([], dtype=at.dtype)
    lost = np.sort(at[record["lost"]]) if len(record["lost"]) else np.array([], dtype=at.dtype)
    apart_ps = max(line.get("delay_ps", 0) * 2, 20_000_000_000)
    return {
        "wait_s": [round(float(wait), 6) for wait in quantiles],
        "drop_episodes": _episodes(dropped, apart_ps),
        "loss_episodes": _episodes(lost, apart_ps),
        "late_p99_s": late["p99"],
    }


def _silent_s(report: PathReport) -> float:
    """For how long nothing arrived at the emulator from either side, in silences of a stall's length: two
    round trips and 10 ms."""
    arrivals = [way.record["t_ps"] for way in report.lines]
    delay_ps = sum(json.loads(way.line).get("delay_ps", 0) for way in report.lines)
    gaps = np.diff(np.sort(np.concatenate(arrivals).astype(np.int64)))
    return float(gaps[gaps > max(2 * delay_ps, 10_000_000_000)].sum() / 1e12)


def _episodes(times: Any, apart_ps: int) -> int:
    """Groups of losses that lie a round trip apart: each is one event for a congestion control."""
    return int((np.diff(times) > apart_ps).sum()) + 1 if len(times) else 0
