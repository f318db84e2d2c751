"""Hotspots as scenarios write them: what they resolve to, and what Weirlab says of them."""

import json

import pytest

from benchmark_switch import switch
from weirlab.analysis.hotspots import hotspot_facts
from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario, load, loads
from weirlab.scenario.resolve import translated
from weirlab.spec import origin_of

SWITCH = (
    switch(32)
    + """\
run: {duration: 3.2768 ms, engine: slotted}
"""
)


def scenario(hotspots: str) -> Scenario:
    return loads(f"{SWITCH}hotspots:\n{hotspots}")


def spec(hotspots: str) -> dict:
    return json.loads(translated(scenario(hotspots)).spec_json)


def test_what_hotspots_make_of_traffic_says_so_itself():
    made = translated(
        scenario(
            "  a: {kind: input-generated, at: host-0, flows: [{from: 'host-[1-8]'}], "
            "window: 512 us .. 1536 us}\n"
            "  b: {kind: input-generated, at: host-9, flows: [{from: 'host-[1-2]'}], "
            "window: 768 us .. 1280 us}"
        )
    ).spec
    assert [(entry.name, entry.hotspot, entry.continues) for entry in made.traffic] == [
        ("background", None, None),
        ("background-after-a", None, 0),
        ("hotspot-a", "a", None),
        ("hotspot-a-after-b", "a", 2),
        ("hotspot-b", "b", None),
    ]
    assert origin_of(made, "/traffic/3/sources/0/start_ps") == ("hotspots", "b", "window")
    assert origin_of(made, "/traffic/1/sources/0/departures/load") == ("traffic", "background", "source")


