"""Scenarios whose copy may lie elsewhere: files next to the scenario file are named in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from weirlab.scenario.model import Scenario
from weirlab.scenario.network.path import Hop
from weirlab.scenario.testbeds import Command, Netns, Sim, Ssh


def movable(scenario: Scenario) -> Scenario:
    """The same with the full path of every file and directory that it names, so that a copy of it in a
    result means the same files."""
    beside = Path(scenario.file).parent
    named = {path: str((beside / name).resolve()) for path, name in _named_files(scenario)}
    return scenario.assign(named) if named else scenario


def _under(section: str, hops: Mapping[str, Hop]) -> list[tuple[str, Hop]]:
    return [(f"{section}.{name}", hop) for name, hop in hops.items()]


def _named_files(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Dotted path and value of every field that names a file relative to the scenario file."""
    bed = scenario.testbed
    match bed:
        case Command():
            yield "testbed.directory", bed.directory or ""
        case Ssh(config=str(config)):
            yield "testbed.config", config
        case Netns() | Sim():
            hosts = bed.hosts if isinstance(bed, Netns) else {}
            for name, hop in [*_under("hops", bed.hops), *_under("hosts", hosts)]:
                for side, line in (("forward", hop.forward), ("backward", hop.backward)):
                    at = f"testbed.{name}.{side}"
                    if line is not None and line.trace is not None:
                        yield f"{at}.trace", line.trace
                    if line is not None and line.delays is not None and line.delays.trace is not None:
                        yield f"{at}.delays.trace", line.delays.trace
