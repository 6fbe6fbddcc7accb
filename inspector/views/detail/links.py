"""Opening a link of a session: only after the person saw the exact target, and only web addresses."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from inspector.rendering.visible_text import visible

WEB_SCHEMES = ("http", "https")


def may_open(target: str) -> bool:
    """Whether a link may be opened at all: http or https with a host and without a user name."""
    url = QUrl(target, QUrl.ParsingMode.StrictMode)
    return url.isValid() and url.scheme().lower() in WEB_SCHEMES and bool(url.host()) and not url.userInfo()


def exact_target(target: str) -> str:
    """The target with everything visible: control characters as signs, host names beyond ASCII in their ASCII form."""
    url = QUrl(target)
    if url.isValid() and url.scheme().lower() in WEB_SCHEMES:
        return visible(bytes(url.toEncoded().data()).decode("ascii", "replace"))
    return visible(target)


def confirm_and_open(target: str, parent: QWidget) -> bool:
    """Show the exact target and open it in the browser when the person agrees.

    A target that is not a web address can only be copied. Returns whether it was opened.
    """
    allowed = may_open(target)
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setIcon(QMessageBox.Icon.Question if allowed else QMessageBox.Icon.Warning)
    box.setWindowTitle("Open link" if allowed else "Link not opened")
    box.setText(
        "The session links to this address:" if allowed else "Only http and https addresses are opened; this is:"
    )
    box.setInformativeText(exact_target(target)[:2000])
    open_button = box.addButton("Open in browser", QMessageBox.ButtonRole.AcceptRole) if allowed else None
    copy_button = box.addButton("Copy address", QMessageBox.ButtonRole.ActionRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.setEscapeButton(cancel)
    box.exec()
    clicked = box.clickedButton()
    if clicked is copy_button:
        QGuiApplication.clipboard().setText(exact_target(target))
    if open_button is None or clicked is not open_button:
        return False
    return QDesktopServices.openUrl(QUrl(target, QUrl.ParsingMode.StrictMode))
