"""Probes a path until its links are known well enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from weirlab.campaigns.path.estimate import HopEstimate, answered, estimate
from weirlab.campaigns.path.probing import LONGEST_STEP_S, PROBES, Batch, Prober
from weirlab.campaigns.path.route import Route
from weirlab.errors import InputError
from weirlab.heavy import np

Ending = Literal["settled", "rounds", "probes", "time", "interrupted"]
Progress = Callable[[int, int], None]

_BATCH_S = 2.0
"""Rounds are sent together that take less than this: after each batch the last answers are awaited."""
_LONGEST_S = 5.0
"""A batch takes no longer: this is what an interruption loses, and what the time may be exceeded by."""
_UNRESOLVED_SHARE = 0.1
"""See `is_settled`."""
_OWN_S_PER_BYTE = 4e-9
"""The most that a host or router was seen to take for each byte of a probe, apart from the link."""
_OWN_SHARE = 0.03
"""Of a link's time per byte: a larger share is reported."""
_SPREAD = 0.5
"""Probes leave at random within this share of the gap, so that nothing periodic is met again and again."""
_LEAST_ANSWERED = 0.5
_LEAST_ASKED = 12
"""A hop that answers less than this share of so many probes, or more, is asked more slowly."""
_SLOWEST_S = 1.1
"""Time between two probes to a hop at which even hosts that send one message in a second answer."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How well, and at what cost."""

    precision: float = 0.03
    """Half the interval of a capacity, relative to it, at which a link is known well enough."""
    confidence: float = 0.95
    share: float = 0.05
    """Of the probes of a size, those that are taken to meet no queue; 0: the fastest only."""
    sizes: int = 24
    gap_s: float = 0.01
    """Mean time between two probes."""
    timeout_s: float = 1.0
    least_rounds: int = 8
    most_rounds: int = 1000
    """A round has one probe of each size to each hop."""
    most_probes: int = 50_000
    most_s: float = 300.0

    def check(self) -> None:
        """Raises InputError."""
        for name, value, low, high in (
            ("--precision", self.precision, 1e-4, 1.0),
            ("--share", self.share, 0.0, 0.5),
            ("--gap", self.gap_s, 1e-3, 60.0),
            ("--timeout", self.timeout_s, 1e-3, 60.0),
            ("--time", self.most_s, 1.0, 86_400.0),
        ):
            if not low <= value <= high:
                raise InputError(f"{name}: from {low:g} to {high:g} (got {value:g})")


@dataclass(frozen=True)
class Characterization:
    """A path as far as it is known."""

    route: Route
    effort: Effort
    probes: pl.DataFrame
    """`PROBES` with `round` and `gap_s`: the pace."""
    ending: Ending
    """Why no more probes were sent."""
    rounds: int
    seconds: float
    notes: tuple[str, ...]
    stamped: int | None = None
    """Probes that were timed from the kernel's stamp of their departure, and not from just before the call;
    None where a kept result does not say."""
    disturbance: str = ""
    """What steal, run delay and softirq work that waited took from the prober, in words; empty: nothing that
    matters, or not known."""
    account: Mapping[str, float | int | str | None] = field(default_factory=dict)
    """This machine meanwhile, in figures of `weirlab.testbed.account` [s]."""

    def estimates(self) -> tuple[HopEstimate, ...]:
        """What is known of each hop that answers."""
        return estimate(
            self.probes, self.route.hops, confidence=self.effort.confidence, share=self.effort.share
        )

    def settled(self) -> tuple[bool, ...]:
        """Of each of them, whether its link is known well enough."""
        return tuple(is_settled(each, self.effort.precision) for each in self.estimates())

    def stamped_share(self) -> float | None:
        """Of the probes that were sent; None where it is not known."""
        sent = self.probes.get_column("t_s").count()
        return self.stamped / sent if self.stamped is not None and sent else None

    def doubts(self) -> tuple[str, ...]:
        """Which capacities may be off by more than their intervals say."""
        fast = [
            str(each.hop.hops)
            for each in self.estimates()
            if each.link is not None
            and each.link.capacity_bps is not None
            and each.link.capacity_bps * _OWN_S_PER_BYTE / 8 > _OWN_SHARE
        ]
        if not fast:
            return ()
        return (
            f"the intervals of the links to hop {', '.join(fast)} leave out the time per byte of hosts and "
            f"routers: at up to {1e9 * _OWN_S_PER_BYTE:g} ns/B the capacity may be more than "
            f"{100 * _OWN_SHARE:g} % higher",
        )


