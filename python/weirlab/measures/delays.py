"""One-way delays of frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import Fraction
from weirlab.heavy import pl
from weirlab.measures.base import Delays, FlowMeasure, Need, Subject
from weirlab.measures.rows import MissingRecordError, Totals, by_replicate, flow_rows

if TYPE_CHECKING:
    from weirlab.records import Records


class MeanDelay(FlowMeasure):
    """Mean one-way delay of the frames delivered."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["mean-delay"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return mean_delay(subject.records, subject.ids)


def mean_delay(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Mean one-way delay of the frames delivered [ps]: sum of delays / frames. Source: RFC 7679, section
    3."""
    chosen = Totals.of_flows(records, traffic)
    frames, delays = chosen.sum("delivered_frames"), chosen.sum("delay_sum_ps")
    return chosen.values(lambda each: delays[each] / frames[each] if frames[each] else None, frames)


class MaxDelay(FlowMeasure):
    """Largest one-way delay of the frames delivered."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["max-delay"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return max_delay(subject.records, subject.ids)


def max_delay(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Largest one-way delay of the frames delivered [ps]. Source: RFC 7679, section 3."""
    chosen = Totals.of_flows(records, traffic)
    greatest = chosen.max("delay_max_ps")
    return chosen.values(greatest.__getitem__, greatest)


class DelayPercentile(FlowMeasure):
    """One-way delay that a share of the frames does not exceed, within 1/32: interpolated within its bin of
    the recorded distribution; needs a `delays` record."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["delay-percentile"]
    percentile: Fraction
    """That share, such as 99 %."""

    def needs(self) -> Iterator[Need]:
        yield Delays()

    def values(self, subject: Subject) -> pl.DataFrame:
        return delay_percentile(subject.records, subject.ids, self.percentile)


def delay_percentile(records: Records, traffic: Sequence[int], share: float) -> pl.DataFrame:
    """One-way delay [ps] that `share` of the delivered frames, in [0, 1], do not exceed.

    Interpolated linearly within the bin of the recorded distribution that holds it; a bin is at most
    1/32 of its delays wide, and so is the error. Never outside of the least and the greatest delay, which the
    flows' totals know exactly. Source: RFC 7679, section 5.1.
    """
    totals = flow_rows(records, traffic)
    flows = totals.select("replicate", "flow")
    bins = records["delays"].join(flows, on=["replicate", "flow"], how="semi", maintain_order="left")
    if bins.is_empty():
        raise MissingRecordError("delays were not recorded: add an entry such as {delays: NAME} to 'record'")
    bins = (
        bins.group_by("replicate", "low_ps", "high_ps", maintain_order=True)
        .agg(frames=pl.col("frames").cast(pl.Float64).sum())
        .filter(pl.col("frames") > 0)
        .sort("replicate", "low_ps")
        .with_columns(
            upto=pl.col("frames").cum_sum().over("replicate"),
            rank=share * pl.col("frames").sum().over("replicate"),
        )
        .filter(pl.col("upto") >= pl.col("rank") * (1 - 1e-12))
    )
    within = (1 - (pl.col("upto") - pl.col("rank")) / pl.col("frames")).clip(0, 1)
    value = pl.col("low_ps") + within * (pl.col("high_ps").cast(pl.Float64) - pl.col("low_ps"))
    extremes = totals.group_by("replicate", maintain_order=True).agg(
        least=pl.col("delay_min_ps").min(), greatest=pl.col("delay_max_ps").max()
    )
    bins = (
        bins.with_columns(value=value)
        .join(extremes, on="replicate", maintain_order="left")
        .sort("replicate", "low_ps")
    )
    return by_replicate(records, bins, pl.col("value").clip(pl.col("least"), pl.col("greatest")).first())
