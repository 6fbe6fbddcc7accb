from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.accounting.categories import CATEGORY_COUNT, CATEGORY_KEYS, Category, as_json, split_exactly
from compaction.accounting.estimate import (
    character_features,
    estimate_block_tokens,
    estimate_text_tokens,
    rough_tokens,
    rough_tokens_of_block,
    rough_tokens_of_result,
    token_count_with_estimation,
)
from compaction.accounting.figure import UNKNOWN, Figure, Method
from compaction.accounting.images import image_size, image_tokens, image_tokens_of_block


@pytest.mark.parametrize(("length", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (8_000, 2_000)])
def test_rough_estimate_is_characters_over_4_rounded_up_section_2(length: int, tokens: int) -> None:
    assert rough_tokens("é" * length) == tokens


def test_rough_estimate_of_results_section_2() -> None:
    assert rough_tokens_of_result("abcde") == 2
    mixed = [{"type": "text", "text": "abcde"}, {"type": "image"}, {"type": "document"}, {"type": "tool_reference"}]
    assert rough_tokens_of_result(mixed) == 2 + 2_000 + 2_000
    assert [rough_tokens_of_result(empty) for empty in (None, "", [], 7)] == [0, 0, 0, 0]


def test_token_count_with_estimation_section_2() -> None:
    added = [{"type": "text", "text": "x" * 41}, {"type": "tool_result", "content": "y" * 8}]
    assert token_count_with_estimation(150_000, added) == 150_000 + 11 + 2
    assert token_count_with_estimation(None, added) == 13
    assert rough_tokens_of_block({"type": "thinking", "thinking": "abcd", "signature": "z" * 900}) == 1


def test_character_classes_section_11() -> None:
    text = "parseHTTPRequest a12\n\n  x:= ünï"
    # words parseHTTPRequest, a, x, n; 10 letters beyond 6; hump eH (PRequest has none: capitals in a row); digits 12;
    # one run of two blanks; one newline run; ":" and "="; "ü" and "ï".
    assert character_features(text).tolist() == [0, 4, 10, 1, 2, 1, 1, 2, 2]


def test_character_class_model_uses_the_coefficients_of_the_family_section_11() -> None:
    text = "parseHTTPRequest a12\n\n  x:="
    old = 3 * 1.06 + 10 * 0.28 + 0.26 + 2 * 0.56 + 1.44 + 0.95 + 2 * 0.71
    new = 3 * 1.50 + 10 * 0.45 + 0.51 + 2 * 0.59 + 0.96 + 1.35 + 2 * 0.91
    assert estimate_text_tokens(text, "old") == pytest.approx(old)
    assert estimate_text_tokens(text, "new") == pytest.approx(new)
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": ""}]}
    assert estimate_block_tokens(result, "old") == pytest.approx(35)
    assert estimate_block_tokens(result, "new") == pytest.approx(10)


@given(st.text(st.characters(codec=None), max_size=80))
def test_character_features_agree_with_counting_one_by_one(text: str) -> None:
    import re

    got = character_features(text)
    words = re.findall("[A-Za-z]+", text)
    assert got[1] == len(words)
    assert got[2] == sum(max(0, len(w) - 6) for w in words)
    assert got[3] == len(re.findall("[a-z](?=[A-Z])", text))
    assert got[4] == len(re.findall("[0-9]", text))
    assert got[5] == len(re.findall(r"[ \t]{2,}", text))
    assert got[6] == len(re.findall(r"[\r\n]+", text))
    assert got[7] == len(re.findall(r"[!-/:-@\[-`{-~]", text))
    assert got[8] == sum(ord(c) > 127 for c in text)


def test_hidden_thinking_has_no_characters_to_estimate_section_5() -> None:
    block = {"type": "thinking", "thinking": "", "signature": "A" * 4_000}
    assert estimate_block_tokens(block, "new") == 0


@pytest.mark.parametrize(
    ("size", "old", "new"),
    [((200, 200), 64, 64), ((1000, 1000), 1_296, 1_296), ((1920, 1080), 1_560, 2_691), ((3840, 2160), 1_560, 4_784),
     ((0, 5), 0, 0)],
)  # fmt: skip
def test_image_tokens_by_the_28_pixel_formula_api_2_7(size: tuple[int, int], old: int, new: int) -> None:
    assert image_tokens(*size, "old") == old
    assert image_tokens(*size, "new") == new


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_image_tokens_never_exceed_the_limit_api_2_7(width: int, height: int) -> None:
    assert 1 <= image_tokens(width, height, "old") <= 1_568
    assert 1 <= image_tokens(width, height, "new") <= 4_784


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IEND", b"")
    )


def test_image_size_from_the_header_of_each_format() -> None:
    assert image_size(png(640, 480)) == (640, 480)
    assert image_size(b"GIF89a" + struct.pack("<HH", 10, 20)) == (10, 20)
    jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x11\x08" + struct.pack(">HH", 30, 40) + b"\x03" * 12
    assert image_size(jpeg) == (40, 30)
    webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")
    assert image_size(webp) == (100, 50)
    assert image_size(b"nothing") is None


def test_image_blocks_are_measured_and_damaged_ones_count_in_full() -> None:
    good = {"type": "image", "source": {"type": "base64", "data": base64.b64encode(png(1000, 1000)).decode()}}
    assert image_tokens_of_block(good, "new") == 1_296
    for source in ({"type": "url", "url": "https://example.com/x.png"}, {"data": "%%%"}, None):
        assert image_tokens_of_block({"type": "image", "source": source}, "old") == 1_560
    inside = {"type": "tool_result", "content": [good]}
    assert estimate_block_tokens(inside, "new") == pytest.approx(10 + 1_296)


def test_split_is_exact_by_largest_remainder() -> None:
    assert split_exactly(10, np.array([1, 1, 1])).tolist() == [4, 3, 3]
    assert split_exactly(0, np.array([0, 0])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="no weight"):
        split_exactly(3, np.array([0.0]))
    with pytest.raises(ValueError, match="cannot divide"):
        split_exactly(-1, np.array([1.0]))


@given(st.integers(0, 10**15), st.lists(st.floats(0, 1e9), min_size=1, max_size=9).filter(lambda w: sum(w) > 0))
def test_split_always_adds_up(total: int, weights: list[float]) -> None:
    parts = split_exactly(total, np.array(weights))
    assert int(parts.sum()) == total
    assert (parts >= 0).all()


def test_categories_are_those_of_cli_md() -> None:
    values = as_json(np.arange(CATEGORY_COUNT))
    assert tuple(values) == CATEGORY_KEYS
    assert values["summary"] == Category.SUMMARY
    assert set(CATEGORY_KEYS) == {category.key for category in Category}


def test_figures_carry_the_weaker_method_and_add_their_errors() -> None:
    total = Figure(100, Method.RECORDED) + Figure(20, Method.ESTIMATED, 3)
    assert (total.value, total.method, total.error) == (120, "estimated", 3)
    assert (Figure(1, Method.RECORDED) + Figure(1, Method.RECORDED)).method == "computed"
    assert (total + UNKNOWN).value is None
    assert total.text("tokens") == "120 tokens (estimated, ± 3)"
    assert UNKNOWN.text() == "unknown"
