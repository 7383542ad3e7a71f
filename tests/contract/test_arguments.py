"""Wrong types raise TypeError, wrong values ValueError, at once."""

import math

import pytest


def ignore(message, cell):
    """A processor that does nothing."""


async def asynchronous(message, cell):
    """Not a processor: nobody would await it."""


WRONG_TYPES = {
    "name": [1, None, b"x"],
    "threads": ["4", 4.0, True],
    "policy": [1, b"fair"],
    "quota": ["1", None, True],
    "capacity": ["10", 10.0, None, True],
    "overflow": [None, 1],
    "on_error": [None, 1, ValueError],
    "ask_timeout": ["1", True],
    "idle_timeout": ["1", True],
    "max_actors": ["1", 1.0, True],
}
WRONG_VALUES = {
    "threads": [0, -1, 10**6],
    "policy": ["", "unfair", "FAIR"],
    "quota": [0, -1, math.inf, math.nan, 1e-9, 1e9],
    "capacity": [0, -1, 2**31],
    "overflow": ["", "ignore"],
    "on_error": ["", "retry"],
    "ask_timeout": [0, -1, math.nan],
    "idle_timeout": [0, -1, math.inf],
    "max_actors": [0, -1],
}
CELL_OPTIONS = {"quota", "capacity", "overflow", "on_error"}


def pairs(table, only=None):
    return [
        (name, value) for name, values in table.items() if only is None or name in only for value in values
    ]


@pytest.mark.parametrize(("name", "value"), pairs(WRONG_TYPES))
def test_system_refuses_wrong_types(runtime, name, value):
    """Wrong types raise TypeError."""
    with pytest.raises(TypeError, match=name):
        runtime.ActorSystem(**{name: value})


@pytest.mark.parametrize(("name", "value"), pairs(WRONG_VALUES))
def test_system_refuses_wrong_values(runtime, name, value):
    """Wrong values raise ValueError."""
    with pytest.raises(ValueError, match=name):
        runtime.ActorSystem(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((n, v) for n, v in pairs(WRONG_TYPES, CELL_OPTIONS) if v is not None),
        ("weight", "1"),
        ("weight", None),
    ],
)
def test_cell_refuses_wrong_types(system, name, value):
    """... for a cell's own options too."""
    with pytest.raises(TypeError, match=name):
        system.cell("a", ignore, **{name: value})
    assert "a" not in system


@pytest.mark.parametrize(
    ("name", "value"),
    [*pairs(WRONG_VALUES, CELL_OPTIONS), *(("weight", w) for w in (0, -1, math.nan, math.inf, 1e9))],
)
def test_cell_refuses_wrong_values(system, name, value):
    """... and leaves no half-made cell behind."""
    with pytest.raises(ValueError, match=name):
        system.cell("a", ignore, **{name: value})
    assert "a" not in system


@pytest.mark.parametrize("processor", [1, "print", object(), [ignore]], ids=repr)
def test_processor_must_be_one(system, processor):
    """A processor is a callable or has a callable `process`; anything else is a TypeError."""
    for call in (
        lambda: system.dispatch("a", 1, processor),
        lambda: system.dispatch_many("a", [1], processor),
        lambda: system.cell("a", processor),
    ):
        with pytest.raises(TypeError, match="processor must be"):
            call()
    assert "a" not in system


def test_processor_object_needs_a_callable_process(system):
    """An attribute `process` that cannot be called is not enough."""

    class Wrong:
        process = 1

    with pytest.raises(TypeError, match="processor must be"):
        system.cell("a", Wrong())


def test_asynchronous_processors_are_refused(system):
    """A coroutine function would never be awaited: TypeError, not silence."""

    class Wrong:
        async def process(self, message, cell):
            pass

    for processor in (asynchronous, Wrong(), Wrong().process):
        with pytest.raises(TypeError, match="asynchronous"):
            system.dispatch("a", 1, processor)
    assert "a" not in system


@pytest.mark.parametrize("capacity", [0, -1, 2**31])
def test_queue_capacity_values(runtime, capacity):
    """A queue holds at least one message."""
    with pytest.raises(ValueError, match="capacity"):
        runtime.BoundedNodeQueue(capacity)


