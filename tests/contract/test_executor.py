"""PriorityExecutor: which ready cell goes first, for how long, and how the workers end."""

import threading
import time

import pytest
from support import DEADLINE, Gate, block_worker, wait_until, worker_threads

from fastactor import PriorityExecutor


def loose_cell(runtime, system, processor, messages, path="loose", **options):
    """A cell with messages that no system has scheduled."""
    cell = runtime.ActorCell(system, path, processor, **options)
    cell.suspend()
    cell.dispatch_many(messages)
    cell.status.resume()
    return cell


def order_of(system, gate, paths, seen):
    """Dispatch to the paths while the only worker is blocked, let it go, and tell in which order they ran."""
    del seen[:]
    for path in paths:
        system.dispatch(path, 0.0)
    gate.open()
    wait_until(lambda: len(seen) == len(paths))
    return seen


def worker_time(seen):
    """A processor whose message is how long it takes."""

    def processor(message, cell):
        time.sleep(message)
        seen.append(cell.path)

    return processor


def test_properties(runtime):
    """`executor.threads`, `len(executor)` (ready cells)."""
    executor = runtime.PriorityExecutor(3, policy="total", name="mine")
    assert (executor.threads, executor.policy, executor.name) == (3, "total", "mine")
    assert len(executor) == 0
    assert bool(executor)
    assert (executor.busy, executor.processed) == (0, 0)
    assert runtime.PriorityExecutor(1).policy == "fair"
    assert executor.shutdown() is True


def test_len_is_the_number_of_ready_cells(make_system):
    """`len(executor)` (ready cells): those that wait, not the one that runs."""
    system = make_system(threads=1)
    gate = block_worker(system)
    assert len(system.executor) == 0
    for path in "abc":
        system.dispatch_many(path, [1, 2], lambda message, cell: None)
    assert len(system.executor) == 3
    assert system.executor.busy == 1
    gate.open()
    wait_until(lambda: len(system.executor) == 0 and system.executor.busy == 0)
    wait_until(lambda: system.executor.processed == 7)


def test_execute(runtime, make_system):
    """`executor.execute(cell)`: runs the cell here, now and from now on."""
    system = make_system()
    executor = runtime.PriorityExecutor(1, name="mine")
    threads = []
    cell = loose_cell(runtime, system, lambda m, c: threads.append(threading.current_thread().name), [1])
    assert executor.execute(cell) is True
    wait_until(lambda: cell.processed == 1 and cell.status.value == 0)
    cell.dispatch(2)
    wait_until(lambda: threads == ["mine-worker-1"] * 2)
    assert executor.shutdown() is True
    assert not worker_threads("mine")


def test_execute_only_what_is_open(runtime, make_system):
    """Only Open may become Scheduled: False for a closed, suspended or scheduled cell."""
    system = make_system()
    executor = system.executor
    gate = block_worker(system)
    assert executor.execute(system.get("gate")) is False
    cell = system.cell("a", print)
    cell.suspend()
    assert executor.execute(cell) is False
    cell.resume()
    cell.stop()
    assert executor.execute(cell) is False
    gate.open()


def test_execute_after_the_shutdown(runtime, make_system):
    """An executor that has been shut down takes nothing, and leaves the cell Open."""
    system = make_system()
    executor = runtime.PriorityExecutor(1)
    assert executor.shutdown() is True
    cell = loose_cell(runtime, system, print, [1])
    assert executor.execute(cell) is False
    assert cell.status.value == 0
    assert len(cell) == 1


def test_shutdown_finishes_what_is_ready(runtime, make_system):
    """`executor.shutdown(wait=True, timeout=None)`: the workers finish what is ready, then end."""
    system = make_system()
    executor = runtime.PriorityExecutor(1, name="mine")
    gate, seen = Gate(), []
    executor.execute(loose_cell(runtime, system, gate, ["hold"]))
    assert gate.entered.wait(DEADLINE)
    executor.execute(loose_cell(runtime, system, lambda m, c: seen.append(m), [1, 2]))
    assert executor.shutdown(wait=False) is False
    assert executor.shutdown(timeout=0.01) is False
    gate.open()
    assert executor.shutdown() is True
    assert seen == [1, 2]
    assert not worker_threads("mine")


