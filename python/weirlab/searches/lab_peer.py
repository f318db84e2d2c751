"""The published library MLRsearch 1.2.1 as a contestant of the laboratory: on the same devices, with the same
waits, through its own Measurer protocol. It is not a part of Weirlab and is imported when it is asked for.

Its settings are its defaults (two preceding targets, expansion by 2), without its warm-up trial; waits count
as effective duration, as CSIT has it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from weirlab.errors import MissingCapability
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.ledger import initial_duration_s
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.sim import DeviceTestbed

if TYPE_CHECKING:
    from weirlab.searches.lab import Found


_VERSION = "1.2.1"
_FOREVER_S = 1e12


class MlrSearchLibrary:
    """Runs the library's search."""

    def __init__(self) -> None:
        need = f"a comparison with the library needs its package: pip install MLRsearch=={_VERSION}"
        try:
            self._library: Any = importlib.import_module("MLRsearch")
        except ImportError as error:
            raise MissingCapability(need) from error
        if (found := version("MLRsearch")) != _VERSION:
            raise MissingCapability(f"{need} (there is {found})")

    def search(
        self, bed: DeviceTestbed, goals: Sequence[SearchGoal], loads: LoadRange
    ) -> tuple[list[Found], float, int]:
        """Search on ``bed``: what was found for each goal, the time of all trials [s], their number."""
        from weirlab.searches.lab import Found

        library = self._library
        measurer = _measurer(library, bed)
        config = library.Config()
        theirs = [
            library.SearchGoal(
                loss_ratio=goal.loss_ratio,
                exceed_ratio=goal.exceed_ratio,
                relative_width=goal.width,
                initial_trial_duration=initial_duration_s(goal.initial_duration_s, goal.duration_s),
                final_trial_duration=goal.duration_s,
                duration_sum=goal.duration_s if goal.duration_sum_s is None else goal.duration_sum_s,
                fail_fast=False,
            )
            for goal in goals
        ]
        config.goals = theirs
        config.max_load = loads.max_fps
        config.min_load = loads.min_fps
        config.search_duration_max = _FOREVER_S
        config.warmup_duration = None
        results = library.MultipleLossRatioSearch(config).search(measurer, debug=lambda _: None)
        found = []
        for goal in theirs:
            lower, upper = results[goal].relevant_lower_bound, results[goal].relevant_upper_bound
            found.append(
                Found(
                    None if lower is None else float(lower),
                    None if upper is None else float(upper),
                    regular=lower is not None and upper is not None,
                    marked=False,
                )
            )
        return found, measurer.elapsed_s, measurer.trials


def _measurer(library: Any, bed: DeviceTestbed) -> Any:
    """An object of the library's Measurer protocol that measures on ``bed``."""

    class Measurer(library.AbstractMeasurer):  # type: ignore[misc]  # the library is not typed
        elapsed_s = 0.0
        trials = 0

        def measure(self, intended_duration: float, intended_load: float) -> Any:
            trial = bed.trial(
                TrialSpec(
                    index=self.trials,
                    elapsed_s=self.elapsed_s,
                    intended_load_fps=intended_load,
                    duration_s=intended_duration,
                    frame_size_bytes=64,
                )
            )
            self.trials += 1
            self.elapsed_s += trial.effective_duration_s
            return library.MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=trial.sent_frames,
                forwarding_count=trial.received_frames,
                duration_with_overheads=trial.effective_duration_s,
            )

    return Measurer()
