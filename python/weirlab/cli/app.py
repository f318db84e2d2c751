"""Puts the commands together, and turns whatever goes wrong into a message and an exit code."""

from __future__ import annotations

import errno
import functools
import gc
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise, takewhile
from shutil import get_terminal_size
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand
from typer.models import CommandInfo, TyperInfo

from weirlab.cli.completion import what_is_asked
from weirlab.cli.interruptions import ignore, raise_when_made
from weirlab.cli.options import options_of
from weirlab.cli.shared import debug, wrapped
from weirlab.cli.tables import Format, formatted
from weirlab.errors import InputError, Interrupted, WeirlabError
from weirlab.privileges import enter_if_started_again

_HELP = """Find out how much traffic a network carries, and what happens when it is offered more.

\b
Examples:
  weir scenarios            what is ready to run
  weir run incast --report  simulate, and write a report
  weir search search-knee   rates of a simulated device
  weir search router-ndr    rates of Linux on this host

\b
Times, sizes and rates have units: '10 min', '64 kB',
'1 Gbit/s'.

\b
Exit codes: 0 success, 1 a run failed, 2 wrong input,
130 interrupted.
WEIRLAB_DEBUG=1 shows the traceback of an error."""

COMMANDS = {
    "run": ("run", "Run a scenario, or a study, on the simulator."),
    "study": ("run", "Run all points of a study on the simulator."),
    "search": ("search", "Find the NDR, PDR or other rates of a device."),
    "bulk": ("bulk", "Measure bulk transfers, real or simulated, in cycles."),
    "emulate": ("emulate", "Run a command or a shell over an emulated path."),
    "path": ("path", "Measure capacity, latency, queueing and loss of each link to a host."),
    "rapid": ("rapid", "Send Rapid over UDP between two hosts."),
    "report": ("report", "Write the report of a result as one HTML page."),
    "view": ("view", "Show results, and work in progress, in the browser."),
    "compare": ("compare", "Compare results: differences with intervals, and conditions for CI."),
    "results": ("results", "List, query, export, compact or prune a store of results."),
    "check": ("check", "Report everything that is wrong with a scenario file."),
    "scenarios": ("scenarios", "List, print or copy the ready-made scenarios."),
    "schema": ("schema", "Print the JSON schema of scenario files, for editors."),
    "doctor": ("doctor", "Report what this machine can do, and what is missing."),
    "reproduce": ("reproduce", "Reproduce a published study: its numbers compared with ours."),
    "search-lab": ("search_lab", "Compare search algorithms on simulated devices."),
    "stability": ("stability", "Compute stability margins of BCN or QCN in a scenario."),
    "rank": ("stability", "Rank what stresses BCN most in a scenario."),
    "trace": ("trace", "Show the flows of a packet trace and what was found in it."),
    "diagnose": ("trace", "Report what limited the flows of a packet trace."),
}
"""Of each command its module below `weirlab.cli` and its line in the help, in the order of the help."""

_OF_PANICS = "pyo3_runtime"
"""The module of the exception that a panic of the extension becomes; it is no `Exception`."""

_TO_TRY = """Weirlab finds out how much a network carries. To try:

  weir run incast           overload a port of a switch
  weir search search-knee   find the NDR and PDR of a device
  weir emulate wan-path     get a shell behind a slow path
  weir diagnose FILE.pcap   see what limited a connection
  weir scenarios            see what else is ready to run

All commands: weir --help
"""


def application(command: str | None = None) -> typer.Typer:
    """All commands; or those of the module that has `command`, as to load the others takes time; or, where no
    module has it, the names of all.
    """
    app = typer.Typer(
        name="weir",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=_HELP,
    )
    app.callback()(_options)
    if command is None:
        modules = list(dict.fromkeys(module for module, _ in COMMANDS.values()))
    elif command in COMMANDS:
        modules = [COMMANDS[command][0]]
    else:
        modules = []
        for name in COMMANDS:
            app.command(name)(_named)
    for module in modules:
        import_module(f"weirlab.cli.{module}").add_to(app)
    listed: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for each in listed:
        each.short_help = COMMANDS[str(each.name)][1]
    for typed in (app, *(group.typer_instance for group in app.registered_groups)):
        for registered in () if typed is None else typed.registered_commands:
            if registered.callback is not None and registered.callback is not _named:
                registered.help = _broken(
                    inspect.getdoc(registered.callback) or "", get_terminal_size().columns
                )
                registered.callback = _guarded(registered.callback)
                if registered.cls in (None, TyperCommand):
                    registered.cls = _Command
    return app


