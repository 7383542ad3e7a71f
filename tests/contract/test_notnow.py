"""A processor that answers False: the message stays at the head and is tried again."""

import itertools
import threading
import time

from support import wait_until

from fastactor import Retry


def test_the_message_stays_at_the_head(system):
    """Only False means "not now": the message **stays at the head** and is tried again."""
    tries = []

    def processor(message, cell):
        tries.append(message)
        return False if len(tries) < 3 else None

    cell = system.cell("a", processor)
    with cell.hold():
        cell.dispatch_many(["first", "second"])
    wait_until(lambda: cell.processed == 2)
    assert tries == ["first", "first", "first", "second"]


def test_order_is_kept_over_delays(make_system):
    """Every message is refused more often than the free tries allow; the order stays."""
    system = make_system(capacity=3, overflow="block")
    tries, handled = [], []

    def processor(message, cell):
        tries.append(message)
        if tries.count(message) <= 5:
            return False
        handled.append(message)

    cell = system.cell("a", processor)
    cell.dispatch_many(range(6))
    wait_until(lambda: len(handled) == 6)
    assert handled == list(range(6))
    assert tries == sorted(tries)
    assert len(tries) == 36


def test_no_core_is_burnt(make_system):
    """After a few tries without progress its next try is delayed, doubling up to 100 ms."""
    system = make_system(threads=1)
    tries = []

    def processor(message, cell):
        tries.append(time.monotonic())
        return False

    system.dispatch("a", 1, processor)
    started = time.monotonic()
    wait_until(lambda: len(tries) >= 5 and time.monotonic() - started > 0.5)
    assert 5 <= len(tries) < 60
    wait_until(lambda: len(tries) >= 14)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    # 3 tries at once, then 1, 2, 4, 8, 16, 32, 64, 100, 100 ms; a busy machine only makes them longer.
    least = [0, 0, 0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.1, 0.1]
    assert all(gap >= bound for gap, bound in zip(gaps, least, strict=False))


def test_the_delay_never_exceeds_100_ms_by_design(make_system):
    """... up to 100 ms: ten more tries do not take as long as doubling on would need (over 100 s)."""
    system = make_system(threads=1)
    tries = []

    def processor(message, cell):
        tries.append(message)
        return False

    system.dispatch("a", 1, processor)
    wait_until(lambda: len(tries) >= 20)
    assert len(system.get("a")) == 1


def test_others_run_meanwhile(make_system):
    """A delayed cell occupies no worker."""
    system = make_system(threads=1)
    tries = []

    def refuse(message, cell):
        tries.append(message)
        return False

    system.dispatch("refuses", 1, refuse)
    wait_until(lambda: len(tries) >= 5)
    other = system.cell("b", lambda message, cell: None)
    other.dispatch_many(range(100))
    wait_until(lambda: other.processed == 100)
    assert len(system.get("refuses")) == 1


def test_progress_starts_the_tries_anew(make_system):
    """A handled message takes the delay back to its beginning."""
    system = make_system(threads=1)
    accept = threading.Event()
    tries = []

    def processor(message, cell):
        tries.append((message, time.monotonic()))
        return None if accept.is_set() else False

    cell = system.cell("a", processor)
    cell.dispatch("slow")
    wait_until(lambda: len(tries) > 12)  # 100 ms from here on
    accept.set()
    wait_until(lambda: cell.processed == 1)
    accept.clear()
    cell.dispatch("again")
    wait_until(lambda: [message for message, _ in tries].count("again") == 6)
    times = [at for message, at in tries if message == "again"]
    # Had the delay been kept, each of the five gaps would be at least 100 ms.
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) < 0.1


def test_schedule_ends_the_delay(make_system):
    """`schedule` of a cell that waits before its next try makes it ready at once."""
    system = make_system(threads=1, on_error=Retry(2, backoff=3600.0, max_backoff=3600.0))
    tries = []

    def processor(message, cell):
        tries.append(message)
        if len(tries) == 1:
            raise ValueError

    system.dispatch("a", 1, processor)
    wait_until(lambda: tries and system.stats().busy == 0)
    assert system.schedule("a") is True  # otherwise the next try would come in an hour
    wait_until(lambda: len(tries) == 2)


def test_schedule_ends_the_delay_after_false(make_system):
    """The same for False: each call makes the next try come."""
    system = make_system(threads=1)
    tries = []

    def processor(message, cell):
        tries.append(message)
        return False

    system.dispatch("a", 1, processor)
    wait_until(lambda: len(tries) >= 8)
    hurried = 0
    for _ in range(20):
        before = len(tries)
        hurried += system.schedule("a")
        wait_until(lambda before=before: len(tries) > before)
    assert hurried > 0


def test_suspended_and_false_waits_for_the_resume(system):
    """A processor that suspends its cell and answers False is tried again after the resume, not before."""
    tries = []

    def processor(message, cell):
        tries.append(message)
        if len(tries) <= 10:
            cell.suspend()
            return False

    cell = system.cell("a", processor)
    cell.dispatch_many(["first", "second"])
    for expected in range(1, 11):
        wait_until(lambda: cell.status.value == 4)
        time.sleep(0.01)  # nothing happens without the resume
        assert len(tries) == expected
        assert len(cell) == 2
        assert system.schedule("a") is False
        cell.resume()
    wait_until(lambda: cell.processed == 2)
    assert tries == ["first"] * 11 + ["second"]


def test_patience_is_not_a_spin(make_system):
    """False with a suspension does not count as a try without progress: no delay builds up."""
    system = make_system(threads=1)
    tries = []

    def processor(message, cell):
        tries.append(message)
        cell.suspend()
        return len(tries) >= 300

    cell = system.cell("a", processor)
    cell.dispatch("only")
    started = time.monotonic()
    for expected in range(1, 301):
        wait_until(lambda n=expected: len(tries) == n and cell.status.value == 4)
        cell.resume()
    assert time.monotonic() - started < 29  # with delays of 100 ms each it would take 30 seconds
    wait_until(lambda: cell.processed == 1)


def test_suspended_from_outside_while_delayed(system):
    """A suspension during the delay holds the next try back."""
    tries = []

    def processor(message, cell):
        tries.append(message)
        return False

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: len(tries) >= 5)
    cell.suspend()
    wait_until(lambda: not cell.status.is_scheduled)
    before = len(tries)
    time.sleep(0.15)
    assert len(tries) == before
    cell.resume()
    wait_until(lambda: len(tries) > before)


def test_stop_while_delayed(system):
    """A cell that is stopped while it waits for its next try gives up its message."""
    tries = []

    def processor(message, cell):
        tries.append(message)
        return False

    cell = system.cell("a", processor)
    cell.dispatch_many(["head", "next"])
    wait_until(lambda: len(tries) >= 5)
    assert system.stop("a") is True
    wait_until(lambda: len(system.dead_letters) == 2)
    assert sorted(letter.message for letter in system.dead_letters) == ["head", "next"]
    assert {letter.reason for letter in system.dead_letters} == {"stopped"}
