"""Ctrl-C at any moment: nothing that is being loaded is left half made, and no traceback is shown.

Until a command begins there is nothing to keep: the process ends at once. Later an interruption is raised as
`KeyboardInterrupt`, but not while a module or the schema of a model is being made: what is found half made
afterwards fails in ways that nobody understands, and libraries turn interruptions into errors of their own.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_AGAIN_S = 0.005


def leave_at_once() -> None:
    """Until `raise_when_made` is called, Ctrl-C ends the process with a message."""
    _handle(_leave)


def raise_when_made() -> None:
    """From now on Ctrl-C, and SIGTERM, raise KeyboardInterrupt, so that finished work is kept."""
    _handle(_raise)
    signal.signal(signal.SIGTERM, _raise)


def ignore() -> None:
    """From now on neither Ctrl-C nor SIGTERM does anything: all is said, and the process ends."""
    _handle(signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        # An interruption that came while a module was loaded would end the process with an alarm.
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _handle(handler: signal._HANDLER) -> None:
    # Who starts a command in the background has Ctrl-C ignored, which stays so.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"weir: interrupted\n")
    os._exit(130)


def _raise(_signal: int, frame: FrameType | None) -> None:
    if hasattr(signal, "setitimer") and _is_loading(frame):
        signal.signal(signal.SIGALRM, _raise)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        return
    raise KeyboardInterrupt


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or f"{os.sep}pydantic{os.sep}" in file:
            return True
        frame = frame.f_back
    return False
