"""Shutdown: drain or not, from where it may be called, and what it leaves."""

import threading
import time

import pytest
from support import DEADLINE, Gate, block_worker, run_threads, wait_until, worker_threads

from fastactor import ShutdownReport, SystemClosed


def ignore(message, cell):
    """A processor that does nothing."""


def test_drain_handles_what_is_queued(make_system):
    """`shutdown(wait=True, drain=True, timeout=None)`: drain handles what is queued."""
    system = make_system(threads=2)
    seen = []
    gate = block_worker(system)
    for path in "abc":
        system.dispatch_many(path, range(100), lambda message, cell: seen.append(message))
    gate.open()
    report = system.shutdown()
    assert len(seen) == 300
    assert isinstance(report, ShutdownReport)
    assert bool(report) is True
    assert (report.clean, report.dead_letters, report.stuck) == (True, 0, ())
    assert not worker_threads(system.name)


def test_without_drain_what_is_queued_is_dead_letters(make_system):
    """Otherwise what is left goes to the dead letters; the current message ends."""
    system = make_system(threads=1)
    gate = block_worker(system)
    system.dispatch_many("gate", [1, 2])
    system.dispatch_many("a", [3, 4], ignore)
    stopper = threading.Thread(target=system.shutdown, kwargs={"drain": False})
    stopper.start()
    wait_until(lambda: len(system.dead_letters) == 4)
    gate.open()
    stopper.join(DEADLINE)
    assert gate.seen == ["hold"]
    assert sorted(x.message for x in system.dead_letters) == [1, 2, 3, 4]
    assert {x.reason for x in system.dead_letters} == {"shutdown"}
    assert system.shutdown().dead_letters == 4


def test_at_the_timeout_what_is_left_is_dead_letters(make_system):
    """... or at the timeout, what is left goes to the dead letters."""
    system = make_system(threads=1)
    gate = block_worker(system)
    system.dispatch_many("a", [1, 2], ignore)
    report = system.shutdown(timeout=0.01)
    assert bool(report) is False
    assert report.stuck == ("gate",)
    assert report.dead_letters == 2
    assert [(x.path, x.message, x.reason) for x in system.dead_letters] == [
        ("a", 1, "shutdown"),
        ("a", 2, "shutdown"),
    ]
    gate.open()
    assert system.shutdown(timeout=DEADLINE)


def test_a_timeout_of_zero(make_system):
    """A timeout of zero does not wait for what is queued."""
    system = make_system(threads=1)
    gate = block_worker(system)
    system.dispatch("a", 1, ignore)
    assert not system.shutdown(timeout=0)
    assert [x.message for x in system.dead_letters] == [1]
    gate.open()
    assert system.shutdown()


def test_wait_false_returns_at_once(make_system):
    """wait=False: what is queued is drained in the background."""
    system = make_system(threads=1)
    gate = block_worker(system)
    seen = []
    system.dispatch("a", 1, lambda message, cell: seen.append(message))
    report = system.shutdown(wait=False)
    assert not report
    assert seen == []
    with pytest.raises(SystemClosed):
        system.dispatch("a", 2)
    gate.open()
    wait_until(lambda: seen == [1])
    wait_until(lambda: not worker_threads(system.name))
    assert system.shutdown()


def test_wait_false_with_a_timeout(make_system):
    """The timeout counts although nobody waits for it."""
    system = make_system(threads=2)
    gate = block_worker(system)
    system.dispatch("gate", "late")
    system.shutdown(wait=False, timeout=0.01)
    wait_until(lambda: len(system.dead_letters) == 1)
    gate.open()
    assert system.shutdown()
    assert gate.seen == ["hold"]


def test_a_suspended_cell_does_not_hold_up_the_drain(make_system):
    """What waits in a suspended cell cannot be drained: dead letters."""
    system = make_system()
    cell = system.cell("a", ignore)
    cell.suspend()
    cell.dispatch_many([1, 2])
    report = system.shutdown()
    assert report
    assert report.dead_letters == 2
    assert [(x.message, x.reason) for x in system.dead_letters] == [(1, "shutdown"), (2, "shutdown")]


