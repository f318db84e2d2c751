"""The whole scenario: all sections of a file, and where they came from."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema

from weirlab.errors import Problem, UnitError
from weirlab.fields.base import Model, Name, Named, Text
from weirlab.files import whole
from weirlab.measures.registry import AnyMeasure
from weirlab.scenario.control import Control
from weirlab.scenario.file.document import NOWHERE, Node, join_path
from weirlab.scenario.network import AnyNetwork, AnyQueue
from weirlab.scenario.network.buffers import Buffer
from weirlab.scenario.network.events import AnyEvent
from weirlab.scenario.network.switching import Adapter
from weirlab.scenario.plan import Campaign, Run, Search, Study
from weirlab.scenario.record import AnyRecord
from weirlab.scenario.testbeds import AnyTestbed, Netns, Sim
from weirlab.scenario.traffic import Traffic
from weirlab.scenario.traffic.hotspots import AnyHotspot

if TYPE_CHECKING:
    from weirlab.scenario.resolve import Resolved
    from weirlab.scenario.traffic.offered import Offered


VERSION = 1
"""Version of the file format."""


def _read_version(value: object) -> int:
    if str(value) != str(VERSION):
        raise UnitError(f"this version of Weirlab reads 'weirlab: {VERSION}' (got '{value}')")
    return VERSION


class Origin:
    """The tree that a scenario was read from. It is no part of what the scenario says: all are equal."""

    __slots__ = ("known", "texts", "tree")

    def __init__(self, tree: Node, near: Origin | None = None) -> None:
        self.tree = tree
        self.known: dict[Any, Any] = {} if near is None else dict(near.known)
        """What was worked out from some sections; see `weirlab.scenario.sections`."""
        self.texts: dict[str, tuple[object, str]] = {} if near is None else dict(near.texts)
        """Parts of the spec by name, with their JSON."""

    def __reduce__(self) -> tuple[type[Origin], tuple[Node]]:
        return Origin, (self.tree,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    __hash__ = None  # type: ignore[assignment]


class Scenario(Model):
    """One experiment. Immutable; made by `load` or `loads`, which check that all fields are consistent."""

    weirlab: Annotated[
        Literal[1],
        BeforeValidator(_read_version),
        WithJsonSchema({"enum": [VERSION, str(VERSION)]}),
        Field(examples=[VERSION]),
    ]
    """Version of the file format."""
    name: Name = Field(examples=["incast"])
    """What the experiment is called; results are kept under this name."""
    description: Text | None = None
    """What it shows."""
    testbed: AnyTestbed = Sim(kind="sim")
    """Where it runs. Absent: the simulator."""
    network: AnyNetwork | None = None
    """Nodes and links. Absent where the testbed has its own: hosts `sender` and `receiver`."""
    queues: Named[AnyQueue] = Named()
    """Queues of ports; later rules replace earlier ones. Switch ports without a rule: drop-tail 150 kB, or
    without bound where the memory is shared or `buffers` names the switch; host ports: unlimited."""
    buffers: Named[Buffer] = Named()
    """How switches share their buffer among inputs, outputs and classes, and when they stop neighbours."""
    control: Control | None = None
    """Congestion control in the network."""
    adapters: Named[Adapter] = Named()
    """How hosts queue; for a host with several entries the last one counts. Absent: in order, without
    bound."""
    traffic: Named[Traffic] = Named()
    """Who sends what to whom."""
    hotspots: Named[AnyHotspot] = Named()
    """Outputs that are offered more than they serve, by additional traffic or by that of `traffic`."""
    events: Named[AnyEvent] = Named()
    """Changes of links and queues during the run."""
    run: Run = Run()
    """How long, and the seed."""
    record: Named[AnyRecord] = Named()
    """What to record in addition to the totals."""
    measure: Named[AnyMeasure] = Named()
    """Numbers to take from the records."""
    search: Search | None = None
    """A search for rates; not together with `campaign`."""
    campaign: Campaign | None = None
    """Measurements in cycles."""
    study: Study | None = None
    """Combinations of factor levels, with replicates."""

    _origin: Origin = PrivateAttr(default_factory=lambda: Origin(Node({}, NOWHERE)))

    def __init__(self, **sections: object) -> None:
        """Made in Python as a file is written: sections as dicts and quantities as text, or as the types of
        the modules of `weirlab.scenario` (such as `network.Star`) and of `weirlab.units`. `weirlab` may be
        left out.

        Raises ScenarioError with every problem.
        """
        from weirlab.scenario.loading import build

        build(self, {"weirlab": VERSION, **sections})

    @property
    def file(self) -> str:
        """The file that the scenario was read from, or nothing."""
        return self._origin.tree.place.file

    @property
    def command(self) -> Literal["search", "bulk", "emulate", "run"]:
        """The command that starts it."""
        if self.search is not None:
            return "search"
        if self.campaign is not None:
            return "bulk"
        return "emulate" if isinstance(self.testbed, Netns) and self.testbed.on_path else "run"

    def dump(self) -> dict[str, object]:
        """The scenario in full, defaults included, as plain data that `Scenario` and YAML files take."""
        plain = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {key: _kind_first(value) for key, value in plain.items()}

    def _given(self) -> dict[str, object]:
        """The same without what was not given when it was made."""
        plain = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        return {key: _kind_first(value) for key, value in plain.items()}

    def to_yaml(self, *, movable: bool = False) -> str:
        """The scenario in full as a file that `loads` reads back equal. One that is `movable` names other
        files in full, so that it may lie elsewhere."""
        plain = self._moved(self.dump()) if movable else self.dump()
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)

    def _moved(self, plain: dict[str, object]) -> dict[str, object]:
        from weirlab.scenario.file.moving import moved

        return moved(self, plain)

    def save(self, file: str | Path) -> Path:
        """Write the scenario, no longer than it was written, into a file that `weir` and `load` take."""
        path = Path(file)
        with whole(path) as unfinished:
            unfinished.write_text(self.as_written(), encoding="utf-8")
        return path

    def __repr__(self) -> str:
        sections = [name for name in type(self).model_fields if not self.has_default(name)]
        return f"<Scenario {self.name}: {', '.join(sections[2:])}>"

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(self.name)}</b><pre>{html.escape(self.as_written())}</pre>"

    def as_written(self, *, movable: bool = False) -> str:
        """The scenario as a file that says no more than what it was read from, all parents and assignments
        included, or made of in Python, and that `loads` reads back; `movable` as in `to_yaml`."""
        plain: dict[str, object] = self._origin.tree.plain() or _texts(self._given())
        if movable:
            plain = self._moved(plain)
        return yaml.dump(
            plain, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
        )

    def fields_at(self, path: tuple[str | int, ...]) -> list[str]:
        """Names, as in a file, of the fields of the part at `path`; none where no model is there."""
        part: object = self
        for step in path:
            if isinstance(part, Model):
                fields = type(part).model_fields
                part = next((getattr(part, n) for n, f in fields.items() if (f.alias or n) == step), None)
            elif isinstance(part, Mapping):
                part = part.get(step)
            else:
                part = part[step] if isinstance(part, list | tuple) and isinstance(step, int) else None
        if not isinstance(part, Model):
            return []
        return [field.alias or name for name, field in type(part).model_fields.items()]

    def problem(self, path: str, message: str) -> Problem:
        """A problem with the part at the dotted `path`, with its place in the file."""
        return self.problem_at(split_path(path), message)

    def problem_at(self, path: tuple[str | int, ...], message: str) -> Problem:
        """A problem with the part at `path`, with its place in the file."""
        place = self._origin.tree.nearest(path).place
        return Problem(message, path=join_path(path), file=place.file, line=place.line, column=place.column)

    def replace(self, **sections: object) -> Scenario:
        """This scenario with other sections, such as `replace(name="longer", run={"duration": "20 ms"})`. To
        change one value within a section, see `assign`. Raises ScenarioError."""
        return self.assign(sections)

    def assign(self, assignments: Mapping[str, object]) -> Scenario:
        """This scenario with other values at some dotted paths; None removes what is there.

        Values are what a file would hold: text such as `20 ms`, numbers, lists, mappings, or the types that
        a scenario is made of. Raises
        ScenarioError, whose problems name the paths.
        """
        from weirlab.scenario.loading import assigned

        return assigned(self, assignments)

    def offered(self) -> Offered:
        """What the search of this scenario varies, in frames/s; the scenario must have a search."""
        from weirlab.scenario.traffic.offered import offered

        return offered(self)

    def at_load(self, load_fps: float, duration_s: float) -> Scenario:
        """This scenario as the plain run of one trial of its search: `load_fps` summed over all flows for
        `duration_s`, then the time to settle."""
        from weirlab.scenario.traffic.offered import at_load

        return at_load(self, load_fps, duration_s)

    def resolve(self, *, sums: bool = False) -> Resolved:
        """The spec that the simulator runs, with names for its ids; with `sums` as in `Resolved.plan`.

        Raises UnsupportedError for parts that have no form there, and ScenarioError for what the network
        refuses.
        """
        from weirlab.scenario.resolve import resolve

        return resolve(self, sums=sums)


class _Plain(yaml.SafeDumper):
    """Writes scalars without quotes: all of a scenario are text, and the field says what they mean."""


_Plain.yaml_implicit_resolvers = {
    first: kept
    for first, known in yaml.SafeDumper.yaml_implicit_resolvers.items()
    if (kept := [(tag, pattern) for tag, pattern in known if tag.endswith((":null", ":merge"))])
}


def _texts(value: dict[str, object]) -> dict[str, object]:
    """`value` with all scalars as the text that a file has."""
    plain: dict[str, object] = Node.of(value).plain()
    return plain


def _kind_first(value: object) -> object:
    """`value` with the word `kind` before the other fields of each mapping, as people write it. Entries that
    a user called `kind` keep their place: the order of factors and of rules counts."""
    if isinstance(value, list):
        return [_kind_first(item) for item in value]
    if not isinstance(value, dict):
        return value
    ordered = {"kind": value["kind"], **value} if isinstance(value.get("kind"), str) else value
    return {key: _kind_first(item) for key, item in ordered.items()}


def split_path(path: str) -> tuple[str, ...]:
    """The names in a dotted path; double quotes keep a name together that holds a dot."""
    parts = path.split('"')
    names: list[str] = []
    for i, part in enumerate(parts):
        names.extend([part] if i % 2 else [name for name in part.split(".") if name])
    return tuple(names)
