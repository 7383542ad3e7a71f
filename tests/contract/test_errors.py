"""A processor that raises: what becomes of the message, the cell and the worker."""

import gc
import itertools
import time

import pytest
from support import wait_until

from fastactor import ActorFailed, ActorSuspended, Retry


def fail_on(bad, seen, error=ValueError):
    """A processor that records each message and raises for the bad ones."""

    def processor(message, cell):
        seen.append(message)
        if message in bad:
            raise error(message)

    return processor


def test_dead_letter(system):
    """`"dead-letter"` (the message is moved aside with its exception, the next one runs)."""
    seen = []
    cell = system.cell("a", fail_on({2}, seen))
    cell.dispatch_many([1, 2, 3])
    wait_until(lambda: cell.processed == 3)
    assert seen == [1, 2, 3]
    (letter,) = system.dead_letters
    assert (letter.path, letter.message, letter.reason) == ("a", 2, "error")
    assert isinstance(letter.error, ValueError)
    assert letter.error.args == (2,)
    assert letter.error.__traceback__ is not None
    assert system.stats().failed == 1


def test_retry(make_system):
    """`Retry(attempts, backoff, max_backoff)` then dead letter."""
    system = make_system(on_error=Retry(3, backoff=0.001, max_backoff=0.002))
    seen = []
    cell = system.cell("a", fail_on({1}, seen))
    cell.dispatch_many([1, 2])
    wait_until(lambda: cell.processed == 2)
    assert seen == [1, 1, 1, 2]
    assert [(x.message, x.reason) for x in system.dead_letters] == [(1, "error")]
    assert system.stats().failed == 3


def test_retry_that_succeeds(make_system):
    """A retry that succeeds is no dead letter, and the next message has all its attempts."""
    system = make_system(on_error=Retry(3, backoff=0.0, max_backoff=0.0))
    seen = []

    def processor(message, cell):
        seen.append(message)
        if seen.count(message) < 3:
            raise ValueError

    cell = system.cell("a", processor)
    cell.dispatch_many(["x", "y"])
    wait_until(lambda: cell.processed == 2)
    assert seen == ["x"] * 3 + ["y"] * 3
    assert len(system.dead_letters) == 0


def test_retry_waits_longer_each_time(make_system):
    """The backoff doubles, up to max_backoff."""
    retry = Retry(5, backoff=0.01, max_backoff=0.03)
    assert [retry.delay(n) for n in (1, 2, 3, 4)] == [0.01, 0.02, 0.03, 0.03]
    system = make_system(on_error=retry)
    times = []

    def processor(message, cell):
        times.append(time.monotonic())
        raise ValueError

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: cell.processed == 1)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) == 5
    assert all(gap >= least for gap, least in zip(gaps, [0.01, 0.02, 0.03, 0.03], strict=True))


def test_other_cells_run_during_a_backoff(make_system):
    """A cell that waits for its retry occupies no worker."""
    system = make_system(threads=1, on_error=Retry(2, backoff=3600.0, max_backoff=3600.0))
    seen = []
    system.dispatch("a", 1, fail_on({1}, seen))
    wait_until(lambda: seen == [1])
    system.dispatch("b", 2, fail_on(set(), seen))
    wait_until(lambda: seen == [1, 2])
    assert len(system.get("a")) == 1


def test_suspend(make_system):
    """`"suspend"` (message stays, cell suspended, event)."""
    system = make_system(on_error="suspend")
    events = []
    system.events.subscribe(events.append, ActorSuspended)
    seen = []

    def processor(message, cell):
        seen.append(message)
        if len(seen) == 1:
            raise ValueError("once")

    cell = system.cell("a", processor)
    cell.dispatch_many([1, 2])
    wait_until(lambda: cell.status.value == 4)
    assert seen == [1]
    assert len(cell) == 2
    assert len(system.dead_letters) == 0
    wait_until(lambda: events)
    (event,) = events
    assert (event.system, event.path, event.message) == (system.name, "a", 1)
    assert event.error.args == ("once",)
    assert system.resume("a") is True
    wait_until(lambda: seen == [1, 1, 2])


