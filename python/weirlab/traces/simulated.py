"""Findings about senders that probe (Rapid), simulated or live, from what they wrote down of their streams.

A run whose scenario records `p_streams` says more than a trace: what was asked for, what arrived, what was
estimated; a live sender (`weir rapid send`) says as much. docs/traces.md has a section for each finding;
thresholds are those of the design of the reproduction, where an ideal sender stays clear of them and that of
the published run does not.

Source: Rapid UDP, (4) I to IV and (3)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from weirlab.records import Records
from weirlab.traces.model import EVIDENCE, Finding, evidence_of
from weirlab.traces.probing import INTACT, SPILT_SHARE

KINDS = ("few-estimates", "ramp-lost", "no-excursion", "over-estimation", "tail-spill", "bookkeeping")
"""What is looked for in probing connections of a run."""


_LEAST_STREAMS = 20
"""Streams below which nothing is judged."""
_FITTING = 0.8
"""A stream is a ramp when this share of its gaps is what was asked for, or what the link can."""
_SPILT = 3
"""Of the first eight gaps, those of packets back to back that make a stream spoilt."""
_FEW_EXCURSIONS = 0.1
_FEW_ESTIMATES = 0.1
_MANY_AT_LINK = 0.3
_AT_LINK = 0.95
_BEFORE_PS = 200_000_000_000
"""Time before the end of streams that is asked what led to it."""
_EPISODES = 2
_DROPS_RATIO = 3.0
"""Retransmissions for each dropped frame that can be explained."""
_LEAST_RETRANSMITS = 50
_WIRE_BYTES = 1538
"""A full frame with preamble and gap."""
_HEADERS_BYTES = 90
"""What of it is no payload."""
_CAUSES = ("fast", "forward", "slow_start", "timeout", "rescue", "probe")


@dataclass(frozen=True)
class ProbingSender:
    """What a sender that probes wrote down of itself. Tables are ordered by time, in ps."""

    where: str
    """Its connection."""
    link_bps: float
    streams: pl.DataFrame
    """As `probe_streams`."""
    states: pl.DataFrame
    """`t_ps`, `state`: 0 when streams begin, others when they end."""
    progress: pl.DataFrame
    """`t_ps`, `acked_bytes` until then; fewer than two rows where it was not recorded."""
    counts: Mapping[str, int]
    """As a row of `connections`."""
    resent: int | None = None
    """Retransmissions, counted segment by segment; None: unknown."""
    dropped: int | None = None
    """Its frames that the network dropped; None: unknown."""
    wire_bytes: int = _WIRE_BYTES
    """A full packet on the link, with what surrounds it."""
    headers_bytes: int = _HEADERS_BYTES
    """What of it is no payload."""


def diagnose_records(records: Records) -> list[Finding]:
    """Findings of each probing connection of each replicate; nothing where no streams were recorded."""
    found: list[Finding] = []
    names = dict(records["connection_names"].select("connection", "name").iter_rows())
    keys = records["probe_streams"].select("replicate", "connection").unique(maintain_order=True)
    for replicate, connection in keys.iter_rows():
        mine = (pl.col("replicate") == replicate) & (pl.col("connection") == connection)
        row = records["connections"].filter(mine).row(0, named=True)
        resent = records["resent"].filter(mine)
        drops = records["drops"].filter(pl.col("replicate") == replicate, pl.col("flow") == row["flow"])
        sender = ProbingSender(
            where=f"{names[connection]}, replicate {replicate}",
            link_bps=_link_bps(records, row["flow"]),
            streams=records.named("probe_streams").filter(mine).sort("t_ps"),
            states=records["probe_states"].filter(mine).sort("t_ps"),
            progress=records["tcp"].filter(mine).sort("t_ps"),
            counts=row,
            resent=int((resent["times"] * resent["segments"]).sum()) if resent.height else 0,
            dropped=int(drops.get_column("frames").sum()),
        )
        found += diagnose_sender(sender)
    return sorted(found, key=lambda finding: finding.verdict != "problem")


def diagnose_sender(sender: ProbingSender) -> list[Finding]:
    """Findings of one sender: problems first."""
    found: list[Finding] = []
    where, streams = sender.where, sender.streams
    if streams.height >= _LEAST_STREAMS:
        found += _silent(where, streams)
        found += _ramps(where, streams)
        found += _blind(where, streams, sender.link_bps, sender.wire_bytes)
        found += _heads(where, streams, sender.link_bps)
    found += _over_estimation(sender)
    found += _books(sender)
    return sorted(found, key=lambda finding: finding.verdict != "problem")


def _link_bps(records: Records, flow: int) -> float:
    """Rate of the link of the host that sends a flow."""
    source = records["flow_names"].filter(pl.col("flow") == flow).item(0, "from")
    ports = records["port_names"].filter((pl.col("from") == source) & (pl.col("from_kind") == "host"))
    return float(ports.item(0, "rate_bps"))


def _silent(where: str, streams: pl.DataFrame) -> Iterator[Finding]:
    """Streams bring no estimates, so that the rate follows nothing."""
    estimated = int(streams.get_column("available_bps").count())
    if estimated >= _FEW_ESTIMATES * streams.height:
        return
    name = "outcome_name" if "outcome_name" in streams.columns else "outcome"
    outcomes = (
        streams.group_by(outcome=name).len("streams").sort(["streams", "outcome"], descending=[True, False])
    )
    words = ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.iter_rows())
    yield Finding(
        "few-estimates",
        "problem",
        "Hardly any stream gave an estimate",
        f"{estimated:,} of {streams.height:,} streams did; their outcomes: {words}. The rate follows no "
        "measurement. Where most are 'pruned', too few of their gaps are left: what is taken for one packet "
        "of a burst ('denoising') is longer than the gaps of this link.",
        values={"estimates": float(estimated), "streams": float(streams.height)},
        evidence=outcomes.to_dicts(),
        where=where,
    )


def _ramps(where: str, streams: pl.DataFrame) -> Iterator[Finding]:
    """I: the gaps with which packets left are not those that were asked for."""
    whole = streams.filter(pl.col("packets") > 1).with_columns(
        fitting=pl.col("fitting_gaps") / (pl.col("packets") - 1)
    )
    intact = float(whole.select((pl.col("fitting") >= _FITTING).mean()).item() or 0.0)
    if whole.is_empty() or intact >= INTACT:
        return
    bad = whole.filter(pl.col("fitting") < _FITTING).sort("fitting")
    yield Finding(
        "ramp-lost",
        "problem",
        "Probe streams lost their ramp",
        f"Only {intact:.0%} of {whole.height:,} streams left with at least {_FITTING:.0%} of their gaps as "
        "requested, or as the link makes them: timers are late or coarse, or the adapter holds "
        "packets back. Estimates that rest on the others are worthless.",
        values={"intact_ratio": intact, "streams": float(whole.height)},
        evidence=evidence_of(bad, stream="stream", fitting_ratio="fitting", rate_mbps=("rate_bps", 1e6)),
        where=where,
    )


def _blind(where: str, streams: pl.DataFrame, link_bps: float, wire_bytes: int) -> Iterator[Finding]:
    """II: queues grow during streams, and the estimator sees no excursion."""
    packet_ps = wire_bytes * 8e12 / link_bps
    known = streams.filter(pl.col("available_bps").is_not_null(), pl.col("backlog_ps").is_not_null())
    known = known.with_columns(grown_ps=pl.col("backlog_ps").cast(pl.Float64).diff())
    # A queue that grew by more than a packet over a stream: more was sent than the path had left.
    loaded = known.filter(pl.col("grown_ps") > packet_ps)
    if loaded.height < _LEAST_STREAMS:
        return
    seen = float(loaded.select(pl.col("excursion_start").is_not_null().mean()).item())
    at_link = float(known.select((pl.col("available_bps") >= _AT_LINK * link_bps).mean()).item())
    if seen >= _FEW_EXCURSIONS or at_link <= _MANY_AT_LINK:
        return
    blind = loaded.filter(pl.col("excursion_start").is_null()).sort("grown_ps", descending=True)
    yield Finding(
        "no-excursion",
        "problem",
        "The estimator does not see that queues grow",
        f"In {loaded.height:,} streams the queueing delay grew by more than the time of a packet, and in "
        f"{seen:.1%} of these an excursion was found; {at_link:.0%} of all estimates are at the link's rate. "
        "The threshold of the estimator is too coarse for this link, or too many gaps in a row are wanted.",
        values={"seen_ratio": seen, "at_link_ratio": at_link, "loaded_streams": float(loaded.height)},
        evidence=evidence_of(
            blind,
            stream="stream",
            rate_mbps=("rate_bps", 1e6),
            estimate_mbps=("available_bps", 1e6),
            queue_grew_us=("grown_ps", 1e6),
        ),
        where=where,
    )


def _heads(where: str, streams: pl.DataFrame, link_bps: float) -> Iterator[Finding]:
    """IV: streams begin back to back, because the one before was sent faster than the link."""
    before = streams.with_columns(before_bps=pl.col("high_rate_bps").shift(1))
    spilt = before.filter(pl.col("spilt_gaps") >= _SPILT)
    share = spilt.height / streams.height
    if share <= SPILT_SHARE:
        return
    above = float(spilt.select((pl.col("before_bps") > link_bps).mean()).item() or 0.0)
    yield Finding(
        "tail-spill",
        "problem",
        "Streams start with packets back to back",
        f"{spilt.height:,} of {streams.height:,} streams begin with at least {_SPILT} of eight gaps at line "
        f"rate, though larger ones were requested. Before {above:.0%} of them the stream had requested "
        "rates above that of the link; before the others packets were late for other reasons.",
        values={"spilt_ratio": share, "after_excess_ratio": above},
        evidence=evidence_of(
            spilt.with_columns(pl.col("before_bps").fill_null(0)),
            stream="stream",
            at_line_rate="spilt_gaps",
            before_mbps=("before_bps", 1e6),
        ),
        where=where,
    )


def _episodes(states: pl.DataFrame, end_ps: int) -> list[tuple[int, int, int]]:
    """Times without streams: from an OFF to the next ON, and how many OFFs stand in each."""
    made: list[tuple[int, int, int]] = []
    since, offs = None, 0
    for t_ps, state in states.select("t_ps", "state").iter_rows():
        if state == 0:
            if since is not None:
                made.append((since, t_ps, offs))
            since, offs = None, 0
        else:
            since, offs = t_ps if since is None else since, offs + 1
    if since is not None:
        made.append((since, end_ps, offs))
    return made


def _over_estimation(sender: ProbingSender) -> Iterator[Finding]:
    """III: recovery after recovery, each after an estimate above what was delivered."""
    streams, states = sender.streams, sender.states
    if streams.is_empty() or states.is_empty():
        return
    end_ps = int(streams.select(pl.col("closed_ps").max()).item())
    episodes = _episodes(states, end_ps)
    rows = []
    for since, until, offs in episodes:
        before = streams.filter(pl.col("closed_ps").is_between(since - _BEFORE_PS, since))
        estimate = before.select(pl.col("available_bps").max()).item()
        rows.append(
            {
                "t_s": since / 1e12,
                "length_s": (until - since) / 1e12,
                "timeouts": offs - 1,
                "rate_mbps": (before.select(pl.col("rate_bps").max()).item() or 0.0) / 1e6,
                "estimate_mbps": (estimate or 0.0) / 1e6,
                "delivered_mbps": _delivered_bps(sender, since) / 1e6,
            }
        )
    table = pl.DataFrame(rows)
    over = table.filter(pl.max_horizontal("rate_mbps", "estimate_mbps") > pl.col("delivered_mbps"))
    if over.height < _EPISODES:
        return
    active_ps = max(end_ps - int(streams.item(0, "t_ps")), 1)
    off_ps = sum(until - since for since, until, _ in episodes)
    timeouts = sum(offs - 1 for _, _, offs in episodes)
    yield Finding(
        "over-estimation",
        "problem",
        "Estimates above the capacity lead into recovery again and again",
        f"{table.height} times streams ended in losses ({timeouts} timeouts), for {off_ps / active_ps:.0%} "
        f"of the time; before {over.height} of these the rate or the estimate had been above what the path "
        "delivered in the 200 ms before.",
        values={
            "recoveries": float(table.height),
            "over_estimated": float(over.height),
            "timeouts": float(timeouts),
            "off_ratio": off_ps / active_ps,
        },
        evidence=over.head(EVIDENCE).to_dicts(),
        where=sender.where,
    )


def _delivered_bps(sender: ProbingSender, until_ps: int) -> float:
    """What was acknowledged in the 200 ms before a time, as a rate on the wire; the mean of the whole
    connection where its progress was not recorded."""
    row, series = sender.counts, sender.progress
    segment = row["sent_bytes"] / max(row["sent_segments"], 1)
    wire = (segment + sender.headers_bytes) / max(segment, 1)
    if series.height < 2:
        length = max((row["acknowledged_ps"] or until_ps) - (row["established_ps"] or 0), 1)
        return float(row["acked_bytes"] * 8e12 * wire / length)
    rows = series.filter(pl.col("t_ps") <= until_ps)
    before = rows.filter(pl.col("t_ps") <= until_ps - _BEFORE_PS)
    if before.is_empty():
        return float("inf")
    first, last = before.row(-1, named=True), rows.row(-1, named=True)
    length = max(last["t_ps"] - first["t_ps"], 1)
    return float((last["acked_bytes"] - first["acked_bytes"]) * 8e12 * wire / length)


def _books(sender: ProbingSender) -> Iterator[Finding]:
    """V: counters that do not add up, or retransmissions that no drop explains."""
    row = sender.counts
    causes = sum(row.get(f"{name}_retransmits", 0) for name in _CAUSES)
    doubles = sum(offs - 1 for _, _, offs in _episodes(sender.states, 0))
    again = row["retransmits"]
    rows = [{"identity": "retransmissions = sum of their causes", "left": again, "right": causes}]
    if sender.resent is not None:
        identity = "retransmissions = sum of how often segments were"
        rows.append({"identity": identity, "left": again, "right": sender.resent})
    failures = row["recovery_failures"]
    rows.append({"identity": "failed recoveries = OFF again without ON", "left": failures, "right": doubles})
    wrong = [each for each in rows if each["left"] != each["right"]]
    dropped = sender.dropped
    if dropped is not None and again >= _LEAST_RETRANSMITS and again > _DROPS_RATIO * dropped:
        wrong.append({"identity": "retransmissions answer drops", "left": again, "right": dropped})
    if not wrong:
        return
    words = "; ".join(f"{each['identity']}: {each['left']:,} and {each['right']:,}" for each in wrong)
    yield Finding(
        "bookkeeping",
        "notice",
        "Counters do not add up",
        f"{words}. Reordering, lost acknowledgements and timeouts that come too early make retransmissions "
        "that no drop explains; other differences are faults of the counting.",
        values={"mismatches": float(len(wrong))},
        evidence=[{"t_s": row["established_ps"] / 1e12, **each} for each in wrong],
        where=sender.where,
    )
