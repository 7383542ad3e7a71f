"""What a key costs in memory."""

import pytest
from support import script_output

MEASURE = """
import os, sys
import fastactor

def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def processor(message, cell):
    pass

capacity, count = {capacity}, 200_000
system = fastactor.ActorSystem(threads=1, capacity=capacity)
for i in range(100):
    system.stop(system.cell(f"warm-{{i}}", processor).path)
before = rss()
for i in range(count):
    system.cell(f"key-{{i}}", processor)
print((rss() - before) / count)
"""


@pytest.mark.native_only
def test_an_idle_key_takes_400_bytes(runtime):
    """200,000 idle cells take at most 400 bytes each, path and registry included, whatever the capacity."""
    small, large = (float(script_output("native", MEASURE.format(capacity=c))) for c in (1, 1000))
    assert large <= 400
    assert large == pytest.approx(small, rel=0.05)


def test_capacity_is_not_allocated(runtime):
    """Linked nodes: an empty mailbox of a million places costs nothing more than one of one."""
    queues = [runtime.BoundedNodeQueue(2**30) for _ in range(1000)]
    assert all(queue.add(1) for queue in queues)
    assert sum(map(len, queues)) == 1000
