"""The edge of every server client: what may go out, what may come in, and what servers say, in one
form for all providers: answers, failures, and how long to wait.

A provider's key goes into one header and nowhere else: `Secrets.clean` removes it from everything a
server says, errors and answers, before anything is cut, kept or shown. A response is read as UTF-8,
up to a maximum size (sixteen may be under way at once, and all of each is held), within one time
limit for the whole of it, and never decompressed.
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
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from hashlib import sha256
from ipaddress import ip_address
from itertools import pairwise
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError
from kgbias.io.text import is_plain, storable
from kgbias.models.base import Request
from kgbias.models.threads import Unawaited

MAX_WAIT = 600.0  # seconds; a server that asks for more is not waited for

Ended = Literal["stop", "length", "refused", "error"]


class Failure(NamedTuple):
    """Why a server gave no answer: its own message with the status, and the seconds it wants us to
    wait; without a status it was `late`, or out of reach. It may have `withheld` the answer because
    of the question, or `dropped` a batch's request before its turn. A `final` failure is that of
    every request to come; one `within` an answer came with a status that says all is well."""

    message: str
    code: int = 0
    wait: float = 0.0
    late: bool = False
    withheld: bool = False
    dropped: bool = False
    final: bool = False
    within: bool = False


def unforeseen(error: Exception) -> Failure:
    """The meaning of an error that a provider's client does not know, such as that of a proxy that
    speaks another protocol. Raises kgbias's own errors again."""
    if isinstance(error, KgbiasError):
        raise error
    return Failure(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Said:
    """A server's answer, as it came. `ended` is as in `Completion.finish`; "error" means that there
    is no answer, and `details` says why. `thought` are the tokens spent on thinking, which are part
    of the completion's, and `thoughts` what was thought, where the server tells it apart."""

    text: str
    ended: Ended
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    thoughts: str = ""


def messages(request: Request) -> tuple[str, list[tuple[str, str]]]:
    """The instruction of a request in the chat form, and the other messages, each with its role."""
    said = [] if isinstance(request.prompt, str) else request.prompt
    system = "\n\n".join(text for role, text in said if role == "system")
    return system, [(role, text) for role, text in said if role != "system"]


def without_system(request: Request) -> list[tuple[str, str]]:
    """The messages of a request with the instruction at the head of the first one."""
    system, others = messages(request)
    if not system or not others:
        return [("user", system)] if system else others
    (role, text), *rest = others
    return [(role, f"{system}\n\n{text}"), *rest]


def client_failure(client: Any, error: Exception) -> Failure | None:
    """The meaning of an error from a client built like OpenAI's and Anthropic's; `client` is its
    module."""
    if isinstance(error, client.APIStatusError):
        status: Any = error
        wait = retry_after(status.response.headers)
        return read_failure(message(error), status.status_code, error.body, wait)
    if isinstance(error, client.APITimeoutError):
        return Failure("", late=True)
    if isinstance(error, client.APIConnectionError):
        return Failure(reason(error.__cause__ or error))
    return None


_WORDLESS = {
    "ReadError": "the connection ended before an answer came",
    "WriteError": "the connection ended while it was asked",
    "CloseError": "the connection could not be closed",
}


def reason(error: BaseException) -> str:
    """What an error says; in words of our own where a client gives none, as for a server that hangs
    up."""
    return str(error) or _WORDLESS.get(type(error).__name__, type(error).__name__)


_MODERATED = re.compile(
    r"content[ _-]?(?:policy|policies|filter|management)|contentpolicyviolation|content_policy|"
    r"was flagged|flagged (?:by|as|for|input)|moderation|responsible ?ai|"
    r"safety (?:system|filter|setting)|data_inspection_failed|inappropriate content",
    re.IGNORECASE,
)
# What a filter is called in the errors of proxies, whose status may be that of a fault.
_FILTERED = re.compile(r"contentpolicyviolation|content management policy|responsibleai", re.I)
_NO_MONEY = re.compile(
    r"insufficient[_ ](?:user[_ ])?(?:quota|balance|credit|fund)|exceeded your current quota"
    r"|out of (?:credit|quota)|credit balance|payment required|billing (?:hard )?limit"
    r"|requires more credits|no credits|not enough (?:credit|balance)|余额不足|欠费|arrearage",
    re.IGNORECASE,
)
_TRY_AGAIN = re.compile(
    r"(?:retry|try again|wait|retrydelay\W*|reset(?:s)?) ?(?:in|after|for)?[\s\"':]*"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|hours?|minutes?|seconds?|[hms])\b\s*)+)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[a-z])", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_failure(said: str, code: int, body: Any = None, wait: float = 0.0) -> Failure:
    """What a server's refusal means: that of a content filter withholds one answer, and without
    money or quota nothing more will be answered, unless the server says when to try again."""
    found = table(body[0] if isinstance(body, list) and body else body)
    error = table(found.get("error")) or found
    named = f"{error.get('code')} {error.get('type')} {said}"
    metadata = table(error.get("metadata"))
    flagged = bool(metadata.get("reasons") or metadata.get("flagged_input"))
    filtered = any(ending(table(c).get("finish_reason")) == "refused" for c in choices_of(found))
    withheld = code in (400, 403, 422, 451) and (
        flagged or filtered or bool(_MODERATED.search(named))
    )
    withheld |= code >= 500 and bool(_FILTERED.search(named))
    wait = wait or _wait_said(f"{said} {json.dumps(error.get('details'), default=str)}")
    no_money = bool(_NO_MONEY.search(named)) and not (code == 429 and wait)
    final = code == 402 or (not withheld and no_money)
    return Failure(said, code, wait, withheld=withheld, final=final)


