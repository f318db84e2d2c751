"""`weir reproduce`: published numbers compared with ours."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from weirlab.cli import shared
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
            metavar="[NAME]", help="The study. Default: list them.", autocompletion=_complete_study
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, with wider tolerances.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=shared.MOST_SEED, help="Seed of all random numbers.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: one per CPU.")] = None,
    on: shared.OnOption = None,
    store: shared.KeptOption = None,
    out: shared.OutOption = None,
    report: shared.ReportFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Reproduce a published study: its numbers compared with ours, with a verdict for each. Without NAME,
    list the studies.

    Exit code 0 if everything holds, 1 otherwise, also if a known misfit has disappeared. Long measurements on
    real stacks are kept in --out DIR, and the same command continues them.
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
    page = shared.write_page(directory) if report else None
    if as_json:
        shared.print_json({**result.document, "directory": str(directory)})
    else:
        say(f"{result.findings.title}\n{result.findings.source}\n")
        shared.show_result(result, page)
    raise typer.Exit(0 if result.holds else 1)


def _list(*, as_json: bool) -> None:
    from weirlab.reproductions import find, names

    studies = [
        {"name": name, "title": study.title, "source": study.source}
        for name, study in ((name, find(name)) for name in names())
    ]
    if as_json:
        shared.print_json({"studies": studies})
    elif not show_records("Studies", studies):
        for each in studies:
            say(f"{each['title']} ({each['source']})", lead=f"{each['name']}  ")
        shared.conclude([f"{len(studies)} published studies; compare one with ours:  weir reproduce NAME"])
