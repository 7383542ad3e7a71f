"""ActorSystem: cells by path, and what may be done with them."""

import os
import threading

import pytest
from support import DEADLINE, Gate, block_worker, run_threads, wait_until

from fastactor import MailboxFull, SystemFull


def ignore(message, cell):
    """A processor that does nothing."""


def test_threads_default_to_four_a_core(runtime):
    """`threads` defaults to 4 x cores."""
    with runtime.ActorSystem() as system:
        assert system.name == "default"
        assert system.executor.threads == 4 * (os.cpu_count() or 1)


def test_defaults(runtime):
    """ActorSystem(name="default", ..., quota=0.005, capacity=10_000, overflow="raise", ...)."""
    with runtime.ActorSystem() as system:
        cell = system.cell("a", ignore)
        assert cell.quota == pytest.approx(0.005)
        assert cell.capacity == 10_000
        assert cell.overflow == "raise"
        assert cell.on_error == "dead-letter"
        assert cell.weight == 1.0
        assert system.ask_timeout == 30.0
        assert system.idle_timeout is None
        assert system.max_actors is None
        assert system.executor.policy == "fair"


def test_fair_false_is_fifo(runtime):
    """`fair=False` is `policy="fifo"`; a policy that is given counts more."""
    assert runtime.ActorSystem(threads=1, fair=False).executor.policy == "fifo"
    assert runtime.ActorSystem(threads=1, fair=True).executor.policy == "fair"
    assert runtime.ActorSystem(threads=1, fair=False, policy="total").executor.policy == "total"


def test_positional_arguments(runtime):
    """name, threads and fair may be given by position, the rest by name only."""
    with runtime.ActorSystem("mine", 3, False) as system:
        assert (system.name, system.executor.threads) == ("mine", 3)
    with pytest.raises(TypeError):
        runtime.ActorSystem("mine", 3, False, "fair")


def test_dispatch_creates_the_cell(system):
    """`dispatch(path, message, processor) -> bool`: create or get the cell, enqueue, schedule."""
    seen = []
    assert "a" not in system
    assert system.dispatch("a", 1, lambda message, cell: seen.append((message, cell.path))) is True
    assert "a" in system
    assert system.dispatch("a", 2) is True
    wait_until(lambda: seen == [(1, "a"), (2, "a")])


def test_the_first_processor_wins(system):
    """The first processor wins."""
    seen = []
    system.dispatch("a", 1, lambda message, cell: seen.append(("first", message)))
    system.dispatch("a", 2, lambda message, cell: seen.append(("second", message)))
    cell = system.cell("a", lambda message, cell: seen.append(("third", message)))
    cell.dispatch(3)
    wait_until(lambda: seen == [("first", 1), ("first", 2), ("first", 3)])


def test_one_cell_for_a_path_that_many_create(make_system):
    """Create or get: threads that create the same path at once share one cell."""
    system = make_system()
    for path in range(50):
        cells = []
        run_threads(*[lambda p=path, c=cells: c.append(system.cell(p, ignore))] * 3)
        assert cells == [system.get(path)] * 3
    assert len(system) == 50


@pytest.mark.parametrize(
    "path", ["text", b"bytes", 7, 7.5, None, True, ("a", 1), frozenset([1]), int, object()], ids=repr
)
def test_path_is_any_hashable(system, path):
    """`path` is any hashable."""
    seen = []
    system.dispatch(path, 1, lambda message, cell: seen.append(cell.path))
    wait_until(lambda: seen)
    assert seen[0] is path or seen == [path]
    assert path in system
    assert system.get(path).path == path
    assert system.stop(path) is True
    assert path not in system


def test_equal_paths_are_one_path(system):
    """Paths are compared as dict keys are."""
    assert system.cell(1, ignore) is system.cell(1.0) is system.cell(True)
    assert len(system) == 1


