"""`weir view`: results in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from weirlab.cli.shared import tell


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("view")(view)


def view(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="A directory with results at any depth, or one result. Default: results."
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of 127.0.0.1. Default: a free one.", show_default=False),
    ] = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Show the list in the web browser.")] = False,
    result: Annotated[str, typer.Option("--result", hidden=True)] = "",
    work: Annotated[int, typer.Option("--while", hidden=True)] = 0,
) -> None:
    """Show results in the browser: list, filter, open and compare them, watch work in progress and stop it.
    Only the printed address gives access. Ctrl-C ends the viewer.

    \b
    Examples:
      weir view
      weir view /data/lab --open
    """
    from weirlab.viewer import require_packages

    require_packages()
    import psutil

    from weirlab.viewer.serving import serve

    def ready(address: str) -> None:
        typer.echo(address)
        sys.stdout.flush()
        if not work:
            tell("Ctrl-C ends the viewer.")
        if open_page:
            from weirlab.cli.viewing import show_in_browser

            show_in_browser(address)

    try:
        serve(
            Path("results") if directory is None else directory,
            port=port,
            page=result,
            ready=ready,
            needed=(lambda: psutil.pid_exists(work)) if work else None,
        )
    except KeyboardInterrupt:
        if not work:
            tell("")
