"""Round trips per minute and the summary under load."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weirlab.stats import (
    foreign_per_minute,
    is_stable,
    responsiveness,
    round_trips_per_minute,
    trimmed_mean,
    under_load,
)

RTTS = st.lists(st.floats(1e-4, 10), min_size=1, max_size=50)


def test_the_trimmed_mean_leaves_out_what_is_above_the_95th_percentile():
    # The percentile of 1..21 is 20: only 21 is above it.
    assert trimmed_mean(range(1, 22)) == 10.5
    assert trimmed_mean([5.0] * 20 + [1000.0]) == 5


@given(RTTS)
def test_trimming_never_raises_the_mean(rtts):
    assert min(rtts) - 1e-12 <= trimmed_mean(rtts) <= np.mean(rtts) + 1e-9


@given(RTTS, st.floats(0.1, 10))
def test_twice_the_delay_is_half_the_round_trips(rtts, factor):
    slower = round_trips_per_minute([factor * rtt for rtt in rtts])
    assert slower == pytest.approx(round_trips_per_minute(rtts) / factor)


def test_responsiveness_weighs_foreign_and_loaded_probes_alike():
    told = responsiveness(tcp_s=[0.1], tls_s=[0.2], http_s=[0.3], loaded_http_s=[0.05])
    assert told.foreign == pytest.approx(300)
    assert told.loaded == pytest.approx(1200)
    assert told.rpm == pytest.approx(750)


def test_without_tls_the_foreign_probes_weigh_a_half_each():
    told = responsiveness(tcp_s=[0.1], tls_s=None, http_s=[0.3], loaded_http_s=[0.05])
    assert told.foreign == pytest.approx(300)
    assert told.rpm == pytest.approx(750)
    # A handshake of no time would tell a better network than there is.
    with pytest.raises(ValueError, match="must be positive"):
        responsiveness(tcp_s=[0.1], tls_s=[0.0], http_s=[0.3], loaded_http_s=[0.05])


def test_probes_on_new_connections_count_by_the_mean_of_their_kinds_and_not_of_their_number():
    # 40 handshakes of 100 ms and one answer of 200 ms: half of 300 ms is a round trip.
    assert foreign_per_minute(tcp_s=[0.1] * 40, tls_s=None, http_s=[0.2]) == pytest.approx(60 / 0.15)
    assert foreign_per_minute(tcp_s=[0.1], tls_s=[0.3], http_s=[0.2]) == pytest.approx(60 / 0.2)


def test_no_delay_has_no_round_trips_per_minute():
    with pytest.raises(ValueError, match="must be positive"):
        round_trips_per_minute([0.0])


def test_a_series_is_stable_once_its_moving_averages_agree():
    assert is_stable([100.0] * 7)
    assert not is_stable([100.0] * 6)
    assert not is_stable([10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0])
    assert is_stable([1.0, *[100.0] * 7])
    # Averages 100, 102, 104, 106: their deviation is 2.2, and 5 % of the last are 5.3.
    assert is_stable([100.0] * 4 + [108.0] * 3)
    assert not is_stable([100.0] * 4 + [108.0] * 3, tolerance=0.02)
    with pytest.raises(ValueError, match="got 0"):
        is_stable([1.0], distance=0)


def test_the_summary_under_load_adds_streams_and_compares_delays():
    told = under_load(
        downloads_bps=[4e6, 4e6],
        uploads_bps=[3e6, 1e6],
        loaded_rtts_s=[0.2, 0.3, 0.4],
        unloaded_rtts_s=[0.1, 0.1],
        probes_sent=4,
    )
    assert (told.download_bps, told.upload_bps) == (8e6, 4e6)
    assert told.fairness == pytest.approx(0.8)
    assert told.rtt_median == 0.3
    assert told.induced == pytest.approx(0.2)
    assert told.loss == 0.25
    assert told.rtt_median <= told.rtt_p95 <= told.rtt_p99


def test_the_summary_needs_streams_and_believable_probes():
    with pytest.raises(ValueError, match="no stream"):
        under_load(loaded_rtts_s=[1.0], unloaded_rtts_s=[1.0], probes_sent=1)
    with pytest.raises(ValueError, match="of 1 probes, 2"):
        under_load(downloads_bps=[1.0], loaded_rtts_s=[1.0, 1.0], unloaded_rtts_s=[1.0], probes_sent=1)
