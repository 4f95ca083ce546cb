"""The explorer's server: for runs too large for a file, or for a team.

It keeps the columns of the statements in memory, compressed; prompts, answers and probes stay in
the store and are read statement by statement.

It answers only GET, from memory and from the store by statement number; no part of an address
becomes a path or a query (the words of a search become a vector). Only a server that was asked for
a page that writes (`kgbias.explore.writing_pages`) takes POST requests, of that page, and needs a
token. Without a token it answers only requests addressed to this machine by a local name,
so that nobody else's page can point its own name here (DNS rebinding). With a token, every request
must show it: as a bearer token, or once in the address, after which the browser keeps a cookie that
is worthless once the server has stopped.

While it runs, it looks whether the store has changed (`kgbias.explore.store_watch`), reads the runs
again if they have, and tells the page so, which then loads them.

What was read is kept in the cache folder while the store is unchanged (`kgbias.graph.cache`), so
the next server of the same runs need not read them again: a line of JSON, and the blocks of columns
as the page gets them.

A store belongs to the thread that opened it: that thread handles what requests ask of the store,
and the server has a thread of its own. The nearest statements of a text come from vectors read in
the store's thread, but from an encoder in a thread of its own, since that may take its time
(`kgbias.explore.similar`).
"""

import asyncio
import errno
import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar
from zlib import decompress

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kgbias.errors import KgbiasError, MissingExtra, UsageError
from kgbias.explore import beliefs, meaning_map, statements, unit_maps
from kgbias.explore.origins import read_origin
from kgbias.explore.page import PAGE_FORMAT, describe_page, fill_page
from kgbias.explore.similar import SimilarStatements
from kgbias.explore.statements import ArmSource, RowIndex
from kgbias.explore.store_watch import StoreWatch
from kgbias.explore.writing_pages import WritingPage
from kgbias.graph.cache import CacheEntry
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.resources import __version__

# Statements of a page that leaves nothing out (`render_served_page`).
MAX_COMPLETE_STATEMENTS = 50_000
MIN_CACHED_STATEMENTS = 10_000  # statements; fewer are read just as fast
_MAX_DISK_BYTES = 1 << 30  # bytes of all that is kept
_MAX_QUERY_CHARACTERS = 200  # characters of a text that something may be near


@dataclass(frozen=True, slots=True)
class ServedPage:
    """The page of a server: it holds no data, but fetches `blocks` by name (each a zlib stream),
    and the details of single statements, which `row_index` finds by row. `policy` is its
    Content-Security-Policy. `version` is another text for other data: what a page asks for by
    place is only right for the data that it was made for."""

    page: str
    policy: str
    blocks: Mapping[str, bytes]
    row_index: RowIndex
    version: str


@dataclass(frozen=True, slots=True)
class _PageData:
    """What was read: what the page needs first, its blocks, and the ids of the groups."""

    about: Mapping[str, Any]
    blocks: Mapping[str, bytes]
    groups: Sequence[str]


def render_served_page(
    runs: Sequence[StoredRun],
    *,
    selection: Selection | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    label: str = "",
) -> ServedPage:
    """The explorer's page for a server. For more than `MAX_COMPLETE_STATEMENTS` it leaves out what
    would take minutes, or the memory of all their texts: communities that are not stored, verdicts,
    what stories say, and echoes unless `selection` leaves echoes out. `label`: the address of the
    page to label on."""
    selection = selection or Selection()
    cache_entry = _find_cache_entry(runs, selection, seed)
    page_data = _read_cache(cache_entry) if cache_entry else None
    if page_data is None:
        page_data = _read_page_data(runs, selection, seed, progress or SilentProgress())
        if cache_entry and page_data.about["rows"] >= MIN_CACHED_STATEMENTS:
            _write_cache(page_data, cache_entry, runs[0])
    page_info = json.dumps(page_data.about).encode()
    version = blake2b(b"".join([page_info, *page_data.blocks.values()]), digest_size=12).hexdigest()
    page, policy = fill_page({**page_data.about, "version": version}, None, label=label)
    return ServedPage(page, policy, page_data.blocks, _build_row_index(page_data, runs), version)