def is_settled(found: HopEstimate, precision: float) -> bool:
    """Whether the slope of a link is known well enough: half its interval is no more than `precision` of it,
    or a tenth of that of the slope of the whole path up to there.

    The second is for fast links behind slow ones: of those, only a bound can be had with reason.
    """
    if found.link is None or found.line is None:
        return False
    slope = max(found.link.line.slope, 0.0)
    whole = max(found.line.slope, 0.0)
    return found.link.line.half_width <= precision * max(slope, _UNRESOLVED_SHARE * whole)


def characterize(
    probe: Prober,
    route: Route,
    effort: Effort,
    *,
    seed: int = 1,
    progress: Progress | None = None,
    on_links: Callable[[Sequence[HopEstimate]], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Characterization:
    """Send rounds of probes until all links are settled or the effort is spent. Ctrl-C ends it, too: what
    was measured is returned.

    Args: seed: Of the order and the times of probes. progress: Called with how much of the work is done,
    of how much. on_links: Told now and then what the probes say of the links so far.
    """
    work = _Work(probe, route, effort, seed, progress, on_links, clock)
    try:
        ending = work.run()
    except KeyboardInterrupt:
        ending = "interrupted"
    return Characterization(
        route=route,
        effort=effort,
        probes=work.probes(),
        ending=ending,
        rounds=work.rounds,
        seconds=clock() - work.began,
        notes=tuple(work.notes),
        stamped=work.stamped,
    )


def _sizes(least_bytes: int, most_bytes: int, count: int) -> np.ndarray:
    """Sizes of probes, denser towards both ends: those say most of a slope, the others whether it is
    one."""
    place = np.linspace(-1, 1, count)
    middle, half = (most_bytes + least_bytes) / 2, (most_bytes - least_bytes) / 2
    return np.unique((middle + half * np.sign(place) * np.abs(place) ** (1 / 3)).round().astype(int))


class _Work:
    def __init__(
        self,
        probe: Prober,
        route: Route,
        effort: Effort,
        seed: int,
        progress: Progress | None,
        on_links: Callable[[Sequence[HopEstimate]], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self._probe = probe
        self._route = route
        self._effort = effort
        self._chance = np.random.default_rng(seed)
        self._progress = progress
        self._on_links = on_links
        self._clock = clock
        self.began = clock()
        self.rounds = 0
        self.stamped = 0
        self.notes: list[str] = []
        self._parts: list[pl.DataFrame] = []
        self._sizes = _sizes(route.least_bytes, route.mtu_bytes, effort.sizes)
        # Probes wait for each other where they come faster than a link takes them.
        self._gap_s = max(effort.gap_s, 2 * route.crossing_s)
        if self._gap_s > effort.gap_s:
            self.notes.append(
                f"a probe takes {1e3 * route.crossing_s:.3g} ms to cross the path: one is sent every "
                f"{1e3 * self._gap_s:.3g} ms"
            )
        self._slowed = False

    def probes(self) -> pl.DataFrame:
        """All that was sent."""
        schema = pl.Schema({**PROBES, "gap_s": pl.Float64(), "round": pl.Int32()})
        return pl.concat([pl.DataFrame(schema=schema), *self._parts])

    def run(self) -> Ending:
        """Until the effort is spent."""
        effort = self._effort
        active = [hop.hops for hop in self._route.answering]
        while True:
            if self.rounds >= effort.most_rounds:
                return "rounds"
            left_s = effort.most_s - (self._clock() - self.began)
            if left_s <= 0:
                return "time"
            left = effort.most_probes - sum(part.height for part in self._parts)
            round_s = len(active) * self._sizes.size * self._gap_s
            rounds = max(1, min(int(_BATCH_S / round_s), effort.most_rounds - self.rounds))
            if self.rounds == 0:
                rounds = 1  # the pace is found out first
            if left < len(active) * self._sizes.size * rounds:
                return "probes"
            self._send(active, rounds)
            if self.rounds < effort.least_rounds:
                self._tell(0.0)
                continue
            found = estimate(
                self.probes(), self._route.hops, confidence=effort.confidence, share=effort.share
            )
            if self._on_links is not None:
                self._on_links(found)
            settled = [is_settled(each, effort.precision) for each in found]
            if all(settled):
                return "settled"
            self._tell(sum(settled) / len(settled))
            # A link is known by the routers at both its ends.
            active = [
                each.hop.hops
                for place, each in enumerate(found)
                if not settled[place] or not all(settled[place + 1 : place + 2])
            ]

    def _tell(self, settled: float) -> None:
        if self._progress is None:
            return
        effort = self._effort
        spent = max(self.rounds / effort.most_rounds, (self._clock() - self.began) / effort.most_s)
        self._progress(round(1000 * min(1.0, max(spent, settled))), 1000)

    def _send(self, active: Sequence[int], rounds: int) -> None:
        hops, sizes, numbers = [], [], []
        for number in range(self.rounds, self.rounds + rounds):
            pairs = [(hop, int(size)) for size in self._sizes for hop in active]
            for place in self._chance.permutation(len(pairs)):
                hop, size = pairs[place]
                hops.append(hop)
                sizes.append(size)
                numbers.append(number)
        shift = self._chance.uniform(-_SPREAD / 2, _SPREAD / 2, len(hops))
        length = max(1, int(_LONGEST_S / self._gap_s))
        first = len(self._parts)
        for begin in range(0, len(hops), length):
            if self._clock() - self.began >= self._effort.most_s:
                break
            part = slice(begin, begin + length)
            at_s = (np.arange(len(hops[part])) + 0.5 + shift[part]) * self._gap_s
            batch = Batch(
                hops=hops[part],
                sizes_bytes=sizes[part],
                at_s=list(at_s),
                timeout_s=self._effort.timeout_s,
                rotating=self._route.rotating,
            )
            self._keep(batch, numbers[part])
        self.rounds += rounds
        if len(self._parts) > first:
            self._pace(pl.concat(self._parts[first:]), active)

    def _keep(self, batch: Batch, numbers: Sequence[int]) -> None:
        start_s = self._clock() - self.began
        answers = self._probe(batch)
        if answers.clock_step_s > LONGEST_STEP_S:
            step = f"the clock was stepped by {1e6 * answers.clock_step_s:.0f} us"
            self.notes.append(f"{step}: {len(numbers)} probes are left out")
            return
        self.stamped += answers.stamped
        number = pl.Series(numbers, dtype=pl.Int32)
        self._parts.append(
            answers.rows.with_columns(pl.col("t_s") + start_s, gap_s=pl.lit(self._gap_s), round=number)
        )

    def _pace(self, rows: pl.DataFrame, active: Sequence[int]) -> None:
        """Slow down where a hop leaves most probes without an answer: many answer so many in a second
        only."""
        slowest_s = max(self._gap_s, _SLOWEST_S / len(active))
        for hop in active:
            sent = rows.filter((pl.col("hops") == hop) & pl.col("t_s").is_not_null())
            share = answered(sent).height / sent.height if sent.height >= _LEAST_ASKED else 1.0
            if share < _LEAST_ANSWERED and self._gap_s < slowest_s:
                self._gap_s = min(2 * self._gap_s, slowest_s)
                if not self._slowed:
                    self._slowed = True
                    self.notes.append(
                        f"hop {hop} answers {100 * share:.0f} % of the probes: it may limit its answers, so "
                        "probes are sent more slowly"
                    )
                return
