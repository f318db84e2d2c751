"""Round-trip times: what load adds to them, and how steady a path is.

Lost probes have no round-trip time: they are counted by `probe_loss` and belong to no other statistic.
"""

from __future__ import annotations

from collections.abc import Iterable

from weirlab.heavy import np
from weirlab.stats.arrays import Array, paired, sample
from weirlab.stats.fits import Proportion, fit_line, fit_proportion


def probe_loss(sent: int, answered: int) -> float:
    """Share of the probes that were not answered in time, in [0, 1]: 1 - answered / sent.

    Raises ValueError unless 0 <= answered <= sent and sent > 0. Source: RFC 2680, section 2.
    """
    if not 0 <= answered <= sent or sent < 1:
        raise ValueError(f"probe loss: of {sent} probes, {answered} cannot have been answered")
    return 1 - answered / sent


def rtt_difference(loaded: Iterable[float], unloaded: Iterable[float]) -> float:
    """What the load adds to the round-trip time, dRTT = mean(loaded) - mean(unloaded), in their unit.

    Negative where other traffic changed more than the load did. Source: SLAC 2000, effect of streams.
    """
    return float(
        sample(loaded, "loaded round-trip times").mean()
        - sample(unloaded, "unloaded round-trip times").mean()
    )


def data_rates(rtts_s: Iterable[float], sent_bytes: int, returned_bytes: int) -> Array:
    """Data rate of each probe [bit/s]: 8 (bytes sent + bytes sent back) / RTT.

    Raises ValueError with a round-trip time that is not positive, and without bytes. Source: SLAC 2000,
    effect of streams.
    """
    if sent_bytes < 0 or returned_bytes < 0 or sent_bytes + returned_bytes == 0:
        raise ValueError(f"data rates: probes have bytes (got {sent_bytes} and {returned_bytes})")
    return 8.0 * (sent_bytes + returned_bytes) / _positive(rtts_s)


def rate_variability(rates: Iterable[float]) -> float:
    """RV = 1 - mean(rate) / max(rate), in [0, 1); 0 where every probe was equally fast.

    `rates` are data rates of probes, see `data_rates`; with probes of one size their bytes cancel.
    DEVIATION: the text prints the quotient upside down in one place, max over mean, which cannot be a
    share; its summary has mean over max, used here. Source: SLAC 2000, effect of streams and summary.
    """
    return 1 - rate_predictability(rates)


def rate_predictability(rates: Iterable[float]) -> float:
    """RP = 1 - RV = mean(rate) / max(rate), in (0, 1]. Source: SLAC 2000, summary."""
    array = _positive(rates)
    # The mean of equal values may exceed them by a rounding.
    return min(float(array.mean()) / float(array.max()), 1.0)


def min_max_variability(rtts: Iterable[float]) -> float:
    """The rough approximation RV ~ 1 - min(RTT) / mean(RTT), in [0, 1).

    Never below the exact one of probes of one size, because mean(1 / RTT) >= 1 / mean(RTT) (Jensen). With
    dRTT against an unloaded RTT that stays at the minimum it is dRTT / (min + dRTT). Source: SLAC 2000,
    summary.
    """
    return 1 - min_max_predictability(rtts)


def min_max_predictability(rtts: Iterable[float]) -> float:
    """The rough approximation RP ~ min(RTT) / mean(RTT), in (0, 1]. Source: SLAC 2000, summary."""
    array = _positive(rtts)
    return min(float(array.min()) / float(array.mean()), 1.0)


def rate_by_size(sizes_bytes: Iterable[float], rtts_s: Iterable[float]) -> float:
    """Data rate out of probes of several sizes [bit/s]: 8 over the slope of RTT against bytes, by least
    squares.

    What every probe spends whatever its size, such as the propagation, does not count. `sizes_bytes` are
    bytes there and back. Raises ValueError with one size only, and where larger probes were not slower.
    Source: SLAC 2000, summary ("the slope of the data rate with respect to the number of bytes").
    """
    sizes, rtts = paired(sizes_bytes, rtts_s, "rate by size")
    slope = fit_line(sizes, _positive(rtts)).slope
    if slope <= 0:
        raise ValueError(f"rate by size: larger probes were not slower (slope {slope} s/byte)")
    return 8 / slope


def fit_queueing(
    goodputs: Iterable[float], variations: Iterable[float], capacity: float
) -> tuple[Proportion, Array]:
    """Variation of the round-trip time = c L / (1 - L), with the load L = goodput / capacity.

    Gives the fit, whose factor c has the unit of the variations (interquartile range, standard deviation or
    dRTT), and the loads L [n]. A single server with random arrivals makes its queue wait so (M/M/1: c is the
    service time). Raises ValueError with loads outside of [0, 1). Source: SLAC 2000, summary (the text has
    1 / (1 - L)); Kleinrock 1975, section 3.2.
    """
    rates, spreads = paired(goodputs, variations, "queueing", least=1)
    if not capacity > 0:
        raise ValueError(f"queueing: the capacity must be positive (got {capacity})")
    loads: Array = rates / capacity
    if loads.min() < 0 or loads.max() >= 1:
        odd = loads.min() if loads.min() < 0 else loads.max()
        raise ValueError(f"queueing: loads must lie in [0, 1) (got {odd})")
    return fit_proportion(loads / (1 - loads), spreads), loads


def _positive(values: Iterable[float]) -> Array:
    array = sample(values, "round-trip times or rates")
    if array.min() <= 0:
        raise ValueError(f"round-trip times and rates must be positive (got {array.min()})")
    return np.asarray(array)
