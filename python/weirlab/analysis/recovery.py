"""When a network has recovered from a hotspot: its throughput, and the hot queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

from weirlab.heavy import np
from weirlab.measures.rows import Window
from weirlab.records import Records

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECOVERED = 0.95
"""A network has recovered when its outputs carry this part of what they can keep."""
CHANCE = 0.05
"""Most chance that one of the windows of a hotspot falls below that without a reason."""
LONGEST = 0.25
"""The longest window over which throughput is averaged, as a part of the hotspot."""
_BACK, _FAR = 1.25, 2.0


@dataclass(frozen=True)
class Recovery:
    """Recovery of throughput in each replicate."""

    values: Sequence[float | None]
    """Time [ps] from the start of the hotspot; None where a replicate does not recover."""
    window_ps: float | None
    """Over which throughput was averaged; None where no replicate recovered for good, or none is reported."""
    untold: str = ""
    """Why there are no values."""


def throughput_recovery(
    records: Records, outputs: Sequence[int], window: Window, middle_ps: int, begin_ps: int, ideal: float
) -> Recovery:
    """Time [ps] from `begin_ps` to the first recorded edge from which on the outputs together keep
    `RECOVERED` of a level, averaged over a moving window; 0 where they always do.

    The level is `ideal`, a share of the line rates, or the mean after `middle_ps`, whatever is less; a
    replicate whose mean after `middle_ps` is below `RECOVERED` of `ideal` does not recover. The moving window
    is the shortest whole number w of intervals for which all n = hotspot / w windows stay above the level
    together with the probability 1 - `CHANCE`: n P(N(0, 1) < -(1 - RECOVERED) / s) <= CHANCE, where s is the
    relative standard error of a mean over w in the second half, from overlapping means. It is at most
    `LONGEST` of the hotspot; without such a window nothing is reported.
    """
    runs = [
        (edges, amounts / np.diff(edges))
        for edges, amounts in _series(records, outputs, window, _bits(records, outputs))
    ]
    halves = [shares[edges[:-1] >= middle_ps] for edges, shares in runs]
    settled = [bool(half.size and half.mean() >= RECOVERED * ideal) for half in halves]
    if not any(settled):
        return Recovery([None] * len(runs), None)
    count = runs[0][1].size
    several = [half for half, good in zip(halves, settled, strict=True) if good]
    for many in range(1, int(LONGEST * count) + 1):
        bound = -NormalDist().inv_cdf(min(0.5, CHANCE * many / count))
        if bound * _standard_error(several, many) <= 1 - RECOVERED:
            break
    else:
        return Recovery([], None, f"the throughput varies too much over {LONGEST:.0%} of the hotspot")
    values: list[float | None] = []
    for (edges, shares), half, good in zip(runs, halves, settled, strict=True):
        needed = RECOVERED * min(ideal, half.mean()) if good else np.inf
        lacking = np.flatnonzero(_moving(shares, many) < needed)
        after = int(lacking[-1]) + 1 if lacking.size else 0
        kept = after <= shares.size - many
        values.append((float(edges[after] - begin_ps) if after else 0.0) if kept else None)
    length = (window[1] - window[0]) * many / count
    return Recovery(values, length)


def queue_return(
    records: Records, port: int, window: Window, middle_ps: int, begin_ps: int, set_point_bytes: float
) -> list[float | None]:
    """Time [ps] from `begin_ps` until the queue of a port is back at its set point; 0 where it never
    was away.

    It is away after a recorded interval with a mean above twice the set point, and back at the end of the
    first one with a mean no more than a quarter above it: with bursts short intervals find it back earlier.

    None where it does not come back, and where its mean after `middle_ps` is above twice the set point."""
    values: list[float | None] = []
    for edges, amounts in _series(records, [port], window, pl.col("queue_byte_ps").cast(pl.Float64)):
        means = amounts / np.diff(edges)
        late = edges[:-1] >= middle_ps
        length = float(edges[-1] - edges[:-1][late][0]) if late.any() else 1.0
        far = np.flatnonzero(means > _FAR * set_point_bytes)
        if amounts[late].sum() / length > _FAR * set_point_bytes:
            values.append(None)
        elif not far.size:
            values.append(0.0)
        else:
            back = np.flatnonzero(means[far[0] :] <= _BACK * set_point_bytes)
            values.append(float(edges[far[0] + back[0] + 1] - begin_ps) if back.size else None)
    return values


def _bits(records: Records, ports: Sequence[int]) -> pl.Expr:
    """Bits on the line over the sum of the line rates [ps]."""
    rates = records["port_names"].filter(pl.col("port").is_in(list(ports))).get_column("rate_bps")
    bits = 8e12 * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64)
    return bits / float(rates.sum())


def _series(
    records: Records, ports: Sequence[int], window: Window, amount: pl.Expr
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Edges [ps] of the recorded intervals in the window, and the sum of an amount over the ports in each of
    them, for each replicate."""
    rows = records["intervals"].filter(
        pl.col("port").is_in(list(ports)), pl.col("t_ps") > window[0], pl.col("t_ps") <= window[1]
    )
    rows = rows.join(records["port_names"].select("port", "framing_bytes"), on="port")
    sums = rows.group_by("replicate", "t_ps").agg(amount=amount.sum()).sort("replicate", "t_ps")
    for replicate in records["runs"].get_column("replicate").sort():
        mine = sums.filter(pl.col("replicate") == replicate)
        edges = np.concatenate([[window[0]], mine.get_column("t_ps").to_numpy()]).astype(np.float64)
        yield edges, mine.get_column("amount").to_numpy()


def _moving(values: NDArray[np.float64], many: int) -> NDArray[np.float64]:
    """Means of `many` values in a row."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray((sums[many:] - sums[:-many]) / many)


def _standard_error(series: Sequence[NDArray[np.float64]], many: int) -> float:
    """Of the mean of `many` values in a row, over the mean: from overlapping means, with the correction for
    the mean of all that is estimated from the same n values, n / (n - many)."""
    squares = []
    for values in series:
        if values.size <= many:
            return float("inf")
        parts = _moving(values, many) / values.mean() - 1
        squares.append(float((parts**2).mean()) * values.size / (values.size - many))
    return float(np.sqrt(np.mean(squares)))
