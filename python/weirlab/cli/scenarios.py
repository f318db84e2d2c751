"""`weir scenarios`: the ready-made scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from weirlab.cli.frame import JsonFlag, complete_scenario, print_json, tell

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scenarios", short_help="List, print or copy the ready-made scenarios.")(scenarios)


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
    as_json: JsonFlag = False,
) -> None:
    """List the ready-made scenarios, print one, or copy one to change it.

    \b
    Examples:
      weir scenarios
      weir scenarios incast
      weir scenarios incast --copy mine.yaml
    """
    from weirlab.errors import InputError
    from weirlab.scenario.ready import needed_by, ready_made, scenario_file

    files = ready_made()
    if name is None:
        if copy is not None:
            raise InputError("--copy needs the NAME of a scenario")
        described = {each: _facts(file) for each, file in files.items()}
        if as_json:
            rows = [{"name": each, "file": str(files[each]), **facts} for each, facts in described.items()]
            print_json({"scenarios": rows})
            return
        width = max((len(each) for each in described), default=0)
        for each, facts in described.items():
            typer.echo(f"{each:<{width}}  {facts['command']:<12}  {facts['description']}")
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


def _facts(file: Path) -> dict[str, str]:
    """Description and command, without the validation that a list does not need.

    A file without a description is described by the first sentence of the comment that it begins with.
    """
    import yaml

    text = file.read_text(encoding="utf-8")
    # BaseLoader makes text, lists and mappings only.
    content = yaml.load(text, Loader=yaml.BaseLoader)
    comment = " ".join(line.removeprefix("#").strip() for line in takewhile(_is_comment, text.splitlines()))
    description = content.get("description") or re.split(r"(?<=\.)\s", comment, maxsplit=1)[0]
    return {"command": f"weir {_command(file, content)}", "description": " ".join(description.split())}


def _command(file: Path, content: Mapping[str, Any]) -> str:
    """What starts it. Sections may be those of the file that it extends."""
    import yaml

    sections = set(content)
    bed: dict[str, Any] = dict(content.get("testbed", {}))
    while "extends" in content:
        file = file.parent / content["extends"]
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        sections |= set(content)
        bed = {**content.get("testbed", {}), **bed}
    if "search" in sections:
        return "search"
    if "campaign" in sections:
        return "bulk"
    return "emulate" if bed.get("kind") == "netns" and "hops" in bed else "run"


def _is_comment(line: str) -> bool:
    return line.startswith("#")
