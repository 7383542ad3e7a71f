"""The only place that decides which runtime `fastactor` is.

FASTACTOR_PURE=1 takes the Python one. Otherwise the compiled one is taken; if it was installed and cannot be
imported, that is an error and not a silent slow-down. Only an installation that was made without it
(FASTACTOR_PURE=1 pip install ...) falls back by itself, unless FASTACTOR_NATIVE=1 forbids that too.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING


def _wants_native() -> bool:
    if os.environ.get("FASTACTOR_NATIVE", "") not in ("", "0"):
        return True
    if os.environ.get("FASTACTOR_PURE", "") not in ("", "0"):
        return False
    return importlib.util.find_spec("fastactor._native") is not None


if TYPE_CHECKING or not _wants_native():
    from ._pure import (
        ActorCell,
        ActorSystem,
        BoundedNodeQueue,
        PriorityExecutor,
        StatusWord,
        current_cell,
        implementation,
    )
else:
    from ._native import (
        ActorCell,
        ActorSystem,
        BoundedNodeQueue,
        PriorityExecutor,
        StatusWord,
        current_cell,
        implementation,
    )

__all__ = [
    "ActorCell",
    "ActorSystem",
    "BoundedNodeQueue",
    "PriorityExecutor",
    "StatusWord",
    "current_cell",
    "implementation",
]
