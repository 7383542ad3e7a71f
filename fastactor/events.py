"""Events: what happens to cells, told to subscribers on the pool, never on the thread it happened on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .deadletters import DeadLetter

log = logging.getLogger("fastactor")


@dataclass(frozen=True)
class Event:
    """Base of all events; `system` is the name of the system, `path` the cell's."""

    system: str
    path: Any


@dataclass(frozen=True)
class ActorStarted(Event):
    """A cell was created."""


@dataclass(frozen=True)
class ActorStopped(Event):
    """A cell is gone; `reason` is "stopped", "idle", "error" or "shutdown"."""

    reason: str


@dataclass(frozen=True)
class ActorFailed(Event):
    """A processor raised. `failures` counts the tries of this message that failed so far."""

    message: Any
    error: BaseException
    failures: int


@dataclass(frozen=True)
class ActorSuspended(Event):
    """on_error="suspend" has suspended the cell; its message waits at the head for a resume."""

    message: Any
    error: BaseException


@dataclass(frozen=True)
class DeadLettered(Event):
    """A message became a dead letter."""

    letter: DeadLetter


E = TypeVar("E", bound=Event)


class Subscription:
    """What `subscribe` returns; `cancel` ends it."""

    __slots__ = ("_events", "callback", "types")

    def __init__(self, events: Events, callback: Callable[[Any], object], types: tuple[type, ...]):
        self._events = events
        self.callback = callback
        self.types = types

    def cancel(self) -> bool:
        """End the subscription; False when it had ended before."""
        return self._events._remove(self)


class Events:
    """The event stream of one system. `post` hands an event to the pool's event cell."""

    def __init__(self, post: Callable[[Event], None]) -> None:
        self._post = post
        self._lock = threading.RLock()
        # replaced, never changed in place: readers need no lock
        self._subscriptions: tuple[Subscription, ...] = ()

    def subscribe(self, callback: Callable[[E], object], *types: type[E]) -> Subscription:
        """Call `callback(event)` on the pool for each event of these types (of all, without types)."""
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")
        for kind in types:
            if not (isinstance(kind, type) and issubclass(kind, Event)):
                raise TypeError(f"event types must be subclasses of Event, not {kind!r}")
        subscription = Subscription(self, callback, types or (Event,))
        with self._lock:
            self._subscriptions += (subscription,)
        return subscription

    def _remove(self, subscription: Subscription) -> bool:
        with self._lock:
            kept = tuple(s for s in self._subscriptions if s is not subscription)
            gone = len(kept) < len(self._subscriptions)
            self._subscriptions = kept
        return gone

    def wants(self, kind: type[Event]) -> bool:
        """Whether somebody listens, so that nobody pays for an event that nobody hears."""
        return any(issubclass(kind, s.types) for s in self._subscriptions)

    def emit(self, event: Event) -> None:
        if self.wants(type(event)):
            self._post(event)

    def deliver(self, event: Event, cell: object = None) -> None:
        """The event cell's processor: a failing subscriber is logged and does not hinder the others."""
        for subscription in self._subscriptions:
            if isinstance(event, subscription.types):
                try:
                    subscription.callback(event)
                except BaseException:
                    log.exception("subscriber %r failed on %r", subscription.callback, event)
