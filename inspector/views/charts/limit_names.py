"""The names of horizontal lines of a chart, each on its own line, on a plate that nothing is drawn through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QGraphicsObject, QStyleOptionGraphicsItem, QWidget

_PADDING = 4.0
"""Pixels between a name and the edge of its plate, left and right."""
_GAP = 8.0
"""Pixels that plates keep from each other and from what stands in the way."""


@dataclass(frozen=True, slots=True)
class LineName:
    """The name of a horizontal line.

    Attributes:
        value: where the line lies, in the chart's own unit.
        text, colour: what is written, and in what colour.
    """

    value: float
    text: str
    colour: QColor


def places_of(
    heights: Sequence[float], widths: Sequence[float], plate_height: float, room: QRectF, in_the_way: Sequence[float]
) -> dict[int, QRectF]:
    """The plates of names whose lines lie at some heights, all in pixels; a name without room is left out.

    Each plate is centred on its own line, moved only as far as the room's edge asks for. They begin at the left and
    stand behind each other where their lines are too close for one above the other. The first names choose first.

    Args:
        in_the_way: vertical lines; a plate lies on one only when there is no place between them.
    """
    found: dict[int, QRectF] = {}
    for number, (middle, width) in enumerate(zip(heights, widths, strict=True)):
        if not room.top() <= middle <= room.bottom():
            continue
        top = min(max(middle - plate_height / 2, room.top()), room.bottom() - plate_height)
        beginnings = [room.left(), *(plate.right() for plate in found.values()), *in_the_way]
        tried = [QRectF(x + _GAP, top, width, plate_height) for x in sorted(beginnings)]
        free = [
            plate
            for plate in tried
            if plate.left() >= room.left()
            and plate.right() <= room.right()
            and not any(plate.adjusted(-_GAP + 1, 0, _GAP - 1, 0).intersects(other) for other in found.values())
        ]
        clear = [plate for plate in free if not any(plate.left() <= x <= plate.right() for x in in_the_way)]
        if clear or free:
            found[number] = (clear or free)[0]
    return found


class LimitNames(QGraphicsObject):
    """Draws names over a chart, in the pixels of its view box: `place_of` says at which height a value lies there."""

    def __init__(self, place_of: Callable[[float], float], room: Callable[[], QRectF]) -> None:
        super().__init__()
        self._place_of = place_of
        self._room = room
        self._names: Sequence[LineName] = ()
        self._in_the_way: Sequence[float] = ()
        self._font = QFont()
        self._ground = QColor()

    def set_names(self, names: Sequence[LineName], font: QFont, ground: QColor) -> None:
        """Show some names, the most important first, on plates in the colour of the chart's ground."""
        self._names, self._font, self._ground = list(names), font, ground
        self.refresh()

    def set_in_the_way(self, places: Sequence[float]) -> None:
        """Vertical lines, in pixels, that the names stand beside where they can."""
        self._in_the_way = list(places)
        self.refresh()

    def refresh(self) -> None:
        """Draw again after a change of the chart's range or size."""
        self.prepareGeometryChange()
        self.update()

    def plates(self) -> dict[str, QRectF]:
        """Where each name that has room stands, in pixels of the view box."""
        metrics = QFontMetricsF(self._font)
        found = places_of(
            [self._place_of(name.value) for name in self._names],
            [metrics.horizontalAdvance(name.text) + 2 * _PADDING for name in self._names],
            metrics.height(),
            self._room(),
            self._in_the_way,
        )
        return {self._names[number].text: plate for number, plate in found.items()}

    def boundingRect(self) -> QRectF:
        """All of the view box."""
        return self._room()

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Draw the plates with their names."""
        plates = self.plates()
        painter.setFont(self._font)
        for name in self._names:
            plate = plates.get(name.text)
            if plate is None:
                continue
            painter.fillRect(plate, self._ground)
            painter.setPen(QPen(name.colour))
            painter.drawText(plate, int(Qt.AlignmentFlag.AlignCenter), name.text)
