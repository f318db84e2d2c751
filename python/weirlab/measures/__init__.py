"""Measures: numbers from the records of a run, each with one definition.

Every function takes records and the ids of what it is about (ports, or entries of traffic, see
`Records`) and returns a frame with the columns `replicate` and `value`, one row per replicate, in order.
Where a replicate gives no answer, such as the delay of frames that never arrived, the value is null.
Where the records lack what a measure needs, it raises MissingRecordError: no measure falls back to something
similar.

`window` is a pair of times [ps] from the begin of the run, on edges of the recorded intervals; None
means the whole run.
"""

from weirlab.measures.evaluation import evaluate, measured, summary
from weirlab.measures.flows import (
    delay_percentile,
    delivered_rate,
    jain_fairness,
    loss_ratio,
    max_delay,
    mean_delay,
    rms_fairness,
)
from weirlab.measures.ports import max_queue, mean_queue, utilisation
from weirlab.measures.rows import MissingRecordError, Window

__all__ = [
    "MissingRecordError",
    "Window",
    "delay_percentile",
    "delivered_rate",
    "evaluate",
    "jain_fairness",
    "loss_ratio",
    "max_delay",
    "max_queue",
    "mean_delay",
    "mean_queue",
    "measured",
    "rms_fairness",
    "summary",
    "utilisation",
]
