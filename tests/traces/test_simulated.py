"""Captures of simulated runs: what is in them is what the simulator did, and tshark sees the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from weirlab.errors import ScenarioError
from weirlab.runs import Run, run
from weirlab.scenario import loads
from weirlab.traces import diagnose, read_trace

TEXT = """\
weirlab: 1
name: captured
network:
  kind: dumbbell
  pairs: 2
  access: {rate: 1 Gbit/s}
  bottleneck: {rate: 100 Mbit/s, delay: 10 ms, loss: {kind: random, ratio: 0.2 %}}
queues: {bottleneck: {at: left->right, kind: drop-tail, limit: 100 frames}}
traffic:
  bulk: {from: left-0, to: right-0, source: {kind: bulk}, stop: 4 s,
         transport: {kind: tcp, congestion_control: {kind: reno}}}
  cross: {from: left-1, to: right-1, source: {kind: poisson, rate: 20 Mbit/s, payload: 1000 B},
          transport: {kind: udp}}
run: {duration: 5 s, seed: 3}
record:
  sender: {frames: [left-0->left, left->left-0], as: pcapng}
  bottleneck: {frames: left->right, as: pcapng}
  window: {tcp: bulk, every: 10 ms}
"""
DATA = "tcp.len > 0"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    directory = tmp_path_factory.mktemp("captured")
    done = run(loads(TEXT), replicates=2)
    done.save(directory)
    return done, directory


def test_each_replicate_has_a_file_for_each_capture(result: tuple[Run, Path]) -> None:
    done, directory = result
    names = [f"{name}-{replicate}.pcapng" for replicate in (0, 1) for name in ("sender", "bottleneck")]
    assert sorted(done.captures) == sorted(names)
    assert sorted(file.name for file in directory.glob("*.pcapng")) == sorted(names)
    ports = done.records.named("ports").filter(pl.col("replicate") == 0)
    seen = done.records["captures"].filter(replicate=0, name="bottleneck").item(0, "frames")
    assert seen == ports.filter(port_name="left->right").item(0, "frames")
    assert Run.load(directory).captures == {}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(result: tuple[Run, Path]) -> None:
    done, _ = result
    again = run(loads(TEXT), replicates=1, threads=1)
    assert again.captures["sender-0.pcapng"] == done.captures["sender-0.pcapng"]
    assert done.captures["sender-1.pcapng"] != done.captures["sender-0.pcapng"]


def test_a_capture_changes_nothing_that_is_counted(result: tuple[Run, Path]) -> None:
    done, _ = result
    lines = [line for line in TEXT.splitlines() if "pcapng" not in line]
    without = run(loads("\n".join(lines) + "\n"), replicates=2)
    for table in ("flows", "ports", "drops", "connections", "tcp"):
        assert without.records[table].equals(done.records[table]), table


def test_the_trace_tells_what_the_sender_did(result: tuple[Run, Path]) -> None:
    done, directory = result
    trace = read_trace(directory / "sender-0.pcapng", every_ps=10_000_000_000)
    truth = done.records["connections"].filter(replicate=0).row(0, named=True)
    flow = trace.flows().filter(pl.col("payload_bytes") > 0).row(0, named=True)
    assert flow["payload_bytes"] == truth["sent_bytes"]
    assert flow["new_bytes"] == truth["delivered_bytes"] == truth["acked_bytes"]
    # Every segment sent again is one for the trace; the SYN and its answer came through.
    assert flow["retransmitted"] == truth["retransmits"]
    assert trace["recoveries"].height == truth["recoveries"] > 10
    assert flow["reordered"] == flow["duplicates"] == flow["unseen_bytes"] == 0
    repeats = trace["repeats"].filter(flow=flow["flow"])
    resent = done.records["resent"].filter(replicate=0)
    assert dict(repeats.select("times", "segments").rows()) == dict(resent.select("times", "segments").rows())


def test_the_trace_measures_the_round_trip_of_the_sender(result: tuple[Run, Path]) -> None:
    done, directory = result
    trace = read_trace(directory / "sender-0.pcapng")
    flow = trace.flows().filter(pl.col("payload_bytes") > 0).row(0, named=True)
    truth = done.records["connections"].filter(replicate=0).item(0, "min_rtt_ps")
    # The sender's sample ends when the acknowledgement has come over its own link: 70 B and the framing.
    assert 0 <= truth - flow["rtt_min_ps"] <= 13_000_000 + 1_000_000


def test_what_is_in_flight_never_exceeds_the_window_of_the_sender(result: tuple[Run, Path]) -> None:
    done, directory = result
    trace = read_trace(directory / "sender-0.pcapng", every_ps=10_000_000_000)
    flow = trace.flows().filter(pl.col("payload_bytes") > 0).item(0, "flow")
    seen = trace["intervals"].filter(pl.col("flow") == flow).select("t_ps", "flight_max_bytes")
    sent = done.records["tcp"].filter(replicate=0).select("t_ps", "window_bytes", "repairs")
    quiet = (pl.col("repairs") == 0) & (pl.col("repairs").shift(1) == 0) & (pl.col("repairs").shift(-1) == 0)
    both = seen.join(sent.filter(quiet), on="t_ps")
    assert both.height > 100
    # A window may have been larger within the interval than at its end by what a round trip adds: a segment.
    above = both.filter(
        pl.col("flight_max_bytes").cast(pl.Int64) > pl.col("window_bytes").cast(pl.Int64) + 1448
    )
    assert above.height <= 0.02 * both.height, above


def test_the_lossy_path_is_diagnosed(result: tuple[Run, Path]) -> None:
    _, directory = result
    kinds = {finding.kind for finding in diagnose(read_trace(directory / "sender-0.pcapng"))}
    assert "lossy-path" in kinds


@pytest.mark.parametrize(
    ("recovery", "loss", "kinds"),
    [
        ("prr", "", {"queue-overflow"}),
        ("rate-halving", ", loss: {kind: random, ratio: 1 %}", {"lossy-path"}),
        ("prr", ", loss: {kind: random, ratio: 5 %}", {"lossy-path"}),
    ],
)
def test_timeouts_and_the_reason_of_losses_are_those_of_the_simulator(
    tmp_path: Path, recovery: str, loss: str, kinds: set[str]
) -> None:
    text = TEXT.replace(", loss: {kind: random, ratio: 0.2 %}", loss)
    done = run(loads(text.replace("kind: tcp,", f"kind: tcp, recovery: {recovery},")), replicates=4)
    done.save(tmp_path)
    seen = truth = 0
    for replicate in range(4):
        trace = read_trace(tmp_path / f"sender-{replicate}.pcapng")
        seen += trace.flows().get_column("timeouts").sum()
        truth += done.records["connections"].filter(replicate=replicate).item(0, "timeouts")
        found = {finding.kind for finding in diagnose(trace)}
        assert found & {"lossy-path", "queue-overflow"} >= kinds
        assert loss or "lossy-path" not in found
    assert seen == truth


MANY = """\
weirlab: 1
name: many
network:
  kind: dumbbell
  pairs: 2
  access: {rate: 1 Gbit/s, delay: 1 ms}
  bottleneck: {rate: 100 Mbit/s, delay: 10 ms}
