from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage, QKeySequence, QShortcut, QTextCursor, QTextDocument
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QSplitter, QTextBrowser, QWidget

from compaction.resources import resource
from inspector.context import AppContext
from inspector.models.filter_language import FIELDS
from inspector.rendering.safe_document import placeholder_image
from inspector.views.detail.links import confirm_and_open

KEYS_PAGE = "keys"
FILTERS_PAGE = "filters"
INDEX_PAGE = "index"
_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


def pages() -> dict[str, Path]:
    """The help pages by name: the Markdown files of resources/docs, {} when this installation has none."""
    try:
        folder = resource("docs")
    except FileNotFoundError:
        return {}
    return {path.stem: path for path in sorted(folder.glob("*.md")) if path.stem != "README"}


def title_of(path: Path) -> str:
    """The first heading of a page, or its name."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                return line[2:].strip()
    return path.stem.replace("-", " ").capitalize()


def keys_page(context: AppContext) -> str:
    """Every action with a key, by menu, as Markdown; generated, so it is never out of date."""
    by_menu: dict[str, list[str]] = defaultdict(list)
    for action in context.actions:
        if action.keys:
            keys = " or ".join(
                f"**{QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)}**" for key in action.keys
            )
            by_menu[action.menu.value.replace("&", "") or "Everywhere"].append(f"| {keys} | {action.label} |")
    parts = ["# Keyboard", "In the tree: arrows move, Right opens, Left closes or goes to the parent row, * opens all."]
    for menu, lines in by_menu.items():
        parts.append(f"## {menu}\n\n| Key | Command |\n| --- | --- |\n" + "\n".join(lines))
    return "\n\n".join(parts)


def filters_page() -> str:
    """The filter language, field by field, as Markdown; generated from the language itself."""
    rows = []
    for field in FIELDS.values():
        example, _, meaning = field.help.partition(" – ")
        rows.append(f"| `{example}` | {meaning} |")
    return "\n\n".join(
        [
            "# Filters",
            "The find bar (**Ctrl+F**, or type in the tree) takes words and fields. All of them must hold. "
            'A word with `-` before it must not; `"several words"` is one text. Words are searched in what a record '
            "says, not in its ids and folders; case does not matter. **Only matches** hides everything else.",
            "| Write | To find |\n| --- | --- |\n" + "\n".join(rows),
            "Numbers: `>2000`, `<=10`, `10-20`, `7`; `k` and `m` multiply by a thousand and a million.",
        ]
    )


class HelpBrowser(QTextBrowser):
    """Shows Markdown pages of our own; images come from resources/docs only, other links ask first."""

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """An image beside the pages, else a blank point: nothing else is ever read."""
        url = name if isinstance(name, QUrl) else QUrl(name)
        if kind == QTextDocument.ResourceType.ImageResource.value and not url.scheme() and not url.host():
            folder = resource("docs").resolve()
            path = (folder / url.path()).resolve()
            if path.is_relative_to(folder) and path.is_file():
                image = QImage(str(path))
                if not image.isNull():
                    return image
        return placeholder_image()


class HelpWindow(QWidget):
    """F1: the pages at the left, the chosen one at the right."""

    def __init__(self, context: AppContext) -> None:
        super().__init__(context.workspace.window_widget() if context.workspace is not None else None)
        self.setWindowFlag(Qt.WindowType.Window)
        self._context = context
        self.setWindowTitle("Compactoscope help")
        self.setObjectName("help_window")
        self.list = QListWidget()
        self.list.setAccessibleName("Help pages")
        self.browser = HelpBrowser()
        self.browser.setAccessibleName("Help text")
        self.browser.setOpenLinks(False)
        self.browser.anchorClicked.connect(self._on_link)
        splitter = QSplitter()
        splitter.addWidget(self.list)
        splitter.addWidget(self.browser)
        splitter.setStretchFactor(1, 1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(splitter)
        context.theme.changed.connect(self._restyle)
        self._restyle()
        self._pages = pages()
        names = sorted(self._pages, key=lambda name: (name != INDEX_PAGE, title_of(self._pages[name]).lower()))
        for name in names:
            self._add(name, title_of(self._pages[name]))
        self._add(KEYS_PAGE, "Keyboard")
        self._add(FILTERS_PAGE, "Filters")
        self.list.currentItemChanged.connect(self._on_chosen)
        pages_width = self.list.sizeHintForColumn(0) + 40
        splitter.setSizes([pages_width, 720])
        self.resize(pages_width + 720, 640)
        for keys in (QKeySequence.StandardKey.Cancel, QKeySequence.StandardKey.Close):
            QShortcut(QKeySequence(keys), self, self.close)

    @staticmethod
    def open(context: AppContext, page: str) -> HelpWindow:
        """Show the help window of this context's window at a page."""
        parent = context.workspace.window_widget() if context.workspace is not None else None
        window = parent.findChild(HelpWindow) if parent is not None else None
        if window is None:
            window = HelpWindow(context)
        window.show_page(page)
        window.show()
        window.raise_()
        window.activateWindow()
        return window

    def show_page(self, name: str) -> None:
        """Show a page by its name; the keyboard page when there is none of that name."""
        for row in range(self.list.count()):
            item = self.list.item(row)
            if item.data(Qt.ItemDataRole.UserRole) == name:
                self.list.setCurrentItem(item)
                self._show(name)
                return
        self.list.setCurrentRow(0)

    def _add(self, name: str, title: str) -> None:
        item = QListWidgetItem(title)
        item.setData(Qt.ItemDataRole.UserRole, name)
        self.list.addItem(item)

    def _on_chosen(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self._show(item.data(Qt.ItemDataRole.UserRole))

    def _show(self, name: str) -> None:
        if name in self._pages:
            text = self._pages[name].read_text(encoding="utf-8")
        else:
            text = filters_page() if name == FILTERS_PAGE else keys_page(self._context)
        document = self.browser.document()
        document.setMarkdown(text, _FEATURES)
        self.browser.moveCursor(QTextCursor.MoveOperation.Start)

    def _on_link(self, url: QUrl) -> None:
        name = Path(url.path()).stem
        if not url.scheme() and name in {*self._pages, KEYS_PAGE, FILTERS_PAGE}:
            self.show_page(name)
        elif url.scheme() in ("http", "https"):
            confirm_and_open(url.toString(), self)

    def _restyle(self) -> None:
        colours = self._context.theme.colours
        self.setStyleSheet(
            f"QListWidget {{ background: {colours.window}; padding: 8px; }}"
            f"QListWidget::item {{ padding: 6px 8px; border-radius: 4px; }}"
            f"QListWidget::item:selected {{ background: {colours.fill}; color: {colours.on_accent}; }}"
            f"QTextBrowser {{ background: {colours.base}; padding: 12px; }}"
        )
