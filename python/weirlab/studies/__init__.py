"""Studies: a scenario at every combination of the levels of its factors, with replicates.

All points have the seeds of the scenario (`run.seed`, `run.seed + 1`, ...), whatever their number or order.
So a point can be repeated alone, and points that differ in one factor meet the same chance, which makes
their difference more precise.

What runs find lies in a store (`weirlab.store`), in the directory of the study or where others use it, too. A
study that was interrupted, or that is extended, goes on from there when it is run again.
"""

from weirlab.studies.contests import Finalist as Finalist, Kept as Kept, Standing as Standing
from weirlab.studies.plan import RunsPlan as RunsPlan, planned as planned, points_of as points_of
from weirlab.studies.running import run_study as run_study
from weirlab.studies.sequential import Reached as Reached
from weirlab.studies.study import Study as Study
