"""What is simulated: planes over sampling probability and decrease gain, single cases, and series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from weirlab.evaluation import measured
from weirlab.records import Records
from weirlab.reproductions.frame import Effort
from weirlab.runs import replicate_seeds, simulate
from weirlab.scenario import Scenario, load
from weirlab.scenario.network import Star
from weirlab.theory.hotspot import input_generated, output_generated
from weirlab.units import Frames

GAINS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Gd: the swept range of the text."""
SAMPLINGS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1)
"""Ps: the swept range of the text."""
EDGE = (0.001, 0.03)
"""A cell (Gd, Ps) on the way out of PAUSE: its throughput shows what a parameter does."""
CELL_BYTES = 64
GD = "control.bcn.reaction_point.gd"
SAMPLE = "control.bcn.congestion_point.sample_every"
Q_EQ = "control.bcn.congestion_point.q_eq"
BURST = "traffic.background.source.mean_burst"
OWN = "traffic.background.pattern.own"


@dataclass(frozen=True)
class Plane:
    """A scenario over Gd and Ps."""

    name: str
    title: str
    scenario: str
    """A ready-made one."""
    changes: Mapping[str, object] = field(default_factory=dict)
    maximum: str = "og_n32"
    """Which published maximum it has."""
    ports: int = 32
    quick: bool = False
    """Whether a quick run makes it."""


PLANES = (
    Plane("og-8", "OG, N = 8", "zrl-og-8", maximum="og_n8", ports=8, quick=True),
    Plane("og-32", "OG, N = 32", "zrl-og", quick=True),
    Plane("og-32-half", "OG, N = 32, Qeq = M/(2N)", "zrl-og", {Q_EQ: "128 frames"}),
    Plane("ig-32", "IG, N = 32", "zrl-ig", maximum="ig_n32", quick=True),
    Plane("ig-32-half", "IG, N = 32, Qeq = M/(2N)", "zrl-ig", {Q_EQ: "128 frames"}, maximum="ig_n32"),
    Plane("og-32-b10", "OG, N = 32, bursts of 10 frames", "zrl-og", {BURST: 10}),
    Plane("og-32-mtu", "OG, N = 32, bursts of an MTU (24 frames)", "zrl-og", {BURST: 24}),
    Plane("og-32-jumbo", "OG, N = 32, bursts of a jumbo frame (144 frames)", "zrl-og", {BURST: 144}),
)

_DECK: Mapping[str, object] = {
    "control.bcn.congestion_point.q_eq": "24 kB",
    "control.bcn.congestion_point.unit": "1500 B",
    "control.bcn.congestion_point.w": 2,
    "control.bcn.reaction_point.gi": 12.42,
    "control.bcn.reaction_point.gd": 6.09e-3,
    "control.bcn.reaction_point.ru": "1 Mbit/s",
    "control.bcn.reaction_point.min_rate": "1 Mbit/s",
    SAMPLE: "150 kB",
}
"""BCN as it was calibrated: set point, sampling and gains of the calibration deck."""

_NONE: Mapping[str, object] = {
    "control": None,
    "run.duration": "8192 us",
    "hotspots.rush.window": "204.8 us .. 8192 us",
    "measure.throughput.window": "1740.8 us .. 8192 us",
    "measure.hot-port.window": "204.8 us .. 8192 us",
    "measure.hot-queue.window": "1740.8 us .. 8192 us",
    "measure.recovery": None,
}
"""Without control, PAUSE comes and goes in long cycles: several are measured, as in `zrl-none`."""

SINGLE: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "og-8-none": ("zrl-none", {"network.hosts": 8, "network.switch.memory.size": "2048 frames"}),
    "og-32-none": ("zrl-none", {}),
    "ig-32-none": ("zrl-ig", _NONE),
    "ig-32-none-own": ("zrl-ig", {**_NONE, OWN: True}),
    "og-32-deck": ("zrl-og", _DECK),
    "ig-32-deck": ("zrl-ig", _DECK),
    "og-32-no-pause": ("zrl-none", {"network.switch.memory.pause": None}),
    **{
        f"og-32-w-{w:g}": (
            "zrl-og",
            {"control.bcn.congestion_point.w": w, GD: EDGE[0], SAMPLE: f"{round(CELL_BYTES / EDGE[1])} B"},
        )
        for w in (0.25, 0.5, 1.0, 2.0, 4.0)
    },
}
"""Single cases by name."""