def problems(hotspots: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        translated(scenario(hotspots))
    return str(caught.value)


def test_the_output_generated_hotspot_of_the_benchmark_has_its_printed_numbers():
    (facts,) = hotspot_facts(scenario("  hot: {kind: output-generated, at: host-0, service: 20 %}"))
    assert facts.severity == pytest.approx(4.25, rel=1e-6)
    assert facts.severity_class == "moderate"
    assert facts.degree == 1
    assert facts.degree_class == "large"
    assert facts.throughput_max == pytest.approx(0.85 * 31 / 32 + 0.2 / 32)
    assert facts.throughput_without_control == pytest.approx(0.2)
    assert facts.contradictions == ()


@pytest.mark.parametrize(
    ("written", "instead"),
    [(", pause: {scope: switch}", ""), ("memory: {kind: shared, size: 8192 frames, frame_size: 64 B", "")],
)
def test_no_share_without_control_is_told_where_nothing_stops_the_hosts(written, instead):
    """Frames are lost then, and the innocent outputs carry what they are asked for."""
    hot = "hotspots:\n  hot: {kind: output-generated, at: host-0, service: 20 %}"
    whole = ", pause: {scope: switch}}" if written.startswith("memory") else ""
    (facts,) = hotspot_facts(loads(f"{SWITCH}{hot}".replace(written + whole, instead)))
    assert facts.throughput_without_control is None
    assert facts.throughput_max == pytest.approx(0.85 * 31 / 32 + 0.2 / 32)


def test_the_input_generated_one_is_called_severe_and_is_moderate():
    hot = "  hot: {kind: input-generated, at: host-0, degree: 25 %, own: true, called: severe}"
    (facts,) = hotspot_facts(scenario(hot))
    assert facts.severity == pytest.approx(8 + 24 * 0.85 / 31)
    assert facts.degree_class == "medium"
    assert facts.throughput_max == pytest.approx(0.65, abs=0.005)
    assert facts.throughput_without_control == pytest.approx(1 / (8 + 24 / 31))
    (told,) = facts.contradictions
    assert told.startswith("called 'severe', but a severity of 8.66 is 'moderate'")


def test_an_output_is_served_at_what_gives_the_severity():
    made = spec("  hot: {kind: output-generated, at: host-0, severity: 4.25, window: 0.2048 ms .. 1.024 ms}")
    (service,) = made["switching"]["services"]
    assert service["rate_bps"] == pytest.approx(2e9, rel=1e-6)
    assert (service["from_ps"], service["to_ps"]) == (204_800_000, 1_024_000_000)


def test_hot_hosts_stop_their_other_traffic_for_as_long():
    made = spec("  hot: {kind: input-generated, at: host-0, degree: 25 %, window: 1.024 ms .. 2.048 ms}")
    names = [entry["name"] for entry in made["traffic"]]
    assert names == ["background", "background-after-hot", "hotspot-hot"]
    before, after, hot = (entry["sources"] for entry in made["traffic"])
    makers = {source["from"] for source in hot}
    assert len(makers) == 8
    assert 0 not in {source["to"].get("node") for source in hot} - {0}
    assert {source["stop_ps"] for source in before if source["from"] in makers} == {1_024_000_000}
    assert {source["from"] for source in after} == makers
    assert {source["start_ps"] for source in after} == {2_048_000_000}
    assert {(source["start_ps"], source["stop_ps"]) for source in hot} == {(1_024_000_000, 2_048_000_000)}


def test_a_severity_of_an_input_generated_hotspot_sets_the_load_of_each_host():
    (facts,) = hotspot_facts(
        scenario("  hot: {kind: input-generated, at: host-0, degree: 40 %, severity: 4.25}")
    )
    assert facts.severity == pytest.approx(4.25)


def test_a_severity_that_the_degree_cannot_give_is_refused_with_the_reason():
    told = problems("  hot: {kind: input-generated, at: host-0, degree: 8 %, severity: 12}")
    assert "hotspots.hot.severity: 3 hosts would have to send 3.7" in told
    assert "line rates each; choose a greater degree" in told


def test_a_severity_that_no_degree_can_give_is_refused_with_the_greatest_that_can_be():
    every = "  hot: {{kind: input-generated, at: host-0, degree: 100 %, severity: {}}}"
    told = problems(every.format(40))
    assert "31 hosts would have to send 1.29 line rates each, and no degree is great enough" in told
    assert "write at most 31 with this one (got 40)" in told
    (facts,) = hotspot_facts(scenario(every.format(31)))
    assert facts.severity == pytest.approx(31)


def test_a_single_host_that_cannot_send_enough_is_told_as_one():
    told = problems("  hot: {kind: input-generated, at: host-0, degree: 1 %, severity: 12}")
    assert "1 host would have to send 1" in told
    assert " line rates; choose a greater degree" in told


def test_a_hot_flow_matrix_says_who_sends_how_much():
    made = spec(
        "  hot: {kind: input-generated, at: host-0, mean_burst: 24, "
        "flows: [{from: 'host-[1-2]', load: 50 %}, {from: host-3}]}"
    )
    hot = made["traffic"][-1]["sources"]
    assert {source["from"]: source["departures"]["load"] for source in hot} == {1: 0.5, 2: 0.5, 3: 1.0}
    assert {source["departures"]["mean_frames"] for source in hot} == {24.0}


def test_a_small_degree_keeps_the_other_hosts_off_the_hot_output():
    made = spec("  hot: {kind: output-generated, at: host-0, severity: 4.25, degree: 8 %}")
    sources = made["traffic"][0]["sources"]
    firsts = {source["from"]: source["to"]["uniform"][0] for source in sources}
    # The lowest id comes first, alone or as the first of a run.
    senders = {
        host for host, first in firsts.items() if (first[0] if isinstance(first, list) else first) == 0
    }
    assert senders == {1, 2}  # the first three hosts; host 0 does not send to itself
    (facts,) = hotspot_facts(
        scenario("  hot: {kind: output-generated, at: host-0, severity: 4.25, degree: 8 %}")
    )
    assert facts.severity == pytest.approx(4.25, rel=1e-6)
    assert facts.degree_class == "small"


def test_any_number_of_hotspots_stands_beside_each_other():
    two = (
        "  one: {kind: output-generated, at: host-0, service: 20 %}\n"
        "  two: {kind: output-generated, at: host-5, service: 50 %}"
    )
    first, second = hotspot_facts(scenario(two))
    assert first.throughput_max == second.throughput_max == pytest.approx((30 * 0.85 + 0.2 + 0.5) / 32)
    assert first.throughput_without_control == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("hotspot", "told"),
    [
        ("{kind: output-generated, at: host-0}", "write either 'service' or 'severity'"),
        ("{kind: output-generated, at: host-99, service: 20 %}", "no node is called 'host-99'"),
        (
            "{kind: output-generated, at: host-0, severity: 0.5}",
            "only what is above 1 is a hotspot (got 0.5)",
        ),
        ("{kind: input-generated, at: host-0}", "write either 'degree' or 'flows'"),
        ("{kind: input-generated, at: host-0, degree: 8 %, mean_burst: 0}", "at least one frame"),
        ("{kind: input-generated, at: host-0, flows: [{from: host-77}]}", "no node is called 'host-77'"),
        (
            "{kind: input-generated, at: host-0, flows: []}",
            "hotspots.hot.flows: is empty: write who sends, such as [{from: host-1, load: 50 %}",
        ),
        (
            "{kind: input-generated, at: host-0, flows: [{from: host-1, load: 20 %}, {from: 'host-[1-3]'}]}",
            "hotspots.hot.flows.0.from: all of these hosts are named again below",
        ),
        (
            "{kind: input-generated, at: host-0, own: true, flows: [{from: host-1}]}",
            "hotspots.hot.own: cannot be combined with 'flows': name 'host-0' there, or leave this out",
        ),
        (
            "{kind: output-generated, at: host-0, severity: 0.9}",
            "hotspots.hot.severity: only what is above 1",
        ),
    ],
)
def test_a_hotspot_that_cannot_be_is_told_with_its_place(hotspot, told):
    assert told in problems(f"  hot: {hotspot}")


