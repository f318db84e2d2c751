"""Bad scenario files: each kind of mistake gets a message that says where, what is wrong, what would do."""

from __future__ import annotations

import pytest

from bad_files import GOOD, cases, complaints
from weirlab.fields.base import kind_of
from weirlab.measures.registry import MEASURES
from weirlab.scenario import loads
from weirlab.scenario.file.problems import did_you_mean


def test_the_files_that_are_spoilt_here_are_good() -> None:
    assert loads(GOOD).name == "incast"


SPOILT_FIELDS = cases("bad-fields")


@pytest.mark.parametrize(("before", "after", "message"), SPOILT_FIELDS.values(), ids=SPOILT_FIELDS.keys())
def test_a_spoilt_field_is_reported_with_its_place(before: str, after: str, message: str) -> None:
    assert before in GOOD
    assert complaints(GOOD.replace(before, after)) == [message]


ADDITIONS = cases("bad-additions")


@pytest.mark.parametrize(("addition", "message"), ADDITIONS.values(), ids=ADDITIONS.keys())
def test_an_addition_that_does_not_fit_is_reported_with_its_place(addition: str, message: str) -> None:
    message = message.replace("{measures}", ", ".join(kind_of(model) for model in MEASURES))
    assert message in complaints(f"{GOOD}{addition}\n")
    if "campaign" not in addition:
        assert complaints(f"{GOOD}{addition}\n") == [message]


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    spoilt = (
        GOOD.replace("hosts: 4", "hosts: four")
        .replace("poisson", "poison")
        .replace("10 ms", "10")
        .replace("run:", "rubbish: 1\nrun:")
    )
    assert complaints(spoilt) == [
        "f.yaml:3:23: network.hosts: write a whole number, such as '8' (got 'four')",
        "f.yaml:8:14: traffic.load.source.kind: unknown kind 'poison'; did you mean 'poisson'?; "
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, messages, flow-table, collective, goal, "
        "chakra, ping, requests, stamp, pathload, pbprobe",
        "f.yaml:9:1: rubbish: unknown field (got '1'); fields here: weirlab, name, description, testbed, "
        "network, queues, buffers, control, adapters, traffic, hotspots, events, run, record, measure, "
        "search, campaign, study, extends",
        "f.yaml:10:7: run.duration: write a duration with its unit, such as '0.5 us' (got '10')",
    ]


def test_a_spoilt_section_does_not_hide_wrong_names_in_another() -> None:
    spoilt = GOOD.replace("10 ms", "10").replace("to: host-3", "to: host-33")
    assert complaints(spoilt) == [
        "f.yaml:7:5: traffic.load.to: no node is called 'host-33'; did you mean 'host-3'?",
        "f.yaml:9:7: run.duration: write a duration with its unit, such as '0.5 us' (got '10')",
    ]


def test_a_file_of_another_version_is_not_judged_further() -> None:
    assert complaints(GOOD.replace("weirlab: 1", "weirlab: 2").replace("hosts", "hsots")) == [
        "f.yaml:1:1: weirlab: this version of Weirlab reads 'weirlab: 1' (got '2')"
    ]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("pfc: {}", "is 'lossless: {}' of a pool in 'buffers'"),
        ("queues: {a: {at: switch-0->*, kind: wred}}", "RED is the kind 'red' of a queue"),
        ("queues: {a: {at: switch-0->*, kind: dwrr}}", "'fq-codel' serves flows in turns"),
        ("control: {a: {kind: pfc}}", "'control: {pause: ...}' holds all frames of a link"),
    ],
)
def test_words_of_other_tools_are_answered_with_what_there_is_here(section: str, words: str) -> None:
    (complaint,) = complaints(GOOD + section + "\n")
    assert words in complaint
    assert "did you mean" not in complaint


def test_an_unknown_field_is_answered_with_all_fields_there_are() -> None:
    (complaint,) = complaints(GOOD + "rubbish: 1\n")
    for section in ("weirlab", "network", "measure", "search", "campaign", "study", "extends"):
        assert section in complaint


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        (
            'out: {kind: drop-tail, ports: "switch-0->*", limit: 10 frames}',
            "queues.out.ports: unknown field (got 'switch-0->*'); fields here: kind, at, limit, marking, "
            "overrun; 'at' is missing: ports that have this queue",
        ),
        ('out: {kind: drop-tail, at: "switch-0->*", limt: 10 frames}', "did you mean 'limit'?"),
        (
            'kind: drop-tail\n  at: "switch-0->*"\n  limit: 10 frames',
            "queues.kind: entries have names: write 'queues: {NAME: {kind: ..., ...}}'",
        ),
        ("out: drop-tail", "queues.out: a mapping is expected here, such as {kind: drop-tail, ...}"),
    ],
    ids=["another word", "a slip", "no name of an entry", "a word alone"],
)
def test_a_field_with_a_wrong_name_is_one_problem(queues: str, message: str) -> None:
    (told,) = complaints(f"{GOOD.rstrip()}\nqueues:\n  {queues}\n")
    assert message in told


def test_a_leaf_spine_is_answered_with_the_kind_that_makes_one() -> None:
    (complaint,) = complaints(GOOD.replace("kind: star", "kind: leaf-spine"))
    assert "a leaf-spine is the kind 'xgft'" in complaint


def test_the_first_word_of_a_kind_finds_it_before_a_kind_of_similar_letters() -> None:
    assert did_you_mean("dcqcn", ["dctcp", "dcqcn-sender"]) == "; did you mean 'dcqcn-sender'?"
