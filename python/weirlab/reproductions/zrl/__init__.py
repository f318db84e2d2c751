"""The ZRL congestion benchmark: throughput with and without BCN, stability planes, the claims of the text.

Every number is simulated on the slotted engine; it is compared with theory.
"""

from __future__ import annotations

from weirlab.reproductions.frame import Effort, Findings
from weirlab.reproductions.zrl.claims import claims
from weirlab.reproductions.zrl.planes import (
    PLANES,
    Work,
    simulated_planes,
    simulated_series,
    simulated_single,
)
from weirlab.reproductions.zrl.rows import rows


def reproduce(effort: Effort) -> Findings:
    """Simulate the planes and the single cases, and compare."""
    work = Work(effort, seeds=1 if effort.quick else 3)
    planes = [plane for plane in PLANES if plane.quick or not effort.quick]
    cells = simulated_planes(planes, work)
    single = simulated_single(work)
    series = simulated_series(work)
    return Findings.of(
        "zrl",
        effort,
        rows=rows(cells, single),
        claims=claims(cells, single),
        remarks=_REMARKS,
        tables={"cells": cells, "single": single, "series": series},
    )


_REMARKS = (
    "The text leaves open: run length, warm-up, start of the hotspot, sizes of buffers in adapters, sampling "
    "method, removal of limiters. Here: 4000 slots of warm-up, 60 000 slots of hotspot, unlimited VOQs, each "
    "frame sampled by itself, limiters removed at the line rate. Throughput is that of the second half of "
    "the hotspot, hot-port utilisation that of all of it.",
    "Units that make the claims true: feedback in frames, saturated at the set point, rates not below Ru.",
    "Background traffic goes to the N - 1 other ports; the text counts the own port among N in its severity "
    "and in its formula without control. Both are simulated where a row says so.",
    "The formula for the high watermark reads B as the line rate in frames per slot: with the mean burst it "
    "would turn negative.",
    "ALFI is defined nowhere that we know; the fairness of delays is an index of our own.",
)
