"""The library behind its window: the catalogue, opened and asked off the GUI thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from compaction.catalogue.settings import (
    LibrarySettings,
    library_folders,
    load_library_settings,
    save_library_settings,
)
from compaction.progress import Progress
from inspector.work.jobs import Job, JobRunner, Op

if TYPE_CHECKING:
    from compaction.catalogue.database import Catalogue
    from compaction.catalogue.entries import SessionEntry, SessionFilter, Totals, UsagePoint
    from compaction.catalogue.indexer import IndexReport
    from compaction.catalogue.search import SessionHits

REFRESH_MILLISECONDS = 10_000
"""How often the folders are looked at while the window is open; unchanged files cost one stat each."""
_SHOW_MILLISECONDS = 1_500
"""How often what is indexed so far is shown while an index runs."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The sessions at one moment: `now` in seconds since 1970, `notice` what must be known about the catalogue."""

    entries: tuple[SessionEntry, ...]
    now: float
    notice: str


class Library(QObject):
    """Signals: listed(Listing) when sessions are new; refreshed(IndexReport) after the folders were looked at;
    failed(Exception) when the catalogue cannot be used."""

    listed = Signal(object)
    refreshed = Signal(object)
    failed = Signal(object)

    def __init__(self, runner: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._catalogue: Catalogue | None = None
        self._opening = threading.Lock()
        self._refreshing: Job[IndexReport] | None = None
        self._last: Listing | None = None
        self._again = QTimer(self)
        self._again.setInterval(REFRESH_MILLISECONDS)
        self._again.timeout.connect(self.refresh)
        self._show = QTimer(self)
        self._show.setInterval(_SHOW_MILLISECONDS)
        self._show.timeout.connect(self.reload)

    @property
    def settings(self) -> LibrarySettings:
        """The settings as they are in the file now."""
        return load_library_settings()

    @property
    def stored_settings(self) -> LibrarySettings:
        """The settings of the file alone, without what the environment overrides: what an editor changes."""
        return load_library_settings(environment={})

    def change_settings(self, settings: LibrarySettings) -> None:
        """Store other settings and begin anew with the catalogue they name."""
        save_library_settings(settings)
        self._last = None
        running = self._again.isActive()
        self.close()
        if running:
            self.start()

    def start(self) -> None:
        """Show what the catalogue has, look at the folders, and again every `REFRESH_MILLISECONDS`."""
        self.reload()
        self.refresh()
        self._again.start()

    def stop(self) -> None:
        """Look no more; a running index is cancelled (what it stored stays)."""
        self._again.stop()
        self._show.stop()
        if self._refreshing is not None:
            self._refreshing.cancel()

    def close(self) -> None:
        """Stop and close the catalogue."""
        self.stop()
        with self._opening:
            if self._catalogue is not None:
                self._catalogue.close()
                self._catalogue = None

    def _open(self) -> Catalogue:
        """In a worker: the catalogue, opened on first use (SQLAlchemy is imported here)."""
        from compaction.catalogue.database import open_catalogue

        with self._opening:
            if self._catalogue is None:
                settings = self.settings
                self._catalogue = open_catalogue(settings.database_url, owner=settings.owner)
            return self._catalogue

    def refresh(self) -> None:
        """Bring the catalogue up to date in the background; a second wish while one runs is the same wish."""
        if self._refreshing is not None and self._refreshing.running and not self._refreshing.progress.cancelled:
            return
        job = self._runner.start(Op("Indexing sessions", self._refresh, quiet=self._again.isActive()))
        self._refreshing = job
        job.success(self._on_refreshed).failure(self.failed.emit).finished(lambda: self._on_refresh_end(job))
        self._show.start()

    def _refresh(self, progress: Progress) -> IndexReport:
        from compaction.catalogue.errors import CatalogueDamaged
        from compaction.catalogue.indexer import refresh

        catalogue = self._open()
        folders = library_folders(self.settings)
        try:
            return refresh(catalogue, folders, progress)
        except CatalogueDamaged as error:
            catalogue.rebuild(error.cause)
            return refresh(catalogue, folders, progress)

    def _on_refreshed(self, report: IndexReport) -> None:
        changed = report.indexed or report.removed or report.renamed or report.examined
        if changed or self._last is None:
            self.reload()
        else:
            # The same sessions at a later moment: who is being written to may have changed, nothing else.
            self._take(replace(self._last, now=time.time()))
        self.refreshed.emit(report)

    def _take(self, listing: Listing) -> None:
        self._last = listing
        self.listed.emit(listing)

    def _on_refresh_end(self, job: Job[IndexReport]) -> None:
        if job is self._refreshing:
            self._refreshing = None
            self._show.stop()

    def reload(self) -> None:
        """Read the list of sessions again."""

        def work(_progress: Progress) -> Listing:
            from compaction.catalogue.sessions import list_sessions

            catalogue = self._open()
            return Listing(tuple(list_sessions(catalogue)), time.time(), catalogue.notice)

        op = Op("Listing sessions", work, token=f"list {id(self)}", quiet=True)
        self._runner.start(op).success(self._take).failure(self.failed.emit)

    def totals(self, ids: Sequence[int]) -> Job[Totals]:
        """What some sessions used together, every response counted once."""

        def work(_progress: Progress) -> Totals:
            from compaction.catalogue.sessions import totals_of

            return totals_of(self._open(), ids)

        return self._runner.start(Op("Adding up", work, token=f"totals {id(self)}", quiet=True))

    def search(self, text: str, wanted: SessionFilter, kinds: Sequence[str] = ()) -> Job[list[SessionHits]]:
        """Full-text search; a newer search supersedes this one."""

        def work(_progress: Progress) -> list[SessionHits]:
            from compaction.catalogue.search import search

            return search(self._open(), text, wanted, kinds=kinds)

        return self._runner.start(Op("Searching all sessions", work, token=f"search {id(self)}"))

    def usage(self, by: Sequence[str], wanted: SessionFilter) -> Job[list[UsagePoint]]:
        """Usage by day, project or model; a newer question supersedes this one."""

        def work(_progress: Progress) -> list[UsagePoint]:
            from compaction.catalogue.sessions import usage

            return usage(self._open(), by, wanted)

        return self._runner.start(Op("Adding up usage", work, token=f"usage {id(self)}", quiet=True))

    def add_folder(self, folder: Path) -> None:
        """Index a folder from now on."""
        settings = self.stored_settings
        if str(folder) not in settings.folders:
            save_library_settings(replace(settings, folders=(*settings.folders, str(folder))))
        self.refresh()
