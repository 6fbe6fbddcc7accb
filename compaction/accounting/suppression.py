from __future__ import annotations

from collections.abc import Callable


class WarningSuppression:
    """Hides the "context left" warning after a compaction (compaction.md 1): a tiny observable, no UI import.

    Set after a successful compaction, because no accurate count exists until the next response; cleared at the start
    of the next compaction attempt.
    """

    def __init__(self) -> None:
        self._suppressed = False
        self._observers: list[Callable[[bool], None]] = []

    @property
    def suppressed(self) -> bool:
        """Whether the warning is hidden now."""
        return self._suppressed

    def suppress(self) -> None:
        """A compaction succeeded."""
        self._set(True)

    def clear(self) -> None:
        """A compaction attempt starts, or the next response brought an accurate count."""
        self._set(False)

    def subscribe(self, observer: Callable[[bool], None]) -> Callable[[], None]:
        """Call `observer(suppressed)` on each change; the function returned ends it (twice is fine)."""
        self._observers.append(observer)

        def unsubscribe() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return unsubscribe

    def _set(self, value: bool) -> None:
        if value != self._suppressed:
            self._suppressed = value
            for observer in tuple(self._observers):
                observer(value)
