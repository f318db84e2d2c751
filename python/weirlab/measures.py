"""Measures: numbers from the records of a run, each with one definition.

Every function takes records and the ids of what it is about (ports, or entries of traffic, see
`Records`) and returns a frame with the columns `replicate` and `value`, one row per replicate, in order.
Where a replicate gives no answer, such as the delay of frames that never arrived, the value is null.
Where the records lack what a measure needs, it raises MissingRecordError: no measure falls back to something
similar.

`window` is a pair of times [ps] from the begin of the run, on edges of the recorded intervals; None
means the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import InputError
from weirlab.records import Records
from weirlab.scenario.layout import layout_of, plan_network
from weirlab.scenario.measure import (
    AnyMeasure,
    DelayPercentile,
    DeliveredRate,
    JainFairness,
    LossRatio,
    MaxDelay,
    MaxQueue,
    MeanDelay,
    MeanQueue,
    PortMeasure,
    RmsFairness,
    Utilisation,
)
from weirlab.scenario.resolve import selected_traffic
from weirlab.stats import mean_interval

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario

__all__ = [
    "MissingRecordError",
    "Window",
    "delay_percentile",
    "delivered_rate",
    "evaluate",
    "jain_fairness",
    "loss_ratio",
    "max_delay",
    "max_queue",
    "mean_delay",
    "mean_queue",
    "measured",
    "rms_fairness",
    "summary",
    "utilisation",
]

Window = tuple[int, int]


class MissingRecordError(InputError):
    """A measure needs rows that the run did not record."""


def utilisation(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Share of the time in which ports transmit: sum of 8 (bytes + framing x frames) / sum of
    rate x time.

    Several ports are weighted by their rates. A frame counts as a whole in the interval in which its
    transmission begins, so that a window may hold up to one frame more or less than its share.
    """
    names = records["port_names"].filter(pl.col("port").is_in(list(ports)))
    rows = _port_rows(records, ports, window).join(
        names.select("port", "rate_bps", "framing_bytes"), on="port", maintain_order="left"
    )
    bits = 8.0 * (pl.col("bytes").cast(pl.Float64) + pl.col("frames") * pl.col("framing_bytes")).sum()
    capacity_bps = float(names.get_column("rate_bps").sum())
    return _by_replicate(records, rows, bits * 1e12 / capacity_bps, per_ps=True, window=window)


def mean_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Mean over time of the bytes that wait [B]: (integral of waiting bytes over time) / time, summed over
    the ports.

    The frame in transmission does not wait.
    """
    rows = _port_rows(records, ports, window)
    integral = pl.col("queue_byte_ps").cast(pl.Float64).sum()
    return _by_replicate(records, rows, integral, per_ps=True, window=window)


def max_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Most bytes that wait at one of the ports [B]. The frame in transmission does not wait."""
    rows = _port_rows(records, ports, window)
    return _by_replicate(records, rows, pl.col("queue_max_bytes").max().cast(pl.Float64))


