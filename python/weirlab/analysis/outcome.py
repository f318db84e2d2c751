"""What a run made of its hotspots: throughput, hot and innocent outputs, the hot queue, fairness, control."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from weirlab.analysis.hotspots import HotspotFacts, hotspot_facts
from weirlab.analysis.recovery import queue_return, throughput_recovery
from weirlab.measures import MissingRecordError, Window, relative_fairness, taken
from weirlab.records import Records
from weirlab.runs import Run
from weirlab.scenario import Scenario
from weirlab.scenario.network.layout import Layout, layout_of, plan_network
from weirlab.scenario.resolve.control import in_bytes
from weirlab.scenario.traffic.demands import ideal_shares
from weirlab.stats import mean_interval

_ABOVE = 1.01
_CUT = 0.1


@dataclass(frozen=True)
class Quantity:
    """Something measured, in one span of time."""

    name: str
    span: str
    """`hotspot`, `second half` of it, or `run`."""
    unit: str
    """`1`, `B`, `ps`, or `frames`."""
    values: Sequence[float | None]
    """One for each replicate."""
    ideal: float | None = None
    """With perfect control."""


@dataclass(frozen=True)
class HotspotOutcome:
    """One hotspot, and what a run made of it."""

    facts: HotspotFacts
    port: int
    """The hot output."""
    port_name: str
    window: Window
    """The hotspot [ps], as far as the run and the edges of recorded intervals go."""
    outputs: Sequence[int]
    """All ports towards hosts."""
    innocent: Sequence[int]
    """Those of them that are not at a hotspot."""
    quantities: Sequence[Quantity]
    unrecorded: bool
    """Whether series of the outputs are missing, so that there are numbers of the whole run only."""
    remarks: tuple[str, ...] = ()
    """What a reader must know of these quantities."""

    def of(self, name: str) -> Quantity | None:
        """The quantity of this name in the latest span; None where it was not measured."""
        found = [each for each in self.quantities if each.name == name]
        return found[-1] if found else None


def hot_ports(scenario: Scenario) -> list[int]:
    """Ids of the ports towards the hosts at hotspots, in the order of the file."""
    if not scenario.hotspots or scenario.network is None:
        return []
    layout = layout_of(plan_network(scenario.network).spec)
    return [_towards(layout)[hotspot.at] for hotspot in scenario.hotspots.values()]


def hotspot_outcomes(run: Run) -> list[HotspotOutcome]:
    """All hotspots of the scenario of a run, in the order of the file; none where there is none.

    Throughput and queues are those of the window of the hotspot where the queues of all outputs were
    recorded, or of the whole run. Fairness, delays, frames of control and drops are those of the whole run;
    where each flow was recorded, fairness and delays are also those of the second half of the hotspot, and
    where the queues of outputs were, notifications are.
    """
    scenario, records = run.scenario, run.records
    facts = hotspot_facts(scenario)
    if not facts or scenario.network is None:
        return []
    towards = _towards(layout_of(plan_network(scenario.network).spec))
    hot = {towards[hotspot.at] for hotspot in scenario.hotspots.values()}
    outputs = list(towards.values())
    innocent = [port for port in outputs if port not in hot]
    end_ps = min(records["runs"].get_column("end_ps").to_list())
    names = dict(records["port_names"].select("port", "name").iter_rows())
    found = []
    for fact in facts:
        limits = scenario.hotspots[fact.name].window
        asked = (0, end_ps) if limits is None else (limits.low.ps, min(limits.high.ps, end_ps))
        port = towards[fact.at]
        spans = _spans(records, outputs, asked)
        recovered, remarks = _recovery(run, fact, port, outputs, spans, asked[0])
        quantities = [
            *_carried(records, fact, port, outputs, innocent, spans),
            *recovered,
            *(_fairness(run, fact, spans) if scenario.run.flows else []),
            *_control(records, outputs, spans),
        ]
        found.append(
            HotspotOutcome(
                facts=fact,
                port=port,
                port_name=names[port],
                window=spans.get("hotspot") or asked,
                outputs=outputs,
                innocent=innocent,
                quantities=quantities,
                unrecorded="run" in spans,
                remarks=(*remarks, *_remarks(quantities, asked, spans.get("hotspot"))),
            )
        )
    return found


def outcome_json(outcomes: Sequence[HotspotOutcome]) -> list[dict[str, object]]:
    """What was measured, as JSON values; `mean` is null where no replicate has a value."""
    return [
        {
            "hotspot": outcome.facts.name,
            "port": outcome.port_name,
            "window_ps": list(outcome.window),
            "remarks": list(outcome.remarks),
            "quantities": [
                {
                    "name": each.name,
                    "span": each.span,
                    "unit": each.unit,
                    "mean": None if (found := mean_interval(_known(each))) is None else found.mean,
                    "ideal": each.ideal,
                    "values": list(each.values),
                }
                for each in outcome.quantities
            ],
        }
        for outcome in outcomes
    ]


def _known(quantity: Quantity) -> list[float]:
    return [value for value in quantity.values if value is not None]


def _towards(layout: Layout) -> dict[str, int]:
    """The port to each host, in the order of the hosts."""
    ports = {port.target: i for i, port in enumerate(layout.ports) if port.target in layout.hosts}
    return {node: ports[node] for node in layout.nodes if node in ports}


def _spans(records: Records, ports: Sequence[int], asked: Window) -> Mapping[str, Window | None]:
    """The hotspot and its second half on the edges of the intervals that all these ports have, or the run
    alone."""
    rows = records["intervals"].filter(pl.col("port").is_in(list(ports)))
    counts = rows.group_by("t_ps").agg(series=pl.struct("replicate", "port").n_unique())
    expected = len(ports) * records["runs"].height
    edges = {0, *counts.filter(pl.col("series") == expected).get_column("t_ps")}
    inside = sorted(edge for edge in edges if asked[0] <= edge <= asked[1])
    if len(inside) < 2 or counts.filter(pl.col("series") != expected).height:
        return {"run": None}
    begin, end = inside[0], inside[-1]
    middle = min(inside, key=lambda edge: abs(2 * edge - begin - end))
    spans: dict[str, Window | None] = {"hotspot": (begin, end)}
    return spans | ({"second half": (middle, end)} if begin < middle < end else {})


def _carried(
    records: Records,
    fact: HotspotFacts,
    port: int,
    outputs: Sequence[int],
    innocent: Sequence[int],
    spans: Mapping[str, Window | None],
) -> Iterator[Quantity]:
    hot_max = min(fact.severity, 1.0) * fact.service if fact.loads_known else fact.service
    for name, ports, ideal in (
        ("aggregate throughput", outputs, fact.throughput_max),
        ("hot port", [port], hot_max),
        ("innocent ports", innocent, fact.innocent_max),
    ):
        if not ports:
            continue
        for span, window in spans.items():
            values = _taken("utilisation", records, ports, window)
            yield Quantity(name, span, "1", values, ideal if fact.loads_known and fact.steady else None)
    for span, window in spans.items() if hot_max > 0 and fact.steady else ():
        shares = [each and each / hot_max for each in _taken("utilisation", records, [port], window)]
        yield Quantity("hot port, of what it serves", span, "1", shares, 1.0)
    for name, measure in (("mean hot queue", "mean-queue"), ("largest hot queue", "max-queue")):
        for span, window in spans.items():
            yield Quantity(name, span, "B", _taken(measure, records, [port], window))


def _recovery(
    run: Run,
    fact: HotspotFacts,
    port: int,
    outputs: Sequence[int],
    spans: Mapping[str, Window | None],
    begin_ps: int,
) -> tuple[list[Quantity], list[str]]:
    """When the outputs and the hot queue recovered, counted from the start of the hotspot, which need not be
    the edge at which its recorded intervals begin; and what is to be said of it."""
    window, half = spans.get("hotspot"), spans.get("second half")
    if window is None or half is None:
        return [], []
    if fact.loads_known and fact.severity <= 1:
        return [], ["Nothing to recover from: the hot output serves all that it is offered."]
    found, remarks = [], []
    if not fact.steady:
        remarks.append("Recovery of throughput is not reported: what can be carried changes in the window.")
    elif fact.loads_known:
        recovery = throughput_recovery(run.records, outputs, window, half[0], begin_ps, fact.throughput_max)
        if recovery.untold:
            remarks.append(f"Recovery of throughput is not reported: {recovery.untold}.")
        else:
            found.append(Quantity("recovery of throughput", "hotspot", "ps", recovery.values))
        if recovery.window_ps is not None:
            length = recovery.window_ps / 1e6
            remarks.append(f"Recovery of throughput: means over {length:.4g} us.")
    if (point := set_point_bytes(run.scenario)) is not None:
        values = queue_return(run.records, port, window, half[0], begin_ps, point)
        carried = [each.values for each in found]
        found.append(Quantity("hot queue at its set point", "hotspot", "ps", values))
        late = [each and each / point for each in _taken("mean-queue", run.records, [port], half)]
        found.append(Quantity("mean hot queue, in set points", "second half", "1", late, 1.0))
        if carried:
            both = [_later(*pair) for pair in zip(carried[0], values, strict=True)]
            found.append(Quantity("recovery", "hotspot", "ps", both))
    return found, remarks


def _later(first: float | None, second: float | None) -> float | None:
    """The later of two times; None where one of them never comes."""
    return None if first is None or second is None else max(first, second)


def _remarks(quantities: Sequence[Quantity], asked: Window, window: Window | None) -> Iterator[str]:
    """What a reader must know of measured values above the ideal, and of a window that was cut."""
    shares = ("aggregate throughput", "hot port", "innocent ports")
    above = [
        each.name
        for each in quantities
        if each.name in shares
        and each.ideal
        and (known := _known(each))
        and sum(known) / len(known) > _ABOVE * each.ideal
    ]
    if above:
        yield (
            f"Above perfect control ({', '.join(dict.fromkeys(above))}): what PAUSE or limiters "
            "held back earlier drains in that time, and bursts make the load vary by chance; the ideal "
            "counts mean loads alone."
        )
    if window is not None:
        cut = 1 - (window[1] - window[0]) / (asked[1] - asked[0])
        if cut > _CUT:
            yield f"The edges of the recorded intervals cut {cut:.0%} of the time of the hotspot off."


def set_point_bytes(scenario: Scenario) -> int | None:
    """Set point of the hot queue [B]; None where no scheme measures it."""
    control = scenario.control
    scheme = None if control is None else control.bcn or control.qcn
    if scheme is None:
        return None
    point = scheme.congestion_point
    return in_bytes(point.q_eq, point.frame_size)


_HALF = "second half"


def _fairness(run: Run, fact: HotspotFacts, spans: Mapping[str, Window | None]) -> Iterator[Quantity]:
    records, half = run.records, spans.get(_HALF)
    traffic = records["traffic_names"].get_column("traffic").to_list()
    shares = ideal_shares(run.scenario, fact.name)
    if shares and fact.steady:
        values = _values(relative_fairness(records, traffic, fact.at, shares))
        yield Quantity("RJFI", "run", "1", values, 1.0)
        if half is not None:
            late = _known_of(partial(relative_fairness, records, traffic, fact.at, shares, half))
            yield from (Quantity("RJFI", _HALF, "1", values, 1.0) for values in late)
    if "bursts" not in records or records["bursts"].is_empty():
        return
    to_hot = records["flow_names"].filter(pl.col("to") == fact.at).select("flow")
    bursts = records["bursts"]
    parts = {
        "hot flows": bursts.join(to_hot, on="flow", how="semi", maintain_order="left"),
        "other flows": bursts.join(to_hot, on="flow", how="anti", maintain_order="left"),
    }
    for name, part in parts.items():
        if part.is_empty():
            continue
        mine = records["flow_names"].join(part, on="flow", how="semi", maintain_order="left")
        series = {table: records[table] for table in ("flow_deliveries", "burst_intervals")}
        some = Records({"runs": records["runs"], "flow_names": mine, "bursts": part, **series})
        yield Quantity(f"burst delay of {name}", "run", "ps", _taken("burst-delay", some, traffic))
        if half is not None:
            late = _known_of(partial(taken, "burst-delay", some, traffic, window=half))
            yield from (Quantity(f"burst delay of {name}", _HALF, "ps", values) for values in late)
        yield Quantity(
            f"fairness of delays, {name}", "run", "1", _taken("delay-fairness", some, traffic), 1.0
        )


def _known_of(measure: Callable[[], pl.DataFrame]) -> Iterator[list[float | None]]:
    """The values of a measure, if the run recorded what it needs."""
    try:
        yield _values(measure())
    except MissingRecordError:
        return


def _control(
    records: Records, outputs: Sequence[int], spans: Mapping[str, Window | None]
) -> Iterator[Quantity]:
    kinds: dict[str, int] = dict(records["kind_names"].select("name", "kind").iter_rows())
    replicates = records["runs"].select("replicate")
    sent = records["control_frames"].group_by("replicate", "kind").agg(pl.col("frames").sum())
    for name, kind in kinds.items():
        mine = replicates.join(sent.filter(pl.col("kind") == kind), on="replicate", how="left")
        counts = mine.sort("replicate").get_column("frames").fill_null(0).cast(pl.Float64).to_list()
        if name in ("xoff", "xon") or any(counts):
            yield Quantity(_KINDS.get(name, name), "run", "frames", counts)
        causes = records["control_frames"].filter(pl.col("kind") == kind).get_column("queue_port")
        half = spans.get(_HALF)
        if half is not None and any(counts) and set(causes) <= set(outputs):
            late = _known_of(partial(taken, "control-frames", records, outputs, window=half, type=name))
            yield from (Quantity(_KINDS.get(name, name), _HALF, "frames", values) for values in late)
    ports = records["port_names"].get_column("port").to_list()
    yield Quantity("dropped frames", "run", "frames", _taken("drops", records, ports), 0.0)


def _taken(
    kind: str, records: Records, ids: Sequence[int], window: Window | None = None
) -> list[float | None]:
    return _values(taken(kind, records, ids, window=window))


def _values(table: pl.DataFrame) -> list[float | None]:
    return table.sort("replicate").get_column("value").to_list()


_KINDS = {
    "xoff": "PAUSE frames that stop",
    "xon": "PAUSE frames that release",
    "bcn+": "BCN frames, positive",
    "bcn-": "BCN frames, negative",
    "bcn(0,0)": "BCN(0,0) frames",
    "bcn(max)": "BCN(MAX) frames",
    "qcn": "QCN frames",
    "cnp": "CNPs",
}