def test_watermarks_follow_the_published_formula():
    (memory,) = spec("  hot: {kind: output-generated, at: host-0, service: 20 %}")["switching"]["memories"]
    assert memory["bytes"] == 8192 * 64
    assert memory["pause"]["xoff_bytes"] == (8192 - 32) * 64
    assert memory["pause"]["xon_bytes"] == (8192 - 32) * 64 // 2


def test_the_round_trip_is_counted_in_frames_of_the_line_rate():
    """RTT = 20 slots of 51.2 ns: Th = M - N (20 + 1)."""
    text = SWITCH.replace("pause: {scope: switch}", "pause: {scope: switch, round_trip: 1.024 us}")
    made = json.loads(translated(loads(text)).spec_json)
    assert made["switching"]["memories"][0]["pause"]["xoff_bytes"] == (8192 - 32 * 21) * 64


def test_a_memory_that_cannot_hold_what_is_under_way_is_refused():
    text = SWITCH.replace("pause: {scope: switch}", "pause: {round_trip: 100 us}")
    with pytest.raises(ScenarioError, match=r"network\.switch\.memory\.pause: 32 ports with a round trip"):
        translated(loads(text))


def remarks(hotspots: str) -> list[str]:
    return [text for facts in hotspot_facts(scenario(hotspots)) for text in facts.remarks]


def test_a_hot_host_among_its_own_sources_is_told():
    (told,) = remarks("  hot: {kind: output-generated, at: host-0, severity: 4.25, degree: 8 %}")
    assert told == (
        "a degree of 0.08 stands for 3 of 32 hosts; host-0 is among the first 3 and does not send to itself, "
        "so that 2 make it: 6.25%; 'sources' instead of 'degree' can name 3 others"
    )
    assert not remarks("  hot: {kind: output-generated, at: host-9, severity: 4.25, degree: 25 %}")


