"""Rows into messages: neighbouring user rows and pieces of one response become one message each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from compaction.request.attachments import bare_reminder, reminder, rendered_messages
from compaction.request.entries import SYNTHETIC_MODEL, THINKING_TYPES, Entry, Part, is_blank_text, text, text_block
from compaction.request.profiles import ResumeProfile
from compaction.request.wire import Dropped, Json, Origin


@dataclass(slots=True)
class Draft:
    """A message under construction; `last` is the row that was merged last (-2: none yet).

    `results` are kept apart until the message is finished, so that a result never has to be moved forward.
    """

    role: str
    parts: list[Part]
    response: str = ""
    model: str = ""
    last: int = -2
    results: list[Part] = field(default_factory=list)

    @property
    def final(self) -> Part:
        """The block that stands last."""
        return self.parts[-1] if self.parts else self.results[-1]

    @final.setter
    def final(self, part: Part) -> None:
        (self.parts or self.results)[-1] = part

    @property
    def has_results(self) -> bool:
        """Whether a tool_result is in it."""
        return bool(self.results) or any(p.block.get("type") == "tool_result" for p in self.parts)

    def finish(self) -> None:
        """Results ahead of everything else."""
        if self.results:
            self.parts, self.results = self.results + self.parts, []


@dataclass(slots=True)
class Merger:
    """Folds the rows of a conversation into messages by a generation's rules.

    Attributes:
        cleared: by tool_use id, what is made of its result (the cleared marker in place of its content).
        sends_api_errors: the client's own error messages are part of the request.
        messages: what was folded so far; `dropped` and `unknown` (attachments without known text) beside it.
    """

    profile: ResumeProfile
    cleared: dict[str, Callable[[Json], Json]]
    sends_api_errors: bool
    system_turns: bool = False
    mends: Json | None = None
    messages: list[Draft] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    unknown: list[Entry] = field(default_factory=list)
    _system: list[Part] = field(default_factory=list)
    _open: dict[str, Draft] = field(default_factory=dict)
    _scanned: int = 0

    def fold(self, entries: list[Entry]) -> list[Draft]:
        """All rows, attachments moved up to the response or result they belong to."""
        for entry in attachments_lifted(entries):
            self._add(entry)
        self._flush_system()
        for message in self.messages:
            message.finish()
        return self.messages

    def _add(self, entry: Entry) -> None:
        if entry.role == "user":
            self._add_user(entry, entry.parts)
        elif entry.role == "assistant":
            self._add_assistant(entry)
        elif entry.role == "attachment":
            self._add_attachment(entry)
        elif entry.is_local_command and self.profile.local_commands:
            words = text(entry.payload.get("content"))
            self._add_user(entry, [Part(text_block(words), Origin(entry.record, entry.line, -1))])

    def _add_user(self, entry: Entry, parts: list[Part]) -> None:
        notice = self.profile.task_notice and _origin_kind(entry) == "task-notification"
        for part in parts:
            block, loads = self._result(part.block)
            if notice and block.get("type") == "text":
                block = {**block, "text": reminder(self.profile.task_notice.replace("{text}", text(block.get("text"))))}
            self._append_user(entry.record, Part(block, part.origin))
            if loads and self.profile.tool_loaded:
                self._put(self.messages[-1], Part(text_block(self.profile.tool_loaded), None))

    def _append_user(self, record: int, part: Part) -> None:
        message = self._user_message(record)
        if (message.parts or message.results) and (message.last != record or record < 0):
            self._join_text(message, part)
        self._put(message, part)
        message.last = record

    def _user_message(self, record: int) -> Draft:
        """The user message at the end, a new one when the last message is a response."""
        if not self.messages or self.messages[-1].role != "user":
            self.messages.append(Draft("user", [], last=record))
        return self.messages[-1]

    def _put(self, message: Draft, part: Part) -> None:
        first = self.profile.results_first and part.block.get("type") == "tool_result"
        (message.results if first else message.parts).append(part)

    def _join_text(self, message: Draft, part: Part) -> None:
        before = message.final
        if self.profile.text_joint and before.block.get("type") == part.block.get("type") == "text":
            joined = {**before.block, "text": text(before.block.get("text")) + self.profile.text_joint}
            message.final = Part(joined, before.origin)

    def _result(self, block: Json) -> tuple[Json, bool]:
        """A user block as it is sent, and whether it loads tools (a tool_reference stays in it)."""
        if block.get("type") != "tool_result":
            return block, False
        call = block.get("tool_use_id")
        if isinstance(call, str) and call in self.cleared:
            block = self.cleared[call](block)
        if self.mends is not None:
            block = mended_result(block)
        content = block.get("content")
        if not isinstance(content, list) or not any(_is_reference(item) for item in content):
            return block, False
        if self.profile.tool_references == "kept":
            return block, False
        known = self.profile.built_in_tools if self.profile.tool_references == "if_known" else []
        kept = [i for i in content if not _is_reference(i) or i.get("tool_name") in known]
        if not kept:
            return {**block, "content": [text_block(self.profile.tool_reference_text)]}, False
        return {**block, "content": kept}, any(_is_reference(item) for item in kept)

    def _add_assistant(self, entry: Entry) -> None:
        if entry.is_client_error and not self.sends_api_errors:
            self.dropped.append(entry.dropped("the client's own error message: no response of the API"))
            return
        self._flush_system()
        parts = [Part(self._call(part.block), part.origin) for part in entry.parts]
        if not parts and "empty_assistant" in self.profile.orphan_texts:
            parts = [Part({**text_block(self.profile.orphan_texts["empty_assistant"]), "citations": []}, None)]
        target = self._open_response(entry.response)
        if target is not None:
            target.parts += parts
        else:
            self.messages.append(Draft("assistant", parts, entry.response, entry.model, entry.record))

    def _call(self, block: Json) -> Json:
        """A tool_use as the generation sends it: its keys, its tool's present name, inputs it no longer takes."""
        if block.get("type") != "tool_use":
            return block
        keys = self.profile.tool_use_keys
        if keys is not None:
            block = {key: block[key] for key in keys if key in block}
        name = text(block.get("name"))
        if name in self.profile.tool_names:
            block = {**block, "name": self.profile.tool_names[name]}
        rule = self.profile.tool_inputs.get(text(block.get("name")))
        given = block.get("input")
        if rule is not None and isinstance(given, dict) and rule["when"] in given:
            block = {**block, "input": {key: value for key, value in given.items() if key not in rule["drop"]}}
        return block

    def _open_response(self, response: str) -> Draft | None:
        """The earlier message that this piece of `response` is merged into, None when it begins a new one.

        `any_in_turn`: any message of that response since the last user message without results; `across_results`:
        the nearest response, with only results between; `adjacent`: the message right before.
        """
        for message in self.messages[self._scanned :]:
            if message.role == "assistant":
                if self.profile.merges_assistant != "any_in_turn":
                    self._open.clear()
                self._open[message.response] = message
            elif message.role == "user" and (self.profile.merges_assistant == "adjacent" or not message.has_results):
                self._open.clear()
        self._scanned = len(self.messages)
        return self._open.get(response)

    def _add_attachment(self, entry: Entry) -> None:
        messages = rendered_messages(entry, self.profile)
        if messages is None:
            self.unknown.append(entry)
            return
        for blocks in messages:
            parts = [Part(block, Origin(entry.record, entry.line, -1)) for block in blocks]
            if self.system_turns and entry.payload.get("renderedRole") == "system":
                self._system += parts
                continue
            message = self._user_message(entry.record)
            self._attach(message, parts, beside=entry.payload.get("renderedBesideToolResult") is True)
            message.last = entry.record

    def _flush_system(self) -> None:
        """Reminders as one system message behind the user message they came with (newer models)."""
        if self._system:
            words = "\n\n".join(bare_reminder(text(part.block.get("text"))) for part in self._system)
            self.messages.append(Draft("system", [Part(text_block(words), self._system[0].origin)]))
            self._system = []

    def _attach(self, message: Draft, parts: list[Part], *, beside: bool) -> None:
        """A reminder becomes part of the result right before it, otherwise its blocks stand for themselves."""
        last = message.final if (message.parts or message.results) and not beside else None
        joined = self._inside_result(last.block, parts[0].block) if last and len(parts) == 1 else None
        if last is not None and joined is not None:
            message.final = Part(joined, last.origin)
            return
        for part in parts:
            self._put(message, part)

    def _inside_result(self, result: Json, block: Json) -> Json | None:
        """The tool_result with the reminder in it, None when the reminder stands beside it."""
        content = result.get("content")
        if result.get("type") != "tool_result" or block.get("type") != "text":
            return None
        if isinstance(content, str) or content is None:
            words = [(content or "").strip(), text(block.get("text")).strip()]
            return {**result, "content": "\n\n".join(w for w in words if w)}
        if self.profile.list_results != "join" or not isinstance(content, list) or any(map(_is_reference, content)):
            return None
        items = list(content)
        if items and isinstance(items[-1], dict) and items[-1].get("type") == "text":
            items[-1] = {**items[-1], "text": text(items[-1].get("text")) + "\n"}
        return {**result, "content": [*items, block]}


