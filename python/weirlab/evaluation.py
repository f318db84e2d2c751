"""The measures that a scenario asks for, of the records of its run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weirlab.errors import ForeignFault, Interrupted, WeirlabError
from weirlab.fields.base import kind_of
from weirlab.foreign import blamed, is_foreign
from weirlab.measures.base import GROUP, FlowMeasure, Measure, PortMeasure, Subject
from weirlab.measures.parts import joined
from weirlab.measures.rows import Window
from weirlab.records import Records
from weirlab.scenario.network.layout import Layout
from weirlab.scenario.resolve import network_of, selected_traffic
from weirlab.scenario.traffic.demands import ideal_shares, interrupted_traffic, traffic_names
from weirlab.stats import mean_interval

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario


def evaluate(run: Run) -> pl.DataFrame:
    """The measures that the scenario of a run asks for: columns `measure`, `replicate`, `value`, `unit`.

    Raises:
        ForeignFault: The measure of another package failed, or gave something else.
        MissingRecordError: The records lack what a measure needs.
    """
    return measured(run.records, run.scenario)


def asks_flows(scenario: Scenario) -> bool:
    """Whether a measure looks at single flows, as those of other packages may."""
    measures = scenario.measure.values()
    return any(isinstance(each, FlowMeasure) or is_foreign(type(each)) for each in measures)


@dataclass(frozen=True)
class Evaluation:
    """Measures, those included that could not be taken."""

    values: pl.DataFrame
    """Columns `measure`, `replicate`, `value`, `unit`; of a measure that failed, all values are null."""
    errors: Mapping[str, WeirlabError]
    """What the measures raised that failed, by name."""

    @property
    def faults(self) -> dict[str, str]:
        """Why they failed."""
        return {
            name: str(error) if isinstance(error, ForeignFault) else f"measure '{name}': {error}"
            for name, error in self.errors.items()
        }


def measured(records: Records, scenario: Scenario) -> pl.DataFrame:
    """The measures that `scenario` asks for, of these records; see `evaluate`."""
    found = evaluated(records, scenario)
    for error in found.errors.values():
        raise error
    return found.values


def evaluated(records: Records, scenario: Scenario) -> Evaluation:
    """The same, with the errors of the measures that fail next to the values of all others."""
    rows: dict[str, list[object]] = {column: [] for column in _COLUMNS}
    replicates = records.column("runs", "replicate")
    errors: dict[str, WeirlabError] = {}
    for name, measure in scenario.measure.items():
        try:
            with blamed(type(measure), GROUP, kind_of(type(measure)), f"measure '{name}'"):
                unit, values = measure.unit, _values(records, measure, scenario)
        except Interrupted:
            raise
        except WeirlabError as error:
            errors[name] = error
            unit, values = str(type(measure).UNIT), [None] * len(replicates)
        rows["measure"] += [name] * len(values)
        rows["replicate"] += replicates
        rows["value"] += values
        rows["unit"] += [unit] * len(values)
    return Evaluation(pl.DataFrame(rows, schema=_COLUMNS), errors)


_COLUMNS = pl.Schema(
    {"measure": pl.String(), "replicate": pl.UInt32(), "value": pl.Float64(), "unit": pl.String()}
)


def summary(values: pl.DataFrame) -> list[dict[str, object]]:
    """Measures over their replicates, as JSON values: what `evaluate` gave, put together by measure.

    `low` and `high` hold the true mean with 95 % confidence, `sd` is the standard deviation of the values;
    null with fewer than two values.
    """
    return _summary(values.select("measure", "unit", "value").iter_rows())


def summaries(values: pl.DataFrame) -> dict[int, list[dict[str, object]]]:
    """The same for each `point` of a table."""
    rows: dict[int, list[tuple[str, str, float | None]]] = {}
    for point, *row in values.select("point", "measure", "unit", "value").iter_rows():
        rows.setdefault(point, []).append((row[0], row[1], row[2]))
    return {point: _summary(each) for point, each in rows.items()}


def _summary(rows: Iterable[tuple[str, str, float | None]]) -> list[dict[str, object]]:
    columns: dict[tuple[str, str], list[float | None]] = {}
    for name, unit, value in rows:
        columns.setdefault((name, unit), []).append(value)
    made: list[dict[str, object]] = []
    for (name, unit), column in columns.items():
        interval = mean_interval([value for value in column if value is not None])
        several = interval is not None and interval.count > 1
        made.append(
            {
                "measure": name,
                "unit": unit,
                "mean": None if interval is None else interval.mean,
                "low": interval.low if interval is not None and several else None,
                "high": interval.high if interval is not None and several else None,
                "sd": pl.Series(column).std() if several else None,
                "values": column,
            }
        )
    return made


def _values(records: Records, measure: Measure, scenario: Scenario) -> list[float | None]:
    ids, taken = _ids(measure, scenario), records
    if measure.JOINS_PARTS and (parts := interrupted_traffic(scenario)):
        taken, ids = joined(records, parts), [place for place in ids if place not in parts]
    values = measure.values(Subject(taken, ids, _Scenario(scenario)))
    expected, found = records.column("runs", "replicate"), values["replicate"].to_list()
    if found != expected:
        raise ValueError(f"its rows are of the replicates {found}, not of {expected}")
    column = values["value"]
    answers = (column if column.dtype == pl.Float64 else column.cast(pl.Float64)).to_list()
    if is_foreign(type(measure)):
        for replicate, value in zip(expected, answers, strict=True):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"its value is {value} in replicate {replicate}; for no answer it is null")
    return answers


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
    return network_of(scenario)[1]


def _ids(measure: Measure, scenario: Scenario) -> list[int]:
    """The ports, or the entries of traffic, that a measure is about."""
    if isinstance(measure, PortMeasure):
        return _layout(scenario).port_ids(measure.of)
    assert isinstance(measure, FlowMeasure), "a measure is one of ports or of flows"
    chosen = selected_traffic(measure.of, traffic_names(scenario))
    parts = interrupted_traffic(scenario)
    return sorted({*chosen, *(part for part, whole in parts.items() if whole in chosen)})
