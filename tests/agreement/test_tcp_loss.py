"""A single Reno flow under random loss, against the formulas for its rate.

All counts are segments. Windows grow by bytes, so delayed acknowledgements do not slow them down: b = 1.
"""

from __future__ import annotations

import math

import polars as pl
import pytest

from weirlab.runs import simulate
from weirlab.scenario import loads

SEGMENT = 1448
TEXT = """\
weirlab: 1
name: loss
network:
  {{kind: path, ends: [a, b],
   link: {{rate: 10 Gbit/s, delay: {delay} ms, loss: {{kind: random, ratio: {ratio}}}}}}}
traffic:
  bulk: {{from: a, to: b, source: {{kind: bulk}}, transport: {{{transport}}}}}
run: {{duration: {seconds} s}}
"""
RENO = "kind: tcp, congestion_control: {kind: reno}"
NEWRENO = f"{RENO}, sack: false, recovery: halving, lost_retransmissions: timeout"


def segments_per_second(ratio: float, rtt_s: float, events: int, transport: str = RENO) -> float:
    """Of one flow, over a link that is never full, for as long as it takes to lose `events` windows."""
    seconds = math.ceil(events / ratio / (math.sqrt(1.5 / ratio) / rtt_s))
    scenario = loads(
        TEXT.format(delay=rtt_s * 500, ratio=ratio, seconds=seconds, transport=transport), file="loss.yaml"
    )
    records = simulate(scenario, [1, 2, 3])
    lost = records.named("drops")
    assert lost.get_column("cause_name").unique().to_list() == ["link-loss"]
    data = records["flows"].filter(pl.col("flow") == 0)
    share = data.get_column("dropped_frames").sum() / data.get_column("sent_frames").sum()
    # Four standard deviations of a binomial share.
    assert abs(share - ratio) < 4 * math.sqrt(ratio / data.get_column("sent_frames").sum())
    return float(records["connections"].get_column("acked_bytes").sum()) / SEGMENT / 3 / seconds


def mathis(ratio: float, rtt_s: float) -> float:
    """Losses at equal distances. Source: Mathis 1997, the model without timeouts."""
    return math.sqrt(1.5 / ratio) / rtt_s


def repairs(ratio: float) -> float:
    """The share of a rate that the formulas count and small windows do not carry.

    Of a window of W = sqrt(3/2p) segments half a segment is unused on average, as only whole ones leave; and
    in one of about W / 2 round trips losses are repaired at the halved window, which does not grow.
    """
    return 1.5 / math.sqrt(1.5 / ratio)


def pftk(ratio: float, rtt_s: float, timeout_s: float) -> float:
    """The approximate model. Source: PFTK 1998, with b = 1 and no limit by the receiver."""
    timeouts = timeout_s * min(1.0, 3 * math.sqrt(3 * ratio / 8)) * ratio * (1 + 32 * ratio**2)
    return 1 / (rtt_s * math.sqrt(2 * ratio / 3) + timeouts)


@pytest.mark.parametrize("rtt_s", [0.01, 0.05])
def test_where_loss_is_rare_the_mean_window_is_the_one_of_independent_losses(rtt_s: float) -> None:
    # Independent losses leave 1.3098 / sqrt(p) and not sqrt(3/2) / sqrt(p) segments.
    # Source: Ott 1996; the constant from memory.
    rate = segments_per_second(3e-4, rtt_s, 300)
    # About 900 windows, whose spread is half of their mean: two standard errors are 3.3 %.
    assert rate == pytest.approx(1.3098 / math.sqrt(3e-4) / rtt_s, rel=0.035)


@pytest.mark.parametrize("rtt_s", [0.01, 0.05])
@pytest.mark.parametrize("ratio", [3e-4, 1e-3, 3e-3, 1e-2, 3e-2])
def test_reno_keeps_to_the_square_root_formula(ratio: float, rtt_s: float) -> None:
    # Independent losses carry 7 % more than those at equal distances. 600 windows, whose spread is half of
    # their mean, are 2 % uncertain: three times that and a per cent of rounding to either side.
    share = segments_per_second(ratio, rtt_s, 200) / mathis(ratio, rtt_s)
    assert 0.93 - repairs(ratio) < share < 1.12


@pytest.mark.parametrize("ratio", [1e-3, 3e-3, 1e-2, 3e-2])
def test_without_selective_acknowledgements_the_rate_is_the_one_of_pftk(ratio: float) -> None:
    # At 3 % a fifth of the losses ends in a timeout. The formula takes what follows a loss in a window for
    # lost.
    rate = segments_per_second(ratio, 0.1, 300, NEWRENO)
    assert 0.97 - repairs(ratio) < rate / pftk(ratio, 0.1, 0.2) < 1.12


def test_selective_acknowledgements_carry_more_where_timeouts_decide() -> None:
    ratio, rtt_s = 0.03, 0.02
    rates = [segments_per_second(ratio, rtt_s, 200, transport) for transport in (NEWRENO, RENO)]
    assert pftk(ratio, rtt_s, 0.2) < rates[0] < rates[1] < 1.12 * mathis(ratio, rtt_s)


def test_losses_in_bursts_leave_more_than_as_many_independent_ones() -> None:
    """A window is halved once for a burst: the rate follows the number of bursts."""
    bursts = "{kind: gilbert-elliott, to_bad: 0.1 %, to_good: 25 %}"
    text = TEXT.format(delay=10, ratio=0.004, seconds=60, transport=RENO)
    rates = []
    for loss in ("{kind: random, ratio: 0.004}", bursts):
        records = simulate(loads(text.replace("{kind: random, ratio: 0.004}", loss)), [1, 2, 3])
        rates.append(float(records["connections"].get_column("acked_bytes").mean()))  # type: ignore[arg-type]
    assert rates[1] > 1.4 * rates[0]
