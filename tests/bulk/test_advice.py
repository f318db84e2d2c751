"""Advice: the least delay for others among what carries nearly the most, and what stands in the way."""

import dataclasses
import math

import pytest

from made_campaigns import FILE, measured
from weirlab.campaigns import NoAdviceError, advise, check_advisable, plan_of, run_campaign
from weirlab.campaigns.advice import _best
from weirlab.campaigns.measurement import Pings
from weirlab.errors import InputError
from weirlab.report.bulk import advice_text
from weirlab.scenario import loads

PATH = """weirlab: 1
name: path
testbed: {kind: sim, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 20 Mbit/s, delay: 25 ms, framing: none}}
queues: {bottleneck: {at: a->b, kind: drop-tail, limit: 100 kB}}
traffic:
  bulk:
    from: a
    to: b
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 32 KiB}
  ping: {from: a, to: b, source: {kind: ping, every: 500 ms}}
campaign:
  cycles: 4
  cycle: [{name: loaded, run: [bulk, ping], for: 10 s}, {name: unloaded, run: ping, for: 5 s}]
study: {factors: {traffic.bulk.streams: [1, 2, 4, 8, 16]}}
"""


def advice(tmp_path, text=PATH, changes=None, **options):
    return advise(run_campaign(loads(text, assign=changes or {}), tmp_path / "campaign"), **options)


def test_the_window_of_a_path_decides_how_many_streams_fill_it(tmp_path):
    found = advice(tmp_path)
    # 20 Mbit/s x 50 ms are 125 kB: four windows of 32 KiB are enough, and eight only make others wait.
    assert found.choice.streams == 4
    assert 18e6 < found.choice.goodput_bps < 20e6
    low, high = found.goodput_interval_bps
    assert low <= found.choice.goodput_bps <= high
    assert found.delay_interval_s[0] >= 0
    assert found.certainty > 0.9
    assert "bottleneck" in [limit.what for limit in found.limits]
    text = advice_text(found)
    assert "4 streams of 32 KiB" in text
    decimal = dataclasses.replace(found.choice, window_bytes=100_000)
    assert "4 streams of 100 kB" in advice_text(dataclasses.replace(found, choice=decimal))
    assert "The greatest goodput" in text or found.alternatives[0].streams == 4


def test_advice_says_where_nothing_varied_and_where_there_was_nothing_to_choose(tmp_path):
    found = advice(tmp_path, changes={"study": None, "campaign.cycles": 3})
    still = dataclasses.replace(found.choice, goodputs_bps=(1e7,) * 3, delays_s=(0.01,) * 3)
    text = advice_text(dataclasses.replace(found, choice=still, alternatives=(still,)))
    assert "All cycles gave the same" in text
    assert "No other point was measured" in text
    assert "draws of cycles make" not in text
    other = dataclasses.replace(still, point=1)
    text = advice_text(dataclasses.replace(found, choice=still, alternatives=(still, other)))
    assert "All cycles gave the same" in text
    assert "and it says nothing that all draws of cycles make the same choice." in text
    assert "The same choice in" not in text


def test_where_windows_bind_the_advice_says_so(tmp_path):
    found = advice(tmp_path, changes={"study.factors": {"traffic.bulk.streams": ["1", "2"]}})
    assert found.choice.streams == 2
    assert [limit.what for limit in found.limits] == ["window"]


LONG = {
    "network.link": {
        "rate": "200 Mbit/s",
        "delay": "40 ms",
        "framing": "none",
        "loss": {"kind": "random", "ratio": "0.05 %"},
    },
    "queues.bottleneck.limit": "2 MB",
    "traffic.bulk.transport.window": "1 MiB",
    "traffic.bulk.transport.congestion_control.kind": "cubic",
    "study.factors": {"traffic.bulk.streams": ["1", "4"]},
}


