"""How close the client comes to a server's limit: 1,000 requests to a server that answers after
200 ms, 32 at a time.

    python benchmarks/crawl.py [--requests 1000] [--concurrency 32] [--delay 0.2]

The ideal is requests / concurrency x delay. The server runs in its own process. Three figures: the
client alone, the client with the answer log (each answer durable in SQLite before it counts), and
the client's CPU time per request. Exit code 1 beyond --limit.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kgbias.graph.answers import LoggedModel
from kgbias.graph.sqlite import SQLiteStore
from kgbias.io.progress import SilentProgress
from kgbias.models import open_model
from kgbias.models.base import Request

_CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def serve(port: Any, delay: float) -> None:
    """A bare HTTP/1.1 server that answers every request after `delay` seconds."""
    body = json.dumps(
        {
            "choices": [{"index": 0, "text": " food.", "finish_reason": "stop"}],
            "model": "m",
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
    ).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    answer = head % len(body) + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while headers := await reader.readuntil(b"\r\n\r\n"):
                match = _CONTENT_LENGTH.search(headers)
                await reader.readexactly(int(match[1]) if match else 0)
                await asyncio.sleep(delay)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1024)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--limit", type=float, default=1.1)
    options = parser.parse_args()

    spawn = multiprocessing.get_context("spawn")
    port = spawn.Queue()
    server = spawn.Process(target=serve, args=(port, options.delay), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}/v1"
    ideal = options.requests / options.concurrency * options.delay
    worst_ratio = 0.0
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(str(Path(folder) / "kgbias.db"))
        for name in ("client", "client and log"):
            model = open_model("openai:m", base_url=url, concurrency=options.concurrency)
            offset = 0 if name == "client" else options.requests
            requests = [Request("Men love", seed=offset + n) for n in range(options.requests)]
            # The cost of the first request (imports, connections) is negligible in a long crawl.
            list(model.complete([Request("Men love", seed=-n - 1) for n in range(32)]))
            wall, cpu = time.perf_counter(), time.process_time()
            if name == "client":
                answered = sum(len(batch) for batch in model.complete(requests))
            else:
                answered = len(LoggedModel(model, store, SilentProgress()).ask(requests))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            model.close()
            assert answered == options.requests
            worst_ratio = max(worst_ratio, wall / ideal)
            print(
                f"{name:<16}{wall:7.2f} s, ideal {ideal:.2f} s, wall/ideal {wall / ideal:.3f}, "
                f"client CPU {1000 * cpu / options.requests:.2f} ms a request"
            )
        store.close()
    server.terminate()
    sys.exit(worst_ratio > options.limit)


if __name__ == "__main__":
    main()
