"""ActorCell: one path, one mailbox, one status word, one processor."""

import itertools
import sys
import threading
import time

import pytest
from support import DEADLINE, Gate, block_worker, run_threads, wait_until

from fastactor import Hold


def test_processor_is_a_callable(system):
    """A processor is a callable `(message, cell)`; the cell is passed as its second argument."""
    calls = []
    cell = system.cell("a", lambda *args: calls.append(args))
    cell.dispatch("hello")
    wait_until(lambda: calls)
    assert calls == [("hello", cell)]


def test_processor_is_an_object_with_process(system):
    """... or an object with `process(message, cell)`."""

    class Processor:
        def __init__(self):
            self.calls = []

        def process(self, message, cell):
            self.calls.append((message, cell))

    processor = Processor()
    cell = system.cell("a", processor)
    cell.dispatch("hello")
    wait_until(lambda: processor.calls)
    assert processor.calls == [("hello", cell)]


def test_a_callable_with_process_is_called(system):
    """An object that is both is called."""

    class Both:
        def __init__(self):
            self.calls = []

        def __call__(self, message, cell):
            self.calls.append("called")

        def process(self, message, cell):
            self.calls.append("processed")

    both = Both()
    system.dispatch("a", 1, both)
    wait_until(lambda: both.calls)
    assert both.calls == ["called"]


@pytest.mark.parametrize("answer", [None, True, 0, 0.0, "", (), [], NotImplemented, "later"], ids=repr)
def test_any_other_result_means_handled(system, answer):
    """Only the result `False` means "not now"; any other result, None included, means handled."""
    seen = []

    def processor(message, cell):
        seen.append(message)
        return answer

    cell = system.cell("a", processor)
    cell.dispatch_many([1, 2])
    wait_until(lambda: cell.processed == 2)
    assert seen == [1, 2]
    assert len(cell) == 0


def test_the_message_is_removed_only_after_it_was_processed(system):
    """The message is peeked, processed, and only then removed."""
    lengths = []
    cell = system.cell("a", lambda message, cell: lengths.append(len(cell)))
    with cell.hold():
        cell.dispatch_many([1, 2, 3])
    wait_until(lambda: cell.processed == 3)
    assert lengths == [3, 2, 1]
    assert len(cell) == 0


def test_the_message_in_hand_takes_a_place(make_system):
    """The message that is being processed still counts against the capacity."""
    system = make_system(capacity=1, overflow="drop-new")
    gate = block_worker(system)
    assert system.dispatch("gate", "second") is False
    gate.open()
    wait_until(lambda: len(system.get("gate")) == 0)
    assert system.dispatch("gate", "third") is True
    wait_until(lambda: gate.seen == ["hold", "third"])


def test_messages_of_one_cell_are_handled_in_order_one_at_a_time(make_system):
    """Messages of one key are handled in order, one at a time."""
    system = make_system(threads=4, quota=1e-6)
    inside, most, seen = [], [], []

    def processor(message, cell):
        inside.append(1)
        most.append(len(inside))
        seen.append(message)
        inside.pop()

    for n in range(2000):
        system.dispatch("a", n, processor)
    wait_until(lambda: len(seen) == 2000)
    assert seen == list(range(2000))
    assert set(most) == {1}


def test_attributes(system):
    """`cell.path`, `.status`, `len(cell)`, `.total`, `.processed`, `.weight`, `.system`."""
    cell = system.cell(("a", 1), print, weight=2, capacity=3, quota=0.25, overflow="block", on_error="stop")
    assert cell.path == ("a", 1)
    assert cell.status.value == 0
    assert len(cell) == 0
    assert cell.total == 0.0
    assert cell.processed == 0
    assert cell.weight == 2.0
    assert cell.system is system
    assert cell.capacity == 3
    assert cell.quota == pytest.approx(0.25)
    assert cell.overflow == "block"
    assert cell.on_error == "stop"


def test_an_empty_cell_is_true(system):
    """A cell with an empty mailbox is no false value."""
    assert system.cell("a", print)


def test_status_is_the_live_word(system):
    """`cell.status` is the word itself, not a copy."""
    gate = block_worker(system)
    cell = system.get("gate")
    status = cell.status
    assert status.is_scheduled
    cell.suspend()
    assert status.suspend_count == 1
    assert status.value == 6
    cell.resume()
    gate.open()
    wait_until(lambda: status.value == 0)


def test_total_is_worker_time(system):
    """`cell.total` (seconds of worker time so far)."""
    cell = system.cell("a", lambda message, cell: time.sleep(0.02))
    cell.dispatch_many([1, 2, 3])
    wait_until(lambda: cell.status.value == 0 and cell.processed == 3)
    wait_until(lambda: cell.total >= 0.06)
    before = cell.total
    time.sleep(0.05)
    assert cell.total == before  # idle time is not worker time


def test_dispatch(system):
    """`cell.dispatch(message) -> bool`."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    assert cell.dispatch(1) is True
    wait_until(lambda: seen == [1])


def test_dispatch_takes_any_message(system):
    """A message is any object: None and False too."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    messages = [None, False, 0, (), cell, system]
    for message in messages:
        cell.dispatch(message)
    wait_until(lambda: len(seen) == len(messages))
    assert all(a is b for a, b in zip(seen, messages, strict=True))


