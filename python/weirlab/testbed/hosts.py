"""Testbeds of real hosts, `ssh` and `iperf3`: campaigns measure there, and trials do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.errors import Problem

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.testbed.base import Testbed


def refusals(scenario: Scenario) -> list[Problem]:
    """Everything: real hosts are loaded by campaigns."""
    return [scenario.problem("testbed", "real hosts are for campaigns, with 'weir bulk'")]


def opened(scenario: Scenario) -> Testbed:
    """Never comes to it."""
    raise AssertionError(f"{scenario.name} was refused before it was opened")
