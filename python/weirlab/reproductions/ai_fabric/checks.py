"""What theory says of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from weirlab.reproductions.verdicts import Claim


class Results:
    """Values of all trials."""

    def __init__(self, values: pl.DataFrame) -> None:
        self._values = values

    def of(self, id_: str, measure: str) -> dict[str, list[float | None]]:
        """Values of all runs, by condition."""
        rows = self._values.filter(pl.col("id") == id_, pl.col("measure") == measure)
        grouped = rows.group_by("condition", maintain_order=True).agg("value")
        return dict(grouped.iter_rows())

    def means(self, id_: str, measure: str) -> dict[str, float]:
        """Means by condition, of those in which every run gives an answer."""
        return {
            condition: sum(value for value in values if value is not None) / len(values)
            for condition, values in self.of(id_, measure).items()
            if None not in values
        }


def claims(results: Results) -> list[Claim]:
    """All that can be checked."""
    return [
        Claim(statement=statement, holds=holds, evidence=evidence, source=f"test {id_}", about="own")
        for id_, check in _CHECKS
        for statement, holds, evidence in check(results)
    ]


Checked = Iterator[tuple[str, bool, str]]
_LEAVES, _LEAF_LINKS, _HOSTS_A_LEAF = 4, 4, 4
_DRAWS = 10_000


def _throughput(results: Results) -> Checked:
    losses = results.means("5.1", "loss")
    yield (
        "Nothing is lost at the line rate, whatever the size of frames, one way and both ways.",
        max(losses.values()) == 0,
        f"{len(losses)} conditions, most loss {max(losses.values()):g}",
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
        max(fits.values()) == 0 and min(more.values()) > 0,
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
        max(drops.values()) == 0 and min(used.values()) > 0.99,
        f"least utilisation {min(used.values()):.3f}",
    )
    # n senders share the link: each is held for all but its share, once the buffer is full.
    shares = {name: 1 - 1 / int(name.split(":")[0]) for name in held}
    yield (
        "Each of n senders is held for nearly 1 - 1/n of the time, and never for more.",
        all(0.7 * shares[name] < value <= shares[name] for name, value in held.items()),
        ", ".join(f"{name}: {value:.3f} of {shares[name]:.3f}" for name, value in held.items()),
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
    low, high = min(times.values()), max(times.values())
    yield (
        "A job without overlap takes its computations and its operations, and these take the same, within "
        "2 %, whatever it computes.",
        high <= 1.02 * low,
        f"{low / 1e9:.4f} to {high / 1e9:.4f} ms",
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
        min(factors.values()) > 1,
        ", ".join(f"{name} {value:.1f}" for name, value in factors.items()),
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
