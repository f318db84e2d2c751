"""Runs of drawn specs over all features, and hashes of what they counted: so that a change of the engine that
is to move no count is seen to move none.

    python tests/agreement/recorded.py         # hashes of the same specs anew
    python tests/agreement/recorded.py draw    # other specs, to cover a new kind of part

Record anew only where counts are meant to move and CHANGELOG.md says so. First run the test: it names the
runs, tables and columns that differ, and nothing else may. Draw with the code from before a change, never
with the one that is judged. A field that is new in specs gets in `today` the value that leaves old specs as
they were.

A run is a resolved spec and a seed. Specs are ready-made scenarios and points of their studies, changed by
chance. A column of a table has one hash, so that new columns and tables are no difference.
"""

from __future__ import annotations

import copy
import dataclasses
import gzip
import hashlib
import itertools
import json
import random
import sys
import time
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from weirlab import _core, spec
from weirlab.errors import WeirlabError
from weirlab.scenario import load
from weirlab.scenario.file.ready import ready_made

FILE = Path(__file__).with_name("recorded.jsonl.gz")
NOT_COUNTED = {("runs", "events")}
"""How much the engine did is no result."""
RUNS, OPEN = 200, 170
"""How many are drawn, and how many of them whatever their kinds."""
PATIENCE = 60
"""Turns after which kinds that are still missing are given up."""
POINTS = 24
"""Of a study."""
MOST_PORTS = 400
LONGEST_S = 0.12
"""CPU time of a run; longer ones are cut short."""
SHORTENED = 7
"""How often a run is cut to a quarter."""

Spec = dict[str, Any]


class _TooSlowError(Exception):
    pass


def read() -> list[dict[str, Any]]:
    """The recorded runs: `name`, `seed`, `spec`, and `tables`, a hash of each column of each table."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def today(recorded: Spec) -> Spec:
    """A recorded spec in today's form."""
    return recorded


def hashes(of: Spec, seed: int, longest_s: float | None = None) -> dict[str, dict[str, str]]:
    """A hash of each column of each table that has rows, names of things excepted."""
    started = time.process_time()

    def watch(*_: float) -> None:
        if longest_s is not None and time.process_time() - started > longest_s:
            raise _TooSlowError

    tables = _core.simulate(json.dumps(of), [seed], 1, watch)
    frames = {name: pl.DataFrame(table) for name, table in tables.items() if not name.endswith("_names")}
    return {
        name: {
            column.name: hashlib.blake2b(repr(column.to_list()).encode(), digest_size=4).hexdigest()
            for column in frame
            if (name, column.name) not in NOT_COUNTED
        }
        for name, frame in frames.items()
        if not frame.is_empty()
    }


def kinds(of: Any) -> set[str]:
    """The kinds of all parts of a spec."""
    if isinstance(of, list):
        return set().union(*map(kinds, of))
    if not isinstance(of, dict):
        return set()
    own = {of["kind"]} if isinstance(of.get("kind"), str) else set()
    return own.union(*map(kinds, of.values()))


def known_kinds() -> set[str]:
    """The kinds of all parts that a spec of a network can have, but for those of other packages."""
    seen: set[Any] = set()

    def visit(hint: Any) -> None:
        if hint in seen:
            return
        seen.add(hint)
        own = typing.get_type_hints(hint) if isinstance(hint, type) and issubclass(hint, spec.Part) else {}
        for inner in (*own.values(), *typing.get_args(hint)):
            visit(inner)

    visit(spec.Spec)
    kinds = (getattr(part, "kind", None) for part in seen)
    return {kind for kind in kinds if isinstance(kind, str)} - {"custom"}


def _bases() -> dict[str, dict[str, Spec]]:
    """Specs of the ready-made scenarios, by name, and by point of a study."""
    found: dict[str, dict[str, Spec]] = {}
    for name in ready_made():
        assigns: list[dict[str, Any]] = [{}]
        try:
            study = load(name).study
            if study is not None:
                points = itertools.islice((found[2] for found in study.combinations()), POINTS)
                assigns += [
                    dict(item for level in point for item in level.assignments.items()) for point in points
                ]
        except WeirlabError:
            continue
        for place, assign in enumerate(assigns):
            try:
                resolved = load(name, {**assign, "measure": None, "study": None}).resolve()
            except (WeirlabError, TypeError):
                continue
            found.setdefault(name, {})[f"{name}#{place}"] = json.loads(resolved.spec_json)
    return found


