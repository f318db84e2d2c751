"""What all reports say: where and when, and the scenario itself."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

from weirlab.plots.style import display_unit as display_unit, scaled
from weirlab.report.page import (
    Block,
    Callout,
    Code,
    Column,
    Details,
    Page,
    Section,
    Table,
    Text,
    figure,
    heads,
    number,
)
from weirlab.results import Manifest, Provenance

if TYPE_CHECKING:
    import polars as pl

    from weirlab.plots.style import Plot
    from weirlab.scenario import Scenario


def result_page(
    kind: str,
    manifest: Manifest,
    scenario: Scenario | None = None,
    *,
    title: str = "",
    subtitle: str = "",
    lead: Sequence[Block],
    sections: Sequence[Section],
    story: Sequence[str],
) -> Page:
    """The page of a result: first how it ended, last where it is from. Sections without a block are left out;
    title and subtitle are those of the scenario unless they are given."""
    end = [provenance_section(manifest, manifest.provenance)]
    if scenario is not None:
        title, subtitle = title or scenario.name, subtitle or scenario.description or ""
        end.append(Section("Scenario", [scenario_details(scenario)]))
    return Page(
        title=title,
        kind=kind,
        subtitle=subtitle,
        lead=[*status_callouts(manifest), *lead],
        sections=[*(each for each in sections if each.blocks), *end],
        footer=footer(manifest.provenance),
        story=story,
    )


def section(title: str, *blocks: Block | None, plots: Sequence[Plot] = (), otherwise: str = "") -> Section:
    """The blocks that there are, then the plots; `otherwise`, a sentence, where there is nothing."""
    found = [*(block for block in blocks if block is not None), *map(figure, plots)]
    return Section(title, found or ([Text(otherwise)] if otherwise else []))


_LEGIBLE = 1e-3
"""A value this far below the largest has too many zeros in the unit of that."""


def quantities(kind: str, *columns: Sequence[float | None]) -> tuple[str, Sequence[Sequence[str]]]:
    """The unit in the heads of columns of values of one `kind` (see `scaled`), and the texts of cells. Where
    the unit of the largest would hide the small ones, each cell has its own, and the heads have none."""
    known = [abs(value) for column in columns for value in column if _is_some(value)]
    factor, unit = scaled(max(known, default=0.0), kind)

    def alone(value: float | None) -> str:
        if not _is_some(value):
            return number(value)
        if kind == "bytes" and abs(value) < 1:
            return "< 1 B"  # of a queue that is nearly always empty
        own, its = scaled(abs(value), kind)
        return f"{number(value * own)} {its}"

    if min(known, default=1.0) < _LEGIBLE * max(known, default=1.0):
        return "", [[alone(value) for value in column] for column in columns]
    shown = [[number(None if value is None else value * factor) for value in column] for column in columns]
    return unit, shown


def _is_some(value: float | None) -> TypeGuard[float]:
    return bool(value) and math.isfinite(value or 0.0)


def time_text(ps: float) -> str:
    """A time with its unit."""
    shown = float(f"{ps:.4g}")  # what rounds to 1000 ms is 1 s
    factor, unit = scaled(shown, "time")
    return f"{shown * factor:.4g} {unit}"


def seconds_text(seconds: float) -> str:
    """A time that a person waits."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def status_callouts(manifest: Manifest) -> list[Callout]:
    """A warning when the work did not end well."""
    if manifest.status == "complete":
        return []
    words = {
        "running": "This result is not complete: the work is still going on, or was killed.",
        "interrupted": "This result is not complete: the work was interrupted.",
        "failed": "This result is not complete: the work failed.",
    }
    return [
        Callout(words[manifest.status], manifest.remark or "What was measured until then is shown.", "bad")
    ]