def test_a_cell_resumed_by_a_drained_message(make_system):
    """A cell that another one resumes during the drain is drained as well."""
    system = make_system(threads=1)
    seen = []
    gate = block_worker(system)
    cell = system.cell("a", lambda message, cell: seen.append(message))
    cell.suspend()
    cell.dispatch(1)
    system.dispatch("resumer", 1, lambda message, _: cell.resume())
    stopper = threading.Thread(target=system.shutdown)
    stopper.start()
    gate.open()
    stopper.join(DEADLINE)
    assert seen == [1]
    assert len(system.dead_letters) == 0


def test_context_manager(runtime):
    """`with ActorSystem(...) as system:` drains and shuts down."""
    seen = []
    with runtime.ActorSystem("with", threads=2) as system:
        system.dispatch_many("a", range(100), lambda message, cell: seen.append(message))
    assert seen == list(range(100))
    assert not worker_threads("with")
    with pytest.raises(SystemClosed):
        system.dispatch("a", 1, ignore)


def test_context_manager_with_an_error(runtime):
    """The error of the block gets through, and the system is shut down."""
    seen = []
    with pytest.raises(ZeroDivisionError), runtime.ActorSystem("with", threads=1) as system:
        system.dispatch("a", 1, lambda message, cell: seen.append(message))
        raise ZeroDivisionError
    assert seen == [1]
    assert not worker_threads("with")


def test_calls_on_a_closed_system(make_system):
    """Calls on a system that has been shut down raise SystemClosed."""
    system = make_system()
    cell = system.cell("a", ignore)
    system.shutdown()
    for call in (
        lambda: system.dispatch("a", 1, ignore),
        lambda: system.dispatch("a", 1),
        lambda: system.dispatch_many("a", [1], ignore),
        lambda: system.cell("a", ignore),
        lambda: system.stop("a"),
        lambda: system.suspend("a"),
        lambda: system.resume("a"),
        lambda: system.schedule("a"),
        lambda: cell.dispatch(1),
        lambda: cell.dispatch_many([1]),
    ):
        with pytest.raises(SystemClosed, match=system.name):
            call()
    assert len(system) == 0
    assert len(system.dead_letters) == 0


def test_shutdown_of_an_unused_system(make_system):
    """A system that never had work ends without ever having had a thread."""
    system = make_system()
    assert not worker_threads(system.name)
    assert system.shutdown()
    assert system.shutdown(drain=False)


def test_shutdown_twice_and_at_once(make_system):
    """It may be called again, and by several threads at once."""
    system = make_system()
    seen = []
    system.dispatch_many("a", range(100), lambda message, cell: seen.append(message))
    reports = []
    run_threads(*[lambda: reports.append(system.shutdown())] * 3)
    assert [bool(report) for report in reports] == [True] * 3
    assert len(seen) == 100
    assert system.shutdown()


def test_a_drain_may_be_cut_short(make_system):
    """A second call with drain=False ends a drain that takes too long."""
    system = make_system(threads=1)
    refused = []

    def refuse(message, cell):
        refused.append(message)
        return False

    system.dispatch("a", 1, refuse)
    drain = threading.Thread(target=system.shutdown)
    drain.start()
    wait_until(lambda: len(refused) >= 5)
    assert drain.is_alive()
    assert system.shutdown(drain=False, timeout=DEADLINE)
    drain.join(DEADLINE)
    assert [(x.message, x.reason) for x in system.dead_letters] == [(1, "shutdown")]


def test_processors_may_dispatch_during_the_drain(make_system):
    """While the system drains its own processors may pass work on; nobody else may."""
    system = make_system(threads=2)
    seen = []
    gate = block_worker(system)

    def pass_on(message, cell):
        seen.append(message)
        if message:
            cell.system.dispatch(("next", message), message - 1, pass_on)

    system.dispatch("first", 5, pass_on)
    stopper = threading.Thread(target=system.shutdown)
    stopper.start()
    wait_until(lambda: repr(system).endswith(("draining>", "closed>")))
    with pytest.raises(SystemClosed):
        system.dispatch("outside", 1, ignore)
    gate.open()
    stopper.join(DEADLINE)
    assert seen == [5, 4, 3, 2, 1, 0]
    assert len(system.dead_letters) == 0