@pytest.mark.parametrize("path", [[], {}, set()], ids=repr)
def test_an_unhashable_path(system, path):
    """... and nothing else: TypeError."""
    for call in (
        lambda: system.dispatch(path, 1, ignore),
        lambda: system.dispatch_many(path, [1], ignore),
        lambda: system.cell(path, ignore),
        lambda: system.get(path),
        lambda: system.stop(path),
        lambda: system.suspend(path),
        lambda: system.resume(path),
        lambda: system.schedule(path),
        lambda: path in system,
    ):
        with pytest.raises(TypeError, match="unhashable"):
            call()
    assert len(system) == 0


def test_without_a_processor_the_cell_must_exist(system):
    """Without a processor the cell must exist (LookupError)."""
    for call in (
        lambda: system.dispatch("nobody", 1),
        lambda: system.dispatch_many("nobody", [1]),
        lambda: system.cell("nobody"),
    ):
        with pytest.raises(LookupError, match="nobody"):
            call()
    assert "nobody" not in system


def test_dispatch_many(system):
    """`dispatch_many(path, messages, processor=None) -> int` (how many were accepted)."""
    seen = []
    assert system.dispatch_many("a", [1, 2, 3], lambda message, cell: seen.append(message)) == 3
    assert system.dispatch_many("a", iter([4])) == 1
    assert system.dispatch_many("a", ()) == 0
    wait_until(lambda: seen == [1, 2, 3, 4])


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_dispatch_many_says_how_many_fitted(make_system, capacity):
    """Under "raise" MailboxFull carries that number."""
    system = make_system(capacity=capacity)
    cell = system.cell("a", ignore)
    cell.suspend()
    with pytest.raises(MailboxFull) as caught:
        system.dispatch_many("a", range(10))
    assert caught.value.accepted == capacity
    assert caught.value.capacity == capacity
    assert caught.value.path == "a"
    assert len(cell) == capacity
    cell.resume()
    wait_until(lambda: cell.processed == capacity)


def test_schedule(system):
    """`schedule(path_or_cell, has_message_hint=False) -> bool`: True when this call made the cell ready."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    assert system.schedule("unknown") is False
    assert system.schedule("a") is False
    assert system.schedule(cell) is False
    cell.suspend()
    cell.dispatch(1)
    assert system.schedule("a") is False
    cell.status.resume()  # the word's own resume does not schedule
    assert system.schedule(cell) is True
    wait_until(lambda: seen == [1])


def test_schedule_with_a_hint(system):
    """The hint makes a cell ready that has no message, which does no harm."""
    cell = system.cell("a", ignore)
    assert system.schedule("a", True) is True
    wait_until(lambda: cell.status.value == 0)
    assert system.schedule(cell, has_message_hint=True) is True
    wait_until(lambda: cell.status.value == 0)
    assert cell.processed == 0
    cell.dispatch(1)
    wait_until(lambda: cell.processed == 1)


def test_schedule_of_a_scheduled_cell(system):
    """A cell is never queued twice."""
    gate = block_worker(system)
    assert system.schedule("gate") is False
    assert system.schedule("gate", True) is False
    assert len(system.executor) == 0
    gate.open()


def test_suspend_and_resume_by_path(system):
    """`suspend(path) -> bool`, `resume(path) -> bool`."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    assert system.suspend("a") is True
    assert system.suspend("a") is True
    assert cell.status.suspend_count == 2
    system.dispatch("a", 1)
    assert system.resume("a") is True
    assert seen == []
    assert system.resume("a") is True
    wait_until(lambda: seen == [1])


def test_suspend_and_resume_of_an_unknown_path(system):
    """False for an unknown path."""
    assert system.suspend("unknown") is False
    assert system.resume("unknown") is False
    assert "unknown" not in system


def test_cell_creates_or_gets(system):
    """`cell(path, processor=None, *, weight=1.0, ...)` (create or get)."""
    cell = system.cell("a", ignore, weight=2.0, capacity=3)
    assert system.cell("a") is cell
    assert system.cell("a", ignore, weight=9.0, capacity=9) is cell
    assert (cell.weight, cell.capacity) == (2.0, 3)