@dataclasses.dataclass
class _Drawing:
    """A spec that changes by chance, and what there is in its network."""

    rng: random.Random
    spec: Spec
    ports: list[dict[str, Any]]
    nodes: list[dict[str, Any]]

    @property
    def end_ps(self) -> int:
        return int(self.spec["run"]["duration_ps"])

    def some(self, of: str, most: int = 6) -> list[int]:
        """Some ports of nodes of a kind, one at least."""
        found = [i for i, port in enumerate(self.ports) if self.nodes[port["from"]]["kind"] == of]
        return sorted(self.rng.sample(found, self.rng.randint(1, min(most, len(found)))))

    def moment(self, before: float = 1.0) -> int:
        return int(self.rng.uniform(0, before) * self.end_ps)


def _when(rng: random.Random) -> str:
    return rng.choice(["arrival", "departure"])


def _aqm(rng: random.Random) -> dict[str, Any]:
    ms = 10**9
    slow = {"target_ps": 50_000_000, "interval_ps": ms, "ecn": rng.random() < 0.5}
    pie = {
        "target_ps": 10**8,
        "update_ps": 10**8,
        "max_burst_ps": ms,
        "alpha": 0.125,
        "beta": 1.25,
        "ecn": False,
    }
    red = {
        "min_bytes": 5_000,
        "max_bytes": 40_000,
        "p_max": 0.2,
        "weight": rng.choice([0.01, 1.0]),
        "idle_ps": 10**7,
        "gentle": rng.random() < 0.5,
        "ecn": rng.random() < 0.5,
    }
    ramp = {"k_min_bytes": 20_000, "k_max_bytes": 60_000, "p_max": 0.3, "when": _when(rng)}
    return rng.choice(
        [
            {"kind": "codel", **slow},
            {"kind": "fq-codel", **slow, "queues": 16, "quantum_bytes": 1514},
            {"kind": "pie", **pie},
            {"kind": "threshold", **ramp},
            {"kind": "red", **red},
        ]
    )


def _limit(rng: random.Random) -> dict[str, int]:
    return rng.choice([{"frames": rng.randrange(1, 50)}, {"bytes": rng.randrange(3000, 100_000)}])


def _managed(at: _Drawing) -> None:
    discipline = {"kind": "managed", "limit": _limit(at.rng), "aqm": _aqm(at.rng)}
    at.spec["queues"].append({"ports": at.some("switch"), "discipline": discipline})


def _plain(at: _Drawing) -> None:
    marks = {"k_min_bytes": 5000, "k_max_bytes": 30_000, "p_max": 0.2, "when": _when(at.rng)}
    marking = at.rng.choice([None, marks])
    discipline = {"kind": "drop-tail", "limit": _limit(at.rng), "marking": marking, "overrun": None}
    at.spec["queues"].append({"ports": at.some(at.rng.choice(["switch", "host"])), "discipline": discipline})


def _classed(at: _Drawing) -> None:
    rng = at.rng
    managed = {"kind": "managed", "limit": _limit(rng), "aqm": _aqm(rng)}
    plain = {"kind": "drop-tail", "limit": _limit(rng), "marking": None, "overrun": None}
    weights = rng.choice([(None, None), (1, 3), (None, 2)])
    each = [
        {"class": class_, "weight": weights[class_ % 2], "discipline": rng.choice([managed, plain])}
        for class_ in range(8)
    ]
    order = {"kind": "class", "quantum_bytes": 1514}
    if weights == (None, None):
        order = rng.choice([order, {"kind": "arrival"}])
    discipline = {"kind": "classes", "order": order, "list": each}
    at.spec["queues"].append({"ports": at.some("switch"), "discipline": discipline})
    for group in at.spec["traffic"]:
        group["class"] = rng.randrange(8)


def _loss(at: _Drawing) -> None:
    bursts = {"kind": "gilbert-elliott", "to_bad": 0.01, "to_good": 0.2, "loss_good": 0.0, "loss_bad": 0.5}
    loss = at.rng.choice([{"kind": "random", "probability": 0.01}, bursts])
    network = at.spec["network"]
    for link in network.get("links", []):
        link["link"]["loss"] = at.rng.choice([loss, link["link"]["loss"]])
    for key in {"link", "access", "bottleneck"} & network.keys():
        network[key]["loss"] = loss


