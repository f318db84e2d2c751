"""A live transfer: what is asked of the compiled core, and what became of it as tables and numbers.

One file: both ends of a transfer, and what is kept of it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

import polars as pl
from typing_extensions import TypedDict

from weirlab import _core
from weirlab.errors import InputError, MissingCapability, TestbedError
from weirlab.testbed.account import MachineAccount, Reading
from weirlab.testbed.rapid.settings import Settings
from weirlab.traces import Finding, ProbingSender, diagnose_sender

INTACT_SHARE = 0.8
"""A stream is intact when this share of its gaps is within a quarter of what was asked for."""

Watch = Callable[[int, int, int], bool]
"""Told the time (ns), bytes acknowledged and the mean rate (bit/s) so far; answers whether to stop."""
Family = Literal["any", "ipv4", "ipv6"]


@dataclass(frozen=True)
class LossEvent:
    """A time in which losses were repaired and no streams were sent."""

    began_s: float
    ended_s: float | None
    """None: not before the end."""
    cause: str
    """``recovery`` or ``timeout``."""


class StreamFacts(TypedDict):
    """How streams left and what they said: counts, shares and quantiles of the estimates [bit/s]."""

    count: int
    estimated: int
    intact: int
    intact_share: float | None
    excursion_share: float | None
    available_p10_bps: float | None
    available_p50_bps: float | None
    available_p90_bps: float | None


class Gaps(TypedDict):
    """How exactly the gaps of streams left."""

    count: int
    within_1_us: int
    within_a_quarter: int
    quantiles: list[float]
    error_ns: list[int]


class TransferDocument(TypedDict):
    """`result.json` of a transfer; what is unknown is None."""

    kind: str
    peer: str
    variant: str
    link_bps: int
    duration_s: float
    ending: str
    elapsed_s: float
    goodput_bps: float | None
    settled_goodput_bps: float | None
    min_rtt_s: float | None
    smoothed_rtt_s: float | None
    streams: StreamFacts
    loss_events: int
    counts: dict[str, int]
    receiver: dict[str, int] | None
    gaps: Gaps
    host: dict[str, object]
    remarks: list[str]
    findings: list[dict[str, object]]


@dataclass(frozen=True)
class Transfer:
    """A transfer as it was."""

    settings: Settings
    peer: str
    """Address and port of the receiver."""
    facts: _core.RapidFacts
    """What the compiled core reported, but for the tables."""
    tables: Mapping[str, pl.DataFrame]
    """``streams``, ``rates``, ``losses``, ``gaps``, and ``packets`` if asked for."""
    account: MachineAccount = field(default_factory=lambda: MachineAccount(duration_s=0.0))
    """What else this machine did meanwhile."""

    @property
    def ending(self) -> str:
        """``complete``; or ``unfinished``, ``interrupted``, ``hung-up``, ``gone``, ``silent``."""
        return self.facts["ending"]

    @property
    def losses(self) -> tuple[LossEvent, ...]:
        """Loss events in order."""
        return tuple(LossEvent(*row) for row in self.tables["losses"].iter_rows())

    def goodput_bps(self, from_share: float = 0.0) -> float | None:
        """Payload acknowledged in order per second of sending, after this share of its time; each byte counts
        once. None where no interval ended."""
        rates = self.tables["rates"].filter(pl.col("end_s") <= self.settings.duration.s + 1e-9)
        width = self.settings.every.s
        counted = rates.filter(pl.col("end_s") - width >= from_share * self.settings.duration.s - 1e-9)
        return (
            None if counted.is_empty() else float(counted["acked_bytes"].sum()) * 8 / (width * len(counted))
        )

    def stream_facts(self) -> StreamFacts:
        """See `StreamFacts`."""
        streams = self.tables["streams"]
        whole = streams.filter(pl.col("packets") > 1, pl.col("outcome") != "starved")
        intact = whole.filter(pl.col("intact"))
        estimated = streams.filter(pl.col("outcome") == "estimated")
        settled = estimated.filter(pl.col("start_s") >= self.settings.duration.s / 2)
        low, median, high = (settled["available_bps"].quantile(at, "linear") for at in (0.1, 0.5, 0.9))
        return {
            "count": len(streams),
            "estimated": len(estimated),
            "intact": len(intact),
            "intact_share": len(intact) / len(whole) if len(whole) else None,
            "excursion_share": float(estimated.select(pl.col("excursion_gaps").is_not_null().mean()).item())
            if len(estimated)
            else None,
            "available_p10_bps": low,
            "available_p50_bps": median,
            "available_p90_bps": high,
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why gaps, and what rests on them, are to be doubted."""
        found = []
        if self.settings.real_time and not self.facts["real_time"]:
            found.append(
                "without real-time priority, which this process may not have: gaps are only as good as the "
                "percentiles say (run as root, or with CAP_SYS_NICE)"
            )
        intact = self.stream_facts()["intact_share"]
        if intact is not None and intact < 0.95 and self.settings.variant != "flawed":
            found.append(f"only {100 * intact:.0f} % of the streams left as they were designed")
        if self.account.disturbance:
            found.append(f"this machine was disturbed: {self.account.disturbance}")
        if self.facts["blocked"]:
            found.append(f"{self.facts['blocked']} datagrams were refused by this host")
        receiver = self.facts["receiver"]
        if receiver is None:
            found.append("the receiver did not report its counts")
        else:
            if receiver["socket_drops"]:
                found.append(f"the receiver's socket dropped {receiver['socket_drops']} datagrams")
            if receiver["clock_steps"]:
                found.append("the receiver's clock was stepped meanwhile")
        return tuple(found)

    def findings(self) -> list[Finding]:
        """What the streams show of the sender, judged as those of simulated ones. What the network dropped
        is not known here."""
        streams = self.tables["streams"].with_columns(
            (pl.col(f"{name}_s") * 1e12).round().cast(pl.Int64).alias(f"{now}_ps")
            for name, now in (("start", "t"), ("end", "end"), ("closed", "closed"))
        )
        rates = self.tables["rates"].select(
            (pl.col("end_s") * 1e12).round().cast(pl.Int64).alias("t_ps"),
            pl.col("acked_bytes").cum_sum(),
        )
        counts = self.facts["counts"]
        segment = self.settings.transport(ipv6=False).segment.bytes
        return diagnose_sender(
            ProbingSender(
                where=f"to {self.peer}",
                link_bps=float(self.settings.link.bps),
                streams=streams.with_columns(backlog_ps=pl.col("backlog_s") * 1e12).sort("t_ps"),
                states=_states(self.losses),
                progress=rates,
                counts={
                    **counts,
                    "sent_bytes": counts["bytes"],
                    "sent_segments": counts["segments"],
                    "established_ps": 0,
                    "acknowledged_ps": self.facts["elapsed_ns"] * 1000,
                },
                wire_bytes=self.settings.packet_bytes,
                headers_bytes=self.settings.packet_bytes - segment,
            )
        )

    def document(self) -> TransferDocument:
        """The numbers as JSON values; what is unknown is None."""
        facts = self.facts
        elapsed_s = facts["elapsed_ns"] / 1e9
        return {
            "kind": "rapid",
            "peer": self.peer,
            "variant": self.settings.name,
            "link_bps": self.settings.link.bps,
            "duration_s": self.settings.duration.s,
            "ending": self.ending,
            "elapsed_s": elapsed_s,
            "goodput_bps": self.goodput_bps(),
            "settled_goodput_bps": self.goodput_bps(0.5),
            "min_rtt_s": None if facts["min_rtt_ns"] is None else facts["min_rtt_ns"] / 1e9,
            "smoothed_rtt_s": None if facts["srtt_ns"] is None else facts["srtt_ns"] / 1e9,
            "streams": self.stream_facts(),
            "loss_events": len(self.tables["losses"]),
            "counts": dict(facts["counts"]),
            "receiver": None if facts["receiver"] is None else dict(facts["receiver"]),
            "gaps": facts["gaps"],
            "host": {
                "real_time": facts["real_time"],
                "spin_s": self.settings.spin_ps / 1e12,
                "cpu_share": facts["on_cpu_ns"] / 1e9 / elapsed_s if elapsed_s else None,
                "blocked": facts["blocked"],
                "strangers": facts["strangers"],
                "sender_waited_s": self.account.waits_s.get("the sender"),
                **self.account.facts(),
            },
            "remarks": list(self.remarks),
            "findings": [asdict(finding) for finding in self.findings()],
        }