def _origin_kind(entry: Entry) -> str:
    origin = entry.payload.get("origin")
    return text(origin.get("kind")) if isinstance(origin, dict) else ""


def _is_reference(item: object) -> bool:
    return isinstance(item, dict) and item.get("type") == "tool_reference"


def attachments_lifted(entries: list[Entry]) -> list[Entry]:
    """Attachments stand right behind the response or tool result before them, ahead of prompts in between."""
    out: list[Entry] = []
    waiting: list[Entry] = []
    for entry in reversed(entries):
        if entry.role == "attachment":
            waiting.append(entry)
            continue
        if waiting and (entry.role == "assistant" or entry.is_result):
            out += waiting
            waiting = []
        out.append(entry)
    out += waiting
    out.reverse()
    return out


def mended_result(block: Json) -> Json:
    """An error result with text only (rule R10), and an object as content turned into its JSON text."""
    content = block.get("content")
    if isinstance(content, dict):
        return {**block, "content": json.dumps(content, ensure_ascii=False, separators=(",", ":"))}
    if not block.get("is_error") or not isinstance(content, list):
        return block
    texts = [item for item in content if isinstance(item, dict) and item.get("type") == "text"]
    if len(texts) == len(content):
        return block
    words = "\n\n".join(text(item.get("text")) for item in texts)
    return {**block, "content": [text_block(words)] if texts else []}


