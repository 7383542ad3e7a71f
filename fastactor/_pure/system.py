"""The hot half of a system. You are here: dispatch, by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .._api import Processor

if TYPE_CHECKING:
    from .cell import ActorCell
    from .executor import PriorityExecutor


class SystemCore:
    """What of an ActorSystem is on the way of each message: the registry and `dispatch`."""

    def __init__(self) -> None:
        self._cells: dict[Any, ActorCell] = {}
        self._state = 0  # 0 open, 1 draining (only its own processors may dispatch), 2 closed
        self._executor: PriorityExecutor

    if TYPE_CHECKING:  # the layer's half, as seen from here
        name: str

        def _admit(self) -> None: ...
        def _create(self, path: Any, processor: Processor | None) -> ActorCell: ...
        def _revive(self, cell: ActorCell) -> ActorCell: ...
        def _stop(self, cell: ActorCell, reason: str = ...) -> bool: ...
        def _dropped(self, cell: ActorCell, message: Any, reason: str) -> None: ...
        def _failed(self, cell: ActorCell, message: Any, error: BaseException, failures: int) -> float: ...

    def dispatch(
        self, path: Any, message: Any, processor: Processor | None = None, *, timeout: float | None = None
    ) -> bool:
        """Create or get the cell of `path` and dispatch the message to it.

        The first processor of a path wins. Without a processor the cell must exist (LookupError).
        """
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        return cell.dispatch(message, timeout=timeout)

    def dispatch_many(self, path: Any, messages: Iterable[Any], processor: Processor | None = None) -> int:
        """Dispatch each message in order; how many were accepted (also in MailboxFull.accepted)."""
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        return cell.dispatch_many(messages)

    def get(self, path: Any) -> ActorCell | None:
        """The cell of `path`, or None."""
        return self._cells.get(path)

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, path: object) -> bool:
        return path in self._cells

    def __iter__(self) -> Iterator[ActorCell]:
        return iter(list(self._cells.values()))

    def _tally(self) -> int:
        """Messages queued in all registered cells."""
        return sum(map(len, self))
