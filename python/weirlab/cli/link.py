"""A path in the words of a command line, for those who want one without a file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.shared import field_value, tell
from weirlab.documents import fields_of
from weirlab.errors import InputError, Problem, ScenarioError

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.scenario.network.path import Line


HOP = "path"
"""What the one hop of such a path is called."""
LEAST_BUFFER_FRAMES = 15
"""Of the buffer that stands for one bandwidth-delay product."""
_STANDS_FOR = {"queue": "kind", "jitter": "size"}
"""The field that a single word is of, where a field has fields."""
_BOTH = "Both ways"
_TC_RATE = re.compile(r"\s*(\d[\d.]*(?:e[+-]?\d+)?)\s*([kmgt]?)bit(?:/s|ps)?\s*", re.IGNORECASE)
"""A rate as `tc` and people in a hurry write it."""

_FIELDS = "fields of a line with their values, such as rate=2mbit,loss=0.1%,jitter={size: 3 ms}."

WriteOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Only write the scenario that the options describe into this new file."
    ),
]


@dataclass(frozen=True)
class Link:
    """The options that describe a path with one hop."""

    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help=f"{_BOTH}: rate of the link, such as 20mbit.")
    ] = None
    delay: Annotated[
        str | None,
        typer.Option(metavar="TIME", help=f"{_BOTH}: delay of the link; a round trip is twice that."),
    ] = None
    loss: Annotated[
        str | None, typer.Option(metavar="SHARE", help=f"{_BOTH}: packets lost at random, such as 1%.")
    ] = None
    jitter: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"{_BOTH}: uniform jitter up to this.")
    ] = None
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help=f"{_BOTH}: buffer, such as 100kB, 50frames or unlimited. Default: rate times round trip.",
        ),
    ] = None
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"{_BOTH}: codel, pie ... or {{kind: red, min: 9 kB, max: 30 kB}}. Default: drop-tail.",
        ),
    ] = None
    up: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE,...", help=f"Near to far only: {_FIELDS}")
    ] = None
    down: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE,...", help=f"Far to near only: {_FIELDS}")
    ] = None

    @property
    def both(self) -> dict[str, str]:
        """Values of fields of both directions by the name of their option, those that were given."""
        values = fields_of(self, "rate", "delay", "loss", "jitter", "buffer", "queue")
        return {name: value for name, value in values.items() if value is not None}

    @property
    def given(self) -> bool:
        """Whether they say anything."""
        return bool(self.both or self.up or self.down)

    def hops(self) -> dict[str, object]:
        """The section `testbed.hops` that they describe. Raises InputError for words that are no fields."""
        ways = {}
        for direction, option, given in (("forward", "--up", self.up), ("backward", "--down", self.down)):
            fields = {
                name: _field(name, field_value(value, f"--{name}")) for name, value in self.both.items()
            }
            for text in given or ():
                for pair in _pairs(text):
                    _add(fields, option, pair)
            ways[direction] = {name: value for name, value in fields.items() if value is not None}
        return {HOP: ways}

    def scenario(
        self,
        sets: Mapping[str, object],
        more: Mapping[str, object] | None = None,
        option_of: Callable[[str], str] = str,
        *,
        in_frames: bool = False,
    ) -> Scenario:
        """The scenario that they describe, with `more` sections and assignments of `--set`; where a rate is
        given, a line without a buffer has one of its rate times the round trip.

        Args:
            option_of: The option in which a part of `more` stands, by its path.
            in_frames: Whether such a buffer is counted in frames of the greatest size.

        Raises ScenarioError, in which the places are options.
        """
        sections = {"name": "path", "testbed": {"kind": "netns", "hops": self.hops()}, **(more or {})}

        def option(path: str) -> str:
            return option_of(self._option(path))

        scenario = from_words(sections, sets, option)
        buffers = _default_buffers(scenario, in_frames=in_frames)
        return from_words(sections, {**buffers, **sets}, option) if buffers else scenario

    def _option(self, path: str) -> str:
        """The option in which a faulty field stands; other paths as they are."""
        match path.split("."):
            case ["testbed", "hops", _, "forward" | "backward" as direction, field, *rest]:
                option, given = ("--up", self.up) if direction == "forward" else ("--down", self.down)
                names = {_path(pair)[0] for text in given or () for pair in _pairs(text)}
                if field in names:
                    return ".".join([f"{option} {field}", *rest])
                if field not in self.both:
                    return path
                # Where the directions differ, one has the fault.
                way = "near to far" if direction == "forward" else "far to near"
                option = self._both(field, ".".join(rest))
                return f"{option} ({way})" if self.up or self.down else option
        return path

    def _both(self, field: str, inner: str) -> str:
        """The option of both ways in which a field of a field stands, or how it is written there."""
        given, stands_for = self.both[field], _STANDS_FOR.get(field)
        if inner and given.startswith("{"):
            return f"--{field} {inner}"
        alone = inner in ("", stands_for)
        return f"--{field}" if alone else f"--{field} '{{{stands_for}: {given}, {inner}: ...}}'"


def from_words(
    sections: Mapping[str, object], sets: Mapping[str, object], option_of: Callable[[str], str]
) -> Scenario:
    """The scenario of some sections, with assignments of `--set`.

    Raises ScenarioError, in which places are as `option_of` has them; a fault with one place is reported
    once.
    """
    from weirlab.scenario import loads
    from weirlab.scenario.network.path import path_plan

    try:
        scenario = loads("weirlab: 1\n", {**sections, **sets})
        path_plan(scenario)  # which reads traces
        return scenario
    except ScenarioError as error:
        reported = {_in_options(problem, option_of(problem.path)): None for problem in error.problems}
        raise ScenarioError(list(reported)) from None


def _in_options(problem: Problem, option: str) -> Problem:
    """A problem at an option; of a field that is missing and has no option, also what adds it."""
    has_none = option.startswith("--") and " " not in option
    added = f"; add --set {problem.path}=..." if has_none and problem.message.startswith("is missing") else ""
    return Problem(problem.message + added, path=option)


def write_scenario(scenario: Scenario, file: Path) -> None:
    """Keep a scenario as a file, from which it can be started wherever that lies. Raises InputError where
    there is one, and WeirlabError where none can be.
    """
    from weirlab.files import whole

    if file.exists():
        raise InputError(f"--write {file}: exists already; name a new file")
    with whole(file) as unfinished:
        unfinished.write_text(scenario.as_written(movable=True), encoding="utf-8")
    tell(f"written: {file}")


_PAIRS = re.compile(r"[\[\]{}]|,|'[^']*'|\"(?:[^\"\\]|\\.)*\"")
"""What matters between pairs: brackets, commas, and quoted text, in which neither counts."""


def _pairs(text: str) -> list[str]:
    """`FIELD=VALUE` texts, which are parted by commas outside brackets and quotes."""
    begins, depth = [0], 0
    for found in _PAIRS.finditer(text):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
        elif found[0] == "," and depth <= 0:
            begins.append(found.end())
    ends = [*(begin - 1 for begin in begins[1:]), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _path(pair: str) -> list[str]:
    """The field, and the fields in it, that a pair is of."""
    return [name.strip() for name in pair.partition("=")[0].split(".")]


def _add(fields: dict[str, object], option: str, pair: str) -> None:
    """Add what a pair says to the fields of a line. Raises InputError where it is none."""
    _, equals, value = pair.partition("=")
    path = _path(pair)
    if not equals or not all(path):
        raise InputError(f"{option}: write FIELD=VALUE, such as rate=2mbit (got '{pair}')")
    name, *rest = path
    read = field_value(value.strip(), f"{option} {'.'.join(path)}")
    if not rest:
        fields[name] = _field(name, read)
        return
    place = fields
    for depth, inner in enumerate(path[:-1], start=1):
        place[inner] = place = _as_mapping(place.get(inner), option, path[:depth])
    place[path[-1]] = read


def _as_mapping(value: object, option: str, path: Sequence[str]) -> dict[str, object]:
    """A copy of what a field holds, to add fields to."""
    if value is None or isinstance(value, dict):
        return dict(value or {})
    raise InputError(f"{option} {'.'.join(path)}: is {value} already, and has no fields; write one of both")


def _field(name: str, value: object) -> object:
    """The value of a field of a line as a file would have it."""
    if isinstance(value, str):
        match name:
            case "rate":
                return rate_text(value)
            case "queue" if value == "drop-tail":
                return None
            case "queue" | "jitter":
                return {_STANDS_FOR[name]: value}
    return value


def rate_text(text: str) -> str:
    """A rate as files have it, where it is written as `tc` has it."""
    found = _TC_RATE.fullmatch(text)
    if found is None:
        return text
    number, prefix = found.groups()
    return f"{number} {prefix.lower() if prefix in 'kK' else prefix.upper()}bit/s"


def _default_buffers(scenario: Scenario, *, in_frames: bool) -> dict[str, str]:
    """Buffers for the lines that have a rate and none: their rate times the round trip."""
    from weirlab.scenario.testbeds import Netns, Sim

    assert isinstance(scenario.testbed, Netns | Sim)
    hop = scenario.testbed.hops[HOP]
    lines = {"forward": hop.forward, "backward": hop.backward or hop.forward}
    rtt_s, mtu_bytes = sum(line.least_delay.s for line in lines.values()), scenario.testbed.mtu.bytes

    def reported(size_bytes: int) -> str:
        return f"{math.ceil(size_bytes / mtu_bytes)} frames" if in_frames else f"{size_bytes} B"

    return {
        f"testbed.hops.{HOP}.{direction}.buffer": reported(_product_bytes(line, rtt_s, mtu_bytes))
        for direction, line in lines.items()
        if line.rate is not None and "buffer" not in line.model_fields_set
    }


def _product_bytes(line: Line, rtt_s: float, mtu_bytes: int) -> int:
    assert line.rate is not None
    return max(round(line.rate.bps * rtt_s / 8), LEAST_BUFFER_FRAMES * mtu_bytes)


def link_words(scenario: Scenario) -> str:
    """What a path with one hop is like, in a line for people."""
    from weirlab.scenario.testbeds import Netns, Sim

    assert isinstance(scenario.testbed, Netns | Sim)
    hop = scenario.testbed.hops[HOP]
    back = hop.backward or hop.forward
    up, down = _words(hop.forward), _words(back)
    rtt_s = hop.forward.least_delay.s + back.least_delay.s
    ways = f"{up} each way" if up == down else f"up {up}; down {down}"
    return f"{ways}; round trip {1e3 * rtt_s:g} ms"


def _words(line: Line) -> str:
    """A direction, in words."""
    reported = []
    if line.rate is not None:
        reported.append(str(line.rate))
    elif line.trace is not None or line.steps:
        reported.append("a rate that changes")
    else:
        reported.append("no rate limit")
    if line.delays is not None:
        reported.append(f"delay {line.least_delay} and more")
    else:
        reported.append(f"delay {line.least_delay}" if line.least_delay.s else "no delay")
    if line.rate is not None or line.trace is not None or line.steps:
        reported.append(f"buffer {line.buffer}")
    if line.queue is not None:
        reported.append(line.queue.kind)
    if line.loss:
        reported.append(f"{100 * line.loss:g} % lost")
    if line.jitter is not None:
        reported.append(f"jitter {line.jitter.size}")
    return ", ".join(reported)
