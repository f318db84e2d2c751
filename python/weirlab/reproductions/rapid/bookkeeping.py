"""Identities that the counters of a study must satisfy, asked of the published numbers and of ours.

Source: Rapid UDP, (3) and (4)
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.reproductions.published import RapidUdp
from weirlab.reproductions.rapid.facts import off_times
from weirlab.reproductions.verdicts import Claim


def published_offs(published: RapidUdp) -> dict[str, float]:
    """What the printed log of PROBE_STREAM gives, by both readings."""
    changes = published["probe_stream"]["changes"]
    states = pl.DataFrame(
        {
            "t_ps": [round(time_s * 1e12) for _, time_s in changes],
            "state": [int(word == "off") for word, _ in changes],
        }
    )
    return off_times(states)


def identities(published: RapidUdp, runs: pl.DataFrame) -> list[Claim]:
    """Each identity with what it says of the published numbers and of every run of ours."""
    asked = (_causes, _timeouts, _histogram, _off_time, _drops)
    return [claim for identity in asked for claim in identity(published, runs)]


def _verdict(equal: bool) -> str:
    return "PASS" if equal else "MISMATCH"


def _causes(published: RapidUdp, runs: pl.DataFrame) -> Iterator[Claim]:
    counters = published["counters"]
    parts = [counters[f"{name}_retransmits"] for name in ("fast", "forward", "slow_start")]
    heads = counters["sack_retransmits_failed"]
    total = counters["sender_retransmitted"]
    names = ("fast", "forward", "slow_start", "timeout", "rescue")
    mine = runs.select(
        (pl.sum_horizontal(*(f"{name}_retransmits" for name in names)) == pl.col("retransmits")).all()
    ).item()
    means = ", ".join(f"{name} {_mean(runs, f'{name}_retransmits'):.1f}" for name in names)
    yield Claim(
        statement="Retransmissions are the sum of their causes: fast, forward, in slow start, and one at the "
        "head of each timeout.",
        holds=bool(mine),
        evidence=f"{_verdict(bool(mine))} in each of {runs.height} runs; on average "
        f"{_mean(runs, 'retransmits'):.1f} = {means}",
        published=f"{_verdict(sum(parts) + heads == total)}: {total} = "
        f"{' + '.join(map(str, parts))} + {heads}",
        source="Rapid UDP, (3)",
        about="identity",
    )


def _timeouts(published: RapidUdp, runs: pl.DataFrame) -> Iterator[Claim]:
    failed = published["counters"]["sack_retransmits_failed"]
    doubles = published_offs(published)["double_offs"]
    mine = runs.select((pl.col("recovery_failures") == pl.col("double_offs")).all()).item()
    yield Claim(
        statement="A recovery that ends in a timeout prints OFF twice: as many such pairs as recoveries "
        "failed.",
        holds=bool(mine),
        evidence=f"{_verdict(bool(mine))} in each of {runs.height} runs; on average "
        f"{_mean(runs, 'double_offs'):.1f} pairs",
        published=f"{_verdict(doubles == failed)}: {doubles:.0f} pairs, {failed} failed",
        source="Rapid UDP, (3) and (4)",
        about="identity",
    )


def _histogram(published: RapidUdp, runs: pl.DataFrame) -> Iterator[Claim]:
    counters = published["counters"]
    once, twice = counters["trace_retransmitted_once"], counters["trace_retransmitted_twice"]
    reported = once + 2 * twice
    rest = counters["sender_retransmitted"] - reported
    mine = runs.select((pl.col("resent_sum") == pl.col("retransmits")).all()).item()
    yield Claim(
        statement="Segments sent again once, twice, three times, ... add up to the retransmissions.",
        holds=bool(mine),
        evidence=f"{_verdict(bool(mine))} in each of {runs.height} runs; on average "
        + ", ".join(f"{_mean(runs, f'resent_{times}'):.1f} {word}" for times, word in _TIMES),
        published=f"{_verdict(rest == 0)}: {once} x 1 + {twice} x 2 = {reported}, {rest} are missing"
        + (f", which {rest // 3} segments sent again three times would be" if rest % 3 == 0 else ""),
        source="Rapid UDP, (3)",
        about="identity",
    )


_TIMES = ((1, "once"), (2, "twice"), (3, "three times"))


def _off_time(published: RapidUdp, runs: pl.DataFrame) -> Iterator[Claim]:
    offs = published_offs(published)
    stated = published["probe_stream"]["total_off_s"]
    near = abs(offs["off_s"] - stated) < 0.05
    ordered = runs.select((pl.col("off_last_s") <= pl.col("off_s") + 1e-12).all()).item()
    yield Claim(
        statement="The time off is that from each OFF to the next ON.",
        holds=bool(ordered),
        evidence=f"{_mean(runs, 'off_s'):.3f} s on average; counted from the last OFF before an ON "
        f"{_mean(runs, 'off_last_s'):.3f} s",
        published=f"{_verdict(near)}: the printed log gives {offs['off_s']:.4f} s (from the last OFF "
        f"{offs['off_last_s']:.3f} s), the text says {stated} s, about twice as much",
        source="Rapid UDP, (4)",
        about="identity",
    )


def _drops(published: RapidUdp, runs: pl.DataFrame) -> Iterator[Claim]:
    counters = published["counters"]
    of_tcp = counters["router_dropped_segments"] - counters["router_dropped_udp"]
    ratio = counters["sender_retransmitted"] / of_tcp
    mine = _mean(runs, "retransmits") / max(_mean(runs, "dropped_tcp"), 1.0)
    yield Claim(
        statement="The router dropped about as many segments of the flow as were sent again (ratio up to 3).",
        holds=mine <= _EXPLICABLE,
        evidence=f"{_mean(runs, 'dropped_tcp'):.0f} dropped, {_mean(runs, 'retransmits'):.0f} sent again: "
        f"{mine:.2f} for each",
        published=f"{_verdict(ratio <= _EXPLICABLE)}: {of_tcp} dropped, "
        f"{counters['sender_retransmitted']} sent again: {ratio:.0f} for each",
        source="Rapid UDP, (3)",
        about="identity",
    )


_EXPLICABLE = 3.0


def _mean(runs: pl.DataFrame, column: str) -> float:
    return float(runs.get_column(column).cast(pl.Float64).to_numpy().mean())
