"""`weir trace` and `weir diagnose`: tables for people, JSON for programs, results to be reported again."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from traces.captures import Talk, paced, pcap, steady
from weirlab.cli.trace import _fact

LOSSY = frozenset(range(20, 600, 30))


@pytest.fixture
def lossy(place: Path) -> Path:
    return pcap(place / "lossy.pcap", paced(600, 1_000_000, 10_000_000, Talk(), lost=LOSSY))


def test_flows_and_findings_are_shown(weir, lossy: Path) -> None:
    outcome = weir("trace", str(lossy))
    assert outcome.code == 0
    assert "10.0.0.1:40000 → 10.0.0.2:80" in outcome.out
    assert "lossy-path" in outcome.out


def test_json_holds_flows_and_findings_with_their_evidence(weir, lossy: Path) -> None:
    document = weir("trace", str(lossy), "--json").json
    assert document["trace"]["frames"] == 3 + 600 * 2 + len(LOSSY)
    assert document["flows"][0]["retransmitted"] == len(LOSSY)
    (finding,) = document["findings"]
    assert finding["kind"] == "lossy-path"
    assert finding["flow"] == document["flows"][0]["flow"]
    assert finding["evidence"][0]["t_s"] > 0


def test_a_result_is_kept_and_reported_again(weir, lossy: Path, place: Path) -> None:
    pytest.importorskip("altair")
    outcome = weir("trace", str(lossy), "--report", "--out", "kept")
    assert outcome.code == 0, outcome.err
    page = (place / "kept" / "report.html").read_text()
    assert "Packets were lost" in page
    (place / "kept" / "report.html").unlink()
    assert weir("report", "kept", "--no-pictures").code == 0
    assert (place / "kept" / "report.html").read_text() == page


def test_a_diagnosis_has_the_page_of_its_trace_with_the_ends_and_the_place_of_the_capture(
    weir, lossy: Path, place: Path
) -> None:
    pytest.importorskip("altair")
    outcome = weir("diagnose", str(lossy), "--report")
    assert outcome.code == 0, outcome.err
    page = Path(place, outcome.out.splitlines()[-1].removeprefix("Report: ")).read_text()
    for words in ("Where the capture was taken", "10.0.0.1:40000", "RTT 10 ms", "lossy-path"):
        assert words in page


def test_a_file_that_ends_early_is_read_and_told(weir, place: Path) -> None:
    file = pcap(place / "cut.pcap", steady(100), cut=7)
    outcome = weir("trace", str(file))
    assert outcome.code == 0
    assert "is cut off" in outcome.err


def test_diagnosis_says_when_there_is_nothing_to_say(weir, place: Path) -> None:
    outcome = weir("diagnose", str(pcap(place / "steady.pcap", steady(300))))
    assert outcome.code == 0
    looked, *lacks, _, last = outcome.out.splitlines()
    assert last == "Nothing was found, but the capture does not show enough to look for everything."
    assert looked.startswith(
        "not found in the trace: window-limited, slow-reader, lossy-path, queue-overflow, "
    )
    # It lasts for less than five intervals, and has no FIN.
    assert set(lacks) == {
        "not looked for: bufferbloat: fewer than five intervals have round trips",
        "not looked for: slow-start-limited: its end was not captured",
    }


@pytest.mark.parametrize("command", ["trace", "diagnose"])
def test_a_file_of_which_no_frame_was_read_is_refused(weir, place: Path, command: str) -> None:
    empty = pcap(place / "empty.pcap", Talk())
    outcome = weir(command, str(empty))
    assert (outcome.code, outcome.out) == (2, "")
    assert "empty.pcap: holds no frame" in outcome.err
    (place / "garbage.pcap").write_bytes(empty.read_bytes() + b"\xff" * 100)
    outcome = weir(command, "garbage.pcap")
    assert (outcome.code, outcome.out) == (2, "")
    assert "garbage.pcap: holds no frame that can be read: damaged at byte 24" in outcome.err


def test_a_trace_tells_limits_gaps_and_how_often_segments_were_sent_again(weir, lossy: Path) -> None:
    shown = weir("trace", str(lossy)).out
    for title in ("What limited the senders", "Gaps between packets", "How often segments were sent again"):
        assert title in shown
    document = weir("trace", str(lossy), "--every", "10 ms", "--json").json
    flow = document["flows"][0]["flow"]
    (limits,) = (row for row in document["limits"] if row["flow"] == flow)
    assert limits["idle"] == limits["window_closed"] == 0
    (gaps,) = (row for row in document["gaps"] if row["flow"] == flow)
    assert gaps["gaps"] == 600 + len(LOSSY) - 1
    assert abs(gaps["median_ps"] / 1e9 - 1) < 1 / 32
    again = [row for row in document["repeats"] if row["flow"] == flow]
    assert [(row["times"], row["segments"]) for row in again] == [(1, len(LOSSY))]
    new_bytes = [row["new_bytes"] for row in document["intervals"] if row["flow"] == flow]
    assert sum(new_bytes) == document["flows"][0]["new_bytes"]
    assert len(new_bytes) > 50


def test_diagnosis_shows_its_evidence(weir, lossy: Path) -> None:
    outcome = weir("diagnose", str(lossy))
    assert "notice: Packets were lost on the way (lossy-path)" in outcome.out
    assert "retransmitted 1" in outcome.out
    document = weir("diagnose", str(lossy), "--json").json
    assert document["findings"][0]["verdict"] == "notice"
    assert "lossy-path" not in document["not_found"]["in the trace"]
    assert document["not_looked_at"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trace", "run.yaml"], "run.yaml: not a capture (pcap, pcapng or ERF): it is text"),
        (["trace", "nothing.pcap"], "nothing.pcap: there is no such file"),
        (["trace", "lossy.pcap", "--every", "0 ms"], "--every: more than 0"),
        (["trace", "lossy.pcap", "--link-rate", "fast"], "--link-rate: "),
        (["diagnose", "."], ".: holds no capture"),
    ],
)
def test_wrong_input_is_named(weir, lossy: Path, words: list[str], message: str) -> None:
    outcome = weir(*words)
    assert outcome.code == 2
    assert message in outcome.err


RUN = """\
weirlab: 1
name: lossy-run
network:
  {kind: path, ends: [a, b], link: {rate: 100 Mbit/s, delay: 5 ms, loss: {kind: random, ratio: 1 %}}}