def test_dispatch_many(system):
    """`cell.dispatch_many(messages) -> int`, from any iterable."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    assert cell.dispatch_many([]) == 0
    assert cell.dispatch_many(iter([1, 2])) == 2
    assert cell.dispatch_many(n for n in (3, 4, 5)) == 3
    wait_until(lambda: seen == [1, 2, 3, 4, 5])


def test_dispatch_many_whose_iterable_raises(system):
    """What came before the error is handled, and the error reaches the caller."""
    seen = []

    def messages():
        yield 1
        yield 2
        raise ZeroDivisionError

    cell = system.cell("a", lambda message, cell: seen.append(message))
    with pytest.raises(ZeroDivisionError):
        cell.dispatch_many(messages())
    wait_until(lambda: seen == [1, 2])


def test_dispatch_from_its_own_processor(system):
    """A processor may dispatch to its own cell; the message comes after those already queued."""
    seen = []

    def processor(message, cell):
        seen.append(message)
        if message < 3:
            cell.dispatch(message + 10)

    cell = system.cell("a", processor)
    with cell.hold():
        cell.dispatch_many([1, 2, 3])
    wait_until(lambda: len(seen) == 5)
    assert seen == [1, 2, 3, 11, 12]


def test_suspend_and_resume(system):
    """`cell.suspend()`, `cell.resume()`: nested, and as many of each."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    cell.suspend()
    cell.suspend()
    cell.dispatch(1)
    assert cell.resume() is False
    other = system.cell("b", lambda message, cell: None)
    other.dispatch(1)
    wait_until(lambda: other.processed == 1)
    assert seen == []
    assert cell.resume() is True
    wait_until(lambda: seen == [1])


def test_resume_of_a_free_cell(system):
    """A resume too many changes nothing and is True."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    assert cell.resume() is True
    cell.suspend()
    cell.dispatch(1)
    assert cell.status.suspend_count == 1
    assert cell.resume() is True
    wait_until(lambda: seen == [1])


def test_a_suspension_takes_effect_before_the_next_message(system):
    """A suspension takes effect before the next message."""
    gate, seen = Gate(), []

    def processor(message, cell):
        if message == 1:
            gate(message, cell)
        seen.append(message)

    cell = system.cell("a", processor)
    cell.dispatch_many([1, 2])
    assert gate.entered.wait(DEADLINE)
    cell.suspend()
    gate.open()
    wait_until(lambda: not cell.status.is_scheduled)
    assert seen == [1]
    assert len(cell) == 1
    cell.resume()
    wait_until(lambda: seen == [1, 2])


def test_a_processor_suspends_its_own_cell(system):
    """A processor that suspends its cell has handled its last message until the resume."""
    seen = []

    def processor(message, cell):
        seen.append(message)
        cell.suspend()

    cell = system.cell("a", processor)
    cell.dispatch_many([1, 2])
    wait_until(lambda: cell.status.value == 4)
    assert seen == [1]
    assert cell.processed == 1
    cell.resume()
    wait_until(lambda: cell.status.value == 4 and seen == [1, 2])


def test_hold_is_a_suspension_of_its_own(system):
    """`cell.hold()` -> a token whose `release()` is idempotent."""
    cell = system.cell("a", print)
    hold = cell.hold()
    assert isinstance(hold, Hold)
    assert hold.cell is cell
    assert not hold.released
    assert cell.status.suspend_count == 1
    assert hold.release() is True
    assert hold.released
    assert hold.release() is False
    assert cell.status.suspend_count == 0


def test_a_late_release_does_not_resume_somebody_else(system):
    """... so that a late timer cannot resume somebody else's suspension."""
    cell = system.cell("a", print)
    first = cell.hold()
    first.release()
    second = cell.hold()
    first.release()
    assert cell.status.suspend_count == 1
    second.release()
    assert cell.status.suspend_count == 0


def test_hold_is_a_context_manager(system):
    """... and which is a context manager, on an error too."""
    cell = system.cell("a", print)
    with cell.hold() as hold:
        assert cell.status.suspend_count == 1
    assert hold.released
    with pytest.raises(ZeroDivisionError), cell.hold():
        raise ZeroDivisionError
    assert cell.status.suspend_count == 0