def test_shutdown_from_its_own_worker(runtime, make_system):
    """A worker cannot wait for itself: False, and no deadlock."""
    system = make_system()
    executor = runtime.PriorityExecutor(2, name="mine")
    answers = []
    executor.execute(loose_cell(runtime, system, lambda m, c: answers.append(executor.shutdown()), [1]))
    wait_until(lambda: not worker_threads("mine"))
    assert answers == [False]


def test_quota_lets_the_next_cell_run(make_system):
    """Run it for at most `quota`: no cell handles more in a row than fits."""
    system = make_system(threads=1, policy="fifo", quota=0.01)
    gate = block_worker(system)
    seen = []

    def processor(message, cell):
        time.sleep(0.002)
        seen.append(cell.path)

    for path in "ab":
        system.dispatch_many(path, range(30), processor)
    gate.open()
    wait_until(lambda: len(seen) == 60)
    order = "".join(seen)
    both = order[: min(order.rindex("a"), order.rindex("b")) + 1]  # then one is alone, and goes on and on
    runs, runs_of_both = (
        [len(r) for r in o.replace("ab", "a b").replace("ba", "b a").split()] for o in (order, both)
    )
    assert max(runs_of_both) <= 5
    assert len(runs) >= 12


def test_at_least_one_message(make_system):
    """... at least one message: with the smallest quota the cells take turns message by message."""
    system = make_system(threads=1, policy="fifo", quota=1e-6)
    gate = block_worker(system)
    seen = []

    def processor(message, cell):
        time.sleep(0.0001)
        seen.append(cell.path)

    for path in "ab":
        system.dispatch_many(path, range(20), processor)
    gate.open()
    wait_until(lambda: len(seen) == 40)
    assert "".join(seen) == "ab" * 20


def test_quota_of_a_cell(make_system):
    """A cell may have a quota of its own."""
    system = make_system(threads=1, policy="fifo", quota=1e-6)
    gate = block_worker(system)
    seen = []

    def processor(message, cell):
        time.sleep(0.0001)
        seen.append(cell.path)

    system.cell("a", processor, quota=60.0)
    for path in "ab":
        system.dispatch_many(path, range(20), processor)
    gate.open()
    wait_until(lambda: len(seen) == 40)
    assert "".join(seen) == "a" * 20 + "b" * 20


def test_fifo(make_system):
    """`"fifo"`: order of arrival (QMQ's `fair=False`), whoever used how much."""
    system = make_system(threads=1, fair=False)
    seen = []
    for path, seconds in (("a", 0.02), ("b", 0.01), ("c", 0.0)):
        system.dispatch(path, seconds, worker_time(seen))
    wait_until(lambda: len(seen) == 3)
    assert order_of(system, block_worker(system), "bca", seen) == ["b", "c", "a"]


def test_total(make_system):
    """`"total"`: least accumulated time first."""
    system = make_system(threads=1, policy="total")
    seen = []
    for path, seconds in (("a", 0.15), ("b", 0.05), ("c", 0.0)):
        system.dispatch(path, seconds, worker_time(seen))
    wait_until(lambda: len(seen) == 3)
    assert order_of(system, block_worker(system), "abc", seen) == ["c", "b", "a"]


def test_total_then_earliest_submitted(make_system):
    """... then earliest submitted (QMQ as the seeds describe it)."""
    system = make_system(threads=1, policy="total")
    seen = []
    for path in "abcd":
        system.cell(path, worker_time(seen))  # none has run: all have used nothing
    assert order_of(system, block_worker(system), "cadb", seen) == ["c", "a", "d", "b"]


def test_last_run(make_system):
    """`"last-run"`: least recently run first (QMQ since 2023)."""
    system = make_system(threads=1, policy="last-run")
    seen = []
    for path in "bca":
        system.dispatch(path, 0.0, worker_time(seen))
        wait_until(lambda p=path: system.get(p).processed == 1)
    gate = block_worker(system)
    system.cell("new", worker_time(seen))
    assert order_of(system, gate, ["a", "b", "c", "new"], seen) == ["new", "b", "c", "a"]


