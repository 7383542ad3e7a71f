"""Interpreter exit, `os.fork`, dropped references and Ctrl-C are ordinary events: no hang, no crash,
no lost error.

Each script runs in a process of its own, which must end well and leave stderr empty.
"""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from support import DEADLINE, environment, script_output, wait_until

PRELUDE = """
import os, sys, threading, time, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
import fastactor

def wait_until(predicate):
    end = time.monotonic() + 30
    while not predicate():
        if time.monotonic() > end:
            os.write(1, b"timed out")
            os._exit(3)
        time.sleep(0.001)

def ignore(message, cell):
    pass

def say(text):
    os.write(1, f"{text}\\n".encode())
"""


@pytest.fixture
def run(runtime):
    """Runs a script and returns its lines."""

    def run(source, **how):
        return script_output(runtime.name, PRELUDE + textwrap.dedent(source), **how).splitlines()

    return run


def test_import_and_quit(run):
    """A program that only imports it."""
    assert run("") == []


def test_exit_with_idle_workers(run):
    """Interpreter exit with idle workers."""
    source = """
    system = fastactor.ActorSystem(threads=8)
    system.dispatch("a", 1, ignore)
    wait_until(lambda: system.stats().processed == 1)
    say("end")
    """
    assert run(source) == ["end"]


def test_exit_with_queued_work(run):
    """Interpreter exit with queued work and without shutdown: it is handled."""
    source = """
    handled = []
    system = fastactor.ActorSystem(threads=2)

    def processor(message, cell):
        time.sleep(0.001)
        handled.append(message)
        if len(handled) == 200:
            say("all handled")

    for n in range(200):
        system.dispatch(n % 3, n, processor)
    say("end of main")
    """
    assert run(source) == ["end of main", "all handled"]


def test_exit_with_a_blocked_processor(run):
    """Interpreter exit with a processor that blocks for ever: no hang."""
    source = """
    system = fastactor.ActorSystem(threads=2)
    entered = threading.Event()

    def block(message, cell):
        entered.set()
        threading.Event().wait()

    system.dispatch("a", 1, block)
    entered.wait()
    say("end")
    """
    assert run(source) == ["end"]


def test_exit_with_a_spinning_processor(run):
    """... or one that computes for ever."""
    source = """
    system = fastactor.ActorSystem(threads=1)
    entered = threading.Event()

    def spin(message, cell):
        entered.set()
        while True:
            pass

    system.dispatch("a", 1, spin)
    entered.wait()
    say("end")
    """
    assert run(source) == ["end"]


def test_exit_with_a_processor_that_never_accepts(run):
    """... or one that answers False for ever, or waits for its retry, or is suspended."""
    source = """
    system = fastactor.ActorSystem(threads=2)
    system.dispatch("a", 1, lambda message, cell: False)

    def fail(message, cell):
        raise ValueError

    system.cell("b", fail, on_error=fastactor.Retry(9, 3600.0, 3600.0)).dispatch(1)
    system.cell("c", ignore).suspend()
    system.dispatch("c", 1)
    say("end")
    """
    assert run(source) == ["end"]


def test_exit_from_inside_many_systems(run):
    """Twenty systems that nobody shut down."""
    source = """
    systems = [fastactor.ActorSystem(str(n), threads=2) for n in range(20)]
    for system in systems:
        system.dispatch("a", 1, lambda message, cell: time.sleep(0.05))
    say("end")
    """
    assert run(source) == ["end"]


def test_sys_exit_in_a_processor(run):
    """sys.exit in a processor ends neither the worker nor the program, and is no lost error."""
    source = """
    with fastactor.ActorSystem(threads=1) as system:
        system.dispatch("a", 1, lambda message, cell: sys.exit(7))
        system.dispatch("b", 1, lambda message, cell: say("next"))
    (letter,) = system.dead_letters
    say(repr(letter.error))
    """
    assert run(source) == ["next", "SystemExit(7)"]


def test_keyboard_interrupt_in_a_processor(run):
    """KeyboardInterrupt inside a processor: the worker survives, the dead letter has the error."""
    source = """
    def interrupt(message, cell):
        raise KeyboardInterrupt

    with fastactor.ActorSystem(threads=1) as system:
        system.dispatch("a", 1, interrupt)
        system.dispatch("b", 1, lambda message, cell: say("next"))
    (letter,) = system.dead_letters
    say(repr(letter.error))
    """
    assert run(source) == ["next", "KeyboardInterrupt()"]