@pytest.mark.parametrize("drain", [True, False])
def test_shutdown_from_a_processor(make_system, drain):
    """Called from a processor it does not wait, and the system ends when the processor has returned."""
    system = make_system(threads=2)
    reports = []

    def processor(message, cell):
        reports.append(cell.system.shutdown(drain=drain))

    cell = system.cell("a", processor)
    with cell.hold():
        cell.dispatch_many([1, 2])
    wait_until(lambda: not worker_threads(system.name))
    assert [bool(report) for report in reports] == [False] * (2 if drain else 1)
    assert [x.message for x in system.dead_letters] == ([] if drain else [2])
    assert cell.processed == len(reports)
    with pytest.raises(SystemClosed):
        system.dispatch("a", 3)
    assert system.shutdown()


def test_shutdown_from_another_systems_processor(make_system):
    """A processor may shut another system down, and waits for it."""
    one, two = make_system(), make_system()
    seen, reports = [], []
    two.dispatch_many("a", range(50), lambda message, cell: seen.append(message))
    one.dispatch("a", 1, lambda message, cell: reports.append(two.shutdown()))
    wait_until(lambda: reports)
    assert bool(reports[0]) is True
    assert len(seen) == 50


def test_a_stuck_processor_is_reported(make_system):
    """A processor that never returns is reported, not awaited, once the timeout is over."""
    system = make_system(threads=2)
    one, two = block_worker(system, "one"), block_worker(system, "two")
    report = system.shutdown(timeout=0.01)
    assert not report
    assert sorted(report.stuck) == ["one", "two"]
    one.open()
    two.open()
    assert system.shutdown(timeout=DEADLINE)


def test_shutdown_races_with_producers(make_system):
    """What was accepted before the end is handled or a dead letter, each exactly once."""
    for drain in (True, False) * 3:
        system = make_system(threads=2, capacity=100_000)
        handled, accepted = [], []
        started = threading.Barrier(4)
        dead = []
        system.dead_letters.append = lambda letter, dead=dead: dead.append(letter.message)

        def produce(number, system=system, handled=handled, accepted=accepted, started=started):
            started.wait(DEADLINE)
            for n in range(100_000):
                try:
                    system.dispatch(n % 3, (number, n), lambda message, cell: handled.append(message))
                except SystemClosed:
                    return
                accepted.append((number, n))

        def stop(system=system, started=started, drain=drain):
            started.wait(DEADLINE)
            time.sleep(0.01)
            assert system.shutdown(drain=drain, timeout=DEADLINE)

        run_threads(*[lambda n=n, p=produce: p(n) for n in range(3)], stop)
        assert len(handled) + len(dead) == len(accepted)
        assert {*handled, *dead} == {*accepted}
        assert not (drain and dead)


def test_shutdown_races_with_the_first_message(make_system):
    """A shutdown that meets workers which are just being started waits for them like for any others."""
    for _ in range(10):
        system = make_system(threads=64)
        seen = []

        def stop(system=system):
            wait_until(lambda: worker_threads(system.name))
            assert system.shutdown(timeout=DEADLINE)

        run_threads(
            lambda s=system, r=seen: s.dispatch("a", 1, lambda message, cell: r.append(message)), stop
        )
        assert seen == [1]
        wait_until(lambda s=system: not worker_threads(s.name))


def test_messages_of_a_retry_are_drained(make_system):
    """A cell that waits for its next try belongs to what is queued."""
    system = make_system(threads=1)
    tries = []

    def processor(message, cell):
        tries.append(message)
        return len(tries) > 6

    system.dispatch("a", 1, processor)
    assert system.shutdown()
    assert len(tries) == 7
    assert len(system.dead_letters) == 0


def test_a_message_whose_del_dispatches(make_system):
    """A message that dispatches when it dies is ordinary: handled and stopped cells let it."""
    system = make_system(threads=1)
    seen = []

    class Last:
        def __init__(self, number):
            self.number = number

        def __del__(self):
            system.dispatch("others", self.number, lambda message, cell: seen.append(message))

    system.dispatch("a", Last(1), ignore)
    wait_until(lambda: seen == [1])
    cell = system.cell("b", ignore)
    cell.suspend()
    cell.dispatch(Last(2))
    cell.stop()
    system.dead_letters.clear()
    wait_until(lambda: seen == [1, 2])


def test_workers_end_before_shutdown_returns(make_system):
    """True means that every worker has ended."""
    for threads in (1, 2, 3):
        system = make_system(threads=threads)
        gate = Gate()
        gate.open()
        system.dispatch("a", 1, gate)
        assert system.shutdown()
        assert not worker_threads(system.name)
        assert gate.seen == [1]
