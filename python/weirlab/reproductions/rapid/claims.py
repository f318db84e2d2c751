"""What the text says of its experiment, and what the better Rapid is to reach, checked on our runs.

Source: Rapid UDP, (4)
"""

from __future__ import annotations

import polars as pl

from weirlab.reproductions.rapid.cases import BETTER, Case, goodput_bps
from weirlab.reproductions.verdicts import Claim

_LOST = 0.6
"""Ramps are lost when a smaller share of the streams is intact."""
_FEW = 0.1
"""Streams with excursions are few below this share."""
_MANY = 0.3
"""Estimates at the link's rate are many above this share."""
_SPILT = 0.1
_REPEATED = 3
_CLOSE = 0.15
_LEAST = {"constant": 0.95, "poisson": 0.95, "bursts": 0.90, "coalesced": 0.90}
"""Share of the goodput that the leftover capacity allows, which the better Rapid is to reach."""
_MOST_EVENTS = 5


def _of(runs: pl.DataFrame, case: str, column: str) -> float:
    """Mean over the runs of a case."""
    values = runs.filter(pl.col("case") == case).get_column(column).drop_nulls()
    return float(values.cast(pl.Float64).to_numpy().mean()) if values.len() else float("nan")


def _most(runs: pl.DataFrame, case: str, column: str) -> float:
    """Greatest value of the runs of a case."""
    values = runs.filter(pl.col("case") == case).get_column(column).drop_nulls()
    return float(values.cast(pl.Float64).to_numpy().max()) if values.len() else float("nan")


def text_claims(runs: pl.DataFrame) -> list[Claim]:
    """The statements of the text."""
    intact, few = _of(runs, "flawed", "intact"), _of(runs, "flawed", "excursions")
    at_link, spilt = _of(runs, "flawed", "at_link"), _of(runs, "flawed-alone", "spilt")
    recoveries, ideal = _of(runs, "flawed", "recoveries"), _of(runs, "ideal", "recoveries")
    rate_300, rate_700 = (_of(runs, name, "settled_mbps") for name in ("flawed", "flawed-700"))
    ab = _of(runs, "flawed-700", "ab_p50_mbps")
    alone = _of(runs, "flawed-alone", "intact")
    return [
        Claim(
            statement="I. Send gaps fail to increase exponentially when there is cross traffic (fewer than "
            "60 % of the streams are ramps).",
            holds=intact < _LOST,
            evidence=f"{intact:.0%} of the streams are ramps; without cross traffic {alone:.0%}, with exact "
            f"timers {_of(runs, 'timely', 'intact'):.0%}",
            source="Rapid UDP, (4) I",
        ),
        Claim(
            statement="II. Only a few streams see excursions, and the estimate climbs until it reaches the "
            "link speed (excursions in fewer than 10 % of the streams; three estimates in ten are 95 % of "
            "the link's rate or more).",
            holds=few < _FEW and at_link > _MANY,
            evidence=f"excursions in {few:.1%}, {at_link:.0%} of the estimates at the link's rate, the ninth "
            f"decile is {_of(runs, 'flawed', 'ab_p90_mbps'):.0f} Mbit/s. The text blames broken gaps; with "
            f"exact timers excursions are in {_of(runs, 'timely', 'excursions'):.1%} too, and "
            f"{_of(runs, 'timely', 'at_link'):.0%} at the link's rate: it is the threshold of 10 µs",
            source="Rapid UDP, (4) II",
        ),
        Claim(
            statement="III. Rapid repeatedly enters recovery because it over-estimates the capacity (three "
            "times or more, and not with an estimator that sees the cross traffic).",
            holds=recoveries >= _REPEATED and ideal <= 1,
            evidence=f"{recoveries:.1f} recoveries, {ideal:.1f} of the ideal variant",
            published="the log shows 7 recoveries",
            source="Rapid UDP, (4) III",
        ),
        Claim(
            statement="IV. What is sent faster than the link spills into the next stream, which begins back "
            "to back (over 10 % of the streams at the link's rate).",
            holds=spilt > _SPILT,
            evidence=f"{spilt:.0%} of the streams without cross traffic, {_of(runs, 'flawed', 'spilt'):.0%} "
            f"with it; {_of(runs, 'ideal', 'spilt'):.0%} where no rate exceeds that of the link",
            source="Rapid UDP, (4) IV",
        ),
        Claim(
            statement="With 700 Mbit/s of cross traffic the throughput is similar and no worse (than 90 % of "
            "that with 300 Mbit/s).",
            holds=rate_700 >= 0.9 * rate_300,
            evidence=f"{rate_700:.0f} Mbit/s with 700, {rate_300:.0f} with 300",
            source="Rapid UDP, (4) IV",
            known="With 700 Mbit/s of UDP 253 Mbit/s are left, with 300 Mbit/s 646: a sender that takes "
            "about half of either cannot be as fast. It can be similar only as a share of what is left, "
            "or if UDP gave way.",
        ),
        Claim(
            statement="With 700 Mbit/s of cross traffic the estimate is close to the actual available "
            "bandwidth (median within 15 %).",
            holds=abs(ab / 269.0 - 1.0) <= _CLOSE,
            evidence=f"median {ab:.0f} Mbit/s of 269; with exact timers "
            f"{_of(runs, 'timely-700', 'ab_p50_mbps'):.0f}",
            source="Rapid UDP, (4)",
            known=KNOWN_700,
        ),
    ]


KNOWN_700 = (
    "With exact timers the estimator is blind up to about 450 Mbit/s: below, two packets grow apart by less "
    "than its 10 µs. With late timers, what leaves back to back after a stall is taken for the excursion."
)
"""Why the estimate at 700 Mbit/s differs."""


def _allowed_mbps(case: Case) -> float:
    return goodput_bps(case.available_mbps * 1e6) / 1e6


def better_claims(runs: pl.DataFrame) -> list[Claim]:
    """What the better Rapid is to reach under each cross traffic."""
    made = []
    for case in (case for case in BETTER if case.scenario == "rapid-better"):
        kind = case.name.split("-")[1]
        allowed = _allowed_mbps(case)
        rate, events = _of(runs, case.name, "settled_mbps"), _of(runs, case.name, "loss_events")
        most = _most(runs, case.name, "loss_events")
        worst, worst_of_all = _of(runs, case.name, "worst_estimate"), _most(runs, case.name, "worst_estimate")
        others = ", ".join(
            f"{name} {_of(runs, other, 'settled_mbps'):.0f} Mbit/s"
            for name in ("reno", "cubic")
            if (other := f"{name}-{kind}-{case.cross_mbps:g}") in set(runs.get_column("case"))
        )
        made.append(
            Claim(
                statement=f"Better Rapid, {case.title}: at least {_LEAST[kind]:.0%} of the {allowed:.0f} "
                f"Mbit/s that are left, fewer than {_MOST_EVENTS} loss events, the smoothed estimate within "
                f"{_CLOSE:.0%} at its worst moment from 0.5 s after a change on (mean of the runs).",
                holds=rate >= _LEAST[kind] * allowed and most < _MOST_EVENTS and worst <= _CLOSE,
                evidence=f"{rate:.0f} Mbit/s ({rate / allowed:.1%}), {events:.1f} loss events (at most "
                f"{most:.0f}), estimate at worst {worst:.1%} off on average, {worst_of_all:.1%} in the worst "
                "run" + (f"; {others}" if others else ""),
                source="our own",
                about="own",
            )
        )
    return made
