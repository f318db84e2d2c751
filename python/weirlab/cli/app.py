"""Puts the commands together, and turns whatever goes wrong into a message and an exit code."""

from __future__ import annotations

import errno
import functools
import gc
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn, get_type_hints

import typer

from weirlab.cli.interruptions import ignore, raise_when_made
from weirlab.cli.tables import Format, formatted
from weirlab.errors import InputError, Interrupted, WeirlabError
from weirlab.privileges import enter_if_started_again

_HELP = """Find out how much a network carries, and what it does when it is asked for more.

\b
Examples:
  weir scenarios                  what is ready to run
  weir search search-knee         find the NDR and PDR of a simulated device
  weir search router-ndr          the same of a real Linux router, on this machine
  weir run incast --report        run a scenario on the packet-level simulator

\b
Exit codes: 0 well, 1 a run failed, 2 the input is wrong, 130 interrupted.
WEIRLAB_DEBUG=1 shows the traceback of an error."""

COMMANDS = {
    "run": "run",
    "study": "run",
    "search": "search",
    "bulk": "bulk",
    "emulate": "emulate",
    "path": "path",
    "rapid": "rapid",
    "report": "report",
    "compare": "compare",
    "check": "check",
    "scenarios": "scenarios",
    "schema": "schema",
    "doctor": "doctor",
    "reproduce": "reproduce",
    "search-lab": "search_lab",
    "stability": "stability",
    "rank": "stability",
    "trace": "trace",
    "diagnose": "trace",
}
"""The module below `weirlab.cli` of each command, in the order of the help."""


def application(command: str | None = None) -> typer.Typer:
    """All commands, or those of the module that has `command`: to load the others takes time."""
    app = typer.Typer(
        name="weir",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=_HELP,
    )
    app.callback()(_options)
    modules = [COMMANDS[command]] if command in COMMANDS else dict.fromkeys(COMMANDS.values())
    for module in modules:
        import_module(f"weirlab.cli.{module}").add_to(app)
    for typed in (app, *(group.typer_instance for group in app.registered_groups)):
        for registered in () if typed is None else typed.registered_commands:
            if registered.callback is not None:
                registered.callback = _guarded(registered.callback)
    return app


_FORMAT = "table_format"
_FormatOption = Annotated[
    Format,
    typer.Option("--format", help="How tables are printed; but for 'table' nothing else stands on stdout."),
]


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose interruption is an error like any other, and that does not mind a reader who leaves.
    One that can print a JSON document prints its tables in other formats, too."""
    signature = inspect.signature(command, eval_str=True)
    parameters = list(signature.parameters.values())
    has_tables = "as_json" in signature.parameters

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        chosen: Format = options.pop(_FORMAT, "table")
        if options.get("as_json") and chosen != "table":
            raise InputError(f"--json and --format {chosen}: give one of them")
        try:
            with formatted(chosen):
                command(*arguments, **options)
        except KeyboardInterrupt as interruption:
            notes = getattr(interruption, "__notes__", [])
            raise Interrupted("; ".join(["interrupted", *notes])) from None
        except BrokenPipeError:
            return

    if has_tables:
        format_ = inspect.Parameter(
            _FORMAT, inspect.Parameter.KEYWORD_ONLY, default="table", annotation=_FormatOption
        )
        guarded.__signature__ = signature.replace(parameters=[*parameters, format_])  # type: ignore[attr-defined]
        guarded.__annotations__ = {**get_type_hints(command, include_extras=True), _FORMAT: _FormatOption}
    return guarded


def _version(value: bool) -> None:
    if value:
        from weirlab._core import version

        typer.echo(f"weir {version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version  # handled by its callback


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows another one instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="weirlab-spell-out")
    raise_when_made()
    code = execute(words, prepare=enter_if_started_again)
    try:
        sys.stdout.flush()
    except OSError as error:
        # Keep the interpreter from trying again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in (errno.EPIPE, errno.EINVAL):  # somebody reads, but was not told all
            code = code or _told(WeirlabError(f"standard output: {error.strerror}"), as_json=False)
    ignore()
    # 'python -m' ends by SIGINT, whatever the exit code, where the last executed text was interrupted,
    # and data classes are made of texts: execute another one.
    exec("")  # noqa: S102
    gc.freeze()  # the interpreter looks for cycles once more at its end: a tenth of a second for nothing
    sys.exit(code)


def execute(words: Sequence[str], *, prepare: Callable[[], None] | None = None) -> int:
    """Run the command, perhaps after something that belongs to its process, say what goes wrong, and return
    the exit code.
    """
    as_json = "--json" in words
    try:
        if prepare is not None:
            prepare()
        application(next((word for word in words if not word.startswith("-")), None))(
            list(words), prog_name="weir"
        )
    except SystemExit as end:
        if as_json and end.code == InputError.exit_code:
            _print_json_error("UsageError", "the command line is wrong: see the message on stderr", [])
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except WeirlabError as error:
        return _told(error, as_json)
    except KeyboardInterrupt:
        return _told(Interrupted("interrupted"), as_json)
    except MemoryError:
        return _told(WeirlabError("out of memory: run fewer replicates, or record less"), as_json)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _told(WeirlabError(f"{place}{error.strerror or error}"), as_json)
    except Exception as error:
        _debug(error)
        bug = WeirlabError(
            f"this is a bug in weirlab: {type(error).__name__}: {error}\n"
            "Please report it to its maintainers with the command line, the scenario, the output of\n"
            "'weir doctor' and the traceback that WEIRLAB_DEBUG=1 shows."
        )
        return _told(bug, as_json, debug=False)
    return 0


def _told(error: WeirlabError, as_json: bool, *, debug: bool = True) -> int:
    """Say what went wrong, and return the exit code."""
    if debug:
        _debug(error)
    notes = getattr(error, "__notes__", [])
    problems = [str(problem) for problem in getattr(error, "problems", [])]
    if as_json:
        _print_json_error(type(error).__name__, "\n".join([str(error), *notes]), problems)
    lines = [*(problems or str(error).splitlines() or [type(error).__name__]), *notes]
    sys.stderr.write(
        "".join(f"weir: {line}\n" if place == 0 else f"      {line}\n" for place, line in enumerate(lines))
    )
    if len(problems) > 1:
        sys.stderr.write(f"weir: {len(problems)} problems\n")
    return error.exit_code


def _print_json_error(kind: str, message: str, problems: list[str]) -> None:
    document = {"error": {"kind": kind, "message": message, "problems": problems}}
    with suppress(OSError):  # what went wrong may be that nothing can be written there
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _debug(error: BaseException) -> None:
    if os.environ.get("WEIRLAB_DEBUG"):
        traceback.print_exception(error)
