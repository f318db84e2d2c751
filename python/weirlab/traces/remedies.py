"""What a reader of a finding can do, in one place."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REMEDIES"]

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
        "Look at the sending program if more was expected: the network was not asked for more."
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
    "losses": "Capture for longer, and at the sender, to learn whether the path or a queue lost them.",
    "bufferbloat": (
        "Make the buffer of the bottleneck smaller, or let it manage its queue (CoDel, FQ-CoDel, PIE)."
    ),
    "stalls": (
        "Look at the causes and times above: a timeout points to lost packets, zero-window to the receiving "
        "program, late-data to the sending host, late-ack to the receiving host or the path, held-up to the "
        "path."
    ),
    "ack-compression": "Look for traffic that shares the way back, or a receiver that collects packets.",
    "reordering": "Look for parallel links or queues that share packets of one flow.",
    "spurious-retransmissions": (
        "Look for reordering and for delays that vary, and use a sender with RACK (RFC 8985)."
    ),
}
"""By kind of finding. What depends on the numbers stands in the text."""