def test_stop(make_system):
    """`"stop"`: the message is a dead letter with its error, so is what is queued; the path is free."""
    system = make_system(on_error="stop")
    seen = []
    cell = system.cell("a", fail_on({1}, seen))
    with cell.hold():
        cell.dispatch_many([1, 2])
    wait_until(lambda: cell.status.value == 1)
    assert seen == [1]
    letters = {x.message: x for x in system.dead_letters}
    assert set(letters) == {1, 2}
    assert isinstance(letters[1].error, ValueError)
    assert letters[2].error is None
    assert letters[1].reason == letters[2].reason == "error"
    assert "a" not in system
    system.dispatch("a", 3, fail_on(set(), seen))
    wait_until(lambda: seen == [1, 3])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RecursionError, GeneratorExit, MemoryError])
@pytest.mark.parametrize("policy", ["dead-letter", "suspend", "stop", Retry(1)], ids=str)
def test_the_worker_survives(make_system, error, policy):
    """The worker survives, KeyboardInterrupt, SystemExit and RecursionError included."""
    system = make_system(threads=1, on_error=policy)
    seen = []
    cell = system.cell("a", fail_on({1}, seen, error))
    cell.dispatch(1)
    wait_until(lambda: seen == [1] and not cell.status.is_scheduled)
    system.dispatch("b", 2, fail_on(set(), seen))
    wait_until(lambda: seen == [1, 2])
    if policy != "suspend":
        (letter,) = system.dead_letters
        assert isinstance(letter.error, error)


def test_a_real_recursion(make_system):
    """A processor that recurses without end fails as any other; its error is kept."""
    gc.collect()  # so that no finalizer of an earlier test runs on the exhausted stack
    system = make_system(threads=1)

    def recurse(message, cell):
        return recurse(message, cell)

    cell = system.cell("a", recurse)
    cell.dispatch_many([1, 2])
    wait_until(lambda: cell.processed == 2)
    assert [(x.message, type(x.error)) for x in system.dead_letters] == [
        (1, RecursionError),
        (2, RecursionError),
    ]


def test_on_error_per_cell(make_system):
    """A cell may have a policy of its own."""
    system = make_system(on_error="stop")
    seen = []
    cell = system.cell("a", fail_on({1}, seen), on_error="dead-letter")
    cell.dispatch_many([1, 2])
    wait_until(lambda: seen == [1, 2])
    assert "a" in system


def test_failures_are_events(make_system):
    """Each failure is an event that counts the tries of this message."""
    system = make_system(on_error=Retry(2, backoff=0.0, max_backoff=0.0))
    events = []
    system.events.subscribe(events.append, ActorFailed)
    seen = []
    cell = system.cell("a", fail_on({1, 2}, seen))
    cell.dispatch_many([1, 2])
    wait_until(lambda: len(events) == 4)
    assert [(e.message, e.failures) for e in events] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(e.path == "a" and isinstance(e.error, ValueError) for e in events)


def test_a_processor_that_fails_after_stopping_its_cell(system):
    """Stopped and failed: one dead letter, with the error."""

    def processor(message, cell):
        cell.stop()
        raise ValueError

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: cell.status.value == 1 and len(system.dead_letters))
    (letter,) = system.dead_letters
    assert letter.message == 1
    assert isinstance(letter.error, ValueError)


def test_a_processor_with_the_wrong_signature(system):
    """A processor that cannot be called with (message, cell) fails as any other."""
    cell = system.cell("a", lambda: None)
    cell.dispatch(1)
    wait_until(lambda: cell.processed == 1)
    (letter,) = system.dead_letters
    assert isinstance(letter.error, TypeError)


def test_retry_is_checked():
    """Wrong types raise TypeError, wrong values ValueError, at once."""
    for wrong in ({"attempts": 0}, {"backoff": -1.0}, {"backoff": 2.0, "max_backoff": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            Retry(**wrong)
    for wrong in ({"attempts": "3"}, {"attempts": True}, {"backoff": "1"}, {"max_backoff": None}):
        with pytest.raises(TypeError, match="must be"):
            Retry(**wrong)
