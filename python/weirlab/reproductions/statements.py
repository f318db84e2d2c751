"""Statements of a publication, asked of its own numbers and of ours alike.

A statement is a function of a view: the numbers that one side has. What they do not show stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from weirlab.reproductions.verdicts import Claim

View = TypeVar("View")


class Answer(NamedTuple):
    """Whether a statement holds; None where the numbers do not show it."""

    holds: bool | None
    evidence: str

    def __str__(self) -> str:
        word = {True: "holds", False: "does not hold", None: "open"}[self.holds]
        return f"{word}: {self.evidence}"


@dataclass(frozen=True)
class Statement(Generic[View]):
    """A statement of the text, with the criterion that we read it by."""

    text: str
    source: str
    """The place in the publication."""
    check: Callable[[View], Answer]
    known: str = ""
    """Why it is known not to hold here; nothing where it should."""


class Statements(list[Statement[View]]):
    """Statements of a publication, in its order. Each stands above the function that checks it."""

    def holds(
        self, text: str, source: str, *, known: str = ""
    ) -> Callable[[Callable[[View], Answer]], Callable[[View], Answer]]:
        """Add a statement, checked by the function below it."""

        def of(check: Callable[[View], Answer]) -> Callable[[View], Answer]:
            self.append(Statement(text, source, check, known))
            return check

        return of


def claims_of(
    statements: Sequence[Statement[View]],
    ours: View,
    published: View,
    *,
    source: str,
    lenient: bool = False,
    straws: Mapping[str, View] = MappingProxyType({}),
) -> list[Claim]:
    """Every statement with what the published numbers and ours say; `source` stands before the place of each.
    With `lenient`, what our numbers leave open does not count against it. A statement that holds of one of
    `straws`, by name, does not discriminate."""
    made = []
    for statement in statements:
        answer = statement.check(ours)
        made.append(
            Claim(
                statement=statement.text,
                holds=answer.holds is True or (lenient and answer.holds is None and not statement.known),
                evidence=answer.evidence if answer.holds is not None else str(answer),
                published=str(statement.check(published)),
                source=f"{source} {statement.source}",
                known=statement.known,
                straw=next((name for name, view in straws.items() if statement.check(view).holds), ""),
            )
        )
    return made
