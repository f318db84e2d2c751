"""Findings about simulated probing senders: the flawed variants show theirs, the ideal ones show none."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from weirlab.cli.app import application
from weirlab.records import Records
from weirlab.runs import run, simulate
from weirlab.scenario import load, loads
from weirlab.traces import Finding, diagnose, diagnose_records, probing, read_trace

ALONE = {"traffic.cross.start": "7.4 s", "traffic.cross.stop": "7.5 s"}


def records_of(scenario: str, **assign: str) -> Records:
    return simulate(load(scenario, assign), [1], threads=1)


def found(records: Records) -> dict[str, Finding]:
    return {finding.kind: finding for finding in diagnose_records(records)}


@pytest.fixture(scope="module")
def flawed() -> Records:
    return records_of("rapid-flawed")


@pytest.mark.parametrize("scenario", ["rapid-ideal", "rapid-better"])
def test_a_sender_that_sees_the_cross_traffic_has_no_findings(scenario: str) -> None:
    assert found(records_of(scenario)) == {}


def test_the_flawed_sender_has_lost_its_ramps_is_blind_and_keeps_recovering(flawed: Records) -> None:
    findings = found(flawed)
    assert set(findings) == {"ramp-lost", "no-excursion", "over-estimation", "tail-spill"}
    assert all(finding.verdict == "problem" and finding.evidence for finding in findings.values())
    connection = flawed["connections"].row(0, named=True)
    episodes = findings["over-estimation"].values
    # Each recovery and each timeout outside of one begins a time without streams.
    assert episodes["timeouts"] == connection["recovery_failures"] > 0
    assert episodes["recoveries"] == connection["recoveries"]


OVERFLOW = """
weirlab: 1
name: overflow
network:
  kind: dumbbell
  pairs: 1
  access: {rate: 1 Gbit/s, delay: 10 us}
  bottleneck: {rate: 30 Mbit/s, delay: 20 ms, loss: {kind: random, ratio: 0.15 %}}
queues: {neck: {at: left->right, kind: drop-tail, limit: 150 kB}}
traffic:
  bulk:
    from: left-0
    to: right-0
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}}
run: {duration: 6 s, seed: 2}
record:
  wire: {frames: [left-0->left, left->left-0], as: pcapng}
