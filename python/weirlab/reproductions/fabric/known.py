"""Misfits that are known: what ours was when it was recorded, and what is known of the cause."""

from __future__ import annotations

from collections.abc import Mapping

from weirlab.reproductions.judging import Misfit

_ARRIVAL = (
    "Queues mark frames when they join here, and in the publication's simulator when they leave: a mark "
    "comes to its sender later by the time that the queue takes, in which seven senders fill it further. Not "
    "shown by a run that marks otherwise."
)
KNOWN: Mapping[tuple[str, str], Misfit] = {("joining, dcqcn", "most"): Misfit(_ARRIVAL, 2130.6)}
"""By case and measure, in the units of the rows."""
MICE = (
    "The queue of two elephants is shorter here than in the testbed: less than the 100 kB (32 us) from which "
    "it marks."
)
