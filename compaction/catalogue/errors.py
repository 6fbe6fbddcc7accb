from __future__ import annotations

from compaction.errors import InputUnreadable, NothingWritten


class CatalogueBusy(NothingWritten):
    """Another program holds the catalogue's lock longer than we wait."""


class CatalogueFull(NothingWritten):
    """The catalogue could not grow: the disk is full, a quota is reached, or the file may not be written."""


class CatalogueDamaged(InputUnreadable):
    """The catalogue's file is not a database, or its pages contradict each other; `Catalogue.rebuild` starts anew."""


class CatalogueUnreachable(InputUnreadable):
    """The database server does not answer or refuses us."""
