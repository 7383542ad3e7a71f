"""Defects that a review found, one test each, so that they stay found."""

import threading
import time

import pytest
from support import DEADLINE, wait_until

import fastactor


def test_a_blocked_processor_and_a_busy_main_thread_hold_up_nobody(make_system):
    """The GIL was never free and the running worker asleep, so no other worker was let go."""
    system = make_system(threads=4)
    inside, release, handled = threading.Event(), threading.Event(), []

    def block(message, cell):
        inside.set()
        release.wait(DEADLINE)

    system.dispatch("blocked", 1, block)
    assert inside.wait(DEADLINE)
    for n in range(20):
        system.dispatch(n, n, lambda message, cell: handled.append(message))
    end = time.monotonic() + DEADLINE
    while len(handled) < 20 and time.monotonic() < end:
        pass  # busy: this thread wants the GIL all the time
    release.set()
    assert sorted(handled) == list(range(20))


def test_a_dying_cell_is_not_listed_as_running(make_system):
    """The worker still named the cell whose last reference it was just dropping."""
    system = make_system(threads=1)
    dying, go_on = threading.Event(), threading.Event()

    class Processor:
        def __del__(self):
            dying.set()
            if threading.current_thread() is not threading.main_thread():  # a free-threaded build may choose
                go_on.wait(DEADLINE)

        def process(self, message, cell):
            cell.stop()

    system.cell("a", Processor()).suspend()
    system.dispatch("a", 1)
    system.resume("a")
    wait_until(dying.is_set)
    try:
        for _ in range(100):
            assert all(cell.path == "a" for cell in system.executor._running())
    finally:
        go_on.set()


def test_dispatch_after_the_executor_was_shut_down(make_system):
    """It was accepted and never handled."""
    system = make_system()
    handled = []
    cell = system.cell("a", lambda message, cell: handled.append(message))
    cell.dispatch(1)
    assert system.executor.shutdown()
    assert handled == [1]
    assert cell.dispatch(2) is False
    assert [(letter.message, letter.reason) for letter in system.dead_letters] == [(2, "shutdown")]
    assert system.shutdown()
    assert len(system) == 0


def test_cells_of_another_executor_are_drained_too(make_system, runtime):
    """What they had queued became dead letters."""
    system = make_system()
    handled = []
    with_other = runtime.PriorityExecutor(1, name="other")
    cell = system.cell("a", lambda message, cell: handled.append(message))
    assert with_other.execute(cell)
    wait_until(lambda: not cell.status.is_scheduled)
    cell.suspend()
    cell.dispatch_many(range(20))
    cell.resume()
    assert system.shutdown()
    assert handled == list(range(20))
    assert len(system.dead_letters) == 0
    assert with_other.shutdown()


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_more_seconds_than_nanoseconds_fit(make_system, seconds):
    """They overflowed, and what should have waited for ever was due all the time."""
    system = make_system(
        idle_timeout=seconds, on_error=fastactor.Retry(10**6, seconds, seconds), overflow="block", capacity=1
    )
    tries = []

    def fail(message, cell):
        tries.append(message)
        raise ValueError(message)

    system.dispatch("a", 1, fail)
    system.dispatch("b", 1, lambda message, cell: tries.append("b"), timeout=seconds)
    wait_until(lambda: len(tries) == 2)
    used = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - used < 0.2
    assert len(tries) == 2
    assert "b" in system


def test_the_scheduled_bit_of_a_cell_belongs_to_the_runtime(system):
    """set_idle() from inside a processor let two workers run the cell."""
    cell = system.cell("a", print)
    for forbidden in (cell.status.try_schedule, cell.status.set_idle):
        with pytest.raises(RuntimeError, match="belongs to the runtime"):
            forbidden()
    assert cell.status.value == 0


def test_closing_the_status_word_of_a_cell_stops_the_cell(system):
    """The cell stayed registered, took messages and never handled them."""
    cell = system.cell("a", print)
    cell.status.close()
    assert "a" not in system
    assert cell.dispatch(1) is False
    assert system.shutdown()


def test_an_error_policy_that_fails_itself(make_system):
    """The worker died, or the message vanished."""

    class Broken(fastactor.Retry):
        def delay(self, failures):
            raise RuntimeError("no delay today")

    system = make_system(threads=1, on_error=Broken())
    handled = []

    def processor(message, cell):
        if message == 1:
            raise ValueError(message)
        handled.append(message)

    system.dispatch("a", 1, processor)
    system.dispatch("a", 2)
    wait_until(lambda: handled == [2])
    (letter,) = system.dead_letters
    assert (letter.message, type(letter.error)) == (1, ValueError)


def retired(system, processor, **options):
    """A handle on a cell that was removed for idleness."""
    cell = system.cell("a", processor, **options)
    wait_until(lambda: "a" not in system)
    return cell


def test_a_kept_handle_can_still_hold_and_stop(make_system):
    """They did nothing, without a word."""
    system = make_system(idle_timeout=0.01)
    handled = []
    cell = retired(system, lambda message, cell: handled.append(message))
    hold = cell.hold()
    cell.dispatch(1)
    time.sleep(0.05)
    assert handled == []
    hold.release()
    wait_until(lambda: handled == [1])
    with cell.hold():
        cell.dispatch(2)
        assert cell.stop() is True
    assert handled == [1]
    assert [letter.message for letter in system.dead_letters] == [2]


def test_a_kept_handle_minds_the_timeout(make_system):
    """It waited for ever."""
    system = make_system(idle_timeout=0.01, overflow="block", capacity=1)
    cell = retired(system, print)
    cell.suspend()
    cell.dispatch(1)
    with pytest.raises(fastactor.MailboxFull):
        cell.dispatch(2, timeout=0.05)
