"""Rows and claims of a reproduction, and how each came out.

A row is a published number compared with ours: how near they must be follows from the errors of both and
from the rounding of the print (`judging` makes the rows). A claim is a statement, whether it holds
here, and the evidence.

| verdict | means | fails |
|---|---|---|
| holds | ours is within the tolerance, or the claim holds | no |
| undecided | ours is within a tolerance so wide that the published numbers of all rivals are, too | no |
| known misfit | ours is outside, or the claim does not hold, and ours is within the band that is known | no |
| misfit | ours is outside of the tolerance, and of the band if there is one | yes |
| known misfit gone | ours is within the tolerance, and no longer where the known misfit has it | yes |
| missing | there is no number of ours | yes |

An undecided row says nothing about what it was compared for, and does not count as one that holds.

What holds may say little: a straw man is a number that something trivial would give (an idle path, a switch
without control, one constant for all rows of a group). A row or a claim that a straw man passes does not
discriminate, and is counted apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

About = Literal["published", "again", "identity", "own"]
"""What a row or a claim is about: the publication; published numbers once more, with another reading of the
text or several of them together; an identity that our counters satisfy whatever the published ones do; a goal
of our own. The last two are our own checks, and say nothing about a published number."""


class Verdict(StrEnum):
    """How a row or a claim came out."""

    HOLDS = "holds"
    UNDECIDED = "undecided"
    KNOWN = "known misfit"
    MISFIT = "misfit"
    GONE = "known misfit gone"
    MISSING = "missing"

    @property
    def fails(self) -> bool:
        """Whether the study fails by it."""
        return self in (Verdict.MISFIT, Verdict.GONE, Verdict.MISSING)


@dataclass(frozen=True)
class KnownMisfit:
    """A difference that is known: what is known of its cause, which may be little, and where our number lies
    instead."""

    reason: str
    low: float
    """Least value of ours that is known, in the unit of the row."""
    high: float
    """Greatest value of ours that is known."""

    def __contains__(self, ours: float) -> bool:
        return self.low <= ours <= self.high


@dataclass(frozen=True, kw_only=True)
class Row:
    """A published number compared with ours."""

    name: str
    published: float
    ours: float | None
    """None, or not finite: there is none."""
    tolerance: float
    """How far ours may lie above the published number, in the unit of the row."""
    tolerance_below: float | None = None
    """How far below; None: as far as above."""
    basis: str = ""
    """What the tolerance is made of."""
    step: float = 0.0
    """A unit of the last printed digit; half of it is in the tolerance."""
    error: float | None = None
    """Standard error of ours; None where it is not known or there is none."""
    published_error: float | None = None
    """The same of the published number."""
    fitted: str = ""
    """What of ours was chosen so that this number comes out; nothing where nothing was."""
    group: str = ""
    """Rows that one constant could answer; nothing for a number of its own kind."""
    straws: Mapping[str, float] = field(default_factory=dict)
    """What something trivial would give, by what it is."""
    rivals: Mapping[str, float] = field(default_factory=dict)
    """The same number as published of what this one is compared with there, such as other controllers."""
    about: About = "published"
    unit: str = ""
    source: str = ""
    """Where the published number stands."""
    known: KnownMisfit | None = None

    @property
    def difference(self) -> float | None:
        """ours - published."""
        return None if self.ours is None or not math.isfinite(self.ours) else self.ours - self.published

    @property
    def low(self) -> float:
        """The least number that counts as equal."""
        below = self.tolerance if self.tolerance_below is None else self.tolerance_below
        return self.published - below

    @property
    def high(self) -> float:
        """The greatest number that counts as equal."""
        return self.published + self.tolerance

    def passes(self, value: float) -> bool:
        """Whether this number counts as equal to the published one."""
        # A decimal tolerance is not a binary number: equal in all printed digits is equal.
        slack = 1e-9 * max(abs(self.published), self.high - self.low)
        return self.low - slack <= value <= self.high + slack

    @property
    def straw(self) -> str:
        """The straw man that passes, with its number; nothing where none does."""
        return next((f"{name}: {value:.4g}" for name, value in self.straws.items() if self.passes(value)), "")

    @property
    def decides(self) -> bool:
        """Whether the tolerance leaves out a rival; numbers that are printed alike are no rivals."""
        others = [value for value in self.rivals.values() if abs(value - self.published) > self.step]
        return not others or not all(self.passes(value) for value in others)

    @property
    def verdict(self) -> Verdict:
        """See the table of the module. Where a known misfit lies at the edge of the tolerance, one that is
        still in its band is still known."""
        if self.difference is None or self.ours is None:
            return Verdict.MISSING
        near = self.passes(self.ours)
        if self.known is None:
            return (Verdict.HOLDS if self.decides else Verdict.UNDECIDED) if near else Verdict.MISFIT
        if self.ours in self.known:
            return Verdict.KNOWN
        return Verdict.GONE if near else Verdict.MISFIT


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
    ours: float | None = None
    """The number that decides; None where no single one does."""
    band: KnownMisfit | None = None
    """Where this number lies when it is `known`; None: anywhere."""
    about: About = "published"
    straw: str = ""
    """Something trivial of which the statement holds, too; nothing where nothing is known that does."""

    @property
    def verdict(self) -> Verdict:
        """See the table of the module."""
        if not self.known:
            return Verdict.HOLDS if self.holds else Verdict.MISFIT
        if self.holds:
            return Verdict.GONE
        inside = self.band is None or (self.ours is not None and self.ours in self.band)
        return Verdict.KNOWN if inside else Verdict.MISFIT
