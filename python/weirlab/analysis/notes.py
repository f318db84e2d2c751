"""What is legal in a scenario, but hardly meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.analysis.bottlenecks import unknown_bottlenecks
from weirlab.analysis.buffers import short_buffers
from weirlab.analysis.cycles import pause_cycles
from weirlab.analysis.goals import lenient_goals
from weirlab.analysis.headroom import short_headrooms
from weirlab.analysis.idle import idle_control
from weirlab.analysis.limits import cut_off_gains, missing_marks, odd_parameters, unheard_marks
from weirlab.analysis.memories import short_memories
from weirlab.analysis.thresholds import unmet_thresholds

if TYPE_CHECKING:
    from weirlab.scenario import Scenario


def notes_of(scenario: Scenario) -> list[str]:
    """A sentence for each: headroom that PAUSE can exceed, PAUSE in cycles, thresholds that are never
    met, gains without effect, marks that nobody heeds,
    control that cannot act, bottlenecks that an estimator is not told, goals that allow much loss."""
    return [
        *map(str, short_headrooms(scenario)),
        *map(str, short_memories(scenario)),
        *short_buffers(scenario),
        *pause_cycles(scenario),
        *unmet_thresholds(scenario),
        *cut_off_gains(scenario),
        *odd_parameters(scenario),
        *unheard_marks(scenario),
        *missing_marks(scenario),
        *idle_control(scenario),
        *unknown_bottlenecks(scenario),
        *lenient_goals(scenario),
    ]
