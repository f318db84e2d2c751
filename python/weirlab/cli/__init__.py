"""The command `weir`.

Modules import typer and the standard library when they load, nothing else: a command pays only for what it
uses. What the shell asks for on Tab is answered before even that, where it is a scenario, a path or a device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code."""
    if "_WEIR_COMPLETE" in os.environ:
        from weirlab.cli.completion import answered

        if answered():
            sys.exit(0)
    from weirlab.cli.app import main as run

    run(arguments)
