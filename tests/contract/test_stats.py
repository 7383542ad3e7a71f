"""Statistics: `stats()` counts, `top()` says which cells."""

import dataclasses

import pytest
from support import block_worker, wait_until


def ignore(message, cell):
    """A processor that does nothing."""


def test_stats_is_a_plain_dataclass_of_counts(system):
    """`system.stats()`: a plain dataclass of counts."""
    stats = system.stats()
    assert dataclasses.asdict(stats) == {
        "actors": 0,
        "ready": 0,
        "queued": 0,
        "processed": 0,
        "dropped": 0,
        "failed": 0,
        "busy": 0,
        "threads": 2,
    }


def test_actors_ready_queued_and_busy(make_system):
    """(actors, ready, queued, ..., busy workers)."""
    system = make_system(threads=1)
    gate = block_worker(system)
    system.dispatch_many("a", [1, 2, 3], ignore)
    system.dispatch("b", 1, ignore)
    system.cell("c", ignore)
    suspended = system.cell("d", ignore)
    suspended.suspend()
    suspended.dispatch(1)
    stats = system.stats()
    assert stats.actors == 5
    assert stats.ready == 2
    assert stats.queued == 6  # the one in hand included
    assert stats.busy == 1
    gate.open()
    wait_until(lambda: system.stats().queued == 1)
    wait_until(lambda: system.stats().busy == 0)
    stats = system.stats()
    assert (stats.ready, stats.processed) == (0, 5)


def test_processed_dropped_and_failed(make_system):
    """(..., processed, dropped, failed, ...)."""
    system = make_system(capacity=1, overflow="drop-new")

    def fail(message, cell):
        raise ValueError

    failing = system.cell("a", fail)
    failing.dispatch(1)
    wait_until(lambda: failing.processed == 1)
    full = system.cell("b", ignore)
    full.suspend()
    full.dispatch(1)
    full.dispatch(2)
    wait_until(lambda: system.stats().processed == 1)
    stats = system.stats()
    assert (stats.processed, stats.failed, stats.dropped) == (1, 1, 1)
    system.stop("b")
    assert system.stats().dropped == 2


def test_processed_outlives_the_cell(system):
    """What a stopped cell handled still counts."""
    system.dispatch_many("a", range(10), ignore)
    wait_until(lambda: system.get("a").processed == 10)
    system.stop("a")
    wait_until(lambda: system.stats().processed == 10)
    assert system.stats().actors == 0


def test_top_by_depth(system):
    """`system.top(n, by="depth")`."""
    for path, depth in (("a", 1), ("b", 3), ("c", 2), ("d", 0)):
        cell = system.cell(path, ignore)
        cell.suspend()
        cell.dispatch_many(range(depth))
    assert [(row.path, row.depth) for row in system.top(2, by="depth")] == [("b", 3), ("c", 2)]
    assert [row.path for row in system.top(10, by="depth")] == ["b", "c", "a", "d"]
    assert system.top(0, by="depth") == []


def test_top_by_time(system):
    """`by="time"`: those that used most worker time first, and the default."""
    import time

    for path, pause in (("short", 0.001), ("long", 0.1), ("middle", 0.03)):
        cell = system.cell(path, lambda message, cell: time.sleep(message))
        cell.dispatch(pause)
        wait_until(lambda c=cell: c.processed == 1 and c.status.value == 0)
    wait_until(lambda: all(cell.total > 0 for cell in system))
    rows = system.top(by="time")
    assert [row.path for row in rows] == ["long", "middle", "short"]
    assert rows == system.top()
    assert [row.total for row in rows] == [system.get(row.path).total for row in rows]
    assert [row.processed for row in rows] == [1, 1, 1]


def test_top_by_wait(make_system):
    """`by="wait"`: those that have waited longest for a worker first."""
    system = make_system(threads=1, policy="fifo")
    gate = block_worker(system)
    for path in "abc":
        system.dispatch(path, 1, ignore)
    system.cell("idle", ignore)
    rows = system.top(3, by="wait")
    assert [row.path for row in rows] == ["a", "b", "c"]
    assert all(row.wait > 0 for row in rows)
    by_path = {row.path: row.wait for row in system.top(by="wait")}
    assert by_path["idle"] == by_path["gate"] == 0.0
    gate.open()


def test_top_takes_ten_by_default(system):
    """Ten rows unless told otherwise."""
    for n in range(12):
        system.cell(n, ignore)
    assert len(system.top()) == 10


def test_top_checks_its_arguments(system):
    """Wrong types raise TypeError, wrong values ValueError, at once."""
    with pytest.raises(ValueError, match="by"):
        system.top(by="colour")
    with pytest.raises(TypeError, match="n must be"):
        system.top("3")
    with pytest.raises(ValueError, match="n must be"):
        system.top(-1)


def test_stats_of_a_closed_system(system):
    """The counts may be read after the shutdown."""
    system.dispatch("a", 1, ignore)
    system.shutdown()
    stats = system.stats()
    assert (stats.actors, stats.processed, stats.busy, stats.queued) == (0, 1, 0, 0)
    assert system.top() == []
