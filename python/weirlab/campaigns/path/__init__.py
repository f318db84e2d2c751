"""Characterizes a path hop by hop: capacity, latency, queueing and loss by the method of pathchar.

Reading order: `probing` (probes and their answers), `route` (which routers answer, and what they can tell),
`estimate` (links from answers, pure), `characterize` (how many probes are enough), `keeping` (on disk),
`reverse` (the way back, seen from the other end).
"""

from weirlab.campaigns.path.characterize import Characterization, Effort, Ending, characterize
from weirlab.campaigns.path.estimate import HopEstimate, estimate
from weirlab.campaigns.path.keeping import hop_documents, load_path, path_document, save_path
from weirlab.campaigns.path.probing import Answers, Batch, LiveProber, Prober, resolve
from weirlab.campaigns.path.reverse import WayBack, way_back
from weirlab.campaigns.path.route import Hop, Route, find_route

__all__ = [
    "Answers",
    "Batch",
    "Characterization",
    "Effort",
    "Ending",
    "Hop",
    "HopEstimate",
    "LiveProber",
    "Prober",
    "Route",
    "WayBack",
    "characterize",
    "estimate",
    "find_route",
    "hop_documents",
    "load_path",
    "path_document",
    "resolve",
    "save_path",
    "way_back",
]
