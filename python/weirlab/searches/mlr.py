"""MLRsearch: several rates in one search, after RFC 9971, with a load selection of our own.

Loads are classified by `weirlab.searches.classify` as the RFC demands; which load comes next is free, and
chosen by `weirlab.searches.selection`. Every trial runs to its end.

Source: RFC 9971, sections 4.5 to 4.8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weirlab.errors import InputError
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.classify import Criterion, LoadClass
from weirlab.searches.controller import Finding, Outcome, Wish, refuse_empty_trials
from weirlab.searches.evidence import Evidence, Stationarity
from weirlab.searches.ladder import Ladder
from weirlab.searches.ledger import Effective, Ledger, Record, Verdict, initial_duration_s
from weirlab.searches.selection import Choice, Target, choose

ABOVE_HINT = 0.5
"""How far above the hint the first load lies, as a share of the finest width; an earlier result is a lower
bound, above which it lies a whole width."""
_LEAST_ABOVE = 0.2
"""How far above its hint any goal begins, as a share of the finest width."""


class Mlr:
    """The controller `mlr`.

    Each goal is approached through preceding targets: the same goal with shorter trials and coarser widths,
    durations in geometric progression from the initial to the final one, widths doubled.
    """

    kind = "mlr"

    def __init__(
        self,
        goals: Sequence[SearchGoal],
        loads: LoadRange,
        *,
        preceding_targets: int = 2,
        effective: Effective = "trial",
        timeout_s: float | None = None,
        hints_fps: Mapping[str, float] | None = None,
    ) -> None:
        """Args:
        effective: What counts as effective duration of a trial.
        timeout_s: No trial begins once the trials have taken this long, waits included.
        hints_fps: Rates by goal that an earlier search found: where to begin. Every bound is measured anew.
        """
        if preceding_targets < 0:
            raise InputError(f"the preceding targets must be 0 or more (got {preceding_targets})")
        if timeout_s is not None and not timeout_s > 0.0:
            raise InputError(f"the timeout of a search must be above 0 s (got {timeout_s:g})")
        self.goals = list(goals)
        self.loads = loads
        self._widths = [_width(goal, self.kind) for goal in self.goals]
        refuse_empty_trials(loads, min(self._initial_s(place) for place in range(len(self.goals))))
        self._hints = dict(hints_fps or {})
        if unknown := set(self._hints) - {goal.name for goal in self.goals}:
            raise InputError(f"a hint for {sorted(unknown)[0]!r}, which is no goal of this search")
        self._preceding_targets = preceding_targets
        self._effective: Effective = effective
        self._timeout_s = timeout_s
        self._criteria: list[Criterion] = []
        self._goal_of: list[int] = []
        self._targets: list[list[int]] = [self._add_targets(place) for place in range(len(self.goals))]
        self._start_over(self._hints)
        self._elapsed_s = 0.0
        self._last_index = -1
        self._wish: Wish | None = None
        self._advance()

    def _start_over(self, hints_fps: Mapping[str, float]) -> None:
        """Forget every trial, and begin at these rates where there is one for each goal."""
        initial_s = [self._initial_s(goal) for goal in self._goal_of]
        self._ledger = Ledger(self._criteria, initial_s, self._effective)
        self._ladder: Ladder | None = None
        self._starts: list[int | None] = [None] * len(self.goals)
        self._levels = [0] * len(self.goals)
        self._settled_s: list[float | None] = [None] * len(self.goals)
        self._asker = 0
        if all(goal.name in hints_fps for goal in self.goals):
            self._found_ladder([hints_fps[goal.name] for goal in self.goals], above=1.0)

    # ---- what a Controller is

    def settings(self) -> Mapping[str, object]:
        """Its name and its parameters."""
        return {
            "kind": self.kind,
            "preceding_targets": self._preceding_targets,
            "effective": self._effective,
            "timeout_s": self._timeout_s,
            "hints_fps": self._hints,
        }

    def ask(self) -> Wish | None:
        """The next trial."""
        return self._wish

    def tell(self, outcome: Outcome) -> None:
        """Take what came of the last wish."""
        # A trial that answers for several loads took its time once.
        if outcome.trial.spec.index > self._last_index:
            self._last_index = outcome.trial.spec.index
            self._elapsed_s = outcome.trial.spec.elapsed_s + outcome.trial.effective_duration_s
        self._take(outcome)
        self._advance()

    @property
    def phase(self) -> str:
        """The goal that is looked for."""
        if self._wish is None:
            return "finished"
        return "initial" if self._ladder is None else self.goals[self._asker].name

    def findings(self) -> Sequence[Finding]:
        """What is known of each goal."""
        return [self._finding(place) for place in range(len(self.goals))]

    # ---- choosing

    def _advance(self) -> None:
        self._wish = None
        self._reopen()
        if not self._timed_out():
            self._wish = self._next()

    def _reopen(self) -> None:
        """Take back that a goal was reached where the last trial has moved its bounds."""
        for place, settled_s in enumerate(self._settled_s):
            if settled_s is not None and self._choice(place) is not None:
                self._settled_s[place] = None

    def _timed_out(self) -> bool:
        return self._timeout_s is not None and self._elapsed_s >= self._timeout_s

    def _take(self, outcome: Outcome) -> None:
        self._ledger.add(outcome)
        if self._ladder is None:
            self._begin_at(outcome)

    def _begin_at(self, outcome: Outcome) -> None:
        """Begin where a trial at the highest load shows the rates, but where there are hints."""
        rate_fps = outcome.load_fps * (1.0 - outcome.loss_ratio)
        if outcome.beyond_tester:
            rate_fps = outcome.forwarding_rate_fps
        self._found_ladder(
            [self._hints.get(goal.name, rate_fps / (1.0 - goal.loss_ratio)) for goal in self.goals],
            above=ABOVE_HINT,
        )

    def _found_ladder(self, hints_fps: Sequence[float], *, above: float) -> None:
        """Put a rung above the lowest hint, by that share of the finest width, and note where each goal
        begins."""
        width_log = -math.log1p(-min(self._widths))
        hints_fps = [self.loads.clip(hint_fps) for hint_fps in hints_fps]
        anchor_fps = self.loads.clip(min(hints_fps) * math.exp(above * width_log))
        self._ladder = Ladder(self.loads, self._widths, anchor_fps)
        self._begins = [
            math.ceil(math.log(hint_fps / anchor_fps) / self._ladder.step + _LEAST_ABOVE)
            for hint_fps in hints_fps
        ]

    def _next(self) -> Wish | None:
        """The next trial; None when every goal is reached."""
        if self._ladder is None:
            return Wish(self.loads.max_fps, max(self._initial_s(place) for place in range(len(self.goals))))
        confirming: tuple[int, Choice] | None = None
        for place in range(len(self.goals)):
            choice = self._choice(place)
            if choice is None:
                if self._settled_s[place] is None:
                    self._settled_s[place] = self._elapsed_s
            elif not choice.confirms:
                return self._wish_of(place, choice)
            elif confirming is None:
                confirming = (place, choice)
        return None if confirming is None else self._wish_of(*confirming)

    def _choice(self, place: int) -> Choice | None:
        """What a goal wants next, at the first of its targets that is not reached."""
        assert self._ladder is not None
        targets = self._targets[place]
        while True:
            level = self._levels[place]
            target = self._target(place, level)
            records = self._ledger.records(target.criterion)
            choice = choose(records, target, self._ladder, self._start(place, records))
            if choice is not None or level + 1 == len(targets):
                return choice
            self._levels[place] = level + 1

    def _start(self, place: int, records: Sequence[Record]) -> int:
        """Where a goal begins: at its hint, or above it where trials for other goals have passed."""
        assert self._ladder is not None
        start = self._starts[place]
        if start is None:
            passed = [
                self._ladder.rung_of(record.load_fps)
                for record in records
                if record.lean in ("lower", "short")
            ]
            start = max([self._begins[place], *passed])
            self._starts[place] = start
        return start

    def _wish_of(self, place: int, choice: Choice) -> Wish:
        assert self._ladder is not None
        self._asker = place
        return Wish(self._ladder.load_fps(choice.rung), choice.duration_s)

    # ---- targets

    def _add_targets(self, place: int) -> list[int]:
        """Criteria of a goal's targets, the coarsest first; their places in the ledger."""
        goal = self.goals[place]
        final = Criterion.of(goal)
        initial_s = initial_duration_s(goal.initial_duration_s, goal.duration_s)
        places = []
        for before in range(self._preceding_targets, 0, -1):
            sum_s = final.duration_sum_s * (initial_s / final.duration_sum_s) ** (
                before / self._preceding_targets
            )
            if sum_s < final.duration_sum_s:
                duration_s = min(final.duration_s, sum_s)
                self._criteria.append(final._replace(duration_s=duration_s, duration_sum_s=sum_s))
                places.append(len(self._criteria) - 1)
        self._criteria.append(final)
        places.append(len(self._criteria) - 1)
        self._goal_of += [place] * len(places)
        return places

    def _target(self, place: int, level: int) -> Target:
        assert self._ladder is not None
        criterion = self._targets[place][level]
        coarser = len(self._targets[place]) - 1 - level
        return Target(
            criterion=criterion,
            loss_ratio=self.goals[place].loss_ratio,
            duration_s=self._criteria[criterion].duration_s,
            initial_s=self._initial_s(place),
            width=self._ladder.rungs(self._widths[place]) * 2**coarser,
            tries_from_top=1,
        )

    def _initial_s(self, place: int) -> float:
        goal = self.goals[place]
        return initial_duration_s(goal.initial_duration_s, goal.duration_s)

    # ---- results

    def _final_records(self, place: int) -> Sequence[Record]:
        """All loads that were measured, seen with the eyes of a goal."""
        return self._ledger.records(self._targets[place][-1])

    def _bounds(self, place: int) -> tuple[Record | None, Record | None]:
        return self._ledger.bounds(self._targets[place][-1])

    def _finding(self, place: int) -> Finding:
        lower, upper = self._bounds(place)
        settled_s = self._settled_s[place]
        return Finding(
            lower=None if lower is None else _lower_outcome(lower),
            upper=None if upper is None else _upper_outcome(upper),
            ended=settled_s is not None or self._wish is None,
            timed_out=self._why_timed_out() if settled_s is None and self._timed_out() else "",
            not_stationary=self._why_not_stationary(place),
            conditional_throughput_fps=(
                None if lower is None else lower.load_fps * (1.0 - lower.tally.conditional_loss_ratio)
            ),
            evidence=self._evidence(place, lower, upper),
        )

    def _why_timed_out(self) -> str:
        return f"the trials took {self._elapsed_s:.1f} s, the search may take {self._timeout_s:g} s"

    def _why_not_stationary(self, _place: int) -> str:
        return ""

    def _stationarity(self, _place: int) -> Stationarity:
        return Stationarity.NOT_TESTED

    def _stationarity_note(self, _place: int) -> str:
        return "mlr tests no bound again at the end"

    def _evidence(self, place: int, lower: Record | None, upper: Record | None) -> Evidence:
        at_lower = [] if lower is None else lower.of_device
        at_upper = [] if upper is None else _speaking(upper)
        full = [verdict for verdict in at_lower if lower is not None and lower.full(verdict)]
        settled_s = self._settled_s[place]
        return Evidence(
            lower_trials=[verdict.outcome.trial for verdict in at_lower],
            upper_trials=[verdict.outcome.trial for verdict in at_upper],
            full_trials=len(full),
            exceeding_trials=sum(verdict.high for verdict in full),
            time_s=self._elapsed_s if settled_s is None else settled_s,
            stationarity=self._stationarity(place),
            stationarity_note=self._stationarity_note(place),
        )


