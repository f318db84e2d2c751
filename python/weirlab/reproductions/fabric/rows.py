"""Published numbers compared with ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from typing_extensions import Unpack

from weirlab.reproductions.fabric.hpcc import HPCC
from weirlab.reproductions.fabric.known import KNOWN, LIMITS, MICE, W_AI
from weirlab.reproductions.fabric.uet import UET
from weirlab.reproductions.judging import Printed, Sample, Words, number_row, one_run_row, repeated
from weirlab.reproductions.verdicts import Claim, KnownMisfit, Row

FloatArray = npt.NDArray[np.float64]
DIGITS = 6
"""Of recorded times."""
EXACT = ("message-10", "message-100", "one")
"""Experiments in which nothing is left to chance or to a controller."""
LATE = {"join": 40.0}
"""When the first to end comes, from which ours is counted [us]."""
US, KB = 1e-6, 1e-3
_EMPTY = {
    "p95": {"an empty queue": 0.0},
    "p99": {"an empty queue": 0.0},
    "slowdown": {"an empty network": 1.0},
}
"""What would be found without any load, by measure."""


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
            rivals = {other: time for other, time in runs["tail"].items() if other != control}
            yield _run(found, case, "tail", tail, experiment, straws=straws, rivals=rivals)
            late = LATE.get(experiment, 0.0)
            if runs["first"][control] != tail:
                rivals = {other: time - late for other, time in runs["first"].items() if other != control}
                yield _run(found, case, "first", runs["first"][control] - late, experiment, rivals=rivals)


def _run(
    found: Found, case: str, measure: str, recorded: float, experiment: str, **compared: Unpack[Words]
) -> Row:
    ours = found.values(case, measure)
    printed = Printed(recorded, 10.0 ** (math.floor(math.log10(recorded)) - DIGITS + 1))
    name = f"{case}: {'last' if measure == 'tail' else 'first'} message"
    known = KNOWN.get((case, measure))
    words: Words = {"unit": "us", "source": "uet-htsim"}
    if ours is None:
        return number_row(name, printed, None, **words)
    if experiment not in EXACT:
        words |= {**compared, "group": f"{measure} of {experiment.split('-')[0]}"}
        return one_run_row(name, printed, ours * US, known=known, **words)
    exact = None if known is None else KnownMisfit(known.reason, known.ours - 1e-3, known.ours + 1e-3)
    return number_row(name, printed, float((ours * US).mean()), known=exact, **words)


class _Number(NamedTuple):
    """A number in the text of HPCC."""

    case: str
    measure: str
    value: float
    step: float
    scale: float
    unit: str
    rivals: Mapping[str, float] = {}
    part: str = "5.2"
    fitted: str = ""
    again: Sequence[str] = ()
    """Other cases that it is compared with."""


_WIRING = (
    "links between switches: one of 100 Gbit/s for each switch; how many there were is said in words only"
)


def _of_websearch() -> Iterator[_Number]:
    web = HPCC["websearch"]
    published = [
        *((f"{name}-slowdown", value, 1.0, "", 0.01) for name, value in web["slowdown"].items()),
        *((f"{name}-time", value, US, "us", 0.1) for name, value in web["time_us"].items()),
        *((name, value, KB, "kB", 0.1) for name, value in web["queue_kb"].items()),
    ]
    known = {name: value for name, value, *_ in published}
    for name, value, scale, unit, step in published:
        control, load, measure = name.split("-")
        other = {"hpcc": "dcqcn", "dcqcn": "hpcc"}[control]
        rival = known.get(f"{other}-{load}-{measure}")
        case = f"websearch {load}, {control}"
        digit = 100.0 if value > 1000 else 10 * step if (control, measure) == ("dcqcn", "slowdown") else step
        rivals = {} if rival is None else {other: rival}
        yield _Number(case, measure, value, digit, scale, unit, rivals, fitted=_WIRING)


def _hpcc(found: Found) -> Iterator[Row]:
    micro, coming = HPCC["micro"], "joining, dcqcn, marks on arrival"
    numbers = [
        _Number("w_ai 300", "p95", HPCC["w_ai"]["p95_kb"]["w300"], 1.0, KB, "kB", part="5.4"),
        _Number("joining, dcqcn", "most", micro["incast_queue_kb"], 10.0, KB, "kB", again=(coming,)),
        _Number("mice, hpcc", "mice", micro["mice_us"]["hpcc"], 0.1, US, "us"),
        *_of_websearch(),
        _Number("hadoop 50, hpcc", "time", HPCC["hadoop"]["p95_us"], 0.1, US, "us", part="5.3"),
    ]
    for one in numbers:
        for case in (one.case, *one.again):
            ours = found.values(case, one.measure)
            if ours is not None:
                yield one_run_row(
                    f"{case}: {one.measure}",
                    Printed(one.value, one.step),
                    ours * one.scale,
                    known=KNOWN.get((case, one.measure)),
                    group=f"{one.measure} of {case.split()[0]}",
                    straws=_EMPTY.get(one.measure, {}),
                    rivals=one.rivals,
                    fitted=one.fitted,
                    about="published" if case == one.case else "again",
                    unit=one.unit,
                    source=f"HPCC 2019, {one.part}",
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
    parts = (_limits, _of_w_ai, _of_testbed, _of_spraying, _of_livelock, _of_alpha)
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
            known = LIMITS.get(case)
            yield Claim(
                statement=f"{case}: the last message ends within {limit:g} us.",
                holds=ours <= limit,
                evidence=f"{ours:.6g} us, the longest of {tail.size} runs",
                published=f"{recorded:.6g} us{': over its own limit' if over else ''}",
                source="uet-htsim, validate_*.txt",
                known="" if known is None else known.reason,
                ours=float(tail.mean()) * US,
                band=None if known is None else repeated(known, tail * US, 0.1),
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
            known=W_AI.reason,
            ours=max(known),
            band=repeated(W_AI, np.array([max(known)]), 0.1),
        )


def _of_testbed(found: Found) -> Iterator[Claim]:
    source = "HPCC 2019, 5.2"
    dcqcn, hpcc = found.mean("mice, dcqcn", "mice"), found.mean("mice, hpcc", "mice")
    medians = found.values("mice, dcqcn", "mice")
    if medians is not None:
        mine = Sample.of(medians * US)
        yield Claim(
            statement="Mice next to two elephants take more than 35 us with DCQCN.",
            holds=mine.mean > HPCC["micro"]["mice_us"]["dcqcn_above"],
            evidence=f"{mine.mean:.1f} us, the median; standard deviation of runs {mine.deviation:.1f} us",
            source=source,
            known=MICE.reason,
            ours=mine.mean,
            band=repeated(MICE, medians * US, 0.1),
        )
    if dcqcn is not None and hpcc is not None:
        yield Claim(
            statement="Mice are faster with HPCC than with DCQCN.",
            holds=hpcc < dcqcn,
            evidence=f"{hpcc * US:.1f} and {dcqcn * US:.1f} us",
            source=source,
        )
    dctcp, hpcc = found.mean("hadoop 50, dctcp", "time"), found.mean("hadoop 50, hpcc", "time")
    if dctcp is not None and hpcc is not None:
        times = HPCC["hadoop"]["dctcp_above"]
        yield Claim(
            statement=f"FB_Hadoop at 50 %: the 95th percentile of short messages is more than {times} times "
            "as long with DCTCP as with HPCC.",
            holds=dctcp > times * hpcc,
            evidence=f"{dctcp * US:.1f} and {hpcc * US:.1f} us, messages of at most 1 kB",
            source="HPCC 2019, 5.3",
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


def _of_alpha(found: Found) -> Iterator[Claim]:
    good, bad = (found.mean(f"alpha 1/{part}", "held") for part in (16, 64))
    if good is not None and bad is not None:
        yield Claim(
            statement="1023 answers at once make switches pause with alpha 1/64, and not with 1/16.",
            holds=bad > 0 and good == 0,
            evidence=f"links held {bad:.2%} and {good:.2%} of a millisecond; 2 kB each, a size of ours",
            published="60 000 pauses in five minutes after alpha had become 1/64",
            source="RoCE at scale",
        )
