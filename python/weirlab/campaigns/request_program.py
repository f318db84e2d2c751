"""Both ends of small requests, as a program of its own: standard library alone, so that it starts at once.

`serve` answers `GET` with one byte; `ask` opens a connection for each request and prints as JSON how long
handshakes and answers took. Neither ever waits for one connection while another has something to tell. With
a certificate both speak TLS 1.3, whose handshake is one round trip; no session is taken up again.
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
from collections.abc import Callable
from typing import Any

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
        end.add_argument("--certificate", help="file of the server's certificate: speak TLS")
    server.add_argument("--private-key", help="file of the key of that certificate")
    server.add_argument("--for", type=float, required=True, dest="seconds", help="how long to serve, s")
    client.add_argument("--count", type=int, required=True)
    client.add_argument("--every", type=float, required=True, help="s")
    given = parser.parse_args(words)
    try:
        if given.end == "serve":
            wrap = _plain if given.certificate is None else _server(given.certificate, given.private_key)
            _serve(given.address, given.port, given.timeout, given.seconds, wrap)
        else:
            wrap = _plain if given.certificate is None else _client(given.certificate, given.address)
            reported = _ask((given.address, given.port), given.count, given.every, given.timeout, wrap)
            sys.stdout.write(json.dumps(reported) + "\n")
    except OSError as error:
        sys.stdout.write(f"{given.address} port {given.port}: {error.strerror or error}\n")
        return 1
    return 0


Wrap = Callable[[socket.socket], socket.socket]
"""Makes of a connection what talks over it."""


def _family(address: str) -> socket.AddressFamily:
    """Of a numeric address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _plain(connection: socket.socket) -> socket.socket:
    return connection


def _server(certificate: str, private_key: str) -> Wrap:
    """Speaks TLS as the holder of a certificate; sends no tickets, which would be more to read."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    context.load_cert_chain(certificate, private_key)
    return lambda connection: context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)


def _client(certificate: str, address: str) -> Wrap:
    """Speaks TLS with the holder of this certificate alone."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(certificate)
    return lambda connection: context.wrap_socket(
        connection, server_hostname=address, do_handshake_on_connect=False
    )


def _serve(address: str, port: int, timeout_s: float, seconds: float, wrap: Wrap) -> None:
    """Answer who asks, for so long."""
    selector = selectors.DefaultSelector()
    heard: dict[socket.socket, _Heard] = {}

    def leave(connection: socket.socket) -> None:
        selector.unregister(connection)
        del heard[connection]
        connection.close()

    with socket.create_server((address, port), family=_family(address), backlog=MOST_WAITING) as listener:
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ)
        sys.stdout.write(f"{LISTENS}\n")
        sys.stdout.flush()
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            for late in [each for each, reported in heard.items() if reported.until <= now]:
                leave(late)
            soonest = min((reported.until for reported in heard.values()), default=end)
            for key, _ in selector.select(max(0.0, min(soonest, end) - now)):
                if key.fileobj is listener:
                    connection = _accepted(listener, wrap, full=len(heard) >= MOST_WAITING)
                    if connection is not None:
                        heard[connection] = _Heard(connection, time.monotonic() + timeout_s)
                        selector.register(connection, selectors.EVENT_READ)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    if heard[key.fileobj].ready(selector):
                        leave(key.fileobj)
        for remaining in list(heard):
            leave(remaining)


def _accepted(listener: socket.socket, wrap: Wrap, *, full: bool) -> socket.socket | None:
    try:
        connection, _ = listener.accept()
    except (BlockingIOError, ConnectionError):
        return None  # it has gone again
    try:
        _prepare(connection)
        if not full:
            return wrap(connection)
    except OSError:
        pass  # as well
    connection.close()
    return None


