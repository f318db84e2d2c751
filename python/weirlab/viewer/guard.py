"""Who may ask the viewer: the user who started it, from a page of its own.

The server listens on loopback, which every user and every web page of this machine can reach. So each request
needs the token that was printed, kept by the browser as a cookie that no script reads;
the name that it asks by must be this server's, or a foreign name that resolves to loopback could be used; and
what changes something needs a second token from a page, and never is a GET.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

Scope = MutableMapping[str, Any]
"""Also a message: what ASGI leaves open."""
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Of every reply."""
STRICT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of replies that name no other."""


class Guard:
    """Passes on what the user asks, and refuses everything else."""

    def __init__(self, app: App, *, port: int, token: str) -> None:
        self._app = app
        self._names = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}
        self._origins = {b"http://" + name for name in self._names}
        self._token = token
        self._cookie = f"weirlab-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            await _reply(send, 400, "This server answers only to the name that 'weir view' has printed.")
            return
        if scope["method"] not in ("GET", "HEAD", "POST"):
            await _reply(
                send, 405, "The viewer knows GET, and POST to stop work.", {"Allow": "GET, HEAD, POST"}
            )
            return
        given = [
            value for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name == "token"
        ]
        if given and scope["method"] != "POST":
            await self._enter(scope, send, given[0])
            return
        if not self._is_known(headers):
            await _reply(
                send,
                403,
                "Open the address that 'weir view' has printed: it has the token that is missing here.",
            )
            return
        if scope["method"] == "POST" and not self._is_own(headers):
            await _reply(send, 403, "Only a page of the viewer may ask for this.")
            return
        await self._app(scope, receive, _with_headers(send))

    async def _enter(self, scope: Scope, send: Send, token: str) -> None:
        """Keep the right token as a cookie, and go to the same page without it in the address."""
        if not _same(token, self._token):
            await _reply(send, 403, "This token is not the one that 'weir view' has printed.")
            return
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        # A path that begins with two slashes would name another host.
        path = "/" + scope.get("raw_path", b"/").decode("latin-1").lstrip("/\\")
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Lax"
        where = path + (f"?{rest}" if rest else "")
        await _reply(send, 303, "", {"Location": where, "Set-Cookie": cookie, "Cache-Control": "no-store"})

    def _is_known(self, headers: list[tuple[bytes, bytes]]) -> bool:
        for name, value in headers:
            if name == b"cookie":
                try:
                    found = SimpleCookie(value.decode("latin-1")).get(self._cookie)
                except CookieError:
                    continue
                if found is not None and _same(found.value, self._token):
                    return True
            elif name == b"authorization" and _same(value.decode("latin-1"), f"Bearer {self._token}"):
                return True
        return False

    def _is_own(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a page of this server asks, as far as the browser says."""
        origins = [value for name, value in headers if name == b"origin"]
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        return all(origin in self._origins for origin in origins) and all(
            site == b"same-origin" for site in sites
        )


def deed_token(token: str) -> str:
    """What a page has to send with what changes something: it follows from the token, but not the reverse."""
    return hmac.new(token.encode(), b"deeds of the viewer", hashlib.sha256).hexdigest()


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


def _same(one: str, other: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())


async def _reply(send: Send, status: int, text: str, more: Mapping[str, str] | None = None) -> None:
    content = f"{text}\n".encode()
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(content)),
        "Content-Security-Policy": STRICT,
        **HEADERS,
        **(more or {}),
    }
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


def _with_headers(send: Send) -> Send:
    async def sent(message: Scope) -> None:
        if message["type"] == "http.response.start":
            there = {name for name, _ in message["headers"]}
            wanted = {"Content-Security-Policy": STRICT, "Cache-Control": "no-store", **HEADERS}
            raw = [(name.lower().encode(), value.encode()) for name, value in wanted.items()]
            message["headers"] = [*message["headers"], *(pair for pair in raw if pair[0] not in there)]
        await send(message)

    return sent
