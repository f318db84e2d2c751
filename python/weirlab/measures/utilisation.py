"""Utilisation of ports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from weirlab.measures.base import Subject, WindowedPortMeasure
from weirlab.measures.rows import Totals, Window

if TYPE_CHECKING:
    import polars as pl

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
    chosen = Totals.of_ports(records, ports, window)
    wanted, framed = set(ports), defaultdict[int, list[int]](list)
    capacity_bps = 0
    columns = (records.column("port_names", name) for name in ("port", "rate_bps", "framing_bytes"))
    for port, rate_bps, framing_bytes in zip(*columns, strict=True):
        if port in wanted:
            capacity_bps += rate_bps
            framed[framing_bytes].append(port)
    sizes = chosen.sum("bytes")
    frames = {size: chosen.sum("frames", some) for size, some in framed.items() if size}

    def share(replicate: int) -> float:
        framing = sum(size * found.get(replicate, 0) for size, found in frames.items())
        return float(8e12 * (sizes[replicate] + framing) / capacity_bps / chosen.time_ps(replicate))

    return chosen.values(share, sizes)
