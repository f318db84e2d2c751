"""What theory says of the tests.

One file: each check is a few lines, and they share the messages and rates of a trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import polars as pl

from weirlab.reproductions.ai_fabric.inference import DISPATCHES, KV, POPULARITY, pair_bytes
from weirlab.reproductions.ai_fabric.tests import ALPHA, BUFFER, SCALED
from weirlab.reproductions.ai_fabric.transports import (
    CUT,
    DUMPED,
    FRAME as FRAME_OF_PACKET,
    PAYLOAD,
    TIMEOUT_US,
)
from weirlab.reproductions.verdicts import Claim


class Results:
    """Values of all trials."""

    def __init__(self, values: pl.DataFrame) -> None:
        self._values = values
        self.unknown: dict[str, None] = {}
        """What checks asked for and some run gave no answer to."""

    def of(self, id_: str, measure: str) -> dict[str, list[float | None]]:
        """Values of all runs, by condition."""
        rows = self._values.filter(pl.col("id") == id_, pl.col("measure") == measure)
        grouped = rows.group_by("condition", maintain_order=True).agg("value")
        return dict(grouped.iter_rows())

    def means(self, id_: str, measure: str) -> dict[str, float]:
        """Means by condition; NaN where a run gives no answer."""
        found = {}
        for condition, values in self.of(id_, measure).items():
            known = [value for value in values if value is not None]
            found[condition] = math.fsum(known) / len(known) if len(known) == len(values) else math.nan
            if len(known) < len(values):
                self.unknown[f"{id_}, {condition}: {measure}"] = None
        return found


def claims(results: Results) -> list[Claim]:
    """All that can be checked, and that nothing was missing for it."""
    found = [(id_, *each) for id_, check in _CHECKS for each in check(results)]
    unknown = "; ".join(results.unknown)
    found.append(("all", "Every run answers what is checked.", not unknown, unknown or "all do"))
    return [
        Claim(statement=statement, holds=holds, evidence=evidence, source=f"test {id_}", about="own")
        for id_, statement, holds, evidence in found
    ]


Checked = Iterator[tuple[str, bool, str]]


def _all(judged: Iterable[bool]) -> bool:
    """Whether all holds, and there is anything: a name that has changed selects nothing."""
    each = list(judged)
    return bool(each) and all(each)


_LEAVES, _LEAF_LINKS, _HOSTS_A_LEAF = 4, 4, 4
_DRAWS = 10_000


def _throughput(results: Results) -> Checked:
    losses, used = results.means("5.1", "loss"), results.means("5.1", "utilisation")
    # The first frame reaches the second link after a delay and a transmission; then there is no gap.
    least = {name: 1 - (1e6 + (int(name.split()[0]) + 20) * 80) / 200e6 for name in used}
    yield (
        "Nothing is lost at the line rate, whatever the size of frames, one way and both ways, and the link "
        "to a receiver is busy from the first frame on (within one frame).",
        _all(loss == 0 for loss in losses.values())
        and _all(abs(used[name] - value) <= (1 - value) / 2 for name, value in least.items()),
        f"{len(losses)} conditions, most loss {max(losses.values()):g}, least utilisation "
        f"{min(used.values()):.4f}",
    )


def _latency(results: Results) -> Checked:
    mean = results.means("5.2", "mean")["load 1 %"]
    # Two links of 1 us, and a frame of 1044 B with framing on each.
    least = 2_000_000 + 2 * 1044 * 80
    yield (
        "Frames of an idle network take two delays and two transmissions, and at 1 % load not 1 % more.",
        least <= mean < 1.01 * least,
        f"{mean / 1e6:.4f} us, at least {least / 1e6:.4f} us",
    )


def _bursts(results: Results) -> Checked:
    drops = results.means("5.3", "drops")
    fits = {name: value for name, value in drops.items() if name.endswith("what fits")}
    more = {name: value for name, value in drops.items() if not name.endswith("what fits")}
    yield (
        "n bursts of b frames lose nothing while (n - 1) b frames fit into the queue; 2 % more lose some.",
        _all(value == 0 for value in fits.values()) and _all(value > 0 for value in more.values()),
        "; ".join(f"{name}: {value:.0f} lost" for name, value in drops.items()),
    )


def _marks(results: Results) -> Checked:
    # 2 x 100 Gbit/s of frames of 1000 B (1020 B with framing) for 0.3 ms: half of them wait.
    came = 2 * 300_000_000 / (1020 * 80)
    marked = {name: value * came / 2 for name, value in results.means("7.1", "marked").items()}
    size = {"100 kB": 100, "1 MB": 1000, "3 MB": 3000}
    expected = {name: came - 2 * size[name.removeprefix("threshold ")] for name in marked}
    yield (
        "All frames that find more than the threshold are marked, and no other (within 30 frames).",
        _all(abs(marked[name] - value) < 30 for name, value in expected.items()),
        ", ".join(f"{name}: {marked[name]:.0f} of {value:.0f}" for name, value in expected.items()),
    )


def _pauses(results: Results) -> Checked:
    drops, used = results.means("7.2", "drops"), results.means("7.2", "utilisation")
    held = results.means("7.2", "held")
    yield (
        "Under incast flow control loses nothing and keeps the link busy.",
        _all(value == 0 for value in drops.values()) and _all(value > 0.99 for value in used.values()),
        f"least utilisation {min(used.values()):.3f}",
    )
    # In the time T, n senders at the rate C give what the link takes and what the buffer keeps; n inputs with
    # the factor alpha fill n alpha / (n alpha + 1) of it.
    near, evidence = [], []
    for name, value in held.items():
        senders = int(name.split(":")[0])
        kept = BUFFER * senders * ALPHA / (senders * ALPHA + 1)
        share, filling = 1 - 1 / senders, kept * (1044 / 1024) * 80 / (senders * 1e9)
        near.append(share - filling <= value <= share - 0.8 * filling)
        evidence.append(f"{name}: {value:.3f} of {share - filling:.3f} to {share - 0.8 * filling:.3f}")
    yield (
        "Each of n senders is held for 1 - 1/n of the time, without what it takes to fill the buffer to its "
        "dynamic threshold (at least 80 % of that, as headroom and reserves are no part of it).",
        _all(near),
        ", ".join(evidence),
    )


def _deadlock(results: Results) -> Checked:
    delivered = results.means("7.4", "delivered")
    without, broken = delivered["ring of four, no watchdog"], delivered["ring of four, watchdog"]
    yield (
        "A ring of held links delivers nothing more; a watchdog that drops breaks it.",
        without == 0 and broken > 0,
        f"{without / 1e9:g} and {broken / 1e9:.1f} Gbit/s",
    )


def _thrown(results: Results, id_: str) -> tuple[bool, str]:
    """Whether Jain's index of links is that of flows thrown by chance; conditions say how many a host has."""
    found = results.means(id_, "jfi")
    runs = {name: len(values) for name, values in results.of(id_, "jfi").items()}
    chance = np.random.default_rng(1)
    near, evidence = [], []
    for condition, value in found.items():
        if not condition[0].isdigit():
            continue
        flows = _HOSTS_A_LEAF * int(condition.split()[0])
        loads = chance.multinomial(flows, [1 / _LEAF_LINKS] * _LEAF_LINKS, size=(_DRAWS, _LEAVES)).reshape(
            _DRAWS, -1
        )
        index = loads.sum(axis=1) ** 2 / (loads.shape[1] * (loads**2).sum(axis=1))
        near.append(abs(value - index.mean()) < 4 * index.std() / runs[condition] ** 0.5)
        evidence.append(f"{condition}: {value:.3f} ({index.mean():.3f})")
    return _all(near), ", ".join(evidence)


