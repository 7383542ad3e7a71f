"""fastactor: one mailbox per key, handled in order, on a small pool of workers that is fair between keys."""

from ._api import (
    CellStats,
    FastactorError,
    MailboxFull,
    Processor,
    Retry,
    ShutdownReport,
    SystemClosed,
    SystemFull,
    SystemStats,
)
from ._select import (
    ActorCell,
    ActorSystem,
    BoundedNodeQueue,
    PriorityExecutor,
    StatusWord,
    current_cell,
    implementation,
)
from .deadletters import DeadLetter, DeadLetters
from .events import (
    ActorFailed,
    ActorStarted,
    ActorStopped,
    ActorSuspended,
    DeadLettered,
    Event,
    Subscription,
)
from .hold import Hold

__all__ = [
    "ActorCell",
    "ActorFailed",
    "ActorStarted",
    "ActorStopped",
    "ActorSuspended",
    "ActorSystem",
    "BoundedNodeQueue",
    "CellStats",
    "DeadLetter",
    "DeadLettered",
    "DeadLetters",
    "Event",
    "FastactorError",
    "Hold",
    "MailboxFull",
    "PriorityExecutor",
    "Processor",
    "Retry",
    "ShutdownReport",
    "StatusWord",
    "Subscription",
    "SystemClosed",
    "SystemFull",
    "SystemStats",
    "current_cell",
    "implementation",
]
