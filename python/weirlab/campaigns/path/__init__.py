"""Characterizes a path hop by hop: capacity, latency, queueing and loss by the method of pathchar.

Reading order: `probing` (probes and their answers), `route` (which routers answer, and what they can report),
`estimate` (links from answers, pure), `characterize` (how many probes are enough), `keeping` (on disk),
`reverse` (the way back, seen from the other end).
"""

from weirlab.campaigns.path.characterize import (
    Characterization as Characterization,
    Effort as Effort,
    characterize as characterize,
)
from weirlab.campaigns.path.estimate import HopEstimate as HopEstimate, estimate as estimate
from weirlab.campaigns.path.keeping import (
    hop_documents as hop_documents,
    load_path as load_path,
    path_document as path_document,
    save_path as save_path,
)
from weirlab.campaigns.path.probing import (
    Answers as Answers,
    Batch as Batch,
    LiveProber as LiveProber,
    resolve as resolve,
)
from weirlab.campaigns.path.reverse import WayBack as WayBack, way_back as way_back
from weirlab.campaigns.path.route import Route as Route, find_route as find_route
