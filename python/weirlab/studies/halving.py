"""Successive halving: short or few runs of all points, more of those that did well."""

from __future__ import annotations

from weirlab.scenario.plan.contest import Halving
from weirlab.studies.contests import Contested
from weirlab.studies.plan import RunsPlan


class Halved(Contested):
    """Says how many replicates each point of a plan is to have at each stage; see
    `weirlab.execution.Asking`."""

    def __init__(self, plan: RunsPlan, halving: Halving) -> None:
        super().__init__(plan, halving)
        self._halving = halving
        self._whole = plan.scenario.run.duration
        longest = max(map(len, plan.groups.values()), default=1)
        self.rounds = len(halving.rungs(longest, plan.least, self._whole)) + 1
        self._stage_of = {stage.duration: place for place, stage in enumerate(plan.stages[:-1])}

    def _go_on(self) -> None:
        for each in (self.standings, self.finalists, self.limits):
            each.clear()
        for key, members in self._plan.groups.items():
            self._contest_among(dict(zip(self._halving.apart, key, strict=True)), members)

    def _contest_among(self, levels: dict[str, str], members: list[int]) -> None:
        left, chosen = list(members), dict.fromkeys(members, float("nan"))
        rungs = self._halving.rungs(len(members), self._plan.least, self._whole)
        for number, rung in enumerate(rungs, start=1):
            stage = self._stage_of[rung.duration]
            points = [self._plan.at_stage(member, stage) for member in left]
            if not self.want(points, rung.replicates):
                return
            points = [point for point in points if point not in self.impossible]
            kept = self.ranked(points, rung.replicates)[: rung.kept]
            self.stand(levels, number, points, rung.replicates, kept)
            left = sorted(self._plan.at_stage(point, 0) for point in kept)
            chosen = {
                self._plan.at_stage(point, 0): self.mean(point, self._halving.measure, rung.replicates)
                for point in kept
            }
        last = len(self._plan.stages) - 1
        points = [self._plan.at_stage(member, last) for member in left]
        if self.want(points, self._halving.verdict):
            points = [point for point in points if point not in self.impossible]
            self.judge(levels, {each: chosen[self._plan.at_stage(each, 0)] for each in points})

    def expected(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """See `weirlab.execution.Asking`."""
        runs, cost = 0, 0.0
        for members in self._plan.groups.values():
            rungs = self._halving.rungs(len(members), self._plan.least, self._whole)
            unit = rungs[0].duration if rungs else None
            whole = 1.0 if unit is None or self._whole is None else self._whole.ps / unit.ps
            left, before = len(members), (None if not rungs else rungs[0].duration, 0)
            for rung in rungs:
                there = before[1] if before[0] == rung.duration else 0
                part = whole if rung.duration is None else rung.duration.ps / unit.ps if unit else 1.0
                runs += left * (rung.replicates - there)
                cost += left * (rung.replicates - there) * part
                left, before = rung.kept, (rung.duration, rung.replicates)
            runs += left * self._halving.verdict
            cost += left * self._halving.verdict * whole
        return (runs, cost), (runs, cost)
