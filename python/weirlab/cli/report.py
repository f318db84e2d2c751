"""`weir report`: write the page of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from weirlab.cli.shared import JsonFlag, conclude_aside, print_json, tell


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


Column = Literal["single", "double"]


def report(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="The directory of a result, or several of campaigns to compare."
        ),
    ],
    pictures: Annotated[
        bool,
        typer.Option("--pictures/--no-pictures", help="Also write each plot as PNG and SVG into DIR/plots."),
    ] = True,
    figures: Annotated[
        Column | None,
        typer.Option(
            help="Also write each plot as PDF and SVG as wide as one column of a paper (3.5 in) or both "
            "(7.16 in) into DIR/plots."
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in the web browser.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the report of a result: one HTML page that needs no network, and its plots as files. Several
    campaigns of 'weir bulk' are compared in 'comparison.html' in the directory of the first.

    \b
    Examples:
      weir report results/incast-20260101-120000
      weir report results/incast-20260101-120000 --open
      weir report results/incast-20260101-120000 --figures single
      weir report results/reno results/bbr
    """
    from weirlab.api.reading import read
    from weirlab.report import write_comparison, write_report

    directory, *others = directories
    if others:
        written = write_comparison(directories, pictures=pictures, figures=figures)
    else:
        written = write_report(directory, pictures=pictures, figures=figures)
    if as_json:
        print_json({"page": str(written.page), "plots": [str(path) for path in written.plots]})
    else:
        typer.echo(written.page)
        if written.plots:
            tell(f"{len(written.plots)} pictures in {directory / 'plots'}")
        if not others:
            conclude_aside(read(directory).summary()[0])
    if open_page:
        _show_in_browser(written.page)


def _show_in_browser(page: Path) -> None:
    """Raise MissingCapability where no browser can be started; the page is written all the same."""
    import webbrowser

    from weirlab.errors import MissingCapability

    try:
        opened = webbrowser.get().open(page.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        raise MissingCapability(
            f"--open: no web browser was found here; the report is {page}. Name a browser in the variable "
            "BROWSER, or open the file yourself"
        )
