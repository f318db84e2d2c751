"""What a store has of a study from another one, which it extends: known before any of its points is made.

Two studies of the same scenario differ in their section `study`. A point of both has the same assignments, so
it is found without its spec, in microseconds instead of milliseconds. What is written otherwise and comes to
the same is found by the address of its results, when it is its turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
import polars as pl

from weirlab.errors import ScenarioError, UnsupportedError
from weirlab.scenario.plan import Level
from weirlab.scenario.plan.levels import thawed
from weirlab.store import Store
from weirlab.studies.plan import RunsPlan, plan_found

_READ = 100
"""Objects of the store that are in memory at once."""
_OWN = {"study", "name", "description"}
"""Sections of a scenario in which two studies with common points may differ."""


def adopt(plan: RunsPlan, store: Store) -> int:
    """Enter into a store, for a plan, the results that other plans of the same scenario have there, so that
    they count as there before; how many these are."""
    own = store.keep("plans", plan.document())
    others = dict(_relatives(plan, store, own))
    if not others:
        return 0
    objects, good = store.objects(), pl.col("plan").is_in([own, *others]) & (pl.col("status") == "ok")
    parts = (store.read(objects[i : i + _READ]) for i in range(0, len(objects), _READ))
    rows = pl.concat([store.read([]), *(part.filter(good) for part in parts)])
    found = [_taken(plan, other, rows.filter(plan=name)) for name, other in others.items()]
    there = rows.filter(plan=own).select("point", "replicate")
    new = (
        pl.concat([rows.clear(), *found])
        .unique(["point", "replicate"], keep="first", maintain_order=True)
        .join(there, on=["point", "replicate"], how="anti", maintain_order="left")
        .with_columns(plan=pl.lit(own))
    )
    if new.height:
        store.write(new)
    return new.height


def _relatives(plan: RunsPlan, store: Store, own: str) -> Iterator[tuple[str, RunsPlan]]:
    """The other studies of the same scenario; none for a study that chooses its points while it runs."""
    if plan.stages:
        return
    sections = _sections(plan.document())
    for name, document in store.plans().items():
        if name == own or document.get("kind") != "runs" or _sections(document) != sections:
            continue
        other = plan_found(document)
        if other is not None and other.section.design == plan.section.design:
            yield name, other


def _sections(document: Mapping[str, object]) -> dict[str, str]:
    """The text of each section of the scenario of a plan that decides a point, too."""
    parts = re.split(r"^(\w+):", str(document["scenario"]), flags=re.MULTILINE)
    return {name: text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name not in _OWN}


def _taken(plan: RunsPlan, other: RunsPlan, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of another plan as those of this one, where it has them."""
    if rows.is_empty():
        return rows
    place_of = _places(plan, other)
    here = np.full(int(plan.order.max(initial=-1)) + 1, fill_value=False)
    here[plan.order] = True
    seeds = pl.DataFrame({"seed": plan.seeds}, schema={"seed": pl.UInt64}).with_row_index("replicate")
    found = [rows.clear()]
    whole = [place for place, stage in enumerate(other.stages) if stage.duration is None]
    for place in whole or [0]:
        numbers = rows.get_column("point").to_numpy().astype(np.int64)
        at, row = np.divmod(numbers - place * other.base_points, other.rows)
        known = (at >= 0) & (at < len(place_of))
        known[known] = place_of[at[known]] >= 0
        numbers = place_of[at[known]] * plan.rows + row[known]
        moved = (
            rows.filter(pl.Series(known))
            .with_columns(point=pl.Series(numbers, dtype=pl.UInt32))
            .filter(pl.Series(here[numbers]))
            .drop("replicate")
            .join(seeds, on="seed", how="inner", maintain_order="left")
        )
        found.append(moved.select(rows.columns))
    taken = pl.concat(found)
    return taken if _are_the_same(plan, taken) else taken.clear()


def _places(plan: RunsPlan, other: RunsPlan) -> np.ndarray:
    """For each combination of another plan its place among those of this one, -1 where there is none."""
    ours, theirs = ({path for level in _levels(each) for path in level.assignments} for each in (plan, other))
    # What only one of them sets may be so in the other, too; but fields come and go with a kind.
    kinds = any(path.rpartition(".")[2] == "kind" for path in ours | theirs)
    sets = {
        id(level): json.dumps(thawed(level.assignments), default=str)
        for each in (plan, other)
        for level in _levels(each)
        if kinds or not _is_so(plan, level, ours & theirs)
    }

    def recipe(place: int, levels: Sequence[Level]) -> tuple[object, ...]:
        # The points of a design depend on the place of their combination.
        return (place if plan.section.design else 0, *sorted(sets[i] for i in map(id, levels) if i in sets))

    here = {recipe(place, levels): i for i, (place, _, levels) in enumerate(plan.combined)}
    return np.array([here.get(recipe(place, levels), -1) for place, _, levels in other.combined])


def _levels(plan: RunsPlan) -> Iterator[Level]:
    for levels in plan.section.factors.values():
        yield from levels


def _is_so(plan: RunsPlan, level: Level, shared: set[str]) -> bool:
    """Whether the scenario says what a level sets, which only one of two plans sets."""
    if shared.issuperset(level.assignments):
        return not level.assignments
    base = plan.scenario.assign({"study": None})
    with suppress(ScenarioError):  # it cannot be alone
        return base.assign(level.assignments).as_written() == base.as_written()
    return False


def _are_the_same(plan: RunsPlan, rows: pl.DataFrame) -> bool:
    """Whether the addresses of results are those of the plan, at a point of each level of each factor: a file
    that a scenario names may have changed."""
    points = rows.unique("point", maintain_order=True)
    found: dict[object, tuple[int, str]] = {}
    for number, key in points.select("point", "key").iter_rows():
        for level in [None, *plan.factors(number).items()]:
            found.setdefault(level, (number, key))
    try:
        return all(plan.point(number).key(0)[0] == key for number, key in {*found.values()})
    except (ScenarioError, UnsupportedError):
        return False
