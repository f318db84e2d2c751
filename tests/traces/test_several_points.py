"""Captures of several points, copies, bundles and halves: each packet counts once, where it tells most."""

from __future__ import annotations

import struct
from pathlib import Path

import polars as pl
import pytest

from traces.captures import ACK, MSS, SYN, Talk, at_points, beyond, is_forward, paced, pcapng
from weirlab.traces import Trace, diagnose, read_trace

LOST = frozenset(range(30, 300, 25))
WAY_NS = 8_000_000
ROUND_TRIP_NS = 20_000_000
UNTOLD = ("elsewhere_packets", "copies", "copies_ps", "duplicates")


def sent(version: int = 4, vlan: bytes = b"", segments: int = 300) -> list[tuple[int, bytes]]:
    """What a capture at the client sees: data each millisecond, with losses."""
    talk = Talk(version=version, vlan=vlan)
    return paced(segments, 1_000_000, ROUND_TRIP_NS, talk, lost=LOST).frames


def read(path: Path, *points: list[tuple[int, bytes]]) -> Trace:
    return read_trace(at_points(path / f"{len(points)}.pcapng", *points))


def told(trace: Trace) -> pl.DataFrame:
    """All that is told of flows, but for stamps since the first frame and for copies."""
    columns = [name for name in trace["flows"].columns if name.endswith(("first_ps", "last_ps", "data_ps"))]
    return trace["flows"].drop(*columns, *UNTOLD)


def judged(trace: Trace) -> set[str]:
    return set(trace["points"].filter(pl.col("judged") == 1).get_column("point"))


def kinds(trace: Trace) -> set[str]:
    return {finding.kind for finding in diagnose(trace)}


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("clock_ns", [0, -50_000_000, 50_000_000])
def test_clocks_of_hosts_that_differ_do_not_hide_which_is_the_sender(
    tmp_path: Path, version: int, clock_ns: int
) -> None:
    near = sent(version)
    far = beyond(near, WAY_NS, clock_ns=clock_ns, routers=4)
    alone, both = read(tmp_path, near), read(tmp_path, near, far)
    assert told(alone).equals(told(both))
    assert judged(both) == {"point-0"}
    assert both["flows"]["elsewhere_packets"].sum() == len(far)
    assert read(tmp_path, far, near)["points"].filter(pl.col("judged") == 1)["point"][0] == "point-1"


@pytest.mark.parametrize("version", [4, 6])
def test_a_router_with_one_leg_shows_packets_on_two_vlans_of_one_interface(
    tmp_path: Path, version: int
) -> None:
    near = sent(version, b"\x81\x00\x00\x05")
    far = beyond(near, 1_000_000, routers=1, vlan=b"\x81\x00\x00\x06")
    both = read(tmp_path, sorted(near + far, key=lambda each: each[0]))
    assert told(read(tmp_path, near)).equals(told(both))
    assert judged(both) == {"point-0, VLAN 5"}


@pytest.mark.parametrize("version", [4, 6])
def test_a_mirror_port_that_shows_packets_twice_makes_no_losses(tmp_path: Path, version: int) -> None:
    near = sent(version)
    twice = [(now + later, frame) for now, frame in near for later in (0, 3_000)]
    both = read(tmp_path, twice)
    assert told(read(tmp_path, near)).equals(told(both))
    assert both["flows"]["copies"].sum() == len(near)
    assert [each.verdict for each in diagnose(both) if each.kind == "capture-with-copies"] == ["notice"]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("clock_ns", [0, -50_000_000, 50_000_000])
def test_captures_that_were_merged_into_one_interface_are_told_apart_by_their_hops(
    tmp_path: Path, version: int, clock_ns: int
) -> None:
    near = sent(version)
    both = read(tmp_path, near + beyond(near, WAY_NS, clock_ns=clock_ns, routers=4))
    assert told(read(tmp_path, near)).equals(told(both))
    assert judged(both) == {"point-0, 64 hops left"}
    assert both["points"].height == 4


@pytest.mark.parametrize("apart", [True, False])
def test_packets_that_the_sender_joins_are_left_out_where_the_wire_has_them_cut(
    tmp_path: Path, apart: bool
) -> None:
    near, far = Talk(), Talk()
    for talk, parts in ((near, 4), (far, 1)):
        talk.shake_hands(ROUND_TRIP_NS)
        for number in range(100):
            talk.now += ROUND_TRIP_NS
            for part in range(0, 4, parts):
                place = 4 * number + part
                talk.say(True, 1000 + place * MSS, 5000, payload=parts * MSS, number=10 + place)
            talk.now += ROUND_TRIP_NS
            talk.say(False, 5000, 1000 + 4 * (number + 1) * MSS, number=number)
    there = beyond(far.frames, WAY_NS, routers=4)
    both = read(tmp_path, near.frames, there) if apart else read(tmp_path, near.frames + there)
    assert told(read(tmp_path, near.frames)).equals(told(both))
    assert both["flows"].row(0, named=True)["segments"] == 400


