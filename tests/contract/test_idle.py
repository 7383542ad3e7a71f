"""idle_timeout: a cell that has nothing to do for that long is removed."""

import random
import threading
import time
from collections import Counter

import pytest
from support import DEADLINE, block_worker, run_threads, wait_until

from fastactor import ActorStopped


def ignore(message, cell):
    """A processor that does nothing."""


def test_an_idle_cell_is_removed(make_system):
    """A cell with an empty mailbox and nothing done for that long is removed."""
    system = make_system(idle_timeout=0.02)
    events = []
    system.events.subscribe(events.append, ActorStopped)
    cell = system.cell("a", ignore)
    cell.dispatch(1)
    wait_until(lambda: "a" not in system)
    assert cell.processed == 1
    assert cell.status.is_closed
    wait_until(lambda: events == [ActorStopped(system.name, "a", "idle")])
    assert len(system.dead_letters) == 0


def test_a_cell_that_never_had_a_message_is_removed(make_system):
    """Nothing done at all is nothing done."""
    system = make_system(idle_timeout=0.02)
    for n in range(100):
        system.cell(n, ignore)
    wait_until(lambda: len(system) == 0)
    assert len(system.dead_letters) == 0


def test_not_before_the_time(make_system):
    """Not for less than that long."""
    system = make_system(idle_timeout=3600.0)
    cell = system.cell("a", ignore)
    cell.dispatch(1)
    wait_until(lambda: cell.processed == 1)
    time.sleep(0.05)
    assert system.get("a") is cell


def test_without_idle_timeout_cells_stay(system):
    """The default keeps every cell."""
    system.cell("a", ignore)
    time.sleep(0.05)
    assert "a" in system


@pytest.mark.parametrize("state", ["running", "suspended", "queued"])
def test_a_cell_with_something_to_do_stays(make_system, state):
    """A cell that runs, is suspended or has a message is not idle."""
    system = make_system(idle_timeout=0.01)
    removed = []
    system.events.subscribe(removed.append, ActorStopped)
    gate = block_worker(system)
    cell = system.get("gate")
    if state != "running":
        cell.suspend()
        if state == "queued":
            cell.dispatch("waits")
        gate.open()
    system.cell("witness", ignore)
    wait_until(lambda: "witness" not in system)  # so idle cells are being removed
    time.sleep(0.05)
    assert system.get("gate") is cell
    if state != "running":
        cell.resume()
    gate.open()
    wait_until(lambda: "gate" not in system)
    assert len(system.dead_letters) == 0


def test_the_path_lives_on(make_system):
    """The next message of a removed path needs a processor again, as any new path does."""
    system = make_system(idle_timeout=0.01)
    seen = []

    def processor(message, cell):
        seen.append(message)

    system.dispatch("a", 1, processor)
    wait_until(lambda: "a" not in system)
    with pytest.raises(LookupError):
        system.dispatch("a", 2)
    system.dispatch("a", 3, processor)
    wait_until(lambda: seen == [1, 3])


def test_a_kept_handle_goes_on_working(make_system):
    """A message to the handle of a removed cell reaches a new cell of the same path, options included."""
    system = make_system(idle_timeout=0.01)
    seen = []
    old = system.cell(
        "a", lambda message, cell: seen.append((message, cell)), weight=3.0, capacity=2, overflow="drop-new"
    )
    wait_until(lambda: "a" not in system)
    assert old.dispatch(1) is True
    assert old.dispatch_many([2]) == 1
    wait_until(lambda: len(seen) == 2)
    new = seen[0][1]
    assert new is not old
    assert (new.path, new.weight, new.capacity, new.overflow) == ("a", 3.0, 2, "drop-new")
    assert len(system.dead_letters) == 0


def test_max_actors_counts_the_living(make_system):
    """A removed cell makes room under max_actors."""
    system = make_system(idle_timeout=0.01, max_actors=1)
    system.cell("a", ignore)
    wait_until(lambda: "a" not in system)
    assert system.cell("b", ignore).path == "b"


