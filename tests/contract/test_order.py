"""Exactly once, in order per producer, under load."""

import pytest
from support import run_threads, wait_until

PRODUCERS = 4
KEYS = 8


def storm(system, each, dispatch):
    """Every producer sends `each` numbered messages to each key; the keys check what they get."""
    expected = [[0] * PRODUCERS for _ in range(KEYS)]
    wrong = []

    def processor(message, cell):
        producer, number = message
        row = expected[cell.path]
        if row[producer] != number:
            wrong.append((cell.path, message, row[producer]))
        row[producer] = number + 1

    cells = [system.cell(key, processor) for key in range(KEYS)]

    def produce(producer):
        for number in range(each):
            for cell in cells:
                assert dispatch(cell, (producer, number)) is True

    run_threads(*[lambda p=p: produce(p) for p in range(PRODUCERS)])
    assert system.shutdown()
    assert wrong[:3] == []
    assert expected == [[each] * PRODUCERS] * KEYS
    assert system.stats().processed == each * PRODUCERS * KEYS
    assert len(system.dead_letters) == 0


def test_exactly_once_in_order(make_system):
    """4 producers x 8 keys x 20,000 messages on 8 workers, by cell, with room for all."""
    storm(make_system(threads=8, capacity=100_000), 20_000, lambda cell, message: cell.dispatch(message))


def test_exactly_once_in_order_by_path_with_small_mailboxes(make_system):
    """The same by path, through mailboxes of three."""
    system = make_system(threads=8, capacity=3, overflow="block")
    storm(system, 500, lambda cell, message: system.dispatch(cell.path, message))


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_batches_keep_their_order(make_system, batch):
    """dispatch_many keeps the order of its producer among other producers."""
    system = make_system(threads=2, capacity=100, overflow="block")
    seen = []
    cell = system.cell("a", lambda message, cell: seen.append(message))

    def produce(producer):
        for start in range(0, 1400, batch):
            assert cell.dispatch_many((producer, n) for n in range(start, start + batch)) == batch

    run_threads(lambda: produce(0), lambda: produce(1))
    wait_until(lambda: len(cell) == 0)
    system.shutdown()
    for producer in range(2):
        mine = [n for p, n in seen if p == producer]
        assert mine == list(range(len(mine)))
        assert len(mine) >= 1400


def test_a_relay(make_system):
    """Messages that go from key to key keep their order all the way."""
    system = make_system(threads=4)
    seen = []

    def relay(message, cell):
        if cell.path == 9:
            seen.append(message)
        else:
            cell.system.dispatch(cell.path + 1, message, relay)

    for n in range(500):
        system.dispatch(0, n, relay)
    wait_until(lambda: len(seen) == 500)
    assert seen == list(range(500))
