"""`weir schema`: the JSON schema of scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weirlab.cli.shared import print_json, tell


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(schema)


def schema(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Print the JSON schema of scenario files, with which editors complete and check them.

    \b
    Examples:
      weir schema --out weirlab.schema.json
    and as the first line of a scenario:
      # yaml-language-server: $schema=weirlab.schema.json
    """
    from weirlab.scenario.schema import json_schema

    document = json_schema()
    if out is None:
        print_json(document)
        return
    from weirlab.errors import InputError
    from weirlab.results import write_json

    if out.exists():
        raise InputError(f"{out}: exists already; name another file")
    write_json(out, document)
    tell(f"written: {out}")
