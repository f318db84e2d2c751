"""How many streams of which window a path wants: what a campaign measured, turned into a recommendation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weirlab.campaigns.campaign import Campaign
from weirlab.campaigns.causes import Drift, Limit, drift, limits
from weirlab.campaigns.plan import Plan
from weirlab.campaigns.summary import goodput_bps
from weirlab.errors import InputError
from weirlab.heavy import np

SHARE = 0.9
"""Of the greatest median goodput that a choice must reach."""
DRAWS = 1000
CONFIDENCE = 0.95
_LEAST_CYCLES = 3
_MORE = 1.5
"""Times the streams, or the window, that counts as more."""


class NoAdviceError(InputError):
    """A campaign was measured, and none of its points can be recommended: a result, too."""


@dataclass(frozen=True)
class Choice:
    """A point of a campaign: so many streams of such a window."""

    point: int
    streams: int
    window_bytes: int | None
    congestion_control: str
    goodputs_bps: tuple[float, ...]
    """Of each cycle; NaN where it was not measured."""
    delays_s: tuple[float, ...]
    """dRTT of each cycle."""

    @property
    def goodput_bps(self) -> float:
        """Median."""
        return _median(self.goodputs_bps)

    @property
    def delay_s(self) -> float:
        """Median of dRTT."""
        return _median(self.delays_s)


@dataclass(frozen=True)
class Advice:
    """A recommendation."""

    choice: Choice
    alternatives: tuple[Choice, ...]
    """All choices, the recommended one included, by goodput."""
    limits: tuple[Limit, ...]
    goodput_interval_bps: tuple[float, float]
    delay_interval_s: tuple[float, float]
    """What the choice adds to the delay of others."""
    certainty: float
    """Share of the draws of cycles in which the same choice was the best."""
    drift: Drift | None = None
    """How the choice's streams changed while they ran; None where they had settled."""


def advise(campaign: Campaign, *, most_delay_s: float | None = None, share: float = SHARE) -> Advice:
    """The choice with the least delay for others per goodput, among those with `share` of the greatest.

    The condition is needed: without it one small stream, which delays nobody, always wins. Of choices that
    nothing tells apart, the one with fewer streams. Intervals and certainty are of draws of whole cycles with
    replacement, since the measurements of a cycle share the state of the path.

    Args: most_delay_s: Choices with a greater median dRTT are out of question; None: any.

    Raises:
        InputError: The campaign is none for advice, as `check_advisable` says.
        NoAdviceError: Nothing was measured that has a delay, or no choice adds so little.
    """
    check_advisable(campaign.plan)
    cycles = campaign.plan.cycles
    choices = _choices(campaign)
    known = [each for each in choices if math.isfinite(each.goodput_bps) and math.isfinite(each.delay_s)]
    if not known:
        raise NoAdviceError("no point has a goodput and a dRTT: its transfers or pings failed")
    allowed = [each for each in known if most_delay_s is None or each.delay_s <= most_delay_s]
    if not allowed:
        least = min(each.delay_s for each in known)
        raise NoAdviceError(
            f"no choice adds so little delay as {1e3 * (most_delay_s or 0):.3g} ms: the least median dRTT is "
            f"{1e3 * least:.3g} ms"
        )
    goodputs = np.array([each.goodputs_bps for each in allowed])
    delays = np.array([each.delays_s for each in allowed])
    order = [each.streams for each in allowed]
    best = _best(goodputs, delays, order, share)
    assert best is not None, "all that are allowed have both medians"
    rng = np.random.default_rng(campaign.plan.scenario.run.seed)
    draws = [rng.integers(0, cycles, cycles) for _ in range(DRAWS)]
    same = [_best(goodputs[:, draw], delays[:, draw], order, share) == best for draw in draws]
    choice = allowed[best]
    return Advice(
        choice=choice,
        alternatives=tuple(sorted(known, key=lambda each: -each.goodput_bps)),
        limits=tuple(limits(campaign, choice.point, *_by_more_bps(choice, known))),
        goodput_interval_bps=_interval([_median(goodputs[best, draw]) for draw in draws]),
        delay_interval_s=_interval([_median(delays[best, draw]) for draw in draws]),
        certainty=float(np.mean(same)),
        drift=drift(campaign, choice.point),
    )


