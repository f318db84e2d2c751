"""What a search goal asks of a load, and goals by name: those of standards and test projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weirlab.units import Span


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What decides whether a load meets a goal."""

    loss: float
    """Highest loss ratio, in [0, 1)."""
    duration: Span
    """Of a final trial."""
    exceed: float = 0.0
    """Share of the duration sum that trials with more loss may take, in [0, 1)."""
    duration_sum: Span | None = None
    """Summed duration of the trials that decide about a load. None: one trial."""


def _csit(loss: float) -> Terms:
    """Source: CSIT MLRsearch, the settings of its NDR and PDR tests."""
    return Terms(loss=loss, duration=Span.from_s(1), exceed=0.5, duration_sum=Span.from_s(21))


PRESETS: Mapping[str, Terms] = MappingProxyType(
    {
        # Source: RFC 2544, section 24 (trials of 60 s) and section 26.1; RFC 9971, section 4.10.2.
        "rfc2544": Terms(loss=0.0, duration=Span.from_s(60)),
        # Loss verification that repeats a lossy trial once. Source: RFC 9971, section 4.10.3.
        "tst009": Terms(loss=0.0, duration=Span.from_s(60), exceed=0.5, duration_sum=Span.from_s(120)),
        "csit-ndr": _csit(0.0),
        "csit-pdr": _csit(0.005),
    }
)
"""By name. The width of a goal is not among these: RFC 2544 and TST009 leave it open."""
