"""Probes of a path, and what answers them."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from weirlab import _core
from weirlab.errors import InputError, MissingCapability, TestbedError
from weirlab.heavy import np

PROBES = pl.Schema(
    {
        "hops": pl.UInt8,
        "size_bytes": pl.UInt32,
        "t_s": pl.Float64,
        "rtt_s": pl.Float64,
        "word": pl.String,
        "code": pl.UInt8,
        "mtu_bytes": pl.UInt32,
        "quoted_bytes": pl.UInt32,
        "router": pl.String,
    }
)
"""Columns of probes: `t_s` since the start of the batch, null when the probe could not be sent; `rtt_s`,
`word` and `router` null without an answer; `quoted_bytes`: of the probe's UDP payload."""
LONGEST_STEP_S = 2e-5
"""Round-trip times of a batch are not believed when the clock of the stamps was stepped by more."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Probes to be sent one after the other."""

    hops: Sequence[int]
    """Time to live of each."""
    sizes_bytes: Sequence[int]
    """Of each as an IP packet."""
    at_s: Sequence[float]
    """When each leaves; ascending."""
    timeout_s: float
    rotating: bool = False
    """Whether each goes to another port: for routers that quote too little of a probe to tell which."""


@dataclass(frozen=True)
class Answers:
    """What became of a batch."""

    rows: pl.DataFrame
    """`PROBES`, a row for each probe."""
    source: str
    """Address that the probes came from."""
    strangers: int = 0
    """Messages that belong to no probe, or do not tell to which."""
    replies: int = 0
    """Datagrams that came back: somebody listens at the port."""
    clock_step_s: float = 0.0
    """How far the clock of the kernel's stamps was stepped meanwhile."""
    stamped: int = 0
    """Probes whose departure is the kernel's stamp; of the others it is the time just before the call."""


class Prober(Protocol):
    """Sends probes."""

    def __call__(self, batch: Batch) -> Answers:
        """Send a batch and wait for its answers."""
        ...


def resolve(host: str, family: int = 0) -> str:
    """The address of a host: 4 or 6 for a version of IP, 0 for the first that the system names. Raises
    InputError.
    """
    if not host.strip() or "://" in host:
        raise InputError(f"HOST: write a name or an address alone, such as example.net (got '{host}')")
    families = {0: socket.AF_UNSPEC, 4: socket.AF_INET, 6: socket.AF_INET6}
    try:
        found = socket.getaddrinfo(host, None, families[family], socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        version = f" for IPv{family}" if family else ""
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{host}: no address{version}: {why}") from error
    address = str(found[0][4][0])
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.is_link_local:
        raise InputError(f"{host}: {address} is at the other end of a single link: name an address behind it")
    if parsed.is_multicast or address == "255.255.255.255":
        raise InputError(f"{host}: {address} is no single host")
    return address


class LiveProber:
    """Probes of this host. Needs Linux, and no privilege."""

    def __init__(self, destination: str, *, port: int = 33434, real_time: bool = True) -> None:
        """Args: destination: An address. port: Where nobody should listen. real_time: Whether to ask for
        real-time priority. Raises MissingCapability and InputError.
        """
        if sys.platform != "linux":
            raise MissingCapability(
                "probing a path needs Linux: elsewhere no socket reports the messages about its probes"
            )
        if not 1 <= port <= 64511:
            raise InputError(f"--port: from 1 to 64511 (got {port})")
        self._destination = destination
        self._port = port
        self._source_port = 0
        self._real_time = real_time
        self.waited_s: float | None = None
        """How long its threads were ready and waited for a CPU so far; None: the kernel does not report
        it."""

    def __call__(self, batch: Batch) -> Answers:
        """See `Prober`. All batches come from one port, so that they are one flow. Raises TestbedError."""
        try:
            parsed = _core.probe_path(
                destination=self._destination,
                port=self._port,
                rotating=batch.rotating,
                source_port=self._source_port,
                token=secrets.randbits(32),
                at_ps=[round(at * 1e12) for at in batch.at_s],
                hops=list(batch.hops),
                size_bytes=list(batch.sizes_bytes),
                timeout_ps=round(batch.timeout_s * 1e12),
                real_time=self._real_time,
            )
        except OSError as error:
            raise TestbedError(f"cannot probe {self._destination}: {error.strerror or error}") from error
        self._source_port = parsed["source_port"]
        if parsed["waited_ns"] is not None:
            self.waited_s = (self.waited_s or 0.0) + parsed["waited_ns"] / 1e9
        routers = np.array([*parsed["routers"], None], dtype=object)
        rows = pl.DataFrame(
            {
                "hops": batch.hops,
                "size_bytes": batch.sizes_bytes,
                "t_s": parsed["sent_ps"] / 1e12,
                "rtt_s": parsed["rtt_ps"] / 1e12,
                "word": [word or None for word in parsed["word"]],
                "code": parsed["code"],
                "mtu_bytes": parsed["mtu_bytes"],
                "quoted_bytes": parsed["quoted_bytes"],
                "router": list(routers[parsed["router"]]),
            },
            schema=PROBES,
            nan_to_null=True,
        )
        return Answers(
            rows,
            parsed["source"],
            parsed["strangers"],
            parsed["replies"],
            abs(parsed["clock_step_ns"]) / 1e9,
            parsed["stamped"],
        )