def _width(goal: SearchGoal, kind: str) -> float:
    if goal.width is None:
        raise InputError(f"goal {goal.name}: {kind} needs a width")
    return goal.width


def _speaking(upper: Record) -> list[Verdict]:
    """The trials that make a load an upper bound: those of the device, where they suffice."""
    return upper.of_device if upper.tally.load_class is LoadClass.UPPER else upper.verdicts


def _lower_outcome(record: Record) -> Outcome:
    """The trial that stands for a lower bound: the one with the conditional loss ratio."""
    ratio = record.tally.conditional_loss_ratio
    low = [verdict for verdict in record.verdicts if not verdict.high and record.full(verdict)]
    same = [verdict for verdict in low if verdict.sample.loss_ratio == ratio]
    return _as_counted((same or low)[-1])


def _upper_outcome(record: Record) -> Outcome:
    """The trial that stands for an upper bound: the last of full length with high loss, or a short one; the
    one that the tester could not offer where those of the device decide nothing."""
    assert record.load_class is LoadClass.UPPER
    if record.tally.load_class is not LoadClass.UPPER:
        return next(verdict.outcome for verdict in record.verdicts if not verdict.of_device)
    high = [verdict for verdict in record.of_device if verdict.high]
    full = [verdict for verdict in high if record.full(verdict)]
    return _as_counted((full or high)[-1])


def _as_counted(verdict: Verdict) -> Outcome:
    """The outcome with the loss ratio that it was counted with; of a stopped trial that of the whole one, as
    far as it is known."""
    return replace(verdict.outcome, loss_ratio=verdict.sample.loss_ratio)