SERIES = {"OG": "zrl-og", "IG": "zrl-ig"}
RESPONSE: Mapping[str, object] = {SAMPLE: "2133 B"}
"""The response of a hotspot is shown at Ps = 0.03, Gd = 0.002."""


@dataclass
class Work:
    """How much, and how far it came."""

    effort: Effort
    seeds: int
    done: int = 0

    def run(self, cases: Sequence[tuple[Scenario, Mapping[str, object]]]) -> list[dict[str, object]]:
        """One row per replicate of each scenario, with its labels and all its measures."""
        seeds = replicate_seeds(self.effort.seed, self.seeds)
        found = []
        if self.effort.here:
            for scenario, labels in cases:
                found.append(_rows(scenario, labels, seeds, self.effort.threads))
                self.tell()
        else:
            found = self.effort.spread(_rows, [(scenario, labels, seeds, 1) for scenario, labels in cases])
        return [row for rows in found for row in rows]

    def tell(self) -> None:
        """Report one more piece of work."""
        self.done += 1
        if self.effort.progress is not None:
            self.effort.progress(self.done, self.total)

    @property
    def total(self) -> int:
        """Pieces of work of the whole reproduction."""
        planes = sum(plane.quick or not self.effort.quick for plane in PLANES)
        return planes * len(GAINS) * len(SAMPLINGS) + len(SINGLE) + len(SERIES)


def _rows(
    scenario: Scenario, labels: Mapping[str, object], seeds: Sequence[int], threads: int | None
) -> list[dict[str, object]]:
    """One row per replicate."""
    records = simulate(scenario, seeds, threads=threads)
    values = measured(records, scenario)
    rows: list[dict[str, object]] = [{**labels, "seed": seed} for seed in seeds]
    for name, replicate, value in values.select("measure", "replicate", "value").iter_rows():
        rows[replicate][name] = value
    control = records["control_frames"].join(records["kind_names"], on="kind")
    for replicate, row in enumerate(rows):
        row |= _transient(records, scenario, replicate)
        mine = control.filter(pl.col("replicate") == replicate)
        for kind in ("bcn+", "bcn-", "xoff", "xon"):
            row[kind] = int(mine.filter(pl.col("name") == kind).get_column("frames").sum())
    return rows


HOT_OUTPUT = "switch-0->host-0"
FAST = 0.95
"""Of the greatest throughput that a hotspot leaves, below which the switch is slow."""
SETTLED = 2.0
"""Times its set point, above which the hot queue has not settled."""


