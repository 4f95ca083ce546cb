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
Fate = str | tuple[int, str] | None
Plan = Callable[[Body, int], Fate]  # (the request, how often it was asked) -> what becomes of it

ANSWERS = ("tea", "rain", "music", "friends", "work", "sport", "food")


def answer(body: Body, _: int = 0) -> str:
    """A pure function of what is asked."""
    said = json.dumps([body.get("messages"), body.get("prompt"), body.get("seed")])
    place = sum(map(ord, said)) % len(ANSWERS)
    return f"Tealanders {('love', 'hate', 'are')[place % 3]} {ANSWERS[place]}."


class BatchServer:
    """Serves on a loopback port while it is a context.

    `made` are the batches, by id, with the keys of their requests in their order; `paid` counts the
    answers that were given to each request, by its key or, outside a batch, by its text. A batch
    ends at its second look, while `held` is not set.
    """

    base = "/v1"
    single: type[FaultServer] = FaultServer

    def __init__(self, plan: Plan = answer) -> None:
        self.plan = plan
        self.held = False
        self.lost: set[str] = set()  # paths that are answered with 404
        self.broken: Counter[str] = Counter()  # paths whose next so many answers never arrive
        self.cut: dict[str, int] = {}  # paths whose next answer has only so many bytes
        self.stopped = ""  # what a batch ends as, with only its first answer
        self.hostile: bytes | None = None  # what is said of all batches
        self.refused = ""  # why no batch is worked on
        self.asked: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.made: dict[str, Body] = {}
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

            def reply(self, sent: bytes) -> None:
                path = self.path.partition("?")[0].removeprefix(server.base)
                code, found = server.respond(self.command, path, sent, dict(self.headers))
                if server.gone or server.broken[path] > 0:
                    server.broken[path] -= 1
                    self.close_connection = True
                    return
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                data = data[: server.cut.pop(path, None)]
                with suppress(ConnectionError):
                    self.send_response(code)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

        self._handler = Handler
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._lock = threading.Lock()
        self.gone = False
        self.url = f"http://127.0.0.1:{self._server.server_port}{self.base}"

    def __enter__(self) -> "BatchServer":
        if self.gone:  # it comes back where it was
            self._server = ThreadingHTTPServer(self._server.server_address, self._handler)
            self.gone = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gone = True
        self._server.shutdown()
        self._server.server_close()

    def respond(
        self, method: str, path: str, sent: bytes, headers: dict[str, str]
    ) -> tuple[int, Any]:
        with self._lock:
            if path == "/control":
                if sent:
                    self.held = False
                return 200, {"made": len(self.made), "paid": self.paid, "batches": self.made}
            if self.hostile is not None and re.search("batches|files", path):
                return 200, self.hostile
            if path in self.lost:
                return 404, self.error(404, "there is no such thing")
            found = self.route(method, path, sent, headers)
            return found if isinstance(found, tuple) else (200, found)

    def route(self, method: str, path: str, sent: bytes, headers: dict[str, str]) -> Any:
        raise NotImplementedError

    def error(self, code: int, why: str) -> Body:
        return self.single.refused(self.single.__new__(self.single), code, why)

    def said(self, text: str, path: str) -> Body:
        return self.single.said(self.single.__new__(self.single), text, path)

    def directly(self, path: str, body: Body) -> Any:
        self.bodies.append(body)
        match self.fate(body):
            case str(text):
                self.paid["directly"] += 1
                return self.said(text, path)
            case (int(code), str(why)):
                return code, self.error(code, why)
        return 500, self.error(500, "overloaded")

    def fate(self, body: Body) -> Fate:
        name = json.dumps(body, sort_keys=True)
        self.asked[name] += 1
        return self.plan(body, self.asked[name])

    def progress(self, batch: Body) -> bool:
        """Whether a batch has ended, which is decided when it is looked at for the second time."""
        batch["looks"] = batch.get("looks", 0) + 1
        if self.held or batch["looks"] < 2:
            return False
        if "lines" not in batch:
            asked = batch["requests"][: 1 if self.stopped else None]
            batch["lines"] = [self.line(r, self.fate(r["asked"])) for r in asked]
        return True

    def line(self, request: Body, fate: Fate) -> Body:
        raise NotImplementedError


