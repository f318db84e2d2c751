"""One-way delays of frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from weirlab.fields.values import Fraction
from weirlab.heavy import pl
from weirlab.measures.base import Delays, FlowMeasure, Need, Subject
from weirlab.measures.rows import MissingRecordError, Totals, by_replicate, flow_rows


class MeanDelay(FlowMeasure):
    """Mean one-way delay of the frames delivered."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["mean-delay"]

    def values(self, subject: Subject) -> pl.DataFrame:
        """Source: RFC 7679, section 3."""
        chosen = Totals.of_flows(subject.records, subject.ids)
        frames, delays = chosen.sum("delivered_frames"), chosen.sum("delay_sum_ps")
        return chosen.values(frames, lambda each: delays[each] / frames[each] if frames[each] else None)


class MaxDelay(FlowMeasure):
    """Largest one-way delay of the frames delivered."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["max-delay"]

    def values(self, subject: Subject) -> pl.DataFrame:
        """Source: RFC 7679, section 3."""
        chosen = Totals.of_flows(subject.records, subject.ids)
        return chosen.values(chosen.max("delay_max_ps"))


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
        """Interpolated linearly within the bin, which is at most 1/32 of its delays wide; never outside of
        the least and the greatest delay, which the flows' totals know exactly. Source: RFC 7679, section
        5.1."""
        totals = flow_rows(subject.records, subject.ids)
        bins = subject.records["delays"].join(
            totals, on=["replicate", "flow"], how="semi", maintain_order="left"
        )
        if bins.is_empty():
            said = "delays were not recorded: add an entry such as {delays: NAME} to 'record'"
            raise MissingRecordError(said)
        bins = (
            bins.group_by("replicate", "low_ps", "high_ps", maintain_order=True)
            .agg(frames=pl.col("frames").cast(pl.Float64).sum())
            .filter(pl.col("frames") > 0)
            .sort("replicate", "low_ps")
            .with_columns(
                upto=pl.col("frames").cum_sum().over("replicate"),
                rank=self.percentile * pl.col("frames").sum().over("replicate"),
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
        clipped = pl.col("value").clip(pl.col("least"), pl.col("greatest"))
        return by_replicate(subject.records, bins, clipped.first())