def _entropy(results: Results) -> Checked:
    found = results.means("8.1", "jfi")
    yield (
        "Jain's index of links among which flows are hashed is that of flows thrown to links by chance, "
        "within four standard errors.",
        *_thrown(results, "8.1"),
    )
    yield (
        "More queue pairs load links more evenly, and spraying evenly.",
        max(found, key=lambda name: found[name]) == "32 queue pairs"
        and min(results.means("8.3", "jfi").values()) > 0.999,
        f"spraying {min(results.means('8.3', 'jfi').values()):.5f}",
    )


def _jobs(results: Results) -> Checked:
    jobs = results.means("10.1", "job")
    times = {name: value - 5e9 * float(name.split()[1]) for name, value in jobs.items()}
    short, *long = (times[name] for name in sorted(times, key=lambda name: float(name.split()[1])))
    # With 0.1 ms they differ by up to 1 %, from 0.3 ms on not at all.
    yield (
        "A job takes its computations and its operations, and these take the same, to a millionth, whether "
        "it computes for 1 or 5 ms.",
        max(long) - min(long) <= 1e-6 * min(long),
        f"{min(long) / 1e9:.4f} to {max(long) / 1e9:.4f} ms; {short / 1e9:.4f} ms where it computes for "
        "0.1 ms",
    )
    tenants = results.means("10.3", "job")
    yield (
        "A second job on the same fabric makes the first one longer.",
        _all(value > tenants["alone"] for name, value in tenants.items() if name != "alone"),
        ", ".join(f"{name}: {value / tenants['alone']:.2f}" for name, value in tenants.items()),
    )


