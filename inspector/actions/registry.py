"""User actions as data: the menu bar, the toolbar, the palette and the tests read the same list."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence

if TYPE_CHECKING:
    from inspector.context import AppContext


class Menu(Enum):
    """The menus of the menu bar, in their order; NONE is for the palette and the keyboard only."""

    FILE = "&File"
    EDIT = "&Edit"
    VIEW = "&View"
    GO = "&Go"
    SESSION = "&Session"
    HELP = "&Help"
    NONE = ""


def nothing(_context: AppContext) -> str:
    """Can be done in every state."""
    return ""


def a_session(context: AppContext) -> str:
    """The current tab must show a loaded session."""
    document = context.current_document
    return "" if document is not None and document.conversation is not None else "Open a session first."


def a_tab(context: AppContext) -> str:
    """There must be a tab, loaded or not."""
    return "" if context.current_document is not None else "Open a session first."


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Attributes:
        id: "area.verb", unique ("session.apply").
        text: menu text with its & mnemonic; `label` is the text without it.
        handler: does it; gets the context (the current document is `context.current_document`).
        icon: name of an SVG in resources/icons without its ending, or "".
        shortcut: portable key sequences; the first is shown in the menu.
        missing: pure look at the context: what keeps it from being done now, one sentence for the person, "" when
            nothing does; asked again after each change of document, selection or job.
        checked_when: when given, the action is a switch and this is its state.
        menu, group: where it stands; groups of a menu are separated by a line, in the order of first use.
        tip: one sentence that says what it does (status bar, tool tip, palette, What's This).
        toolbar: also stands in the toolbar.
        context: also stands in the context menu of the tree.
    """

    id: str
    text: str
    handler: Callable[[AppContext], object]
    icon: str = ""
    shortcut: tuple[str, ...] | str = ()
    missing: Callable[[AppContext], str] = nothing
    checked_when: Callable[[AppContext], bool] | None = None
    menu: Menu = Menu.NONE
    group: str = ""
    tip: str = ""
    toolbar: bool = False
    context: bool = False

    @property
    def label(self) -> str:
        return self.text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key in ((self.shortcut,) if isinstance(self.shortcut, str) else self.shortcut) if key)


GROUPS: tuple[str, ...] = (
    "open", "undo", "history", "views", "docks", "copy", "links", "find", "records", "expand", "live", "theme",
    "layout", "palette", "close", "export", "quit",
)  # fmt: skip
"""The order of known groups in their menus; others stand after these, in the order of their first action."""


def group_rank(action: Action, actions: Sequence[Action]) -> tuple[int, int]:
    """Where an action's group stands among those of its menu: "quit" last, known ones before the others."""
    if action.group == "quit":
        return (2, 0)
    if action.group in GROUPS:
        return (0, GROUPS.index(action.group))
    return (1, next(number for number, other in enumerate(actions) if other.group == action.group))


MODULES: list[str] = [
    "inspector.actions.file",
    "inspector.actions.library",
    "inspector.actions.edit",
    "inspector.actions.view",
    "inspector.actions.go",
    "inspector.actions.session",
    "inspector.actions.workbench",
    "inspector.actions.doctor",
    "inspector.actions.accounting",
    "inspector.actions.help",
]
"""Modules with an `ACTIONS: list[Action]`: one file and one line here add actions to menu, palette and keyboard."""


@dataclass(slots=True)
class _Entry:
    action: Action
    qt: QAction | None = field(default=None)


class ActionRegistry:
    """All actions of one window, by id, each with at most one QAction that every menu and toolbar shares."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._context: AppContext | None = None

    def bind(self, context: AppContext) -> None:
        """Set the context that handlers and conditions get, and load the modules of `MODULES`."""
        self._context = context
        for name in MODULES:
            for action in importlib.import_module(name).ACTIONS:
                self.add(action)

    def add(self, action: Action) -> None:
        """Register an action.

        Raises:
            ValueError: the id or one of its shortcuts is taken.
        """
        if action.id in self._entries:
            raise ValueError(f"two actions are named {action.id}")
        taken = {key: other.id for other in self for key in other.keys}
        for key in action.keys:
            if key in taken:
                raise ValueError(f"{action.id} and {taken[key]} both want {key}")
        self._entries[action.id] = _Entry(action)

    def __iter__(self) -> Iterator[Action]:
        return (entry.action for entry in self._entries.values())

    def __contains__(self, action_id: str) -> bool:
        return action_id in self._entries

    def __getitem__(self, action_id: str) -> Action:
        return self._entries[action_id].action

    def missing(self, action_id: str) -> str:
        """What keeps it from being done now, "" when nothing does."""
        if self._context is None:
            return "The window is closing."
        return self._entries[action_id].action.missing(self._context)

    def enabled(self, action_id: str) -> bool:
        """Whether it can be done now."""
        return not self.missing(action_id)

    def run(self, action_id: str) -> bool:
        """Do it if nothing is missing; tells whether it did. Errors of the handler go to the error centre."""
        context = self._context
        if context is None or not self.enabled(action_id):
            return False
        action = self._entries[action_id].action
        try:
            action.handler(context)
        except Exception as error:  # noqa: BLE001 - the border between handlers and Qt: every error is reported
            context.errors.report(error, action.label)
        self.refresh()
        return True

    def qaction(self, action_id: str, parent: QObject) -> QAction:
        """The shared QAction; made on first use as a child of `parent`."""
        entry = self._entries[action_id]
        if entry.qt is None:
            entry.qt = self._build(entry.action, parent)
        return entry.qt

    def refresh(self) -> None:
        """Ask again what is missing and what is on, and show it on the QActions."""
        if self._context is None:
            return
        for entry in self._entries.values():
            if entry.qt is not None:
                self._show_state(entry.action, entry.qt)

    def _show_state(self, action: Action, shown: QAction) -> None:
        missing = self.missing(action.id)
        shown.setEnabled(not missing)
        shown.setStatusTip(missing or action.tip)
        keys = QKeySequence(action.keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if action.keys else ""
        title = f"{action.label} ({keys})" if keys else action.label
        shown.setToolTip("\n".join(filter(None, (title, action.tip, missing))))
        if action.checked_when is not None and self._context is not None:
            shown.setChecked(action.checked_when(self._context))

    def retint(self) -> None:
        """Give every QAction its icon again, after the theme changed."""
        for entry in self._entries.values():
            if entry.qt is not None and entry.action.icon and self._context is not None:
                entry.qt.setIcon(self._context.theme.icon(entry.action.icon))

    def release(self) -> None:
        """Forget the QActions and the context: their window is going."""
        for entry in self._entries.values():
            entry.qt = None
        self._context = None

    def _build(self, action: Action, parent: QObject) -> QAction:
        result = QAction(action.text, parent)
        result.setObjectName(action.id)
        if action.icon and self._context is not None:
            result.setIcon(self._context.theme.icon(action.icon))
        result.setShortcuts([QKeySequence(key) for key in action.keys])
        result.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        result.setWhatsThis(action.tip)
        result.setCheckable(action.checked_when is not None)
        # A menu shows either an icon or whether it is checked.
        result.setIconVisibleInMenu(action.checked_when is None)
        self._show_state(action, result)
        result.triggered.connect(lambda _checked=False, action_id=action.id: self.run(action_id))
        return result
