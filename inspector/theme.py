"""Colours, icons and fonts: Fusion with a light and a dark palette of our own, following the system or chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, QTemporaryDir, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QStyleFactory

from compaction.resources import resource

Mode = Literal["system", "light", "dark"]
Role = Literal["text", "muted", "accent", "error", "warning", "ok", "on_accent"]

ICON_SIZES = (16, 20, 24, 32, 48, 64)

TOL_LIGHT = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00", "#DDDDDD")
"""Paul Tol's "light" scheme, in his order: told apart with every colour blindness (qt.md §2e)."""

GROUP_GLYPHS = "●■▲◆▼★⬟✚⬢"
"""One shape for each colour: colour is never the only channel."""


@dataclass(frozen=True, slots=True)
class Colours:
    """Semantic colours of one scheme, as #rrggbb. Text roles have at least 4.5:1 on `base` and `window`.

    Attributes:
        window, base, raised, border: surfaces: window chrome, content, cards and headers, hair lines.
        text, muted, accent, error, warning, ok: text roles.
        fill, on_accent: background of selected menu entries, buttons and text on it.
        selected, selected_idle, hover, partner: row backgrounds under normal `text`.
        removed, added, changed: diff backgrounds under normal `text`.
        code: background of code and raw text.
    """

    dark: bool
    window: str
    base: str
    raised: str
    border: str
    text: str
    muted: str
    accent: str
    error: str
    warning: str
    ok: str
    fill: str
    on_accent: str
    selected: str
    selected_idle: str
    hover: str
    partner: str
    removed: str
    added: str
    changed: str
    code: str


LIGHT = Colours(
    dark=False,
    window="#f3f4f7",
    base="#ffffff",
    raised="#fafbfc",
    border="#d3d8df",
    text="#1a1e24",
    muted="#586270",
    accent="#1d5bc4",
    error="#b3261e",
    warning="#855300",
    ok="#17713a",
    fill="#1d5bc4",
    on_accent="#ffffff",
    selected="#cfe0fb",
    selected_idle="#e1e6ee",
    hover="#eef2f8",
    partner="#fdf0cf",
    removed="#fde3e1",
    added="#dcf5e3",
    changed="#fdf1d2",
    code="#f5f6f8",
)
DARK = Colours(
    dark=True,
    window="#1d2026",
    base="#15181d",
    raised="#22262d",
    border="#383e48",
    text="#e3e7ed",
    muted="#9ca7b4",
    accent="#7fb2ff",
    error="#ff8f85",
    warning="#f2b956",
    ok="#63d48f",
    fill="#2a5db0",
    on_accent="#ffffff",
    selected="#233d65",
    selected_idle="#2f353f",
    hover="#20252d",
    partner="#45391a",
    removed="#4a2323",
    added="#1b3d29",
    changed="#42381b",
    code="#1a1d23",
)


def mix(over: str, under: str, share: float) -> str:
    """The opaque colour of `over` at `share` (0 to 1) on `under`."""
    a, b = QColor(over), QColor(under)
    return QColor(
        round(a.red() * share + b.red() * (1 - share)),
        round(a.green() * share + b.green() * (1 - share)),
        round(a.blue() * share + b.blue() * (1 - share)),
    ).name()


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio of two colours, 1 to 21."""
    lighter, darker = sorted((_luminance(QColor(first)), _luminance(QColor(second))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: QColor) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF())


def groove_colour(colours: Colours) -> str:
    """The part of a slider's groove that is not filled: at least 3:1 on `window`, paler than the filled part."""
    return mix(colours.muted, colours.window, 0.72)