def resolve(host: str, port: int, family: Family = "any") -> tuple[str, bool]:
    """Address and port of a host as text, and whether it is IPv6. Raises InputError for an unknown host."""
    families = {"any": socket.AF_UNSPEC, "ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}
    try:
        found = socket.getaddrinfo(host, port, families[family], socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{host}: not a host that is known here: {why}") from error
    chosen, *_, address = found[0]
    name = str(address[0])
    if chosen == socket.AF_INET6:
        scope = f"%{address[3]}" if len(address) > 3 and address[3] else ""
        return f"[{name.split('%')[0]}{scope}]:{port}", True
    return f"{name}:{port}", False


def send(
    host: str, port: int, secret: bytes, settings: Settings, *, watch: Watch, family: Family = "any"
) -> Transfer:
    """Send to a host where `serve` runs with the same secret.

    Raises: InputError: a setting is not legal, or the host is unknown. TestbedError: no session was opened.
    MissingCapability: not Linux.
    """
    peer, ipv6 = resolve(host, port, family)
    _check_cpu(settings.cpu)
    before = Reading.now()
    try:
        outcome = _core.send_rapid(
            peer=peer,
            secret=secret,
            config_json=settings.core_json(ipv6=ipv6),
            duration_ps=settings.duration.ps,
            every_ps=settings.every.ps,
            spin_ps=settings.spin_ps,
            real_time=settings.real_time,
            cpu=settings.cpu,
            packets=settings.packets,
            watch=watch,
        )
    except _core.SpecError as error:
        message, pointer = error.args
        raise InputError(f"the transport is not legal: {message} ({pointer})") from error
    except (ValueError, TimeoutError, NotImplementedError) as error:
        raise _explained(error) from error
    tables = _tables(outcome)
    if not settings.packets:
        del tables["packets"]
    del outcome["tables"]
    waited_ns = outcome["waited_ns"]
    waits_s = {"the sender": None if waited_ns is None else waited_ns / 1e9}
    return Transfer(settings, peer, outcome, tables, (Reading.now() - before).with_waits(waits_s))


def serve(
    bind: str | None,
    port: int,
    secret: bytes,
    *,
    watch: Callable[[Sequence[_core.RapidEvent]], bool],
    sessions: int | None = None,
    most_sessions: int = 4,
    longest_s: float = 600.0,
    most_bytes: int = 10**12,
    real_time: bool = True,
    cpu: int | None = None,
) -> Mapping[str, int]:
    """Receive what `send` sends, until `watch` answers true or so many sessions have ended.

    Args: bind: Address to listen at; None: all. port: 0: any free one. watch: Called with what happened,
    every 50 ms; the first thing is where it listens. most_sessions, longest_s, most_bytes: What nobody
    gets more of.

    Returns: `sessions`, datagrams of `strangers`, greetings that were left `unanswered` because too many
    came, and those that had been answered before, `replayed`.

    Raises: InputError: an address is none. OSError: the system refuses it. MissingCapability: not Linux.
    """
    _check_cpu(cpu)
    try:
        return _core.serve_rapid(
            listen=_listening(bind, port),
            secret=secret,
            watch=watch,
            sessions=sessions,
            most_sessions=most_sessions,
            longest_ps=round(longest_s * 1e12),
            most_bytes=most_bytes,
            real_time=real_time,
            cpu=cpu,
        )
    except (ValueError, TimeoutError, NotImplementedError) as error:
        raise _explained(error) from error


def _check_cpu(cpu: int | None) -> None:
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    if cpu is not None and usable and cpu not in usable:
        raise InputError(f"--cpu: one of {', '.join(map(str, sorted(usable)))} (got {cpu})")


def _listening(bind: str | None, port: int) -> str:
    if bind is None:
        return f"[::]:{port}" if _has_ipv6() else f"0.0.0.0:{port}"
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        raise InputError(f"--bind {bind}: not an IP address of this host") from None
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def _explained(error: Exception) -> Exception:
    if isinstance(error, NotImplementedError):
        return MissingCapability(str(error))
    return TestbedError(str(error)) if isinstance(error, TimeoutError) else InputError(str(error))


def _tables(outcome: _core.SentRapid) -> dict[str, pl.DataFrame]:
    """The tables of a transfer, with times in seconds since data was first sent."""
    raw = {name: pl.DataFrame(table) for name, table in outcome["tables"].items()}
    streams = raw["probe_streams"].select(
        "stream",
        _seconds("t_ps").alias("start_s"),
        _seconds("end_ps").alias("end_s"),
        _seconds("closed_ps").alias("closed_s"),
        "packets",
        "samples",
        "rate_bps",
        "low_rate_bps",
        "high_rate_bps",
        _named("outcome", outcome["outcomes"]),
        "available_bps",
        "excursion_start",
        "excursion_gaps",
        "next_rate_bps",
        (pl.col("backlog_ps") / 1e12).alias("backlog_s"),
        "fitting_gaps",
        "spilt_gaps",
        (pl.col("fitting_gaps") >= INTACT_SHARE * (pl.col("packets").cast(pl.Int64) - 1)).alias("intact"),
    )
    rates = raw["rates"].select(
        _seconds("end_ps").alias("end_s"),
        "acked_bytes",
        "sent_bytes",
        "retransmits",
        "rate_bps",
        (pl.col("srtt_ps") / 1e12).alias("smoothed_rtt_s"),
        "flight_bytes",
        (pl.col("probes") == 1).alias("sends_streams"),
    )
    packets = raw["probe_packets"].select(
        "stream",
        pl.col("packet").alias("place"),
        _seconds("due_ps").alias("due_s"),
        _seconds("sent_ps").alias("left_s"),
        (pl.col("received_ps") / 1e12).alias("received_s"),
    )
    gaps = pl.DataFrame(
        {
            "quantile": outcome["gaps"]["quantiles"],
            "error_s": [ns / 1e9 for ns in outcome["gaps"]["error_ns"]],
        }
        if outcome["gaps"]["error_ns"]
        else {"quantile": [], "error_s": []},
        schema={"quantile": pl.Float64, "error_s": pl.Float64},
    )
    losses = _losses(raw["probe_states"], outcome["states"])
    return {"streams": streams, "rates": rates, "losses": losses, "gaps": gaps, "packets": packets}


def _seconds(column: str) -> pl.Expr:
    return pl.col(column) / 1e12


def _named(column: str, names: Sequence[str]) -> pl.Expr:
    return pl.col(column).replace_strict(dict(enumerate(names)), return_dtype=pl.String)


def _states(losses: Sequence[LossEvent]) -> pl.DataFrame:
    """Changes of the state, made of loss events: 0 when streams begin, 1 when they end."""
    rows: list[tuple[float, int]] = []
    for place, loss in enumerate(losses):
        rows.append((loss.began_s, 1))
        again = losses[place + 1].began_s if place + 1 < len(losses) else None
        if loss.ended_s is not None and loss.ended_s != again:
            rows.append((loss.ended_s, 0))
    schema = {"t_s": pl.Float64, "state": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.select((pl.col("t_s") * 1e12).round().cast(pl.Int64).alias("t_ps"), "state")


def _losses(states: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Loss events: each change of the state to off, and when the next change came."""
    rows = [(t_ps / 1e12, names[state]) for t_ps, state in states.select("t_ps", "state").iter_rows()]
    ends = [began for began, _ in rows[1:]] + [None]
    found = [
        (began, end, state.removeprefix("off-"))
        for (began, state), end in zip(rows, ends, strict=False)
        if state != "on"
    ]
    schema = {"began_s": pl.Float64, "ended_s": pl.Float64, "cause": pl.String}
    return pl.DataFrame(found, schema=schema, orient="row")
