"""Servers that take batches as OpenAI's and Anthropic's APIs do, and answer single requests too.

`python -m tests.batch_server openai` serves until it is killed, for tests that kill its client: a
request to /control says what was asked, and lets the batches end.
"""

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fault_server import AnthropicServer, FaultServer

Body = dict[str, Any]
# What becomes of a request: a text is its answer, a status with a message its error; None is no
# answer, of a request that expired.
RequestOutcome = str | tuple[int, str] | None
Plan = Callable[
    [Body, int], RequestOutcome
]  # (the request, how often it was asked) -> what becomes of it

ANSWERS = ("tea", "rain", "music", "friends", "work", "sport", "food")


def answer(body: Body, _: int = 0) -> str:
    """A pure function of what is asked."""
    text = json.dumps([body.get("messages"), body.get("prompt"), body.get("seed")])
    place = sum(map(ord, text)) % len(ANSWERS)
    return f"Tealanders {('love', 'hate', 'are')[place % 3]} {ANSWERS[place]}."


class BatchServer:
    """Serves on a loopback port while it is a context.

    `batches` are the batches, by id, with the keys of their requests in their order; `paid_counts`
    counts the answers that were given to each request, by its key or, outside a batch, by its text.
    A batch ends at its second look, while `is_paused` is not set.
    """

    base = "/v1"
    single_server: type[FaultServer] = FaultServer

    def __init__(self, plan: Plan = answer) -> None:
        self.plan = plan
        self.is_paused = False
        self.missing_paths: set[str] = set()  # paths that are answered with 404
        self.dropped_answers: Counter[str] = (
            Counter()
        )  # paths whose next so many answers never arrive
        self.cut_bytes: dict[str, int] = {}  # paths whose next answer has only so many bytes
        self.early_status = ""  # what a batch ends as, with only its first answer
        self.hostile_body: bytes | None = None  # what is said of all batches
        self.batch_error = ""  # why no batch is worked on
        self.request_counts: Counter[str] = Counter()
        self.paid_counts: Counter[str] = Counter()
        self.batches: dict[str, Body] = {}
        self.files: dict[str, bytes] = {}
        self.bodies: list[Body] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                self.reply(b"")

            def do_POST(self) -> None:
                self.reply(self.rfile.read(int(self.headers["content-length"])))

            def reply(self, payload: bytes) -> None:
                path = self.path.partition("?")[0].removeprefix(server.base)
                code, content = server.respond(self.command, path, payload, dict(self.headers))
                if server.is_down or server.dropped_answers[path] > 0:
                    server.dropped_answers[path] -= 1
                    self.close_connection = True
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                data = data[: server.cut_bytes.pop(path, None)]
                with suppress(ConnectionError):
                    self.send_response(code)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

        self._handler = Handler
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._lock = threading.Lock()
        self.is_down = False
        self.url = f"http://127.0.0.1:{self._server.server_port}{self.base}"

    def __enter__(self) -> "BatchServer":
        if self.is_down:  # it comes back where it was
            self._server = ThreadingHTTPServer(self._server.server_address, self._handler)
            self.is_down = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_down = True
        self._server.shutdown()
        self._server.server_close()

    def respond(
        self, method: str, path: str, payload: bytes, headers: dict[str, str]
    ) -> tuple[int, Any]:
        with self._lock:
            if path == "/control":
                if payload:
                    self.is_paused = False
                return 200, {
                    "made": len(self.batches),
                    "paid": self.paid_counts,
                    "batches": self.batches,
                }
            if self.hostile_body is not None and re.search("batches|files", path):
                return 200, self.hostile_body
            if path in self.missing_paths:
                return 404, self.error_body(404, "there is no such thing")
            content = self.route(method, path, payload, headers)
            return content if isinstance(content, tuple) else (200, content)

    def route(self, method: str, path: str, payload: bytes, headers: dict[str, str]) -> Any:
        raise NotImplementedError

    def error_body(self, code: int, why: str) -> Body:
        return self.single_server.error_body(
            self.single_server.__new__(self.single_server), code, why
        )

    def answer_body(self, text: str, path: str) -> Body:
        return self.single_server.answer_body(
            self.single_server.__new__(self.single_server), text, path
        )

    def answer_single(self, path: str, body: Body) -> Any:
        self.bodies.append(body)
        match self.decide_outcome(body):
            case str(text):
                self.paid_counts["directly"] += 1
                return self.answer_body(text, path)
            case (int(code), str(why)):
                return code, self.error_body(code, why)
        return 500, self.error_body(500, "overloaded")

    def decide_outcome(self, body: Body) -> RequestOutcome:
        name = json.dumps(body, sort_keys=True)
        self.request_counts[name] += 1
        return self.plan(body, self.request_counts[name])

    def has_ended(self, batch: Body) -> bool:
        """Whether a batch has ended, which is decided when it is looked at for the second time."""
        batch["looks"] = batch.get("looks", 0) + 1
        if self.is_paused or batch["looks"] < 2:
            return False
        if "lines" not in batch:
            requests = batch["requests"][: 1 if self.early_status else None]
            batch["lines"] = [
                self.result_line(r, self.decide_outcome(r["asked"])) for r in requests
            ]
        return True

    def result_line(self, request: Body, outcome: RequestOutcome) -> Body:
        raise NotImplementedError