def _pause(at: _Drawing) -> None:
    rng = at.rng
    switches = sorted({at.ports[port]["from"] for port in at.some("switch", 40)})
    pause = {
        "nodes": switches,
        "xoff_bytes": 40_000,
        "xon_bytes": rng.choice([10_000, 38_000]),
        "frame_bytes": 64,
    }
    delays = {"delay_ps": rng.choice([0, 500_000]), "quanta": rng.choice([None, 1000])}
    at.spec["control"]["pause"] = [{**pause, **delays, "refresh_ps": rng.choice([None, 50_000_000])}]


def _traffic(at: _Drawing) -> None:
    rng = at.rng
    hosts = [i for i, node in enumerate(at.nodes) if node["kind"] == "host"]
    from_, to = rng.sample(hosts, 2)
    spells = {"mean_on_ps": 20_000_000, "mean_off_ps": 60_000_000, "starts_by_chance": True}
    departures = rng.choice(
        [
            {"kind": "poisson", "mean_gap_ps": 3e6},
            {"kind": "constant", "gap_ps": 5_000_000},
            {"kind": "on-off", "gap_ps": 1_300_000, **spells},
            {
                "kind": "bursts",
                "slot_ps": 1_200_000,
                "load": 0.3,
                "mean_frames": 5.0,
                "starts_by_chance": False,
            },
            {"kind": "bernoulli", "slot_ps": 1_200_000, "probability": 0.4},
        ]
    )
    size = rng.choice([{"fixed": 1500}, {"mix": [[64, 7], [570, 4], [1518, 1]]}])
    source = {
        "from": from_,
        "to": {"node": to},
        "start_ps": 0,
        "stop_ps": at.end_ps,
        "departures": departures,
    }
    source |= {"frame_size": size, "stream": {"kind": "named"}}
    name = f"extra{len(at.spec['traffic'])}"
    group = {"name": name, "class": rng.randrange(8), "sources": [source], "tcp": None, "probers": None}
    at.spec["traffic"].append(group)


def _event(at: _Drawing) -> None:
    rng, when = at.rng, at.moment(0.6)
    until = when + at.moment(0.5) + 1
    ports = at.some("switch", 3)
    links = sorted({port ^ way for port in ports for way in (0, 1)})
    classes = list(range(8))
    choices: list[list[tuple[int, dict[str, Any]]]] = [
        [
            (when, {"kind": "down", "ports": links}),
            (when + 10**7, {"kind": "reroute", "ports": links}),
            (until, {"kind": "up", "ports": links}),
            (until + 10**7, {"kind": "reroute", "ports": links}),
        ],
        [(when, {"kind": "rate", "ports": ports, "rate_bps": rng.randrange(10**8, 10**10)})],
        [(when, {"kind": "limit", "ports": ports, "limit": _limit(rng), "class": None})],
        [
            (when, {"kind": "hold", "ports": ports, "classes": classes}),
            (until, {"kind": "release", "ports": ports, "classes": classes}),
        ],
    ]
    at.spec["events"] += [{"at_ps": at_ps, "change": change} for at_ps, change in rng.choice(choices)]