def check_advisable(plan: Plan) -> None:
    """Whether a campaign, once measured, can be advised on. Raises InputError for fewer than three cycles,
    and where no point has pings both during a transfer and alone.
    """
    if plan.cycles < _LEAST_CYCLES:
        raise InputError(
            f"advice needs {_LEAST_CYCLES} cycles or more (got {plan.cycles}): write "
            f"'--cycles {_LEAST_CYCLES}', or set campaign.cycles in the file"
        )
    for steps in plan.steps:
        pinged = {bool(step.loads) for step in steps if step.probe is not None}
        if pinged == {True, False}:
            return
    raise InputError(
        "advice needs pings during the transfers and alone, or no point has a dRTT: let one step of "
        "campaign.cycle run both, and another the pings"
    )


def _best(goodputs: np.ndarray, delays: np.ndarray, streams: Sequence[int], share: float) -> int | None:
    """The place of the best choice; None where no choice has both medians."""
    medians = [_median(row) for row in goodputs]
    waits = [float(np.maximum(_median(row), 0.0)) for row in delays]
    both = [place for place in range(len(medians)) if math.isfinite(medians[place] + waits[place])]
    if not both:
        return None
    enough = share * max(medians[place] for place in both)
    able = [place for place in both if medians[place] >= enough]
    # Delays are known to a microsecond or so: what is below counts as the same.
    return min(able, key=lambda place: (round(waits[place] / medians[place] * 1e14), streams[place], place))


def _choices(campaign: Campaign) -> list[Choice]:
    plan = campaign.plan
    found = []
    for point, steps in enumerate(plan.steps):
        loads = [(step, what.load) for step, what in enumerate(steps) if what.load is not None]
        if not loads:
            continue
        _, load = loads[0]
        goodputs = [math.nan] * plan.cycles
        means: dict[bool, list[float]] = {kind: [math.nan] * plan.cycles for kind in (True, False)}
        for kept in campaign.kept:
            if kept.place.point != point or kept.measurement is None:
                continue
            loaded = kept.measurement.loaded
            if kept.measurement.transfer is not None:
                goodputs[kept.place.cycle] = goodput_bps(kept.measurement.transfer)
            if kept.measurement.pings is not None and kept.measurement.pings.mean_s is not None:
                means[loaded][kept.place.cycle] = kept.measurement.pings.mean_s
        delays = tuple(
            with_load - without for with_load, without in zip(means[True], means[False], strict=True)
        )
        found.append(
            Choice(point, load.streams, load.window_bytes, load.congestion_control, tuple(goodputs), delays)
        )
    return found


def _by_more_bps(choice: Choice, known: Sequence[Choice]) -> tuple[float | None, float | None]:
    """The greatest goodput of points with more streams of no smaller windows, and of points with larger
    windows of no fewer streams, all of the same congestion control; None where there are none."""
    alike = [each for each in known if each.congestion_control == choice.congestion_control]
    window, streams = _window_of(choice), choice.streams
    more = [
        each.goodput_bps for each in alike if each.streams > _MORE * streams and _window_of(each) >= window
    ]
    wider = [
        each.goodput_bps for each in alike if _window_of(each) > _MORE * window and each.streams >= streams
    ]
    return max(more, default=None), max(wider, default=None)


def _window_of(choice: Choice) -> float:
    return math.inf if choice.window_bytes is None else choice.window_bytes


def _median(values: Sequence[float] | np.ndarray) -> float:
    kept = np.asarray(values)[np.isfinite(values)]
    return float(np.median(kept)) if kept.size else math.nan


def _interval(values: Sequence[float]) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return float(low), float(high)
