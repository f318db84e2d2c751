"""Campaigns of bulk transfers on real stacks: loaded and unloaded measurements in cycles, resumable.

Reading order: `plan` (what is measured, in which order), `tools` (iperf3 and ping, and what they tell),
`campaign` (the runner and its journal), `summary` (what came out, by point).
"""

from weirlab.bulk.campaign import Campaign, run_campaign
from weirlab.bulk.plan import Load, Place, Plan, Probe, plan_of
from weirlab.bulk.summary import PointSummary, summaries
from weirlab.bulk.tools import Measurement

__all__ = [
    "Campaign",
    "Load",
    "Measurement",
    "Place",
    "Plan",
    "PointSummary",
    "Probe",
    "plan_of",
    "run_campaign",
    "summaries",
]