def _read_page_data(
    runs: Sequence[StoredRun], selection: Selection, seed: int, progress: Progress
) -> _PageData:
    table = statements.read_statement_table(runs, selection, progress)
    is_small = table.rows <= MAX_COMPLETE_STATEMENTS
    if is_small or selection.exclude_echoes:
        statements.find_echoes(table, progress)
    maps = meaning_map.build_all_maps(table, seed=seed, progress=progress, search=is_small)
    core_block = statements.build_block(table)
    never_said = beliefs.add_verdicts(table, core_block, progress) if is_small else []
    if is_small:
        beliefs.add_story_shares(table, core_block)
    beliefs.add_recorded_marks(table, core_block)
    blocks = {
        "core": core_block,
        "maps": unit_maps.build_block(maps),
        "ids": statements.build_id_block(table),
    }
    about = describe_page(table, selection, maps, blocks) | {"never": never_said}
    compressed = {name: block.compress() for name, block in blocks.items()}
    return _PageData(about, compressed, [id for id, _ in table.groups.items()])


def _build_row_index(page_data: _PageData, runs: Sequence[StoredRun]) -> RowIndex:
    """Which statement is in which row."""
    run_by_id = {r.id: r for r in runs}
    row_index = RowIndex(
        [
            ArmSource(run_by_id[s["id"]], s["arm"], s["threshold"], s["start"], s["end"])
            for s in page_data.about["sources"]
        ],
        triple=np.frombuffer(
            decompress(page_data.blocks["ids"]), statements.ID_DTYPE, count=page_data.about["rows"]
        ),
    )
    for id in page_data.groups:
        row_index.groups.add(id, "")
    return row_index


def _find_cache_entry(
    runs: Sequence[StoredRun], selection: Selection, seed: int
) -> CacheEntry | None:
    """Where the data read of the runs is kept; None if their store does not tell its state."""
    store = runs[0].store
    if any(run.store is not store for run in runs):
        return None
    state = store.content_version()
    if state is None:
        return None
    contents = [__version__, PAGE_FORMAT, [run.id for run in runs], asdict(selection), seed]
    return CacheEntry(
        ("explorer", "page"), os.path.realpath(store.url), state, json.dumps(contents)
    )


def _write_cache(page_data: _PageData, entry: CacheEntry, run: StoredRun) -> None:
    """Keep what was read, unless the store changed meanwhile."""
    if run.store.content_version() != entry.version:
        return
    sizes = {name: len(block) for name, block in page_data.blocks.items()}
    header = json.dumps({"about": page_data.about, "groups": page_data.groups, "blocks": sizes})
    body = b"".join([header.encode(), b"\n", *page_data.blocks.values()])
    entry.write(body, lambda: run.store.content_version() == entry.version, _MAX_DISK_BYTES)


def _read_cache(entry: CacheEntry) -> _PageData | None:
    """What was kept, or None if nothing was kept whole."""
    body = entry.read()
    if body is None:
        return None
    header_bytes, _, block_bytes = body.partition(b"\n")
    header, blocks, start = json.loads(header_bytes), {}, 0
    for name, size in header["blocks"].items():
        blocks[name] = block_bytes[start : start + size]
        start += size
    return _PageData(header["about"], blocks, header["groups"])


ResultT = TypeVar("ResultT")
StoreReader = Callable[[Callable[[], ResultT]], Awaitable[ResultT]]

COOKIE_NAME = "kgbias"
_LOCAL_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_ROW_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_RESPONSE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",  # may be kept, but is checked each time
}


