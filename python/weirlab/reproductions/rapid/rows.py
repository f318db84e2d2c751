"""Published numbers compared with ours.

A published number is that of one run, ours the mean of several: it may lie where one more run of ours would
(`judging`), and half a unit of the last printed digit further. Where ours vary so much that nothing could be
wrong, the table of constants says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from weirlab.reproductions.judging import Misfit, Printed, Words, number_row, one_run_row
from weirlab.reproductions.published import RapidUdp
from weirlab.reproductions.rapid.bookkeeping import published_offs
from weirlab.reproductions.rapid.cases import OVERRUNS
from weirlab.reproductions.verdicts import KnownMisfit, Row, Verdict

FloatArray = npt.NDArray[np.float64]

_ONSET = (
    "No start of the cross traffic explains both intervals: here the throughput falls within 20 ms of it, "
    "while the log has its first loss at 2.87 s and the interval before it is slower than the link already."
)
_START = (
    "The rate at the start is not published. The one that is assumed gives a slower first second as a whole, "
    "and in the first half of it more than there."
)
KNOWN_BINS: Mapping[int, Misfit] = {
    0: Misfit(_START, 131.74),
    1: Misfit(_START, 638.89),
    4: Misfit(_ONSET, 591.12),
    5: Misfit(_ONSET, 342.60),
    13: Misfit(
        "Here nothing disturbs the flow any more; what slowed it down there, the text does not say.", 937.00
    ),
}
"""By place of the interval."""

_ONE_FOR_ONE = (
    "Here each retransmission answers a drop at the router, and a run with recoveries has hundreds of both. "
    "There 3174 segments were sent again and 95 dropped. Why is not known: lost acknowledgements, frames "
    "that are overtaken and single losses elsewhere were tried and do not do it. Runs of some 360 frames "
    "that the router's inputs lose uncounted after its queue was full would do (variants overrun, "
    "overrun-tenth), but nothing else says that there were any."
)
KNOWN_COUNTERS: Mapping[str, Misfit] = {
    "dropped_tcp": Misfit(_ONE_FOR_ONE, 664.6),
    "dropped_udp": Misfit(_ONE_FOR_ONE, 907.4),
    "retransmits": Misfit(_ONE_FOR_ONE, 664.6),
    "fast_retransmits": Misfit(_ONE_FOR_ONE, 642.8),
    "forward_retransmits": Misfit(
        "A bulk sender always has something new to send, so no segment is sent again before it counts as "
        "lost.",
        0.0,
    ),
    "slow_start_retransmits": Misfit(
        "Little is in flight when the timer expires here: round trips are short and windows small.", 18.0
    ),
    "resent_1": Misfit(_ONE_FOR_ONE, 621.0),
    "resent_2": Misfit(_ONE_FOR_ONE, 21.8),
    "repair_ms": Misfit(
        "Here a recovery lasts a few round trips of 1.5 ms. The log has four without a timeout, of 9, 90, "
        "103 and 108 ms: why, the text does not say; some 400 segments were sent again in each.",
        8.92,
    ),
    "late_mbps": Misfit(
        "Full segments of 1448 B fill a link of 1 Gbit/s with 941.5 Mbit/s; what took 0.4 % of it there, the "
        "text does not say.",
        941.48,
    ),
}
"""By counter."""


_NO_DATA = (
    "The receiving end has nothing to send here: the one segment that it sent again there was an "
    "acknowledgement of the handshake, or data of a control connection; the text does not say."
)


def rows(published: RapidUdp, runs: pl.DataFrame, bins: pl.DataFrame) -> list[Row]:
    """All rows."""
    measured = [_of_case(row) for row in _compared(published, runs, bins, _MEASURED)]
    return [_baseline(published, runs), *measured, _receiver(published)]


def overruns(published: RapidUdp, runs: pl.DataFrame, bins: pl.DataFrame) -> pl.DataFrame:
    """The same numbers of the variants whose inputs overrun, and of the measured one: columns ``case number
    unit published ours deviation near``. They were chosen by these numbers, so that none is judged."""
    made = []
    for case in (_MEASURED, *(case.name for case in OVERRUNS)):
        for number in _compared(published, runs, bins, case):
            row = one_run_row(number.name, number.printed, number.values, **number.words)
            made.append(
                {
                    "case": case,
                    "number": number.name,
                    "unit": row.unit,
                    "published": row.published,
                    "ours": row.ours,
                    "deviation": float(number.values.std(ddof=1)) if number.values.size > 1 else None,
                    "near": row.verdict == Verdict.HOLDS,
                }
            )
    return pl.DataFrame(made)


_MEASURED = "flawed-later"
"""The measured variant, with the cross traffic when the log suggests it."""


class _Number(NamedTuple):
    """A published number of the run, and what ours gave."""

    name: str
    printed: Printed
    values: FloatArray
    known: Misfit | None
    words: Words


def _of_case(number: _Number) -> Row:
    return one_run_row(number.name, number.printed, number.values, known=number.known, **number.words)


def _compared(published: RapidUdp, runs: pl.DataFrame, bins: pl.DataFrame, case: str) -> Iterator[_Number]:
    """What the publication says of its run, and what a variant of ours gave."""
    runs, bins = _case(runs, case), _case(bins, case)
    yield from _bins(published, bins)
    yield _together(published, bins)
    yield from _totals(published, runs)
    yield from _counters(published, runs)
    yield from _log(published, runs)


def _case(table: pl.DataFrame, name: str) -> pl.DataFrame:
    return table.filter(pl.col("case") == name)


def _baseline(published: RapidUdp, runs: pl.DataFrame) -> Row:
    rates = _case(runs, "flawed-alone").get_column("late_mbps").to_numpy()
    printed = Printed(published["setup"]["baseline_mbps"], 1.0)
    known = KNOWN_COUNTERS["late_mbps"]
    return one_run_row("alone, 3-5 s", printed, rates, known=known, unit="Mbit/s", source="Rapid UDP, (3)")


def _bins(published: RapidUdp, bins: pl.DataFrame) -> Iterator[_Number]:
    """The table of 0.5 s."""
    for place, (low_s, high_s, mbps) in enumerate(published["throughput"]["intervals"]):
        values = bins.filter(pl.col("bin") == place).get_column("mbps").to_numpy()
        words = Words(group=_INTERVALS, unit="Mbit/s", source="Rapid UDP, (3)")
        yield _Number(f"{low_s:.1f}-{high_s:.1f} s", Printed(mbps, 1.0), values, KNOWN_BINS.get(place), words)


_INTERVALS = "throughput of intervals"


def _together(published: RapidUdp, bins: pl.DataFrame) -> _Number:
    """The intervals in which the cross traffic is on and the flow below it, as one: each of them alone varies
    from run to run by a third of its height, their mean by a tenth."""
    places = [
        place
        for place, (low_s, high_s, _) in enumerate(published["throughput"]["intervals"])
        if low_s >= _UNDER_S[0] and high_s <= _UNDER_S[1]
    ]
    reported = [published["throughput"]["intervals"][place][2] for place in places]
    mine = bins.filter(pl.col("bin").is_in(places))
    means = mine.group_by("replicate").agg(pl.col("mbps").mean()).get_column("mbps").to_numpy()
    name = f"{_UNDER_S[0]:.1f}-{_UNDER_S[1]:.1f} s together"
    words = Words(unit="Mbit/s", source="Rapid UDP, (3)")
    return _Number(name, Printed(sum(reported) / len(reported), 1.0), means, None, words)


_UNDER_S = (3.0, 5.0)


def _totals(published: RapidUdp, runs: pl.DataFrame) -> Iterator[_Number]:
    whole = published["throughput"]["whole"]
    yield _counted("MiB in all", Printed(whole["mbytes"], 1.0), runs, "mbytes", unit="MiB")
    yield _counted("end of the transfer", Printed(whole["end_s"], 0.1), runs, "end_s", unit="s")


def _counters(published: RapidUdp, runs: pl.DataFrame) -> Iterator[_Number]:
    counters = published["counters"]
    of_tcp = counters["router_dropped_segments"] - counters["router_dropped_udp"]
    listed = [
        ("segments of the flow dropped", of_tcp, "dropped_tcp"),
        ("datagrams dropped", counters["router_dropped_udp"], "dropped_udp"),
        ("retransmissions", counters["sender_retransmitted"], "retransmits"),
        ("fast retransmissions", counters["fast_retransmits"], "fast_retransmits"),
        ("forward retransmissions", counters["forward_retransmits"], "forward_retransmits"),
        ("retransmissions in slow start", counters["slow_start_retransmits"], "slow_start_retransmits"),
        ("failed recoveries", counters["sack_retransmits_failed"], "recovery_failures"),
        ("refused by time stamp", counters["receiver_timestamp_rejects"], "paws_rejects"),
        ("sent again once", counters["trace_retransmitted_once"], "resent_1"),
        ("sent again twice", counters["trace_retransmitted_twice"], "resent_2"),
    ]
    words = Words(group="counters", unit="segments")
    for name, value, column in listed:
        yield _counted(name, Printed(float(value), 1.0), runs, column, **words)


def _receiver(published: RapidUdp) -> Row:
    """What the receiving end sent again itself: it has no data to send here, and its acknowledgments are not
    sent again."""
    return number_row(
        "receiver: segments sent again",
        Printed(float(published["counters"]["receiver_retransmitted"]), 1.0),
        0.0,
        known=KnownMisfit(_NO_DATA, 0.0, 0.0),
        because="a count of one run",
        unit="segments",
        source="Rapid UDP, (3)",
    )


def _log(published: RapidUdp, runs: pl.DataFrame) -> Iterator[_Number]:
    """What the log of PROBE_STREAM adds up to, printed in nanoseconds; its own sum in the text is 2.3 s."""
    offs = published_offs(published)
    of_log = "Rapid UDP, (4)"
    off, repair = Printed(offs["off_s"], 1e-3), Printed(offs["repair_ms"], 1e-3)
    yield _counted("recoveries in the log", Printed(7.0, 1.0), runs, "recoveries", source=of_log)
    yield _counted("time off, from the log", off, runs, "off_s", unit="s", source=of_log)
    yield _counted("mean recovery without a timeout", repair, runs, "repair_ms", unit="ms", source=of_log)


def _counted(name: str, printed: Printed, runs: pl.DataFrame, column: str, **words: Unpack[Words]) -> _Number:
    values = runs.get_column(column).drop_nulls().drop_nans().cast(pl.Float64).to_numpy()
    said = Words(source="Rapid UDP, (3)")
    said.update(words)
    return _Number(name, printed, values, KNOWN_COUNTERS.get(column), said)
