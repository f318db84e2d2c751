"""The testbed `sim`: a scenario as a simulation, or a device model. Refusals load neither."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weirlab.errors import Problem
from weirlab.scenario.testbeds import Sim
from weirlab.testbed.refusals import DEVICE, only_the_load

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.testbed.base import Testbed


def refusals(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that cannot be simulated."""
    from weirlab.scenario.resolve import unsupported

    testbed = scenario.testbed
    assert isinstance(testbed, Sim)
    if testbed.device is not None:
        return only_the_load(scenario, DEVICE)
    if testbed.on_path:
        return [scenario.problem("testbed", "a path is loaded by a campaign, with 'weir bulk'")]
    return list(unsupported(scenario))


def opened(scenario: Scenario) -> Testbed:
    """The simulator, or the tester in front of the device model."""
    from weirlab.testbed.modelled import device_of
    from weirlab.testbed.sim import DeviceTestbed, ScenarioTestbed

    assert isinstance(scenario.testbed, Sim)
    device = scenario.testbed.device
    if device is None:
        return ScenarioTestbed(scenario)
    return DeviceTestbed(
        device_of(device),
        seed=scenario.run.seed,
        overhead_s=device.overhead.s,
        tester_limit_fps=math.inf if device.tester_limit is None else device.tester_limit.fps,
    )