def delivered_rate(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Bits of frames delivered per second, over all flows [bit/s]: 8 x bytes / time, framing excluded."""
    if window is None:
        rows = _flows(records, traffic).rename({"delivered_bytes": "bytes"})
    else:
        rows = _windowed(records, "deliveries", "traffic", traffic, window)
    bits = 8.0 * pl.col("bytes").cast(pl.Float64).sum()
    return _by_replicate(records, rows, bits * 1e12, per_ps=True, window=window)


def loss_ratio(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Dropped frames over sent frames, in [0, 1]. Frames still under way at the end are not lost.

    Null where nothing was sent. Source: RFC 1242, section 3.6, there a percentage.
    """
    sent = pl.col("sent_frames").sum()
    ratio = pl.col("dropped_frames").sum().cast(pl.Float64) / sent
    return _by_replicate(records, _flows(records, traffic), pl.when(sent > 0).then(ratio))


def mean_delay(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Mean one-way delay of the frames delivered [ps]: sum of delays / frames. Source: RFC 7679, section
    3."""
    frames = pl.col("delivered_frames").sum()
    mean = pl.col("delay_sum_ps").cast(pl.Float64).sum() / frames
    return _by_replicate(records, _flows(records, traffic), pl.when(frames > 0).then(mean))


def max_delay(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Largest one-way delay of the frames delivered [ps]. Source: RFC 7679, section 3."""
    return _by_replicate(records, _flows(records, traffic), pl.col("delay_max_ps").max().cast(pl.Float64))


def delay_percentile(records: Records, traffic: Sequence[int], share: float) -> pl.DataFrame:
    """One-way delay [ps] that `share` of the delivered frames, in [0, 1], do not exceed.

    Interpolated linearly within the bin of the recorded distribution that holds it; a bin is at most
    1/32 of its delays wide, and so is the error. Never outside of the least and the greatest delay, which the
    flows' totals know exactly. Source: RFC 7679, section 5.1.
    """
    totals = _flows(records, traffic)
    flows = totals.select("replicate", "flow")
    bins = records["delays"].join(flows, on=["replicate", "flow"], how="semi")
    if bins.is_empty():
        raise MissingRecordError("delays were not recorded: add an entry such as {delays: NAME} to 'record'")
    bins = (
        bins.group_by("replicate", "low_ps", "high_ps")
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
    extremes = totals.group_by("replicate").agg(
        least=pl.col("delay_min_ps").min(), greatest=pl.col("delay_max_ps").max()
    )
    bins = bins.with_columns(value=value).join(extremes, on="replicate").sort("replicate", "low_ps")
    return _by_replicate(records, bins, pl.col("value").clip(pl.col("least"), pl.col("greatest")).first())


def jain_fairness(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Jain's index of the delivered rates x_i of n flows: (sum x)^2 / (n sum x^2), in [1/n, 1]; 1 is fair.

    Null where nothing was delivered. Source: Jain 1984.
    """
    squares = (pl.col("rate_bps") ** 2).sum()
    index = pl.col("rate_bps").sum() ** 2 / (pl.len() * squares)
    return _by_replicate(records, _flow_rates(records, traffic, window), pl.when(squares > 0).then(index))


def rms_fairness(
    records: Records, traffic: Sequence[int], target_bps: float, window: Window | None = None
) -> pl.DataFrame:
    """RMS distance of the delivered rates x_i of n flows from their fair share T, relative to it; 0 is fair.

    sqrt(sum ((x_i - T) / T)^2 / n).
    """
    distance = (pl.col("rate_bps") - target_bps) / target_bps
    return _by_replicate(records, _flow_rates(records, traffic, window), (distance**2).mean().sqrt())


def evaluate(run: Run) -> pl.DataFrame:
    """The measures that the scenario of a run asks for: columns `measure`, `replicate`, `value`, `unit`.

    Raises MissingRecordError when the records lack what a measure needs.
    """
    return measured(run.records, run.scenario)


def measured(records: Records, scenario: Scenario) -> pl.DataFrame:
    """The measures that `scenario` asks for, of these records; see `evaluate`."""
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "measure": pl.String,
        "replicate": pl.UInt32,
        "value": pl.Float64,
        "unit": pl.String,
    }
    frames = [pl.DataFrame(schema=schema)]
    for name, measure in scenario.measure.items():
        values, unit = _evaluated(records, measure, scenario)
        labels = {"measure": pl.lit(name), "unit": pl.lit(unit)}
        frames.append(values.with_columns(**labels).select(list(schema)).cast(pl.Schema(schema)))
    return pl.concat(frames)


def summary(values: pl.DataFrame) -> list[dict[str, Any]]:
    """Measures over their replicates, as JSON values: what `evaluate` gave, put together by measure.

    `low` and `high` hold the true mean with 95 % confidence; null with fewer than two values.
    """
    rows = []
    for (name, unit), group in values.group_by("measure", "unit", maintain_order=True):
        column = group.get_column("value")
        interval = mean_interval(column.drop_nulls().to_list())
        several = interval is not None and interval.count > 1
        rows.append(
            {
                "measure": name,
                "unit": unit,
                "mean": None if interval is None else interval.mean,
                "low": interval.low if interval is not None and several else None,
                "high": interval.high if interval is not None and several else None,
                "values": column.to_list(),
            }
        )
    return rows


def _evaluated(records: Records, measure: AnyMeasure, scenario: Scenario) -> tuple[pl.DataFrame, str]:
    """The values of a measure, and their unit."""
    of = _ids(measure, scenario)
    limits = getattr(measure, "window", None)
    window = None if limits is None else (limits.low.ps, limits.high.ps)
    match measure:
        case Utilisation():
            return utilisation(records, of, window), "1"
        case MeanQueue():
            return mean_queue(records, of, window), "B"
        case MaxQueue():
            return max_queue(records, of, window), "B"
        case DeliveredRate():
            return delivered_rate(records, of, window), "bit/s"
        case LossRatio():
            return loss_ratio(records, of), "1"
        case MeanDelay():
            return mean_delay(records, of), "ps"
        case MaxDelay():
            return max_delay(records, of), "ps"
        case DelayPercentile():
            return delay_percentile(records, of, measure.percentile), "ps"
        case JainFairness():
            return jain_fairness(records, of, window), "1"
        case RmsFairness():
            return rms_fairness(records, of, float(measure.target.bps), window), "1"


def _ids(measure: AnyMeasure, scenario: Scenario) -> list[int]:
    """The ports, or the entries of traffic, that a measure is about."""
    if not isinstance(measure, PortMeasure):
        return selected_traffic(measure.of, list(scenario.traffic))
    assert scenario.network is not None, "a loaded scenario has the network that its measures name"
    return layout_of(plan_network(scenario.network).spec).port_ids(measure.of)


def _port_rows(records: Records, ports: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Rows of `ports` for the whole run, or those of `intervals` that make up the window."""
    if window is None:
        return records["ports"].filter(pl.col("port").is_in(list(ports)))
    return _windowed(records, "intervals", "port", ports, window)


def _flows(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `flows` that belong to these entries of traffic."""
    chosen = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic))).select("flow", "traffic")
    return records["flows"].join(chosen, on="flow", how="inner", maintain_order="left")


def _flow_rates(records: Records, traffic: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Columns `replicate`, `rate_bps`: delivered rate of each flow."""
    rows = _flows(records, traffic)
    if window is None:
        ends = records["runs"].select("replicate", "end_ps")
        rate = 8e12 * pl.col("delivered_bytes").cast(pl.Float64) / pl.col("end_ps")
        return rows.join(ends, on="replicate", maintain_order="left").select("replicate", rate_bps=rate)
    flows = rows.select("flow", "traffic").unique().group_by("traffic").len()
    if flows.filter(pl.col("len") > 1).height:
        raise MissingRecordError(
            "fairness in a window needs a series of each flow; recorded is one for each entry of traffic: "
            "write the flows as entries of their own, or leave the window out"
        )
    rate = 8e12 * pl.col("bytes").cast(pl.Float64).sum() / (window[1] - window[0])
    series = _windowed(records, "deliveries", "traffic", traffic, window)
    return series.group_by("replicate", "traffic", maintain_order=True).agg(rate_bps=rate)


def _windowed(records: Records, table: str, key: str, ids: Sequence[int], window: Window) -> pl.DataFrame:
    """The intervals of a table that make up the window exactly, for all ids. Raises MissingRecordError
    otherwise."""
    start, stop = window
    rows = records[table].filter(pl.col(key).is_in(list(ids)))
    recorded = set(rows.get_column(key).unique())
    if absent := [number for number in ids if number not in recorded]:
        names = records[f"{key}_names"].filter(pl.col(key).is_in(absent)).get_column("name").to_list()
        raise MissingRecordError(f"a window needs a series of {', '.join(names)}: add an entry to 'record'")
    edges = rows.group_by("replicate", key).agg(
        starts=(pl.col("t_ps") == start).any() | (start == 0), stops=(pl.col("t_ps") == stop).any()
    )
    if not edges.select((pl.col("starts") & pl.col("stops")).all()).item():
        raise MissingRecordError(
            f"the window {start} .. {stop} ps does not begin and end on recorded intervals"
        )
    return rows.filter((pl.col("t_ps") > start) & (pl.col("t_ps") <= stop))


def _by_replicate(
    records: Records,
    rows: pl.DataFrame,
    value: pl.Expr,
    *,
    per_ps: bool = False,
    window: Window | None = None,
) -> pl.DataFrame:
    """`value` of the rows of each replicate, with `per_ps` divided by the time; null where there are no
    rows."""
    values = rows.group_by("replicate").agg(value=value)
    time = pl.lit(float(window[1] - window[0])) if window else pl.col("end_ps").cast(pl.Float64)
    result = pl.col("value") / time if per_ps else pl.col("value")
    return (
        records["runs"]
        .select("replicate", "end_ps")
        .join(values, on="replicate", how="left", maintain_order="left")
        .select("replicate", value=result.cast(pl.Float64))
    )