queues: {bottleneck: {at: left->right, kind: drop-tail, limit: 250 kB}}
traffic:
  many: {from: "left-[0-1]", to: "right-[0-1]", pattern: {kind: pairs}, streams: 20,
         source: {kind: bulk}, start: 1 s, transport: {kind: tcp, congestion_control: {kind: cubic}}}
run: {duration: 6 s, seed: 3}
record:
  sender: {frames: [left-0->left, left->left-0, left-1->left, left->left-1], as: pcapng}
"""


def losses_of_many(place: Path, text: str) -> list[tuple[str, str]]:
    run(loads(text)).save(place)
    findings = diagnose(read_trace(place / "sender-0.pcapng"))
    return [
        (found.kind, found.verdict) for found in findings if found.kind in {"lossy-path", "queue-overflow"}
    ]


@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
def test_no_path_is_a_problem_where_many_flows_overflow_one_queue(tmp_path: Path, control: str) -> None:
    found = losses_of_many(tmp_path, MANY.replace("kind: cubic", f"kind: {control}"))
    assert found.count(("queue-overflow", "notice")) >= 36
    assert ("lossy-path", "problem") not in found


@pytest.mark.parametrize(("ratio", "verdict"), [("0.3 %", "notice"), ("1 %", "problem")])
def test_a_path_that_loses_is_found_by_most_of_many_flows(tmp_path: Path, ratio: str, verdict: str) -> None:
    fast = f"1 Gbit/s, delay: 10 ms, loss: {{kind: random, ratio: {ratio}}}"
    text = MANY.replace("100 Mbit/s, delay: 10 ms", fast).replace("250 kB", "2500 kB")
    found = losses_of_many(tmp_path, text.replace("duration: 6 s", "duration: 3 s"))
    assert sum(kind == "lossy-path" for kind, _ in found) >= 30
    assert ("lossy-path", verdict) in found


def test_a_capture_tells_how_many_frames_it_has_no_room_for() -> None:
    done = run(loads(TEXT.replace("left->right, as: pcapng", "left->right, as: pcapng, at_most: 100")))
    row = done.records["captures"].filter(name="bottleneck").row(0, named=True)
    whole = run(loads(TEXT)).records["captures"].filter(name="bottleneck").item(0, "frames")
    assert (row["frames"], row["left_out_frames"]) == (100, whole - 100)


def test_a_port_is_captured_once() -> None:
    twice = TEXT.replace("frames: left->right,", "frames: [left->right, left-0->left],")
    with pytest.raises(ScenarioError, match="'left-0->left' is recorded twice, also by 'sender'"):
        loads(twice)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
class TestTshark:
    """The same file, read by tshark."""

    def count(self, file: Path, condition: str) -> int:
        words = ["tshark", "-r", str(file), "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
        words += ["-o", "udp.check_checksum:TRUE", "-Y", condition, "-T", "fields", "-e", "frame.number"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        return len(done.stdout.splitlines())

    def test_no_frame_is_malformed_and_every_checksum_is_right(self, result: tuple[Run, Path]) -> None:
        _, directory = result
        for name in ("sender-0", "bottleneck-0"):
            file = directory / f"{name}.pcapng"
            faults = "_ws.malformed or ip.checksum.status == 0 or tcp.checksum.status == 0"
            assert self.count(file, f"{faults} or udp.checksum.status == 0") == 0
            assert self.count(file, "ip.checksum.status == 1") == self.count(file, "frame")

    def test_it_finds_what_was_sent_again(self, result: tuple[Run, Path]) -> None:
        done, directory = result
        file = directory / "sender-0.pcapng"
        truth = done.records["connections"].filter(replicate=0).row(0, named=True)
        again = self.count(file, "tcp.analysis.retransmission")
        reordered = self.count(file, "tcp.analysis.out_of_order")
        # Within 3 ms of what came before it takes a retransmission for a segment out of order.
        assert again + reordered == truth["retransmits"]
        sent = f"ip.src == 10.0.0.0 and ({DATA} or tcp.flags.syn == 1 or tcp.flags.fin == 1)"
        assert self.count(file, sent) == truth["sent_segments"]

    def test_options_are_read(self, result: tuple[Run, Path]) -> None:
        _, directory = result
        file = directory / "sender-0.pcapng"
        assert self.count(file, "tcp.flags.syn == 1 and tcp.options.mss_val == 1460") == 2
        assert self.count(file, "tcp.flags.syn == 1 and tcp.options.wscale and tcp.options.sack_perm") == 2
        assert self.count(file, "tcp.options.sack") > 10
        assert self.count(file, "tcp.options.timestamp.tsval") == self.count(file, "tcp")

    def test_pause_and_notifications_are_frames(self, tmp_path: Path) -> None:
        from weirlab.scenario import load

        scenario = load(
            "bcn-pause",
            assign={
                "measure": {},
                "run.duration": "3 ms",
                "record.wire": {"frames": ["cs->es-*", "es-0->ep-0"], "as": "pcapng"},
            },
        )
        done = run(scenario)
        done.save(tmp_path)
        file = tmp_path / "wire-0.pcapng"
        captured = pl.col("port_name").str.starts_with("cs->") | (pl.col("port_name") == "es-0->ep-0")
        frames = done.records.named("ports").filter(captured).get_column("frames").sum()
        assert self.count(file, "frame") == frames
        assert self.count(file, "_ws.malformed") == 0
        pauses = done.records.named("control_frames").filter(
            captured, pl.col("kind_name").is_in(["xoff", "xon"])
        )
        assert self.count(file, "macc.opcode == 0x0001") == pauses.get_column("frames").sum() > 0
        assert self.count(file, "eth.type == 0x88b5") > 0


def test_a_receiver_that_reads_slowly_is_found_and_no_loss_is(tmp_path: Path) -> None:
    text = """\
