"""Random losses and full queues are told apart, each with its count, however the host joins packets."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from traces.bursts import MS, MS_PS, ROUND_TRIP_NS, SEGMENT_NS, bursts, joined_bursts, packets
from traces.captures import MSS, Talk, pcap
from weirlab.runs import run
from weirlab.scenario import loads
from weirlab.traces import Trace, diagnose, read_trace

BENCHES = Path(__file__).parents[2] / "benches"
KINDS = {"lossy-path", "queue-overflow", "losses"}


@pytest.fixture
def corpus() -> Iterator[None]:
    sys.path.insert(0, str(BENCHES))
    yield
    sys.path.remove(str(BENCHES))


def test_random_losses_within_joined_packets_are_no_overflows(tmp_path: Path) -> None:
    wrong = []
    for seed in range(20):
        trace = read_trace(pcap(tmp_path / "joined.pcap", joined_bursts(seed, chance_of_loss=0.005)))
        kinds = {finding.kind for finding in diagnose(trace)} & KINDS
        if kinds != {"lossy-path"}:
            wrong.append((seed, kinds))
    assert len(wrong) <= 1, wrong


def test_what_waits_counts_by_packets_of_the_wire(tmp_path: Path) -> None:
    talk = Talk()
    talk.shake_hands(10 * MS)
    for turn in range(100):
        talk.now += MS
        talk.say(True, 1000 + turn * 10 * MSS, 5000, payload=10 * MSS)
        talk.now += 10 * MS
        talk.ack(turn * 10 + 4)
        talk.now += MS
        talk.ack(turn * 10 + 10)
    waits = read_trace(pcap(tmp_path / "joined.pcap", talk))["waits"].filter(pl.col("part") == "ahead")
    usual = waits.filter(pl.col("low_ps") > 0)
    assert usual.get_column("samples").sum() == 600
    assert waits.get_column("samples").sum() == 1002  # SYN and the last of the handshake, too


def test_a_loss_has_for_its_neighbour_what_lay_beside_it_in_the_packet_that_the_host_joined(
    tmp_path: Path,
) -> None:
    talk = Talk()
    talk.shake_hands(10 * MS)
    start = talk.now + MS
    talk.now = start
    talk.say(True, 1000, 5000, payload=16 * MSS)
    for at, below, sack in ((2, 2, None), (4, 2, (3, 5)), (14, 2, (3, 14)), (16, 2, (15, 16))):
        talk.now = start + 10 * MS + at * MS // 10
        talk.ack(below, sack=sack)
    talk.data(2)
    talk.data(14)
    losses = read_trace(pcap(tmp_path / "joined.pcap", talk))["losses"]
    assert losses.get_column("beside_ps").to_list() == [10.2 * MS_PS, 11.4 * MS_PS]


def test_what_is_sent_again_is_no_neighbour_of_the_tail_that_was_lost_before(tmp_path: Path) -> None:
    """Near the receiver: the last of a burst is missed when the next new data come, after a recovery."""
    talk = Talk()
    talk.shake_hands(MS)

    def acknowledges(number: int, value: int) -> None:
        talk.say(False, 5000, 1000 + number * MSS, options=stamps(value, 0))

    def sends(number: int, value: int, echo: int) -> None:
        talk.say(True, 1000 + number * MSS, 5000, payload=MSS, options=stamps(value, echo))

    acknowledges(0, 1)
    talk.now += 8 * MS
    sends(0, 100, 1)
    acknowledges(1, 10)
    talk.now += 20 * MS
    sends(2, 120, 10)  # 1 is missed, and so is 3
    acknowledges(1, 30)
    talk.now += 10 * MS
    sends(1, 140, 30)
    sends(4, 140, 30)
    acknowledges(3, 41)
    talk.now += 10 * MS
    sends(3, 150, 41)
    losses = read_trace(pcap(tmp_path / "tail.pcap", talk))["losses"]
    assert losses.get_column("beside_ps").to_list()[-1] == 20 * MS_PS


def stamps(value: int, echo: int) -> bytes:
    return struct.pack(">BBBBII", 1, 1, 8, 10, value, echo)


def test_data_that_came_again_after_their_acknowledgment_were_not_lost(tmp_path: Path) -> None:
    """Near the receiver: what was lost was the acknowledgment."""
    talk = Talk()
    talk.shake_hands(1000, back_ns=20 * MS)
    for number in range(60):
        talk.now += MS
        talk.data(number)
        talk.ack(number + 1)
    talk.now += 300 * MS
    for number in (57, 58, 59):
        talk.data(number)
        talk.ack(60)
    trace = read_trace(pcap(tmp_path / "again.pcap", talk))
    assert trace["losses"].get_column("spurious").to_list() == [1, 1, 1]
    assert not causes(trace)


@pytest.mark.parametrize(("echo", "arrived"), [(60, 1), (360, 0)])
def test_an_acknowledgment_that_echoes_an_older_time_shows_that_the_first_packet_arrived(
    echo: int, arrived: int, tmp_path: Path
) -> None:
    talk = Talk()
    talk.shake_hands(20 * MS)
    for number in range(60):
        talk.now += MS
        talk.say(True, 1000 + number * MSS, 5000, payload=MSS, options=stamps(number + 1, 1))
        if number < 59:
            talk.say(False, 5000, 1000 + (number + 1) * MSS, options=stamps(1, number + 1))
    talk.now += 300 * MS
    talk.say(True, 1000 + 59 * MSS, 5000, payload=MSS, options=stamps(360, 1))
    talk.now += MS
    talk.say(False, 5000, 1000 + 60 * MSS, options=stamps(300, echo))
    losses = read_trace(pcap(tmp_path / "eifel.pcap", talk))["losses"]
    assert losses.get_column("spurious").to_list() == [arrived]


def test_a_time_in_which_all_is_lost_is_one_event(tmp_path: Path) -> None:
    talk, round_trip = Talk(), 10
    talk.shake_hands(round_trip * MS)
    out = [*range(200, 300), *range(500, 560)]
    acked = 0
    for turn in range(900):
        talk.now += MS
        talk.data(turn)
        if turn >= round_trip and turn - round_trip not in out:
            ready = turn - round_trip
            if ready == acked:
                acked += 1
                talk.ack(acked)
            else:
                talk.ack(acked, sack=(max(each for each in out if each < ready) + 1, ready + 1))
                if ready in (305, 565):
                    for again in (each for each in out if acked <= each < ready):
                        talk.data(again)
                if ready in (305 + round_trip, 565 + round_trip):
                    acked = ready + 1
    (finding,) = (
        each for each in diagnose(read_trace(pcap(tmp_path / "out.pcap", talk))) if each.kind in KINDS
    )
    assert "160 of" in finding.text
    assert "in 2 events" in finding.text


@pytest.mark.parametrize("name", ["varying-reno-11", "varying-cubic-11", "managed-cubic-12"])
def test_a_queue_without_one_level_is_not_taken_for_a_path_that_loses_at_random(
    corpus: None, name: str, tmp_path: Path
) -> None:
    from corpus import simulated

    case = next(case for case in simulated.simulated_cases(int(name[-2:])) if case.name == f"sim-hard-{name}")
    files, counted = simulated.made(case, tmp_path)
    assert counted["lost"] == 0 < counted["dropped"]
    for file in files.values():
        found = [finding for finding in diagnose(read_trace(file)) if finding.kind in KINDS]
        assert "lossy-path" not in {finding.kind for finding in found}
        assert all("drop counters" in each.text for each in found if each.kind == "losses")


def test_data_that_repeat_a_byte_which_probed_the_window_were_not_lost(tmp_path: Path) -> None:
    talk = Talk()
    talk.shake_hands(MS)
    talk.data(0)
    talk.ack(1, window=0)
    talk.now += 200 * MS
    talk.ack(1, window=500)
    talk.say(True, 1000 + MSS, 5000, payload=1)
    talk.say(False, 5000, 1001 + MSS, window=500)
    talk.now += 40 * MS
    talk.data(1)
    talk.ack(2)
    row = read_trace(pcap(tmp_path / "probed.pcap", talk)).flows().row(0, named=True)
    assert row["retransmitted"] == 0
    assert row["new_bytes"] == 2 * MSS


def test_a_buffer_of_almost_a_round_trip_limits_a_sender_that_leaves_the_path_idle(tmp_path: Path) -> None:
    talk = bursts(32, 250, every_ns=0, each_ns=1000, round_trip_ns=3 * MS)
    found = diagnose(read_trace(pcap(tmp_path / "sndbuf.pcap", talk)))
    assert [finding.kind for finding in found] == ["sender-limited"]


@pytest.mark.parametrize("family", ["lossy", "shallow", "overflow"])
def test_joining_the_packets_of_a_capture_does_not_change_the_cause(
    corpus: None, family: str, tmp_path: Path
) -> None:
    from corpus import simulated
    from corpus.joining import join

    for case in (case for case in simulated.simulated_cases(5) if case.family == family):
        files, _ = simulated.made(case, tmp_path)
        single = read_trace(files["sender"])
        joined = read_trace(join(files["sender"], tmp_path / "joined.pcapng", within_ns=20_000))
        assert packets(joined) < 0.9 * packets(single)
        assert causes(joined) == causes(single), case.name


def without_sack(seed: int, *, near_receiver: bool, rounds: int = 400) -> tuple[Talk, int, int]:
    """Bursts over 100 Mbit/s, of which some lose packets at random; all from the first one on comes again,
    as after a timeout. With the numbers of packets, and of rounds, that lost some."""
    chance, talk = random.Random(seed), Talk()
    there_ns = MS if near_receiver else ROUND_TRIP_NS
    talk.shake_hands(there_ns, back_ns=ROUND_TRIP_NS - there_ns + 1000, sack=False)
    number = missing = events = 0
    for _ in range(rounds):
        count = chance.randint(8, 64)
        lost = [each for each in range(number + 4, number + count - 4) if chance.random() < 0.005]
        below = min(lost, default=number + count)
        sent = talk.now + ROUND_TRIP_NS
        frames = []
        for place, each in enumerate(range(number, number + count)):
            at = sent + (place + 1) * SEGMENT_NS
            if not near_receiver or each not in lost:
                frames.append((at if near_receiver else sent, each, True))
            if each not in lost:
                later = at + there_ns
                frames.append((later, min(each + 1, below), False))
        for at, each, forward in sorted(frames, key=lambda frame: frame[0]):
            talk.now = at
            talk.data(each) if forward else talk.ack(each)
        number += count
        if lost:
            missing, events = missing + len(lost), events + 1
            talk.now += 300 * MS
            for each in range(below, number):
                talk.now += SEGMENT_NS
                talk.data(each)
            talk.now += there_ns
            talk.ack(number)
    return talk, missing, events


def test_without_sack_what_is_sent_again_is_not_all_taken_for_lost(tmp_path: Path) -> None:
    talk, lost, events = without_sack(1, near_receiver=False)
    trace = read_trace(pcap(tmp_path / "sender.pcap", talk))
    assert trace.flows().item(0, "retransmitted") > 5 * lost
    (found,) = [finding for finding in diagnose(trace) if finding.kind in KINDS]
    assert found.kind == "lossy-path"
    assert found.values["loss_event_ratio"] * trace.flows().item(0, "segments") == pytest.approx(events)
    assert "no SACK" in found.text
    assert "were lost and" not in found.text


def test_without_sack_a_receiver_lost_what_it_missed(tmp_path: Path) -> None:
    talk, lost, _ = without_sack(1, near_receiver=True)
    trace = read_trace(pcap(tmp_path / "receiver.pcap", talk))
    assert trace.flows().item(0, "retransmitted") > 5 * lost
    (found,) = [finding for finding in diagnose(trace) if finding.kind in KINDS]
    assert found.text.startswith(f"{lost} of ")


@pytest.mark.parametrize("congestion_control", ["reno", "bbr"])
def test_a_connection_that_pauses_hides_no_losses_of_another_one(
    corpus: None, congestion_control: str, tmp_path: Path
) -> None:
    """As the control connection of iperf3 does, in a capture near the receiver."""
    from corpus import simulated

    name = f"sim-lossy-{congestion_control}-5"
    case = next(case for case in simulated.simulated_cases(5) if case.name == name)
    files, _ = simulated.made(case, tmp_path)
    with files["receiver"].open("ab") as file:
        file.write(blocks(pausing(3600 * 1000 * MS)))
    trace = read_trace(files["receiver"])
    assert trace.flows().get_column("connection").n_unique() == 2
    assert causes(trace) == {"lossy-path"}


def pausing(start_ns: int) -> Talk:
    talk = Talk(now=start_ns)
    talk.shake_hands(MS)
    for number in range(5):
        talk.now += 2000 * MS
        talk.data(number)
        talk.now += 10_000
        talk.ack(number + 1)
    return talk


def blocks(talk: Talk) -> bytes:
    """Blocks of pcapng at its first interface, from a host of the simulator."""
    found = b""
    for now, frame in talk.frames:
        content = frame.replace(bytes([10, 0, 0, 1]), bytes([10, 0, 0, 0]))
        padding = -len(content) % 4
        length = 32 + len(content) + padding
        head = struct.pack("<7I", 6, length, 0, now >> 32, now & 0xFFFFFFFF, len(content), len(content))
        found += head + content + bytes(padding) + struct.pack("<I", length)
    return found


def causes(trace: Trace) -> set[str]:
    return {finding.kind for finding in diagnose(trace)} & KINDS


@pytest.mark.parametrize("varies", [False, True])
def test_the_size_of_a_buffer_is_told_only_where_the_rate_behind_it_is_one(
    tmp_path: Path, varies: bool
) -> None:
    """120 kB before 25 Mbit/s, which falls to 6 Mbit/s every other second and a half."""
    slow = "".join(
        f"  slow-{n}: {{kind: rate, at: left->right, when: {1.5 + 3 * n} s, until: {3 + 3 * n} s, "
        "rate: 6 Mbit/s}\n"
        for n in range(3)
    )
    done = run(
        loads(
            f"""\
