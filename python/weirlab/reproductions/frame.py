"""Reproductions: published numbers and claims compared with ours, with a verdict for each.

A study gives rows and claims (`verdicts`). Where we know that we differ, the row says why and in which band
our number lies instead: a known misfit. It does not fail the study, but its disappearance
does, so that nobody keeps an excuse that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from typing_extensions import TypedDict

from weirlab.documents import typed
from weirlab.errors import InputError, UnitError
from weirlab.execution.mapping import mapped
from weirlab.fields.base import offered
from weirlab.foreign import blamed
from weirlab.records import Records, save_tables
from weirlab.reproductions.judging import Constant, constants
from weirlab.reproductions.verdicts import Claim, Row, Verdict
from weirlab.results import Manifest, Provenance, read_json, write_json

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work a reproduction may be."""

    quick: bool = False
    """Fewer repetitions, with tolerances that fit to them."""
    seed: int = 1
    threads: int | None = None
    progress: Callable[[int, int], None] | None = None
    directory: Path | None = None
    """Where measurements that take long are kept, to be continued there."""
    on: str | None = None
    """Who simulates, as in `weirlab.execution.opened`. Default: this process."""
    store: str | None = None
    """A path or URL of results that are shared, as in `weirlab.execution.mapping.mapped`."""

    @property
    def here(self) -> bool:
        """Whether this process simulates all, with `threads`, and shares nothing."""
        return self.on is None and self.store is None

    def spread(self, function: Callable[..., Made], arguments: Sequence[tuple[Any, ...]]) -> list[Made]:
        """A function of a module with each of these arguments, by whoever simulates; results in order."""
        called = partial(_called, function)
        if self.here:
            return [called(each) for each in arguments]
        return mapped(
            called,
            arguments,
            processes=self.threads,
            on=self.on,
            store=self.store,
            at_once=1,
            on_progress=self.progress,
        )


def _called(function: Callable[..., Made], arguments: tuple[Any, ...]) -> Made:
    return function(*arguments)


@dataclass(frozen=True)
class Tally:
    """How many of one kind of rows or claims hold."""

    kind: str
    all: int
    hold: int
    discriminate: int
    """Of those that hold, how many no straw man passes."""
    free: int
    """Of these, to how many nothing of ours was fitted."""

    @classmethod
    def of(cls, kind: str, judged: Iterable[tuple[str, Verdict, str, str]]) -> Tally:
        """Count (about, verdict, straw man, what was fitted)."""
        rows = list(judged)
        held = [(straw, fitted) for _, verdict, straw, fitted in rows if verdict is Verdict.HOLDS]
        reported = [fitted for straw, fitted in held if not straw]
        return cls(kind, len(rows), len(held), len(reported), reported.count(""))

    @property
    def detail(self) -> str:
        """What those that hold are worth; nothing where there is nothing to say."""
        parts = []
        if self.discriminate < self.hold:
            parts.append(f"{self.discriminate} that no straw man passes")
        if self.free < self.discriminate:
            parts.append(f"{self.free} {'of these ' if parts else ''}that nothing was fitted to")
        return ", ".join(parts)

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.hold} of {self.all} {self.kind} hold{detail}"