traffic:
  bulk: {from: a, to: b, source: {kind: bulk}, transport: {kind: tcp, congestion_control: {kind: reno}}}
run: {duration: 2 s}
record:
  wire: {frames: [a->b, b->a], as: pcapng}
"""


def test_a_run_is_diagnosed_by_its_directory(weir, place: Path) -> None:
    (place / "lossy.yaml").write_text(RUN)
    assert weir("run", "lossy.yaml", "--out", "once").code == 0
    outcome = weir("diagnose", "once")
    assert (outcome.code, "lossy-path" in outcome.out) == (0, True)
    assert weir("run", "lossy.yaml", "--replicates", "2", "--out", "twice").code == 0
    outcome = weir("diagnose", "twice")
    assert outcome.code == 2
    assert "twice: holds 2 captures: name one of wire-0.pcapng, wire-1.pcapng" in outcome.err


def many(connections: int) -> Talk:
    """A connection of two packets from each of so many ports."""
    talk = Talk()
    for number in range(connections):
        talk.data(0)
        talk.ack(1)
        for place, at in ((-2, 34), (-1, 36)):
            now, frame = talk.frames[place]
            port = (40000 + number).to_bytes(2, "big")
            talk.frames[place] = (now, frame[:at] + port + frame[at + 2 :])
        talk.now += 1_000_000
    return talk


def test_a_table_says_how_many_rows_there_are_and_what_keeps_them(weir, place: Path) -> None:
    file = pcap(place / "many.pcap", many(70))
    shown = weir("trace", str(file)).out
    assert "The first 30 of 140 rows. All are in tables/flows.parquet with '--out DIR'." in shown
    assert "The first 10 of 70 rows. All are in tables/flows.parquet with '--out DIR'." in shown
    kept = weir("trace", str(file), "--out", "kept").out
    assert "The first 30 of 140 rows. All are in tables/flows.parquet.\n" in kept
    assert pl.read_parquet(place / "kept" / "tables" / "flows.parquet").height == 140


def test_connections_beyond_the_most_are_counted_and_told(weir, place: Path) -> None:
    file = pcap(place / "many.pcap", many(70))
    document = weir("trace", str(file), "--connections", "20", "--json").json
    assert document["trace"]["untracked_packets"] == 100
    assert len(document["flows"]) == 40
    (finding,) = document["findings"]
    assert finding["kind"] == "capture-of-too-many-connections"


def test_a_pipe_is_read_once_and_refused_where_once_is_not_enough(weir, place: Path) -> None:
    from traces.captures import at_points, beyond

    def piped(content: bytes):
        pipe = place / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
        writer.start()
        outcome = weir("trace", str(pipe))
        writer.join(10)
        pipe.unlink()
        return outcome

    near = steady().frames
    once = piped(pcap(place / "once.pcap", steady()).read_bytes())
    assert "10.0.0.1:40000" in once.out
    twice = piped(at_points(place / "two.pcapng", near, beyond(near, 1_000_000, routers=4)).read_bytes())
    assert twice.code == 2
    assert "save it to a file first" in twice.err


def test_a_pipe_is_read_at_the_pace_of_its_writer(weir_process, place: Path, lossy: Path) -> None:
    pipe = place / "pipe"
    os.mkfifo(pipe)
    slow = "sleep 0.5; exec >pipe; sleep 0.5; head -c 1000 lossy.pcap; sleep 0.5; tail -c +1001 lossy.pcap"
    with subprocess.Popen(["sh", "-c", slow], cwd=place) as writer:
        found = weir_process("trace", "pipe")
        assert writer.wait(20) == 0
    assert found.code == 0, found.err
    assert "10.0.0.1:40000 → 10.0.0.2:80" in found.out


def test_a_pipe_that_nobody_writes_to_is_waited_for_until_ctrl_c(weir_process, place: Path) -> None:
    os.mkfifo(place / "pipe")
    started = time.monotonic()
    found = weir_process("trace", "pipe", interrupt_when=lambda: time.monotonic() - started > 2)
    assert found.code == 130
    assert "interrupted" in found.err


def test_evidence_is_printed_with_units_as_people_write_them() -> None:
    assert _fact("t_s", 0.4535571) == "at 0.453557 s"
    assert _fact("flight_bytes", 99912) == "flight 99912 B"
    assert _fact("rtt_before_ms", None) == "rtt before unknown"
    assert _fact("outcome", "pruned") == "outcome pruned"
