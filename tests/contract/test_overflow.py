"""Overflow: what happens when a mailbox is full. Never silent."""

import threading
import time

import pytest
from support import DEADLINE, Gate, block_worker, run_threads, wait_until

from fastactor import MailboxFull, SystemClosed

capacities = pytest.mark.parametrize("capacity", [1, 2, 3])


def full(system, seen, **options):
    """A suspended cell whose mailbox is full: 0, 1, ... wait in it."""
    cell = system.cell("a", lambda message, cell: seen.append(message), **options)
    cell.suspend()
    cell.dispatch_many(range(cell.capacity))
    assert len(cell) == cell.capacity
    return cell


@capacities
def test_raise(make_system, capacity):
    """`"raise"` (MailboxFull)."""
    system = make_system(capacity=capacity, overflow="raise")
    seen = []
    cell = full(system, seen)
    for dispatch in (cell.dispatch, lambda message: system.dispatch("a", message)):
        with pytest.raises(MailboxFull) as caught:
            dispatch("too many")
        error = caught.value
        assert (error.path, error.capacity, error.accepted) == ("a", capacity, 0)
        assert f"capacity {capacity}" in str(error)
    assert len(system.dead_letters) == 0  # the sender knows
    assert system.stats().dropped == 0
    cell.resume()
    wait_until(lambda: len(seen) == capacity)
    assert seen == list(range(capacity))


@capacities
def test_drop_new(make_system, capacity):
    """`"drop-new"`. A dropped message is a dead letter and is counted."""
    system = make_system(capacity=capacity, overflow="drop-new")
    seen = []
    cell = full(system, seen)
    assert cell.dispatch("x") is False
    assert system.dispatch("a", "y") is False
    assert cell.dispatch_many(["z"]) == 0
    assert [(x.message, x.reason, x.error) for x in system.dead_letters] == [
        ("x", "overflow", None),
        ("y", "overflow", None),
        ("z", "overflow", None),
    ]
    assert system.stats().dropped == 3
    cell.resume()
    wait_until(lambda: len(seen) == capacity)
    assert seen == list(range(capacity))


@capacities
def test_drop_oldest_keeps_the_newest(make_system, capacity):
    """`"drop-oldest"`: a suspended cell keeps the newest."""
    system = make_system(capacity=capacity, overflow="drop-oldest")
    seen = []
    cell = full(system, seen)
    assert cell.dispatch("x") is True
    assert system.dispatch("a", "y") is True
    assert cell.dispatch_many(["z"]) == 1
    sent = [*range(capacity), "x", "y", "z"]
    assert [x.message for x in system.dead_letters] == sent[:3]
    assert {x.reason for x in system.dead_letters} == {"overflow"}
    assert system.stats().dropped == 3
    assert len(cell) == capacity
    cell.resume()
    wait_until(lambda: len(seen) == capacity)
    assert seen == sent[3:]


@pytest.mark.parametrize("capacity", [2, 3])
def test_drop_oldest_spares_the_message_in_hand(make_system, capacity):
    """The message in the processor's hands is never evicted."""
    system = make_system(capacity=capacity, overflow="drop-oldest")
    gate = block_worker(system)
    cell = system.get("gate")
    assert cell.dispatch_many(range(10)) == 10
    assert len(cell) == capacity
    kept = list(range(10))[-(capacity - 1) :]
    assert [x.message for x in system.dead_letters] == list(range(10))[: -(capacity - 1)]
    gate.open()
    wait_until(lambda: len(gate.seen) == capacity)
    assert gate.seen == ["hold", *kept]


def test_drop_oldest_with_the_only_message_in_hand(make_system):
    """With capacity 1 and that message in hand the new one is dropped."""
    system = make_system(capacity=1, overflow="drop-oldest")
    gate = block_worker(system)
    assert system.dispatch("gate", "new") is False
    assert [(x.message, x.reason) for x in system.dead_letters] == [("new", "overflow")]
    gate.open()
    wait_until(lambda: len(system.get("gate")) == 0)
    assert gate.seen == ["hold"]
    assert system.dispatch("gate", "later") is True
    wait_until(lambda: gate.seen == ["hold", "later"])


@capacities
def test_drop_oldest_against_a_running_processor(make_system, capacity):
    """Under a storm each message is handled or a dead letter, exactly once, in the order of its producer."""
    system = make_system(capacity=capacity, overflow="drop-oldest")
    handled, dead = [], []
    system.dead_letters.append = lambda letter: dead.append(letter.message)
    cell = system.cell("a", lambda message, cell: handled.append(message))

    def produce(number):
        for n in range(2000):
            cell.dispatch((number, n))

    run_threads(lambda: produce(0), lambda: produce(1))
    system.shutdown()
    assert len(handled) + len(dead) == 4000
    assert len({*handled, *dead}) == 4000
    for number in range(2):
        mine = [n for p, n in handled if p == number]
        assert mine == sorted(mine)


def test_overflow_per_cell(make_system):
    """A cell may have a policy of its own."""
    system = make_system(capacity=1, overflow="raise")
    cell = full(system, [], overflow="drop-new")
    assert cell.dispatch("x") is False
    assert len(system.dead_letters) == 1


def test_block_waits_for_room(make_system):
    """`"block"` (waits for room with the GIL released)."""
    system = make_system(capacity=2, overflow="block")
    seen = []
    cell = full(system, seen)
    blocked, answers = threading.Event(), []

    def sender():
        blocked.set()
        answers.append(cell.dispatch("late"))

    thread = threading.Thread(target=sender)
    thread.start()
    assert blocked.wait(DEADLINE)
    time.sleep(0.05)
    assert answers == []  # and this thread runs: the GIL is free
    assert len(cell) == 2
    cell.resume()
    thread.join(DEADLINE)
    assert answers == [True]
    wait_until(lambda: seen == [0, 1, "late"])
    assert len(system.dead_letters) == 0


