"""The edge of every server client: what may go out, what may come in, and what servers say, in one
form for all providers: answers, failures, and how long to wait.

A provider's key goes into one header and nowhere else: `Secrets.clean` removes it from everything a
server says, errors and answers, before anything is cut, kept or shown. A response is read as UTF-8,
up to a maximum size (sixteen may be under way at once, and all of each is held), within one time
limit for the whole of it, and never decompressed.

A token in the path or query of an address is stored and shown as a digest, taken out of what
servers echo, and put into no command that is printed, unless a person asks for it (`show_urls`). A
key that goes to a public server over `http://` is remarked, once. A proxy that is down is named. Of
a server that hangs up or speaks another protocol, it is said what happened.
tests/unit/test_when_it_goes_wrong.py holds this.
"""

import asyncio
import base64
import json
import math
import os
import re
import threading
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from hashlib import sha256
from html import unescape
from http import HTTPStatus
from ipaddress import ip_address
from itertools import pairwise
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError
from kgbias.io.text import is_plain, storable
from kgbias.models.base import Request
from kgbias.models.threads import UnawaitedThreads

MAX_WAIT_SECONDS = 600.0  # seconds; a server that asks for more is not waited for

EndingKind = Literal["stop", "length", "refused", "error"]


class Failure(NamedTuple):
    """Why a server gave no answer: its own message with the status, and the seconds it wants us to
    wait; without a status it was `is_late`, or out of reach, unless it `is_reached`: then the
    connection broke, or what came is no answer. It `is_page` if a web page came. It may have
    `is_withheld` the answer because of the question, or `is_dropped` a batch's request before its
    turn. A `is_final` failure is that of every request to come; one `is_within_answer` an answer
    came with a status that says all is well. One that `is_unforeseen` is an error of a program."""

    message: str
    code: int = 0
    wait: float = 0.0
    is_late: bool = False
    is_withheld: bool = False
    is_dropped: bool = False
    is_final: bool = False
    is_within_answer: bool = False
    is_reached: bool = False
    is_page: bool = False
    is_unforeseen: bool = False


def unforeseen_failure(error: Exception) -> Failure:
    """The meaning of an error that a provider's client does not know, such as that of a proxy that
    speaks another protocol. Raises kgbias's own errors again."""
    if isinstance(error, KgbiasError):
        raise error
    return Failure(f"{type(error).__name__}: {error}", is_unforeseen=not isinstance(error, OSError))


@dataclass(frozen=True, slots=True)
class ServerReply:
    """A server's answer, as it came. `ending` is as in `Completion.finish`; "error" means that
    there is no answer, and `details` says why. `thought_tokens` are the tokens spent on thinking,
    which are part of the completion's, and `thoughts` what was thought, where the server tells it
    apart; `calls_tool` is whether the model called one."""

    text: str
    ending: EndingKind
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    thoughts: str = ""
    calls_tool: bool = False


class SplitMessages(NamedTuple):
    """The instruction of a request in the chat form, and the other messages by role."""

    instruction: str
    others: list[tuple[str, str]]


def split_messages(request: Request) -> SplitMessages:
    """The instruction of a request in the chat form, and the other messages, each with its role."""
    chat_messages = [] if isinstance(request.prompt, str) else request.prompt
    system = "\n\n".join(text for role, text in chat_messages if role == "system")
    return SplitMessages(system, [(role, text) for role, text in chat_messages if role != "system"])


def merge_system(request: Request) -> list[tuple[str, str]]:
    """The messages of a request with the instruction at the head of the first one."""
    system, other_messages = split_messages(request)
    if not system or not other_messages:
        return [("user", system)] if system else other_messages
    (role, text), *later_messages = other_messages
    return [(role, f"{system}\n\n{text}"), *later_messages]


def client_failure(client: Any, error: Exception) -> Failure | None:
    """The meaning of an error from a client built like OpenAI's and Anthropic's; `client` is its
    module."""
    if isinstance(error, client.APIStatusError):
        status: Any = error
        wait = retry_after(status.response.headers)
        is_page = bool(_PAGE_START.match(status.response.text))
        return read_failure(
            client_error_message(error), status.status_code, error.body, wait, is_page=is_page
        )
    if isinstance(error, client.APITimeoutError):
        return Failure("", is_late=True)
    if isinstance(error, client.APIConnectionError):
        return broken_connection(error.__cause__ or error)
    return None


def broken_connection(error: BaseException) -> Failure:
    """The meaning of an error of a client's connection: whether it was ever made."""
    return Failure(reason(error), is_reached=type(error).__name__ not in _UNREACHED)


_UNREACHED = ("APIConnectionError", "ConnectError", "ConnectTimeout", "ProxyError")
_WORDLESS = {
    "ReadError": "the connection ended before an answer came",
    "WriteError": "the connection ended while it was asked",
    "CloseError": "the connection could not be closed",
}


def reason(error: BaseException) -> str:
    """What an error says, with advice where the cause is known; in words of our own where a client
    gives none, as for a server that hangs up."""
    text = str(error) or _WORDLESS.get(type(error).__name__, type(error).__name__)
    text = next((words for theirs, words in _PLAIN_WORDS.items() if theirs in text), text)
    advice = next((advice for part, advice in _CONNECTION_ADVICE.items() if part in text), "")
    return text + advice.format(now=datetime.now(UTC))


# What a client says that may not be so: of a server that speaks another protocol, it says that
# nothing came.
_PLAIN_WORDS = {
    "without sending a response": _WORDLESS["ReadError"],
    "Receive buffer too long": "the head of its answer is too long",
}
_TRUST_ADVICE = "; if you trust it, name the file of its certificate in SSL_CERT_FILE"
_CLOCK_ADVICE = "; by the clock of this machine it is {now:%Y-%m-%d %H:%M} UTC"
_CONNECTION_ADVICE = {
    "certificate has expired": _CLOCK_ADVICE,
    "certificate is not yet valid": _CLOCK_ADVICE,
    "self-signed certificate": _TRUST_ADVICE,
    "unable to get local issuer": _TRUST_ADVICE,
    "WRONG_VERSION_NUMBER": "; what answers there speaks no TLS: http:// instead of https://?",
    "illegal request line": "; what answers there speaks no HTTP",
    "illegal status line": "; what answers there speaks no HTTP",
}


