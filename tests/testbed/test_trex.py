"""Trials on a TRex server that is well, and on one that is not. The server is a fake: see `fake_trex`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from weirlab.errors import ImpossibleTrial, InputError, MissingCapability, TestbedError, TrialTimeout
from weirlab.scenario.traffic import IMIX
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.trex import FrameMix, TrexSettings, TrexTestbed

from .fake_trex import FakeTrex
from .fake_trex_model import Device, FakeClock, Faults
from .test_trex_messages import SQUARES


@contextlib.contextmanager
def bed(
    device: Device | None = None, faults: Faults | None = None, server_ports: int = 2, **settings: Any
) -> Iterator[tuple[TrexTestbed, FakeTrex]]:
    """A testbed on a fake server; both live in the same time, which passes while they
    sleep."""
    clock = FakeClock()
    with FakeTrex(device=device, faults=faults, clock=clock, ports=server_ports, hdrh=SQUARES) as server:
        settings = {"timeout_s": 30.0, **settings}
        testbed = TrexTestbed(
            TrexSettings(server="127.0.0.1", rpc_port=server.rpc_port, **settings), clock=clock
        )
        try:
            yield testbed, server
        finally:
            testbed.close()


def spec(load_fps: float = 1e6, duration_s: float = 1.0, **more: Any) -> TrialSpec:
    return TrialSpec(
        index=0,
        intended_load_fps=load_fps,
        duration_s=duration_s,
        **{"frame_size_bytes": 64, "directions": 2, **more},
    )


# A server that is well


def test_a_trial_below_the_capacity_loses_nothing() -> None:
    with bed(Device(capacity_fps=2e6)) as (testbed, _):
        trial = testbed.trial(spec(1e6))
    assert (trial.intended_frames, trial.sent_frames, trial.received_frames) == (1_000_000,) * 3
    assert trial.offered_load_fps == 1e6
    assert not trial.stopped_early


def test_a_trial_above_the_capacity_loses_what_is_above() -> None:
    with bed(Device(capacity_fps=2e6)) as (testbed, _):
        trial = testbed.trial(spec(2.5e6))
    assert trial.loss_ratio == pytest.approx(0.2, abs=1e-5)


def test_each_direction_has_its_own_result() -> None:
    with bed(Device(capacity_fps=2e6)) as (testbed, _):
        there, back = testbed.trial(spec(2.5e6)).per_direction
        (one_way,) = testbed.trial(spec(1e6, directions=1)).per_direction
    assert (there.name, back.name) == ("port-0-1", "port-1-0")
    assert there.sent_frames == back.sent_frames == 1_250_000
    assert there.loss_ratio == pytest.approx(0.2, abs=1e-5)
    assert (one_way.name, one_way.sent_frames) == ("port-0-1", 1_000_000)


def test_four_ports_carry_two_pairs_both_ways() -> None:
    with bed(server_ports=4, ports=(0, 1, 2, 3)) as (testbed, _):
        trial = testbed.trial(spec(4e6))
    counts = [(each.name, each.sent_frames) for each in trial.per_direction]
    assert counts == [(f"port-{lane}", 1_000_000) for lane in ("0-1", "1-0", "2-3", "3-2")]


def test_a_trial_takes_its_duration_and_the_waits() -> None:
    with bed(settle_s=0.2, stable_s=0.4) as (testbed, _):
        trial = testbed.trial(spec(duration_s=2.0))
    assert 2.6 <= trial.effective_duration_s < 4.5


def test_only_the_cores_that_were_named_send() -> None:
    with bed(cores=(0, 2)) as (testbed, server):
        testbed.trial(spec())
    with bed() as (testbed, other):
        testbed.trial(spec())
    masks = [[p.get("core_mask") for m, p in s.calls if m == "start_traffic"] for s in (server, other)]
    assert masks == [[0b101, 0b101], [None, None]]


def test_the_ports_are_promiscuous_meanwhile_and_given_back_afterwards() -> None:
    with bed() as (testbed, server):
        testbed.trial(spec())
        assert all(port.promiscuous and port.owner.startswith("weirlab") for port in server.ports)
        testbed.close()
        assert not any(port.promiscuous or port.owner or port.streams for port in server.ports)


def test_closing_twice_does_no_harm() -> None:
    with bed() as (testbed, _):
        testbed.close()
        testbed.close()


def test_a_mix_of_sizes_is_one_trial() -> None:
    with bed(mix=FrameMix(dict(IMIX))) as (testbed, server):
        trial = testbed.trial(spec(480_000.0, frame_size_bytes=354))
    assert trial.sent_frames == pytest.approx(480_000, abs=6)
    assert [len(streams) for streams in server.starts[-1].values()] == [3, 3]


def test_frames_are_counted_by_their_packet_group_on_request() -> None:
    with bed(Device(capacity_fps=2e6), Faults(background_fps=1e5), count="groups") as (testbed, _):
        trial = testbed.trial(spec(2.5e6))
    assert trial.sent_frames == 2_500_000
    assert trial.loss_ratio == pytest.approx(0.2, abs=1e-5)


def test_delays_come_from_frames_that_measure_them() -> None:
    with bed(latency_fps=1000.0) as (testbed, server):
        trial = testbed.trial(spec(1e6))
        small = testbed.trial(spec(1500.0, directions=1))
    assert trial.latency_s["p50"] == pytest.approx(2511e-6)
    assert trial.sent_frames == 1_000_000
    assert server.starts[0] is not None
    assert small.latency_s == {}


# Ramp-up


@pytest.mark.parametrize("count", ["ports", "groups"])
def test_the_frames_of_a_ramp_do_not_count(count: str) -> None:
    with bed(ramp_up_s=2.0, count=count) as (testbed, server):
        trial = testbed.trial(spec(1e6))
        steps = [
            [stream["mode"]["type"] for stream in streams[0].values()]
            for streams in server.starts
            if streams[0]
        ]
    assert trial.sent_frames == pytest.approx(1_000_000, rel=1e-4)
    assert trial.effective_duration_s > 3.0
    assert steps[0][:10] == ["single_burst"] * 10
    assert steps[-1][-1] == "continuous"


def test_a_ramp_runs_into_its_load_without_a_gap_where_frames_can_be_told_apart() -> None:
    with bed(ramp_up_s=2.0, count="groups") as (testbed, server):
        testbed.trial(spec(1e6))
    starts = [
        params for method, params in server.calls if method == "start_traffic" and params["port_id"] == 0
    ]
    assert [params["duration"] for params in starts] == [pytest.approx(3.0, rel=1e-3)]


# Early stop


def test_a_trial_ends_when_its_outcome_is_decided() -> None:
    with bed(Device(capacity_fps=2e6)) as (testbed, _):
        trial = testbed.trial(spec(2.5e6, duration_s=10.0, loss_budget=0.005))
    assert trial.stopped_early
    assert trial.effective_duration_s < 5.0
    assert trial.loss_ratio == pytest.approx(0.2, abs=0.01)
    assert trial.received_frames < trial.sent_frames - 0.005 * trial.spec.intended_frames
    assert trial.unsent_ratio < 0.005


def test_frames_that_a_port_of_the_tester_had_no_room_for_are_lost_in_doubt() -> None:
    with bed(Device(capacity_fps=2e6), faults=Faults(receive_error_ratio=0.01)) as (testbed, _):
        trial = testbed.trial(spec(1e6))
    lost = trial.sent_frames - trial.received_frames
    assert trial.doubtful_frames == trial.facts["receive_errors"] == lost == 10_000


def test_a_trial_within_its_budget_runs_to_the_end() -> None:
    with bed(Device(capacity_fps=2e6, loss_ratio=0.004)) as (testbed, _):
        trial = testbed.trial(spec(1.5e6, loss_budget=0.005))
    assert not trial.stopped_early
    assert trial.loss_ratio == pytest.approx(0.004, abs=1e-4)


def test_frames_that_are_still_under_way_are_not_lost() -> None:
    with bed(Device(delay_s=0.4), settle_s=0.5) as (testbed, server):
        trial = testbed.trial(spec(1e6, duration_s=3.0, loss_budget=0.0))
    assert not trial.stopped_early
    assert trial.loss_ratio == 0.0
    assert trial.facts["live_counters"] == "trusted"
    assert sum(method == "start_traffic" for method, _ in server.calls) == 2


def test_a_stop_by_counters_that_lag_is_noticed_and_the_load_sent_again_to_its_end() -> None:
    with bed(faults=Faults(received_late_s=0.6), settle_s=0.1) as (testbed, server):
        first = testbed.trial(spec(1e6, duration_s=3.0, loss_budget=0.001))
        starts = sum(method == "start_traffic" for method, _ in server.calls)
        second = testbed.trial(spec(1e6, duration_s=3.0, loss_budget=0.001))
    assert starts == 4
    for trial in (first, second):
        assert (trial.stopped_early, trial.loss_ratio) == (False, 0.0)
        assert trial.facts["live_counters"] == "late: no early stop"
    assert first.effective_duration_s > second.effective_duration_s > 3.0


# Counters that misbehave


@pytest.mark.parametrize(
    "faults", [Faults(counters_late_s=0.5), Faults(received_late_s=0.7), Faults(counters_every_s=0.8)]
)
def test_late_counters_are_waited_for(faults: Faults) -> None:
    with bed(Device(capacity_fps=2e6), faults) as (testbed, _):
        lossless = testbed.trial(spec(1.9e6, duration_s=4.0))
        lossy = testbed.trial(spec(2.5e6, duration_s=4.0))
    assert lossless.loss_ratio == 0.0
    assert lossy.loss_ratio == pytest.approx(0.2, abs=1e-5)


def test_frames_later_than_the_time_to_settle_end_all_belief() -> None:
    with bed(Device(delay_s=3.0)) as (testbed, server):
        assert testbed.trial(spec(duration_s=0.5)).loss_ratio == 1.0
        server.clock.sleep(4.0)
        for _ in range(2):
            with pytest.raises(
                TestbedError, match=r"500000 frames arrived after their trial had been counted"
            ):
                testbed.trial(spec())


def test_an_interrupt_leaves_no_traffic_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with bed() as (testbed, server):
        sleep = server.clock.sleep

        def interrupted(seconds: float) -> None:
            if server.ports[0].state == "TX":
                raise KeyboardInterrupt
            sleep(seconds)

        monkeypatch.setattr(server.clock, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            testbed.trial(spec(duration_s=1000.0))
        assert [port.state for port in server.ports] == ["STREAMS", "STREAMS"]
        monkeypatch.setattr(server.clock, "sleep", sleep)
        assert testbed.trial(spec()).loss_ratio == 0.0


def test_a_few_strays_do_not_count() -> None:
    with bed(Device(capacity_fps=2e6), Faults(extra_frames=3)) as (testbed, _):
        trial = testbed.trial(spec(1e6))
    assert trial.received_frames == trial.sent_frames
    assert trial.facts["stray_frames"] == 6


def test_more_frames_than_were_sent_are_no_result() -> None:
    with (
        bed(faults=Faults(extra_frames=11)) as (testbed, _),
        pytest.raises(
            ImpossibleTrial, match=r"received 500011 frames of 500000 .* something else sends there"
        ),
    ):
        testbed.trial(spec(1e6))


def test_ports_that_never_come_to_rest_give_no_result() -> None:
    with (
        bed(faults=Faults(background_fps=1000.0)) as (testbed, _),
        pytest.raises(TestbedError, match="still move"),
    ):
        testbed.trial(spec())


def test_counters_that_go_back_give_no_result() -> None:
    with (
        bed(faults=Faults(counters_go_back=True)) as (testbed, _),
        pytest.raises(TestbedError, match="went back"),
    ):
        testbed.trial(spec(5e5))


def test_unsent_frames_stand_apart_and_are_no_loss_of_the_device() -> None:
    with bed(faults=Faults(unsent_ratio=0.1)) as (testbed, _):
        trial = testbed.trial(spec(1e6))
    assert trial.unsent_ratio == pytest.approx(0.1, abs=1e-4)
    assert trial.loss_ratio == 0.0
    assert trial.offered_load_fps == pytest.approx(9e5, rel=1e-4)


def test_a_port_that_ends_late_still_ends() -> None:
    with bed(faults=Faults(ends_late_s=0.5)) as (testbed, _):
        trial = testbed.trial(spec(1e6))
    assert trial.sent_frames == pytest.approx(1.5e6, rel=1e-3)
    assert trial.sent_frames == trial.received_frames


# Servers that do not answer, or not well


def test_a_lost_answer_is_asked_for_again() -> None:
    with bed(faults=Faults(silent_to="get_port_stats", silent_times=2), timeout_s=1.0) as (testbed, _):
        trial = testbed.trial(spec())
    assert trial.loss_ratio == 0.0


def test_a_start_that_is_not_answered_is_not_repeated_but_given_up() -> None:
    with bed(faults=Faults(silent_to="start_traffic", silent_times=1), timeout_s=1.0) as (testbed, server):
        with pytest.raises(TrialTimeout, match=r"did not answer start_traffic within 1 s$"):
            testbed.trial(spec())
        assert testbed.trial(spec()).loss_ratio == 0.0
        assert all(port.state != "TX" for port in server.ports)


def test_a_connection_that_dies_in_a_trial_is_a_timeout_and_the_traffic_ends_by_itself() -> None:
    with bed(faults=Faults(dies_after_start_s=0.5), timeout_s=1.0, retries=1) as (testbed, server):
        with pytest.raises(TrialTimeout, match=r"did not answer get_port_stats within 1 s, asked 2 times"):
            testbed.trial(spec(duration_s=2.0))
        server.faults.dies_after_start_s = 0.0
        trial = testbed.trial(spec())
    durations = [params["duration"] for method, params in server.calls if method == "start_traffic"]
    assert durations[:2] == [2.0, 2.0]
    assert trial.loss_ratio == 0.0


def test_nobody_there_is_told_within_the_timeout() -> None:
    says = r"TRex at tcp://127.0.0.1:9 did not answer api_sync_v2 within 0\.1 s, asked 2 times"
    with pytest.raises(TrialTimeout, match=says):
        TrexTestbed(TrexSettings(server="127.0.0.1", rpc_port=9, timeout_s=0.1, retries=1))


def test_a_slow_server_is_waited_for() -> None:
    with bed(faults=Faults(answer_after_s=0.03)) as (testbed, _):
        assert testbed.trial(spec(duration_s=10.0)).loss_ratio == 0.0


def test_a_server_that_is_being_configured_is_waited_for() -> None:
    with bed(faults=Faults(try_again=2)) as (testbed, _):
        assert testbed.trial(spec()).loss_ratio == 0.0


@pytest.mark.parametrize("replies_as_list", [False, True])
def test_both_forms_of_single_answers_are_understood(replies_as_list: bool) -> None:
    with bed(faults=Faults(replies_as_list=replies_as_list)) as (testbed, _):
        assert testbed.trial(spec()).loss_ratio == 0.0


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        (Faults(garbage_to="get_port_stats"), "not JSON"),
        (Faults(garbage_to="get_port_stats", garbage=b'{"jsonrpc": "2.0", "id": 1}'), "answered messages"),
        (Faults(wrong_id=True), "answered messages"),
    ],
)
def test_garbage_gives_no_result(faults: Faults, says: str) -> None:
    with pytest.raises(TestbedError, match=says), bed(faults=faults) as (testbed, _):
        testbed.trial(spec())


_ODD: tuple[Any, ...] = (None, [], {}, "text", 3, {"ports": [{}]}, {"ports": 3})
_ODD_OF_ONE = {
    "get_port_status": ({"state": "IDLE", "attr": []}, {"state": "IDLE", "attr": {"link": 1}}),
    "get_global_stats": ({"m_total_queue_full": None},),
    "get_pgid_stats": ({"flow_stats": {"1000": 3}}, {"flow_stats": []}),
}


@pytest.mark.parametrize(
    "method",
    ["api_sync_v2", "get_version", "get_system_info", "get_port_stats", *_ODD_OF_ONE],
)
def test_answers_of_another_form_give_no_result_and_name_their_question(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An object without a version or without counts of full queues is no fault.
    harmless = [odd for odd in _ODD if isinstance(odd, dict)] if method in _MAY_BE_EMPTY else []
    for odd in (*_ODD, *_ODD_OF_ONE.get(method, ())):
        if odd in harmless:
            continue
        monkeypatch.setattr(FakeTrex, f"rpc_{method}", lambda _self, _params, odd=odd: odd)
        with (
            pytest.raises(TestbedError, match=f"TRex answered {method}"),
            bed(count="groups") as (testbed, _),
        ):
            testbed.trial(spec())


_MAY_BE_EMPTY = ("get_version", "get_global_stats")


def test_delays_of_another_form_give_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTrex, "rpc_get_pgid_stats", lambda _self, _params: {"latency": {"3000": []}})
    with (
        pytest.raises(TestbedError, match="TRex answered get_pgid_stats"),
        bed(latency_fps=1000.0) as (testbed, _),
    ):
        testbed.trial(spec())


# Servers that are not the right one


@pytest.mark.parametrize("version", [(4, 3), (4, 9), (5, 0), (5, 1)])
def test_known_versions_are_spoken(version: tuple[int, int]) -> None:
    with bed(faults=Faults(api_version=version)) as (testbed, _):
        assert testbed.trial(spec()).loss_ratio == 0.0


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        (Faults(api_version=(6, 0)), r"version 4\.x and 5\.x: .*newer client version is required.*'6\.0'"),
        (Faults(api_version=(3, 0)), "too new to be supported"),
        (Faults(mode="ASTF"), "RPC configuration mismatch"),
        (Faults(knows_api_sync_v2=False), "older than v2.31"),
        (Faults(owner="alice"), r"already taken by 'alice'; .*force: true"),
        (Faults(link_up=False), "link of port 0 .* is down"),
        (Faults(service=True), "service mode"),
    ],
)
def test_a_server_that_cannot_serve_is_told_at_once(faults: Faults, says: str) -> None:
    with pytest.raises(TestbedError, match=says), bed(faults=faults):
        pass


def test_ports_are_taken_by_force_only_on_request() -> None:
    with bed(faults=Faults(owner="alice"), force=True) as (testbed, server):
        assert testbed.trial(spec()).loss_ratio == 0.0
        assert [params["force"] for method, params in server.calls if method == "acquire"] == [True, True]


def test_ports_that_were_taken_are_given_back_when_others_cannot_be_had() -> None:
    with FakeTrex(ports=2) as server:
        with pytest.raises(InputError):
            TrexTestbed(TrexSettings(server="127.0.0.1", rpc_port=server.rpc_port, ports=(0, 2)))
        assert not server.ports[0].owner


def test_a_port_that_the_server_has_not_is_wrong_input() -> None:
    with pytest.raises(InputError, match=r"has the ports \[0, 1\], not 2"), bed(ports=(0, 2)):
        pass


def test_a_load_above_the_line_rate_is_wrong_input() -> None:
    with bed() as (testbed, server):
        assert testbed.trial(spec(2 * 14.88e6)).loss_ratio == 0.0
        with pytest.raises(InputError, match=r"10 Gbit/s carry 1\.4881e\+07 frames/s of 64 B"):
            testbed.trial(spec(2 * 14.89e6))
        assert all(port.state != "TX" for port in server.ports)


def test_a_server_without_what_was_asked_for_is_wrong_input() -> None:
    with FakeTrex(capabilities=()) as server:
        for settings, says in ({"count": "groups"}, "flow_stats"), ({"latency_fps": 100.0}, "latency"):
            with pytest.raises(InputError, match=f"has no {says}"):
                TrexTestbed(TrexSettings(server="127.0.0.1", rpc_port=server.rpc_port, **settings))


def test_an_address_that_is_none_is_wrong_input() -> None:
    with pytest.raises(InputError, match="is not an address"):
        TrexTestbed(TrexSettings(server="no such//host"))


def test_without_pyzmq_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(MissingCapability, match=r"pip install -e '\.\[trex\]'"):
        TrexTestbed(TrexSettings(server="127.0.0.1"))
