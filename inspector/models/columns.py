"""What tables know of their columns: figures stand at the right, their titles above them."""

from __future__ import annotations

from PySide6.QtCore import Qt

_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


def is_figure(text: str) -> bool:
    """Whether a cell holds a figure, or what stands for one."""
    return text.lstrip("≈").replace(",", "").isdigit() or text in ("–", "unknown")


def alignment(figure: bool) -> int:
    """The side on which a column's cells and its title stand: figures right, texts left."""
    return _RIGHT if figure else _LEFT
