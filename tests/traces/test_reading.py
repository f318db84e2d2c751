"""Captures are read whatever their kind, and what is none is named."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from traces.captures import Talk, paced, pcap, pcapng, steady
from weirlab._core import read_trace as read_columns
from weirlab.errors import InputError
from weirlab.traces import diagnose, load_trace, read_trace, save_trace

COUNTS = ["packets", "payload_bytes", "new_bytes", "retransmitted", "acked_bytes", "rtts"]


@pytest.fixture(scope="module")
def talk() -> Talk:
    return paced(100, 1_000_000, 10_000_000, Talk(), lost=frozenset({30, 31, 60}))


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_byte_order_and_resolution_change_nothing(
    tmp_path: Path, talk: Talk, big: bool, nanoseconds: bool
) -> None:
    usual = read_trace(pcap(tmp_path / "usual.pcap", talk))
    other = read_trace(pcap(tmp_path / "other.pcap", talk, big=big, nanoseconds=nanoseconds))
    assert usual.flows().select(COUNTS).equals(other.flows().select(COUNTS))
    assert other.facts["format"].endswith("big-endian" if big else "little-endian")


def test_snapped_frames_count_whole(tmp_path: Path, talk: Talk) -> None:
    whole = read_trace(pcap(tmp_path / "whole.pcap", talk))
    snapped = read_trace(pcap(tmp_path / "snapped.pcap", talk, snap=54))
    assert whole.flows().select(COUNTS).equals(snapped.flows().select(COUNTS))
    assert snapped.facts["snapped_frames"] > 100


@pytest.mark.parametrize("vlan", [b"\x81\x00\x00\x05", b"\x88\xa8\x00\x05\x81\x00\x00\x06"])
@pytest.mark.parametrize("version", [4, 6])
def test_tags_and_versions_change_nothing_but_addresses(
    tmp_path: Path, talk: Talk, vlan: bytes, version: int
) -> None:
    plain = read_trace(pcap(tmp_path / "plain.pcap", talk))
    other = paced(100, 1_000_000, 10_000_000, Talk(version=version, vlan=vlan), lost=frozenset({30, 31, 60}))
    tagged = read_trace(pcap(tmp_path / "tagged.pcap", other))
    assert plain.flows().select(COUNTS).equals(tagged.flows().select(COUNTS))
    assert tagged.flows().item(0, "from") == ("10.0.0.1:40000" if version == 4 else "[fd00::1]:40000")


def test_a_cut_record_is_told_and_not_fatal(tmp_path: Path, talk: Talk) -> None:
    trace = read_trace(pcap(tmp_path / "cut.pcap", talk, cut=10))
    assert trace.facts["frames"] == len(talk.frames) - 1
    assert "is cut off" in trace.facts["ending"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x1f\x8b\x08\x00", "compressed with gzip; unpack it first"),
        (b"name: incast\n", "it is text that begins with 'name: incast'"),
        (b"\xd4", "it begins with d4"),
        (bytes(100), "it begins with 00 00 00 00"),
        (b"snoop\0\0\0" + bytes(20), "a snoop file of Solaris"),
    ],
)
def test_what_is_no_capture_is_named_with_its_file(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InputError, match="file: not a capture") as caught:
        read_trace(file)
    assert message in str(caught.value)


def test_a_capture_of_a_link_that_is_not_looked_into_is_refused_by_its_name(
    tmp_path: Path, talk: Talk
) -> None:
    for link, name in ((105, "IEEE 802.11 \\(105\\)"), (3, "link type 3;")):
        with pytest.raises(
            InputError, match=f"none of its {len(talk.frames)} frames can be looked into: they are of {name}"
        ):
            read_trace(pcap(tmp_path / "other.pcap", talk, link=link))


def test_frames_of_such_a_link_beside_others_are_counted_and_told(tmp_path: Path, talk: Talk) -> None:
    trace = read_trace(pcapng(tmp_path / "two.pcapng", (1, talk.frames), (127, talk.frames[:7])))
    assert trace.facts["unknown_link_frames"] == 7
    assert trace.facts["frames"] == len(talk.frames) + 7
    told = {finding.kind: finding for finding in diagnose(trace)}["capture-not-understood"]
    assert "IEEE 802.11 with radiotap (127)" in told.text


def test_sections_and_unknown_blocks_change_nothing(tmp_path: Path, talk: Talk) -> None:
    usual = read_trace(pcap(tmp_path / "usual.pcap", talk))
    halves = talk.frames[:100], talk.frames[100:]
    other = read_trace(pcapng(tmp_path / "sections.pcapng", *((1, half) for half in halves)))
    assert usual.flows().select(COUNTS).equals(other.flows().select(COUNTS))
    assert other["interfaces"].get_column("frames").to_list() == [100, len(talk.frames) - 100]


def test_packets_without_stamps_are_counted_and_their_times_distrusted(tmp_path: Path, talk: Talk) -> None:
    trace = read_trace(pcapng(tmp_path / "simple.pcapng", (1, talk.frames), stamped=False))
    assert trace.facts["unstamped_frames"] == trace.facts["frames"] == len(talk.frames)
    assert "capture-without-stamps" in {finding.kind for finding in diagnose(trace)}


def test_a_clock_that_was_set_within_a_capture_is_told(tmp_path: Path, talk: Talk) -> None:
    # The first frame is stamped in 1970, the others in 2023.
    set_later = [
        (now + 1_700_000_000 * 10**9 * (place > 0), frame) for place, (now, frame) in enumerate(talk.frames)
    ]
    kinds = {
        name: {
            finding.kind for finding in diagnose(read_trace(pcapng(tmp_path / f"{name}.pcapng", (1, frames))))
        }
        for name, frames in (("usual", talk.frames), ("set", set_later))
    }
    assert "capture-too-long" in kinds["set"]
    assert "capture-too-long" not in kinds["usual"]


def test_silences_between_stamps_that_go_back_are_no_more_than_all_of_the_time(
    tmp_path: Path, talk: Talk
) -> None:
    back = [(0 if place % 10 == 5 else now + 10**9, frame) for place, (now, frame) in enumerate(talk.frames)]
    found = {
        finding.kind: finding for finding in diagnose(read_trace(pcapng(tmp_path / "back.pcapng", (1, back))))
    }
    assert "capture-out-of-order" in found
    assert found["stalls"].values["stalled_ratio"] <= 1.0


def test_zeros_at_the_end_of_a_file_are_no_frames(tmp_path: Path, talk: Talk) -> None:
    file = pcap(tmp_path / "talk.pcap", talk)
    length = file.stat().st_size
    with file.open("ab") as out:
        out.write(bytes(4096))
    facts = read_trace(file).facts
    assert facts["frames"] == len(talk.frames)
    assert facts["ending"].startswith(f"damaged at byte {length}: a record of zeros only")


def test_a_directory_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a directory; name a capture in it"):
        read_trace(tmp_path)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_trace(tmp_path / "nothing.pcap")


def test_progress_reaches_the_end_and_can_stop_the_reading(tmp_path: Path, talk: Talk) -> None:
    file = pcap(tmp_path / "talk.pcap", talk)
    told: list[tuple[int, int]] = []
    read_trace(file, watch=lambda done, total: told.append((done, total)))
    assert told[-1] == (file.stat().st_size, file.stat().st_size)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_trace(file, watch=stop)


def test_a_capture_too_large_to_keep_gives_the_same_tables_in_two_passes(tmp_path: Path, talk: Talk) -> None:
    file = pcap(tmp_path / "talk.pcap", talk)
    told: list[tuple[int, int]] = []
    options = {"every_ps": 10**11, "detailed": 1}
    once = read_columns(file, **options)
    twice = read_columns(file, **options, kept_rows=0, watch=lambda *progress: told.append(progress))
    assert told[-1] == (2 * file.stat().st_size, 2 * file.stat().st_size)
    assert len(once["packets"]) > 0
    for name, table in once.items():
        assert pl.DataFrame(table).equals(pl.DataFrame(twice[name]))


def test_what_was_saved_is_loaded_again(tmp_path: Path, talk: Talk) -> None:
    trace = read_trace(pcap(tmp_path / "talk.pcap", talk))
    save_trace(trace, tmp_path / "tables")
    again = load_trace(tmp_path / "tables")
    assert again.name == "talk.pcap"
    assert all(again[name].equals(table) for name, table in trace.tables.items())
    flows = tmp_path / "tables" / "flows.parquet"
    pl.read_parquet(flows).drop("unread_ps").write_parquet(flows)
    with pytest.raises(InputError, match="saved by an earlier version"):
        load_trace(tmp_path / "tables")
    flows.unlink()
    with pytest.raises(InputError, match=r"flows\.parquet: this table is missing"):
        load_trace(tmp_path / "tables")


def test_throughput_and_round_trips_are_those_that_were_made(tmp_path: Path) -> None:
    trace = read_trace(pcap(tmp_path / "steady.pcap", steady(1000)))
    flow = trace.flows().row(0, named=True)
    assert flow["goodput_bps"] == pytest.approx(1000 * 8 / 1e-3, rel=0.01)
    assert flow["rtt_min_ps"] == flow["rtt_max_ps"] == 10_000_000_000
    assert flow["handshake_ps"] == pytest.approx(10e9, rel=1e-3)
    rates = trace["intervals"].filter(pl.col("flow") == flow["flow"]).get_column("new_bytes")[1:-1]
    assert rates.min() == rates.max() == 100_000