"""


def test_an_overflow_beside_random_losses_has_its_packets_and_the_path_its_own(tmp_path: Path) -> None:
    done = run(loads(OVERFLOW))
    causes = dict(done.records["cause_names"].select("cause", "name").rows())
    drops = done.records["drops"].group_by("cause").agg(pl.col("frames").sum())
    counted = {causes[cause]: frames for cause, frames in drops.rows()}
    capture = tmp_path / "wire-0.pcapng"
    capture.write_bytes(done.captures[capture.name])
    trace = read_trace(capture)
    (sent,) = trace["flows"].filter(pl.col("payload_bytes") > 0).get_column("segments")
    found = {finding.kind: finding.values for finding in diagnose(trace)}
    lost = {kind: found[kind]["retransmitted_ratio"] * sent for kind in ("lossy-path", "queue-overflow")}
    assert counted["queue-full"] > 100
    # Random losses while the queue overflows, and those of a recovery, count with the overflow.
    assert lost["queue-overflow"] == pytest.approx(counted["queue-full"], rel=0.05)
    assert 4 <= lost["lossy-path"] <= counted["link-loss"]
    assert "losses" not in found


def test_evidence_names_streams_and_times_of_the_run(flawed: Records) -> None:
    streams = {row["stream"]: row for row in flawed["probe_streams"].iter_rows(named=True)}
    for kind in ("ramp-lost", "no-excursion", "tail-spill"):
        for row in found(flawed)[kind].evidence:
            assert row["t_s"] == streams[row["stream"]]["t_ps"] / 1e12
    for row in found(flawed)["over-estimation"].evidence:
        assert max(row["rate_mbps"], row["estimate_mbps"]) > row["delivered_mbps"]


def test_with_exact_timers_ramps_are_whole_and_the_estimator_is_blind_all_the_same() -> None:
    findings = found(records_of("rapid-timely"))
    assert "ramp-lost" not in findings
    assert findings["no-excursion"].values["seen_ratio"] < 0.01
    assert findings["over-estimation"].values["timeouts"] == 0


def test_alone_on_the_link_nothing_but_the_tails_is_wrong() -> None:
    # Without cross traffic an estimate at the link's rate is right, and nothing is lost.
    findings = found(records_of("rapid-flawed", **ALONE))
    assert set(findings) == {"tail-spill"}
    assert findings["tail-spill"].values["after_excess_ratio"] > 0.9


@pytest.mark.parametrize(
    ("scenario", "kinds"),
    [
        ("rapid-ideal", set()),
        ("rapid-better", set()),
        ("rapid-flawed", {"ramp-lost", "tail-spill", "repeated-recovery"}),
    ],
)
def test_a_capture_alone_tells_lost_ramps_and_recoveries_and_blames_no_ideal_sender(
    tmp_path: Path, scenario: str, kinds: set[str]
) -> None:
    wire = {"frames": ["left-0->left", "left->left-0"], "as": "pcapng"}
    run(load(scenario, {"record.wire": wire, "measure": {}}), threads=1).save(tmp_path)
    trace = read_trace(tmp_path / "wire-0.pcapng")
    assert trace["details"].get_column("stream_packets").to_list()[0] == 80
    assert {finding.kind for finding in diagnose(trace)} & set(probing.KINDS) == kinds


def test_books_that_do_not_balance_are_told(flawed: Records) -> None:
    tables = dict(flawed)
    tables["connections"] = flawed["connections"].with_columns(
        retransmits=pl.col("retransmits") + 3, recovery_failures=pl.col("recovery_failures") + 1
    )
    books = found(Records(tables))["bookkeeping"]
    assert [row["identity"].split(" = ")[0] for row in books.evidence] == [
        "retransmissions",
        "retransmissions",
        "failed recoveries",
    ]
    assert all(row["left"] > row["right"] for row in books.evidence)


def test_retransmissions_that_no_drop_explains_are_told(flawed: Records) -> None:
    tables = dict(flawed)
    tables["drops"] = flawed["drops"].with_columns(frames=pl.col("frames") // 33)
    books = found(Records(tables))["bookkeeping"]
    (row,) = books.evidence
    assert row["identity"] == "retransmissions answer drops"
    assert row["left"] > 30 * row["right"]


def test_the_command_diagnoses_the_directory_of_a_run(tmp_path: Path) -> None:
    run(load("rapid-flawed", {"run.duration": "3.5 s", "measure": {}})).save(tmp_path / "run")
    done = CliRunner().invoke(application(), ["diagnose", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    kinds = {finding["kind"] for finding in json.loads(done.stdout)["findings"]}
    assert {"ramp-lost", "no-excursion", "over-estimation"} <= kinds
    words = CliRunner().invoke(application(), ["diagnose", str(tmp_path / "run")])
    assert "problem: Probe streams lost their ramp (ramp-lost, I)\n  rapid/" in words.stdout
    assert "bookkeeping (V)" in words.stdout


def test_streams_that_bring_no_estimate_are_told_with_their_outcomes() -> None:
    records = records_of("rapid-better", **{"run.duration": "1 s", "measure": {}})
    tables = dict(records)
    streams = records["probe_streams"]
    pruned = dict(records["outcome_names"].select("name", "outcome").iter_rows())["pruned"]
    kept = pl.int_range(pl.len()) < 3
    tables["probe_streams"] = streams.with_columns(
        available_bps=pl.when(kept).then("available_bps"),
        outcome=pl.when(kept).then("outcome").otherwise(pruned),
    )
    finding = found(Records(tables))["few-estimates"]
    assert finding.verdict == "problem"
    assert finding.evidence[0] == {"outcome": "pruned", "streams": streams.height - 3}
    assert f"pruned {streams.height - 3:,}" in finding.text
    assert "few-estimates" not in found(records)