def test_two_services_of_one_output_at_a_time_are_told_and_the_later_entry_holds():
    two = (
        "  mild: {kind: output-generated, at: host-0, service: 50 %, window: 0.2048 ms .. 2.048 ms}\n"
        "  hard: {kind: output-generated, at: host-0, service: 20 %, window: 1.024 ms .. 1.536 ms}"
    )
    change, first, second = remarks(two)
    assert change.startswith("loads or services change at 1.024 ms, 1.536 ms in its window")
    assert first == (
        "'hard' is at host-0, too, from 1.024 ms to 1.536 ms: the output serves what 'hard' says, the later "
        "entry"
    )
    assert second.startswith("'mild' is at host-0, too")
    assert [fact.service for fact in hotspot_facts(scenario(two))] == pytest.approx([0.2, 0.2])
    assert not remarks(two.replace("1.024 ms ..", "2.048 ms ..").replace("1.536 ms", "3.072 ms"))


def test_hosts_of_two_hotspots_at_a_time_are_told():
    two = (
        "  one: {kind: input-generated, at: host-20, degree: 25 %}\n"
        "  two: {kind: input-generated, at: host-30, degree: 25 %, window: 1.024 ms .. 3.2768 ms}"
    )
    change, degree, first, second = remarks(two)
    assert change.startswith("loads or services change at 1.024 ms in its window")
    assert degree == "a degree of 0.25 stands for 8 of 32 hosts; in the middle of its window 0 make it: 0.00%"
    assert first.startswith(
        "8 of its hosts are hosts of 'two' as well from 1.024 ms to 3.2768 ms: they send to host-30"
    )
    assert "send to host-30 alone then, as the later entry says" in second
    both = remarks(two.replace("host-30, ", "host-30, background: continues, "))
    assert len([told for told in both if "both loads together are more than a line carries" in told]) == 2


def test_a_severity_that_another_hotspot_changes_is_told():
    two = (
        "  slow: {kind: output-generated, at: host-0, severity: 4.25}\n"
        "  rush: {kind: input-generated, at: host-0, degree: 25 %}"
    )
    told = remarks(two)
    assert told[0].startswith(
        "a severity of 4.25 is requested; with all that is offered there in the middle of its"
    )
    assert any("severity and degree count what both offer there" in each for each in told)


def test_a_hotspot_that_another_overlaps_in_part_has_no_one_maximum():
    first = "  a: {kind: output-generated, at: host-0, service: 20 %, window: 512 us .. 2.048 ms}\n"
    other = "  b: {kind: output-generated, at: host-9, service: 50 %, window: %s}\n"
    (a, b) = hotspot_facts(scenario(first + other.replace("%s", "1.024 ms .. 3.072 ms")))
    assert (a.steady, b.steady) == (False, False)
    assert any(text.startswith("loads or services change at 1.024 ms") for text in a.remarks)
    assert all(
        each.steady for each in hotspot_facts(scenario(first + other.replace("%s", "512 us .. 2.048 ms")))
    )


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (
            "kind: output-generated, at: host-0, service: 20 %, window: 1.024 ms .. 2.048 ms",
            "kind: output-generated, at: host-0, service: 50 %",
            "says what host-0 serves in all that is left of its time",
        ),
        (
            "kind: input-generated, at: host-0, flows: [{from: host-1}]",
            "kind: input-generated, at: host-0, flows: [{from: 'host-[1-2]', load: 50 %}]",
            "has all of its hosts send to host-0 alone in all of its time: name other hosts in 'flows'",
        ),
    ],
    ids=["outputs", "inputs"],
)
def test_a_hotspot_of_which_a_later_one_leaves_nothing_is_refused(first, second, told):
    refused = problems(f"  one: {{{first}}}\n  two: {{{second}}}")
    assert f"hotspots.one: has no effect: 'two', a later entry, {told}" in refused
    facts = hotspot_facts(scenario(f"  two: {{{second}}}\n  one: {{{first}}}"))
    assert [fact.name for fact in facts] == ["two", "one"], "the other way round something is left"