weirlab: 1
name: slow
network: {kind: path, ends: [a, b], link: {rate: 100 Mbit/s, delay: 10 ms}}
traffic:
  bulk:
    from: a
    to: b
    source: {kind: bulk}
    transport:
      {kind: tcp, congestion_control: cubic, window: 256 KiB,
       reading: {rate: 20 Mbit/s, pauses: [{start: 3 s, stop: 5 s}]}}
run: {duration: 8 s}
record: {seen: {frames: [a->b, b->a], as: pcapng}}
"""
    done = run(loads(text))
    done.save(tmp_path)
    row = done.records["connections"].row(0, named=True)
    # Two of eight seconds are a pause; what the buffer held was delivered before it was read.
    read = 20e6 / 8 * 6
    assert read - 50_000 <= row["delivered_bytes"] <= read + (256 << 10)
    assert min(row["window_closures"], row["window_probes"]) >= 1
    assert row["retransmits"] == 0
    found = {finding.kind for finding in diagnose(read_trace(tmp_path / "seen-0.pcapng"))}
    assert "slow-reader" in found
    assert not found & {"lossy-path", "queue-overflow", "window-limited", "timeouts"}


def test_what_the_receiver_tells_to_have_arrived_twice_stands_in_the_capture(tmp_path: Path) -> None:
    text = """\
weirlab: 1
name: twice
network: {kind: path, ends: [a, b], link: {rate: 50 Mbit/s, delay: 10 ms, loss: {kind: random, ratio: 2 %}}}
traffic:
  bulk:
    {from: a, to: b, source: {kind: bulk, size: 20 kB}, streams: 60,
     transport: {kind: tcp, loss_marking: rack-tlp, congestion_control: reno}}
run: {duration: 20 s}
record: {seen: {frames: [a->b, b->a], as: pcapng}}
"""
    done = run(loads(text))
    done.save(tmp_path)
    totals = done.records["connections"].select("duplicates_told", "duplicate_segments").sum().row(0)
    seen = read_trace(tmp_path / "seen-0.pcapng").flows().get_column("dsacks_for_this").sum()
    # Each second copy is told of at once; what tells of it may be lost.
    assert 0 < totals[0] <= seen == totals[1]
