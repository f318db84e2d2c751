"""Published numbers compared with ours."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from weirlab.reproductions.fabric.cases import HPCC, UET
from weirlab.reproductions.fabric.known import KNOWN, LIMITS, MICE, W_AI
from weirlab.reproductions.judging import Printed, number_row, one_run_row
from weirlab.reproductions.verdicts import Claim, KnownMisfit, Row

FloatArray = npt.NDArray[np.float64]
DIGITS = 6
"""Of recorded times."""
EXACT = ("message-10", "message-100", "one")
"""Experiments in which nothing is left to chance or to a controller."""
LATE = {"join": 40.0}
"""When the first to end comes, from which ours is counted [us]."""
US, KB = 1e-6, 1e-3


class Found:
    """What was simulated."""

    def __init__(self, table: pl.DataFrame) -> None:
        self._table = table
        self._cases = set(table.get_column("case"))

    def ran(self, case: str) -> bool:
        """Whether there is anything of a case."""
        return case in self._cases

    def values(self, case: str, measure: str) -> FloatArray | None:
        """One value per run; none where the case did not run, or a run gives no answer."""
        rows = self._table.filter(pl.col("case") == case, pl.col("measure") == measure)
        values = rows.get_column("value")
        return None if rows.is_empty() or values.null_count() else values.to_numpy()

    def mean(self, case: str, measure: str) -> float | None:
        """Over the runs."""
        values = self.values(case, measure)
        return None if values is None else float(values.mean())


def rows(found: Found) -> list[Row]:
    """All rows of cases that could be run."""
    return [*_uet(found), *_hpcc(found), *_livelock(found)]


def _uet(found: Found) -> Iterator[Row]:
    for experiment, runs in UET["runs"].items():
        for control, tail in runs["tail"].items():
            case = f"{experiment}, {control}"
            straws = {"the bound by arithmetic": runs["bound"]} if "bound" in runs else {}
            if not found.ran(case):
                continue
            yield _run(found, case, "tail", tail, straws if experiment not in EXACT else {}, experiment)
            first = runs["first"][control] - LATE.get(experiment, 0.0)
            if runs["first"][control] != tail:
                yield _run(found, case, "first", first, {}, experiment)


def _run(
    found: Found, case: str, measure: str, recorded: float, straws: dict[str, float], experiment: str
) -> Row:
    ours = found.values(case, measure)
    printed = Printed(recorded, 10.0 ** (math.floor(math.log10(recorded)) - DIGITS + 1))
    words = {"tail": "last message", "first": "first message"}[measure]
    known = KNOWN.get((case, measure))
    if ours is None:
        return number_row(f"{case}: {words}", printed, None, unit="us", source="uet-htsim")
    values = ours * US
    if experiment in EXACT:
        return number_row(
            f"{case}: {words}",
            printed,
            float(values.mean()),
            known=None if known is None else KnownMisfit(known.reason, known.ours - 1e-3, known.ours + 1e-3),
            unit="us",
            source="uet-htsim",
        )
    return one_run_row(
        f"{case}: {words}",
        printed,
        values,
        known=known,
        straws=straws,
        group=f"{measure} of {experiment.split('-')[0]}",
        unit="us",
        source="uet-htsim",
    )


def _hpcc(found: Found) -> Iterator[Row]:
    one = "HPCC 2019"
    numbers = [
        ("w_ai 300", "p95", HPCC["w_ai"]["p95_kb"]["w300"], 1.0, KB, "kB", f"{one}, 5.4"),
        ("joining, dcqcn", "most", HPCC["micro"]["incast_queue_kb"], 10.0, KB, "kB", f"{one}, 5.2"),
        ("mice, hpcc", "mice", HPCC["micro"]["mice_us"]["hpcc"], 0.1, US, "us", f"{one}, 5.2"),
    ]
    web = HPCC["websearch"]
    for name, value in web["slowdown"].items():
        control, load = name.split("-")
        step = 0.01 if control == "hpcc" else 0.1
        numbers.append((f"websearch {load}, {control}", "slowdown", value, step, 1.0, "", f"{one}, 5.2"))
    for name, value in web["time_us"].items():
        control, load = name.split("-")
        numbers.append((f"websearch {load}, {control}", "time", value, 0.1, US, "us", f"{one}, 5.2"))
    for name, value in web["queue_kb"].items():
        control, load, share = name.split("-")
        step = 100.0 if value > 1000 else 0.1
        numbers.append((f"websearch {load}, {control}", share, value, step, KB, "kB", f"{one}, 5.2"))
    for case, measure, value, step, scale, unit, source in numbers:
        ours = found.values(case, measure)
        if ours is None:
            continue
        yield one_run_row(
            f"{case}: {measure}",
            Printed(value, step),
            ours * scale,
            known=KNOWN.get((case, measure)),
            group=f"{measure} of {case.split()[0]}",
            straws={"an empty queue": 0.0} if measure in ("p95", "p99") else {},
            unit=unit,
            source=source,
        )


def _livelock(found: Found) -> Iterator[Row]:
    if not found.ran("go-back-0"):
        return
    done = found.mean("go-back-0", "unfinished")
    yield number_row(
        "go-back-0: share of messages that end",
        Printed(HPCC["livelock"]["goodput"], 0.01),
        None if done is None else 1 - done,
        straws={"a link without sender": 0.0},
        source="RoCE at scale",
    )
    yield number_row(
        "go-back-0: utilisation of the sender's link",
        Printed(HPCC["livelock"]["utilisation"], 0.1),
        found.mean("go-back-0", "utilisation"),
        straws={"a link without sender": 0.0},
        source="RoCE at scale",
    )


def claims(found: Found) -> list[Claim]:
    """Limits that are shipped, and statements."""
    parts = (_limits, _of_w_ai, _of_testbed, _of_spraying, _of_livelock)
    return [claim for part in parts for claim in part(found)]


def _limits(found: Found) -> Iterator[Claim]:
    """The limits that uet-htsim ships for its own runs."""
    for experiment, runs in UET["runs"].items():
        for control, limit in runs["limit"].items():
            case = f"{experiment}, {control}"
            tail = found.values(case, "tail")
            if tail is None:
                continue
            ours, recorded = float(tail.max()) * US, runs["tail"][control]
            over = recorded > limit
            yield Claim(
                statement=f"{case}: the last message ends within {limit:g} us.",
                holds=ours <= limit,
                evidence=f"{ours:.6g} us, the longest of {tail.size} runs",
                published=f"{recorded:.6g} us{': over its own limit' if over else ''}",
                source="uet-htsim, validate_*.txt",
                known=LIMITS.get(
                    case, "Over its limit in its own record, too." if over and ours > limit else ""
                ),
                straw="the bound by arithmetic" if runs.get("bound", math.inf) <= limit else "",
            )


def _of_w_ai(found: Found) -> Iterator[Claim]:
    sizes = (25, 50, 80, 150)
    queues = [found.mean(f"w_ai {size}", "p95") for size in sizes]
    known = [queue * KB for queue in queues if queue is not None]
    if len(known) == len(sizes):
        yield Claim(
            statement="W_AI up to 150 B keeps the 95th percentile of the queue within 4 kB.",
            holds=max(known) < HPCC["w_ai"]["p95_kb"]["small"] + 0.5,
            evidence=", ".join(f"{size} B: {kb:.2f} kB" for size, kb in zip(sizes, known, strict=True)),
            source="HPCC 2019, 5.4",
            known=W_AI,
        )


def _of_testbed(found: Found) -> Iterator[Claim]:
    source = "HPCC 2019, 5.2"
    dcqcn, hpcc = found.mean("mice, dcqcn", "mice"), found.mean("mice, hpcc", "mice")
    if dcqcn is not None:
        yield Claim(
            statement="Mice next to two elephants take more than 35 us with DCQCN.",
            holds=dcqcn * US > HPCC["micro"]["mice_us"]["dcqcn_above"],
            evidence=f"{dcqcn * US:.1f} us, the median",
            source=source,
            known=MICE,
        )
    if dcqcn is not None and hpcc is not None:
        yield Claim(
            statement="Mice are faster with HPCC than with DCQCN.",
            holds=hpcc < dcqcn,
            evidence=f"{hpcc * US:.1f} and {dcqcn * US:.1f} us",
            source=source,
        )
    for control, recovers in (("hpcc", True), ("dcqcn", False)):
        before, after = (found.mean(f"recovery, {control}", part) for part in ("before", "after"))
        if before is not None and after is not None:
            yield Claim(
                statement="Two milliseconds after a short flow a long one has its rate back with HPCC."
                if recovers
                else "Two milliseconds after a short flow a long one has not its rate back with DCQCN.",
                holds=(after > 0.95 * before) is recovers,
                evidence=f"{after / before:.2f} of the rate before",
                source=source,
            )


def _of_spraying(found: Found) -> Iterator[Claim]:
    rules = ("reps-each", "bitmap", "oblivious")
    tails = [found.mean(f"spray-{rule}-slow, nscc", "tail") for rule in rules]
    known = [tail * US for tail in tails if tail is not None]
    if len(known) == len(rules):
        yield Claim(
            statement="With slow core links REPS (an answer for each packet) ends before bitmap, and that "
            "before oblivious spraying.",
            holds=known == sorted(known),
            evidence=", ".join(f"{tail:.1f}" for tail in known) + " us",
            published="206.7, 220.3, 280.8 us",
            source="uet-htsim",
        )


def _of_livelock(found: Found) -> Iterator[Claim]:
    back, zero = found.mean("go-back-n", "unfinished"), found.mean("go-back-0", "unfinished")
    if back is not None and zero is not None:
        yield Claim(
            statement="Go-back-N ends the livelock.",
            holds=back < 0.2 and zero > 0.99,
            evidence=f"{back:.0%} unfinished, {zero:.0%} with go-back-0",
            source="RoCE at scale",
        )
