"""What else the published text could mean, tried systematically.

    python -m weirlab.reproductions.bcn.variants          # all families: utilisation first, the best in full
    python -m weirlab.reproductions.bcn.variants restart --runs 12 --out variants.csv
    python -m weirlab.reproductions.bcn.variants fifo --sampling-jitter 0.5   # the default of an earlier time

A variant is a set of assignments to the ready-made scenarios. The first pass runs the 20 ms that the
utilisation needs, for all variants, in the configurations that they concern; the second runs those that came
nearest in full. Distances are root mean squares, over configurations, of the difference between our mean and
the published one: they compare variants of one family.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weirlab.evaluation import measured
from weirlab.reproductions.bcn.cases import CASES, Case, scenario_of
from weirlab.reproductions.bcn.tables import published_spreads, spread
from weirlab.runs import replicate_seeds, simulate

_POINT = "control.bcn.congestion_point"
_SENDER = "control.bcn.reaction_point"
_PAUSE = "control.pause.switches"


@dataclass(frozen=True)
class Variant:
    """One reading of the text."""

    family: str
    name: str
    assignments: Mapping[str, object]

    def of(self, case: Case) -> Mapping[str, object]:
        """The assignments that concern this configuration."""
        without = [] if case.pause else ["control.pause"]
        without += [] if case.scheme == "stop" else [f"{_SENDER}.stop"]
        return {
            path: value
            for path, value in self.assignments.items()
            if not any(path.startswith(part) for part in without)
        }


def _each(family: str, levels: Mapping[str, Sequence[object]]) -> Iterator[Variant]:
    """Every combination of levels by path."""
    for values in itertools.product(*levels.values()):
        pairs = dict(zip(levels, values, strict=True))
        name = ", ".join(f"{path.rsplit('.', 1)[-1]} {value}" for path, value in pairs.items())
        yield Variant(family, name, pairs)


def _contradictory(variant: Variant) -> bool:
    limits = [str(variant.assignments.get(f"{_PAUSE}.{field}", "")).split(" ") for field in ("xon", "xoff")]
    return all(len(limit) == 2 for limit in limits) and float(limits[0][0]) > float(limits[1][0])


GRIDS: Mapping[str, Mapping[str, Sequence[object]]] = {
    "restart": {
        f"{_SENDER}.stop.restart": ["r-min", "lesser-of-r-min-and-before", "before"],
        f"{_SENDER}.stop.r_min": ["0.25 Gbit/s", "0.5 Gbit/s", "1 Gbit/s", "2 Gbit/s"],
        f"{_SENDER}.stop.r_min_factor": [0.5, 1.0],
        f"{_SENDER}.stop.t_max": ["50 us", "100 us", "200 us"],
        f"{_SENDER}.stop.t_max_factor": [1.0, 2.0],
        f"{_SENDER}.stop.back_off": ["after", "before"],
        f"{_SENDER}.stop.reset": ["never", "any"],
        f"{_SENDER}.stop.meanwhile": ["ignore", "stop-again", "remember"],
    },
    "fifo": {
        f"{_SENDER}.fifo": [0, 5, 10, 20, 35, 50, 70, 100],
        f"{_SENDER}.gi": [8.0, 9.0, 10.0, 11.0, 12.42],
    },
    "limiter": {
        f"{_SENDER}.queue": ["10 frames", "100 frames", "unlimited"],
        f"{_SENDER}.min_rate": ["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"],
        f"{_SENDER}.initial_rate": ["10 Gbit/s", "4.9 Gbit/s"],
        f"{_SENDER}.pacing_jitter": [0.0, 0.15, 0.5, 1.0],
    },
    "sampling": {
        f"{_POINT}.counted": ["received", "accepted"],
        f"{_POINT}.sampling": [
            {"kind": "uniform", "jitter": 0.0},
            {"kind": "uniform", "jitter": 0.5},
            {"kind": "uniform", "jitter": 1.0},
            {"kind": "exponential"},
            {"kind": "per-frame"},
        ],
        f"{_POINT}.positive": ["tagged", "tagged-below-set-point"],
        f"{_POINT}.negative": ["always", "untagged-above-set-point"],
        f"{_POINT}.counting": ["exact", "whole"],
    },
    "saturation": {f"{_POINT}.saturation": ["set-point", "none"], f"{_POINT}.unit": ["1500 B", "64 B"]},
    "pause": {
        f"{_PAUSE}.at": [["cs", "es-*"], ["cs"]],
        f"{_PAUSE}.xoff": ["140 kB", "120 kB", "100 kB"],
        f"{_PAUSE}.xon": ["100 kB", "90 kB", "130 kB"],
        f"{_PAUSE}.delay": ["0 us", "1 us", "5 us"],
        f"{_PAUSE}.quanta": [None, 65535],
    },
    "delay": {
        f"{_POINT}.notification.delay": ["0 us", "1 us", "10 us", "50 us", "100 us"],
        f"{_SENDER}.gi": [9.0, 12.42],
    },
}
"""Levels by path: all combinations are tried."""

SINGLE: Mapping[str, Mapping[str, object]] = {
    "as it stands": {},
    "restart to the letter": {f"{_SENDER}.stop": {"restart": "r-min", "r_min_factor": 0.5}},
    "restart to the letter, back off before": {
        f"{_SENDER}.stop": {"restart": "r-min", "r_min_factor": 0.5, "back_off": "before"}
    },
    "restart at the rate before": {f"{_SENDER}.stop.restart": "before"},
    "samples at equal distances": {f"{_POINT}.sampling.jitter": 0.0},
    "sampling jitter 0.5": {f"{_POINT}.sampling.jitter": 0.5},
    "samples at exponential distances": {f"{_POINT}.sampling": {"kind": "exponential"}},
    "each frame sampled by itself": {f"{_POINT}.sampling": {"kind": "per-frame"}},
    "pacing without jitter": {f"{_SENDER}.pacing_jitter": 0.0},
    "no jitter of sampling or pacing": {f"{_POINT}.sampling.jitter": 0.0, f"{_SENDER}.pacing_jitter": 0.0},
    "pacing jitter 0.3": {f"{_SENDER}.pacing_jitter": 0.3},
    "pacing as a Poisson process": {f"{_SENDER}.pacing_jitter": 1.0},
    "dropped frames do not count": {f"{_POINT}.counted": "accepted"},
    "positive only below the set point": {f"{_POINT}.positive": "tagged-below-set-point"},
    "negative untagged only above the set point": {f"{_POINT}.negative": "untagged-above-set-point"},
    "whole frames": {f"{_POINT}.counting": "whole"},
    "no saturation": {f"{_POINT}.saturation": "none"},
    "gains of powers of two (11.7, 5.72e-3)": {f"{_SENDER}.gi": 11.7, f"{_SENDER}.gd": 5.72e-3},
    "gi 9": {f"{_SENDER}.gi": 9.0},
    "gd doubled": {f"{_SENDER}.gd": 12.18e-3},
    "gd halved": {f"{_SENDER}.gd": 3.045e-3},
    "limiters start at 4.9 Gbit/s": {f"{_SENDER}.initial_rate": "4.9 Gbit/s"},
    "limiters removed at 4.9 Gbit/s": {f"{_SENDER}.removal_rate": "4.9 Gbit/s"},
    "least rate 10 Mbit/s": {f"{_SENDER}.min_rate": "10 Mbit/s"},
    "least rate 100 Mbit/s": {f"{_SENDER}.min_rate": "100 Mbit/s"},
    "unlimited limiter queues": {f"{_SENDER}.queue": "unlimited"},
    "limiter queues of 10 frames": {f"{_SENDER}.queue": "10 frames"},
    "10 frames behind the limiter": {f"{_SENDER}.fifo": 10},
    "50 frames behind the limiter": {f"{_SENDER}.fifo": 50},
    "100 frames behind the limiter": {f"{_SENDER}.fifo": 100},
    "notifications at once": {f"{_POINT}.notification.delay": "0 us"},
    "notifications 10 us later": {f"{_POINT}.notification.delay": "10 us"},
    "notifications in the lane of the data": {f"{_POINT}.notification.lane": "data"},
    "PAUSE of the core switch only": {f"{_PAUSE}.at": "cs"},
    "PAUSE with quanta, not repeated": {f"{_PAUSE}.quanta": 65535},
    "PAUSE with quanta, repeated each 100 us": {f"{_PAUSE}.quanta": 65535, f"{_PAUSE}.refresh": "100 us"},
    "20 B per frame on the wire": {"network.link.framing": "ethernet"},
    "Poisson arrivals": {"traffic.load.source.kind": "poisson"},
    "constant arrivals": {"traffic.load.source.kind": "constant"},
}
"""One change at a time: what each choice is worth."""

FAMILIES: Mapping[str, Sequence[Variant]] = {
    "single": [Variant("single", name, assignments) for name, assignments in SINGLE.items()],
    **{
        family: [variant for variant in _each(family, levels) if not _contradictory(variant)]
        for family, levels in GRIDS.items()
    },
}
"""Everything that is tried. Of a grid, what contradicts itself (XON above XOFF) is left out."""


def judged(
    chosen: Sequence[Variant],
    cases: Sequence[Case],
    seeds: Sequence[int],
    *,
    short: bool,
    threads: int | None,
    base: Mapping[str, object] | None = None,
) -> pl.DataFrame:
    """Means of every variant in every configuration: `family variant configuration measure ours published`.

    `short` runs only what the utilisation needs; `base` is assigned before each variant."""
    rows = []
    for variant in chosen:
        for case in cases:
            if variant.assignments and not variant.of(case):
                continue
            rows += _means(variant, case, seeds, base or {}, short=short, threads=threads)
    return pl.DataFrame(rows)


def _means(
    variant: Variant,
    case: Case,
    seeds: Sequence[int],
    base: Mapping[str, object],
    *,
    short: bool,
    threads: int | None,
) -> list[dict[str, object]]:
    cut = {"run.duration": "20 ms", "measure.fairness": None, "measure.queue": None} if short else {}
    scenario = scenario_of(case).assign(base).assign({**variant.of(case), **cut})
    values = measured(simulate(scenario, seeds, threads=threads), scenario)
    rows = []
    for measure in ("utilisation",) if short else ("fairness", "utilisation"):
        ours = spread(values.filter(pl.col("measure") == measure).get_column("value"))
        published = published_spreads()[measure, case]
        rows.append(
            {
                "family": variant.family,
                "variant": variant.name,
                "configuration": case.name,
                "measure": measure,
                "ours": ours.mean,
                "ours_sd": ours.sd,
                "published": published.mean,
                "published_sd": published.sd,
            }
        )
    return rows


def distances(rows: pl.DataFrame) -> pl.DataFrame:
    """Root mean square and greatest distance by variant and measure, nearest first."""
    return (
        rows.with_columns(distance=pl.col("ours") - pl.col("published"))
        .group_by("family", "variant", "measure", maintain_order=True)
        .agg(rms=(pl.col("distance") ** 2).mean().sqrt(), worst=pl.col("distance").abs().max())
        .sort("rms")
    )


def main(arguments: Sequence[str]) -> None:
    """Try the families that the command line names, and write every mean as a table."""
    parser = argparse.ArgumentParser(
        prog="weirlab.reproductions.bcn.variants", description=__doc__.split("\n")[0]
    )
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES], help="default: all")
    parser.add_argument("--runs", type=int, default=12, help="runs of each configuration in the first pass")
    parser.add_argument("--best", type=int, default=20, help="variants of each family for the second pass")
    parser.add_argument(
        "--sampling-jitter", type=float, help="jitter of sampling of all variants that do not say another"
    )
    parser.add_argument("--out", type=Path, default=Path("variants.csv"), help="where every mean is written")
    options = parser.parse_args(arguments)
    chosen = [variant for family in options.families or FAMILIES for variant in FAMILIES[family]]
    seeds = replicate_seeds(1, options.runs)
    jitter = options.sampling_jitter
    base = {} if jitter is None else {f"{_POINT}.sampling": {"kind": "uniform", "jitter": jitter}}
    first = judged(chosen, CASES, seeds, short=True, threads=None, base=base)
    nearest = distances(first).group_by("family", maintain_order=True).head(options.best)
    names = {(row["family"], row["variant"]) for row in nearest.iter_rows(named=True)}
    again = [variant for variant in chosen if (variant.family, variant.name) in names]
    second = judged(again, CASES, replicate_seeds(1, 2 * options.runs), short=False, threads=None, base=base)
    pl.concat([first.with_columns(full=pl.lit(False)), second.with_columns(full=pl.lit(True))]).write_csv(
        options.out
    )
    with pl.Config(tbl_rows=200, fmt_str_lengths=120, tbl_width_chars=180, tbl_hide_dataframe_shape=True):
        sys.stdout.write(f"{distances(second)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
