"""Session text is never taken for markup where Qt guesses (qt.md §2d)."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtGui import Qt

from inspector.plain_text import plain_tip


@given(st.text(alphabet=st.sampled_from("<>&;!?/ \nabimgsrcltxml=\"'"), max_size=40))
@example('<img src="file:///secret.png">')
@example("<?xml version='1.0'?>")
@example("a &lt; b")
@example("text <b>bold</b> &lt;i>")
def test_no_text_is_taken_for_markup(text: str) -> None:
    assert not Qt.mightBeRichText(plain_tip(text))
    assert plain_tip(text).replace("\u200b", "") == text


def test_ordinary_text_stays_as_it_is() -> None:
    assert plain_tip("1 < 2 and a & b") == "1 < 2 and a & b"
