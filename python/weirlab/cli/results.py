"""`weir results`: what a store of results holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.shared import JsonFlag, conclude, print_json, tell
from weirlab.cli.tables import show
from weirlab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from weirlab.report.page import Table


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("results")(results)


def results(
    place: Annotated[
        str,
        typer.Argument(
            metavar="STORE", help="A directory or URL that studies used as --store, or the result of a study."
        ),
    ],
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="List only studies for which this holds, such as 'failed > 0' or \"study = 'incast'\".",
        ),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY", help="Query the tables studies, runs, measures, points and levels in SQL."
        ),
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Include results of other engines in --sql.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table into a new .parquet, .csv or .json file instead."),
    ] = None,
    prune: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Remove 'stale' results (of other engines), 'failed' runs, 'damaged' files, or a plan by "
            "its id. Repeatable.",
        ),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Merge many small files into few large ones.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the studies in a store of results with their progress; query, export or tidy up the store.

    Results of another version of the engine are marked stale: no study uses them.

    \b
    Examples:
      weir results /shared/lab
      weir results s3://lab/runs --where 'failed > 0'
      weir results /shared/lab \\
          --sql 'SELECT MAX(value) FROM measures'
      weir results /shared/lab \\
          --sql 'SELECT * FROM measures NATURAL JOIN points'
      weir results /shared/lab --sql 'SELECT * FROM runs' --export runs.parquet
      weir results /shared/lab --compact --prune stale --prune damaged
    """
    from weirlab.studies.stored import answered, store_at

    if sql and where:
        raise InputError("--sql and --where: give one of them; a query has its own WHERE")
    store = store_at(place)
    kinds = {"stale", "failed", "damaged"}
    if prune:
        plans = sorted(set(prune) - kinds)
        if unknown := [plan for plan in plans if plan not in store.documents("plans")]:
            raise InputError(f"--prune {unknown[0]}: write stale, failed, damaged, or the id of a plan")
        removed = store.prune(
            stale="stale" in prune, failed="failed" in prune, damaged="damaged" in prune, plans=plans
        )
        tell("removed: " + ", ".join(f"{many} {kind}" for kind, many in removed.items()))
    if compact:
        before, after = store.compact()
        tell(f"{before} files with rows became {after}")
    query = sql or "SELECT * FROM studies" + (f" WHERE {where}" if where else "")
    found, remarks = answered(store, query, stale=stale)
    for name, reason in store.damaged.items():
        tell(f"note: {store.url}/{name}: {reason}")
    if export is not None:
        _export(found, export)
    elif as_json:
        print_json({"kind": "results", "store": store.url, "rows": found.to_dicts()})
    else:
        show(_table(found, sql or store.url))
        many = f"{found.height} {'row' if sql else 'plan'}{'' if found.height == 1 else 's'} in {store.url}."
        old = not sql and found.height and found["stale"].any()
        conclude(
            [
                many,
                *(remarks if sql else []),
                *(["Stale results were made by another engine; --prune stale removes them."] if old else []),
            ]
        )


def _export(found: pl.DataFrame, file: Path) -> None:
    from weirlab.files import whole

    writers: dict[str, Callable[[Path], object]] = {
        ".parquet": found.write_parquet,
        ".csv": found.write_csv,
        ".json": found.write_json,
    }
    if file.suffix not in writers:
        raise InputError(f"--export {file}: name a file that ends in {', '.join(writers)}")
    if file.exists():
        raise InputError(f"--export {file}: there is such a file; name a new one")
    with whole(file) as unfinished:
        writers[file.suffix](unfinished)
    tell(f"{found.height} rows in {file}")


def _table(found: pl.DataFrame, caption: str) -> Table:
    from weirlab.report.page import Column, Table

    def text(value: object) -> str:
        return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

    columns = [Column(name, numeric=found.schema[name].is_numeric()) for name in found.columns]
    most = 200
    rows = [[text(value) for value in row] for row in found.head(most).iter_rows()]
    return Table(
        caption, columns, rows, total=found.height, where="--export FILE" if found.height > most else ""
    )