def test_captures_of_one_segment_that_were_merged_into_one_interface_are_a_problem(tmp_path: Path) -> None:
    near = sent()
    (finding,) = diagnose(read(tmp_path, near + beyond(near, WAY_NS)))
    assert (finding.kind, finding.verdict) == ("capture-with-copies", "problem")
    assert "mergecap -I none" in finding.text
    assert "Nothing else is said of 1 of the connections" in finding.text


def test_connections_of_such_a_file_whose_copies_are_not_known_are_not_judged_either(tmp_path: Path) -> None:
    near, other, whole = sent(), sent(6), sent(6, segments=200)
    unknown = beyond(other, 15_000_000)
    assert "losses" in kinds(read(tmp_path, other + unknown))
    assert kinds(read(tmp_path, near + beyond(near, WAY_NS) + other + unknown)) == {"capture-with-copies"}
    assert "lossy-path" in kinds(read(tmp_path, near + beyond(near, WAY_NS) + whole))


@pytest.mark.parametrize("version", [4, 6])
def test_packets_that_routers_send_in_a_loop_were_not_sent_again(tmp_path: Path, version: int) -> None:
    near = sent(version)
    at = 22 if version == 4 else 21
    looped = [
        (now + turn * 20_000, frame[:at] + bytes([frame[at] - 2 * turn]) + frame[at + 1 :])
        for now, frame in near
        if is_forward(frame) and 100_000_000 < now < 110_000_000
        for turn in range(1, 31)
    ]
    both = read(tmp_path, near + looped)
    assert told(read(tmp_path, near)).equals(told(both))
    assert both["flows"]["elsewhere_packets"].sum() == len(looped)
    (finding,) = (each for each in diagnose(both) if each.kind == "capture-of-several-points")
    assert "31 different numbers of hops left at one interface" in finding.text
    merged = read(tmp_path, near + beyond(near, WAY_NS, routers=4))
    assert not any("loop" in each.text for each in diagnose(merged))


def test_packets_that_are_sent_again_as_they_were_are_no_copies(tmp_path: Path) -> None:
    near = sent(6)
    (row,) = read(tmp_path, near)["flows"].filter(pl.col("data_packets") > 0).to_dicts()
    assert (row["retransmitted"], row["copies"]) == (len(LOST), 0)


def test_a_host_that_gives_all_packets_one_identification_sends_again_and_not_twice(tmp_path: Path) -> None:
    def same(frame: bytes) -> bytes:
        return frame[:18] + b"\x00\x07" + frame[20:]

    near = [(now, same(frame)) for now, frame in sent()]
    (row,) = read(tmp_path, near)["flows"].filter(pl.col("data_packets") > 0).to_dicts()
    assert (row["retransmitted"], row["copies"]) == (len(LOST), 0)


def test_links_of_a_bundle_are_judged_together_where_one_link_carries_all_behind_them(tmp_path: Path) -> None:
    near = sent()
    far = beyond(near, WAY_NS, routers=4)
    alone = read(tmp_path, near)
    both = read(tmp_path, near[0::2], near[1::2], far)
    assert told(alone).equals(told(both))
    assert judged(both) == {"point-0", "point-1"}
    apart = read(tmp_path, near[0::2], near[1::2])
    assert told(alone).equals(told(apart))
    assert apart["points"].is_empty()


def test_a_capture_that_saw_the_beginning_only_gives_way_to_one_that_saw_all(tmp_path: Path) -> None:
    near = sent()
    far = beyond(near, WAY_NS, routers=4)
    both = read(tmp_path, near[:120], far)
    assert told(read(tmp_path, far)).equals(told(both))
    assert judged(both) == {"point-1"}


def test_both_halves_of_a_capture_of_any_on_a_router_give_whole_round_trips(tmp_path: Path) -> None:
    def cooked(frame: bytes, outgoing: bool) -> bytes:
        return struct.pack(">HHHQ", 4 if outgoing else 0, 1, 6, 0) + frame[12:]

    near = sent()
    far = beyond(near, 1_000_000, routers=1)
    frames = [(now, cooked(frame, not is_forward(frame))) for now, frame in near]
    frames += [(now, cooked(frame, is_forward(frame))) for now, frame in far]
    trace = read_trace(at_points(tmp_path / "any.pcapng", frames, link=113))
    assert told(read(tmp_path, near)).drop("frame_bytes").equals(told(trace).drop("frame_bytes"))
    rows = trace["points"].filter(pl.col("judged") == 1)
    assert rows["point"].to_list() == ["point-0, incoming", "point-0, outgoing"]


