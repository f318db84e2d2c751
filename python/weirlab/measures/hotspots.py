"""Hotspots: fairness against a fair share, and recovery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.base import Name
from weirlab.fields.values import PositiveFraction, Window as Limits
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Hotspot, Need, PortMeasure, PortSeries, Subject
from weirlab.measures.rows import Window, by_replicate, flow_intervals, jain_index, recorded

if TYPE_CHECKING:
    from weirlab.records import Records


class RelativeFairness(FlowMeasure):
    """RJFI: Jain's index of what flows through a hot output delivered, each over its max-min fair share; 1 is
    fair."""

    kind: Literal["relative-fairness"]
    hotspot: Name
    """The hotspot, whose output and whose middle of the window count."""
    window: Limits | None = None
    """Time to measure; needs a `flow` record by flow. Absent: the whole run."""

    def needs(self) -> Iterator[Need]:
        yield Hotspot(self.hotspot)
        if self.window is not None:
            yield FlowSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        asked, name = subject.experiment, self.hotspot
        assert asked is not None, "a scenario has the hotspot"
        receiver, shares = asked.hot_receiver(name), asked.ideal_shares(name)
        return relative_fairness(subject.records, subject.ids, receiver, shares, self.window_ps)


def relative_fairness(
    records: Records,
    traffic: Sequence[int],
    receiver: str,
    shares: Mapping[str, float],
    window: Window | None = None,
) -> pl.DataFrame:
    """RJFI: Jain's index of x_i = T_i / T_i ideal over the flows to `receiver`, in [1/n, 1]; 1 is fair.

    T_i: bytes delivered in the window, or in the whole run; `shares`: the ideal of each sender, in any unit.
    Null where nothing was delivered to it. Raises MissingRecordError where the series of a flow is
    missing. Source: ZRL benchmark, 'Simulation Overview'
    """
    ideals = pl.DataFrame(
        {"from": list(shares), "ideal": list(map(float, shares.values()))},
        schema={"from": pl.String, "ideal": pl.Float64},
    )
    chosen = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic)) & (pl.col("to") == receiver))
    flows = chosen.select("flow", "from").join(
        ideals.filter(pl.col("ideal") > 0), on="from", maintain_order="left"
    )
    # Several flows of a sender, as from traffic that was interrupted, share its ideal.
    delivered = (
        records["flows"].select("replicate", "flow", bytes="delivered_bytes")
        if window is None
        else flow_intervals(records, traffic, window)
    )
    rows = (
        delivered.join(flows, on="flow", how="inner", maintain_order="left")
        .group_by("replicate", "from", maintain_order=True)
        .agg(x=pl.col("bytes").sum().cast(pl.Float64) / pl.col("ideal").first())
    )
    return by_replicate(records, rows, jain_index("x"))


class RecoveryTime(PortMeasure):
    """Time from the start of a hotspot until the ports together carry a share of their line rates, and keep
    doing so for at least as long as their longest interruption; needs a `queue` record of the ports."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["recovery-time"]
    hotspot: Name
    """The hotspot; what follows the end of its window does not count."""
    share: PositiveFraction
    """That share of the sum of their line rates."""

    def needs(self) -> Iterator[Need]:
        yield Hotspot(self.hotspot)
        yield PortSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        asked = subject.experiment
        assert asked is not None, "a scenario has the hotspot"
        rate, window = asked.line_rate_bps(subject.ids), asked.hotspot_window(self.hotspot)
        start = 0 if window is None else window[0]
        return recovery_time(subject.records, subject.ids, self.share * rate / 8e12, start, window=window)


def recovery_time(
    records: Records, ports: Sequence[int], bytes_per_ps: float, start_ps: int, *, window: Window | None
) -> pl.DataFrame:
    """Time [ps] from `start_ps` to the end of the last recorded interval in which the ports together carry
    less than `bytes_per_ps`: from then on they keep it. 0 where they always do.

    Null where they did not keep it up to the end of the window for at least as long as they lacked it at a
    stretch. Without control PAUSE makes a switch run at full rate and stand still by turns; a window that
    ends while it runs shows no recovery.
    """
    rows = recorded(records, "intervals", "port", ports, window)
    sums = rows.group_by("replicate", "t_ps", maintain_order=True).agg(pl.col("bytes").cast(pl.Float64).sum())
    sums = sums.sort("replicate", "t_ps")
    before = pl.col("t_ps").shift(1).over("replicate", order_by="t_ps").fill_null(window[0] if window else 0)
    sums = sums.with_columns(length=pl.col("t_ps").cast(pl.Float64) - before)
    sums = sums.filter(pl.col("t_ps") > start_ps)
    sums = sums.with_columns(slow=pl.col("bytes") < bytes_per_ps * pl.col("length"))
    stretch = pl.col("slow").rle_id().over("replicate", order_by="t_ps")
    sums = sums.with_columns(lacked=pl.col("length").sum().over("replicate", stretch) * pl.col("slow"))
    last = pl.col("t_ps").filter(pl.col("slow")).max().fill_null(start_ps)
    kept = (pl.col("t_ps").max() - last).cast(pl.Float64)
    value = pl.when(kept > 0, kept >= pl.col("lacked").max()).then((last - start_ps).cast(pl.Float64))
    return by_replicate(records, sums, value)
