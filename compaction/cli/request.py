from __future__ import annotations

import argparse
from typing import Any

from compaction.cli.output import print_json, print_line, print_table, warn
from compaction.conversation import Conversation, open_session
from compaction.request import Assembler, WireRequest, default_client, generation_for

HELP = "the messages that a client sends: the next request, or the one that led to an API round"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope request`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument("--client", metavar="VERSION", help="the client's version (default: the newest in the file)")
    parser.add_argument("--at", type=int, metavar="N", help="the API round (1-based); without it: the next request")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the model it is sent to (default: the recorded one; a session that another client resumes is sent to "
        "that client's own model)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the request; exit code 0 whatever is wrong with it (`doctor` judges)."""
    conversation = open_session(args.file).conversation
    client = args.client or default_client(conversation)
    model = args.model or ("" if args.at is not None else model_of_resume(conversation, client))
    request = Assembler(conversation, client, model=model).request(args.at)
    document = request_document(request)
    if args.json:
        print_json(document)
    else:
        _print(request, document)
    return 0


def model_of_resume(conversation: Conversation, client: str) -> str:
    """The model that a resumed session is sent to when nobody chooses one.

    The client that wrote the session goes on with the session's model (""); any other client uses its own setting
    (the profile's `resume_model`), so thinking that is bound to the session's model may be left out (clients.md).
    """
    return "" if client == default_client(conversation) else generation_for(client).resume_model


def request_document(request: WireRequest) -> dict[str, Any]:
    """Everything `request --json` says, with the keys of cli.md."""
    from compaction.diagnosis import check_request

    return {
        "client": request.client,
        "at": request.at,
        "verified": request.verified,
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "unaccounted": request.unaccounted,
        "violations": [
            {"rule": v.rule, "path": v.path, "message": v.message, "api_error": v.api_error}
            for v in check_request(request)
        ],
        "system": request.system,
        "tools": request.tools,
        "thinking": request.thinking,
        "params": request.params,
        "origins": [
            [None if o is None else {"line": o.line, "block": o.block} for o in message.origins]
            for message in request.messages
        ],
        "dropped": [{"record": d.record, "block": d.block, "reason": d.reason} for d in request.dropped],
    }


def _print(request: WireRequest, document: dict[str, Any]) -> None:
    place = "the next request" if request.at is None else f"the request that led to round {request.at}"
    how = "proven by recorded hashes" if request.verified == "hash" else "rebuilt by the client's rules"
    print_line(f"{place}, client {request.client}, model {request.model or 'unknown'}: {how}")
    print_line()
    rows = []
    for index, message in enumerate(request.messages):
        lines = sorted({o.line for o in message.origins if o is not None})
        span = "" if not lines else str(lines[0]) if len(lines) == 1 else f"{lines[0]}–{lines[-1]}"
        rows.append([index, message.role, span, ", ".join(_short(block) for block in message.content)])
    print_table(rows, ["#", "role", "lines", "blocks"])
    for name in ("unaccounted", "violations"):
        if document[name]:
            print_line()
            print_line(f"{name}:")
            for item in document[name]:
                where = item.get("path") or (f"line {item['line']}" if item.get("line") else "")
                print_line(
                    "  " + " ".join(p for p in (item.get("rule", item.get("kind", "")), where, item["message"]) if p)
                )
    if request.dropped:
        warn(f"{len(request.dropped)} blocks on the chain are not sent (--json names them)")


def _short(block: dict[str, Any]) -> str:
    kind = str(block.get("type", "?"))
    if kind == "tool_use":
        return f"tool_use {block.get('name', '?')} {str(block.get('id', ''))[-8:]}"
    if kind == "tool_result":
        return f"tool_result {str(block.get('tool_use_id', ''))[-8:]}"
    if kind == "text":
        words = " ".join(str(block.get("text", "")).split())
        return f"“{words[:40]}{'…' if len(words) > 40 else ''}”"
    return kind
