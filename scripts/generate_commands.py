"""Write docs/commands.md: what `weir COMMAND --help` prints, for every command.

The documentation's configuration calls it; the page is not kept.
"""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")

import typer.main
from typer.core import TyperGroup

from weirlab.cli.app import application

PAGE = Path(__file__).resolve().parent.parent / "docs/commands.md"
HEAD = """# Commands

What `weir COMMAND --help` prints. Exit codes and files of results: [using Weirlab](using.md).
"""


def helps(command: object, names: list[str]) -> Iterator[str]:
    """A section for a command, and for each of its own."""
    context = typer.Context(command, info_name=" ".join(names))  # type: ignore[arg-type]
    text = command.get_help(context).rstrip()  # type: ignore[attr-defined]
    yield (
        f"\n{'#' * min(len(names) + 1, 4)} {' '.join(names)}\n\n```text\n"
        + "\n".join(line.rstrip() for line in text.splitlines())
        + "\n```\n"
    )
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from helps(child, [*names, name])


def main() -> None:
    PAGE.write_text(HEAD + "".join(helps(typer.main.get_command(application()), ["weir"])), encoding="utf-8")


if __name__ == "__main__":
    main()
