"""The choice of a client generation, shared by the findings and the request of a document."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QWidget

from inspector.documents.diagnosis import Diagnosis


class ClientChooser(QComboBox):
    """Client versions: the measured generations and those recorded in the session."""

    def __init__(self, diagnosis: Diagnosis, recorded: list[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._diagnosis = diagnosis
        self.setAccessibleName("Client profile")
        self.setToolTip("Whose rules build the request: each client generation sends the same file differently.")
        self.set_recorded(recorded)
        self.activated.connect(self._on_activated)
        diagnosis.client_changed.connect(self._show_client)

    def set_recorded(self, recorded: list[str]) -> None:
        """Offer the versions recorded in the session beside the generations."""
        from compaction.request import generations
        from compaction.request.profiles import version_key

        measured = [profile.version for profile in generations()]
        own = [version for version in recorded if version[:1].isdigit()]
        self.clear()
        for version in sorted({*measured, *own[-20:], self._diagnosis.client or measured[-1]}, key=version_key):
            words = [
                word for word, applies in (("recorded", version in own), ("measured", version in measured)) if applies
            ]
            self.addItem(f"{version}  ({', '.join(words)})" if words else version, version)
        self._show_client()

    def _show_client(self) -> None:
        self.setCurrentIndex(max(self.findData(self._diagnosis.client), 0))

    def _on_activated(self, index: int) -> None:
        self._diagnosis.set_client(str(self.itemData(index)))
