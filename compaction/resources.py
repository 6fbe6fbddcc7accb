from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(*parts: str) -> Path:
    """The path of a bundled data file, from an installed wheel (`compaction/_resources`) or a checkout (`resources/`).

    Raises:
        FileNotFoundError: no such resource; the name is in the message.
    """
    for root in (_PACKAGE / "_resources", _PACKAGE.parent / "resources"):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError("/".join(("resources", *parts)))
