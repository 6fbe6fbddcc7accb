from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compaction.conversation import Session
from compaction.export.formats.base import ExportOptions
from compaction.export.writer import Written, write_new_file
from compaction.progress import Progress
from compaction.request.assemble import assemble, default_client
from compaction.request.wire import WireRequest
from compaction.transcript.patching import encode_value


class Messages:
    """The request that the client would send, as the JSON body of a Messages-API call."""

    name = "messages"
    title = "Messages API request (JSON)"
    suffix = ".json"

    def write(
        self, session: Session, target: str | Path, options: ExportOptions, progress: Progress | None = None
    ) -> Written:
        """Write the next request, or the one that led to a round's response."""
        client = options.client or default_client(session.conversation)
        request = assemble(session.conversation, client, options.at)
        return write_new_file(
            target,
            [encode_value(request_body(request)), b"\n"],
            operation="export",
            journal=options.journal,
            source=session.transcript.path,
            lineage={"format": self.name, "client": client, "at": options.at, "verified": request.verified},
            overwrite=options.overwrite,
            check=_check,
            progress=progress,
        )


def request_body(request: WireRequest) -> dict[str, Any]:
    """A request as the API takes it; fields that the transcript does not record are left out."""
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body |= {key: value for key, value in request.params.items() if key not in ("messages", "model")}
    for key, value in (("system", request.system), ("tools", request.tools), ("thinking", request.thinking)):
        if value:
            body[key] = value
    body["messages"] = [{"role": m.role, "content": m.content} for m in request.messages]
    return body


def _check(path: Path) -> None:
    json.loads(path.read_bytes())
