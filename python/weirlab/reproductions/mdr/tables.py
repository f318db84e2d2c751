"""Search times: cells of many searches, compared with the published ones, and their verdicts.

Source: CSIT MDR, section 2.8.4.2
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from weirlab.reproductions.judging import Misfit, Printed, Sample, deviation_row, mean_row, number_row
from weirlab.reproductions.mdr.searches import DURATIONS_S, PUBLISHED, SUITES
from weirlab.reproductions.mdr.traces import CASES, replayed
from weirlab.reproductions.verdicts import KnownMisfit, Row

PUBLISHED_RUNS = PUBLISHED["runs"]
STEP_S = 0.1
"""To which times, their avgdev and shares in per cent are printed."""
SAME_LOAD = 5e-4
"""Relative distance of a load of a replayed search that is one of reading the graph."""
_DEVICE = "the model of the device"
_OVERHEAD = "the overhead of a trial"
STEADIER = Misfit(
    "The published six runs differed by 2.9 s only. The model of the device was fitted to one set of "
    "parameters for all three durations, and its knee lies anywhere between two loads of the search: now one "
    "trial more, now one less.",
    13.3,
)
SUMMED = Misfit(
    "The overhead of a trial, one number for all searches, is 0.40 to 0.44 s by the published cells.", 679.46
)
SWAPPED = KnownMisfit(
    "Two pairs of neighbouring trials stand in the other order: the intervals of NDR and PDR are then "
    "equally wide, and the text does not say which is halved first.",
    low=13.0,
    high=13.0,
)
_TIMES = "CSIT MDR, section 2.8.4.2"
_GRAPHS = "CSIT MDR, section 2.8.5"


def published_time(suite: str, duration_s: float, algorithm: str) -> tuple[float, float]:
    """Published mean and avgdev [s] of ``mdr``, ``ndr-binary``, ``pdr-binary`` or ``binary-sum``."""
    mean_s, avgdev_s = PUBLISHED["suites"][suite][algorithm.replace("-", "_")][f"{duration_s:g}"]
    return mean_s, avgdev_s


def cells(searches: pl.DataFrame) -> pl.DataFrame:
    """A row per device, duration, algorithm and number of phases.

    ``sd_s`` is the standard deviation between searches, ``avgdev_s`` what the published text calls so: that
    of a mean of six; ``error_s`` that of our mean. Trial counts and shares are means; bounds are in
    frames/s."""
    return searches.group_by("device", "duration_s", "algorithm", "phases", maintain_order=True).agg(
        searches=pl.len(),
        mean_s=pl.col("time_s").mean(),
        sd_s=pl.col("time_s").std(),
        avgdev_s=pl.col("time_s").std() / math.sqrt(PUBLISHED_RUNS),
        error_s=pl.col("time_s").std() / pl.len().sqrt(),
        longest_s=pl.col("time_s").max(),
        trials=pl.col("trials").mean(),
        final_trials=pl.col("final_trials").mean(),
        final_share=(pl.col("final_s") / pl.col("time_s")).mean(),
        outside_share=(pl.col("outside_s") / pl.col("time_s")).mean(),
        ndr_lower_fps=pl.col("ndr_lower_fps").mean(),
        ndr_lower_sd_fps=pl.col("ndr_lower_fps").std(),
        pdr_lower_fps=pl.col("pdr_lower_fps").mean(),
        pdr_lower_sd_fps=pl.col("pdr_lower_fps").std(),
        regular=pl.col("regular").mean(),
        timed_out=(pl.col("ending") == "timed out").mean(),
    )


def time_rows(measured: pl.DataFrame) -> list[Row]:
    """Published times compared with ours: ``measured`` has the columns of `cells`."""
    return [
        row for suite in SUITES for duration_s in DURATIONS_S for row in _rows(suite, duration_s, measured)
    ]


def _rows(suite: str, duration_s: float, measured: pl.DataFrame) -> Iterator[Row]:
    here = measured.filter(pl.col("device") == suite, pl.col("duration_s") == duration_s)
    ours = {
        row["algorithm"]: Sample(row["mean_s"], row["sd_s"], row["searches"])
        for row in here.iter_rows(named=True)
    }
    where = f"{suite}, {duration_s:g} s trials"
    mdr, (one, other) = ours["mdr"], (ours["ndr-binary"], ours["pdr-binary"])
    ours["binary-sum"] = Sample(one.mean + other.mean, math.hypot(one.deviation, other.deviation), one.runs)
    binary_s = published_time(suite, duration_s, "ndr-binary")[0]
    printed = _printed(suite, duration_s, "mdr")
    yield mean_row(
        f"{where}: MDR, mean time",
        printed,
        mdr,
        group="MDR, mean time",
        straws={"half of one binary search": binary_s / 2, "one binary search": binary_s},
        fitted=_DEVICE,
        unit="s",
        source=_TIMES,
    )
    assert printed.deviation is not None
    yield deviation_row(
        f"{where}: MDR, standard deviation of the time",
        Printed(printed.deviation, STEP_S * math.sqrt(PUBLISHED_RUNS), runs=PUBLISHED_RUNS),
        mdr,
        group="MDR, standard deviation of the time",
        straws={"a quarter of the mean": printed.value / 4},
        unit="s",
        source=_TIMES,
        known=STEADIER if (suite, duration_s) == ("ip4", 10) else None,
    )
    for algorithm, name in _BINARY_NAMES.items():
        yield mean_row(
            f"{where}: {name}, mean time",
            _printed(suite, duration_s, algorithm),
            ours[algorithm],
            group=f"{name}, mean time",
            straws={"trials without overhead": SUITES[suite].binary_trials * duration_s},
            fitted=_OVERHEAD,
            unit="s",
            source=_TIMES,
            known=SUMMED if (suite, duration_s, algorithm) == ("vhost", 30, "binary-sum") else None,
        )
    percent, error = PUBLISHED["suites"][suite]["mdr_percent_of_ndr_binary"][f"{duration_s:g}"]
    share = 100.0 / one.mean
    yield mean_row(
        f"{where}: MDR as a share of NDR binary",
        Printed(percent, STEP_S, error * math.sqrt(PUBLISHED_RUNS), PUBLISHED_RUNS),
        Sample(share * mdr.mean, share * mdr.deviation, mdr.runs),
        group="MDR as a share of NDR binary",
        straws={"half": 50.0, "no faster": 100.0},
        fitted=_DEVICE,
        unit="%",
        source=_TIMES,
    )


_BINARY_NAMES = {"ndr-binary": "NDR binary", "pdr-binary": "PDR binary", "binary-sum": "NDR + PDR binary"}


def _printed(suite: str, duration_s: float, algorithm: str) -> Printed:
    mean_s, avgdev_s = published_time(suite, duration_s, algorithm)
    return Printed(mean_s, STEP_S, avgdev_s * math.sqrt(PUBLISHED_RUNS), PUBLISHED_RUNS)


def trace_rows() -> Iterator[Row]:
    """The published searches, replayed: trials that ours asks for, in the order and at the loads of the
    publication."""
    for name, case in CASES.items():
        replay = replayed(name)
        in_place = sum(place == number for number, place in enumerate(replay.matched))
        same = replay.complete and replay.distance <= SAME_LOAD
        yield number_row(
            f"published {case.algorithm} search {name}: trials asked for, in this order",
            Printed(float(replay.published)),
            float(in_place) if same else 0.0,
            because="each trial counts; loads within 0.05 %, the reading of the graph",
            straws={"a search that asks for none of them": 0.0},
            source=_GRAPHS,
            known=SWAPPED if name == "mdr_60" else None,
        )
