"""What a runner asks and tells while it works, and how that went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl


@dataclass
class Carried:
    """How it went."""

    plan: str
    """Id of the plan in the store."""
    sitting: str
    """Id of this work: rows that others made have another one."""
    planned: int
    """Places."""
    kept: int = 0
    """Places that were there before."""
    done: int = 0
    shared: int = 0
    """How many of these other plans had made."""
    failed: int = 0
    first_failure: str = ""
    lost: int = 0
    """Batches whose worker was lost."""
    notes: list[str] = field(default_factory=list)
    """What went wrong on the way, for a person."""


class Reader(Protocol):
    """Reads rows as they come, and says something about them."""

    columns: Sequence[str]
    """The columns of the store that it needs."""

    def read(self, rows: pl.DataFrame) -> None:
        """Rows of results, each once."""

    def remark(self) -> str:
        """What they say so far; nothing where there is nothing to say."""
        ...


class Asking(Protocol):
    """Reads rows as they come, and decides by them which replicates are wanted."""

    columns: Sequence[str]
    """The columns of the store that it needs."""

    def read(self, rows: pl.DataFrame) -> None:
        """Rows of results, each once."""

    def asked(self) -> np.ndarray:
        """How many replicates of each point are wanted, from the first, in the order of the plan: never fewer
        than before, and the same for the same results."""
        ...

    @property
    def given(self) -> Mapping[int, Mapping[str, str]]:
        """What the plan does not know of points that are wanted, by number; see `Growing`."""
        ...

    rounds: int
    """How often it is asked, about."""

    def expected(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """At least and at most: how many runs this will be in all, and how many like the first ones take as
        long."""
        ...