_MODERATION_PATTERN = re.compile(
    r"content[ _-]?(?:policy|policies|filter|management|inspection)|contentpolicyviolation"
    r"|content exists risk|was flagged|flagged (?:by|as|for|input)|flagged\W{1,4}true|moderation"
    r"|responsible ?ai|safety (?:system|filter|setting|reason|check)|safety_check"
    r"|data_inspection_failed|inappropriate content|sensitive[ _]?(?:content|information|words?)"
    r"|new_sensitive|guard-?rails?\b|prompt[ _-]?guard|model armor|considered high risk"
    r"|(?:usage|acceptable use) (?:polic|guideline)\w+|(?:prompt|content|input|output|text)\b"
    r"[^.]{0,40}\bblocked\b|blocked (?:prompt|content|input|output)\b"
    r"|敏感|不安全|违规|不合规|高风险|内容安全",
    re.IGNORECASE,
)
# What a filter is called in the errors of proxies, whose status may be that of a fault.
_FILTER_PATTERN = re.compile(
    r"contentpolicyviolation|content management policy|responsibleai", re.I
)
_NO_MONEY_PATTERN = re.compile(
    r"insufficient[_ ](?:user[_ ])?(?:quota|balance|credit|fund)|exceeded[ _](?:your[ _])?current"
    r"[ _]quota|out of (?:credit|quota)|credit balance|payment required|billing (?:hard )?limit"
    r"|requires more credits|no credits|not enough (?:credit|balance)|spending limit"
    r"|balance (?:is |was )?(?:insufficient|too low|not enough)|used (?:up )?all (?:\w+ )?credits"
    r"|budget (?:has been |was |is )?exceeded|budget_exceeded|key limit exceeded"
    r"|account\b[^.]{0,60}\bsuspended|余额不足|欠费|arrearage",
    re.IGNORECASE,
)
# Some providers call a wrong key a bad request.
_BAD_KEY_PATTERN = re.compile(
    r"(?:invalid|incorrect|missing|no) api[ _-]?key|api[ _-]?key (?:is )?(?:not valid|invalid"
    r"|missing|expired|required)|api_key_invalid",
    re.IGNORECASE,
)
# Some proxies pass a limit of a rate on as a bad request, or as a fault.
_THROTTLED_PATTERN = re.compile(
    r"throttl(?:ed|ing)|too many requests|please wait\b|rate[ _]?limit\w* (?:is |was )?(?:exceeded"
    r"|reached|hit)|rate_limit_exceeded",
    re.IGNORECASE,
)
_TRY_AGAIN_PATTERN = re.compile(
    r"(?:retry|try again|wait|retrydelay\W*|reset(?:s)?) ?(?:in|after|for)?[\s\"':]*"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|hours?|minutes?|seconds?|[hms])\b\s*)+)",
    re.IGNORECASE,
)
_TIME_SPAN_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[a-z])", re.IGNORECASE)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_failure(
    server_message: str, code: int, body: Any = None, wait: float = 0.0, *, is_page: bool = False
) -> Failure:
    """What a server's refusal means: that of a content filter withholds one answer, and without
    money or quota nothing more will be answered, unless the server says when to try again."""
    body_object = as_object(body[0] if isinstance(body, list) and body else body)
    error = as_object(body_object.get("error")) or body_object
    message_and_code = f"{error.get('code')} {error.get('type')} {server_message}"
    metadata = as_object(error.get("metadata"))
    is_flagged = bool(metadata.get("reasons") or metadata.get("flagged_input"))
    is_filtered = _filtered(body_object) or any(
        classify_ending(as_object(c).get("finish_reason")) == "refused"
        for c in choices_of(body_object)
    )
    is_withheld = code in _WITHHOLDING_CODES and (
        is_flagged or is_filtered or bool(_MODERATION_PATTERN.search(message_and_code))
    )
    is_withheld |= code >= 500 and bool(_FILTER_PATTERN.search(message_and_code))
    if code in (400, 403) and not is_withheld and _BAD_KEY_PATTERN.search(message_and_code):
        code = 401
    if code in (400, 500) and not is_withheld and _THROTTLED_PATTERN.search(message_and_code):
        code = 429
    wait = wait or _read_wait(f"{server_message} {json.dumps(error.get('details'), default=str)}")
    wait = wait or _wait_in_body(error, as_object(metadata.get("headers")), code)
    lacks_money = bool(_NO_MONEY_PATTERN.search(message_and_code)) and not (code == 429 and wait)
    is_final = code == 402 or (not is_withheld and lacks_money)
    return Failure(
        server_message, code, wait, is_withheld=is_withheld, is_final=is_final, is_page=is_page
    )


_WITHHOLDING_CODES = frozenset((400, 403, 406, 412, 422, 424, 446, 451))


def _filtered(body_object: Mapping[str, Any]) -> bool:
    """Whether a body without an answer reports that a filter took the prompt or the answer."""
    results = [body_object, *map(as_object, choices_of(body_object))]
    for name in ("prompt_filter_results", "prompt_annotations"):
        listed = body_object.get(name)
        results += map(as_object, listed if isinstance(listed, list) else [])
    kinds = [kind for r in results for kind in as_object(r.get("content_filter_results")).values()]
    return any(as_object(kind).get("filtered") is True for kind in kinds)


_EPOCH_SECONDS = 1e9  # a larger number is a point in time, not a span


