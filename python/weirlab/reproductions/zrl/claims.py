"""The statements of the text, each checked on what was simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from weirlab.reproductions.verdicts import Claim
from weirlab.reproductions.zrl.data import STARVED, Data, exact_maximum, plateau_share, served
from weirlab.reproductions.zrl.planes import EDGE, PLANES
from weirlab.reproductions.zrl.rows import PUBLISHED, TOLERANCE, in_box
from weirlab.reproductions.zrl.transients import outside, response, transients
from weirlab.theory.hotspot import severity_class
from weirlab.theory.ranking import Demand

_TITLES = {plane.name: plane.title for plane in PLANES}


def claims(cells: pl.DataFrame, single: pl.DataFrame) -> list[Claim]:
    """All claims whose planes were simulated."""
    keys = ["plane", "gd", "ps"]
    measures = [name for name in cells.columns if name not in (*keys, "seed")]
    means = cells.group_by(keys, maintain_order=True).agg(pl.col(measures).mean())
    data = Data(means, single, cells)
    return [claim for check in _CHECKS for claim in check(data)]


def _severity(_: Data) -> Iterator[Claim]:
    yield Claim(
        statement="The input-generated hotspot is severe.",
        holds=severity_class(PUBLISHED["hotspot"]["ig_severity"]) == "severe",
        evidence="severity 8.64 with the own port counted, 8.66 without: moderate",
        published="863 %; moderate is 2 to 10, severe above 10",
        source="ZRL benchmark, 'Toolbox-1' and 'IG results'",
        known="The text contradicts its own classes.",
    )


def _lossless(data: Data) -> Iterator[Claim]:
    controlled = data.single.filter(pl.col("case") != "og-32-no-pause")
    drops = float(data.raw.get_column("drops").sum()) + float(controlled.get_column("drops").sum())
    without = data.one("og-32-no-pause", "drops")
    yield Claim(
        statement="Operation is lossless: no frame is dropped by a full buffer (and PAUSE sees to it: "
        "without, frames are lost).",
        holds=drops == 0 and without > 0,
        evidence=f"{drops:.0f} drops in {data.raw.height + controlled.height} runs; without PAUSE and "
        f"BCN {without:.0f} in one",
        source="ZRL benchmark, 'Switch'",
    )


def _optimal_range(data: Data) -> Iterator[Claim]:
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
        yield Claim(
            statement=f"{_TITLES[plane]}: the whole range Ps 0.02 to 0.05, Gd 0.002 to 0.005 "
            "reaches the maximum throughput.",
            holds=reached,
            evidence=f"least throughput {least:.3f} of {exact_maximum(plane):.3f}; least hot-port "
            f"utilisation {hot:.3f} of {served(plane):g}",
            source="ZRL benchmark, 'Conclusions'",
            known=_PROVISOS.get(plane, ""),
        )


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


def _stress(data: Data) -> Iterator[Claim]:
    if not data.has("og-32", "ig-32"):
        return
    plateau = {plane: plateau_share(data.cells, plane) for plane in ("og-32", "ig-32")}
    demands = Demand(32, 0.2, 0.03).decrease / Demand(8, 1.0, 0.03).decrease
    yield Claim(
        statement="Output-generated hotspots leave less stability margin than input-generated ones: "
        "fewer cells of the whole plane reach the maximum with a fed hot port.",
        holds=plateau["og-32"] < plateau["ig-32"],
        evidence=f"{plateau['og-32']:.0%} of OG, {plateau['ig-32']:.0%} of IG; demand on Gd by theory "
        f"{demands:.0f} times",
        source="ZRL benchmark, 'Ranking by AP Sensitivity - 2'",
    )


def _weight(data: Data) -> Iterator[Claim]:
    """At the edge of the plane, where a parameter that matters moves the throughput."""
    if not data.has("og-32"):
        return
    gd, ps = EDGE
    values = {
        case.removeprefix("og-32-w-"): data.one(case, "throughput")
        for case in data.single.get_column("case").unique().sort()
        if case.startswith("og-32-w-")
    }
    spread = max(values.values()) - min(values.values())
    # Both by a factor of ten.
    others = {
        "Gd": data.plane("og-32").filter(pl.col("ps") == ps, pl.col("gd") <= 0.005),
        "Ps": data.plane("og-32").filter(pl.col("gd") == gd),
    }
    ranges = {
        name: float(rows.select(pl.col("throughput").max() - pl.col("throughput").min()).item())
        for name, rows in others.items()
    }
    yield Claim(
        statement="W proves less sensitive than Ps and Gd (each varied by a factor of ten or more around "
        f"Ps = {ps:g}, Gd = {gd:g}, where the throughput is between the extremes).",
        holds=spread < min(ranges.values()),
        evidence=f"throughput varies by {spread:.3f} over W = 0.25 to 4 ("
        + ", ".join(f"W {w}: {value:.3f}" for w, value in values.items())
        + "), "
        + ", ".join(f"by {value:.3f} over {name}" for name, value in ranges.items()),
        source="ZRL benchmark, 'Conclusions', footnote",
    )


def _bursts(data: Data) -> Iterator[Claim]:
    if not data.has("og-32-mtu", "og-32-jumbo"):
        return
    shares = {
        plane: plateau_share(data.cells, plane)
        for plane in ("og-32", "og-32-b10", "og-32-mtu", "og-32-jumbo")
    }
    ordered = list(shares.values())
    yield Claim(
        statement="Large bursts (MTU to jumbo) increase the sensitivity.",
        holds=ordered[-1] < ordered[0] and ordered[-2] < ordered[0],
        evidence="plateau with a fed hot port: "
        + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()),
        source="ZRL benchmark, 'Conclusions'",
    )


def _baseline(data: Data) -> Iterator[Claim]:
    throughput, hot = data.one("og-32-deck", "throughput"), data.one("og-32-deck", "hot-port")
    sent = data.one("og-32-deck", "bcn-")
    yield Claim(
        statement="BCN with the baseline settings does not reach the maximum on this network. (The text "
        "calls it unstable.)",
        holds=throughput < exact_maximum("og-32") - TOLERANCE or hot < STARVED * 0.2,
        evidence=f"with the settings of the calibration deck: throughput {throughput:.3f} of "
        f"{exact_maximum('og-32'):.3f}, hot-port utilisation {hot:.3f} of 0.2, {sent:.1f} messages that "
        "slow senders down in a run: too few to show whether the loop is stable",
        source="ZRL benchmark, 'Empirical approach'",
        straw="a switch without control, which does not reach it either",
    )


_CHECKS: tuple[Callable[[Data], Iterator[Claim]], ...] = (
    _severity,
    _lossless,
    _optimal_range,
    outside,
    _stress,
    transients,
    response,
    _weight,
    _bursts,
    _baseline,
)
