"""`weir search-lab`: compare search algorithms on simulated devices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirlab.cli.completion import complete_controllers, complete_devices
from weirlab.cli.shared import JsonFlag, KeptOption, conclude, print_json, tell
from weirlab.cli.tables import show
from weirlab.errors import InputError, MissingCapability

if TYPE_CHECKING:
    import polars as pl

    from weirlab.report.page import Cell, Table


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search-lab")(search_lab)


def search_lab(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A Python file with your own controllers or devices."),
    ] = None,
    controllers: Annotated[
        str,
        typer.Option(
            "--controllers",
            metavar="NAMES",
            help="Algorithms to compare, with commas: binary, mdr, mlr, weir, weir-no-guard, weir-no-stop, "
            "mlrsearch-1.2.1, or controllers of the file.",
            autocompletion=complete_controllers,
        ),
    ] = "mdr,weir",
    devices: Annotated[
        str,
        typer.Option(
            "--devices",
            metavar="NAMES",
            help="Devices, with commas; 'all' for all, 'drawn' for families.",
            autocompletion=complete_devices,
        ),
    ] = "knee,vhost,drops,buffer",
    goals: Annotated[
        str, typer.Option("--goals", metavar="SETS", help="Sets of goals: 10s, 30s, 60s, csit.")
    ] = "10s",
    searches: Annotated[
        int, typer.Option("--searches", min=1, help="Searches on each device, for each set of goals.")
    ] = 30,
    first_seed: Annotated[
        int,
        typer.Option("--first-seed", min=0, help="Seed of the first search: tune on some, judge on others."),
    ] = 0,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="Controller that times are relative to. Default: the first."
        ),
    ] = None,
    width: Annotated[float, typer.Option("--width", help="Width of every goal, as a ratio.")] = 0.005,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", "--processes", min=1, help="How many searches to run at once. Default: one per CPU."
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="WHERE",
            help="Where searches run: local:N, tcp://HOST:8786 (a Dask scheduler) or ssh:HOST,HOST.",
        ),
    ] = None,
    store: KeptOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Keep the searches, also as Parquet, and plots there. The same command continues "
            "after an interruption.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare search algorithms on simulated devices: time, errors, and whether results repeat.

    \b
    Examples:
      weir search-lab
      weir search-lab --controllers mlrsearch-1.2.1,mdr,weir \\
          --devices all --goals 10s,60s --searches 200
      weir search-lab mine.py --controllers weir,mine \\
          --devices knee,slow --out lab
    """
    from weirlab.cli.progress import progress_bar
    from weirlab.searches.lab import Experiment, compare, means, summary

    names = _names(controllers)
    if baseline is not None and baseline not in names:
        raise InputError(f"--baseline {baseline} is not compared; take one of {', '.join(names)}")
    if not 1e-6 <= width < 1.0:
        raise InputError(f"--width is a ratio from 0.000001 to below 1, such as 0.005 (got {width:g})")
    experiment = Experiment(
        controllers=names,
        devices=_devices(devices, file),
        goals=_names(goals),
        searches=searches,
        first_seed=first_seed,
        width=width,
        file=file,
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # what cannot be kept is reported before hours of searching
    with progress_bar("searching") as progress:
        kept = None if out is None else out / "searches.jsonl"
        frame = compare(experiment, processes=threads, on=on, store=store, on_progress=progress, kept=kept)
    first = baseline or names[0]
    table = summary(frame, first)
    if out is not None:
        _keep(frame, out, first)
    if as_json:
        print_json({"baseline": first, "rows": table.to_dicts(), "means": means(table, first).to_dicts()})
        return
    for each in _tables(table, first):
        show(each)
    conclude(_sentences(means(table, first), first))


def _sentences(compared: pl.DataFrame, baseline: str) -> list[str]:
    """For each set of goals the fastest controller that is wrong silently no more often than the baseline."""
    sentences = []
    for goals in compared["goals"].unique(maintain_order=True).to_list():
        rows = [row for row in compared.to_dicts() if row["goals"] == goals and row["mean"] is not None]
        wrong = next((row["wrong_silent"] for row in rows if row["controller"] == baseline), None)
        if wrong is None:
            sentences.append(f"Goals {goals}: nothing to compare, as {baseline} gave up on all devices.")
            continue
        right = [row for row in rows if row["wrong_silent"] <= wrong]
        best = min(right, key=lambda row: row["mean"])
        if best["controller"] == baseline:
            text = f"none was faster than {baseline} without more results that are wrong silently"
        else:
            text = (
                f"{best['controller']} was fastest, {best['mean']:.3f} of the time of {baseline}, without "
                "more results that are wrong silently"
            )
        sentences.append(f"Goals {goals}: {text}.")
    return sentences


def _devices(listed: str, file: Path | None) -> list[str]:
    """Names of devices: those of the file and of the laboratory for `all`, the families for `drawn`."""
    from weirlab.searches.lab_families import CHANGING, STEADY
    from weirlab.searches.lab_files import known

    drawn = [*STEADY, *CHANGING]
    if listed == "all":
        return [name for name in known(file).devices if name not in drawn]
    return drawn if listed == "drawn" else _names(listed)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",")]


