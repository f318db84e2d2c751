"""Search goals by name: what standards and test projects ask of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from weirlab.errors import InputError
from weirlab.search.base import SearchGoal

__all__ = ["PRESETS", "preset"]

_WIDTH = 0.005

PRESETS: Mapping[str, SearchGoal] = MappingProxyType(
    {
        # Source: RFC 2544, section 24 (trials of 60 s) and section 26.1; RFC 9971, section 4.5.
        "rfc2544": SearchGoal(name="RFC2544", loss_ratio=0.0, width=_WIDTH, duration_s=60.0),
        # Loss verification that repeats a lossy trial once. Source: RFC 9971, section 4.5.
        "tst009": SearchGoal(
            name="TST009",
            loss_ratio=0.0,
            width=_WIDTH,
            duration_s=60.0,
            exceed_ratio=0.5,
            duration_sum_s=120.0,
        ),
        # Source: CSIT MLRsearch, the settings of its NDR and PDR tests.
        "csit-ndr": SearchGoal(
            name="NDR", loss_ratio=0.0, width=_WIDTH, duration_s=1.0, exceed_ratio=0.5, duration_sum_s=21.0
        ),
        "csit-pdr": SearchGoal(
            name="PDR", loss_ratio=0.005, width=_WIDTH, duration_s=1.0, exceed_ratio=0.5, duration_sum_s=21.0
        ),
    }
)
"""The width, which RFC 2544 and TST009 leave open, is 0.5 % in all of them."""


def preset(name: str, *, width: float | None = None) -> SearchGoal:
    """The goal of that name, with another width if one is given."""
    if name not in PRESETS:
        raise InputError(f"no goal is called {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name] if width is None else replace(PRESETS[name], width=width)
