"""What a result holds, as the viewer offers it to programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from weirlab.records import dimensions
from weirlab.results import Manifest, read_json
from weirlab.viewer.opened import UnknownError

COMPARED = ("run", "study", "search", "campaign")
"""Kinds of results that can be compared."""


def named_rows(file: Path) -> pl.DataFrame:
    """A table, with the names of what its ids stand for next to these."""
    frame = pl.read_parquet(file)
    for key, dimension in dimensions().items():
        names = file.with_name(f"{dimension}.parquet")
        if key in frame.columns and file != names and names.exists():
            known = pl.read_parquet(names).select(key, pl.col("name").alias(f"{key}_name"))
            frame = frame.join(known, on=key, how="left", maintain_order="left")
            place = frame.columns.index(key) + 1
            others = [name for name in frame.columns if name != f"{key}_name"]
            frame = frame.select(*others[:place], f"{key}_name", *others[place:])
    return frame


def document(directory: Path, path: str) -> dict[str, object]:
    """What is known of a result, as JSON values."""
    found: dict[str, object] = {"path": path}
    for key, name in (("manifest", "manifest.json"), ("result", "result.json")):
        found[key] = read_json(directory / name) if (directory / name).exists() else None
    found["tables"] = sorted(file.stem for file in (directory / "tables").glob("*.parquet"))
    return found


def quantities(directory: Path) -> pl.DataFrame:
    """The quantities of a result that can be compared."""
    from weirlab.comparisons import compared
    from weirlab.stats import mean_interval

    kind = Manifest.read(directory).kind
    if kind not in COMPARED:
        raise UnknownError(
            f"{directory.name}: a {kind} has no list of quantities; its tables are offered as CSV"
        )
    rows = []
    for each in compared([directory])[0].quantities:
        low, high = each.bounds or (None, None)
        interval = mean_interval(list(each.values.values())) if each.bounds is None else None
        mean = (
            (low + high) / 2 if low is not None and high is not None else interval.mean if interval else None
        )
        if interval is not None:
            low, high = interval.low, interval.high
        rows.append((each.name, each.at, each.unit, mean, low, high, len(each.values)))
    schema = {
        "quantity": pl.String,
        "at": pl.String,
        "unit": pl.String,
        "mean": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "values": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def differences(places: Sequence[Path]) -> list[dict[str, object]]:
    """What differs between results, as `weir compare` has it."""
    from weirlab.comparisons import compared
    from weirlab.report.compare import changes, difference_document

    return [difference_document(*each) for each in changes(compared(places))]
