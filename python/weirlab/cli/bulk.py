"""`weir bulk`: measure bulk transfers on real stacks."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weirlab.cli.frame import (
    JsonFlag,
    OutOption,
    ScenarioArgument,
    SetOption,
    overrides,
    print_json,
    read_scenario,
    show,
    tell,
)
from weirlab.cli.progress import progress_bar

if TYPE_CHECKING:
    from weirlab.bulk import PointSummary
    from weirlab.report.page import Table

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bulk", short_help="Measure bulk transfers on real stacks, in cycles.")(bulk)


def bulk(
    file: ScenarioArgument,
    sets: SetOption = None,
    out: OutOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a campaign: every point of a study, loaded and unloaded, cycle after cycle, with iperf3 and ping
    over an emulated path. Needs root.

    Each measurement is on disk when it ends; the same command with --out DIR goes on after an interruption.

    \b Examples: weir bulk windows-against-streams --out results/cern weir bulk windows-against-streams
    --set campaign.cycles=2
    """
    from weirlab.bulk import plan_of, run_campaign, summaries
    from weirlab.bulk.campaign import LOG
    from weirlab.errors import Interrupted
    from weirlab.results import new_directory, write_json

    scenario = read_scenario(file, sets)
    plan = plan_of(scenario)  # what cannot run is told before a directory is made
    continued = out is not None and (out / LOG).exists()
    directory = out if continued and out is not None else new_directory(scenario.name, out)
    try:
        with progress_bar("measuring", f"{len(plan.places())} measurements") as progress:
            campaign = run_campaign(scenario, directory, overrides=overrides(sets), progress=progress)
    except Interrupted as error:
        raise Interrupted(f"{error}. Continue with the same command and --out {directory}") from None
    found = summaries(campaign)
    document = _document(scenario.name, directory, found)
    write_json(directory / "result.json", document)
    if as_json:
        print_json(document)
        return
    if continued:
        tell(f"continued {directory}")
    show(_table(found, scenario.name, plan.cycles))
    typer.echo(f"\nResult: {directory}")


def _document(name: str, directory: Path, found: list[PointSummary]) -> dict[str, Any]:
    """The campaign as JSON values; what is unknown is null."""
    rows = [
        {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(each).items()
        }
        for each in found
    ]
    return {"kind": "campaign", "name": name, "directory": str(directory), "points": rows}


def _table(found: list[PointSummary], name: str, cycles: int) -> Table:
    from weirlab.report.page import Column, Table

    factors = list(found[0].levels) if found else []
    columns = [Column(factor, numeric=False) for factor in factors] + [
        Column(words)
        for words in (
            "measured",
            "Mbit/s",
            "IQR",
            "loaded RTT min/mean ms",
            "unloaded",
            "dRTT ms",
            "window kB",
            "Jain",
            "CPU %",
            "degraded",
        )
    ]
    rows = [
        [
            *each.levels.values(),
            f"{each.transfers}" + (f" ({each.failed} failed)" if each.failed else ""),
            _number(each.goodput_bps / 1e6, 2),
            _number(each.goodput_iqr_bps / 1e6, 2),
            f"{_number(1e3 * each.loaded_min_s, 1)} / {_number(1e3 * each.loaded_mean_s, 1)}",
            f"{_number(1e3 * each.unloaded_min_s, 1)} / {_number(1e3 * each.unloaded_mean_s, 1)}",
            _number(1e3 * each.rtt_difference_s, 2),
            _number(each.window_bytes / 1e3, 1),
            _number(each.fairness, 3),
            _number(each.sender_cpu_percent, 1),
            str(each.degraded),
        ]
        for each in found
    ]
    note = "Medians over the cycles; window: a stream's rate times the round-trip time that its TCP saw."
    return Table(f"{name}, {cycles} cycles", columns, rows, note=note)


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"
