"""Senders and receivers whose behaviour is known. Needs the standard library alone: it runs in namespaces.

    python programs.py receive PORT '{"rcvbuf": 40000}'
    python programs.py send HOST PORT '{"cc": "reno", "seconds": 8}'

The sender ends by printing what its kernel says of the connection, as JSON.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from typing import Any

MAX_PACING_RATE = 47
BLOCK = 1 << 16
_WORDS = ("snd_mss", "rtt", "snd_cwnd", "reordering", "total_retrans", "min_rtt", "dsack_dups")
_PLACES = (16, 68, 80, 88, 100, 148, 216)
_LONG = ("busy_us", "window_limited_us", "buffer_limited_us")
_LONG_PLACES = (168, 176, 184)


def told(connection: socket.socket) -> dict[str, int]:
    """`tcp_info`: what limited the sender, for how long [us]. Source: Linux, include/uapi/linux/tcp.h."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    found = {name: struct.unpack_from("=I", raw, at)[0] for name, at in zip(_WORDS, _PLACES, strict=True)}
    for name, at in zip(_LONG, _LONG_PLACES, strict=True):
        (found[name],) = struct.unpack_from("=Q", raw, at)
    return found


def send(host: str, port: int, options: dict[str, Any]) -> None:
    """One connection: as fast as it can, or a chunk now and then, for a time or up to a size."""
    connection = socket.socket()
    if "sndbuf" not in options:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.get("cc", "cubic").encode())
    else:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options["sndbuf"])
    if "pace_bps" in options:
        connection.setsockopt(socket.SOL_SOCKET, MAX_PACING_RATE, round(options["pace_bps"] / 8))
    if "every_s" in options:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(100):
        try:
            connection.connect((host, port))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    # Linux 6.18 lets a sender that never paced exceed its send buffer several times over a device like ours.
    if "sndbuf" in options:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.get("cc", "cubic").encode())
    began = time.monotonic()
    end, left = began + options.get("seconds", 3600.0), options.get("bytes", 1 << 62)
    size, every_s = options.get("chunk", BLOCK), options.get("every_s")
    sent, slept_s, block = 0, 0.0, bytes(max(size, BLOCK))
    while left > 0 and (now := time.monotonic()) < end:
        if every_s is not None:
            due = began + sent * every_s
            if due > now:
                time.sleep(min(due, end) - now)
                slept_s += time.monotonic() - now
                if time.monotonic() >= end:
                    break
            sent += 1
        part = min(size, left)
        connection.sendall(memoryview(block)[:part])
        left -= part
    took_s = time.monotonic() - began
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(BLOCK):
        pass
    sys.stdout.write(json.dumps({**told(connection), "took_s": took_s, "slept_s": slept_s}) + "\n")


def receive(port: int, options: dict[str, Any]) -> None:
    """One connection: read at once, at a rate, or with pauses: pairs of a time since the first byte and a
    length."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if "rcvbuf" in options:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["rcvbuf"])
    server.bind(("", port))
    server.listen(1)
    connection, _ = server.accept()
    server.close()
    began, taken = time.monotonic(), 0
    rate, pauses = options.get("read_bps"), [tuple(pause) for pause in options.get("pauses", ())]
    block = options.get("read_block", BLOCK)
    while data := connection.recv(block):
        taken += len(data)
        now = time.monotonic()
        if pauses and now >= began + pauses[0][0]:
            time.sleep(pauses.pop(0)[1])
        if rate is not None:
            wait_s = began + taken * 8 / rate - now
            if wait_s > 0:
                time.sleep(wait_s)
    connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
    else:
        receive(int(sys.argv[2]), json.loads(sys.argv[3]))