class Theme(QObject):
    """The look of the application: `theme.colours`, `theme.icon(name)`, `theme.group_*(number)`.

    Signals:
        changed(): palette, colours and icons are others now; widgets with colours of their own repaint.
    """

    changed = Signal()

    def __init__(self, application: QApplication, mode: Mode = "system") -> None:
        super().__init__()
        self._application = application
        self._mode: Mode = mode
        self._icons: dict[tuple[str, str], QIcon] = {}
        self._pixmaps: dict[tuple[str, int, str, float], QPixmap] = {}
        self._colours: dict[str, QColor] = {}
        self._tints: dict[int, QColor] = {}
        self._folder = QTemporaryDir()
        self.colours = LIGHT
        application.setStyle(QStyleFactory.create("Fusion"))
        application.styleHints().colorSchemeChanged.connect(self._on_system_changed)
        self._apply()

    @property
    def mode(self) -> Mode:
        """What was chosen; `colours.dark` is what is shown."""
        return self._mode

    def set_mode(self, mode: Mode) -> None:
        """Choose light, dark or the system's scheme."""
        if mode != self._mode:
            self._mode = mode
            self._apply()

    @property
    def dark(self) -> bool:
        return self.colours.dark

    def colour(self, role: Role) -> QColor:
        """A text colour by role."""
        return self.named(role)

    def named(self, name: str) -> QColor:
        """A colour of `colours` by its name, made once for each theme: delegates ask for it in every cell."""
        found = self._colours.get(name)
        if found is None:
            found = self._colours[name] = QColor(getattr(self.colours, name))
        return found

    def group_colour(self, number: int) -> QColor:
        """The full colour of an API round, pair or column number: for bars, glyphs and chips."""
        return QColor(TOL_LIGHT[number % len(TOL_LIGHT)])

    def group_tint(self, number: int) -> QColor:
        """A background of that colour on which normal text keeps its contrast."""
        number %= len(TOL_LIGHT)
        found = self._tints.get(number)
        if found is None:
            found = QColor(mix(TOL_LIGHT[number], self.colours.base, 0.16 if self.dark else 0.17))
            self._tints[number] = found
        return found

    def chip(self, number: int) -> tuple[QColor, QColor]:
        """Background and text of a small label in a group's colour, contrast at least 4.5:1."""
        colour = TOL_LIGHT[number % len(TOL_LIGHT)]
        if self.dark:
            return QColor(mix(colour, "#1e1e1e", 0.4)), QColor("#ffffff")
        return QColor(colour), QColor("#101418")

    @staticmethod
    def group_glyph(number: int) -> str:
        """The shape that goes with the colour; colours repeat after nine, shapes after eighty-one."""
        return GROUP_GLYPHS[(number + number // len(TOL_LIGHT)) % len(GROUP_GLYPHS)]

    def icon(self, name: str, role: Role = "text") -> QIcon:
        """An SVG of resources/icons in a text colour, dimmed when disabled; an empty icon when there is none."""
        key = (name, role)
        if key not in self._icons:
            self._icons[key] = self._render(name, getattr(self.colours, role))
        return self._icons[key]

    def pixmap(self, name: str, size: int, role: Role = "text", ratio: float = 1.0) -> QPixmap:
        """One icon as a pixmap of `size` logical pixels, made once: delegates draw it in every row."""
        key = (name, size, role, ratio)
        found = self._pixmaps.get(key)
        if found is None:
            found = self._pixmaps[key] = self.icon(name, role).pixmap(QSize(size, size), ratio)
        return found

    @staticmethod
    def fixed_font() -> QFont:
        """The monospace font of code and raw text."""
        return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)

    def _on_system_changed(self) -> None:
        if self._mode == "system":
            self._apply()

    def _apply(self) -> None:
        scheme = self._application.styleHints().colorScheme()
        dark = self._mode == "dark" or (self._mode == "system" and scheme == Qt.ColorScheme.Dark)
        self.colours = DARK if dark else LIGHT
        for cache_of_scheme in (self._icons, self._pixmaps, self._colours, self._tints):
            cache_of_scheme.clear()
        self._application.setPalette(_palette(self.colours))
        self._application.setStyleSheet(_style_sheet(self.colours) + self._marks())
        self.changed.emit()

    def _marks(self) -> str:
        """Arrows and ticks of fields: a style sheet takes Fusion's away and wants files in the scheme's colour."""
        folder = Path(self._folder.path())
        urls = {}
        for name, colour in (
            ("down", self.colours.muted),
            ("right", self.colours.text),
            ("up", self.colours.muted),
            ("check", self.colours.on_accent),
        ):
            path = folder / f"{name}-{colour[1:]}.svg"
            path.write_text(_svg(name).replace("currentColor", colour), encoding="utf-8")
            urls[name] = path.as_posix()
        return _mark_sheet(self.colours, urls)

    def _render(self, name: str, colour: str) -> QIcon:
        source = _svg(name)
        icon = QIcon()
        if not source:
            return icon
        dimmed = mix(colour, self.colours.window, 0.42)
        for mode, tint in (
            (QIcon.Mode.Normal, colour),
            (QIcon.Mode.Active, colour),
            (QIcon.Mode.Selected, self.colours.on_accent),
            (QIcon.Mode.Disabled, dimmed),
        ):
            renderer = QSvgRenderer(QByteArray(source.replace("currentColor", tint).encode()))
            for size in ICON_SIZES:
                pixmap = QPixmap(size, size)
                pixmap.fill(Qt.GlobalColor.transparent)
                painter = QPainter(pixmap)
                renderer.render(painter, QRectF(0, 0, size, size))
                painter.end()
                icon.addPixmap(pixmap, mode)
        return icon


@cache
def _svg(name: str) -> str:
    try:
        return resource("icons", f"{name}.svg").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _palette(colours: Colours) -> QPalette:
    palette = QPalette()
    role = QPalette.ColorRole
    dimmed = QColor(mix(colours.text, colours.window, 0.45))
    for target, value in (
        (role.Window, colours.window),
        (role.WindowText, colours.text),
        (role.Base, colours.base),
        (role.AlternateBase, colours.raised),
        (role.Text, colours.text),
        (role.PlaceholderText, colours.muted),
        (role.Button, colours.raised),
        (role.ButtonText, colours.text),
        (role.BrightText, colours.error),
        (role.ToolTipBase, colours.raised),
        (role.ToolTipText, colours.text),
        (role.Highlight, colours.fill),
        (role.HighlightedText, colours.on_accent),
        (role.Accent, colours.fill),
        (role.Link, colours.accent),
        (role.LinkVisited, colours.accent),
        (role.Light, mix("#ffffff", colours.window, 0.08 if colours.dark else 0.8)),
        (role.Midlight, mix("#ffffff", colours.window, 0.05 if colours.dark else 0.5)),
        (role.Mid, colours.border),
        (role.Dark, mix("#000000", colours.window, 0.35)),
        (role.Shadow, mix("#000000", colours.window, 0.6)),
    ):
        palette.setColor(target, QColor(value))
    for target in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, target, dimmed)
    palette.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(colours.selected_idle))
    palette.setColor(QPalette.ColorGroup.Disabled, role.HighlightedText, dimmed)
    return palette


