"""Who works on which CPU, and where sockets keep what waits; no privilege is needed."""

from __future__ import annotations

import pytest

from weirlab.errors import MissingCapability
from weirlab.testbed.linux_router import Placement


def test_on_one_cpu_the_router_works_for_the_sender():
    assert Placement.on([5]) == Placement(sender=5, router=None, receiver=5)


def test_on_two_cpus_the_sender_has_one_for_itself():
    assert Placement.on([3, 1]) == Placement(sender=3, router=1, receiver=1)


@pytest.mark.parametrize("cpus", [[0, 1, 2], [7, 2, 4, 9], range(64)])
def test_on_three_cpus_or_more_nobody_shares(cpus):
    placement = Placement.on(list(cpus))
    chosen = {placement.sender, placement.router, placement.receiver}
    assert len(chosen) == 3
    assert chosen <= set(cpus)


def test_without_a_cpu_nothing_can_be_placed():
    with pytest.raises(MissingCapability):
        Placement.on([])
