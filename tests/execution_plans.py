"""A plan whose runs misbehave as they are told; processes of executors import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weirlab.execution import Watch
from weirlab.execution.batches import digest
from weirlab.store import Row


class MadePlan:
    """Points that take `seconds` each; what `faults` says for some of them, and whether once or always."""

    def __init__(
        self,
        points: int,
        replicates: int = 1,
        seconds: float = 0.0,
        faults: dict[str, str] | None = None,
        marks: str = "",
        name: str = "made",
    ) -> None:
        self.points, self.replicates, self.seconds = points, replicates, seconds
        self.faults, self.marks, self.name = faults or {}, marks, name
        self.order = np.arange(points)

    def document(self) -> dict[str, Any]:
        return {
            "kind": "module:execution_plans",
            "points": self.points,
            "replicates": self.replicates,
            "seconds": self.seconds,
            "faults": self.faults,
            "marks": self.marks,
            "name": self.name,
        }

    def lists_impossible(self) -> bool:
        return False

    def point(self, number: int) -> MadePoint:
        return MadePoint(self, number)


class MadePoint:
    def __init__(self, plan: MadePlan, number: int) -> None:
        self._plan, self._number = plan, number

    def key(self, replicate: int) -> tuple[str, int]:
        return digest("made", str(self._number)), replicate

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:
        if self._plan.marks:
            for replicate in replicates:
                with (Path(self._plan.marks) / f"{self._number}-{replicate}").open("a") as file:
                    file.write("x")
        fault = self._plan.faults.get(str(self._number), "")
        many, _, fault = fault.rpartition(" ")
        if fault and (not many or self._first_times(int(many))):
            getattr(self, f"_{fault}")(watch)
        deadline = time.monotonic() + self._plan.seconds * len(replicates)
        while time.monotonic() < deadline:
            time.sleep(0.005)
            watch(0, 1)
        return [
            Row(
                point=self._number,
                replicate=replicate,
                seed=replicate,
                measures=[{"measure": "value", "value": self._number + replicate / 100, "unit": ""}],
            )
            for replicate in replicates
        ]

    def _first_times(self, many: int) -> bool:
        return len((Path(self._plan.marks) / f"{self._number}-0").read_text()) <= many

    def _raise(self, watch: Watch) -> None:
        raise ZeroDivisionError("made so")

    def _die(self, watch: Watch) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _hang(self, watch: Watch) -> None:
        time.sleep(600)

    def _dawdle(self, watch: Watch) -> None:
        while True:
            time.sleep(0.01)
            watch(0, 1)

    def _eat(self, watch: Watch) -> None:
        eaten = []
        while True:
            eaten.append(np.ones(2_000_000))
            watch(0, 1)


def plan_of(document: dict[str, Any]) -> MadePlan:
    return MadePlan(**{name: value for name, value in document.items() if name != "kind"})
