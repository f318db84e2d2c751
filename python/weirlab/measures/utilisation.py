"""Utilisation of ports."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from weirlab.heavy import pl
from weirlab.measures.base import Subject, WindowedPortMeasure
from weirlab.measures.rows import Totals


class Utilisation(WindowedPortMeasure):
    """Share of the time in which the ports transmit: sum of 8 (bytes + framing x frames) / sum of
    rate x time."""

    kind: Literal["utilisation"]

    def values(self, subject: Subject) -> pl.DataFrame:
        chosen = Totals.of_ports(subject.records, subject.ids, self.window_ps)
        wanted, framed = set(subject.ids), defaultdict[int, list[int]](list)
        capacity_bps = 0
        names = ("port", "rate_bps", "framing_bytes")
        columns = (subject.records.column("port_names", name) for name in names)
        for port, rate_bps, framing_bytes in zip(*columns, strict=True):
            if port in wanted:
                capacity_bps += rate_bps
                framed[framing_bytes].append(port)
        sizes = chosen.sum("bytes")
        frames = {size: chosen.sum("frames", some) for size, some in framed.items() if size}

        def share(replicate: int) -> float:
            framing = sum(size * found.get(replicate, 0) for size, found in frames.items())
            return float(8e12 * (sizes[replicate] + framing) / capacity_bps / chosen.time_ps(replicate))

        return chosen.values(sizes, share)
