"""Which routers answer on a path, how long packets may be, and how much of a probe an answer quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from weirlab.campaigns.path.probing import Batch, Prober
from weirlab.errors import TestbedError

ANSWERS = ("time-exceeded", "port-unreachable", "unreachable")
"""What routers and the destination say to probes that came as far as they should; a router that refuses what
is for the destination says so at once."""
_WINDOW = 6
"""Hops that are asked at a time."""
_SILENT = 6
"""After so many silent hops in a row nobody else is expected."""
_TRIES = 3
_SMALL_BYTES = 100
_FALLBACKS_BYTES = (1500, 1492, 1400, 1280, 576)
"""Lengths to try where long probes vanish without a word."""
_TAG_BYTES = 8
"""What an answer must quote to tell which probe it is about."""
_LEAST_RANGE = 0.12
"""Sizes must span this share of the longest, or sizes of which answers grow are used, too."""
_CODES = {
    4: {0: "network unreachable", 1: "host unreachable", 2: "protocol unreachable", 13: "filtered"},
    6: {0: "no route", 1: "prohibited", 3: "address unreachable", 5: "filtered", 6: "rejected"},
}
"""RFC 792, RFC 1812 section 5.2.7.1; RFC 4443 section 3.1."""


@dataclass(frozen=True)
class Hop:
    """A place on the path."""

    hops: int
    """Its distance; from 1."""
    routers: tuple[str, ...]
    """Addresses that answered; none: silent."""
    quoted_bytes: int | None = None
    """Of the payload of the longest probe that its answer quoted; None without an answer to one."""
    rtt_s: float | None = None
    """Least round-trip time of short probes."""


@dataclass(frozen=True)
class Route:
    """The path as far as it answers."""

    destination: str
    source: str
    hops: tuple[Hop, ...]
    """From the first one on, silent ones included; the last one answers."""
    reached: bool
    """Whether the destination itself answers."""
    ending: str
    """Why it does not; empty when it does."""
    mtu_bytes: int
    """Longest packet that passes."""
    least_bytes: int
    """From this size on answers are of one length."""
    rotating: bool
    """Whether probes go to changing ports, because of routers that quote too little."""
    crossing_s: float
    """What a longest probe takes beyond a short one, roughly: the sum of its transmission times."""
    notes: tuple[str, ...] = ()

    @property
    def is_ipv6(self) -> bool:
        """Whether it is a path of IPv6."""
        return ":" in self.destination

    @property
    def answering(self) -> tuple[Hop, ...]:
        """The hops that answer."""
        return tuple(hop for hop in self.hops if hop.routers)


def find_route(
    probe: Prober,
    destination: str,
    *,
    mtu_bytes: int = 1500,
    most_hops: int = 30,
    gap_s: float = 0.01,
    timeout_s: float = 1.0,
) -> Route:
    """Ask hop by hop, first with short probes, then with the longest. Raises TestbedError when nobody
    answers.
    """
    found, source, replies, rotating = _short_probes(probe, most_hops, gap_s, timeout_s)
    last = _last(found)
    if last == 0:
        listens = "; somebody listens at this port: name another with --port" if replies else ""
        raise TestbedError(f"{destination}: nobody answers, not even the first hop{listens}")
    final = found.filter((pl.col("hops") == last) & pl.col("word").is_not_null())
    reached = "port-unreachable" in final["word"] or destination in final["router"]
    ending = "" if reached else _ending(final, last, most_hops, replies > 0, is_ipv6=":" in destination)
    # A router that lets probes expire before it refuses them answers at two distances.
    if "port-unreachable" not in final["word"] and set(final["router"]) == set(_answering(found, last - 1)):
        last -= 1
    usable = found.filter(pl.col("hops") <= last)
    asked = sorted(set(usable.filter(pl.col("word").is_in(ANSWERS))["hops"]))
    if not asked:
        raise TestbedError(f"{destination}: {ending}")
    notes: list[str] = []
    long, mtu_bytes = _long_probes(probe, asked, mtu_bytes, 3 * gap_s, timeout_s, notes, rotating=rotating)
    quoted = _by_hop(long, "quoted_bytes", asked)
    headers = 48 if ":" in destination else 28
    least = max((headers + size for size in quoted.values()), default=0)
    floor = headers + _TAG_BYTES
    if mtu_bytes - least < _LEAST_RANGE * mtu_bytes:
        notes.append(
            f"answers quote up to {least} B of a packet: they grow with the probe, so slopes have a part of "
            "the way back, and capacities are too low unless that is much faster"
        )
        least = max(floor, mtu_bytes // 3)
    if rotating:
        notes.append(
            "some routers quote headers only: probes go to changing ports, and routers with several equal "
            "paths may send them different ways"
        )
    hops = tuple(
        Hop(
            number,
            tuple(_answering(usable, number)),
            quoted.get(number),
            _least_rtt(usable, number),
        )
        for number in range(1, max(asked) + 1)
    )
    shifting = [hop.hops for hop in hops if len(hop.routers) > 1]
    if shifting:
        where = ", ".join(map(str, shifting))
        notes.append(f"several routers answer at hop {where}: the values are a mixture")
    crossing = [
        rtt - hop.rtt_s
        for hop in hops
        if (rtt := _least_rtt(long, hop.hops)) is not None and hop.rtt_s is not None
    ]
    return Route(
        destination=destination,
        source=source,
        hops=hops,
        reached=reached,
        ending=ending,
        mtu_bytes=mtu_bytes,
        least_bytes=max(floor, least),
        rotating=rotating,
        crossing_s=max([0.0, *crossing]),
        notes=tuple(notes),
    )


def _short_probes(
    probe: Prober, most_hops: int, gap_s: float, timeout_s: float
) -> tuple[pl.DataFrame, str, int, bool]:
    """All short probes, the address of this host, how many datagrams came back, and whether ports must
    change."""
    parts: list[pl.DataFrame] = []
    source, replies, first, rotating = "", 0, 1, False
    while first <= most_hops:
        window = range(first, min(first + _WINDOW, most_hops + 1))
        asked = [hop for _ in range(_TRIES) for hop in window]
        batch = _spaced(asked, _SMALL_BYTES, gap_s, timeout_s, rotating=rotating)
        answers = probe(batch)
        if answers.strangers and not rotating:
            rotating = True
            answers = probe(replace(batch, rotating=True))
        source, replies = answers.source, replies + answers.replies
        parts.append(answers.rows)
        found = pl.concat(parts)
        if found.filter(pl.col("word").is_not_null() & (pl.col("word") != "time-exceeded")).height:
            break
        first = window.stop
        if first - 1 - _last(found) >= _SILENT:
            break
    return pl.concat(parts), source, replies, rotating


def _long_probes(
    probe: Prober,
    asked: Sequence[int],
    mtu_bytes: int,
    gap_s: float,
    timeout_s: float,
    notes: list[str],
    *,
    rotating: bool,
) -> tuple[pl.DataFrame, int]:
    """Answers to the longest probes that pass, and how long these are."""
    tried = mtu_bytes
    each = [hop for _ in range(_TRIES) for hop in asked]
    while True:
        answers = probe(_spaced(each, tried, gap_s, timeout_s, rotating=rotating)).rows
        big = answers.filter(pl.col("word") == "too-big")
        passed = answers.filter(pl.col("word").is_in(ANSWERS))
        if not big.height and asked[-1] in set(passed["hops"]):
            return passed, tried
        limits = [size for size in big["mtu_bytes"] if 0 < size < tried]
        smaller = min(limits, default=0) or next((size for size in _FALLBACKS_BYTES if size < tried), 0)
        if not smaller:
            return passed, tried
        if big.height:
            where = ", ".join(sorted({name or "this host" for name in big["router"]}))
            notes.append(f"packets of {tried} B are too long for a link behind {where}")
        else:
            notes.append(f"nobody answers from hop {asked[-1]} to packets of {tried} B")
        tried = smaller


def _spaced(hops: Sequence[int], size_bytes: int, gap_s: float, timeout_s: float, *, rotating: bool) -> Batch:
    return Batch(
        hops=hops,
        sizes_bytes=[size_bytes] * len(hops),
        at_s=[place * gap_s for place in range(len(hops))],
        timeout_s=timeout_s,
        rotating=rotating,
    )


def _last(found: pl.DataFrame) -> int:
    """The hop where the path ends as far as it answers; 0: nobody does."""
    answered = found.filter(pl.col("word").is_not_null() & pl.col("router").is_not_null())
    ends = answered.filter(pl.col("word") != "time-exceeded")
    hop = ends["hops"].min() if ends.height else answered["hops"].max()
    return int(hop) if isinstance(hop, int) else 0


def _answering(rows: pl.DataFrame, hop: int) -> list[str]:
    """Addresses that answered at a hop."""
    return list(rows.filter(pl.col("hops") == hop)["router"].drop_nulls().unique().sort())


def _ending(final: pl.DataFrame, last: int, most_hops: int, listens: bool, *, is_ipv6: bool) -> str:
    """Why the destination does not answer."""
    other = final.filter(pl.col("word") != "time-exceeded")
    if other.height:
        row = other.row(0, named=True)
        reason = _CODES[6 if is_ipv6 else 4].get(row["code"], f"code {row['code']}")
        if row["word"] != "unreachable":
            reason = row["word"]
        return f"{row['router']} says: {reason}"
    if listens:
        return "the destination does not answer: somebody listens at this port; name another with --port"
    if last >= most_hops:
        return f"not reached within {most_hops} hops"
    return f"nobody answers beyond hop {last}"


def _by_hop(rows: pl.DataFrame, column: str, asked: Sequence[int]) -> dict[int, int]:
    """The largest value of each hop that has one."""
    best = {}
    for hop in asked:
        largest = rows.filter(pl.col("hops") == hop)[column].max()
        if isinstance(largest, int):
            best[hop] = largest
    return best


def _least_rtt(rows: pl.DataFrame, hop: int) -> float | None:
    least = rows.filter((pl.col("hops") == hop) & pl.col("word").is_in(ANSWERS))["rtt_s"].min()
    return least if isinstance(least, float) else None
