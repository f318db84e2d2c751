"""Utilisation of ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from weirlab.heavy import pl
from weirlab.measures.base import Subject, WindowedPortMeasure
from weirlab.measures.rows import Window, by_replicate, port_rows

if TYPE_CHECKING:
    from weirlab.records import Records


class Utilisation(WindowedPortMeasure):
    """Share of the time in which the ports transmit: sum of 8 (bytes + framing x frames) / sum of
    rate x time."""

    kind: Literal["utilisation"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return utilisation(subject.records, subject.ids, self.window_ps)


def utilisation(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Share of the time in which ports transmit: sum of 8 (bytes + framing x frames) / sum of
    rate x time.

    Several ports are weighted by their rates. A frame counts as a whole in the interval in which its
    transmission begins, so that a window may hold up to one frame more or less than its share.
    """
    names = records["port_names"].filter(pl.col("port").is_in(list(ports)))
    rows = port_rows(records, ports, window).join(
        names.select("port", "rate_bps", "framing_bytes"), on="port", maintain_order="left"
    )
    bits = 8.0 * (pl.col("bytes").cast(pl.Float64) + pl.col("frames") * pl.col("framing_bytes")).sum()
    capacity_bps = float(names.get_column("rate_bps").sum())
    return by_replicate(records, rows, bits * 1e12, per_ps=True, window=window, over=capacity_bps)
