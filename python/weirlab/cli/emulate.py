"""`weir emulate`: a shell or a command at one end of an emulated path.

One file: one command, whose options exclude each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from weirlab.cli import shared
from weirlab.cli.completion import complete_scenario
from weirlab.cli.link import Link, WriteOption, link_words, write_scenario
from weirlab.cli.meters import DelayMeter, Gauge, can_show, gauges, shown_below
from weirlab.cli.programs import Ends, default_shell, run_at_ends, words_of
from weirlab.errors import InputError, WeirlabError

if TYPE_CHECKING:
    from weirlab.results import Provenance
    from weirlab.scenario import Scenario
    from weirlab.scenario.network.path import PathPlan
    from weirlab.testbed.path import EmulatedPath
    from weirlab.testbed.path_report import LineReport, PathReport


_STAMP_PORT = 862
"""Of test packets. Source: RFC 8762, section 4.1"""
_LONGEST_S = 7 * 86_400.0


_COMMAND = "weirlab.command"
"""Where the words behind `--` are kept."""


class _WithCommand(TyperCommand):
    """A command line whose words behind `--` are another command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_COMMAND] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("emulate", cls=_WithCommand)(emulate)


def emulate(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [-- COMMAND...]",
            help="A scenario file, or the name of a ready-made one, unless options describe the path; and "
            "what to run at the near end. Default: your shell.",
            autocompletion=complete_scenario,
        ),
    ] = None,
    *,
    link: Link,
    far: Annotated[
        str | None, typer.Option(help="A second command, at the far end, such as 'iperf3 -s'.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of all random numbers. Default: that of the scenario.", min=0, max=shared.MOST_SEED
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End the command after this time, such as '60 s'."),
    ] = None,
    real_time: Annotated[
        bool, typer.Option("--real-time/--no-real-time", help="Ask for real-time priority.")
    ] = True,
    ipv6: Annotated[
        bool, typer.Option("--ipv6", help="Give both ends IPv6 addresses, too: WEIR_NEAR6, WEIR_FAR6.")
    ] = False,
    internet: Annotated[
        bool,
        typer.Option(
            "--internet",
            help="Connect both ends to the Internet, the near one through the path; names are resolved.",
        ),
    ] = False,
    joined: Annotated[
        bool | None,
        typer.Option(
            "--joined/--single",
            help="Move packets of a connection joined if no model separates them, or each alone. Default: "
            "that of the scenario, otherwise joined.",
        ),
    ] = None,
    meters: Annotated[
        bool | None,
        typer.Option(
            "--meters/--no-meters",
            help="Show rate, queue and drops at the foot of the terminal while the command runs. Default: "
            "with a command, not with a shell. --meters also shows one-way delay and jitter, from ten "
            "test packets a second.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write the emulator's counters to this file: a page if it ends in .html, otherwise JSON."
        ),
    ] = None,
    backend: Annotated[
        Literal["weir", "netem"],
        typer.Option("--with", help="Emulate with Weirlab, or with the kernel's netem, which can do less."),
    ] = "weir",
    write: WriteOption = None,
    sets: shared.SetOption = None,
) -> None:
    """Run programs over an emulated path, in network namespaces made for them.

    The command runs at the near end; WEIR_NEAR and WEIR_FAR are the addresses of the two ends. The exit
    code is that of the command. It runs as you, also with 'sudo weir'. The congestion control of TCP is the
    default of this machine.

    \b
    Examples:
      weir emulate --rate 20mbit --delay 40ms -- ping -c 10 198.18.0.2
      weir emulate --delay 25ms --down rate=50mbit --up rate=5mbit,queue=codel
      weir emulate --rate 2mbit --delay 150ms --internet \\
          -- curl -O https://example.net/file
      weir emulate wan.yaml --far 'iperf3 -s -1' \\
          -- sh -c 'sleep 1; iperf3 -c $WEIR_FAR'
    """
    from weirlab.privileges import acquire

    if write is None:
        acquire()  # before anything starts threads
    from weirlab.results import Provenance
    from weirlab.scenario.network.path import path_plan
    from weirlab.testbed.path import EmulatedPath
    from weirlab.testbed.way_out import RESOLVER, way_out

    longest_s = None if timeout is None else _timeout_s(timeout)
    file, command = _file_and_command(words or [], context.meta.get(_COMMAND), link)
    if write is not None:
        idle = {
            "a command": command,
            "--far": far,
            "--seed": seed,
            "--timeout": timeout,
            "--no-real-time": not real_time,
            "--ipv6": ipv6,
            "--internet": internet,
            "--joined": joined is not None,
            "--meters": meters is not None,
            "--report": report,
        }
        _refuse_idle(idle)
    scenario = _asked_for(file, link, sets, in_frames=backend == "netem")
    plan = path_plan(scenario)
    if plan is None or scenario.testbed.kind != "netns":
        raise InputError(
            f"{file}: has no emulated path; write 'testbed: {{kind: netns, hops: ...}}', or start it with:  "
            f"weir {scenario.command} {file}"
        )
    if write is not None:
        write_scenario(scenario, write)
        return
    if report is not None:
        _check_place(report)
    ends = Ends(
        command or default_shell(),
        [] if far is None else words_of(far),
        longest_s,
        ipv6=ipv6,
        resolver=RESOLVER if internet else None,
    )
    wants_meters = bool(command) if meters is None else meters
    if file is None:
        shared.tell(f"weir: {link_words(scenario)}")
    if backend == "netem":
        if report is not None and report.suffix == ".html":
            raise InputError(f"--report {report}: netem reports too little for a page; name a JSON file")
        _refuse_ours(joined=joined, real_time=real_time, internet=internet)
        if seed is not None or ipv6 or plan.ipv6 or meters:
            raise InputError(_beyond_netem(seed=seed is not None, ipv6=ipv6 or plan.ipv6))
        raise typer.Exit(_over_netem(plan, ends, report))
    seed = scenario.run.seed if seed is None else seed
    began = Provenance.now()
    with EmulatedPath(plan, seed=seed, real_time=real_time, ipv6=ipv6, joined=joined) as path:
        shows = wants_meters and can_show()
        shown = _meters(path, plan, delays=bool(meters)) if shows else nullcontext()
        try:
            with way_out(path) if internet else nullcontext(), shown:
                code = run_at_ends(path, ends)
        finally:
            reported = path.close()
            _say(reported)
            if (plan.joined if joined is None else joined) and not reported.joined:
                shared.tell("weir: this kernel joins no packets: expect 2 Gbit/s at most")
            if report is not None:
                _keep(report, scenario, reported, seed, began)
    raise typer.Exit(code)


