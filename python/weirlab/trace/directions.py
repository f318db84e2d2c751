"""What detectors of findings share: rows of directions, the place of a capture, and words for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weirlab.trace.model import Finding

__all__ = [
    "EVIDENCE",
    "LIMITED",
    "Row",
    "active_ps",
    "application_ratio",
    "bytes_text",
    "finding_of",
    "interval_rows",
    "ms_text",
    "near_receiver",
    "rate_text",
]

EVIDENCE = 10
"""Rows of evidence that a finding shows."""
LIMITED = 0.5
"""Share of its active time for which a sender must have been limited by one thing."""
_NEAR_RECEIVER = 0.2
"""A capture is near the receiver when acknowledgments come after less than this share of a round trip."""

Row = Mapping[str, Any]
"""A row of `Trace.flows`."""


def finding_of(
    row: Row,
    kind: str,
    verdict: Any,
    title: str,
    text: str,
    values: Mapping[str, float],
    evidence: Sequence[Mapping[str, Any]] = (),
) -> Finding:
    return Finding(kind, verdict, title, text, row["flow"], values, tuple(evidence))


def near_receiver(row: Row) -> bool:
    """Whether the capture was made near the receiver of this direction."""
    if row["rtt_min_ps"] is None or not row["handshake_ps"]:
        return False
    return bool(row["rtt_min_ps"] < _NEAR_RECEIVER * row["handshake_ps"])


def active_ps(row: Row) -> float:
    if row["first_data_ps"] is None:
        return 0.0
    return float(row["last_data_ps"] - row["first_data_ps"])


def application_ratio(row: Row) -> float:
    """Share of the active time in which the sender had nothing more to send."""
    active = active_ps(row)
    return min(max(row["idle_ps"], row["application_ps"]) / active, 1.0) if active else 0.0


def interval_rows(rows: pl.DataFrame, *columns: str) -> list[dict[str, Any]]:
    """Some intervals as evidence, spread over all."""
    step = max(1, rows.height // EVIDENCE)
    chosen = rows.gather_every(step).head(EVIDENCE)
    return [
        {"t_s": each["t_ps"] / 1e12, **{name: each[name] for name in columns}} for each in chosen.to_dicts()
    ]


def rate_text(bps: float | None) -> str:
    if bps is None:
        return "an unknown rate"
    return f"{bps / 1e6:.4g} Mbit/s"


def ms_text(ps: float | None) -> str:
    return "an unknown time" if ps is None else f"{ps / 1e9:.3g} ms"


def bytes_text(count: float) -> str:
    return f"{count / 1e3:.4g} kB"
