"""Overflow: what becomes of a message that its mailbox did not take. You are here: dispatch -> mailbox.push.

Cold code of both runtimes: a cell calls `refused` only when its push has failed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ._api import OVERFLOWS, MailboxFull, SystemClosed
from .deadletters import OVERFLOW, STOPPED

if TYPE_CHECKING:
    from ._pure import ActorCell

# What a push answers; the numbers of csrc/fa_mailbox.h.
OK: Final = 0
FULL: Final = 1
CLOSED: Final = 2


def refused(cell: ActorCell, message: Any, outcome: int, timeout: float | None, accepted: int) -> bool:
    """Follow the cell's overflow policy for `message`; True when it is in the mailbox after all."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while outcome != OK:
        if outcome == CLOSED:
            return _to_closed_cell(cell, message, None if deadline is None else deadline - time.monotonic())
        match cell._overflow:
            case 0:  # "raise"
                raise MailboxFull(cell.path, cell.capacity, accepted)
            case 1:  # "block"
                _wait_for_room(cell, deadline, accepted)
            case 2:  # "drop-new"
                cell.system._dropped(cell, message, OVERFLOW)
                return False
            case _:  # "drop-oldest"
                evicted = cell._evict()
                if not evicted:
                    # The only message is in the processor's hands and can no longer be dropped.
                    cell.system._dropped(cell, message, OVERFLOW)
                    return False
                cell.system._dropped(cell, evicted[0], OVERFLOW)
        outcome = cell._push(message)
    return cell._wake()


def _to_closed_cell(cell: ActorCell, message: Any, left: float | None) -> bool:
    system = cell.system
    if cell._retired:
        # It was removed for idleness, or belongs to the parent of a fork: its path lives on.
        return system._revive(cell)._offer(message, None if left is None else max(0.0, left))
    if system._state:
        raise SystemClosed(system.name)
    system._dropped(cell, message, STOPPED)
    return False


def _wait_for_room(cell: ActorCell, deadline: float | None, accepted: int) -> None:
    if cell._runs_here():
        hint = "its own processor cannot wait for room, for only its own return makes room"
        raise MailboxFull(cell.path, cell.capacity, accepted, hint)
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise MailboxFull(cell.path, cell.capacity, accepted, "no room within the timeout")
    cell._wait_for_room(left)


assert OVERFLOWS == {"raise": 0, "block": 1, "drop-new": 2, "drop-oldest": 3}