def test_a_dropped_system(run):
    """Dropped references: a system that goes out of scope with its work done."""
    source = """
    import gc
    def use():
        system = fastactor.ActorSystem(threads=2)
        system.dispatch("a", system, ignore)
        wait_until(lambda: system.stats().processed == 1 and system.stats().busy == 0)
    for _ in range(20):
        use()
    gc.collect()
    wait_until(lambda: threading.active_count() == 1)
    say("end")
    """
    assert run(source, options=("-W", "error")) == ["end"]


def test_a_message_whose_del_dispatches_to_its_own_cell(run):
    """A message that dispatches to its own cell when it dies: no deadlock."""
    source = """
    seen = []
    system = fastactor.ActorSystem(threads=2)

    class Last:
        def __del__(self):
            system.dispatch("a", "from the dead")

    def processor(message, cell):
        if message == "from the dead":
            seen.append(message)

    cell = system.cell("a", processor)
    for n in range(100):
        cell.suspend()
        cell.dispatch(Last())  # the mailbox has the only reference
        cell.resume()
        wait_until(lambda: len(seen) == n + 1)
    cell.suspend()
    cell.dispatch(Last())
    cell.stop()
    system.cell("a", processor)
    system.dead_letters.clear()
    wait_until(lambda: len(seen) == 101)
    system.shutdown()
    say("end")
    """
    assert run(source) == ["end"]


def test_garbage_that_dispatches(run):
    """The collector may run anywhere, and what it collects may dispatch: no deadlock."""
    source = """
    import gc
    handled = [0]
    lock = threading.Lock()
    system = fastactor.ActorSystem(threads=2, capacity=1_000_000)

    class Cyclic:
        def __init__(self):
            self.me = self

        def __del__(self):
            system.dispatch("dead", 1, count)

    def count(message, cell):
        with lock:
            handled[0] += 1

    def one(n):
        Cyclic()
        pad = [[] for _ in range(n % 41)]  # so that the collector starts somewhere else each time
        system.dispatch(n % 50, (n,), count)

    gc.set_threshold(50)
    for n in range(10_000):
        one(n)
    gc.collect()
    wait_until(lambda: handled[0] == 20_000)
    assert system.shutdown()
    say("end")
    """
    assert run(source) == ["end"]


def test_fork_in_the_main_thread(run):
    """`os.fork`: the child has the same system without its cells, and may use it; the parent goes on."""
    source = """
    system = fastactor.ActorSystem(threads=2)
    seen = []
    processor = lambda message, cell: seen.append(message)
    old = system.cell("a", processor)
    old.dispatch(1)
    wait_until(lambda: seen == [1])
    old.suspend()
    old.dispatch("the parent's")
    pid = os.fork()
    if pid == 0:
        assert len(system) == 0 and "a" not in system
        system.dispatch("a", 2, processor)
        wait_until(lambda: seen == [1, 2])
        assert old.dispatch(3) is True   # a kept handle reaches the new cell of its path
        wait_until(lambda: seen == [1, 2, 3])
        assert system.shutdown()
        say("child")
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    old.resume()
    wait_until(lambda: seen == [1, "the parent's"])
    system.dispatch("b", 4, processor)
    wait_until(lambda: seen[-1] == 4)
    assert system.shutdown()
    say("parent")
    """
    assert run(source) == ["child", "parent"]


def test_fork_while_everything_is_busy(run):
    """Whatever the other threads are doing at that moment, the child can go on."""
    source = """
    system = fastactor.ActorSystem(threads=4, capacity=100, overflow="block")
    stop = threading.Event()

    def produce():
        n = 0
        while not stop.is_set():
            system.dispatch(n % 7, n, ignore)
            n += 1

    producers = [threading.Thread(target=produce) for _ in range(2)]
    for producer in producers:
        producer.start()
    for n in range(15):
        pid = os.fork()
        if pid == 0:
            handled = threading.Event()
            system.dispatch("child", 1, lambda message, cell: handled.set())
            os._exit(0 if handled.wait(30) and system.shutdown(timeout=30) else 1)
        assert os.waitpid(pid, 0)[1] == 0
        before = system.stats().processed
        wait_until(lambda: system.stats().processed > before)
    stop.set()
    for producer in producers:
        producer.join()
    assert system.shutdown()
    say("parent")
    """
    assert run(source) == ["parent"]


def test_fork_from_a_processor(run):
    """A processor may fork: the child ends when the processor returns, the parent goes on."""
    source = """
    system = fastactor.ActorSystem(threads=2)
    pids = []

    def fork(message, cell):
        pid = os.fork()
        if pid:
            pids.append(pid)
        else:
            say("child")

    system.dispatch("a", 1, fork)
    wait_until(lambda: pids)
    assert os.waitpid(pids[0], 0)[1] == 0
    seen = []
    system.dispatch("b", 1, lambda message, cell: seen.append(message))
    wait_until(lambda: seen)
    assert system.shutdown()
    say("parent")
    """
    assert run(source) == ["child", "parent"]


