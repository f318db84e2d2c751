"""What waits at ports.

The spread of a queue comes from recorded intervals: it is as fine as these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from weirlab.fields.values import Fraction
from weirlab.heavy import pl
from weirlab.measures.base import Levels, Need, PortSeries, SharedBuffers, Subject, WindowedPortMeasure
from weirlab.measures.rows import MissingRecordError, Totals, by_replicate, recorded, summed_series


class MeanQueue(WindowedPortMeasure):
    """Mean over time of what waits at the ports, summed over them; the frame in transmission does not
    wait."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["mean-queue"]

    def values(self, subject: Subject) -> pl.DataFrame:
        chosen = Totals.of_ports(subject.records, subject.ids, self.window_ps)
        integral = chosen.sum("queue_byte_ps")
        return chosen.values(integral, lambda each: integral[each] / chosen.time_ps(each))


class MaxQueue(WindowedPortMeasure):
    """Most bytes that wait at one of the ports; the frame in transmission does not wait."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["max-queue"]

    def values(self, subject: Subject) -> pl.DataFrame:
        chosen = Totals.of_ports(subject.records, subject.ids, self.window_ps)
        return chosen.values(chosen.max("queue_max_bytes"))


class QueueSpread(WindowedPortMeasure):
    """Standard deviation over time of what waits at the ports, in bytes; needs a `queue` record."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["queue-spread"]

    def needs(self) -> Iterator[Need]:
        yield PortSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        rows = summed_series(subject.records, subject.ids, self.window_ps)
        return by_replicate(subject.records, rows, pl.col("queue_bytes").std(ddof=0))


class QueuePercentile(WindowedPortMeasure):
    """Bytes that wait at a port at most, for a share of the time; needs a `levels` record of the same
    window."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["queue-percentile"]
    percentile: Fraction
    """That share, such as 99 %."""

    def needs(self) -> Iterator[Need]:
        yield Levels()

    def values(self, subject: Subject) -> pl.DataFrame:
        """Of all ports the greatest; interpolated linearly within the bin of the distribution."""
        records, window = subject.records, self.window_ps
        rows = records["queue_levels"].filter(pl.col("port").is_in(list(subject.ids)))
        known = set(rows.get_column("port").unique())
        if absent := [port for port in subject.ids if port not in known]:
            names = records["port_names"].filter(pl.col("port").is_in(absent)).get_column("name").to_list()
            raise MissingRecordError(
                f"the queues of {', '.join(names)} were not recorded: add an entry such as "
                "{levels: PORT} to 'record'"
            )
        rows = rows.sort("replicate", "port", "low_bytes").with_columns(pl.col("time_ps").cast(pl.Float64))
        times = rows.group_by("replicate", "port", maintain_order=True).agg(time_ps=pl.col("time_ps").sum())
        ends = records["runs"].select("replicate", "end_ps")
        times = times.join(ends, on="replicate", maintain_order="left")
        length = pl.col("end_ps") if window is None else pl.lit(window[1] - window[0])
        if times.filter(pl.col("time_ps") != length.cast(pl.Float64)).height:
            raise MissingRecordError("the distribution of the queue was recorded over another time")
        upto = pl.col("time_ps").cum_sum().over("replicate", "port")
        rank = self.percentile * pl.col("time_ps").sum().over("replicate", "port")
        bins = rows.with_columns(upto=upto, rank=rank).filter(
            pl.col("time_ps") > 0, pl.col("upto") >= pl.col("rank") * (1 - 1e-12)
        )
        part = (1 - (pl.col("upto") - pl.col("rank")) / pl.col("time_ps")).clip(0, 1)
        level = pl.col("low_bytes") + part * (pl.col("high_bytes").cast(pl.Float64) - pl.col("low_bytes"))
        each = bins.group_by("replicate", "port", maintain_order=True).agg(level=level.first())
        return by_replicate(records, each, pl.col("level").max())


class BufferPercentile(WindowedPortMeasure):
    """Bytes in the shared buffer of the switch of a port at most, for a share of the time: mean bytes of
    recorded intervals, of several switches the greatest; needs `queue` records of its ports, and is as fine
    as these."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["buffer-percentile"]
    percentile: Fraction
    """That share, such as 99 %."""

    def needs(self) -> Iterator[Need]:
        yield SharedBuffers()
        yield PortSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        records, window = subject.records, self.window_ps
        ports = records["port_names"].filter(pl.col("port").is_in(list(subject.ids)))
        at = pl.col("switch").is_in(ports.get_column("from").unique().implode())
        pools = records["pool_names"].filter(at, part="whole")
        rows = recorded(records, "pool_intervals", "pool", pools.get_column("pool").to_list(), window)
        before = pl.col("t_ps").shift(1).over("replicate", "pool", order_by="t_ps")
        lengths = (pl.col("t_ps") - before.fill_null(window[0] if window else 0)).cast(pl.Float64)
        upto = pl.col("length").cum_sum() >= self.percentile * pl.col("length").sum() * (1 - 1e-12)
        each = (
            rows.with_columns(length=lengths, level=pl.col("byte_ps") / lengths)
            .sort("replicate", "pool", "level")
            .group_by("replicate", "pool", maintain_order=True)
            .agg(level=pl.col("level").filter(upto).first())
        )
        return by_replicate(records, each, pl.col("level").max())
