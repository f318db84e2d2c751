"""A name that nothing has, in any field of the ready-made scenarios that names something: one problem, at its
place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import yaml

from weirlab.errors import ScenarioError
from weirlab.scenario import load
from weirlab.scenario.file.ready import ready_made

NAMING = {
    *("at", "of", "from", "to", "inputs", "hotspot", "vary"),
    *("queue", "flow", "tcp", "delays", "levels", "limiter", "p_streams", "frames"),
}
"""Fields that name ports, nodes, traffic or hotspots."""


def naming(tree: Mapping[str, object], place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from naming(value, (*place, key))
        elif key in NAMING and isinstance(value, str):
            yield (*place, key), value


def examples() -> Iterator[tuple[str, str, str]]:
    """For each such field of each kind of entry a scenario that has it."""
    known = set()
    for name, file in ready_made().items():
        tree = yaml.safe_load(file.read_text())
        for place, value in naming(tree):
            entry = tree
            for key in place[:-1]:
                entry = entry[key]
            kind = (place[0], entry.get("kind"), *place[2:])
            if kind not in known:
                known.add(kind)
                yield name, ".".join(place), "nobody->*" if "->" in value else "nobody"


@pytest.mark.parametrize(("name", "path", "wrong"), list(examples()))
def test_a_name_that_nothing_has_is_one_problem(name: str, path: str, wrong: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(name, {path: wrong})
    paths = [problem.path for problem in caught.value.problems]
    if path == "search.vary":  # what varied before now lacks a load
        paths.remove("traffic.offered.source")
    assert paths == [path]
