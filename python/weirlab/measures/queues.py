"""What waits at ports.

The spread of a queue comes from recorded intervals: it is as fine as these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import Fraction
from weirlab.heavy import pl
from weirlab.measures.base import Levels, Need, PortSeries, Subject, WindowedPortMeasure
from weirlab.measures.rows import MissingRecordError, Totals, Window, by_replicate, summed_series

if TYPE_CHECKING:
    from weirlab.records import Records


class MeanQueue(WindowedPortMeasure):
    """Mean over time of what waits at the ports, summed over them; the frame in transmission does not
    wait."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["mean-queue"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return mean_queue(subject.records, subject.ids, self.window_ps)


def mean_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Mean over time of the bytes that wait [B]: (integral of waiting bytes over time) / time, summed over
    the ports.

    The frame in transmission does not wait.
    """
    chosen = Totals.of_ports(records, ports, window)
    integral = chosen.sum("queue_byte_ps")
    return chosen.values(lambda replicate: integral[replicate] / chosen.time_ps(replicate), integral)


class MaxQueue(WindowedPortMeasure):
    """Most bytes that wait at one of the ports; the frame in transmission does not wait."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["max-queue"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return max_queue(subject.records, subject.ids, self.window_ps)


def max_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Most bytes that wait at one of the ports [B]. The frame in transmission does not wait."""
    chosen = Totals.of_ports(records, ports, window)
    greatest = chosen.max("queue_max_bytes")
    return chosen.values(greatest.__getitem__, greatest)


class QueueSpread(WindowedPortMeasure):
    """Standard deviation over time of what waits at the ports, in bytes; needs a `queue` record."""

    UNIT: ClassVar[str] = "B"

    kind: Literal["queue-spread"]

    def needs(self) -> Iterator[Need]:
        yield PortSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        return queue_spread(subject.records, subject.ids, self.window_ps)


def queue_spread(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Standard deviation over time of the bytes q that wait at the ports together [B]:
    sqrt(mean((q - mean(q))^2)), q at the ends of the recorded intervals."""
    rows = summed_series(records, ports, window)
    return by_replicate(records, rows, pl.col("queue_bytes").std(ddof=0))


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
        return queue_percentile(subject.records, subject.ids, self.percentile, self.window_ps)


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
    times = rows.group_by("replicate", "port", maintain_order=True).agg(time_ps=pl.col("time_ps").sum())
    times = times.join(records["runs"].select("replicate", "end_ps"), on="replicate", maintain_order="left")
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
