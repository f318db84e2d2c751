"""RoCE at scale: the livelock of go-back-0, and shares of a buffer."""

from __future__ import annotations

from collections.abc import Iterator

from weirlab.reproductions.fabric.case import Case


def cases() -> Iterator[Case]:
    """Both recoveries, and two shares."""
    yield Case("go-back-0", "livelock")
    yield Case("go-back-n", "livelock", {"traffic.writes.transport.recovery": "go-back-n"})
    for part in (16, 64):
        yield Case(f"alpha 1/{part}", "alpha", {"buffers.all.ingress.rdma.alpha": 1 / part}, seeds=2)
