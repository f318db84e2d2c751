"""Findings about lost packets: whether the path loses them, or a queue that somebody filled, and what that
costs.

One file: loss and overflow are two readings of the same evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from weirlab.traces.directions import (
    LIMITED,
    active_ps,
    application_ratio,
    bytes_text,
    capacity_bps,
    capacity_is_known,
    finding_of,
    goes_back,
    has_sack,
    ms_text,
    near_receiver,
    path_of,
    rate_text,
    round_trip_ps,
    share_of,
    wait_ps,
    waits,
)
from weirlab.traces.hazard import Blame, blame
from weirlab.traces.model import Finding, Row, Trace, evidence_of

_LOST = 0.001
"""Share of packets sent again from which a cause is reported; less is reported where it is costly."""
_COSTLY = 0.2
"""Share of the goodput that losses take, from which they are a problem."""
_FILLS = 0.7
"""Share of the path's rate that a flow carries which fills a buffer again and again."""
_EVENTS = 0.1
"""Where a queue explains most events, this share of them at least must be left for the path to be blamed."""
_QUEUE_SEGMENTS = 2
"""Less than so many segments is no queue."""
_BLUR_PS = 2e9
"""Stamps of acknowledgments count milliseconds: behind a capture what is shorter than two of them is known
of the first packet of each alone."""
_SLIGHT_PS, _SLIGHT = 1e9, 0.02
"""What hosts add to a round trip: up to a millisecond, where that is no more than this share of it."""
_SHOWN = 6
"""Losses from which a queue that short would show nevertheless."""
_SHORT = 2.0
"""A queue of less than so many times what is none: what a host adds is as much."""
_FEW = 4
"""Fewer events than so many prove no path that loses at random."""
_WHY = {
    "few": "they were too few. A longer capture would decide",
    "unseen": "what waited when they fell does not show here. A capture at the sender would decide, with "
    "time stamps of TCP",
    "paused": "near the receiver a program that pauses looks like a queue. A capture at the sender would "
    "tell",
    "clock": "near the receiver the clock of time stamps counts in longer steps than what waited. A capture "
    "at the sender would decide",
    "back": "data that went the other way hide what waited. A capture without them would decide",
    "short": "the buffer holds so few packets that hosts add as much to round trips. The drop counters of "
    "the bottleneck would decide",
    "uneven": "they came when more waited than usual, but at no one level. So loses a queue that is managed, "
    "holds a few packets or empties at a rate that varies; the path may have lost some, too. The drop "
    "counters of the bottleneck would decide, or captures on both sides of it",
}
"""Why the cause of losses cannot be determined, and what would determine it."""
_PARTS = {0: "ahead", 1: "behind"}
"""Where what waited is seen, by whether a packet was missed here or lost beyond."""


@dataclass(frozen=True)
class _Causes:
    """The losses of a direction by cause, in packets and in events, of which each halves the window once."""

    random: float
    random_events: float
    queued: float
    queued_events: float
    unknown: float
    unknown_events: float
    why: str
    """Why the cause of most of these is unknown."""
    wait_ps: float | None
    """What waited before the losses of the queue, in the median."""
    blind: bool
    """Whether packets that arrived are among them: without SACK these are sent again, too."""
    rows: pl.DataFrame
    """The losses, with their `cause`."""
    random_is_rare: bool = False
    """Whether some are random, and too few for a finding of their own."""
    queued_is_rare: bool = False
    """The same of those of the queue."""


def loss_findings(trace: Trace, row: Row) -> Iterator[Finding]:
    """Packets were lost: by the path, by a full queue, or for a cause that cannot be determined from here."""
    causes = _causes(trace, row)
    if causes is None:
        return
    events = max(causes.random_events + causes.queued_events + causes.unknown_events, 1.0)
    cost = _cost(trace, row)
    if not _counts(row, causes.random, causes.random_events, cost):
        causes = replace(causes, random_is_rare=bool(round(causes.random_events)))
    if not _counts(row, causes.queued, causes.queued_events, cost):
        causes = replace(causes, queued_is_rare=bool(round(causes.queued_events)))
    if _counts(row, causes.random, causes.random_events, cost):
        yield _lossy_path(trace, row, causes, cost * causes.random_events / events)
    if _counts(row, causes.queued, causes.queued_events, cost):
        share = min(cost, _empty(trace, row, causes)) * causes.queued_events / events
        yield _queue_overflow(trace, row, causes, share)
    if _counts(row, causes.unknown, causes.unknown_events, cost):
        yield _unknown(trace, row, causes, cost * causes.unknown_events / events)


