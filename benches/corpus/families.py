"""The cases over the emulator: each family draws its parameters over the decades that networks span."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corpus.case import Case, Transfer, log_uniform

CONTROLS = ("reno", "cubic", "bbr")
_MSS = 1448
Drawn = tuple[Mapping[str, Any], tuple[Transfer, ...], Mapping[str, Any]]
"""A path, what runs over it, and what was drawn."""
Draw = Callable[[random.Random, str], Drawn]


def live_cases(seed: int) -> Iterator[Case]:
    """All cases over the emulator for a seed, in an order that does not depend on what is left out."""
    for family, causes, controls, draw in _FAMILIES:
        for control in controls:
            name = f"{family}-{control}-{seed}"
            chance = random.Random(name)  # each case has a stream of its own
            path, transfers, facts = draw(chance, control)
            hops = {"path": dict(path)}
            yield Case(
                name,
                family,
                causes,
                chance.randrange(1 << 31),
                hops,
                transfers,
                None,
                {**facts, "cc": control},
            )


def _line(
    rate_bps: float | None, rtt_s: float, buffer_bytes: float | None = None, **more: Any
) -> dict[str, Any]:
    line: dict[str, Any] = {"delay": f"{rtt_s / 2 * 1e6:.0f} us", **more}
    if rate_bps is not None:
        line["rate"] = f"{rate_bps:.0f} bit/s"
    if buffer_bytes is not None:
        line["buffer"] = f"{max(buffer_bytes, 3100):.0f} B"
    return line


def _path(
    chance: random.Random,
    *,
    rate: tuple[float, float] = (5e6, 100e6),
    rtt: tuple[float, float] = (0.005, 0.2),
    buffer: tuple[float, float] = (1.0, 2.0),
    bdp_bytes: tuple[float, float] = (15e3, 1.5e6),
    **more: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A path whose buffer is so many times the product of rate and round trip, and its facts."""
    while True:
        rate_bps, rtt_s = log_uniform(chance, *rate), log_uniform(chance, *rtt)
        bdp = rate_bps * rtt_s / 8
        if bdp_bytes[0] <= bdp <= bdp_bytes[1]:
            break
    times = log_uniform(chance, *buffer)
    facts = {"rate_bps": rate_bps, "rtt_s": rtt_s, "bdp_bytes": bdp, "buffer_bdp": times}
    back = _line(rate_bps, rtt_s)
    return {"forward": _line(rate_bps, rtt_s, times * bdp, **more), "backward": back}, facts


def _bulk(facts: Mapping[str, Any], control: str, **options: Any) -> Transfer:
    """One connection, long enough to be itself: longer where round trips are."""
    seconds = min(5.0 + 25 * facts["rtt_s"], 10.0)
    receiver = options.pop("receiver", {})
    return Transfer({"cc": control, "seconds": round(seconds, 2), **options}, receiver)


def _lossy(chance: random.Random, control: str) -> Drawn:
    share = log_uniform(chance, 0.002, 0.03)
    path, facts = _path(chance, bdp_bytes=(60e3, 1.5e6), loss=f"{100 * share:.4f} %")
    return path, (_bulk(facts, control),), {**facts, "loss": share}


def _bursty(chance: random.Random, control: str) -> Drawn:
    share, length = log_uniform(chance, 0.002, 0.02), chance.uniform(2, 6)
    bursts = {"to_bad": round(share / length, 6), "to_good": round(1 / length, 4)}
    path, facts = _path(chance, bdp_bytes=(60e3, 1.5e6), bursts=bursts)
    return path, (_bulk(facts, control),), {**facts, "loss": share, "burst": length}


def _open(chance: random.Random, control: str) -> Drawn:
    """Losses on a path without a rate: nothing ever waits."""
    share, rtt_s = log_uniform(chance, 0.001, 0.01), log_uniform(chance, 0.02, 0.1)
    forward = {"delay": f"{rtt_s / 2 * 1e6:.0f} us", "loss": f"{100 * share:.4f} %"}
    path = {"forward": forward, "backward": {"delay": forward["delay"]}}
    return path, (Transfer({"cc": control, "seconds": 6.0}),), {"rtt_s": rtt_s, "loss": share}