def _style_sheet(c: Colours) -> str:
    """Chrome only: content views are drawn by Fusion and their delegates. Sizes are in em-like font units (ex)."""
    return f"""
QMainWindow::separator {{ background: {c.window}; width: 5px; height: 5px; }}
QMainWindow::separator:hover {{ background: {c.accent}; }}
QSplitter::handle {{ background: {c.window}; }}
QSplitter::handle:hover {{ background: {c.accent}; }}
QMenuBar {{ background: {c.window}; border-bottom: 1px solid {c.border}; padding: 1px 4px; }}
QMenuBar::item {{ padding: 4px 9px; border-radius: 4px; background: transparent; }}
QMenuBar::item:selected {{ background: {c.selected}; color: {c.text}; }}
QMenu {{ background: {c.raised}; border: 1px solid {c.border}; padding: 4px; }}
QMenu::item {{ padding: 5px 26px 5px 10px; border-radius: 4px; }}
QMenu::icon {{ padding-left: 8px; }}
QMenu::item:selected {{ background: {c.fill}; color: {c.on_accent}; }}
QMenu::item:disabled {{ color: {mix(c.text, c.window, 0.45)}; background: transparent; }}
QMenu::separator {{ height: 1px; background: {c.border}; margin: 4px 6px; }}
QToolBar {{ background: {c.window}; border: 0; border-bottom: 1px solid {c.border}; padding: 3px 6px; spacing: 2px; }}
QToolBar::separator {{ background: {c.border}; width: 1px; margin: 5px 5px; }}
QToolButton {{ border: 1px solid transparent; border-radius: 5px; padding: 4px 6px; }}
QToolButton[framed="true"] {{ background: {c.raised}; border-color: {c.border}; }}
QToolButton:hover {{ background: {c.hover}; border-color: {c.border}; }}
QToolButton:pressed {{ background: {c.selected}; }}
QToolButton:checked {{ background: {c.selected}; border-color: {mix(c.accent, c.window, 0.5)}; }}
QToolButton:focus {{ border-color: {c.accent}; }}
QToolButton::menu-indicator {{ width: 0; image: none; }}
QToolButton#qt_toolbar_ext_button {{ padding: 0; background: {c.raised}; border-color: {c.border}; }}
QStatusBar {{ background: {c.window}; border-top: 1px solid {c.border}; }}
QStatusBar::item {{ border: 0; }}
QStatusBar QLabel {{ padding: 2px 6px; }}
QTabWidget::pane {{ border: 0; border-top: 1px solid {c.border}; }}
QTabBar {{ background: {c.window}; qproperty-drawBase: 0; outline: 0; }}
QTabBar::tab {{ background: transparent; color: {c.muted}; padding: 5px 12px; border: 1px solid transparent;
  border-bottom: 2px solid transparent; }}
QTabBar::tab:selected {{ color: {c.text}; border-bottom: 2px solid {c.accent}; }}
QTabBar::tab:hover:!selected {{ color: {c.text}; background: {c.hover}; }}
QTabBar QToolButton {{ background: {c.raised}; border: 1px solid {c.border}; padding: 0; }}
QTabBar QToolButton#close_tab {{ background: transparent; border: 0; padding: 1px; border-radius: 4px; }}
QTabBar QToolButton#close_tab:hover {{ background: {c.selected}; }}
QTabBar::tab:focus {{ color: {c.accent}; border: 1px solid {c.accent}; border-bottom: 2px solid {c.accent}; }}
QDockWidget {{ color: {c.text}; }}
QHeaderView {{ background: {c.raised}; }}
QHeaderView::section {{ background: {c.raised}; color: {c.muted}; border: 0; border-bottom: 1px solid {c.border};
  border-right: 1px solid {c.border}; padding: 4px 7px; }}
QHeaderView::section:vertical {{ padding: 1px 7px; }}
QHeaderView::section:last {{ border-right: 0; }}
QTableView {{ gridline-color: {c.border}; }}
QTableCornerButton::section {{ background: {c.raised}; border: 0; border-bottom: 1px solid {c.border};
  border-right: 1px solid {c.border}; }}
QFrame[frameShape="4"] {{ background: {c.border}; border: 0; max-height: 1px; }}
QLineEdit, QComboBox, QSpinBox, QDoubleSpinBox {{ background: {c.base}; border: 1px solid {c.border};
  border-radius: 5px; padding: 4px 7px; selection-background-color: {c.fill};
  selection-color: {c.on_accent}; }}
QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QDoubleSpinBox:focus {{ border: 1px solid {c.accent}; }}
QPlainTextEdit[framed="true"] {{ background: {c.base}; border: 1px solid {c.border}; border-radius: 5px;
  padding: 1px 3px; selection-background-color: {c.fill}; selection-color: {c.on_accent}; }}
QPlainTextEdit[framed="true"]:focus {{ border-color: {c.accent}; }}
QComboBox::drop-down {{ border: 0; width: 18px; }}
QPushButton {{ background: {c.raised}; border: 1px solid {c.border}; border-radius: 5px; padding: 5px 14px; }}
QPushButton:hover {{ background: {c.hover}; border-color: {mix(c.muted, c.border, 0.5)}; }}
QPushButton:pressed {{ background: {c.selected}; }}
QPushButton:focus {{ border: 1px solid {c.accent}; }}
QPushButton:default {{ background: {c.fill}; color: {c.on_accent}; border-color: {c.fill}; }}
QPushButton:default:focus {{ border: 2px solid {c.text}; padding: 4px 13px; }}
QPushButton:disabled {{ color: {mix(c.text, c.window, 0.45)}; background: {c.window}; border-color: {c.border}; }}
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QToolTip {{ background: {c.raised}; color: {c.text}; border: 1px solid {c.border}; padding: 4px 6px; }}
QScrollBar:vertical {{ background: transparent; width: 12px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 0; }}
QScrollBar::handle {{ background: {mix(c.muted, c.window, 0.42)}; border-radius: 4px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 28px; }}
QScrollBar::handle:horizontal {{ min-width: 28px; }}
QScrollBar::handle:hover {{ background: {mix(c.muted, c.window, 0.75)}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QAbstractScrollArea {{ border: 0; }}
QAbstractScrollArea::corner {{ background: transparent; border: 0; }}
QListView {{ outline: 0; }}
QSlider::groove:horizontal {{ background: {groove_colour(c)}; border-radius: 2px; height: 4px; }}
QSlider::sub-page:horizontal {{ background: {c.accent}; border-radius: 2px; }}
QSlider::handle:horizontal {{ background: {c.base}; border: 2px solid {c.accent}; border-radius: 7px; width: 10px;
  height: 10px; margin: -5px 0; }}
QSlider::handle:horizontal:hover {{ background: {c.selected}; }}
QSlider::handle:horizontal:focus {{ background: {c.accent}; border-color: {c.text}; }}
QSlider::handle:horizontal:disabled {{ border-color: {groove_colour(c)}; }}
QSlider::sub-page:horizontal:disabled {{ background: {groove_colour(c)}; }}
QProgressBar {{ background: {mix(c.muted, c.window, 0.18)}; border: 0; border-radius: 4px; height: 8px;
  text-align: center; }}
QProgressBar::chunk {{ background: {c.fill}; border-radius: 4px; }}
"""