def _counts(row: Row, packets: float, events: float, cost: float) -> bool:
    """Whether losses of a cause matter: by their share, or by what all losses cost."""
    return packets >= 2 and (packets >= _LOST * row["segments"] or (events >= 2 and cost >= _COSTLY))


def _lossy_path(trace: Trace, row: Row, causes: _Causes, cost: float) -> Finding:
    text = _again(row, causes, causes.random, causes.random_events)
    text += " that did not depend on what waited in queues."
    text += _rare_text(causes, "queue-overflow" if causes.queued_is_rare else "")
    text += _blind_text(causes)
    bound = _square_root_bps(row, causes)
    if bound:
        apart = row["segments"] / _recoveries(row, causes)
        text += (
            f" A Reno flow reaches about {rate_text(bound)} at this round-trip time with a loss event in "
            f"{apart:,.0f} packets; this one had {rate_text(row['goodput_bps'])}."
        )
    text += _cost_text(trace, row, cost)
    if application_ratio(row) >= LIMITED:
        text += " The application offered no more: loss is not what limited it."
    return finding_of(
        row,
        "lossy-path",
        "problem" if cost >= _COSTLY else "notice",
        "Packets were lost on the way",
        text,
        {
            "retransmitted_ratio": causes.random / row["segments"],
            "loss_event_ratio": causes.random_events / row["segments"],
            "cost_ratio": cost,
            **({} if bound is None else {"square_root_bps": bound}),
        },
        _evidence(trace, row, causes, "random"),
    )


def _queue_overflow(trace: Trace, row: Row, causes: _Causes, cost: float) -> Finding:
    wait, capacity = causes.wait_ps or 0.0, capacity_bps(trace, row) or row["goodput_bps"] or 0.0
    # Of a rate that varies, nobody knows how much waited. A flow that fills a buffer again and again, and
    # loses nothing elsewhere, carries what the path does: where it carries far less, the path did at times.
    fills = bool(round(causes.random_events)) or (row["goodput_bps"] or 0.0) >= _FILLS * capacity
    known = capacity_is_known(trace, row) and fills and not (causes.unknown_events and causes.why == "uneven")
    held = wait * capacity / 8e12
    text = (
        f"{_again(row, causes, causes.queued, causes.queued_events)} that began when round trips had grown "
        f"by {ms_text(wait)}"
        f"{f': about {bytes_text(held)} waited at {rate_text(capacity)}' if known else ''}. This flow, or "
        "others with it, had filled the bottleneck."
    )
    if causes.random_is_rare or (round(causes.unknown_events) and not round(causes.random_events)):
        text += _rare_text(causes, "lossy-path" if causes.random_is_rare else "")
    elif round(causes.random_events):
        text += " The other losses did not depend on that."
    else:
        text += " The path itself need not lose anything."
    text += _blind_text(causes)
    if cost >= _COSTLY:
        round_trip = round_trip_ps(row) or 0.0
        trip = bytes_text(capacity * round_trip / 8e12)
        text += _cost_text(trace, row, cost)
        text += f" The buffer holds less than the {trip} of a round trip: a" if known else " A"
        text += " larger one, or a sender that paces, would help."
    return finding_of(
        row,
        "queue-overflow",
        "problem" if cost >= _COSTLY else "notice",
        "A queue overflowed",
        text,
        {
            "retransmitted_ratio": causes.queued / row["segments"],
            "loss_event_ratio": causes.queued_events / row["segments"],
            "cost_ratio": cost,
            **({"queued_bytes": held} if known else {}),
            "queued_ms": wait / 1e9,
        },
        _evidence(trace, row, causes, "queue"),
    )


