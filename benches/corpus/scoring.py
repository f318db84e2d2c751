"""How often findings are right, and how often what is true is found.

Figures say something of captures that no rule was tuned on: docs/traces.md says on which seeds rules were,
and which one is held out.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import peers as others
from corpus.case import Made
from corpus.truth import truth
from weirlab.traces import diagnose, read_trace


class Score:
    """Counts of one finding."""

    def __init__(self) -> None:
        self.right = self.wrong = self.expected = self.found = 0

    @property
    def precision(self) -> float | None:
        """Of the captures in which it was found and not merely allowed, those in which it is expected.

        Captures in which it is allowed are left out: what is found there is neither right nor wrong, so that
        precision says nothing of causes that are there and weak.
        """
        all_of_them = self.right + self.wrong
        return self.right / all_of_them if all_of_them else None

    @property
    def recall(self) -> float | None:
        """Of the captures in which it is expected, those in which it was found."""
        return self.found / self.expected if self.expected else None


@dataclass(frozen=True)
class Labelled:
    """A capture and what is true of it."""

    made: Made
    path: Path
    expected: frozenset[str]
    allowed: frozenset[str]

    @property
    def name(self) -> str:
        return self.made.name


def labelled(directories: Iterable[Path], only: str = "*") -> list[Labelled]:
    """The captures of corpora."""
    found = []
    for directory in directories:
        for line in (directory / "counts.jsonl").read_text().splitlines():
            fields = json.loads(line)
            made = Made(**{**fields, "causes": tuple(fields["causes"])})
            if fnmatch.fnmatch(made.name, only):
                found.append(Labelled(made, directory / made.file, *truth(made)))
    return found


def told(file: Path) -> dict[str, str]:
    """What `weir diagnose` says of a capture: findings with their verdicts, the graver one first."""
    found: dict[str, str] = {}
    for finding in diagnose(read_trace(file)):
        if found.get(finding.kind) != "problem":
            found[finding.kind] = finding.verdict
    return found


def scores(pairs: Sequence[tuple[Labelled, Mapping[str, str]]]) -> dict[str, Score]:
    """By finding, in the order of their names."""
    made: dict[str, Score] = {}
    for each, found in pairs:
        for kind in {*each.expected, *found} - {*each.allowed}:
            score = made.setdefault(kind, Score())
            score.expected += kind in each.expected
            score.found += kind in each.expected and kind in found
            score.right += kind in found and kind in each.expected
            score.wrong += kind in found and kind not in each.expected
    return dict(sorted(made.items()))


def called_ill(each: Labelled, found: Mapping[str, str]) -> list[str]:
    """Of a healthy flow: what is not true, and problems that the counts do not show to be strong."""
    true = each.expected | each.allowed
    return [
        kind
        for kind, verdict in found.items()
        if kind not in true or (verdict == "problem" and kind not in each.expected)
    ]


def show(directories: Sequence[Path], only: str, *, peers: bool, faults: bool, out: Path | None) -> int:
    """Print tables; write them, too, if `out` is given."""
    captures = labelled(directories, only)
    tools = {"weir": told, **(others.TOOLS if peers else {})}
    figures: dict[str, Any] = {"captures": len(captures)}
    for tool, ask in tools.items():
        pairs = [(each, ask(each.path)) for each in captures]
        print(f"\n{tool}: {len(captures)} captures")
        figures[tool] = {}
        parts = {
            "single": [pair for pair in pairs if pair[0].made.single],
            "all": pairs,
            "at the sender": [pair for pair in pairs if pair[0].made.place == "sender"],
        }
        for name, some in parts.items():
            figures[tool][name] = _table(name, some)
        healthy = [pair for pair in pairs if not pair[0].made.causes]
        ill = [(each, kinds) for each, found in healthy if (kinds := called_ill(each, found))]
        print(f"healthy flows called ill: {len(ill)} of {len(healthy)}")
        figures[tool]["healthy"] = {"captures": len(healthy), "called_ill": len(ill)}
        if faults and tool == "weir":
            _faults(pairs, ill)
    if out is not None:
        out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _table(name: str, pairs: Sequence[tuple[Labelled, Mapping[str, str]]]) -> dict[str, Any]:
    print(f"  {name:28} expected  found  wrong  precision  recall")
    rows: dict[str, Any] = {}
    for kind, score in scores(pairs).items():
        ratios = ["" if ratio is None else f"{ratio:.3f}" for ratio in (score.precision, score.recall)]
        print(
            f"  {kind:28} {score.expected:8} {score.found:6} {score.wrong:6} {ratios[0]:>10} {ratios[1]:>7}"
        )
        rows[kind] = {"expected": score.expected, "found": score.found, "wrong": score.wrong}
    return rows


def _faults(
    pairs: Sequence[tuple[Labelled, Mapping[str, str]]], ill: Sequence[tuple[Labelled, list[str]]]
) -> None:
    for each, found in pairs:
        missed = sorted(set(each.expected) - set(found))
        wrong = sorted(set(found) - {*each.expected, *each.allowed})
        if missed or wrong:
            print(
                f"  {each.name}: missed {missed or '-'}, wrong {wrong or '-'} (expected "
                f"{sorted(each.expected)})"
            )
    for each, kinds in ill:
        print(f"  {each.name}: healthy, called ill: {kinds}")
