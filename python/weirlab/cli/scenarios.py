"""`weir scenarios`: the ready-made scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weirlab.cli.completion import complete_scenario
from weirlab.cli.frame import JsonFlag, conclude, print_json, tell
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


_LEAST_SHARE = 0.4
"""Of a line, that a description is not cut below."""


def shortened(text: str, room: int) -> str:
    """A description that fits into a line: all of it, or as many of its clauses as do; where the first alone
    is too long, all of it again, for several lines."""
    if len(text) <= room:
        return text
    ends = [found.start() for found in re.finditer(r"[:;.](?= |$)", text) if found.start() <= room]
    return text[: ends[-1]] if ends and ends[-1] >= _LEAST_SHARE * room else text


def _list(found: Catalogue) -> None:
    """By what they show, most in a line."""
    columns = width()
    longest = max(len(each) for each in found)
    for topic, group in found.by_topic().items():
        typer.echo(f"\n{topic}: weir {group[0].kind} NAME")
        for each in group:
            say(shortened(each.description, columns - longest - 4), lead=f"  {each.name:<{longest}}  ")
    conclude(["weir scenarios NAME prints one, with --copy FILE it is yours to change."])
