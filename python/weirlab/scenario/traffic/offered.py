"""The load that a search varies: which traffic it is, and the scenario at a given load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.scenario.network.layout import FIXED_NODES, Layout, layout_of, plan_network
from weirlab.scenario.traffic import Departing
from weirlab.scenario.traffic.flows import flows_of, frame_sizes
from weirlab.units import FrameRate, Interval, Rate, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


@dataclass(frozen=True)
class Offered:
    """What a search offers. Loads are sums over all flows."""

    traffic: str
    """Name of the traffic whose rate is varied."""
    flows: int
    """Number of senders, the directions of a trial."""
    frame_size_bytes: int
    """With FCS, without preamble and gap; of a mix the mean, rounded."""
    min_fps: float
    """Least load in frames/s."""
    max_fps: float
    """Greatest load in frames/s."""
    line_fps: float | None
    """Greatest load that no sender's link falls short of, in frames/s; None where the links are not known."""


def offered(scenario: Scenario) -> Offered:
    """What the search of `scenario` offers; the scenario must have one."""
    assert scenario.search is not None
    name = scenario.search.vary.split(".")[1]
    traffic = scenario.traffic[name]
    assert isinstance(traffic.source, Departing)
    layout = _layout(scenario)
    flows = flows_of(traffic, layout)
    size = mean_bytes(frame_sizes(traffic.source))
    counted = size if traffic.source.payload is None else traffic.source.payload.bytes
    ports = [port for flow in flows if (port := layout.host_port(flow.source)) is not None]
    line_rates_fps = [1e12 / port.wire_ps(size) for port in ports]

    def fps(load: Rate | FrameRate | float) -> float:
        match load:
            case Rate():
                return load.bps / (8 * counted)
            case FrameRate():
                return load.fps
            case _:
                return load * sum(line_rates_fps)

    between: Interval[Rate | FrameRate | float] = scenario.search.between
    slowest_fps = len(flows) * min(line_rates_fps) if line_rates_fps else None
    return Offered(name, len(flows), size, fps(between.low), fps(between.high), slowest_fps)


def mean_bytes(sizes: Sequence[tuple[int, int]]) -> int:
    """Mean of sizes with their weights, to the nearest byte."""
    return round(sum(size * weight for size, weight in sizes) / sum(weight for _, weight in sizes))


def at_load(scenario: Scenario, load_fps: float, duration_s: float) -> Scenario:
    """The scenario as a plain run of one trial: `load_fps` summed over all flows for `duration_s`, then the
    time to settle. What else sends goes on until the end."""
    assert scenario.search is not None
    what = offered(scenario)
    duration = Span.from_s(duration_s)
    path = f"traffic.{what.traffic}"
    return scenario.assign(
        {
            "search": None,
            "study": None,
            f"{path}.source.rate": FrameRate.from_fps(load_fps / what.flows),
            f"{path}.stop": Span(scenario.traffic[what.traffic].start.ps + duration.ps),
            "run.duration": Span(
                scenario.traffic[what.traffic].start.ps + duration.ps + scenario.search.trial.settle.ps
            ),
        }
    )


def _layout(scenario: Scenario) -> Layout:
    if scenario.network is None:
        return Layout(FIXED_NODES, frozenset(FIXED_NODES), ())
    return layout_of(plan_network(scenario.network).spec)
