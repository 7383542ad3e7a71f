"""Workers: ordinary threads to Python, which hold the GIL only while Python code runs."""

import faulthandler
import hashlib
import os
import resource
import sys
import tempfile
import threading
import time

import pytest
from support import DEADLINE, block_worker, run_threads, wait_until, worker_threads

GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def test_visible_to_python(make_system):
    """Visible to Python as ordinary threads (named `<system>-worker-N`, in `threading.enumerate()`)."""
    system = make_system(name="visible", threads=3)
    assert not worker_threads("visible")
    seen = []
    system.dispatch("a", 1, lambda message, cell: seen.append(threading.current_thread()))
    wait_until(lambda: seen)
    wait_until(lambda: len(worker_threads("visible")) == 3)
    names = [thread.name for thread in worker_threads("visible")]
    assert sorted(names) == ["visible-worker-1", "visible-worker-2", "visible-worker-3"]
    assert seen[0] in worker_threads("visible")
    assert type(seen[0]) is threading.Thread
    assert seen[0].is_alive()
    assert seen[0].ident is not None


def test_a_worker_knows_itself(make_system):
    """The same thread object on each message, with a thread-local storage that stays."""
    system = make_system(threads=1)
    local = threading.local()
    seen = []

    def processor(message, cell):
        local.count = getattr(local, "count", 0) + 1
        seen.append((threading.current_thread(), threading.get_ident(), local.count))

    for n in range(3):
        system.dispatch(n, 1, processor)
    wait_until(lambda: len(seen) == 3)
    assert {(thread, ident) for thread, ident, _ in seen} == {(seen[0][0], seen[0][0].ident)}
    assert [count for _, _, count in seen] == [1, 2, 3]


def test_debuggers_see_the_processor(make_system):
    """... so that debuggers and profilers see what runs on them: the frame is there."""
    system = make_system(threads=1)
    gate = block_worker(system)
    (worker,) = worker_threads(system.name)
    frame = sys._current_frames()[worker.ident]
    names = []
    while frame is not None:
        names.append(
            frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name
        )
        frame = frame.f_back
    assert any(name.endswith("__call__") for name in names)
    gate.open()


def test_faulthandler_sees_the_processor(make_system):
    """... and `faulthandler`."""
    system = make_system(threads=1)
    gate = block_worker(system)
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        text = file.read()
    gate.open()
    assert "support.py" in text
    assert "in __call__" in text


def test_coverage_and_profilers_trace_the_processor(make_system):
    """... coverage and profilers: `threading.settrace` and `threading.setprofile` reach the workers."""
    traced, profiled = set(), set()

    def trace(frame, event, arg):
        traced.add(frame.f_code.co_name)

    def profile(frame, event, arg):
        profiled.add(frame.f_code.co_name)

    def my_processor(message, cell):
        pass

    threading.settrace(trace)
    threading.setprofile(profile)
    try:
        system = make_system(threads=1)
        system.dispatch_many("a", [1, 2], my_processor)
        assert system.shutdown()
    finally:
        threading.settrace(None)
        threading.setprofile(None)
    assert "my_processor" in traced
    assert "my_processor" in profiled


def test_idle_workers_use_no_cpu(make_system):
    """Workers hold the GIL only while Python code runs: 64 idle ones use no CPU."""
    system = make_system(threads=64)
    for n in range(64):
        system.dispatch(n, n, lambda message, cell: None)
    wait_until(lambda: system.stats().processed == 64 and system.stats().busy == 0)
    time.sleep(0.05)
    before = time.process_time()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    time.sleep(1.0)
    assert time.process_time() - before <= 0.02
    assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - switches < 64


@pytest.mark.parametrize("threads", [2, 8])
def test_processors_that_wait_do_so_together(make_system, threads):
    """A processor that sleeps must not hold up the others: all of them are inside at once."""
    system = make_system(threads=threads)
    barrier = threading.Barrier(threads)
    met = []

    def processor(message, cell):
        barrier.wait(DEADLINE)
        met.append(message)

    for n in range(threads):
        system.dispatch(n, n, processor)
    wait_until(lambda: len(met) == threads)
    assert len(system.dead_letters) == 0


def test_sleeping_processors_overlap(make_system):
    """Eight processors that sleep on eight workers sleep at the same time."""
    system = make_system(threads=8)
    inside, most = [], []

    def processor(message, cell):
        inside.append(1)
        time.sleep(0.1)
        most.append(len(inside))
        time.sleep(0.1)
        inside.pop()

    for n in range(8):
        system.dispatch(n, n, processor)
    wait_until(lambda: len(most) == 8)
    assert max(most) >= 4  # all eight, unless the machine stalls a thread for a whole sleep


