"""`weir scenarios`: the ready-made scenarios."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weirlab.cli.completion import complete_scenario
from weirlab.cli.frame import JsonFlag, print_json, tell
from weirlab.cli.tables import say, show_records, width

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
            help="Print this one.",
            autocompletion=complete_scenario,
            show_default=False,
        ),
    ] = None,
    copy: Annotated[
        Path | None, typer.Option("--copy", metavar="FILE", help="Copy it into this new file or directory.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="List only those of this command.", show_default=False)
    ] = None,
    word: Annotated[
        str | None,
        typer.Option(
            "--search",
            metavar="WORD",
            help="List only those whose name or text has this word.",
            show_default=False,
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
    from weirlab.errors import InputError
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
    from weirlab.errors import InputError
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
    """A line each, by what they show."""
    columns = width()
    longest = max(len(each) for each in found)
    for topic, group in found.by_topic().items():
        typer.echo(f"\n{topic}: weir {group[0].kind} NAME")
        for each in group:
            room = columns - longest - 4
            text = each.description
            shown = text if len(text) <= room else textwrap.shorten(text, room, placeholder=" ...")
            typer.echo(f"  {each.name:<{longest}}  {shown}")
    say("\nweir scenarios NAME prints one, with --copy FILE it is yours to change.")
