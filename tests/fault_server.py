"""Servers for faults, each of which answers as a plan says: one that speaks as OpenAI's API does,
and one each that speaks as Anthropic's and Google's."""

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from typing import Any

from tests.waiting import DEADLINE_SECONDS, wait_until

# What a plan may say: text to answer with, or the name of a fault with its argument.
Fault = str | tuple[str, Any]
Plan = Callable[[dict[str, Any], int], Fault]  # (request body, how often it was asked) -> fault


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self.open_clients: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open_clients.add(client_address)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        super().process_request_thread(request, client_address)
        self.open_clients.discard(client_address)

    def handle_error(self, *_: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the client is gone: as planned
            super().handle_error(*_)  # type: ignore[arg-type]


class FaultServer:
    """Serves on a loopback port while it is a context. `request_counts` counts requests by their
    seed."""

    base = "/v1"

    def request_key(self, body: dict[str, Any]) -> Any:
        """What tells one request from another."""
        return body.get("seed", -1)

    def answer_body(self, text: str, path: str) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        choice |= {"message": {"content": text}} if "chat" in path else {"text": text}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return {"choices": [choice], "model": "m", "usage": usage}

    def error_body(self, code: int, why: str) -> dict[str, Any]:
        return {"error": {"message": why, "type": "test"}}

    def __init__(self, plan: Plan, delay: float = 0.0) -> None:
        self.request_counts: Counter[Any] = Counter()
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                payload = self.rfile.read(length := int(self.headers["content-length"]))
                if len(payload) < length:  # the client was killed in the middle of a request
                    return
                body = json.loads(payload)
                with lock:
                    server.request_counts[name := server.request_key(body)] += 1
                    number = server.request_counts[name]
                    server.headers.append(dict(self.headers))
                    server.bodies.append(body)
                if delay:
                    time.sleep(delay)
                with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up
                    self.answer(plan(body, number))

            def answer(self, fault: Fault) -> None:
                kind, value = fault if isinstance(fault, tuple) else ("text", fault)
                if kind == "status":
                    code, headers = value
                    error = server.error_body(code, f"status {code}")
                    self.reply(code, json.dumps(error), **headers)
                elif kind == "refuse":
                    code, why = value if isinstance(value, tuple) else (400, value)
                    self.reply(code, json.dumps(server.error_body(code, why)))
                elif kind == "detail":  # a refusal as FastAPI writes it
                    self.reply(422, json.dumps({"detail": value}))
                elif kind == "body":
                    self.reply(200, value)
                elif kind == "raw":
                    self.raw(*value)
                elif kind == "drip":  # (body, seconds between two bytes): then blanks, without end
                    self.drip(*value)
                elif kind == "drip headers":  # seconds between two bytes of a header
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
                    while True:
                        self.wfile.write(b"x")
                        time.sleep(value)
                elif kind == "stray":  # (answer, bytes that follow it unasked, seconds before them)
                    self.stray(*value)
                elif kind == "cut":
                    self.send_response(200)
                    self.send_header("content-length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"choices": [')
                    self.close_connection = True
                elif kind == "hang":
                    time.sleep(value)
                else:
                    content = (
                        server.answer_body(value, self.path) if isinstance(value, str) else value
                    )
                    self.reply(200, json.dumps(content))

            def raw(self, code: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                if not {"content-length", "transfer-encoding"} & {h.lower() for h in headers}:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True

            def stray(self, body: str, unasked: bytes, pause: float) -> None:
                self.reply(200, body)
                time.sleep(pause)
                self.wfile.write(unasked)

            def drip(self, body: bytes, pause: float) -> None:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "1000000")
                self.end_headers()
                for byte in chain(body, repeat(ord(" "))):
                    self.wfile.write(bytes([byte]))
                    time.sleep(pause)

            def reply(self, code: int, body: str, **headers: str) -> None:
                data = body.encode("utf-8", "surrogatepass")
                self.send_response(code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(data)

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}{self.base}"

    def __enter__(self) -> "FaultServer":
        # Asked this often whether to stop, or each test would wait for half a second.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_until_idle(self) -> None:
        """Until all is read that was sent by clients that are gone."""
        # Connections are taken in their order: where ours is, those before it are.
        with socket.create_connection(self._server.server_address[:2]) as own:
            wait_until(lambda: own.getsockname() in self._server.open_clients)
        wait_until(lambda: not self._server.open_clients)


class PausingServer(FaultServer):
    """Answers so many requests, and the others once it is told to go on."""

    def __init__(self, plan: Plan, count: int) -> None:
        self._is_going_on = threading.Event()

        def paused(body: dict[str, Any], number: int) -> Fault:
            if len(self.bodies) > count:
                self._is_going_on.wait(DEADLINE_SECONDS)
            return plan(body, number)

        super().__init__(paused)

    def go_on(self) -> None:
        """After the client was killed."""
        self._is_going_on.set()
        self.wait_until_idle()


class AnthropicServer(FaultServer):
    """The same in the words of Anthropic's Messages API. Requests are told apart by their text."""

    base = ""

    def request_key(self, body: dict[str, Any]) -> Any:
        return body["messages"][-1]["content"]

    def answer_body(self, text: str, path: str, **changes: Any) -> dict[str, Any]:
        return {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "claude-m-1",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "stop_details": None,
            "usage": {
                "input_tokens": 7,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 3,
                "service_tier": "standard",
            },
        } | changes

    def error_body(self, code: int, why: str) -> dict[str, Any]:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            404: "not_found_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        error = {"type": kinds.get(code, "api_error"), "message": why}
        return {"type": "error", "error": error, "request_id": "req_01"}


class GoogleServer(FaultServer):
    """The same in the words of Google's generateContent. Requests are told apart by their seed."""

    base = ""

    def request_key(self, body: dict[str, Any]) -> Any:
        return body["generationConfig"].get("seed", -1)

    def answer_body(self, text: str, path: str, **changes: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": text}]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": 7,
                "candidatesTokenCount": 3,
                "totalTokenCount": 10,
            },
            "modelVersion": "gemini-m-001",
            "responseId": "r1",
        } | changes

    def error_body(self, code: int, why: str) -> dict[str, Any]:
        names = {
            400: "INVALID_ARGUMENT",
            401: "UNAUTHENTICATED",
            404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED",
            503: "UNAVAILABLE",
        }
        return {"error": {"code": code, "message": why, "status": names.get(code, "INTERNAL")}}
