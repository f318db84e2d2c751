"""What the published slides observe, asked of their own tables and of our runs alike.

Each statement is a function of a `View`. A comparison of two means is decided when they lie more than two
standard errors of their difference apart, and open otherwise. What the numbers of a view do not show, it
leaves open.

Source: BCN Calibration 2006, both slides "Observation", and "Pause and BCN(MAX) (Worst Case)"
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from weirlab.reproductions import statements
from weirlab.reproductions.bcn import tables
from weirlab.reproductions.bcn.cases import CASES, SCHEMES, Case
from weirlab.reproductions.statements import Answer, Statements
from weirlab.reproductions.verdicts import Claim


@dataclass(frozen=True)
class View:
    """The numbers that one side has."""

    spreads: Mapping[tables.Key, tables.Spread]
    """The tables."""
    runs: pl.DataFrame | None = None
    """One row per run, with how long frames were dropped and sources were paused."""
    victims: pl.DataFrame | None = None
    """One row per run of the scenarios with a victim flow."""


def claims_of(ours: View, *, quick: bool) -> list[Claim]:
    """Every statement with what the published numbers and ours say. What the few runs of a quick reproduction
    leave open does not count against it."""
    return statements.claims_of(
        STATEMENTS,
        ours,
        published_view(),
        source="BCN Calibration 2006,",
        lenient=quick,
        straws={"configurations that are all alike": alike_view()},
    )


def alike_view() -> View:
    """A straw man: no scheme, no PAUSE and no drift makes a difference."""
    return View(
        dict.fromkeys(tables.published_spreads(), tables.Spread(0.1, 0.2, 0.3, 0.05, tables.PUBLISHED_RUNS))
    )


def published_view() -> View:
    """The published tables: nothing is known of single runs."""
    return View(tables.published_spreads())


def our_view(runs: pl.DataFrame, victims: pl.DataFrame) -> View:
    """Ours, of rows per run."""
    return View(tables.our_spreads(runs), runs, victims)


class _Pair(NamedTuple):
    """Two configurations of which the first mean is to be the greater one."""

    greater: Case
    less: Case
    text: str


def _compared(view: View, table: str, pairs: Sequence[_Pair]) -> Answer:
    """Whether the first of each pair has the greater mean in `table`."""
    seen, parts = [], []
    for greater, less, text in pairs:
        one, other = view.spreads[table, greater], view.spreads[table, less]
        seen.append(_greater(one, other))
        parts.append(f"{text} {_number(one.mean)} {_SIGNS[seen[-1]]} {_number(other.mean)}")
    return Answer(_all(seen), "; ".join(parts))


def _all(seen: Sequence[bool | None]) -> bool | None:
    """Whether all hold: not when one does not, open when one is open."""
    if False in seen:
        return False
    return None if None in seen else True


_SIGNS = {True: ">", False: "<", None: "≈"}


def _greater(one: tables.Spread, other: tables.Spread) -> bool | None:
    """Whether the mean of one is the greater one; None where that is not decided."""
    distance = one.mean - other.mean
    return distance > 0 if abs(distance) > 2.0 * math.hypot(one.error, other.error) else None


def _number(mean: float) -> str:
    return f"{mean:.3f}".rstrip("0").ljust(4, "0")


def _schemes(greater: str, less: str, cases: Sequence[Case]) -> list[_Pair]:
    """The first scheme against the second, with the PAUSE and drift of each of `cases`."""
    pairs = []
    for case in cases:
        if case.scheme != "none":
            continue
        one, other = (Case(scheme, case.pause, case.drift) for scheme in (greater, less))
        where = f"{'PAUSE' if case.pause else 'no PAUSE'}, {'drift' if case.drift else 'no drift'}:"
        pairs.append(_Pair(one, other, where))
    return pairs


def _lasting(view: View, others: Sequence[str], measures: Mapping[bool, str]) -> Answer:
    """Whether basic BCN has more of a measure than each of `others`: one without, one with PAUSE."""
    if view.runs is None:
        return Answer(None, _ONLY_PICTURES)
    seen, parts = [], []
    for pause, measure in measures.items():
        for drift in (True, False):
            figures = {
                scheme: _of_runs(view.runs, Case(scheme, pause, drift), measure)
                for scheme in ("none", *others)
            }
            seen += [_greater(figures["none"], figures[other]) for other in others]
            means = ", ".join(f"{SCHEMES[scheme]} {figure.mean:.2f}" for scheme, figure in figures.items())
            parts.append(f"{_NAMES[measure]}, {'drift' if drift else 'no drift'}: {means}")
    return Answer(_all(seen), "; ".join(parts))


_ONLY_PICTURES = "shown in pictures only"
_NAMES = {
    "last_drop_ms": "last drop [ms]",
    "lost_frames": "frames lost",
    "paused_ms": "PAUSE at a source [ms]",
    "last_pause_ms": "end of the last PAUSE [ms]",
}


def _of_runs(runs: pl.DataFrame, case: Case, measure: str) -> tables.Spread:
    """A column of the runs of one configuration; a run without any counts as 0."""
    chosen = (
        (pl.col("scheme") == case.scheme)
        & (pl.col("pause") == case.pause)
        & (pl.col("drift") == case.drift)
        & (pl.col("literal") == case.literal)
    )
    return tables.spread(runs.filter(chosen).get_column(measure).cast(pl.Float64).fill_null(0.0))


_FIRST = 'first slide "Observation"'
_SECOND = 'second slide "Observation"'

_IDLE = (
    "With PAUSE our BCN(0,0) leaves the link less idle than basic BCN, by 0.003 to 0.004: the misfit of the "
    "utilisation of Pause + BCN(0,0)."
)
_OWN_TABLES = "The published tables deny it, too"
STATEMENTS = Statements[View]()


@STATEMENTS.holds(
    "BCN(0,0) leaves congested links idle more than basic BCN while it recovers: more transient "
    "inefficiency (utilisation, 5-20 ms; all four pairs).",
    f"{_FIRST}, and the second",
    known=_IDLE,
)
def _less_used(view: View) -> Answer:
    return _compared(view, "utilisation", _schemes("none", "stop", CASES))


@STATEMENTS.holds(
    "BCN(0,0) tends to be less fair (fairness index, all four pairs) ...",
    _FIRST,
    known=f"{_OWN_TABLES}, with PAUSE.",
)
def _stop_less_fair(view: View) -> Answer:
    return _compared(view, "fairness", _schemes("stop", "none", CASES))


@STATEMENTS.holds("... but drift helps (BCN(0,0) with drift against without).", _FIRST)
def _drift_helps_stop(view: View) -> Answer:
    pairs = [
        _Pair(Case("stop", pause, False), Case("stop", pause, True), f"{'PAUSE' if pause else 'no PAUSE'}:")
        for pause in (False, True)
    ]
    return _compared(view, "fairness", pairs)


@STATEMENTS.holds(
    "BCN(0,0) has a much shorter period of drops (without PAUSE) or shorter PAUSE (with it).", _FIRST
)
def _stop_shortens(view: View) -> Answer:
    return _lasting(view, ["stop"], {False: "last_drop_ms", True: "paused_ms"})


@STATEMENTS.holds(
    "Basic BCN is best for transient inefficiency on congested flows: no other scheme uses the link better.",
    _SECOND,
    known=_IDLE,
)
def _basic_best_used(view: View) -> Answer:
    both = [
        _compared(view, "utilisation", _schemes("none", other, CASES)) for other in SCHEMES if other != "none"
    ]
    evidence = "; ".join(
        f"against {name}: {answer.evidence}"
        for name, answer in zip(list(SCHEMES.values())[1:], both, strict=True)
    )
    # Equal is not worse: none may be better than basic BCN.
    return Answer(all(answer.holds is not False for answer in both), evidence)


@STATEMENTS.holds(
    "But without PAUSE drops cause inefficiency at higher layers (here: frames are lost without PAUSE in "
    "every run, and a hundredth of them at most with it; the layers above are not in the model).",
    _SECOND,
)
def _loss_without_pause(view: View) -> Answer:
    if view.runs is None:
        return Answer(None, _ONLY_PICTURES)
    seen, parts = [], []
    for drift in (True, False):
        without, with_pause = (
            _of_runs(view.runs, Case("none", pause, drift), "lost_frames") for pause in (False, True)
        )
        seen.append(without.least > 0 and with_pause.mean < 0.01 * without.mean)
        parts.append(
            f"{'drift' if drift else 'no drift'}: {without.mean:.0f} frames lost without PAUSE, "
            f"{with_pause.mean:.2f} with it, at most {with_pause.greatest:.0f}"
        )
    return Answer(all(seen), "; ".join(parts))


@STATEMENTS.holds(
    "With PAUSE, long PAUSE causes inefficiency in victim flows (a flow that does not use the "
    "congested port delivers less, and least with basic BCN, which pauses longest).",
    _SECOND,
)
def _victims(view: View) -> Answer:
    if view.victims is None:
        return Answer(None, "the published network has no victim flow")
    shares = {
        str(name): tables.spread(group.get_column("delivered_share"))
        for (name,), group in view.victims.group_by("variant", maintain_order=True)
    }
    paused = {
        str(name): tables.spread(group.get_column("paused_ms"))
        for (name,), group in view.victims.group_by("variant", maintain_order=True)
    }
    worst, free = shares["Pause + BCN"], shares["BCN"]
    others = [share for name, share in shares.items() if name not in ("Pause + BCN", "BCN")]
    seen = [_greater(other, worst) for other in (free, *others)]
    evidence = ", ".join(
        f"{name} {100.0 * share.mean:.1f} % ({paused[name].mean:.2f} ms of PAUSE)"
        for name, share in shares.items()
    )
    return Answer(_all(seen), f"of what the victim offers in the first 5 ms arrive then: {evidence}")


@STATEMENTS.holds("Basic BCN has long durations of drops or PAUSE (their ends).", _SECOND)
def _basic_lasts(view: View) -> Answer:
    return _lasting(view, ["stop", "max"], {False: "last_drop_ms", True: "last_pause_ms"})


@STATEMENTS.holds(
    "BCN(0,0) and BCN(MAX) are best for reducing drops or PAUSE (frames lost, time paused).", _SECOND
)
def _both_reduce(view: View) -> Answer:
    return _lasting(view, ["stop", "max"], {False: "lost_frames", True: "paused_ms"})


@STATEMENTS.holds("BCN(0,0) with no PAUSE and no drift is less fair than basic BCN.", _SECOND)
def _stop_less_fair_plain(view: View) -> Answer:
    return _compared(view, "fairness", _schemes("stop", "none", [Case("none", False, False)]))


@STATEMENTS.holds(
    "BCN(MAX) is somewhat less fair than BCN(0,0) (all four pairs) ...",
    _SECOND,
    known=f"{_OWN_TABLES}, without PAUSE.",
)
def _max_less_fair(view: View) -> Answer:
    return _compared(view, "fairness", _schemes("max", "stop", CASES))


@STATEMENTS.holds(
    "... but better at transient inefficiency (all four pairs).", _SECOND, known=f"{_OWN_TABLES}, with PAUSE."
)
def _max_better_used(view: View) -> Answer:
    return _compared(view, "utilisation", _schemes("max", "stop", CASES))


@STATEMENTS.holds("Drift improves the fairness of BCN (all six schemes).", _SECOND)
def _drift_helps(view: View) -> Answer:
    pairs = [_Pair(Case(c.scheme, c.pause, False), c, f"{c.title}:") for c in CASES if c.drift]
    return _compared(view, "fairness", pairs)


@STATEMENTS.holds(
    "PAUSE and BCN(MAX) is the worst case (fairness and utilisation, with and without drift).",
    'slides "Pause and BCN(MAX) (Worst Case)"',
)
def _worst_case(view: View) -> Answer:
    seen, parts = [], []
    for drift in (True, False):
        worst = Case("max", True, drift)
        others = [case for case in CASES if case.drift is drift and case != worst]
        for table, worse in (("fairness", max), ("utilisation", min)):
            here = view.spreads[table, worst]
            next_worst = worse(others, key=lambda case: view.spreads[table, case].mean)
            there = view.spreads[table, next_worst]
            seen.append(_greater(here, there) if worse is max else _greater(there, here))
            what = f"{'with' if drift else 'without'} drift, {table}"
            parts.append(f"{what} {_number(here.mean)}, next {_number(there.mean)} ({next_worst.title})")
    return Answer(_all(seen), "; ".join(parts))
