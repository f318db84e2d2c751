"""How unevenly links are loaded, and how long they are held."""

from __future__ import annotations

from typing import Literal

from weirlab.heavy import pl
from weirlab.measures.base import PortMeasure, Subject, WindowedPortMeasure
from weirlab.measures.rows import by_replicate, port_rows, quotient


class LinkImbalance(WindowedPortMeasure):
    """Load of the most loaded of the ports over their mean load, by the bytes that they send; 1 is even (the
    maximum-to-mean ratio of parallel links). Or Jain's index of their loads, (sum x)^2 / (n sum x^2)."""

    kind: Literal["link-imbalance"]
    take: Literal["most-over-mean", "jain"] = "most-over-mean"
    """Of the loads."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where none sends. Source: Jain 1984, eq. 1 (the index)."""
        rows = port_rows(subject.records, subject.ids, self.window_ps)
        loads = rows.group_by("replicate", "port", maintain_order=True).agg(
            load=pl.col("bytes").cast(pl.Float64).sum()
        )
        load = pl.col("load")
        ratio = quotient(load.max(), load.mean())
        if self.take == "jain":
            ratio = quotient(load.sum() ** 2, load.len() * (load**2).sum())
        return by_replicate(subject.records, loads, pl.when(pl.col("load").sum() > 0).then(ratio))


class PauseDepth(PortMeasure):
    """How far stops spread: the greatest number of stops from an output that nobody holds to one of the
    ports, each because of the one before; 1 next to it, 0 where none of the ports is stopped. Of priority
    flow control and PAUSE of `buffers`."""

    kind: Literal["pause-depth"]

    def values(self, subject: Subject) -> pl.DataFrame:
        rows = subject.records["hold_causes"].filter(pl.col("port").is_in(list(subject.ids)))
        return by_replicate(subject.records, rows, pl.col("depth").cast(pl.Float64).max(), empty=0.0)


class PauseFraction(PortMeasure):
    """Share of the time for which PAUSE holds the ports: paused time / (time x ports)."""

    kind: Literal["pause-fraction"]

    def values(self, subject: Subject) -> pl.DataFrame:
        rows = port_rows(subject.records, subject.ids, None)
        return by_replicate(subject.records, rows, pl.col("paused_ps").cast(pl.Float64).mean(), per_ps=True)