def mended_response(draft: Draft, mends: Json, dropped: list[Dropped]) -> None:
    """Blocks that this client does not send back are left out of a response, citations reduced to those it sends."""
    kept = [part for part in draft.parts if not _is_left_out(part.block, mends)]
    _note(draft.parts, kept, "a block of a server tool or fallback: this client does not send it back", dropped)
    seen = [p for p in kept if p.block.get("type") not in THINKING_TYPES and not is_blank_text(p.block)]
    if len(kept) < len(draft.parts) and not seen:
        kept.append(Part({**text_block(mends["emptied"]), "citations": []}, None))
    draft.parts = [Part(_cited(part.block, mends["citations"]), part.origin) for part in kept]


def _is_left_out(block: Json, mends: Json) -> bool:
    if block.get("type") == "server_tool_use":
        return block.get("name") in mends["server_tools"]
    return block.get("type") in mends["blocks"]


def _cited(block: Json, kinds: list[str]) -> Json:
    citations = block.get("citations")
    if block.get("type") != "text" or not isinstance(citations, list):
        return block
    kept = [c for c in citations if isinstance(c, dict) and c.get("type") in kinds]
    return block if len(kept) == len(citations) else {**block, "citations": kept}


def without_blank_text(draft: Draft, dropped: list[Dropped]) -> None:
    """Blank text blocks leave a message that has other content."""
    if len(draft.parts) > 1:
        kept = [p for p in draft.parts if not is_blank_text(p.block)] or draft.parts
        _note(draft.parts, kept, "blank text beside other content: the client leaves it out", dropped)
        draft.parts = kept


def finished_assistant(draft: Draft, profile: ResumeProfile, model: str, dropped: list[Dropped]) -> None:
    """The last touches on a response: calls last, another model's signed thinking out."""
    parts = draft.parts
    if profile.tool_use_last:
        parts = calls_last(parts)
    if profile.foreign_thinking == "dropped" and _is_foreign(draft.model, model):
        kept = [p for p in parts if not _is_signed_thinking(p.block)]
        _note(parts, kept, f"thinking of {draft.model}: the client does not send it to {model}", dropped)
        parts = kept
    draft.parts = parts


def _note(before: list[Part], after: list[Part], reason: str, dropped: list[Dropped]) -> None:
    staying = {id(part) for part in after}
    dropped += [Dropped(p.origin.record, p.origin.block, reason) for p in before if id(p) not in staying and p.origin]


def _is_foreign(recorded: str, model: str) -> bool:
    return SYNTHETIC_MODEL not in (recorded, model) and bool(recorded and model) and _family(recorded) != _family(model)


def _family(model: str) -> str:
    """A model's name without the date at its end: `claude-haiku-4-5-20251001` and `claude-haiku-4-5` are one."""
    head, _, tail = model.rpartition("-")
    return head if len(tail) == 8 and tail.isdigit() else model.removesuffix("[1m]")


def _is_signed_thinking(block: Json) -> bool:
    return block.get("type") == "redacted_thinking" or (
        block.get("type") == "thinking" and bool(block.get("signature"))
    )


def calls_last(parts: list[Part]) -> list[Part]:
    """tool_use blocks behind the others, unless calls stand between thinking blocks (their order is signed)."""
    seen_call = mixed = interleaved = after_thinking = call_since = False
    for part in parts:
        if part.block.get("type") == "tool_use":
            seen_call = call_since = True
            continue
        mixed = mixed or seen_call
        thinking = part.block.get("type") in THINKING_TYPES
        interleaved = interleaved or (thinking and after_thinking and call_since)
        after_thinking, call_since = thinking, False
    if not mixed or interleaved:
        return parts
    calls = [p for p in parts if p.block.get("type") == "tool_use"]
    return [p for p in parts if p.block.get("type") != "tool_use"] + calls
