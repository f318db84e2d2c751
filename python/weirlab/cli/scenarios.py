"""`weir scenarios`: the ready-made scenarios."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from weirlab.cli.frame import JsonFlag, complete_scenario, print_json, tell
from weirlab.cli.tables import width

__all__ = ["add_to"]

Kind = Literal["run", "search", "bulk", "emulate"]

_LOSSES = "Loads, queues and losses"
_TCP = "TCP and Rapid"
_CONTROL = "Congestion notification and PAUSE"
_HOTSPOTS = "Hotspots"
_OF_KIND = {
    "search": "The rates that a device carries",
    "bulk": "Bulk data over a path",
    "emulate": "Real programs over an emulated path",
}
_TOPICS = (_LOSSES, _OF_KIND["search"], _TCP, _OF_KIND["bulk"], _OF_KIND["emulate"], _CONTROL, _HOTSPOTS)
"""What scenarios show, in the order of the list."""


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
    from weirlab.errors import InputError
    from weirlab.scenario.ready import needed_by, ready_made, scenario_file

    files = ready_made()
    if name is None:
        if copy is not None:
            raise InputError("--copy needs the NAME of a scenario")
        described = {each: _facts(file) for each, file in files.items()}
        if kind is not None:
            described = {
                each: facts for each, facts in described.items() if facts["command"] == f"weir {kind}"
            }
        if word is not None:
            described = {
                each: facts
                for each, facts in described.items()
                if word.lower()
                in f"{each} {facts['topic']} {files[each].read_text(encoding='utf-8')}".lower()
            }
        if as_json:
            rows = [{"name": each, "file": str(files[each]), **facts} for each, facts in described.items()]
            print_json({"scenarios": rows})
            return
        if not described:
            raise InputError("no ready-made scenario is like that; 'weir scenarios' lists all")
        _list(described)
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


def _list(described: Mapping[str, Mapping[str, str]]) -> None:
    """A line each, by what they show."""
    columns = width()
    longest = max(len(each) for each in described)
    for topic in _TOPICS:
        names = [each for each, facts in described.items() if facts["topic"] == topic]
        if not names:
            continue
        typer.echo(f"\n{topic}: {described[names[0]]['command']} NAME")
        for each in names:
            room = columns - longest - 4
            text = described[each]["description"]
            shown = text if len(text) <= room else textwrap.shorten(text, room, placeholder=" ...")
            typer.echo(f"  {each:<{longest}}  {shown}")
    typer.echo("\nweir scenarios NAME prints one, with --copy FILE it is yours to change.")


def _facts(file: Path) -> dict[str, str]:
    """Description, command and topic, without the validation that a list does not need.

    A file without a description is described by the first sentence of the comment that it starts with.
    """
    import yaml

    text = file.read_text(encoding="utf-8")
    # BaseLoader makes text, lists and mappings only.
    content = yaml.load(text, Loader=yaml.BaseLoader)
    comment = " ".join(line.removeprefix("#").strip() for line in takewhile(_is_comment, text.splitlines()))
    description = content.get("description") or re.split(r"(?<=\.)\s", comment, maxsplit=1)[0]
    merged = _merged(file, content)
    kind = _kind(merged)
    return {
        "command": f"weir {kind}",
        "topic": _topic(kind, merged),
        "description": " ".join(description.split()),
    }


def _merged(file: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a file and of those that it extends."""
    import yaml

    merged: Any = content
    while "extends" in content:
        file = file.parent / content["extends"]
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        merged = _over(merged, content)
    return dict(merged)


def _over(mine: Any, below: Any) -> Any:
    """What is written, over what is written below it."""
    if not isinstance(mine, Mapping) or not isinstance(below, Mapping):
        return mine
    return {**below, **{name: _over(value, below.get(name)) for name, value in mine.items()}}


def _kind(merged: Mapping[str, Any]) -> Kind:
    """The command that starts it."""
    bed = merged.get("testbed")
    if "search" in merged:
        return "search"
    if "campaign" in merged:
        return "bulk"
    return "emulate" if isinstance(bed, Mapping) and _word(bed) == "netns" and "hops" in bed else "run"


def _topic(kind: Kind, merged: Mapping[str, Any]) -> str:
    """What it shows."""
    if kind != "run":
        return _OF_KIND[kind]
    if "hotspots" in merged:
        return _HOTSPOTS
    traffic = [each for each in merged.get("traffic", {}).values() if isinstance(each, Mapping)]
    if {_word(each.get("transport")) for each in traffic} & {"tcp", "rapid"}:
        return _TCP
    return _CONTROL if "control" in merged else _LOSSES


def _word(section: Any) -> Any:
    """The kind of a section, which may be all that is written."""
    return section.get("kind") if isinstance(section, Mapping) else section


def _is_comment(line: str) -> bool:
    return line.startswith("#")