weirlab: 1
name: varies
network:
  kind: dumbbell
  pairs: 1
  access: {{rate: 1 Gbit/s}}
  bottleneck: {{rate: 25 Mbit/s, delay: 15 ms}}
queues: {{bottleneck: {{at: left->right, kind: drop-tail, limit: 120 kB}}}}
traffic:
  main: {{from: left-0, to: right-0, source: {{kind: bulk}},
         transport: {{kind: tcp, congestion_control: cubic}}}}
{"events:" if varies else ""}
{slow if varies else ""}
run: {{duration: 9 s}}
record: {{sender: {{frames: [left-0->left, left->left-0], as: pcapng}}}}
"""
        )
    )
    (tmp_path / "sender.pcapng").write_bytes(done.captures["sender-0.pcapng"])
    (found,) = [
        finding
        for finding in diagnose(read_trace(tmp_path / "sender.pcapng"))
        if finding.kind == "queue-overflow"
    ]
    assert ("waited at" in found.text) is not varies


def resent(path: Path, *, answered_ns: int) -> Path:
    """A sender's capture of 200 segments, of which the tenth is sent again and acknowledged so long after
    that; with SACK, and without time stamps and reports of what came twice."""
    talk = Talk()
    talk.shake_hands(ROUND_TRIP_NS)
    talk.now += MS
    for number in (*range(11), *range(14, 200)):
        begun = talk.now
        talk.data(number)
        if number != 10:
            talk.now = begun + ROUND_TRIP_NS
            talk.ack(number + 1)
            continue
        for more in (11, 12, 13):
            talk.now += SEGMENT_NS
            talk.data(more)
        talk.now = begun + ROUND_TRIP_NS
        talk.ack(10, sack=(11, 14))
        talk.now += SEGMENT_NS
        talk.data(10)
        talk.now += answered_ns
        talk.ack(14)
    return pcap(path, talk)


@pytest.mark.parametrize(("answered_ns", "spurious"), [(ROUND_TRIP_NS // 4, 1), (ROUND_TRIP_NS, 0)])
def test_what_is_acknowledged_too_soon_after_it_came_again_was_late_and_not_lost(
    tmp_path: Path, answered_ns: int, spurious: int
) -> None:
    losses = read_trace(resent(tmp_path / "resent.pcap", answered_ns=answered_ns))["losses"]
    assert losses.get_column("spurious").to_list() == [spurious]


@pytest.mark.parametrize(
    ("random", "queued", "unknown", "found", "said"),
    [
        (1, 12, 0, "queue-overflow", "One event did not depend on that: too few to report lossy-path."),
        (12, 1, 0, "lossy-path", "One event came with a full queue: too few to report queue-overflow."),
        (0, 12, 3, "queue-overflow", "The cause of 3 events is unknown."),
        (0, 12, 0, "queue-overflow", "The path itself need not lose anything."),
    ],
)
def test_what_is_too_rare_to_be_found_is_named_where_it_is_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    random: int,
    queued: int,
    unknown: int,
    found: str,
    said: str,
) -> None:
    from weirlab.traces import losses

    trace = read_trace(resent(tmp_path / "resent.pcap", answered_ns=ROUND_TRIP_NS))
    causes = losses._causes(trace, trace.flows().row(0, named=True))
    assert causes is not None
    numbers = {"random": random, "queued": queued, "unknown": unknown}
    counts = {name: float(number) for name, number in numbers.items()}
    events = {f"{name}_events": number for name, number in counts.items()}
    monkeypatch.setattr(losses, "_causes", lambda *_: replace(causes, why="few", **counts, **events))
    monkeypatch.setattr(losses, "_counts", lambda row, packets, events, cost: events > 3)
    (finding,) = losses.loss_findings(trace, trace.flows().row(0, named=True))
    assert finding.kind == found
    assert said in finding.text
    assert ("other losses" in finding.text or "need not lose" in finding.text) == ("need not" in said)