def test_a_hotspot_of_which_two_later_ones_together_leave_nothing_is_refused():
    one = "  one: {kind: output-generated, at: host-0, service: 50 %, window: 512 us .. 2.048 ms}\n"
    other = "  {}: {{kind: output-generated, at: host-0, service: 20 %, window: {}}}\n"
    two, three = other.format("two", "0 us .. 1.024 ms"), other.format("three", "1.024 ms .. 3.072 ms")
    for order, last in ((two + three, "three"), (three + two, "two")):
        told = f"'{last}', a later entry, says what host-0 serves in all that is left of its time"
        assert f"hotspots.one: has no effect: {told}" in problems(one + order)
    assert len(hotspot_facts(scenario(one + two))) == 2
    assert len(hotspot_facts(scenario(one + two + other.format("three", "1.0752 ms .. 3.072 ms")))) == 3


def test_hosts_that_a_later_hotspot_has_for_itself_do_not_count_for_the_degree():
    two = (
        "  one: {kind: input-generated, at: host-20, degree: 25 %}\n"
        "  two: {kind: input-generated, at: host-30, flows: [{from: 'host-[2-7]'}]%s}"
    )
    one, other = hotspot_facts(scenario(two.replace("%s", "")))
    assert (one.sources, one.degree, other.sources) == (2, 2 / 32, 6)
    assert one.severity == pytest.approx(2 + 24 * 0.85 / 31 - 0.85 / 31, rel=1e-6)
    told = "a degree of 0.25 stands for 8 of 32 hosts; in the middle of its window 2 make it: 6.25%"
    assert told in one.remarks
    again, _ = hotspot_facts(scenario(two.replace("%s", ", window: 512 us .. 1.024 ms")))
    assert again.sources == 8, "they send to it again when the other is over"


def test_a_host_of_several_flows_has_the_load_of_the_last_one_and_that_is_told():
    flows = "[{from: 'host-[1-4]', load: 10 %}, {from: host-3}]"
    hot = f"  hot: {{kind: input-generated, at: host-0, flows: {flows}}}"
    loads = {each["from"]: each["departures"]["load"] for each in spec(hot)["traffic"][-1]["sources"]}
    assert loads == {1: 0.1, 2: 0.1, 3: 1.0, 4: 0.1}
    assert remarks(hot) == ["host-3 of 'flows.0' stands in a later entry as well, whose load counts"]


def test_a_hot_host_in_its_own_flows_is_told():
    (told,) = remarks("  hot: {kind: input-generated, at: host-0, flows: [{from: '@hosts', load: 5 %}]}")
    assert told.startswith("host-0 is among its own sources")


def test_background_that_goes_on_beside_a_full_line_is_told():
    hot = "  hot: {kind: input-generated, at: host-0, degree: 25 %, background: continues}"
    (told,) = remarks(hot)
    assert told.startswith("8 of its hosts are offered up to 1.85 line rates, as their background goes on")
    assert not remarks(
        "  hot: {kind: input-generated, at: host-0, background: continues, "
        "flows: [{from: host-1, load: 15 %}]}"
    )


def test_a_window_that_outlasts_the_run_is_cut_to_it():
    """Its middle would lie after the run, where nothing is offered."""
    hot = "  hot: {kind: output-generated, at: host-0, severity: 4.25, window: 1.024 ms .. 20 ms}"
    (fact,) = hotspot_facts(scenario(hot))
    assert fact.severity == pytest.approx(4.25, rel=1e-6)
    assert fact.remarks == ("its window goes on to 20 ms, and the run ends at 3.2768 ms",)
    (service,) = spec(hot)["switching"]["services"]
    assert service["to_ps"] == 3_276_800_000


