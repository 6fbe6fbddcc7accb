"""What of a session can be searched, and with which place (issue 7: prompts, answers, tool calls and results)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.catalogue.passages import PIECE_CHARACTERS, Passage, flat_text, passages_of, pieces, storable
from compaction.transcript import transcript_from_bytes
from tests.generator import Result, SessionBuilder, Tool


def made(builder: SessionBuilder) -> list[Passage]:
    return list(passages_of(transcript_from_bytes(b"\n".join(builder.lines) + b"\n")))


def test_each_kind_of_text_with_its_line_and_tool() -> None:
    builder = SessionBuilder()
    builder.prompt("my prompt")
    builder.prompt("injected", meta=True)
    builder.assistant("my answer", thinking="my thought", tools=[Tool("Bash", {"command": "ls"})], results=["listing"])
    builder.compact("my summary")
    found = made(builder)
    kinds = {(p.kind, p.tool): p for p in found if "injected" not in p.text}
    assert kinds[("prompt", "")].text
    assert "my answer" in kinds[("answer", "")].text
    assert kinds[("thinking", "")].text == "my thought"
    assert kinds[("tool_use", "Bash")].text == "Bash\ncommand: ls"
    assert kinds[("tool_result", "Bash")].text == "listing"
    assert "my summary" in kinds[("summary", "")].text
    assert not [p for p in found if "injected" in p.text]
    for passage in found:
        assert passage.text.split("\n")[0].split()[0].encode() in builder.lines[passage.line - 1]


def test_images_signatures_and_the_display_copy_are_left_out() -> None:
    builder = SessionBuilder()
    builder.prompt(
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORsecretpixels"}}]
    )
    builder.assistant(
        tools=[Tool("Read", {"file_path": "/x"})], results=[Result("sent", shown={"file": "displayed only"})]
    )
    text = "\n".join(p.text for p in made(builder))
    assert "sent" in text
    assert "displayed only" not in text
    assert "iVBORsecretpixels" not in text


def test_a_queued_command_is_a_prompt() -> None:
    builder = SessionBuilder()
    builder.attachment("queued_command", prompt="queued words")
    assert [(p.kind, p.text) for p in made(builder)] == [("prompt", "queued words")]


def test_nested_values_are_flattened_without_recursion() -> None:
    value: object = "deep"
    for _ in range(5000):
        value = [value]
    assert flat_text({"a": [1, {"b": "two"}], "c": value}).startswith("a: 1\nb: two")
    assert flat_text(None) == ""


@given(st.text(max_size=200))
def test_what_is_stored_can_be_stored(text: str) -> None:
    clean = storable(text)
    assert len(clean) == len(text)
    assert "\0" not in clean
    clean.encode("utf-8")


def test_lone_surrogates_and_nul_become_replacement_characters() -> None:
    assert storable("a\ud83d\0b") == "a\ufffd\ufffdb"


def test_long_texts_are_cut_at_white_space_and_lose_nothing() -> None:
    text = " ".join(f"word{n}" for n in range(20_000))
    parts = list(pieces(text))
    assert all(len(part) <= PIECE_CHARACTERS for part in parts)
    assert "".join(parts) == text
    assert [len(p) for p in pieces("x" * (2 * PIECE_CHARACTERS + 1))] == [PIECE_CHARACTERS, PIECE_CHARACTERS, 1]
    assert list(pieces("  \n ")) == []
