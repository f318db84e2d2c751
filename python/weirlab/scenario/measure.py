"""Numbers to take from the records of a run. What each means is defined in `weirlab.measures`."""

from __future__ import annotations

from typing import Annotated, Literal

from weirlab.scenario.base import BY_KIND, Model, PortSelector, TrafficSelector
from weirlab.scenario.values import Fraction, PositiveRate, Window

__all__ = [
    "AnyMeasure",
    "DelayPercentile",
    "DeliveredRate",
    "FlowMeasure",
    "JainFairness",
    "LossRatio",
    "MaxDelay",
    "MaxQueue",
    "MeanDelay",
    "MeanQueue",
    "PortMeasure",
    "RmsFairness",
    "Utilisation",
]


class FlowMeasure(Model):
    """A number about the flows of some traffic."""

    of: TrafficSelector
    """Names of traffic, or globs of them."""


class PortMeasure(Model):
    """A number about some ports."""

    of: PortSelector
    """The ports."""
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


class DeliveredRate(FlowMeasure):
    """Bits of frames delivered per second, over all flows."""

    kind: Literal["delivered-rate"]
    window: Window | None = None
    """Time measured over; needs a `flow` record. Absent: the whole run."""


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


class Utilisation(PortMeasure):
    """Share of the time in which the ports transmit."""

    kind: Literal["utilisation"]


class MeanQueue(PortMeasure):
    """Mean over time of what waits at the ports, in bytes."""

    kind: Literal["mean-queue"]


class MaxQueue(PortMeasure):
    """Most bytes that wait at one of the ports."""

    kind: Literal["max-queue"]


AnyMeasure = Annotated[
    RmsFairness
    | JainFairness
    | DeliveredRate
    | LossRatio
    | MeanDelay
    | MaxDelay
    | DelayPercentile
    | Utilisation
    | MeanQueue
    | MaxQueue,
    BY_KIND,
]