def choices_of(data: Any) -> list[Any]:
    """The choices in the body of an answer; an empty list if it has none."""
    found = table(data).get("choices")
    return found if isinstance(found, list) else []


def _wait_said(text: str) -> float:
    """The seconds after which an error says that it is worth trying again, as "in 1m20.5s"; 0 if it
    does not."""
    found = _TRY_AGAIN.search(text)
    return _seconds(found[1]) if found else 0.0


def _seconds(span: str) -> float:
    """A span of time with units in seconds: "1h2m3.5s", "250 ms", "60 seconds"."""
    return sum(float(n) * _UNITS.get(unit.lower(), 0.0) for n, unit in _SPAN.findall(span))


def failure_within(data: Any) -> Failure | None:
    """The failure that a body with status 200 reports in the place of an answer; None if it does
    not."""
    found = table(data)
    if not found or any(found.get(name) for name in _ANSWERS):
        return None
    error = found.get("error") or found.get("errors")
    if not error and any(name in found for name in _ANSWERS):
        return None
    error = error or {name: found[name] for name in _MESSAGES if name in found}
    if not (said := error_message(error)):
        return None
    code = count(table(error).get("code")) or count(found.get("code"))
    absent = 404 if _NOWHERE.search(said) else 500
    failure = read_failure(said, code if 400 <= code < 600 else absent, data)
    return failure._replace(within=True)


_NOWHERE = re.compile(r"unexpected endpoint|not found|no such|does not exist", re.IGNORECASE)
_ANSWERS = ("choices", "content", "candidates", "promptFeedback")  # where providers put answers

# Reasons for which an answer ends, by what they mean; any other is a full stop.
_WITHHELD = re.compile(
    r"filter|safety|refus|recitation|blocklist|blocked|prohibited|guardrail|sensitive|moderat"
    r"|policy|spii|toxic|flagged|language|violation"
)
_BROKEN_OFF = re.compile(
    r"error|fail|abort|cancel|interrupt|insufficient|time_?out|overload|network|unavailable"
    r"|malformed"
)
_CUT = re.compile(r"length|max_?\w*tokens?|limit|context|truncat|incomplete|exceed")
_UNSAID = frozenset(("", "null", "none", "unknown", "unspecified", "other"))


