"""What `tc netem` is told of a path, and what it is not asked for."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from weirlab.cli.app import execute
from weirlab.errors import InputError, MissingCapability, TestbedError
from weirlab.scenario import loads
from weirlab.scenario.network.path import PathPlan, path_plan
from weirlab.testbed import netem
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.netem import KernelPath, netem_arguments, netem_refusals

FILE = """weirlab: 1
name: wan
testbed:
  kind: netns
  hops:
    wan: {forward: {LINE}, backward: {delay: 1 ms}}
"""


def plan_of(line: str) -> PathPlan:
    plan = path_plan(loads(FILE.replace("LINE", line)))
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("line", "sends", "delays"),
    [
        ("delay: 82.5 ms", "limit 1000000", "delay 82500us limit 1000000"),
        ("rate: 30 Mbit/s", "rate 30000000bit -14 limit 1000000", "limit 1000000"),
        # Of an Ethernet frame and what surrounds it netem counts the header, the rest is told.
        ("rate: 30 Mbit/s, framing: 38 B", "rate 30000000bit 24 limit 1000000", "limit 1000000"),
        ("rate: 1 Mbit/s, buffer: 40 frames", "rate 1000000bit -14 limit 41", "limit 1000000"),
        ("loss: 0.015 %", "loss random 0.015% limit 1000000", "limit 1000000"),
        (
            "bursts: {to_bad: 0.1 %, to_good: 10 %, loss_good: 0.01 %, loss_bad: 90 %}",
            "loss gemodel 0.1% 10% 90% 0.01% limit 1000000",
            "limit 1000000",
        ),
        ("duplicate: 1 %", "duplicate 1% limit 1000000", "limit 1000000"),
        (
            "delay: 10 ms, jitter: {size: 4 ms, keeps_order: false}",
            "limit 1000000",
            "delay 12000us 2000us limit 1000000",
        ),
    ],
)
def test_a_direction_becomes_two_queues(line: str, sends: str, delays: str) -> None:
    plan = plan_of(line)
    assert netem_refusals(plan) == []
    told = netem_arguments(plan.hops["wan"].forward)
    assert [" ".join(words) for words in told] == [sends, delays]


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("steps: [{at: 0 s, rate: 1 Mbit/s}]", "steps: the rate of netem does not change by itself"),
        ("rate: 1 Mbit/s, lanes: 2", "lanes: netem has one transmitter"),
        ("rate: 1 Mbit/s, queue: {kind: codel}", "queue: the rate of netem has its own queue"),
        ("rate: 1 Mbit/s, buffer: 60 kB", "buffer: netem counts packets; write it in frames (got 60 kB)"),
        ("jitter: {size: 1 ms}", "jitter.keeps_order: packets of netem overtake each other"),
        (
            "jitter: {size: 1 ms, distribution: exponential, keeps_order: false}",
            "jitter.distribution: netem knows 'uniform' (got 'exponential')",
        ),
        ("reorder: {share: 1 %, later: 1 ms}", "reorder: netem sends some packets earlier, not later"),
    ],
)
def test_what_netem_cannot_do_is_refused_with_its_place(line: str, refusal: str) -> None:
    (told,) = netem_refusals(plan_of(line))
    assert told.startswith(f"testbed.hops.wan.forward.{refusal}")
    with pytest.raises(InputError, match=r"testbed\.hops\.wan\.forward"):
        KernelPath(plan_of(line))


@pytest.mark.parametrize("option", ["--single", "--no-real-time"])
def test_options_of_our_own_emulator_are_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wan.yaml"
    file.write_text(FILE.replace("LINE", "delay: 5 ms"))
    assert execute(["emulate", str(file), "--with", "netem", option, "--", "true"]) == 2
    assert f"{option}: no packet of netem passes a program of ours" in capsys.readouterr().err


@pytest.mark.live
def test_a_kernel_without_netem_is_told_of_and_one_with_it_is_used() -> None:
    plan = plan_of("delay: 5 ms")
    try:
        place = Namespace()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    try:
        place.inside(lambda: netem._add_netem("lo", ["delay", "1ms"]))
        has = True
    except TestbedError:
        has = False
    finally:
        place.close()
    if not has:
        with pytest.raises(MissingCapability, match=r"this kernel has no netem .*CONFIG_NET_SCH_NETEM"):
            KernelPath(plan)
        return
    with KernelPath(plan) as path:
        (row,) = [row for row in path.close_kernel().queues if row["direction"] == "forward"][1:]
    assert row["does"] == "delays"


EVERYTHING = [
    "delay: 82.5 ms",
    "rate: 30 Mbit/s",
    "rate: 30 Mbit/s, framing: 38 B, buffer: 40 frames, loss: 0.015 %, duplicate: 1 %",
    "bursts: {to_bad: 0.1 %, to_good: 10 %, loss_good: 0.01 %, loss_bad: 90 %}",
    "delay: 10 ms, jitter: {size: 4 ms, keeps_order: false}",
    "rate: 1 bit/s",
    "rate: 400 Gbit/s, delay: 1 ps, loss: 1e-9",
]


@pytest.mark.live
@pytest.mark.parametrize("line", EVERYTHING)
def test_tc_understands_every_word_that_it_is_told(line: str) -> None:
    """The program reads all words before it asks the kernel: one without netem refuses the kind alone."""
    try:
        place = Namespace()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    refusals = set()
    with contextlib.closing(place):
        for words in netem_arguments(plan_of(line).hops["wan"].forward):
            try:
                place.inside(functools.partial(netem._add_netem, "lo", words))
            except MissingCapability as lack:
                pytest.skip(str(lack))
            except TestbedError as refusal:
                refusals.add(str(refusal))
        assert refusals <= {"Error: Specified qdisc kind is unknown."}
        # So that the test can fail: a word that is none is refused by the program, whatever the kernel has.
        with pytest.raises(TestbedError, match=r"What is \"nonsense\"\?"):
            place.inside(lambda: netem._add_netem("lo", ["delay", "1ms", "nonsense"]))


@pytest.mark.live
def test_packets_cross_the_bridges_that_stand_in_for_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    """With queues of another kind in the place of netem, which not every kernel has."""
    told: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(netem, "_try_netem", lambda where: None)
    monkeypatch.setattr(netem, "_add_netem", lambda device, words: told.append((device, list(words))))
    text = FILE.replace("LINE", "delay: 5 ms") + "    next: {forward: {rate: 1 Mbit/s}}\n"
    plan = path_plan(loads(text))
    assert plan is not None
    try:
        path = KernelPath(plan)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    ping = ["ping", "-c", "2", "-i", "0.2", "-W", "2", path.far_address]
    with path:
        run = functools.partial(subprocess.run, ping, capture_output=True, text=True, timeout=20, check=False)
        answer = path.near.inside(run)
    assert " 0% packet loss" in answer.stdout, answer.stdout + answer.stderr
    assert [device for device, _ in told] == ["onward", "far", "back", "near"] * 2
    assert told[1][1] == ["delay", "5000us", "limit", "1000000"]


@pytest.mark.live
def test_what_the_queue_of_a_hop_throws_away_is_a_loss_for_tcp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a program itself sends, TCP is told of a full queue, and sends nothing again. A token bucket,
    which more kernels have, stands in for netem.
    """

    def stand_in(device: str, words: list[str]) -> None:
        if "rate" in words:
            bucket = ["tbf", "rate", "20mbit", "burst", "3000", "limit", "15000"]
            netem._tc(["qdisc", "replace", "dev", device, "root", *bucket])

    monkeypatch.setattr(netem, "_try_netem", lambda where: None)
    monkeypatch.setattr(netem, "_add_netem", stand_in)
    plan = plan_of("rate: 20 Mbit/s, buffer: 10 frames")
    try:
        path = KernelPath(plan)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    except TestbedError as refusal:
        pytest.skip(f"no token bucket: {refusal}")
    content = bytes(3_000_000)
    with path:
        listening = path.far.inside(lambda: socket.create_server((path.far_address, 0)))
        sending = path.near.inside(lambda: socket.create_connection(listening.getsockname(), timeout=20))
        received, _ = listening.accept()
        with listening, sending, received:
            thread = threading.Thread(target=sending.sendall, args=(content,), daemon=True)
            thread.start()
            received.settimeout(20)
            left = len(content)
            while left:
                left -= len(received.recv(min(left, 65_536)))
            thread.join(20)
            (sent_again,) = struct.unpack_from(
                "I", sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100
            )
        (queue,) = path._bridges[0].inside(
            lambda: json.loads(netem._tc(["-s", "-j", "qdisc", "show", "dev", "onward"]))
        )
    assert queue["drops"] > 0
    # A probe at the tail or a response to a needless timeout may add a few.
    assert sent_again >= queue["drops"]