def datagrams(version: int, count: int, *, first: int = 0, same: bool = False) -> list[tuple[int, bytes]]:
    """One each millisecond, with identifications from `first` on, or none; `same` content or another each."""
    frames = []
    for number in range(count):
        payload = bytes(8) if same else struct.pack(">Q", number * 0x9E3779B97F4A7C15 % 2**64)
        payload += bytes(92)
        body = struct.pack(">HHHH", 40000, 80, 8 + len(payload), 0) + payload
        if version == 4:
            number_of_it = (first + number) % 65536 if first else 0
            head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), number_of_it, 0x4000, 64, 17, 0)
            head += b"\x0a001\x0a002"
            kind = b"\x08\x00"
        else:
            head = struct.pack(">IHBB", 6 << 28, len(body), 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
            kind = b"\x86\xdd"
        frames.append((number * 1_000_000, bytes(12) + kind + head + body))
    return frames


@pytest.mark.parametrize("version", [4, 6])
def test_datagrams_without_identification_are_known_by_their_content(tmp_path: Path, version: int) -> None:
    near = datagrams(version, 200)
    trace = read(tmp_path, near, beyond(near, 5_000_000, routers=4))
    row = trace["flows"].row(0, named=True)
    assert (row["packets"], row["elsewhere_packets"], row["new_bytes"]) == (200, 200, 200 * 100)


def test_identifications_that_come_again_after_65536_datagrams_make_no_copies(tmp_path: Path) -> None:
    flood = datagrams(4, 70_000, first=1, same=True)
    trace = read(tmp_path, flood)
    row = trace["flows"].row(0, named=True)
    assert (row["packets"], row["copies"]) == (70_000, 0)
    twice = [(now + later, frame) for now, frame in flood[:1000] for later in (0, 5_000)]
    assert read(tmp_path, twice)["flows"]["copies"].to_list() == [1000, 0]


def test_links_of_a_bundle_that_carry_the_same_content_in_turn_are_all_judged(tmp_path: Path) -> None:
    both = datagrams(6, 400, same=True)
    row = read(tmp_path, both[0::2], both[1::2])["flows"].row(0, named=True)
    assert (row["packets"], row["elsewhere_packets"]) == (400, 0)


def test_interfaces_with_clocks_of_different_resolution_are_read_as_one_time(tmp_path: Path) -> None:
    near = [(now // 1000 * 1000, frame) for now, frame in sent()]
    far = beyond(near, WAY_NS, routers=4)
    one = read_trace(at_points(tmp_path / "one.pcapng", near, far, ticks_per_s=(10**6, 10**9)))
    other = read_trace(at_points(tmp_path / "other.pcapng", near, far, ticks_per_s=(10**9, 10**12)))
    for name in ("flows", "intervals", "recoveries", "gaps", "rtts", "points"):
        assert one[name].equals(other[name]), name


def test_files_one_behind_the_other_are_told(tmp_path: Path) -> None:
    near = [(now + 10**9, frame) for now, frame in sent(segments=3000)]
    far = sorted(beyond(near, WAY_NS, routers=4), key=lambda each: each[0])
    both = read_trace(pcapng(tmp_path / "both.pcapng", (1, near), (1, far)))
    assert both.facts["backward_stamps"] < 30
    assert "capture-out-of-order" in kinds(both)
    assert "capture-out-of-order" not in kinds(read(tmp_path, near, far))


@pytest.mark.parametrize("forward", [True, False])
def test_one_direction_alone_neither_stalls_nor_lost_frames(tmp_path: Path, forward: bool) -> None:
    frames = [(now, frame) for now, frame in sent() if is_forward(frame) == forward]
    late = [(now + 10**9 * (place > 200), frame) for place, (now, frame) in enumerate(frames)]
    trace = read(tmp_path, late)
    found = kinds(trace)
    assert "capture-of-one-direction" in found
    assert not found & {"stalls", "capture-lost-frames", "window-limited"}


def test_connections_keep_their_numbers_when_packets_are_left_out(tmp_path: Path) -> None:
    """Ports that are used again, by a connection whose SYN is seen first at the point that is left out."""
    talk = Talk()
    for round_trip, base in ((ROUND_TRIP_NS, 1000), (ROUND_TRIP_NS, 900_000)):
        talk.say(True, base - 1, 0, flags=SYN, window=65535)
        talk.now += round_trip
        talk.say(False, 4999, base, flags=SYN | ACK, window=65535)
        for number in range(40):
            talk.now += 1_000_000
            talk.say(True, base + number * MSS, 5000, payload=MSS)
            talk.now += round_trip
            talk.say(False, 5000, base + (number + 1) * MSS)
        talk.say(True, base + 40 * MSS, 5000, flags=4 | ACK)
        talk.now += 1_000
    far = beyond(talk.frames, WAY_NS, routers=4)
    both = read(tmp_path, talk.frames, far)
    assert told(read(tmp_path, talk.frames)).equals(told(both))
    assert both["flows"]["connection"].to_list() == [0, 0, 1, 1]
