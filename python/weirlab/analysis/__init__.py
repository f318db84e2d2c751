"""What theory says of a scenario: its hot queues, their stability, and what stresses them most."""

from weirlab.analysis.queues import ControlledQueue, controlled_queues, hot_ones
from weirlab.analysis.stability import PARAMETERS, Axis, loops_of, over_plane, read_axes

__all__ = [
    "PARAMETERS",
    "Axis",
    "ControlledQueue",
    "controlled_queues",
    "hot_ones",
    "loops_of",
    "over_plane",
    "read_axes",
]