def _refuse_idle(options: Mapping[str, object]) -> None:
    """Raise InputError for an option that is given where nothing runs."""
    for option, given in options.items():
        if given not in (None, False, []):
            raise InputError(f"{option}: --write keeps the path and runs nothing; leave one of them out")


def _refuse_ours(*, joined: bool | None, real_time: bool, internet: bool) -> None:
    """Raise InputError for an option that only our emulator knows."""
    if joined is not None or not real_time:
        option = "--no-real-time" if not real_time else "--joined" if joined else "--single"
        raise InputError(f"{option}: no packet of netem passes a program of ours; leave this out")
    if internet:
        raise InputError("--internet: paths of netem have no way out; leave this out")


def _asked_for(file: str | None, link: Link, sets: list[str] | None, *, in_frames: bool) -> Scenario:
    """The scenario that a user means. Raises InputError."""
    if file is not None:
        return shared.read_scenario(file, sets)
    given = shared.assignments(sets)
    if (kind := given.get("testbed.kind", "netns")) != "netns":
        raise InputError(
            f"--set testbed.kind={kind}: programs run over an emulated path, 'netns'; transfers over a "
            "simulated one:  weir bulk --set testbed.kind=sim"
        )
    return link.scenario(given, in_frames=in_frames)


def _file_and_command(
    words: Sequence[str], behind: Sequence[str] | None, link: Link
) -> tuple[str | None, list[str]]:
    """The scenario's file, None where options describe the path, and the command. Raises InputError."""
    if link.given:
        if words:
            raise InputError(
                f"{words[0]}: options describe the path already (--rate, --delay ...); leave them or the "
                "file out, and write '--' before a command"
            )
        return None, list(behind or ())
    if not words:
        raise InputError(
            "which path? name a scenario file, or describe one, such as '--rate 20mbit --delay 40ms'; "
            "write '--' before a command"
        )
    return words[0], [*words[1:], *(behind or ())]


@contextmanager
def _meters(path: EmulatedPath, plan: PathPlan, *, delays: bool) -> Iterator[None]:
    """Meters at the foot of the terminal, with `delays` those of test packets, too."""
    if not delays:
        with shown_below(lambda: _gauges(path, plan)):
            yield
        return
    from weirlab._core import one_way_delays

    measure = partial(
        one_way_delays,
        near=path.near.path,
        far=path.far.path,
        to=path.far_address,
        port=_STAMP_PORT,
        count=10,
        every_ps=10**11,
        payload_bytes=44,
        timeout_ps=10**12,
    )
    with DelayMeter(measure) as meter, shown_below(lambda: _gauges(path, plan), meter.lines):
        yield


