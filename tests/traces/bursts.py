"""Talks in bursts, for tests of losses and rates."""

from __future__ import annotations

import random

from traces.captures import MSS, Talk
from weirlab.traces import Trace

MS = 1_000_000
MS_PS = 1e9
SEGMENT_NS = 80_000
"""At 100 Mbit/s of payload."""
ROUND_TRIP_NS = 40 * MS


def joined_bursts(seed: int, *, chance_of_loss: float, rounds: int = 250) -> Talk:
    """Each round trip the host hands its card bursts of up to 16 segments as one packet each, which a path of
    100 Mbit/s lets pass one by one. Of these some are lost at random; the receiver acknowledges each pair,
    and each packet beyond a loss, and what was lost comes again a round trip later."""
    chance, talk = random.Random(seed), Talk()
    talk.shake_hands(ROUND_TRIP_NS)
    number = 0
    for _ in range(rounds):
        start, free_ns = talk.now + MS, 0
        arrivals: list[tuple[int, int]] = []
        sent = start
        for _ in range(chance.randint(1, 4)):
            count = chance.choice([1, 2, 2, 4, 8, 16])
            talk.now = sent
            talk.say(True, 1000 + number * MSS, 5000, payload=count * MSS)
            free_ns = max(free_ns, sent)
            for each in range(number, number + count):
                free_ns += SEGMENT_NS
                arrivals.append((free_ns + ROUND_TRIP_NS, each))
            number += count
            sent += chance.randint(0, 3 * MS)
        lost = [each for _, each in arrivals if chance.random() < chance_of_loss]
        below = min(lost, default=number)
        beyond = 0
        for place, (at, each) in enumerate(arrivals):
            talk.now = at
            if each in lost:
                continue
            if each < below:
                if place % 2 or each + 1 == below:
                    talk.ack(each + 1)
            else:
                beyond = beyond or each
                beyond = each if each - 1 in lost else beyond
                talk.ack(below, sack=(beyond, each + 1))
        for each in lost:
            talk.now += MS
            talk.data(each)
        talk.now += ROUND_TRIP_NS
        talk.ack(number)
    return talk


def bursts(count: int, rounds: int, *, every_ns: int, each_ns: int, round_trip_ns: int) -> Talk:
    """Each round some segments leave one by one, pass a path of 146 Mbit/s, and are acknowledged in pairs;
    the next leave when all are acknowledged and so much time has passed."""
    talk, number = Talk(), 0
    talk.shake_hands(round_trip_ns)
    for _ in range(rounds):
        start, free_ns = talk.now + 1000, 0
        events: list[tuple[int, int, bool]] = []
        for place in range(count):
            at = start + place * each_ns
            free_ns = max(free_ns, at) + SEGMENT_NS
            events.append((at, number + place, True))
            if place % 2:
                events.append((free_ns + round_trip_ns, number + place + 1, False))
        for at, which, is_data in sorted(events):
            talk.now = at
            (talk.data if is_data else talk.ack)(which)
        number += count
        talk.now = max(talk.now, start + every_ns)
    return talk


def packets(trace: Trace) -> int:
    return int(trace.flows().get_column("data_packets").sum())
