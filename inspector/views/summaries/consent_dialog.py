"""What would leave the machine, before it does: where to, how much, what it should cost, and the exact request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from compaction.summaries.api_client import ApiSettings, credential_source, host_of
from compaction.summaries.consent import request_size, request_text
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import plain_label


class ConsentDialog(QDialog):
    """Shows `facts` and the request's JSON; accepted only by the button that says so.

    The button that sends is not the default: Enter does not agree to anything.
    """

    def __init__(
        self, facts: Sequence[tuple[str, str]], request: dict[str, Any], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Send to the API?")
        heading = plain_label("This sends parts of the session to another machine.")
        heading.setWordWrap(True)
        font = heading.font()
        font.setBold(True)
        heading.setFont(font)
        form = QFormLayout()
        for name, value in facts:
            label = plain_label(value)
            label.setWordWrap(True)
            form.addRow(QLabel(f"{name}:"), label)
        self._request = request
        self.text = LongTextView()
        self.text.setAccessibleName("The exact request")
        self.text.setVisible(False)
        self.show_request = QPushButton("Show the exact request")
        self.show_request.setCheckable(True)
        self.show_request.toggled.connect(self._on_show)
        buttons = QDialogButtonBox()
        self.send = buttons.addButton("Send", QDialogButtonBox.ButtonRole.AcceptRole)
        cancel = buttons.addButton("Do not send", QDialogButtonBox.ButtonRole.RejectRole)
        self.send.setAutoDefault(False)
        cancel.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addWidget(heading)
        layout.addLayout(form)
        layout.addWidget(self.show_request)
        layout.addWidget(self.text, 1)
        layout.addWidget(buttons)
        self.resize(560, 320)

    def _on_show(self, on: bool) -> None:
        if on and not self.text.text:
            self.text.set_text(request_text(self._request))
        self.text.setVisible(on)
        self.show_request.setText("Hide the request" if on else "Show the exact request")
        self.resize(max(self.width(), 760), 640 if on else 320)


def ask_consent(
    parent: QWidget, purpose: str, request: dict[str, Any], api: ApiSettings, extra: Sequence[tuple[str, str]] = ()
) -> bool:
    """Whether the person agrees to send a request: what for, where to, how large, `extra` facts, whose key."""
    facts = [
        ("what for", purpose),
        ("host", host_of(api)),
        ("model", str(request["model"])),
        ("request", f"{len(request['messages']):,} messages, {request_size(request):,} bytes"),
        *extra,
        ("key from", credential_source().label),
    ]
    return ConsentDialog(facts, request, parent).exec() == QDialog.DialogCode.Accepted
