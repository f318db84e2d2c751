"""Which losses of a trial the rest of the machine explains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weirlab.testbed.account import CpuTime, MachineAccount
from weirlab.testbed.disturbance import MARGIN_S, TrialAccount
from weirlab.testbed.linux_router import Placement

TWO = Placement(sender=1, router=0, receiver=0)
QUIET = TrialAccount(
    machine=MachineAccount(
        duration_s=1.0,
        cpus={0: CpuTime(programs_s=0.2, interrupts_s=0.7, idle_s=0.1), 1: CpuTime(programs_s=1.0)},
        softirq_wait_s={0: 0.6, 1: 0.0},
        softirq_ran_s={0: 0.1, 1: 0.0},
    ),
    placement=TWO,
    load_fps=300e3,
    queue_losses=1_000_000,
    late_frames=0,
    sender_waited_s=0.001,
    receiver_waited_s=0.2,
    receiver_on_cpu_s=0.8,
)


def with_router_cpu(account: TrialAccount, **changes: float) -> TrialAccount:
    cpus = {**account.machine.cpus, 0: replace(account.machine.cpus[0], **changes)}
    return replace(account, machine=replace(account.machine, cpus=cpus))


def test_a_router_that_waits_for_the_testers_own_receiver_is_not_disturbed() -> None:
    """It waited 600 ms, all of which the receiver ran that shares its CPU."""
    assert QUIET.others == []
    assert QUIET.disturbed_frames == 0
    assert QUIET.words == ""
    assert QUIET.router_softirq_s == pytest.approx(0.7)


def test_time_that_others_ran_while_the_router_waited_explains_what_came_in_it() -> None:
    busy = replace(with_router_cpu(QUIET, idle_s=0.0), receiver_on_cpu_s=0.5)
    assert busy.disturbed_frames == round(300e3 * (1.0 - 0.5 - 0.1 - MARGIN_S))
    assert busy.words == "the router waited 380 ms for its CPU, which others used"


def test_others_that_ran_while_the_router_had_nothing_to_do_explain_nothing() -> None:
    machine = replace(QUIET.machine, softirq_wait_s={0: 0.001})
    busy = replace(with_router_cpu(replace(QUIET, machine=machine), idle_s=0.0), receiver_on_cpu_s=0.1)
    assert busy.disturbed_frames == 300


def test_steal_of_the_routers_cpu_explains_losses_and_that_of_another_does_not() -> None:
    assert with_router_cpu(QUIET, idle_s=0.05, stolen_s=0.05).disturbed_frames == 15_000
    cpus = {**QUIET.machine.cpus, 1: CpuTime(programs_s=0.9, stolen_s=0.1)}
    assert replace(QUIET, machine=replace(QUIET.machine, cpus=cpus)).disturbed_frames == 0


def test_frames_that_left_in_bursts_are_explained_by_a_sender_that_was_kept_from_its_cpu() -> None:
    late = replace(QUIET, late_frames=700)
    assert late.disturbed_frames == 700
    assert late.words == "700 frames left in bursts, as the sender was kept from its CPU for 1 ms"


def test_a_sender_that_is_late_by_itself_is_not_disturbed() -> None:
    """Of a load that is near its limit nearly all frames are late; it waited for nobody."""
    assert replace(QUIET, late_frames=250_000, sender_waited_s=0.0).disturbed_frames == 0
    assert replace(QUIET, late_frames=250_000, sender_waited_s=0.002).disturbed_frames == 1800


def test_where_the_routers_wait_cannot_be_seen_much_work_of_others_counts_as_one() -> None:
    blind = replace(QUIET, machine=replace(QUIET.machine, softirq_wait_s={}, softirq_ran_s={}))
    assert blind.disturbed_frames == round(300e3 * (0.1 - MARGIN_S))
    little = with_router_cpu(blind, idle_s=0.15)
    assert little.disturbed_frames == 0


def test_a_router_on_the_senders_cpu_never_waits_for_others() -> None:
    one = replace(QUIET, placement=Placement(sender=0, router=None, receiver=0), receiver_on_cpu_s=0.0)
    assert one.router_cpu == 0
    assert one.disturbed_frames == 0


def test_a_kernel_without_accounts_disturbs_nothing() -> None:
    bare = replace(QUIET, machine=MachineAccount(duration_s=1.0), receiver_on_cpu_s=None)
    assert bare.disturbed_frames == 0
    assert bare.router_softirq_s is None


def test_what_was_not_lost_in_the_routers_queues_was_not_lost_for_want_of_its_cpu() -> None:
    """A shaper or a filter lost it."""
    stolen = with_router_cpu(QUIET, idle_s=0.05, stolen_s=0.05)
    assert replace(stolen, queue_losses=0).disturbed_frames == 0
    assert replace(stolen, queue_losses=100, late_frames=50).disturbed_frames == 150
