"""Tokens, context and cost of an open session: made in the background, shared by chart, cost panel and gauge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from compaction.accounting.prices import PriceBook, load_price_book
from compaction.accounting.settings import WindowSettings
from compaction.accounting.suppression import WarningSuppression
from compaction.progress import Progress
from inspector.work.jobs import Job, JobRunner, Op

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts
    from compaction.accounting.current import CurrentContext
    from compaction.conversation import Session
    from inspector.documents.document import Document

    Result = tuple[SessionAccounts | None, CurrentContext]

AGAIN_MILLISECONDS = 1500
"""A session that grows is counted again when it was quiet for so long."""


class Accounting(QObject):
    """The accounts of one document under the settings of its tab.

    Signals:
        changed(): `accounts`, `current`, `running` or `error` is another.
        settings_changed(): client, overrides or price set was chosen anew (`changed` follows).

    Attributes:
        accounts: the newest accounts, None before the first; current: how full the context is now, None as well.
        client: version of the client profile, "" for the newest recorded; overrides: the environment of the client.
        price_set: name of the price set, "" for the default.
        suppression: hides the warning after a compaction until the next response brings an accurate count.
    """

    changed = Signal()
    settings_changed = Signal()

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._runner: JobRunner | None = None
        self._counted: tuple[Session, bool] | None = None
        self._full = False
        self._book: PriceBook | None = None
        self._job: Job[Result] | None = None
        self.accounts: SessionAccounts | None = None
        self.current: CurrentContext | None = None
        self.client = ""
        self.overrides = WindowSettings()
        self.price_set = ""
        self.suppression = WarningSuppression()
        self.running = False
        self.error: Exception | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._start)
        document.reloaded.connect(self._on_reloaded)

    @property
    def prices(self) -> PriceBook:
        """The price sets, the person's own file included (read once)."""
        if self._book is None:
            self._book = load_price_book()
        return self._book

    def ensure(self, runner: JobRunner, full: bool = True) -> None:
        """See to it that the present session is counted; a complete one at once, a growing one when it is quiet.

        Args:
            full: `accounts` are wanted too; else `current` alone is enough, which costs next to nothing.
        """
        self._runner = runner
        self._full |= full
        session = self._document.session
        if session is None or not session.transcript.complete or self._counted == (session, self._full):
            return
        grown = self.current is not None and self._counted is not None and self._counted[0] is not session
        self._timer.start(AGAIN_MILLISECONDS if grown else 0)

    @property
    def shown(self) -> SessionAccounts | None:
        """The accounts to show: those of the present session, or of the same file before it grew, while it is counted
        again (records that are there keep their numbers). None when there are none such."""
        found, session = self.accounts, self._document.session
        if found is None or session is None or found.session is session:
            return found if session is not None else None
        old, new = found.session.transcript, session.transcript
        grown = old.path is not None and old.path == new.path and len(new) >= len(old)
        return found if grown else None

    def choose(
        self, client: str | None = None, overrides: WindowSettings | None = None, price_set: str | None = None
    ) -> None:
        """Change what is given and count again."""
        self.client = self.client if client is None else client
        self.overrides = self.overrides if overrides is None else overrides
        self.price_set = self.price_set if price_set is None else price_set
        self.settings_changed.emit()
        self._timer.start(0)

    def _on_reloaded(self) -> None:
        if self._runner is not None:
            self.ensure(self._runner, self._full)

    def _start(self) -> None:
        session, runner = self._document.session, self._runner
        if session is None or runner is None or not session.transcript.complete:
            return
        known = self.accounts if self.accounts is not None and self.accounts.session is session else None
        client, overrides, name, full = self.client, self.overrides, self.price_set, self._full
        self._counted = session, full

        def work(progress: Progress) -> Result:
            from compaction.accounting.accounts import account_session
            from compaction.accounting.current import current_context

            current = current_context(session.conversation, client or None, overrides)
            if not full:
                return known, current
            prices = self.prices.set(name)
            return (known.priced(prices) if known is not None else account_session(session, prices, progress)), current

        quiet = known is not None or not full
        job = runner.start(Op("Counting tokens and cost", work, token=f"accounting {id(self)}", quiet=quiet))
        self._job, self.running = job, True
        job.success(self._on_counted).failure(self._on_failure).finished(lambda: self._on_finished(job))
        self.changed.emit()

    def _on_counted(self, result: Result) -> None:
        accounts, self.current = result
        self.accounts = accounts if accounts is not None else self.accounts
        self.error = None
        if self.current.just_compacted:
            self.suppression.suppress()
        else:
            self.suppression.clear()

    def _on_failure(self, error: Exception) -> None:
        self.error = error

    def _on_finished(self, job: Job[Result]) -> None:
        if job is self._job:
            self.running = False
            self.changed.emit()


def accounting_of(document: Document) -> Accounting:
    """The accounting of a document, made when it is first asked for."""
    found = document.findChild(Accounting)
    return found if isinstance(found, Accounting) else Accounting(document)
