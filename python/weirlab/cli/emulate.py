"""`weir emulate`: a shell or a command at one end of an emulated path."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from weirlab.cli.frame import MOST_SEED, ScenarioArgument, SetOption, quantity, read_scenario

if TYPE_CHECKING:
    from weirlab.testbed.namespaces import Namespace
    from weirlab.testbed.path import EmulatedPath, PathReport

__all__ = ["add_to"]

_GRACE_S = 5.0
"""How long a command may take to end after it was asked to."""


_LONGEST_S = 7 * 86_400.0


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("emulate", short_help="A shell or a command at one end of an emulated path.")(emulate)


def emulate(
    file: ScenarioArgument,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="What to run at the near end. Default: your shell."),
    ] = None,
    far: Annotated[
        str | None, typer.Option(help="A command to run at the far end meanwhile, such as 'iperf3 -s'.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the path's chance. Default: the scenario's.", min=0, max=MOST_SEED),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End the command after this time; a number alone is seconds."),
    ] = None,
    real_time: Annotated[
        bool, typer.Option("--real-time/--no-real-time", help="Ask for real-time priority.")
    ] = True,
    ipv6: Annotated[
        bool, typer.Option("--ipv6", help="Give both ends addresses of IPv6, too: WEIR_NEAR6, WEIR_FAR6.")
    ] = False,
    joined: Annotated[
        bool | None,
        typer.Option(
            "--joined/--single",
            help="Move packets of a connection joined where no model parts them, or each alone. Default: as "
            "the scenario's testbed says, else joined.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write what the emulator counted to this JSON file.")
    ] = None,
    backend: Annotated[
        Literal["weir", "netem"],
        typer.Option(
            "--with", help="Who emulates: Weirlab, or the kernel's netem with 'tc', for what it can do."
        ),
    ] = "weir",
    sets: SetOption = None,
) -> None:
    """Run programs over an emulated path, in network namespaces made for them. Needs root.

    The near end is where the command runs; WEIR_NEAR and WEIR_FAR are the addresses of both ends. The exit
    code is that of the command.

    \b
    Examples:
      weir emulate wan.yaml -- ping -c 10 198.18.0.2
      weir emulate wan.yaml --far 'iperf3 -s -1' -- sh -c 'sleep 1; iperf3 -c $WEIR_FAR'
      weir emulate wan.yaml
    """
    from weirlab.errors import InputError
    from weirlab.scenario.path import path_plan
    from weirlab.testbed.netem import KernelPath
    from weirlab.testbed.path import EmulatedPath

    longest_s = None if timeout is None else _timeout_s(timeout)
    scenario = read_scenario(file, sets)
    plan = path_plan(scenario)
    if plan is None or scenario.testbed.kind != "netns":
        raise InputError(f"{file}: no emulated path: write 'testbed: {{kind: netns, hops: ...}}'")
    if report is not None:
        _check_place(report)
    words = command or [os.environ.get("SHELL", "/bin/sh")]
    beyond = [] if far is None else _words(far)
    if backend == "netem":
        if seed is not None:
            raise InputError("--seed: the chance of netem is the kernel's own; leave this out")
        if ipv6:
            raise InputError("--ipv6: paths of netem have IPv4 only; leave this out")
        if joined is not None or not real_time:
            option = "--no-real-time" if not real_time else "--joined" if joined else "--single"
            raise InputError(f"{option}: no packet of netem passes a program of ours; leave this out")
        with KernelPath(plan) as kernel:
            try:
                code = _run(kernel, words, beyond, longest_s, ipv6=ipv6)
            finally:
                counted = kernel.close_kernel()
                typer.echo("weir: emulated by netem: how late packets were is not known", err=True)
                if report is not None:
                    _keep(report, counted.as_json())
        raise typer.Exit(code)
    seed = scenario.run.seed if seed is None else seed
    with EmulatedPath(plan, seed=seed, real_time=real_time, ipv6=ipv6, joined=joined) as path:
        try:
            code = _run(path, words, beyond, longest_s, ipv6=ipv6)
        finally:
            told = path.close()
            _say(told)
            if (plan.joined if joined is None else joined) and not told.joined:
                typer.echo("weir: this kernel joins no packets: expect 2 Gbit/s at most", err=True)
            if report is not None:
                _keep(report, told.as_json())
    raise typer.Exit(code)


def _timeout_s(text: str) -> float:
    """What --timeout says [s]."""
    from weirlab.errors import InputError
    from weirlab.units import Span

    try:
        seconds = float(text)
    except ValueError:
        seconds = quantity("--timeout", Span, text).s
    if not 0.1 <= seconds <= _LONGEST_S:
        raise InputError(f"--timeout: from 100 ms to a week (got {text})")
    return seconds


def _words(far: str) -> list[str]:
    """The command of --far."""
    from weirlab.errors import InputError

    try:
        words = shlex.split(far)
    except ValueError as error:
        raise InputError(f"--far: {str(error)[0].lower()}{str(error)[1:]} (got {far!r})") from error
    if not words:
        raise InputError("--far: write a command, such as 'iperf3 -s' (got nothing)")
    return words


def _check_place(report: Path) -> None:
    """Raises InputError where no file can be written, before anything has run for it."""
    from weirlab.errors import InputError

    if report.is_dir():
        raise InputError(f"--report {report}: this is a directory; name a file")
    if not report.parent.is_dir():
        raise InputError(f"--report {report}: there is no directory {report.parent}")
    if not os.access(report.parent, os.W_OK):
        raise InputError(f"--report {report}: nothing may be written into {report.parent}")


def _keep(report: Path, content: Mapping[str, Any]) -> None:
    """Write the report; where that fails, the exit code is the command's all the same."""
    from weirlab.errors import WeirlabError
    from weirlab.files import writing

    try:
        with writing(report):
            report.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except WeirlabError as error:
        typer.echo(f"weir: --report {error}", err=True)


