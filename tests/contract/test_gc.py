"""Garbage: a system that is dropped goes away with its cells, messages and threads."""

import gc
import logging
import warnings
import weakref

import pytest
from support import Gate, wait_until, worker_threads


class Message:
    """A message that refers to whatever it is given, and can be watched."""

    def __init__(self, *refers_to):
        self.refers_to = refers_to


def ignore(message, cell):
    """A processor that does nothing."""


def settle(system, handled):
    """Wait until so many messages have been handled and the workers are idle."""
    wait_until(lambda: system.stats().processed == handled and system.stats().busy == 0)


def reachable(start, target, depth=4):
    """Whether the garbage collector gets from one object to the other in a few steps."""
    layer = [start]
    for _ in range(depth):
        layer = [x for x in gc.get_referents(*layer) if not isinstance(x, type)]
        if any(x is target for x in layer):
            return True
    return False


def test_a_dropped_system_is_collected(runtime):
    """A system dropped with queued messages that refer back to it is collected, and its threads end."""
    system = runtime.ActorSystem("dropped", threads=3)
    ran = []
    system.dispatch("started", 1, lambda message, cell: ran.append(message))
    settle(system, 1)
    assert ran == [1]
    assert len(worker_threads("dropped")) == 3
    cell = system.cell("suspended", ignore)
    cell.suspend()
    message = Message(system, cell)
    cell.dispatch(message)
    cell.dispatch(Message(message))
    gone = [weakref.ref(system), weakref.ref(cell), weakref.ref(message)]
    del system, cell, message
    with pytest.warns(ResourceWarning, match="dropped with 2 messages queued"):
        wait_until(lambda: gc.collect() >= 0 and gone[0]() is None)
    wait_until(lambda: gc.collect() >= 0 and [ref() for ref in gone] == [None, None, None])
    wait_until(lambda: not worker_threads("dropped"))


def test_a_dropped_system_without_messages(runtime):
    """Without queued messages there is nothing to warn of."""
    system = runtime.ActorSystem("dropped", threads=2)
    system.dispatch("a", 1, ignore)
    settle(system, 1)
    gone = weakref.ref(system)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del system
        wait_until(lambda: gc.collect() >= 0 and gone() is None)
    wait_until(lambda: not worker_threads("dropped"))


def test_an_unused_system_is_collected(runtime):
    """A system that never had a cell leaves nothing."""
    gone = weakref.ref(runtime.ActorSystem("dropped", threads=2))
    gc.collect()
    assert gone() is None


def test_a_system_with_work_lives_until_it_is_done(runtime):
    """Dropped references are ordinary: what is ready is handled first."""
    gate = Gate()
    system = runtime.ActorSystem("dropped", threads=1)
    system.dispatch_many("a", [1, 2, 3], gate)
    gone = weakref.ref(system)
    del system
    gc.collect()
    gate.open()
    wait_until(lambda: gate.seen == [1, 2, 3])
    wait_until(lambda: gc.collect() >= 0 and gone() is None)
    wait_until(lambda: not worker_threads("dropped"))


def test_messages_are_visible(make_system):
    """The collector sees from a cell to its processor, its system and each queued message."""
    system = make_system()

    def processor(message, cell):
        pass

    cell = system.cell("a", processor)
    cell.suspend()
    messages = [Message(), Message(), Message()]
    cell.dispatch_many(messages)
    assert gc.is_tracked(cell)
    assert reachable(cell, processor)
    assert reachable(cell, system)
    assert all(reachable(cell, message) for message in messages)
    assert not reachable(cell, Message())


def test_handled_messages_are_let_go(system):
    """Neither a cell nor an idle worker keeps a handled message."""
    message = Message()
    gone = weakref.ref(message)
    cell = system.cell("a", ignore)
    cell.dispatch(message)
    del message
    wait_until(lambda: cell.processed == 1)
    wait_until(lambda: gone() is None)


def test_a_failed_message_lives_in_its_dead_letter_only(system, monkeypatch):
    """With the dead letter cleared, message and error are gone."""
    monkeypatch.setattr(logging.getLogger("fastactor"), "disabled", True)  # pytest keeps log records

    class Bad(Exception):
        pass

    def fail(message, cell):
        raise Bad

    message = Message()
    system.dispatch("a", message, fail)
    wait_until(lambda: len(system.dead_letters) == 1 and system.stats().busy == 0)
    gone = [weakref.ref(message), weakref.ref(next(iter(system.dead_letters)).error)]
    del message
    assert all(ref() is not None for ref in gone)
    system.dead_letters.clear()
    wait_until(lambda: gc.collect() >= 0 and [ref() for ref in gone] == [None, None])


def test_a_stopped_cell_is_let_go(system):
    """The system keeps nothing of a stopped cell, nor does an idle worker."""
    cell = system.cell("a", lambda message, cell: None)
    cell.dispatch(1)
    settle(system, 1)
    gone = weakref.ref(cell)
    system.stop("a")
    del cell
    wait_until(lambda: gc.collect() >= 0 and gone() is None)


def test_a_cell_keeps_its_system(runtime):
    """A handle is enough to go on working."""
    seen = []
    cell = runtime.ActorSystem("kept", threads=1).cell("a", lambda message, cell: seen.append(message))
    gc.collect()
    assert cell.dispatch(1) is True
    wait_until(lambda: seen == [1])
    cell.system.shutdown()


def test_a_closed_system_is_collected(make_system, runtime):
    """After a shutdown only the references of others keep a system."""
    system = runtime.ActorSystem("closed", threads=2)
    system.dispatch("a", Message(system), ignore)
    system.shutdown()
    gone = weakref.ref(system)
    del system
    gc.collect()
    assert gone() is None


def test_an_executor_that_is_dropped_ends_its_threads(runtime, make_system):
    """So does an executor of its own."""
    system = make_system()
    executor = runtime.PriorityExecutor(2, name="alone")
    seen = []
    cell = runtime.ActorCell(system, "a", lambda message, cell: seen.append(message))
    cell.suspend()
    cell.dispatch(1)
    cell.status.resume()
    assert executor.execute(cell) is True
    wait_until(lambda: seen == [1])
    del cell, executor
    wait_until(lambda: gc.collect() >= 0 and not worker_threads("alone"))
