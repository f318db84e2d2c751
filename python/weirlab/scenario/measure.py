"""Numbers to take from the records of a run. What each means is defined in `weirlab.measures`."""

from __future__ import annotations

from typing import Annotated, Literal

from weirlab.scenario.base import BY_KIND, Model, Name, PortSelector, TrafficSelector
from weirlab.scenario.values import Fraction, PositiveFraction, PositiveRate, Window

__all__ = [
    "AnyMeasure",
    "BurstDelay",
    "CompletionTime",
    "ControlFrameType",
    "ControlFrames",
    "DelayFairness",
    "DelayPercentile",
    "DeliveredRate",
    "DropTime",
    "Drops",
    "Estimate",
    "FlowMeasure",
    "Goodput",
    "JainFairness",
    "LastDrop",
    "LossRatio",
    "Marks",
    "MaxDelay",
    "MaxQueue",
    "MeanDelay",
    "MeanQueue",
    "PauseTime",
    "PortMeasure",
    "QueuePercentile",
    "QueueSpread",
    "RateError",
    "RecoveryTime",
    "RelativeFairness",
    "RmsFairness",
    "TimeToConverge",
    "Utilisation",
    "WindowedPortMeasure",
]


ControlFrameType = Literal["bcn+", "bcn-", "bcn(0,0)", "bcn(max)", "qcn", "cnp", "xoff", "xon"]
"""Kinds of control frames: positive and negative Fb of BCN, BCN(0,0), BCN(MAX), notifications of QCN and
DCQCN, and PAUSE frames that stop and release."""


class FlowMeasure(Model):
    """A number about the flows of some traffic."""

    of: TrafficSelector
    """Names of traffic, or globs of them."""


class PortMeasure(Model):
    """A number about some ports."""

    of: PortSelector
    """The ports."""


class WindowedPortMeasure(PortMeasure):
    """A number about some ports in some time."""

    window: Window | None = None
    """Time measured over; needs a `queue` record of the ports. Absent: the whole run."""


class RmsFairness(FlowMeasure):
    """RMS distance of the flows' delivered rates from their fair share, relative to it; 0 is fair."""

    kind: Literal["rms-fairness"]
    target: PositiveRate
    """Fair share of each flow."""
    window: Window | None = None
    """Time measured over; needs a `flow` record. Absent: the whole run."""


class JainFairness(FlowMeasure):
    """Jain's index of the flows' delivered rates, (sum x)^2 / (n sum x^2); 1 is fair."""

    kind: Literal["jain-fairness"]
    window: Window | None = None
    """Time measured over; needs a `flow` record. Absent: the whole run."""


class RateError(FlowMeasure):
    """Distance of the flows' delivered rates from a target, relative to it: |x - T| / T."""

    kind: Literal["rate-error"]
    target: PositiveRate
    """Rate that each flow should have."""
    take: Literal["max", "mean"] = "max"
    """Of all flows: the greatest distance, or their mean."""
    window: Window | None = None
    """Time measured over; needs a `flow` record. Absent: the whole run."""


class TimeToConverge(FlowMeasure):
    """Time from which on the RMS distance of the flows' rates from their fair share stays below a bound."""

    kind: Literal["time-to-converge"]
    target: PositiveRate
    """Fair share of each flow."""
    within: PositiveFraction
    """That bound, relative to the fair share. Judged in each interval of the `flow` record that is needed."""


class DeliveredRate(FlowMeasure):
    """Bits of frames delivered per second, over all flows."""

    kind: Literal["delivered-rate"]
    window: Window | None = None
    """Time measured over; needs a `flow` record. Absent: the whole run."""


class Goodput(FlowMeasure):
    """Bits of streams that the receivers of TCP connections got in order, per second, over all of them."""

    kind: Literal["goodput"]


class CompletionTime(FlowMeasure):
    """Time from the start of a TCP transfer until its last byte was delivered, of those that ended."""

    kind: Literal["completion-time"]
    take: Literal["mean", "median", "longest"] = "mean"
    """Of all of them."""


class Estimate(FlowMeasure):
    """What estimators tell of the path: ranges of `pathload` and `pbprobe`, or values of the probe streams of
    `rapid` (needs a `p_streams` record). Of those that ended in the window."""

    kind: Literal["estimate"]
    take: Literal["mean", "median", "low", "high", "spread"] = "mean"
    """Mean or median of their middles; the tenth part of their lower ends is less than `low`, that of their
    upper ends more than `high`; `spread`: standard deviation of the middles."""
    target: PositiveRate | None = None
    """The true value: results are then relative to it, all but `spread` less 1. Absent: rates."""
    window: Window | None = None
    """Absent: the whole run."""


class LossRatio(FlowMeasure):
    """Dropped frames over sent frames of the whole run."""

    kind: Literal["loss-ratio"]


class MeanDelay(FlowMeasure):
    """Mean one-way delay of the frames delivered."""

    kind: Literal["mean-delay"]