def _transient(records: Records, scenario: Scenario, replicate: int) -> dict[str, float | None]:
    """The response to the hotspot; nothing without control.

    In set points: `hot-peak`, the longest hot queue, and `hot-spread`, its standard deviation over the whole
    hotspot. As shares of the hotspot: `hot-settles`, when the hot queue was above two set points for the last
    time, and `slow-for`, for how long all outputs together carried less than 95 % of what the hotspot leaves.

    Source: ZRL benchmark, 'Simulations Confirm Our Sensitivity Ranking'
    """
    names = ("hot-peak", "hot-spread", "hot-settles", "slow-for")
    if scenario.control is None or scenario.control.bcn is None:
        return dict.fromkeys(names)
    (hotspot,) = scenario.hotspots.values()
    assert hotspot.window is not None
    start_ps, end_ps = hotspot.window.low.ps, hotspot.window.high.ps
    q_eq = scenario.control.bcn.congestion_point.q_eq
    set_point = float(q_eq.count * CELL_BYTES if isinstance(q_eq, Frames) else q_eq.bytes)
    rows = (
        records["intervals"]
        .filter(pl.col("replicate") == replicate, pl.col("t_ps") > start_ps, pl.col("t_ps") <= end_ps)
        .join(records["port_names"].select("port", "name", "rate_bps"), on="port")
    )
    hot = rows.filter(pl.col("name") == HOT_OUTPUT).sort("t_ps")
    longest = hot.get_column("queue_max_bytes").to_numpy() / set_point
    ends = hot.get_column("t_ps").to_numpy()
    above = ends[longest > SETTLED]
    total = rows.group_by("t_ps").agg(pl.col("bytes").sum(), pl.col("rate_bps").sum()).sort("t_ps")
    # Intervals are all equally long.
    length_ps = (end_ps - start_ps) / total.height
    carried = (
        total.get_column("bytes").to_numpy() * 8e12 / (total.get_column("rate_bps").to_numpy() * length_ps)
    )
    return {
        "hot-peak": float(longest.max()),
        "hot-spread": float(hot.get_column("queue_bytes").to_numpy().std() / set_point),
        "hot-settles": float(above[-1] - start_ps) / (end_ps - start_ps) if above.size else 0.0,
        "slow-for": float((carried < FAST * _left(scenario)).mean()),
    }


def _left(scenario: Scenario) -> float:
    """The greatest throughput that a hotspot of the benchmark leaves, as a share of the capacity."""
    assert isinstance(scenario.network, Star)
    ports = scenario.network.hosts
    (hotspot,) = scenario.hotspots.values()
    if hotspot.kind == "input-generated":
        return input_generated(ports, load=0.85, hot_sources=8).throughput_max
    return output_generated(ports, load=0.85, service=0.2).throughput_max


def sample_every(probability: float) -> str:
    """The mean amount between samples that samples each frame with this probability."""
    return f"{round(CELL_BYTES / probability)} B"


def simulated_planes(planes: Sequence[Plane], work: Work) -> pl.DataFrame:
    """Columns `plane gd ps seed`, one per measure of the scenario, and the control frames by kind."""
    cases = []
    for plane in planes:
        base = load(plane.scenario).assign(plane.changes) if plane.changes else load(plane.scenario)
        for gd in GAINS:
            for ps in SAMPLINGS:
                scenario = base.assign({GD: gd, SAMPLE: sample_every(ps)})
                cases.append((scenario, {"plane": plane.name, "gd": gd, "ps": ps}))
    return pl.DataFrame(work.run(cases), infer_schema_length=None)


def simulated_single(work: Work) -> pl.DataFrame:
    """Columns `case seed`, one per measure of the scenario, and the control frames by kind."""
    cases = [(load(name).assign(changes), {"case": case}) for case, (name, changes) in SINGLE.items()]
    return pl.DataFrame(work.run(cases), infer_schema_length=None)


def simulated_series(work: Work) -> pl.DataFrame:
    """Columns `type seed t_ps throughput hot_queue_bytes`: the response to a hotspot, by intervals."""
    frames = []
    for kind, name in SERIES.items():
        scenario = load(name).assign(RESPONSE)
        seeds = replicate_seeds(work.effort.seed, 1)
        records = simulate(scenario, seeds, threads=work.effort.threads)
        ports = records["port_names"].select("port", "name", "rate_bps")
        rows = records["intervals"].join(ports, on="port")
        length = rows.get_column("t_ps").unique().sort().diff().drop_nulls().mode().item(0)
        sums = (
            rows.group_by("t_ps")
            .agg(
                throughput=pl.col("bytes").sum() * 8e12 / (pl.col("rate_bps").sum() * length),
                hot_queue_bytes=pl.col("queue_bytes").filter(pl.col("name") == "switch-0->host-0").first(),
            )
            .sort("t_ps")
        )
        frames.append(sums.select(pl.lit(kind).alias("type"), pl.lit(seeds[0]).alias("seed"), pl.all()))
        work.tell()
    return pl.concat(frames, how="vertical_relaxed")
