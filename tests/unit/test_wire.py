"""What may come in from servers: how much of it, and as how many values."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kgbias.models import http
from tests.conftest import require_modules

require_modules("openai")

BIG = b"x" * (http.MAX_ANSWER_BYTES + 1)


def _asked(method: str, path: str) -> bytes:
    """What a client gets of a server whose answers are all too long, and which sends whoever asks
    for /away to /big with a GET."""
    import httpx2

    async def body() -> AsyncIterator[bytes]:
        yield BIG

    def server(request: Any) -> Any:
        if request.url.path == "/away":
            return httpx2.Response(303, headers={"location": "/big"})
        return httpx2.Response(200, content=body())

    class Mocked(httpx2.AsyncClient):
        def __init__(self, **how: Any) -> None:
            transport = httpx2.MockTransport(server)
            super().__init__(transport=transport, follow_redirects=True, **how)

    async def ask() -> bytes:
        async with http.bounded_client(Mocked, 5, "http://a") as client:
            content: bytes = (await client.request(method, f"http://a{path}")).content
            return content

    with ThreadPoolExecutor(1) as thread:  # a browser of other tests may hold a loop in this one
        return thread.submit(lambda: asyncio.run(ask())).result()


def test_an_answer_is_short_and_what_is_fetched_may_be_longer() -> None:
    import httpx2

    assert _asked("GET", "/big") == BIG
    with pytest.raises(httpx2.DecodingError, match="longer than 8 MB"):
        _asked("POST", "/big")


def test_a_redirect_after_which_nothing_is_asked_is_named() -> None:
    """Clients fetch what a 303 points to: an answer to another question, or none."""
    import httpx2

    with pytest.raises(httpx2.ReadError, match="it redirects to http"):
        _asked("POST", "/away")


def test_values_are_counted_before_they_are_read() -> None:
    """8 MB of empty objects would take 230 MB."""
    most = http.MAX_JSON_VALUES - 1
    assert http.parse_body(b"[" + b"{}," * (most // 2) + b"0]") == [
        *({} for _ in range(most // 2)),
        0,
    ]
    for value in (b"{}", b"[]", b"0", b'{"":0}', b'"a"'):
        assert http.parse_body(b"[" + (value + b",") * http.MAX_JSON_VALUES + b"0]") is None
    assert http.parse_body(BIG) is None
