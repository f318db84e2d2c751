"""Legal scenarios of every shape that the simulator runs, as plain data."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from weirlab.fields.values import per_cent
from weirlab.units import FrameRate, Frames, Rate, Size, Span

Plain = dict[str, Any]

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)


def spans(low_ps: int = 0, high_ps: int = 10**12) -> st.SearchStrategy[str]:
    return st.integers(low_ps, high_ps).map(lambda ps: str(Span(ps)))


RATES = st.integers(10**6, 10**11).map(lambda bps: str(Rate(bps)))
SIZES = st.integers(64, 9000).map(lambda size: str(Size(size)))
SHARES = st.floats(0.001, 1).map(per_cent)
LIMITS = st.one_of(
    st.just("unlimited"),
    st.integers(0, 10**7).map(lambda count: str(Frames(count))),
    st.integers(0, 10**9).map(lambda size: str(Size(size))),
)


def optional(required: Plain, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Plain]:
    return st.fixed_dictionaries(
        {
            name: value if isinstance(value, st.SearchStrategy) else st.just(value)
            for name, value in required.items()
        },
        optional=fields,
    )


LINKS = optional({"rate": RATES}, delay=spans(), framing=st.sampled_from(["ethernet", "none"]))
SWITCHES = optional({}, latency=spans(0, 10**9))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Plain, list[str]]:
    """Hosts by group, a switch for all of them, and links by group."""
    groups = draw(
        st.dictionaries(NAMES.map("h{}".format), st.none() | st.integers(1, 4), min_size=2, max_size=3)
    )
    nodes: Plain = {
        name: {"kind": "host"} if count is None else {"kind": "host", "count": count}
        for name, count in groups.items()
    }
    hosts = [
        name if count is None else f"{name}-{i}" for name, count in groups.items() for i in range(count or 1)
    ]
    nodes["s"] = draw(optional({"kind": "switch"}, latency=spans(0, 10**9)))
    links = {
        f"to-{name}": draw(
            optional({"join": [name if count is None else f"{name}-*", "s"]}, rate=RATES, delay=spans())
        )
        for name, count in groups.items()
    }
    network = draw(
        optional({"kind": "graph", "link": LINKS, "nodes": nodes, "links": links}, switch=SWITCHES)
    )
    return network, hosts


@st.composite
def networks(draw: st.DrawFn) -> tuple[Plain, list[str]]:
    """A network and the names of its hosts."""
    match draw(st.sampled_from(["star", "dumbbell", "fat-tree", "xgft", "graph", "path"])):
        case "star":
            hosts = draw(st.integers(2, 6))
            network = optional({"kind": "star", "hosts": hosts, "link": LINKS}, switch=SWITCHES)
            return draw(network), [f"host-{i}" for i in range(hosts)]
        case "dumbbell":
            pairs = draw(st.integers(1, 3))
            shape = {"kind": "dumbbell", "pairs": pairs, "access": LINKS, "bottleneck": LINKS}
            names = [f"{side}-{i}" for side in ("left", "right") for i in range(pairs)]
            return draw(optional(shape, switch=SWITCHES)), names
        case "fat-tree":
            k = draw(st.sampled_from([2, 4]))
            return draw(optional({"kind": "fat-tree", "k": k, "link": LINKS}, switch=SWITCHES)), [
                f"host-{i}" for i in range(k**3 // 4)
            ]
        case "xgft":
            levels = draw(st.lists(st.tuples(st.integers(2, 3), st.integers(1, 3)), min_size=1, max_size=2))
            shape = {"kind": "xgft", "children": [m for m, _ in levels], "parents": [w for _, w in levels]}
            routing = st.sampled_from(["destination-hash", "flow-hash", "d-mod-k"])
            count = math.prod(m for m, _ in levels)
            network = optional(shape | {"link": draw(LINKS)}, routing=routing, switch=SWITCHES)
            return draw(network), [f"host-{i}" for i in range(count)]
        case "path":
            return {"kind": "path", "ends": ["a", "b"], "link": draw(LINKS)}, ["a", "b"]
        case _:
            return draw(graphs())


@st.composite
def sources(draw: st.DrawFn) -> Plain:
    kind = draw(st.sampled_from(["constant", "poisson", "bernoulli", "on-off"]))
    source: Plain = {"kind": kind}
    share = SHARES
    if kind == "on-off":
        on, off = draw(st.integers(10**9, 10**12)), draw(st.integers(10**6, 10**12))
        source |= {"mean_on": str(Span(on)), "mean_off": str(Span(off))}
        share = st.floats(0.1, 0.9).map(lambda load: per_cent(load * on / (on + off)))
    if kind in ("constant", "poisson") and draw(st.booleans()):
        source["rate"] = draw(
            st.one_of(RATES, st.integers(10**3, 10**10).map(lambda milli: str(FrameRate(milli))))
        )
    else:
        source["load"] = draw(share)
    if kind != "bernoulli" and draw(st.booleans()):
        source["mix"] = draw(
            st.one_of(st.just("imix"), st.dictionaries(SIZES, st.integers(1, 100), min_size=1))
        )
    else:
        source["frame_size"] = draw(SIZES)
    if draw(st.booleans()):
        source["stream"] = {"kind": "splitmix64", "first": draw(st.integers(0, 2**64 - 1))}
    return source


@st.composite
def traffic(draw: st.DrawFn, hosts: list[str]) -> Plain:
    entry: Plain = {"source": draw(sources()), "transport": {"kind": draw(st.sampled_from(["raw", "udp"]))}}
    match draw(st.sampled_from(["incast", "pairs", "permutation", "uniform", "list", None])):
        case "permutation":
            entry |= {
                "from": hosts,
                "pattern": {"kind": "permutation", "shift": draw(st.integers(1, len(hosts) - 1))},
            }
        case "uniform":
            own = draw(st.booleans()) and len(hosts) > 2  # a frame to oneself needs a switch
            entry |= {"from": "@hosts", "to": "@hosts", "pattern": {"kind": "uniform", "own": own}}
        case "list":
            entry["pattern"] = {"kind": "list", "flows": [f"{hosts[0]}->{hosts[-1]}"]}
        case "pairs":
            half = len(hosts) // 2
            entry |= {"from": hosts[:half], "to": hosts[half : 2 * half], "pattern": {"kind": "pairs"}}
        case kind:
            entry |= {"from": hosts[:-1], "to": hosts[-1]}
            entry |= {"pattern": {"kind": "incast"}} if kind else {}
    start = draw(st.integers(0, 10**9))
    return entry | draw(optional({}, start=st.just(str(Span(start))), stop=spans(start + 1, 10**10)))


@st.composite
def scenarios(draw: st.DrawFn) -> Plain:
    """A whole scenario."""
    network, hosts = draw(networks())
    entries = draw(st.dictionaries(NAMES, traffic(hosts), min_size=1, max_size=3))
    scenario: Plain = {"weirlab": 1, "name": draw(NAMES), "network": network, "traffic": entries}
    scenario["run"] = draw(optional({"duration": spans(10**9, 10**10)}, seed=st.integers(0, 2**64 - 1)))
    scenario["queues"] = {
        name: {"kind": "drop-tail", "at": at, "limit": limit}
        for name, at, limit in draw(
            st.lists(
                st.tuples(NAMES, st.sampled_from(["*->*", "@hosts->*", f"{hosts[0]}->*"]), LIMITS), max_size=3
            )
        )
    }
    scenario["record"] = draw(
        optional(
            {},
            ports=st.fixed_dictionaries({"queue": st.just("*->*"), "every": spans(10**8, 10**9)}),
            arrivals=st.fixed_dictionaries({"flow": st.just("*"), "every": spans(10**8, 10**9)}),
            delay=st.just({"delays": "*"}),
        )
    )
    scenario["measure"] = {
        "loss": {"kind": "loss-ratio", "of": "*"},
        "queue": {"kind": "max-queue", "of": "*->*"},
    }
    if draw(st.booleans()):
        seeds = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
        scenario["study"] = {"replicates": draw(st.integers(1, 5)), "factors": {"run.seed": seeds}}
    return scenario
