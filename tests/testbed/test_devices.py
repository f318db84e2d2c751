"""Device models: their formulas against theory, and chance that a resumed search can repeat."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weirlab.errors import InputError
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.devices import (
    DeepBuffer,
    Gradual,
    Ip4Published,
    Knee,
    Offer,
    RandomDrops,
    VhostPublished,
    WarmUp,
)
from weirlab.testbed.sim import DeviceTestbed

DEVICES = [
    Knee(capacity_fps=8e6, run_spread=0.01, trial_spread=0.01),
    Ip4Published(),
    VhostPublished(),
    RandomDrops(),
    Gradual(),
    DeepBuffer(),
    WarmUp(),
]
ids = [type(device).__name__ for device in DEVICES]
devices = pytest.mark.parametrize("device", DEVICES, ids=ids)


def offer(load_fps: float, duration_s: float = 10.0, *, index=0, elapsed_s=0.0, seed=1) -> Offer:
    return Offer(
        frames=round(load_fps * duration_s),
        duration_s=duration_s,
        frame_size_bytes=64,
        index=index,
        elapsed_s=elapsed_s,
        seed=seed,
    )


def loss_ratio(device, *arguments, **more) -> float:
    given_offer = offer(*arguments, **more)
    return 1.0 - device.received_frames(given_offer) / given_offer.frames


@devices
@given(
    load_fps=st.floats(1.0, 1e8),
    duration_s=st.floats(0.01, 1e3),
    index=st.integers(0, 100),
    elapsed_s=st.floats(0.0, 1e5),
    seed=st.integers(0, 2**64 - 1),
)
def test_no_device_gives_more_than_it_was_offered_or_less_than_nothing(
    device, load_fps, duration_s, index, elapsed_s, seed
):
    given_offer = offer(
        load_fps, max(duration_s, 1.0 / load_fps), index=index, elapsed_s=elapsed_s, seed=seed
    )
    assert 0 <= device.received_frames(given_offer) <= given_offer.frames


@devices
def test_the_same_offer_gives_the_same_answer(device):
    for load_fps in (1e6, 3.7e6, 8e6, 9.9e6, 10.6e6, 2e7):
        given_offer = offer(load_fps, index=3, elapsed_s=41.5, seed=7)
        assert device.received_frames(given_offer) == device.received_frames(given_offer)


CHANCY = [
    (DEVICES[0], 1e7),
    (Ip4Published(), 1.2e7),
    (VhostPublished(), 5e6),
    (RandomDrops(), 9e6),
    (Gradual(), 8.05e6),
]


@pytest.mark.parametrize(("device", "load_fps"), CHANCY, ids=[type(device).__name__ for device, _ in CHANCY])
def test_chance_depends_on_seed_index_and_elapsed_time(device, load_fps):
    answers = {
        name: device.received_frames(
            offer(load_fps, 2000.0, **{"index": 3, "elapsed_s": 40.0, "seed": 7, **changed})
        )
        for name, changed in {
            "as it was": {},
            "seed": {"seed": 8},
            "index": {"index": 4},
            "elapsed": {"elapsed_s": 40.000001},
        }.items()
    }
    assert len(set(answers.values())) == 4, answers


def test_seed_0_is_a_seed():
    device = RandomDrops()
    assert device.received_frames(offer(9e6, seed=0)) != device.received_frames(offer(9e6, seed=1))


@pytest.mark.parametrize(
    "device", [Knee(capacity_fps=5e6), DeepBuffer(), WarmUp()], ids=lambda d: type(d).__name__
)
def test_a_deterministic_device_never_loses_less_under_more_load(device):
    loads = np.geomspace(1e5, 1e8, 200)
    losses = [loss_ratio(device, load) for load in loads]
    assert losses == sorted(losses)
    assert losses[0] == 0.0
    assert losses[-1] > 0.5


def test_a_knee_loses_what_is_above_it():
    knee = Knee(capacity_fps=5e6)
    assert loss_ratio(knee, 5e6) == 0.0
    assert loss_ratio(knee, 5.0000001e6) == pytest.approx(1 / 50_000_001)
    assert loss_ratio(knee, 1e7) == pytest.approx(0.5)


def test_the_spread_of_a_knee_is_between_searches_or_between_trials():
    between_searches = Knee(capacity_fps=5e6, run_spread=0.02)
    between_trials = Knee(capacity_fps=5e6, trial_spread=0.02)
    by_seed = [between_searches.received_frames(offer(1e7, seed=seed)) for seed in range(400)]
    by_index = [between_trials.received_frames(offer(1e7, index=index)) for index in range(400)]
    for counts in (by_seed, by_index):
        # Standard error of a standard deviation of 400 draws: 1 / sqrt(800) = 3.5 %.
        assert statistics.stdev(counts) == pytest.approx(0.02 * 5e7, rel=0.15)
        assert statistics.mean(counts) == pytest.approx(5e7, abs=4 * 0.02 * 5e7 / 20)
    assert len({between_searches.received_frames(offer(1e7, index=index)) for index in range(10)}) == 1


def test_random_drops_are_binomial_in_proportion_to_the_frames():
    device = RandomDrops(capacity_fps=1e7, drop_every_s=2.0)
    for load_fps, expected in ((1e7, 30.0), (5e6, 15.0)):
        lost = [
            offered.frames - device.received_frames(offered)
            for offered in (offer(load_fps, 60.0, index=index) for index in range(300))
        ]
        # One drop in 2 s at the capacity: 30 in 60 s; the variance of a rare event equals its mean.
        assert statistics.mean(lost) == pytest.approx(expected, abs=4 * math.sqrt(expected / 300))
        assert statistics.variance(lost) == pytest.approx(expected, rel=0.35)


def test_gradual_loss_grows_with_the_square_of_the_distance_from_the_onset():
    device = Gradual(capacity_fps=1e7, onset_fps=8e6, loss_at_capacity=0.01)
    assert loss_ratio(device, 8e6) == 0.0
    assert loss_ratio(device, 9e6) == pytest.approx(0.0025, rel=0.01)
    assert loss_ratio(device, 1e7) == pytest.approx(0.01, rel=0.01)
    assert loss_ratio(device, 2e7) == pytest.approx(1.0 - 0.99 / 2, rel=0.01)


@given(duration_s=st.floats(0.1, 100.0), excess=st.floats(0.001, 0.5))
def test_a_deep_buffer_hides_overload_as_long_as_it_has_room(duration_s, excess):
    device = DeepBuffer(capacity_fps=1e7, buffer_frames=600_000)
    given_offer = offer(1e7 * (1.0 + excess), duration_s)
    overflow = given_offer.frames - 1e7 * duration_s - 600_000
    assert given_offer.frames - device.received_frames(given_offer) == pytest.approx(
        max(0.0, overflow), abs=1.0
    )


@given(
    load=st.floats(0.5, 1.3),
    elapsed_s=st.floats(0.0, 60.0),
    duration_s=st.floats(0.1, 60.0),
    deficit=st.floats(0.01, 0.5),
    tau_s=st.floats(0.5, 30.0),
)
def test_a_device_that_warms_up_loses_the_integral_of_what_is_above_its_capacity(
    load, elapsed_s, duration_s, deficit, tau_s
):
    device = WarmUp(capacity_fps=1e6, deficit=deficit, time_constant_s=tau_s)
    given_offer = offer(load * 1e6, duration_s, elapsed_s=elapsed_s)
    steps = 20_000
    times_s = elapsed_s + duration_s * (np.arange(steps) + 0.5) / steps
    capacities = 1e6 * (1.0 - deficit * np.exp(-times_s / tau_s))
    expected = np.maximum(0.0, given_offer.load_fps - capacities).mean() * duration_s
    lost = given_offer.frames - device.received_frames(given_offer)
    assert lost == pytest.approx(expected, abs=1.0 + 1e-4 * expected + 2e-9 * given_offer.frames)


def test_a_cold_device_loses_what_the_warm_one_carries():
    device = WarmUp(capacity_fps=1e7, deficit=0.15, time_constant_s=8.0)
    assert loss_ratio(device, 9e6, elapsed_s=0.0) > 0.005
    assert loss_ratio(device, 9e6, elapsed_s=60.0) == 0.0


def bursts(device, load_fps: float, duration_s: float, trials: int, **more) -> float:
    """Mean number of bursts per trial."""
    lost = 0
    for index in range(trials):
        given_offer = offer(load_fps, duration_s, index=index, **more)
        lost += given_offer.frames - device.received_frames(given_offer)
    return lost / device.burst_frames / trials


def test_small_losses_of_the_ip4_suite_have_the_stated_hazard():
    device = Ip4Published(run_spread=0.0, trial_spread=0.0)
    # At the knee 0.08 a second, one fold below it e times less.
    assert bursts(device, 10.6e6, 50.0, 200) == pytest.approx(4.0, abs=4 * math.sqrt(4.0 / 200))
    below = 10.6e6 * (1.0 - device.burst_fold)
    assert bursts(device, below, 50.0, 200) == pytest.approx(
        4.0 / math.e, abs=4 * math.sqrt(4.0 / math.e / 200)
    )
    assert bursts(device, 10.5e6, 50.0, 50) == 0.0


def test_losses_that_would_take_longer_than_any_number_of_seconds_do_not_come():
    device = Ip4Published(run_spread=0.0, trial_spread=0.0, burst_every_s=1e300)
    for folds in range(60):
        load_fps = 10.6e6 * (1.0 - folds * device.burst_fold)
        assert bursts(device, load_fps, 1e3, 1) == 0.0


def test_small_losses_of_the_vhost_suite_have_the_stated_hazard():
    device = VhostPublished(pdr_knee_spread_fps=0.0, ndr_knee_spread_fps=0.0)
    assert bursts(device, 3.66e6, 60.0, 200) == pytest.approx(60 * 0.0693, abs=4 * math.sqrt(4.158 / 200))
    below = 3.66e6 - 0.0616e6
    assert bursts(device, below, 60.0, 200) == pytest.approx(4.158 / math.e, abs=4 * math.sqrt(1.53 / 200))


@pytest.mark.parametrize(
    ("device", "load_fps"),
    [
        (Ip4Published(run_spread=0.0, trial_spread=0.0), 10.6e6),
        (VhostPublished(pdr_knee_spread_fps=0.0), 3.74e6),
    ],
)
def test_small_losses_below_the_knee_never_exceed_the_pdr_goal(device, load_fps):
    ratios = [loss_ratio(device, load_fps, 60.0, seed=seed) for seed in range(100)]
    assert 0.0 < max(ratios) <= 0.005


def test_the_vhost_suite_forwards_a_random_share_of_its_knee_under_overload():
    device = VhostPublished(pdr_knee_spread_fps=0.0)
    shares = [device.received_frames(offer(6e6, 1.0, index=index)) / 3.7575e6 for index in range(500)]
    assert 0.86 <= min(shares) < 0.87
    assert 0.995 < max(shares) <= 1.005
    assert statistics.mean(shares) == pytest.approx((0.86 + 1.005) / 2, abs=4 * 0.145 / math.sqrt(12 * 500))


def test_the_rates_of_the_vhost_suite_differ_between_searches_and_follow_each_other():
    """The overloaded device shows its PDR knee; the seed decides it."""
    device = VhostPublished(overload_low=1.0, overload_high=1.0)
    knees = [device.received_frames(offer(6e6, 1.0, seed=seed)) for seed in range(400)]
    assert statistics.mean(knees) == pytest.approx(3.7575e6, abs=4 * 0.066e6 / 20)
    assert statistics.stdev(knees) == pytest.approx(0.066e6, rel=0.15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Knee(capacity_fps=0.0), "the capacity must be above 0"),
        (lambda: Gradual(onset_fps=1e7, capacity_fps=1e7), "the onset must lie below the capacity"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def spec(load_fps: float, **more) -> TrialSpec:
    return TrialSpec(
        **{"index": 0, "intended_load_fps": load_fps, "duration_s": 10.0, "frame_size_bytes": 64} | more
    )


def test_a_trial_of_a_device_counts_overhead_but_not_after_a_warm_up():
    bed = DeviceTestbed(Knee(capacity_fps=5e6), overhead_s=0.43)
    assert bed.trial(spec(1e6)).effective_duration_s == 10.43
    assert bed.trial(spec(1e6, purpose="warm-up")).effective_duration_s == 10.0
    assert bed.trial(spec(1e6, purpose="repeat")).effective_duration_s == 10.43


def test_a_slow_tester_sends_less_and_the_device_loses_none_of_it():
    trial = DeviceTestbed(Knee(capacity_fps=5e6), tester_limit_fps=2e6).trial(spec(4e6))
    assert (trial.intended_frames, trial.sent_frames, trial.received_frames) == (
        40_000_000,
        20_000_000,
        20_000_000,
    )
    assert trial.offered_load_fps == 2e6
    assert trial.loss_ratio == 0.0
    assert trial.loss_ratio_of_intended == 0.5
    assert trial.unsent_ratio == 0.5


def test_a_device_in_ten_lines_can_be_searched():
    class Mine:
        def received_frames(self, offer):
            return min(offer.frames, round(7e6 * offer.duration_s))

    assert DeviceTestbed(Mine()).trial(spec(14e6)).loss_ratio == pytest.approx(0.5)
