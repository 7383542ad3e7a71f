"""BoundedNodeQueue: many producers, one consumer, bounded."""

import gc
import threading
import time
import weakref

import pytest
from support import DEADLINE, run_threads

capacities = pytest.mark.parametrize("capacity", [1, 2, 3])


class Node:
    """A message that can be watched."""


@capacities
def test_full_exactly_at_capacity(runtime, capacity):
    """`add(value) -> bool` (False when full, exactly at capacity)."""
    queue = runtime.BoundedNodeQueue(capacity)
    assert queue.capacity == capacity
    for n in range(capacity):
        assert queue.count() == len(queue) == n
        assert queue.add(n) is True
    assert queue.add("one too many") is False
    assert queue.count() == capacity
    assert [queue.poll() for _ in range(capacity)] == list(range(capacity))


@capacities
def test_room_for_each_message_taken(runtime, capacity):
    """Full, one taken, room for exactly one."""
    queue = runtime.BoundedNodeQueue(capacity)
    while queue.add(0):
        pass
    for n in range(1, 10):
        queue.poll()
        assert queue.add(n) is True
        assert queue.add(n) is False


def test_peek_leaves_the_head(runtime):
    """`peek()` shows the head; `poll()` removes it."""
    queue = runtime.BoundedNodeQueue(2)
    queue.add("a")
    queue.add("b")
    assert queue.peek() == queue.peek() == "a"
    assert len(queue) == 2
    assert queue.poll() == "a"
    assert queue.peek() == "b"
    assert queue.poll() == "b"


def test_a_peeked_head_takes_its_place(runtime):
    """What was peeked still counts against the capacity."""
    queue = runtime.BoundedNodeQueue(1)
    queue.add("a")
    queue.peek()
    assert queue.add("b") is False
    assert queue.count() == 1
    assert queue.poll() == "a"
    assert queue.add("b") is True


def test_empty(runtime):
    """`is_empty()`; an empty queue answers None, or the default given."""
    queue = runtime.BoundedNodeQueue(1)
    assert queue.is_empty()
    assert queue.peek() is None
    assert queue.poll() is None
    marker = object()
    assert queue.peek(marker) is marker
    assert queue.poll(marker) is marker
    queue.add(None)
    assert not queue.is_empty()
    assert queue.peek(marker) is None
    assert queue.poll(marker) is None
    assert queue.is_empty()


@capacities
def test_many_rounds(runtime, capacity):
    """The length stays right however many messages have gone through."""
    queue = runtime.BoundedNodeQueue(capacity)
    for n in range(20_000):
        assert queue.add(n)
        assert queue.poll() == n
    assert queue.count() == 0
    assert queue.is_empty()


def test_never_full_spuriously(runtime):
    """As many producers as places, one message each: all are taken."""
    for _ in range(50):
        queue = runtime.BoundedNodeQueue(3)
        answers = []
        run_threads(*[lambda q=queue, a=answers: a.append(q.add(1))] * 3)
        assert answers == [True, True, True]


def test_never_over_capacity(runtime):
    """One producer more than places: exactly one is refused."""
    for _ in range(50):
        queue = runtime.BoundedNodeQueue(3)
        answers = []
        run_threads(*[lambda q=queue, a=answers: a.append(q.add(1))] * 4)
        assert sorted(answers) == [False, True, True, True]
        assert queue.count() == 3


@pytest.mark.parametrize("capacity", [1, 3, 1000])
def test_fifo_per_producer(runtime, capacity):
    """FIFO per producer; many producers, one consumer; nothing lost, nothing twice."""
    queue = runtime.BoundedNodeQueue(capacity)
    each = 2000
    received = []

    def producer(number):
        end = time.monotonic() + DEADLINE
        for n in range(each):
            while not queue.add((number, n)):
                assert time.monotonic() < end
                time.sleep(0)

    def consumer():
        end = time.monotonic() + DEADLINE
        while len(received) < 3 * each:
            item = queue.poll()
            if item is None:
                assert time.monotonic() < end
                time.sleep(0)
            else:
                received.append(item)

    run_threads(*[lambda n=n: producer(n) for n in range(3)], consumer)
    for number in range(3):
        assert [n for p, n in received if p == number] == list(range(each))
    assert queue.is_empty()


def test_messages_are_visible_to_the_garbage_collector(runtime):
    """Messages inside are visible to the garbage collector."""
    node = Node()
    node.queue = runtime.BoundedNodeQueue(2)
    node.queue.add(node)
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is None


def test_a_peeked_message_is_visible_too(runtime):
    """So is the one that the consumer has peeked."""
    node = Node()
    node.queue = runtime.BoundedNodeQueue(2)
    node.queue.add(node)
    node.queue.peek()
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is None


def test_polled_messages_are_let_go(runtime):
    """A message that was taken out is not kept."""
    queue = runtime.BoundedNodeQueue(3)
    nodes = [Node() for _ in range(3)]
    gone = [weakref.ref(node) for node in nodes]
    for node in nodes:
        queue.add(node)
    del nodes, node
    queue.peek()
    for _ in range(3):
        queue.poll()
    gc.collect()
    assert [ref() for ref in gone] == [None, None, None]


def test_messages_die_with_their_queue(runtime):
    """A queue that is dropped lets its messages go."""
    queue = runtime.BoundedNodeQueue(3)
    node = Node()
    gone = weakref.ref(node)
    queue.add(node)
    del node
    assert gone() is not None
    del queue
    gc.collect()
    assert gone() is None


def test_poll_during_concurrent_adds_sees_each_once(runtime):
    """A consumer that only polls what it peeked never loses a message to a racing producer."""
    queue = runtime.BoundedNodeQueue(2)
    done = threading.Event()
    seen = []

    def producer():
        for n in range(5000):
            while not queue.add(n):
                time.sleep(0)
        done.set()

    def consumer():
        while not (done.is_set() and queue.is_empty()):
            head = queue.peek()
            if head is None:
                time.sleep(0)
                continue
            assert queue.poll() == head
            seen.append(head)

    run_threads(producer, consumer)
    assert seen == list(range(5000))


def test_repr(runtime):
    """The queue says how full it is."""
    queue = runtime.BoundedNodeQueue(3)
    queue.add(1)
    assert repr(queue) == "<BoundedNodeQueue 1 of 3>"