class Application:
    """The application: until it has something to show, it says that this is being read."""

    def __init__(
        self, read: StoreReader[Any], run_apart: StoreReader[Any], *, token: str | None = None
    ) -> None:
        """
        Args:
            read: calls a function that reads the store, in a thread that may read it.
            run_apart: calls one that takes its time and reads no store, in another thread.
            token: what a request must show; None: answer requests addressed to this machine.
        """
        self._read, self._run_apart = read, run_apart
        self._token = token
        self._session = secrets.token_urlsafe(32)
        self._writing_path: str | None = None
        self._writing_headers: list[tuple[bytes, bytes]] = []
        self._running_lines: Sequence[str] = ()
        self._app: ASGIApp = _waiting_response("The statements are being read")
        self._is_showing = False
        self._headers = _security_headers("default-src 'none'")

    def show_page(self, view: ServedPage, writing: WritingPage | None = None) -> None:
        """Answer with this page, its columns and its statements from now on; also with one that
        writes, if there is one."""
        self._headers = _security_headers(view.policy)
        extra: Sequence[Route] = ()
        if writing is not None:
            extra, policy = writing.build_routes(self._read)
            self._writing_headers = _security_headers(policy)
        self._writing_path = writing.path if writing else None

        async def live(_: Request) -> Response:
            return JSONResponse({"version": view.version, "running": list(self._running_lines)})

        self._app = _build_app(view, self._read, self._run_apart, [Route("/live", live), *extra])
        self._is_showing = True

    def set_running(self, running: Sequence[str]) -> None:
        """Tell the page, once the runs were read, what is running, a line each."""
        self._running_lines = running
        if not self._is_showing:
            self._app = _waiting_response("\n".join([*running, "There are no statements yet"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writes = self._writing_path is not None and scope.get("path") == self._writing_path
        headers = self._writing_headers if writes else self._headers

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        response = self._check_request(Request(scope)) or self._app
        await response(scope, receive, guarded)

    def _check_request(self, request: Request) -> Response | None:
        """The answer to a request that must not reach the application."""
        writes = request.url.path == self._writing_path and request.method == "POST"
        if request.method not in ("GET", "HEAD") and not writes:
            return PlainTextResponse("only GET", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            if _LOCAL_HOST.fullmatch(request.headers.get("host", "")):
                return None
            return PlainTextResponse("this view can only be opened on its own machine", 403)
        token_shown = request.query_params.get("token")
        path = request.url.path
        if (
            path in ("/", self._writing_path)
            and token_shown is not None
            and _secrets_equal(token_shown, self._token)
        ):
            redirect = RedirectResponse(path, 303)  # so that no address holds the token
            redirect.set_cookie(
                COOKIE_NAME,
                self._session,
                httponly=True,
                samesite="lax",
                secure=request.url.scheme == "https",
            )
            return redirect
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE_NAME, "")
        shows_token = kind.lower() == "bearer" and _secrets_equal(bearer, self._token)
        if shows_token or _secrets_equal(cookie, self._session):
            return None
        return PlainTextResponse(
            "this view needs its token: open its address with ?token=... at the end",
            401,
            {"WWW-Authenticate": "Bearer"},
        )


def _waiting_response(why: str) -> Response:
    """The answer to every request until there is something to show."""
    return PlainTextResponse(
        f"{why}; this page opens by itself.", 503, {"Retry-After": "2", "Refresh": "2"}
    )


def _build_app(
    view: ServedPage, read: StoreReader[Any], run_apart: StoreReader[Any], extra: Sequence[Route]
) -> ASGIApp:
    """The routes: the page, a block of columns by name, a statement by number, and `extra` ones."""
    tags = {name: _etag(block) for name, block in view.blocks.items()}
    page = view.page.encode("utf-8")
    page_tag = _etag(page)

    def answered(request: Request, body: bytes, tag: str, kind: str) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, media_type=kind, headers={"ETag": tag})

    async def whole(request: Request) -> Response:
        return answered(request, page, page_tag, "text/html; charset=utf-8")

    def check(request: Request) -> None:
        """Refuse what was asked by a page of other data."""
        # A page asks by row, which is only right for the data that it was made for. Refused, it
        # loads itself again (page/live.js).
        if request.query_params.get("v", view.version) != view.version:
            raise HTTPException(409, "the statements have changed: load the page again")

    async def data(request: Request) -> Response:
        check(request)
        name = request.path_params["name"]
        if name not in view.blocks:
            raise HTTPException(404)
        return answered(request, view.blocks[name], tags[name], "application/octet-stream")

    async def statement(request: Request) -> Response:
        check(request)
        row = _parse_number(request.path_params["row"])
        start = _parse_number(request.query_params.get("first", "0"))
        if row >= view.row_index.rows:
            raise HTTPException(404)
        try:
            return JSONResponse(await read(lambda: read_origin(view.row_index, row, start)))
        except (KgbiasError, TimeoutError) as error:
            raise HTTPException(503, "the store cannot be read now") from error

    routes = [
        Route("/", whole),
        Route("/near", _near_endpoint(view, read, run_apart, check)),
        Route("/data/{name}", data),
        Route("/statement/{row}", statement),
        *extra,
    ]
    return Starlette(routes=routes)


def _near_endpoint(
    view: ServedPage,
    read: StoreReader[Any],
    run_apart: StoreReader[Any],
    check: Callable[[Request], None],
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that says what is near a row's statement, or a text."""
    row_index, nearby = view.row_index, dict[str, SimilarStatements]()  # by run

    def open_similar(source: int) -> SimilarStatements:
        run = row_index.sources[source].run.id
        if run not in nearby:
            nearby[run] = SimilarStatements(row_index, source)
        return nearby[run]

    async def answer_near(request: Request) -> Response:
        check(request)
        row, text = request.query_params.get("row"), request.query_params.get("text", "")
        number = _parse_number(request.query_params.get("source", "0") if row is None else row)
        if number >= (len(row_index.sources) if row is None else row_index.rows):
            raise HTTPException(404)
        source = number if row is None else row_index.sources.index(row_index.source(number))
        try:
            run_similar = await read(lambda: open_similar(source))
            if row is None:
                matches = await run_apart(
                    lambda: run_similar.search_text(text[:_MAX_QUERY_CHARACTERS])
                )
            else:
                matches = await run_apart(
                    lambda: run_similar.search_statement(row_index.triple_id(number))
                )
            return JSONResponse({"found": matches})
        except MissingExtra as error:
            return JSONResponse({"problem": str(error)})
        except (KgbiasError, TimeoutError) as error:
            raise HTTPException(503, "the store cannot be read now") from error

    return answer_near


def _security_headers(policy: str) -> list[tuple[bytes, bytes]]:
    """The headers of every answer."""
    headers = {**_RESPONSE_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _secrets_equal(given: str, expected: str) -> bool:
    """Whether two secrets are the same, in a time that does not reveal how much of them is."""
    digests = (
        hashlib.sha256(s.encode("utf-8", "surrogatepass")).digest() for s in (given, expected)
    )
    return hmac.compare_digest(*digests)


def _parse_number(text: str) -> int:
    if not _ROW_NUMBER.fullmatch(text):
        raise HTTPException(404)
    return int(text)


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


DEFAULT_PORT = 8765
TOKEN_VARIABLE = "KGBIAS_SERVE_TOKEN"
_MIN_TOKEN_CHARACTERS = 16  # characters of a token
_MAX_WAIT_SECONDS = 30.0  # seconds that a request waits for the store
_MAX_CONNECTIONS = 500  # connections at once
_MAX_HEAD_SECONDS = 10.0  # seconds for the whole head of a request
_STOP_SECONDS = 5  # seconds that answers may take to finish


class ExplorerServer:
    """A server of some runs. It listens inside a `with` statement; `show_runs` reads what it shows,
    and `handle_jobs` answers what needs the store, and reads the runs again when they have changed.
    Both must be called in the thread that opened the store.

    Attributes:
        url: where it listens.
    """

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = DEFAULT_PORT, token: str | None = None
    ) -> None:
        try:
            import uvicorn

        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "starlette", "serve") from error
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        # One thread: the encoder is not made for several, and nothing gains by them.
        self._reader = ThreadPoolExecutor(1, "reader")
        self._app = Application(self._read, self._run_apart, token=resolve_token(host, token))
        self._socket = _open_socket(host, port)
        name, port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{port}/"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                http=_build_protocol(_Connections()),
                lifespan="off",
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._reread: Callable[[], None] | None = None
        self._watch = StoreWatch(())

    def __enter__(self) -> "ExplorerServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(2 * _STOP_SECONDS)
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._socket.close()

    def show_runs(
        self,
        runs: Sequence[StoredRun],
        *,
        selection: Selection | None = None,
        progress: Progress | None = None,
        writing: WritingPage | None = None,
    ) -> None:
        """Read the runs, and show them from then on; with `writing`, also that page.
        Until a crawl that is running has its first statements, say so."""
        label = writing.path if writing else ""
        self._watch = StoreWatch(runs)
        self._watch.has_changed()

        def read(progress: Progress | None = None) -> None:
            if all(run.has_statements() or run.record.kind != "crawl" for run in runs):
                view = render_served_page(runs, selection=selection, progress=progress, label=label)
                self._app.show_page(view, writing)
                is_small = view.row_index.rows <= MAX_COMPLETE_STATEMENTS
                self._reread = read if is_small else None

        self._reread = read
        read(progress)
        self._app.set_running(self._watch.running_lines)

    def stop(self) -> None:
        """Stop listening; `handle_jobs` then ends."""
        self._server.should_exit = True

    def handle_jobs(self) -> None:
        """Answer requests that need the store, until the server is stopped."""
        while self._thread.is_alive():
            with suppress(Empty):
                read, answer = self._jobs.get(timeout=0.2)
                if not answer.set_running_or_notify_cancel():
                    continue  # the client has gone
                try:
                    answer.set_result(read())
                except Exception as error:
                    answer.set_exception(error)
            with suppress(KgbiasError):  # a store that cannot be read now is looked at later
                self._reread_if_changed()

    def _reread_if_changed(self) -> None:
        """Read the runs again if they have changed; those of a large page only at the start."""
        if self._watch.has_changed() and self._reread is not None:
            start = monotonic()
            self._reread()
            self._watch.mark_read(monotonic() - start)
        self._app.set_running(self._watch.running_lines)

    def _read(self, read: Callable[[], Any]) -> Awaitable[Any]:
        answer: Future[Any] = Future()
        self._jobs.put((read, answer))
        return asyncio.wait_for(asyncio.wrap_future(answer), _MAX_WAIT_SECONDS)

    def _run_apart(self, think: Callable[[], Any]) -> Awaitable[Any]:
        # The first to ask waits for the encoder, on a busy machine for longer than
        # `_MAX_WAIT_SECONDS`.
        return asyncio.wrap_future(self._reader.submit(think))


class _Connections:
    """The open connections. Anybody can hold one open that waits for a request, so waiting
    connections must keep nobody out: each has a limited time for the head of its request, and once
    the limit of connections is reached, the client with the most waiting ones loses its oldest to
    make room for the next."""

    def __init__(self) -> None:
        self._requests: dict[Any, Any] = {}  # in order, with the request last seen on each

    def add(self, connection: Any) -> None:
        waiting = [c for c in self._requests if _is_waiting(c)]
        if len(self._requests) >= _MAX_CONNECTIONS:
            if not waiting:
                connection.transport.abort()
                return
            # Whoever holds most connections open loses the oldest, so that one client cannot shut
            # out others.
            busiest_client = Counter(map(_client_host, waiting)).most_common(1)[0][0]
            oldest = next(c for c in waiting if _client_host(c) == busiest_client)
            self.remove(oldest)
            oldest.transport.abort()
        self._requests[connection] = None
        self._schedule_check(connection)

    def remove(self, connection: Any) -> None:
        self._requests.pop(connection, None)

    def _schedule_check(self, connection: Any) -> None:
        asyncio.get_running_loop().call_later(_MAX_HEAD_SECONDS, self._close_if_idle, connection)

    def _close_if_idle(self, connection: Any) -> None:
        """Close a connection on which no request has begun since the last look."""
        if connection not in self._requests:
            return
        if _is_waiting(connection) and connection.cycle is self._requests[connection]:
            connection.transport.close()
            return
        self._requests[connection] = connection.cycle
        self._schedule_check(connection)


def _is_waiting(connection: Any) -> bool:
    """Whether no request on it is being answered: none has arrived with its whole head, or the last
    has been answered."""
    return connection.cycle is None or connection.cycle.response_complete


def _client_host(connection: Any) -> str:
    return str((connection.client or ("",))[0])


def _build_protocol(connections: _Connections) -> type[asyncio.Protocol]:
    """uvicorn's protocol, reporting its connections. A small answer is sent at once; otherwise it
    would wait 40 ms for the last one to be acknowledged."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class TrackedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if (client_socket := transport.get_extra_info("socket")) is not None:
                client_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.add(self)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.remove(self)
            super().connection_lost(exc)

    return TrackedProtocol


def resolve_token(host: str, token: str | None) -> str | None:
    """The token that requests must show: the given one, or that of KGBIAS_SERVE_TOKEN. Raises
    UsageError without one if `host` is more than this machine, and for one too short to be safe."""
    token = token if token is not None else os.environ.get(TOKEN_VARIABLE) or None
    if token is None:
        if not _is_loopback(host):
            raise UsageError(
                f"to listen on {host}, where others can connect, set a token: "
                f"export {TOKEN_VARIABLE}=$(openssl rand -hex 16)"
            )
    elif len(token) < _MIN_TOKEN_CHARACTERS:
        raise UsageError(
            f"a token needs at least {_MIN_TOKEN_CHARACTERS} characters ({TOKEN_VARIABLE})"
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _open_socket(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        not_ours = (errno.EADDRNOTAVAIL, socket.EAI_NONAME, socket.EAI_AGAIN, socket.EAI_FAIL)
        other = "`host`" if getattr(error, "errno", None) in not_ours else "`port`"
        raise UsageError(
            f"cannot listen on {host}, port {port}: {reason}; choose another {other}"
        ) from error
