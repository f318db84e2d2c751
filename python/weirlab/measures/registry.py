"""All measures of Weirlab, in the order in which documentation and messages list them.

A package of your own adds to them: its entry points of the group `weirlab.measures` name classes by their
kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from weirlab.fields.base import OpenKinds
from weirlab.measures.base import GROUP, FlowMeasure, Measure, PortMeasure
from weirlab.measures.bursts import BurstDelay, DelayFairness
from weirlab.measures.delays import DelayPercentile, MaxDelay, MeanDelay
from weirlab.measures.estimates import Estimate
from weirlab.measures.fairness import JainFairness, RateError, RmsFairness, SettlingTime, TimeToConverge
from weirlab.measures.hotspots import RecoveryTime, RelativeFairness
from weirlab.measures.imbalance import LinkImbalance, PauseDepth, PauseFraction
from weirlab.measures.jobs import BusBandwidth, JobTime
from weirlab.measures.losses import Drops, DropTime, LastDrop, LossRatio
from weirlab.measures.messages import MessageTime, Slowdown, UnfinishedMessages
from weirlab.measures.queues import BufferPercentile, MaxQueue, MeanQueue, QueuePercentile, QueueSpread
from weirlab.measures.rates import CompletionTime, DeliveredRate, Goodput
from weirlab.measures.signals import ControlFrames, Marks, PauseTime
from weirlab.measures.utilisation import Utilisation

MEASURES: tuple[type[Measure], ...] = (
    RmsFairness,
    JainFairness,
    RateError,
    TimeToConverge,
    SettlingTime,
    DeliveredRate,
    LossRatio,
    MeanDelay,
    MaxDelay,
    Goodput,
    CompletionTime,
    MessageTime,
    Slowdown,
    UnfinishedMessages,
    JobTime,
    BusBandwidth,
    Estimate,
    DelayPercentile,
    BurstDelay,
    DelayFairness,
    RelativeFairness,
    Drops,
    Marks,
    RecoveryTime,
    Utilisation,
    LinkImbalance,
    MeanQueue,
    MaxQueue,
    QueueSpread,
    QueuePercentile,
    BufferPercentile,
    DropTime,
    LastDrop,
    PauseTime,
    PauseFraction,
    PauseDepth,
    ControlFrames,
)

if TYPE_CHECKING:
    AnyMeasure = Measure
else:
    AnyMeasure = Annotated[Union[*MEASURES], OpenKinds(GROUP, FlowMeasure, PortMeasure)]
