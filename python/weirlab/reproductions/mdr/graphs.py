"""The six published search-time graphs: their searches, as trials that a report can draw.

Three MDR searches with trials of 10 s, one with 60 s, and a binary search with 60 s for the NDR and for the
PDR, on the vhost suite. The published ones are known for all but the last; ours are the first searches of
their cells.

Source: CSIT MDR, section 2.8.5
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from weirlab.documents import fields_of
from weirlab.reproductions.mdr.searches import Case, made, search_of
from weirlab.reproductions.mdr.traces import CASES as PUBLISHED_CASES, replayed
from weirlab.searches import FoundRates, SearchState
from weirlab.testbed.base import Trial

CASES: Mapping[str, Case] = MappingProxyType(
    {**PUBLISHED_CASES, "pdr_60": Case("vhost", "pdr-binary", 60.0, 0)}
)
"""The searches of the graphs, by name."""


@dataclass(frozen=True)
class Graph:
    """A search to draw."""

    trials: Sequence[Trial]
    states: Sequence[SearchState]
    """Before each trial, and at the end."""
    result: FoundRates


def trial_table(seed: int) -> pl.DataFrame:
    """The trials of all graphs: ``whose`` is ours or published."""
    rows = [row for name, case in CASES.items() for row in _rows(name, "ours", made(case, seed).trials)]
    rows += [row for name in PUBLISHED_CASES for row in _rows(name, "published", replayed(name).trials)]
    return pl.DataFrame(rows)


def read_graph(table: pl.DataFrame, name: str, whose: str) -> Graph:
    """A search of ``trial_table``, told its trials again."""
    search = search_of(CASES[name])
    states = []
    rows = table.filter(pl.col("graph") == name, pl.col("whose") == whose)
    for row in rows.iter_rows(named=True):
        spec = search.ask()
        assert spec is not None, "the table holds the trials of this search"
        states.append(search.state())
        search.tell(
            Trial(
                spec=spec,
                intended_frames=row["intended_frames"],
                sent_frames=row["sent_frames"],
                received_frames=row["received_frames"],
                effective_duration_s=row["effective_duration_s"],
                offered_load_fps=row["offered_load_fps"],
            )
        )
    states.append(search.state())
    return Graph(list(search.trials), states, search.result())


def _rows(name: str, whose: str, trials: Sequence[Trial]) -> list[dict[str, object]]:
    return [
        {
            "graph": name,
            "whose": whose,
            "trial": trial.spec.index,
            "load_fps": trial.spec.intended_load_fps,
            "duration_s": trial.spec.duration_s,
            **fields_of(trial, "intended_frames", "sent_frames", "received_frames"),
            **fields_of(trial, "offered_load_fps", "effective_duration_s"),
        }
        for trial in trials
    ]
