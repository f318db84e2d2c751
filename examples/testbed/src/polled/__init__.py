"""The testbed `polled`: a device that looks at its input at regular times, and takes some frames each time.

It forwards `most` frames in each `turn`, so its rate is most / turn. A real testbed would start its tester
in `trial`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from weirlab.errors import Problem, UnsupportedError
from weirlab.fields.values import Count, PositiveSpan
from weirlab.runs import Run
from weirlab.scenario import Scenario
from weirlab.scenario.testbeds import Testbed
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.refusals import only_the_load
from weirlab.units import Span

__all__ = ["Polled", "PolledTestbed", "opened", "refusals"]


class Polled(Testbed):
    """A device that polls its input."""

    HOME = __name__
    OWN_NETWORK = "a polled device"

    kind: Literal["polled"]
    turn: PositiveSpan = Span.from_s(50e-6)
    """Time from one look at the input to the next."""
    most: Count = 256
    """Frames that it takes each time."""


def refusals(scenario: Scenario) -> list[Problem]:
    """It knows loads, and nothing else of a scenario."""
    return only_the_load(scenario, Polled.OWN_NETWORK)


def opened(scenario: Scenario) -> PolledTestbed:
    """The testbed, ready for trials."""
    assert isinstance(scenario.testbed, Polled)
    return PolledTestbed(scenario.testbed)


class PolledTestbed:
    """The device, and a tester that sends and receives without a fault."""

    def __init__(self, device: Polled) -> None:
        self._turn_s, self._most = device.turn.s, device.most

    def refuses(self, scenario: Scenario) -> list[Problem]:
        return refusals(scenario)

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:  # noqa: ARG002 (the protocol's name)
        raise UnsupportedError([scenario.problem("testbed", "a polled device is measured by a search")])

    def trial(self, spec: TrialSpec) -> Trial:
        turns = int(spec.duration_s / self._turn_s)
        return Trial(
            spec=spec,
            intended_frames=spec.intended_frames,
            sent_frames=spec.intended_frames,
            received_frames=min(spec.intended_frames, turns * self._most),
            effective_duration_s=spec.duration_s,
            offered_load_fps=spec.intended_load_fps,
        )

    def close(self) -> None:
        """There is nothing to close."""
