"""A characterized path on disk: `result.json`, and every probe in `tables/probes.parquet`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path

import polars as pl
from pydantic import TypeAdapter, ValidationError

from weirlab.campaigns.path.characterize import Characterization, Effort, Ending, is_settled
from weirlab.campaigns.path.estimate import HopEstimate
from weirlab.campaigns.path.reverse import WayBack
from weirlab.campaigns.path.route import Route
from weirlab.documents import fields_of
from weirlab.errors import InputError
from weirlab.records import save_tables
from weirlab.results import read_json, write_json

_KEPT = ("route", "effort", "ending", "rounds", "seconds", "notes", "stamped")
_SINCE = {"disturbance": "", "account": {}}
"""What results say that were kept later, and what it is for those before."""


def path_document(found: Characterization, back: WayBack | None) -> dict[str, object]:
    """The path as JSON values; what is unknown is null."""
    kept = {name: _plain(getattr(found, name)) for name in _KEPT}
    estimates = found.estimates()
    capacities = [each.link.capacity_bps for each in estimates if each.link and each.link.capacity_bps]
    return {
        "kind": "path",
        **kept,
        **{name: _plain(getattr(found, name)) for name in _SINCE},
        "doubts": list(found.doubts()),
        "probes": found.probes.height,
        "bottleneck_bps": min(capacities, default=None),
        "hops": hop_documents(found),
        "way_back": None if back is None else asdict(back),
    }


def save_path(found: Characterization, back: WayBack | None, directory: Path) -> None:
    """Write it into the directory of a result: the numbers first, which fit where tables do not."""
    write_json(directory / "result.json", path_document(found, back))
    save_tables({"probes": found.probes}, directory / "tables")


def load_path(directory: Path) -> tuple[Characterization, WayBack | None]:
    """Read what `save_path` wrote. Raises InputError."""
    file, table = directory / "result.json", directory / "tables" / "probes.parquet"
    content = read_json(file)
    try:
        probes = pl.read_parquet(table)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{table}: cannot be read: {error}") from error
    try:
        known = {name: content.get(name) for name in (*_KEPT, "way_back")}
        known |= {name: content.get(name, default) for name, default in _SINCE.items()}
        reported = TypeAdapter(_Told).validate_python(known)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    kept = {name: getattr(reported, name) for name in (*_KEPT, *_SINCE)}
    return Characterization(probes=probes, **kept), reported.way_back


@dataclass(frozen=True)
class _Told:
    """What `result.json` says besides the estimates, which follow from the probes."""

    route: Route
    effort: Effort
    ending: Ending
    rounds: int
    seconds: float
    notes: tuple[str, ...]
    stamped: int | None
    way_back: WayBack | None
    disturbance: str
    account: Mapping[str, float | int | str | None]


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def hop_documents(found: Characterization) -> list[Mapping[str, object]]:
    """What is known of each hop."""
    return [_hop(each, found.effort.precision) for each in found.estimates()]


_OF_LINK = (
    *("capacity_bps", "capacity_low_bps", "capacity_high_bps"),
    *("round_trip_s", "round_trip_low_s", "round_trip_high_s"),
)


def _hop(each: HopEstimate, precision: float) -> Mapping[str, object]:
    link = each.link
    return {
        "hops": each.hop.hops,
        "routers": list(each.hop.routers),
        **fields_of(each, "after", "sent", "answered", "withholds"),
        "rtt_least_s": each.least_s,
        "settled": is_settled(each, precision),
        **(dict.fromkeys(_OF_LINK) if link is None else fields_of(link, *_OF_LINK)),
        "slope_s_per_byte": None if each.line is None else each.line.slope,
        "intercept_s": None if each.line is None else each.line.intercept,
        "loss": None if each.loss is None else asdict(each.loss),
        "waiting": None if each.waiting is None else asdict(each.waiting),
    }