def _shallow(chance: random.Random, control: str) -> Drawn:
    """A buffer below a tenth of the round trip."""
    path, facts = _path(chance, rtt=(0.03, 0.2), buffer=(0.03, 0.1), bdp_bytes=(150e3, 1.5e6))
    return path, (_bulk(facts, control),), facts


def _overflow(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, buffer=(0.15, 1.0))
    return path, (_bulk(facts, control),), facts


def _several(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, buffer=(0.1, 1.0), bdp_bytes=(60e3, 1.5e6))
    count = chance.randint(3, 6)
    flows = tuple(Transfer(_bulk(facts, control).sender, {}, False, 0.2 * place) for place in range(count))
    return path, flows, {**facts, "flows": count}


def _managed(chance: random.Random, control: str) -> Drawn:
    kind = chance.choice(["codel", "fq-codel", "pie"])
    path, facts = _path(chance, rtt=(0.01, 0.1), buffer=(4, 6), bdp_bytes=(30e3, 1e6), queue={"kind": kind})
    return path, (_bulk(facts, control),), {**facts, "queue": kind}


def _bloat(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rate=(4e6, 40e6), rtt=(0.005, 0.04), buffer=(5, 20), bdp_bytes=(4e3, 120e3))
    return path, (_bulk(facts, control),), facts


def _window(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rtt=(0.02, 0.2), bdp_bytes=(150e3, 1.5e6))
    # Linux takes twice what is asked for, of which a part is for payload.
    rcvbuf = round(facts["bdp_bytes"] * chance.uniform(0.1, 0.4))
    return path, (_bulk(facts, control, receiver={"rcvbuf": rcvbuf}),), {**facts, "rcvbuf": rcvbuf}


def _slow(chance: random.Random, control: str) -> Drawn:
    """A program that reads more slowly than the path carries."""
    path, facts = _path(chance, rate=(10e6, 100e6))
    read_bps = facts["rate_bps"] * chance.uniform(0.1, 0.5)
    rcvbuf = round(log_uniform(chance, 60e3, 400e3))
    receiver = {"read_bps": read_bps, "read_block": round(log_uniform(chance, 4e3, 64e3)), "rcvbuf": rcvbuf}
    return path, (_bulk(facts, control, receiver=receiver),), {**facts, **receiver}


def _stalled(chance: random.Random, control: str) -> Drawn:
    """A program that stops reading for a while."""
    path, facts = _path(chance, bdp_bytes=(15e3, 600e3))
    pauses = [[round(chance.uniform(0.8, 2.0), 2), round(chance.uniform(1.5, 3.0), 2)]]
    receiver = {"pauses": pauses, "rcvbuf": round(log_uniform(chance, 60e3, 300e3))}
    return path, (_bulk(facts, control, receiver=receiver),), {**facts, **receiver}


def _writer(chance: random.Random, control: str) -> Drawn:
    """A program that writes now and then: less than the path carries."""
    path, facts = _path(chance)
    every_s = log_uniform(chance, 2 * facts["rtt_s"], 0.5) if facts["rtt_s"] < 0.2 else 0.5
    chunk = max(round(facts["rate_bps"] / 8 * every_s * chance.uniform(0.05, 0.35)), 20_000)
    sender = {"cc": control, "seconds": max(6.0, 30 * every_s), "chunk": chunk, "every_s": every_s}
    return path, (Transfer(sender),), {**facts, "chunk": chunk, "every_s": every_s}


def _stream(chance: random.Random, control: str) -> Drawn:
    """A program that writes a little all the time, such as a call or a video."""
    path, facts = _path(chance, rate=(10e6, 100e6))
    every_s = chance.choice([0.01, 0.02, 0.033])
    chunk = max(round(facts["rate_bps"] / 8 * every_s * chance.uniform(0.1, 0.4)), 300)
    sender = {"cc": control, "seconds": 6.0, "chunk": chunk, "every_s": every_s}
    return path, (Transfer(sender),), {**facts, "chunk": chunk, "every_s": every_s}


def _sndbuf(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rtt=(0.02, 0.2), bdp_bytes=(200e3, 1.5e6))
    sndbuf = round(max(facts["bdp_bytes"] * chance.uniform(0.1, 0.4), 10_000))
    return path, (_bulk(facts, control, sndbuf=sndbuf),), {**facts, "sndbuf": sndbuf}


