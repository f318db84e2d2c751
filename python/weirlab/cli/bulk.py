"""`weir bulk`: measure bulk transfers, on real stacks or in simulated time."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirlab.cli.frame import (
    JsonFlag,
    OutOption,
    ReportFlag,
    ScenarioArgument,
    SetOption,
    overrides,
    print_json,
    quantity,
    read_scenario,
    show,
    show_place,
    tell,
    write_page,
)
from weirlab.cli.progress import progress_bar

if TYPE_CHECKING:
    from weirlab.bulk import Campaign, PointSummary

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bulk", short_help="Measure bulk transfers, real or simulated, in cycles.")(bulk)


def bulk(
    file: ScenarioArgument,
    sets: SetOption = None,
    cycles: Annotated[
        int | None,
        typer.Option(min=1, help="How many cycles; more than a campaign in --out had extend it."),
    ] = None,
    out: OutOption = None,
    advise: Annotated[
        bool,
        typer.Option(
            "--advise", help="Say which of the points suits the path, what limits it, and how sure."
        ),
    ] = False,
    most_delay: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Most delay that others may meet, such as '10 ms'; with --advise."),
    ] = None,
    report: ReportFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a campaign: every point of a study, loaded and unloaded, cycle after cycle, with iperf3 and ping
    over an emulated path; or with testbed.kind=sim in simulated time.

    Each measurement is on disk when it ends; the same command with --out DIR goes on after an interruption,
    tries again what failed, and adds cycles where --cycles is larger. The exit code is 1 when a measurement
    failed.

    \b
    Examples:
      weir bulk windows-against-streams --out results/cern
      weir bulk windows-against-streams --cycles 2
      weir bulk bulk-streams --set testbed.kind=sim --advise --report
    """
    from weirlab.bulk import NoAdviceError, check_advisable, plan_of, run_campaign, summaries
    from weirlab.bulk import advise as find_advice
    from weirlab.bulk.campaign import LOG
    from weirlab.bulk.tables import interval_table, measurement_table
    from weirlab.errors import InputError, Interrupted
    from weirlab.privileges import acquire
    from weirlab.records import save_tables
    from weirlab.report.bulk import advice_text, loads_table, point_tables, responsiveness_table
    from weirlab.results import claimed_directory, write_json
    from weirlab.scenario.testbeds import Netns
    from weirlab.units import Span

    if most_delay is not None and not advise:
        raise InputError("--most-delay: is for --advise; give that, too")
    most_delay_s = None if most_delay is None else quantity("--most-delay", Span, most_delay).s
    if cycles is not None:
        sets = [*(sets or []), f"campaign.cycles={cycles}"]
    scenario = read_scenario(file, sets)
    plan = plan_of(scenario)  # what cannot run is told before a directory is made
    if advise:
        check_advisable(plan)
    if isinstance(scenario.testbed, Netns):
        acquire()
    continued = out is not None and (out / LOG).exists()
    place = nullcontext(out) if continued and out is not None else claimed_directory(scenario.name, out)
    try:
        with place as directory, progress_bar("measuring", f"{len(plan.places())} measurements") as progress:
            campaign = run_campaign(scenario, directory, overrides=overrides(sets), progress=progress)
    except Interrupted as error:
        raise Interrupted(f"{error}. Continue with the same command and --out {directory}") from None
    found = summaries(campaign)
    document = _document(campaign, directory, found)
    if advise:
        try:
            advice = find_advice(campaign, most_delay_s=most_delay_s)
            document |= {"advice": asdict(advice), "advice_text": advice_text(advice)}
        except NoAdviceError as error:  # what was measured is told all the same
            document |= {"advice": None, "advice_text": f"No advice: {error}."}
    write_json(directory / "result.json", document)
    tables = {"measurements": measurement_table(campaign), "intervals": interval_table(campaign)}
    save_tables(tables, directory / "tables")
    if as_json:
        print_json(document)
        _end_with_failures(campaign, directory)
        return
    if continued:
        tell(f"continued {directory}")
    for table in point_tables(found, scenario.name, plan.cycles):
        show(table)
    for further in (loads_table(found), responsiveness_table(found)):
        if further is not None:
            show(further)
    if advise:
        typer.echo(document["advice_text"])
    show_place(directory, write_page(directory) if report else None)
    _end_with_failures(campaign, directory)


def _end_with_failures(campaign: Campaign, directory: Path) -> None:
    """Say why measurements failed, and leave with code 1; what was measured has been kept and shown."""
    reasons = campaign.failures
    if not reasons:
        return
    reason, count = next(iter(reasons.items()))
    others = f"; {len(reasons) - 1} other reasons stand in result.json" if len(reasons) > 1 else ""
    tell(
        f"weir: {len(campaign.failed)} of {len(campaign.kept)} measurements failed, {count} of them: "
        f"{reason}{others}\n      The same command with --out {directory} tries them again."
    )
    raise typer.Exit(1)


def _document(campaign: Campaign, directory: Path, found: list[PointSummary]) -> dict[str, Any]:
    """The campaign as JSON values; what is unknown is null."""
    rows = [
        {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(each).items()
        }
        for each in found
    ]
    return {
        "kind": "campaign",
        "failures": campaign.failures,
        "name": campaign.plan.scenario.name,
        "directory": str(directory),
        "joined": campaign.joined,
        "points": rows,
    }
