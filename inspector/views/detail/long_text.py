"""A plain-text view for any length: it lays out only the rows on screen (qt.md 2d)."""

from __future__ import annotations

import re
from collections import deque

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QAction,
    QColor,
    QContextMenuEvent,
    QFontDatabase,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QAbstractScrollArea, QMenu, QWidget

from inspector.rendering.line_index import LineIndex
from inspector.rendering.tones import colours_for
from inspector.rendering.visible_text import for_qt, visible

_FIND_SLICE = 2_000_000
_SPOKEN = 500
_MINIMUM_COLUMNS = 20


class LongTextView(QAbstractScrollArea):
    """Read-only text of any size with selection, copy and find; long lines wrap at the window's width.

    Offsets are characters of the text. Control characters are drawn as signs and copied as they are.
    """

    found = Signal(object)  # (start, end), or None when the text was not found

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._index = LineIndex("", 80)
        self._caret = 0
        self._anchor = 0
        self._numbers = False
        self._search: tuple[re.Pattern[str], int, int, bool] | None = None
        self._search_timer = QTimer(self)
        self._search_timer.setInterval(0)
        self._search_timer.timeout.connect(self._search_slice)
        self._drag_timer = QTimer(self)
        self._drag_timer.setInterval(40)
        self._drag_timer.timeout.connect(self._drag_scroll)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.verticalScrollBar().valueChanged.connect(self._measure)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
        self.setAccessibleName("Text")

    # Content --------------------------------------------------------------------------------------------------

    def set_text(self, text: str, line_numbers: bool = False) -> None:
        """Show a text from its start."""
        self._stop_search()
        self._text = text
        self._numbers = line_numbers
        self._caret = self._anchor = 0
        self._index = LineIndex(text, self._columns())
        self._update_bars()
        self.verticalScrollBar().setValue(0)
        self._measure()
        self.viewport().update()
        self._announce()

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text

    @property
    def row_count(self) -> int:
        """Rows at the present width."""
        return self._index.row_count

    @property
    def line_count(self) -> int:
        """Lines of the text."""
        return self._index.line_count

    def selected_text(self) -> str:
        """The selected characters, unchanged."""
        start, end = self._selection()
        return self._text[start:end]

    def select(self, start: int, end: int) -> None:
        """Select from `start` to `end` and scroll there."""
        self._anchor = max(0, min(start, len(self._text)))
        self._move(max(0, min(end, len(self._text))), keep=True)

    def select_all(self) -> None:
        """Select the whole text without scrolling."""
        self._anchor, self._caret = 0, len(self._text)
        self.viewport().update()

    def copy(self) -> None:
        """Put the selection on the clipboard; lone surrogates become replacement characters."""
        if self._anchor != self._caret:
            QGuiApplication.clipboard().setText(for_qt(self.selected_text()))

    # Find -----------------------------------------------------------------------------------------------------

    def find_text(self, needle: str, backward: bool = False) -> None:
        """Look for a text from the selection on, without regard to case, wrapping around; `found` tells the place.

        The search runs in slices, so that a text of 100 MB does not block the window.
        """
        self._stop_search()
        if not needle:
            self.found.emit(None)
            return
        start, end = self._selection()
        pattern = re.compile(re.escape(needle), re.IGNORECASE)
        self._needle_length = len(needle)
        origin = start if backward else end
        self._search = (pattern, origin, 0, backward)
        self._search_timer.start()

    def _stop_search(self) -> None:
        self._search_timer.stop()
        self._search = None

    def _search_slice(self) -> None:
        """Search one slice; the slices together cover the text once, starting at the selection."""
        if self._search is None:
            self._search_timer.stop()
            return
        pattern, origin, done, backward = self._search
        total = len(self._text)
        size = min(_FIND_SLICE, total - done)
        if size <= 0:
            self._stop_search()
            self.found.emit(None)
            return
        first, last = _slice_bounds(origin, done, size, total, backward)
        overlap = self._needle_length - 1
        # A hit may reach beyond the slice; casefolding never makes it longer than a few characters more.
        hit: re.Match[str] | None = None
        if backward:
            hits = deque(pattern.finditer(self._text, first, min(last + overlap, total)), maxlen=1)
            hit = hits[0] if hits else None
        else:
            hit = pattern.search(self._text, first, min(last + overlap, total))
        if hit is None:
            self._search = (pattern, origin, done + (last - first), backward)
            return
        self._stop_search()
        self.select(hit.start(), hit.end())
        self.found.emit((hit.start(), hit.end()))

    # Geometry -------------------------------------------------------------------------------------------------

    def _metrics(self) -> QFontMetricsF:
        return QFontMetricsF(self.font())

    def _row_height(self) -> float:
        return max(self._metrics().lineSpacing(), 1.0)

    def _margin(self) -> float:
        """Width left of the text: a gap, and the line numbers when they are shown."""
        character = self._metrics().horizontalAdvance("0")
        return character * (len(str(self._index.line_count)) + 1.5) if self._numbers else character * 0.6

    def _columns(self) -> int:
        character = max(self._metrics().horizontalAdvance("0"), 1.0)
        return max(int((self.viewport().width() - self._margin()) / character), _MINIMUM_COLUMNS)

    def _page(self) -> int:
        return max(int(self.viewport().height() / self._row_height()), 1)

    def _update_bars(self) -> None:
        bar = self.verticalScrollBar()
        bar.setPageStep(self._page())
        bar.setRange(0, max(self._index.row_count - self._page(), 0))

    def _measure(self) -> None:
        """Let the view scroll sideways when a row on screen is wider than it: tabs, wide characters."""
        first = self.verticalScrollBar().value()
        widest = 0.0
        for row in range(first, min(first + self._page() + 1, self._index.row_count)):
            start, end = self._index.span(row)
            if not (self._text[start:end].isascii() and "\t" not in self._text[start:end]):
                layout = self._layout(start, end)
                widest = max(widest, layout.lineAt(0).naturalTextWidth())
        bar = self.horizontalScrollBar()
        bar.setPageStep(self.viewport().width())
        bar.setSingleStep(int(self._metrics().horizontalAdvance("0") * 4))
        bar.setRange(0, max(int(widest + self._margin() * 1.2) - self.viewport().width(), 0))

    def _left(self) -> float:
        """Where the text begins, in points of the viewport."""
        return self._margin() - self.horizontalScrollBar().value()

    def _rewrap(self) -> None:
        """Wrap at the new width and keep the first visible character at the top."""
        top, _ = self._index.span(min(self.verticalScrollBar().value(), self._index.row_count - 1))
        self._index.wrap(self._columns())
        self._update_bars()
        self.verticalScrollBar().setValue(self._index.row_of(top))
        self._measure()
        self.viewport().update()

    def _layout(self, start: int, end: int) -> QTextLayout:
        layout = QTextLayout(visible(self._text[start:end]), self.font())
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        option.setTabStopDistance(self._metrics().horizontalAdvance("0") * 8)
        layout.setTextOption(option)
        layout.setCacheEnabled(False)
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        return layout

    def _offset_at(self, point: QPointF) -> int:
        row = self.verticalScrollBar().value() + int(point.y() // self._row_height())
        row = max(0, min(row, self._index.row_count - 1))
        start, end = self._index.span(row)
        layout = self._layout(start, end)  # a QTextLine does not keep its layout alive
        units = layout.lineAt(0).xToCursor(point.x() - self._left())
        return start + _characters(self._text[start:end], units)

    # Painting -------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the rows on screen; the cost does not depend on the length of the text."""
        painter = QPainter(self.viewport())
        height, margin, left = self._row_height(), self._margin(), self._left()
        palette = self.palette()
        text_colour = palette.color(QPalette.ColorRole.Text)
        muted = colours_for(palette).muted
        first = self.verticalScrollBar().value()
        count = int(self.viewport().height() / height) + 2
        selected = self._selection()
        painter.setFont(self.font())
        for position, row in enumerate(range(first, min(first + count, self._index.row_count))):
            start, end = self._index.span(row)
            top = position * height
            layout = self._layout(start, end)
            formats = self._selection_formats(start, end, selected)
            painter.setPen(QPen(text_colour))
            layout.draw(painter, QPointF(left, top), formats)
            if self.hasFocus() and self._index.row_of(self._caret) == row:
                layout.drawCursor(painter, QPointF(left, top), _units(self._text[start : self._caret]), 1)
            if self._numbers:
                self._paint_number(painter, row, top, margin, muted)

    def _paint_number(self, painter: QPainter, row: int, top: float, margin: float, colour: QColor) -> None:
        line = self._index.starts_line(row)
        painter.setPen(QPen(colour))
        character = self._metrics().horizontalAdvance("0")
        text = str(line + 1) if line >= 0 else "↪"
        # The numbers stay when the text is scrolled sideways.
        painter.fillRect(QRectF(0, top, margin - character / 2, self._row_height()), self.palette().base())
        x = margin - character - self._metrics().horizontalAdvance(text)
        painter.drawText(QPointF(x, top + self._metrics().ascent()), text)

    def _selection_formats(self, start: int, end: int, selected: tuple[int, int]) -> list[QTextLayout.FormatRange]:
        first, last = max(start, selected[0]), min(end, selected[1])
        if first >= last:
            return []
        palette = self.palette()
        span = QTextLayout.FormatRange()
        span.start = _units(self._text[start:first])
        span.length = _units(self._text[first:last])
        form = QTextCharFormat()
        form.setBackground(palette.color(QPalette.ColorRole.Highlight))
        form.setForeground(palette.color(QPalette.ColorRole.HighlightedText))
        span.format = form
        return [span]

    # Input ----------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap at the new width."""
        super().resizeEvent(event)
        self._rewrap()

    def changeEvent(self, event: QEvent) -> None:
        """Wrap again with a new font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._rewrap()

    def sizeHint(self) -> QSize:
        """Eighty columns of twenty-four rows."""
        return QSize(int(self._metrics().horizontalAdvance("0") * 82), int(self._row_height() * 24))

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Repaint: rows are drawn from the scroll bar's value."""
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start a selection, or extend it with Shift."""
        if event.button() == Qt.MouseButton.LeftButton:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._move(self._offset_at(event.position()), keep=shift)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Extend the selection; beyond the edge the text scrolls."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._drag_point = event.position()
            inside = self.viewport().rect().contains(event.position().toPoint())
            if inside:
                self._drag_timer.stop()
                self._caret = self._offset_at(event.position())
                self.viewport().update()
            elif not self._drag_timer.isActive():
                self._drag_timer.start()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End the selection."""
        self._drag_timer.stop()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Select the word, at most one row of it."""
        offset = self._offset_at(event.position())
        start, end = self._index.span(self._index.row_of(offset))
        row = self._text[start:end]
        for match in re.finditer(r"\w+|\W", row):
            if match.start() <= offset - start < match.end():
                self.select(start + match.start(), start + match.end())
                return

    def _drag_scroll(self) -> None:
        below = self._drag_point.y() > self.viewport().height()
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + (3 if below else -3))
        self._caret = self._offset_at(QPointF(self._drag_point.x(), self.viewport().height() - 1 if below else 0))
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, select and copy as in any text field."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        else:
            target = self._target(event)
            if target is None:
                super().keyPressEvent(event)
                return
            self._move(target, keep=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        event.accept()

    def _target(self, event: QKeyEvent) -> int | None:
        """Where a movement key takes the caret; None for other keys."""
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        row = self._index.row_of(self._caret)
        start = self._index.span(row)[0]
        match event.key():
            case Qt.Key.Key_Left:
                return max(self._caret - 1, 0)
            case Qt.Key.Key_Right:
                return min(self._caret + 1, len(self._text))
            case Qt.Key.Key_Up:
                return self._same_column(row - 1)
            case Qt.Key.Key_Down:
                return self._same_column(row + 1)
            case Qt.Key.Key_PageUp:
                return self._same_column(row - self._page())
            case Qt.Key.Key_PageDown:
                return self._same_column(row + self._page())
            case Qt.Key.Key_Home:
                return 0 if control else start
            case Qt.Key.Key_End:
                return len(self._text) if control else self._index.last_offset(row)
            case _:
                return None

    def _same_column(self, row: int) -> int:
        if row < 0:
            return 0
        if row >= self._index.row_count:
            return len(self._text)
        column = self._caret - self._index.span(self._index.row_of(self._caret))[0]
        return min(self._index.span(row)[0] + column, self._index.last_offset(row))

    def _selection(self) -> tuple[int, int]:
        return min(self._anchor, self._caret), max(self._anchor, self._caret)

    def _move(self, offset: int, keep: bool) -> None:
        """Put the caret at an offset and scroll it into view; `keep` extends the selection."""
        self._caret = offset
        if not keep:
            self._anchor = offset
        row, bar = self._index.row_of(offset), self.verticalScrollBar()
        if row < bar.value():
            bar.setValue(row)
        elif row >= bar.value() + self._page():
            bar.setValue(row - self._page() + 1)
        self.viewport().update()
        self._announce()

    def _announce(self) -> None:
        """Tell a screen reader the line the caret is in."""
        start, end = self._index.span(self._index.row_of(self._caret))
        line = self._index.line_of(self._caret) + 1
        words = visible(self._text[start : min(end, start + _SPOKEN)])
        self.setAccessibleDescription(f"line {line:,} of {self._index.line_count:,}: {words}")
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy and select all."""
        menu = QMenu(self)
        copy = QAction("Copy", menu)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setEnabled(self._anchor != self._caret)
        copy.triggered.connect(self.copy)
        everything = QAction("Select all", menu)
        everything.setShortcut(QKeySequence.StandardKey.SelectAll)
        everything.triggered.connect(self.select_all)
        menu.addActions([copy, everything])
        menu.exec(event.globalPos() if not event.globalPos().isNull() else self.mapToGlobal(QPoint(10, 10)))
        menu.deleteLater()

    _needle_length = 0
    _drag_point = QPointF()


def _slice_bounds(origin: int, done: int, size: int, total: int, backward: bool) -> tuple[int, int]:
    """The next slice of a search that starts at `origin`, goes one way and wraps once."""
    if backward:
        last = origin - done if done < origin else total - (done - origin)
        low = 0 if done < origin else origin
        return max(last - size, low), last
    first = origin + done if origin + done < total else origin + done - total
    high = total if origin + done < total else origin
    return first, min(first + size, high)


def _units(text: str) -> int:
    """Length in UTF-16 units of what is drawn for a text."""
    return len(text) if text.isascii() else len(visible(text).encode("utf-16-le", "replace")) // 2


def _characters(text: str, units: int) -> int:
    """How many characters of the text its first `units` UTF-16 units are."""
    if text.isascii():
        return min(units, len(text))
    count = 0
    for character in text:
        width = 2 if ord(character) > 0xFFFF else 1
        if units < width:
            break
        units -= width
        count += 1
    return count
