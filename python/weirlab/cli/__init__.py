"""The command `weir`.

Modules import typer and the standard library when they load, nothing else, and only the module of the command
that is called is loaded: it pays only for what it uses. What the shell asks for on Tab is answered before
even that, where it is a scenario, a path or a device.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code."""
    from weirlab.cli.interruptions import leave_at_once

    leave_at_once()
    # What starting makes is kept; to look for cycles in it again and again takes a tenth of the time.
    gc.set_threshold(300_000, 10, 10)
    if "_WEIR_COMPLETE" in os.environ:
        from weirlab.cli.completion import answered

        if answered():
            sys.exit(0)
    from weirlab.cli.app import main as run

    run(arguments)
