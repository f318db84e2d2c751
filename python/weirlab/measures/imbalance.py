"""How unevenly links are loaded, and how long they are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from weirlab.heavy import pl
from weirlab.measures.base import PortMeasure, Subject, WindowedPortMeasure
from weirlab.measures.rows import Window, by_replicate, port_rows, quotient

if TYPE_CHECKING:
    from weirlab.records import Records


class LinkImbalance(WindowedPortMeasure):
    """Load of the most loaded of the ports over their mean load, by the bytes that they send; 1 is even (the
    maximum-to-mean ratio of parallel links). Or Jain's index of their loads, (sum x)^2 / (n sum x^2)."""

    kind: Literal["link-imbalance"]
    take: Literal["most-over-mean", "jain"] = "most-over-mean"
    """Of the loads."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return link_imbalance(subject.records, subject.ids, self.window_ps, self.take)


def link_imbalance(
    records: Records,
    ports: Sequence[int],
    window: Window | None = None,
    take: Literal["most-over-mean", "jain"] = "most-over-mean",
) -> pl.DataFrame:
    """Most over mean of the bytes that ports send, from 1 to their number n; or Jain's index of them, from
    1/n to 1. Null where none sends.

    Source: Jain 1984, eq. 1 (the index).
    """
    rows = port_rows(records, ports, window)
    loads = rows.group_by("replicate", "port", maintain_order=True).agg(
        load=pl.col("bytes").cast(pl.Float64).sum()
    )
    load = pl.col("load")
    ratio = quotient(load.max(), load.mean())
    if take == "jain":
        ratio = quotient(load.sum() ** 2, load.len() * (load**2).sum())
    return by_replicate(records, loads, pl.when(pl.col("load").sum() > 0).then(ratio))


class PauseDepth(PortMeasure):
    """How far stops spread: the greatest number of stops from an output that nobody holds to one of the
    ports, each because of the one before; 1 next to it, 0 where none of the ports is stopped. Of priority
    flow control and PAUSE of `buffers`."""

    kind: Literal["pause-depth"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return pause_depth(subject.records, subject.ids)


def pause_depth(records: Records, ports: Sequence[int]) -> pl.DataFrame:
    """The greatest `depth` of `hold_causes` of ports; 0 without any."""
    rows = records["hold_causes"].filter(pl.col("port").is_in(list(ports)))
    found = by_replicate(records, rows, pl.col("depth").cast(pl.Float64).max())
    return found.with_columns(pl.col("value").fill_null(0.0))


class PauseFraction(PortMeasure):
    """Share of the time for which PAUSE holds the ports: paused time / (time x ports)."""

    kind: Literal["pause-fraction"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return pause_fraction(subject.records, subject.ids)


def pause_fraction(records: Records, ports: Sequence[int]) -> pl.DataFrame:
    """Share of the time for which PAUSE holds ports: paused time / (time x ports)."""
    rows = port_rows(records, ports, None)
    return by_replicate(records, rows, pl.col("paused_ps").cast(pl.Float64).mean(), per_ps=True)
