"""Campaigns while they grow: the goodput of each transfer, from their journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.documents import typed
from weirlab.report.page import number
from weirlab.viewer.following import POINTS, ROWS, Appended, Chart, Live

if TYPE_CHECKING:
    from weirlab.campaigns.campaign import Kept


class LiveCampaign(Live):
    """A campaign: the goodput of each transfer."""

    noun = "measurements"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._lines = Appended(directory / "measurements.jsonl")
        self._plan: Any = None
        self._entries: dict[tuple[int, int, int], Kept] = {}
        self._is_real = False

    def look(self) -> None:
        from weirlab.campaigns import plan_of
        from weirlab.campaigns.campaign import Kept
        from weirlab.scenario import load

        if self._plan is None:
            if not (self.directory / "scenario.yaml").exists():
                return
            self._plan = plan_of(load(self.directory / "scenario.yaml"))
        for entry in self._lines:
            with suppress(ValueError):
                kept = typed(Kept, entry)
                self._is_real |= kept.measurement is not None and kept.measurement.began > 0
                self._entries[kept.place.cycle, kept.place.point, kept.place.step] = kept

    @property
    def done(self) -> float:
        return len(self._entries)

    @property
    def total(self) -> float | None:
        return None if self._plan is None else len(self._plan.places())

    def left_s(self, elapsed_s: float) -> float | None:
        if self.total is None or not self._entries:
            return None
        if not self._is_real:  # seconds are simulated ones
            return super().left_s(elapsed_s)
        mean_s = sum(each.measurement.seconds for each in self._entries.values() if each.measurement) / len(
            self._entries
        )
        return (self.total - self.done) * mean_s

    def sentence(self) -> str:
        failed = sum(each.measurement is None for each in self._entries.values())
        return super().sentence() + (f", {failed} failed" if failed else "")

    def _levels(self, point: int) -> str:
        levels: Mapping[str, str] = self._plan.levels[point]
        return ", ".join(levels.values()) or "all"

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        rows = []
        for (cycle, point, _), kept in reversed(self._entries.items()):
            found, goodput, rtt = kept.measurement, _goodput_bps(kept), _rtt_s(kept)
            how = kept.failures[-1] if found is None else "; ".join(found.degraded) or found.disturbance
            rows.append(
                [
                    str(cycle + 1),
                    self._levels(point),
                    "–" if goodput is None else number(goodput / 1e6),
                    "–" if rtt is None else number(rtt * 1e3),
                    how or "well",
                ]
            )
        titles = ("cycle", "point", "goodput [Mbit/s]", "round-trip time [ms]", "how it went")
        return titles, rows[:ROWS]

    def charts(self) -> list[Chart]:
        goodputs, delays = [], []
        factors = list(self._plan.levels[0]) if self._plan is not None and self._plan.levels else []
        for place, ((_, point, _), kept) in enumerate(self._entries.items(), start=1):
            goodput, rtt = _goodput_bps(kept), _rtt_s(kept)
            if goodput is not None:
                levels: list[str] = list(self._plan.levels[point].values())
                at = levels[0] if levels else place
                series = ", ".join(levels[1:]) or "goodput"
                goodputs.append({"x": at, "y": goodput / 1e6, "series": series})
            if rtt is not None:
                loaded = "loaded" if goodput is not None else "unloaded"
                delays.append({"x": place, "y": rtt * 1e3, "series": loaded})
        chart = {"title": "Goodput", "y": "Mbit/s", "rows": goodputs[-POINTS:]}
        if factors:
            across = list(dict.fromkeys(level[factors[0]] for level in self._plan.levels))
            charts = [{**chart, "kind": "levels", "x": factors[0], "across": across}]
        else:
            charts = [{**chart, "kind": "dots", "x": "measurement"}]
        if delays:
            charts.append(
                {
                    "kind": "dots",
                    "title": "Round-trip time",
                    "x": "measurement",
                    "y": "ms",
                    "rows": delays[-POINTS:],
                }
            )
        return charts


def _goodput_bps(kept: Kept) -> float | None:
    found = None if kept.measurement is None else kept.measurement.transfer
    if found is None:
        return None
    return sum(each.received_bytes * 8 / each.seconds for each in found.streams if each.seconds > 0)


def _rtt_s(kept: Kept) -> float | None:
    pings = None if kept.measurement is None else kept.measurement.pings
    return None if pings is None else pings.mean_s
