"""From a scenario to the spec of the simulator: gaps, sizes, defaults, places of the engine's complaints."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from weirlab import _core
from weirlab.errors import ScenarioError, UnsupportedError
from weirlab.scenario import Scenario, loads

TEXT = """\
weirlab: 1
name: star
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}, switch: {latency: 1 us}}
traffic: {load: {from: host-0, to: host-1, source: {kind: poisson, load: 50 %, frame_size: 1480 B}}}
run: {duration: 10 ms}
"""


def spec(assignments: dict[str, Any] | None = None, text: str = TEXT) -> dict[str, Any]:
    return dict(json.loads(loads(text, assign=assignments).resolve().spec_json))


def source(assignments: dict[str, Any]) -> dict[str, Any]:
    return dict(spec(assignments)["traffic"][0]["sources"][0])


def sources(assignments: dict[str, Any]) -> list[tuple[int, Any]]:
    return [(entry["from"], entry["to"]) for entry in spec(assignments)["traffic"][0]["sources"]]


class TestGaps:
    def test_a_load_counts_preamble_and_gap_on_ethernet(self) -> None:
        assert source({})["departures"] == {"kind": "poisson", "mean_gap_ps": 1500 * 800 / 0.5}

    def test_a_load_counts_the_size_alone_without_framing(self) -> None:
        departures = source({"network.link.framing": "none"})["departures"]
        assert departures == {"kind": "poisson", "mean_gap_ps": 1480 * 800 / 0.5}

    def test_a_frame_rate_counts_frames(self) -> None:
        given = {"kind": "constant", "rate": "10 kframe/s", "frame_size": "64 B"}
        assert source({"traffic.load.source": given})["departures"] == {"kind": "constant", "gap_ps": 1e8}

    def test_a_bit_rate_counts_frames_without_preamble(self) -> None:
        given = {"kind": "constant", "rate": "1 Gbit/s", "frame_size": "1500 B"}
        assert source({"traffic.load.source": given})["departures"] == {"kind": "constant", "gap_ps": 12e6}

    def test_a_bit_rate_counts_the_payload_where_that_is_given(self) -> None:
        made = source(
            {
                "traffic.load.source": {"kind": "constant", "rate": "300 Mbit/s", "payload": "1470 B"},
                "traffic.load.transport": {"kind": "udp"},
            }
        )
        assert made["departures"]["gap_ps"] == pytest.approx(1470 * 8 / 300e6 * 1e12)
        assert made["frame_size"] == {"fixed": 1516}

    def test_a_tiny_datagram_is_padded_to_the_shortest_frame(self) -> None:
        made = source(
            {
                "traffic.load.source": {"kind": "constant", "rate": "1 kframe/s", "payload": "1 B"},
                "traffic.load.transport": {"kind": "udp"},
            }
        )
        assert made["frame_size"] == {"fixed": 64}

    def test_a_mix_has_the_mean_time_on_the_wire(self) -> None:
        given = {"kind": "poisson", "load": "100 %", "mix": {"80 B": 3, "980 B": 1}}
        made = source({"traffic.load.source": given})
        assert made["departures"]["mean_gap_ps"] == (3 * 100 + 1000) / 4 * 800
        assert made["frame_size"] == {"mix": [[80, 3], [980, 1]]}

    def test_imix_has_published_sizes(self) -> None:
        made = source({"traffic.load.source": {"kind": "poisson", "rate": "1 kframe/s", "mix": "imix"}})
        assert made["frame_size"] == {"mix": [[64, 28], [570, 16], [1518, 4]]}

    def test_bernoulli_has_slots_of_one_frame(self) -> None:
        given = {"kind": "bernoulli", "load": "85 %", "frame_size": "64 B"}
        departures = source({"traffic.load.source": given})["departures"]
        assert departures["slot_ps"] == 84 * 800
        assert departures["probability"] == pytest.approx(0.85, rel=1e-15)

    def test_on_off_keeps_its_mean(self) -> None:
        given = {
            "kind": "on-off",
            "load": "20 %",
            "mean_on": "1 us",
            "mean_off": "3 us",
            "frame_size": "1480 B",
        }
        departures = source({"traffic.load.source": given})["departures"]
        assert departures["gap_ps"] == pytest.approx(1500 * 800 / 0.2 / 4)

    def test_a_load_of_zero_sends_nothing(self) -> None:
        assert sources({"traffic.load.source.load": "0 %"}) == []

    def test_rates_that_do_not_divide_are_rounded_up_as_the_engine_does(self) -> None:
        made = source({"network.link.rate": "3 Gbit/s", "traffic.load.source.load": "100 %"})
        assert made["departures"]["mean_gap_ps"] == 4_000_000
        made = source({"network.link.rate": "7 Gbit/s", "traffic.load.source.load": "100 %"})
        assert made["departures"]["mean_gap_ps"] == 1_714_286  # 1500 x 8 / 7 ns = 1 714 285.7 ps


class TestPatterns:
    def test_all_to_one(self) -> None:
        flows = sources({"traffic.load.from": "@hosts", "traffic.load.to": "host-1"})
        assert flows == [(0, {"node": 1}), (2, {"node": 1}), (3, {"node": 1})]

    def test_pairs(self) -> None:
        flows = sources(
            {
                "traffic.load.from": "host-[0-1]",
                "traffic.load.to": "host-[2-3]",
                "traffic.load.pattern": {"kind": "pairs"},
            }
        )
        assert flows == [(0, {"node": 2}), (1, {"node": 3})]

    def test_a_permutation_is_half_a_turn_by_default(self) -> None:
        given = {"traffic.load.from": "@hosts", "traffic.load.to": None}
        half = sources({**given, "traffic.load.pattern": {"kind": "permutation"}})
        assert half == [(0, {"node": 2}), (1, {"node": 3}), (2, {"node": 0}), (3, {"node": 1})]
        one = sources({**given, "traffic.load.pattern": {"kind": "permutation", "shift": 1}})
        assert one == [(0, {"node": 1}), (1, {"node": 2}), (2, {"node": 3}), (3, {"node": 0})]

    @pytest.mark.parametrize(("own", "targets"), [(False, [[1, 3]]), (True, [[0, 3]])])
    def test_uniform_leaves_the_sender_out_unless_told_otherwise(
        self, own: bool, targets: list[list[int]]
    ) -> None:
        pattern = {"kind": "uniform", "own": own}
        flows = sources({"traffic.load.to": "@hosts", "traffic.load.pattern": pattern})
        assert flows == [(0, {"uniform": targets})]

    def test_a_list_of_flows(self) -> None:
        pattern = {"kind": "list", "flows": ["host-3->host-0", "host-1->host-2"]}
        given = {"traffic.load.from": None, "traffic.load.to": None, "traffic.load.pattern": pattern}
        assert sources(given) == [(3, {"node": 0}), (1, {"node": 2})]

    @pytest.mark.parametrize(
        ("pattern", "message"),
        [
            ({"kind": "pairs"}, "pairs need as many receivers as senders"),
            ({"kind": "incast"}, "incast has one receiver"),
            ({"kind": "permutation"}, "in a permutation the receivers are the senders"),
            ({"kind": "list", "flows": ["host-0->host-1"]}, "the list of flows names senders and receivers"),
        ],
    )
    def test_a_pattern_that_does_not_fit_is_refused(self, pattern: object, message: str) -> None:
        given = {"traffic.load.to": "host-[1-2]", "traffic.load.pattern": pattern}
        with pytest.raises(ScenarioError, match=message):
            loads(TEXT, assign=given)

    def test_a_sender_stands_once_in_a_list(self) -> None:
        pattern = {"kind": "list", "flows": ["host-0->host-1", "host-0->host-2"]}
        given = {"traffic.load.from": None, "traffic.load.to": None, "traffic.load.pattern": pattern}
        with pytest.raises(ScenarioError, match="sends twice here; write its second flow as another entry"):
            loads(TEXT, assign=given)


class TestSelectors:
    @pytest.mark.parametrize(
        ("selector", "ids"),
        [
            ("host-1", [1]),
            ("host-*", [0, 1, 2, 3]),
            ("host-?", [0, 1, 2, 3]),
            ("host-[1-2]", [1, 2]),
            ("@hosts", [0, 1, 2, 3]),
            (["host-3", "host-0"], [3, 0]),
            (["host-0", "host-*"], [0, 1, 2, 3]),
        ],
    )
    def test_nodes(self, selector: object, ids: list[int]) -> None:
        given = {
            "traffic.load.from": selector,
            "traffic.load.to": "@hosts",
            "traffic.load.pattern": {"kind": "uniform"},
        }
        assert [sender for sender, _ in sources(given)] == ids

    def test_a_range_holds_numbers_not_characters(self) -> None:
        many = {"network.hosts": 20, "traffic.load.from": "host-[8-11]", "traffic.load.to": "host-0"}
        assert [sender for sender, _ in sources(many)] == [8, 9, 10, 11]

    @pytest.mark.parametrize(
        ("selector", "ports"),
        [
            ("switch-0->host-1", [3]),
            ("host-[0-1]->switch-0", [0, 2]),
            ("@switches->*", [1, 3, 5, 7]),
            ("*->@switches", [0, 2, 4, 6]),
            (["switch-0->host-3", "switch-0->host-0"], [7, 1]),
        ],
    )
    def test_ports(self, selector: object, ports: list[int]) -> None:
        rule = {"at": selector, "kind": "drop-tail", "limit": "16 frames"}
        assert spec({"queues.q": rule})["queues"][1]["ports"] == ports


class TestInputsThatOverrun:
    RULE: Final = {"at": "switch-0->host-3", "kind": "drop-tail", "limit": "16 frames"}

    def lost(self, overrun: dict[str, object]) -> dict[str, object]:
        return {"queues.q": {**self.RULE, "overrun": overrun}}

    def test_they_are_named_by_the_ports_that_lead_to_them(self) -> None:
        made = spec(self.lost({"inputs": "host-[0-1]->switch-0", "frames": 360, "chance": "10 %"}))
        overrun = made["queues"][1]["discipline"]["overrun"]
        assert overrun == {"inputs": [0, 2], "probability": 0.1, "mean_frames": 360.0}

    @pytest.mark.parametrize(
        ("overrun", "message"),
        [
            ({"inputs": "switch-0->host-1", "frames": 10}, r"queues\.q\.overrun\.inputs: .*does not lead to"),
            ({"inputs": "host-9->switch-0", "frames": 10}, r"queues\.q\.overrun\.inputs: no port is called"),
            ({"inputs": "host-0->switch-0", "frames": 0.5}, r"queues\.q\.overrun\.frames: a run has 1 to"),
        ],
    )
    def test_what_is_wrong_is_told_at_its_place(self, overrun: dict[str, object], message: str) -> None:
        with pytest.raises(ScenarioError, match=message):
            loads(TEXT, assign=self.lost(overrun))


class TestDefaults:
    def test_switch_ports_drop_beyond_150_kilobytes_and_host_ports_never(self) -> None:
        (rule,) = spec()["queues"]
        assert rule == {
            "ports": [1, 3, 5, 7],
            "discipline": {
                "kind": "drop-tail",
                "limit": {"bytes": 150_000},
                "marking": None,
                "overrun": None,
            },
        }

    def test_traffic_lasts_as_long_as_the_run(self) -> None:
        assert (source({})["start_ps"], source({})["stop_ps"]) == (0, 10**10)

    def test_chance_is_named_after_traffic_and_host(self) -> None:
        assert source({})["stream"] == {"kind": "named"}

    def test_published_workloads_number_their_streams(self) -> None:
        given = {"traffic.load.from": "host-[0-2]", "traffic.load.to": "host-3"}
        given["traffic.load.source.stream"] = {"kind": "splitmix64", "first": 1000}  # type: ignore[assignment]
        streams = [entry["stream"] for entry in spec(given)["traffic"][0]["sources"]]
        assert streams == [{"kind": "split-mix64", "state": state} for state in (1000, 1001, 1002)]


class TestRecords:
    def test_ports_traffic_and_delays(self) -> None:
        record = {
            "queues": {"queue": "switch-0->*", "every": "1 us"},
            "arrivals": {"flow": "*", "every": "1 ms"},
            "delay": {"delays": "load"},
        }
        made = spec({"record": record})["record"]
        assert [probe["port"] for probe in made["ports"]] == [1, 3, 5, 7]
        assert made["traffic"] == [{"traffic": 0, "every_ps": 10**9}]
        assert made["delays"] is True


class TestPath:
    TEXT = """\
