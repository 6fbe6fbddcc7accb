"""Every strategy over generated and corpus sessions, at every round, with random settings (issue 5)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.conversation import Conversation, build_conversation, open_session
from compaction.export.formats.messages import request_body
from compaction.request.assemble import assemble
from compaction.strategies.registry import STRATEGIES
from compaction.strategies.session_at import session_at
from compaction.transcript import transcript_from_bytes
from compaction.transcript.patching import encode_value
from tests.generator.session import Session
from tests.property.strategies.laws import check_laws, given_for, random_settings
from tests.support import corpus_files, needs_shared

VERSIONS = ("1.0.90", "2.0.42", "2.1.7", "2.1.39", "2.1.217", "2.1.332")


def _generated(seed: int, rounds: int) -> Conversation:
    chance = random.Random(seed)
    session = Session(
        seed=seed,
        version=VERSIONS[seed % len(VERSIONS)],
        rounds=rounds,
        compactions=chance.choice([0, 0, 1, 2]),
        microcompactions=chance.choice([0, 1]),
        subagents=chance.choice([0, 1]),
        orphan_results=chance.choice([0, 0, 1]),
        unanswered_calls=chance.choice([0, 0, 1]),
        forks=chance.choice([0.0, 0.1]),
        result_characters=chance.choice([100, 1_200, 6_000]),
    )
    return build_conversation(transcript_from_bytes(session.to_bytes()))


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("seed", range(8))
def test_every_plan_keeps_the_laws_on_generated_sessions(seed: int, name: str) -> None:
    chance = random.Random(f"{seed} {name}")
    conversation = _generated(seed, chance.choice([3, 12, 25]))
    client = chance.choice(["", "2.0.76"])
    check_laws(given_for(conversation, client), STRATEGIES[name], random_settings(STRATEGIES[name], chance))


@pytest.mark.parametrize("seed", range(3))
def test_every_plan_keeps_the_laws_at_every_round(seed: int) -> None:
    whole = _generated(seed, 9)
    for number in range(1, whole.round_count + 1):
        given = given_for(session_at(whole, number))
        for name, strategy in STRATEGIES.items():
            check_laws(given, strategy, random_settings(strategy, random.Random(f"{seed} {number} {name}")))


@pytest.mark.parametrize("seed", range(4))
def test_every_plan_keeps_the_laws_on_request_documents(seed: int) -> None:
    request = assemble(_generated(seed, 20), "2.1.332")
    document = transcript_from_bytes(encode_value(request_body(request)))
    assert document.format_name == "messages-api"
    given = given_for(build_conversation(document))
    for name, strategy in STRATEGIES.items():
        check_laws(given, strategy, random_settings(strategy, random.Random(f"{seed} {name}")))


@needs_shared
def test_a_stand_in_stands_behind_results_that_share_the_prompts_message() -> None:
    path = next(p for p in corpus_files() if p.stem == "49-2.1.215")
    request = assemble(open_session(path).conversation, "2.1.332")
    given = given_for(build_conversation(transcript_from_bytes(encode_value(request_body(request)))))
    collapse = STRATEGIES["context-collapse"]
    assert check_laws(given, collapse, collapse.settings_type(enabled=True)).applies


def _small_corpus() -> Iterator[Path]:
    yield from (path for path in corpus_files() if path.stat().st_size < 150_000)


@needs_shared
@pytest.mark.parametrize("path", list(_small_corpus())[::6], ids=lambda p: p.stem)
def test_every_plan_keeps_the_laws_on_real_sessions(path: Path) -> None:
    conversation = open_session(path).conversation
    chance = random.Random(path.stem)
    given = given_for(conversation, chance.choice(["", "2.0.76"]))
    for strategy in STRATEGIES.values():
        check_laws(given, strategy, random_settings(strategy, chance))


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("path", corpus_files(), ids=lambda p: p.stem)
def test_every_plan_keeps_the_laws_at_many_rounds_of_the_whole_corpus(path: Path) -> None:
    whole = open_session(path).conversation
    chance = random.Random(path.stem)
    numbers = range(1, whole.round_count + 1)
    chosen = sorted(chance.sample(numbers, min(len(numbers), 12)))
    for conversation in [whole, *(session_at(whole, number) for number in chosen)]:
        for client in ("", "2.0.76"):
            given = given_for(conversation, client)
            for strategy in STRATEGIES.values():
                check_laws(given, strategy, random_settings(strategy, chance))