def _records(at: _Drawing) -> None:
    rng, record, whole = at.rng, at.spec["record"], {"from_ps": 0, "to_ps": at.end_ps}
    which = rng.randrange(4)
    if which == 0:
        record["captures"] = [{"name": "c", "ports": at.some("switch", 3), **whole, "frames": 2000}]
    elif which == 1:
        record["queue_levels"] = [{"port": port, **whole, "bin_bytes": 1500} for port in at.some("switch", 3)]
    elif which == 2:
        record["delays"] = True
    else:
        every_ps = max(1, at.end_ps // rng.choice([7, 50, 333]))
        record["ports"] = [{"port": port, "every_ps": every_ps} for port in at.some("switch")]


def _scaled(section: str) -> Callable[[_Drawing], None]:
    """Multiplies a number of a section by chance."""

    def scale(at: _Drawing) -> None:
        leaves: list[tuple[dict[str, Any], str]] = []

        def walk(part: Any) -> None:
            for value in part[:8] if isinstance(part, list) else ():
                walk(value)
            for key, value in part.items() if isinstance(part, dict) else ():
                walk(value)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    leaves.append((part, key))

        walk(at.spec[section])
        places = {
            "from",
            "to",
            "node",
            "port",
            "state",
            "a",
            "b",
            "nodes",
            "hosts",
            "children",
            "parents",
            "traffic",
        }
        leaves = [leaf for leaf in leaves if leaf[1] not in places]
        if leaves:
            part, key = at.rng.choice(leaves)
            part[key] = type(part[key])(part[key] * at.rng.choice([0.25, 0.5, 0.8, 1.3, 2, 4]))

    return scale


OTHERS: dict[str, tuple[dict[str, Any], ...]] = {
    "denoising": ({"kind": "spikes", "rise_ps": 30_000_000, "fall_ps": 20_000_000},),
    "estimator": (
        {"kind": "smooth", "weight": 0.8, "epsilon_ps": 100_000, "excursion": 5},
        {"kind": "chirp", "factor": 1.5, "excursion": 5},
    ),
    "scheduler": ({"kind": "time-shifted-fifo", "shift_ps": 10_000_000},),
    "sampling": ({"kind": "exponential"}, {"kind": "per-frame"}),
    "stream": ({"kind": "split-mix64", "state": 7},),
    "engine": ({"kind": "event-totals"}, {"kind": "slotted", "flows": True}),
    "load": (
        {
            "kind": "writes",
            "departures": {"kind": "poisson", "mean_gap_ps": 2e9},
            "write_size": {"fixed": 20_000},
            "stream": {"kind": "named"},
        },
    ),
    "detection": (
        {"kind": "overtaken", "packets": 3},
        {
            "kind": "sleek",
            "factor": 1.5,
            "least_packets": 5,
            "most": 1.5,
            "target": 1.0,
            "probe_after": 3.0,
            "probe_again": 5.0,
        },
    ),
    "share": ({"kind": "dynamic", "alpha": 0.5}, {"kind": "static", "bytes": 20_000}),
}
"""Kinds that few ready-made scenarios have, by the field where they may stand."""
OVERSUBSCRIBED: dict[str, Any] = {
    "network": {
        "kind": "xgft",
        "children": [9, 2],
        "parents": [1, 1],
        "link": {"rate": "100 Gbit/s", "delay": "1 us"},
    },
    "queues.switch.at": "@switches->*",
    "traffic.incast.from": "host-[9-17]",
    "traffic.incast.to": "host-0",
    "traffic.incast.transport.credit": {"oversubscription": 9.0},
    "measure": None,
    "study": None,
    "record": None,
}
"""Credit that follows marks and cuts above the last queue, in a network that has some."""
OF_MESSAGES: dict[str, tuple[dict[str, Any], ...]] = {
    "balancing": (
        {"kind": "random", "weighted": True},
        {"kind": "round-robin"},
        {"kind": "least-queue"},
        {"kind": "flowlets", "gap_ps": 5_000_000, "weighted": False},
    ),
    "gaps": (
        {"kind": "lognormal", "mean_gap_ps": 2e7, "sigma": 2.0},
        {"kind": "hyperexponential", "mean_gap_ps": 2e7, "variation": 4.0},
    ),
    "arrivals": (
        {"kind": "listed", "list": [[0, 0, 1, 100_000], [1_000_000, 2, 1, 3_000]]},
        {
            "kind": "chained",
            "start_ps": 1000,
            "tasks": [[0, 1, 100_000, 0, []], [1, 1, 0, 5_000_000, [0]], [1, 2, 3_000, 10, [0, 1]]],
            "rounds": [[3, 100_000]],
        },
    ),
}
"""The same of messages, which fewer have."""


def _other_kind(at: _Drawing) -> None:
    """Gives a part another kind, wherever the same field stands."""
    places: dict[str, list[dict[str, Any]]] = {}

    def walk(part: Any) -> None:
        for value in part if isinstance(part, list) else ():
            walk(value)
        for key, value in part.items() if isinstance(part, dict) else ():
            walk(value)
            if key in OTHERS and value is not None:
                places.setdefault(key, []).append(part)

    walk(at.spec)
    if places:
        field = at.rng.choice(sorted(places))
        other = at.rng.choice(OTHERS[field])
        for part in places[field]:
            part[field] = other


CHANGES = (
    *(_managed, _plain, _classed, _loss, _pause, _traffic, _event, _event, _records, _records),
    *(_other_kind, _other_kind, _other_kind),
    *map(_scaled, ("control", "switching", "network", "traffic", "traffic")),
)


def _shorten(of: Spec) -> None:
    """The same spec with a quarter of its time."""
    end = of["run"]["duration_ps"] = max(1, of["run"]["duration_ps"] // 4)
    for part in itertools.chain(*(part for part in of["record"].values() if isinstance(part, list))):
        if isinstance(part, dict) and "to_ps" in part:
            part["from_ps"], part["to_ps"] = min(part["from_ps"], end // 2), end
    for service in of["switching"]["services"]:
        if service["from_ps"] >= end:
            service["from_ps"], service["to_ps"] = end // 4, end
    for group in of["traffic"]:
        lists = [(group[part] or {"list": []})["list"] for part in ("tcp", "probers")]
        for each in itertools.chain(group["sources"], *lists):
            if each.get("start_ps", 0) >= end:
                each["start_ps"] = end // 4


def _drawn(rng: random.Random, base: Spec) -> Spec:
    """The base, changed some times. Raises SpecError."""
    network = _core.expand(json.dumps(base["network"]))
    ports, nodes = (json.loads(json.dumps(network[part])) for part in ("ports", "nodes"))
    at = _Drawing(rng, copy.deepcopy(base), ports, nodes)
    if len(at.ports) > MOST_PORTS:
        raise _core.SpecError("large", "/network")
    for change in rng.choices(CHANGES, k=rng.choice([0, 1, 1, 2, 3])):
        change(at)
    return dict(json.loads(_core.check(json.dumps(at.spec))))


def _with_messages(bases: dict[str, dict[str, Spec]]) -> Iterator[tuple[str, Spec]]:
    """Each kind of part of messages, in the first ready-made scenario that has some."""
    names = ((name, of) for family in bases.values() for name, of in family.items())
    name, base = next(
        (name, of) for name, of in names if any(group.get("messages") for group in of["traffic"])
    )
    for field, others in OF_MESSAGES.items():
        for other in others:
            of = copy.deepcopy(base)
            for messages in filter(None, (group.get("messages") for group in of["traffic"])):
                for part in [messages, *messages["arrivals"].get("sources", [])]:
                    if field in part:
                        part[field] = other
            yield name, dict(json.loads(_core.check(json.dumps(of))))
    yield "trimming-incast", json.loads(load("trimming-incast", OVERSUBSCRIBED).resolve().spec_json)


def _draw() -> Iterator[dict[str, Any]]:
    """Runs of all ready-made scenarios in turn; in the end of those with a kind that none had before."""
    rng = random.Random(20)
    bases = _bases()
    count, missing = 0, known_kinds()
    for name, of in _with_messages(bases):
        for _ in range(SHORTENED):
            try:
                tables = hashes(of, count, LONGEST_S)
            except _TooSlowError:
                _shorten(of)
                continue
            yield {"name": name, "seed": count, "spec": of, "tables": tables}
            count, missing = count + 1, missing - kinds(of)
            break
    for turn in itertools.count():
        for family in bases.values():
            name = rng.choice([*family])
            try:
                of = _drawn(rng, family[name])
            except (_core.SpecError, IndexError, ValueError):
                continue
            seed = rng.randrange(1000)
            for _ in range(SHORTENED):
                try:
                    tables = hashes(of, seed, LONGEST_S)
                    of = dict(json.loads(_core.check(json.dumps(of))))
                except _TooSlowError:
                    _shorten(of)
                    continue
                except (_core.SpecError, _core.SimulationError):
                    break
                if count < OPEN or turn > PATIENCE or not missing or kinds(of) & missing:
                    count, missing = count + 1, missing - kinds(of)
                    yield {"name": name, "seed": seed, "spec": of, "tables": tables}
                break


def _keep(runs: list[dict[str, Any]]) -> None:
    # Without a time stamp, so that the same runs make the same file.
    text = "".join(json.dumps(run, separators=(",", ":"), sort_keys=True) + "\n" for run in runs)
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        _keep(list(itertools.islice(_draw(), RUNS)))
    else:
        old = [{**run, "spec": today(run["spec"])} for run in read()]
        _keep([{**run, "tables": hashes(run["spec"], run["seed"])} for run in old])
    print(*sorted(known_kinds() - kinds([run["spec"] for run in read()])), FILE.stat().st_size)  # noqa: T201