def provenance_section(manifest: Manifest, provenance: Provenance) -> Section:
    """Where, when and with what the result was made."""
    load = provenance.load_average
    rows = [
        ("command", shlex.join(provenance.command)),
        ("start (UTC)", provenance.started.replace("T", " ").removesuffix("+00:00")),
        ("duration", _duration_text(manifest, provenance)),
        *(
            (
                "continued (UTC)",
                f"{later.started.replace('T', ' ').removesuffix('+00:00')} on {later.host}: "
                f"{_duration_text(manifest, later)}",
            )
            for later in manifest.sittings
        ),
        ("seed", "–" if manifest.seed is None else str(manifest.seed)),
        ("replicates", "–" if manifest.replicates is None else str(manifest.replicates)),
        *((f"set {path}", value) for path, value in manifest.overrides.items()),
        ("weirlab", provenance.weirlab + (f", {provenance.revision}" if provenance.revision else "")),
        ("Python", provenance.python),
        ("packages", ", ".join(f"{name} {version}" for name, version in provenance.packages.items())),
        ("host", provenance.host),
        ("system", f"{provenance.os}, {provenance.kernel}"),
        (
            "CPU",
            f"{provenance.cpu or 'unknown'}; {provenance.cpus_usable} of {provenance.cpus or '?'} usable",
        ),
        ("memory", "–" if provenance.memory_bytes is None else f"{provenance.memory_bytes / 2**30:.1f} GiB"),
        (
            "load average",
            "–" if load is None else " ".join(f"{value:.2f}" for value in load) + " (1, 5, 15 min)",
        ),
    ]
    columns = heads("fact: | value:")
    how = "in the directory of this result" if manifest.kind in _COMMANDS else "as it was called"
    return Section(
        "Provenance",
        [
            Text(f"How to repeat this, {how}:"),
            Code(repeat_command(manifest, provenance)),
            Table("Where, when and with what", columns, rows),
        ],
    )


_COMMANDS = {"run": "run", "study": "study", "search": "search", "search-study": "search", "campaign": "bulk"}
"""What repeats results that hold their scenario."""


def repeat_command(manifest: Manifest, provenance: Provenance) -> str:
    """The command that makes the same again: of the scenario that is kept, which has every change of the
    command line, or else the one that was called."""
    command = _COMMANDS.get(manifest.kind)
    if command is None:
        return shlex.join(provenance.command)
    words = ["weir", command, "scenario.yaml"]
    if command in ("run", "study"):
        for option, value in (("--seed", manifest.seed), ("--replicates", manifest.replicates)):
            words += [] if value is None else [option, str(value)]
    return shlex.join([*words, "--report"])


def _duration_text(manifest: Manifest, sitting: Provenance) -> str:
    """How long a sitting took. The last one may still go on; those before it were killed if they have no
    end."""
    if sitting.duration_s is not None:
        return seconds_text(sitting.duration_s)
    is_last = not manifest.sittings or sitting == manifest.sittings[-1]
    return "not known: it is running, or was killed" if is_last else "not known: it was killed"


def scenario_details(scenario: Scenario, of: str = "") -> Details:
    """The scenario as a file that can be run again; `of`: whose it is, where a page has several."""
    whose = f" of {of}" if of else ""
    return Details(f"The whole scenario{whose}, with every default", [Code(scenario.to_yaml())])


def footer(provenance: Provenance) -> str:
    """The last line of a page."""
    return (
        f"weirlab {provenance.weirlab} · {provenance.host} · {provenance.started[:19].replace('T', ' ')} UTC"
    )


SAME = "All replicates are the same, so the intervals say nothing."
"""What is said of several replicates that chance does not distinguish."""


def are_same(frames: Sequence[pl.DataFrame]) -> bool:
    """Whether, in all tables, the rows of every `replicate` are the same to the last bit, seeds aside; False
    with fewer than two replicates."""
    several = False
    for frame in frames:
        parts = frame.drop("seed", strict=False).partition_by("replicate", include_key=False)
        if not all(part.equals(parts[0]) for part in parts[1:]):
            return False
        several |= len(parts) > 1
    return several


def sparkline(values: Sequence[float]) -> str:
    """Values as bars, from none to the largest."""
    largest = max(values, default=0.0)
    return "".join(_MARKS[round(value / largest * (len(_MARKS) - 1)) if largest else 0] for value in values)


_MARKS = "▁▂▃▄▅▆▇█"


def evidence_table(title: str, evidence: Sequence[Mapping[str, object]]) -> Table:
    """Rows of evidence, which have the same columns."""

    def cell(value: object) -> str:
        return (
            value if isinstance(value, str) else number(value if isinstance(value, int | float) else None, 7)
        )

    columns = [Column(name, numeric=not isinstance(value, str)) for name, value in evidence[0].items()]
    return Table(title, columns, [[cell(value) for value in row.values()] for row in evidence])
