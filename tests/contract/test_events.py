"""Events: what happens to cells, told to subscribers on the pool."""

import threading
import time

import pytest
from support import Gate, block_worker, wait_until

from fastactor import ActorFailed, ActorStarted, ActorStopped, DeadLettered, Event


def ignore(message, cell):
    """A processor that does nothing."""


def test_subscribe_to_types(system):
    """`system.events.subscribe(callback, *types)`."""
    started, stopped, both, every = [], [], [], []
    system.events.subscribe(started.append, ActorStarted)
    system.events.subscribe(stopped.append, ActorStopped)
    system.events.subscribe(both.append, ActorStarted, ActorStopped)
    system.events.subscribe(every.append)
    system.cell("a", ignore)
    system.stop("a")
    wait_until(lambda: len(every) == 2)
    assert started == [ActorStarted(system.name, "a")]
    assert stopped == [ActorStopped(system.name, "a", "stopped")]
    assert both == every == started + stopped
    assert all(isinstance(event, Event) for event in every)


def test_delivered_on_the_pool(system):
    """... delivered on the pool, never on the sender's thread."""
    threads = []
    system.events.subscribe(lambda event: threads.append(threading.current_thread()))
    system.cell("a", ignore)
    system.dispatch("b", 1, lambda message, cell: cell.system.cell("c", ignore))
    wait_until(lambda: len(threads) == 3)
    assert threading.current_thread() not in threads
    assert all(t.name.startswith(f"{system.name}-worker-") for t in threads)


def test_a_slow_subscriber_does_not_hold_up_the_sender(make_system):
    """The sender does not wait for the subscriber."""
    system = make_system(threads=2)
    gate = Gate()
    system.events.subscribe(lambda event: gate(event, None), ActorStarted)
    for path in "abc":
        system.cell(path, ignore)
    assert gate.seen == []
    gate.open()
    wait_until(lambda: [event.path for event in gate.seen] == ["a", "b", "c"])


def test_a_processors_events_come_after_its_turn_with_one_worker(make_system):
    """What happens on a worker is told later, even to the same worker."""
    system = make_system(threads=1)
    order = []
    system.events.subscribe(lambda event: order.append("event"), ActorStarted)

    def processor(message, cell):
        cell.system.cell("other", ignore)
        order.append("processor")

    cell = system.cell("a", processor)
    wait_until(lambda: order == ["event"])
    cell.dispatch(1)
    wait_until(lambda: len(order) == 3)
    assert order == ["event", "processor", "event"]


def test_dead_letters_and_failures_are_events(system):
    """Dead letters and failures are told."""
    events = []
    system.events.subscribe(events.append, DeadLettered, ActorFailed)

    def fail(message, cell):
        raise ValueError(message)

    system.dispatch("a", 1, fail)
    wait_until(lambda: len(events) == 2)
    failed, dead = events
    assert (failed.path, failed.message, failed.failures) == ("a", 1, 1)
    assert dead.letter.error is failed.error
    assert dead.letter == next(iter(system.dead_letters))


def test_cancel(system):
    """`subscribe` returns what ends the subscription."""
    one, two = [], []
    subscription = system.events.subscribe(one.append, ActorStarted)
    system.events.subscribe(two.append, ActorStarted)
    assert subscription.cancel() is True
    assert subscription.cancel() is False
    system.cell("a", ignore)
    wait_until(lambda: two)
    assert one == []


def test_a_failing_subscriber_does_not_hinder_the_others(system, caplog):
    """A subscriber that raises is logged; the others hear the event."""
    heard = []

    def fail(event):
        raise KeyboardInterrupt

    system.events.subscribe(fail, ActorStarted)
    system.events.subscribe(heard.append, ActorStarted)
    system.cell("a", ignore)
    system.cell("b", ignore)
    wait_until(lambda: len(heard) == 2)
    assert any("failed on" in record.getMessage() for record in caplog.records)
    assert len(system.dead_letters) == 0


def test_the_event_cell_is_nobodys_cell(system):
    """Events need no cell of the user's: the system stays empty."""
    heard = []
    system.events.subscribe(heard.append)
    system.cell("a", ignore)
    system.stop("a")
    wait_until(lambda: len(heard) == 2)
    assert len(system) == 0
    assert list(system) == []
    assert system.stats().actors == 0


def test_events_of_a_shutdown(make_system):
    """What the shutdown stops is told before the workers end."""
    system = make_system()
    heard = []
    system.events.subscribe(heard.append, ActorStopped)
    system.cell("a", ignore)
    system.cell("b", ignore)
    assert system.shutdown()
    assert sorted(heard, key=lambda event: event.path) == [
        ActorStopped(system.name, "a", "shutdown"),
        ActorStopped(system.name, "b", "shutdown"),
    ]


def test_events_in_order_of_one_thread(make_system):
    """What one thread causes is told in that order."""
    system = make_system(threads=4)
    heard = []
    system.events.subscribe(heard.append, ActorStarted)
    for n in range(300):
        system.cell(n, ignore)
    wait_until(lambda: len(heard) == 300)
    assert [event.path for event in heard] == list(range(300))


def test_an_event_handler_may_use_the_system(system):
    """A subscriber may create, dispatch and stop."""
    seen = []

    def on_stop(event):
        if event.path == "a":
            system.dispatch("after", event.reason, lambda message, cell: seen.append(message))

    system.events.subscribe(on_stop, ActorStopped)
    system.cell("a", ignore)
    system.stop("a")
    wait_until(lambda: seen == ["stopped"])


def test_wrong_arguments(system):
    """Wrong types raise TypeError at once."""
    with pytest.raises(TypeError, match="callable"):
        system.events.subscribe(None)
    with pytest.raises(TypeError, match="Event"):
        system.events.subscribe(print, int)
    with pytest.raises(TypeError, match="Event"):
        system.events.subscribe(print, "ActorStarted")


def test_without_a_subscriber_nothing_is_kept(system):
    """Nobody pays for an event that nobody hears: a later subscriber hears only what comes later."""
    system.cell("a", ignore)
    heard = []
    system.events.subscribe(heard.append, ActorStarted)
    gate = block_worker(system, "gate")
    gate.open()
    wait_until(lambda: heard)
    time.sleep(0.01)
    assert [event.path for event in heard] == ["gate"]
