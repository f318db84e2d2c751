"""Traces of a link whose rate changes: files of the times at which it could have carried a packet."""

from __future__ import annotations

from pathlib import Path

from weirlab.errors import InputError
from weirlab.files import named_text
from weirlab.heavy import np

OPPORTUNITY_BYTES = 1504
"""What a link may carry at each time of a trace. Source: Mahimahi 2015, section 3.2."""
MAX_TRACE_BYTES = 100_000_000
_PS_PER_MS = 10**9


def read_rate_trace(path: Path, bin_ps: int) -> tuple[list[tuple[int, int]], int]:
    """Rates out of a Mahimahi trace: steps (from when on [ps], rate [bit/s]), and the period after which it
    repeats [ps].

    Each line of the file is a time in whole ms, ascending, at which 1504 bytes could leave; its last time
    is its period. The rate of a bin is what could leave in it over its length; the last bin may be shorter.
    DEVIATION: what could leave is spread over its bin, so that a packet takes its transmission time at that
    rate and no opportunity is lost because nothing waited at its ms.

    Raises InputError, with the line, for a file that is none. Source: Mahimahi 2015, section 3.2.
    """
    times = _times_ms(path)
    period = times[-1] * _PS_PER_MS
    ends = [*np.arange(bin_ps, period, bin_ps, dtype=np.int64).tolist(), period]
    # An opportunity at time t is one of the bin that ends at t or later.
    counts = np.diff(
        np.searchsorted(np.array(times, dtype=np.int64) * _PS_PER_MS, ends, side="right"), prepend=0
    )
    steps: list[tuple[int, int]] = []
    for begin, end, count in zip([0, *ends[:-1]], ends, counts.tolist(), strict=True):
        rate = round(count * OPPORTUNITY_BYTES * 8 * 10**12 / (end - begin))
        if not steps or steps[-1][1] != rate:
            steps.append((begin, rate))
    return steps, period


def _times_ms(path: Path) -> list[int]:
    times: list[int] = []
    for number, line in enumerate(named_text(path, MAX_TRACE_BYTES).splitlines(), start=1):
        text = line.strip()
        if not text.isdigit() or len(text) > 9:
            # What stands there is not shown: the file may be somebody else's.
            raise InputError(f"{path}:{number}: no time in whole ms; a trace has one on each line")
        if times and int(text) < times[-1]:
            raise InputError(f"{path}:{number}: times ascend (got {text} after {times[-1]})")
        times.append(int(text))
    if not times or times[-1] == 0:
        raise InputError(f"{path}: a trace has times, the last one above 0 ms")
    return times