class MaxDelay(FlowMeasure):
    """Largest one-way delay of the frames delivered."""

    kind: Literal["max-delay"]


class DelayPercentile(FlowMeasure):
    """One-way delay that a share of the frames does not exceed; needs a `delays` record."""

    kind: Literal["delay-percentile"]
    percentile: Fraction
    """That share, such as 99 %."""


class BurstDelay(FlowMeasure):
    """Time from the making of the first frame of a burst to the arrival of its last one; needs sources of the
    kind `bursts`."""

    kind: Literal["burst-delay"]
    take: Literal["mean", "longest"] = "mean"
    """Of all bursts that arrived whole: their mean, or the longest."""
    window: Window | None = None
    """Time in which their last frames arrive; needs a `flow` record by flow, and takes the mean. Absent: the
    whole run."""


class DelayFairness(FlowMeasure):
    """Jain's index of the flows' mean burst delays, (sum d)^2 / (n sum d^2); 1 is fair."""

    kind: Literal["delay-fairness"]


class RelativeFairness(FlowMeasure):
    """RJFI: Jain's index of what flows through a hot output delivered, each over its max-min fair share; 1 is
    fair."""

    kind: Literal["relative-fairness"]
    hotspot: Name
    """The hotspot, whose output and whose middle of the window count."""
    window: Window | None = None
    """Time measured over; needs a `flow` record by flow. Absent: the whole run."""


class Drops(PortMeasure):
    """Frames dropped at the ports; 0 where operation was lossless."""

    kind: Literal["drops"]
    cause: Literal["queue-full", "limiter-full", "queue-early", "input-overrun"] | None = None
    """Data that the queue of the port had no room for, that the queues of rate limiters before the port of a
    host had no room for, that the management of the queue dropped before it was full, or that was lost at an
    input before the queue. Absent: all that the port counts, notifications in the lane of the data too; what
    is lost at an input it does not count."""


class Marks(PortMeasure):
    """ECN-capable frames that the queues of the ports mark."""

    kind: Literal["marks"]
    take: Literal["frames", "share"] = "frames"
    """How many, or as a share of all frames that the ports send."""


class RecoveryTime(PortMeasure):
    """Time from the begin of a hotspot until the ports together carry a share of their line rates and keep it
    for at least as long as they lacked it at a stretch; needs a `queue` record of the ports."""

    kind: Literal["recovery-time"]
    hotspot: Name
    """The hotspot; what follows the end of its window does not count."""
    share: PositiveFraction
    """That share of the sum of their line rates."""


class Utilisation(WindowedPortMeasure):
    """Share of the time in which the ports transmit."""

    kind: Literal["utilisation"]


class MeanQueue(WindowedPortMeasure):
    """Mean over time of what waits at the ports, in bytes."""

    kind: Literal["mean-queue"]


class MaxQueue(WindowedPortMeasure):
    """Most bytes that wait at one of the ports."""

    kind: Literal["max-queue"]


class QueueSpread(WindowedPortMeasure):
    """Standard deviation over time of what waits at the ports, in bytes; needs a `queue` record."""

    kind: Literal["queue-spread"]


class QueuePercentile(WindowedPortMeasure):
    """Bytes that wait at a port at most, for a share of the time; needs a `levels` record of the same
    window."""

    kind: Literal["queue-percentile"]
    percentile: Fraction
    """That share, such as 99 %."""


class DropTime(WindowedPortMeasure):
    """Time in which frames are dropped at the ports; needs a `queue` record."""

    kind: Literal["drop-time"]
    take: Literal["total", "longest"] = "total"
    """All intervals with drops together, or the longest stretch of them."""


class LastDrop(PortMeasure):
    """Time of the last drop at the ports."""

    kind: Literal["last-drop"]


class PauseTime(PortMeasure):
    """Time for which PAUSE holds the ports."""

    kind: Literal["pause-time"]
    take: Literal["total", "longest", "end"] = "total"
    """All pauses together, mean over the ports; the longest single one; or the time at which the last one
    ends."""


class ControlFrames(WindowedPortMeasure):
    """Control frames that the queues of the ports cause to be sent."""

    kind: Literal["control-frames"]
    type: ControlFrameType | None = None
    """Which. Absent: all."""


AnyMeasure = Annotated[
    RmsFairness
    | JainFairness
    | RateError
    | TimeToConverge
    | DeliveredRate
    | LossRatio
    | MeanDelay
    | MaxDelay
    | Goodput
    | CompletionTime
    | Estimate
    | DelayPercentile
    | BurstDelay
    | DelayFairness
    | RelativeFairness
    | Drops
    | Marks
    | RecoveryTime
    | Utilisation
    | MeanQueue
    | MaxQueue
    | QueueSpread
    | QueuePercentile
    | DropTime
    | LastDrop
    | PauseTime
    | ControlFrames,
    BY_KIND,
]
