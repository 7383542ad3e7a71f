"""The runtime in Python: the specification in code, and the fallback where nothing can be compiled.

One noun a file, as in csrc/ and native/, with the same words for the same things:

    dispatch -> mailbox.push -> status.try_schedule -> ready.push -> worker.take -> processor(message, cell)
             -> mailbox.pop -> (quota over | empty | suspended) -> status.set_idle -> look again

Locks are re-entrant and what they guard is changed without a call in between, because a destructor or a
signal handler may run on the same thread at any call, and may dispatch.
"""

from typing import Final

from ..system import SystemLayer
from .cell import ActorCell, current_cell
from .executor import PriorityExecutor
from .queue import BoundedNodeQueue
from .status import StatusWord
from .system import SystemCore

implementation: Final = "pure"


class ActorSystem(SystemLayer, SystemCore):
    __doc__ = SystemLayer.__doc__
    _core = (ActorCell, PriorityExecutor, current_cell)


__all__ = [
    "ActorCell",
    "ActorSystem",
    "BoundedNodeQueue",
    "PriorityExecutor",
    "StatusWord",
    "SystemCore",
    "current_cell",
    "implementation",
]
