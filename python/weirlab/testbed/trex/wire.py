"""Messages of a TRex server: JSON-RPC 2.0 objects, compressed with zlib where it pays.

Pure: bytes in, values out. Sources: TRex RPC server specification (doc/trex_rpc_server_spec.asciidoc of
trex-core) for the objects; src/rpc-server/trex_rpc_zip.cpp and trex_rpc_jsonrpc_v2_parser.cpp for the header
of compressed messages and the error codes, which the specification does not give.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from weirlab.errors import TestbedError

_MAGIC = 0xABE85CEA
_HEADER = struct.Struct(">II")
"""Magic number and size of the uncompressed message, big-endian; the zlib stream follows."""
_COMPRESS_FROM_BYTES = 512
"""Shorter requests go as plain JSON. The server compresses its reply when the request was compressed."""
_LARGEST_REPLY_BYTES = 64 << 20
"""No reply that this testbed asks for comes near: a header that says more is garbage."""


Answer = Mapping[str, Any]
"""An object of a reply; other versions of the server may answer in other forms: see `understood`."""


@dataclass(frozen=True)
class Call:
    """One remote procedure call."""

    method: str
    params: Mapping[str, object] = field(default_factory=dict)


class RpcError(TestbedError):
    """The server refused a call. ``code`` is that of JSON-RPC or one of the server's own."""

    METHOD_NOT_FOUND = -32601
    TRY_AGAIN = -32001

    def __init__(self, method: str, code: int, reason: str) -> None:
        self.method = method
        self.code = code
        self.reason = reason
        super().__init__(f"TRex refused {method}: {reason}")


def encode(calls: Sequence[Call], ids: Sequence[str], *, batch: bool) -> bytes:
    """The message that carries ``calls``: one object, or a list of them in a batch."""
    objects = [
        {"jsonrpc": "2.0", "id": identifier, "method": call.method, "params": dict(call.params)}
        for call, identifier in zip(calls, ids, strict=True)
    ]
    message = json.dumps(objects if batch else objects[0]).encode()
    if len(message) < _COMPRESS_FROM_BYTES:
        return message
    return _HEADER.pack(_MAGIC, len(message)) + zlib.compress(message)


def decode(message: bytes) -> list[Answer]:
    """The objects of a reply. The server answers a single call with a list of one or with the object alone,
    depending on its version."""
    text = _inflate(message)
    try:
        value = json.loads(text)
    except (UnicodeDecodeError, ValueError) as error:
        raise TestbedError(f"TRex answered what is not JSON: {_brief(text)}") from error
    objects = value if isinstance(value, list) else [value]
    if not objects or not all(isinstance(each, dict) and each.get("jsonrpc") == "2.0" for each in objects):
        raise TestbedError(f"TRex answered what is not JSON-RPC 2.0: {_brief(text)}")
    return objects


def results(replies: Sequence[Answer], calls: Sequence[Call], ids: Sequence[str]) -> list[Any]:
    """The result of each call. Raises RpcError for the first that was refused, and TestbedError when the
    replies do not belong to the calls."""
    for reply in replies:
        if reply.get("id") is None and "error" in reply:
            raise _refusal(", ".join(call.method for call in calls), reply)
    if [reply.get("id") for reply in replies] != list(ids):
        raise TestbedError(
            f"TRex answered messages {[reply.get('id') for reply in replies]}, but was asked {list(ids)}"
        )
    values = []
    for reply, call in zip(replies, calls, strict=True):
        if "error" in reply:
            raise _refusal(call.method, reply)
        if "result" not in reply:
            raise TestbedError(f"TRex answered {call.method} with neither a result nor an error")
        values.append(reply["result"])
    return values


@contextmanager
def understood(method: str) -> Iterator[None]:
    """Where a result is taken apart: raises TestbedError when it has not the form that the block expects."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise TestbedError(
            f"TRex answered {method} in a form that is not known ({type(error).__name__}: {error})"
        ) from error


def _refusal(method: str, reply: Answer) -> TestbedError:
    error = reply["error"]
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return TestbedError(f"TRex refused {method} in a form that is not JSON-RPC 2.0: {error!r}")
    reason = error.get("specific_err") or error.get("message") or "no reason given"
    return RpcError(method, error["code"], str(reason))


def _inflate(message: bytes) -> bytes:
    if len(message) < _HEADER.size:
        return message
    magic, size = _HEADER.unpack_from(message)
    if magic != _MAGIC:
        return message
    if size > _LARGEST_REPLY_BYTES:
        raise TestbedError(f"TRex announced a reply of {size} bytes")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(message[_HEADER.size :], size + 1)
    except zlib.error as error:
        raise TestbedError(f"TRex sent a compressed reply that is damaged: {error}") from error
    if len(text) != size:
        raise TestbedError(f"TRex sent a compressed reply of other than the announced {size} bytes")
    return text


def _brief(text: bytes) -> str:
    return repr(text[:80]) + ("..." if len(text) > 80 else "")
