"""How the API is reached: address, model, time limit; the key goes to the system's keyring and nowhere else."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from compaction.accounting.prices import bundled_prices
from compaction.progress import Progress
from compaction.summaries.api_client import ApiSettings, build_client, credential_source, store_key
from compaction.summaries.models import ApiModel, list_models
from compaction.summaries.summary_request import RequestOptions
from inspector.settings import API_BASE_URL, API_KEEP_IMAGES, API_MODEL, API_TIMEOUT, Settings
from inspector.views.detail.pages import plain_label
from inspector.work.jobs import JobRunner, Op


def api_settings(settings: Settings) -> ApiSettings:
    """The stored address and time limit."""
    return ApiSettings(settings.get(API_BASE_URL), settings.get(API_TIMEOUT))


def request_options(settings: Settings) -> RequestOptions:
    """The stored model and image choice."""
    return RequestOptions(model=settings.get(API_MODEL), keep_images=settings.get(API_KEEP_IMAGES))


class ApiDialog(QDialog):
    """Edits the API settings; nothing of a session is sent from here."""

    def __init__(self, settings: Settings, runner: JobRunner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._runner = runner
        self.setWindowTitle("API settings")
        self.base_url = QLineEdit(settings.get(API_BASE_URL))
        self.base_url.setPlaceholderText("the SDK's own (https://api.anthropic.com)")
        self.model = QComboBox()
        self.model.setEditable(True)
        self.model.addItem("")
        self.model.addItems(known_models())
        self.model.setCurrentText(settings.get(API_MODEL))
        edit = self.model.lineEdit()
        if edit is not None:
            edit.setPlaceholderText("the session's own model")
        self.ask_models = QPushButton("Ask the API for its models")
        self.ask_models.setToolTip("Sends one request with your key to the address above; nothing of a session.")
        self.ask_models.clicked.connect(self._on_models)
        self.timeout = QDoubleSpinBox()
        self.timeout.setRange(1, 3600)
        self.timeout.setSuffix(" s")
        self.timeout.setValue(settings.get(API_TIMEOUT))
        self.images = QCheckBox("Send images and documents too")
        self.images.setChecked(settings.get(API_KEEP_IMAGES))
        self.key = QLineEdit()
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText("kept in the system's keyring only")
        self.store = QPushButton("Store in the keyring")
        self.store.clicked.connect(self._on_store)
        self.found = plain_label()
        self.found.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(self.key, 1)
        row.addWidget(self.store)
        form = QFormLayout()
        form.addRow("&Address", self.base_url)
        form.addRow("&Model", self.model)
        form.addRow("", self.ask_models)
        form.addRow("Time &limit", self.timeout)
        form.addRow("", self.images)
        key_label = QLabel("API &key")
        key_label.setBuddy(self.key)
        form.addRow(key_label, row)
        form.addRow("Key found in", self.found)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._on_accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(buttons)
        self.resize(560, self.sizeHint().height())
        self._show_source()

    def _show_source(self) -> None:
        self.found.setText(credential_source().label)

    def _on_models(self) -> None:
        api = ApiSettings(self.base_url.text().strip(), self.timeout.value(), retries=0)

        def work(progress: Progress) -> list[ApiModel]:
            with build_client(api) as client:
                return list_models(client, progress)

        self.ask_models.setEnabled(False)
        job = self._runner.start(Op("Asking the API for its models", work, token="api models"))
        job.success(self._on_listed).failure(lambda error: self.found.setText(f"✖ {error}"))
        job.finished(lambda: self.ask_models.setEnabled(True))

    def _on_listed(self, models: list[ApiModel]) -> None:
        chosen = self.model.currentText()
        self.model.clear()
        self.model.addItems(["", *(model.id for model in models)])
        self.model.setCurrentText(chosen)
        self.found.setText(f"The API lists {len(models)} models for this key.")

    def _on_store(self) -> None:
        from keyring.errors import KeyringError

        try:
            store_key(self.key.text().strip())
        except (KeyringError, RuntimeError) as error:
            self.found.setText(f"The keyring cannot be used: {error}. Set ANTHROPIC_API_KEY instead.")
            return
        self.key.clear()
        self._show_source()

    def _on_accept(self) -> None:
        self._settings.set(API_BASE_URL, self.base_url.text().strip())
        self._settings.set(API_MODEL, self.model.currentText().strip())
        self._settings.set(API_TIMEOUT, self.timeout.value())
        self._settings.set(API_KEEP_IMAGES, self.images.isChecked())
        self.accept()


def known_models() -> list[str]:
    """Model ids of the price table, newest rows first: what can be priced."""
    found: dict[str, None] = {}
    for row in bundled_prices().set().rows:
        for model in row.models:
            found.setdefault(f"claude-{model}" if not model.startswith("claude-") else model)
    return list(found)
