"""What is wrong with names and selectors in a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weirlab.scenario.file.problems import did_you_mean, listed
from weirlab.scenario.network.layout import Layout, NoMatchError, bracket_hint, matches
from weirlab.spec import Where

Fault = tuple[Where, str]
"""Where, and what is wrong."""


class EntryFault(Exception):
    """Something is wrong with an entry of a scenario, at `path` below it: who asked knows which entry."""

    def __init__(self, message: str, *path: str | int) -> None:
        self.path = path
        super().__init__(message)


def ports_amiss(layout: Layout, patterns: Sequence[str], path: Where) -> Iterator[Fault]:
    try:
        layout.port_ids(patterns)
    except NoMatchError as error:
        yield path, str(error)


def nodes_amiss(
    layout: Layout, patterns: Sequence[str], path: Where, *, hosts: bool | None = None
) -> Iterator[Fault]:
    """Nodes of any kind; with `hosts` only hosts, or only switches."""
    try:
        names = [layout.nodes[i] for i in layout.node_ids(patterns)]
    except NoMatchError as error:
        yield path, str(error)
        return
    wrong = [name for name in names if hosts is not None and (name in layout.hosts) != hosts]
    if wrong:
        yield path, f"only {'hosts' if hosts else 'switches'} can stand here (got {listed(wrong, 4)})"


def traffic_amiss(patterns: Sequence[str], names: Sequence[str], path: Where) -> Iterator[Fault]:
    for pattern in patterns:
        if not any(matches(pattern, name) for name in names):
            hint = (
                bracket_hint(pattern)
                or did_you_mean(pattern, names)
                or f"; traffic: {listed(names) or 'none'}"
            )
            yield path, f"no traffic is called '{pattern}'{hint}"