def _paced(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rate=(10e6, 100e6))
    pace_bps = facts["rate_bps"] * chance.uniform(0.2, 0.6)
    return path, (_bulk(facts, control, pace_bps=pace_bps),), {**facts, "pace_bps": pace_bps}


def _short(chance: random.Random, control: str) -> Drawn:
    """A transfer that ends before its window has grown to what the path holds."""
    path, facts = _path(chance, rate=(30e6, 100e6), rtt=(0.06, 0.25), bdp_bytes=(300e3, 3e6))
    size = round(min(log_uniform(chance, 130e3, 1e6), 0.8 * facts["bdp_bytes"]))
    return path, (Transfer({"cc": control, "bytes": size}),), {**facts, "bytes": size}


def _outage(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, bdp_bytes=(15e3, 400e3), buffer=(1.5, 3.0))
    rate, at = path["forward"].pop("rate"), chance.uniform(1.5, 3.0)
    length = chance.uniform(1.0, 2.5)
    path["forward"]["steps"] = [
        {"at": "0 s", "rate": rate},
        {"at": f"{at:.3f} s", "rate": "0 bit/s"},
        {"at": f"{at + length:.3f} s", "rate": rate},
    ]
    return path, (_bulk(facts, control),), {**facts, "outage_s": length}


def _bunched(chance: random.Random, control: str) -> Drawn:
    """Data on the way back fills the queue that acknowledgments pass."""
    path, facts = _path(chance, rate=(10e6, 60e6), rtt=(0.01, 0.06))
    up_bps = facts["rate_bps"] * chance.uniform(0.05, 0.15)
    path["backward"] = _line(up_bps, facts["rtt_s"], max(up_bps / 8 * chance.uniform(0.05, 0.2), 12e3))
    back = Transfer({"cc": "cubic", "seconds": 6.0}, {}, True, 0.5)
    return path, (_bulk(facts, control), back), {**facts, "up_bps": up_bps}


def _reordered(chance: random.Random, control: str) -> Drawn:
    share, later_s = log_uniform(chance, 0.01, 0.08), log_uniform(chance, 0.0005, 0.004)
    reorder = {"share": f"{100 * share:.3f} %", "later": f"{later_s * 1e6:.0f} us"}
    path, facts = _path(chance, rate=(20e6, 100e6), rtt=(0.02, 0.1), reorder=reorder)
    return path, (_bulk(facts, control),), {**facts, "share": share, "later_s": later_s}


def _spurious(chance: random.Random, control: str) -> Drawn:
    """Packets that come so late that they are sent again."""
    path, facts = _path(chance, rate=(20e6, 100e6), rtt=(0.02, 0.1))
    share, later_s = log_uniform(chance, 0.001, 0.005), facts["rtt_s"] * chance.uniform(0.6, 1.5)
    path["forward"]["reorder"] = {"share": f"{100 * share:.3f} %", "later": f"{later_s * 1e6:.0f} us"}
    return path, (_bulk(facts, control),), {**facts, "share": share, "later_s": later_s}


def _healthy(chance: random.Random, control: str) -> Drawn:
    """A link that one connection fills without harm."""
    path, facts = _path(chance, buffer=(0.9, 1.5), bdp_bytes=(15e3, 500e3))
    return path, (_bulk(facts, control),), facts


def _short_path(chance: random.Random, control: str) -> Drawn:
    """The same over a local network: little delay, a buffer of tens of packets."""
    rate_bps, rtt_s = log_uniform(chance, 20e6, 100e6), log_uniform(chance, 0.0002, 0.002)
    buffer = chance.uniform(60e3, 200e3)
    path = {"forward": _line(rate_bps, rtt_s, buffer), "backward": _line(rate_bps, rtt_s)}
    facts = {"rate_bps": rate_bps, "rtt_s": rtt_s, "bdp_bytes": rate_bps * rtt_s / 8}
    return path, (_bulk(facts, control),), facts


