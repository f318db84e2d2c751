"""Published studies, reproduced: their numbers and claims beside ours.

`frame` says what a reproduction gives and when it holds; `published` holds the numbers as they were printed;
each study is a package or module of its own, named in `STUDIES`.
"""

from weirlab.reproduce.frame import (
    STUDIES,
    Claim,
    Effort,
    Findings,
    KnownMisfit,
    Reproduction,
    Row,
    Verdict,
    find,
)

__all__ = ["STUDIES", "Claim", "Effort", "Findings", "KnownMisfit", "Reproduction", "Row", "Verdict", "find"]
