"""The mailbox. You are here: mailbox.push, mailbox.take, mailbox.pop."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final

from .. import _api
from ..overflow import CLOSED, FULL, OK

EMPTY: Final[Any] = object()


class BoundedNodeQueue:
    """Bounded first-in-first-out queue: many producers, one consumer, False when exactly full.

    The consumer takes the head *into its hand*, where it still counts, and drops it from there when it is
    handled. What is in the hand belongs to the consumer alone; everything behind it may be evicted or
    drained by anybody.
    """

    __slots__ = (
        "__weakref__",
        "_capacity",
        "_closed",
        "_count",
        "_hand",
        "_items",
        "_lock",
        "_room",
        "_waiters",
    )

    def __init__(self, capacity: int) -> None:
        self._capacity = _api.check_int("capacity", capacity, 1, _api.MAX_CAPACITY)
        self._items: deque[Any] = deque()
        self._count = 0  # of the items and the hand
        self._hand: Any = EMPTY
        self._closed = False
        self._lock = threading.RLock()
        self._room: threading.Condition | None = None
        self._waiters = 0

    @property
    def capacity(self) -> int:
        return self._capacity

    def add(self, value: Any) -> bool:
        """Append; False when the queue is full."""
        return self._push(value) == OK

    def peek(self, default: Any = None) -> Any:
        """The head, which stays; `default` when the queue is empty."""
        value = self._take()
        return default if value is EMPTY else value

    def poll(self, default: Any = None) -> Any:
        """Remove and return the head; `default` when the queue is empty."""
        with self._lock:
            value = self._take()
            if value is EMPTY:
                return default
            self._pop()
            return value

    def is_empty(self) -> bool:
        return self._count == 0

    def count(self) -> int:
        return self._count

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<BoundedNodeQueue {self._count} of {self._capacity}>"

    # the runtime's half

    def _push(self, value: Any) -> int:
        with self._lock:
            if self._closed:
                return CLOSED
            if self._count >= self._capacity:
                return FULL
            self._count += 1
            self._items.append(value)
            return OK

    def _take(self) -> Any:
        """The head, moved into the hand; EMPTY when there is none."""
        with self._lock:
            if self._hand is EMPTY and self._items:
                self._hand = self._items.popleft()
            return self._hand

    def _pop(self) -> list[Any]:
        """Remove and return what is in the hand; it must not die under the lock."""
        with self._lock:
            if self._hand is EMPTY:
                return []
            removed = [self._hand]
            self._hand = EMPTY
            self._count -= 1
            self._made_room()
            return removed

    def _evict(self) -> list[Any]:
        """Remove and return the oldest message that is not in the hand, if there is one."""
        with self._lock:
            if not self._items:
                return []
            removed = [self._items.popleft()]
            self._count -= 1
            self._made_room()
            return removed

    def _close(self, only_if_empty: bool = False) -> bool:
        """Take no more messages; wake everybody who waits for room."""
        with self._lock:
            if only_if_empty and self._count:
                return False
            self._closed = True
            if self._room is not None:
                self._room.notify_all()
            return True

    def _made_room(self) -> None:
        if self._waiters and self._room is not None:
            self._room.notify()

    def _wait_for_room(self, timeout: float | None) -> None:
        with self._lock:
            if self._room is None:
                self._room = threading.Condition(self._lock)
            self._waiters += 1
            try:
                self._room.wait_for(lambda: self._closed or self._count < self._capacity, timeout)
            finally:
                self._waiters -= 1
