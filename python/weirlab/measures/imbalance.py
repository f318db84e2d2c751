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
    maximum-to-mean ratio of parallel links)."""

    kind: Literal["link-imbalance"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return link_imbalance(subject.records, subject.ids, self.window_ps)


def link_imbalance(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Most over mean of the bytes that ports send, from 1 to their number. Null where none sends."""
    rows = port_rows(records, ports, window)
    loads = rows.group_by("replicate", "port", maintain_order=True).agg(
        load=pl.col("bytes").cast(pl.Float64).sum()
    )
    ratio = quotient(pl.col("load").max(), pl.col("load").mean())
    return by_replicate(records, loads, pl.when(pl.col("load").sum() > 0).then(ratio))


class PauseFraction(PortMeasure):
    """Share of the time for which PAUSE holds the ports: paused time / (time x ports)."""

    kind: Literal["pause-fraction"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return pause_fraction(subject.records, subject.ids)


def pause_fraction(records: Records, ports: Sequence[int]) -> pl.DataFrame:
    """Share of the time for which PAUSE holds ports: paused time / (time x ports)."""
    rows = port_rows(records, ports, None)
    return by_replicate(records, rows, pl.col("paused_ps").cast(pl.Float64).mean(), per_ps=True)
