"""Reports: one HTML page per result, and its plots as files. Needs the extra `weirlab[report]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weirlab.bulk import Campaign
from weirlab.errors import InputError
from weirlab.plots import style
from weirlab.plots.style import Plot
from weirlab.report.bulk import bulk_page
from weirlab.report.page import Page, jinja2
from weirlab.report.path import path_page
from weirlab.report.reproduce import reproduce_page
from weirlab.report.run import run_page
from weirlab.report.search import replay, search_page
from weirlab.report.search_points import points_page
from weirlab.report.study import study_page
from weirlab.report.trace import trace_page
from weirlab.reproduce import Findings
from weirlab.results import Manifest
from weirlab.runs import Run
from weirlab.study import Study

__all__ = ["Report", "require_packages", "write_report"]


@dataclass(frozen=True)
class Report:
    """What was written."""

    page: Path
    plots: tuple[Path, ...]


def require_packages() -> None:
    """Raise MissingCapability, which says how to get them, unless all packages of a report are installed."""
    style.altair()
    style.converter()
    jinja2()


def write_report(directory: str | Path, *, pictures: bool = True) -> Report:
    """Write `report.html` into the directory of a result, and with `pictures` each plot as PNG and SVG in
    `plots/`.

    Raises InputError when the directory holds no result, and MissingCapability without `weirlab[report]`.
    """
    directory = Path(directory)
    manifest = Manifest.read(directory)
    page, plots = _page(directory, manifest)
    path = page.write(directory / "report.html")
    files = [file for plot in plots for file in plot.save(directory / "plots")] if pictures else []
    return Report(path, tuple(files))


def _page(directory: Path, manifest: Manifest) -> tuple[Page, list[Plot]]:
    match manifest.kind:
        case "run":
            return run_page(Run.load(directory), manifest)
        case "study":
            return study_page(Study.load(directory), manifest)
        case "search-study":
            return points_page(directory, manifest)
        case "search":
            return search_page(replay(directory), manifest)
        case "campaign":
            return bulk_page(Campaign.load(directory), manifest)
        case "reproduce":
            return reproduce_page(Findings.load(directory), manifest)
        case "trace":
            return trace_page(directory, manifest)
        case "path":
            return path_page(directory, manifest)
        case "rapid":
            raise InputError(f"{directory}: a live transfer has tables and result.json, but no page")
