"""What the library's cells draw beside text: the context as a line, findings as badges, a mark for live sessions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPalette, QPen, QPolygonF
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from inspector.models.library import Role
from inspector.theme import Theme

Index = QModelIndex | QPersistentModelIndex


def soften_selection(view: QAbstractItemView, theme: Theme) -> None:
    """Give a view a selection colour on which text, lines and badges keep their own colours."""
    palette = view.palette()
    for group, name in ((QPalette.ColorGroup.Active, "selected"), (QPalette.ColorGroup.Inactive, "selected_idle")):
        palette.setColor(group, QPalette.ColorRole.Highlight, theme.named(name))
        palette.setColor(group, QPalette.ColorRole.HighlightedText, theme.named("text"))
    view.setPalette(palette)


_BADGES = (("✖", "error"), ("▲", "warning"), ("ℹ", "muted"))
"""Glyph and colour of errors, warnings and infos: the shape tells them apart too."""


class SparkDelegate(QStyledItemDelegate):
    """The number at the right, the context over the session as a line at the left."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Text as always, then the line in what is left of the cell."""
        super().paint(painter, option, index)
        series = index.data(Role.SERIES)
        text = str(index.data(Qt.ItemDataRole.DisplayRole) or "")
        room = option.rect.adjusted(6, 4, -option.fontMetrics.horizontalAdvance(text) - 16, -4)
        if not series or room.width() < 24:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.named("accent"), 1.2))
        painter.drawPolyline(line_of(series, QRectF(room)))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Room for the line beside the number."""
        hint = super().sizeHint(option, index)
        return QSize(hint.width() + option.fontMetrics.averageCharWidth() * 14, hint.height())


def line_of(series: Sequence[int], room: QRectF) -> QPolygonF:
    """The points of a series inside a rectangle, from zero at its bottom to the largest value at its top."""
    top = max(*series, 1)
    step = room.width() / max(1, len(series) - 1)
    points = [
        QPointF(room.left() + number * step, room.bottom() - value / top * room.height())
        for number, value in enumerate(series)
    ]
    return QPolygonF(points if len(points) > 1 else [*points, QPointF(room.right(), points[0].y())])


class FindingsDelegate(QStyledItemDelegate):
    """Counts of findings as badges; "?" while the doctor has not looked, "none" when it found nothing."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """One badge for each severity that occurs."""
        findings = index.data(Role.FINDINGS)
        if not findings or not any(findings):
            super().paint(painter, option, index)
            return
        widget = option.widget
        if widget is not None:
            widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)
        painter.save()
        left = option.rect.left() + 6
        for count, (glyph, colour) in zip(findings, _BADGES, strict=True):
            if count:
                text = f"{glyph} {count:,}"
                width = option.fontMetrics.horizontalAdvance(text)
                painter.setPen(self._theme.named(colour))
                place = QRect(left, option.rect.top(), width, option.rect.height())
                painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
                left += width + option.fontMetrics.averageCharWidth() * 2
        painter.restore()


class TitleDelegate(QStyledItemDelegate):
    """The title, with a mark in front of a session that is being written now."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        """Put the mark into the text, so that it is read aloud and copied too."""
        super().initStyleOption(option, index)
        if index.data(Role.LIVE):
            option.text = f"● {option.text}"
            option.font.setBold(True)
