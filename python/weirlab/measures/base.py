"""What all measures are: fields of a file, a unit, what they need of records, and values from these.

A measure is one class: its fields say what it is about, `UNIT` the unit of its values, `needs` what must have
been recorded, and `values` works it out. The scenario checks the needs when it is loaded, so that no run is
made in vain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from weirlab.fields.base import Model, PortSelector, TrafficSelector
from weirlab.fields.values import Window as Limits
from weirlab.units import Interval

if TYPE_CHECKING:
    import polars as pl

    from weirlab.measures.rows import Window
    from weirlab.records import Records

GROUP = "weirlab.measures"
"""Group of entry points of measures from other packages."""


@dataclass(frozen=True)
class PortSeries:
    """The ports over time (`queue` records), in intervals that make up the window if there is one."""


@dataclass(frozen=True)
class Levels:
    """The distribution of what waits at the ports (`levels` records), of the same window."""


@dataclass(frozen=True)
class SharedBuffers:
    """Buffers of the switches that the ports leave (`buffers`)."""


@dataclass(frozen=True)
class FlowSeries:
    """What arrives over time (`flow` records), in intervals that make up the window if there is one."""

    by_flow: bool = True
    """Whether each flow of an entry has to have a series of its own."""
    recorded_by_flow: bool = False
    """Whether that holds for an entry with a single flow, too."""


@dataclass(frozen=True)
class Delays:
    """The distribution of one-way delays (`delays` records)."""


@dataclass(frozen=True)
class Streams:
    """Streams of TCP: all of the traffic is carried by it."""


@dataclass(frozen=True)
class Estimates:
    """What estimators report: all of the traffic is an estimator, whose streams are recorded."""


@dataclass(frozen=True)
class MessageRows:
    """Messages: all of the traffic are some."""

    of: Sequence[str] = ()
    """Kinds of sources that they come from; none: any."""


@dataclass(frozen=True)
class Hotspot:
    """A hotspot of the scenario."""

    name: str


Need = PortSeries | Levels | SharedBuffers | FlowSeries | Delays | Streams | Estimates | MessageRows | Hotspot


class Experiment(Protocol):
    """What a measure may ask of the scenario whose records it looks at."""

    def line_rate_bps(self, ports: Sequence[int]) -> int:
        """Sum of the line rates of ports [bit/s]."""

    def hotspot_window(self, name: str) -> Window | None:
        """When a hotspot lasts [ps]; None: for the whole run."""

    def hot_receiver(self, name: str) -> str:
        """The host whose port is the hot one."""

    def ideal_shares(self, name: str) -> dict[str, float]:
        """Max-min fair share of each sender at the hot port [line rates]."""


@dataclass(frozen=True)
class Subject:
    """What a measure is taken of."""

    records: Records
    ids: Sequence[int]
    """Those of the field `of`: ports, or entries of traffic."""
    experiment: Experiment | None = None
    """The scenario of the records, where there is one."""


class Measure(Model):
    """A number from the records of a run."""

    UNIT: ClassVar[str] = "1"
    """Unit of the values, as `unit` has it by default: `1`, `B`, `ps` or `bit/s`."""
    JOINS_PARTS: ClassVar[bool] = False
    """Whether the parts of a flow that a hotspot interrupted count as one flow."""

    @property
    def unit(self) -> str:
        """Unit of the values."""
        return self.UNIT

    @property
    def limits(self) -> Limits | None:
        """The field `window`; None where there is no such field, or another of this name."""
        window = getattr(self, "window", None)
        return window if isinstance(window, Interval) else None

    @property
    def window_ps(self) -> Window | None:
        """The time measured over [ps]; None: the whole run."""
        return None if self.limits is None else (self.limits.low.ps, self.limits.high.ps)

    def needs(self) -> Iterator[Need]:
        """What must have been recorded, or must be part of the scenario."""
        yield from ()

    def faults(self) -> Iterator[tuple[str, str]]:
        """(field, what is wrong) that no field can say alone. Where there are any, needs do not count."""
        yield from ()

    @abstractmethod
    def values(self, subject: Subject) -> pl.DataFrame:
        """Columns `replicate` and `value` in `unit`, one row per replicate in order; null where a replicate
        gives no answer. Of a measure of another package, infinite values and NaN are refused.

        Raises MissingRecordError where the records lack what the measure needs.
        """


class FlowMeasure(Measure):
    """A number about the flows of some traffic."""

    of: TrafficSelector
    """Names of traffic, or globs of them."""


class PortMeasure(Measure):
    """A number about some ports."""

    of: PortSelector
    """The ports."""


class _Windowed(Measure):
    """A number about some time."""

    RECORD: ClassVar[type[FlowSeries] | type[PortSeries]]
    """What has to be recorded of that time."""

    window: Limits | None = None
    """Time to measure; needs a record of that time: `flow` of traffic, `queue` of ports. Absent: the whole
    run."""

    def needs(self) -> Iterator[Need]:
        if self.window is not None:
            yield self.RECORD()


class WindowedFlowMeasure(_Windowed, FlowMeasure):
    """A number about the flows of some traffic in some time."""

    RECORD = FlowSeries


class WindowedPortMeasure(_Windowed, PortMeasure):
    """A number about some ports in some time."""

    RECORD = PortSeries
