"""`weir view`: the server, for the browser of whoever started it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from weirlab.errors import InputError
from weirlab.viewer.guard import new_token
from weirlab.viewer.index import cache_for
from weirlab.viewer.pages import quoted
from weirlab.viewer.server import Viewer

_CLOSED_S = 20.0
"""Without a page that listens, after which a viewer ends that was started for some work."""


def serve(
    root: Path,
    *,
    port: int = 0,
    page: str = "",
    ready: Callable[[str], None],
    needed: Callable[[], bool] | None = None,
) -> None:
    """Serve results on loopback until Ctrl-C.

    Args:
        root: The directory below which they lie.
        port: 0: any that is free.
        page: The result that the address leads to; empty: the list.
        ready: Called with the address, with the token, when the server listens.
        needed: Asked whether the work for which the viewer was started goes on. When it does not, and no page
            is open any more, the server ends.

    Raises:
        InputError: There is no such directory, or the port is taken.
    """
    root = root.resolve()
    if not root.is_dir():
        raise InputError(f"{root}: no such directory")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        raise InputError(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}") from error
    token = new_token()
    number = listening.getsockname()[1]
    viewer = Viewer(root, token=token, port=number, cache=cache_for(root))
    config = uvicorn.Config(
        viewer.app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=200,
    )
    server = uvicorn.Server(config)
    viewer.is_ending = lambda: server.should_exit
    viewer.watcher.start()

    async def work() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        place = f"result/{quoted(page)}" if page else ""
        ready(f"http://127.0.0.1:{number}/{place}?{urlencode({'token': token})}")
        while not serving.done():
            await asyncio.wait([serving], timeout=1.0)
            if needed is not None and _is_left(viewer, needed):
                server.should_exit = True
        await serving

    try:
        asyncio.run(work())
    finally:
        viewer.watcher.end()
        viewer.opened.close()
        viewer.watcher.join(5)
        listening.close()


def _is_left(viewer: Viewer, needed: Callable[[], bool]) -> bool:
    if needed():
        viewer.watcher.left_at = time.monotonic()
        return False
    return viewer.watcher.ears == 0 and time.monotonic() - viewer.watcher.left_at > _CLOSED_S
