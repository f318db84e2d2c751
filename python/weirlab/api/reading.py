"""`weirlab.read` and `weirlab.plot`: results of earlier days, and their charts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.api.kept import path_of
from weirlab.api.result import Result, Shelf, stored_tables
from weirlab.results import Manifest

if TYPE_CHECKING:
    import polars as pl

    from weirlab.plots.style import Plot
    from weirlab.report.page import Block, Page


class _Stored(Result):
    """A result that has no class of its own."""

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What it is about, in a word."""
        return self._manifest.kind

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """Everything that was recorded; see `Result.tables`."""
        assert self.directory is not None
        return Shelf(stored_tables(self.directory))

    def _sentences(self) -> Sequence[str]:
        if self.kind == "rapid" and self.directory is not None:
            from weirlab.report.rapid import transfer_document, transfer_sentence

            if (self.directory / "result.json").exists():
                return [transfer_sentence(transfer_document(self.directory))]
        return [f"a {self.kind}, {self._manifest.status}."]

    def blocks(self) -> list[Block]:
        """Nothing: its report has the tables."""
        return []

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report import page_of

        assert self.directory is not None
        return page_of(self.directory, self._manifest)


def read(directory: str | Path) -> Result:
    """What `weir` or `.save` kept in a directory, complete or not.

    Raises:
        InputError: It holds no result, or a damaged one.
    """
    place = path_of(directory, "read")
    manifest = Manifest.read(place)
    match manifest.kind:
        case "run":
            from weirlab.api.simulated import RunResult
            from weirlab.runs import Run

            return RunResult(Run.load(place), directory=place, overrides=manifest.overrides)
        case "study":
            from weirlab.api.simulated import StudyResult
            from weirlab.studies import Study

            return StudyResult(Study.load(place), place)
        case "search":
            from weirlab.api.searched import SearchResult
            from weirlab.report.search import replay

            found = replay(place)
            return SearchResult(found.result, found.scenario, place)
        case "search-study":
            from weirlab.api.searched import SearchesResult
            from weirlab.report.search_points import found_so_far
            from weirlab.scenario import load

            return SearchesResult(found_so_far(place), load(place / "scenario.yaml"), place)
        case "campaign":
            from weirlab.api.measured import BulkResult
            from weirlab.campaigns import Campaign
            from weirlab.report.bulk import kept_advice

            return BulkResult(Campaign.load(place), place, advice=kept_advice(place))
        case "path":
            from weirlab.api.measured import PathResult
            from weirlab.campaigns.path import load_path

            return PathResult(*load_path(place), place)
        case "trace":
            from weirlab.api.captured import TraceResult
            from weirlab.traces import load_trace

            return TraceResult(load_trace(place / "tables"), place)
        case "reproduce":
            from weirlab.api.published import ReproduceResult
            from weirlab.reproductions import Findings

            return ReproduceResult(Findings.load(place), place)
        case "rapid":
            return _Stored(manifest, place)


def plot(result: Result | str | Path, name: str | None = None) -> object:
    """A chart of a result, or of the result in a directory, as an Altair chart that can be changed:
    `weirlab.plot("results/incast-20260101-120000", "port-queue").properties(width=400)`.

    Args:
        result: What a function of Weirlab gave, or a directory of results.
        name: Which of its `plots`. Default: the first.

    Raises:
        InputError: There is nothing to draw, or no plot of that name.
        MissingCapability: `weirlab[report]` is not installed.
    """
    return (result if isinstance(result, Result) else read(result)).plot(name)