def ending(reason: Any) -> Ended | None:
    """How an answer ended, by the reason that any provider gives; None if it gives none."""
    why = str(reason or "").lower().replace("-", "_").removeprefix("finish_reason_")
    if why in _UNSAID:
        return None
    if _WITHHELD.search(why):
        return "refused"
    if _BROKEN_OFF.search(why):
        return "error"
    return "length" if _CUT.search(why) else "stop"


def retry_after(headers: Any) -> float:
    """Seconds that a Retry-After header asks for, as a number, with a unit, or as a date; else
    0."""
    if milliseconds := headers.get("retry-after-ms"):
        with suppress(ValueError):
            return bounded_wait(float(milliseconds) / 1000)
    value = str(headers.get("retry-after") or "").strip()
    with suppress(ValueError):
        return bounded_wait(float(value))
    if seconds := _seconds(value) if re.fullmatch(r"[\d.hms ]+", value) else 0.0:
        return seconds
    try:
        return bounded_wait(parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def bounded_wait(seconds: float) -> float:
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def count(value: Any) -> int:
    """A number of tokens as a server gives it; 0 for anything else."""
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return int(value) if sound else 0


def table(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


_PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_KEYS = ("authorization", "x-api-key", "x-goog-api-key")  # headers
ANSWER = 8 << 20  # bytes of a response
VALUES = 250_000  # in a response of JSON; each may take a hundred times its bytes in memory
_FETCHED = 64 << 20  # bytes of one that is fetched: the results of a batch, in lines
_LAST_PORT = 65_535
_SECRET = 8  # a key this long is a secret: some servers want "none" or "x"
_TELLING = 12  # this many characters of a secret in a row give it away


class Api(NamedTuple):
    """An API to talk to: the environment variables for its key (the first that is set counts) and
    its address, and the default address."""

    keys: tuple[str, ...]
    variable: str
    url: str


OPENAI = Api(("OPENAI_API_KEY",), "OPENAI_BASE_URL", "https://api.openai.com/v1")


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
        known = [(self.key, "[key]"), (self.password, "[password]")]
        for secret, name in (*known, *((value, "[hidden]") for value in self.hidden)):
            if len(secret) >= _SECRET:
                for size, pieces in _telling(secret):
                    text = _without(text, size, pieces, name)
        return storable(text)

    def line(self, text: str, longest: int = 300) -> str:
        """The clean text on one line, of limited length and safe for a terminal."""
        text = self.clean(text)
        return " ".join("".join(c if is_plain(c) else " " for c in text).split())[:longest]


_named_in_files: list[str] = []  # addresses named only in a file


_headers: list[tuple[str, str, str]] = []  # the address of a server, and what to send to it


@contextmanager
def sending(headers: Mapping[str, str], url: str) -> Iterator[None]:
    """Inside this context, requests to the server of that URL carry these headers, which are kept
    nowhere and shown to nobody. Raises UsageError for what is no header."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise UsageError(f"{name!r} and its value cannot be sent as a header")
    added = [(url, name, value) for name, value in headers.items()]
    _headers.extend(added)
    try:
        yield
    finally:
        for header in added:
            _headers.remove(header)


def own_headers(url: str) -> dict[str, str]:
    """The headers that a person wants sent to the server of that URL."""
    return {name: value for to, name, value in _headers if _place(to) == _place(url)}


_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@contextmanager
def withheld(addresses: Iterable[str]) -> Iterator[None]:
    """Inside this context, servers at these addresses get no key or password from the environment:
    a file named them, and a file may be a stranger's. An address that the environment also names
    keeps its key."""
    added = list(addresses)
    _named_in_files.extend(added)
    try:
        yield
    finally:
        for address in added:
            _named_in_files.remove(address)


def is_withheld(url: str, *known: str | None) -> bool:
    """Whether a server gets no key: only a file names it, and it is not a known one."""
    return _place(url) in map(_place, _named_in_files) and _place(url) not in map(
        _place, filter(None, known)
    )


def _place(url: str) -> tuple[str, str | None, int | None]:
    """The server of a URL: its scheme, host and port."""
    try:
        parts = urlsplit(url.strip())
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        return parts.scheme, parts.hostname, parts.port or usual
    except ValueError:  # half an IPv6 address, or a port that is not one
        return url, None, None


def read_secrets(url: str, api: Api = OPENAI) -> Secrets:
    """The secrets for this URL: no key if only a file names it (`withheld`). Raises UsageError for
    a key that no header can hold."""
    found = ((name, os.environ.get(name, "").strip()) for name in api.keys)
    name, key = next((pair for pair in found if pair[1]), ("", ""))
    if not all("!" <= c <= "~" for c in key):
        raise UsageError(
            f"{name} contains a character that a key cannot have (a line break, a space or one "
            "outside ASCII): copy it again"
        )
    if is_withheld(url, os.environ.get(api.variable), api.url):
        key = ""
    password = unquote(urlsplit(url).password or "")
    return Secrets(key, password, (*own_headers(url).values(), *_hidden(url)))


def server_url(base_url: str | None = None, api: Api = OPENAI) -> str:
    """`base_url`, else the environment's, else the provider's own. Raises UsageError if it is not a
    URL."""
    url = base_url or os.environ.get(api.variable) or api.url
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is not one
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or set(" \\") & set(url):
        example = "http://HOST:PORT" + urlsplit(api.url).path
        raise UsageError(f"base_url must look like {example}")
    return url


# Segments of addresses of APIs; any other may be a token, or name a customer.
_USUAL_SEGMENTS = frozenset(
    "v1 v2 v3 v4 v1beta api openai deployments compatible-mode inference paas serverless engines"
    " models proxy litellm rest".split()
)


def without_password(url: str) -> str:
    """A URL in a form safe to show and store: without password and query, and with unusual parts of
    its path as digests, by which two addresses can be told apart."""
    parts = urlsplit(url)
    segments = [
        part
        if not part or part in _USUAL_SEGMENTS
        else f"[{sha256(part.encode()).hexdigest()[:8]}]"
        for part in parts.path.split("/")
    ]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "/".join(segments), "", ""))


# Names that no public server has.
_PRIVATE = ("localhost", ".local", ".lan", ".internal", ".home.arpa", ".localdomain", ".test")


def readable_on_the_way(url: str, secrets: Secrets) -> str:
    """A line that says so if a key, a password or a header of one's own goes to a public server
    without encryption; else ""."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or not (secrets.key or secrets.password or own_headers(url)):
        return ""
    try:
        public = ip_address(host).is_global
    except ValueError:  # a name
        public = "." in host and not host.endswith(_PRIVATE)
    if not public:
        return ""
    return (
        f"your key goes to {parts.scheme}://{host} without encryption, where others on the way can "
        "read it: use https:// if the server takes it"
    )


def _hidden(url: str) -> tuple[str, ...]:
    """The parts of a URL's path and query that look like secrets; the name of a deployment does
    not, and a word would be taken out of every answer that has it."""
    parts = urlsplit(url)
    segments = parts.path.split("/")
    named = {after for before, after in pairwise(segments) if before in _NAMES_FOLLOW}
    values = [value for _, value in parse_qsl(parts.query)]
    return tuple(part for part in (*segments, *values) if part not in named and _telltale(part))


_NAMES_FOLLOW = ("deployments", "engines", "models")
_LONG_SECRET = 24  # characters, of letters alone


def _telltale(part: str) -> bool:
    """Whether a part of an address looks like a secret: long, or of letters and digits."""
    mixed = any(c.isdigit() for c in part) and any(c.isalpha() for c in part)
    return len(part) >= (_SECRET if mixed else _LONG_SECRET)


def open_client(url: str, timeout: float, retries: int) -> Any:
    """An `openai.AsyncOpenAI` that keeps this module's promises. `timeout` is in seconds, for a
    whole answer, headers included; a request that fails is sent again up to `retries` times. Raises
    MissingExtra without the package, UsageError for an impossible key or time."""
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtra("openai", extra="openai") from error
    query = dict(parse_qsl(urlsplit(url).query))  # as Azure's api-version
    with opening(without_password(url)):
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
def opening(url: str) -> Iterator[None]:
    """Turn errors in making a client into one line that names what it read from the environment:
    the certificates to trust, if a file cannot be read, or else the proxies."""
    try:
        yield
    except KgbiasError:
        raise
    except Exception as error:
        proxies = [n for p in _PROXIES for n in (p, p.lower())]
        names = _CERTIFICATES if isinstance(error, OSError) else proxies
        told = [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]
        why = Secrets("", "").line(reason(error)).rstrip(".")
        advice = f": check {', '.join(map(_shown, told))}" if told else ""
        raise ModelError(f"cannot make a client for {url}: {why}{advice}") from error


def through(url: str) -> str:
    """The proxy through which a URL is reached, as part of a sentence; "" for none."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme) or getproxies().get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return f" through the proxy {_shown(proxy)} (of the environment)"


def _shown(setting: str) -> str:
    """An environment setting without the password that its address may contain."""
    return re.sub(r"//[^/@]*@", "//", storable(setting))[:100]


class Caller:
    """A client for callers that wait for each answer, from any thread: it runs in its own thread,
    where a time limit can end whatever is under way."""

    def __init__(self, url: str, timeout: float, retries: int) -> None:
        self._client = open_client(url, timeout, retries)
        self.secrets = read_secrets(url)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(Unawaited())
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def ask(self, call: Callable[[Any], Coroutine[Any, Any, Any]], who: str) -> dict[str, Any]:
        """The JSON object in a server's answer to `call` (which is given the client, and returns a
        raw response). Raises ModelError, in one clean line, if there is none."""
        import openai

        try:
            body = asyncio.run_coroutine_threadsafe(call(self._client), self._loop).result().content
        except openai.OpenAIError as error:
            why = self.secrets.line(reason(error.__cause__ or error))
            if isinstance(error, openai.APIStatusError):
                why = f"{error.status_code}: {self.secrets.line(message(error))}"
            raise ModelError(f"{who} does not answer: {why}") from None
        except Exception as error:  # what the client does not foresee
            why = self.secrets.line(f"{type(error).__name__}: {error}")
            raise ModelError(f"{who} does not answer: {why}") from None
        found = parsed(body)
        if not isinstance(found, dict):
            start = self.secrets.line(body[: 4 * 1024].decode("utf-8", "replace"), 80)
            raise ModelError(f"{who} answers with something other than a JSON object: {start!r}")
        return found


def parsed(body: bytes) -> Any:
    """The value of a body of JSON; None for anything else, or for one that is far larger than an
    answer."""
    if len(body) > ANSWER or sum(map(body.count, (b",", b"[", b"{"))) > VALUES:
        return None
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _streamed(text)


_STREAM_END = re.compile(r"^\s*data:\s*\[DONE\]\s*$", re.MULTILINE)


def _streamed(text: str) -> Any:
    """The answer in a stream of events, put together as if it had come in one piece; None if that
    is not what the text is. One that ends without a reason, a count of its tokens and the mark
    that ends a stream was broken off."""
    events = []
    for line in text.splitlines():
        if not (line := line.strip()).startswith("data:"):
            continue
        with suppress(ValueError, RecursionError):
            events.append(table(json.loads(line.removeprefix("data:"))))
    if not events:
        return None
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {}
    for event in events:
        whole |= {name: value for name, value in event.items() if value is not None}
        for part in choices_of(event)[:1]:
            found = table(part)
            choice |= {name: v for name, v in found.items() if v is not None and name != "text"}
            if isinstance(found.get("text"), str):
                choice["text"] = choice.get("text", "") + found["text"]
            for name, value in table(found.get("delta") or found.get("message")).items():
                if isinstance(value, str) and name != "role":
                    message[name] = message.get(name, "") + value
    has_ended = choice.get("finish_reason") or whole.get("usage") or _STREAM_END.search(text)
    if choice and not has_ended:
        choice |= {"finish_reason": "error", "error": "the stream ended before the answer did"}
    if "text" not in choice:
        choice["message"] = message
    is_answer = "text" in choice or choice.keys() > {"message"} or message
    return {**whole, "choices": [choice] if is_answer else []}


def message(error: Any) -> str:
    """The message in the body of a client's error, whatever its form; else the client's own."""
    response = getattr(error, "response", None)
    body: Any = error.body
    if not body and response is not None:
        body = parsed(response.content) or response.text.strip()
    return error_message(body) or str(getattr(error, "message", error))


MAX_DEPTH = 4  # of a message in an error's body
_MESSAGES = ("error", "message", "detail", "details", "errors", "msg", "title", "description")


def error_message(body: Any, depth: int = 0) -> str:
    """What an error's body says, in the words of the server: a text, or the first of the fields in
    which servers put it, at any depth; of a list all messages, each with the place that it is
    about. "" if it says nothing."""
    if isinstance(body, str):
        return body
    if isinstance(body, list) and depth <= MAX_DEPTH:
        return "; ".join(filter(None, (error_message(part, depth + 1) for part in body[:10])))
    found = table(body)
    if not found or depth > MAX_DEPTH:
        return ""
    there = (found[name] for name in _MESSAGES if name in found)
    said = next(filter(None, (error_message(part, depth + 1) for part in there)), "")
    place = found.get("loc") or found.get("param")
    if said and place:
        named = ".".join(map(str, place)) if isinstance(place, list) else str(place)
        said = said if named in said else f"{said} ({named})"
    reasons = table(found.get("metadata")).get("reasons")
    if said and isinstance(reasons, list):
        said += f" ({', '.join(map(str, reasons))})"
    return said


def number(value: Any, low: float, high: float) -> float | None:
    """The value if it is a number from `low` to `high`, else None; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None


def _forms(secret: str) -> Iterator[str]:
    """The forms in which a secret may be written: plain, in base64 beside something else,
    escaped."""
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
    """The telling pieces of each form of a secret, and their length."""
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


def bounded_client(base: Any, timeout: float, url: str, api: Api = OPENAI) -> Any:
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
            # A redirect may turn what is asked into a GET, but it keeps these.
            request.extensions["most"] = _FETCHED if request.method == "GET" else ANSWER
            try:
                async with asyncio.timeout(timeout):
                    return await super().send(request, **options)
            except TimeoutError as error:
                late = "the answer took too long"
                raise httpx2.ReadTimeout(late, request=request) from error

    async def received(response: Any) -> None:
        response.encoding = "utf-8"  # JSON is UTF-8; the encoding in the header may not even exist
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("the answer is compressed, which was not asked for")
        response.stream = Bounded(response.stream, response.request.extensions["most"])

    home, own = _place(url), not is_withheld(url, os.environ.get(api.variable), api.url)
    told = {name.lower().strip() for name in _about_you()}

    async def sending(request: Any) -> None:  # also of each redirect
        if (request.url.port or 0) > _LAST_PORT:
            where = f"{request.url.host}:{request.url.port}"
            why = f"it redirects to {where}, but there are no ports above {_LAST_PORT}"
            raise httpx2.ConnectError(why, request=request)
        away = _place(str(request.url)) != home
        for name in (*(_KEYS if away else ()), *(told if away or not own else ())):
            request.headers.pop(name, None)

    # A server or proxy may send a second response without being asked, which the next request on
    # that connection would get for its own (httpcore#961): so no connection is used twice.
    return Client(
        event_hooks={"request": [sending], "response": [received]},
        headers={"accept-encoding": "identity"},
        limits=httpx2.Limits(max_keepalive_connections=0),
    )


def _about_you() -> Iterator[str]:
    """The headers in which the providers' clients send other settings from the environment."""
    yield from ("openai-organization", "openai-project")
    for line in os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n"):
        yield line.partition(":")[0]
