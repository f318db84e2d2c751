"""Losses are blamed on what they hang on: a queue, or nothing that waits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from traces.bursts import MS_PS
from weirlab.traces.hazard import Blame, blame


def sawtooth(chance: np.random.Generator, samples: int = 10_000) -> np.ndarray:
    """What waits behind a window that grows to 20 ms of queue, again and again; blurred by a host."""
    return np.asarray(20 * MS_PS * chance.random(samples) + 0.1 * MS_PS * chance.random(samples))


def judged(waits: np.ndarray, events: np.ndarray, packets: np.ndarray | None = None) -> Blame:
    return blame(waits, np.ones(len(waits)), events, 0.2 * MS_PS, packets)


def test_losses_that_fall_whatever_waits_are_not_blamed_on_a_queue() -> None:
    chance = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        waits = sawtooth(chance)
        events = chance.choice(waits, size=chance.integers(4, 60))
        wrong += bool(judged(waits, events).queued.any())
    # 5 % may be: 20, with a standard error of 4.4.
    assert wrong <= 20 + 2 * 4.4


def test_losses_at_a_full_queue_are_blamed_on_it() -> None:
    chance = np.random.default_rng(2)
    for count in range(4, 60):
        blamed = judged(sawtooth(chance), MS_PS * chance.normal(19.8, 0.15, count))
        assert blamed.queued.all()
        assert blamed.at_random < 1


@pytest.mark.parametrize(("full", "evenly"), [(41, 14), (25, 30)])
def test_of_two_causes_at_once_each_has_its_count(full: int, evenly: int) -> None:
    chance = np.random.default_rng(3)
    found = []
    for _ in range(50):
        waits = sawtooth(chance)
        events = np.concatenate([MS_PS * chance.normal(19.8, 0.15, full), chance.choice(waits, evenly)])
        found.append(judged(waits, events).at_random)
    assert np.mean(found) == pytest.approx(evenly, abs=1.5)


def test_bursts_at_a_full_queue_show_beside_many_single_losses() -> None:
    chance = np.random.default_rng(4)
    waits = sawtooth(chance)
    waits = np.concatenate([waits, MS_PS * chance.uniform(24, 25, 300)])
    events = np.concatenate([[24.2 * MS_PS, 24.4 * MS_PS, 24.1 * MS_PS], chance.choice(waits[:10_000], 90)])
    packets = np.concatenate([[11, 9, 6], np.ones(90)])
    blamed = judged(waits, events, packets)
    assert blamed.queued[:3].all()
    assert blamed.at_random == pytest.approx(90, abs=2)


def nearly_empty(chance: np.random.Generator) -> np.ndarray:
    """What waits where one slow start filled a queue of 40 ms, and random losses keep it empty since then."""
    ramp, full = MS_PS * 40 * chance.random(500), np.full(200, 40 * MS_PS)
    return np.concatenate([ramp, full, MS_PS * chance.exponential(0.4, 10_000)])


@pytest.mark.parametrize("bursts", [(81, 34), (60,), (12, 9)])
def test_a_slow_start_that_overflows_a_queue_shows_beside_random_losses(bursts: tuple[int, ...]) -> None:
    chance = np.random.default_rng(10)
    for singles in range(8, 31):
        waits = nearly_empty(chance)
        events = np.concatenate([np.full(len(bursts), 40 * MS_PS), MS_PS * chance.exponential(0.4, singles)])
        packets = np.concatenate([bursts, np.ones(singles)])
        blamed = judged(waits, events, packets)
        assert blamed.decided
        assert blamed.queued.tolist() == [True] * len(bursts) + [False] * singles


@pytest.mark.parametrize("mean", [2, 5, 15])
@pytest.mark.parametrize("waiting", [sawtooth, nearly_empty])
def test_bursts_that_a_path_loses_whatever_waits_are_no_overflows(
    waiting: Callable[[np.random.Generator], np.ndarray], mean: int
) -> None:
    chance = np.random.default_rng(11)
    wrong = 0
    for _ in range(200):
        waits = waiting(chance)
        events = chance.choice(waits, size=chance.integers(6, 40))
        wrong += bool(judged(waits, events, chance.geometric(1 / mean, len(events))).queued.any())
    # 5 % may be: 10, with a standard error of 3.1.
    assert wrong <= 10 + 2 * 3.1


def test_an_outage_where_nothing_waits_is_no_overflow() -> None:
    chance = np.random.default_rng(12)
    for singles in range(8, 31):
        waits = nearly_empty(chance)
        events = MS_PS * np.concatenate([[0.3], chance.exponential(0.4, singles).clip(0, 1.5)])
        assert not judged(waits, events, np.concatenate([[60], np.ones(singles)])).queued.any()


def test_a_step_of_less_than_what_hosts_add_leaves_random_losses_random() -> None:
    """Five events on a path that is mostly idle, of which three waited half a millisecond more than usual."""
    chance = np.random.default_rng(13)
    waits = MS_PS * np.concatenate([chance.exponential(0.38, 29_100), chance.uniform(1.5, 8, 900)])
    events = MS_PS * np.array([4.94, 0.9, 0.49, 1.34, 0.19])
    sure, unsure = (
        blame(waits, np.ones(len(waits)), events, 0.48 * MS_PS, None, 0.0, slight) for slight in (MS_PS, 0.0)
    )
    assert (sure.decided, unsure.decided) == (True, False)


def test_losses_that_come_when_more_waits_than_usual_are_not_taken_for_random() -> None:
    """As those of a managed queue, or of one that empties at a rate that varies, at no one level."""
    chance = np.random.default_rng(8)
    waits = np.sort(MS_PS * chance.exponential(10, 20_000))
    events = waits[chance.integers(0.42 * len(waits), len(waits), 28)]
    blamed = judged(waits, events)
    assert not blamed.decided
    assert not blamed.queued.any()


def test_random_losses_are_taken_for_random() -> None:
    chance = np.random.default_rng(9)
    withheld = 0
    for _ in range(400):
        waits = MS_PS * chance.exponential(10, 10_000)
        withheld += not judged(waits, chance.choice(waits, size=chance.integers(4, 60))).decided
    # 5 % of the uneven may be, and as many of steps.
    assert withheld <= 20 + 2 * 4.4


def test_a_few_losses_at_what_usually_waits_prove_no_queue() -> None:
    chance = np.random.default_rng(5)
    waits = MS_PS * chance.normal(10, 2, 10_000).clip(0)
    events = MS_PS * np.array([8.7, 9.6, 10.4, 11.2, 12.1])
    assert not judged(waits, events).queued.any()


def test_losses_at_a_queue_that_is_full_nearly_always_are_blamed_on_it() -> None:
    chance = np.random.default_rng(6)
    waits = MS_PS * (20 - chance.exponential(0.5, 20_000)).clip(0)
    events = MS_PS * chance.uniform(19.2, 20, 200)
    blamed = judged(waits, events)
    assert blamed.queued.all()
    assert blamed.at_random < 1
    assert not judged(waits, chance.choice(waits, 200)).queued.any()


def test_what_stamps_blur_is_no_random_loss_beside_a_queue() -> None:
    chance = np.random.default_rng(7)
    waits = (MS_PS * (1.5 * chance.random(20_000) + chance.normal(0, 0.2, 20_000))).clip(0)
    events = MS_PS * np.concatenate([chance.normal(1.6, 0.05, 60), chance.uniform(0.1, 0.7, 6)])
    sharp, blurred = (blame(waits, np.ones(len(waits)), events, 1e7, None, blur) for blur in (0.0, 2 * MS_PS))
    assert sharp.step_ps == blurred.step_ps is not None
    assert sharp.at_random > 4
    assert blurred.queued.all()
    assert blurred.at_random == 0
