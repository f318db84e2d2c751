"""The measures that a scenario asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.measures.estimates import estimate
from weirlab.measures.flows import (
    completion_time,
    delay_percentile,
    delivered_rate,
    goodput,
    jain_fairness,
    loss_ratio,
    max_delay,
    mean_delay,
    rate_error,
    rms_fairness,
    time_to_converge,
)
from weirlab.measures.hotspots import (
    burst_delay,
    delay_fairness,
    drops,
    recovery_time,
    relative_fairness,
)
from weirlab.measures.parts import joined
from weirlab.measures.ports import (
    control_frames,
    drop_time,
    last_drop,
    marks,
    max_queue,
    mean_queue,
    pause_time,
    queue_percentile,
    queue_spread,
    utilisation,
)
from weirlab.records import Records
from weirlab.scenario.demands import ideal_shares, interrupted_traffic, traffic_names
from weirlab.scenario.layout import layout_of, plan_network
from weirlab.scenario.measure import (
    AnyMeasure,
    BurstDelay,
    CompletionTime,
    ControlFrames,
    DelayFairness,
    DelayPercentile,
    DeliveredRate,
    Drops,
    DropTime,
    Estimate,
    Goodput,
    JainFairness,
    LastDrop,
    LossRatio,
    Marks,
    MaxDelay,
    MaxQueue,
    MeanDelay,
    MeanQueue,
    PauseTime,
    PortMeasure,
    QueuePercentile,
    QueueSpread,
    RateError,
    RecoveryTime,
    RelativeFairness,
    RmsFairness,
    TimeToConverge,
    Utilisation,
)
from weirlab.scenario.resolve import selected_traffic
from weirlab.stats import mean_interval

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario

__all__ = ["evaluate", "measured", "summary"]


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

    `low` and `high` hold the true mean with 95 % confidence, `sd` is the standard deviation of the values;
    null with fewer than two values.
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
                "sd": column.std() if several else None,
                "values": column.to_list(),
            }
        )
    return rows


def _evaluated(records: Records, measure: AnyMeasure, scenario: Scenario) -> tuple[pl.DataFrame, str]:
    """The values of a measure, and their unit."""
    of = _ids(measure, scenario)
    limits = getattr(measure, "window", None)
    window = None if limits is None else (limits.low.ps, limits.high.ps)
    if isinstance(measure, JainFairness | RmsFairness | RateError | TimeToConverge | DelayFairness):
        parts = interrupted_traffic(scenario)
        if parts:
            records, of = joined(records, parts), [place for place in of if place not in parts]
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
        case Goodput():
            return goodput(records, of), "bit/s"
        case CompletionTime():
            return completion_time(records, of, measure.take), "ps"
        case Estimate():
            target = None if measure.target is None else float(measure.target.bps)
            unit = "bit/s" if target is None else "1"
            return estimate(records, of, measure.take, target_bps=target, window=window), unit
        case MaxDelay():
            return max_delay(records, of), "ps"
        case DelayPercentile():
            return delay_percentile(records, of, measure.percentile), "ps"
        case JainFairness():
            return jain_fairness(records, of, window), "1"
        case RateError():
            target_bps, mean = float(measure.target.bps), measure.take == "mean"
            return rate_error(records, of, target_bps, window, mean=mean), "1"
        case TimeToConverge():
            return time_to_converge(records, of, float(measure.target.bps), measure.within), "ps"
        case QueueSpread():
            return queue_spread(records, of, window), "B"
        case QueuePercentile():
            return queue_percentile(records, of, measure.percentile, window), "B"
        case DropTime():
            return drop_time(records, of, window, longest=measure.take == "longest"), "ps"
        case LastDrop():
            return last_drop(records, of), "ps"
        case PauseTime():
            return pause_time(records, of, measure.take), "ps"
        case ControlFrames():
            return control_frames(records, of, measure.type, window), "1"
        case BurstDelay():
            return burst_delay(records, of, longest=measure.take == "longest", window=window), "ps"
        case DelayFairness():
            return delay_fairness(records, of), "1"
        case RelativeFairness():
            receiver, shares = scenario.hotspots[measure.hotspot].at, ideal_shares(scenario, measure.hotspot)
            return relative_fairness(records, of, receiver, shares, window), "1"
        case Drops():
            return drops(records, of, measure.cause), "1"
        case Marks():
            return marks(records, of, share=measure.take == "share"), "1"
        case RecoveryTime():
            return _recovery(records, of, measure, scenario), "ps"
        case RmsFairness():
            return rms_fairness(records, of, float(measure.target.bps), window), "1"


def _recovery(records: Records, ports: list[int], measure: RecoveryTime, scenario: Scenario) -> pl.DataFrame:
    assert scenario.network is not None, "a loaded scenario has the network that its measures name"
    layout = layout_of(plan_network(scenario.network).spec)
    rate = sum(layout.ports[port].rate_bps for port in ports)
    limits = scenario.hotspots[measure.hotspot].window
    start = 0 if limits is None else limits.low.ps
    window = None if limits is None else (limits.low.ps, limits.high.ps)
    return recovery_time(records, ports, measure.share * rate / 8e12, start, window=window)


def _ids(measure: AnyMeasure, scenario: Scenario) -> list[int]:
    """The ports, or the entries of traffic, that a measure is about."""
    if not isinstance(measure, PortMeasure):
        names = traffic_names(scenario)
        chosen = selected_traffic(measure.of, names)
        parts = interrupted_traffic(scenario)
        return sorted({*chosen, *(part for part, whole in parts.items() if whole in chosen)})
    assert scenario.network is not None, "a loaded scenario has the network that its measures name"
    return layout_of(plan_network(scenario.network).spec).port_ids(measure.of)
