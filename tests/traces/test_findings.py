"""Each finding is made where its cause was put, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from traces.captures import MSS, Talk, paced, pcap, steady
from weirlab.traces import Finding, diagnose, read_trace
from weirlab.traces.directions import interval_rows
from weirlab.traces.probing import KINDS

MS = 1_000_000


def found(tmp_path: Path, talk: Talk, **options: object) -> dict[str, Finding]:
    trace = read_trace(pcap(tmp_path / "talk.pcap", talk), **options)  # type: ignore[arg-type]
    findings = diagnose(trace)
    assert len({(finding.kind, finding.flow) for finding in findings}) == len(findings)
    return {finding.kind: finding for finding in findings}


def test_a_steady_flow_gives_no_findings(tmp_path: Path) -> None:
    assert found(tmp_path, steady()) == {}


def test_a_sender_that_keeps_the_same_in_flight_though_nothing_stops_it_limits_itself(tmp_path: Path) -> None:
    findings = found(tmp_path, steady(2000))
    assert set(findings) == {"sender-limited"}
    assert findings["sender-limited"].values["flight_bytes"] == pytest.approx(10 * MSS, rel=0.11)
    assert "most round trips took 10 ms at most" in findings["sender-limited"].text
    lossy = paced(2000, MS, 10 * MS, Talk(), lost=frozenset({500, 900, 1300}))
    assert "sender-limited" not in found(tmp_path, lossy)


def test_losses_are_counted_and_set_beside_what_they_allow(tmp_path: Path) -> None:
    findings = found(tmp_path, paced(1000, MS, 10 * MS, Talk(), lost=frozenset(range(20, 1000, 50))))
    assert set(findings) == {"lossy-path"}
    lossy = findings["lossy-path"]
    # The sender went on at its pace all the same: the losses took nothing away.
    assert (lossy.verdict, lossy.values["cost_ratio"]) == ("notice", pytest.approx(0.0, abs=0.02))
    assert lossy.values["retransmitted_ratio"] == pytest.approx(20 / 1020, rel=1e-6)
    bound = (1.5**0.5) * MSS * 8 / (0.010 * (20 / 1020) ** 0.5)
    assert lossy.values["loss_event_ratio"] == pytest.approx(20 / 1020, rel=1e-6)
    assert lossy.values["square_root_bps"] == pytest.approx(bound, rel=0.05)
    assert len(lossy.evidence) == 10
    assert all(row["retransmitted"] == 1 for row in lossy.evidence)


def filling(periods: int, *, lost: int) -> Talk:
    """A sender whose round trips grow from 10 to 29 ms, again and again; the last `lost` segments of each
    period are lost, and sent again 40 ms later."""
    talk = Talk()
    talk.shake_hands(10 * MS)
    events: list[tuple[int, str, int]] = []
    for number in range(periods * 200):
        sent = talk.now + (number + 1) * MS
        place = number % 200
        events.append((sent, "data", number))
        if place < 200 - lost:
            events.append((sent + (10 + place // 10) * MS, "arrival", number))
        else:
            events.append((sent + 40 * MS, "data", number))
            events.append((sent + 50 * MS, "arrival", number))
    arrived: set[int] = set()
    below = 0
    for at, what, number in sorted(events):
        talk.now = at
        if what == "data":
            talk.data(number)
            continue
        arrived.add(number)
        while below in arrived:
            below += 1
        top = max(arrived) + 1
        talk.ack(below, sack=(below + 1, top) if below < top - 1 else None)
    return talk


def test_losses_from_a_queue_that_had_filled_are_told_from_those_of_the_path(tmp_path: Path) -> None:
    findings = found(tmp_path, filling(8, lost=4))
    assert "lossy-path" not in findings
    overflow = findings["queue-overflow"]
    assert overflow.verdict == "notice"
    assert overflow.values["loss_event_ratio"] == pytest.approx(8 / 1632, rel=1e-6)
    assert all(row["rtt_before_ms"] > 20 for row in overflow.evidence)


def test_a_full_window_is_found_with_its_bound(tmp_path: Path) -> None:
    talk = Talk(shift=0)
    talk.shake_hands(50 * MS)
    for turn in range(40):
        for each in range(8):
            talk.now += 10_000
            talk.data(turn * 8 + each)
        talk.now += 50 * MS
        talk.ack(turn * 8 + 8, window=8 * MSS)
    findings = found(tmp_path, talk)
    assert set(findings) == {"window-limited"}
    assert findings["window-limited"].values["window_bytes"] == 8 * MSS
    assert findings["window-limited"].values["limited_ratio"] > 0.9


def test_pauses_of_the_application_are_found(tmp_path: Path) -> None:
    talk = Talk()
    talk.shake_hands(10 * MS)
    for number in range(60):
        talk.now += 100 * MS
        talk.data(number)
        talk.now += 10 * MS
        talk.ack(number + 1)
    findings = found(tmp_path, talk)
    assert set(findings) == {"application-limited"}
    assert findings["application-limited"].values["idle_ratio"] == pytest.approx(90 / 110, abs=0.02)


def test_a_queue_that_never_empties_is_found(tmp_path: Path) -> None:
    talk = Talk()
    talk.shake_hands(5 * MS)
    start = talk.now
    events = sorted(
        event
        for number in range(2000)
        for event in ((number * MS, 0, number), (number * MS + (5 if number < 50 else 60) * MS, 1, number))
    )
    below = 0
    for at, what, number in events:
        talk.now = start + at
        if what == 0:
            talk.data(number)
        elif number >= below:
            below = number + 1
            talk.ack(below)
    findings = found(tmp_path, talk)
    assert set(findings) == {"bufferbloat"}
    assert findings["bufferbloat"].values["standing_ms"] == pytest.approx(55, rel=0.02)


def test_silences_are_found_with_their_causes(tmp_path: Path) -> None:
    talk = Talk()
    talk.shake_hands(10 * MS)
    for number in range(100):
        talk.now += MS
        talk.data(number)
        if number % 25 == 24:
            talk.now += 300 * MS
            talk.data(number)
            talk.now += 10 * MS
        talk.ack(number + 1)
    stalls = found(tmp_path, talk)["stalls"]
    assert stalls.verdict == "problem"
    assert {row["cause"] for row in stalls.evidence} == {"timeout"}
    assert stalls.values["stalls"] == 4


def test_acknowledgments_in_bunches_are_found(tmp_path: Path) -> None:
    talk = Talk()
    talk.shake_hands(20 * MS)
    start = talk.now
    # Acknowledgments are held back and let go every 20 ms.
    events = sorted(
        event
        for number in range(400)
        for event in (
            (number * MS, 0, number),
            ((number // 20 + 2) * 20 * MS + number % 20 * 10_000, 1, number),
        )
    )
    for at, what, number in events:
        talk.now = start + at
        if what == 0:
            talk.data(number)
        else:
            talk.ack(number + 1)
    findings = found(tmp_path, talk)
    assert set(findings) == {"ack-compression"}
    assert findings["ack-compression"].values["compressions"] == pytest.approx(19, abs=1)


def test_a_closed_window_is_found(tmp_path: Path) -> None:
    talk = Talk(shift=0)
    talk.shake_hands(10 * MS)
    for number in range(80):
        talk.now += MS
        talk.data(number)
        talk.now += 10 * MS
        talk.ack(number + 1, window=60000 if number != 40 else 0)
        if number == 40:
            talk.now += 500 * MS
            talk.ack(number + 1, window=60000)
    assert found(tmp_path, talk)["zero-window"].values["closed_ratio"] == pytest.approx(0.36, abs=0.02)


def test_a_capture_that_lost_frames_is_distrusted(tmp_path: Path) -> None:
    talk = steady(200)
    kept = [frame for place, frame in enumerate(talk.frames) if place not in range(100, 120)]
    lost = found(tmp_path, Talk(frames=kept))["capture-lost-frames"]
    assert lost.verdict == "problem"
    assert lost.values["unseen_bytes"] > 0


def flight(segments: int, lost: int, turns: int = 10) -> tuple[Talk, int]:
    """A segment each ms, acknowledged after `turns` of them; one is lost and sent again, in the frame
    whose place is the second result."""
    talk, again = Talk(), 0
    talk.shake_hands(turns * MS)
    for turn in range(segments):
        talk.now += MS
        ready = turn - turns
        if ready >= 0 and ready != lost:
            if lost < ready < lost + 2 * turns:
                talk.ack(lost, sack=(lost + 1, ready + 1))
            else:
                talk.ack(ready + 1)
        if ready == lost + turns:
            again = len(talk.frames)
            talk.data(lost)
        talk.data(turn)
    return talk, again


@pytest.mark.parametrize("before", [0, 1, 5, 10])
def test_what_left_before_the_first_frame_was_not_lost_by_the_capture(tmp_path: Path, before: int) -> None:
    talk, again = flight(400, 100)
    assert "capture-lost-frames" not in found(tmp_path, talk)
    cut = Talk(frames=talk.frames[again - before :])
    assert "capture-lost-frames" not in found(tmp_path, cut)


def test_a_capture_that_begins_late_and_lost_frames_is_distrusted(tmp_path: Path) -> None:
    talk, again = flight(400, 100)
    kept = [
        frame for place, frame in enumerate(talk.frames) if place >= again and place not in range(500, 520)
    ]
    assert found(tmp_path, Talk(frames=kept))["capture-lost-frames"].values["unseen_bytes"] == 10_000


def ramp(mean_ns: float, packets: int = 80, ratio: float = 3.0) -> list[int]:
    """Gaps of a stream that fall by `ratio`, whose mean is `mean_ns`."""
    shares = [ratio ** (-place / (packets - 1)) for place in range(packets)]
    return [round(mean_ns * packets * share / sum(shares)) for share in shares]


def probing(streams: list[list[int]]) -> Talk:
    talk = Talk()
    talk.shake_hands(MS)
    number = 0
    for stream in streams:
        for gap in stream:
            talk.data(number)
            number += 1
            talk.now += gap
        talk.ack(number, window=60000)
    return talk


def test_streams_with_their_ramps_are_told_and_not_blamed(tmp_path: Path) -> None:
    talk = probing([ramp(50_000.0) for _ in range(40)])
    trace = read_trace(pcap(tmp_path / "ramps.pcap", talk))
    assert trace["details"].item(0, "stream_packets") == 80
    shapes = trace["p_streams"].join(trace["stream_kind_names"], on="kind").get_column("name")
    assert shapes.len() >= 38
    assert set(shapes) == {"ramp"}
    assert diagnose(trace) == []


def test_broken_streams_and_trains_are_blamed(tmp_path: Path) -> None:
    broken = ramp(50_000.0)
    broken[30] = 4_000_000
    trains = [[8_192] * 80 for _ in range(20)]
    findings = found(tmp_path, probing([*(ramp(50_000.0) for _ in range(10)), *trains, *([broken] * 10)]))
    assert findings["ramp-lost"].values["intact_ratio"] == pytest.approx(0.5, abs=0.05)
    assert "20 train" in findings["ramp-lost"].text or "21 train" in findings["ramp-lost"].text
    assert {row["shape"] for row in findings["ramp-lost"].evidence} == {"broken"}


def test_bursts_of_one_length_are_no_probe_streams_unless_that_length_is_given(tmp_path: Path) -> None:
    talk = probing([[2 * MS, MS] + [8_192] * 7 for _ in range(100)])
    path = pcap(tmp_path / "bursts.pcap", talk)
    assert read_trace(path)["p_streams"].is_empty()
    assert not {finding.kind for finding in diagnose(read_trace(path))} & set(KINDS)
    given = read_trace(path, stream_packets=9)
    assert given["details"].item(0, "stream_packets") == 9
    assert "ramp-lost" in {finding.kind for finding in diagnose(given)}


def test_heads_at_line_rate_are_blamed_on_the_tails_before(tmp_path: Path) -> None:
    spilt = [[8_192] * 5 + ramp(50_000.0)[5:] for _ in range(30)]
    findings = found(
        tmp_path, probing([ramp(50_000.0) for _ in range(10)] + spilt), link_rate_bps=1_000_000_000
    )
    assert "tail-spill" in findings
    assert findings["tail-spill"].values["spilt_ratio"] > 0.6


def test_rows_of_evidence_name_units_that_people_read(tmp_path: Path) -> None:
    rows = interval_rows(pl.DataFrame({"t_ps": [2 * 10**12], "rtt_min_ps": [5 * 10**9]}), "rtt_min_ps")
    assert rows == [{"t_s": 2.0, "rtt_min_ms": 5.0}]
