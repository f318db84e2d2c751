"""Rapid 0.9.2 under UDP cross traffic: its table, counters and claims; what each flaw does; and a Rapid that
takes nearly all that is left.

All runs are simulated: one probing flow for 5 s, and until its send buffer is empty, over a router at
1 Gbit/s that UDP shares with it.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from weirlab.reproductions.frame import Effort, Findings
from weirlab.reproductions.published import RapidUdp, read
from weirlab.reproductions.rapid.bookkeeping import identities
from weirlab.reproductions.rapid.cases import (
    ABLATION,
    BETTER,
    OVERRUNS,
    REPRODUCTION,
    Case,
    of_case,
    records_of,
)
from weirlab.reproductions.rapid.claims import better_claims, text_claims
from weirlab.reproductions.rapid.facts import brought, gap_distribution, smoothed
from weirlab.reproductions.rapid.rows import overruns, rows

SEEDS = 10
"""Runs of each variant; three in a quick run."""
_SHOWN = ("ideal", "timely", "flawed", "better-constant-300")
"""Variants of which one run is shown stream by stream."""


def reproduce(effort: Effort) -> Findings:
    """Simulate all variants, and compare."""
    seeds = [effort.seed + i for i in range(3 if effort.quick else SEEDS)]
    cases = list({case.name: case for case in (*REPRODUCTION, *OVERRUNS, *ABLATION, *BETTER)}.values())
    tables, series = [], []
    if effort.here:
        made = [
            of_case(case, seeds, effort.threads, _step(effort, place, len(cases)))
            for place, case in enumerate(cases)
        ]
    else:
        made = effort.spread(of_case, [(case, seeds, 1) for case in cases])
    for table, of_bins in made:
        tables.append(table)
        series.append(of_bins)
    runs, bins = pl.concat(tables, how="diagonal_relaxed"), pl.concat(series)
    published = read("rapid-udp-cross-traffic", RapidUdp)
    measured = runs.filter(pl.col("case").is_in(["flawed", "flawed-later"]))
    return Findings.of(
        "rapid",
        effort,
        rows=rows(published, runs, bins),
        claims=[*text_claims(runs), *identities(published, measured), *better_claims(runs)],
        remarks=_REMARKS,
        tables={
            "measured": runs,
            "bins": bins,
            "overruns": overruns(published, runs, bins),
            **_one_run(effort, cases),
        },
    )


def _step(effort: Effort, place: int, count: int) -> Callable[[int, int], None] | None:
    """The progress of one case as that of all."""
    progress = effort.progress
    if progress is None:
        return None
    return lambda done, total: progress(place * 1000 + round(1000 * done / max(total, 1)), count * 1000)


def _one_run(effort: Effort, cases: list[Case]) -> dict[str, pl.DataFrame]:
    """Streams, states, packets and estimates of one run of the variants that are shown."""
    streams, states, estimates, packets, gaps = [], [], [], [], []
    for case in (case for case in cases if case.name in _SHOWN):
        packed = Case(
            case.name,
            case.scenario,
            {**case.assign, "record.streams.packets": True},
            case.cross_mbps,
            case.window_s,
        )
        records = records_of(packed, effort.seed, effort.threads)
        label = pl.lit(case.name).alias("case")
        streams.append(records["probe_streams"].with_columns(label))
        states.append(records["probe_states"].with_columns(label))
        truth = brought(records, 0)
        estimates.append(smoothed(records["probe_streams"], truth).with_columns(label))
        shown = pl.col("sent_ps").is_between(3_000_000_000_000, 3_200_000_000_000)
        packets.append(records["probe_packets"].filter(shown).with_columns(label))
        gaps.append(gap_distribution(records["probe_packets"]).with_columns(label))
    return {
        "streams": pl.concat(streams),
        "states": pl.concat(states),
        "estimates": pl.concat(estimates),
        "packets": pl.concat(packets),
        "gaps": pl.concat(gaps),
    }


_REMARKS = (
    "The text does not say when the cross traffic was on; its log shows the first loss at 2.87 s and the "
    "last effect at 5.6 s. The table is compared with cross traffic from 2.3 s to 5.6 s; runs with 2 s to "
    "5 s stand in the data.",
    "Assumed, not published: round trip 1.5 ms, queue of 300 packets, N = 80, rates of a stream over a "
    "factor of 3, tau = 200 ms, eta = 3, half of the rate after a loss, 60 Mbit/s while losses are repaired, "
    "one timer in 200 late by 4 ms on average, the rate at the start, 192 MB in the send buffer when the "
    "application ends. Several were chosen so that the table comes out.",
    "Goodput counts at the sender what is acknowledged, half a round trip after the receiver's report.",
    "The published run is one, and ours vary from run to run: intervals with the cross traffic by 30 %, so "
    "that most numbers between 100 and 500 Mbit/s would pass there. Their mean says more.",
    "The estimate of version 0.9.2 is taken to be the rate that was asked for before the excursion, not the "
    "one that was sent: with the gaps that were sent, stalls would pull it down further.",
)
