"""The client generations: what each one does when it turns a transcript into a request, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from compaction.errors import UsageError
from compaction.resources import resource

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Microcompact:
    """Clearing of old tool results when a session is resumed (measured; clients.md, transcript-format.md §7).

    Token figures are the client's rough estimate (characters / 4); `warning_tokens` is compared with the last recorded
    context. `keeps_persisted`: results that only point to a file stay.
    """

    warning_tokens: int
    keep_tokens: int
    minimum_tokens: int
    keep: int
    image_tokens: int
    tools: list[str]
    keeps_persisted: bool


@dataclass(frozen=True, slots=True)
class ResumeProfile:
    """One client generation. Every field is explained under `flags` in resources/resume-profiles.json."""

    version: str
    up_to: str | None
    reads_glued_lines: bool
    heals_surrogates_from: str | None
    reads_rendered: bool
    leaf: str
    bridges_progress: bool
    heals_gaps: int
    recovers_siblings: bool
    relinks_preserved: bool
    keeps_trailing_descendants: bool
    regroups_responses: bool
    answers_interrupted_calls: str | None
    drops_orphaned_thinking: bool
    drops_blank_assistants: bool
    drops_blank_text: bool
    closes_open_turn: str
    local_commands: bool
    api_errors: str
    merges_assistant: str
    results_first: bool
    text_joint: str
    tool_use_keys: list[str] | None
    tool_use_last: bool
    tool_names: dict[str, str]
    tool_inputs: dict[str, Json]
    tool_references: str
    tool_reference_text: str
    foreign_thinking: str
    repairs_pairing: bool
    list_results: str
    attachments: dict[str, Json]
    silent: list[str]
    microcompact: Microcompact | None
    auto_compact_tokens: int
    built_in_tools: list[str]
    task_notice: str
    tool_loaded: str
    orphan_texts: dict[str, str]
    mends: Json | None
    resume_model: str


@cache
def generations() -> tuple[ResumeProfile, ...]:
    """The measured generations, oldest first (resources/resume-profiles.json)."""
    document = json.loads(resource("resume-profiles.json").read_text(encoding="utf-8"))
    return tuple(_profile(entry) for entry in document["generations"])


def _profile(entry: Json) -> ResumeProfile:
    values = {field.name: entry[field.name] for field in fields(ResumeProfile)}
    if values["microcompact"] is not None:
        values["microcompact"] = Microcompact(**values["microcompact"])
    return ResumeProfile(**values)


def version_key(version: str) -> tuple[int, ...]:
    """`2.1.9` → (2, 1, 9), so that versions compare as numbers; anything that is no number counts as 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def generation_for(version: str) -> ResumeProfile:
    """The generation of a client version: the oldest whose `up_to` is not below it.

    Raises:
        UsageError: `version` does not look like a version.
    """
    if not version or not version[0].isdigit():
        known = ", ".join(profile.version for profile in generations())
        raise UsageError(f"{version!r} is not a client version", f"measured generations: {known}")
    wanted = version_key(version)
    for profile in generations():
        if profile.up_to is None or wanted <= version_key(profile.up_to):
            return profile
    return generations()[-1]