def test_fair_serves_those_that_used_less_first(make_system):
    """`"fair"`: after using u: F = S + u/w; still runnable: S = F; pick the smallest (S, sequence)."""
    system = make_system(threads=1)
    seen = []
    gate = block_worker(system)
    for path, seconds in (("a", 0.2), ("b", 0.1), ("c", 0.01)):
        system.dispatch_many(path, [seconds, 0.0], worker_time(seen))
    gate.open()
    wait_until(lambda: len(seen) == 6)
    assert "".join(seen) == "abccba"


def test_fair_divides_by_the_weight(make_system):
    """F = S + u/w: the one with the larger weight has used less."""
    system = make_system(threads=1)
    seen = []
    gate = block_worker(system)
    for path, weight in (("a", 0.1), ("b", 1.0), ("c", 10.0)):
        system.cell(path, worker_time(seen), weight=weight)
    for path in "abc":
        system.dispatch_many(path, [0.03, 0.0])
    gate.open()
    wait_until(lambda: len(seen) == 6)
    assert "".join(seen) == "ccbbaa"


def test_new_cells_cannot_overtake(make_system):
    """Wake of a new cell: S = V + quota/w; new cells cannot overtake those already waiting."""
    system = make_system(threads=1)
    seen = []
    for path in "ab":
        system.dispatch(path, 0.0, worker_time(seen))
    wait_until(lambda: len(seen) == 2)
    gate = block_worker(system)
    for path in "mn":
        system.cell(path, worker_time(seen))
    assert order_of(system, gate, "manb", seen) == ["a", "b", "m", "n"]


def test_the_debit_of_a_new_cell_is_by_weight(make_system):
    """S = V + quota/w: of two new cells the one with the larger weight goes first."""
    system = make_system(threads=1)
    seen = []
    gate = block_worker(system)
    for path, weight in (("light", 1.0), ("heavy", 4.0)):
        system.cell(path, worker_time(seen), weight=weight)
    assert order_of(system, gate, ["light", "heavy"], seen) == ["heavy", "light"]


def test_idle_time_earns_no_credit(make_system):
    """Wake of a known cell: S = max(V, F): who has been idle for longer does not go before who came first."""
    system = make_system(threads=1)
    seen = []
    for path in "ab":
        system.dispatch(path, 0.02, worker_time(seen))
        wait_until(lambda p=path: system.get(p).processed == 1)
    assert order_of(system, block_worker(system), "ba", seen) == ["b", "a"]


def test_debt_is_kept(make_system):
    """Debt is kept: a cell that used much and was idle for a moment waits until the others had as much."""
    system = make_system(threads=1, capacity=100_000)
    at = []

    def debtor(message, cell):
        at.append(other.total)
        if len(at) == 1:
            time.sleep(0.2)
            cell.suspend()
            return False

    other = system.cell("other", lambda message, cell: time.sleep(0.001))
    cell = system.cell("debtor", debtor)
    gate = block_worker(system)
    cell.dispatch("long")
    other.dispatch_many(range(1000))
    gate.open()
    wait_until(lambda: cell.status.value == 4)
    cell.resume()
    wait_until(lambda: len(at) == 2)
    assert at[1] - at[0] > 0.15
    system.stop("other")


def test_the_executor_is_public():
    """The class can be imported from the package."""
    assert PriorityExecutor.__name__ == "PriorityExecutor"


@pytest.mark.parametrize("policy", ["fair", "total", "last-run", "fifo"])
def test_every_policy_handles_everything(make_system, policy):
    """Whatever the order: nothing is lost, nothing is handled twice."""
    system = make_system(threads=4, policy=policy, quota=1e-6)
    seen = []
    for n in range(2000):
        system.dispatch(n % 7, n, lambda message, cell: seen.append(message))
    assert system.shutdown()
    assert sorted(seen) == list(range(2000))


def test_repr(runtime):
    """The executor says what it is."""
    executor = runtime.PriorityExecutor(2, "fifo", name="mine")
    assert repr(executor) == "<PriorityExecutor 'mine': 2 threads, fifo, 0 ready>"
