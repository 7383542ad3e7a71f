"""The process: what becomes of systems and executors when it exits or forks."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

from ._api import CLOSED

if TYPE_CHECKING:
    from ._pure import ActorCell, PriorityExecutor
    from .system import SystemLayer

# At interpreter exit the systems that nobody shut down may go on for this long with what is queued.
EXIT_GRACE: Final = 2.0

_live: weakref.WeakSet[SystemLayer] = weakref.WeakSet()
_executors: weakref.WeakSet[PriorityExecutor] = weakref.WeakSet()
_live_lock = threading.RLock()


def remember_system(system: SystemLayer) -> None:
    """So that it is told of the end of the process and of a fork."""
    with _live_lock:
        _live.add(system)


def remember_executor(executor: PriorityExecutor) -> None:
    """So that it is told of a fork."""
    with _live_lock:
        _executors.add(executor)


def _all_live() -> list[SystemLayer]:
    with _live_lock:
        return list(_live)


def _at_exit() -> None:
    """Let unfinished systems finish, for at most EXIT_GRACE together; workers are daemons: none can hang."""
    deadline = time.monotonic() + EXIT_GRACE
    systems = [system for system in _all_live() if system._state != CLOSED or system._executor.busy]
    for system in systems:
        system.shutdown(wait=False)
    for system in systems:
        system.shutdown(timeout=max(0.0, deadline - time.monotonic()))


# What the child of a fork needs is made ready before it, with our locks held over it. Without a GIL a thread
# that the child does not have may be inside of any dictionary at that moment, and its lock stays taken.
_held: list[threading.RLock] = []
_forking: list[tuple[SystemLayer, list[ActorCell]]] = []
_forking_executors: list[PriorityExecutor] = []


def _before_fork() -> None:
    _live_lock.acquire()
    _held.append(_live_lock)
    _forking_executors.extend(_executors)
    for system in list(_live):
        for lock in (system._lock, system.dead_letters._lock):
            lock.acquire()
            _held.append(lock)
        _forking.append((system, list(system._cells.values())))


def _in_parent() -> None:
    _forking.clear()
    _forking_executors.clear()
    while _held:
        _held.pop().release()


def _in_child() -> None:
    global _live_lock
    _held.clear()
    _live_lock = threading.RLock()
    while _forking_executors:
        _forking_executors.pop()._abandon()
    while _forking:
        system, cells = _forking.pop()
        system._after_fork(cells)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