class _Kept(TypedDict):
    name: str
    title: str
    source: str
    quick: bool
    rows: list[Row]
    claims: list[Claim]
    remarks: list[str]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a reproduction gave."""

    name: str
    title: str
    source: str
    quick: bool
    rows: Sequence[Row]
    claims: Sequence[Claim] = ()
    remarks: Sequence[str] = ()
    """What a reader must know to judge the numbers."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """The data behind the rows."""

    @classmethod
    def of(cls, name: str, effort: Effort, **found: Any) -> Findings:
        """What the study of this name found; `found` are the fields from `rows` on."""
        study = find(name)
        return cls(name=name, title=study.title, source=study.source, quick=effort.quick, **found)

    @property
    def verdicts(self) -> list[Verdict]:
        """Of all rows, then of all claims."""
        return [row.verdict for row in self.rows] + [claim.verdict for claim in self.claims]

    @property
    def holds(self) -> bool:
        """Whether nothing failed. A study without any row or claim has shown nothing, and fails."""
        return bool(self.verdicts) and not any(verdict.fails for verdict in self.verdicts)

    @cached_property
    def constants(self) -> Sequence[Constant]:
        """What the best constant scores in each group of rows."""
        return constants(self.rows)

    def straw(self, row: Row) -> str:
        """The straw man that passes a row, or the constant that does; nothing where none does."""
        if row.straw:
            return row.straw
        passed = (one for one in self.constants if one.group == row.group and row.name in one.passed)
        return next((f"a constant: {one.value:.4g}" for one in passed), "")

    @property
    def tallies(self) -> Sequence[Tally]:
        """The published numbers, the statements, published numbers judged again, and our own checks, as far
        as there are any."""
        of_rows = [(row.about, row.verdict, self.straw(row), row.fitted) for row in self.rows]
        of_claims = [(claim.about, claim.verdict, claim.straw, "") for claim in self.claims]
        own = ("identity", "own")
        made = [
            Tally.of("published numbers", [one for one in of_rows if one[0] == "published"]),
            Tally.of("statements", [one for one in of_claims if one[0] == "published"]),
            Tally.of("numbers judged again", [one for one in of_rows + of_claims if one[0] == "again"]),
            Tally.of("own checks", [one for one in of_rows + of_claims if one[0] in own]),
        ]
        return [tally for tally in made if tally.all]

    @property
    def summary(self) -> str:
        """The verdicts in one line."""
        parts = [str(tally) for tally in self.tallies]
        counts = {verdict: self.verdicts.count(verdict) for verdict in Verdict}
        for verdict in (Verdict.UNDECIDED, Verdict.KNOWN, Verdict.MISFIT, Verdict.GONE, Verdict.MISSING):
            if counts[verdict]:
                many = "s" if counts[verdict] > 1 and verdict in (Verdict.KNOWN, Verdict.MISFIT) else ""
                parts.append(f"{counts[verdict]} {verdict}{many}")
        end = "nothing unexpected" if self.holds else "UNEXPECTED, see the verdicts"
        return f"{self.name}: {'; '.join(parts) or 'nothing compared'}: {end}" + (
            " (quick)" if self.quick else ""
        )

    def to_json(self) -> dict[str, object]:
        """As JSON values, verdicts included; `from_json` reads it back, but for the tables."""
        return {
            "kind": "reproduce",
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "quick": self.quick,
            "holds": self.holds,
            "summary": self.summary,
            "tallies": [asdict(tally) for tally in self.tallies],
            "constants": [asdict(constant) for constant in self.constants],
            "rows": self.row_documents(),
            "claims": self.claim_documents(),
            "remarks": list(self.remarks),
        }

    def row_documents(self) -> list[dict[str, object]]:
        """The rows as JSON values, verdicts included."""
        return [
            {
                **asdict(row),
                "difference": row.difference,
                "straw_man": self.straw(row),
                "verdict": row.verdict,
            }
            for row in self.rows
        ]

    def claim_documents(self) -> list[dict[str, object]]:
        """The claims as JSON values, verdicts included."""
        return [{**asdict(claim), "verdict": claim.verdict} for claim in self.claims]

    @classmethod
    def from_json(cls, content: Mapping[str, object], tables: Mapping[str, pl.DataFrame]) -> Findings:
        """Read what `to_json` wrote. Verdicts are worked out anew."""
        return cls(tables=tables, **typed(_Kept, content))

    def save(self, directory: Path, provenance: Provenance) -> None:
        """Write `result.json`, the tables and the manifest into `directory`."""
        save_tables(self.tables, directory / "tables")
        write_json(directory / "result.json", self.to_json())
        Manifest(kind="reproduce", name=self.name, status="complete", provenance=provenance).write(directory)

    @classmethod
    def load(cls, directory: str | Path) -> Findings:
        """Read what `save` wrote. Raises InputError when the directory holds something else."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "reproduce":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a reproduction")
        tables = directory / "tables"
        records = dict(Records.load(tables)) if any(tables.glob("*.parquet")) else {}
        try:
            return cls.from_json(read_json(directory / "result.json"), records)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f"{directory / 'result.json'}: not the findings of a reproduction: {error}"
            ) from error


