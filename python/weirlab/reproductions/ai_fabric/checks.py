"""What theory says of the tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from weirlab.reproductions.ai_fabric.tests import ALPHA, BUFFER
from weirlab.reproductions.verdicts import Claim


class Results:
    """Values of all trials."""

    def __init__(self, values: pl.DataFrame) -> None:
        self._values = values
        self.unknown: dict[str, None] = {}
        """What checks asked for and some run gave no answer to."""

    def of(self, id_: str, measure: str) -> dict[str, list[float | None]]:
        """Values of all runs, by condition."""
        rows = self._values.filter(pl.col("id") == id_, pl.col("measure") == measure)
        grouped = rows.group_by("condition", maintain_order=True).agg("value")
        return dict(grouped.iter_rows())

    def means(self, id_: str, measure: str) -> dict[str, float]:
        """Means by condition; NaN where a run gives no answer."""
        found = {}
        for condition, values in self.of(id_, measure).items():
            known = [value for value in values if value is not None]
            found[condition] = math.fsum(known) / len(known) if len(known) == len(values) else math.nan
            if len(known) < len(values):
                self.unknown[f"{id_}, {condition}: {measure}"] = None
        return found


def claims(results: Results) -> list[Claim]:
    """All that can be checked, and that nothing was missing for it."""
    found = [(id_, *each) for id_, check in _CHECKS for each in check(results)]
    unknown = "; ".join(results.unknown)
    found.append(("all", "Every run answers what is checked.", not unknown, unknown or "all do"))
    return [
        Claim(statement=statement, holds=holds, evidence=evidence, source=f"test {id_}", about="own")
        for id_, statement, holds, evidence in found
    ]


Checked = Iterator[tuple[str, bool, str]]
_LEAVES, _LEAF_LINKS, _HOSTS_A_LEAF = 4, 4, 4
_DRAWS = 10_000


def _throughput(results: Results) -> Checked:
    losses, used = results.means("5.1", "loss"), results.means("5.1", "utilisation")
    # The first frame reaches the second link after a delay and a transmission; then there is no gap.
    least = {name: 1 - (1e6 + (int(name.split()[0]) + 20) * 80) / 200e6 for name in used}
    yield (
        "Nothing is lost at the line rate, whatever the size of frames, one way and both ways, and the link "
        "to a receiver is busy from the first frame on (within one frame).",
        all(loss == 0 for loss in losses.values())
        and all(abs(used[name] - value) <= (1 - value) / 2 for name, value in least.items()),
        f"{len(losses)} conditions, most loss {max(losses.values()):g}, least utilisation "
        f"{min(used.values()):.4f}",
    )


def _latency(results: Results) -> Checked:
    mean = results.means("5.2", "mean")["load 1 %"]
    # Two links of 1 us, and a frame of 1044 B with framing on each.
    least = 2_000_000 + 2 * 1044 * 80
    yield (
        "Frames of an idle network take two delays and two transmissions, and at 1 % load not 1 % more.",
        least <= mean < 1.01 * least,
        f"{mean / 1e6:.4f} us, at least {least / 1e6:.4f} us",
    )


def _bursts(results: Results) -> Checked:
    drops = results.means("5.3", "drops")
    fits = {name: value for name, value in drops.items() if name.endswith("what fits")}
    more = {name: value for name, value in drops.items() if not name.endswith("what fits")}
    yield (
        "n bursts of b frames lose nothing while (n - 1) b frames fit into the queue; 2 % more lose some.",
        all(value == 0 for value in fits.values()) and all(value > 0 for value in more.values()),
        "; ".join(f"{name}: {value:.0f} lost" for name, value in drops.items()),
    )


def _marks(results: Results) -> Checked:
    # 2 x 100 Gbit/s of frames of 1000 B (1020 B with framing) for 0.3 ms: half of them wait.
    came = 2 * 300_000_000 / (1020 * 80)
    marked = {name: value * came / 2 for name, value in results.means("7.1", "marked").items()}
    size = {"100 kB": 100, "1 MB": 1000, "3 MB": 3000}
    expected = {name: came - 2 * size[name.removeprefix("threshold ")] for name in marked}
    yield (
        "All frames that find more than the threshold are marked, and no other (within 30 frames).",
        all(abs(marked[name] - value) < 30 for name, value in expected.items()),
        ", ".join(f"{name}: {marked[name]:.0f} of {value:.0f}" for name, value in expected.items()),
    )


def _pauses(results: Results) -> Checked:
    drops, used = results.means("7.2", "drops"), results.means("7.2", "utilisation")
    held = results.means("7.2", "held")
    yield (
        "Under incast flow control loses nothing and keeps the link busy.",
        all(value == 0 for value in drops.values()) and all(value > 0.99 for value in used.values()),
        f"least utilisation {min(used.values()):.3f}",
    )
    # In the time T, n senders at the rate C give what the link takes and what the buffer keeps; n inputs with
    # the factor alpha fill n alpha / (n alpha + 1) of it.
    near, evidence = [], []
    for name, value in held.items():
        senders = int(name.split(":")[0])
        kept = BUFFER * senders * ALPHA / (senders * ALPHA + 1)
        share, filling = 1 - 1 / senders, kept * (1044 / 1024) * 80 / (senders * 1e9)
        near.append(share - filling <= value <= share - 0.8 * filling)
        evidence.append(f"{name}: {value:.3f} of {share - filling:.3f} to {share - 0.8 * filling:.3f}")
    yield (
        "Each of n senders is held for 1 - 1/n of the time, without what it takes to fill the buffer to its "
        "dynamic threshold (at least 80 % of that, as headroom and reserves are no part of it).",
        all(near),
        ", ".join(evidence),
    )


def _deadlock(results: Results) -> Checked:
    delivered = results.means("7.4", "delivered")
    without, broken = delivered["ring of four, no watchdog"], delivered["ring of four, watchdog"]
    yield (
        "A ring of held links delivers nothing more; a watchdog that drops breaks it.",
        without == 0 and broken > 0,
        f"{without / 1e9:g} and {broken / 1e9:.1f} Gbit/s",
    )


def _entropy(results: Results) -> Checked:
    found = results.means("8.1", "jfi")
    runs = {name: len(values) for name, values in results.of("8.1", "jfi").items()}
    chance = np.random.default_rng(1)
    near, evidence = [], []
    for condition, value in found.items():
        flows = _HOSTS_A_LEAF * int(condition.split()[0])
        loads = chance.multinomial(flows, [1 / _LEAF_LINKS] * _LEAF_LINKS, size=(_DRAWS, _LEAVES)).reshape(
            _DRAWS, -1
        )
        index = loads.sum(axis=1) ** 2 / (loads.shape[1] * (loads**2).sum(axis=1))
        near.append(abs(value - index.mean()) < 4 * index.std() / runs[condition] ** 0.5)
        evidence.append(f"{condition}: {value:.3f} ({index.mean():.3f})")
    yield (
        "Jain's index of links among which flows are hashed is that of flows thrown to links by chance, "
        "within four standard errors.",
        all(near),
        ", ".join(evidence),
    )
    yield (
        "More queue pairs load links more evenly, and spraying evenly.",
        max(found, key=lambda name: found[name]) == "32 queue pairs"
        and min(results.means("8.3", "jfi").values()) > 0.999,
        f"spraying {min(results.means('8.3', 'jfi').values()):.5f}",
    )


def _jobs(results: Results) -> Checked:
    jobs = results.means("10.1", "job")
    times = {name: value - 5e9 * float(name.split()[1]) for name, value in jobs.items()}
    short, *long = (times[name] for name in sorted(times, key=lambda name: float(name.split()[1])))
    # With 0.1 ms they differ by up to 1 %, from 0.3 ms on not at all.
    yield (
        "A job takes its computations and its operations, and these take the same, to a millionth, whether "
        "it computes for 1 or 5 ms.",
        max(long) - min(long) <= 1e-6 * min(long),
        f"{min(long) / 1e9:.4f} to {max(long) / 1e9:.4f} ms; {short / 1e9:.4f} ms where it computes for "
        "0.1 ms",
    )
    tenants = results.means("10.3", "job")
    yield (
        "A second job on the same fabric makes the first one longer.",
        all(value > tenants["alone"] for name, value in tenants.items() if name != "alone"),
        ", ".join(f"{name}: {value / tenants['alone']:.2f}" for name, value in tenants.items()),
    )


def _failures(results: Results) -> Checked:
    failed, steady = results.means("11.2", "job"), results.means("11.3", "job")
    late = {name: value for name, value in failed.items() if name.endswith("5 ms")}
    yield (
        "A job takes longer by at least the half of the time for which switches do not know of a failure.",
        all(value - steady[f"{name.split(',')[0]}, no failure"] > 2.5e9 for name, value in late.items()),
        ", ".join(
            f"{name}: {(value - steady[name.split(',')[0] + ', no failure']) / 1e9:+.2f} ms"
            for name, value in failed.items()
        ),
    )


def _canaries(results: Results) -> Checked:
    factors = {}
    for measure in ("latency", "latency-p99", "bandwidth", "bandwidth-p99"):
        means = results.means("GPCNeT", measure)
        factors[measure] = means["with congestors"] / means["alone"]
    yield (
        "Congestors slow canaries down: impact factors (with congestors over alone) are above 1.",
        all(factor > 1 for factor in factors.values()),
        ", ".join(f"{name} {value:.2f}" for name, value in factors.items()),
    )


_CHECKS: tuple[tuple[str, Callable[[Results], Checked]], ...] = (
    ("5.1", _throughput),
    ("5.2", _latency),
    ("5.3", _bursts),
    ("7.1", _marks),
    ("7.2", _pauses),
    ("7.4", _deadlock),
    ("8.1, 8.3", _entropy),
    ("10.1, 10.3", _jobs),
    ("11.2, 11.3", _failures),
    ("GPCNeT", _canaries),
)
