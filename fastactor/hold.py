"""Hold: one suspension of one cell, given back exactly once."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._pure import ActorCell


class Hold:
    """A suspension that only its own `release` ends, so a late timer cannot resume somebody else's.

    `release` may be called from any thread and any number of times; the first call counts. A hold is
    a context manager. Dropping it without `release` leaves the cell suspended.
    """

    __slots__ = ("__weakref__", "_cell", "_live")

    def __init__(self, cell: ActorCell) -> None:
        cell.suspend()
        self._cell = cell
        # list.pop is atomic on every build: whoever gets the one element does the resume
        self._live = [True]

    @property
    def cell(self) -> ActorCell:
        return self._cell

    @property
    def released(self) -> bool:
        return not self._live

    def release(self) -> bool:
        """End this suspension; True when this call did it, False when an earlier one had."""
        try:
            self._live.pop()
        except IndexError:
            return False
        self._cell.resume()
        return True

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "released" if self.released else "held"
        return f"<Hold {state} on {self._cell.path!r}>"