def _failures(results: Results) -> Checked:
    failed, steady = results.means("11.2", "job"), results.means("11.3", "job")
    late = {name: value for name, value in failed.items() if name.endswith("5 ms")}
    yield (
        "A job takes longer by at least the half of the time for which switches do not know of a failure.",
        _all(value - steady[f"{name.split(',')[0]}, no failure"] > 2.5e9 for name, value in late.items()),
        ", ".join(
            f"{name}: {(value - steady[name.split(',')[0] + ', no failure']) / 1e9:+.2f} ms"
            for name, value in failed.items()
        ),
    )


def _sprayed(results: Results) -> Checked:
    yield (
        "A sender that sprays over n values loads links as n flows thrown by chance do, within four standard "
        "errors.",
        *_thrown(results, "6.3"),
    )
    jfi, time = results.means("6.3", "jfi"), results.means("6.3", "time")
    yield (
        "Switches that spray load links evenly, and messages end sooner than on any number of paths.",
        abs(jfi["switches spray"] - 1) < 0.001 and min(time, key=lambda name: time[name]) == "switches spray",
        f"Jain's index {jfi['switches spray']:.5f}, {time['switches spray'] / 1e6:.0f} us; "
        + ", ".join(f"{name} {value / 1e6:.0f} us" for name, value in time.items()),
    )


