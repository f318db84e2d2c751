"""Commands about scenario files: what is wrong with one, what is ready to run, what a file may hold."""

import json
import re

import jsonschema
import pytest

from weirlab.scenario.file.ready import ready_made


def test_check_says_what_the_testbed_cannot_honour_on_any_machine(weir):
    outcome = weir("check", "router-ndr", "--set", "traffic.offered.transport={kind: raw}")
    assert outcome.code == 2
    assert re.search(r"traffic\.offered\.transport: a router forwards IP packets", outcome.err)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("[./no-tester]", r"testbed\.run\.0: .*no-tester: no such program"),
        ("[no-such-tester]", r"testbed\.run\.0: no-such-tester: no such program on the PATH"),
        (
            "[sh, -c, '{load2}']",
            r"testbed\.run\.2: '\{load2\}': no field is called 'load2'; there are index, ",
        ),
    ],
)
def test_check_says_what_is_wrong_with_the_program_of_a_tester_and_where(weir, place, run, message):
    (place / "t.yaml").write_text(
        (place / "search.yaml")
        .read_text()
        .replace(
            "testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}",
            f"testbed: {{kind: command, run: {run}}}",
        )
    )
    outcome = weir("check", "t.yaml")
    assert outcome.code == 2
    assert re.search(rf"t\.yaml:4:\d+: {message}", outcome.err), outcome.err


def test_check_says_what_a_file_is(weir):
    outcome = weir("check", "run.yaml").out
    assert "run.yaml: legal; 'small' is a run with 1 traffic" in outcome
    assert outcome.endswith("Start it with:  weir run run.yaml\n")
    document = weir("check", "study.yaml", "--json").json
    assert document["kind"] == "study"
    assert document["points"] == 2
    assert weir("check", "search.yaml", "--json").json["kind"] == "search"


def test_check_names_the_command_of_a_study(weir) -> None:
    assert "Start it with:  weir study load-and-buffer\n" in weir("check", "load-and-buffer").out


def test_the_schema_accepts_what_the_loader_accepts(weir, place):
    import yaml

    schema = weir("schema").json
    validator = jsonschema.Draft202012Validator(schema)
    for name in ("run", "study", "search"):
        validator.validate(yaml.safe_load((place / f"{name}.yaml").read_text()))
    outcome = weir("schema", "--out", "s.json")
    assert outcome.out == ""
    assert json.loads((place / "s.json").read_text()) == schema
    again = weir("schema", "--out", "search.yaml")
    assert again.code == 2
    assert "search.yaml: exists already" in again.err
    assert "name: knee" in (place / "search.yaml").read_text()


def test_the_ready_made_scenarios_are_listed_printed_and_copied(weir, place):
    names = list(ready_made())
    listing = weir("scenarios").out
    assert len(names) >= 5
    for name in names:
        assert re.search(rf"^  {name} +\S+", listing, re.MULTILINE), name
    hotspots = listing.split("\nHotspots: weir run NAME\n")[1].split("\n\n")[0]
    expected = {n for n in names if n.startswith(("zrl-", "hotspot-"))}
    assert set(re.findall(r"^  (\S+)", hotspots, re.MULTILINE)) == expected
    found = weir("scenarios", "--search", "HOTSPOT", "--kind", "run").out
    assert "zrl-og" in found
    assert "incast" not in found
    assert weir("scenarios", "--search", "no such word").code == 2
    described = weir("scenarios", "--json").json["scenarios"]
    assert [each["name"] for each in described] == names
    assert all(each["description"] for each in described)
    commands = {each["name"]: each["command"] for each in described}
    bulk = {name for name in commands if name.startswith("bulk-")}
    for name in (*bulk, "windows-against-streams", "responsiveness"):
        assert commands[name] == "weir bulk"
    assert (commands["wan-path"], commands["router-sizes"]) == ("weir emulate", "weir search")
    assert (commands["incast"], commands["search-ip4"]) == ("weir run", "weir search")
    assert weir("scenarios", "incast").out == ready_made()["incast"].read_text()
    assert weir("scenarios", "incast", "--copy", "mine.yaml").code == 0
    assert weir("check", "mine.yaml").code == 0
    assert "exists already" in weir("scenarios", "incast", "--copy", "mine.yaml").err


def test_a_copied_scenario_brings_what_it_extends(weir, place):
    assert weir("scenarios", "zrl-128-3", "--copy", "deep.yaml").code == 0
    assert {"zrl-full.yaml", "zrl-og.yaml"} & {file.name for file in place.iterdir()}
    assert weir("check", "deep.yaml").code == 0
    # Another one that extends the same files finds them there.
    assert weir("scenarios", "zrl-ig", "--copy", "other.yaml").code == 0
    assert weir("check", "other.yaml").code == 0


def test_a_scenario_whose_program_is_in_the_way_is_not_copied_by_half(weir, place):
    (place / "tester.py").write_text("mine")
    refused = weir("scenarios", "search-command", "--copy", "copied.yaml")
    assert refused.code == 2
    assert "tester.py: exists already" in refused.err
    assert not (place / "copied.yaml").exists()
    assert (place / "tester.py").read_text() == "mine"
