"""iperf3 and ping over a path: how they are run, and what they tell."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from weirlab.bulk.hosts import Bed, End, NamespaceEnd, kill, output
from weirlab.bulk.measurement import Measurement, Pings, Stream, Transfer
from weirlab.bulk.plan import Load, Measured, Probe
from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario.path import PathPlan
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.path import EmulatedPath

__all__ = [
    "SYSCTLS",
    "both",
    "measure",
    "own_cpus",
    "read_ping",
    "read_transfer",
    "require",
    "sysctls",
    "versions",
]

_PACKAGES = {"iperf3": "iperf3", "ping": "iputils-ping", "timeout": "coreutils"}
_START_S = 10.0
"""How long a server may take to listen."""
_GRACE_S = 30.0
"""How long a program may take beyond what it measures: connections are made one by one."""


def require() -> None:
    """Raises MissingCapability when a program is missing."""
    missing = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    if missing:
        raise MissingCapability(
            f"a campaign needs more programs; on Debian and Ubuntu: apt-get install {' '.join(missing)}"
        )


SYSCTLS = (
    "tcp_available_congestion_control",
    "tcp_congestion_control",
    "tcp_sack",
    "tcp_dsack",
    "tcp_timestamps",
    "tcp_window_scaling",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_adv_win_scale",
    "tcp_moderate_rcvbuf",
    "tcp_ecn",
    "tcp_recovery",
    "tcp_reordering",
    "tcp_early_retrans",
    "tcp_frto",
    "tcp_no_metrics_save",
    "tcp_limit_output_bytes",
    "tcp_min_tso_segs",
    "tcp_mtu_probing",
    "tcp_shrink_window",
)
"""Settings of the stack that a transfer depends on, in net.ipv4."""


def sysctls() -> dict[str, str]:
    """Settings of TCP in a namespace as measurements get one, and the bounds of buffers. Needs root."""

    def read() -> dict[str, str]:
        names = [f"ipv4.{name}" for name in SYSCTLS] + ["core.rmem_max", "core.wmem_max"]
        paths = {f"net.{name}": Path("/proc/sys/net", *name.split(".")) for name in names}
        return {name: " ".join(path.read_text().split()) for name, path in paths.items() if path.exists()}

    with contextlib.closing(Namespace()) as namespace:
        return namespace.inside(read)


def versions() -> dict[str, str]:
    """First line of what each program says of its version. Raises MissingCapability when one may not run."""
    found = {}
    for program, option in (("iperf3", "--version"), ("ping", "-V")):
        try:
            done = subprocess.run([program, option], capture_output=True, text=True, timeout=10, check=False)
        except OSError as error:
            raise MissingCapability(
                f"a campaign needs {program}, which cannot be run here: {error.strerror} (ping asks for "
                "CAP_NET_RAW, which some containers take from all that runs in them)"
            ) from error
        found[program] = (done.stdout or done.stderr).splitlines()[0].strip()
    return found


def measure(what: Measured, path: PathPlan | None, seed: int) -> Measurement:
    """Make one measurement, on a path made for it.

    Raises TestbedError when a program fails or does not end, and MissingCapability.
    """
    assert path is not None, "only real hosts have none"
    with EmulatedPath(path, seed=seed) as bed:
        began, before = time.time(), psutil.cpu_times()
        ends = Bed(NamespaceEnd(bed.near), NamespaceEnd(bed.far), bed.near_address, bed.far_address)
        transfer, pings = both(what, ends)
        seconds, after = time.time() - began, psutil.cpu_times()
        report = bed.close()
    lateness = [way.lateness_s["p99"] for way in report.ways if way.lateness_s is not None]
    busy_cpus = (_busy_s(after) - _busy_s(before)) / seconds
    return Measurement(
        transfer=transfer,
        pings=pings,
        began=began,
        seconds=seconds,
        busy_cpus=busy_cpus,
        foreign_cpus=max(0.0, busy_cpus - own_cpus(transfer, report.on_cpu_s / seconds)),
        degraded=report.degraded,
        lateness_p99_s=max(lateness, default=None),
        lost=sum(way.counts["lost"] for way in report.ways),
        dropped=sum(way.counts["dropped"] + way.counts["dropped_early"] for way in report.ways),
    )


def _busy_s(times: Any) -> float:
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def own_cpus(transfer: Transfer | None, emulator_cpus: float) -> float:
    """CPUs that the measurement itself used in the mean, as far as it is told."""
    if transfer is None:
        return emulator_cpus
    ends = transfer.sender_cpu_percent["total"] + transfer.receiver_cpu_percent["total"]
    return emulator_cpus + ends / 100


def both(what: Measured, bed: Bed) -> tuple[Transfer | None, Pings | None]:
    """The transfer and the pings at the same time."""
    pings: list[Pings] = []
    failures: list[BaseException] = []

    def ping(probe: Probe) -> None:
        try:
            pings.append(_ping(probe, what.duration_s, bed))
        except BaseException as error:
            failures.append(error)

    thread = None
    if what.probe is not None:
        thread = threading.Thread(target=ping, args=(what.probe,), name="ping", daemon=True)
        thread.start()
    try:
        transfer = None if what.load is None else _transfer(what.load, what.duration_s, bed)
    finally:
        if thread is not None:
            thread.join()
    if failures:
        raise failures[0]
    return transfer, pings[0] if pings else None


def _ends(forward: bool, bed: Bed) -> tuple[End, End, str]:
    """Where it starts, where it goes, and that end's address."""
    if forward:
        return bed.near, bed.far, bed.far_address
    return bed.far, bed.near, bed.near_address