def test_release_of_the_last_hold_lets_the_cell_go_on(system):
    """Whatever waited meanwhile is handled after the release."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    one, two = cell.hold(), cell.hold()
    cell.dispatch_many([1, 2])
    one.release()
    assert len(cell) == 2
    two.release()
    wait_until(lambda: seen == [1, 2])


def test_holds_released_by_many_threads_at_once(system):
    """One hold, many releases: the suspension ends once."""
    cell = system.cell("a", print)
    for _ in range(20):
        cell.suspend()
        hold = cell.hold()
        answers = []
        run_threads(*[lambda h=hold, a=answers: a.append(h.release())] * 4)
        assert sorted(answers) == [False, False, False, True]
        assert cell.status.suspend_count == 1
        cell.resume()


def test_stop(system):
    """`cell.stop()` closes the cell: True once."""
    cell = system.cell("a", print)
    assert cell.stop() is True
    assert cell.status.is_closed
    assert cell.stop() is False
    assert "a" not in system


def test_weight_may_be_changed(system):
    """`cell.weight` may be set, within its bounds."""
    cell = system.cell("a", print)
    cell.weight = 3
    assert cell.weight == 3.0
    with pytest.raises(ValueError, match="weight"):
        cell.weight = 0
    with pytest.raises(TypeError, match="weight"):
        cell.weight = "3"
    assert cell.weight == 3.0


def test_current_cell(runtime, system):
    """`fastactor.current_cell()` says which cell this thread is running."""
    seen = []

    def processor(message, cell):
        here = []
        thread = threading.Thread(target=lambda: here.append(runtime.current_cell()))
        thread.start()
        thread.join()
        seen.append((runtime.current_cell(), here[0]))

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: seen)
    assert seen == [(cell, None)]
    assert runtime.current_cell() is None


@pytest.fixture
def switch_often():
    """A call of it changes how soon threads change places, so that the narrowest windows are met."""
    before = sys.getswitchinterval()
    intervals = itertools.cycle([1e-6, 3e-6, 1e-5, 3e-5, 1e-4])
    yield lambda: sys.setswitchinterval(next(intervals))
    sys.setswitchinterval(before)


def messages_for(seconds):
    """0, 1, 2, ... for so long, 20,000 of them at most."""
    end = time.monotonic() + seconds
    for n in range(20_000):
        if time.monotonic() > end:
            return
        yield n


def spin_until(predicate):
    """As wait_until, but without a sleep: what follows comes as soon after it as possible."""
    end = time.monotonic() + DEADLINE
    for turn in itertools.count(1):
        if predicate():
            return
        if turn % 100 == 0:
            time.sleep(0)
            assert time.monotonic() < end, "a wake-up was lost"


def test_a_wake_up_is_never_lost(make_system, switch_often):
    """After `set_idle` the worker looks again: a message that arrived meanwhile schedules the cell anew."""
    system = make_system(threads=2)
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    for n in messages_for(2.0):  # each message meets a worker that is just about to leave
        if n % 50 == 0:
            switch_often()
        cell.dispatch(n)
        spin_until(lambda n=n: len(seen) > n)
    assert seen == list(range(n + 1))


def test_a_resume_is_never_lost(make_system, switch_often):
    """Suspended by its processor and resumed by somebody else at once: the cell goes on each time."""
    system = make_system(threads=2, capacity=30_000)
    seen = []

    def processor(message, cell):
        cell.suspend()
        seen.append(message)

    cell = system.cell("a", processor)
    cell.dispatch_many(range(30_000))
    for n in messages_for(2.0):
        if n % 50 == 0:
            switch_often()
        spin_until(lambda n=n: len(seen) > n)
        cell.resume()
    spin_until(lambda: len(seen) > n + 1)
    assert seen == list(range(n + 2))


def test_a_message_at_every_step_of_the_worker(make_system):
    """A wake-up is never lost: wherever the worker is after a message, the next one is handled.

    A trace function stops the worker at its first, second, ... step after the processor, as long as there are
    such steps (a native worker has none), and lets the next message arrive just then.
    """
    seen, left = [], [None]
    reached, go = threading.Event(), threading.Event()

    def trace(frame, event, arg):
        if left[0] is not None and frame.f_code.co_filename != __file__:
            left[0] -= 1
            if left[0] < 0:
                left[0] = None
                reached.set()
                go.wait(0.02)  # in vain where the worker holds a lock that the sender needs
        return trace

    def processor(message, cell):
        seen.append(message)
        step, which = message
        left[0] = step if which == "first" else None

    threading.settrace(trace)
    try:
        system = make_system(threads=1)
        cell = system.cell("a", processor)
        for step in range(200):
            reached.clear()
            go.clear()
            cell.dispatch((step, "first"))
            stopped = reached.wait(0.5)
            left[0] = None
            cell.dispatch((step, "second"))
            go.set()
            wait_until(lambda n=step: len(seen) == 2 * (n + 1))
            if not stopped:
                break
        assert system.shutdown()
    finally:
        threading.settrace(None)
    assert seen == [(n, which) for n in range(step + 1) for which in ("first", "second")]


def test_repr(system):
    """The cell says what waits."""
    cell = system.cell("a", print)
    cell.suspend()
    cell.dispatch(1)
    assert repr(cell) == "<ActorCell 'a': 1 queued, status 4>"
    hold = cell.hold()
    assert repr(hold) == "<Hold held on 'a'>"
    hold.release()
    assert repr(hold) == "<Hold released on 'a'>"


def test_made_without_a_system_method(runtime, system):
    """The class itself may make a cell outside the registry; it works like any other."""
    seen = []
    cell = runtime.ActorCell(system, "loose", lambda message, cell: seen.append(message), capacity=2)
    assert "loose" not in system
    cell.dispatch(1)
    wait_until(lambda: seen == [1])