def _wait_in_body(error: Mapping[str, Any], headers: Mapping[str, Any], code: int) -> float:
    """The seconds to wait that the fields of an error tell: until a model is loaded, or until a
    limit is reset."""
    with suppress(ValueError, TypeError):
        # As Hugging Face's servers say while they load a model.
        if code == 503 and (seconds := number_between(error.get("estimated_time"), 0, 1e6)):
            return seconds
        lower_headers = {str(name).lower(): value for name, value in headers.items()}
        reset = float(lower_headers.get("x-ratelimit-reset") or 0)
        if code == 429 and reset > _EPOCH_SECONDS:
            # There are servers that count in seconds and such that count in thousandths.
            is_milliseconds = reset > 1000 * _EPOCH_SECONDS
            return bound_wait(reset / (1000 if is_milliseconds else 1) - time.time())
    return 0.0


def choices_of(data: Any) -> list[Any]:
    """The choices in the body of an answer; an empty list if it has none."""
    choices = as_object(data).get("choices")
    return choices if isinstance(choices, list) else []


def _read_wait(text: str) -> float:
    """The seconds after which an error says that it is worth trying again, as "in 1m20.5s"; 0 if it
    does not."""
    match = _TRY_AGAIN_PATTERN.search(text)
    return _parse_seconds(match[1]) if match else 0.0


def _parse_seconds(span: str) -> float:
    """A span of time with units in seconds: "1h2m3.5s", "250 ms", "60 seconds"."""
    return sum(
        float(n) * _UNIT_SECONDS.get(unit.lower(), 0.0)
        for n, unit in _TIME_SPAN_PATTERN.findall(span)
    )


def find_failure(data: Any) -> Failure | None:
    """The failure that a body with status 200 reports in the place of an answer, or beside half of
    one; None if it does not."""
    body_object = as_object(data)
    has_answer = any(body_object.get(name) for name in _ANSWER_FIELDS)
    if not body_object or (has_answer and not error_message(body_object.get("error"))):
        return None
    error = body_object.get("error") or body_object.get("errors")
    if not error and not error_message(body_object):
        empty_list = next((n for n in ("choices", "candidates") if n in body_object), "")
        error = f"no answer in it: {empty_list!r} is empty" if empty_list else None
    # Beside an error that is a text stands more.
    fullest = error if isinstance(error, dict | list) else body_object
    if not (server_message := error_message(fullest) or error_message(error)):
        return None
    code = token_count(as_object(error).get("code")) or token_count(body_object.get("code"))
    default_code = 404 if _NOT_FOUND_PATTERN.search(server_message) else 500
    if _filtered(body_object) or _MODERATION_PATTERN.search(server_message):
        default_code = 400
    failure = read_failure(server_message, code if 400 <= code < 600 else default_code, data)
    return failure._replace(is_within_answer=True)


_NOT_FOUND_PATTERN = re.compile(
    r"unexpected endpoint|not found|no such|does not exist", re.IGNORECASE
)
_ANSWER_FIELDS = (
    "choices",
    "content",
    "candidates",
    "promptFeedback",
)  # where providers put answers

# Reasons for which an answer ends, by what they mean; any other is a full stop.
_WITHHELD_PATTERN = re.compile(
    r"filter|safety|refus|recitation|blocklist|blocked|prohibited|guardrail|sensitive|moderat"
    r"|policy|spii|toxic|flagged|language|violation"
)
_BROKEN_OFF_PATTERN = re.compile(
    r"error|fail|abort|cancel|interrupt|insufficient|time_?out|overload|network|unavailable"
    r"|malformed|preempt|kill|disconnect|evict|crash|exception"
)
_CUT_PATTERN = re.compile(r"length|max_?\w*tokens?|out_of|limit|context|truncat|incomplete|exceed")
_NO_REASONS = frozenset(("", "null", "none", "unknown", "unspecified", "other"))


def classify_ending(reason: Any) -> EndingKind | None:
    """How an answer ended, by the reason that any provider gives; None if it gives none."""
    reason_text = str(reason or "").lower().replace("-", "_").removeprefix("finish_reason_")
    if reason_text in _NO_REASONS:
        return None
    if _WITHHELD_PATTERN.search(reason_text):
        return "refused"
    if _BROKEN_OFF_PATTERN.search(reason_text):
        return "error"
    return "length" if _CUT_PATTERN.search(reason_text) else "stop"