def test_transfers_that_have_not_settled_are_told_with_how_long_they_should_take(tmp_path):
    found = advice(tmp_path, changes=LONG)
    drift = found.drift
    assert drift is not None
    assert drift.low <= drift.change <= drift.high < 0
    text = advice_text(found)
    assert f"{-100 * drift.change:.0f} % slower in the second half" in text
    assert f"--for {drift.try_s:g}s" in text
    assert "Longer transfers carry less" in text
    assert "longer transfers carry more" not in text.lower()
    # Transfers of the time that is named have settled, at less.
    lasting = advice(tmp_path / "long", changes={**LONG, "campaign.cycle.0.for": f"{drift.try_s} s"})
    assert lasting.drift is None
    assert lasting.choice.goodput_bps < 0.8 * found.choice.goodput_bps
    assert "settled" not in advice_text(lasting)


def test_a_link_that_is_full_before_losses_tell_is_said_not_to_stay_full(tmp_path):
    rare = {"network.link.loss": {"kind": "random", "ratio": "0.01 %"}}
    (full,) = advice(tmp_path, changes=LONG | rare).limits
    assert full.what == "bottleneck"
    assert "the losses at random leave about " in full.evidence
    (kept,) = advice(tmp_path / "none", changes=LONG | {"network.link.loss": None}).limits
    assert "losses" not in kept.evidence


def test_a_rate_above_what_losses_leave_is_said_to_be_above(tmp_path):
    found = advice(tmp_path, changes=LONG | {"network.link.loss": {"kind": "random", "ratio": "0.02 %"}})
    (loss,) = (each.evidence for each in found.limits if each.what == "loss")
    assert "in the long run; the " in loss
    assert "are above that and not expected to last" in loss
    assert "e+" not in loss


def test_a_choice_at_the_edge_of_what_was_tried_is_said_to_be_there(tmp_path):
    windows = {"traffic.bulk.streams": ["1", "2"], "traffic.bulk.transport.window": ["16 KiB", "32 KiB"]}
    text = advice_text(advice(tmp_path, changes={"study.factors": windows}))
    assert "2 is the most streams that were tried: try more." in text
    assert "32 KiB is the largest window that was tried: try larger ones." in text
    full = advice_text(
        advice(tmp_path / "full", changes={"study.factors": {"traffic.bulk.streams": ["1", "4"]}})
    )
    assert "Limited by bottleneck" in full
    assert "that were tried" not in full


@pytest.mark.parametrize(("size", "told"), [(1 << 20, "1 MiB"), (3 << 19, "1536 KiB"), (1_000_000, "1 MB")])
def test_a_window_has_the_unit_in_which_it_was_probably_written(tmp_path, size, told):
    found = advice(tmp_path, changes={"study": None, "campaign.cycles": 3})
    choice = dataclasses.replace(found.choice, window_bytes=size)
    assert f"of {told} (reno)" in advice_text(dataclasses.replace(found, choice=choice))


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"network.link.loss": {"kind": "random", "ratio": "1 %"}}, "loss"),
        ({"queues.bottleneck.limit": "3 kB"}, "buffer"),
    ],
)
def test_losses_are_told_from_full_buffers(tmp_path, changes, limit):
    wide = {"study.factors": {"traffic.bulk.streams": ["1"]}, "traffic.bulk.transport.window": "1 MiB"}
    found = advice(tmp_path, changes={**wide, **changes})
    assert limit in [each.what for each in found.limits]


def test_a_bound_on_the_delay_of_others_is_kept_or_refused(tmp_path):
    assert advice(tmp_path, most_delay_s=0.003).choice.delay_s <= 0.003
    campaign = run_campaign(loads(PATH), tmp_path / "again")
    with pytest.raises(NoAdviceError, match="so little delay as 0 ms: the least median dRTT is"):
        advise(campaign, most_delay_s=0.0)


def test_without_the_condition_on_goodput_the_smallest_load_wins():
    goodputs, delays = [[1e6] * 3, [9e6] * 3, [1e7] * 3], [[0.0] * 3, [0.01] * 3, [0.1] * 3]
    assert _best(goodputs, delays, [1, 8, 16], 0.9) == 1
    assert _best(goodputs, delays, [1, 8, 16], 0.01) == 0


