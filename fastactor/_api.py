"""Shared by both runtimes: defaults, exceptions, argument checks and small records. No scheduling here."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from ._pure import ActorCell

# -- defaults ----------------------------------------------------------------------------------

DEFAULT_CAPACITY: Final = 10_000
DEFAULT_QUOTA: Final = 0.005
MAX_CAPACITY: Final = 2**30
# A quota is kept in 32-bit microseconds inside a native cell.
MAX_QUOTA: Final = 3600.0

# A processor that answers False is tried this often at once; then each further try waits, doubling
# from the first delay to the last. Three is enough for "somebody is just about to finish".
FREE_TRIES: Final = 3
FIRST_DELAY: Final = 0.001
LAST_DELAY: Final = 0.1

Policy: TypeAlias = Literal["fair", "total", "last-run", "fifo"]
Overflow: TypeAlias = Literal["raise", "block", "drop-new", "drop-oldest"]
Path: TypeAlias = Hashable

# The numbers are the ones that csrc/fa_ready.h and csrc/fa_cell.h use.
POLICIES: Final[dict[str, int]] = {"fair": 0, "total": 1, "last-run": 2, "fifo": 3}
OVERFLOWS: Final[dict[str, int]] = {"raise": 0, "block": 1, "drop-new": 2, "drop-oldest": 3}
OVERFLOW_NAMES: Final = tuple(OVERFLOWS)

# The life of a system.
OPEN: Final = 0
DRAINING: Final = 1  # only its own processors may dispatch
CLOSED: Final = 2

# What try_schedule and set_idle of a cell's own status word say.
NOT_YOURS: Final = (
    "the Scheduled bit of a cell belongs to the runtime; use system.schedule(), cell.suspend() or cell.stop()"
)

# Longer than anybody waits, and far from where nanoseconds overflow 64 bits.
LONGEST: Final = 1e9

# What SystemCore._failed answers the worker: a delay in seconds (retry the message at the head), or
MOVED_ASIDE: Final = -1.0  # the message is a dead letter; go on with the next one
STAYS: Final = -2.0  # the message stays at the head; the cell was suspended


def default_threads() -> int:
    """Four workers a core, as QMQ has it: processors that block must not hold up the others."""
    return 4 * (os.cpu_count() or 1)


# -- exceptions --------------------------------------------------------------------------------


class FastactorError(Exception):
    """Base of every error that fastactor itself raises."""


class MailboxFull(FastactorError):
    """The mailbox of `path` has no room; `accepted` messages of this call were taken before."""

    def __init__(self, path: object, capacity: int, accepted: int = 0, hint: str = "") -> None:
        super().__init__(path, capacity, accepted, hint)
        self.path = path
        self.capacity = capacity
        self.accepted = accepted
        self.hint = hint

    def __str__(self) -> str:
        text = f"the mailbox of {self.path!r} is full (capacity {self.capacity})"
        if self.accepted:
            text += f"; {self.accepted} messages of this call were accepted"
        return f"{text}; {self.hint}" if self.hint else text


class SystemFull(FastactorError):
    """The system already has `max_actors` cells."""

    def __init__(self, name: str, max_actors: int) -> None:
        super().__init__(name, max_actors)
        self.name = name
        self.max_actors = max_actors

    def __str__(self) -> str:
        return f"system {self.name!r} already has max_actors={self.max_actors} cells"


class SystemClosed(FastactorError):
    """The system has been shut down and takes no more work."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"system {self.name!r} has been shut down"


# -- processors --------------------------------------------------------------------------------


@runtime_checkable
class ProcessorObject(Protocol):
    """An object whose `process` handles one message of one cell."""

    def process(self, message: Any, cell: ActorCell, /) -> object: ...


Processor: TypeAlias = Callable[[Any, "ActorCell"], object] | ProcessorObject

_CO_COROUTINE: Final = 0x80 | 0x200  # CO_COROUTINE | CO_ASYNC_GENERATOR


