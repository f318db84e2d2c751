"""`weir scenarios`: the ready-made scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weirlab.cli.completion import complete_scenario
from weirlab.cli.shared import JsonFlag, conclude, print_json, tell
from weirlab.cli.tables import say, show_records, width
from weirlab.errors import InputError

if TYPE_CHECKING:
    from weirlab.api.catalogue import Catalogue


Kind = Literal["run", "search", "bulk", "emulate"]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scenarios")(scenarios)


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The scenario to print. Default: list all.",
            autocompletion=complete_scenario,
        ),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option("--copy", metavar="FILE", help="Copy the scenario into this new file or directory."),
    ] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="List only scenarios for this command.")] = None,
    word: Annotated[
        str | None,
        typer.Option(
            "--search",
            metavar="WORD",
            help="List only scenarios whose name or text has this word or means it.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the ready-made scenarios, print one, or copy one to change it.

    \b
    Examples:
      weir scenarios
      weir scenarios --kind search
      weir scenarios --search hotspot
      weir scenarios incast
      weir scenarios incast --copy mine.yaml
    """
    from weirlab.api.catalogue import scenarios as catalogue
    from weirlab.scenario.file.ready import needed_by, ready_made, scenario_file

    files = ready_made()
    if name is None:
        if copy is not None:
            raise InputError("--copy needs the NAME of a scenario")
        found = catalogue(kind=kind, search=word)
        rows = [
            {
                "name": each.name,
                "file": str(each.file),
                "command": f"weir {each.kind}",
                "topic": each.topic,
                "description": each.description,
            }
            for each in found.values()
        ]
        if as_json:
            print_json({"scenarios": rows})
        elif not show_records("Scenarios", rows):
            _list(found)
        return
    if name not in files:
        scenario_file(Path(name).name)  # says what is near
        raise InputError(f"{name}: not a ready-made scenario; 'weir scenarios' lists them")
    if copy is not None:
        target = copy / files[name].name if copy.is_dir() else copy
        _copy({files[name]: target} | {file: target.parent / file.name for file in needed_by(files[name])})
    if as_json:
        print_json({"name": name, "file": str(files[name]), "text": files[name].read_text(encoding="utf-8")})
    elif copy is None:
        typer.echo(files[name].read_text(encoding="utf-8"), nl=False)


def _copy(targets: Mapping[Path, Path]) -> None:
    """Copy files, all or none. A file that another scenario brought here and nobody changed is kept."""
    from weirlab.files import whole

    _, *others = targets.values()
    kept = {
        target
        for source, target in targets.items()
        if target in others and target.exists() and target.read_bytes() == source.read_bytes()
    }
    for target in targets.values():
        if target.exists() and target not in kept:
            raise InputError(f"{target}: exists already; name a new file in another directory")
    for source, target in targets.items():
        if target not in kept:
            with whole(target) as unfinished:
                unfinished.write_bytes(source.read_bytes())
            tell(f"written: {target}")


def _list(found: Catalogue) -> None:
    """By what they show, most in a line."""
    from weirlab.api.catalogue import shortened

    columns = width()
    longest = max(len(each) for each in found)
    for topic, group in found.by_topic().items():
        typer.echo(f"\n{topic}: weir {group[0].kind} NAME")
        for each in group:
            say(shortened(each.description, columns - longest - 4), lead=f"  {each.name:<{longest}}  ")
    conclude(["weir scenarios NAME prints one and explains it; --copy FILE copies it for you to change."])
