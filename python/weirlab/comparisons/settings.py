"""What else differs between results: fields of their scenarios, and what they were made with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weirlab.comparisons.quantities import Compared

ABSENT = "–"
"""The value of a field that a scenario lacks."""
_MOST = 60
"""Letters of a value that are kept."""


@dataclass(frozen=True)
class Setting:
    """Something that is not the same in all results."""

    name: str
    """Dotted path of a field of the scenario, or a fact of the machine or the programs."""
    of: str
    """`scenario`, or `made with`."""
    values: Sequence[str]
    """One per result."""


def settings(results: Sequence[Compared]) -> list[Setting]:
    """The fields of the scenarios that differ, defaults included, then programs and machines."""
    return [
        *_differing(
            "scenario",
            [dict(_leaves(each.scenario.model_dump(mode="json", by_alias=True))) for each in results],
        ),
        *_differing("made with", [dict(_facts(each)) for each in results]),
    ]


def _differing(of: str, results: Sequence[Mapping[str, str]]) -> Iterator[Setting]:
    for name in dict.fromkeys(name for result in results for name in result):
        values = [result.get(name, ABSENT) for result in results]
        if len(set(values)) > 1:
            yield Setting(name, of, values)


def _facts(result: Compared) -> Iterator[tuple[str, str]]:
    made = result.manifest.provenance
    yield "seed", str(result.manifest.seed)
    yield "replicates", str(result.manifest.replicates)
    yield "weirlab", made.weirlab
    yield "revision", made.revision or ABSENT
    yield "python", made.python
    yield from made.packages.items()
    yield "host", made.host
    yield "os", made.os
    yield "kernel", made.kernel
    yield "cpu", made.cpu or ABSENT
    yield "usable CPUs", str(made.cpus_usable)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}[{place}]")
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield path, text if len(text) <= _MOST else text[: _MOST - 1] + "…"