def _mark_sheet(c: Colours, urls: dict[str, str]) -> str:
    """Drop-down arrows, spin buttons, tick and radio marks, at least 3:1 against their background in both schemes."""
    return f"""
QToolButton#qt_toolbar_ext_button {{ qproperty-icon: url("{urls["right"]}"); }}
QToolButton[framed="true"][popupMode="2"] {{ padding-right: 20px; }}
QToolButton[framed="true"][popupMode="2"]::menu-indicator {{ image: url("{urls["down"]}"); width: 11px; height: 11px;
  subcontrol-origin: padding; subcontrol-position: center right; right: 5px; }}
QComboBox::down-arrow {{ image: url("{urls["down"]}"); width: 13px; height: 13px; margin-right: 6px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: 0; width: 18px; background: transparent; }}
QAbstractSpinBox::up-arrow {{ image: url("{urls["up"]}"); width: 11px; height: 11px; }}
QAbstractSpinBox::down-arrow {{ image: url("{urls["down"]}"); width: 11px; height: 11px; }}
QCheckBox::indicator, QRadioButton::indicator {{ width: 13px; height: 13px; border: 1px solid {c.muted};
  background: {c.base}; }}
QCheckBox::indicator {{ border-radius: 3px; }}
QRadioButton::indicator {{ border-radius: 7px; }}
QCheckBox::indicator:checked {{ background: {c.fill}; border-color: {c.fill}; image: url("{urls["check"]}"); }}
QRadioButton::indicator:checked {{ border: 4px solid {c.fill}; width: 7px; height: 7px; background: {c.on_accent}; }}
QCheckBox::indicator:focus, QRadioButton::indicator:focus {{ border-color: {c.accent}; }}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {{ border-color: {c.border}; }}
"""