def test_a_message_that_comes_while_its_cell_is_removed(make_system):
    """Nothing lost, nothing twice: producers by path and by kept handle race with the removal."""
    system = make_system(threads=2, idle_timeout=0.01)
    handled = Counter()
    lock = threading.Lock()
    removed = []
    system.events.subscribe(removed.append, ActorStopped)

    def processor(message, cell):
        with lock:
            handled[message] += 1

    handles = {n: system.cell(n, processor) for n in range(20)}
    sent = [0] * 4
    random_pause = random.Random(1)
    end = time.monotonic() + DEADLINE
    pause, rounds = [0.0], [0]

    def next_round():
        """All send at once, then nobody does for about as long as a cell may be idle."""
        rounds[0] += 1
        enough = rounds[0] >= 60 and len(removed) >= 100
        pause[0] = None if enough or time.monotonic() > end else random_pause.uniform(0.009, 0.014)

    barrier = threading.Barrier(4, next_round)

    def produce(number, by_handle):
        while True:
            barrier.wait(DEADLINE)
            if pause[0] is None:
                return
            time.sleep(pause[0])
            for path, cell in handles.items():
                message = (number, sent[number])
                if by_handle:
                    assert cell.dispatch(message) is True
                else:
                    assert system.dispatch(path, message, processor) is True
                sent[number] += 1

    run_threads(
        lambda: produce(0, False),
        lambda: produce(1, False),
        lambda: produce(2, True),
        lambda: produce(3, True),
    )
    wait_until(lambda: len(handled) == sum(sent))
    assert set(handled.values()) == {1}
    assert len(system.dead_letters) == 0
    assert len(removed) >= 100  # the race did take place


def test_a_message_that_meets_a_cell_between_closed_and_gone(make_system):
    """A removal that is held up half-way neither loses the message nor fails its sender."""
    system = make_system(threads=2, idle_timeout=0.01)
    seen = []

    class SlowPath:
        """Hashed slowly the second time, that is, while the registry is locked for a new cell."""

        def __init__(self):
            self.times = 0
            self.busy = threading.Event()

        def __hash__(self):
            self.times += 1
            if self.times == 2:
                self.busy.set()
                time.sleep(0.05)
            return 1

    handle = system.cell("a", lambda message, cell: seen.append(message))
    for n in range(0, 40, 2):
        path = SlowPath()
        slow = threading.Thread(target=system.cell, args=(path, ignore))
        slow.start()
        assert path.busy.wait(DEADLINE)
        assert handle.dispatch(n) is True
        wait_until(lambda: "a" not in system or system.get("a").status.is_closed)
        assert handle.dispatch(n + 1) is True
        slow.join()
        wait_until(lambda n=n: seen == list(range(n + 2)))
    assert len(system.dead_letters) == 0


def test_a_message_at_every_step_of_the_removal(make_system):
    """Wherever the removal is, a message to the kept handle is handled.

    A trace function stops the worker at the first, second, ... step after it has begun to remove the cell, as
    long as there are such steps (a native worker may have none), and lets the message arrive just then.
    """
    seen, watched, left = [], [None], [0]
    reached, go = threading.Event(), threading.Event()

    def trace(frame, event, arg):
        cell = watched[0]
        if cell is not None and cell.status.value:  # it has no message: it is being removed
            left[0] -= 1
            if left[0] < 0:
                watched[0] = None
                reached.set()
                go.wait(0.02)  # in vain where the worker holds a lock that the sender needs
        return trace

    threading.settrace(trace)
    try:
        system = make_system(threads=1, idle_timeout=0.005)
        for step in range(40):
            reached.clear()
            go.clear()
            cell = system.cell(step, lambda message, cell: seen.append(message))
            left[0], watched[0] = step, cell
            stopped = reached.wait(0.5)
            watched[0] = None
            assert cell.dispatch(step) is True
            go.set()
            wait_until(lambda n=step: len(seen) == n + 1)
            if not stopped:
                break
        assert system.shutdown()
    finally:
        threading.settrace(None)
    assert seen == list(range(step + 1))
    assert len(system.dead_letters) == 0
