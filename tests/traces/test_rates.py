"""The rate of a path is told where it was seen busy, and not made up elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from traces.bursts import MS, ROUND_TRIP_NS, SEGMENT_NS, bursts, joined_bursts
from traces.captures import MSS, Talk, pcap
from weirlab.traces import diagnose, read_trace
from weirlab.traces.directions import capacity_bps, capacity_is_known


def test_the_rate_while_busy_is_that_of_the_path_though_it_is_mostly_idle(tmp_path: Path) -> None:
    trace = read_trace(pcap(tmp_path / "joined.pcap", joined_bursts(1, chance_of_loss=0.005)))
    row = trace.flows().row(0, named=True)
    assert row["goodput_bps"] < 0.1 * 100e6
    assert capacity_bps(trace, row) == pytest.approx(100e6, rel=0.05)
    assert capacity_is_known(trace, row)


def test_no_rate_while_busy_is_told_where_the_path_was_never_seen_busy(tmp_path: Path) -> None:
    """Pairs that one acknowledgment answers, at the pace of a sender that random losses keep slow."""
    chance, talk = random.Random(1), Talk()
    talk.shake_hands(ROUND_TRIP_NS)
    number = 0
    for _ in range(500):
        lost, times = chance.random() < 0.02, []
        for _ in range(8):
            talk.now += chance.randint(1, 8) * MS // 2
            times.append(talk.now)
            talk.say(True, 1000 + number * MSS, 5000, payload=2 * MSS)
            number += 2
        for pair, sent in enumerate(times):
            talk.now = sent + ROUND_TRIP_NS
            below = number - 16 + 2 * pair + 2
            talk.ack(number - 10, sack=(number - 9, below)) if lost and pair > 2 else talk.ack(below)
        if lost:
            talk.data(number - 10)
            talk.now += ROUND_TRIP_NS
            talk.ack(number)
    trace = read_trace(pcap(tmp_path / "slow.pcap", talk))
    row = trace.flows().row(0, named=True)
    assert row["recoveries"] > 4
    assert not capacity_is_known(trace, row)
    assert not any("carries while it is busy." in finding.text for finding in diagnose(trace))


@pytest.mark.parametrize("every_ns", [SEGMENT_NS, 4 * SEGMENT_NS])
def test_the_pace_of_a_sender_is_no_rate_of_the_path(tmp_path: Path, every_ns: int) -> None:
    talk = Talk()
    talk.shake_hands(ROUND_TRIP_NS)
    free_ns, start = 0, talk.now
    arrivals: list[tuple[int, int]] = []
    for number in range(4000):
        at = start + number * every_ns
        while arrivals and arrivals[0][0] <= at:
            talk.now, told = arrivals.pop(0)
            talk.ack(told)
        talk.now = at
        talk.data(number)
        free_ns = max(free_ns, at) + (4 if every_ns == SEGMENT_NS else 1) * SEGMENT_NS
        if number % 2:
            arrivals.append((free_ns + ROUND_TRIP_NS, number + 1))
    trace = read_trace(pcap(tmp_path / "paced.pcap", talk))
    row = trace.flows().row(0, named=True)
    queues = every_ns == SEGMENT_NS  # the path has a quarter of the rate of the sender
    assert capacity_is_known(trace, row) == queues
    assert capacity_bps(trace, row) == pytest.approx(25e6, rel=0.05)


def test_the_bursts_of_a_program_that_writes_now_and_then_show_no_rate_of_the_path(tmp_path: Path) -> None:
    talk = bursts(40, 60, every_ns=100 * MS, each_ns=4 * SEGMENT_NS, round_trip_ns=4 * MS)
    trace = read_trace(pcap(tmp_path / "writes.pcap", talk))
    assert not capacity_is_known(trace, trace.flows().row(0, named=True))
