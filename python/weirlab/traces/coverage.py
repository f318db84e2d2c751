"""What a diagnosis looked at, and what not: so that "not found" is said of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from weirlab.traces.capture import cut_text, merged_connections, opaque
from weirlab.traces.directions import round_trip_ps
from weirlab.traces.findings import FLOWS, KINDS, LEAST_PACKETS, judged
from weirlab.traces.limits import LEAST_MS, LEAST_ROUNDS, long_enough
from weirlab.traces.model import PROTOCOLS, Row, Trace


@dataclass(frozen=True)
class Coverage:
    """What was looked at."""

    directions: int
    """TCP directions that were judged."""
    looked_for: Mapping[str, int]
    """Of them, in how many each kind of finding was looked for."""
    reasons: Mapping[str, str]
    """Why a kind was not looked for in the others."""
    left_out: tuple[str, ...]
    """What was not looked at, with its number."""

    @property
    def everywhere(self) -> list[str]:
        """Kinds that were looked for in every direction that was judged."""
        return [kind for kind in KINDS if self.directions and self.looked_for[kind] == self.directions]


def coverage(trace: Trace) -> Coverage:
    """What `diagnose` looks at in a trace."""
    rows = list(judged(trace).iter_rows(named=True))
    looked = dict.fromkeys(KINDS, 0)
    reasons: dict[str, str] = {}
    for row in rows:
        for kind in KINDS:
            lack = next((reason for has, reason in _NEEDS.get(kind, ()) if not has(trace, row)), None)
            if lack is None:
                looked[kind] += 1
            else:
                reasons.setdefault(kind, lack)
    return Coverage(len(rows), looked, reasons, tuple(_left_out(trace, len(rows))))


def _left_out(trace: Trace, directions: int) -> Iterator[str]:
    flows = trace.flows()
    tcp = flows.filter(pl.col("protocol") == 6, pl.col("payload_bytes") > 0, pl.col("headless_packets") == 0)
    merged = tcp.filter(pl.col("connection").is_in(merged_connections(trace).to_list())).height
    small = tcp.filter(pl.col("segments") < LEAST_PACKETS).height
    many = max(tcp.height - merged - small - directions, 0)
    if small:
        yield f"{small:,} TCP directions with fewer than {LEAST_PACKETS} segments"
    if many:
        yield f"{many:,} TCP directions beyond the {FLOWS} largest"
    if merged:
        yield f"{merged:,} TCP directions whose captures were merged"
    known = [number for number, _ in opaque(trace)]
    others = flows.filter(
        pl.col("protocol") != 6, ~pl.col("flow").is_in([flow for each in known for flow in each])
    )
    counts = others.group_by("protocol").len().sort("len", descending=True)
    for protocol, count in counts.iter_rows():
        yield f"{count:,} flows of {PROTOCOLS.get(protocol, f'IP protocol {protocol}')}"
    for numbers, words in opaque(trace):
        packets = flows.filter(pl.col("flow").is_in(numbers)).get_column("packets").sum()
        yield f"{packets:,} packets of {words}"
    facts = trace.facts
    unknown = facts["unknown_link_frames"] + facts["unknown_frames"]
    if unknown:
        yield f"{unknown:,} frames of unknown type"
    if words := cut_text(trace):
        yield words
    if facts["malformed_frames"]:
        yield f"{facts['malformed_frames']:,} frames whose headers contradict themselves"
    if facts["untracked_packets"]:
        yield f"{facts['untracked_packets']:,} packets of connections beyond the most"


Test = tuple[Callable[[Trace, Row], bool], str]
"""What a finding needs, and what is said without it."""


def _optioned(trace: Trace, row: Row) -> bool:
    other = trace["flows"].row(by_predicate=pl.col("flow") == row["flow"] ^ 1, named=True)
    return not row["cut_packets"] and not other["cut_packets"]


def _long(trace: Trace, row: Row) -> bool:
    rows = trace["intervals"].filter(pl.col("flow") == row["flow"])
    return rows.filter((pl.col("rtts") >= 3) | (pl.col("behinds") >= 3)).height >= 5


_ANSWERED: Test = (lambda _, row: bool(row["acked_bytes"]), "acknowledgments were not captured")
_TIMED: Test = (lambda _, row: bool(row["aheads"] or row["behinds"]), "no round trip was seen")
_KNOWN_TRIP: Test = (lambda _, row: round_trip_ps(row) is not None, "no round trip was seen")
_SCALED: Test = (
    lambda _, row: row["window_max_bytes"] is not None,
    "the scale of windows is not known, as the handshake, or its options, were not captured",
)
_GREETED: Test = (lambda _, row: bool(row["handshake_ps"]), "the handshake was not captured")
_OPTIONED: Test = (_optioned, "options of TCP were cut off")
_FINISHED: Test = (lambda _, row: bool(row["fin"]), "its end was not captured")
_WHOLE: Test = (
    lambda _, row: row["whole_trip_ps"] is not None,
    "the handshake and time stamps were not captured, which would give the whole round trip",
)
_LASTING: Test = (
    lambda _, row: long_enough(row),
    f"it lasted less than {LEAST_ROUNDS} round trips or {LEAST_MS} ms",
)
_LONG: Test = (_long, "fewer than five intervals have round trips")
_NEEDS: Mapping[str, tuple[Test, ...]] = {
    "window-limited": (_ANSWERED, _SCALED, _LASTING),
    "slow-reader": (_ANSWERED, _SCALED, _LASTING),
    "zero-window": (_ANSWERED,),
    "bufferbloat": (_TIMED, _LONG),
    "stalls": (_ANSWERED,),
    "application-limited": (_ANSWERED, _WHOLE, _LASTING),
    "sender-limited": (_ANSWERED, _SCALED, _GREETED, _LASTING, _KNOWN_TRIP),
    "slow-start-limited": (_GREETED, _FINISHED),
    "ack-compression": (_TIMED,),
    "spurious-retransmissions": (_ANSWERED, _OPTIONED),
}