@pytest.mark.parametrize("capacity", ["1", 1.0, None, True])
def test_queue_capacity_types(runtime, capacity):
    """A capacity is an int."""
    with pytest.raises(TypeError, match="capacity"):
        runtime.BoundedNodeQueue(capacity)


def test_executor_arguments(runtime):
    """PriorityExecutor(threads, policy=...) checks both."""
    for wrong in (
        {"threads": "1"},
        {"threads": True},
        {"threads": 1, "policy": 1},
        {"threads": 1, "name": 1},
    ):
        with pytest.raises(TypeError):
            runtime.PriorityExecutor(**wrong)
    for wrong in ({"threads": 0}, {"threads": 1, "policy": "random"}):
        with pytest.raises(ValueError, match="must be"):
            runtime.PriorityExecutor(**wrong)
    with pytest.raises(TypeError):
        runtime.PriorityExecutor()


def test_execute_takes_a_cell(runtime):
    """`executor.execute(cell)` of something else is a TypeError."""
    executor = runtime.PriorityExecutor(1)
    for wrong in (None, "a", ignore):
        with pytest.raises(TypeError, match="ActorCell"):
            executor.execute(wrong)


def test_cell_needs_a_system(runtime):
    """A cell belongs to an ActorSystem."""
    with pytest.raises(TypeError, match="system"):
        runtime.ActorCell(None, "a", ignore)


@pytest.mark.parametrize("timeout", ["1", True])
def test_shutdown_timeout_types(system, timeout):
    """A timeout is a number of seconds or None."""
    with pytest.raises(TypeError, match="timeout"):
        system.shutdown(timeout=timeout)
    system.dispatch("a", 1, ignore)  # and the system is as it was


@pytest.mark.parametrize("timeout", [-1, math.nan, math.inf])
def test_shutdown_timeout_values(runtime, system, timeout):
    """... finite and not below zero."""
    with pytest.raises(ValueError, match="timeout"):
        system.shutdown(timeout=timeout)
    with pytest.raises(ValueError, match="timeout"):
        system.executor.shutdown(timeout=timeout)
    system.dispatch("a", 1, ignore)


@pytest.mark.parametrize(("timeout", "error"), [("1", TypeError), (True, TypeError), (-1, ValueError)])
def test_dispatch_timeout(make_system, timeout, error):
    """A wrong timeout of `dispatch` is refused at once, room or no room."""
    system = make_system(capacity=1, overflow="block")
    cell = system.cell("a", ignore)
    cell.suspend()
    for _ in range(2):  # with room, then without
        with pytest.raises(error, match="timeout"):
            cell.dispatch(1, timeout=timeout)
        with pytest.raises(error, match="timeout"):
            system.dispatch("a", 1, timeout=timeout)
        if not len(cell):
            cell.dispatch("fills it")
    assert len(cell) == 1


def test_dispatch_many_needs_an_iterable(system):
    """Messages that cannot be iterated are a TypeError."""
    with pytest.raises(TypeError, match="iter"):
        system.dispatch_many("a", 1, ignore)


def test_missing_and_unknown_arguments(system):
    """As with any Python call."""
    for call in (
        lambda: system.dispatch("a"),
        lambda: system.dispatch("a", 1, ignore, 1.0),
        lambda: system.dispatch("a", 1, ignore, colour="red"),
        lambda: system.cell("a", ignore, 2.0),
        lambda: system.cell("a", ignore, colour="red"),
        lambda: system.cell("b", ignore).dispatch(),
    ):
        with pytest.raises(TypeError):
            call()


def test_keywords(system):
    """Every parameter may be named."""
    assert system.dispatch(path="a", message=1, processor=ignore, timeout=None) is True
    assert system.dispatch_many(path="a", messages=[1], processor=None) == 1
    assert system.cell(path="a", processor=None).dispatch(message=1, timeout=1) is True
    assert system.suspend(path="a") is True
    assert system.resume(path="a") is True
    assert system.schedule(path_or_cell="nobody", has_message_hint=True) is False
    assert system.get(path="a") is system.cell("a")
    assert system.stop(path="a") is True