def _ping(probe: Probe, duration_s: float, bed: Bed) -> Pings:
    start, _, address = _ends(probe.forward, bed)
    count = probe.count(duration_s)
    command = [
        *("ping", "-n", "-c", str(count), "-i", f"{probe.every_s:g}"),
        *("-s", str(probe.payload_bytes), "-W", f"{probe.timeout_s:g}", address),
    ]
    # ping ends with 1 when nothing was answered, which is a result.
    text = output(start, command, duration_s + probe.timeout_s + _GRACE_S, fine=(0, 1))
    return read_ping(text)


def _transfer(load: Load, duration_s: float, bed: Bed) -> Transfer:
    start, goal, address = _ends(load.forward, bed)
    window = [] if load.window_bytes is None else ["-w", str(load.window_bytes)]
    command = [
        *(
            "iperf3",
            "-J",
            "-c",
            address,
            "-p",
            str(bed.port),
            "-t",
            f"{duration_s:g}",
            "-P",
            str(load.streams),
        ),
        *("-C", load.congestion_control, *window),
    ]
    limit_s = duration_s + _GRACE_S
    with _server(goal, bed.port, limit_s):
        return read_transfer(output(start, command, limit_s, fine=(0, 1)))


@contextlib.contextmanager
def _server(end: End, port: int, limit_s: float) -> Iterator[None]:
    """iperf3 listens for one test."""
    command = ["iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
    process = end.started(command, limit_s + _START_S)
    drain = None
    try:
        late = threading.Timer(_START_S, kill, (process,))
        late.start()
        assert process.stdout is not None
        said: list[str] = []
        listens = any(said.append(line) or line.startswith("Server listening") for line in process.stdout)  # type: ignore[func-returns-value]
        late.cancel()
        if not listens:
            raise TestbedError(
                f"iperf3 did not begin to listen: {' '.join(said).strip()[-300:] or 'no word'}"
            )
        drain = threading.Thread(target=process.stdout.read, name="iperf3-server", daemon=True)
        drain.start()
        yield
    finally:
        kill(process)
        if drain is not None:
            drain.join()
        if process.stdout is not None:
            process.stdout.close()


def read_transfer(text: str) -> Transfer:
    """What iperf3 printed as JSON. Raises TestbedError when it tells of a failure, or nothing that can be
    read.
    """
    try:
        told = json.loads(text)
        if "error" in told:
            raise TestbedError(f"iperf3: {told['error']}")
        end = told["end"]
        cpu = end["cpu_utilization_percent"]
        parts = {"total": "total", "user": "user", "system": "system"}
        return Transfer(
            streams=tuple(
                _stream(each, [interval["streams"][place] for interval in told["intervals"]])
                for place, each in enumerate(end["streams"])
            ),
            intervals_bps=tuple(float(each["sum"]["bits_per_second"]) for each in told["intervals"]),
            sender_cpu_percent={name: float(cpu[f"host_{part}"]) for name, part in parts.items()},
            receiver_cpu_percent={name: float(cpu[f"remote_{part}"]) for name, part in parts.items()},
        )
    except (ValueError, LookupError, TypeError) as error:
        raise TestbedError(
            f"iperf3 printed what cannot be read ({error!r}): {text.strip()[-200:]}"
        ) from error


def _stream(each: Mapping[str, Any], intervals: Sequence[Mapping[str, Any]]) -> Stream:
    sender, receiver = each["sender"], each["receiver"]
    rtt_us = sender.get("mean_rtt")
    return Stream(
        received_bytes=int(receiver["bytes"]),
        seconds=float(receiver["seconds"]),
        retransmits=sender.get("retransmits"),
        mean_rtt_s=None if rtt_us is None else rtt_us / 1e6,
        max_cwnd_bytes=sender.get("max_snd_cwnd"),
        rates_bps=tuple(float(interval["bits_per_second"]) for interval in intervals),
        rtts_s=tuple(interval["rtt"] / 1e6 for interval in intervals if "rtt" in interval),
        cwnds_bytes=tuple(interval["snd_cwnd"] for interval in intervals if "snd_cwnd" in interval),
        interval_retransmits=tuple(
            interval["retransmits"] for interval in intervals if "retransmits" in interval
        ),
    )


def read_ping(text: str) -> Pings:
    """What ping printed. Raises TestbedError when there is no summary in it."""
    counts = re.search(r"^(\d+) packets transmitted, (\d+) received", text, re.MULTILINE)
    if counts is None:
        raise TestbedError(f"ping: {text.strip()[-200:] or 'no summary'}")
    # A second answer to one request is no further measurement.
    answers = re.findall(r"icmp_seq=\d+ ttl=\d+ time=([\d.]+) ms(?! \(DUP)", text)
    spread = re.search(r"^rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/", text, re.MULTILINE)
    return Pings(
        sent=int(counts[1]),
        rtts_s=tuple(float(time_ms) / 1000 for time_ms in answers),
        min_s=None if spread is None else float(spread[1]) / 1000,
        mean_s=None if spread is None else float(spread[2]) / 1000,
    )