def _unknown(trace: Trace, row: Row, causes: _Causes, cost: float) -> Finding:
    unknown = causes.rows.filter(pl.col("cause") == "unknown")
    waited, before = unknown.select(pl.col("wait_ps").median(), pl.col("before").mean()).row(0)
    usual = wait_ps(trace, row, _PARTS[int(before > 0.5)], 0.5)
    when, numbers = "", {}
    if waited is not None and usual is not None:
        when = f", when {ms_text(waited)} waited in the median (usually {ms_text(usual)})"
        numbers = {"waited_ms": waited / 1e9, "usual_ms": usual / 1e9}
    return finding_of(
        row,
        "losses",
        "problem" if cost >= _COSTLY else "notice",
        "Packets were lost",
        f"{_again(row, causes, causes.unknown, causes.unknown_events)}{when}. "
        "Whether the path lost them or a full queue cannot be decided from this capture: "
        f"{_WHY[causes.why]}.{_blind_text(causes)}",
        {
            "retransmitted_ratio": causes.unknown / row["segments"],
            "cost_ratio": cost,
            **numbers,
        },
    )


def _again(row: Row, causes: _Causes, packets: float, events: float) -> str:
    joined = row["segments"] > row["data_packets"]
    all_of_them = (
        f"about {row['segments']:,} packets on the wire (the host joins them: {row['data_packets']:,} were "
        "captured)"
        if joined
        else f"{row['data_packets']:,} packets with data"
    )
    counts = (causes.random_events, causes.queued_events, causes.unknown_events)
    others = round(sum(counts)) - round(events)
    of_all = f" of {sum(counts):,.0f}" if others else ""
    lost = "sent again" if causes.blind else "lost and sent again"
    return (
        f"{packets:,.0f} of {all_of_them} were {lost} ({packets / row['segments']:.2%}), in "
        f"{events:,.0f}{of_all} events"
    )


def _rare_text(causes: _Causes, kind: str) -> str:
    """What is said of the other events where no finding of their own says it: those of another cause, which
    are too few to be found as `kind`, and those of no known cause."""
    text = ""
    if kind == "lossy-path":
        text += f" {_events_text(causes.random_events)} did not depend on that: too few to report {kind}."
    elif kind == "queue-overflow":
        text += f" {_events_text(causes.queued_events)} came with a full queue: too few to report {kind}."
    if round(causes.unknown_events):
        text += f" The cause of {_events_text(causes.unknown_events).lower()} is unknown."
    return text


def _events_text(events: float) -> str:
    return "One event" if round(events) == 1 else f"{events:,.0f} events"


def _blind_text(causes: _Causes) -> str:
    if not causes.blind:
        return ""
    return (
        " The connection has no SACK: what had arrived was sent again, too, so that fewer were lost. Each "
        "event is judged by the packet that it began with."
    )


def _cost_text(trace: Trace, row: Row, cost: float) -> str:
    capacity = capacity_bps(trace, row)
    if capacity is None or cost < _COSTLY:
        return ""
    if not capacity_is_known(trace, row):
        return (
            f" That costs {cost:.0%} at least: of {rate_text(capacity)}, at which some passed. What the path "
            "carries while it is busy does not show."
        )
    return (
        f" That costs about {cost:.0%} of the {rate_text(capacity)} that the path carries while it is busy."
    )


def _cost(trace: Trace, row: Row) -> float:
    """Share of the goodput that losses take: what is missing to what the path carries, while nothing but the
    congestion control holds the sender back."""
    capacity, active = capacity_bps(trace, row), active_ps(row)
    if not capacity or not active:
        return 0.0
    held = (
        max(row["window_limited_ps"], row["application_ps"], row["idle_ps"], row["zero_window_ps"]) / active
    )
    grew = row["growing_ps"] / active
    free = max(1.0 - held - grew, 0.0)
    flows = path_of(trace, row)
    goodput = float(flows.get_column("goodput_bps").fill_null(0.0).sum())
    cost: float = free * max(0.0, 1.0 - goodput / (capacity * max(1.0 - held, 0.05)))
    return cost


def _empty(trace: Trace, row: Row, causes: _Causes) -> float:
    """Share of the samples for which nothing waited: others may use what this flow does not, unless it is
    empty."""
    capacity = capacity_bps(trace, row)
    missed_here = float(causes.rows.select(pl.col("before").mean()).item() or 0.0)
    bins = waits(trace, row["flow"], _PARTS[int(missed_here > 0.5)])
    if not capacity or bins.is_empty():
        return 1.0
    empty = pl.col("low_ps") < _QUEUE_SEGMENTS * _segment_ps(row, capacity)
    return share_of(bins, empty, "samples")


