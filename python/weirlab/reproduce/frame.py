"""Reproductions: published numbers and claims beside ours, with a verdict for each.

A study gives rows (a published number, ours, how near they must be) and claims (a statement, whether it
holds here, and the evidence). Where we know that we differ, the row says why and in which band our number
lies instead: a known misfit. It does not fail the study, but its disappearance does, so that nobody keeps
an excuse that is not needed.

| verdict | means | fails |
|---|---|---|
| holds | ours is within the tolerance, or the claim holds | no |
| known misfit | ours is outside, and within the band that is known | no |
| misfit | ours is outside of the tolerance, and of the band if there is one | yes |
| known misfit gone | ours is within the tolerance although a misfit is known | yes |
| missing | there is no number of ours | yes |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import polars as pl

from weirlab.errors import InputError
from weirlab.records import Records, save_tables
from weirlab.results import Manifest, Provenance, read_json, write_json

__all__ = ["STUDIES", "Claim", "Effort", "Findings", "KnownMisfit", "Reproduction", "Row", "Verdict", "find"]


class Verdict(StrEnum):
    """How a row or a claim came out."""

    HOLDS = "holds"
    KNOWN = "known misfit"
    MISFIT = "misfit"
    GONE = "known misfit gone"
    MISSING = "missing"

    @property
    def fails(self) -> bool:
        """Whether the study fails by it."""
        return self not in (Verdict.HOLDS, Verdict.KNOWN)


@dataclass(frozen=True)
class KnownMisfit:
    """A difference that is known: what is known of its cause, which may be little, and where our number lies
    instead."""

    reason: str
    low: float
    """Least value of ours that is known, in the unit of the row."""
    high: float
    """Greatest value of ours that is known."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A published number beside ours."""

    name: str
    published: float
    ours: float | None
    """None, or not finite: there is none."""
    tolerance: float
    """Greatest distance that counts as equal, in the unit of the row; with `relative` as a share of the
    published number."""
    relative: bool = False
    tolerance_below: float | None = None
    """The same for numbers of ours that are smaller than the published one; None: `tolerance`."""
    unit: str = ""
    source: str = ""
    """Where the published number stands."""
    known: KnownMisfit | None = None

    @property
    def difference(self) -> float | None:
        """ours - published."""
        return None if self.ours is None or not math.isfinite(self.ours) else self.ours - self.published

    @property
    def allowed(self) -> float:
        """The tolerance in the unit of the row."""
        return self._in_unit(self.tolerance)

    @property
    def allowed_below(self) -> float:
        """The tolerance below the published number, in the unit of the row."""
        return self.allowed if self.tolerance_below is None else self._in_unit(self.tolerance_below)

    @property
    def wide(self) -> bool:
        """Whether the tolerance is larger than the published number, so that nothing at all would be near."""
        return self.known is None and 0 < abs(self.published) <= self.allowed_below

    @property
    def verdict(self) -> Verdict:
        """See the table of the module."""
        if self.difference is None or self.ours is None:
            return Verdict.MISSING
        # A decimal tolerance is not a binary number: equal in all printed digits is equal.
        slack = 1 + 1e-9
        near = -self.allowed_below * slack <= self.difference <= self.allowed * slack
        if self.known is None:
            return Verdict.HOLDS if near else Verdict.MISFIT
        if near:
            return Verdict.GONE
        return Verdict.KNOWN if self.known.low <= self.ours <= self.known.high else Verdict.MISFIT

    def _in_unit(self, tolerance: float) -> float:
        return tolerance * abs(self.published) if self.relative else tolerance


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the publication, checked here."""

    statement: str
    holds: bool
    evidence: str
    """The numbers that say so."""
    published: str = ""
    """What the published numbers say of it."""
    source: str = ""
    known: str = ""
    """Why the claim is known not to hold here; nothing where it should."""
    about: Literal["published", "identity", "own"] = "published"
    """Whether it is said of the published network, is an identity that our counters satisfy whatever the
    published ones do, or is a goal of our own that nobody has published."""

    @property
    def verdict(self) -> Verdict:
        """See the table of the module."""
        if not self.known:
            return Verdict.HOLDS if self.holds else Verdict.MISFIT
        return Verdict.GONE if self.holds else Verdict.KNOWN


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

    @property
    def verdicts(self) -> list[Verdict]:
        """Of all rows, then of all claims."""
        return [row.verdict for row in self.rows] + [claim.verdict for claim in self.claims]

    @property
    def holds(self) -> bool:
        """Whether nothing failed. A study without any row or claim has shown nothing, and fails."""
        return bool(self.verdicts) and not any(verdict.fails for verdict in self.verdicts)

    @property
    def summary(self) -> str:
        """The verdicts in one line."""
        counts = {verdict: self.verdicts.count(verdict) for verdict in Verdict}
        text = f"{self.name}: {counts[Verdict.HOLDS]} of {len(self.verdicts)} hold{self._weaker}"
        for verdict in (Verdict.KNOWN, Verdict.MISFIT, Verdict.GONE, Verdict.MISSING):
            if counts[verdict]:
                many = "s" if counts[verdict] > 1 and verdict in (Verdict.KNOWN, Verdict.MISFIT) else ""
                text += f", {counts[verdict]} {verdict}{many}"
        return f"{text}: {'reproduced' if self.holds else 'NOT reproduced'}" + (
            " (quick)" if self.quick else ""
        )

    @property
    def _weaker(self) -> str:
        """How many of those that hold say less than a published number that ours agrees with."""
        held = [claim for claim in self.claims if claim.verdict is Verdict.HOLDS]
        parts = [
            f"{count} {words}"
            for count, words in (
                (sum(claim.about == "own" for claim in held), "of ours alone"),
                (sum(claim.about == "identity" for claim in held), "identities of our counters"),
                (
                    sum(row.wide and row.verdict is Verdict.HOLDS for row in self.rows),
                    "with a tolerance above the number",
                ),
            )
            if count
        ]
        return f" (of them {', '.join(parts)})" if parts else ""

    def to_json(self) -> dict[str, Any]:
        """As JSON values, verdicts included; `from_json` reads it back, but for the tables."""
        return {
            "kind": "reproduce",
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "quick": self.quick,
            "holds": self.holds,
            "summary": self.summary,
            "rows": [
                {**asdict(row), "difference": row.difference, "verdict": row.verdict} for row in self.rows
            ],
            "claims": [{**asdict(claim), "verdict": claim.verdict} for claim in self.claims],
            "remarks": list(self.remarks),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> Findings:
        """Read what `to_json` wrote. Verdicts are worked out anew."""

        def without(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
            return {name: value for name, value in entry.items() if name not in names}

        rows = []
        for entry in content["rows"]:
            known = entry["known"]
            fields = without(entry, "difference", "verdict", "known")
            rows.append(Row(**fields, known=KnownMisfit(**known) if known else None))
        return cls(
            name=content["name"],
            title=content["title"],
            source=content["source"],
            quick=content["quick"],
            rows=rows,
            claims=[Claim(**without(entry, "verdict")) for entry in content["claims"]],
            remarks=content["remarks"],
            tables=tables,
        )

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
    """A published study that can be reproduced."""

    title: str
    source: str
    home: str
    """`module:function`; the function takes an Effort and returns Findings. Imported when it is run."""
    keeps: str = ""
    """The folder of the result's directory with measurements that the next sitting goes on with."""

    def run(self, effort: Effort) -> Findings:
        """Do the work."""
        module, _, function = self.home.partition(":")
        findings = getattr(import_module(module), function)(effort)
        assert isinstance(findings, Findings), f"{self.home} must return Findings"
        return findings