def _jittery(chance: random.Random, control: str) -> Drawn:
    """A radio-like link that carries all: delays vary, nothing is lost."""
    path, facts = _path(chance, rtt=(0.02, 0.1), buffer=(3, 5), bdp_bytes=(15e3, 300e3))
    size_s = facts["rtt_s"] * chance.uniform(0.05, 0.2)
    path["forward"]["jitter"] = {"size": f"{size_s * 1e6:.0f} us"}
    sender = {"cc": control, "seconds": 7.0, "pace_bps": facts["rate_bps"] * 0.9}
    return path, (Transfer(sender),), {**facts, "jitter_s": size_s}


def _lossy_jitter(chance: random.Random, control: str) -> Drawn:
    share = log_uniform(chance, 0.003, 0.02)
    path, facts = _path(chance, rtt=(0.02, 0.2), bdp_bytes=(60e3, 1.5e6), loss=f"{100 * share:.4f} %")
    size_s = facts["rtt_s"] * chance.uniform(0.05, 0.2)
    path["forward"]["jitter"] = {"size": f"{size_s * 1e6:.0f} us"}
    return path, (_bulk(facts, control),), {**facts, "loss": share, "jitter_s": size_s}


def _lossy_shallow(chance: random.Random, control: str) -> Drawn:
    share = log_uniform(chance, 0.001, 0.003)
    path, facts = _path(
        chance, rtt=(0.02, 0.1), buffer=(0.1, 0.3), bdp_bytes=(60e3, 300e3), loss=f"{100 * share:.4f} %"
    )
    return path, (_bulk(facts, control),), {**facts, "loss": share}


def _lossy_window(chance: random.Random, control: str) -> Drawn:
    path, transfers, facts = _window(chance, control)
    share = log_uniform(chance, 0.002, 0.005)
    path["forward"]["loss"] = f"{100 * share:.4f} %"  # type: ignore[index]
    return path, transfers, {**facts, "loss": share}


def _lossy_writer(chance: random.Random, control: str) -> Drawn:
    path, transfers, facts = _writer(chance, control)
    share = log_uniform(chance, 0.004, 0.02)
    path["forward"]["loss"] = f"{100 * share:.4f} %"  # type: ignore[index]
    return path, transfers, {**facts, "loss": share}


def _lossy_slow(chance: random.Random, control: str) -> Drawn:
    path, transfers, facts = _slow(chance, control)
    share = log_uniform(chance, 0.002, 0.01)
    path["forward"]["loss"] = f"{100 * share:.4f} %"  # type: ignore[index]
    return path, transfers, {**facts, "loss": share}


def _lossy_bloat(chance: random.Random, control: str) -> Drawn:
    path, transfers, facts = _bloat(chance, control)
    share = log_uniform(chance, 0.002, 0.005)
    path["forward"]["loss"] = f"{100 * share:.4f} %"  # type: ignore[index]
    return path, transfers, {**facts, "loss": share}


def _reordered_overflow(chance: random.Random, control: str) -> Drawn:
    path, transfers, facts = _reordered(chance, control)
    path["forward"]["buffer"] = f"{max(facts['bdp_bytes'] * chance.uniform(0.1, 0.4), 9000):.0f} B"  # type: ignore[index]
    return path, transfers, facts


def _wide(chance: random.Random, control: str, cause: str) -> Drawn:
    """From 10 Mbit/s to 1 Gbit/s and from 2 to 160 ms, at losses so rare that hosts join much."""
    while True:
        rate_bps, rtt_s = log_uniform(chance, 10e6, 1e9), log_uniform(chance, 0.002, 0.16)
        bdp, share = rate_bps * rtt_s / 8, log_uniform(chance, 0.0005, 0.03)
        # What a Reno flow holds on average (Mathis 1997), and the packets that it sends.
        window = math.sqrt(1.5 / share) * _MSS
        seconds = min(8 + 25 * rtt_s, 3e9 / rate_bps + 3)
        sent = (rate_bps if control == "bbr" else min(rate_bps, 8 * window / rtt_s)) * seconds / 8 / _MSS
        rounds = window / bdp
        enough = share * sent >= 8 or cause == "overflow"
        fits = (cause == "overflow") or (0.5 <= rounds <= 1.2 if cause == "both" else rounds <= 1.2)
        if 15e3 <= bdp <= 2e6 and enough and fits:
            break
    if cause == "lossy":
        buffer = chance.choice([max(bdp, 500e3) * log_uniform(chance, 1, 4), 2 * bdp, None])
    else:
        buffer = max(bdp * log_uniform(chance, 0.1, 0.9 if cause == "overflow" else 0.4), 20 * 1514)
    more = {} if cause == "overflow" else {"loss": f"{100 * share:.4f} %"}
    path = {"forward": _line(rate_bps, rtt_s, buffer, **more), "backward": _line(rate_bps, rtt_s)}
    if buffer is None:
        path["forward"]["buffer"] = "unlimited"
    facts = {"rate_bps": rate_bps, "rtt_s": rtt_s, "bdp_bytes": bdp, "buffer": buffer, "loss": share}
    return path, (Transfer({"cc": control, "seconds": round(seconds, 2)}),), facts


