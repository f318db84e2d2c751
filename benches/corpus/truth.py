"""What is true of a case, from what emulator, simulator and kernels counted. No capture is looked at.

A cause is *expected* where it is strong enough that a person who knew the counts would blame it, and
*allowed* where it is there at all. Between both lies what nobody should be judged by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from corpus.case import Made

_STRONG_SHARE, _LOSSES, _OVERFLOWS = 0.0015, 4, 2
"""Losses that must be found: this share of the packets, in so many events a round trip apart. A queue that
overflows drops several packets each time; what is lost at random tells nothing before it has happened a few
times."""
_LONG = 10
"""Packets of an overflow that must be found next to random losses, though it is the only one."""
_READS = 0.7
"""A program limits what is read where a full window would carry more than so: else both do."""
_PAYLOAD, _AS_READ, _FILLS, _NARROW = 0.93, 1.03, 0.25, 0.75
"""Of a simulated path: the payload of its rate; how much more may arrive than is read, and in which share of
the time a window must fill that is to be found; a window that carries less than this share limits."""
_MAIN = 0.2
"""Share of all losses that a cause must have to be one that must be found."""
_FULL, _FULL_BBR, _FULL_BUFFER, _SOME = 0.6, 0.3, 0.4, 0.15
"""Shares of the time for which something limited a sender: it must, and it may be found."""
_STANDING_S = 0.005
"""RFC 8289, section 4.2."""
_SILENT = 0.01
"""Share of the time in which the emulator saw nothing: hosts may stand still, too."""
_ALWAYS = frozenset({"capture-of-joined-segments", "capture-out-of-order"})
"""Facts of captures on hosts that leave segmentation to their cards, or stamp on several processors."""


def truth(made: Made) -> tuple[frozenset[str], frozenset[str]]:
    """Findings that a capture must show, and those that it may show besides."""
    expected, allowed = set(), set(_ALWAYS)
    for kind, strong, weak in _simulated(made) if made.simulated else _live(made):
        if strong:
            expected.add(kind)
        elif weak:
            allowed.add(kind)
    return frozenset(expected), frozenset(allowed - expected)


Rule = tuple[str, bool, bool]
"""A finding, whether it is expected, and whether it is allowed."""


def _losses(lost: int, lost_events: int, dropped: int, drop_events: int, packets: int) -> Iterator[Rule]:
    least = max(_STRONG_SHARE * packets, _MAIN * (lost + dropped))
    # Next to a long overflow random losses are few of all, and halve the window as often.
    burst = lost_events >= _LOSSES and drop_events >= 1 and dropped >= max(_LONG, lost)
    many = lost >= least or (burst and lost >= _STRONG_SHARE * packets)
    yield "lossy-path", lost_events >= _LOSSES and many, lost > 0
    yield "queue-overflow", (drop_events >= _OVERFLOWS or burst) and dropped >= least, dropped > 0
    yield "losses", False, lost + dropped > 0


def _live(made: Made) -> Iterator[Rule]:
    counted, place, drawn = made.counted, made.place, made.drawn
    way, back = counted["ways"]["path forward"], counted["ways"]["path backward"]
    kernel = counted["kernel"]["sender"]
    packets = max(way["arrived"], 1)
    dropped = way["dropped"] + way["dropped_early"]
    yield from _losses(
        way["lost"], way.get("loss_episodes", 0), dropped, way.get("drop_episodes", 0), packets
    )
    rtt_s = made.drawn["rtt_s"]
    limit_s = max(_STANDING_S, rtt_s)
    _, low_s, _, high_s, _ = way.get("wait_s", (0.0,) * 5)
    if bunched := any(each["backward"] for each in counted["senders"]):
        # Round trips hold the queue of the way back, too, and its own traffic is judged as well.
        high_s += back["wait_s"][3]
        yield "lossy-path", False, back["lost"] > 0
        yield "queue-overflow", False, back["dropped"] > 0
    yield "bufferbloat", low_s > 1.3 * limit_s, high_s > 0.7 * limit_s
    sender = max(
        (each for each in counted["senders"] if not each["backward"]), key=lambda each: each.get("busy_us", 0)
    )
    busy = max(sender.get("busy_us", 0), 1)
    by_window, by_buffer = (
        sender.get("window_limited_us", 0) / busy,
        sender.get("buffer_limited_us", 0) / busy,
    )
    # BBR paces after what the window has let through: its kernel counts that as its own pace.
    full = _FULL_BBR if drawn["cc"] == "bbr" else _FULL
    reader = made.family.removeprefix("lossy+")
    if reader.startswith(("limit-read", "limit-auto")):
        yield from _reader(drawn, by_window >= full)
    elif reader == "limit-pauses":
        yield from ((kind, False, True) for kind in (*_OF_READERS, "window-limited"))
    elif reader in ("slow", "stalled"):
        # Linux takes twice the receive buffer that is asked for, half of it for payload.
        reads = reader == "slow" and drawn["read_bps"] < _READS * 8 * drawn["rcvbuf"] / rtt_s
        yield "slow-reader", reads and by_window >= full, True
        yield (
            "window-limited",
            False,
            (reader == "slow" and not reads) or (reader == "stalled" and by_window >= _SOME),
        )
        yield "zero-window", reader == "stalled", True
        yield "stalls", False, True
    else:
        yield "window-limited", by_window >= full, by_window >= _SOME
    slept = sender.get("slept_s", 0.0) / max(sender.get("took_s", 0.0), 1e-9)
    yield "application-limited", slept >= _FULL, slept >= _SOME
    family = made.family.removeprefix("limit-")
    paced = family in ("paced", "jittery")
    strong = family == "paced" or (family == "sndbuf" and by_buffer >= _FULL_BUFFER)
    yield "sender-limited", strong, paced or by_buffer >= _SOME
    quiet = way["lost"] == dropped == 0
    yield "slow-start-limited", made.family == "short" and quiet, made.family == "short"
    silent = counted.get("silent_s", 0.0) >= _SILENT * sender.get("took_s", 0.0)
    yield "stalls", made.family == "outage", kernel["TcpExtTCPTimeouts"] > 0 or silent
    swings_s = back["wait_s"][4] - back["wait_s"][0] if "wait_s" in back else 0.0
    yield (
        "ack-compression",
        bunched and place == "sender" and swings_s > 0.5 * rtt_s,
        bunched or "jitter_s" in drawn,
    )
    if place == "receiver":
        yield "reordering", way["reordered"] >= 0.015 * packets, way["reordered"] > 0 or "jitter_s" in drawn
    double, again = kernel["TcpExtTCPDSACKRecv"], max(kernel["TcpRetransSegs"], 1)
    yield "spurious-retransmissions", double >= 8 and double >= 0.3 * again, double >= 3


_OF_READERS = ("slow-reader", "zero-window", "stalls")


def _reader(drawn: Mapping[str, Any], held: bool) -> Iterator[Rule]:
    """A program that reads at a rate, with a window of its own (`window`, or half of `rcvbuf`) or one that
    grows."""
    window = drawn.get("window", drawn.get("rcvbuf"))
    reads = window is None or drawn["read_bps"] < _READS * 8 * window / drawn["rtt_s"]
    yield from ((kind, kind == "slow-reader" and reads and held, True) for kind in _OF_READERS)
    yield "window-limited", False, not reads


def _simulated(made: Made) -> Iterator[Rule]:
    counted = made.counted
    yield from _losses(
        counted["lost"],
        counted["loss_episodes"],
        counted["dropped"],
        counted["drop_episodes"],
        counted["packets"],
    )
    # A link that is down loses what no queue loses, but not at random.
    cut = counted.get("cut", 0) > 0
    yield from ((kind, False, cut) for kind in ("lossy-path", "losses"))
    rtt_s = made.drawn["rtt_s"]
    low_s, _, high_s = counted["wait_s"]
    limit_s = max(_STANDING_S, rtt_s)
    yield "bufferbloat", low_s > 1.3 * limit_s, high_s > 0.7 * limit_s
    yield "stalls", False, counted["timeouts"] > 0
    if made.family.startswith("limit-"):
        yield from _simulated_limit(made)
        return
    for kind in made.causes:
        if kind not in ("lossy-path", "queue-overflow", "losses", "bufferbloat"):
            yield kind, kind != "ack-compression" or made.place == "sender", True
    yield from ((kind, False, True) for kind in made.drawn.get("companions", ()))


def _simulated_limit(made: Made) -> Iterator[Rule]:
    """What was set says what limits, where what arrived agrees: a reader that empties its window is none."""
    drawn, goodput_bps = made.drawn, made.counted["goodput_bps"]
    family = made.family.removeprefix("limit-")
    if family.startswith("read"):
        share, read_bps, held_bits = drawn["share"], drawn["read_bps"], 8 * drawn["window"]
        fills_s = held_bits / ((_PAYLOAD - share) * drawn["rate_bps"]) if share < _PAYLOAD else float("inf")
        as_read = (
            0.9 * read_bps < goodput_bps < _AS_READ * read_bps + held_bits / drawn["seconds"]
            and fills_s < _FILLS * drawn["seconds"]
        )
        yield from _reader(drawn, as_read)
        # What arrives more slowly than it is read was held back by the window alone.
        yield "window-limited", False, goodput_bps <= 0.9 * read_bps
    elif family == "window":
        yield "window-limited", 8 * drawn["window"] / drawn["rtt_s"] < _NARROW * drawn["rate_bps"], True
    elif family == "pauses":
        yield from ((kind, False, True) for kind in _OF_READERS)
