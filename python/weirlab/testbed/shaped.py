"""A Linux router whose rate is known: a token bucket on the way out of it. It calibrates the tester.

What a search finds of it must be the rate of the bucket, whatever the machine can do beyond that. What is
wrong then is wrong with every other router of this machine, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.errors import MissingCapability
from weirlab.testbed.linux_router import LinuxRouter

if TYPE_CHECKING:
    from pyroute2 import IPRoute


RATE_BPS = 24_000_000
"""Rate of the bucket, in bits of frames without their FCS, which Linux does not count."""
BURST_BYTES = 10_000
"""Depth of the bucket: what passes at once after a pause. Holds the largest frame."""
QUEUE_BYTES = 10_000
"""What waits for tokens. Bucket and queue together let a trial pass at a little more than the rate: by 0.33 %
in one of 2 s."""
FCS_BYTES = 4


def known_rate_fps(frame_size_bytes: float) -> float:
    """Frames/s that the router lets through in each direction, of frames of this size with FCS [B]."""
    return RATE_BPS / (8.0 * (frame_size_bytes - FCS_BYTES))


class ShapedRouter(LinuxRouter):
    """A Linux router that lets `known_rate_fps` through in each direction. An ordinary user may have it: its
    buckets lose what is too much on any CPU."""

    needs_cpu = False

    def __init__(self, router_cpu: int | None) -> None:
        """Build it. Raises MissingCapability when the kernel lacks the token bucket, or what a Linux router
        needs."""
        super().__init__(router_cpu)
        try:
            self.namespaces["router"].inside(_shape)
        except BaseException:
            self.close()
            raise


def _shape() -> None:
    """In the namespace of the router."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with IPRoute() as route:
        for end in ("sender", "receiver"):
            try:
                _add_bucket(route, end)
            except NetlinkError as error:
                raise MissingCapability(
                    f"'router: shaped' needs the token bucket of the kernel (CONFIG_NET_SCH_TBF): {error}"
                ) from error


def _add_bucket(route: IPRoute, interface: str) -> None:
    (index,) = route.link_lookup(ifname=interface)
    route.tc("add", "tbf", index, handle="1:", rate=f"{RATE_BPS}bit", burst=BURST_BYTES, limit=QUEUE_BYTES)
