"""`weir bulk`: measure bulk transfers, on real stacks or in simulated time."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli import shared
from weirlab.cli.campaign_words import CampaignWords, host_of, host_words
from weirlab.cli.completion import complete_scenario
from weirlab.cli.link import Link, WriteOption, link_words, write_scenario
from weirlab.cli.progress import progress_bar
from weirlab.cli.viewing import ViewFlag, viewed
from weirlab.errors import InputError, Interrupted

if TYPE_CHECKING:
    from weirlab.campaigns import Campaign, Plan
    from weirlab.scenario import Scenario


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bulk")(bulk)


def bulk(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|HOST]",
            help="A scenario file, or the name of a ready-made one; or a host on which 'iperf3 -s' runs, one "
            "for each concurrent load, at consecutive ports (far.example.net, 192.0.2.7:5202), or "
            "on which ssh starts it (me@far.example.net).",
            autocompletion=complete_scenario,
        ),
    ] = None,
    *,
    link: Link,
    words: CampaignWords,
    write: WriteOption = None,
    sets: shared.SetOption = None,
    on: shared.OnOption = None,
    store: shared.StoreOption = None,
    out: shared.OutOption = None,
    advise: Annotated[
        bool,
        typer.Option(
            "--advise", help="Recommend one of the points, with what limits it and how certain that is."
        ),
    ] = False,
    most_delay: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With --advise: most delay that others may get, such as '10 ms'."),
    ] = None,
    report: shared.ReportFlag = False,
    view: ViewFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Measure bulk transfers in cycles: every point of a study, loaded and unloaded, with iperf3 and ping
    over an emulated or a real path, or in simulated time (testbed.kind=sim).

    Without a file, options describe the path (--rate, --delay ...), or a HOST is the far end of a real one;
    pings run alone, then during a transfer.

    Each measurement is on disk when it ends. The same command with --out DIR continues after an interruption,
    repeats failed measurements, and adds cycles if --cycles is larger. The exit code is 1 if a measurement
    failed.

    \b
    Examples:
      weir bulk windows-against-streams --out results/cern
      weir bulk --rate 20mbit --delay 40ms --streams 1,4 \\
          --congestion-control cubic,bbr
      weir bulk 192.0.2.7 --way both --report
          'iperf3 -s' and 'iperf3 -s -p 5202' run there
      weir bulk bulk-streams --set testbed.kind=sim --advise --report
      weir bulk bulk-cern --set testbed.kind=sim --on local:4
    """
    from weirlab.api.measured import bulk as measure
    from weirlab.campaigns import check_advisable, plan_of
    from weirlab.campaigns.campaign import LOG
    from weirlab.privileges import acquire
    from weirlab.results import claimed_directory, read_json
    from weirlab.scenario.testbeds import Netns, Sim
    from weirlab.testbed import warning
    from weirlab.units import Span

    if most_delay is not None and not advise:
        raise InputError("--most-delay: is for --advise; give that, too")
    runs = {
        "--advise": advise,
        "--report": report,
        "--view": view,
        "--json": as_json,
        "--out": out is not None,
    }
    if write is not None and (useless := [option for option, given in runs.items() if given]):
        raise InputError(f"{useless[0]}: --write runs nothing; leave one of them out")
    most_delay_s = None if most_delay is None else shared.quantity("--most-delay", Span, most_delay).s
    scenario, sets = _asked_for(file, link, words, sets)
    plan = plan_of(scenario)  # what cannot run is reported before a directory is made
    if advise:
        check_advisable(plan)
    if isinstance(scenario.testbed, Netns) and write is None:
        acquire()  # which may start over: nothing has been told or made yet
    if about := _first_line(file, plan):
        shared.tell(f"weir: {about}")
    if write is not None:
        write_scenario(scenario, write)
        return
    if isinstance(scenario.testbed, Netns) and (busy := warning(scenario)):
        shared.tell(f"weir: {busy}; measurements say what disturbed them")
    if isinstance(scenario.testbed, Sim):
        _warn_of_length(plan)
    continued = out is not None and (out / LOG).exists()
    place = nullcontext(out) if continued and out is not None else claimed_directory(scenario.name, out)
    try:
        with (
            place as directory,
            viewed(directory, view),
            progress_bar("measuring", f"{len(plan.places())} measurements") as progress,
        ):
            result = measure(
                scenario,
                advice=advise,
                most_delay_s=most_delay_s,
                out=directory,
                overrides=shared.overrides(sets),
                progress=progress,
                on=on,
                store=store,
            )
    except Interrupted as error:
        raise Interrupted(f"{error}. Continue with the same command and --out {directory}") from None
    if as_json:
        shared.print_json(read_json(directory / "result.json"))
        _end_with_failures(result.campaign, directory)
        return
    if continued:
        shared.tell(f"continued {directory}")
    shared.show_result(result, shared.write_page(directory) if report else None)
    _end_with_failures(result.campaign, directory)


def _asked_for(
    file: str | None, link: Link, words: CampaignWords, sets: list[str] | None
) -> tuple[Scenario, list[str] | None]:
    """The campaign that a user means, and the assignments that belong to it. Raises InputError."""
    if file is None:
        if not link.given:
            raise InputError(
                "which path? name a scenario file or a host, or describe a path, such as "
                "'--rate 20mbit --delay 40ms'"
            )
        return words.over(link, shared.assignments(sets)), sets
    bed = host_of(file)
    if link.given:
        raise InputError(
            f"{file}: options describe the path already (--rate, --delay ...); leave them or this out"
        )
    if bed is not None:
        return words.to(bed, shared.assignments(sets)), sets
    if words.given:
        raise InputError(
            f"{words.given}: the traffic of a file is in the file; use --set, or leave the file out "
            "(a host of one word has a port: box:5201)"
        )
    if words.cycles is not None:
        sets = [*(sets or []), f"campaign.cycles={words.cycles}"]
    scenario = shared.read_scenario(file, sets)
    shared.check_command(scenario, file, "bulk")
    return scenario, sets


def _first_line(file: str | None, plan: Plan) -> str:
    """What is measured, where options or a host say so; empty where a file does."""
    if file is None:
        return link_words(plan.scenario)
    return "" if host_of(file) is None else host_words(plan)


_SEGMENTS_PER_S = 2.5e6
"""What a core simulates, about."""
_LONG_S = 60.0


def _warn_of_length(plan: Plan) -> None:
    """Say how long a simulation may take that takes long."""
    from weirlab.campaigns.causes import most_segments

    segments = most_segments(plan)
    seconds = segments / _SEGMENTS_PER_S
    if seconds > _LONG_S:
        shared.tell(
            f"weir: up to {segments / 1e6:.0f} million segments are simulated, which takes about "
            f"{seconds / 60:.0f} min; smaller windows, fewer streams, shorter steps or a 'rate' of the path "
            "make them fewer. Ctrl-C keeps what was measured"
        )


def _end_with_failures(campaign: Campaign, directory: Path) -> None:
    """Say why measurements failed, and leave with code 1; what was measured has been kept and shown."""
    reasons = campaign.failures
    if not reasons:
        return
    reason, count = next(iter(reasons.items()))
    others = f"; {len(reasons) - 1} other reasons are in result.json" if len(reasons) > 1 else ""
    shared.tell(
        f"weir: {len(campaign.failed)} of {len(campaign.kept)} measurements failed, {count} of them: "
        f"{reason}{others}\n      The same command with --out {directory} tries them again."
    )
    raise typer.Exit(1)
