"""Each test that asks for `runtime` runs on both implementations, and leaves no thread behind."""

import importlib
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pytest
from support import DEADLINE, wait_until, worker_threads


@dataclass(frozen=True)
class Runtime:
    """One implementation of the runtime, under the names that both have."""

    name: str
    module: ModuleType
    ActorSystem: type
    ActorCell: type
    BoundedNodeQueue: type
    StatusWord: type
    PriorityExecutor: type
    current_cell: Callable


def load(name):
    module = importlib.import_module(f"fastactor._{name}")
    return Runtime(
        name,
        module,
        module.ActorSystem,
        module.ActorCell,
        module.BoundedNodeQueue,
        module.StatusWord,
        module.PriorityExecutor,
        module.current_cell,
    )


def pytest_addoption(parser):
    parser.addoption("--no-native", action="store_true", help="leave out the tests of the compiled runtime")


def pytest_configure(config):
    config.addinivalue_line("markers", "native_only: about the compiled runtime alone")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--no-native"):
        return
    out = [item for item in items if item.get_closest_marker("native_only")]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


def pytest_generate_tests(metafunc):
    if "runtime" not in metafunc.fixturenames:
        return
    names = ["native"]
    if not metafunc.definition.get_closest_marker("native_only"):
        names = ["pure"] if metafunc.config.getoption("--no-native") else ["native", "pure"]
    metafunc.parametrize("runtime", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def runtime(request):
    """The implementation under test; one that cannot be imported fails the test."""
    return load(request.param)


@pytest.fixture(autouse=True)
def no_leaked_threads():
    """A test ends with the threads that it began with."""
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + DEADLINE
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.001)
    assert not left, f"threads left behind: {left}"


_number = itertools.count(1)


@pytest.fixture
def make_system(runtime, no_leaked_threads):
    """A factory of systems which are shut down at the end of the test, with all their workers."""
    systems = []

    def make(**options):
        options.setdefault("name", f"test-{next(_number)}")
        options.setdefault("threads", 2)
        system = runtime.ActorSystem(**options)
        systems.append(system)
        return system

    yield make
    for system in systems:
        report = system.shutdown(drain=False, timeout=DEADLINE)
        assert report or not report.stuck, f"{system.name}: still running: {report.stuck}"
        wait_until(lambda name=system.name: not worker_threads(name))


@pytest.fixture
def system(make_system):
    """A system with two workers and otherwise the defaults."""
    return make_system()
