"""Where the shared acceptance material is, and the marks that skip without it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is not beside this checkout")


def corpus_files() -> list[Path]:
    """The real transcripts of ../shared/corpus, in name order; empty when it is absent."""
    return sorted((SHARED / "corpus").rglob("*.jsonl"))


def case_folders() -> list[Path]:
    """The folders of ../shared/cases, in name order; empty when it is absent."""
    return sorted(p for p in (SHARED / "cases").glob("*") if p.is_dir())