weirlab: 1
name: path
network: {kind: path, ends: [a, b], link: {rate: 1 Gbit/s, delay: 1 ms}}
queues: {bottleneck: {at: a->b, kind: drop-tail, limit: 16 frames}}
traffic: {load: {from: a, to: b, source: {kind: constant, rate: 10 kframe/s, frame_size: 64 B}}}
run: {duration: 10 ms}
"""

    def test_two_hosts_and_a_link_between_them(self) -> None:
        made = spec(text=self.TEXT)
        assert [node["name"] for node in made["network"]["nodes"]] == ["a", "b"]
        assert [rule["ports"] for rule in made["queues"]] == [[0]]


class TestComplaintsOfTheEngine:
    def test_names_belong_to_the_ids_of_the_spec(self) -> None:
        resolved = loads(TEXT).resolve()
        assert resolved.nodes == ("host-0", "host-1", "host-2", "host-3", "switch-0")
        assert resolved.ports[:2] == ("host-0->switch-0", "switch-0->host-0")
        assert resolved.traffic == ("load",)

    def test_a_pointer_leads_back_to_the_part_of_the_scenario(self) -> None:
        scenario = loads(TEXT, assign={"record.q": {"queue": "switch-0->host-1", "every": "1 us"}})
        places = {
            "/traffic/0/sources/0/departures/mean_gap_ps": ("traffic", "load", "source"),
            "/record/ports/0/every_ps": ("record", "q", "every"),
            "/record/ports/0/port": ("record", "q"),
            "/run/duration_ps": ("run", "duration"),
        }
        resolved = scenario.resolve()
        assert {pointer: resolved.origin(pointer, scenario) for pointer in places} == places

    def test_too_many_rows_are_told_at_the_record(self) -> None:
        record = {"q": {"queue": "switch-0->host-1", "every": "1 ps"}}
        with pytest.raises(ScenarioError, match=r"record\.q\.every: .* rows would be recorded; at most"):
            loads(TEXT, assign={"record": record})

    def test_the_spec_of_a_scenario_is_as_the_core_writes_it(self) -> None:
        text = loads(TEXT).resolve().spec_json
        assert json.loads(_core.check(text)) == json.loads(text)

    def test_what_the_simulator_lacks_is_no_spec(self) -> None:
        scenario = loads(TEXT, assign={"traffic.load.timing": {"late": "1 %", "by": "1 ms"}})
        with pytest.raises(
            UnsupportedError,
            match=r"load\.timing: the simulator of this version has it for tcp and estimators only",
        ):
            scenario.resolve()


class TestOffered:
    TEXT = """\
