"""Reports: one HTML page per result, and its plots as files. Needs the extra `weirlab[report]`.

Importing this package imports no page: a command that shows one table does not pay for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.errors import InputError
from weirlab.results import Manifest, read_json

if TYPE_CHECKING:
    from weirlab.plots.paper import Column
    from weirlab.plots.style import Plot
    from weirlab.report.page import Page


@dataclass(frozen=True)
class Report:
    """What was written."""

    page: Path
    plots: tuple[Path, ...]


def require_packages() -> None:
    """Raise MissingCapability, which says how to get them, unless all packages of a report are installed."""
    from weirlab.plots import style
    from weirlab.report.page import jinja2

    style.altair()
    style.converter()
    jinja2()


def write_report(
    directory: str | Path,
    *,
    pictures: bool = True,
    figures: Column | None = None,
    made: tuple[Page, list[Plot]] | None = None,
) -> Report:
    """Write `report.html` into the directory of a result, with `pictures` each plot as PNG and SVG in
    `plots/`, and with `figures` as PDF and SVG as wide as a column of a paper. What `made` has is not read
    and worked out again.

    Raises InputError when the directory holds no result or a damaged one, and MissingCapability without
    `weirlab[report]`.
    """
    directory = Path(directory)
    if made is None:
        _check_needed(directory)
        manifest = Manifest.read(directory)
        _check_result(directory, manifest)
        made = page_of(directory, manifest)
    page, plots = made
    path = page.write(directory / "report.html")
    return Report(path, _saved(plots, directory / "plots", pictures, figures))


def write_comparison(
    directories: Sequence[str | Path], *, pictures: bool = True, figures: Column | None = None
) -> Report:
    """Write `comparison.html` into the first of some directories of results of one kind, and with `pictures`
    its plots into `plots/` there. Raises as `write_report` does."""
    from weirlab.comparisons import compared
    from weirlab.report.compare import comparison_page

    places = [Path(directory) for directory in directories]
    page, plots = comparison_page(compared(places))
    path = page.write(places[0] / "comparison.html")
    named = [replace(plot, name=f"comparison-{plot.name}") for plot in plots]
    return Report(path, _saved(named, places[0] / "plots", pictures, figures))


def _saved(
    plots: Sequence[Plot], directory: Path, pictures: bool, figures: Column | None
) -> tuple[Path, ...]:
    files = [file for plot in plots for file in plot.save(directory)] if pictures else []
    if figures is not None:
        from weirlab.plots.paper import save_figure

        files += [file for plot in plots for file in save_figure(plot, figures, directory)]
    return tuple(files)


def _check_needed(directory: Path) -> None:
    """What theory says of a scenario is written with its page, and keeps nothing to make it of again."""
    page, result = directory / "report.html", directory / "result.json"
    if (directory / "manifest.json").exists() or not page.exists() or not result.exists():
        return
    kind = read_json(result).get("kind")
    if kind in ("stability", "rank"):
        raise InputError(
            f"{directory}: 'weir {kind}' has written the page already: {page}; the same command with another "
            "--out writes it anew"
        )


def _check_result(directory: Path, manifest: Manifest) -> None:
    """Most pages are made of the tables alone, but nobody may take a damaged result for a whole one. Runs and
    studies that Python saved have no `result.json`."""
    path = directory / "result.json"
    if not path.exists():
        return
    kind = read_json(path).get("kind", manifest.kind)
    if kind != manifest.kind:
        raise InputError(f"{path}: of a {kind}, but manifest.json says {manifest.kind}")


def page_of(directory: Path, manifest: Manifest) -> tuple[Page, list[Plot]]:
    """The report of the result in a directory, and its plots."""
    match manifest.kind:
        case "run":
            from weirlab.report.run import run_page
            from weirlab.runs import Run

            return run_page(Run.load(directory), manifest, directory)
        case "study":
            from weirlab.report.study import study_page
            from weirlab.studies import Study

            return study_page(Study.load(directory), manifest)
        case "search-study":
            from weirlab.report.search_points import points_page

            return points_page(directory, manifest)
        case "search":
            from weirlab.report.search import replay, search_page

            return search_page(replay(directory), manifest)
        case "campaign":
            from weirlab.campaigns import Campaign
            from weirlab.report.bulk import bulk_page, kept_advice

            return bulk_page(Campaign.load(directory), manifest, kept_advice(directory))
        case "reproduce":
            from weirlab.report.reproduce import reproduce_page
            from weirlab.reproductions import Findings

            return reproduce_page(Findings.load(directory), manifest)
        case "trace":
            from weirlab.report.trace import trace_page
            from weirlab.traces import load_trace

            return trace_page(load_trace(directory / "tables"), manifest)
        case "path":
            from weirlab.report.path import path_page

            return path_page(directory, manifest)
        case "rapid":
            from weirlab.report.rapid import rapid_page

            return rapid_page(directory, manifest)
