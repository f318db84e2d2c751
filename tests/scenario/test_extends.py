"""A file that extends another: what merges, what is replaced, and where faults are then told to stand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import load
from weirlab.scenario.network import DropTail, Dumbbell, Star
from weirlab.units import Size, Span

BASE = """\
weirlab: 1
name: base
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 1 us}}
queues: {egress: {at: "switch-0->*", kind: drop-tail, limit: 150 kB}}
traffic:
  load: {from: "host-[0-2]", to: host-3, source: {kind: poisson, load: 10 %, frame_size: 1500 B}}
run: {duration: 10 ms, seed: 3}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def child(here: Path, text: str, name: str = "child.yaml") -> Path:
    path = here / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def complaints(path: Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load(path)
    return str(caught.value).replace(f"{path.parent}/", "").splitlines()


def test_mappings_merge_and_values_replace(here: Path) -> None:
    scenario = load(child(here, "extends: base.yaml\nname: child\nrun: {duration: 20 ms}\n"))
    assert (scenario.name, scenario.run.duration, scenario.run.seed) == ("child", Span.from_s(0.02), 3)


def test_what_is_no_ordinary_file_is_refused_before_it_is_read(here: Path) -> None:
    os.mkfifo(here / "pipe")
    for name in ("pipe", "/dev/zero"):
        (complaint,) = complaints(child(here, f"extends: {name}\nname: child\n"))
        assert "is not an ordinary file" in complaint


def test_null_removes(here: Path) -> None:
    scenario = load(child(here, "extends: base.yaml\nqueues: {egress: null}\nrun: {seed: ~}\n"))
    assert not scenario.queues
    assert scenario.run.seed == 1


def test_a_list_replaces_a_list(here: Path) -> None:
    (here / "base.yaml").write_text(BASE.replace('from: "host-[0-2]"', "from: [host-0, host-1]"))
    scenario = load(child(here, "extends: base.yaml\ntraffic: {load: {from: [host-2]}}\n"))
    assert scenario.traffic["load"].from_ == ("host-2",)


def test_another_kind_replaces_the_whole_mapping(here: Path) -> None:
    text = """\
extends: base.yaml
network: {kind: dumbbell, pairs: 1, access: {rate: 1 Gbit/s}, bottleneck: {rate: 1 Gbit/s}}
queues: null
traffic: {load: {from: left-0, to: right-0}}
"""
    assert isinstance(load(child(here, text)).network, Dumbbell)


def test_the_same_kind_merges(here: Path) -> None:
    network = load(child(here, "extends: base.yaml\nnetwork: {kind: star, hosts: 9}\n")).network
    assert isinstance(network, Star)
    assert (network.hosts, network.link.delay) == (9, Span.from_s(1e-6))


def test_three_generations(here: Path) -> None:
    child(here, "extends: base.yaml\nrun: {seed: 4}\n", "middle.yaml")
    assert load(child(here, "extends: middle.yaml\nname: last\n")).run.seed == 4


def test_a_parent_is_found_beside_its_child(here: Path) -> None:
    assert load(child(here, "extends: ../base.yaml\n", "below/child.yaml")).name == "base"


def test_a_fault_stands_in_the_file_that_its_value_came_from(here: Path) -> None:
    (here / "base.yaml").write_text(BASE.replace("10 Gbit/s", "10"))
    assert complaints(child(here, "extends: base.yaml\nrun:\n  duration: 10\n")) == [
        "child.yaml:3:3: run.duration: write a duration with its unit, such as '0.5 us' (got '10')",
        "base.yaml:3:40: network.link.rate: write a rate with its unit, such as '10 Gbit/s' (got '10')",
    ]


def test_a_file_that_extends_itself(here: Path) -> None:
    path = child(here, "weirlab: 1\nextends: child.yaml\n")
    assert complaints(path) == [
        "child.yaml:2:1: extends: the files extend each other in a circle: child.yaml -> child.yaml"
    ]


def test_files_that_extend_each_other(here: Path) -> None:
    child(here, "extends: child.yaml\n", "other.yaml")
    path = child(here, "extends: other.yaml\n")
    assert complaints(path) == [
        "other.yaml:1:1: extends: the files extend each other in a circle: "
        "child.yaml -> other.yaml -> child.yaml"
    ]


def test_a_long_line_of_ancestors(here: Path) -> None:
    for i in range(30):
        child(here, f"extends: a{i + 1}.yaml\n", f"a{i}.yaml")
    (complaint,) = complaints(here / "a0.yaml")
    assert complaint.endswith("extends: more than 20 files extend one another")


def test_a_parent_that_does_not_exist(here: Path) -> None:
    assert complaints(child(here, "extends: bsae.yaml\n")) == [
        "child.yaml:1:1: extends: 'bsae.yaml' cannot be used",
        "bsae.yaml: there is no such file",
    ]


def test_a_parent_with_a_name_that_no_file_can_have(here: Path) -> None:
    (complaint,) = complaints(child(here, f"extends: {'x' * 5000}\n"))
    assert complaint.startswith("child.yaml:1:1: extends: 'xxx")
    assert complaint.endswith("' cannot be used: File name too long")


def test_a_ready_made_parent_is_copied_first_and_a_file_of_its_name_needs_no_copy(here: Path) -> None:
    path = child(here, "extends: bcn\n")
    assert complaints(path) == [
        "child.yaml:1:1: extends: there is no file 'bcn' next to it: copy the ready-made scenario with "
        "'weir scenarios bcn --copy bcn.yaml', and write 'extends: bcn.yaml'"
    ]
    assert complaints(child(here, "extends: bcn.yaml\n")) == [
        "child.yaml:1:1: extends: there is no file 'bcn.yaml' next to it: copy the ready-made scenario with "
        "'weir scenarios bcn --copy bcn.yaml'"
    ]
    path = child(here, "extends: bcn\n")
    (here / "bcn").write_text((here / "base.yaml").read_text())
    assert load(path).name == load(here / "base.yaml").name


def test_several_parents(here: Path) -> None:
    assert complaints(child(here, "extends: [base.yaml, base.yaml]\n")) == [
        "child.yaml:1:1: extends: name one scenario file, such as 'extends: base.yaml'"
    ]


def test_what_was_inherited_can_be_written_out_in_one_file(here: Path) -> None:
    scenario = load(child(here, "extends: base.yaml\nqueues: {egress: {limit: 30 kB}}\n"))
    alone = here / "alone.yaml"
    alone.write_text(scenario.to_yaml())
    assert load(alone) == scenario
    queue = scenario.queues["egress"]
    assert isinstance(queue, DropTail)
    assert queue.limit == Size(30_000)