weirlab: 1
name: bottleneck
network: {kind: dumbbell, pairs: 2, access: {rate: 10 Gbit/s}, bottleneck: {rate: 1 Gbit/s}}
traffic:
  offered:
    {from: "left-[0-1]", to: "right-[0-1]", pattern: {kind: pairs}, start: 1 ms,
     source: {kind: constant, frame_size: 1480 B}}
search:
  vary: traffic.offered.source.rate
  between: [1 %, 10 %]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 100 ms, settle: 10 ms}
"""

    def scenario(self) -> Scenario:
        return loads(self.TEXT)

    def test_loads_are_sums_over_all_flows(self) -> None:
        offered = self.scenario().offered()
        assert (offered.traffic, offered.flows, offered.frame_size_bytes) == ("offered", 2, 1480)
        line_fps = 2 * 10e9 / (1500 * 8)
        assert (offered.min_fps, offered.max_fps) == pytest.approx((0.01 * line_fps, 0.1 * line_fps))

    def test_a_trial_is_a_plain_run(self) -> None:
        trial = self.scenario().at_load(20_000, duration_s=0.05)
        assert trial.search is None
        made = json.loads(trial.resolve().spec_json)
        assert made["run"]["duration_ps"] == (1 + 50 + 10) * 10**9
        for entry in made["traffic"][0]["sources"]:
            assert (entry["start_ps"], entry["stop_ps"]) == (10**9, 51 * 10**9)
            assert entry["departures"] == {"kind": "constant", "gap_ps": 1e8}

    def test_bit_rates_are_converted_by_the_frame_size(self) -> None:
        offered = self.scenario().assign({"search.between": ["118.4 Mbit/s", "1.184 Gbit/s"]}).offered()
        assert (offered.min_fps, offered.max_fps) == pytest.approx((1e4, 1e5))
