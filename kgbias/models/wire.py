"""The edge of every client of a server: what leaves by it, and what may come in.

The key of OPENAI_API_KEY goes into one header and nowhere else: `Secrets.clean` takes it out of all
that a server says, an error or an answer, before anything is cut, kept or shown. A response is read
as UTF-8, up to a size, within one time for the whole of it, and never unpacked.
"""

import base64
import json
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kgbias.errors import MissingExtra, ModelError, UsageError
from kgbias.text import storable

DEFAULT_URL = "https://api.openai.com/v1"
LONGEST = 64 << 20  # bytes of one response
_SECRET = 8  # characters from which on a key is a secret: some servers want "none" or "x"
_TELLING = 12  # so many characters of a secret in a row give it away


@dataclass(frozen=True, slots=True)
class Secrets:
    """What must never be shown: a key and the password of a URL."""

    key: str
    password: str = ""

    def clean(self, text: str) -> str:
        """The text, storable, with every telling piece of a secret replaced, in plain form, as
        Basic authorisation or escaped."""
        for secret, name in ((self.key, "[key]"), (self.password, "[password]")):
            if len(secret) >= _SECRET:
                for size, pieces in _telling(secret):
                    text = _without(text, size, pieces, name)
        return storable(text)

    def line(self, text: str, longest: int = 300) -> str:
        """The clean text on one line that a terminal may be shown, and no longer than that."""
        text = self.clean(text)
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:longest]


def read_secrets(url: str) -> Secrets:
    """The secrets of talking to this URL. Raises UsageError for a key that no header can hold."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not all("!" <= c <= "~" for c in key):
        raise UsageError(
            "OPENAI_API_KEY holds a character that a key cannot have (a line break, a space or one "
            "outside ASCII): copy it again"
        )
    return Secrets(key, unquote(urlsplit(url).password or ""))


def server_url(base_url: str | None = None) -> str:
    """`base_url`, else OPENAI_BASE_URL, else OpenAI's own. Raises UsageError for what is not a
    URL."""
    url = base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is not one
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError("base_url must look like http://HOST:PORT/v1")
    return url


def without_password(url: str) -> str:
    """A URL as it may be shown and stored."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def client_options(url: str, timeout: float, *, concurrent: bool = False) -> dict[str, Any]:
    """What `openai.OpenAI` takes, or `openai.AsyncOpenAI` if `concurrent`, to keep this module's
    promises. `timeout` is in seconds, for the whole of an answer. Raises MissingExtra without the
    package, UsageError for a key or a time that cannot be."""
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtra("openai", extra="openai") from error
    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError("timeout must be a positive number of seconds")
    make = openai.DefaultAsyncHttpxClient if concurrent else openai.DefaultHttpxClient
    hooks = _async_hooks(timeout) if concurrent else _hooks(timeout)
    return {
        "api_key": read_secrets(url).key or "none",  # a server without keys wants some header
        "base_url": url,
        "timeout": timeout,
        "http_client": make(event_hooks=hooks, headers={"accept-encoding": "identity"}),
    }


def said(call: Callable[[], Any], who: str, secrets: Secrets) -> dict[str, Any]:
    """The JSON object that a server answers to `call` (a raw response of the client's). Raises
    ModelError, in one clean line, where there is none."""
    import openai

    try:
        body = call().content
    except openai.OpenAIError as error:
        reason = secrets.line(str(error.__cause__ or error)) or type(error).__name__
        if isinstance(error, openai.APIStatusError):
            reason = f"{error.status_code}: {secrets.line(message(error))}"
        raise ModelError(f"{who} does not answer: {reason}") from None
    found = parsed(body)
    if not isinstance(found, dict):
        start = secrets.line(body[: 4 * 1024].decode("utf-8", "replace"), 80)
        raise ModelError(f"{who} answers with something other than a JSON object: {start!r}")
    return found


def parsed(body: bytes) -> Any:
    """The value of a body of JSON; None for anything else."""
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def message(error: Any) -> str:
    """What the body of an error says: its `message`, or its `detail` as FastAPI writes it."""
    body: Any = error.body
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    if isinstance(body, Mapping) and isinstance(body.get("message"), str):
        return str(body["message"])
    if isinstance(body, Mapping) and body.get("detail"):
        return str(body["detail"])
    return str(getattr(error, "message", error))


def number(value: Any, low: float, high: float) -> float | None:
    """The value where it is a number from `low` to `high`, else None; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None


def _forms(secret: str) -> Iterator[str]:
    """How a secret may be written: plain, in base64 beside something else, escaped."""
    yield secret
    for before in range(3):  # in base64, by how many bytes stand before it
        data = base64.b64encode(b"\0" * before + secret.encode()).decode()
        yield data[4 if before else 0 :].rstrip("=")[:-1]
    yield "".join(f"\\u{ord(c):04x}" for c in secret)
    for form in (quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        if form != secret:
            yield form


@cache
def _telling(secret: str) -> list[tuple[int, frozenset[str]]]:
    """The telling pieces of each form of a secret, with their length."""
    found = []
    for form in _forms(secret):
        size = min(_TELLING, len(form))
        found.append((size, frozenset(form[n : n + size] for n in range(len(form) - size + 1))))
    return found


def _without(text: str, size: int, pieces: Collection[str], name: str) -> str:
    """The text with each run of these pieces, all of this size, replaced by the name."""
    if not any(piece in text for piece in pieces):
        return text
    kept, at, out = 0, 0, []
    while at < len(text):
        if text[at : at + size] in pieces:
            end = at + size
            while end < len(text) and text[end - size + 1 : end + 1] in pieces:
                end += 1
            out += [text[kept:at], name]
            kept = at = end
        else:
            at += 1
    return "".join([*out, text[kept:]])


def _hooks(timeout: float) -> dict[str, list[Any]]:
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, stream: Any, bound: _Bound) -> None:
            self._stream, self._bound = stream, bound

        def __iter__(self) -> Iterator[bytes]:
            for part in self._stream:
                yield self._bound.passed(part)

        def close(self) -> None:
            self._stream.close()

    def begin(request: Any) -> None:
        request.extensions["kgbias"] = _Bound(timeout)

    def received(response: Any) -> None:
        response.stream = Bounded(response.stream, _checked(response))

    return {"request": [begin], "response": [received]}


def _async_hooks(timeout: float) -> dict[str, list[Any]]:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, bound: _Bound) -> None:
            self._stream, self._bound = stream, bound

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._stream:
                yield self._bound.passed(part)

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def begin(request: Any) -> None:
        request.extensions["kgbias"] = _Bound(timeout)

    async def received(response: Any) -> None:
        response.stream = Bounded(response.stream, _checked(response))

    return {"request": [begin], "response": [received]}


class _Bound:
    """How long one answer may still take, and how much of it has come."""

    def __init__(self, timeout: float) -> None:
        self._until = time.monotonic() + timeout
        self._bytes = 0

    def passed(self, part: bytes) -> bytes:
        import httpx2

        self._bytes += len(part)
        if self._bytes > LONGEST:
            raise httpx2.DecodingError(f"the answer is longer than {LONGEST >> 20} MB")
        if time.monotonic() > self._until:
            raise httpx2.ReadTimeout("the answer took too long")
        return part


def _checked(response: Any) -> _Bound:
    import httpx2

    response.encoding = "utf-8"  # JSON is; what the header says may be no encoding at all
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.DecodingError("the answer is compressed, which was not asked for")
    bound: _Bound = response.request.extensions["kgbias"]
    return bound