def _prepare(connection: socket.socket) -> None:
    """What is written leaves at once: a request does not wait until the end of the handshake is
    acknowledged."""
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _Heard:
    """A connection of somebody who may ask."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self.until = until
        """When it is closed at the latest."""
        self._connection = connection
        self._greeted = _needs_no_greeting(connection)
        self._said = b""

    def ready(self, selector: selectors.BaseSelector) -> bool:
        """Go on; whether it is done with."""
        try:
            if not self._greeted:
                self._greeted = _greet(self._connection, selector, self)
                if not self._greeted:
                    return False
            more = self._connection.recv(_LONGEST)
            self._said += more
            if self._said.startswith(b"GET ") and self._said.endswith(b"\r\n\r\n"):
                self._connection.send(_ANSWER)
                return True
        except OSError as error:
            return not _comes_later(error)
        return not more or len(self._said) >= _LONGEST


def _needs_no_greeting(connection: socket.socket) -> bool:
    """Whether it is ready for words once it is connected: plain TCP."""
    return not hasattr(connection, "do_handshake")


def _comes_later(error: OSError) -> bool:
    """Whether there is nothing to read yet."""
    tls = sys.modules.get("ssl")  # not to be loaded for those who speak none
    return isinstance(error, BlockingIOError) or (tls is not None and isinstance(error, tls.SSLWantReadError))


def _greet(connection: Any, selector: selectors.BaseSelector, reported: object) -> bool:
    """Go on with the handshake of TLS; whether it is done."""
    import ssl

    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        selector.modify(connection, selectors.EVENT_READ, reported)
        return False
    except ssl.SSLWantWriteError:
        selector.modify(connection, selectors.EVENT_WRITE, reported)
        return False
    selector.modify(connection, selectors.EVENT_READ, reported)
    return True


class _Asked:
    """A request on its way."""

    def __init__(self, goal: tuple[str, int], began: float, wrap: Wrap) -> None:
        self.socket: socket.socket = socket.socket(_family(goal[0]), socket.SOCK_STREAM)
        _prepare(self.socket)
        self._wrap = wrap
        self._connected: float | None = None
        self._greeted: float | None = None
        self._host, self._said = f"[{goal[0]}]" if ":" in goal[0] else goal[0], b""
        self.began = time.monotonic()
        self.told: dict[str, float | None] = {
            "asked_s": self.began - began,
            "handshake_s": None,
            "tls_s": None,
            "answer_s": None,
        }
        code = self.socket.connect_ex(goal)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))

    def ready(self, selector: selectors.BaseSelector) -> bool:
        """Go on; whether it is done with."""
        try:
            return self._went_on(time.monotonic(), selector)
        except TimeoutError:
            return True

    def _went_on(self, now: float, selector: selectors.BaseSelector) -> bool:
        if self._connected is None:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            self._connected = now
            self.told["handshake_s"] = now - self.began
            selector.unregister(self.socket)
            self.socket = self._wrap(self.socket)
            selector.register(self.socket, selectors.EVENT_READ, self)
            if _needs_no_greeting(self.socket):
                self._ask(now)
                return False
        if self._greeted is None:
            if _greet(self.socket, selector, self):
                now = time.monotonic()
                self.told["tls_s"] = now - self._connected
                self._ask(now)
            return False
        try:
            more = self.socket.recv(_LONGEST)
        except OSError as error:
            if _comes_later(error):
                return False
            raise
        self._said += more
        if self._said == _ANSWER:
            self.told["answer_s"] = time.monotonic() - self._greeted
            return True
        if not more or not _ANSWER.startswith(self._said):
            raise OSError(errno.EPROTO, f"is no answer to a request: {self._said[:80]!r}")
        return False

    def _ask(self, now: float) -> None:
        self._greeted = now
        self.socket.send(f"GET /small HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())


def _ask(
    goal: tuple[str, int], count: int, every_s: float, timeout_s: float, wrap: Wrap
) -> list[dict[str, float | None]]:
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
            request = _Asked(goal, began, wrap)
            asked.append(request)
            waiting[request] = None
            selector.register(request.socket, selectors.EVENT_WRITE, request)
            continue
        next_due = min(due, min((each.began for each in waiting), default=float("inf")) + timeout_s)
        if next_due == float("inf"):
            break
        for key, _ in selector.select(max(0.0, next_due - now)):
            if key.data.ready(selector):
                leave(key.data)
    return [request.told for request in asked]


if __name__ == "__main__":
    sys.exit(main())
