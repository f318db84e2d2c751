"""Measures of ports: how busy they are, what waits there, and how long frames are dropped or senders paused.

The spread of a queue and the time in which frames are dropped come from recorded intervals: they are as fine
as these.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weirlab.measures.rows import MissingRecordError, Window, by_replicate, port_rows, recorded, windowed
from weirlab.records import Records

__all__ = [
    "control_frames",
    "drop_time",
    "last_drop",
    "marks",
    "max_queue",
    "mean_queue",
    "pause_time",
    "queue_percentile",
    "queue_spread",
    "utilisation",
]


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
    return by_replicate(records, rows, bits * 1e12 / capacity_bps, per_ps=True, window=window)


def mean_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Mean over time of the bytes that wait [B]: (integral of waiting bytes over time) / time, summed over
    the ports.

    The frame in transmission does not wait.
    """
    rows = port_rows(records, ports, window)
    integral = pl.col("queue_byte_ps").cast(pl.Float64).sum()
    return by_replicate(records, rows, integral, per_ps=True, window=window)


def max_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Most bytes that wait at one of the ports [B]. The frame in transmission does not wait."""
    rows = port_rows(records, ports, window)
    return by_replicate(records, rows, pl.col("queue_max_bytes").max().cast(pl.Float64))


def queue_spread(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Standard deviation over time of the bytes q that wait at the ports together [B]:
    sqrt(mean((q - mean(q))^2)), q at the ends of the recorded intervals."""
    rows = _levels(records, ports, window)
    return by_replicate(records, rows, pl.col("queue_bytes").std(ddof=0))


def queue_percentile(
    records: Records, ports: Sequence[int], share: float, window: Window | None = None
) -> pl.DataFrame:
    """Bytes [B] that wait at a port at most for `share`, in [0, 1], of the time: of all ports the greatest.

    Interpolated linearly within the bin of the recorded distribution that holds it. Raises MissingRecordError
    where none was recorded, or one of another time."""
    rows = records["queue_levels"].filter(pl.col("port").is_in(list(ports)))
    known = set(rows.get_column("port").unique())
    if absent := [port for port in ports if port not in known]:
        names = records["port_names"].filter(pl.col("port").is_in(absent)).get_column("name").to_list()
        raise MissingRecordError(
            f"the queues of {', '.join(names)} were not recorded: add an entry such as {{levels: PORT}} to "
            "'record'"
        )
    rows = rows.sort("replicate", "port", "low_bytes").with_columns(pl.col("time_ps").cast(pl.Float64))
    times = rows.group_by("replicate", "port").agg(time_ps=pl.col("time_ps").sum())
    times = times.join(records["runs"].select("replicate", "end_ps"), on="replicate")
    expected = pl.col("end_ps").cast(pl.Float64) if window is None else pl.lit(float(window[1] - window[0]))
    if times.filter(pl.col("time_ps") != expected).height:
        raise MissingRecordError("the distribution of the queue was recorded over another time")
    upto = pl.col("time_ps").cum_sum().over("replicate", "port")
    rank = share * pl.col("time_ps").sum().over("replicate", "port")
    bins = rows.with_columns(upto=upto, rank=rank).filter(
        pl.col("time_ps") > 0, pl.col("upto") >= pl.col("rank") * (1 - 1e-12)
    )
    part = (1 - (pl.col("upto") - pl.col("rank")) / pl.col("time_ps")).clip(0, 1)
    level = pl.col("low_bytes") + part * (pl.col("high_bytes").cast(pl.Float64) - pl.col("low_bytes"))
    each = bins.group_by("replicate", "port", maintain_order=True).agg(level=level.first())
    return by_replicate(records, each, pl.col("level").max())