class _Command(TyperCommand):
    """A command that, given a file for its report, says where the report goes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        flags = {name for each in self.params if getattr(each, "is_flag", False) for name in each.opts}
        named = dict(pairwise(args)).get("--report", "-")
        if "--report" in flags and not named.startswith("-"):
            _, extra, _ = self.make_parser(ctx).parse_args(args=list(args))
            if extra:
                out = any("--out" in each.opts for each in self.params)
                raise InputError(
                    f"--report {named}: --report takes no file; it writes the page into the directory of the "
                    f"result{', which --out DIR names' if out else ''}"
                )
        return super().parse_args(ctx, args)


_INDENT = 2
"""Of a help text."""


def _broken(text: str, columns: int) -> str:
    """A help text whose command lines are broken where the terminal is narrow, as a shell takes them."""
    lines: list[str] = []
    for line in text.splitlines():
        left = columns - _INDENT - len(" \\")
        while len(line) > columns - _INDENT and line.lstrip().startswith(("weir ", "-")):
            # Not within quotes.
            ends = [word.end() for word in re.finditer(r"(?:'[^']*'|[^\s'])+", line) if word.end() <= left]
            if len(ends) <= 1:
                break
            lines.append(f"{line[: ends[-1]]} \\")
            line = "      " + line[ends[-1] :].lstrip()
        lines.append(line)
    return "\n".join(lines)


def _named() -> None:
    """A command that is listed and not called."""


_FORMAT = "table_format"
_FormatOption = Annotated[
    Format,
    typer.Option("--format", help="How tables are printed. All but 'table' print nothing else on stdout."),
]


_WITHOUT_TABLES = ("report", "serve")
"""Functions of commands that can print JSON, but have no table."""


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose interruption is an error like any other, and that does not mind a reader who leaves.
    One that can print a JSON document prints its tables in other formats, too."""
    groups, parameters = options_of(command)
    has_tables = "as_json" in parameters and command.__name__ not in _WITHOUT_TABLES

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        chosen: Format = options.pop(_FORMAT, "table")
        for name, (group, fields) in groups.items():
            options[name] = group(**{field: options.pop(field) for field in fields})
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
        parameters[_FORMAT] = inspect.Parameter(
            _FORMAT, inspect.Parameter.KEYWORD_ONLY, default="table", annotation=_FormatOption
        )
    vars(guarded)["__signature__"] = inspect.Signature(list(parameters.values()))
    guarded.__annotations__ = {name: each.annotation for name, each in parameters.items()}
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
        if not words and "_WEIR_COMPLETE" not in os.environ:
            sys.stdout.write(_TO_TRY)
            return 0
        words = _asking_for_help(words)
        application(_known(_command_of(words), words))(list(words), prog_name="weir")
    except SystemExit as end:
        return _left(end, as_json)
    except WeirlabError as error:
        return _told(error, as_json)
    except KeyboardInterrupt:
        return _told(Interrupted("interrupted"), as_json)
    except MemoryError:
        return _told(WeirlabError("out of memory: run fewer replicates, or record less"), as_json)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _told(WeirlabError(f"{place}{error.strerror or error}"), as_json)
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != _OF_PANICS:
            raise
        debug(error)
        bug = WeirlabError(
            f"this is a bug in weirlab: {type(error).__name__}: {error}\n"
            "Please report it to its maintainers with the command line, the scenario, the output of\n"
            "'weir doctor' and the traceback that WEIRLAB_DEBUG=1 shows."
        )
        for note in getattr(error, "__notes__", []):
            bug.add_note(note)
        return _told(bug, as_json, traced=False)
    return 0


def _left(end: SystemExit, as_json: bool) -> int:
    """The exit code that typer has chosen. It says nothing of an interruption before the command begins."""
    if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
        return _told(Interrupted("interrupted"), as_json)
    if as_json and end.code == InputError.exit_code:
        _print_json_error("UsageError", "the command line is wrong: see the message on stderr", [])
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def _asking_for_help(words: Sequence[str]) -> Sequence[str]:
    """`help` and `help run` as `--help` and `run --help`."""
    return [*words[1:2], "--help"] if words[:1] == ["help"] else words


