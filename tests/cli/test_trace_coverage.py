"""`weir diagnose` says what it looked at, what it looked for, and what not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from traces.captures import Talk, paced, pcap, steady

MS = 1_000_000


def lossy() -> Talk:
    return paced(200, MS, 10 * MS, Talk(), lost=frozenset(range(20, 200, 15)))


def test_what_is_encrypted_is_said_not_to_be_looked_at(weir, place: Path) -> None:
    talk = steady(100)
    sealed = [(now, frame[:23] + b"\x32" + frame[24:]) for now, frame in talk.frames]  # the protocol of ESP
    outcome = weir("diagnose", str(pcap(place / "esp.pcap", replace(talk, frames=sealed))))
    assert outcome.code == 0
    assert "Nothing was found" not in outcome.out
    assert "Nothing was judged: no TCP direction has 50 segments of data." in outcome.out or (
        "capture-not-understood" in outcome.out
    )
    assert f"not looked at: {len(talk.frames)} packets of ESP (encrypted)" in outcome.out
    assert "not found" not in outcome.out


@pytest.mark.parametrize("snap", [40, 46])
def test_of_headers_that_were_cut_off_nothing_is_said_to_be_absent(weir, place: Path, snap: int) -> None:
    outcome = weir("diagnose", str(pcap(place / "cut.pcap", lossy(), snap=snap)))
    assert outcome.code == 0
    assert "not found" not in outcome.out.replace("Nothing was found", "")
    assert "Nothing was judged" in outcome.out or "capture-cut-short" in outcome.out
    assert "without the ports or flags" in outcome.out


def test_where_options_were_cut_off_what_needs_them_is_not_looked_for(weir, place: Path) -> None:
    document = weir("diagnose", str(pcap(place / "cut.pcap", lossy(), snap=54)), "--json").json
    absent = document["not_found"]["in the trace"]
    assert not {"window-limited", "spurious-retransmissions", "lossy-path", "queue-overflow"} & set(absent)
    assert document["not_looked_for"]["window-limited"]["directions"] == 1
    assert "options" in document["not_looked_for"]["spurious-retransmissions"]["reason"]
    # Without selective acknowledgments it is not known what waited beside the lost segments.
    assert {"losses", "capture-cut-short"} <= {finding["kind"] for finding in document["findings"]}
