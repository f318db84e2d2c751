"""iperf3 and ping over a path: how they are run, and what they report."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from weirlab import _core
from weirlab.campaigns import request_program
from weirlab.campaigns.hosts import Bed, End, NamespaceEnd, ThisMachine, listening, output
from weirlab.campaigns.measurement import Measurement, Pings, Request, Stamps, Transfer
from weirlab.campaigns.plan import Datagrams, Load, Measured, Probe, RequestSeries, StampSeries
from weirlab.campaigns.reading import read_ping, read_requests, read_transfer
from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario.network.path import PathPlan
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.path import EmulatedPath
from weirlab.testbed.path_report import account_facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PACKAGES = {"iperf3": "iperf3", "ping": "iputils-ping", "timeout": "coreutils"}
_HTTP_PORT = 8080
"""Inside the namespace of an end, where nobody else listens."""
_STAMP_PORT = 862
"""Inside the namespace of an end, too. Source: RFC 8762, section 4.1"""
_GRACE_S = 30.0
"""How long a program may take beyond what it measures: connections are made one by one."""


def require(*, tls: bool = False) -> None:
    """Raises MissingCapability when a program is missing; `tls`: those that requests over TLS need, too."""
    needed = _PACKAGES | ({"openssl": "openssl"} if tls else {})
    missing = [package for program, package in needed.items() if shutil.which(program) is None]
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


def versions(*, tls: bool = False) -> dict[str, str]:
    """First line of what each program says of its version, and with `tls` what speaks TLS. Raises
    MissingCapability when one may not run.
    """
    found = {"tls": ssl.OPENSSL_VERSION} if tls else {}
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
        near, far = (
            (bed.near_address6, bed.far_address6) if path.ipv6 else (bed.near_address, bed.far_address)
        )
        behind = {name: bed.host(name) for name in path.hosts}
        ends = Bed(
            NamespaceEnd(bed.near),
            NamespaceEnd(bed.far),
            near,
            far,
            behind={
                name: (NamespaceEnd(space), address6 if path.ipv6 else address)
                for name, (space, address, address6) in behind.items()
            },
        )
        found = together(what, ends)
        seconds, after = time.time() - began, psutil.cpu_times()
        report = bed.close()
    forward = [line for line in report.lines if line.direction == "forward"]
    lateness = [line.lateness_p99_s for line in report.lines if line.lateness_p99_s is not None]
    busy_cpus = (_busy_s(after) - _busy_s(before)) / seconds
    return Measurement(
        transfer=found.transfer,
        beside=found.beside,
        pings=found.pings,
        began=began,
        seconds=seconds,
        busy_cpus=busy_cpus,
        foreign_cpus=max(
            0.0, busy_cpus - own_cpus((found.transfer, *found.beside.values()), report.on_cpu_s / seconds)
        ),
        degraded=report.degraded,
        disturbance=report.disturbance,
        account=account_facts(report.account),
        lateness_p99_s=max(lateness, default=None),
        joined=report.joined,
        lost=sum(line.counts["lost"] for line in report.lines),
        dropped=sum(line.dropped for line in report.lines),
        lost_forward=sum(line.counts["lost"] for line in forward),
        dropped_forward=sum(line.dropped for line in forward),
        requests=found.requests,
        stamps=found.stamps,
    )


def _busy_s(times: Any) -> float:
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def own_cpus(transfers: Sequence[Transfer | None], emulator_cpus: float) -> float:
    """CPUs that the measurement itself used on average, as far as it is known."""
    ends = [
        share["total"]
        for transfer in transfers
        if transfer is not None
        for share in (transfer.sender_cpu_percent, transfer.receiver_cpu_percent)
    ]
    return emulator_cpus + sum(ends) / 100


@dataclass(frozen=True)
class Together:
    """What ran at the same time."""

    transfer: Transfer | None
    beside: Mapping[str, Transfer]
    pings: Pings | None
    requests: tuple[Request, ...] | None
    stamps: Stamps | None = None


def together(what: Measured, bed: Bed) -> Together:
    """Everything of a step at the same time, each from its start to its stop. Raises TestbedError when a part
    fails; all have ended then.
    """
    work: dict[tuple[str, str], Callable[[], object]] = {}
    began = time.monotonic()
    loads: list[tuple[tuple[str, str], Load | Datagrams]] = []
    if what.load is not None:
        loads.append((("load", ""), what.load))
    loads += [(("beside", name), load) for name, load in what.beside.items()]
    for number, (place, load) in enumerate(loads):
        port = bed.port + number  # a server of iperf3 serves one at a time
        work[place] = partial(_transfer, load, what.duration_s, bed, port, began)
    if what.probe is not None:
        work["ping", ""] = partial(_ping, what.probe, what.duration_s, bed)
    if what.requests is not None:
        work["requests", ""] = partial(_requests, what.requests, what.duration_s, bed)
    if what.stamps is not None:
        work["stamps", ""] = partial(_stamps, what.stamps, what.duration_s, bed)
    found: dict[tuple[str, str], Any] = {}
    failures: list[BaseException] = []

    def run(place: tuple[str, str], part: Callable[[], Any]) -> None:
        try:
            found[place] = part()
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=run, args=(place, part), name=" ".join(place), daemon=True)
        for place, part in work.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Together(
        transfer=found.get(("load", "")),
        beside={name: found["beside", name] for name in what.beside},
        pings=found.get(("ping", "")),
        requests=found.get(("requests", "")),
        stamps=found.get(("stamps", "")),
    )


def _ends(forward: bool, bed: Bed, host: str | None = None) -> tuple[End, End, str]:
    """Where it starts, where it goes, and that end's address; `host`: one behind the near end instead."""
    assert bed.far is not None, "the plan starts nothing there"
    near, address = (bed.near, bed.near_address) if host is None else bed.behind[host]
    return (near, bed.far, bed.far_address) if forward else (bed.far, near, address)