@dataclass(frozen=True)
class Reproduction:
    """A published study that can be reproduced. `rows` and `page` are `module:function`, imported when they
    are used."""

    title: str
    source: str
    rows: str
    """Takes an Effort and returns Findings."""
    page: str = ""
    """Takes Findings and returns what the page of the study shows besides verdicts: sections before and
    after its claims, and plots. Absent: nothing."""
    name: str = ""
    """What an entry point calls it."""
    keeps: str = ""
    """The folder of the result's directory with measurements that the next sitting goes on with."""

    def run(self, effort: Effort) -> Findings:
        """Do the work."""
        with self._blamed(self.rows):
            findings = _named(self.rows)(effort)
            if not isinstance(findings, Findings):
                raise TypeError(f"{self.rows} must return Findings, not {findings!r}")
            return findings

    def sections(self, findings: Findings) -> Any:
        """What `page` gives; nothing where there is none."""
        if not self.page:
            return [], [], []
        with self._blamed(self.page):
            before, after, plots = _named(self.page)(findings)
            return list(before), list(after), list(plots)

    def _blamed(self, place: str) -> AbstractContextManager[None]:
        """Other packages answer for what goes wrong in their places."""
        return blamed(place.partition(":")[0], GROUP, self.name, f"'{place}' of the study '{self.name}'")


def _named(place: str) -> Callable[..., Any]:
    module, _, function = place.partition(":")
    named: Callable[..., Any] = getattr(import_module(module), function)
    return named


STUDIES: Mapping[str, Reproduction] = {
    "ai-fabric": Reproduction(
        title="The tests of the BMWG drafts on AI fabrics, and GPCNeT",
        source="draft-calabria-bmwg-ai-fabric-training-bench; GPCNeT 1.3",
        rows="weirlab.reproductions.ai_fabric:reproduce",
        page="weirlab.report.reproduce_ai_fabric:sections",
    ),
    "bcn": Reproduction(
        title="BCN with PAUSE and drift",
        source="BCN Calibration 2006",
        rows="weirlab.reproductions.bcn:reproduce",
        page="weirlab.report.reproduce_bcn:sections",
    ),
    "bulk": Reproduction(
        title="Bulk throughput: windows against streams",
        source="SLAC 2000",
        rows="weirlab.reproductions.bulk:reproduce",
        page="weirlab.report.reproduce_bulk:sections",
        keeps="campaigns",
    ),
    "fabric": Reproduction(
        title="Fabrics of data centers: uet-htsim, HPCC, RoCE",
        source="uet-htsim; HPCC 2019; RoCE at scale",
        rows="weirlab.reproductions.fabric:reproduce",
        page="weirlab.report.reproduce_fabric:sections",
    ),
    "mdr": Reproduction(
        title="MDR search and plain binary search",
        source="CSIT MDR, sections 2.8.1, 2.8.4 and 2.8.5",
        rows="weirlab.reproductions.mdr:reproduce",
        page="weirlab.report.reproduce_mdr:sections",
    ),
    "rapid": Reproduction(
        title="Rapid under UDP cross traffic",
        source="Rapid UDP",
        rows="weirlab.reproductions.rapid:reproduce",
        page="weirlab.report.reproduce_rapid:sections",
    ),
    "zrl": Reproduction(
        title="BCN under the ZRL congestion benchmark",
        source="ZRL benchmark",
        rows="weirlab.reproductions.zrl:reproduce",
        page="weirlab.report.reproduce_zrl:sections",
    ),
}
"""The studies of this package by name. Commands, pages and plots go by these and the entry points alone."""
GROUP = "weirlab.studies"
"""Packages of other people add to them: entry points of the group name a `Reproduction`."""


def names() -> list[str]:
    """What studies are called, those of other packages included."""
    from importlib.metadata import entry_points  # takes 20 ms to load

    return [*STUDIES, *(name for name in sorted(entry_points(group=GROUP).names) if name not in STUDIES)]


def find(name: str) -> Reproduction:
    """The study of that name. Raises InputError, which names the nearest."""
    if name in STUDIES:
        return STUDIES[name]
    try:
        added = offered(GROUP, name)
    except UnitError as error:
        raise InputError(str(error)) from error
    if added is None:
        from weirlab.scenario.file.problems import did_you_mean

        known = names()
        raise InputError(
            f"no study is called '{name}'{did_you_mean(name, known) or '; there are ' + ', '.join(known)}"
        )
    source, study = added
    if not isinstance(study, Reproduction):
        raise InputError(f"{source} is no Reproduction")
    return replace(study, name=name)
