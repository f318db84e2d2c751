"""Hotspots: how hard they are, and what a switch carries while they last.

Source: ZRL benchmark, 'Toolbox-1' (severity, degree and their classes), 'Results: OG hotspot' (throughput
with control), 'IG results' (throughput without). Rates are fractions of the line rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Hotspot:
    """A switch whose output `hot` is asked for more than it serves. There may be others like it."""

    demands: tuple[tuple[float, ...], ...]
    """What each input offers to each output."""
    services: tuple[float, ...]
    """What each output serves."""
    hot: int
    """The output in question."""
    hot_sources: int
    """How many inputs make the hotspot."""

    @property
    def arrivals(self) -> float:
        """Lambda: all that is offered to the hot output, in line rates."""
        return sum(row[self.hot] for row in self.demands)

    @property
    def severity(self) -> float:
        """HSV = Lambda / mu."""
        return self.arrivals / self.services[self.hot]

    @property
    def degree(self) -> float:
        """HSD as a fraction: the part of the inputs that make the hotspot."""
        return self.hot_sources / len(self.demands)

    @property
    def throughput_max(self) -> float:
        """Aggregate throughput when every output serves all that it can, as a fraction of capacity.

        sum over outputs of min(Lambda, mu), over N: for one output-generated hotspot under uniform load
        (lambda (N - 1) + mu) / N, as printed.
        """
        offered = (sum(row[out] for row in self.demands) for out in range(len(self.services)))
        return sum(map(min, offered, self.services)) / len(self.demands)

    @property
    def throughput_without_control(self) -> float:
        """Aggregate throughput when the frames for hot outputs hog the shared memory, as a fraction of
        capacity.

        PAUSE then holds all inputs to one rate r, the largest at which no output gets more than it serves
        while each input shares r fairly among the outputs that it has frames for. With h inputs that send
        to the hot output alone and N - h that have frames for D outputs this is mu / (h + (N - h) / D); with
        D = N and mu = 1 it is the printed 1 / (HSD (N - 1) / N + 1).
        """
        low, high = 0.0, 1.0
        for _ in range(60):
            rate = (low + high) / 2
            low, high = (rate, high) if self._fits(rate) else (low, rate)
        return sum(min(low, sum(row)) for row in self.demands) / len(self.demands)

    def _fits(self, rate: float) -> bool:
        sent = [fair_shares(row, rate) for row in self.demands]
        return all(sum(row[out] for row in sent) <= served for out, served in enumerate(self.services))


def fair_shares(demands: Sequence[float], total: float) -> list[float]:
    """Max-min fair shares of `total` among `demands`: nobody gets more than it asks for, and what is left
    goes to all others alike."""
    shares = [0.0] * len(demands)
    left = total
    ordered = sorted(range(len(demands)), key=lambda place: demands[place])
    for done, place in enumerate(ordered):
        shares[place] = min(demands[place], left / (len(demands) - done))
        left -= shares[place]
    return shares


def output_generated(
    inputs: int, *, load: float, service: float, own_port: bool = False, hot_sources: int | None = None
) -> Hotspot:
    """Uniform load on all outputs, of which output 0 serves only `service`.

    `own_port`: an input sends to its own port as well. `hot_sources`: how many inputs send to output 0 at
    all; the others spread their load over the rest.
    """
    makers = inputs if hot_sources is None else hot_sources
    rows = [_uniform(inputs, own, load, own_port, avoid_hot=own >= makers) for own in range(inputs)]
    return Hotspot(tuple(rows), (service, *[1.0] * (inputs - 1)), 0, makers)


def input_generated(inputs: int, *, load: float, hot_sources: int, own_port: bool = False) -> Hotspot:
    """Inputs 0 to `hot_sources` - 1 send all that they can to output 0, the others load all outputs alike."""
    hot_row = (1.0, *[0.0] * (inputs - 1))
    rows = [
        hot_row if own < hot_sources else _uniform(inputs, own, load, own_port, avoid_hot=False)
        for own in range(inputs)
    ]
    return Hotspot(tuple(rows), (1.0,) * inputs, 0, hot_sources)


def _uniform(inputs: int, own: int, load: float, own_port: bool, *, avoid_hot: bool) -> tuple[float, ...]:
    open_to = [(own_port or out != own) and not (avoid_hot and out == 0) for out in range(inputs)]
    return tuple(load / sum(open_to) if is_open else 0.0 for is_open in open_to)


def severity_class(severity: float) -> str:
    """`none` up to 1, `mild` up to 2, `moderate` up to 10, `severe` above."""
    return next((name for name, most in _SEVERITIES if severity <= most), "severe")


def degree_class(degree: float) -> str:
    """`small` below 10 %, `medium` from 20 to 60 %, `large` above 90 %; between them the source has gaps."""
    if degree < 0.1:
        return "small"
    if degree > 0.9:
        return "large"
    if 0.2 <= degree <= 0.6:
        return "medium"
    return "between small and medium" if degree < 0.2 else "between medium and large"


_SEVERITIES = (("none", 1.0), ("mild", 2.0), ("moderate", 10.0))
