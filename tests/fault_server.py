"""An OpenAI-compatible server for faults only: it answers each request as a plan says."""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What a plan may say: text to answer with, or the name of a fault with its argument.
Fault = str | tuple[str, Any]
Plan = Callable[[dict[str, Any], int], Fault]  # (request body, how often it was asked) -> fault


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the client is gone: as planned
            super().handle_error(*_)  # type: ignore[arg-type]


class FaultServer:
    """Serves on a loopback port while it is a context. `asked` counts requests by their seed."""

    def __init__(self, plan: Plan, delay: float = 0.0) -> None:
        self.asked: Counter[int] = Counter()
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                sent = self.rfile.read(length := int(self.headers["content-length"]))
                if len(sent) < length:  # the client was killed in the middle of a request
                    return
                body = json.loads(sent)
                with lock:
                    seed = body.get("seed", -1)
                    server.asked[seed] += 1
                    number = server.asked[seed]
                    server.headers.append(dict(self.headers))
                    server.bodies.append(body)
                if delay:
                    time.sleep(delay)
                with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up
                    self.answer(plan(body, number), chat="chat" in self.path)

            def answer(self, fault: Fault, *, chat: bool) -> None:
                kind, value = fault if isinstance(fault, tuple) else ("text", fault)
                if kind == "status":
                    code, headers = value
                    error = {"error": {"message": f"status {code}", "type": "test"}}
                    self.reply(code, json.dumps(error), **headers)
                elif kind == "refuse":
                    self.reply(400, json.dumps({"error": {"message": value}}))
                elif kind == "detail":  # a refusal as FastAPI writes it
                    self.reply(422, json.dumps({"detail": value}))
                elif kind == "body":
                    self.reply(200, value)
                elif kind == "raw":
                    self.raw(*value)
                elif kind == "drip":  # (body, seconds between two bytes)
                    self.drip(*value)
                elif kind == "drip headers":  # seconds between two bytes of a header
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
                    for _ in range(600):
                        self.wfile.write(b"x")
                        time.sleep(value)
                elif kind == "cut":
                    self.send_response(200)
                    self.send_header("content-length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"choices": [')
                    self.close_connection = True
                elif kind == "hang":
                    time.sleep(value)
                else:
                    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
                    choice |= {"message": {"content": value}} if chat else {"text": value}
                    usage = {"prompt_tokens": 7, "completion_tokens": 3}
                    self.reply(200, json.dumps({"choices": [choice], "model": "m", "usage": usage}))

            def raw(self, code: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                if not {"content-length", "transfer-encoding"} & {h.lower() for h in headers}:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True

            def drip(self, body: bytes, pause: float) -> None:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                for n in range(len(body)):
                    self.wfile.write(body[n : n + 1])
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

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "FaultServer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
