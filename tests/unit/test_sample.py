"""The bundled sample is what its generator makes, and holds what a newcomer is to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.generator.sample import build
from tests.generator.version import parse
from tests.support import ROOT

SAMPLE = ROOT / "resources" / "sample"


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / "tide-tables.jsonl").read_bytes().splitlines()]


def blocks() -> list[dict[str, Any]]:
    contents = [record["message"]["content"] for record in records() if "message" in record]
    return [block for content in contents if isinstance(content, list) for block in content]


def test_the_bundled_files_are_what_the_generator_makes(tmp_path: Path) -> None:
    """After a change of the generator: make sample."""
    build().write(tmp_path)
    made = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {str(path.relative_to(SAMPLE)): path.read_bytes() for path in SAMPLE.rglob("*") if path.is_file()}
    assert sorted(made) == sorted(kept)
    for name, data in made.items():
        assert data == kept[name], f"{name} differs from what the generator makes"


def test_three_compactions_fire_where_their_client_would() -> None:
    """clients.md: automatic ones at or above the version's threshold, and no round before that reaches it."""
    found = [record for record in records() if record.get("subtype") == "compact_boundary"]
    assert [record["compactMetadata"]["trigger"] for record in found] == ["auto", "manual", "auto"]
    for record in found:
        if record["compactMetadata"]["trigger"] == "auto":
            threshold = parse(record["version"]).auto_compact_threshold
            assert threshold <= record["compactMetadata"]["preTokens"] < threshold + 10_000
    for record in records():
        if record["type"] == "assistant":
            usage = record["message"]["usage"]
            context = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
            assert context < parse(record["version"]).auto_compact_threshold


def test_every_feature_of_the_tour_is_in_it() -> None:
    found, parts = records(), blocks()
    calls = {block["id"] for block in parts if block["type"] == "tool_use"}
    results = {block["tool_use_id"] for block in parts if block["type"] == "tool_result"}
    texts = [str(block.get("content", "")) for block in parts if block["type"] == "tool_result"]
    thinking = [block["thinking"] for block in parts if block["type"] == "thinking"]
    patches = [r["toolUseResult"]["structuredPatch"] for r in found if "structuredPatch" in str(r.get("toolUseResult"))]
    assert sum(record.get("subtype") == "microcompact_boundary" for record in found) == 1
    assert len(results - calls) == 1
    (orphan,) = results - calls
    newest = max(number for number, record in enumerate(found) if record.get("subtype") == "compact_boundary")
    assert any(orphan in str(record) for record in found[newest:]), "the orphan is in the part that is still sent"
    assert any(block["type"] == "image" for block in parts)
    assert any(patch for patch in patches)
    assert any("\x1b[32m" in text for text in texts)
    assert any(block.get("is_error") for block in parts)
    assert any("<persisted-output>" in text for text in texts)
    assert any(thinking)
    assert not all(thinking)
    assert list(SAMPLE.glob("tide-tables/subagents/agent-*.jsonl"))
    assert 150 <= len(found) <= 350


def test_two_prompts_hang_on_one_record_where_the_person_went_back() -> None:
    prompts = [r["parentUuid"] for r in records() if r["type"] == "user" and r.get("origin", {}).get("kind") == "human"]
    assert len(prompts) - len(set(prompts)) == 1