def _keep(frame: pl.DataFrame, directory: Path, baseline: str) -> None:
    from weirlab.records import save_table

    path = directory / "searches.parquet"
    save_table(frame, path)
    tell(f"written: {path}")
    try:
        from weirlab.plots.lab import lab_plots

        for plot in lab_plots(frame, baseline):
            for saved in plot.save(directory):
                tell(f"written: {saved}")
    except MissingCapability as error:
        tell(f"no plots: {error}")


def _tables(table: pl.DataFrame, baseline: str) -> list[Table]:
    """One table for each set of goals, and the geometric means over the devices."""
    import polars as pl

    from weirlab.report.page import Table
    from weirlab.searches.lab import GAVE_UP, means

    goal_names = [name.removeprefix("error_") for name in table.columns if name.startswith("error_")]
    goal_names = [name for name in goal_names if not name.startswith("sd_")]
    tenths, thousandths = partial(_text, form=".1f"), partial(_text, form=".3f")
    percents, errors = (partial(_text, form=form, factor=100.0) for form in (".0f", "+.2f"))

    def ratio(row: Mapping[str, Any]) -> str:
        return thousandths(row["ratio"]) + (" (gave up)" if row["gave_up"] >= GAVE_UP else "")

    cells: dict[str, Cell] = {
        "device:": "device",
        "controller:": "controller",
        "time [s]": ("time_s", tenths),
        "spread [s]": ("time_sd_s", tenths),
        "ratio": ratio,
        "trials": ("trials", tenths),
        **{f"{name} error [%]": (f"error_{name}", errors) for name in goal_names},
        **{f"{name} retest fails [%]": (f"retest_{name}", percents) for name in goal_names},
        "gave up [%]": ("gave_up", percents),
        "wrong, marked [%]": ("wrong_marked", percents),
        "wrong, silent [%]": ("wrong_silent", percents),
        "marked as changed [%]": ("marked", percents),
        "change detected [%]": ("told", percents),
    }
    tables = []
    for goals in table["goals"].unique(maintain_order=True).to_list():
        rows = table.filter(pl.col("goals") == goals).sort("device", maintain_order=True)
        tables.append(Table.of(f"Goals {goals}: times relative to {baseline}", rows, cells))
    tables.append(
        Table.of(
            f"Over the devices, relative to {baseline}",
            means(table, baseline),
            {
                "goals:": "goals",
                "controller:": "controller",
                "geometric mean": ("mean", thousandths),
                "worst device": ("worst", thousandths),
                "wrong, silent [%]": ("wrong_silent", percents),
                "devices": ("devices", str),
                "left out:": ("left_out", ", ".join),
            },
            note=f"Left out: devices on which it, or {baseline}, had no regular result in {GAVE_UP:.0%} of "
            "the searches or more ('gave up'). To end early with a mark is not to be fast.",
        )
    )
    return tables


def _text(value: float | None, form: str, factor: float = 1.0) -> str:
    return "" if value is None else format(value * factor, form)
