"""Captures of Linux TCP through a router that drops: sender, receiver and tshark agree on what was lost."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from agreement.test_tshark import agree
from weirlab.testbed.linux_router import RECEIVER
from weirlab.testbed.netns import NetnsTestbed
from weirlab.traces import Trace, diagnose, read_trace

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        any(shutil.which(tool) is None for tool in ("tshark", "tcpdump", "nsenter", "ethtool")),
        reason="needs tshark, tcpdump, nsenter and ethtool",
    ),
]

PORT = 5201
SECONDS = 1.5


def inside(bed: NetnsTestbed, role: str, *words: str) -> list[str]:
    """A command line that runs in a namespace."""
    return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{bed.namespaces[role].fd}", *words]


def shape(bed: NetnsTestbed) -> None:
    """Let the outgoing link of the router carry 20 Mbit/s with a queue of 8 ms behind bursts of 10 kB."""
    for role, link in (
        ("sender", "router"),
        ("router", "sender"),
        ("router", "receiver"),
        ("receiver", "router"),
    ):
        words = inside(bed, role, "ethtool", "-K", link, "tso", "off", "gso", "off", "gro", "off")
        subprocess.run(words, capture_output=True, timeout=10, check=True)

    def add() -> None:
        from pyroute2 import IPRoute

        with IPRoute() as route:
            (index,) = route.link_lookup(ifname="receiver")
            route.tc("add", "tbf", index, handle="1:", rate="20mbit", burst=10_000, latency="8ms")

    bed.namespaces["router"].inside(add)


def transfer(bed: NetnsTestbed) -> None:
    """One TCP connection that sends as fast as it can."""
    server = bed.namespaces["receiver"].inside(lambda: socket.create_server((RECEIVER, PORT)))
    client = bed.namespaces["sender"].inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))

    def swallow() -> None:
        connection, _ = server.accept()
        with connection:
            while connection.recv(1 << 16):
                pass

    with server, client:
        reader = threading.Thread(target=swallow)
        reader.start()
        client.settimeout(20)
        client.connect((RECEIVER, PORT))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            client.send(bytes(1 << 14))
        client.shutdown(socket.SHUT_WR)
        reader.join(30)


def captured(bed: NetnsTestbed, directory: Path) -> dict[str, Path]:
    """The transfer, as the sender and as the receiver saw it."""
    captures: dict[str, tuple[Path, subprocess.Popen[bytes]]] = {}
    for end in ("sender", "receiver"):
        file = directory / f"{end}.pcap"
        words = inside(bed, end, "tcpdump", "-i", "router", "-w", str(file))
        words += ["-s", "128", "-B", "16384", "-U", "-Z", "root", "--time-stamp-precision=nano", "tcp"]
        captures[end] = (file, subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True))
    try:
        time.sleep(1.0)
        transfer(bed)
        time.sleep(0.5)
    finally:
        for _, process in captures.values():
            process.send_signal(signal.SIGINT)
        for _, process in captures.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
    return {end: file for end, (file, _) in captures.items()}


def data(trace: Trace) -> dict[str, int]:
    return trace.flows().filter(pl.col("protocol") == 6).row(0, named=True)


def test_both_ends_and_tshark_agree_on_what_was_lost(bed: NetnsTestbed, tmp_path: Path) -> None:
    shape(bed)
    files = captured(bed, tmp_path)
    for file in files.values():
        agree(file)
    sender, receiver = (read_trace(files[end]) for end in ("sender", "receiver"))
    sent, received = data(sender), data(receiver)
    assert sent["retransmitted"] > 20
    assert sent["unseen_bytes"] == received["unseen_bytes"] == 0
    assert sent["new_bytes"] == received["new_bytes"]
    # What the router dropped is what the sender had to send again; nothing was sent for nothing.
    assert sent["data_packets"] - received["data_packets"] == sent["retransmitted"] - sent["spurious"]
    # 8 ms of data wait before anything is dropped, where the path itself takes 0.1 ms.
    found = {finding.kind: finding for finding in diagnose(sender)}
    assert "queue-overflow" in found
    assert "lossy-path" not in found
    assert found["queue-overflow"].values["queued_ms"] > 4
