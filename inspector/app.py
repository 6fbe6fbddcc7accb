"""The application around the window: QApplication, hooks for errors, one context, the first window."""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QMessageLogContext, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from compaction import __version__
from inspector.context import AppContext
from inspector.settings import SINGLE_INSTANCE, THEME, Settings
from inspector.single_instance import InstanceServer, hand_over
from inspector.theme import Mode, Theme
from inspector.work.smooth import IdleCollector

if TYPE_CHECKING:
    from inspector.views.main_window import MainWindow

log = logging.getLogger("qt")

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def application() -> QApplication:
    """The running QApplication, made on first call."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    app = QApplication([sys.argv[0] if sys.argv else "compactoscope"])
    app.setApplicationName("compactoscope")
    app.setApplicationDisplayName("Compactoscope")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("compactoscope")
    return app


def make_context(settings: Settings | None = None, mode: Mode | None = None) -> AppContext:
    """A context for one window, with the theme of the settings or the given one."""
    settings = settings or Settings()
    theme = Theme(application(), mode or cast(Mode, settings.get(THEME)))
    context = AppContext(settings=settings, theme=theme)
    context.actions.bind(context)
    return context


def install_hooks(context: AppContext) -> None:
    """Send every exception nobody caught, and Qt's own messages, to the error centre and the log."""

    def on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        context.errors.report(error, "Something went wrong")

    def on_thread_exception(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            # Reports go to widgets: hand it to the GUI thread.
            error = arguments.exc_value
            QTimer.singleShot(0, context.errors, lambda: context.errors.report(error, "Background work failed"))

    def on_message(kind: QtMsgType, _where: QMessageLogContext, text: str) -> None:
        log.log(_LEVELS.get(kind, logging.WARNING), "%s", text)

    sys.excepthook = on_exception
    threading.excepthook = on_thread_exception
    qInstallMessageHandler(on_message)


def run(paths: Sequence[str]) -> int:
    """Open the window with the given files, or its start page, and run until it is closed."""
    # Before anything is drawn: an interrupt in the middle of painting would crash Qt instead of closing the window.
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    if sys.stderr is not None:
        faulthandler.enable()
    from inspector.documents.live_documents import LiveDocuments
    from inspector.documents.unfinished import tell_unfinished
    from inspector.views.main_window import MainWindow

    app = application()
    settings = Settings()
    if settings.get(SINGLE_INSTANCE) and hand_over(paths):
        return 0
    context = make_context(settings)
    install_hooks(context)
    collector = IdleCollector(context.runner)
    app.setWindowIcon(context.theme.icon("app", "accent"))
    window = MainWindow(context)
    window.restore_layout()
    window.show()
    window.live = LiveDocuments(context, window)
    server = _serve(context, window)
    tell_unfinished(context, window.message_bar)
    for path in paths:
        window.open_path(Path(path))
    # Ctrl+C in the terminal: Python only sees the signal while it runs, so give it a moment now and then.
    heartbeat = QTimer()
    heartbeat.start(250)
    heartbeat.timeout.connect(lambda: window.close() if interrupted.is_set() else None)
    code = app.exec()
    window.live.stop()
    collector.stop()
    server.close()
    return code


def _serve(context: AppContext, window: MainWindow) -> InstanceServer:
    """Take the files of later starts, unless the settings say that each start is a window of its own."""
    server = InstanceServer(window)

    def open_all(paths: list[str]) -> None:
        for path in paths:
            window.open_path(Path(path))
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.raise_()
        window.activateWindow()

    server.files_received.connect(open_all)
    if context.settings.get(SINGLE_INSTANCE) and not server.listen():
        log.warning("later starts will open windows of their own: the socket cannot be made")
    return server
