"""What the tests share: waiting without guessing, a processor that blocks, scripts in another process."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import fastactor

# A generous deadline: it is only reached when something is broken.
DEADLINE = 30.0


def wait_until(predicate, timeout=DEADLINE):
    """Poll until the predicate holds; fails with its name when it does not in time."""
    end = time.monotonic() + timeout
    while not predicate():
        assert time.monotonic() < end, f"timed out waiting for {predicate!r}"
        time.sleep(0.001)


class Gate:
    """A processor that blocks its worker, from `entered` until `open`."""

    def __init__(self):
        self.entered = threading.Event()
        self._open = threading.Event()
        self.seen = []

    def __call__(self, message, cell):
        self.entered.set()
        assert self._open.wait(DEADLINE)
        self.seen.append(message)

    def open(self):
        self._open.set()


def block_worker(system, path="gate"):
    """Occupy one worker of the system until the returned gate is opened."""
    gate = Gate()
    system.dispatch(path, "hold", gate)
    assert gate.entered.wait(DEADLINE)
    return gate


def run_threads(*targets):
    """Run each target on a thread of its own, all started together; the first error is raised here."""
    errors = []
    barrier = threading.Barrier(len(targets))

    def call(target):
        try:
            barrier.wait(DEADLINE)
            target()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=call, args=(t,), daemon=True) for t in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * DEADLINE)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def worker_threads(name):
    """The living worker threads of the systems of that name."""
    return [t for t in threading.enumerate() if t.name.startswith(f"{name}-worker-")]


def environment(implementation):
    """The environment of a process in which `import fastactor` gives this implementation."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FASTACTOR_", "PYTHON"))}
    env["PYTHONPATH"] = str(Path(fastactor.__file__).parent.parent)
    if implementation is not None:
        env[f"FASTACTOR_{implementation.upper()}"] = "1"
    return env


def run_script(implementation, source, *, timeout=60, options=()):
    """Run the source in a process of its own; its result, with stdout and stderr as text."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *options, "-c", textwrap.dedent(source)],
        env=environment(implementation),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def script_output(implementation, source, **how):
    """What the script printed; it must end well and leave stderr empty."""
    done = run_script(implementation, source, **how)
    assert (done.returncode, done.stderr) == (0, ""), f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout.strip()
