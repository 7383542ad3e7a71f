"""Dead letters: every message that was not handled, with the reason."""

import pytest
from support import wait_until

from fastactor import DeadLetter, SystemClosed


def dropping(system, path="a", capacity=1):
    """A suspended cell that drops whatever comes after its first message."""
    cell = system.cell(path, lambda message, cell: None, capacity=capacity, overflow="drop-new")
    cell.suspend()
    cell.dispatch("kept")
    return cell


def test_a_ring_of_dead_letters(system):
    """`system.dead_letters` (iterable, sized, `clear()`) of `DeadLetter(path, message, reason, error)`."""
    cell = dropping(system)
    assert len(system.dead_letters) == 0
    assert list(system.dead_letters) == []
    cell.dispatch(1)
    cell.dispatch(2)
    assert len(system.dead_letters) == 2
    first, second = system.dead_letters
    assert isinstance(first, DeadLetter)
    assert (first.path, first.message, first.reason, first.error) == ("a", 1, "overflow", None)
    assert second.message == 2
    system.dead_letters.clear()
    assert len(system.dead_letters) == 0
    assert system.dead_letters.total == 2


def test_the_ring_is_bounded(system):
    """A bounded ring (1000): the oldest fall out, and are still counted."""
    cell = dropping(system)
    for n in range(1010):
        cell.dispatch(n)
    assert len(system.dead_letters) == 1000
    assert [x.message for x in system.dead_letters] == list(range(10, 1010))
    assert system.dead_letters.total == 1010
    assert system.stats().dropped == 1010


def test_iteration_while_letters_arrive(system):
    """Iteration sees the ring as it was when it began."""
    cell = dropping(system)
    cell.dispatch(1)
    seen = []
    for letter in system.dead_letters:
        cell.dispatch("during")
        seen.append(letter.message)
    assert seen == [1]


def test_replay(system):
    """... with `replay()`: the message is dispatched again to its path."""
    fail = [True]
    seen = []

    def processor(message, cell):
        if fail:
            raise ValueError
        seen.append(message)

    cell = system.cell("a", processor)
    cell.dispatch(1)
    wait_until(lambda: len(system.dead_letters) == 1)
    fail.clear()
    (letter,) = system.dead_letters
    assert letter.replay() is True
    wait_until(lambda: seen == [1])


def test_replay_to_a_path_that_is_gone(system):
    """The cell is made anew, with the processor that the message was meant for."""
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))
    cell.suspend()
    cell.dispatch(1)
    system.stop("a")
    (letter,) = system.dead_letters
    assert letter.replay() is True
    wait_until(lambda: seen == [1])
    assert "a" in system


def test_replay_after_the_shutdown(system):
    """A system that has been shut down takes nothing: SystemClosed."""
    cell = dropping(system)
    cell.dispatch(1)
    system.shutdown(drain=False)
    letter = next(iter(system.dead_letters))
    with pytest.raises(SystemClosed):
        letter.replay()


def test_replay_of_a_letter_without_a_system():
    """A letter made by hand belongs to no system."""
    with pytest.raises(LookupError, match="no system"):
        DeadLetter("a", 1, "overflow").replay()


def test_letters_compare_by_what_they_say(system):
    """A dead letter is a plain record."""
    cell = dropping(system)
    cell.dispatch(1)
    (letter,) = system.dead_letters
    assert letter == DeadLetter("a", 1, "overflow")
    assert repr(letter) == "DeadLetter(path='a', message=1, reason='overflow', error=None)"


def test_reasons(system):
    """The reason is one of "overflow", "error", "stopped", "shutdown"."""

    def fail(message, cell):
        raise ValueError

    dropping(system, "overflow").dispatch("x")
    system.dispatch("error", "x", fail)
    wait_until(lambda: len(system.dead_letters) == 2)
    dropping(system, "stopped")
    system.stop("stopped")
    dropping(system, "shutdown")
    system.shutdown(drain=False)
    reasons = {x.path: x.reason for x in system.dead_letters if x.path != "overflow"}
    assert reasons == {"error": "error", "stopped": "stopped", "shutdown": "shutdown"}
    assert [x.reason for x in system.dead_letters if x.path == "overflow"] == ["overflow", "shutdown"]


def test_a_flood_does_not_flood_the_log(system, caplog):
    """The first ten are logged, then the log is quiet."""
    cell = dropping(system)
    for n in range(50):
        cell.dispatch(n)
    assert len([r for r in caplog.records if "dead letter" in r.getMessage()]) == 10


def test_repr(system):
    """The ring says how much it holds."""
    dropping(system).dispatch(1)
    assert repr(system.dead_letters) == "<DeadLetters 1 kept, 1 in all>"