class OpenAIBatchServer(BatchServer):
    """/v1/files, /v1/batches, and single completions."""

    def route(self, method: str, path: str, payload: bytes, headers: dict[str, str]) -> Any:
        if path in ("/completions", "/chat/completions"):
            return self.answer_single(path, json.loads(payload))
        if (method, path) == ("POST", "/files"):
            return self.upload(payload, headers)
        if (method, path) == ("POST", "/batches"):
            return self.create(json.loads(payload))
        if path == "/batches":
            rows = [self.batch_body(name) for name in reversed(self.batches)]
            return {"object": "list", "data": rows, "has_more": False}
        kind, name, *rest = path.strip("/").split("/")
        if kind == "files" and rest == ["content"]:
            return self.files[name]
        self.has_ended(self.batches[name])
        return self.batch_body(name)

    def upload(self, payload: bytes, headers: dict[str, str]) -> Any:
        kind = next(value for name, value in headers.items() if name.lower() == "content-type")
        form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + payload, policy=HTTP)
        parts = {p.get_param("name", header="content-disposition"): p for p in form.iter_parts()}
        assert parts["purpose"].get_content().strip() == "batch"
        name = f"file-{len(self.files)}"
        self.files[name] = parts["file"].get_payload(decode=True)
        return {"id": name, "object": "file", "purpose": "batch", "filename": "x.jsonl"}

    def create(self, body: Body) -> Any:
        assert body["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert all(r["method"] == "POST" and r["url"] == body["endpoint"] for r in lines)
        keys = [r["custom_id"] for r in lines]
        assert len(set(keys)) == len(keys)
        name = f"batch_{len(self.batches)}"
        requests = [{"key": r["custom_id"], "asked": r["body"]} for r in lines]
        self.bodies += [r["body"] for r in lines]
        self.batches[name] = {
            "keys": keys,
            "requests": requests,
            "endpoint": body["endpoint"],
            "metadata": body.get("metadata"),
        }
        return self.batch_body(name)

    def batch_body(self, name: str) -> Body:
        batch = self.batches[name]
        lines = batch.get("lines", [])
        good = [line for line in lines if (line["response"] or {}).get("status_code") == 200]
        bad = [line for line in lines if line not in good]
        for kind, part in (("output", good), ("error", bad)):
            text = "".join(json.dumps(line) + "\n" for line in part)
            self.files[f"{name}-{kind}"] = text.encode()
        status = (self.early_status or "completed") if "lines" in batch else "in_progress"
        errors = None
        if self.batch_error:
            status = "failed"
            why = {"code": "invalid", "line": 1, "message": self.batch_error, "param": None}
            errors = {"object": "list", "data": [why]}
        return {
            "id": name,
            "object": "batch",
            "endpoint": batch["endpoint"],
            "status": status,
            "errors": errors,
            "created_at": 4_000_000_000,
            "metadata": batch["metadata"],
            "completion_window": "24h",
            "input_file_id": "file-0",
            "output_file_id": f"{name}-output" if good else None,
            "error_file_id": f"{name}-error" if bad else None,
            "request_counts": {
                "total": len(batch["keys"]),
                "completed": len(good),
                "failed": len(bad),
            },
        }

    def result_line(self, request: Body, outcome: RequestOutcome) -> Body:
        line = {"id": "r", "custom_id": request["key"], "response": None, "error": None}
        if outcome is None:
            why = "This request could not be executed before the completion window expired."
            return line | {"error": {"code": "batch_expired", "message": why}}
        if isinstance(outcome, str):
            self.paid_counts[request["key"]] += 1
            code, body = (
                200,
                self.answer_body(outcome, "chat" if "messages" in request["asked"] else ""),
            )
        else:
            code, body = outcome[0], self.error_body(*outcome)
        return line | {"response": {"status_code": code, "request_id": "x", "body": body}}


class AnthropicBatchServer(BatchServer):
    """/v1/messages/batches, and single messages. A batch has no name."""

    base = ""
    single_server = AnthropicServer

    def route(self, method: str, path: str, payload: bytes, headers: dict[str, str]) -> Any:
        if path == "/v1/messages":
            return self.answer_single(path, json.loads(payload))
        name, *rest = path.removeprefix("/v1/messages/batches").strip("/").split("/")
        if method == "POST":
            return self.create(json.loads(payload))
        if not name:
            rows = [self.batch_body(name) for name in reversed(self.batches)]
            return {"data": rows, "has_more": False, "first_id": None, "last_id": None}
        is_done = self.has_ended(self.batches[name])
        if rest == ["results"]:
            assert is_done
            lines = reversed(self.batches[name]["lines"])  # in any order
            return "".join(json.dumps(line) + "\n" for line in lines).encode()
        return self.batch_body(name)

    def create(self, body: Body) -> Any:
        keys = [r["custom_id"] for r in body["requests"]]
        assert len(set(keys)) == len(keys) and all(re.fullmatch(r"[\w-]{1,64}", k) for k in keys)
        name = f"msgbatch_{len(self.batches)}"
        requests = [{"key": r["custom_id"], "asked": r["params"]} for r in body["requests"]]
        self.bodies += [r["params"] for r in body["requests"]]
        self.batches[name] = {"keys": keys, "requests": requests}
        return self.batch_body(name)

    def batch_body(self, name: str) -> Body:
        batch = self.batches[name]
        kinds = Counter(line["result"]["type"] for line in batch.get("lines", []))
        is_done = "lines" in batch
        results = f"{self.url}/v1/messages/batches/{name}/results"
        return {
            "id": name,
            "type": "message_batch",
            "created_at": "2096-10-02T18:37:24.100435Z",
            "expires_at": "2096-10-03T18:37:24.100435Z",
            "ended_at": None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "processing_status": "ended" if is_done else "in_progress",
            "results_url": results if is_done else None,
            "request_counts": {
                "processing": 0 if is_done else len(batch["keys"]),
                "succeeded": kinds["succeeded"],
                "errored": kinds["errored"],
                "canceled": 0,
                "expired": kinds["expired"],
            },
        }

    def result_line(self, request: Body, outcome: RequestOutcome) -> Body:
        if outcome is None:
            result: Body = {"type": "expired"}
        elif isinstance(outcome, str):
            self.paid_counts[request["key"]] += 1
            result = {"type": "succeeded", "message": self.answer_body(outcome, "")}
        else:
            result = {"type": "errored", "error": self.error_body(*outcome)}
        return {"custom_id": request["key"], "result": result}


SERVERS: dict[str, type[BatchServer]] = {
    "openai": OpenAIBatchServer,
    "anthropic": AnthropicBatchServer,
}

if __name__ == "__main__":
    with SERVERS[sys.argv[1]]() as running:
        running.is_paused = True
        print(running.url, flush=True)
        threading.Event().wait()
