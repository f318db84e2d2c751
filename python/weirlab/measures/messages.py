"""How long messages take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import PositiveFraction, SizeRange, Window as Limits
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, MessageRows, Need, Subject
from weirlab.measures.rows import Window, by_replicate

if TYPE_CHECKING:
    from weirlab.records import Records
    from weirlab.units import Interval, Size

Sizes = tuple[int, int]
"""Least and greatest length [B], both included."""


class _OfMessages(FlowMeasure):
    """A number about messages."""

    window: Limits | None = None
    """Time in which the counted messages arrive, its start included. Absent: all messages count."""
    sizes: SizeRange | None = None
    """Messages of these lengths count, both ends included. Absent: all."""

    def needs(self) -> Iterator[Need]:
        yield MessageRows()

    def bounds(self) -> Sizes | None:
        """The field `sizes` [B]."""
        limits: Interval[Size] | None = self.sizes
        return None if limits is None else (limits.low.bytes, limits.high.bytes)


class MessageTime(_OfMessages):
    """Time from the start of a message until its last byte is delivered (flow completion time): a percentile,
    or the mean. Messages that have not ended count as longer than all others."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["message-time"]
    at: PositiveFraction | None = None
    """The share of messages that take no longer. Absent: the mean."""
    until: Literal["delivered", "acknowledged"] = "delivered"
    """Until the last byte is delivered, or its sender knows that."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where that is one of those that have not ended."""
        rows = messages(subject.records, subject.ids, self.window_ps, self.bounds())
        taken = pl.col(f"{self.until}_ps").cast(pl.Float64) - pl.col("start_ps").cast(pl.Float64)
        return by_replicate(subject.records, rows, statistic(taken, self.at))


class Slowdown(_OfMessages):
    """Time from the start of a message until its last byte is delivered, over that in an empty network at
    best: a percentile, or the mean. Messages that have not ended count as slower than all others."""

    kind: Literal["slowdown"]
    at: PositiveFraction | None = None
    """The share of messages that are no slower. Absent: the mean."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where that is one of those that have not ended."""
        rows = messages(subject.records, subject.ids, self.window_ps, self.bounds())
        return by_replicate(subject.records, rows, statistic(_slowdown(), self.at))


def _slowdown() -> pl.Expr:
    """Of a message; null before it has ended."""
    taken = pl.col("delivered_ps").cast(pl.Float64) - pl.col("start_ps").cast(pl.Float64)
    return taken / pl.col("ideal_ps").cast(pl.Float64)


class UnfinishedMessages(_OfMessages):
    """Share of the messages that have not ended when the run does."""

    kind: Literal["unfinished-messages"]

    def values(self, subject: Subject) -> pl.DataFrame:
        rows = messages(subject.records, subject.ids, self.window_ps, self.bounds())
        return by_replicate(subject.records, rows, pl.col("delivered_ps").is_null().mean())


def messages(
    records: Records, traffic: Sequence[int], window: Window | None = None, sizes: Sizes | None = None
) -> pl.DataFrame:
    """Rows of `messages` of entries of traffic, of those that come in a window and have some length."""
    rows = records["messages"].filter(pl.col("traffic").is_in(list(traffic)))
    if window is not None:
        rows = rows.filter((pl.col("start_ps") >= window[0]) & (pl.col("start_ps") < window[1]))
    if sizes is not None:
        rows = rows.filter(pl.col("size_bytes").is_between(*sizes))
    return rows


def statistic(value: pl.Expr, at: float | None) -> pl.Expr:
    """A percentile by nearest rank, or the mean; null where it depends on a value that is null."""
    ordered = value.fill_null(float("inf"))
    found = ordered.mean() if at is None else percentile(ordered, at)
    return pl.when(found.is_finite()).then(found)


def percentile(value: pl.Expr, at: float) -> pl.Expr:
    """The least of the values that a share `at` of them does not exceed (nearest rank)."""
    rank = (pl.len().cast(pl.Float64) * at - 1e-9).ceil().cast(pl.Int64) - 1
    return value.sort().get(rank.clip(0))