def _ping(probe: Probe, duration_s: float, bed: Bed) -> Pings:
    start, address = (bed.near, bed.far_address) if bed.far is None else _ends(probe.forward, bed)[::2]
    count = probe.count(duration_s)
    command = [
        *("ping", "-n", "-c", str(count), "-i", f"{probe.every_s:g}"),
        *("-s", str(probe.payload_bytes), "-W", f"{probe.timeout_s:g}", address),
    ]
    # ping ends with 1 when nothing was answered, which is a result.
    text = output(start, command, duration_s + probe.timeout_s + _GRACE_S, fine=(0, 1))
    return read_ping(text)


def _requests(series: RequestSeries, duration_s: float, bed: Bed) -> tuple[Request, ...]:
    start, goal, address = _ends(series.forward, bed)
    limit_s = duration_s + series.timeout_s + _GRACE_S
    # Without site and environment it starts in a few hundredths of a second.
    program = [sys.executable, "-I", "-S", request_program.__file__]
    common = [address, str(_HTTP_PORT), "--timeout", f"{series.timeout_s:g}"]
    server = [*program, "serve", *common, "--for", f"{limit_s:g}"]
    count, every = str(series.count(duration_s)), f"{series.every_s:g}"
    client = [*program, "ask", *common, "--count", count, "--every", every]
    with contextlib.ExitStack() as stack:
        if series.tls:
            certificate, key = stack.enter_context(_certified(address))
            server += ["--certificate", certificate, "--private-key", key]
            client += ["--certificate", certificate]
        stack.enter_context(listening(goal, server, request_program.LISTENS, limit_s))
        return read_requests(output(start, client, limit_s))


def _stamps(series: StampSeries, duration_s: float, bed: Bed) -> Stamps:
    """One-way delays between two namespaces of this machine."""
    near, far = bed.near, bed.far
    assert isinstance(near, NamespaceEnd), "the plan has them over emulated paths alone"
    assert isinstance(far, NamespaceEnd), "the plan has them over emulated paths alone"
    try:
        answer = _core.one_way_delays(
            near=near.namespace.path,
            far=far.namespace.path,
            to=bed.far_address,
            port=_STAMP_PORT,
            count=series.count(duration_s),
            every_ps=round(series.every_s * 1e12),
            payload_bytes=series.payload_bytes,
            timeout_ps=round(series.timeout_s * 1e12),
        )
    except OSError as error:
        raise TestbedError(f"one-way delays: {error}") from error
    return Stamps(_known(answer["forward_s"]), _known(answer["backward_s"]), answer["clock_step_s"])


def _known(delays_s: NDArray[Any]) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(delay) else delay for delay in delays_s.tolist())


@contextlib.contextmanager
def _certified(address: str) -> Iterator[tuple[str, str]]:
    """Files of a certificate for an address and of its key, both made for one measurement and thrown away
    after it. Raises TestbedError.
    """
    with tempfile.TemporaryDirectory(prefix="weir-tls-") as directory:
        certificate, key = (str(Path(directory, name)) for name in ("certificate.pem", "key.pem"))
        command = [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=weir", "-addext", f"subjectAltName=IP:{address}"),
            *("-keyout", key, "-out", certificate),
        ]
        output(ThisMachine(), command, _GRACE_S)
        yield certificate, key


def _transfer(load: Load | Datagrams, duration_s: float, bed: Bed, port: int, began: float) -> Transfer:
    """What iperf3 reports of a load that starts `load.start_s` after `began`, on the monotonic clock."""
    served = bed.far is None
    start, goal, address = (
        (bed.near, bed.near, bed.far_address) if served else _ends(load.forward, bed, load.host)
    )
    lasts_s = load.seconds(duration_s)
    reverse = served and not load.forward
    reached = ["-c", address, "-p", str(port), *(["-R"] if reverse else [])]
    command = ["iperf3", "-J", *reached, "-t", f"{lasts_s:g}", "-P", str(load.streams), "--get-server-output"]
    if isinstance(load, Load):
        window = [] if load.window_bytes is None else ["-w", str(load.window_bytes)]
        command += ["-C", load.congestion_control, *window]
    else:
        command += ["-u", "-b", f"{load.rate_bps / load.streams:.0f}", "-l", str(load.payload_bytes)]
    limit_s = lasts_s + _GRACE_S

    def transferred() -> Transfer:
        time.sleep(max(0.0, began + load.start_s - time.monotonic()))
        try:
            return read_transfer(output(start, command, limit_s, fine=(0, 1)), reverse=reverse)
        except TestbedError as error:
            raise TestbedError(f"port {port}: {error}" if served else str(error)) from error

    if served:
        return transferred()
    server = ["iperf3", "-s", "-1", "-p", str(port), "-f", "k", "--forceflush", *_bound(address, bed)]
    with listening(goal, server, "Server listening", load.start_s + limit_s):
        return transferred()


def _bound(address: str, bed: Bed) -> list[str]:
    """Makes a server of iperf3 listen only where the traffic goes. A name may mean another address at the
    other end, so only numeric addresses count.
    """
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return []
    return [] if bed.listens_everywhere else ["-B", address]
