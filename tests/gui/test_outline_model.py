"""The tree's rows: right levels, quiet under the model tester, work in proportion to what is seen (qt.md §2a, §3)."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from compaction.conversation import Session, open_session
from compaction.transcript import BlockType, Flag, RecordKind
from inspector.documents.document import Scope
from inspector.models.outline import Column, OutlineModel
from inspector.models.outline_rows import Kind, Rows, arrange, index_of, kind_of, node_of, source_of
from inspector.models.outline_structure import BOOKKEEPING_SYSTEM, OutlineStructure, Shown
from tests import generator
from tests.support import corpus_files, needs_shared

EVERYTHING = Shown(sidechain=True, meta=True, bookkeeping=True)


def model_of(session: Session, shown: Shown = EVERYTHING) -> OutlineModel:
    return OutlineModel(session, arrange(session, shown))


def watched(model: OutlineModel) -> QAbstractItemModelTester:
    return QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)


def expected_levels(session: Session) -> list[tuple[str, int, int]]:
    """The rows with everything shown and open, derived record by record: (kind, index, depth)."""
    c = session.conversation
    t = c.transcript
    rows: list[tuple[str, int, int]] = []
    epoch, place, responses = -1, None, set()
    for record in range(len(t)):
        if c.thread[record] > 0:
            continue
        if int(c.epoch_of[record]) != epoch:
            epoch, place = int(c.epoch_of[record]), None
            rows.append(("epoch", epoch, 0))
        if int(c.round_of[record]) != place:
            place, responses = int(c.round_of[record]), set()
            rows.append(("round", place, 1))
        response = int(c.response_of[record])
        if response >= 0 and response in responses:
            continue
        responses.add(response)
        members = [record]
        if response >= 0:
            members = [
                r
                for r in range(record, len(t))
                if int(c.response_of[r]) == response and int(c.round_of[r]) == place and int(c.epoch_of[r]) == epoch
            ]
        rows.append(("message", record, 2))
        rows += [("block", block, 3) for member in members for block in t.blocks_of(member)]
    return rows


def actual_levels(model: OutlineModel) -> list[tuple[str, int, int]]:
    names = {Kind.EPOCH: "epoch", Kind.GROUP: "round", Kind.MESSAGE: "message", Kind.BLOCK: "block"}
    rows = []
    for row in range(model.rowCount()):
        node = model.node(row)
        if source_of(node) or kind_of(node) not in names:
            continue
        index = index_of(node)
        if kind_of(node) is Kind.GROUP:
            index = int(model.structure(node).group_round[index])
        rows.append((names[kind_of(node)], index, model.depth(row)))
    return rows


@pytest.mark.parametrize("version", ["1.0.128", "2.0.76", "2.1.12", "2.1.217"])
def test_rows_are_epoch_round_message_block_in_file_order(session_files: dict[str, Path], version: str) -> None:
    session = open_session(session_files[version])
    model = model_of(session)
    model.set_all()
    assert actual_levels(model) == expected_levels(session)


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: path.name)
def test_rows_of_real_sessions_are_epoch_round_message_block(path: Path) -> None:
    session = open_session(path)
    model = model_of(session)
    model.set_all()
    assert actual_levels(model) == expected_levels(session)
    for row in range(0, model.rowCount(), max(1, model.rowCount() // 300)):
        assert model.cells(row).texts[Column.WHAT]


def test_the_model_tester_is_quiet_through_every_change(sample_session: Path, qtbot: QtBot) -> None:
    session = open_session(sample_session)
    model = model_of(session, Shown())
    watched(model)
    chance = random.Random(5)
    for _ in range(120):
        row = chance.randrange(model.rowCount())
        chance.choice([model.toggle, model.expand, model.collapse])(row)
    model.set_shown(EVERYTHING)
    model.set_all()
    matches = np.zeros(len(session.transcript), bool)
    matches[::7] = True
    model.set_shown(Shown(matches=matches))
    model.set_all(groups=False, messages=False)
    model.set_shown(Shown(matches=np.zeros(len(session.transcript), bool)))
    assert model.rowCount() == len([f for f in session.subagents if f.tool_use_block < 0])


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(["toggle", "all", "rounds", "meta", "book"]), st.integers(0, 10_000)), max_size=12
    )
)
def test_splicing_rows_gives_what_building_them_anew_gives(steps: list[tuple[str, int]]) -> None:
    model = model_of(_small_session(), Shown())
    meta = book = False
    for what, number in steps:
        if what == "toggle" and model.rowCount():
            model.toggle(number % model.rowCount())
        elif what == "all":
            model.set_all()
        elif what == "rounds":
            model.set_all(groups=False, messages=False)
        else:
            meta, book = (not meta, book) if what == "meta" else (meta, not book)
            model.set_shown(Shown(meta=meta, bookkeeping=book))
        nodes, depth = model.rows.rebuild()
        assert model.rows.nodes.tolist() == nodes.tolist()
        assert model.rows.depth.tolist() == depth.tolist()


_SESSIONS: list[Session] = []


def _small_session() -> Session:
    if not _SESSIONS:
        from compaction.conversation import build_conversation
        from compaction.transcript import transcript_from_bytes

        data = generator.Session(seed=3, version="1.0.31", rounds=12, subagents=2, compactions=1).to_bytes()
        _SESSIONS.append(Session(build_conversation(transcript_from_bytes(data))))
    return _SESSIONS[0]


def test_current_row_follows_its_node_when_rows_change(sample_session: Path, qtbot: QtBot) -> None:
    model = model_of(open_session(sample_session), Shown())
    row = next(r for r in range(model.rowCount()) if kind_of(model.node(r)) is Kind.MESSAGE and r > 20)
    node = model.node(row)
    kept = QPersistentModelIndex(model.index(row, 0))
    model.set_all()
    model.set_shown(EVERYTHING)
    assert model.node(kept.row()) == node
    model.set_shown(Shown(matches=np.zeros(len(model.session.transcript), bool)))
    assert not kept.isValid()


def test_a_tool_use_and_its_result_carry_the_same_number_and_others_another(sample_session: Path) -> None:
    session = open_session(sample_session)
    c, t = session.conversation, session.transcript
    structure = OutlineStructure(c)
    uses = [b for b in range(len(t.block_type)) if t.block_type[b] == BlockType.TOOL_USE and c.pair[b] >= 0]
    numbers = [int(structure.pair_number[b]) for b in uses]
    assert len(set(numbers)) == len(uses) > 10
    assert all(structure.pair_number[b] == structure.pair_number[c.pair[b]] > 0 for b in uses)
    assert all(structure.pair_number[b] == 0 for b in [*c.uses_without_result, *c.results_without_use])


def test_orphans_errors_damage_boundaries_and_branches_say_so_in_words(tmp_path: Path) -> None:
    session = open_session(
        generator.Session(
            seed=2,
            rounds=60,
            orphan_results=1,
            unanswered_calls=1,
            forks=0.3,
            compactions=1,
            faults=("two_records_on_one_line@30", "cut_last_line"),
        ).write(tmp_path / "odd.jsonl")
    )
    model = model_of(session)
    model.set_all()
    said = " ".join(model.cells(row).texts[Column.FLAGS] for row in range(model.rowCount()))
    for words in ("∅ no result", "∅ no tool_use", "◆ compaction", "⋔ branch", "⚠ damaged"):
        assert words in said, words


def test_bookkeeping_meta_and_sidechain_can_be_hidden_and_damage_never(tmp_path: Path) -> None:
    path = generator.Session(seed=1, version="1.0.31", rounds=30, subagents=2, faults=("cut_last_line",)).write(
        tmp_path / "a.jsonl"
    )
    session = open_session(path)
    t, c = session.transcript, session.conversation
    structure = OutlineStructure(c)

    def shown_records(shown: Shown) -> set[int]:
        return {int(r) for r in structure.heads[structure.visible_heads(shown)]}

    everything = shown_records(EVERYTHING)
    hidden = Shown(sidechain=False, meta=False, bookkeeping=False)
    for record in everything - shown_records(hidden):
        kind = RecordKind(int(t.kind[record]))
        plain = kind in (RecordKind.USER, RecordKind.ASSISTANT, RecordKind.ATTACHMENT)
        excused = c.thread[record] > 0 or t.flags[record] & Flag.META or t.type_name(record) in BOOKKEEPING_SYSTEM
        assert not plain or excused
    damaged = {r for r in everything if t.kind[r] == RecordKind.DAMAGED}
    assert damaged
    assert damaged <= shown_records(hidden)


def test_inline_sidechains_nest_under_the_call_that_started_them(tmp_path: Path) -> None:
    session = open_session(
        generator.Session(seed=4, version="1.0.31", rounds=40, subagents=3).write(tmp_path / "s.jsonl")
    )
    assert len(session.conversation.thread_roots) > 1
    model = model_of(session)
    model.set_all()
    node = node_of(Kind.THREAD, 1)
    row = model.reveal(node)
    assert row >= 0
    parent = model.node(model.parent_row(row))
    assert kind_of(parent) is Kind.BLOCK
    assert session.transcript.block_tool(index_of(parent)) in ("Task", "Agent")
    model.expand(row)
    below = [model.node(r) for r in range(row + 1, model.end_of(row)) if kind_of(model.node(r)) is Kind.MESSAGE]
    assert below
    assert all(session.conversation.thread[index_of(n)] == 1 for n in below)


def test_subagent_files_nest_under_their_call_and_are_read_when_opened(sample_session: Path, qtbot: QtBot) -> None:
    session = open_session(sample_session)
    number = next(n for n, file in enumerate(session.subagents, 1) if file.tool_use_block >= 0)
    model = model_of(session, Shown())
    wanted: list[int] = []
    model.subagent_wanted.connect(wanted.append)
    row = model.reveal(node_of(Kind.SUBAGENT, number))
    assert model.node(model.parent_row(row)) == node_of(Kind.BLOCK, session.subagents[number - 1].tool_use_block)
    assert wanted == []
    model.expand(row)
    assert wanted == [number]
    assert model.cells(row + 1).texts[Column.PREVIEW] == "Reading…"
    model.add_subagent(number, OutlineStructure(session.subagents[number - 1].open()))
    first = model.node(row + 1)
    assert source_of(first) == number
    assert kind_of(first) in (Kind.GROUP, Kind.EPOCH)
    assert model.selection_of(row + 1).agent_id == session.subagents[number - 1].agent_id


def test_a_selection_is_found_again_by_its_node(sample_session: Path) -> None:
    model = model_of(open_session(sample_session))
    model.set_all()
    for row in range(0, model.rowCount(), 3):
        selection = model.selection_of(row)
        assert selection.scope is not Scope.NONE
        if kind_of(model.node(row)) in (Kind.EPOCH, Kind.GROUP, Kind.MESSAGE, Kind.BLOCK):
            assert model.node_of_selection(selection) == model.node(row)


def test_jumping_to_a_hidden_record_shows_it(sample_session: Path) -> None:
    session = open_session(sample_session)
    model = model_of(session, Shown(bookkeeping=False))
    hidden = next(r for r in range(len(session.transcript)) if session.transcript.kind[r] == RecordKind.FILE_HISTORY)
    node = node_of(Kind.MESSAGE, hidden)
    assert model.row_of(node) == -1
    row = model.reveal(node)
    assert model.node(row) == node


def test_expansion_survives_reading_the_file_again(tmp_path: Path) -> None:
    path = generator.Session(seed=9, rounds=30).write(tmp_path / "a.jsonl")
    rows: Rows = arrange(open_session(path), Shown())
    model = OutlineModel(open_session(path), rows)
    message = next(r for r in range(model.rowCount()) if kind_of(model.node(r)) is Kind.MESSAGE and model.can_expand(r))
    model.expand(message)
    closed = next(r for r in range(model.rowCount()) if kind_of(model.node(r)) is Kind.GROUP and r > message + 3)
    model.collapse(closed)
    before = model.rows.nodes.tolist()
    with path.open("ab") as file:
        file.write(b'{"type":"summary","summary":"later","leafUuid":"x"}\n')
    again = OutlineModel(open_session(path), arrange(open_session(path), Shown(), model.rows.state()))
    assert again.rows.nodes.tolist() == before


def test_screen_readers_hear_level_state_and_flags(sample_session: Path) -> None:
    model = model_of(open_session(sample_session), Shown())
    said = model.data(model.index(0, 0), Qt.ItemDataRole.AccessibleTextRole)
    assert said.startswith("level 1, expanded, Epoch 1, ≈")
    assert "tokens" in said


def test_opening_a_hundred_thousand_records_describes_only_the_rows_that_are_seen(tmp_path: Path) -> None:
    path = generator.Session(seed=1, records=100_000, result_characters=40).write(tmp_path / "big.jsonl")
    model = model_of(open_session(path), Shown())
    assert model.rowCount() > 50_000
    assert model.described == 0
    for row in range(40):
        model.data(model.index(row, 0))
    assert model.described == 40
    model.set_all()
    model.collapse(0)
    model.expand(0)
    assert model.described == 40


def test_many_rows_are_made_by_a_worker_and_an_older_result_is_dropped(
    sample_session: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.models.outline.AT_ONCE", 10)
    model = model_of(open_session(sample_session), Shown())
    watched(model)
    wanted: list[int] = []
    model.rebuild_wanted.connect(wanted.append)
    before = model.rows.nodes.tolist()
    model.set_all()
    everything = model.rows.rebuild()
    assert model.busy
    model.collapse(0)
    assert model.rows.nodes.tolist() == before
    model.set_all(groups=False, messages=False)
    rounds = model.rows.rebuild()
    model.finish_rebuild(wanted[0], *everything)
    assert model.rows.nodes.tolist() == before
    model.finish_rebuild(wanted[1], *rounds)
    assert not model.busy
    assert model.rows.nodes.tolist() == rounds[0].tolist()
    message = node_of(Kind.MESSAGE, int(model.rows.structures[0].heads[-1]))
    assert model.node(model.reveal(message)) == message


def test_an_empty_file_has_no_rows_and_no_trouble(tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"")
    model = model_of(open_session(path))
    watched(model)
    model.set_all()
    assert model.rowCount() == 0
