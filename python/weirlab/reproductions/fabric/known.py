"""Misfits that are known: what ours was when it was recorded, and what is known of the cause."""

from __future__ import annotations

from collections.abc import Mapping

from weirlab.reproductions.judging import Misfit

_ARRIVAL = (
    "Queues mark frames when they join here, and in the publication's simulator when they leave: a mark "
    "comes to its sender later by the time that the queue takes, in which seven senders fill it further. Not "
    "shown by a run that marks otherwise."
)
_CREDIT = "The first grants of credit come a little later here: 0.07 us of 177. Not explained further."
_FEWER = "Fewer answers go before data here: 0.12 us of 177."
_UNFAIR = "Senders share less evenly here while the queue settles: the first of fifteen is done sooner."
_PACE = "Credit for 127 senders comes 0.04 % slower here."
_PLACES = (
    "The places of the hosts are not recorded: ours are in different pods. And a first window of 50 packets "
    "bounds all windows here."
)
_TURNS = "How a host takes turns among ten messages decides what the single one gets meanwhile: not the same."
_LOWER = "With W_AI of 300 B the queue is a third longer; with max_stage 0 it is 18 kB. Not explained."
_WIRE = "A mouse meets the packets of elephants here: two of them in the queue on average."
KNOWN: Mapping[tuple[str, str], Misfit] = {
    ("one, rccc", "tail"): Misfit(_CREDIT, 177.434972),
    ("one, both", "tail"): Misfit(_CREDIT, 177.434972),
    ("both-ways, nscc", "tail"): Misfit(_FEWER, 176.6808),
    ("incast-15, nscc", "first"): Misfit(_UNFAIR, 834.917),
    ("incast-127, rccc", "tail"): Misfit(_PACE, 20898.97),
    ("join, rccc", "tail"): Misfit(_PLACES, 222.7016),
    ("join, rccc", "first"): Misfit(_PLACES, 73.1938),
    ("join, both", "tail"): Misfit(_PLACES, 222.7016),
    ("join, both", "first"): Misfit(_PLACES, 73.1938),
    ("outcast, nscc", "first"): Misfit(_TURNS, 187.851),
    ("outcast, rccc", "first"): Misfit(_TURNS, 260.143),
    ("outcast, both", "tail"): Misfit(_TURNS, 1638.020),
    ("outcast, both", "first"): Misfit(_TURNS, 260.143),
    ("w_ai 300", "p95"): Misfit(_LOWER, 16.388),
    ("joining, dcqcn", "most"): Misfit(_ARRIVAL, 2249.85),
    ("mice, hpcc", "mice"): Misfit(_WIRE, 6.206577),
}
"""By case and measure, in the units of the rows."""
LIMITS: Mapping[str, str] = {"join, rccc": _PLACES, "join, both": _PLACES}
"""Shipped limits that ours exceeds, by case."""
W_AI = "Within 4 kB and two packets of 1.09 kB: 4.4 to 5.5 kB."
MICE = (
    "The queue of two elephants is shorter here than in the testbed: less than the 100 kB (32 us) from which "
    "it marks."
)