def _segment_ps(row: Row, capacity: float) -> float:
    mss: float = row["payload_bytes"] / max(row["segments"], 1)
    return mss * 8e12 / capacity


def _causes(trace: Trace, row: Row) -> _Causes | None:
    """The causes of the losses of a direction; None where nothing was lost.

    What waited when the neighbours of a lost packet passed is compared with what waits at all (`hazard`), by
    all flows between the same hosts together, since they share their queues. A packet that was missed where
    the capture was made is judged by what waited behind it, one that was lost beyond by what waited ahead.
    """
    flows = path_of(trace, row)
    lost = _lost(trace, flows)
    if lost.filter(pl.col("flow") == row["flow"]).is_empty():
        return None
    capacity = capacity_bps(trace, row) or row["goodput_bps"] or 1.0
    least_ps = _QUEUE_SEGMENTS * _segment_ps(row, capacity)
    events = _events(lost, flows)
    found = [
        _of_part(trace, flows, events.filter(pl.col("before") == side), side, least_ps) for side in _PARTS
    ]
    attributed = pl.concat([table for table, _ in found]).filter(pl.col("flow") == row["flow"])
    # What is left for the path of several flows is shared as their events are.
    shares = [
        (judged, table.filter(pl.col("flow") == row["flow"]).height / max(table.height, 1))
        for table, judged in found
    ]
    return _summed(row, attributed, shares)


def _summed(row: Row, attributed: pl.DataFrame, shares: list[tuple[Blame, float]]) -> _Causes:
    wire = float(row["retransmitted_segments"] / max(row["retransmitted"], 1)) or 1.0
    packets = dict(attributed.group_by("cause").agg(pl.col("packets").sum()).iter_rows())
    counts = dict(attributed.group_by("cause").len().iter_rows())
    random_events = min(
        sum(judged.at_random * share for judged, share in shares), float(sum(counts.values()))
    )
    queued_events = counts.get("queue", 0) + counts.get("random", 0) - random_events
    if counts.get("queue") and random_events < max(2.0, _EVENTS * (random_events + queued_events)):
        random_events, queued_events = 0.0, queued_events + random_events
    # Those above the step that a constant explains are single packets.
    above = max(random_events - counts.get("random", 0), 0.0)
    random = min(packets.get("random", 0) + above, sum(packets.values())) if random_events else 0.0
    queued = packets.get("queue", 0) + packets.get("random", 0) - random
    known = random_events + queued_events
    unknown, unknown_events = packets.get("unknown", 0), counts.get("unknown", 0)
    blind = bool((attributed.get_column("packets") > attributed.get_column("burst")).any())
    reasons = attributed.filter(pl.col("cause") == "unknown").get_column("why").value_counts(sort=True)
    why = "few" if reasons.is_empty() else str(reasons.item(0, "why"))
    if known >= unknown_events and not blind and why != "uneven":
        # Few of which nothing is known are as the others.
        share = random_events / known if known else 0.0
        random, queued = random + unknown * share, queued + unknown * (1 - share)
        unknown = unknown_events = 0
    of_queue = attributed.filter(pl.col("cause") == "queue").select("wait_ps")
    wait = None if of_queue.is_empty() else float(of_queue.median().item() or 0.0)
    return _Causes(
        random * wire,
        random_events,
        queued * wire,
        queued_events,
        unknown * wire,
        unknown_events,
        why,
        wait,
        blind,
        attributed,
    )


def _lost(trace: Trace, flows: pl.DataFrame) -> pl.DataFrame:
    """The losses of some directions. Without SACK what arrived is sent again, too: of that the row has the
    start of its `recovery`; and what passed near the receiver was not lost."""
    rows = [row for row in flows.iter_rows(named=True) if not has_sack(trace, row)]
    blind = pl.col("flow").is_in([row["flow"] for row in rows]) & (pl.col("before") == 0)
    near = pl.col("flow").is_in([row["flow"] for row in rows if near_receiver(trace, row)])
    starts = trace["recoveries"].select("flow", t_ps="t_ps", recovery="t_ps").sort("t_ps")
    return (
        trace["losses"]
        .filter(pl.col("spurious") == 0)
        .join(flows.select("flow"), on="flow", how="semi")
        .filter(~(blind & near))
        .sort("t_ps")
        .join_asof(starts, on="t_ps", by="flow", strategy="backward", check_sortedness=False)
        .with_columns(recovery=pl.when(blind).then("recovery"))
    )