def test_processors_that_release_the_gil_overlap(make_system):
    """Work that releases the GIL (hashing a big buffer) runs on several workers at once."""
    system = make_system(threads=2)
    buffer = bytes(8_000_000)
    inside, most = [], [0]
    end = time.monotonic() + DEADLINE

    def processor(message, cell):
        while most[0] < 2 and time.monotonic() < end:
            inside.append(1)
            hashlib.sha256(buffer).digest()
            most[0] = max(most[0], len(inside))
            inside.pop()

    for n in range(2):
        system.dispatch(n, n, processor)
    wait_until(lambda: system.stats().processed == 2)
    assert most[0] == 2


def test_a_worker_that_blocks_wakes_the_next(make_system):
    """While one processor waits, messages of other cells are handled by the other workers."""
    system = make_system(threads=2)
    gate = block_worker(system)
    seen = []
    for n in range(100):
        system.dispatch(n, n, lambda message, cell: seen.append(message))
    wait_until(lambda: len(seen) == 100)
    assert gate.seen == []
    gate.open()


def test_a_burst_wakes_enough_workers(make_system):
    """Cells that become ready while a worker is on its way are not left behind when that one blocks."""
    system = make_system(threads=4)
    for _ in range(20):
        barrier = threading.Barrier(4)
        met = []

        def processor(message, cell, barrier=barrier, met=met):
            barrier.wait(DEADLINE)
            met.append(message)

        for n in range(4):
            system.cell(n, lambda message, cell: message(None, cell)).dispatch(processor)
        wait_until(lambda met=met: len(met) == 4)
    assert len(system.dead_letters) == 0


@pytest.mark.skipif(GIL or (os.cpu_count() or 1) < 2, reason="needs a free-threaded build and two cores")
def test_two_workers_do_twice_the_work(make_system):
    """On free-threaded builds two workers do twice the Python work of one."""

    def work(message, cell):
        total = 0
        for n in range(20_000):
            total += n * n
        return total

    def copies():
        """A function object each: threads that share one contend on its reference count."""
        return [type(work)(work.__code__, dict(work.__globals__)) for _ in range(2)]

    def workers(threads):
        system = make_system(threads=threads)
        gates = [block_worker(system, ("gate", n)) for n in range(threads)]
        for n, copy in enumerate(copies()):
            system.dispatch_many(n, range(100), copy)
        started = time.perf_counter()
        for gate in gates:
            gate.open()
        assert system.shutdown()
        return time.perf_counter() - started

    def bare(threads):
        """The same work on threads of nobody's: what this machine has to give at the moment."""
        runs = [lambda c=copy: [c(n, None) for n in range(100)] for copy in copies()]
        started = time.perf_counter()
        if threads == 1:
            for run in runs:
                run()
        else:
            run_threads(*runs)
        return time.perf_counter() - started

    rows = [(workers(1), workers(2), bare(1), bare(2)) for _ in range(5)]
    one, two, bare_one, bare_two = map(min, zip(*rows, strict=True))
    assert one / two > min(1.5, 0.8 * bare_one / bare_two)


def test_many_systems_leave_nothing(runtime):
    """Threads, memory and open files return to where they were after 100 systems."""

    def rss():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def one_system():
        with runtime.ActorSystem("many", threads=4, capacity=100) as system:
            for path in range(20):
                system.dispatch_many(path, range(50), lambda message, cell: None)

    threads, files = len(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        one_system()
    memory = rss()
    for _ in range(80):
        one_system()
    assert len(threading.enumerate()) == threads
    assert len(os.listdir("/proc/self/fd")) == files
    assert rss() - memory < 4_000_000


@pytest.mark.parametrize("possible", [0, 1])
def test_threads_that_cannot_be_started(make_system, monkeypatch, possible):
    """No lost error: the caller hears of it, and the message is handled as soon as there is a worker."""
    system = make_system(threads=3)
    start, left = threading.Thread.start, [possible]

    def start_some(thread):
        if left[0] == 0:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    seen = []
    with pytest.raises(RuntimeError, match="start new thread"):
        system.dispatch("a", 1, lambda message, cell: seen.append(message))
    monkeypatch.undo()
    system.dispatch("a", 2)
    wait_until(lambda: seen == [1, 2])
