"""The comparison as text for elsewhere: the HTML report and the exact request of an API-level strategy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt

from compaction import __version__
from compaction.accounting.categories import CATEGORY_KEYS, Category
from compaction.export.comparison import ComparedColumn, ComparedRow, comparison_page
from compaction.export.formats.messages import request_body
from compaction.strategies.plan import Plan
from inspector.models.comparison import FIGURES, TEXT_ROWS, ComparisonModel
from inspector.models.strategy_help import strategy_help


def exact_request(plan: Plan) -> str:
    """The JSON body that carries out an API-level plan, as the API takes it.

    A `cache_edits` block is queued by the client's own API layer and is in no documented body: it stands beside it.
    """
    body = request_body(plan.sent)
    if plan.server_edit is not None and "context_management" not in plan.sent.params:
        return json.dumps({"request": body, "queued": plan.server_edit}, indent=2, ensure_ascii=False)
    return json.dumps(body, indent=2, ensure_ascii=False)


def comparison_report(model: ComparisonModel, title: str, lines: Sequence[tuple[str, int, str]]) -> Iterator[str]:
    """The report of a comparison as it stands now; everything is read here, the pieces can be written in a worker.

    Args:
        lines: the thresholds on the scale: name, tokens, colour.
    """
    given = model.workbench.given
    columns = []
    for number in range(model.columnCount()):
        column = model.column(number)
        head = str(model.headerData(number, Qt.Orientation.Horizontal))
        if column is None:
            amounts = {key: model.workbench.categories.get(Category[key.upper()], 0) for key in CATEGORY_KEYS}
            columns.append(ComparedColumn(head, amounts if given is not None else None))
        else:
            after = dict(column.plan.after_categories) if column.plan is not None else None
            columns.append(ComparedColumn(head, after, strategy_help(column.strategy.name)))
    rows = [
        ComparedRow(
            figure.title,
            [model.text(row, number) for number in range(model.columnCount())],
            figure.title in TEXT_ROWS,
        )
        for row, figure in enumerate(FIGURES)
        if row > 0
    ]
    facts = [("Session", title), ("At", _point(model)), ("Made by", f"Compactoscope {__version__}")]
    if given is not None:
        facts[2:2] = [
            ("Client profile", given.wire.client),
            ("Model", given.wire.model or "unknown"),
            ("Messages", f"{len(given.wire.messages):,}"),
            ("Context", f"{given.view.tokens:,} tokens ({given.view.total.method})"),
        ]
    return comparison_page(f"Strategies compared: {title}", facts, columns, rows, [line[:2] for line in lines])


def _point(model: ComparisonModel) -> str:
    point = model.workbench.point
    return {
        "end": "the next request (end of the session)",
        "round": f"before API round {point.number}",
        "compaction": f"before the compaction of record {point.number + 1}",
    }[point.kind]
