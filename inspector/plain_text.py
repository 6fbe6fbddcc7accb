"""Session text in places where Qt guesses whether it is markup: tool tips have no switch to plain text."""

from __future__ import annotations

from PySide6.QtGui import Qt

_JOINT = "\u200b"


def plain_tip(text: str) -> str:
    """The text for a tool tip, never taken for HTML: a zero-width space breaks the first tag or entity.

    A tool tip that is taken for HTML would load the images it names (qt.md §2d).
    """
    if not Qt.mightBeRichText(text):
        return text
    return text.replace("<", f"<{_JOINT}").replace("&", f"&{_JOINT}")
