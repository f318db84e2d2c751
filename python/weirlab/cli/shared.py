"""What the commands share: where a scenario is found, what `--set` means, and how results are shown.

Results go to stdout, everything about the way there to stderr.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirlab.cli.completion import complete_scenario
from weirlab.cli.tables import columns_of, say, show
from weirlab.errors import InputError, UnitError

if TYPE_CHECKING:
    from rich.console import Console

    from weirlab.analysis.timeline import Timeline
    from weirlab.api.result import Result
    from weirlab.plots.style import Plot
    from weirlab.report.page import Page
    from weirlab.scenario import Scenario

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A scenario file, or the name of a ready-made one (see 'weir scenarios').",
        autocompletion=complete_scenario,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Replace a value of the scenario, such as run.duration='5 ms'; PATH= removes it. Repeatable.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where to keep the result: a new or empty directory. Default: results/NAME-DATE-TIME.",
    ),
]


PerfettoOption = Annotated[
    Path | None,
    typer.Option(
        "--perfetto",
        metavar="FILE",
        help="Also write the frames as a timeline in the format of Perfetto (ui.perfetto.dev opens it).",
    ),
]
OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="Where simulations run: local:N, tcp://HOST:8786 (a Dask scheduler) or ssh:HOST,HOST.",
    ),
]
KeptOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PLACE",
        help="A directory or s3://BUCKET/FOLDER of shared results: what it has is not computed again.",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PLACE",
        help="A directory or s3://BUCKET/FOLDER of shared results. Default with --on: in the result.",
    ),
]


def _can_report(wanted: bool) -> bool:
    """Whether a report is wanted; that one can be written is made sure before the work begins."""
    if wanted:
        from weirlab.report import require_packages

        require_packages()
    return wanted


ReportFlag = Annotated[bool, typer.Option("--report", help="Also write the report.", callback=_can_report)]
JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")
]


MOST_SEED = 2**64 - 1
"""Seeds have 64 bits."""


def assignments(texts: Sequence[str] | None) -> dict[str, object]:
    """`PATH=VALUE` texts as assignments of a scenario; an empty value, or `null`, removes what is there."""
    result: dict[str, object] = {}
    for text in texts or []:
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            raise InputError(f"--set {text}: write PATH=VALUE, such as --set run.seed=2")
        if path.strip() in result:
            raise InputError(f"--set {path.strip()}: given twice")
        given = value.strip()
        result[path.strip()] = None if given in ("", "null", "~") else field_value(given, "--set")
    return result


def field_value(text: str, option: str) -> object:
    """Text, or the list, mapping or quoted text that it spells in YAML. Raises ScenarioError."""
    if text[:1] in ("[", "{", "'", '"'):
        from weirlab.scenario.file.document import parse

        entry = parse(f"value: {text}", option).entry("value")
        return None if entry is None else entry.plain()
    return text


def read_scenario(name: str, sets: Sequence[str] | None = None) -> Scenario:
    """Load the scenario that a user means, with the changes of the command line."""
    from weirlab.scenario import load

    return load(name, assignments(sets))


_WHAT = {
    "search": "a search",
    "bulk": "a campaign",
    "emulate": "an emulated path",
    "run": "a run on the simulator",
}
"""What commands start."""


def check_command(scenario: Scenario, file: str, asked: str) -> None:
    """Raises InputError, with the command that fits, where another one starts the scenario."""
    fits = scenario.command
    if fits != asked:
        raise InputError(f"{file}: this scenario is {_WHAT[fits]}; start it with:  weir {fits} {file}")


def quantity(option: str, kind: Any, text: str) -> Any:
    """What an option says, of a kind of `weirlab.units`. Raises InputError with the option's name."""
    from weirlab.units import Span

    try:
        return kind.parse(text)
    except UnitError as error:
        remedy = f"; seconds are '{text} s'" if kind is Span and re.fullmatch(r"\d+(\.\d+)?", text) else ""
        raise InputError(f"{option}: {error}{remedy}") from error


def debug(error: BaseException) -> None:
    """Print the traceback of an error where WEIRLAB_DEBUG asks for it."""
    if os.environ.get("WEIRLAB_DEBUG"):
        traceback.print_exception(error)


def tell(text: str) -> None:
    """Say something about the way to the result, broken at words where stderr has a width."""
    sys.stderr.write(wrapped(text) + "\n")


def wrapped(text: str) -> str:
    """Lines for stderr, broken at words where it is a terminal or COLUMNS says how wide it is. Names of files
    are never broken, and lines that fit stay as they are."""
    columns = stderr_width()
    if columns is None:
        return text
    lines = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        hanging = " " * (indent if indent else len("weir: ") if line.startswith("weir: ") else 2)
        lines += (
            [line]
            if len(line) <= columns
            else textwrap.wrap(
                line, columns, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
            )
        )
    return "\n".join(lines)


def stderr_width() -> int | None:
    """Columns of stderr; None where nobody says."""
    return columns_of(sys.stderr)


def tell_timeline(timeline: Timeline, file: Path) -> None:
    """Say what a timeline holds and what opens it."""
    frames = f"{timeline.frames:,} frames" if timeline.frames else "no frames"
    tell(
        f"Timeline: {file}: {frames} and series on {timeline.tracks:,} tracks, in whole ns; open it at "
        "https://ui.perfetto.dev"
    )


def print_json(document: Mapping[str, object]) -> None:
    """Print the one JSON document of a command. Numbers that are not finite become null."""
    from weirlab.results import json_text

    sys.stdout.write(json_text(document))


def stderr_console() -> Console:
    """A console for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def show_result(result: Result, page: Path | None) -> None:
    """Print the tables of a result, what it says, the one sentence that matters first, and where it is."""
    from weirlab.report.page import Table, Text

    for block in result.blocks():
        if isinstance(block, Table):
            show(block)
        elif isinstance(block, Text):
            say(f"\n{block.text}" if "\n" in block.text else block.text)
    conclude(result.summary())
    if result.directory is not None:
        show_place(result.directory, page)


def conclude(sentences: Sequence[str], *, apart: bool = True) -> None:
    """End a command with what it found: the sentence that matters in bold, the others after it; `apart` from
    what came before."""
    if apart:
        say("")
    for place, sentence in enumerate(sentences):
        say(sentence, "bold" if place == 0 else "")


def conclude_aside(sentence: str) -> None:
    """The same of a command whose output is another program's, or a path: on standard error."""
    from rich.text import Text

    stderr_console().print(Text(wrapped(sentence), style="bold"), soft_wrap=True)


def show_place(directory: Path, page: Path | None) -> None:
    """Say where the result is, and how to see it."""
    typer.echo(f"Result: {directory}")
    typer.echo(f"Report: {page}" if page else f"Report: weir report {directory}")


def write_page(directory: Path, made: tuple[Page, list[Plot]] | None = None) -> Path:
    """Write the report of a result, which may be made already."""
    from weirlab.report import write_report

    return write_report(directory, made=made).page


def overrides(sets: Sequence[str] | None) -> dict[str, str]:
    """The changes of the command line, as they were written."""
    return {path.strip(): value.strip() for path, _, value in (text.partition("=") for text in sets or [])}