def _wide_lossy(chance: random.Random, control: str) -> Drawn:
    return _wide(chance, control, "lossy")


def _wide_overflow(chance: random.Random, control: str) -> Drawn:
    return _wide(chance, control, "overflow")


def _wide_both(chance: random.Random, control: str) -> Drawn:
    return _wide(chance, control, "both")


def _reader(share: float, *, fixed: bool) -> Draw:
    """A program that reads so much of what the path carries, with a buffer of its own or one that grows."""

    def draw(chance: random.Random, control: str) -> Drawn:
        path, facts = _path(chance, rate=(10e6, 80e6), rtt=(0.004, 0.12))
        part = share * chance.uniform(0.95, 1.05)
        receiver: dict[str, Any] = {
            "read_bps": facts["rate_bps"] * part,
            "read_block": round(log_uniform(chance, 2e3, 64e3)),
        }
        if fixed:
            receiver["rcvbuf"] = round(log_uniform(chance, 40e3, 400e3))
        return path, (_bulk(facts, control, receiver=receiver),), {**facts, **receiver, "share": part}

    return draw


def _pausing(chance: random.Random, control: str) -> Drawn:
    """A program that reads all there is, then rests, again and again."""
    path, facts = _path(chance, rate=(10e6, 80e6), rtt=(0.004, 0.12))
    period, share = chance.uniform(0.3, 1.0), chance.uniform(0.5, 0.9)
    receiver: dict[str, Any] = {
        "pauses": [[round(turn * period + 0.2, 3), round(share * period, 3)] for turn in range(40)]
    }
    if chance.random() < 0.7:
        receiver["rcvbuf"] = round(log_uniform(chance, 40e3, 300e3))
    return path, (_bulk(facts, control, receiver=receiver),), {**facts, "pause_share": share}


def _small_rcvbuf(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rtt=(0.01, 0.15), bdp_bytes=(60e3, 1.5e6))
    rcvbuf = round(facts["bdp_bytes"] * chance.uniform(0.1, 0.45))
    return path, (_bulk(facts, control, receiver={"rcvbuf": rcvbuf}),), {**facts, "rcvbuf": rcvbuf}


def _small_sndbuf(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rtt=(0.01, 0.15), bdp_bytes=(60e3, 1.5e6))
    sndbuf = round(max(facts["bdp_bytes"] * chance.uniform(0.1, 0.4), 5000))
    return path, (_bulk(facts, control, sndbuf=sndbuf),), {**facts, "sndbuf": sndbuf}


def _part_writer(chance: random.Random, control: str) -> Drawn:
    """A program that writes a part of what the path carries, often or seldom."""
    path, facts = _path(chance, rate=(10e6, 80e6), rtt=(0.004, 0.12))
    every_s, share = chance.choice([0.01, 0.03, 0.1, 0.4]), chance.uniform(0.1, 0.5)
    chunk = max(round(facts["rate_bps"] / 8 * every_s * share), 300)
    sender = {"cc": control, "seconds": 6.0, "chunk": chunk, "every_s": every_s}
    return path, (Transfer(sender),), {**facts, "chunk": chunk, "every_s": every_s, "share": share}


def _pacer(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rate=(10e6, 80e6))
    pace_bps = facts["rate_bps"] * chance.uniform(0.2, 0.7)
    return path, (_bulk(facts, control, pace_bps=pace_bps),), {**facts, "pace_bps": pace_bps}


