"""What commands with `--view` share: a viewer next to the work, and the way into a browser."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from weirlab.cli.shared import tell

_START_S = 20.0


def _can_view(wanted: bool) -> bool:
    """Whether a viewer is wanted; that there can be one is made sure before the work begins."""
    if wanted:
        from weirlab.viewer import require_packages

        require_packages()
    return wanted


ViewFlag = Annotated[
    bool,
    typer.Option("--view", help="Also show the work in progress in the browser.", callback=_can_view),
]


@contextmanager
def viewed(directory: Path, wanted: bool) -> Iterator[None]:
    """With `wanted`, a viewer of the result in a directory, in a process of its own, which Ctrl-C of this one
    leaves alone; it ends when this process has, and its last page was closed."""
    if wanted:
        address = _started(directory)
        if address:
            tell(f"View: {address}")
            with suppress(OSError):
                show_in_browser(address)
    yield


def _started(directory: Path) -> str:
    """The address of a new viewer; empty where it did not start, which is reported."""
    place = directory.resolve()
    siblings = place.parent.glob("*/manifest.json")
    root = place.parent if place.parent.name == "results" or next(siblings, None) is not None else place
    result = "." if root == place else place.name
    command = [
        sys.executable,
        "-m",
        "weirlab",
        "view",
        str(root),
        "--result",
        result,
        "--while",
        str(os.getpid()),
    ]
    viewer = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert viewer.stdout is not None
    with viewer.stdout as stream:
        address = stream.readline().decode().strip()
    if not address:
        viewer.wait()
        tell(f"weir: the viewer did not start; see:  weir view {root}")
    viewer.returncode = 0  # it outlives this process, which is no fault
    return address


def show_in_browser(address: str) -> bool:
    """Open an address in the web browser; whether there is one. The address goes there by a file that only
    this user can read: command lines are seen by all."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    where = os.environ.get("XDG_RUNTIME_DIR")
    with tempfile.NamedTemporaryFile(
        "w",
        prefix="weir-view-",
        suffix=".html",
        delete=False,
        dir=where if where and os.access(where, os.W_OK) else None,
    ) as file:
        link = escape(address)
        file.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={link}"><title>weir view</title>'
            f'<a href="{link}">weir view</a>\n'
        )
    return bool(browser.open(Path(file.name).as_uri()))