def bind_processor(processor: Any) -> Callable[[Any, ActorCell], object]:
    """The callable that handles a message: the processor itself, or its bound `process` method."""
    bound = processor if callable(processor) else getattr(processor, "process", None)
    if not callable(bound):
        raise TypeError(
            "processor must be a callable (message, cell) or an object with a method "
            f"process(message, cell), not {type(processor).__name__}"
        )
    code = getattr(bound, "__code__", None)
    if code is not None and code.co_flags & _CO_COROUTINE:
        raise TypeError(
            f"processor {bound!r} is asynchronous; a cell would never await it. "
            "Give a plain function, or hand the coroutine to an event loop from inside it"
        )
    return bound  # type: ignore[no-any-return]


# -- argument checks, each with what was wrong and what is accepted -------------------------------


def check_int(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {value}")
    return value


def check_seconds(name: str, value: object, *, zero: bool = False) -> float:
    """A finite number of seconds above zero (or from zero, where `zero` allows it)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be finite and {'at least' if zero else 'above'} 0, not {value}")
    return min(float(value), LONGEST)


def check_timeout(value: object) -> float | None:
    return None if value is None else check_seconds("timeout", value, zero=True)


def check_quota(value: object) -> float:
    quota = check_seconds("quota", value)
    if not 1e-6 <= quota <= MAX_QUOTA:
        raise ValueError(f"quota must be from 0.000001 to {MAX_QUOTA} seconds, not {value}")
    return quota


def check_weight(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"weight must be a number, not {type(value).__name__}")
    if not 1e-3 <= value <= 1e3:
        raise ValueError(f"weight must be from 0.001 to 1000, not {value}")
    return float(value)


def check_choice(name: str, value: object, choices: dict[str, int]) -> int:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return choices[value]


# -- records -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Retry:
    """Error policy: try a failing message up to `attempts` times in all, then dead-letter it.

    The first retry waits `backoff` seconds, each further one twice as long, up to `max_backoff`. The
    message stays at the head meanwhile, so the order of the cell is kept; other cells run on.
    """

    attempts: int = 3
    backoff: float = 0.1
    max_backoff: float = 10.0

    def __post_init__(self) -> None:
        check_int("attempts", self.attempts, 1, 2**31 - 1)
        first = check_seconds("backoff", self.backoff, zero=True)
        if check_seconds("max_backoff", self.max_backoff, zero=True) < first:
            raise ValueError(f"max_backoff must be at least backoff ({self.backoff}), not {self.max_backoff}")

    def delay(self, failures: int) -> float:
        """Seconds to wait after this many failures of the same message."""
        return min(self.max_backoff, self.backoff * 2.0 ** min(failures - 1, 60), LONGEST)


ErrorPolicy: TypeAlias = Literal["dead-letter", "suspend", "stop"] | Retry
ERROR_POLICIES: Final[dict[str, int]] = {"dead-letter": 0, "suspend": 1, "stop": 2}


def check_on_error(value: object) -> ErrorPolicy:
    if isinstance(value, Retry):
        return value
    if not isinstance(value, str):
        raise TypeError(f"on_error must be a str or a Retry, not {type(value).__name__}")
    check_choice("on_error", value, ERROR_POLICIES)
    return value  # type: ignore[return-value]


@dataclass(frozen=True)
class SystemStats:
    """Counts of one system at one moment; they are read one after another, not under one lock."""

    actors: int
    ready: int
    queued: int
    processed: int
    dropped: int
    failed: int
    busy: int
    threads: int


@dataclass(frozen=True)
class CellStats:
    """One row of `system.top()`."""

    path: Any
    total: float
    processed: int
    depth: int
    wait: float


@dataclass(frozen=True)
class ShutdownReport:
    """What `shutdown` left behind. True when every worker has ended.

    `dead_letters` counts the messages this shutdown moved to the dead letters, `stuck` names the
    cells whose processors had not returned by then.
    """

    clean: bool
    dead_letters: int = 0
    stuck: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        return self.clean


# -- threads -----------------------------------------------------------------------------------------


def join_all(workers: list[threading.Thread], timeout: float | None) -> bool:
    """Wait for the threads to end. A thread cannot wait for itself: False there."""
    deadline = None if timeout is None else time.monotonic() + timeout
    for worker in workers:
        if worker is threading.current_thread():
            return False
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                worker.join(left)
                break
            except RuntimeError:
                # It has not quite begun: whoever started it was interrupted while it waited for that.
                if left == 0:
                    return False
                time.sleep(0.001)
        if worker.is_alive():
            return False
    return True
