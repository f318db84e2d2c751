"""Published studies, reproduced: their numbers and claims compared with ours.

`frame` says what a reproduction gives, `verdicts` when a row or a claim holds, `judging` how near is near
enough and what a constant would score; `published` holds the numbers as they were printed; each study is a
package of its own, named in `STUDIES`.
"""

from weirlab.reproductions.frame import (
    STUDIES as STUDIES,
    Effort as Effort,
    Findings as Findings,
    Reproduction as Reproduction,
    Tally as Tally,
    find as find,
    names as names,
)
from weirlab.reproductions.verdicts import (
    Claim as Claim,
    KnownMisfit as KnownMisfit,
    Row as Row,
    Verdict as Verdict,
)
