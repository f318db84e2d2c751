"""Where a scenario runs or a trial is measured."""

from weirlab.testbed.base import Testbed, Trial, TrialSpec

__all__ = ["Testbed", "Trial", "TrialSpec"]