def drop_time(
    records: Records, ports: Sequence[int], window: Window | None = None, *, longest: bool = False
) -> pl.DataFrame:
    """Time in which frames are dropped at one of the ports [ps]: the lengths of all recorded intervals with
    drops, or of the `longest` stretch of such intervals that follow one another."""
    rows = _levels(records, ports, window)
    length = pl.when(pl.col("drops") > 0).then(pl.col("length_ps")).otherwise(0.0)
    if not longest:
        return by_replicate(records, rows, length.sum())
    stretch = (pl.col("drops") == 0).cum_sum().over("replicate")
    stretches = rows.with_columns(stretch=stretch, dropping_ps=length).group_by("replicate", "stretch")
    return by_replicate(records, stretches.agg(pl.col("dropping_ps").sum()), pl.col("dropping_ps").max())


def last_drop(records: Records, ports: Sequence[int]) -> pl.DataFrame:
    """Time of the last drop at the ports [ps]; null where nothing was dropped."""
    return by_replicate(records, port_rows(records, ports, None), pl.col("last_drop_ps").max())


def marks(records: Records, ports: Sequence[int], *, share: bool = False) -> pl.DataFrame:
    """Frames that the queues of the ports marked, or that number over all frames that the ports sent; null
    where they sent none.

    Raises MissingRecordError for records of a time before there were marks."""
    if "marks" not in records:
        raise MissingRecordError("marks were not recorded")
    rows = records["marks"].filter(pl.col("port").is_in(list(ports)))
    counts = by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum())
    counts = counts.with_columns(pl.col("value").fill_null(0.0))
    if not share:
        return counts
    sent = by_replicate(records, port_rows(records, ports, None), pl.col("frames").cast(pl.Float64).sum())
    both = counts.join(sent.rename({"value": "sent"}), on="replicate", maintain_order="left")
    value = pl.when(pl.col("sent") > 0).then(pl.col("value") / pl.col("sent"))
    return both.select("replicate", value=value)


def pause_time(records: Records, ports: Sequence[int], take: str = "total") -> pl.DataFrame:
    """Time for which PAUSE holds ports [ps]: `total` of all pauses, as a mean over the ports; the `longest`
    single pause of one of them; or the `end` of the last one, null where there was none."""
    rows = port_rows(records, ports, None)
    values = {
        "total": pl.col("paused_ps").cast(pl.Float64).mean(),
        "longest": pl.col("paused_longest_ps").cast(pl.Float64).max(),
        "end": pl.col("paused_last_ps").cast(pl.Float64).max(),
    }
    return by_replicate(records, rows, values[take])


def control_frames(
    records: Records, ports: Sequence[int], kind: str | None = None, window: Window | None = None
) -> pl.DataFrame:
    """Control frames of a kind, or all, that the queues of the ports caused to be sent, in the window if
    there is one. Raises MissingRecordError where a window needs a series that was not recorded."""
    if window is None:
        rows = records["control_frames"]
    else:
        windowed(records, "intervals", "port", ports, window)
        inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
        rows = records["control_intervals"].filter(inside)
    rows = rows.filter(pl.col("queue_port").is_in(list(ports)))
    if kind is not None:
        rows = rows.join(records["kind_names"].filter(pl.col("name") == kind), on="kind", how="semi")
    counts = by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum())
    return counts.with_columns(pl.col("value").fill_null(0.0))


def _levels(records: Records, ports: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Columns `replicate t_ps length_ps queue_bytes drops`: recorded intervals of ports, summed over them.

    Raises MissingRecordError when a port was not recorded, or in other intervals than the first."""
    rows = recorded(records, "intervals", "port", ports, window)
    levels = (
        rows.group_by("replicate", "t_ps")
        .agg(pl.col("queue_bytes").cast(pl.Float64).sum(), pl.col("drops").sum(), ports=pl.len())
        .sort("replicate", "t_ps")
    )
    if levels.filter(pl.col("ports") != len(set(ports))).height:
        names = records["port_names"].filter(pl.col("port").is_in(list(ports))).get_column("name").to_list()
        raise MissingRecordError(f"{', '.join(names)} are not recorded in the same intervals")
    before = pl.col("t_ps").shift(1).over("replicate").fill_null(0 if window is None else window[0])
    return levels.with_columns(length_ps=(pl.col("t_ps") - before).cast(pl.Float64))