def retry_after(headers: Any) -> float:
    """Seconds that a Retry-After header asks for, as a number, with a unit, or as a date; else
    0."""
    # Not in the standard, but what OpenAI's own client looks at first.
    if milliseconds := headers.get("retry-after-ms"):
        with suppress(ValueError):
            return bound_wait(float(milliseconds) / 1000)
    value = str(headers.get("retry-after") or "").strip()
    with suppress(ValueError):
        return bound_wait(float(value))
    if seconds := _parse_seconds(value) if re.fullmatch(r"[\d.hms ]+", value) else 0.0:
        return seconds
    try:
        return bound_wait(parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def bound_wait(seconds: float) -> float:
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def token_count(value: Any) -> int:
    """A number of tokens as a server gives it; 0 for anything else."""
    # A larger one is no count, and sums of these still fit into the 64 bits of a database.
    is_sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return int(value) if is_sound else 0


def as_object(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


_PROXY_VARIABLES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")  # headers
MAX_ANSWER_BYTES = 8 << 20  # bytes of a response
MAX_JSON_VALUES = (
    250_000  # in a response of JSON; each may take a hundred times its bytes in memory
)
_COMPRESSIONS = frozenset(("gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"))
_MAX_FETCHED_BYTES = 64 << 20  # bytes of one that is fetched: the results of a batch, in lines
_MAX_PORT = 65_535
_FETCHING_REDIRECTS = (301, 302, 303)  # redirects after which clients fetch, whatever they asked
_MIN_SECRET_CHARACTERS = 8  # a key this long is a secret: some servers want "none" or "x"
_MIN_LEAKED_CHARACTERS = 12  # this many characters of a secret in a row give it away


class Api(NamedTuple):
    """An API to talk to: the environment variables for its key (the first that is set counts) and
    its address, and the default address."""

    keys: tuple[str, ...]
    variable: str
    url: str


OPENAI_API = Api(("OPENAI_API_KEY",), "OPENAI_BASE_URL", "https://api.openai.com/v1")


@dataclass(frozen=True, slots=True)
class Secrets:
    """What must never be shown: a key, the password of a URL, the values of one's own headers, and
    what a URL hides in its path and query."""

    key: str
    password: str = ""
    hidden: tuple[str, ...] = ()

    def clean(self, text: str) -> str:
        """The text, fit to store, with every telling piece of a secret replaced, whether plain, as
        Basic authorisation or escaped."""
        key_and_password = [(self.key, "[key]"), (self.password, "[password]")]
        for secret, name in (*key_and_password, *((value, "[hidden]") for value in self.hidden)):
            if len(secret) >= _MIN_SECRET_CHARACTERS:
                for size, pieces in _telling_pieces(secret):
                    text = _replace_pieces(text, size, pieces, name)
        return storable(text)

    def clean_line(self, text: str, max_characters: int = 300) -> str:
        """The clean text on one line, of limited length and safe for a terminal."""
        text = self.clean(text)
        return " ".join("".join(c if is_plain(c) else " " for c in text).split())[:max_characters]


_file_addresses: list[str] = []  # addresses named only in a file


_headers: list[tuple[str, str, str]] = []  # the address of a server, and what to send to it


@contextmanager
def sending_headers(headers: Mapping[str, str], url: str) -> Iterator[None]:
    """Inside this context, requests to the server of that URL carry these headers, which are kept
    nowhere and shown to nobody. Raises UsageError for what is no header."""
    for name, value in headers.items():
        if not _HEADER_PATTERN.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise UsageError(f"{name!r} and its value cannot be sent as a header")
    added_headers = [(url, name, value) for name, value in headers.items()]
    _headers.extend(added_headers)
    try:
        yield
    finally:
        for header in added_headers:
            _headers.remove(header)


def own_headers(url: str) -> dict[str, str]:
    """The headers that a person wants sent to the server of that URL."""
    return {
        name: value for to, name, value in _headers if _server_address(to) == _server_address(url)
    }


_HEADER_PATTERN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@contextmanager
def withhold_keys(addresses: Iterable[str]) -> Iterator[None]:
    """Inside this context, servers at these addresses get no key or password from the environment:
    a file named them, and a file may be a stranger's. An address that the environment also names
    keeps its key."""
    added_addresses = list(addresses)
    _file_addresses.extend(added_addresses)
    try:
        yield
    finally:
        for address in added_addresses:
            _file_addresses.remove(address)


def is_key_withheld(url: str, *known_addresses: str | None) -> bool:
    """Whether a server gets no key: only a file names it, and it is not a known one."""
    return _server_address(url) in map(_server_address, _file_addresses) and _server_address(
        url
    ) not in map(_server_address, filter(None, known_addresses))


class _ServerAddress(NamedTuple):
    """What tells one server from another."""

    scheme: str
    host: str | None
    port: int | None


def _server_address(url: str) -> _ServerAddress:
    """The server of a URL: its scheme, host and port."""
    try:
        parts = urlsplit(url.strip())
        # With its usual port or without one, it is the same server.
        default_port = {"http": 80, "https": 443}.get(parts.scheme)
        return _ServerAddress(parts.scheme, parts.hostname, parts.port or default_port)
    except ValueError:  # half an IPv6 address, or a port that is not one
        return _ServerAddress(url, None, None)


def read_secrets(url: str, api: Api = OPENAI_API) -> Secrets:
    """The secrets for this URL: no key if only a file names it (`withhold_keys`). Raises UsageError
    for a key that no header can hold."""
    keys_found = ((name, os.environ.get(name, "").strip()) for name in api.keys)
    name, key = next((pair for pair in keys_found if pair[1]), ("", ""))
    if not all("!" <= c <= "~" for c in key):
        raise UsageError(
            f"{name} contains a character that a key cannot have (a line break, a space or one "
            "outside ASCII): copy it again"
        )
    if is_key_withheld(url, os.environ.get(api.variable), api.url):
        key = ""
    password = unquote(urlsplit(url).password or "")
    hidden_parts = () if _shows_urls.get() else _hidden_parts(url)
    return Secrets(key, password, (*own_headers(url).values(), *hidden_parts))


def server_url(base_url: str | None = None, api: Api = OPENAI_API) -> str:
    """`base_url`, else the environment's, else the provider's own. Raises UsageError if it is not a
    URL."""
    url = base_url or os.environ.get(api.variable) or api.url
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is not one
        is_sound = False
    if not is_sound or not url.isascii() or not url.isprintable() or set(" \\") & set(url):
        example = "http://HOST:PORT" + urlsplit(api.url).path
        raise UsageError(f"base_url must look like {example}")
    if endpoint := _ENDPOINT_PATTERN.search(parts.path):
        raise UsageError(f"base_url is the address before {endpoint[0]}: leave that out")
    return url


_ENDPOINT_PATTERN = re.compile(r"/(?:chat/)?completions/?$|/v\d+/messages/?$|/embeddings/?$")


# Segments of addresses of APIs; any other may be a token, or name a customer.
_KNOWN_SEGMENTS = frozenset(
    "v1 v2 v3 v4 v1beta api openai deployments compatible-mode inference paas serverless engines"
    " models proxy litellm rest".split()
)


_shows_urls: ContextVar[bool] = ContextVar("shows_urls", default=False)


@contextmanager
def show_urls() -> Iterator[None]:
    """Inside this context, addresses of servers are shown and stored whole, but for passwords: of
    models that are opened in it, and in its thread."""
    token = _shows_urls.set(True)
    try:
        yield
    finally:
        _shows_urls.reset(token)


def shown_url(url: str) -> str:
    """A URL as people see it: safe to show (`without_password`), or whole but for its password
    where that was asked for (`show_urls`)."""
    if not _shows_urls.get():
        return without_password(url)
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def without_password(url: str) -> str:
    """A URL in a form safe to show and store: without password and query, and with unusual parts of
    its path as digests, by which two addresses can be told apart."""
    parts = urlsplit(url)
    segments = [
        part
        if not part or part in _KNOWN_SEGMENTS
        else f"[{sha256(part.encode()).hexdigest()[:8]}]"
        for part in parts.path.split("/")
    ]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "/".join(segments), "", ""))


