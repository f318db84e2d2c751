"""What a reader of a finding can do, in one place."""

from __future__ import annotations

from collections.abc import Mapping

REMEDIES: Mapping[str, str] = {
    "window-limited": (
        "Give the receiver a larger buffer: remove a fixed SO_RCVBUF in its program, or raise its limit "
        "(Linux: net.ipv4.tcp_rmem)."
    ),
    "slow-reader": (
        "Make the receiving program faster: look at its processor, its disk, and what it waits for. Neither "
        "the network nor a larger buffer changes this."
    ),
    "zero-window": (
        "Find out why the receiving program pauses: its processor, its disk, or what it waits for."
    ),
    "application-limited": (
        "Look at the sending program if more was expected: the network could have carried more."
    ),
    "sender-limited": (
        "Give the sender a larger buffer: remove a fixed SO_SNDBUF in its program, or raise its limit "
        "(Linux: net.ipv4.tcp_wmem). Look for a rate that its program or its host sets."
    ),
    "slow-start-limited": (
        "Keep connections open for several transfers, make transfers longer, or raise the initial window of "
        "the sender."
    ),
    "lossy-path": (
        "Look for what damages or drops packets: error counters of the links, a radio link, a policer."
    ),
    "queue-overflow": (
        "Enlarge the buffer of the bottleneck up to one round trip of its rate, or let the sender pace."
    ),
    "losses": "Capture again as said, to learn whether the path or a queue lost them.",
    "bufferbloat": (
        "Make the buffer of the bottleneck smaller, or let it manage its queue (CoDel, FQ-CoDel, PIE)."
    ),
    "ack-compression": "Look for traffic that shares the way back, or a receiver that collects packets.",
    "reordering": "Look for parallel links or queues that share packets of one flow.",
    "spurious-retransmissions": (
        "Look for reordering and for delays that vary, and use a sender with RACK (RFC 8985)."
    ),
}
"""By kind of finding. What depends on the numbers stands in the text."""

HARMLESS: Mapping[str, str] = {
    "queue-overflow": (
        "Nothing, if the rate is as expected: a sender that seeks the rate of a path fills its queue now "
        "and then."
    ),
    "lossy-path": (
        "Nothing, if the rate is as expected. A longer path, or a faster one, would suffer from the same "
        "losses."
    ),
    "losses": "Nothing, if the rate is as expected; else capture again as said, which shows the cause.",
}
"""The same of notices, by kind, where less is to be done."""

STALL_REMEDIES: Mapping[str, str] = {
    "timeout": (
        "Look for what lost the packets before it, and for an outage of the path; a sender with RACK (RFC "
        "8985) waits less."
    ),
    "zero-window": (
        "Find out why the receiving program pauses: its processor, its disk, or what it waits for."
    ),
    "late-ack": (
        "Look at the receiving host and at the path for what delays packets: an outage, a long queue."
    ),
    "late-data": "Look at the sending host: its program, its processor, what paces its packets.",
    "held-up": "Look at the path for an outage: the sender went on meanwhile.",
}
"""Of silences, by the cause of most of their time."""
