"""A loopback HTTP server that speaks the Messages API's wire format: streams, errors, delays, broken connections."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Handler"], None]

ANSWER = "<analysis>thought</analysis>\n<summary>\n1. Primary Request and Intent:\n- build it\n</summary>"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body = json.loads(self.rfile.read(length) or b"{}")
        api = self.api
        api.requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
        reply = api.replies.pop(0) if api.replies else error(500, "api_error", "no more replies")
        reply(self)

    def do_GET(self) -> None:
        self.do_POST()

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("request-id", "req_1")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, kind: str, **data: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())
        self.wfile.flush()


@dataclass
class Api:
    """The server's address, the replies it will give in order, and the requests it got."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Api]:
    api = Api()
    handler = type("BoundHandler", (Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


USAGE = {
    "input_tokens": 10,
    "output_tokens": 1,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 20,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 20},
}


def stream(
    text: str = ANSWER,
    *,
    stop_reason: str = "end_turn",
    tool: str = "",
    pause: float = 0.0,
    cut_after: int | None = None,
    error_after: str = "",
    usage: dict[str, Any] | None = None,
) -> Reply:
    """A streamed answer; optionally slow, with a tool call, cut off in the middle, or ending in an error event."""

    def reply(handler: Handler) -> None:
        handler.begin_stream()
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": []}
        handler.event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": USAGE})
        handler.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        pieces = [text[i : i + 20] for i in range(0, len(text), 20)]
        for number, piece in enumerate(pieces):
            if cut_after is not None and number >= cut_after:
                return
            if pause:
                time.sleep(pause)
            try:
                handler.event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
            except OSError:
                return
        if error_after:
            handler.event("error", error={"type": error_after, "message": "Overloaded"})
            return
        handler.event("content_block_stop", index=0)
        if tool:
            block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
            handler.event("content_block_start", index=1, content_block=block)
            handler.event("content_block_stop", index=1)
        final = {**USAGE, "output_tokens": 300, **(usage or {})}
        handler.event("message_delta", delta={"stop_reason": stop_reason, "stop_sequence": None}, usage=final)
        handler.event("message_stop")

    return reply


def body(value: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """A plain JSON answer."""

    def reply(handler: Handler) -> None:
        data = json.dumps(value).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        for name, content in (headers or {}).items():
            handler.send_header(name, content)
        handler.end_headers()
        handler.wfile.write(data)

    return reply


def error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Reply:
    """An error answer of the API."""
    return body({"type": "error", "error": {"type": kind, "message": message}}, status, headers)


def silence(seconds: float) -> Reply:
    """An answer that does not come in time."""

    def reply(handler: Handler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return reply
