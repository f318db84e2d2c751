"""The command `weir`.

This package and its modules import typer and the standard library when they load, nothing else: help and
completion answer at once, and a command pays only for what it uses.
"""

from weirlab.cli.app import app, main

__all__ = ["app", "main"]
