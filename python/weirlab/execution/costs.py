"""What work will need, by what its first runs needed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from weirlab.execution.batches import FLUSH_S, Receipt

OBJECT_BYTES = 7600
"""Of an object of the store without its rows (`docs/scaling.md`)."""
START_S = 1.5
"""Of processes, also the work that is not worth it."""
PROCESS_BYTES = 120_000_000
"""Of memory that a worker of this machine has before its first run."""
_BATCHES = 20
"""That each worker has in a long piece of work, which grow at its beginning and shrink at its end."""
_LEAST_BATCH_S = 0.25
_LEAST_ROW_BYTES = 14.0
_COPIES = 3
"""Of rows in memory while tables and pages are made."""
_TABLES = 0.5
"""Part of their size in memory that tables and `result.json` have on disk."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What some runs need."""

    runs: int
    seconds: float
    """Wall-clock time."""
    disk_bytes: int
    """Of the store and of tables."""
    memory_bytes: int
    """On this machine."""


class Costs:
    """Collects what batches needed."""

    def __init__(self) -> None:
        self._receipts: list[Receipt] = []
        self.crew = 1
        """Processes whose batches tell; the first batch of each also loads what it needs."""
        self.first_at = math.inf
        """When the first batch ended, by a clock that nobody sets."""

    def add(self, receipt: Receipt) -> None:
        """Another batch, some of whose runs were made and not found."""
        if not self._receipts:
            self.first_at = time.monotonic()
        self._receipts.append(receipt)

    @property
    def known(self) -> bool:
        """Whether there is more than what the first batch of each process needed."""
        return len(self._warm) >= self.crew

    @property
    def _warm(self) -> list[Receipt]:
        return [one for one in self._receipts if not one.is_first]

    def need(self, runs: int, cost: float, workers: int, *, own: bool, rounds: int = 1) -> Need | None:
        """What so many runs need with some workers; None where nothing is known.

        Args:
            cost: How many runs like the first ones take as long.
            own: Whether the workers are processes of this machine.
            rounds: How often results decide what is run next: nobody works beyond that.
        """
        # The second batch of a process has runs that lie apart.
        warm = self._warm[: self.crew] or self._receipts
        made = sum(map(_made, warm))
        if not made:
            return None
        each_s = sum(one.seconds for one in warm) / made
        row_bytes = sum(one.bytes for one in warm) / made
        beyond = sum(one.disk_bytes - OBJECT_BYTES * one.objects for one in warm)
        stored = max(_LEAST_ROW_BYTES, beyond / made)
        per_round = runs / rounds
        wall_s = rounds * math.ceil(per_round / workers) * each_s * cost / runs
        batches = max(1, min(per_round, workers * min(_BATCHES, wall_s / rounds / _LEAST_BATCH_S)))
        objects = rounds * batches + workers * wall_s / FLUSH_S
        process_bytes = PROCESS_BYTES + max(one.memory_bytes for one in self._receipts)
        needs_memory = process_bytes if own and wall_s > START_S else 0
        return Need(
            runs=runs,
            seconds=wall_s + (START_S if own and workers > 1 and wall_s > START_S else 0.0),
            disk_bytes=round(objects * OBJECT_BYTES + runs * (stored + _TABLES * row_bytes)),
            memory_bytes=round(_COPIES * row_bytes * runs + needs_memory * workers),
        )


def _made(receipt: Receipt) -> int:
    return receipt.done + receipt.failed - receipt.shared
