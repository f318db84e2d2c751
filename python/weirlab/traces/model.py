"""What was found in a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

Verdict = Literal["problem", "notice"]
"""`problem`: it cost throughput or time; `notice`: it explains what is seen, or may cost something."""

Row = Mapping[str, Any]
"""A row of a table, by the names of its columns."""

EVIDENCE = 10
"""Rows of evidence that a finding shows."""

PROTOCOLS: Mapping[int, str] = {1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP"}
"""IP protocol numbers that have a name here."""

KNOWN_LINKS = ("Ethernet", "Raw", "Cooked", "Cooked2", "Loopback", "Hdlc", "Erf")
"""Links of the table `interfaces` whose frames are looked into."""


STATEMENTS: Mapping[str, str] = {
    "ramp-lost": "I",
    "no-excursion": "II",
    "over-estimation": "III",
    "repeated-recovery": "III",
    "tail-spill": "IV",
    "bookkeeping": "V",
}
"""Findings that stand for a statement of the study of Rapid (V: its counters), by kind."""


@dataclass(frozen=True)
class Finding:
    """Something about a flow, or about the whole trace, with what it rests on."""

    kind: str
    """Its name in docs/traces.md, such as `lossy-path`."""
    verdict: Verdict
    title: str
    text: str
    """What was found, with its numbers, and what it means."""
    flow: int | None = None
    """The direction of a connection; None for the whole trace."""
    values: Mapping[str, float] = field(default_factory=dict)
    """The numbers that were judged; names end in their units."""
    evidence: Sequence[Mapping[str, object]] = ()
    """Where to look: rows with a time `t_s` [s] since the first frame, or since the start of a run."""
    where: str = ""
    """The connection of a simulated run."""
    remedy: str = ""
    """What its reader can do, where that does not depend on the numbers."""


def evidence_of(rows: pl.DataFrame, **columns: str | tuple[str, float]) -> list[dict[str, Any]]:
    """The first rows as evidence: when each was, and these columns of it, divided by what stands behind their
    names."""

    def cell(row: Row, of: str | tuple[str, float]) -> Any:
        name, divisor = of if isinstance(of, tuple) else (of, None)
        return row[name] if divisor is None or row[name] is None else row[name] / divisor

    cells = {"t_s": ("t_ps", 1e12), **columns}
    shown = rows.head(EVIDENCE).iter_rows(named=True)
    return [{name: cell(row, of) for name, of in cells.items()} for row in shown]


@dataclass(frozen=True)
class Trace:
    """Tables of a trace; docs/traces.md lists them. Times are in ps since the first frame."""

    name: str
    """Of the file."""
    tables: Mapping[str, pl.DataFrame]
    every_ps: int
    """Length of the intervals."""

    def __getitem__(self, table: str) -> pl.DataFrame:
        return self.tables[table]

    @property
    def facts(self) -> Row:
        """What is known of the file as a whole: the row of the table `trace`."""
        return self.tables["trace"].row(0, named=True)

    def flows(self) -> pl.DataFrame:
        """The directions of all connections that carried something, most bytes first.

        Besides the columns of the table `flows`: `name`, `active_s` (first to last data) [s], `goodput_bps`
        (bytes seen for the first time over `active_s`), `retransmitted_ratio` (of packets with data on the
        wire), and `rtt_mean_ps`.
        """
        active = (pl.col("last_data_ps") - pl.col("first_data_ps")) / 1e12
        return (
            self.tables["flows"]
            .filter(pl.col("packets") > 0)
            .with_columns(
                name=pl.format("{} → {}", "from", "to"),
                active_s=active,
                goodput_bps=pl.when(active > 0).then(pl.col("new_bytes") * 8 / active),
                retransmitted_ratio=pl.when(pl.col("segments") > 0).then(
                    pl.col("retransmitted_segments") / pl.col("segments")
                ),
                rtt_mean_ps=pl.when(pl.col("rtts") > 0).then(pl.col("rtt_sum_ps") / pl.col("rtts")),
            )
            .sort(["payload_bytes", "flow"], descending=[True, False])
        )

    def flow_name(self, flow: int) -> str:
        """`FROM → TO` of a flow."""
        row = self.tables["flows"].row(by_predicate=pl.col("flow") == flow, named=True)
        return f"{row['from']} → {row['to']}"