@capacities
def test_block_with_many_waiters(make_system, capacity):
    """Every waiter gets its turn; nothing is lost, nothing is handled twice, each sender's order is kept."""
    system = make_system(capacity=capacity, overflow="block")
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))

    def produce(number):
        for n in range(300):
            assert cell.dispatch((number, n)) is True

    run_threads(*[lambda n=n: produce(n) for n in range(4)])
    wait_until(lambda: len(seen) == 1200)
    for number in range(4):
        assert [n for p, n in seen if p == number] == list(range(300))
    assert len(system.dead_letters) == 0


def test_block_in_dispatch_many(make_system):
    """A batch larger than the mailbox goes through, in order."""
    system = make_system(capacity=2, overflow="block")
    seen = []
    assert system.dispatch_many("a", range(500), lambda message, cell: seen.append(message)) == 500
    wait_until(lambda: len(seen) == 500)
    assert seen == list(range(500))


@pytest.mark.parametrize("timeout", [0, 0.02])
def test_block_times_out(make_system, timeout):
    """`timeout=` on dispatch: no room in time is MailboxFull."""
    system = make_system(capacity=1, overflow="block")
    seen = []
    cell = full(system, seen)
    for dispatch in (cell.dispatch, lambda message, timeout: system.dispatch("a", message, timeout=timeout)):
        started = time.monotonic()
        with pytest.raises(MailboxFull) as caught:
            dispatch("late", timeout=timeout)
        assert time.monotonic() - started >= timeout
        assert "timeout" in str(caught.value)
    cell.resume()
    wait_until(lambda: len(cell) == 0)
    assert cell.dispatch("in time", timeout=DEADLINE) is True
    wait_until(lambda: seen == [0, "in time"])


def test_a_timeout_does_not_delay_what_fits(make_system):
    """With room the timeout plays no part."""
    system = make_system(capacity=1, overflow="block")
    seen = []
    assert system.dispatch("a", 1, lambda message, cell: seen.append(message), timeout=0) is True
    wait_until(lambda: seen == [1])


def test_its_own_processor_cannot_wait(make_system):
    """Its own processor gets MailboxFull at once: only its return makes room."""
    system = make_system(capacity=1, overflow="block")
    errors = []

    def processor(message, cell):
        try:
            cell.dispatch("to myself")
        except MailboxFull as error:
            errors.append(error)

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: cell.processed == 1)
    assert len(errors) == 1
    assert "own processor" in str(errors[0])


def test_another_processor_may_wait(make_system):
    """A processor may wait for room in another cell."""
    system = make_system(threads=2, capacity=1, overflow="block")
    seen = []
    target = system.cell("target", lambda message, cell: seen.append(message))
    target.suspend()
    target.dispatch(0)
    source = system.cell("source", lambda message, cell: target.dispatch(message))
    source.dispatch(1)
    wait_until(lambda: system.stats().busy == 1)
    target.resume()
    wait_until(lambda: seen == [0, 1])


def test_stop_wakes_the_waiters(make_system):
    """Close wakes everybody who waits for room; their messages are dead letters."""
    system = make_system(capacity=1, overflow="block")
    cell = full(system, [])
    answers = []
    entered = threading.Barrier(4)

    def sender(n):
        entered.wait(DEADLINE)
        answers.append(cell.dispatch(n))

    threads = [threading.Thread(target=sender, args=(n,)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    entered.wait(DEADLINE)
    time.sleep(0.02)  # most likely they wait by now; the outcome must not depend on it
    system.stop("a")
    for thread in threads:
        thread.join(DEADLINE)
    assert answers == [False, False, False]
    assert sorted(x.message for x in system.dead_letters) == [0, 1, 2, 3]
    assert {x.reason for x in system.dead_letters} == {"stopped"}


def test_shutdown_wakes_the_waiters(make_system):
    """So does a shutdown: SystemClosed."""
    system = make_system(capacity=1, overflow="block")
    cell = full(system, [])
    outcome = []
    entered = threading.Event()

    def sender():
        entered.set()
        try:
            outcome.append(cell.dispatch("late"))
        except SystemClosed as error:
            outcome.append(error)

    thread = threading.Thread(target=sender)
    thread.start()
    assert entered.wait(DEADLINE)
    time.sleep(0.02)
    assert system.shutdown(drain=False, timeout=DEADLINE)
    thread.join(DEADLINE)
    assert len(outcome) == 1
    assert isinstance(outcome[0], SystemClosed)


def test_a_waiter_is_woken_by_an_eviction_free_pop(make_system):
    """Room that a single handled message makes goes to exactly one waiter."""
    system = make_system(capacity=1, overflow="block", threads=1)
    gate = Gate()
    step = threading.Semaphore(0)
    seen = []

    def processor(message, cell):
        gate.entered.set()
        assert step.acquire(timeout=DEADLINE)
        seen.append(message)

    cell = system.cell("a", processor)
    cell.dispatch(0)
    assert gate.entered.wait(DEADLINE)
    threads = [threading.Thread(target=cell.dispatch, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for handled in (1, 2, 3):
        step.release()
        wait_until(lambda n=handled: len(seen) == n)
    for thread in threads:
        thread.join(DEADLINE)
    assert sorted(seen) == [0, 1, 2]