def test_of_choices_that_nothing_tells_apart_the_one_with_fewer_streams_is_taken():
    assert _best([[1e6] * 3, [1e6] * 3], [[0.0] * 3, [0.0] * 3], [8, 2], 0.9) == 1


def test_advice_needs_cycles_and_unloaded_pings_which_the_plan_tells():
    check_advisable(plan_of(loads(FILE)))
    with pytest.raises(InputError, match="needs 3 cycles or more"):
        check_advisable(plan_of(loads(FILE.replace("cycles: 3", "cycles: 2"))))
    alone = FILE.replace(", {name: unloaded, run: ping, for: 10 s}", "")
    with pytest.raises(InputError, match="no point has a dRTT"):
        check_advisable(plan_of(loads(alone)))


def test_pings_that_all_fail_are_a_result_and_not_a_wrong_campaign(tmp_path):
    def silent(what, path, seed):
        return dataclasses.replace(measured(what, path, seed), pings=Pings(4, (), None, None))

    with pytest.raises(NoAdviceError, match="no point has a goodput and a dRTT"):
        advise(run_campaign(loads(FILE), tmp_path, measure=silent))


def test_a_cycle_without_answers_leaves_the_advice_to_the_others(tmp_path):
    campaign = run_campaign(loads(FILE), tmp_path, measure=measured)

    def silent(kept):
        if kept.place.cycle != 1:
            return kept
        told = dataclasses.replace(kept.measurement, pings=Pings(4, (), None, None))
        return dataclasses.replace(kept, measurement=told)

    found = advise(dataclasses.replace(campaign, kept=tuple(silent(kept) for kept in campaign.kept)))
    assert found.choice.streams == 2
    assert math.isnan(found.choice.delays_s[1])
    assert found.delay_interval_s == pytest.approx((0.002, 0.002))
    # One draw in 27 holds the silent cycle alone, and tells of no choice.
    assert 0.9 < found.certainty < 1.0


@pytest.mark.parametrize(
    "bed", ["{kind: netns, path: emulator}", "{kind: sim, path: emulator, window_factor: 1.2}"]
)
@pytest.mark.parametrize(("flight_bytes", "limited"), [(62_000, False), (72_000, True)])
def test_a_window_is_judged_by_what_is_granted_of_it(tmp_path, bed, flight_bytes, limited):
    text = FILE.replace("{kind: netns, path: emulator}", bed).replace("10 Mbit/s", "1 Gbit/s")
    text = text.replace(
        "congestion_control: {kind: reno}", "congestion_control: {kind: reno}, window: 64 KiB"
    )

    def under_way(what, path, seed):
        found = measured(what, path, seed)
        if found.transfer is None:
            return found
        # Of 8 s with a round trip of 10 ms each.
        streams = tuple(
            dataclasses.replace(each, received_bytes=800 * flight_bytes) for each in found.transfer.streams
        )
        return dataclasses.replace(found, transfer=dataclasses.replace(found.transfer, streams=streams))

    found = advise(run_campaign(loads(text), tmp_path, measure=under_way))
    windows = [limit.evidence for limit in found.limits if limit.what == "window"]
    assert windows == (
        ["a stream has 72.0 kB under way, of 78.6 kB granted (65.5 kB requested)"] if limited else []
    )


def test_a_cpu_that_is_busy_is_named(tmp_path):
    def busy(what, path, seed):
        found = measured(what, path, seed)
        if found.transfer is None:
            return found
        cpu = {"total": 97.0, "user": 7.0, "system": 90.0}
        return dataclasses.replace(
            found, transfer=dataclasses.replace(found.transfer, sender_cpu_percent=cpu)
        )

    found = advise(run_campaign(loads(FILE), tmp_path, measure=busy))
    assert "cpu" in [limit.what for limit in found.limits]
    assert not math.isnan(found.certainty)
