from __future__ import annotations

import threading
from dataclasses import dataclass, field

from compaction.errors import Cancelled


@dataclass(slots=True)
class Progress:
    """A counter that a worker writes and a view polls; `cancel()` makes the worker's next `check()` raise.

    Attributes:
        done, total: work so far and in all, in `unit`; total 0 means unknown.
        text: what is being done, for the person.
    """

    done: int = 0
    total: int = 0
    unit: str = ""
    text: str = ""
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Ask the worker to stop at its next `check()`."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def check(self) -> None:
        """Raise `Cancelled` when `cancel()` was called."""
        if self._cancelled.is_set():
            raise Cancelled
