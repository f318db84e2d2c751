"""How points are executed: a plan is cut into batches, an executor carries them, the store keeps what they
find. Everything that has points goes this way."""

from weirlab.execution.asking import Asking as Asking, Carried as Carried, Reader as Reader
from weirlab.execution.batches import (
    NO_LIMITS as NO_LIMITS,
    Batch as Batch,
    Growing as Growing,
    Limits as Limits,
    Plan as Plan,
    Point as Point,
    Receipt as Receipt,
    Watch as Watch,
)
from weirlab.execution.costs import Need as Need
from weirlab.execution.executors import Executor as Executor, check_on as check_on, opened as opened
from weirlab.execution.pace import State as State
from weirlab.execution.runner import carry as carry
