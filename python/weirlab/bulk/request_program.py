"""Both ends of small requests, as a program of its own: standard library alone, so that it starts at once.

`serve` answers `GET` with one byte; `ask` opens a connection for each request and prints as JSON how long
handshakes and answers took. Neither ever waits for one connection while another has something to tell.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import selectors
import socket
import sys
import time
from typing import Any

__all__ = ["LISTENS", "MOST_WAITING", "main"]

LISTENS = "listening"
"""What `serve` says when it does."""
MOST_WAITING = 500
"""Connections that may be open at a time; both ends then stay below the usual 1024 files of a process."""
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n."
_LONGEST = 4096
"""Bytes of a request or an answer; who says more is left."""


def main(words: list[str] | None = None) -> int:
    """Run one end; the code to exit with."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    ends = parser.add_subparsers(dest="end", required=True)
    server, client = ends.add_parser("serve"), ends.add_parser("ask")
    for end in (server, client):
        end.add_argument("address")
        end.add_argument("port", type=int)
        end.add_argument("--timeout", type=float, required=True, help="of a connection, s")
    server.add_argument("--for", type=float, required=True, dest="seconds", help="how long to serve, s")
    client.add_argument("--count", type=int, required=True)
    client.add_argument("--every", type=float, required=True, help="s")
    given = parser.parse_args(words)
    try:
        if given.end == "serve":
            _serve(given.address, given.port, given.timeout, given.seconds)
        else:
            told = _ask((given.address, given.port), given.count, given.every, given.timeout)
            sys.stdout.write(json.dumps(told) + "\n")
    except OSError as error:
        sys.stdout.write(f"{given.address} port {given.port}: {error.strerror or error}\n")
        return 1
    return 0


def _serve(address: str, port: int, timeout_s: float, seconds: float) -> None:
    """Answer who asks, for so long."""
    selector = selectors.DefaultSelector()
    heard: dict[socket.socket, tuple[float, bytes]] = {}
    """When a connection is closed at the latest, and what it said."""

    def leave(connection: socket.socket) -> None:
        selector.unregister(connection)
        del heard[connection]
        connection.close()

    with socket.create_server((address, port), backlog=MOST_WAITING) as listener:
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ)
        sys.stdout.write(f"{LISTENS}\n")
        sys.stdout.flush()
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            for connection in [each for each, (until, _) in heard.items() if until <= now]:
                leave(connection)
            soonest = min((until for until, _ in heard.values()), default=end)
            for key, _ in selector.select(max(0.0, min(soonest, end) - now)):
                if key.fileobj is listener:
                    _accept(listener, selector, heard, time.monotonic() + timeout_s)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    if _answered(key.fileobj, heard):
                        leave(key.fileobj)
        for connection in list(heard):
            leave(connection)


def _accept(
    listener: socket.socket,
    selector: selectors.BaseSelector,
    heard: dict[socket.socket, tuple[float, bytes]],
    until: float,
) -> None:
    try:
        connection, _ = listener.accept()
    except (BlockingIOError, ConnectionError):
        return  # it has gone again
    if len(heard) >= MOST_WAITING:
        connection.close()
        return
    connection.setblocking(False)
    heard[connection] = (until, b"")
    selector.register(connection, selectors.EVENT_READ)


def _answered(connection: socket.socket, heard: dict[socket.socket, tuple[float, bytes]]) -> bool:
    """Read on; whether this connection is done with."""
    until, said = heard[connection]
    try:
        more = connection.recv(_LONGEST)
        said += more
        if said.startswith(b"GET ") and said.endswith(b"\r\n\r\n"):
            connection.send(_ANSWER)
            return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    heard[connection] = (until, said)
    return not more or len(said) >= _LONGEST


class _Asked:
    """A request on its way."""

    def __init__(self, goal: tuple[str, int], began: float) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.connected: float | None = None
        self.answered: float | None = None
        self._host, self._said = goal[0], b""
        self.began = time.monotonic()
        self.told = {"asked_s": self.began - began, "handshake_s": None, "answer_s": None}
        code = self.socket.connect_ex(goal)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))

    def ready(self, now: float) -> bool:
        """Go on; whether it is done with."""
        if self.connected is None:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == errno.ETIMEDOUT:
                return True
            if code:
                raise OSError(code, os.strerror(code))
            self.connected = now
            self.told["handshake_s"] = now - self.began
            self.socket.send(f"GET /small HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())
            return False
        try:
            more = self.socket.recv(_LONGEST)
        except BlockingIOError:
            return False
        except TimeoutError:
            return True
        self._said += more
        if self._said == _ANSWER:
            self.told["answer_s"] = now - self.connected
            return True
        if not more or not _ANSWER.startswith(self._said):
            raise OSError(errno.EPROTO, f"is no answer to a request: {self._said[:80]!r}")
        return False


def _ask(goal: tuple[str, int], count: int, every_s: float, timeout_s: float) -> list[dict[str, Any]]:
    """Ask at equal distances, whether answers come or not; what was told of each request."""
    selector = selectors.DefaultSelector()
    began = time.monotonic()
    asked: list[_Asked] = []
    waiting: dict[_Asked, None] = {}

    def leave(request: _Asked) -> None:
        selector.unregister(request.socket)
        request.socket.close()
        del waiting[request]

    while waiting or len(asked) < count:
        now = time.monotonic()
        for request in [each for each in waiting if each.began + timeout_s <= now]:
            leave(request)
        due = began + len(asked) * every_s if len(asked) < count else float("inf")
        if due <= now:
            request = _Asked(goal, began)
            asked.append(request)
            waiting[request] = None
            selector.register(request.socket, selectors.EVENT_WRITE, request)
            continue
        next_due = min(due, min((each.began for each in waiting), default=float("inf")) + timeout_s)
        if next_due == float("inf"):
            break
        for key, _ in selector.select(max(0.0, next_due - now)):
            request = key.data
            if request.ready(time.monotonic()):
                leave(request)
            elif request.connected is not None:
                selector.modify(request.socket, selectors.EVENT_READ, request)
    return [request.told for request in asked]


if __name__ == "__main__":
    sys.exit(main())