# Names that no public server has.
_PRIVATE_HOSTS = ("localhost", ".local", ".lan", ".internal", ".home.arpa", ".localdomain", ".test")


def warn_unencrypted(url: str, secrets: Secrets) -> str:
    """A line that says so if a key, a password or a header of one's own goes to a public server
    without encryption; else ""."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or not (secrets.key or secrets.password or own_headers(url)):
        return ""
    try:
        is_public = ip_address(host).is_global
    except ValueError:  # a name
        is_public = "." in host and not host.endswith(_PRIVATE_HOSTS)
    if not is_public:
        return ""
    return (
        f"your key goes to {parts.scheme}://{host} without encryption, where others on the way can "
        "read it: use https:// if the server takes it"
    )


def _hidden_parts(url: str) -> tuple[str, ...]:
    """The parts of a URL's path and query that look like secrets; the name of a deployment does
    not, and a word would be taken out of every answer that has it."""
    parts = urlsplit(url)
    segments = parts.path.split("/")
    deployment_names = {after for before, after in pairwise(segments) if before in _NAMES_FOLLOW}
    values = [value for _, value in parse_qsl(parts.query)]
    return tuple(
        part
        for part in (*segments, *values)
        if part not in deployment_names and _looks_secret(part)
    )


_NAMES_FOLLOW = ("deployments", "engines", "models")
_MIN_LETTER_SECRET = 24  # characters, of letters alone


def _looks_secret(part: str) -> bool:
    """Whether a part of an address looks like a secret: long, or of letters and digits."""
    is_mixed = any(c.isdigit() for c in part) and any(c.isalpha() for c in part)
    return len(part) >= (_MIN_SECRET_CHARACTERS if is_mixed else _MIN_LETTER_SECRET)


def open_client(url: str, timeout: float, retries: int) -> Any:
    """An `openai.AsyncOpenAI` that keeps this module's promises. `timeout` is in seconds, for a
    whole answer, headers included; a request that fails is sent again up to `retries` times. Raises
    MissingExtra without the package, UsageError for an impossible key or time."""
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtra("openai", extra="openai") from error
    query = dict(parse_qsl(urlsplit(url).query))  # as Azure's api-version
    with client_errors(shown_url(url)):
        return openai.AsyncOpenAI(
            api_key=read_secrets(url).key or "none",  # a server without keys still wants the header
            base_url=urlunsplit(urlsplit(url)._replace(query="", fragment="")),
            default_query=query,
            default_headers=own_headers(url),
            timeout=timeout,
            max_retries=retries,
            http_client=bounded_client(openai.DefaultAsyncHttpxClient, timeout, url),
        )


@contextmanager
def client_errors(url: str) -> Iterator[None]:
    """Turn errors in making a client into one line that names what it read from the environment:
    the certificates to trust, if a file cannot be read, or else the proxies."""
    try:
        yield
    except KgbiasError:
        raise
    except Exception as error:
        proxies = [n for p in _PROXY_VARIABLES for n in (p, p.lower())]
        variable_names = _CERTIFICATE_VARIABLES if isinstance(error, OSError) else proxies
        set_variables = [
            f"{name}={os.environ[name]}" for name in variable_names if os.environ.get(name)
        ]
        why = Secrets("", "").clean_line(reason(error)).rstrip(".")
        advice = f": check {', '.join(map(_shown_setting, set_variables))}" if set_variables else ""
        raise ModelError(f"cannot make a client for {url}: {why}{advice}") from error


def describe_proxy(url: str) -> str:
    """The proxy through which a URL is reached, as part of a sentence; "" for none."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme) or getproxies().get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return f" through the proxy {_shown_setting(proxy)} (of the environment)"


def _shown_setting(setting: str) -> str:
    """An environment setting without the password that its address may contain."""
    return re.sub(r"//[^/@]*@", "//", storable(setting))[:100]


class BlockingClient:
    """A client for callers that wait for each answer, from any thread: it runs in its own thread,
    where a time limit can end whatever is under way."""

    def __init__(self, url: str, timeout: float, retries: int) -> None:
        self._client = open_client(url, timeout, retries)
        self.secrets = read_secrets(url)
        self._loop = asyncio.new_event_loop()
        # The names of servers are looked up there.
        self._loop.set_default_executor(UnawaitedThreads())
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def ask(
        self, call: Callable[[Any], Coroutine[Any, Any, Any]], model_name: str
    ) -> dict[str, Any]:
        """The JSON object in a server's answer to `call` (which is given the client, and returns a
        raw response). Raises ModelError, in one clean line, if there is none."""
        import openai

        try:
            body = asyncio.run_coroutine_threadsafe(call(self._client), self._loop).result().content
        except openai.OpenAIError as error:
            if isinstance(error, openai.APIStatusError):
                words = self.secrets.clean_line(client_error_message(error))
                raise ModelError(
                    f"{model_name} answers with {error.status_code}: {words}"
                ) from None
            why = self.secrets.clean_line(reason(error.__cause__ or error))
            raise ModelError(f"{model_name} does not answer: {why}") from None
        except Exception as error:  # what the client does not foresee
            why = self.secrets.clean_line(f"{type(error).__name__}: {error}")
            raise ModelError(f"{model_name} does not answer: {why}") from None
        answer = parse_body(body)
        if not isinstance(answer, dict):
            raise ModelError(
                f"{model_name} answers with something other than a JSON object: "
                f"{describe_body(body, self.secrets)}"
            )
        return answer


