"""The compiled core as Python sees it: specs in, columns out, and control while it works."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any

import numpy as np
import polars as pl
import pytest

from core_columns import columns
from weirlab import _core

LINK = {"rate_bps": 10_000_000_000, "delay_ps": 500_000, "framing_bytes": 0, "loss": {"kind": "none"}}
STAR = {"kind": "star", "hosts": 3, "link": LINK, "switch": {"latency_ps": 0}}
NO_RECORD: dict[str, Any] = {
    "ports": [],
    "traffic": [],
    "flows": [],
    "delays": False,
    "connections": [],
    "probe_streams": [],
    "limiters": [],
    "queue_levels": [],
    "captures": [],
}
FOREVER = 2**64 - 1
MILLISECOND = 10**9


def spec(*, duration_ps: int = MILLISECOND, gap_ps: float = 2.4e6, **record: Any) -> str:
    """Hosts 0 and 1 of a star send to host 2, Poisson, 1500 B; 16 frames may wait for it."""

    def source(host: int) -> dict[str, Any]:
        return {
            "from": host,
            "to": {"node": 2},
            "start_ps": 0,
            "stop_ps": FOREVER,
            "departures": {"kind": "poisson", "mean_gap_ps": gap_ps},
            "frame_size": {"fixed": 1500},
            "stream": {"kind": "named"},
        }

    return json.dumps(
        {
            "network": STAR,
            "queues": [
                {
                    "ports": [5],
                    "discipline": {
                        "kind": "drop-tail",
                        "limit": {"frames": 16},
                        "marking": None,
                        "overrun": None,
                    },
                }
            ],
            "traffic": [
                {
                    "name": "load",
                    "class": 0,
                    "sources": [source(0), source(1)],
                    "tcp": None,
                    "probers": None,
                    "messages": None,
                    "hotspot": None,
                    "continues": None,
                }
            ],
            "run": {"duration_ps": duration_ps, "engine": {"kind": "event"}},
            "switching": {"memories": [], "adapters": [], "services": [], "egress": []},
            "events": [],
            "buffers": [],
            "control": {"bcn": None, "qcn": None, "dcqcn": None, "pause": [], "responses": []},
            "record": {**NO_RECORD, **record},
        }
    )


def column(tables: dict[str, dict[str, Any]], table: str, name: str) -> list[Any]:
    return list(tables[table][name])


def test_a_network_is_expanded_to_names_and_ids() -> None:
    network = _core.expand(json.dumps(STAR))
    assert [node["name"] for node in network["nodes"]] == ["host-0", "host-1", "host-2", "switch-0"]
    assert network["nodes"][3]["kind"] == "switch"
    assert network["ports"][5] == {
        "name": "switch-0->host-2",
        "from": 3,
        "to": 2,
        "rate_bps": 10_000_000_000,
        "framing_bytes": 0,
    }


def test_checking_a_checked_spec_changes_nothing() -> None:
    checked = _core.check(spec())
    assert _core.check(checked) == checked
    assert json.loads(checked) == json.loads(spec())


@pytest.mark.parametrize(
    ("section", "content", "pointer", "message"),
    [
        ("network", {**STAR, "hosts": 0}, "/network/hosts", "a star needs hosts"),
        (
            "run",
            {"duration_ps": 0, "engine": {"kind": "event"}},
            "/run/duration_ps",
            "a run lasts more than 0 s",
        ),
        ("record", {"ports": []}, "/record", "missing field `traffic`"),
        (
            "traffic",
            [{"name": "rest", "class": 0, "sources": [], "continues": 0}],
            "/traffic/0/continues",
            "a group continues one that stands before it, at place 0 (got 0)",
        ),
    ],
)
def test_a_fault_is_told_with_its_place(
    section: str, content: dict[str, Any], pointer: str, message: str
) -> None:
    faulty = json.dumps({**json.loads(spec()), section: content})
    for refuse in (_core.check, lambda text: _core.simulate(text, [1])):
        with pytest.raises(_core.SpecError) as raised:
            refuse(faulty)
        told, place = raised.value.args
        assert place == pointer
        assert message in told


def test_a_destination_that_cannot_be_reached_is_a_fault() -> None:
    faulty = json.loads(spec())
    nodes = [{"name": name, "kind": "host", "latency_ps": 0} for name in "abc"]
    faulty["network"] = {"kind": "graph", "nodes": nodes, "links": [{"a": 0, "b": 2, "link": LINK}]}
    faulty["queues"] = []
    with pytest.raises(_core.SpecError) as raised:
        _core.check(json.dumps(faulty))
    assert raised.value.args == ("there is no way from 'b' to 'c'", "/traffic/0/sources/1/to/node")


def test_frames_are_conserved_and_columns_have_one_length() -> None:
    probe = {"port": 5, "every_ps": MILLISECOND // 10}
    text = spec(ports=[probe], traffic=[{"traffic": 0, "every_ps": MILLISECOND // 4}], delays=True)
    tables = columns(_core.simulate(text, [1, 2]))
    for name, found in tables.items():
        assert len({len(values) for values in found.values()}) == 1, name
    sent, delivered, dropped, live = (
        np.asarray(tables["flows"][f"{what}_frames"]) for what in ("sent", "delivered", "dropped", "live")
    )
    assert (sent == delivered + dropped + live).all()
    assert dropped.sum() == tables["drops"]["frames"].sum() == tables["intervals"]["drops"].sum()
    assert delivered.sum() == tables["delays"]["frames"].sum() == tables["deliveries"]["frames"].sum()
    assert column(tables, "intervals", "t_ps")[:2] == [MILLISECOND // 10, MILLISECOND // 5]
    assert column(tables, "flow_names", "name") == ["load/host-0->host-2", "load/host-1->host-2"]
    assert column(tables, "cause_names", "name") == [
        "queue-full",
        "link-loss",
        "limiter-full",
        "queue-early",
        "input-overrun",
        "link-down",
        "buffer-full",
        "watchdog",
    ]


def test_what_is_unknown_is_null() -> None:
    flows = pl.DataFrame(_core.simulate(spec(duration_ps=1000), [1])["flows"])
    assert flows["delivered_frames"].to_list() == [0, 0]
    assert flows["delay_min_ps"].to_list() == flows["delay_max_ps"].to_list() == [None, None]
    assert flows["delay_min_ps"].dtype == pl.UInt64


def test_the_number_of_threads_does_not_matter() -> None:
    one, two, all_of_them = (columns(_core.simulate(spec(), range(5), threads)) for threads in (1, 2, None))
    for table, found in one.items():
        for name, values in found.items():
            for other in (two, all_of_them):
                unknown = isinstance(values, np.ndarray) and values.dtype.kind == "f"
                assert np.array_equal(values, other[table][name], equal_nan=unknown), (table, name)
    assert len(set(column(one, "runs", "packet_hops"))) > 1, "seeds differ"


def test_threads_and_seeds_are_checked() -> None:
    with pytest.raises(ValueError, match="threads: at least 1"):
        _core.simulate(spec(), [1], 0)
    with pytest.raises(OverflowError):
        _core.simulate(spec(), [-1])


def test_progress_of_one_run_is_told_while_it_lasts() -> None:
    told: list[tuple[int, int]] = []
    _core.simulate(
        spec(duration_ps=2000 * MILLISECOND), [1], 1, lambda done, total: told.append((done, total))
    )
    done = [step for step, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][1]
    assert any(0 < step < done[-1] for step in done), "something was told in between"


def test_an_exception_of_the_watcher_ends_the_work() -> None:
    seen: list[tuple[int, int]] = []

    def refuse(done: int, total: int) -> None:
        seen.append((done, total))
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        _core.simulate(spec(duration_ps=10**16), [1, 2, 3], 2, refuse)
    ((done, total),) = seen
    assert done < total, "the work was under way, and nobody was asked again"


def test_ctrl_c_ends_a_long_run_before_its_end() -> None:
    """How much a thread computes after the request is bounded in events, in tests of `weir_sim::batch`."""
    steps: list[tuple[int, int]] = []

    def press(done: int, total: int) -> None:
        steps.append((done, total))
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        _core.simulate(spec(duration_ps=10**16), [1, 2, 3], 2, press)
    assert len(steps) == 2, "the signal is looked at before the watcher"
    assert steps[-1][0] < steps[-1][1]


def test_other_threads_go_on_meanwhile() -> None:
    steps = 0
    over = threading.Event()

    def count() -> None:
        nonlocal steps
        while not over.wait(0.001):
            steps += 1

    counter = threading.Thread(target=count)
    counter.start()
    _core.simulate(spec(duration_ps=1000 * MILLISECOND), [1], 1)
    over.set()
    counter.join()
    assert steps > 10