def test_fork_from_a_processor_that_goes_on(run):
    """A child forked in a processor may use the system before it leaves."""
    source = """
    system = fastactor.ActorSystem(threads=2)
    pids = []

    def fork(message, cell):
        pid = os.fork()
        if pid:
            pids.append(pid)
            return
        handled = threading.Event()
        system.dispatch("new", 1, lambda message, cell: handled.set())
        os._exit(0 if handled.wait(30) else 1)

    system.dispatch("a", 1, fork)
    wait_until(lambda: pids)
    assert os.waitpid(pids[0], 0)[1] == 0
    assert system.shutdown()
    say("parent")
    """
    assert run(source) == ["parent"]


def test_multiprocessing_with_fork(run):
    """A child of multiprocessing is a fork like any other."""
    source = """
    import multiprocessing

    system = fastactor.ActorSystem(threads=2)
    system.dispatch("a", 1, ignore)
    wait_until(lambda: system.stats().processed == 1)

    def child():
        with fastactor.ActorSystem(threads=1) as other:
            other.dispatch("a", 1, lambda message, cell: say("child"))
        handled = threading.Event()
        system.dispatch("a", 1, lambda message, cell: handled.set())
        assert handled.wait(30)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    say("parent")
    """
    assert run(source) == ["child", "parent"]


def asleep(pid):
    """Whether the main thread of the process is off the CPU."""
    with open(f"/proc/{pid}/task/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


BLOCKED = """
system = fastactor.ActorSystem(threads=1, capacity=1, overflow="block")
cell = system.cell("a", ignore)
cell.suspend()
cell.dispatch(1)
try:
    say("ready")
    {wait}
except KeyboardInterrupt:
    say("interrupted")
cell.resume()
wait_until(lambda: cell.processed == 1)
assert cell.dispatch(2) is True
assert system.shutdown()
say("end")
"""


@pytest.mark.parametrize(
    "wait", ["cell.dispatch(2)", "system.dispatch('a', 2, timeout=600)", "cell.dispatch_many([2])"]
)
def test_ctrl_c_while_blocked_on_a_full_mailbox(runtime, wait):
    """Ctrl-C while blocked on a full mailbox (overflow="block") is a KeyboardInterrupt, and all goes on."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + BLOCKED.format(wait=wait)],
        env=environment(runtime.name),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout.readline() == "ready\n"
            wait_until(lambda: asleep(process.pid))  # it waits for room
            os.kill(process.pid, signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            # not communicate(), which would miss what readline has buffered already
            out, err = process.stdout.read(), process.stderr.read()
            process.wait(DEADLINE)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("end\n", "", 0)


def test_ctrl_c_during_a_shutdown(run):
    """Ctrl-C while a shutdown waits for a processor gets through, and the shutdown can be repeated."""
    source = """
    import signal
    system = fastactor.ActorSystem(threads=1)
    waiting, release = threading.Event(), threading.Event()

    def processor(message, cell):
        waiting.wait(30)
        os.kill(os.getpid(), signal.SIGINT)
        release.wait(30)

    system.dispatch("a", 1, processor)
    try:
        waiting.set()
        system.shutdown()
    except KeyboardInterrupt:
        say("interrupted")
    release.set()
    assert system.shutdown()
    say("end")
    """
    assert run(source) == ["interrupted", "end"]


def test_exit_while_another_thread_is_blocked_on_a_full_mailbox(run):
    """A daemon thread that waits for room does not hold up the exit."""
    source = """
    system = fastactor.ActorSystem(threads=1, capacity=1, overflow="block")
    cell = system.cell("a", ignore)
    cell.suspend()
    cell.dispatch(1)
    entered = threading.Event()

    def sender():
        entered.set()
        try:
            cell.dispatch(2)
        except fastactor.SystemClosed:
            pass

    threading.Thread(target=sender, daemon=True).start()
    entered.wait()
    say("end")
    """
    assert run(source) == ["end"]


def test_fork_with_an_executor_of_its_own(run):
    """In the child an executor without its workers says so."""
    source = """
    executor = fastactor.PriorityExecutor(1)
    system = fastactor.ActorSystem(threads=1)
    cell = system.cell("a", ignore)
    assert executor.execute(cell)
    wait_until(lambda: not cell.status.is_scheduled)
    pid = os.fork()
    if pid == 0:
        os._exit(executor.execute(system.cell("b", ignore)) or len(executor) or executor.busy)
    assert os.waitpid(pid, 0)[1] == 0
    assert executor.shutdown() and system.shutdown()
    say("end")
    """
    assert run(source) == ["end"]