_CALLED_OTHERWISE = {
    "run": "simulate sim start execute simulation ns3",
    "study": "sweep experiment factors",
    "search": "ndr pdr throughput rfc2544 benchmark measure find rate",
    "bulk": "transfer iperf iperf3 flent campaign speedtest",
    "emulate": "netem shell mahimahi tc wan",
    "path": "ping traceroute mtr pathchar pathload bandwidth",
    "report": "plot plots graph html show view open figure",
    "compare": "diff",
    "check": "validate lint verify",
    "scenarios": "list ls examples templates new init create copy catalogue",
    "doctor": "install setup info status env capabilities",
    "reproduce": "replicate paper papers",
    "trace": "pcap tshark flows capture",
    "diagnose": "analyze analyse why explain",
}
"""Words that people try, by the command that they mean."""
_OPTIONS_OTHERWISE = {
    "--rtt": "--delay is that of one way, half of the round trip: --delay 40ms for 80 ms",
    "--latency": "--delay is that of one way: --delay 40ms",
    "--bandwidth": "--rate is that of the link: --rate 20mbit",
    "--output": "results go to --out DIR",
    "--verbose": "what matters is printed; WEIRLAB_DEBUG=1 shows the traceback of an error",
}
"""Options that people try and that no command has."""
_MORE = {
    "scenarios": "'weir scenarios NAME --copy FILE' gives you one to change",
    "run": "'weir run incast' is one to start with",
    "search": "'weir search search-knee' is one to start with",
}


def _meant(word: str) -> str:
    """That there is no such command, and what may be meant."""
    from difflib import get_close_matches

    lead = f"there is no command '{word}'"
    if word.endswith((".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz")):
        return f"{lead}: a capture is read by:  weir diagnose {word}"
    if word.endswith((".yaml", ".yml")):
        return f"{lead}: a scenario is started by:  weir run {word}  (or search, bulk, emulate)"
    meant = next((name for name, words in _CALLED_OTHERWISE.items() if word.lower() in words.split()), None)
    if meant is not None:
        more = f"; {_MORE[meant]}" if meant in _MORE else ""
        return f"{lead}: try:  weir {meant}{more}"
    from weirlab.api.catalogue import scenarios

    if word in (known := scenarios()):
        return f"{lead}, but a scenario of that name:  weir {known[word].kind} {word}"
    if near := get_close_matches(word, COMMANDS, n=2):
        return f"{lead}; did you mean {' or '.join(map(repr, near))}?"
    return f"{lead}; 'weir --help' lists them, and 'weir scenarios' what can be run"


def _known(command: str | None, words: Sequence[str]) -> str | None:
    """The command. Raises InputError, with what may be meant, where there is none of that name, or an option
    that other tools have and no command here."""
    if "_WEIR_COMPLETE" in os.environ:
        return command
    if command and command not in COMMANDS:
        raise InputError(_meant(command))
    for option in (word.partition("=")[0] for word in takewhile("--".__ne__, words)):
        if option in _OPTIONS_OTHERWISE:
            raise InputError(f"{option}: there is no such option; {_OPTIONS_OTHERWISE[option]}")
    return command


def _command_of(words: Sequence[str]) -> str | None:
    """The command that is called or completed, "" for none, None where any may be."""
    if "_WEIR_COMPLETE" in os.environ:
        asked = what_is_asked()
        if asked is None:
            return None
        words = asked[1]
    return next((word for word in words if not word.startswith("-")), "")


def _told(error: WeirlabError, as_json: bool, *, traced: bool = True) -> int:
    """Say what went wrong, and return the exit code."""
    if traced:
        debug(error)
    notes = getattr(error, "__notes__", [])
    problems = [str(problem) for problem in getattr(error, "problems", [])]
    if as_json:
        _print_json_error(type(error).__name__, "\n".join([str(error), *notes]), problems)
    lines = [*(problems or str(error).splitlines() or [type(error).__name__]), *notes]
    leads = ["weir: ", *["      "] * (len(lines) - 1)]
    sys.stderr.write("".join(f"{wrapped(lead + line)}\n" for lead, line in zip(leads, lines, strict=True)))
    if len(problems) > 1:
        sys.stderr.write(f"weir: {len(problems)} problems\n")
    return error.exit_code


def _print_json_error(kind: str, message: str, problems: list[str]) -> None:
    document = {"error": {"kind": kind, "message": message, "problems": problems}}
    with suppress(OSError):  # what went wrong may be that nothing can be written there
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
