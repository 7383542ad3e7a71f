"""StatusWord: one 32-bit atomic integer of Closed, Scheduled and a count of suspensions."""

import pytest
from support import run_threads


@pytest.fixture
def word(runtime):
    return runtime.StatusWord()


def test_starts_open(word):
    """`0` Open."""
    assert word.value == 0
    assert not word.is_closed
    assert not word.is_scheduled
    assert word.suspend_count == 0
    assert word.should_process()


def test_closed_is_bit_0_and_final(word):
    """Bit 0 (1) Closed, final."""
    word.close()
    assert word.value == 1
    word.close()
    word.set_idle()
    word.resume()
    assert word.value == 1
    assert word.is_closed
    assert not word.should_process()


def test_scheduled_is_bit_1(word):
    """Bit 1 (2) Scheduled."""
    assert word.try_schedule() is True
    assert word.value == 2
    assert word.is_scheduled
    assert word.should_process()


def test_each_suspension_is_a_unit_of_4(word):
    """Every unit of 4 one suspension."""
    for n in (1, 2, 3):
        word.suspend()
        assert word.value == 4 * n
        assert word.suspend_count == n
        assert not word.should_process()


def test_suspend_needs_as_many_resumes(word):
    """`suspend` is re-entrant and needs as many `resume`s."""
    word.suspend()
    word.suspend()
    assert word.resume() is False
    assert not word.should_process()
    assert word.resume() is True
    assert word.should_process()


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_resume_too_many_stays_at_zero(word, scheduled):
    """`resume() -> bool` (True when no suspension is left; a resume too many stays at zero)."""
    if scheduled:
        word.try_schedule()
    before = word.value
    assert word.resume() is True
    assert word.resume() is True
    assert word.value == before
    word.suspend()
    assert word.suspend_count == 1


@pytest.mark.parametrize("bar", ["try_schedule", "close", "suspend"])
def test_only_open_becomes_scheduled(word, bar):
    """Only Open (no Scheduled, no Closed, no suspension) may become Scheduled."""
    getattr(word, bar)()
    before = word.value
    assert word.try_schedule() is False
    assert word.value == before


def test_set_idle_clears_only_scheduled(word):
    """`set_idle()` leaves Closed and the suspensions as they are."""
    word.try_schedule()
    word.suspend()
    word.close()
    assert word.value == 7
    word.set_idle()
    assert word.value == 5


def test_set_idle_allows_the_next_schedule(word):
    """Scheduled -> Open -> Scheduled, any number of times."""
    for _ in range(3):
        assert word.try_schedule()
        word.set_idle()
    assert word.value == 0


def test_suspension_of_a_scheduled_word(word):
    """A suspension neither takes Scheduled away nor gives it back."""
    word.try_schedule()
    word.suspend()
    assert word.value == 6
    assert word.resume() is True
    assert word.value == 2


def test_one_caller_alone_makes_the_transition(word):
    """Only the caller that made that transition may push the cell: between it and `set_idle` it is alone."""
    inside = []
    most = []

    def compete():
        for _ in range(2000):
            if word.try_schedule():
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                word.set_idle()

    run_threads(compete, compete, compete, compete)
    assert set(most) == {1}
    assert word.value == 0


def test_a_contended_schedule_has_one_winner(runtime):
    """Many callers at once: one True."""
    for _ in range(50):
        word = runtime.StatusWord()
        won = []
        run_threads(*[lambda w=word, won=won: won.append(w.try_schedule())] * 4)
        assert sorted(won) == [False, False, False, True]


def test_no_suspension_is_lost_between_threads(word):
    """One atomic integer: concurrent suspensions and resumes all count."""

    def pair():
        for _ in range(2000):
            word.suspend()
            word.resume()

    def only_suspend():
        for _ in range(500):
            word.suspend()

    run_threads(pair, pair, only_suspend, only_suspend)
    assert word.suspend_count == 1000
    assert word.value == 4000


def test_repr(word):
    """The word says what it is."""
    word.try_schedule()
    word.suspend()
    assert repr(word) == "<StatusWord 6: closed=False, scheduled=True, suspensions=1>"
