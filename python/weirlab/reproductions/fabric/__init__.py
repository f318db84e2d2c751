"""Fabrics of data centers: recorded runs of uet-htsim, numbers in the text of HPCC and in notes on RoCE."""

from __future__ import annotations

from weirlab.reproductions.fabric.cases import simulated
from weirlab.reproductions.fabric.rows import Found, claims, rows
from weirlab.reproductions.frame import Effort, Findings


def reproduce(effort: Effort) -> Findings:
    """Simulate all cases, and compare."""
    table = simulated(effort)
    found = Found(table)
    return Findings.of(
        "fabric",
        effort,
        rows=rows(found),
        claims=claims(found),
        remarks=_REMARKS,
        tables={"measured": table},
    )


_REMARKS = (
    "uet-htsim records one run of each experiment; ours vary with the seed, so a recorded number may lie "
    "where one more run of ours would. Single messages have no chance in them, and are compared digit for "
    "digit.",
    "Its permutation of 1024 hosts is drawn; each of our runs draws its own. That of 16 hosts is the same.",
    "The wiring of HPCC's testbed is known in words only: here 64 hosts of 25 Gbit/s for its 32 with two "
    "adapters, 16 to a switch, one link of 100 Gbit/s from each to one above, whose load counts, and "
    "buffers of 32 MB that hold whole links. With four times as much between switches, and the load of "
    "hosts, short messages with DCQCN are slowed down by 18 instead of 8 at 30 %. Its numbers are those of "
    "real adapters, ours those of the simulated ones in the same publication.",
    "Of the study on RoCE at scale no copy was at hand: its two numbers are quoted by public notes.",
)
