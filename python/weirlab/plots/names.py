"""What pictures and tables call the parameters of scenarios."""

from __future__ import annotations

from collections.abc import Sequence

_MEANINGS = {
    "congestion_point.q_eq": "set point of the queue",
    "congestion_point.sample_every": "distance between samples",
    "congestion_point.w": "weight of the growth",
    "reaction_point.gd": "decrease gain",
    "reaction_point.gi": "increase gain",
    "reaction_point.ru": "rate unit",
    "source.mean_burst": "mean burst in frames",
}
"""By the last two names of a path."""


def axis_title(path: str, unit: str = "") -> str:
    """The parameter at a dotted path for the axis of a plot: what it means where that is known, its last
    name, and its unit."""
    *_, section, name = ["", *path.split(".")]
    meaning = _MEANINGS.get(f"{section}.{name}")
    return (f"{meaning} ({name})" if meaning else name) + (f" [{unit}]" if unit else "")


def short_names(names: Sequence[str]) -> dict[str, str]:
    """The last part of each path, after what distinguishes it from others that end alike: `fast.rate`."""
    found = {}
    for name in names:
        parts = name.split(".")
        others = [f".{each}" for each in names if each != name]
        ends = (".".join(parts[i:]) for i in range(len(parts) - 1, -1, -1))
        end = next((end for end in ends if not any(each.endswith(f".{end}") for each in others)), name)
        first, _, rest = end.partition(".")
        found[name] = f"{first}.{rest.rsplit('.', 1)[-1]}" if rest else first
    return found if len({*found.values()}) == len(found) else {name: name for name in names}
