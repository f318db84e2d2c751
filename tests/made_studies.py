"""Studies that came so far and no further."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from weirlab.results import Manifest
from weirlab.store import Store


def keep_only(directory: Path, points: int) -> None:
    """Leave of a finished study what an interruption after some of its points would have left."""
    about = json.loads((directory / "study.json").read_text())
    store = Store.open(directory / "store")
    rows = store.rows(plan=about["id"])
    store.prune(plans=[about["id"]])
    store.keep("plans", about["plan"])
    store.write(rows.filter(pl.col("point") < points))
    planned = rows.get_column("point").n_unique()
    remark = f"interrupted after {points} of {planned} points"
    Manifest.read(directory).ended("interrupted", remark).write(directory)