def _run(
    path: EmulatedPath, command: Sequence[str], far: Sequence[str], timeout: float | None, *, ipv6: bool
) -> int:
    """The exit code of the command at the near end."""
    environment = {**os.environ, "WEIR_NEAR": path.near_address, "WEIR_FAR": path.far_address}
    if ipv6:
        environment |= {"WEIR_NEAR6": path.near_address6, "WEIR_FAR6": path.far_address6}
    with contextlib.ExitStack() as stack:
        if far:
            stack.enter_context(_started(path.far, far, environment, session=True))
        # A shell keeps the terminal, whose Ctrl-C is for what runs in it.
        terminal = sys.stdin.isatty()
        if terminal:
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            stack.callback(signal.signal, signal.SIGINT, before)
        child = stack.enter_context(_started(path.near, command, environment, session=not terminal))
        try:
            code = child.wait(timeout)
        except subprocess.TimeoutExpired:
            typer.echo(f"weir: ended the command after {timeout:g} s", err=True)
            return 124
        return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _started(
    namespace: Namespace, command: Sequence[str], environment: dict[str, str], *, session: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a namespace, ended with everything that it started in its session."""
    from weirlab.errors import InputError

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=environment, start_new_session=session)

    try:
        child = namespace.inside(start)
    except OSError as error:
        raise InputError(f"cannot run '{command[0]}': {error.strerror}") from error
    with _ended_without_us(-child.pid if session else child.pid):
        try:
            yield child
        finally:
            for end in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    if session:
                        os.killpg(child.pid, end)
                    elif child.poll() is None:
                        child.send_signal(end)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_GRACE_S)
                    break


@contextlib.contextmanager
def _ended_without_us(target: int) -> Iterator[None]:
    """Sees to it that a process, or the group of a negative number, ends when this process is killed.

    The kernel can tell a child of its parent's death, but means the thread that started it, which is gone by
    then, and does not tell the child's children. So a shell waits at a pipe that only we hold open.
    """
    words = f"cat; kill -s TERM -- {target}; sleep {_GRACE_S:g}; kill -s KILL -- {target}"
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        ["/bin/sh", "-c", words],
        stdin=subprocess.PIPE,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    ) as watcher:
        try:
            yield
        finally:
            watcher.kill()


def _early(counts: Mapping[str, int]) -> str:
    """What a managed queue did before it was full."""
    words = ((counts["dropped_early"], "dropped early"), (counts["marked"], "marked"))
    return "".join(f", {count} {word}" for count, word in words if count)


def _say(told: PathReport) -> None:
    """A line for each direction, and what is to be doubted."""
    for way in told.ways:
        counts = way.counts
        late = way.lateness_s
        lateness = (
            ""
            if late is None
            else f", late {1e6 * late['p50']:.0f} us (p50), {1e6 * late['p99']:.0f} us (p99)"
        )
        typer.echo(
            f"weir: {way.hop} {way.direction}: {counts['arrived']} packets, {counts['lost']} lost, "
            f"{counts['dropped']} dropped{_early(counts)}{lateness}",
            err=True,
        )
    for reason in told.degraded:
        typer.echo(f"weir: degraded: {reason}", err=True)
    if not told.real_time:
        typer.echo(
            "weir: without real-time priority: expect lateness of milliseconds on a busy machine", err=True
        )
