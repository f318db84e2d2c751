"""Rapid over UDP: between processes, over an emulated path, and in front of strangers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import polars as pl
import pytest

from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.path import EmulatedPath
from weirlab.testbed.rapid import Settings, make_key, read_key, send, serve

pytestmark = pytest.mark.live

BOTTLENECK = """
weirlab: 1
name: bottleneck
testbed:
  kind: netns
  hops:
    bottleneck:
      forward:
        rate: 200 Mbit/s
        delay: 0.5 ms
        buffer: 300 frames
        cross: {udp: {source: {kind: constant, rate: 60 Mbit/s, frame_size: 1500 B}}}
      backward: {rate: 200 Mbit/s, delay: 0.5 ms}
"""
CAPACITY_BPS, CROSS_BPS = 200e6, 60e6
PAYLOAD_SHARE = 1430 / 1500
DURATION_S = 5.0


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "rapid.key"
    make_key(path)
    return path


class Receiver:
    """`serve` in a thread of this process, at a free port of the loopback."""

    def __init__(self, secret, **options):
        self.events, self._stop = [], threading.Event()
        self._listens = threading.Event()
        bind = options.pop("bind", "127.0.0.1")
        self._options = {"watch": self._watch, "real_time": False, **options}
        self._thread = threading.Thread(target=self._run, args=(bind, secret), daemon=True)
        self.counts, self.failure = None, None

    def _run(self, bind, secret):
        try:
            self.counts = serve(bind, 0, secret, **self._options)
        except Exception as error:
            self.failure = error
        finally:
            self._listens.set()

    def _watch(self, events):
        self.events += events
        if events:
            self._listens.set()
        return self._stop.is_set()

    def __enter__(self):
        self._thread.start()
        assert self._listens.wait(20)
        assert self.failure is None, self.failure
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()

    @property
    def port(self):
        return int(self.events[0]["address"].rpartition(":")[2])

    def happened(self, what):
        return [event for event in self.events if event["what"] == what]


def short(**changes):
    return Settings(**{"link": "50 Mbit/s", "duration": "0.5 s", "around": 0, "real_time": False, **changes})


def keep_on(*_):
    return False


def over_the_bottleneck(key, tmp_path, variant, *more):
    """The result of a transfer over the path of the acceptance, and what the path counted."""
    cpus = sorted(os.sched_getaffinity(0))
    try:
        path = EmulatedPath(path_plan(loads(BOTTLENECK)), cpu=cpus[-1])
    except MissingCapability as lack:
        pytest.skip(str(lack))
    weir = [sys.executable, "-m", "weirlab", "rapid"]
    out = tmp_path / variant
    with path, contextlib.ExitStack() as stack:
        serving = path.far.inside(
            lambda: subprocess.Popen(
                [*weir, "serve", "--key", key, "--once", "--json"],
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        stack.callback(serving.communicate)
        stack.callback(serving.kill)
        listening = json.loads(serving.stdout.readline())
        if not listening["real_time"]:
            pytest.skip("needs real-time priority: gaps of an ordinary process are no evidence")
        command = [*weir, "send", path.far_address, "--key", key, "--link", "200 Mbit/s", "--around", "0"]
        command += ["--duration", f"{DURATION_S} s", "--variant", variant, "--cpu", str(cpus[0])]
        sent = path.near.inside(
            lambda: subprocess.run(
                [*command, "--out", out, "--json", *more],
                capture_output=True,
                text=True,
                timeout=60,
                start_new_session=True,
                check=False,
            )
        )
        report = path.close()
    assert sent.returncode == 0, sent.stderr
    return json.loads(sent.stdout), report, out


def on_a_calm_machine(key, tmp_path, variant, came_through):
    """The first of four transfers that `came_through`. Other work on the machine delays packets: where the
    gaps of the better Rapid are not kept either, nothing is to be judged."""
    for attempt in range(4):
        found, report, out = over_the_bottleneck(key, tmp_path / str(attempt), variant)
        both_ends_and_the_path_count_alike(found, report)
        if came_through(found):
            return found, report, out
    gaps = found["gaps"] if variant == "better" else over_the_bottleneck(key, tmp_path, "better")[0]["gaps"]
    kept = gaps["within_a_quarter"] / gaps["count"]
    if kept < 0.97:
        pytest.skip(f"this machine keeps {kept:.1%} of the gaps within a quarter; 97 % are needed to judge")
    return found, report, out


def test_the_better_rapid_takes_what_is_left_without_losses(key, tmp_path):
    found, _, out = on_a_calm_machine(
        key, tmp_path, "better", lambda found: found["streams"]["intact_share"] >= 0.95
    )
    assert found["streams"]["intact_share"] >= 0.95, found["gaps"]
    assert found["loss_events"] <= 1
    left = (CAPACITY_BPS - CROSS_BPS) * PAYLOAD_SHARE
    assert 100e6 <= found["settled_goodput_bps"] <= left * 1.005
    assert found["streams"]["available_p50_bps"] == pytest.approx(CAPACITY_BPS - CROSS_BPS, rel=0.15)
    gaps = pl.read_parquet(out / "tables" / "gaps.parquet")
    assert abs(gaps.filter(pl.col("quantile") == 0.5)["error_s"].item()) < 5e-6


def both_ends_and_the_path_count_alike(found, report):
    way = report.lines[0]
    assert found["receiver"]["delivered_bytes"] == found["counts"]["acked_bytes"]
    assert found["receiver"]["segments"] <= found["counts"]["segments"]
    handshake_and_farewell = 4
    assert 0 < way.counts["arrived"] - found["counts"]["segments"] <= handshake_and_farewell
    assert way.counts["dropped"] == found["counts"]["segments"] - found["receiver"]["segments"]


def test_the_flawed_rapid_is_blind_overestimates_and_falls_into_recovery(key, tmp_path):
    # Whether ramps are lost distinguishes the variants: from .95 on the better one passes. How many are lost
    # depends on the machine: .70 to .92 were intact with three builds in turn, .999 of the better one.
    def came_through(found):
        return found["streams"]["excursion_share"] < 0.1 and found["streams"]["intact_share"] < 0.95

    found, report, out = on_a_calm_machine(key, tmp_path, "flawed", came_through)
    streams = found["streams"]
    assert streams["intact_share"] < 0.95, "finding I: ramps are lost"
    assert streams["excursion_share"] < 0.1, "finding II: no excursion is seen"
    assert streams["available_p50_bps"] >= 0.95 * CAPACITY_BPS, "and the estimate is the rate of the link"
    assert found["loss_events"] >= 3, "finding III: recovery follows recovery"
    assert report.lines[0].counts["dropped"] > 0
    losses = pl.read_parquet(out / "tables" / "losses.parquet")
    assert len(losses) == found["loss_events"]
    assert set(losses["cause"]) <= {"recovery", "timeout"}


def test_a_transfer_over_the_loopback_counts_alike_at_both_ends(key):
    secret = read_key(key)
    with Receiver(secret) as receiver:
        transfer = send(
            "127.0.0.1", receiver.port, secret, short(packets=True, duration="1 s"), watch=keep_on
        )
    assert transfer.ending == "complete"
    counts, far = transfer.facts["counts"], transfer.facts["receiver"]
    assert far["delivered_bytes"] == counts["acked_bytes"] > 0
    assert receiver.counts["sessions"] == 1
    (ended,) = receiver.happened("ended")
    assert (ended["end"], ended["counts"]["delivered_bytes"]) == ("closed", far["delivered_bytes"])
    rates, packets = transfer.tables["rates"], transfer.tables["packets"]
    assert rates["acked_bytes"].sum() == counts["acked_bytes"]
    assert rates["retransmits"].sum() == counts["retransmits"]
    whole = packets.filter(pl.col("received_s").is_not_null())
    # Both clocks are of one machine, but count from different times.
    delays = whole["received_s"] - whole["left_s"]
    assert len(whole) >= 80
    assert delays.max() - delays.min() < 0.5


def test_ipv6_works_as_ipv4_does(key):
    secret = read_key(key)
    try:
        receiver = Receiver(secret, bind="::1").__enter__()
    except AssertionError:
        pytest.skip("this machine has no IPv6")
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.push(receiver)
        transfer = send("::1", receiver.port, secret, short(), watch=keep_on, family="ipv6")
    assert transfer.ending == "complete"
    assert transfer.facts["receiver"]["delivered_bytes"] > 0


def test_a_wrong_key_is_not_answered(key, tmp_path):
    other = tmp_path / "other.key"
    make_key(other)
    with Receiver(read_key(key)) as receiver, pytest.raises(TestbedError, match="with the same key"):
        send("127.0.0.1", receiver.port, read_key(other), short(), watch=keep_on)
    assert receiver.counts["sessions"] == 0
    assert receiver.counts["strangers"] > 0


def test_nobody_there_is_told_as_that(key):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(TestbedError, match="nobody listens there"):
        send("127.0.0.1", port, read_key(key), short(), watch=keep_on)


def test_strangers_hear_nothing_and_do_not_disturb_a_transfer(key):
    secret = read_key(key)
    with Receiver(secret) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.connect(("127.0.0.1", receiver.port))
        stranger.setblocking(False)
        stopped, heard = threading.Event(), []

        def disturb():
            kinds = [b"\xb1" + bytes([kind]) for kind in range(12)]
            while not stopped.is_set():
                for kind in kinds:
                    for length in (0, 2, 40, 126, 254, 1470, 9000):
                        with contextlib.suppress(OSError):
                            stranger.send(kind + os.urandom(length))
                with contextlib.suppress(BlockingIOError):
                    heard.append(stranger.recv(2048))
                time.sleep(0.001)

        noise = threading.Thread(target=disturb)
        noise.start()
        try:
            transfer = send("127.0.0.1", receiver.port, secret, short(), watch=keep_on)
        finally:
            stopped.set()
            noise.join()
    assert transfer.ending == "complete"
    assert heard == []
    assert receiver.counts["strangers"] > 100
    assert receiver.counts["sessions"] == 1


def test_one_session_too_many_is_refused_and_a_session_too_long_as_well(key):
    secret = read_key(key)
    with Receiver(secret, most_sessions=1, longest_s=5.0) as receiver:
        with pytest.raises(TestbedError, match="longer than it allows"):
            send("127.0.0.1", receiver.port, secret, short(duration="6 s"), watch=keep_on)
        refused = []

        def second(_, acknowledged_bytes, __):
            if acknowledged_bytes and not refused:  # the first is open
                refused.append(None)
                try:
                    send("127.0.0.1", receiver.port, secret, short(), watch=keep_on)
                except TestbedError as error:
                    refused.append(str(error))
            return False

        send("127.0.0.1", receiver.port, secret, short(duration="1 s"), watch=second)
    assert "as many sessions as it takes" in refused[1]
    assert [event["reason"] for event in receiver.happened("refused")] == ["too-long", "busy"]


def test_a_receiver_that_ends_tells_its_senders(key):
    secret = read_key(key)
    with Receiver(secret) as receiver:

        def stop_the_receiver(*_):
            receiver._stop.set()
            return False

        transfer = send("127.0.0.1", receiver.port, secret, short(duration="20 s"), watch=stop_the_receiver)
    assert transfer.ending == "hung-up"
    assert receiver.happened("ended")[0]["end"] == "ended"


def test_more_than_a_session_may_bring_ends_it(key):
    secret = read_key(key)
    with Receiver(secret, most_bytes=100_000) as receiver:
        transfer = send("127.0.0.1", receiver.port, secret, short(duration="20 s"), watch=keep_on)
    assert transfer.ending == "hung-up"
    assert receiver.happened("ended")[0]["end"] == "too-much"


def weir_process(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "weirlab", "rapid", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def test_ctrl_c_ends_both_ends_cleanly_and_keeps_what_was_measured(key, tmp_path):
    serving = weir_process("serve", "--key", key, "--bind", "127.0.0.1", "--port", "38642", "--json")
    sending = None
    try:
        assert json.loads(serving.stdout.readline())["what"] == "listening"
        out = tmp_path / "kept"
        sending = weir_process(
            *("send", "127.0.0.1", "--key", key, "--port", "38642", "--link", "20 Mbit/s"),
            *("--duration", "60 s", "--out", out, "--json", "--report"),
        )
        assert json.loads(serving.stdout.readline())["what"] == "opened"
        time.sleep(1.0)
        sending.send_signal(signal.SIGINT)
        told, said = sending.communicate(timeout=30)
        assert sending.returncode == 130, said
        document = json.loads(told)
        assert document["ending"] == "interrupted"
        assert document["receiver"]["delivered_bytes"] > 0
        assert json.loads((out / "manifest.json").read_text())["status"] == "interrupted"
        assert "the work was interrupted" in (out / "report.html").read_text()
        assert json.loads(serving.stdout.readline())["end"] == "closed"
        serving.send_signal(signal.SIGINT)
        told, said = serving.communicate(timeout=30)
        assert (serving.returncode, json.loads(told)["sessions"]) == (0, 1), said
    finally:
        for process in (serving, sending):
            if process is not None and process.poll() is None:
                process.kill()
                process.communicate()


def recorded_greeting(secret):
    """What a sender says first, whom nobody answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(20)

        def ask():
            with contextlib.suppress(TestbedError):
                send("127.0.0.1", listener.getsockname()[1], secret, short(), watch=keep_on)

        sender = threading.Thread(target=ask, daemon=True)
        sender.start()
        greeting = listener.recv(2048)
    sender.join(20)  # nobody listens any more
    return greeting


def test_a_recorded_greeting_that_comes_all_the_time_keeps_nobody_out(key):
    secret = read_key(key)
    greeting, over = recorded_greeting(secret), threading.Event()
    with Receiver(secret) as receiver:

        def replay():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as replayer:
                replayer.connect(("127.0.0.1", receiver.port))
                while not over.is_set():
                    for _ in range(100):
                        replayer.send(greeting)
                    time.sleep(0.002)

        thread = threading.Thread(target=replay, daemon=True)
        thread.start()
        try:
            endings = [
                send("127.0.0.1", receiver.port, secret, short(duration="0.2 s"), watch=keep_on).ending
                for _ in range(3)
            ]
        finally:
            over.set()
            thread.join(20)
    assert endings == ["complete"] * 3
    assert receiver.counts["replayed"] > 400, "more than are answered of different ones"
    assert receiver.counts["unanswered"] == 0
