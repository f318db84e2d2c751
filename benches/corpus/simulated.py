"""Cases in the simulator: the same on every machine, captured at both ends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from corpus.case import Case, log_uniform
from weirlab.runs import run
from weirlab.scenario import load, loads

_CONTROLS = ("reno", "cubic", "bbr")


def simulated_cases(seed: int) -> Iterator[Case]:
    """All cases of a seed."""
    for family, causes, controls, draw in _FAMILIES:
        for control in controls:
            name = f"sim-{family}-{control}-{seed}"
            chance = random.Random(name)
            scenario, facts = draw(chance, control)
            scenario = {"weirlab": 1, "name": name.replace("+", "-"), **scenario}
            text = yaml.safe_dump(scenario, sort_keys=False)
            yield Case(
                name, family, causes, chance.randrange(1 << 31), None, (), text, {**facts, "cc": control}
            )
    for variant, causes in _PROBING:
        name = f"sim-{variant}-{seed}"
        text = yaml.safe_dump({"extends": f"{variant}.yaml"})
        yield Case(
            name,
            variant,
            causes,
            seed,
            None,
            (),
            text,
            {"rtt_s": 0.002, "companions": _OF_PROBING, "cc": "rapid"},
        )


def made(case: Case, directory: Path) -> tuple[dict[str, Path], dict[str, Any]]:
    """The captures of a case by place, and what the simulator counted."""
    assert case.scenario is not None
    if "extends" in case.scenario:
        wire = {"frames": ["left-0->left", "left->left-0"], "as": "pcapng"}
        scenario = load(case.family, {"record.sender": wire, "measure": {}, "run.seed": str(case.seed)})
    else:
        scenario = loads(case.scenario)
    done = run(scenario)
    files = {}
    for place in ("sender", "receiver"):
        if f"{place}-0.pcapng" in done.captures:
            files[place] = directory / f"{case.name}-{place}.pcapng"
            files[place].write_bytes(done.captures[f"{place}-0.pcapng"])
    records = done.records
    causes = dict(records["cause_names"].select("name", "cause").rows())
    data = records["flow_names"].filter(pl.col("traffic") == 0, carries="data").get_column("flow")
    drops = records["drops"].filter(pl.col("flow").is_in(data.implode()))

    def of(*names: str) -> int:
        return int(
            drops.filter(pl.col("cause").is_in([causes[name] for name in names])).get_column("frames").sum()
        )

    connections = records["connections"].filter(pl.col("flow").is_in(data.implode()))
    lost, dropped, cut = of("link-loss"), of("queue-full", "queue-early"), of("link-down")
    delivered = float(connections.get_column("delivered_bytes").sum())
    events = int(connections.get_column("recoveries").sum())
    # Losses at random are events of their own; those of queues come together, and share what is left.
    return files, {
        "packets": int(connections.get_column("sent_segments").sum()),
        "lost": lost,
        "loss_episodes": min(lost, events),
        "dropped": dropped,
        "drop_episodes": min(dropped, max(events - lost, 1 if dropped else 0)),
        "cut": cut,
        "goodput_bps": 8 * delivered / case.facts.get("seconds", 1.0),
        "timeouts": int(connections.get_column("timeouts").sum()),
        "wait_s": _waits(records),
    }


def _waits(records: Any) -> list[float]:
    """Quartiles of what the frames of the first traffic waited."""
    if "delays" not in records or records["delays"].is_empty():
        return [0.0, 0.0, 0.0]
    bins = records["delays"].filter(flow=0).sort("low_ps")
    least = float(bins.item(0, "low_ps"))
    total, found = bins.get_column("frames").sum(), []
    for at in (0.25, 0.5, 0.75):
        row = bins.filter(pl.col("frames").cum_sum() >= at * total).row(0, named=True)
        found.append((row["low_ps"] - least) / 1e12)
    return found


Drawn = tuple[dict[str, Any], dict[str, Any]]


def _dumbbell(
    chance: random.Random,
    control: str,
    *,
    buffer: tuple[float, float],
    bdp_bytes: tuple[float, float] = (30e3, 1.5e6),
    rtt: tuple[float, float] = (0.004, 0.2),
    loss: float | None = None,
    transport: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> Drawn:
    while True:
        rate_bps, rtt_s = log_uniform(chance, 5e6, 500e6), log_uniform(chance, *rtt)
        bdp = rate_bps * rtt_s / 8
        if bdp_bytes[0] <= bdp <= bdp_bytes[1]:
            break
    times = log_uniform(chance, *buffer)
    bottleneck: dict[str, Any] = {"rate": f"{rate_bps:.0f} bit/s", "delay": f"{rtt_s / 2 * 1e6:.0f} us"}
    if loss is not None:
        bottleneck["loss"] = {"kind": "random", "ratio": f"{100 * loss:.4f} %"}
    tcp = {"kind": "tcp", "congestion_control": {"kind": control}, **(transport or {})}
    scenario = {
        "network": {"kind": "dumbbell", "pairs": 2, "access": {"rate": "1 Gbit/s"}, "bottleneck": bottleneck},
        "queues": {
            "bottleneck": {
                "at": "left->right",
                "kind": "drop-tail",
                "limit": f"{max(times * bdp, 8000):.0f} B",
            }
        },
        "traffic": {
            "main": {
                "from": "left-0",
                "to": "right-0",
                "source": source or {"kind": "bulk"},
                "transport": tcp,
            }
        },
        "run": {
            "duration": f"{seconds or min(4 + 25 * rtt_s, 9):.2f} s",
            "seed": chance.randrange(1 << 31),
        },
        "record": {
            "sender": {"frames": ["left-0->left", "left->left-0"], "as": "pcapng"},
            "receiver": {"frames": ["right->right-0", "right-0->right"], "as": "pcapng"},
            "waits": {"delays": "main"},
        },
    }
    facts = {"rate_bps": rate_bps, "rtt_s": rtt_s, "bdp_bytes": bdp, "buffer_bdp": times, "loss": loss}
    return scenario, facts


def _lossy(chance: random.Random, control: str) -> Drawn:
    return _dumbbell(
        chance, control, buffer=(1, 2), bdp_bytes=(60e3, 1.5e6), loss=log_uniform(chance, 0.002, 0.03)
    )


def _shallow(chance: random.Random, control: str) -> Drawn:
    return _dumbbell(chance, control, buffer=(0.03, 0.1), bdp_bytes=(150e3, 1.5e6), rtt=(0.02, 0.2))


def _overflow(chance: random.Random, control: str) -> Drawn:
    return _dumbbell(chance, control, buffer=(0.15, 0.9), bdp_bytes=(30e3, 600e3))


def _bloat(chance: random.Random, control: str) -> Drawn:
    return _dumbbell(chance, control, buffer=(6, 20), bdp_bytes=(6e3, 100e3), rtt=(0.004, 0.04))


def _window(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _dumbbell(chance, control, buffer=(1, 2), bdp_bytes=(200e3, 1.5e6), rtt=(0.01, 0.2))
    window = facts["bdp_bytes"] * chance.uniform(0.1, 0.5)
    scenario["traffic"]["main"]["transport"]["window"] = f"{window:.0f} B"
    return scenario, {**facts, "window": window}


def _writer(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _dumbbell(chance, control, buffer=(1, 2), rtt=(0.004, 0.1))
    mean_off = max(0.6, 4 * facts["rtt_s"])
    scenario["traffic"]["main"]["source"] = {
        "kind": "on-off",
        "rate": f"{facts['rate_bps'] * chance.uniform(0.05, 0.15):.0f} bit/s",
        "payload": "1448 B",
        "mean_on": "50 ms",
        "mean_off": f"{1e3 * mean_off:.1f} ms",
    }
    return scenario, facts


def _short(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _dumbbell(
        chance, control, buffer=(1, 2), bdp_bytes=(300e3, 3e6), rtt=(0.05, 0.25), seconds=9
    )
    size = min(log_uniform(chance, 130e3, 1e6), 0.8 * facts["bdp_bytes"])
    scenario["traffic"]["main"]["source"]["size"] = f"{size:.0f} B"
    return scenario, {**facts, "bytes": size}


def _healthy(chance: random.Random, control: str) -> Drawn:
    return _dumbbell(chance, control, buffer=(0.9, 1.5), bdp_bytes=(15e3, 400e3))


def _bunched(chance: random.Random, control: str) -> Drawn:
    """Two-way traffic: acknowledgments wait behind data of the other direction."""
    scenario, facts = _dumbbell(chance, control, buffer=(1, 2), bdp_bytes=(60e3, 400e3), rtt=(0.01, 0.1))
    limit = scenario["queues"]["bottleneck"]["limit"]
    scenario["queues"]["back"] = {"at": "right->left", "kind": "drop-tail", "limit": limit}
    scenario["traffic"]["other"] = {
        "from": "right-1",
        "to": "left-1",
        "source": {"kind": "bulk"},
        "transport": {"kind": "tcp", "congestion_control": {"kind": "cubic"}},
    }
    return scenario, {**facts, "companions": ("bufferbloat",)}


def _lossy_shallow(chance: random.Random, control: str) -> Drawn:
    loss = log_uniform(chance, 0.001, 0.003)
    return _dumbbell(chance, control, buffer=(0.1, 0.3), bdp_bytes=(60e3, 300e3), rtt=(0.02, 0.1), loss=loss)


def _lossy_bloat(chance: random.Random, control: str) -> Drawn:
    loss = log_uniform(chance, 0.001, 0.004)
    return _dumbbell(chance, control, buffer=(6, 20), bdp_bytes=(6e3, 60e3), rtt=(0.004, 0.04), loss=loss)


def _lossy_burst(chance: random.Random, control: str) -> Drawn:
    """A slow start that overflows the queue, and then random losses that keep it nearly empty."""
    loss = log_uniform(chance, 0.0005, 0.002)
    return _dumbbell(
        chance, control, buffer=(0.5, 1.5), bdp_bytes=(60e3, 250e3), rtt=(0.02, 0.1), loss=loss, seconds=9
    )


def _limit(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _dumbbell(chance, control, buffer=(1, 2), bdp_bytes=(20e3, 1.2e6), rtt=(0.004, 0.12))
    seconds = float(scenario["run"]["duration"].removesuffix(" s"))
    return scenario, {**facts, "seconds": seconds}


def _reader(share: float) -> Any:
    """A program that reads so much of what the path carries."""

    def draw(chance: random.Random, control: str) -> Drawn:
        scenario, facts = _limit(chance, control)
        part, window = share * chance.uniform(0.95, 1.05), log_uniform(chance, 40e3, 600e3)
        read_bps = facts["rate_bps"] * part
        transport = scenario["traffic"]["main"]["transport"]
        transport |= {"window": f"{window:.0f} B", "reading": {"rate": f"{read_bps:.0f} bit/s"}}
        return scenario, {**facts, "share": part, "window": window, "read_bps": read_bps}

    return draw


def _pausing(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _limit(chance, control)
    period, share = chance.uniform(0.3, 1.0), chance.uniform(0.5, 0.9)
    window = log_uniform(chance, 40e3, 600e3)
    pauses = [
        {"start": f"{0.2 + turn * period:.3f} s", "stop": f"{0.2 + (turn + share) * period:.3f} s"}
        for turn in range(int(facts["seconds"] / period))
    ]
    transport = scenario["traffic"]["main"]["transport"]
    transport |= {"window": f"{window:.0f} B", "reading": {"rate": "2 Gbit/s", "pauses": pauses}}
    return scenario, {**facts, "window": window, "pause_share": share}


def _small_window(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _limit(chance, control)
    window = max(facts["bdp_bytes"] * chance.uniform(0.15, 0.7), 3000)
    scenario["traffic"]["main"]["transport"]["window"] = f"{window:.0f} B"
    return scenario, {**facts, "window": window}


def _marked(kind: str) -> Any:
    """A queue that marks instead of dropping."""

    def draw(chance: random.Random, control: str) -> Drawn:
        scenario, facts = _limit(chance, control)
        queue: dict[str, Any] = {
            "at": "left->right",
            "kind": kind,
            "limit": f"{6 * facts['bdp_bytes'] + 60e3:.0f} B",
        }
        if kind == "threshold":
            queue["k_min"] = f"{max(facts['bdp_bytes'] * chance.uniform(0.17, 0.6), 12e3):.0f} B"
        elif kind == "codel":
            queue["ecn"] = True
        if control in _LOSS_BASED:
            scenario["traffic"]["main"]["transport"]["ecn"] = True
        scenario["queues"]["bottleneck"] = queue
        return scenario, {**facts, "ecn": kind}

    return draw


def _unlimited(chance: random.Random, control: str) -> Drawn:
    return _limit(chance, control)


def _varying(chance: random.Random, control: str) -> Drawn:
    """A link whose rate falls for a while, again and again, as that of a radio does."""
    scenario, facts = _dumbbell(chance, control, buffer=(0.3, 2), bdp_bytes=(60e3, 1e6), rtt=(0.01, 0.1))
    part, period, share = (
        log_uniform(chance, 0.1, 0.4),
        log_uniform(chance, 0.4, 4.0),
        chance.uniform(0.3, 0.7),
    )
    seconds = float(scenario["run"]["duration"].removesuffix(" s"))
    scenario["events"] = {
        f"slow-{turn}": {
            "kind": "rate",
            "at": "left->right",
            "when": f"{1e3 * (turn + share) * period:.0f} ms",
            "until": f"{min(1e3 * (turn + 1) * period, 1e3 * seconds):.0f} ms",
            "rate": f"{part * facts['rate_bps']:.0f} bit/s",
        }
        for turn in range(int(seconds / period) + 1)
        if (turn + share) * period < seconds - 0.01
    }
    return scenario, {**facts, "part": part, "period_s": period, "share": share}


def _lossy_varying(chance: random.Random, control: str) -> Drawn:
    scenario, facts = _varying(chance, control)
    loss = log_uniform(chance, 0.002, 0.02)
    scenario["network"]["bottleneck"]["loss"] = {"kind": "random", "ratio": f"{100 * loss:.4f} %"}
    scenario["queues"]["bottleneck"]["limit"] = f"{2 * facts['bdp_bytes']:.0f} B"
    return scenario, {**facts, "loss": loss}


def _managed(chance: random.Random, control: str) -> Drawn:
    kind = chance.choice(["codel", "fq-codel", "pie"])
    scenario, facts = _dumbbell(chance, control, buffer=(4, 6), bdp_bytes=(30e3, 1e6), rtt=(0.01, 0.1))
    scenario["queues"]["bottleneck"]["kind"] = kind
    return scenario, {**facts, "queue": kind}


def _tiny(chance: random.Random, control: str) -> Drawn:
    """A buffer of a few packets, as a policer has."""
    scenario, facts = _dumbbell(chance, control, buffer=(1, 2), bdp_bytes=(30e3, 500e3), rtt=(0.01, 0.1))
    packets = chance.randint(2, 5)
    scenario["queues"]["bottleneck"]["limit"] = f"{packets * 1538} B"
    return scenario, {**facts, "packets": packets}


def _cut(chance: random.Random, control: str) -> Drawn:
    """A link that is down for a moment, a few times: all that is under way then is lost."""
    scenario, facts = _dumbbell(chance, control, buffer=(1.5, 3), bdp_bytes=(30e3, 1e6), rtt=(0.01, 0.1))
    seconds = float(scenario["run"]["duration"].removesuffix(" s"))
    times, length_s = chance.randint(1, 6), log_uniform(chance, 0.01, 0.15)
    scenario["events"] = {
        f"cut-{turn}": {
            "kind": "link-down",
            "at": "left->right",
            "when": f"{1e3 * seconds * (turn + chance.uniform(0.2, 0.8)) / times:.0f} ms",
        }
        for turn in range(times)
    }
    for event in scenario["events"].values():
        at_ms = float(event["when"].removesuffix(" ms"))
        event["until"] = f"{at_ms + 1e3 * length_s:.0f} ms"
    return scenario, {**facts, "cuts": times, "length_s": length_s}


_LOSS_BASED = ("reno", "cubic")
_FAMILIES: tuple[tuple[str, tuple[str, ...], tuple[str, ...], Any], ...] = (
    ("lossy", ("lossy-path",), _CONTROLS, _lossy),
    ("shallow", ("queue-overflow",), _CONTROLS, _shallow),
    ("overflow", ("queue-overflow",), _CONTROLS, _overflow),
    ("bloat", ("bufferbloat",), _LOSS_BASED, _bloat),
    ("window", ("window-limited",), ("cubic",), _window),
    ("writer", ("application-limited",), ("cubic",), _writer),
    ("short", ("slow-start-limited",), ("cubic",), _short),
    ("healthy", (), _CONTROLS, _healthy),
    ("bunched", ("ack-compression",), ("reno",), _bunched),
    ("lossy+shallow", ("lossy-path", "queue-overflow"), ("cubic",), _lossy_shallow),
    ("lossy+bloat", ("lossy-path", "bufferbloat"), ("reno",), _lossy_bloat),
    ("limit-read20", ("slow-reader",), _CONTROLS, _reader(0.2)),
    ("limit-read50", ("slow-reader",), (*_CONTROLS, "dctcp"), _reader(0.5)),
    ("limit-read90", ("slow-reader",), _CONTROLS, _reader(0.9)),
    ("limit-pauses", ("slow-reader",), _CONTROLS, _pausing),
    ("limit-window", ("window-limited",), _CONTROLS, _small_window),
    ("limit-marked", (), (*_LOSS_BASED, "dctcp"), _marked("threshold")),
    ("limit-codel", (), _LOSS_BASED, _marked("codel")),
    ("limit-l4s", (), ("prague",), _marked("dual-pi2")),
    ("limit-none", (), _CONTROLS, _unlimited),
    ("hard-varying", ("queue-overflow",), _CONTROLS, _varying),
    ("hard-lossy+varying", ("lossy-path",), _CONTROLS, _lossy_varying),
    ("hard-lossy+burst", ("lossy-path", "queue-overflow"), _LOSS_BASED, _lossy_burst),
    ("hard-managed", ("queue-overflow",), _CONTROLS, _managed),
    ("hard-tiny", ("queue-overflow",), _CONTROLS, _tiny),
    ("hard-cut", ("losses",), _CONTROLS, _cut),
)
_OF_PROBING = ("lossy-path", "queue-overflow", "stalls", "bufferbloat", "repeated-recovery")
"""What else may be true of probing senders, whose losses are not what these cases are for."""
_PROBING = (
    ("rapid-ideal", ()),
    ("rapid-better", ()),
    ("rapid-timely", ("tail-spill",)),
    ("rapid-flawed", ("ramp-lost", "tail-spill", "repeated-recovery")),
)
