"""Campaigns of bulk transfers: loaded and unloaded measurements in cycles, resumable, real or simulated.

Reading order: `plan` (what is measured, in which order), `measurement` (what one of them gives), `tools`
(iperf3 and ping over an emulated path), `request_program` (both ends of small HTTP requests), `simulated`
(the same in simulated time), `campaign` (the runner and its journal), `responsiveness` (what requests and
loaded connections met), `summary` (what came out, by point), `causes` (what kept it from carrying more),
`advice` (which point to take).
"""

from weirlab.campaigns.advice import (
    Advice as Advice,
    NoAdviceError as NoAdviceError,
    advise as advise,
    check_advisable as check_advisable,
)
from weirlab.campaigns.campaign import Campaign as Campaign, run_campaign as run_campaign
from weirlab.campaigns.measurement import Measurement as Measurement
from weirlab.campaigns.plan import (
    Load as Load,
    Place as Place,
    Plan as Plan,
    Probe as Probe,
    RequestSeries as RequestSeries,
    plan_of as plan_of,
)
from weirlab.campaigns.summary import PointSummary as PointSummary, summaries as summaries
