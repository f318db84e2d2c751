"""RoCE at scale: the livelock of go-back-0, and shares of a buffer."""

from __future__ import annotations

from collections.abc import Iterator

from weirlab.reproductions.fabric.case import Case

_LIVELOCK = """\
weirlab: 1
name: livelock
network:
  kind: graph
  nodes: {a: {kind: host}, b: {kind: host}, switch: {kind: switch}}
  links:
    near: {join: [a, switch], rate: 40 Gbit/s, delay: 500 ns}
    far: {join: [switch, b], rate: 40 Gbit/s, delay: 500 ns, loss: {kind: random, ratio: 0.00390625}}
traffic:
  writes:
    from: a
    to: b
    source: {kind: messages, sizes: {kind: fixed, size: 4 MB}, every: 850 us, gaps: {kind: constant}}
    transport:
      kind: rdma
      congestion_control: line-rate
      recovery: go-back-0
      window: 100 kB
      timeout: 100 us
run: {duration: 20 ms, seed: 1}
measure:
  unfinished: {kind: unfinished-messages, of: writes}
  utilisation: {kind: utilisation, of: a->switch}
"""

_ALPHA = """\
weirlab: 1
name: alpha
network:
  kind: xgft
  children: [32, 32]
  parents: [1, 8]
  link: {rate: 40 Gbit/s, delay: 1 us}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: unlimited}}
buffers:
  all:
    at: "@switches"
    size: 12 MB
    ingress: {rdma: {classes: [0], alpha: 0.0625, reserved: 4 kB, lossless: {}}}
    flow_control: {stops: link}
traffic:
  answers:
    from: host-[1-1023]
    to: host-0
    source: {kind: messages, sizes: {kind: fixed, size: 2 kB}, every: 1 s, gaps: {kind: constant}}
    transport: {kind: rdma, congestion_control: line-rate}
run: {duration: 1 ms, seed: 1}
measure:
  held: {kind: pause-fraction, of: "@switches->*"}
"""


def cases() -> Iterator[Case]:
    """Both recoveries, and two shares."""
    yield Case("go-back-0", _LIVELOCK)
    yield Case("go-back-n", _LIVELOCK, {"traffic.writes.transport.recovery": "go-back-n"})
    for part in (16, 64):
        yield Case(f"alpha 1/{part}", _ALPHA, {"buffers.all.ingress.rdma.alpha": 1 / part}, seeds=2)