@pytest.mark.parametrize("name", ["incast", "hotspot-cold", "hotspot-hot-after-noon"])
def test_traffic_that_cannot_be_kept_off_a_hot_output_is_told_whatever_it_is_called(name):
    source = "{kind: bursts, load: 5 %, frame_size: 64 B}"
    incast = f'  {name}: {{from: "host-[8-9]", to: host-0, source: {source}}}\n'
    text = SWITCH.replace("run: {", f"{incast}run: {{")
    hot = "hotspots:\n  hot: {kind: output-generated, at: host-0, service: 5 %, sources: 'host-[1-3]'}"
    (fact,) = hotspot_facts(loads(text + hot))
    assert fact.remarks == (
        "host-8, host-9 send to host-0 all the same: only uniform traffic that has other "
        "destinations is kept off it",
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"hotspots.hot.window": "200 us .. 3276.8 us"},
            "hotspots.hot.window: a time is a whole number of slots of 51.2 ns in the slotted engine: "
            "write 199.9872 us or 200.0384 us (got 200 us)",
        ),
        (
            {"hotspots.hot.window": "204.8 us .. 1 ms"},
            "hotspots.hot.window: a time is a whole number of slots of 51.2 ns in the slotted engine: write "
            "999.9872 us or 1.0000384 ms (got 1 ms)",
        ),
        (
            {
                "hotspots.hot": {
                    "kind": "input-generated",
                    "at": "host-0",
                    "degree": "25 %",
                    "window": "200 us .. 1024 us",
                }
            },
            "hotspots.hot.window: a time is a whole number of slots",
        ),
        (
            {
                "hotspots.hot": {
                    "kind": "input-generated",
                    "at": "host-0",
                    "degree": "25 %",
                    "window": "204.8 us .. 1 ms",
                }
            },
            "hotspots.hot.window: a time is a whole number of slots",
        ),
        (
            {
                "hotspots.hot": {
                    "kind": "input-generated",
                    "at": "host-0",
                    "degree": "25 %",
                    "frame_size": "1500 B",
                }
            },
            "hotspots.hot.frame_size: the slotted engine takes frames of one size: write 64 B, as "
            "'background' has ('hotspot-hot' has 1.5 kB)",
        ),
        (
            {"run.duration": "3 ms", "hotspots.hot.window": None},
            "run.duration: the duration is a whole number of slots of 51.2 ns in the slotted engine: write "
            "2.9999616 ms or 3.0000128 ms (got 3 ms)",
        ),
        (
            {"network.link.delay": "1 ns"},
            "network.link.delay: the delay of a link is a whole number of slots of 51.2 ns in the slotted "
            "engine: write 51.2 ns (got 1 ns)",
        ),
        (
            {"record.outputs.every": "50 us"},
            "record.outputs.every: an interval is a whole number of slots",
        ),
        (
            {"traffic.background.source": {"kind": "constant", "load": "30 %", "frame_size": "64 B"}},
            "traffic.background.source: constant gaps are whole numbers of slots of 51.2 ns",
        ),
    ],
)
def test_what_is_no_whole_number_of_slots_is_told_with_its_field_and_what_to_write(changes, told):
    with pytest.raises(ScenarioError) as refused:
        load("zrl-og").assign({"measure": None, **changes})
    assert told in str(refused.value)


def test_hot_traffic_needs_no_other_traffic_beside_it():
    head, _, rest = SWITCH.partition("traffic:")
    tail = rest[rest.index("run: {") :]
    hot = "hotspots:\n  hot: {kind: input-generated, at: host-0, degree: 25 %, frame_size: 64 B}"
    (fact,) = hotspot_facts(loads(head + tail + hot))
    assert (fact.severity, fact.sources) == (pytest.approx(8), 8)
    assert fact.throughput_max == pytest.approx(1 / 32)
    with pytest.raises(ScenarioError, match="how long are the hot frames"):
        loads(head + tail + hot.replace(", frame_size: 64 B", ""))
    with pytest.raises(ScenarioError, match="traffic: is missing"):
        loads(head + tail + "hotspots:\n  hot: {kind: output-generated, at: host-0, service: 20 %}")


def test_measures_of_totals_name_the_traffic_of_a_hotspot():
    hot = "  hot: {kind: input-generated, at: host-0, degree: 25 %}"
    lost = {"measure.lost": {"kind": "loss-ratio", "of": "hotspot-hot"}}
    assert scenario(hot).assign(lost).measure["lost"].of == ("hotspot-hot",)
    rate = {"measure.rate": {"kind": "delivered-rate", "of": "hotspot-hot", "window": "0 s .. 1.024 ms"}}
    with pytest.raises(ScenarioError, match="no traffic is called 'hotspot-hot'"):
        scenario(hot).assign(rate)
