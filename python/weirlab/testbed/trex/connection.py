"""A request-reply connection to a TRex server over ZeroMQ.

A REQ socket that got no answer cannot be used again: it is closed and opened anew, and the request is sent
again if repeating it does no harm ("Lazy Pirate", ZeroMQ guide, chapter 4).
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weirlab.errors import InputError, TrialTimeout
from weirlab.foreign import optional
from weirlab.testbed.trex.wire import Call, decode, encode, results

if TYPE_CHECKING:
    import zmq


class Connection:
    """Calls to one server, one at a time."""

    def __init__(self, endpoint: str, *, timeout_s: float, retries: int) -> None:
        """Nothing is sent yet.

        Args:
            endpoint: ZeroMQ endpoint, such as ``tcp://trex-1:4501``.
            timeout_s: How long to wait for an answer, in real seconds.
            retries: How often a request that may be repeated is sent again.

        Raises:
            MissingCapability: pyzmq is not installed.
        """
        self.endpoint = endpoint
        self._zmq = _pyzmq()
        self._timeout_s = timeout_s
        self._retries = retries
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._session = secrets.token_hex(4)
        self._numbers = itertools.count()

    def call(self, call: Call, *, repeatable: bool = True) -> Any:
        """The result of one call.

        Raises:
            TrialTimeout: No answer in time.
            RpcError: The server refused.
            TestbedError: The answer is not one.
        """
        return self._exchange([call], repeatable=repeatable, batch=False)[0]

    def batch(self, calls: Sequence[Call], *, repeatable: bool = True) -> list[Any]:
        """The results of several calls that travel as one message: the server executes them back to back."""
        return self._exchange(calls, repeatable=repeatable, batch=True) if calls else []

    def close(self) -> None:
        """Close without waiting for anything. The next call opens the connection again."""
        self._drop()
        if self._context is not None:
            self._context.destroy(linger=0)
            self._context = None

    def _exchange(self, calls: Sequence[Call], *, repeatable: bool, batch: bool) -> list[Any]:
        ids = [f"{self._session}-{next(self._numbers)}" for _ in calls]
        tries = 1 + (self._retries if repeatable else 0)
        reply = self._ask(encode(calls, ids, batch=batch), tries)
        if reply is None:
            methods = ", ".join(dict.fromkeys(call.method for call in calls))
            how_often = "" if tries == 1 else f", asked {tries} times"
            raise TrialTimeout(
                f"TRex at {self.endpoint} did not answer {methods} within {self._timeout_s:g} s{how_often}"
            )
        return results(decode(reply), calls, ids)

    def _ask(self, message: bytes, tries: int) -> bytes | None:
        """The answer; None when there was none. A socket whose request was not answered is dropped."""
        for _ in range(tries):
            answered = False
            try:
                socket = self._opened()
                socket.send(message)
                if socket.poll(int(self._timeout_s * 1000)):
                    reply = socket.recv()
                    answered = True
                    return reply
            finally:
                if not answered:
                    self._drop()
        return None

    def _opened(self) -> zmq.Socket[bytes]:
        if self._context is None:
            self._context = self._zmq.Context()
        if self._socket is None:
            self._socket = self._context.socket(self._zmq.REQ)
            self._socket.setsockopt(self._zmq.LINGER, 0)
            try:
                self._socket.connect(self.endpoint)
            except self._zmq.ZMQError as error:
                raise InputError(f"{self.endpoint} is not an address of a TRex server: {error}") from error
        return self._socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def _pyzmq() -> Any:
    return optional("zmq", who="the trex testbed needs the Python package", package="pyzmq", extra="trex")