def _least_ps(messages: int, size: int = DUMPED) -> float:
    """What a link takes for so many messages."""
    return messages * (size + -(-size // PAYLOAD) * (FRAME_OF_PACKET - PAYLOAD + 20)) * 80


def _receivers(results: Results) -> Checked:
    last = results.means("6.4", "last")
    over = {name: value / _least_ps(int(name.split(":")[0])) for name, value in last.items()}
    credit = {name: value for name, value in over.items() if name.endswith("RCCC")}
    # Delays and an empty round trip: 4.5 us.
    near = _all(
        1 <= value < 1.01 + 4.5e6 / _least_ps(int(name.split(":")[0])) for name, value in credit.items()
    )
    yield (
        "Credit of the receiver keeps its link busy: n messages take what the link takes for them, 1 % and "
        "an empty round trip more. No control is faster than the link, and marks (DCQCN) are slower.",
        near
        and _all(value >= 1 for value in over.values())
        and _all(over[name] > over[name.replace("DCQCN", "RCCC")] for name in over if "DCQCN" in name),
        ", ".join(f"{name}: {value:.4f}" for name, value in over.items()),
    )


def _trimming(results: Results) -> Checked:
    last = results.means("6.5", "last")
    cut, lost = last["2:1, payloads are trimmed"], last["2:1, packets are dropped"]
    # Each packet may come as a header of 84 B first.
    most = _least_ps(2) * (1 + CUT / FRAME_OF_PACKET) + 10e6
    yield (
        "Headers of trimmed packets save the timeout: what is dropped ends behind one.",
        cut < most and lost > TIMEOUT_US * 1e6,
        f"{cut / 1e6:.1f} us, at most {most / 1e6:.1f}; {lost / 1e6:.1f} us, timeout {TIMEOUT_US} us",
    )


def _blocking(results: Results) -> Checked:
    others, blocked = results.means("6.5", "others"), results.means("6.5", "blocked")
    drops, depth = results.means("6.5", "drops"), results.means("6.5", "depth")
    free, held, marked = (others[f"32:1, {way}"] for way in ("queues drop", "PFC", "PFC and DCQCN"))
    yield (
        "Where an incast of 32 overflows a queue, others lose nothing; flow control holds them as it holds a "
        "sender of the incast, to a 32nd of their rate (within 1 %), two stops from the receiver; DCQCN "
        "shortens that.",
        abs(held / free - 1 / 32) < 0.01 / 32
        and blocked["32:1, queues drop"] == 0 < blocked["32:1, PFC and DCQCN"] < blocked["32:1, PFC"]
        and drops["32:1, queues drop"] > 0 == drops["32:1, PFC"] == drops["32:1, PFC and DCQCN"]
        and depth["32:1, PFC"] == 2,
        f"{free / 1e9:.2f}, {held / 1e9:.3f}, with DCQCN {marked / 1e9:.2f} Gbit/s; held for "
        + ", ".join(f"{value:.3f}" for value in blocked.values()),
    )


def _packets(results: Results) -> Checked:
    found = results.means("6.6", "bandwidth")
    most = 100e9 * PAYLOAD / (FRAME_OF_PACKET + 20)
    rings = [value for name, value in found.items() if not name.startswith("all-to-all")]
    yield (
        "No operation has more than the data that the link of a rank carries, and rings nine tenths of it.",
        max(found.values()) <= most and min(rings) > 0.9 * most,
        f"at most {most / 1e9:.2f}; "
        + ", ".join(f"{name}: {value / 1e9:.2f} Gbit/s" for name, value in found.items()),
    )


def _ring_ps(rounds: int, leaf: int) -> float:
    """The steps of a ring of as many leaves as hosts at each, `leaf`, on their longest way."""
    steps = rounds * (leaf**2 - 1)
    # One of so many edges as a leaf has hosts leads to another one; so many of `steps` in a row do at most.
    far = -(-steps // leaf)
    # A part of 62.5 kB in 16 segments of 78 B more; a link more costs a delay and a whole frame.
    part, link = (62_500 + 16 * 78) * 80, 1_000_000 + (4096 + 78) * 80
    return steps * (part + 1_000_000) + (steps + 2 * far) * link


def _operations(results: Results) -> Checked:
    near, evidence = [], []
    rings = [
        (f"{id_} {name}", value / 5 / _ring_ps(rounds, 4))
        for id_, rounds in (("9.1", 2), ("9.3", 1))
        for name, value in results.means(id_, "job").items()
        if name.startswith("1 MB")
    ]
    for name, value in results.means("11.1", "job").items():
        rings.append((f"11.1 {name}", value / SCALED / _ring_ps(2, math.isqrt(int(name.split()[0])))))
    for name, ratio in rings:
        near.append(1 <= ratio < (1.01 if name.startswith("11.1") else 1.005))
        evidence.append(f"{name}: {ratio:.4f}")
    found = [value for id_ in ("9.1", "9.2", "9.3") for value in results.means(id_, "bandwidth").values()]
    most, limit = max(found), 100e9 * 4096 / (4096 + 78)
    evidence.append(f"most bandwidth {most / 1e9:.1f} of {limit / 1e9:.1f} Gbit/s")
    yield (
        "A ring whose parts fit into the first window takes the steps of its longest way, to 0.5 %, and to 1 "
        "% with more ranks; no operation has more than the data that the link of a rank carries.",
        _all(near) and most <= limit,
        ", ".join(evidence),
    )


def _shares(results: Results) -> Checked:
    first, late = results.means("7.3", "jain-at-first"), results.means("7.3", "jain")
    yield (
        "DCQCN brings flows that come together with those that are there: Jain's index is above .9 after "
        "20 ms, and lower in the first 2 ms.",
        _all(1 >= late[name] > max(0.9, first[name]) for name in late),
        ", ".join(f"{name}: {first[name]:.3f}, then {late[name]:.3f}" for name in late),
    )


def _canaries(results: Results) -> Checked:
    quiet = results.means("GPCNeT", "latency")["alone"]
    # Four links of 1 us and frames of 84 B at least, with some room for options.
    least = 4 * (1_000_000 + 84 * 80)
    yield (
        "Alone, 8 B take four links, within 1 %.",
        least <= quiet < 1.01 * least,
        f"{quiet / 1e6:.4f} us",
    )
    factors = {measure: _impact(results, measure) for measure in ("latency", "bandwidth", "all-reduce")}
    yield (
        "All four congestors slow the canaries down: impact factors are above 1 by three standard errors.",
        _all(factor - 3 * error > 1 for factor, error in factors.values()),
        ", ".join(f"{name} {factor:.4f} ± {error:.4f}" for name, (factor, error) in factors.items()),
    )


_FURTHER_PS = 4_000_000 + 3 * (FRAME_OF_PACKET + 20) * 80
"""Four delays, and a packet on three links more."""


def _transfers(results: Results) -> Checked:
    p50 = results.means("I 5.2", "p50")
    alone = {name.split(",")[0]: value for name, value in p50.items() if name.endswith(" 0 %")}
    bytes_of = {"kB": 1000, "MB": 1_000_000}
    least = {
        size: _least_ps(1, int(size.split()[0]) * bytes_of[size.split()[1]]) + _FURTHER_PS for size in alone
    }
    yield (
        "A KV transfer alone takes its link and four delays, to a millionth, and longer the more comes from "
        "others.",
        _all(abs(value / least[size] - 1) < 1e-6 for size, value in alone.items())
        and _all(
            alone[size] < p50[f"{size}, background 50 %"] < p50[f"{size}, background 75 %"] for size in alone
        ),
        ", ".join(f"{name}: {value / least[name.split(',')[0]]:.4f}" for name, value in p50.items()),
    )
    last = {
        name: value / (_least_ps(1, KV) + _FURTHER_PS)
        for name, value in results.means("I 5.3", "last").items()
    }
    yield (
        "A KV transfer by credit takes at most 1 % more than its link; of eight at once between different "
        "hosts the last one takes at most a tenth more.",
        _all(1 <= value < 1.1 for value in last.values()) and last["1 pairs"] < 1.01,
        ", ".join(f"{name}: {value:.4f}" for name, value in last.items()),
    )
    busiest, late = results.means("I 6.4", "busiest"), results.means("I 6.4", "unfinished")
    loads = list(late)
    yield (
        "Prefill beyond what decode hosts take keeps their links busy, and more of it remains.",
        _all(0.95 < busiest[name] <= 1 for name in loads[1:])
        and _all(late[a] < late[b] for a, b in pairwise(loads)),
        ", ".join(f"{name}: busy {busiest[name]:.3f}, not ended {late[name]:.3f}" for name in loads),
    )


def _experts(results: Results) -> Checked:
    near, evidence = [], []
    for id_ in ("I 7.1", "I 7.3"):
        for name, value in results.means(id_, "job").items():
            ranks = int(name.split()[-2])
            part = pair_bytes(name.split(",")[0] if "," in name else "M2", ranks)
            share = DISPATCHES * _least_ps(ranks - 1, part) / value
            near.append(0.8 < share < 1)
            evidence.append(f"{name}: {share:.3f}")
    yield (
        "Dispatches of experts use the links of the ranks for more than eight tenths of the time, and never "
        "take less than these.",
        _all(near),
        ", ".join(evidence),
    )
    yield from _modes(results)
    job, kv = results.means("I 7.4", "job"), results.means("I 7.4", "kv")
    both = [name for name in job if name.endswith("together")]
    slower = {
        name: (job[name] / job["EP alone"], kv[name] / kv[name.replace("together", "alone")]) for name in both
    }
    yield (
        "Dispatches and KV transfers make each other slower.",
        _all(min(each) > 1 for each in slower.values()),
        ", ".join(f"{name}: EP {ep:.2f}, KV {of_kv:.2f}" for name, (ep, of_kv) in slower.items()),
    )


def _modes(results: Results) -> Checked:
    last, jain = results.means("I 7.2", "last"), results.means("I 7.2", "jfi")
    over, near = {}, []
    for mode, value in last.items():
        shares = POPULARITY.get(mode, POPULARITY["expert choice"])
        over[mode] = value / _least_ps(len(shares) - 1, round(pair_bytes("M1", len(shares)) * max(shares)))
        index = sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
        near.append(abs(jain[mode] - index) < 0.01)
    yield (
        "A dispatch takes what the link of the most popular experts takes, and up to a fifth more; Jain's "
        "index of the links is that of the experts, within 1 %.",
        _all(near) and _all(1 <= value < 1.2 for value in over.values()),
        ", ".join(f"{mode}: {value:.3f}, index {jain[mode]:.3f}" for mode, value in over.items()),
    )
    half = results.means("I 7.2", "p50")
    yield (
        "A message for each token brings half of them a tenth sooner, at least, than one message for all "
        "tokens of a pair, and takes as long for the last within a tenth.",
        half["low latency"] < 0.9 * half["normal"] and abs(last["low latency"] / last["normal"] - 1) < 0.1,
        f"half after {half['low latency'] / 1e6:.0f} and {half['normal'] / 1e6:.0f} us, all after "
        f"{last['low latency'] / 1e6:.0f} and {last['normal'] / 1e6:.0f} us",
    )


def _mixed(results: Results) -> Checked:
    jain = results.means("I 8.3", "jain")
    settled = results.of("I 8.3", "settled")
    rates = [results.means("I 8.3", what) for what in ("KV", "EP")]
    total = {name: (rates[0][name] + rates[1][name]) / 100e9 for name in jain}
    credit = [name for name in jain if name.endswith("RCCC")]
    yield (
        "By credit those that come share with those that are there, evenly (Jain's index above .999) and "
        "within 5 % after 1 ms at most; with the others the index is above .9. The link stays busy.",
        _all(0.9 < jain[name] <= 1 and 0.9 < total[name] <= 1 for name in jain)
        and _all(jain[name] > 0.999 for name in credit)
        and _all(value is not None and value <= 1e9 for name in credit for value in settled[name]),
        ", ".join(f"{name}: {jain[name]:.4f}, {100 * total[name]:.1f} Gbit/s" for name in jain),
    )


def _circles(results: Results) -> Checked:
    delivered, dropped = results.means("I 8.4", "delivered"), results.means("I 8.4", "dropped")
    ring, *others = delivered
    yield (
        "KV transfers on all ways of a ring without windows lock it for good; a watchdog breaks it, at the "
        "price of frames; with windows of a round trip, and on a tree, nothing locks and nothing is lost.",
        delivered[ring] == 0
        and _all(delivered[name] > 0 for name in others)
        and _all((dropped[name] > 0) == name.endswith(", watchdog") for name in delivered),
        ", ".join(f"{name}: {value / 1e9:.1f} Gbit/s" for name, value in delivered.items()),
    )


def _prefill(results: Results) -> Checked:
    queue, marked = results.means("I 8.1", "queue"), results.means("I 8.1", "marked")
    by_senders: dict[str, list[tuple[float, float]]] = {}
    for name, value in queue.items():
        senders, mark = name.removesuffix(" kB").split(", ")
        by_senders.setdefault(senders, []).append((1000 * float(mark), value))
    yield (
        "The greatest queue of an incast is above the threshold of marks, and greater with a higher one.",
        _all(mark < value for row in by_senders.values() for mark, value in row)
        and _all(a[1] < b[1] for row in by_senders.values() for a, b in pairwise(row))
        and _all(0 < value < 1 for value in marked.values()),
        ", ".join(f"{name}: {value / 1e6:.2f} MB" for name, value in queue.items()),
    )
    last, drops = results.means("I 8.2", "last"), results.means("I 8.2", "drops")
    near, evidence = [], []
    for name, value in last.items():
        count = int(name.split()[0])
        if name.endswith("in 0.1 ms"):
            # One that started at last ends when all are through, or before.
            link = _least_ps(count, KV // 2)
            near.append(link - 1e8 * (count - 1) / count <= value <= link + _FURTHER_PS)
            evidence.append(f"{name}: {value / link:.4f}")
    stops = results.means("I 8.2", "stops")
    yield (
        "With flow control bursts of transfers lose nothing and keep the link busy: each ends within the "
        "time that it takes for all. Transfers that do not overlap stop nobody.",
        _all(near)
        and _all(value == 0 for value in drops.values())
        and stops["4 transfers in 1 ms"] == 0 < stops["4 transfers in 0.1 ms"],
        ", ".join(evidence),
    )
    index, time = results.means("I 9.3", "jfi"), results.means("I 9.3", "time")
    sprayed = [name for name in index if name.endswith("spraying")]
    yield (
        "Spraying loads links evenly and ends first, of long transfers, short ones, and both.",
        _all(0.999 < index[name] <= 1 for name in sprayed)
        and _all(
            time[name] < time[name.replace("spraying", other)]
            for name in sprayed
            for other in ("ECMP", "flowlets")
        ),
        ", ".join(f"{name}: {index[name]:.3f}, {time[name] / 1e6:.0f} us" for name in index),
    )


def _impact(results: Results, measure: str) -> tuple[float, float]:
    """Mean with all congestors over that alone, and its standard error; NaN where a run gives no answer."""
    means = results.means("GPCNeT", measure)
    ratio = means["all four"] / means["alone"]
    if math.isnan(ratio):
        return math.nan, math.nan
    runs = results.of("GPCNeT", measure)
    shares = (
        float(np.std(np.array(runs[name], float), ddof=1)) / len(runs[name]) ** 0.5 / means[name]
        for name in ("all four", "alone")
    )
    return ratio, ratio * math.hypot(*shares)


_CHECKS: tuple[tuple[str, Callable[[Results], Checked]], ...] = (
    ("5.1", _throughput),
    ("5.2", _latency),
    ("5.3", _bursts),
    ("6.3", _sprayed),
    ("6.4", _receivers),
    ("6.5", _trimming),
    ("6.5", _blocking),
    ("6.6", _packets),
    ("7.1", _marks),
    ("7.2", _pauses),
    ("7.3", _shares),
    ("7.4", _deadlock),
    ("8.1, 8.3", _entropy),
    ("9.1 to 9.3, 11.1", _operations),
    ("10.1, 10.3", _jobs),
    ("11.2, 11.3", _failures),
    ("GPCNeT", _canaries),
    ("I 5.2, 5.3, 6.4", _transfers),
    ("I 7.1 to 7.4", _experts),
    ("I 8.1, 8.2, 9.3", _prefill),
    ("I 8.3", _mixed),
    ("I 8.4", _circles),
)