def test_cell_takes_the_systems_options_and_its_own(make_system):
    """An option that is not given for the cell is the system's."""
    system = make_system(capacity=2, quota=0.5, overflow="drop-new", on_error="stop")
    cell = system.cell("a", ignore)
    assert (cell.capacity, cell.quota, cell.overflow, cell.on_error) == (2, 0.5, "drop-new", "stop")
    cell = system.cell("b", ignore, capacity=1, quota=0.25, overflow="block", on_error="suspend")
    assert (cell.capacity, cell.quota, cell.overflow, cell.on_error) == (1, 0.25, "block", "suspend")


def test_get(system):
    """`get(path)`: the cell, or None."""
    assert system.get("a") is None
    cell = system.cell("a", ignore)
    assert system.get("a") is cell


def test_stop_lets_the_current_message_end(system):
    """`stop(path)` (closed after the current message; what is queued becomes dead letters)."""
    gate = block_worker(system)
    cell = system.get("gate")
    system.dispatch_many("gate", ["second", "third"])
    assert system.stop("gate") is True
    assert cell.status.is_closed
    assert [(x.path, x.message, x.reason, x.error) for x in system.dead_letters] == [
        ("gate", "second", "stopped", None),
        ("gate", "third", "stopped", None),
    ]
    gate.open()
    wait_until(lambda: gate.seen == ["hold"])
    wait_until(lambda: cell.status.value == 1)
    assert len(cell) == 0
    assert len(system.dead_letters) == 2


def test_stop_frees_the_path(system):
    """The path is free for a new cell, at once."""
    gate = block_worker(system)
    old = system.get("gate")
    system.stop("gate")
    assert "gate" not in system
    seen = []
    system.dispatch("gate", 1, lambda message, cell: seen.append(message))
    assert system.get("gate") is not old
    wait_until(lambda: seen == [1])  # while the old one is still at work
    gate.open()
    wait_until(lambda: old.processed == 1)


def test_stop_of_an_unknown_path(system):
    """False for an unknown path, and for the second call."""
    assert system.stop("unknown") is False
    system.cell("a", ignore)
    assert system.stop("a") is True
    assert system.stop("a") is False


def test_dispatch_to_a_stopped_cell(system):
    """A message for a cell that was stopped is a dead letter, and the answer is False."""
    cell = system.cell("a", ignore)
    system.stop("a")
    assert cell.dispatch(1) is False
    assert cell.dispatch_many([2, 3]) == 0
    assert [(x.message, x.reason) for x in system.dead_letters] == [
        (1, "stopped"),
        (2, "stopped"),
        (3, "stopped"),
    ]
    assert "a" not in system


def test_stop_of_a_suspended_cell(system):
    """What waits in a suspended cell becomes dead letters too."""
    cell = system.cell("a", ignore)
    cell.suspend()
    cell.dispatch_many([1, 2])
    system.stop("a")
    assert [x.message for x in system.dead_letters] == [1, 2]
    assert len(cell) == 0
    assert cell.resume() is True
    assert cell.processed == 0


def test_a_processor_stops_its_own_cell(system):
    """The current message ends normally, the next ones are dead letters."""
    seen = []

    def processor(message, cell):
        seen.append(message)
        assert cell.stop() is True

    cell = system.cell("a", processor)
    with cell.hold():
        cell.dispatch_many([1, 2, 3])
    wait_until(lambda: cell.status.value == 1)
    assert seen == [1]
    assert cell.processed == 1
    assert [x.message for x in system.dead_letters] == [2, 3]


def test_a_processor_that_stops_its_cell_and_answers_false(system):
    """The message in hand, which nobody will try again, is a dead letter."""

    def processor(message, cell):
        cell.stop()
        return False

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: len(system.dead_letters) == 1)
    assert [(x.message, x.reason) for x in system.dead_letters] == [(1, "stopped")]
    wait_until(lambda: cell.status.value == 1)
    assert len(cell) == 0


