"""What "fair" means, measured: three situations under each policy, on one worker.

    python examples/fairness.py [seconds for each measurement]

1. Two keys always have work; the messages of one take 20 ms, those of the other 0.5 ms.
   Fair is half of the time for each.
2. Three keys have been busy for a while when a fourth, which was quiet, gets a long backlog.
   Fair is three quarters for the three.
3. Three keys always have work; a fourth gets one message every 10 ms.
   Fair is that it waits for about one turn (5 ms), not for everybody's.
"""

import statistics
import sys
import time

import fastactor

POLICIES = ("fifo", "total", "last-run", "fair")


def work_for(seconds, cell):
    """A processor's work that keeps its worker, and comes again."""
    time.sleep(seconds)
    cell.dispatch(seconds)


def used(*cells):
    return sum(cell.total for cell in cells)


def unequal_messages(policy, seconds):
    """The share of the key with short messages."""
    with fastactor.ActorSystem(policy, 1, policy=policy) as system:
        long, short = system.cell("long", work_for), system.cell("short", work_for)
        long.dispatch(0.02)
        short.dispatch(0.0005)
        time.sleep(seconds)
        share = used(short) / used(short, long)
        system.shutdown(drain=False)
    return share


def burst_of_a_quiet_key(policy, seconds):
    """The share of the three old keys while the fourth has its burst."""
    with fastactor.ActorSystem(policy, 1, policy=policy) as system:
        old = [system.cell(name, work_for) for name in "abc"]
        quiet = system.cell("quiet", work_for)
        quiet.dispatch(0.001)  # it is known, and idle from here on
        quiet.suspend()
        for cell in old:
            cell.dispatch(0.001)
        time.sleep(seconds)
        before, quiet_before = used(*old), used(quiet)
        quiet.resume()
        time.sleep(seconds / 4)
        old_used, quiet_used = used(*old) - before, used(quiet) - quiet_before
        system.shutdown(drain=False)
    return old_used / (old_used + quiet_used)


def one_message_now_and_then(policy, seconds):
    """Milliseconds that the messages of the quiet key wait: median and 95th percentile."""
    waits = []
    with fastactor.ActorSystem(policy, 1, policy=policy) as system:
        for name in "abc":
            system.dispatch(name, 0.001, work_for)
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            system.dispatch("quiet", now, lambda sent, cell: waits.append(time.perf_counter() - sent))
            time.sleep(0.01)
        system.shutdown(drain=False)
    waits.sort()
    return statistics.median(waits) * 1e3, waits[len(waits) * 95 // 100] * 1e3


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    print(f"fastactor, {fastactor.implementation} runtime: one worker, quota 5 ms\n")
    print(f"{'policy':10}{'short messages':>18}{'old keys in a burst':>22}{'quiet key waits (p50, p95)':>32}")
    print(f"{'(fair is)':10}{'50 %':>18}{'75 %':>22}{'about one turn, 5 ms':>32}")
    for policy in POLICIES:
        short = unequal_messages(policy, seconds)
        print(f"{policy:10}{short:>16.0%}", end="", flush=True)
        old = burst_of_a_quiet_key(policy, seconds)
        print(f"{old:>22.0%}", end="", flush=True)
        median, worst = one_message_now_and_then(policy, seconds)
        print(f"{median:>18.1f} ms {worst:>8.1f} ms", flush=True)


if __name__ == "__main__":
    main()
