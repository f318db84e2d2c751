"""Measures: numbers from the records of a run, each with one definition.

Every function takes records and the ids of what it is about (ports, or entries of traffic, see
`Records`) and returns a frame with the columns `replicate` and `value`, one row per replicate, in order.
Where a replicate gives no answer, such as the delay of frames that never arrived, the value is null.
Where the records lack what a measure needs, it raises MissingRecordError: no measure falls back to something
similar.

`window` is a pair of times [ps] from the begin of the run, on edges of the recorded intervals; None
means the whole run.
"""

from weirlab.measures.bursts import burst_delay, delay_fairness
from weirlab.measures.delays import delay_percentile, max_delay, mean_delay
from weirlab.measures.fairness import jain_fairness, rate_error, rms_fairness, time_to_converge
from weirlab.measures.hotspots import recovery_time, relative_fairness
from weirlab.measures.losses import drop_time, drops, last_drop, loss_ratio
from weirlab.measures.queues import max_queue, mean_queue, queue_percentile, queue_spread
from weirlab.measures.rates import completion_time, delivered_rate, goodput
from weirlab.measures.rows import MissingRecordError, Window
from weirlab.measures.signals import control_frames, marks, pause_time
from weirlab.measures.utilisation import utilisation

__all__ = [
    "MissingRecordError",
    "Window",
    "burst_delay",
    "completion_time",
    "control_frames",
    "delay_fairness",
    "delay_percentile",
    "delivered_rate",
    "drop_time",
    "drops",
    "goodput",
    "jain_fairness",
    "last_drop",
    "loss_ratio",
    "marks",
    "max_delay",
    "max_queue",
    "mean_delay",
    "mean_queue",
    "pause_time",
    "queue_percentile",
    "queue_spread",
    "rate_error",
    "recovery_time",
    "relative_fairness",
    "rms_fairness",
    "time_to_converge",
    "utilisation",
]