class OpenAIBatchServer(BatchServer):
    """/v1/files, /v1/batches, and single completions."""

    def route(self, method: str, path: str, sent: bytes, headers: dict[str, str]) -> Any:
        if path in ("/completions", "/chat/completions"):
            return self.directly(path, json.loads(sent))
        if (method, path) == ("POST", "/files"):
            return self.upload(sent, headers)
        if (method, path) == ("POST", "/batches"):
            return self.create(json.loads(sent))
        if path == "/batches":
            rows = [self.shown(name) for name in reversed(self.made)]
            return {"object": "list", "data": rows, "has_more": False}
        kind, name, *rest = path.strip("/").split("/")
        if kind == "files" and rest == ["content"]:
            return self.files[name]
        self.progress(self.made[name])
        return self.shown(name)

    def upload(self, sent: bytes, headers: dict[str, str]) -> Any:
        kind = next(value for name, value in headers.items() if name.lower() == "content-type")
        form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + sent, policy=HTTP)
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
        name = f"batch_{len(self.made)}"
        requests = [{"key": r["custom_id"], "asked": r["body"]} for r in lines]
        self.bodies += [r["body"] for r in lines]
        self.made[name] = {"keys": keys, "requests": requests, "endpoint": body["endpoint"],
                           "metadata": body.get("metadata")}  # fmt: skip
        return self.shown(name)

    def shown(self, name: str) -> Body:
        batch = self.made[name]
        lines = batch.get("lines", [])
        good = [line for line in lines if (line["response"] or {}).get("status_code") == 200]
        bad = [line for line in lines if line not in good]
        for kind, part in (("output", good), ("error", bad)):
            text = "".join(json.dumps(line) + "\n" for line in part)
            self.files[f"{name}-{kind}"] = text.encode()
        status = (self.stopped or "completed") if "lines" in batch else "in_progress"
        errors = None
        if self.refused:
            status = "failed"
            why = {"code": "invalid", "line": 1, "message": self.refused, "param": None}
            errors = {"object": "list", "data": [why]}
        return {
            "id": name, "object": "batch", "endpoint": batch["endpoint"], "status": status,
            "errors": errors, "created_at": 4_000_000_000, "metadata": batch["metadata"],
            "completion_window": "24h", "input_file_id": "file-0",
            "output_file_id": f"{name}-output" if good else None,
            "error_file_id": f"{name}-error" if bad else None,
            "request_counts": {
                "total": len(batch["keys"]), "completed": len(good), "failed": len(bad),
            },
        }  # fmt: skip

    def line(self, request: Body, fate: Fate) -> Body:
        line = {"id": "r", "custom_id": request["key"], "response": None, "error": None}
        if fate is None:
            why = "This request could not be executed before the completion window expired."
            return line | {"error": {"code": "batch_expired", "message": why}}
        if isinstance(fate, str):
            self.paid[request["key"]] += 1
            code, body = 200, self.said(fate, "chat" if "messages" in request["asked"] else "")
        else:
            code, body = fate[0], self.error(*fate)
        return line | {"response": {"status_code": code, "request_id": "x", "body": body}}


class AnthropicBatchServer(BatchServer):
    """/v1/messages/batches, and single messages. A batch has no name."""

    base = ""
    single = AnthropicServer

    def route(self, method: str, path: str, sent: bytes, headers: dict[str, str]) -> Any:
        if path == "/v1/messages":
            return self.directly(path, json.loads(sent))
        name, *rest = path.removeprefix("/v1/messages/batches").strip("/").split("/")
        if method == "POST":
            return self.create(json.loads(sent))
        if not name:
            rows = [self.shown(name) for name in reversed(self.made)]
            return {"data": rows, "has_more": False, "first_id": None, "last_id": None}
        ended = self.progress(self.made[name])
        if rest == ["results"]:
            assert ended
            lines = reversed(self.made[name]["lines"])  # in any order
            return "".join(json.dumps(line) + "\n" for line in lines).encode()
        return self.shown(name)

    def create(self, body: Body) -> Any:
        keys = [r["custom_id"] for r in body["requests"]]
        assert len(set(keys)) == len(keys) and all(re.fullmatch(r"[\w-]{1,64}", k) for k in keys)
        name = f"msgbatch_{len(self.made)}"
        requests = [{"key": r["custom_id"], "asked": r["params"]} for r in body["requests"]]
        self.bodies += [r["params"] for r in body["requests"]]
        self.made[name] = {"keys": keys, "requests": requests}
        return self.shown(name)

    def shown(self, name: str) -> Body:
        batch = self.made[name]
        kinds = Counter(line["result"]["type"] for line in batch.get("lines", []))
        ended = "lines" in batch
        results = f"{self.url}/v1/messages/batches/{name}/results"
        return {
            "id": name, "type": "message_batch", "created_at": "2096-10-02T18:37:24.100435Z",
            "expires_at": "2096-10-03T18:37:24.100435Z", "ended_at": None, "archived_at": None,
            "cancel_initiated_at": None, "processing_status": "ended" if ended else "in_progress",
            "results_url": results if ended else None,
            "request_counts": {
                "processing": 0 if ended else len(batch["keys"]), "succeeded": kinds["succeeded"],
                "errored": kinds["errored"], "canceled": 0, "expired": kinds["expired"],
            },
        }  # fmt: skip

    def line(self, request: Body, fate: Fate) -> Body:
        if fate is None:
            result: Body = {"type": "expired"}
        elif isinstance(fate, str):
            self.paid[request["key"]] += 1
            result = {"type": "succeeded", "message": self.said(fate, "")}
        else:
            result = {"type": "errored", "error": self.error(*fate)}
        return {"custom_id": request["key"], "result": result}


SERVERS: dict[str, type[BatchServer]] = {
    "openai": OpenAIBatchServer,
    "anthropic": AnthropicBatchServer,
}

if __name__ == "__main__":
    with SERVERS[sys.argv[1]]() as running:
        running.held = True
        print(running.url, flush=True)
        threading.Event().wait()
