"""`weir doctor`: what this machine can do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.frame import JsonFlag, conclude, print_json

if TYPE_CHECKING:
    from weirlab.doctor import Check


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    clock: Annotated[
        bool, typer.Option("--clock/--no-clock", help="Measure the clock, which takes about a second.")
    ] = True,
    as_json: JsonFlag = False,
) -> None:
    """Report what this machine can do for Weirlab, what is missing, and how to fix it.

    Nothing is changed. Exit code 0, whatever is lacking: simulations, searches on simulated devices and
    reports need nothing of it.
    """
    from weirlab.doctor import examine

    checks = examine(measure_clock=clock)
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
        return
    section = ""
    for check in checks:
        if check.section != section:
            section = check.section
            typer.secho(("" if check is checks[0] else "\n") + section, bold=True)
        _show(check)
    amiss = [check.name for check in checks if check.status != "ok"]
    parts = f"{len(amiss)} of {len(checks)} parts are missing or not known: {', '.join(amiss)}."
    conclude([parts if amiss else f"Everything works: {len(checks)} parts."])


def _show(check: Check) -> None:
    colors = {"ok": typer.colors.GREEN, "lack": typer.colors.YELLOW, "unknown": typer.colors.YELLOW}
    mark = typer.style(
        {"ok": "ok  ", "lack": "lack", "unknown": "?   "}[check.status], fg=colors[check.status]
    )
    typer.echo(f"  {mark}  {check.name}: {check.found}")
    if check.means:
        typer.echo(f"          means: {check.means}")
    if check.remedy:
        typer.echo(f"          mend:  {check.remedy}")