def _marked(chance: random.Random, control: str) -> Drawn:
    """A queue that marks instead of dropping."""
    kind = chance.choice(["codel", "fq-codel"])
    queue = {"kind": kind, "ecn": True}
    path, facts = _path(chance, rate=(10e6, 80e6), rtt=(0.004, 0.12), buffer=(4, 8), queue=queue)
    return path, (_bulk(facts, control),), {**facts, "ecn": kind}


def _rare(chance: random.Random, control: str) -> Drawn:
    share = log_uniform(chance, 0.0003, 0.01)
    path, facts = _path(
        chance, rate=(20e6, 80e6), rtt=(0.01, 0.12), bdp_bytes=(100e3, 1.5e6), loss=f"{100 * share:.4f} %"
    )
    return path, (_bulk(facts, control),), {**facts, "loss": share}


def _unlimited(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rtt=(0.004, 0.12), buffer=(0.9, 1.5), bdp_bytes=(15e3, 800e3))
    return path, (_bulk(facts, control),), facts


def _varying(chance: random.Random, control: str) -> Drawn:
    """A link whose rate falls for a while, again and again, as that of a radio does."""
    path, facts = _path(chance, rate=(20e6, 100e6), rtt=(0.01, 0.1), buffer=(0.3, 2.0), bdp_bytes=(60e3, 1e6))
    rate_bps, part = facts["rate_bps"], log_uniform(chance, 0.1, 0.4)
    period_s, share = log_uniform(chance, 0.4, 4.0), chance.uniform(0.3, 0.7)
    forward = path["forward"]
    del forward["rate"]
    forward["steps"] = [
        {"at": "0 s", "rate": f"{rate_bps:.0f} bit/s"},
        {"at": f"{1e3 * period_s * share:.0f} ms", "rate": f"{rate_bps * part:.0f} bit/s"},
    ]
    forward["repeat"] = f"{1e3 * period_s:.0f} ms"
    return path, (_bulk(facts, control),), {**facts, "part": part, "period_s": period_s, "share": share}


def _lossy_varying(chance: random.Random, control: str) -> Drawn:
    path, transfers, facts = _varying(chance, control)
    share = log_uniform(chance, 0.002, 0.02)
    path["forward"]["loss"] = f"{100 * share:.4f} %"  # type: ignore[index]
    path["forward"]["buffer"] = f"{2 * facts['bdp_bytes']:.0f} B"  # type: ignore[index]
    return path, transfers, {**facts, "loss": share}


def _lossy_burst(chance: random.Random, control: str) -> Drawn:
    """A slow start that overflows the queue, and then random losses that keep it nearly empty."""
    share = log_uniform(chance, 0.0005, 0.002)
    path, facts = _path(
        chance, rtt=(0.02, 0.1), buffer=(0.5, 1.5), bdp_bytes=(60e3, 250e3), loss=f"{100 * share:.4f} %"
    )
    return path, (_bulk(facts, control),), {**facts, "loss": share}


def _tiny(chance: random.Random, control: str) -> Drawn:
    """A buffer of a few packets, as a policer has."""
    path, facts = _path(chance, rtt=(0.01, 0.1), bdp_bytes=(30e3, 500e3))
    packets = chance.randint(2, 5)
    path["forward"]["buffer"] = f"{packets * 1520} B"
    return path, (_bulk(facts, control),), {**facts, "packets": packets}


def _lost_acknowledgments(chance: random.Random, control: str) -> Drawn:
    path, facts = _path(chance, rate=(10e6, 80e6), rtt=(0.01, 0.1), bdp_bytes=(30e3, 1e6))
    share = log_uniform(chance, 0.02, 0.2)
    path["backward"]["loss"] = f"{100 * share:.4f} %"
    return path, (_bulk(facts, control),), {**facts, "acknowledgments_lost": share}


