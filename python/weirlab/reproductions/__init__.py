"""Published studies, reproduced: their numbers and claims beside ours.

`frame` says what a reproduction gives, `verdicts` when a row or a claim holds, `judging` how near is near
enough and what a constant would score; `published` holds the numbers as they were printed; each study is a
package of its own, named in `STUDIES`.
"""

from weirlab.reproductions.frame import STUDIES, Effort, Findings, Reproduction, Tally, find, names
from weirlab.reproductions.judging import Constant
from weirlab.reproductions.verdicts import Claim, KnownMisfit, Row, Verdict

__all__ = [
    "STUDIES",
    "Claim",
    "Constant",
    "Effort",
    "Findings",
    "KnownMisfit",
    "Reproduction",
    "Row",
    "Tally",
    "Verdict",
    "find",
    "names",
]
