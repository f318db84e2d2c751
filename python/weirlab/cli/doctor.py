"""`weir doctor`: what this machine can do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.shared import JsonFlag, conclude, print_json
from weirlab.cli.tables import say, show_records

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

    Nothing is changed. The exit code is 0 whatever is missing: simulations, searches on simulated devices and
    reports work without it.
    """
    from weirlab.doctor import examine

    checks = examine(measure_clock=clock)
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
        return
    if show_records("Parts", [asdict(check) for check in checks]):
        return
    section = ""
    for check in checks:
        if check.section != section:
            section = check.section
            if check is not checks[0]:
                say("")
            say(section, "bold")
        _show(check)
    amiss = [check.name for check in checks if check.status != "ok"]
    parts = f"{len(amiss)} of {len(checks)} parts are missing or not known: {', '.join(amiss)}."
    conclude([parts if amiss else f"Everything works: {len(checks)} parts."])


_MARKS = {"ok": ("ok", "green"), "lack": ("lack", "yellow"), "unknown": ("?", "yellow")}


def _show(check: Check) -> None:
    mark, color = _MARKS[check.status]
    say(f"{check.name}: {check.found}", lead=f"  {mark:<4}  ", lead_style=color)
    if check.means:
        say(check.means, lead="          means: ")
    if check.remedy:
        say(check.remedy, lead="          mend:  ")
