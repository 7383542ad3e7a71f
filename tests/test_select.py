"""Which runtime `import fastactor` gives, and under which names."""

import sys

import pytest
from support import run_script, script_output

import fastactor

NAMES = """
    ActorSystem ActorCell BoundedNodeQueue StatusWord PriorityExecutor current_cell Retry DeadLetter Hold
    MailboxFull SystemFull SystemClosed Event ActorStarted ActorStopped ActorFailed ActorSuspended
    DeadLettered Subscription FastactorError ShutdownReport SystemStats CellStats implementation
""".split()

# A finder in front of all others under which the compiled module cannot be imported, or does not exist.
BROKEN = """
import sys
from importlib.machinery import ModuleSpec

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "fastactor._native":
            {what}

sys.meta_path.insert(0, Finder())
"""
BROKEN_MODULE = (
    BROKEN.format(what="return ModuleSpec(name, self)")
    + """
Finder.create_module = lambda self, spec: None
def exec_module(self, module):
    raise ImportError("broken extension")
Finder.exec_module = exec_module
"""
)
MISSING_MODULE = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "fastactor._native" else find_spec(name, *rest)
sys_modules = __import__("sys").modules
sys_modules["fastactor._native"] = None
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_importable(name):
    """Public names, all importable from `fastactor`."""
    assert hasattr(fastactor, name)
    assert name in fastactor.__all__


def test_all_is_true():
    """`__all__` names what there is."""
    assert all(hasattr(fastactor, name) for name in fastactor.__all__)
    assert len(set(fastactor.__all__)) == len(fastactor.__all__)


def test_the_implementation_is_named(runtime):
    """`fastactor.implementation` is `"native"` or `"pure"`."""
    assert runtime.module.implementation == runtime.name
    source = "import fastactor; print(fastactor.implementation, fastactor.ActorSystem.__module__)"
    assert script_output(runtime.name, source) == f"{runtime.name} fastactor._{runtime.name}"


def test_pure_is_forced():
    """`FASTACTOR_PURE=1` forces the twin, and does not even load the extension."""
    source = "import sys, fastactor; print(fastactor.implementation, 'fastactor._native' in sys.modules)"
    assert script_output("pure", source) == "pure False"


def test_native_forced_and_missing_is_an_error():
    """With `FASTACTOR_NATIVE=1` a failed import of the extension is an error."""
    for spoil in (BROKEN_MODULE, MISSING_MODULE):
        done = run_script("native", f"{spoil}\nimport fastactor")
        assert done.returncode == 1
        assert "Error" in done.stderr
        assert "fastactor._native" in done.stderr or "broken extension" in done.stderr


def test_a_broken_extension_is_no_silent_slow_down():
    """An extension that is there and cannot be imported is an error without FASTACTOR_NATIVE too."""
    done = run_script(None, f"{BROKEN_MODULE}\nimport fastactor")
    assert done.returncode == 1
    assert "broken extension" in done.stderr


def test_without_the_extension_the_twin_is_taken():
    """Where nothing was compiled the pure twin backs it."""
    source = f"{MISSING_MODULE}\nimport fastactor; print(fastactor.implementation)"
    assert script_output(None, source) == "pure"


@pytest.mark.native_only
def test_native_is_the_default(runtime):
    """Without a switch the compiled runtime is taken."""
    assert script_output(None, "import fastactor; print(fastactor.implementation)") == "native"


def test_import_is_quiet_and_starts_nothing(runtime):
    """Importing prints nothing, warns of nothing and starts no thread."""
    source = "import threading, fastactor; print(threading.active_count())"
    assert script_output(runtime.name, source, options=("-W", "error")) == "1"


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="needs a Python that can say so")
def test_importing_leaves_the_gil_as_it_was(runtime):
    """On a free-threaded build importing fastactor leaves the GIL off."""
    source = """
    import sys
    before = sys._is_gil_enabled()
    import fastactor
    print(before == sys._is_gil_enabled())
    """
    assert script_output(runtime.name, source, options=("-W", "error")) == "True"