_LOSS_BASED = ("reno", "cubic")
_FAMILIES: tuple[tuple[str, tuple[str, ...], tuple[str, ...], Draw], ...] = (
    ("lossy", ("lossy-path",), CONTROLS, _lossy),
    ("bursty", ("lossy-path",), ("cubic",), _bursty),
    ("open", ("lossy-path",), ("reno",), _open),
    ("shallow", ("queue-overflow",), CONTROLS, _shallow),
    ("overflow", ("queue-overflow",), _LOSS_BASED, _overflow),
    ("several", ("queue-overflow",), ("cubic",), _several),
    ("managed", ("queue-overflow",), ("cubic",), _managed),
    ("bloat", ("bufferbloat",), _LOSS_BASED, _bloat),
    ("window", ("window-limited",), ("cubic", "bbr"), _window),
    ("slow", ("slow-reader",), ("cubic", "bbr"), _slow),
    ("stalled", ("zero-window",), ("reno", "cubic"), _stalled),
    ("writer", ("application-limited",), ("cubic", "bbr"), _writer),
    ("stream", ("application-limited",), ("cubic",), _stream),
    ("sndbuf", ("sender-limited",), ("reno", "cubic"), _sndbuf),
    ("paced", ("sender-limited",), ("cubic",), _paced),
    ("short", ("slow-start-limited",), ("reno", "cubic", "bbr"), _short),
    ("outage", ("stalls",), ("cubic", "bbr"), _outage),
    ("bunched", ("ack-compression",), ("cubic",), _bunched),
    ("reordered", ("reordering",), ("cubic",), _reordered),
    ("spurious", ("spurious-retransmissions",), ("cubic",), _spurious),
    ("healthy", (), CONTROLS, _healthy),
    ("local", (), CONTROLS, _short_path),
    ("jittery", (), ("cubic",), _jittery),
    ("lossy+jitter", ("lossy-path",), ("cubic",), _lossy_jitter),
    ("lossy+shallow", ("lossy-path", "queue-overflow"), _LOSS_BASED, _lossy_shallow),
    ("lossy+window", ("lossy-path", "window-limited"), ("bbr",), _lossy_window),
    ("lossy+writer", ("lossy-path", "application-limited"), ("cubic",), _lossy_writer),
    ("lossy+slow", ("lossy-path", "slow-reader"), ("bbr",), _lossy_slow),
    ("lossy+bloat", ("lossy-path", "bufferbloat"), ("cubic",), _lossy_bloat),
    ("wide-lossy", ("lossy-path",), CONTROLS, _wide_lossy),
    ("wide-overflow", ("queue-overflow",), CONTROLS, _wide_overflow),
    ("wide-both", ("lossy-path", "queue-overflow"), CONTROLS, _wide_both),
    ("limit-read20", ("slow-reader",), CONTROLS, _reader(0.2, fixed=True)),
    ("limit-read50", ("slow-reader",), CONTROLS, _reader(0.5, fixed=True)),
    ("limit-read90", ("slow-reader",), CONTROLS, _reader(0.9, fixed=True)),
    ("limit-auto20", ("slow-reader",), CONTROLS, _reader(0.2, fixed=False)),
    ("limit-auto50", ("slow-reader",), CONTROLS, _reader(0.5, fixed=False)),
    ("limit-auto90", ("slow-reader",), CONTROLS, _reader(0.9, fixed=False)),
    ("limit-pauses", ("slow-reader",), CONTROLS, _pausing),
    ("limit-rcvbuf", ("window-limited",), CONTROLS, _small_rcvbuf),
    ("limit-sndbuf", ("sender-limited",), CONTROLS, _small_sndbuf),
    ("limit-writer", ("application-limited",), CONTROLS, _part_writer),
    ("limit-paced", ("sender-limited",), CONTROLS, _pacer),
    ("limit-marked", (), CONTROLS, _marked),
    ("limit-lossy", ("lossy-path",), CONTROLS, _rare),
    ("limit-none", (), CONTROLS, _unlimited),
    ("hard-varying", ("queue-overflow",), CONTROLS, _varying),
    ("hard-lossy+varying", ("lossy-path",), CONTROLS, _lossy_varying),
    ("hard-lossy+burst", ("lossy-path", "queue-overflow"), _LOSS_BASED, _lossy_burst),
    ("hard-managed", ("queue-overflow",), CONTROLS, _managed),
    ("hard-tiny", ("queue-overflow",), CONTROLS, _tiny),
    ("hard-acknowledgments", (), CONTROLS, _lost_acknowledgments),
    ("reordered+overflow", ("reordering", "queue-overflow"), ("cubic",), _reordered_overflow),
)
"""Name, what it is made for, the congestion controls of its senders, and how it is drawn."""
