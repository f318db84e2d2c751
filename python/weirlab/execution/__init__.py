"""How points are executed: a plan is cut into batches, an executor carries them, the store keeps what they
find. Everything that has points goes this way."""

from weirlab.execution.batches import (
    NO_LIMITS,
    Batch,
    Growing,
    Limits,
    OtherEngine,
    Plan,
    Point,
    Receipt,
    Watch,
    run_batch,
)
from weirlab.execution.costs import Need
from weirlab.execution.executors import Executor, opened
from weirlab.execution.pace import State
from weirlab.execution.runner import Asking, Carried, Reader, carry

__all__ = [
    "NO_LIMITS",
    "Asking",
    "Batch",
    "Carried",
    "Executor",
    "Growing",
    "Limits",
    "Need",
    "OtherEngine",
    "Plan",
    "Point",
    "Reader",
    "Receipt",
    "State",
    "Watch",
    "carry",
    "opened",
    "run_batch",
]
