"""The statements of the text, each checked on what was measured."""

from __future__ import annotations

from weirlab.reproductions.bulk.claims import (
    cpu as cpu,
    delay as delay,
    paths as paths,
    since as since,
    sites as sites,
    streams as streams,
)
from weirlab.reproductions.bulk.work import Data
from weirlab.reproductions.verdicts import Claim


def claims(data: Data) -> list[Claim]:
    """All of them."""
    return [
        *(claim for part in (sites, streams, delay, paths, cpu, since) for claim in part.claims(data)),
    ]
