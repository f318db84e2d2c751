"""The statements of the text, each checked on what was simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from weirlab.reproduce.frame import Claim
from weirlab.reproduce.zrl.planes import PLANES
from weirlab.reproduce.zrl.rows import PUBLISHED, TOLERANCE, in_box
from weirlab.theory.hotspot import input_generated, output_generated, severity_class
from weirlab.theory.ranking import Demand

__all__ = ["claims", "plateau_share"]

STARVED = 0.9
"""A hot port below this part of what it serves is starved."""
_MAXIMA = {plane.name: plane for plane in PLANES}


@dataclass(frozen=True)
class _Data:
    """What claims are judged on."""

    cells: pl.DataFrame
    """Means over seeds: `plane gd ps` and measures."""
    single: pl.DataFrame
    raw: pl.DataFrame

    def plane(self, name: str) -> pl.DataFrame:
        return self.cells.filter(pl.col("plane") == name)

    def has(self, *names: str) -> bool:
        return set(names) <= set(self.cells.get_column("plane"))

    def one(self, case: str, measure: str) -> float:
        return float(self.single.filter(pl.col("case") == case).get_column(measure).to_numpy().mean())


def claims(cells: pl.DataFrame, single: pl.DataFrame) -> list[Claim]:
    """All claims whose planes were simulated."""
    keys = ["plane", "gd", "ps"]
    measures = [name for name in cells.columns if name not in (*keys, "seed")]
    means = cells.group_by(keys, maintain_order=True).agg(pl.col(measures).mean())
    data = _Data(means, single, cells)
    return [claim for check in _CHECKS for claim in check(data)]


def exact_maximum(plane: str) -> float:
    """The theoretical maximum of what is simulated."""
    ports = _MAXIMA[plane].ports
    if plane.startswith("ig"):
        return input_generated(ports, load=0.85, hot_sources=8).throughput_max
    return output_generated(ports, load=0.85, service=0.2).throughput_max


def served(plane: str) -> float:
    """What the hot port serves, as a share of the line rate."""
    return 1.0 if plane.startswith("ig") else 0.2


def plateau_share(cells: pl.DataFrame, plane: str) -> float:
    """The part of a plane in which the throughput is within the tolerance of its maximum, or above, and the
    hot port is not starved."""
    rows = cells.filter(pl.col("plane") == plane)
    reached = pl.col("throughput") >= exact_maximum(plane) - TOLERANCE
    fed = pl.col("hot-port") >= STARVED * served(plane)
    return float(rows.select((reached & fed).mean()).item())


def _hogging(data: _Data) -> list[Claim]:
    values = {case: data.one(case, "throughput") for case in ("og-8-none", "og-32-none")}
    return [
        Claim(
            statement="Without congestion management, an output-generated hotspot limits the aggregate "
            "throughput to the service rate of the hot output (hogging).",
            holds=all(abs(value - 0.2) <= TOLERANCE for value in values.values()),
            evidence=", ".join(f"{case}: {value:.4f}" for case, value in values.items()),
            published="20 %",
            source="ZRL benchmark, 'Traffic Scenarios'",
        ),
        Claim(
            statement="The input-generated hotspot is severe.",
            holds=severity_class(PUBLISHED["hotspot"]["ig_severity"]) == "severe",
            evidence="severity 8.64 with the own port counted, 8.66 without: moderate",
            published="863 %; moderate is 2 to 10, severe above 10",
            source="ZRL benchmark, 'Toolbox-1' and 'IG results'",
            known="The text contradicts its own classes.",
        ),
    ]


def _lossless(data: _Data) -> list[Claim]:
    drops = float(data.raw.get_column("drops").sum()) + float(data.single.get_column("drops").sum())
    return [
        Claim(
            statement="Operation is lossless: no frame is dropped by a full buffer.",
            holds=drops == 0,
            evidence=f"{drops:.0f} drops in {data.raw.height + data.single.height} runs",
            source="ZRL benchmark, 'Switch'",
        )
    ]


def _optimal_range(data: _Data) -> list[Claim]:
    made = []
    for plane in (
        "og-8",
        "og-32",
        "og-32-half",
        "og-32-b10",
        "og-32-mtu",
        "og-32-jumbo",
        "ig-32",
        "ig-32-half",
    ):
        if not data.has(plane):
            continue
        inside = in_box(data.plane(plane))
        least, hot = inside["throughput"].min(), inside["hot-port"].min()
        assert isinstance(least, float)
        assert isinstance(hot, float)
        reached = least >= exact_maximum(plane) - TOLERANCE
        made.append(
            Claim(
                statement=f"{_MAXIMA[plane].title}: the whole range Ps 0.02 to 0.05, Gd 0.002 to 0.005 "
                "reaches the maximum throughput.",
                holds=reached,
                evidence=f"least throughput {least:.3f} of {exact_maximum(plane):.3f}; least hot-port "
                f"utilisation {hot:.3f} of {served(plane):g}",
                source="ZRL benchmark, 'Conclusions'",
                known=_PROVISOS.get(plane, ""),
            )
        )
    return made


_BURSTS = (
    "Bursts take flows down too far where gains are high and samples few: with Ps from 0.05 on the maximum "
    "is reached. The text itself says that large bursts increase the sensitivity."
)
_PROVISOS = {
    "og-32-mtu": _BURSTS,
    "og-32-jumbo": _BURSTS,
    "og-32-half": "Half the set point halves the largest feedback: at the corner of the range the escape "
    "from PAUSE takes longer than the hotspot. Slow, not unstable.",
}


def _starvation(data: _Data) -> list[Claim]:
    planes = [plane for plane in ("og-8", "og-32", "og-32-half", "og-32-b10") if data.has(plane)]
    full, hidden, least = 0, 0, 1.0
    for plane in planes:
        rows = data.plane(plane).filter(pl.col("throughput") >= exact_maximum(plane) - TOLERANCE)
        starved = rows.filter(pl.col("hot-port") < STARVED * served(plane))
        full, hidden = full + rows.height, hidden + starved.height
        least = min([least, *starved.get_column("hot-port")])
    return [
        Claim(
            statement="Aggregate throughput shows the stability of the whole plane.",
            holds=hidden == 0,
            evidence=f"{hidden} of {full} cells that reach the maximum starve the hot port"
            + (f", down to {least:.3f} of 0.2" if hidden else ""),
            source="ZRL benchmark, 'Results'",
            known="The hot port is a small part of the aggregate: a starved one hides there.",
        )
    ]


def _stress(data: _Data) -> list[Claim]:
    if not data.has("og-32", "ig-32"):
        return []
    missing = {plane: 1 - _reached(data, plane, most_gain=0.002) for plane in ("og-32", "ig-32")}
    plateau = {plane: plateau_share(data.cells, plane) for plane in missing}
    demands = Demand(32, 0.2, 0.03).decrease / Demand(8, 1.0, 0.03).decrease
    return [
        Claim(
            statement="Output-generated hotspots stress the stability of BCN more than input-generated ones.",
            holds=missing["og-32"] > missing["ig-32"],
            evidence=f"cells with Gd up to 0.002 that miss the maximum: {missing['og-32']:.0%} of OG, "
            f"{missing['ig-32']:.0%} of IG; demand on Gd by theory {demands:.0f} times. In the whole plane, "
            f"with a fed hot port, {plateau['og-32']:.0%} and {plateau['ig-32']:.0%} reach it: at high gains "
            "IG starves sooner",
            source="ZRL benchmark, 'Ranking by AP Sensitivity - 2'",
        )
    ]


def _reached(data: _Data, plane: str, *, most_gain: float) -> float:
    """The part of the cells with small gains that reach the maximum."""
    rows = data.plane(plane).filter(pl.col("gd") <= most_gain)
    reached = rows.filter(pl.col("throughput") >= exact_maximum(plane) - TOLERANCE)
    return reached.height / rows.height


def _response(data: _Data) -> list[Claim]:
    if not data.has("og-32"):
        return []
    rows = data.plane("og-32").filter((pl.col("ps") >= 0.02) & (pl.col("gd") <= 0.005))
    by_gain = _monotone(rows, "gd", "ps")
    by_sampling = _monotone(rows, "ps", "gd")
    return [
        Claim(
            statement="The response to a hotspot improves as Ps and Gd increase, within bounds.",
            holds=by_gain >= 0.8 and by_sampling >= 0.8,
            evidence=f"up to Gd = 0.005, throughput does not fall (by more than {TOLERANCE}) in "
            f"{by_gain:.0%} of the steps of Gd and {by_sampling:.0%} of those of Ps",
            source="ZRL benchmark, 'Simulations Confirm Our Sensitivity Ranking'",
        )
    ]


def _monotone(rows: pl.DataFrame, along: str, beside: str) -> float:
    """The part of steps along a parameter in which throughput does not fall."""
    steps = (
        rows.sort(along).select(step=pl.col("throughput").diff().over(beside, order_by=along)).drop_nulls()
    )
    return int((steps.get_column("step") >= -TOLERANCE).sum()) / max(1, steps.height)


def _weight(data: _Data) -> list[Claim]:
    values = {
        case.removeprefix("og-32-w-"): data.one(case, "throughput")
        for case in data.single.get_column("case").unique().sort()
        if case.startswith("og-32-w-")
    }
    spread = max(values.values()) - min(values.values())
    return [
        Claim(
            statement="W proves less sensitive than analytically expected.",
            holds=spread <= TOLERANCE,
            evidence=f"throughput at Ps = 0.03, Gd = 0.002 varies by {spread:.3f} over W = 0.25 to 4: "
            + ", ".join(f"W {w}: {value:.3f}" for w, value in values.items()),
            source="ZRL benchmark, 'Conclusions', footnote",
        )
    ]


def _bursts(data: _Data) -> list[Claim]:
    if not data.has("og-32-mtu", "og-32-jumbo"):
        return []
    shares = {
        plane: plateau_share(data.cells, plane)
        for plane in ("og-32", "og-32-b10", "og-32-mtu", "og-32-jumbo")
    }
    ordered = list(shares.values())
    return [
        Claim(
            statement="Large bursts (MTU to jumbo) increase the sensitivity.",
            holds=ordered[-1] < ordered[0] and ordered[-2] < ordered[0],
            evidence="plateau with a fed hot port: "
            + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()),
            source="ZRL benchmark, 'Conclusions'",
        )
    ]


def _baseline(data: _Data) -> list[Claim]:
    throughput, hot = data.one("og-32-deck", "throughput"), data.one("og-32-deck", "hot-port")
    sent = data.one("og-32-deck", "bcn-")
    return [
        Claim(
            statement="BCN with the baseline settings does not reach the maximum on this network. (The text "
            "calls it unstable.)",
            holds=throughput < exact_maximum("og-32") - TOLERANCE or hot < STARVED * 0.2,
            evidence=f"with the settings of the calibration deck: throughput {throughput:.3f} of "
            f"{exact_maximum('og-32'):.3f}, hot-port utilisation {hot:.3f} of 0.2, {sent:.1f} messages that "
            "slow senders down in a run: too few to show whether the loop is stable",
            source="ZRL benchmark, 'Empirical approach'",
        )
    ]


_CHECKS: tuple[Callable[[_Data], list[Claim]], ...] = (
    _hogging,
    _lossless,
    _optimal_range,
    _starvation,
    _stress,
    _response,
    _weight,
    _bursts,
    _baseline,
)
