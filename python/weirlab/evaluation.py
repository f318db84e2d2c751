"""The measures that a scenario asks for, of the records of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.fields.base import kind_of
from weirlab.foreign import blamed
from weirlab.measures.base import GROUP, FlowMeasure, Measure, PortMeasure, Subject
from weirlab.measures.parts import joined
from weirlab.measures.rows import Window
from weirlab.records import Records
from weirlab.scenario.network.layout import Layout, layout_of, plan_network
from weirlab.scenario.resolve import selected_traffic
from weirlab.scenario.traffic.demands import ideal_shares, interrupted_traffic, traffic_names
from weirlab.stats import mean_interval

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario


def evaluate(run: Run) -> pl.DataFrame:
    """The measures that the scenario of a run asks for: columns `measure`, `replicate`, `value`, `unit`.

    Raises MissingRecordError when the records lack what a measure needs.
    """
    return measured(run.records, run.scenario)


def measured(records: Records, scenario: Scenario) -> pl.DataFrame:
    """The measures that `scenario` asks for, of these records; see `evaluate`.

    Raises:
        ForeignFault: The measure of another package failed, or gave something else.
    """
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "measure": pl.String,
        "replicate": pl.UInt32,
        "value": pl.Float64,
        "unit": pl.String,
    }
    frames = [pl.DataFrame(schema=schema)]
    for name, measure in scenario.measure.items():
        with blamed(type(measure), GROUP, kind_of(type(measure)), f"measure '{name}'"):
            values = _values(records, measure, scenario)
            if not (expected := records["runs"]["replicate"]).equals(
                values["replicate"].cast(expected.dtype)
            ):
                raise ValueError(
                    f"its rows are of the replicates {values['replicate'].to_list()}, not of "
                    f"{expected.to_list()}"
                )
            labels = {"measure": pl.lit(name), "unit": pl.lit(measure.unit)}
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


def _values(records: Records, measure: Measure, scenario: Scenario) -> pl.DataFrame:
    ids = _ids(measure, scenario)
    if measure.JOINS_PARTS and (parts := interrupted_traffic(scenario)):
        records, ids = joined(records, parts), [place for place in ids if place not in parts]
    return measure.values(Subject(records, ids, _Scenario(scenario)))


class _Scenario:
    """What measures ask of a scenario (`weirlab.measures.base.Experiment`)."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def line_rate_bps(self, ports: Sequence[int]) -> int:
        layout = _layout(self._scenario)
        return sum(layout.ports[port].rate_bps for port in ports)

    def hotspot_window(self, name: str) -> Window | None:
        limits = self._scenario.hotspots[name].window
        return None if limits is None else (limits.low.ps, limits.high.ps)

    def hot_receiver(self, name: str) -> str:
        return self._scenario.hotspots[name].at

    def ideal_shares(self, name: str) -> dict[str, float]:
        return ideal_shares(self._scenario, name)


def _layout(scenario: Scenario) -> Layout:
    assert scenario.network is not None, "a loaded scenario has the network that its measures name"
    return layout_of(plan_network(scenario.network).spec)


def _ids(measure: Measure, scenario: Scenario) -> list[int]:
    """The ports, or the entries of traffic, that a measure is about."""
    if isinstance(measure, PortMeasure):
        return _layout(scenario).port_ids(measure.of)
    assert isinstance(measure, FlowMeasure), "a measure is one of ports or of flows"
    chosen = selected_traffic(measure.of, traffic_names(scenario))
    parts = interrupted_traffic(scenario)
    return sorted({*chosen, *(part for part, whole in parts.items() if whole in chosen)})
