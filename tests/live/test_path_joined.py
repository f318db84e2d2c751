"""Emulated paths whose devices give packets joined: the models see segments, receivers what was sent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from weirlab import _core
from weirlab.errors import MissingCapability
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.path import EmulatedPath

pytestmark = pytest.mark.live

PATH = """
weirlab: 1
name: joined
testbed:
  kind: netns
  hops: {HOPS}
"""
FREE = "one: {forward: {delay: 2 ms}}"
LOSSY = "one: {forward: {delay: 2 ms, loss: 0.1 %}, backward: {delay: 2 ms}}"
MIXED = """
    one:
      forward: {delay: 1 ms, duplicate: 0.1 %, reorder: {share: 0.1 %, later: 1 ms}}
      backward: {delay: 1 ms}
    two: {forward: {rate: 200 Mbit/s, delay: 1 ms, buffer: 60 kB}}
"""
UDP_SEGMENT = 103
MTU_BYTES = 1500


@pytest.fixture
def path_of():
    made = []

    def make(hops, **options):
        try:
            made.append(EmulatedPath(path_plan(loads(PATH.replace("{HOPS}", "\n    " + hops))), **options))
        except MissingCapability as lack:
            pytest.skip(str(lack))
        if options.get("joined", "joined: false" not in hops) and not made[-1].joined:
            pytest.skip("this kernel joins no packets")
        return made[-1]

    yield make
    for path in made:
        path.close()


def socket_in(namespace, family, kind):
    made = namespace.inside(lambda: socket.socket(family, kind))
    made.settimeout(20.0)
    return made


def transferred(path, family, content):
    """The digest of what arrives of `content` over one connection."""
    address = path.far_address if family == socket.AF_INET else path.far_address6

    def received(listener):
        connection, _ = listener.accept()
        connection.settimeout(20.0)
        digest = hashlib.sha256()
        with connection:
            while part := connection.recv(1 << 20):
                digest.update(part)
        return digest.hexdigest()

    with (
        socket_in(path.far, family, socket.SOCK_STREAM) as listener,
        socket_in(path.near, family, socket.SOCK_STREAM) as sender,
        ThreadPoolExecutor(1) as pool,
    ):
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        listener.bind((address, 0))
        listener.listen(1)
        result = pool.submit(received, listener)
        sender.connect(listener.getsockname())
        sender.sendall(content)
        sender.shutdown(socket.SHUT_WR)
        return result.result(30.0)


def checksum_errors(namespace):
    """Packets that the stack of a namespace threw away for their checksum."""

    def read():
        command = ["cat", "/proc/net/snmp", "/proc/net/snmp6"]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout

    text = namespace.inside(read)
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("Tcp:"))
    tcp = int(dict(zip(names, values, strict=True))["InCsumErrors"])
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("Udp:"))
    udp = int(dict(zip(names, values, strict=True))["InCsumErrors"])
    return tcp + udp + sum(map(int, re.findall(r"InCsumErrors\s+(\d+)", text)))


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("hops", [FREE, LOSSY, MIXED], ids=["free", "lossy", "chain"])
def test_what_was_sent_arrives_and_no_checksum_is_wrong(path_of, hops, family):
    content = np.random.default_rng(1).bytes(20_000_000)
    path = path_of(hops, seed=2, ipv6=True)
    assert transferred(path, family, content) == hashlib.sha256(content).hexdigest()
    assert [checksum_errors(end) for end in (path.near, path.far, *path.routers)] == [0] * (
        2 + len(path.routers)
    )
    counts = path.close().lines[0].counts
    assert counts["refused"] == 0
    # 20 MB in segments that fit into packets of 1500 bytes.
    assert counts["arrived"] >= len(content) / (MTU_BYTES - 40)


@pytest.mark.parametrize("hops", [FREE, LOSSY, MIXED], ids=["free", "lossy", "chain"])
def test_the_models_see_segments_and_repeat_what_they_did(path_of, hops):
    content = bytes(4_000_000)
    path = path_of(hops, seed=2, record=100_000)
    transferred(path, socket.AF_INET, content)
    for way in path.close().lines:
        record = way.record
        assert len(record["t_ps"]) == way.counts["arrived"] > 10
        assert record["size_bytes"].max() <= MTU_BYTES
        columns = {name: record[name] for name in ("t_ps", "size_bytes", "flow", "ecn")}
        again = _core.replay_line(way.line, seed=2, name=way.name, **columns, until_ps=record["until_ps"])
        for what in ("departed", "departed_ps", "dropped", "lost"):
            np.testing.assert_array_equal(record[what], again[what])


def test_datagrams_given_to_the_kernel_together_arrive_one_by_one(path_of):
    path = path_of(FREE)
    payload = [bytes([i]) * 1000 for i in range(20)] + [b"end"]
    with (
        socket_in(path.far, socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket_in(path.near, socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind((path.far_address, 0))
        sender.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
        sender.sendto(b"".join(payload), receiver.getsockname())
        received = [receiver.recv(65_536) for _ in payload]
    assert received == payload
    assert checksum_errors(path.far) == 0
    report = path.close()
    assert report.lines[0].counts["arrived"] == report.lines[0].counts["left"] == len(payload)


@pytest.mark.parametrize(("hops", "options"), [(FREE, {"joined": False}), (FREE + "\n  joined: false", {})])
def test_a_path_of_single_packets_says_so(path_of, hops, options):
    path = path_of(hops, **options)
    content = bytes(1_000_000)
    assert transferred(path, socket.AF_INET, content) == hashlib.sha256(content).hexdigest()
    report = path.close()
    assert report.joined == ()
    assert json.loads(json.dumps(report.as_json()))["joined"] == []


@pytest.mark.parametrize(
    "line",
    [
        "{delay: 2 ms, loss: 20 %, duplicate: 10 %}",
        "{rate: 1 Mbit/s, delay: 2 ms, buffer: 20 kB, loss: 10 %}",
    ],
    ids=["chance", "queue"],
)
def test_joined_or_not_the_same_datagrams_are_lost_dropped_doubled_and_as_late(path_of, line):
    """40 datagrams given to the kernel together come to the model one by one either way."""
    found = []
    for joined in (True, False):
        path = path_of(f"one: {{forward: {line}}}", seed=7, record=1000, joined=joined)
        if joined and "udp" not in path.joined:
            pytest.skip("this kernel joins no datagrams")
        with (
            socket_in(path.far, socket.AF_INET, socket.SOCK_DGRAM) as receiver,
            socket_in(path.near, socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            receiver.bind((path.far_address, 0))
            sender.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
            sender.sendto(b"".join(bytes([i]) * 1000 for i in range(40)), receiver.getsockname())
            receiver.settimeout(1.0)
            came = []
            with contextlib.suppress(TimeoutError):
                while True:
                    came.append(receiver.recv(2000))
        way = path.close().lines[0]
        assert way.counts["whole"] == 0
        record = way.record
        # What waits leaves at times that follow from the first; what does not, from its own arrival.
        since = record["t_ps"][record["departed"]] if "rate" not in line else record["t_ps"][0]
        counts = {name: way.counts[name] for name in ("arrived", "lost", "dropped", "duplicated", "left")}
        columns = [record[name].tolist() for name in ("size_bytes", "departed", "dropped", "lost")]
        found.append((counts, columns, (record["departed_ps"] - since).tolist(), came))
    assert found[0] == found[1]
    assert found[0][0]["arrived"] == 40 > found[0][0]["left"]