def parse_body(body: bytes) -> Any:
    """The value of a body of JSON; None for anything else, or for one that is far larger than an
    answer."""
    # Each value but the first, or its key, comes after one of these signs: there are no more.
    if len(body) > MAX_ANSWER_BYTES or sum(map(body.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES:
        return None
    text = body.decode("utf-8-sig", "replace")  # with the mark that .NET begins its answers with
    for json_text in (text, _COMMENT_LINE.sub("", text)):
        with suppress(ValueError, RecursionError):
            return _open_envelope(json.loads(json_text, strict=False))  # with bare line breaks
    return _join_events(text)


# A proxy may keep a connection open with these, whether it streams or not (OpenRouter).
_COMMENT_LINE = re.compile(r"^:.*$", re.MULTILINE)


_ENVELOPES = ("result", "output", "data", "response", "body")


def _open_envelope(data: Any) -> Any:
    """An answer out of the object in which some gateways put it, as Cloudflare's `result` and
    DashScope's `output`, or out of a text or a list that holds it alone; anything else as it
    is."""
    if isinstance(data, str) and data.startswith("{"):
        return _open_envelope(json.loads(data))
    if isinstance(data, list) and len(data) == 1 and choices_of(data[0]):
        return data[0]
    outer = as_object(data)
    if isinstance(passed_on := outer.get("body"), str) and passed_on.startswith("{"):
        outer = {**outer, "body": json.loads(passed_on)}  # an AWS Lambda's
    if not outer or "choices" in outer:
        return data
    inner_objects = (as_object(outer.get(name)) for name in _ENVELOPES)
    answer = next((inner for inner in inner_objects if choices_of(inner)), None)
    return data if answer is None else {**outer, **answer}


def describe_body(body: bytes, secrets: Secrets) -> str:
    """How a body begins that is not what it should be, in a few words."""
    head = body[:_SHOWN_BODY_BYTES].decode("utf-8", "replace")
    if not body:
        return "it is empty"
    if head.count("\ufffd") > len(head) * _MAX_UNREADABLE_SHARE:
        return "bytes that are no text"
    if _PAGE_START.match(head):  # whose forms may hold tokens
        title = secrets.clean_line(_read_page(head), _SHOWN_BODY_CHARACTERS)
        return title if title == _A_PAGE else f"{_A_PAGE}, {title!r}"
    return repr(secrets.clean_line(head, _SHOWN_BODY_CHARACTERS))


_SHOWN_BODY_BYTES = 4 << 10  # bytes that are looked at
_SHOWN_BODY_CHARACTERS = 80  # characters
_MAX_UNREADABLE_SHARE = 0.1  # of characters; a text in another encoding has fewer
_STREAM_END = re.compile(r"^\s*data:\s*\[DONE\]\s*$", re.MULTILINE)
_STREAM_ERROR = re.compile(r"^\s*error:\s*(.+)$", re.MULTILINE)


def _join_events(text: str) -> Any:
    """The answer in a stream of events, or in lines of JSON, put together as if it had come in one
    piece; None if that is not what the text is. One that ends without a reason, a count of its
    tokens and the mark that ends a stream was broken off; so was one with an error in it."""
    events, error, event_name = [], "", ""
    for line in text.splitlines():
        field, colon, value = line.strip().partition(":")
        if field == "event" and colon:
            event_name = value.strip()
        data = value if field == "data" and colon else line if line.startswith("{") else ""
        with suppress(ValueError, RecursionError):
            event = as_object(json.loads(data))
            events.append(event)
            if event_name == "error" or event.get("error"):
                error = error_message(event) or "an error without a message"
    if not events:
        return None
    if plain_error := _STREAM_ERROR.search(text):
        error = error or plain_error[1].strip()
    whole_event: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    text_parts: list[str] = []
    message_parts: dict[str, list[Any]] = {}
    for event in events:
        whole_event |= {name: value for name, value in event.items() if value is not None}
        for choice_part in map(as_object, choices_of(event)):
            if choice_part.get("index", 0) != 0:
                continue  # one is asked for
            choice |= {
                name: v for name, v in choice_part.items() if v is not None and name != "text"
            }
            if isinstance(choice_part.get("text"), str):
                text_parts.append(choice_part["text"])
            delta = as_object(choice_part.get("delta") or choice_part.get("message"))
            for name, value in delta.items():
                if isinstance(value, str | list) and name != "role":
                    message_parts.setdefault(name, []).extend(
                        value if isinstance(value, list) else [value]
                    )
    message = {
        name: _join_texts(parts) if all(isinstance(part, str) for part in parts) else parts
        for name, parts in message_parts.items()
    }
    if text_parts:
        choice["text"] = _join_texts(text_parts)
    if not choice and not error and not any("choices" in event for event in events):
        return None  # events of another kind
    has_ended = choice.get("finish_reason") or whole_event.get("usage") or _STREAM_END.search(text)
    if choice and (error or not has_ended):
        why = error or "the stream ended before the answer did"
        choice |= {"finish_reason": "error", "error": why}
    if "text" not in choice:
        choice["message"] = message
    is_answer = "text" in choice or choice.keys() > {"message"} or message
    return {**whole_event, "choices": [choice] if is_answer else []}


def _join_texts(parts: Sequence[str]) -> str:
    """The text that comes in these parts. Some servers send all of it so far in each part, or all
    of it once more in the last."""
    texts = list(filter(None, parts))
    may_repeat = len(texts) > 2 or (len(texts) == 2 and len(texts[0]) >= _MIN_REPEATED)
    is_repeated = may_repeat and (
        "".join(texts[:-1]) == texts[-1]
        or all(later != earlier and later.startswith(earlier) for earlier, later in pairwise(texts))
    )
    return texts[-1] if is_repeated else "".join(texts)


_MIN_REPEATED = 20  # characters; a short word may well be said twice


def client_error_message(error: Any) -> str:
    """The message in the body of a client's error, whatever its form; else the body itself, or the
    client's own."""
    response = getattr(error, "response", None)
    if response is None:
        return error_message(error.body) or str(getattr(error, "message", error))
    text = response.text.strip()
    if message := error_message(parse_body(response.content)) or error_message(text):
        return message
    known_phrases = {status.value: status.phrase for status in HTTPStatus}
    return known_phrases.get(response.status_code, "no reason given")


MAX_MESSAGE_DEPTH = 4  # of a message in an error's body
# Where servers put what they have to say, in any spelling, the first that says something first.
_MESSAGE_FIELDS = (
    *("error", "message", "detail", "details", "errors", "msg", "title", "description"),
    *("errormessage", "errormsg", "statusmsg", "faultstring", "reason", "fault", "baseresp"),
)
_A_PAGE = "a web page"
_PAGE_START = re.compile(r"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_XML_START = re.compile(r"\s*<(?:\?xml\b|\w*(?:error|fault|response|exception)\b)", re.IGNORECASE)
# What says something in a page or in XML, by its tag, the first that says something first.
_TELLING_TAGS = ("message", "faultstring", "title", "h1", "pre", "p", "code")
_TELLING_PATTERN = re.compile(rf"<({'|'.join(_TELLING_TAGS)})\b[^<>]*>([^<>]*)</\1>", re.IGNORECASE)


def error_message(body: Any, depth: int = 0) -> str:
    """What an error's body says, in the words of the server: a text, or the first of the fields in
    which servers put it, at any depth; of a list all messages, each with the place that it is
    about. What a proxy was told itself is added. "" if it says nothing."""
    if isinstance(body, str):
        return _read_message(body, depth)
    if isinstance(body, list) and depth <= MAX_MESSAGE_DEPTH:
        return "; ".join(filter(None, (error_message(part, depth + 1) for part in body[:10])))
    body_object = as_object(body)
    if not body_object or depth > MAX_MESSAGE_DEPTH:
        return ""
    by_name = {re.sub(r"[_-]", "", str(name)).lower(): v for name, v in body_object.items()}
    field_values = (by_name[name] for name in _MESSAGE_FIELDS if name in by_name)
    server_message = next(
        filter(None, (error_message(part, depth + 1) for part in field_values)), ""
    )
    if not server_message and depth:  # a code, or messages by the fields that they are about
        code = body_object.get("code") or body_object.get("type")
        server_message = code if isinstance(code, str) else _list_messages(body_object, depth)
    for longer in _further_messages(by_name):
        more = error_message(longer, depth + 1)
        if more and more not in server_message:
            server_message = f"{server_message}: {more}"
    place = body_object.get("loc") or body_object.get("param")
    if server_message and place:
        place_text = ".".join(map(str, place)) if isinstance(place, list) else str(place)
        server_message = (
            server_message if place_text in server_message else f"{server_message} ({place_text})"
        )
    reasons = as_object(body_object.get("metadata")).get("reasons")
    if server_message and isinstance(reasons, list):
        server_message += f" ({', '.join(map(str, reasons))})"
    return server_message


def _further_messages(by_name: Mapping[str, Any]) -> Iterator[Any]:
    """What an error holds beside its message: what a proxy was told, the cause or the details of an
    error that is a few words, or the error of the provider behind it (`supplierError`)."""
    yield by_name.get("errordescription")
    yield as_object(by_name.get("metadata")).get("raw")
    yield by_name.get("cause")
    yield as_object(by_name.get("details"))
    yield from (v for name, v in by_name.items() if name.endswith("error") and name != "error")


def _read_message(text: str, depth: int) -> str:
    """A message of a server: of a page its title, and of an answer that it passes on as JSON (with
    something behind it, at times) or as events the message in that."""
    start = text.lstrip()[:9].lower()
    if _PAGE_START.match(text) or _XML_START.match(text):
        return _read_page(text[:MAX_PAGE_CHARACTERS])
    if start.startswith(("{", "[", "data:")) and depth <= MAX_MESSAGE_DEPTH:
        for passed_on in (_first_value(text), parse_body(text.encode("utf-8", "replace"))):
            if isinstance(passed_on, dict | list) and (
                message := error_message(passed_on, depth + 1)
            ):
                return message
    return text


def _read_page(page: str) -> str:
    """What a page or an error in XML says."""
    texts: dict[str, str] = {}
    for tag, content in _TELLING_PATTERN.findall(page):
        content_text = " ".join(unescape(content).split())
        if content_text.lower() not in ("", "error"):
            texts.setdefault(tag.lower(), content_text)
    return next((texts[tag] for tag in _TELLING_TAGS if tag in texts), _A_PAGE)


def _first_value(text: str) -> Any:
    """The value of JSON that a text begins with; None if it begins with none."""
    with suppress(ValueError, RecursionError):
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    return None


MAX_PAGE_CHARACTERS = 4_096


def _list_messages(body_object: Mapping[str, Any], depth: int) -> str:
    """Messages by the names of what they are about, as "prompt: too long"."""
    named_messages = (
        (name, error_message(value, depth + 1))
        for name, value in list(body_object.items())[:10]
        if isinstance(value, list)
    )
    return "; ".join(f"{name}: {text}" for name, text in named_messages if text)


def number_between(value: Any, low: float, high: float) -> float | None:
    """The value if it is a number from `low` to `high`, else None; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None


def _secret_forms(secret: str) -> Iterator[str]:
    """The forms in which a secret may be written: plain, in base64 beside something else,
    escaped."""
    yield secret
    # Three bytes make four signs, so the same text has three forms, of which the first sign depends
    # on what stands before it, the last on what follows: both are left out.
    for bytes_before in range(3):  # in base64, by how many bytes stand before it
        data = base64.b64encode(b"\0" * bytes_before + secret.encode()).decode()
        yield data[4 if bytes_before else 0 :].rstrip("=")[:-1]
    yield "".join(f"\\u{ord(c):04x}" for c in secret)
    for form in (quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        if form != secret:
            yield form


@cache
def _telling_pieces(secret: str) -> list[tuple[int, frozenset[str]]]:
    """The telling pieces of each form of a secret, and their length."""
    pieces = []
    for form in _secret_forms(secret):
        size = min(_MIN_LEAKED_CHARACTERS, len(form))
        pieces.append((size, frozenset(form[n : n + size] for n in range(len(form) - size + 1))))
    return pieces


def _replace_pieces(text: str, size: int, pieces: Collection[str], name: str) -> str:
    """The text with each run of these pieces, all of this size, replaced by the name."""
    if not any(piece in text for piece in pieces):
        return text
    copied_until, offset, parts = 0, 0, []
    while offset < len(text):
        if text[offset : offset + size] in pieces:
            end = offset + size
            while end < len(text) and text[end - size + 1 : end + 1] in pieces:
                end += 1
            parts += [text[copied_until:offset], name]
            copied_until = offset = end
        else:
            offset += 1
    return "".join([*parts, text[copied_until:]])


def bounded_client(base: Any, timeout: float, url: str, api: Api = OPENAI_API) -> Any:
    """A client of this httpx2 class, in which each answer has one time limit for the whole of it,
    in seconds, and a maximum size, by whether something is asked or fetched, and your credentials
    stay with `url`: no redirect takes them elsewhere. Raises UsageError for an impossible time."""
    import httpx2

    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError("timeout must be a positive number of seconds")

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, most: int) -> None:
            self._stream = stream
            self._most = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > self._most:
                    raise httpx2.DecodingError(f"the answer is longer than {self._most >> 20} MB")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Client(base):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            # A redirect keeps these.
            request.extensions["most"] = (
                _MAX_FETCHED_BYTES if request.method == "GET" else MAX_ANSWER_BYTES
            )
            request.extensions["trace"] = EarlyBytesCheck()
            try:
                async with asyncio.timeout(timeout):
                    return await super().send(request, **options)
            except TimeoutError as error:
                late = "the answer took too long"
                raise httpx2.ReadTimeout(late, request=request) from error
            except httpx2.TransportError as error:
                with suppress(RuntimeError):  # no request is known
                    target = error.request.url
                    if _server_address(str(target)) != own_address:
                        port = f":{target.port}" if target.port else ""
                        why = f"it redirects to {target.host}{port}: {reason(error)}"
                        raise type(error)(why, request=error.request) from error
                raise

    async def check_response(response: Any) -> None:
        target = response.headers.get("location")
        is_post = response.request.method == "POST"
        if response.status_code in _FETCHING_REDIRECTS and is_post and target:
            where = shown_url(str(response.request.url.join(target)))
            why = f"it redirects to {where}, where nothing can be asked so: give that (base_url)"
            raise httpx2.ReadError(why, request=response.request)
        response.encoding = "utf-8"  # JSON is UTF-8; the encoding in the header may not even exist
        encodings = response.headers.get("content-encoding", "").lower().replace(",", " ").split()
        if not _COMPRESSIONS.isdisjoint(encodings):  # others, as "utf-8", leave it as it is
            raise httpx2.DecodingError("the answer is compressed, which was not asked for")
        response.stream = Bounded(response.stream, response.request.extensions["most"])

    own_address, keeps_key = (
        _server_address(url),
        not is_key_withheld(url, os.environ.get(api.variable), api.url),
    )
    account_headers = {name.lower().strip() for name in _account_headers()}

    async def check_request(request: Any) -> None:  # also of each redirect
        if (request.url.port or 0) > _MAX_PORT:
            why = f"there are no ports above {_MAX_PORT}"
            raise httpx2.ConnectError(why, request=request)
        is_elsewhere = _server_address(str(request.url)) != own_address
        for name in (
            *(_KEY_HEADERS if is_elsewhere else ()),
            *(account_headers if is_elsewhere or not keeps_key else ()),
        ):
            request.headers.pop(name, None)

    # A server or proxy may send a second response without being asked, which the next request on
    # that connection would get for its own (httpcore#961), and each one after it the answer of the
    # one before: so no connection is used twice, and none on which something came before it was
    # used. To look for unread bytes before a connection is used again is not enough: where the
    # second response came 20 ms after the first, 118 of 120 answers were those of other prompts.
    return Client(
        event_hooks={"request": [check_request], "response": [check_response]},
        headers={"accept-encoding": "identity"},
        limits=httpx2.Limits(max_keepalive_connections=0),
    )


MIN_LISTEN_SECONDS = 0.005  # that a new connection is listened to before it is used
MAX_LISTEN_SECONDS = 0.1


class EarlyBytesCheck:
    """Listens to a new connection before anything is asked on it: what a server says there
    without being asked would be taken for its answer. It listens for as long as it took to connect,
    which is about what a byte takes to come, and hardly at all after a handshake of TLS, in which
    it would have come. Given to a request as its trace, which is told what its connection does."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._started = 0.0
        self._seconds = MIN_LISTEN_SECONDS

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        step = event.partition(".")[2]
        if step == "connect_tcp.started":
            self._started = time.perf_counter()
        elif step == "connect_tcp.complete":
            self._stream = info["return_value"]
            seconds = time.perf_counter() - self._started
            self._seconds = min(max(seconds, MIN_LISTEN_SECONDS), MAX_LISTEN_SECONDS)
        elif step == "start_tls.complete":
            self._stream, self._seconds = info["return_value"], MIN_LISTEN_SECONDS
        elif event == "http11.send_request_headers.started" and self._stream is not None:
            await self._check()

    async def _check(self) -> None:
        import httpcore2

        stream, self._stream = self._stream, None
        with suppress(httpcore2.ReadTimeout):
            if await stream.read(1, timeout=self._seconds):
                raise httpcore2.ReadError("it spoke before it was asked")


def _account_headers() -> Iterator[str]:
    """The headers in which the providers' clients send other settings from the environment."""
    yield from ("openai-organization", "openai-project")
    for line in os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n"):
        yield line.partition(":")[0]
