"""`weirlab.compare`: what changed from one result to others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from weirlab.api.kept import path_of
from weirlab.api.result import Result, Sentences, as_html
from weirlab.comparisons import Compared, Difference, compared
from weirlab.errors import InputError
from weirlab.files import Scratch

if TYPE_CHECKING:
    from weirlab.report.page import Block


class Comparison:
    """Changes from a first result to others of its kind."""

    def __init__(self, results: Sequence[Compared], *, kept: Scratch | None = None) -> None:
        from weirlab.report.compare import changes

        self._kept = kept  # removed with this object
        self.results = results
        """What is compared; changes are from the first."""
        self.changes: Sequence[tuple[Compared, Difference]] = changes(results)
        """Each quantity that a further result shares with the first."""

    @property
    def differences(self) -> pl.DataFrame:
        """Columns `result at quantity unit before after change low high relative pairs`: a row for each
        quantity and further result; `low` and `high` are the 95 % interval of the change, `relative` the
        change as a share of `before`, `pairs` the seeds that both have where the interval is of differences
        by seed. Null where there is none."""
        schema = {
            **dict.fromkeys(("result", "at", "quantity", "unit"), pl.String),
            **dict.fromkeys(("before", "after", "change", "low", "high", "relative"), pl.Float64),
            "pairs": pl.Int64,
        }
        rows = [
            (
                *(other.name, each.after.at, each.after.name, each.after.unit, each.first, each.second),
                *(each.change, each.low, each.high, each.relative, each.pairs),
            )
            for other, each in self.changes
        ]
        return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)

    @property
    def settings(self) -> pl.DataFrame:
        """Columns `name of`, and one for each result: fields of the scenarios, programs and machines that
        differ."""
        from weirlab.comparisons import settings

        names = [each.name for each in self.results]
        rows = [(each.name, each.of, *each.values) for each in settings(self.results)]
        return pl.DataFrame(rows, schema=dict.fromkeys(("name", "of", *names), pl.String), orient="row")

    def summary(self) -> Sentences:
        """What changed, in sentences, the one that matters first."""
        from weirlab.report.compare import comparison_sentences

        return Sentences(comparison_sentences(self.results, self.changes))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(each.name for each in self.results)}: {self.summary()[0]}>"

    def _repr_html_(self) -> str:
        from weirlab.report.compare import difference_table
        from weirlab.report.page import Text

        blocks: list[Block] = [Text(" ".join(self.summary()))]
        if self.changes:
            blocks.append(difference_table(self.results, self.changes))
        return as_html(blocks)


def compare(first: str | Path | Result, *others: str | Path | Result) -> Comparison:
    """Compare results of one kind: runs, studies, searches or campaigns, at hand or kept in directories.

    The change of each quantity is of means over replicates or cycles, with a 95 % interval: Student's t of
    the differences by seed where both results have the same seeds, else Welch's.

    Raises:
        InputError: There is no second result, one is not finished, or they are of different kinds.
    """
    if not others:
        raise InputError("compare: name two results or more")
    kept = Scratch()
    return Comparison(
        compared([_place(each, kept, count) for count, each in enumerate((first, *others), 1)]), kept=kept
    )


def _place(result: str | Path | Result, kept: Scratch, count: int) -> Path:
    """Where a result is, for as long as the comparison needs it; one that nobody kept has its place in the
    order for a name."""
    if not isinstance(result, Result):
        return path_of(result, "compare")
    if result.is_kept and result.directory is not None:
        return result.directory
    place = kept.path / f"{result.name}-{count}"
    result.copy_to(place)
    return place
