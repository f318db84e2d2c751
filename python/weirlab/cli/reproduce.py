"""`weir reproduce`: published numbers compared with ours."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from weirlab.cli.frame import (
    MOST_SEED,
    JsonFlag,
    KeptOption,
    OnOption,
    OutOption,
    ReportFlag,
    conclude,
    print_json,
    show_result,
    write_page,
)
from weirlab.cli.progress import progress_bar
from weirlab.cli.tables import say, show_records


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(reproduce)


def _complete_study(incomplete: str) -> list[str]:
    from weirlab.reproductions import names

    return [name for name in names() if name.startswith(incomplete)]


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Which study.", autocompletion=_complete_study, show_default=False
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, with wider tolerances.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Where all chance comes from.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: one per CPU.")] = None,
    on: OnOption = None,
    store: KeptOption = None,
    out: OutOption = None,
    report: ReportFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Reproduce a published study: its numbers compared with ours, with a verdict for each; without NAME,
    list what there is.

    Exit code 0 when everything holds, 1 otherwise, also when a misfit that was known has disappeared. What
    takes long on real stacks is kept in --out DIR, and the same command goes on with it.
    """
    from weirlab.api.published import reproduce as compare
    from weirlab.reproductions import find
    from weirlab.results import claimed_directory

    if name is None:
        _list(as_json=as_json)
        return
    study = find(name)
    begun = out if out is not None and study.keeps and (out / study.keeps).is_dir() else None
    with (
        nullcontext(begun) if begun is not None else claimed_directory(f"reproduce-{name}", out) as directory,
        progress_bar(f"reproducing {name}") as progress,
    ):
        result = compare(
            name,
            quick=quick,
            seed=seed,
            threads=threads,
            out=directory,
            progress=progress,
            on=on,
            store=store,
        )
    page = write_page(directory) if report else None
    if as_json:
        print_json({**result.document, "directory": str(directory)})
    else:
        say(f"{result.findings.title}\n{result.findings.source}\n")
        show_result(result, page)
    raise typer.Exit(0 if result.holds else 1)


def _list(*, as_json: bool) -> None:
    from weirlab.reproductions import find, names

    studies = [
        {"name": name, "title": study.title, "source": study.source}
        for name, study in ((name, find(name)) for name in names())
    ]
    if as_json:
        print_json({"studies": studies})
    elif not show_records("Studies", studies):
        for each in studies:
            say(f"{each['title']} ({each['source']})", lead=f"{each['name']}  ")
        conclude([f"{len(studies)} published studies; compare one with ours:  weir reproduce NAME"])
