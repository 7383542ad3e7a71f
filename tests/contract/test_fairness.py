"""Fairness as numbers: shares of worker time, while all keys have more to do than they get.

What is charged is worker occupancy, so a busy machine makes a message dearer but moves no share.
"""

import threading
import time

import pytest
from support import DEADLINE, Gate, block_worker, wait_until

PLENTY = 100_000


def spin(seconds):
    """Keep the worker and the GIL busy."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def saturate(system, keys):
    """Cells with more messages than can be handled: {path: (work, seconds, weight)} behind a closed gate."""
    gate = block_worker(system)
    cells = {}
    for path, (work, seconds, weight) in keys.items():
        cell = system.cell(
            path, lambda message, cell, w=work, s=seconds: w(s), weight=weight, capacity=PLENTY
        )
        cell.dispatch_many(range(int(8 / seconds)))
        cells[path] = cell
    gate.open()
    return cells


def shares(cells, seconds):
    """What part of the worker time each key gets of the next seconds of it."""
    before = {path: cell.total for path, cell in cells.items()}

    def used():
        return {path: cell.total - before[path] for path, cell in cells.items()}

    wait_until(lambda: sum(used().values()) >= seconds)
    result = used()
    whole = sum(result.values())
    return {path: 100 * part / whole for path, part in result.items()}


@pytest.mark.parametrize("work", [time.sleep, spin], ids=["sleep", "spin"])
def test_long_and_short_messages_share_evenly(make_system, work):
    """20 ms messages against 0.5 ms messages get 50 % of the time each."""
    system = make_system(threads=1)
    cells = saturate(system, {"long": (work, 0.02, 1.0), "short": (work, 0.0005, 1.0)})
    result = shares(cells, 2.0)
    assert result["long"] == pytest.approx(50, abs=5)
    assert result["short"] == pytest.approx(50, abs=5)


def test_weights(make_system):
    """Weights 4:2:1 get 57:29:14 of the time."""
    system = make_system(threads=1)
    cells = saturate(system, {w: (time.sleep, 0.001, w) for w in (4.0, 2.0, 1.0)})
    result = shares(cells, 2.0)
    assert result[4.0] == pytest.approx(57.1, abs=4)
    assert result[2.0] == pytest.approx(28.6, abs=4)
    assert result[1.0] == pytest.approx(14.3, abs=4)


def test_a_weight_changed_on_the_way(make_system):
    """A new weight counts from the next turn on."""
    system = make_system(threads=1)
    cells = saturate(system, {path: (time.sleep, 0.001, 1.0) for path in "ab"})
    assert shares(cells, 0.5)["a"] == pytest.approx(50, abs=6)
    cells["a"].weight = 4.0
    assert shares(cells, 1.0)["a"] == pytest.approx(80, abs=6)


def test_a_burst_of_a_quiet_key(make_system):
    """Idle time earns no credit: a key that was quiet takes its share and no more."""
    system = make_system(threads=1)
    quiet = system.cell("quiet", lambda message, cell: time.sleep(0.001), capacity=PLENTY)
    quiet.dispatch(0)
    wait_until(lambda: quiet.processed == 1)
    cells = saturate(system, {path: (time.sleep, 0.001, 1.0) for path in "ab"})
    wait_until(lambda: sum(cell.total for cell in cells.values()) >= 1.0)
    quiet.dispatch_many(range(10_000))
    result = shares({**cells, "quiet": quiet}, 1.0)
    for path in ("a", "b", "quiet"):
        assert result[path] == pytest.approx(33.3, abs=5)


def test_a_flood_of_new_keys(make_system):
    """New cells cannot starve the old: beside three that are always new, each of two old keys has a fifth."""
    system = make_system(threads=1)
    cells = saturate(system, {path: (time.sleep, 0.001, 1.0) for path in "ab"})
    flooding = [True]
    spent = [0.0]

    def once(message, cell):
        started = time.perf_counter()
        time.sleep(0.005)
        spent[0] += time.perf_counter() - started
        if flooding:
            cell.system.dispatch(("new", message + 3), message + 3, once)
        cell.stop()

    for n in range(3):
        system.dispatch(("new", n), n, once)
    before = {path: cell.total for path, cell in cells.items()}
    wait_until(lambda: spent[0] >= 1.0)
    used = {path: cell.total - before[path] for path, cell in cells.items()}
    whole = sum(used.values()) + spent[0]
    flooding.clear()
    for path in "ab":
        assert 100 * used[path] / whole >= 15


def test_a_quiet_key_overtakes_noisy_ones(make_system):
    """A noisy key cannot starve a quiet one: on two workers, beside three saturated keys, a message every
    10 ms waits less than two quotas at the 99th percentile.
    """
    quota = 0.005
    system = make_system(threads=2, quota=quota)
    waits, late = [], []
    producing = threading.Event()
    producing.set()

    def calibrate():
        """How late this machine wakes a sleeper, in the same period."""
        while producing.is_set():
            started = time.monotonic()
            time.sleep(0.001)
            late.append(time.monotonic() - started - 0.001)

    for path in "abc":
        system.cell(path, lambda message, cell: time.sleep(0.0005), capacity=PLENTY)
        system.dispatch_many(path, range(20_000))
    quiet = system.cell("quiet", lambda sent, cell: waits.append(time.monotonic() - sent))
    calibration = threading.Thread(target=calibrate)
    calibration.start()
    try:
        for _ in range(200):
            quiet.dispatch(time.monotonic())
            time.sleep(0.01)
        wait_until(lambda: len(waits) == 200)
    finally:
        producing.clear()
        calibration.join(DEADLINE)
    waits.sort()
    # A turn may be one message too long, and each of its sleeps as late as the machine was at its worst.
    assert waits[197] < 2 * quota + 2 * max(late), (waits[-5:], max(late))


def test_lag_is_clamped(make_system):
    """Clamp lag at about 2 x workers slices: a key that could not use its share has no claim on the past.

    With weight 8 on two workers a key deserves 1.6 workers and can use one. When only one worker is left, the
    others must get their fifth of it at once and not wait until the key has caught up.
    """
    system = make_system(threads=2)
    cells = saturate(
        system,
        {"heavy": (time.sleep, 0.001, 8.0), "b": (time.sleep, 0.001, 1.0), "c": (time.sleep, 0.001, 1.0)},
    )
    wait_until(lambda: cells["heavy"].total >= 1.0)
    gate = Gate()
    system.cell("blocker", gate, weight=1000.0).dispatch(1)
    assert gate.entered.wait(DEADLINE)
    result = shares(cells, 0.8)
    gate.open()
    assert result["b"] + result["c"] == pytest.approx(20, abs=8)


def test_waiting_for_the_gil_is_not_charged(make_system):
    """What is charged is worker occupancy, less the runtime's own wait for the GIL."""
    system = make_system(threads=1)
    cell = system.cell("a", lambda message, cell: None)
    stop = threading.Event()

    def burn():
        while not stop.is_set():
            spin(0.001)

    burner = threading.Thread(target=burn)
    burner.start()
    charges = []
    try:
        for n in range(60):  # each message finds a worker that has to get the GIL from the burner
            before = cell.total
            cell.dispatch(n)
            wait_until(lambda n=n, before=before: cell.processed == n + 1 and cell.total > before)
            charges.append(cell.total - before)
    finally:
        stop.set()
        burner.join(DEADLINE)
    # The wait is a switch interval, 5 ms, each time.
    assert sorted(charges)[30] < 0.001


def test_shares_on_two_workers(make_system):
    """Three equal keys on two workers get a third each."""
    system = make_system(threads=2)
    cells = saturate(system, {path: (time.sleep, 0.001, 1.0) for path in "abc"})
    result = shares(cells, 1.5)
    for path in "abc":
        assert result[path] == pytest.approx(33.3, abs=5)