@dataclass
class _Event:
    flow: int
    before: int
    t_ps: float
    packets: int = 0
    burst: int = 0
    end: int | None = None
    waits: list[float] = field(default_factory=list)

    @property
    def wait_ps(self) -> float | None:
        # Of a burst that a queue cut, the first neighbours passed a full one.
        place = max(len(self.waits) // 2, 3 * (len(self.waits) - 1) // 4)
        return sorted(self.waits)[place] if self.waits else None


def _events(lost: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Losses of a direction within a round trip of the first, and those that follow without a byte that
    arrived in between, are one event: `flow`, `before`, `t_ps`, `packets`, `wait_ps` (the upper quartile;
    null where it is unknown). If it does not show which packets of a recovery were lost, that is one event,
    of whose first packet alone it is known: `burst` is 1."""
    facts = {row["flow"]: row for row in flows.iter_rows(named=True)}
    rows: list[_Event] = []
    events: dict[tuple[int, int, int | None], _Event] = {}
    columns = ("flow", "before", "sent_ps", "beside_ps", "recovery", "start", "end")
    # Results of earlier versions lack the places.
    lost = lost.with_columns(
        pl.lit(None, pl.UInt64).alias(name) for name in columns if name not in lost.columns
    )
    for flow, before, sent, beside, recovery, start, end in (
        lost.sort("sent_ps", "start").select(*columns).iter_rows()
    ):
        apart = (round_trip_ps(facts[flow]) or 1e11) if recovery is None else math.inf
        key = (flow, before, recovery)
        event = events.get(key)
        follows = event is not None and recovery is None and start is not None and start == event.end
        if event is None or not (follows or sent - event.t_ps <= apart):
            event = events[key] = _Event(flow, before, sent)
            rows.append(event)
        event.end = end
        event.packets += 1
        if recovery is not None and event.burst:
            continue
        event.burst += 1
        least = facts[flow][f"{_PARTS[before]}_min_ps"]
        if beside is not None and least is not None:
            event.waits.append(max(beside - least, 0.0))
    schema = {
        "flow": pl.UInt32,
        "before": pl.UInt32,
        "t_ps": pl.Float64,
        "packets": pl.Int64,
        "burst": pl.Int64,
        "wait_ps": pl.Float64,
    }
    return pl.DataFrame({name: [getattr(row, name) for row in rows] for name in schema}, schema=schema)


def _of_part(
    trace: Trace, flows: pl.DataFrame, events: pl.DataFrame, side: int, least_ps: float
) -> tuple[pl.DataFrame, Blame]:
    """The events of one part of the round trip with their `cause`: `queue`, `random` or `unknown`."""
    part = _PARTS[side]
    column = f"{part}_min_ps"
    # Behind a capture a program that writes now and then shows as what waits: that of its own flow alone.
    paused = [
        row["flow"] for row in flows.iter_rows(named=True) if side and application_ratio(row) >= LIMITED
    ]
    flows = flows.filter(~pl.col("flow").is_in(paused))
    is_known = pl.col("wait_ps").is_not_null() & ~pl.col("flow").is_in(paused)
    known = events.filter(is_known)
    mins = flows.select("flow", least=pl.col(column)).drop_nulls()
    base = mins.get_column("least").min()
    shift = mins.with_columns(shift=pl.col("least") - pl.lit(base, pl.Float64)).select("flow", "shift")
    bins = trace["waits"].filter(pl.col("part") == part).join(shift, on="flow")
    seen = bins.select(wait=pl.col("low_ps") + pl.col("shift"), samples="samples")
    known = known.join(shift, on="flow", how="left", maintain_order="left").with_columns(
        wait_ps=pl.col("wait_ps") + pl.col("shift").fill_null(0.0)
    )
    waited = known.get_column("wait_ps").to_numpy()
    trips = [round_trip_ps(row) or 0.0 for row in flows.iter_rows(named=True)]
    judged = blame(
        seen.get_column("wait").to_numpy(),
        seen.get_column("samples").to_numpy(),
        waited,
        least_ps,
        known.get_column("burst").to_numpy(),
        _BLUR_PS * side,
        min(_SLIGHT_PS, _SLIGHT * min(trips, default=0.0)),
    )
    seldom = side == 1 and judged.step_ps is None and 0 < len(waited) < _SHOWN
    blurred = seldom and least_ps < waited.max() < _BLUR_PS
    # Where data goes back, too, round trips hold the queue of the other way.
    shared = judged.step_ps is None and not flows.is_empty() and goes_back(trace, flows.row(0, named=True))
    reasons = {
        "back": shared,
        "clock": blurred,
        "few": len(waited) - int(judged.queued.sum()) < _FEW,
        "short": judged.step_ps is not None and judged.step_ps < _SHORT * least_ps,
        "uneven": not judged.decided,
    }
    why = next((name for name, holds in reasons.items() if holds), "")
    others = "unknown" if why else "random"
    causes = ["queue" if queued else others for queued in judged.queued]
    known = known.drop("shift").with_columns(cause=pl.Series(causes, dtype=pl.String), why=pl.lit(why))
    is_paused = pl.col("flow").is_in(paused)
    rest = events.filter(~is_known).with_columns(
        cause=pl.lit("unknown"), why=pl.when(is_paused).then(pl.lit("paused")).otherwise(pl.lit("unseen"))
    )
    return pl.concat([known, rest]), (Blame(judged.queued, 0.0, judged.step_ps) if why else judged)


def _recoveries(row: Row, causes: _Causes) -> float:
    """How often the window was halved: near the receiver what arrives again ends recoveries too early."""
    events = causes.random_events + causes.queued_events + causes.unknown_events
    return min(float(row["recoveries"]), events)


def _square_root_bps(row: Row, causes: _Causes) -> float | None:
    """The rate of a Reno flow with one loss event for so many packets.

    Source: Mathis 1997, sqrt(3/2) MSS / (RTT sqrt(p)), p being events, each of which halves the window once.
    """
    parts = [row["ahead_min_ps"], row["behind_min_ps"]]
    mean = row["rtt_mean_ps"] or 0.0
    round_trip = max(mean, sum(part for part in parts if part is not None), row["handshake_ps"] or 0.0)
    recoveries = _recoveries(row, causes)
    if not round_trip or not recoveries:
        return None
    mss = float(row["payload_bytes"]) / row["segments"]
    bound: float = math.sqrt(1.5) * mss * 8e12 / (round_trip * math.sqrt(recoveries / row["segments"]))
    return bound


def _evidence(trace: Trace, row: Row, causes: _Causes, cause: str) -> list[dict[str, object]]:
    """The recoveries that losses of a cause began, those with most retransmissions first."""
    recoveries = trace["recoveries"].filter(pl.col("flow") == row["flow"]).sort("t_ps")
    starts = (
        trace["losses"]
        .filter(pl.col("flow") == row["flow"])
        .sort("t_ps")
        .select("t_ps", "sent_ps", "beside_ps")
    )
    first = recoveries.join_asof(
        starts.rename({"t_ps": "at"}), left_on="t_ps", right_on="at", strategy="forward"
    )
    events = causes.rows.sort("t_ps").select(event_ps="t_ps", cause="cause")
    found = (
        first.drop_nulls("sent_ps")
        .with_columns(pl.col("sent_ps").cast(pl.Float64))
        .sort("sent_ps")
        .join_asof(events, left_on="sent_ps", right_on="event_ps", strategy="backward")
        .filter(pl.col("cause") == cause)
    )
    rows = evidence_of(
        found.sort("retransmitted", descending=True).with_columns(
            length_ps=pl.col("end_ps") - pl.col("t_ps")
        ),
        length_s=("length_ps", 1e12),
        retransmitted="retransmitted",
        timeouts="timeouts",
        flight_bytes="flight_bytes",
        rtt_before_ms=("beside_ps", 1e9),
    )
    return [{name: value for name, value in row.items() if value is not None} for row in rows]