STUDIES: Mapping[str, Reproduction] = {
    "bcn": Reproduction(
        title="BCN with PAUSE and drift",
        source="BCN Calibration 2006",
        home="weirlab.reproduce.bcn:reproduce",
    ),
    "bulk": Reproduction(
        title="Bulk throughput: windows against streams",
        source="SLAC 2000",
        home="weirlab.reproduce.bulk:reproduce",
        keeps="campaigns",
    ),
    "mdr": Reproduction(
        title="MDR search and plain binary search",
        source="CSIT MDR, sections 2.8.1, 2.8.4 and 2.8.5",
        home="weirlab.reproduce.mdr:reproduce",
    ),
    "rapid": Reproduction(
        title="Rapid under UDP cross traffic",
        source="Rapid UDP",
        home="weirlab.reproduce.rapid:reproduce",
    ),
    "zrl": Reproduction(
        title="BCN under the ZRL congestion benchmark",
        source="ZRL benchmark",
        home="weirlab.reproduce.zrl:reproduce",
    ),
}
"""The studies that `weir reproduce` knows, by name."""


def find(name: str, studies: Mapping[str, Reproduction] = STUDIES) -> Reproduction:
    """The study of that name. Raises InputError, which names the nearest."""
    from weirlab.scenario.problems import did_you_mean

    if name not in studies:
        known = f"; there are {', '.join(studies)}" if studies else "; none is ready in this version"
        raise InputError(f"no study is called '{name}'{did_you_mean(name, studies) or known}")
    return studies[name]
