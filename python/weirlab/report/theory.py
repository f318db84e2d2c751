"""Reports of theory: margins, stability planes, rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from weirlab.analysis.hotspots import HotspotFacts
from weirlab.analysis.queues import ControlledQueue
from weirlab.analysis.ranking import QueueLine, rank_parameters, rank_queues
from weirlab.analysis.stability import Axis, loops_of, over_plane
from weirlab.documents import fields_of
from weirlab.plots.plane import AxisOf, Line, heat_map
from weirlab.plots.style import Plot
from weirlab.report.page import Block, Page, Section, Table, Text, figure, heads, number, percent
from weirlab.report.shared import footer, scenario_details
from weirlab.results import Provenance
from weirlab.scenario import Scenario
from weirlab.theory.bcn import BcnPoint

GAINS = (
    "By the rule of the BCN calibration the largest feedback, (1 + 2 w) Qeq, adds a tenth of the line rate, "
    "or takes half of a rate."
)
_short = partial(number, digits=3)
LARGE_SIGNALS = "Margins do not cover large signals: saturation by PAUSE, floors of rates, start."
_MARGINS = (
    "Delay margin: the delay of the whole loop at which it starts to oscillate; between samples, the rate "
    "acts only where a frame is sampled, and that margin decides. A loop is stable while its delay is less. "
    "Phase margins are those with the delay that the loop has, delay margins include it. " + LARGE_SIGNALS
)


def hotspot_table(facts: Sequence[HotspotFacts]) -> Table:
    """How hard the hotspots of a scenario are."""
    return Table.of(
        "Hotspots",
        facts,
        {"name:": "name", "type:": "kind", "at:": "at"},
        {"severity HSV": ("severity", _short), "class:": "severity_class"},
        {"degree HSD": ("degree", percent), "class:": "degree_class"},
        {"maximum throughput": ("throughput_max", _short)},
        {"without control": ("throughput_without_control", _short)},
        note="Throughput: aggregate, as a share of capacity. "
        + " ".join(
            f"{fact.name}: {text}." for fact in facts for text in (*fact.contradictions, *fact.remarks)
        ),
    )


def hotspot_json(facts: Sequence[HotspotFacts]) -> list[dict[str, object]]:
    """The same as JSON values."""
    return [
        {**asdict(fact), "severity_class": fact.severity_class, "degree_class": fact.degree_class}
        for fact in facts
    ]


def queue_table(queues: Sequence[ControlledQueue]) -> Table:
    """The queues that measure, and how hot they are."""
    return Table.of(
        "Queues that measure",
        queues,
        {
            "port:": "port",
            "scheme:": "scheme",
            "flows": lambda queue: number(queue.point.flows),
            "served [kframe/s]": lambda queue: number(queue.point.service_fps / 1e3),
            "severity HSV": ("severity", _short),
            "degree HSD": ("degree", percent),
            "class:": "classes",
            "delay of the loop [µs]": lambda queue: number(queue.point.delay_s * 1e6),
        },
    )


def loop_table(queues: Sequence[ControlledQueue]) -> Table:
    """The margins of their loops."""
    loops = [(queue.port, loop) for queue in queues for loop in loops_of(queue.point)]
    return Table.of(
        "Loops",
        loops,
        {
            "port:": lambda each: each[0],
            "loop:": lambda each: each[1].name,
            "crossover [rad/s]": lambda each: number(each[1].crossover_rad_s),
            "phase margin [°]": lambda each: _short(each[1].phase_margin_deg),
            "delay margin [µs]": lambda each: _short(each[1].delay_margin_s * 1e6),
            "between samples [µs]": lambda each: _short(each[1].sampled_delay_margin_s * 1e6),
            "verdict:": lambda each: "stable" if each[1].stable else "unstable",
        },
        tones=["good" if loop.stable else "bad" for _, loop in loops],
        note=_MARGINS,
    )


def stability_sentence(queues: Sequence[ControlledQueue]) -> str:
    """Whether all loops are stable, and by what margin the worst is or is not."""
    loops = [(queue.port, loop) for queue in queues for loop in loops_of(queue.point)]
    if not loops:
        return "No loop: all gains are 0."
    port, worst = min(loops, key=lambda each: each[1].decisive_s - each[1].delay_s)
    stable = all(loop.stable for _, loop in loops)
    which = f"the loop '{worst.name}' at {port}"
    has, bears = (f"{number(seconds * 1e6, 3)} µs" for seconds in (worst.delay_s, worst.decisive_s))
    return f"{'Stable' if stable else 'Unstable'}: {which} has {has} of delay and bears {bears}."


def gain_table(queues: Sequence[ControlledQueue]) -> Table | None:
    """The gains of BCN compared with those that the rule of the text gives for the same set point and
    weight; None without BCN."""
    points = [(queue.port, queue.point) for queue in queues if isinstance(queue.point, BcnPoint)]
    if not points:
        return None
    rows = []
    for port, point in points:
        gi, gd = point.gains_of_rule
        rows.append([port, *map(number, (point.gi, gi, point.gd, gd))])
    columns = heads("port: | gi [Ru/frame] | by the rule [Ru/frame] | gd [1/frame] | by the rule [1/frame]")
    return Table("Gains", columns, rows, note=GAINS)


def stability_json(queues: Sequence[ControlledQueue]) -> dict[str, object]:
    """The same as JSON values."""
    return {
        "queues": [
            {
                **fields_of(queue, "port", "scheme", "severity", "degree"),
                "class": queue.classes,
                "parameters": asdict(queue.point),
                "loops": [
                    {**vars(loop), "stable": loop.stable, "spare_delay_s": loop.decisive_s - loop.delay_s}
                    for loop in loops_of(queue.point)
                ],
                **_gains_of_rule(queue),
            }
            for queue in queues
        ]
    }


def _gains_of_rule(queue: ControlledQueue) -> dict[str, dict[str, float]]:
    if not isinstance(queue.point, BcnPoint):
        return {}
    gi, gd = queue.point.gains_of_rule
    return {"gains_of_rule": {"gi": gi, "gd": gd}}


def stability_plane(queue: ControlledQueue, axes: tuple[Axis, Axis]) -> tuple[Plot, dict[str, object]]:
    """A picture of a queue over two parameters, and its numbers."""
    plane = over_plane(queue, axes)
    x, y = axes
    values = (plane.values * 1e6).tolist()
    boundary = plane.contour(0.0)
    drawn = [tuple((px * x.factor, py * y.factor) for px, py in piece) for piece in boundary]
    reach = max((abs(value) for row in values for value in row if math.isfinite(value)), default=1.0)
    plot = heat_map(
        "stability",
        f"Delay that {queue.scheme} at {queue.port} bears beyond its own",
        x=AxisOf(x.title, [level * x.factor for level in x.levels], x.logarithmic),
        y=AxisOf(y.title, [level * y.factor for level in y.levels], y.logarithmic),
        values=values,
        value_title="spare delay [µs]",
        domain=(-reach, reach),
        middle=0.0,
        lines=[Line("limit of stability", drawn)],
        note="Blue: stable. Red: the delay of the loop exceeds what it bears.",
    )
    return plot, {
        "port": queue.port,
        "x": {"name": x.name, "levels": list(x.levels)},
        "y": {"name": y.name, "levels": list(y.levels)},
        "spare_delay_s": plane.values.tolist(),
        "boundary": boundary,
    }


def stability_page(scenario: Scenario, queues: Sequence[ControlledQueue], plot: Plot | None) -> Page:
    """A page of the queues, the severest first, and the picture of that one over two parameters if there is
    one."""
    return Page(
        title=scenario.name,
        kind="Stability",
        subtitle=f"{queues[0].scheme} at {queues[0].port}, from linear theory",
        lead=[queue_table(queues), loop_table(queues), *([gains] if (gains := gain_table(queues)) else [])],
        sections=[
            *([] if plot is None else [Section("Plane", [figure(plot)])]),
            Section("Scenario", [scenario_details(scenario)]),
        ],
        footer=footer(Provenance.now()),
    )


def rank_tables(scenario: Scenario, queues: list[ControlledQueue]) -> list[Table]:
    """Traffic and parameters, the most demanding first."""
    lines = rank_queues(scenario, queues)
    hardest = lines[0].queue.point
    assert isinstance(hardest, BcnPoint)
    return [_traffic_table(lines), _parameter_table(hardest)]


def rank_sentence(scenario: Scenario, queues: list[ControlledQueue]) -> str:
    """Which queue stresses BCN most, and which parameter weighs most there."""
    line = rank_queues(scenario, queues)[0]
    assert isinstance(line.queue.point, BcnPoint)
    heaviest = rank_parameters(line.queue.point)[0]
    demand = number(line.demand.decrease, 3)
    return (
        f"{line.queue.port} stresses BCN most (demand on Gd {demand}); the parameter with most weight: "
        f"{heaviest.title}."
    )


def _traffic_table(lines: list[QueueLine]) -> Table:
    return Table.of(
        "Traffic: hot queues by their demand on the decrease gain",
        lines,
        {
            "port:": lambda line: line.queue.port,
            "flows (HSD)": lambda line: number(line.demand.flows),
            "served µ [line rates]": lambda line: number(line.demand.service),
            "severity HSV": lambda line: _short(line.queue.severity),
            "HSD/µ": lambda line: number(line.demand.flows / line.demand.service),
            "demand on Gi": lambda line: _short(line.demand.increase),
            "demand on Gd": lambda line: _short(line.demand.decrease),
            "class:": lambda line: line.queue.classes,
        },
        note="Demand: the gain for one unit of control action, HSD/(p µ) for Gi and (HSD/µ)²/p for Gd: the "
        "larger, the more the queue stresses BCN.",
    )


def _parameter_table(hardest: BcnPoint) -> Table:
    return Table.of(
        "Parameters by their weight",
        rank_parameters(hardest),
        {
            "parameter:": "title",
            "in the demand on Gi": ("demand_increase", str),
            "in the demand on Gd": ("demand_decrease", str),
            "in the delay margin": ("margin", "{:+.2f}".format),
            "why:": "why",
        },
        note="Numbers are elasticities: per cent for each per cent. The delay margin is that of the worse "
        "loop of the hardest queue, so a gain that does not decide there reads 0.",
    )


def rank_json(scenario: Scenario, queues: list[ControlledQueue]) -> dict[str, object]:
    """The same as JSON values."""
    lines = rank_queues(scenario, queues)
    hardest = lines[0].queue.point
    assert isinstance(hardest, BcnPoint)
    return {
        "traffic": [
            {
                **fields_of(line.queue, "port", "severity", "degree"),
                **fields_of(line.demand, "flows", "service"),
                "class": line.queue.classes,
                "demand_increase": line.demand.increase,
                "demand_decrease": line.demand.decrease,
            }
            for line in lines
        ],
        "parameters": [vars(line) for line in rank_parameters(hardest)],
    }


def rank_page(scenario: Scenario, queues: list[ControlledQueue]) -> Page:
    """The same as a page."""
    lead: list[Block] = [
        Text("What stresses BCN most, after equations 1 to 10 of the ZRL congestion benchmark."),
        *rank_tables(scenario, queues),
    ]
    return Page(
        title=scenario.name,
        kind="Ranking",
        subtitle="AP sensitivity, from theory",
        lead=lead,
        sections=[Section("Scenario", [scenario_details(scenario)])],
        footer=footer(Provenance.now()),
    )
