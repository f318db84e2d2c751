"""What all checks are made of."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Status = Literal["ok", "lack", "unknown"]
"""``unknown``: it could not be found out, for a reason that ``found`` gives."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    section: str = ""
    """What it belongs to: ``system``, ``privileges``, ``kernel``, ``time``, ``tools``."""
    name: str
    status: Status
    found: str
    """What there is: a version, a number, the answer of the system."""
    means: str = ""
    """What cannot be done without it. Empty when nothing is lacking."""
    remedy: str = ""
    """How to get it. Empty when nothing is lacking."""


LIVE_ONLY = "no live testbeds ('netns'): the simulator, device models, searches and reports work"
NEEDS_LINUX = "use a Linux machine, or a virtual one"


def checked(name: str, found: str, *, lacks: bool | None, means: str, remedy: str = "") -> Check:
    """A check whose meaning and remedy only matter where it lacks something; None: nobody knows."""
    status: Status = "unknown" if lacks is None else "lack" if lacks else "ok"
    matters = status != "ok"
    return Check(
        name=name,
        status=status,
        found=found,
        means=means if matters else "",
        remedy=remedy if matters else "",
    )


def read(path: str) -> str | None:
    """The text of a small file; None where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def on_linux() -> bool:
    """Whether there are live testbeds at all."""
    return sys.platform == "linux"
