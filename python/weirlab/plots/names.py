"""What axes call the parameters of scenarios."""

from __future__ import annotations

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