def _gauges(path: EmulatedPath, plan: PathPlan) -> list[Gauge]:
    """What the emulator has counted so far of each direction."""
    names, rates = [], []
    for name, hop in (*plan.hops.items(), *plan.hosts.items()):
        for word, line in (("up", hop.forward), ("down", hop.backward or hop.forward)):
            names.append(word if len(plan.hops) + len(plan.hosts) == 1 else f"{name} {word}")
            rates.append(None if line.rate is None else line.rate.bps * line.lanes)
    return gauges(names, rates, path.readings())


def _beyond_netem(*, seed: bool, ipv6: bool) -> str:
    if seed:
        return "--seed: the chance of netem is the kernel's own; leave this out"
    if ipv6:
        return "--ipv6: paths of netem have IPv4 only; leave this out"
    return "--meters: netem reports nothing while it runs; leave this out"


def _over_netem(plan: PathPlan, ends: Ends, report: Path | None) -> int:
    """The exit code of the command over a path of the kernel's own."""
    from weirlab.testbed.netem import KernelPath

    with KernelPath(plan) as kernel:
        try:
            return run_at_ends(kernel, ends)
        finally:
            counted = kernel.close_kernel()
            shared.tell("weir: emulated by netem: how late packets were is not known")
            if report is not None:
                _write(report, json.dumps(counted.as_json(), indent=2) + "\n")


def _timeout_s(text: str) -> float:
    """What --timeout says [s]."""
    from weirlab.units import Span

    seconds: float = shared.quantity("--timeout", Span, text).s
    if not 0.1 <= seconds <= _LONGEST_S:
        raise InputError(f"--timeout: from 100 ms to a week (got {text})")
    return seconds


def _check_place(report: Path) -> None:
    """Raises InputError where no file can be written, before anything has run for it."""
    if report.is_dir():
        raise InputError(f"--report {report}: this is a directory; name a file")
    if not report.parent.is_dir():
        raise InputError(f"--report {report}: there is no directory {report.parent}")
    if report.suffix == ".html":
        from weirlab.report import require_packages

        require_packages()
    if not os.access(report.parent, os.W_OK):
        raise InputError(f"--report {report}: nothing may be written into {report.parent}")


def _keep(report: Path, scenario: Scenario, reported: PathReport, seed: int, began: Provenance) -> None:
    """Write the report: a page, or JSON."""
    if report.suffix != ".html":
        _write(report, json.dumps(reported.as_json(), indent=2) + "\n")
        return
    from weirlab.report.emulation import emulation_page

    _write(report, emulation_page(scenario, reported, seed=seed, began=began).html())


def _write(report: Path, content: str) -> None:
    """Where that fails, the exit code is the command's all the same."""
    from weirlab.files import writing

    try:
        with writing(report):
            report.write_text(content, encoding="utf-8")
    except WeirlabError as error:
        shared.tell(f"weir: --report {error}")


def _early(counts: Mapping[str, int]) -> str:
    """What a managed queue did before it was full."""
    words = ((counts["dropped_early"], "dropped early"), (counts["marked"], "marked"))
    return "".join(f", {count} {word}" for count, word in words if count)


def _late(line: LineReport) -> str:
    """How late the packets were, where there were any."""
    if line.lateness_s is None:
        return ""
    middle = f", late {1e6 * line.lateness_s['p50']:.0f} us (p50)"
    if line.lateness_p99_s is None:
        return f"{middle}, {1e6 * line.lateness_s['max']:.0f} us at most; too few for a p99 ({line.written})"
    return f"{middle}, {1e6 * line.lateness_p99_s:.0f} us (p99)"


def _say(reported: PathReport) -> None:
    """A line for each direction, and what is to be doubted."""
    for line in reported.lines:
        counts = line.counts
        shared.tell(
            f"weir: {line.hop} {line.direction}: {counts['arrived']} packets, {counts['lost']} lost, "
            f"{counts['dropped']} dropped{_early(counts)}{_late(line)}"
        )
    for reason in reported.degraded:
        shared.tell(f"weir: degraded: {reason}")
    if reported.disturbance:
        shared.tell(f"weir: disturbed: {reported.disturbance}")
    elif reported.degraded:
        shared.tell("weir: the account of the machine shows no disturbance: the emulator itself was too slow")
    if not reported.real_time:
        shared.tell("weir: without real-time priority: expect lateness of milliseconds on a busy machine")
    shared.conclude_aside(f"weir: {reported.verdict}.")