def test_stop_races_with_producers(make_system):
    """Nothing is lost silently: accepted messages are handled or dead letters, each exactly once."""
    system = make_system(threads=2, capacity=3, overflow="drop-oldest")
    handled, accepted, refused = [], [], []
    producing = [True] * 3

    def produce(number):
        for n in range(2000):
            message = (number, n)
            answer = system.dispatch("a", message, lambda message, cell: handled.append(message))
            (accepted if answer else refused).append(message)
        producing[number] = False

    def stop():
        while any(producing):
            system.stop("a")

    letters = []
    system.dead_letters.append = letters.append  # the ring keeps only the last thousand
    run_threads(*[lambda n=n: produce(n) for n in range(3)], stop)
    system.shutdown()
    dead = [letter.message for letter in letters]
    assert len(accepted) + len(refused) == 6000
    assert len(handled) + len(dead) == 6000
    assert len(accepted) == len(handled) + len(dead) - len(refused)
    assert len(set(handled) | set(dead)) == 6000
    assert set(refused) <= set(dead)


def test_len_contains_and_iteration(system):
    """`len(system)`, `path in system`, iteration over cells."""
    assert len(system) == 0
    assert bool(system)
    cells = {system.cell(path, ignore) for path in "abc"}
    assert len(system) == 3
    assert set(system) == cells
    assert "b" in system
    for cell in system:  # which may change the system meanwhile
        cell.stop()
        system.cell(("new", cell.path), ignore)
    assert {cell.path for cell in system} == {("new", "a"), ("new", "b"), ("new", "c")}


def test_max_actors(make_system):
    """`max_actors`: SystemFull."""
    system = make_system(max_actors=2)
    system.cell("a", ignore)
    system.dispatch("b", 1, ignore)
    for call in (
        lambda: system.cell("c", ignore),
        lambda: system.dispatch("c", 1, ignore),
        lambda: system.dispatch_many("c", [1], ignore),
    ):
        with pytest.raises(SystemFull) as caught:
            call()
        assert caught.value.max_actors == 2
        assert caught.value.name == system.name
    assert system.dispatch("a", 1) is True
    system.stop("a")
    assert system.cell("c", ignore).path == "c"


def test_max_actors_under_contention(make_system):
    """However many create cells at once, there are never more."""
    system = make_system(max_actors=3)
    full = []

    def create(number):
        for n in range(10):
            try:
                system.cell((number, n), ignore)
            except SystemFull:
                full.append(1)

    run_threads(*[lambda n=n: create(n) for n in range(4)])
    assert len(system) == 3
    assert len(full) == 37


def test_two_systems_do_not_mix(make_system):
    """A path belongs to its system."""
    one, two = make_system(), make_system()
    one.cell("a", ignore)
    assert "a" not in two
    with pytest.raises(LookupError):
        two.dispatch("a", 1)


def test_processor_that_dispatches_to_others(make_system):
    """A processor may dispatch to, create, suspend and stop other cells."""
    system = make_system(threads=1)
    seen = []
    done = threading.Event()

    def second(message, cell):
        seen.append(message)
        done.set()

    def first(message, cell):
        other = cell.system.cell("second", second)
        other.suspend()
        other.dispatch(message * 2)
        other.resume()
        cell.system.cell("third", ignore)
        cell.system.stop("third")

    system.dispatch("first", 21, first)
    assert done.wait(DEADLINE)
    assert seen == [42]
    assert "third" not in system


def test_repr(runtime, system):
    """The system says how it is."""
    system.cell("a", ignore)
    assert repr(system) == f"<ActorSystem {system.name!r}: 1 cells, open>"
    system.shutdown()
    assert repr(system) == f"<ActorSystem {system.name!r}: 0 cells, closed>"


def test_a_path_whose_equality_uses_the_system(system):
    """A path's __eq__ is the user's code: it may call the system."""

    class Path:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            system.get("something else")
            return self is other

    one, two = Path(), Path()
    gate = Gate()
    gate.open()
    system.dispatch(one, 1, gate)
    system.dispatch(two, 2, gate)
    wait_until(lambda: sorted(gate.seen) == [1, 2])
    assert system.stop(one)
    assert two in system
