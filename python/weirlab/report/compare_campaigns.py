"""Several campaigns of bulk transfers in tables and plots: a colour for each, and what changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from weirlab.campaigns import Campaign, summaries
from weirlab.campaigns.tables import INTERVALS, measurement_table
from weirlab.plots.bulk import bulk_plots, round_trips_plot
from weirlab.plots.style import Plot
from weirlab.report.page import Block, Head, Table, fixed

_OF_ALL = ("distribution-", "predictability-", "cpu-")
"""Plots that put all measurements together, of whatever campaign."""
_DRAWS = 2000
_CONFIDENCE = 0.95
_LEAST_CYCLES = 3
"""Of each, for an interval of their ratio."""


def campaign_blocks(names: Sequence[str], campaigns: Sequence[Campaign]) -> tuple[list[Block], list[Plot]]:
    """What campaigns measured, in tables of all their points, and their plots with a colour for each."""
    rows = pl.concat(
        [
            measurement_table(campaign).with_columns(campaign=pl.lit(name))
            for name, campaign in zip(names, campaigns, strict=True)
        ]
    )
    plots = [
        plot
        for plot in (
            *(
                plot
                for plot in bulk_plots(rows, pl.DataFrame(schema=INTERVALS), {})
                if not plot.name.startswith(_OF_ALL)
            ),
            round_trips_plot(_round_trips(names, campaigns)),
        )
        if plot is not None
    ]
    blocks: list[Block] = [_points(names, campaigns)]
    ratios = _ratios(names, campaigns)
    return [*blocks, ratios] if ratios is not None else blocks, plots


def _points(names: Sequence[str], campaigns: Sequence[Campaign]) -> Table:
    """A row for each point of each campaign."""
    return Table.by_head(
        "Points of all campaigns",
        [
            {
                "campaign:": name,
                "point:": _label(point.levels.values()),
                "measured": str(point.transfers),
                "goodput [Mbit/s]": fixed(point.goodput_bps / 1e6, 2),
                "IQR [Mbit/s]": fixed(point.goodput_iqr_bps / 1e6, 2) or "–",
                "loaded RTT [ms, mean / 99 %]": (
                    f"{fixed(1e3 * point.loaded_mean_s, 1)} / {fixed(1e3 * point.loaded_p99_s, 1)}"
                ),
                "dRTT [ms]": fixed(1e3 * point.rtt_difference_s, 2),
                "Jain": fixed(point.fairness, 3),
            }
            for name, campaign in zip(names, campaigns, strict=True)
            for point in summaries(campaign)
        ],
        note="Goodput and dRTT: medians over the cycles.",
    )


def _ratios(names: Sequence[str], campaigns: Sequence[Campaign]) -> Table | None:
    """Goodput of each further campaign over that of the first, where factors have the same levels."""
    first = {
        frozenset(point.levels.items()): (place, point) for place, point in enumerate(summaries(campaigns[0]))
    }
    rng = np.random.default_rng(1)
    rows: list[dict[Head, str]] = []
    for name, campaign in zip(names[1:], campaigns[1:], strict=True):
        for place, point in enumerate(summaries(campaign)):
            levels = frozenset(point.levels.items())
            if levels not in first:
                continue
            other_place, other = first[levels]
            ours, theirs = _goodputs(campaign, place), _goodputs(campaigns[0], other_place)
            rows.append(
                {
                    "campaign:": name,
                    "point:": _label(point.levels.values()),
                    "goodput, times": (
                        fixed(point.goodput_bps / other.goodput_bps, 3) if other.goodput_bps else ""
                    ),
                    "interval [95 %]": _interval(ours, theirs, rng),
                    "dRTT [ms more]": fixed(1e3 * (point.rtt_difference_s - other.rtt_difference_s), 2),
                }
            )
    note = (
        f"Medians over the cycles, at points whose factors have the same levels, over those of {names[0]}; "
        f"intervals of draws of cycles, of {_LEAST_CYCLES} or more."
    )
    return Table.by_head(f"Compared with {names[0]}", rows, note=note) if rows else None


def _goodputs(campaign: Campaign, point: int) -> np.ndarray:
    table = measurement_table(campaign).filter(pl.col("point") == point)
    return table.get_column("goodput_bps").to_numpy()


def _interval(ours: np.ndarray, theirs: np.ndarray, rng: np.random.Generator) -> str:
    """Of the ratio of two medians, by draws of both."""
    if min(ours.size, theirs.size) < _LEAST_CYCLES:
        return "–"
    drawn = [np.median(rng.choice(part, (_DRAWS, part.size)), axis=1) for part in (ours, theirs)]
    low, high = np.quantile(drawn[0] / drawn[1], [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return f"{low:.3f} to {high:.3f}"


def _round_trips(names: Sequence[str], campaigns: Sequence[Campaign]) -> pl.DataFrame:
    """Round-trip times of all pings during a load: `campaign rtt_ms`."""
    found = [
        (name, 1e3 * rtt)
        for name, campaign in zip(names, campaigns, strict=True)
        for kept in campaign.kept
        if kept.measurement is not None and kept.measurement.loaded and kept.measurement.pings is not None
        for rtt in kept.measurement.pings.rtts_s
        if math.isfinite(rtt)
    ]
    return pl.DataFrame(found, schema={"campaign": pl.String, "rtt_ms": pl.Float64}, orient="row")


def _label(levels: Iterable[str]) -> str:
    return ", ".join(levels) or "as it stands"
