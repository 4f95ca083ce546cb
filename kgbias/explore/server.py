"""The explorer's server: for runs too large for a file, or for a team.

It keeps the columns of the statements in memory, compressed; prompts, answers and probes stay in
the store and are read statement by statement.

It answers only GET, from memory and from the store by statement number; no part of an address
becomes a path or a query (the words of a search become a vector). Only a server that was asked for
labels writes: it takes POST requests of its own page to label on (`kgbias.explore.labelling`), and
needs a token. Without a token it answers only requests addressed to this machine by a local name,
so that nobody else's page can point its own name here (DNS rebinding). With a token, every request
must show it: as a bearer token, or once in the address, after which the browser keeps a cookie that
is worthless once the server has stopped.

While it runs, it looks whether the store has changed (`kgbias.explore.live`), reads the runs again
if they have, and tells the page so, which then loads them.

What was read is kept in the cache folder while the store is unchanged (`kgbias.graph.cache`), so
the next server of the same runs need not read them again: a line of JSON, and the blocks of columns
as the page gets them.
"""

import asyncio
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
from kgbias.explore import beliefs, labelling, meaning, statements, units
from kgbias.explore.labelling import Desk
from kgbias.explore.live import Live
from kgbias.explore.origins import origin_of
from kgbias.explore.page import FORMAT, about_of, page_of
from kgbias.explore.similar import Nearby
from kgbias.explore.statements import Placed, Source
from kgbias.graph.cache import CacheEntry
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.resources import __version__
from kgbias.measure.labelling import Labelling

AT_ONCE = 50_000  # statements; more than this are not processed all at once
WORTH_KEEPING = 10_000  # statements; fewer are read just as fast
_ON_DISK = 1 << 30  # bytes of all that is kept
_LONGEST = 200  # characters of a text that something may be near


@dataclass(frozen=True, slots=True)
class ServedPage:
    """The page of a server: it holds no data, but fetches `blocks` by name (each a zlib stream),
    and the details of single statements, which `placed` finds by row. `policy` is its
    Content-Security-Policy. `version` is another text for other data: what a page asks for by
    place is only right for the data that it was made for."""

    page: str
    policy: str
    blocks: Mapping[str, bytes]
    placed: Placed
    version: str


@dataclass(frozen=True, slots=True)
class _Packed:
    """What was read: what the page needs first, its blocks, and the ids of the groups."""

    about: Mapping[str, Any]
    blocks: Mapping[str, bytes]
    groups: Sequence[str]


def render_served(
    runs: Sequence[StoredRun],
    *,
    selection: Selection | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    label: str = "",
) -> ServedPage:
    """The explorer's page for a server. For more than `AT_ONCE` statements it leaves out what would
    take minutes, or the memory of all their texts: communities that are not stored, verdicts,
    what stories say, and echoes unless `selection` leaves echoes out. `label`: the address of the
    page to label on."""
    selection = selection or Selection()
    place = _place(runs, selection, seed)
    packed = _kept(place) if place else None
    if packed is None:
        packed = _read(runs, selection, seed, progress or SilentProgress())
        if place and packed.about["rows"] >= WORTH_KEEPING:
            _keep(packed, place, runs[0])
    said = json.dumps(packed.about).encode()
    version = blake2b(b"".join([said, *packed.blocks.values()]), digest_size=12).hexdigest()
    page, policy = page_of({**packed.about, "version": version}, None, label=label)
    return ServedPage(page, policy, packed.blocks, _placed(packed, runs), version)


def _read(
    runs: Sequence[StoredRun], selection: Selection, seed: int, progress: Progress
) -> _Packed:
    found = statements.read(runs, selection, progress)
    few = found.rows <= AT_ONCE
    if few or selection.without_echoes:
        statements.find_echoes(found, progress)
    maps = meaning.maps(found, seed=seed, progress=progress, search=few)
    core = statements.block(found)
    never = beliefs.add(found, core, progress) if few else []
    if few:
        beliefs.add_told(found, core)
    beliefs.add_recorded(found, core)
    blocks = {"core": core, "maps": units.block(maps), "ids": statements.ids(found)}
    about = about_of(found, selection, maps, blocks) | {"never": never}
    packed = {name: block.compressed() for name, block in blocks.items()}
    return _Packed(about, packed, [id for id, _ in found.groups.items()])


def _placed(packed: _Packed, runs: Sequence[StoredRun]) -> Placed:
    """Which statement is in which row."""
    run = {r.id: r for r in runs}
    placed = Placed(
        [
            Source(run[s["id"]], s["arm"], s["threshold"], s["start"], s["end"])
            for s in packed.about["sources"]
        ],
        triple=np.frombuffer(
            decompress(packed.blocks["ids"]), statements.ID, count=packed.about["rows"]
        ),
    )
    for id in packed.groups:
        placed.groups.add(id, "")
    return placed


def _place(runs: Sequence[StoredRun], selection: Selection, seed: int) -> CacheEntry | None:
    """Where the data read of the runs is kept; None if their store does not tell its state."""
    store = runs[0].store
    if any(run.store is not store for run in runs) or (state := store.content_version()) is None:
        return None
    holds = [__version__, FORMAT, [run.id for run in runs], asdict(selection), seed]
    return CacheEntry(("explorer", "page"), os.path.realpath(store.url), state, json.dumps(holds))


def _keep(packed: _Packed, place: CacheEntry, run: StoredRun) -> None:
    """Keep what was read, unless the store changed meanwhile."""
    if run.store.content_version() != place.version:
        return
    sizes = {name: len(block) for name, block in packed.blocks.items()}
    head = json.dumps({"about": packed.about, "groups": packed.groups, "blocks": sizes})
    body = b"".join([head.encode(), b"\n", *packed.blocks.values()])
    place.write(body, lambda: run.store.content_version() == place.version, _ON_DISK)


def _kept(place: CacheEntry) -> _Packed | None:
    """What was kept, or None if nothing was kept whole."""
    if (body := place.read()) is None:
        return None
    head, _, rest = body.partition(b"\n")
    told, blocks, start = json.loads(head), {}, 0
    for name, size in told["blocks"].items():
        blocks[name] = rest[start : start + size]
        start += size
    return _Packed(told["about"], blocks, told["groups"])


T = TypeVar("T")
Read = Callable[[Callable[[], T]], Awaitable[T]]

COOKIE = "kgbias"
_HERE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_SENT = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",  # may be kept, but is checked each time
}


class Application:
    """The application: until it has something to show, it says that this is being read."""

    def __init__(self, read: Read[Any], apart: Read[Any], *, token: str | None = None) -> None:
        """
        Args:
            read: calls a function that reads the store, in a thread that may read it.
            apart: calls one that takes its time and reads no store, in another thread.
            token: what a request must show; None: answer requests addressed to this machine.
        """
        self._read, self._apart = read, apart
        self._token = token
        self._session = secrets.token_urlsafe(32)
        self._labels = False
        self._label_headers: list[tuple[bytes, bytes]] = []
        self._running: Sequence[str] = ()
        self._app: ASGIApp = _waiting("The statements are being read")
        self._shows = False
        self._headers = _fenced("default-src 'none'")

    def show(self, view: ServedPage, desk: Desk | None = None) -> None:
        """Answer with this page, its columns and its statements from now on; with a desk, also with
        the page to label on."""
        self._headers = _fenced(view.policy)
        extra: list[Route] = []
        if desk is not None:
            extra, policy = labelling.routes(desk, self._read)
            self._label_headers = _fenced(policy)
        self._labels = desk is not None

        async def live(_: Request) -> Response:
            return JSONResponse({"version": view.version, "running": list(self._running)})

        self._app = _pages(view, self._read, self._apart, [Route("/live", live), *extra])
        self._shows = True

    def tell(self, running: Sequence[str]) -> None:
        """Tell the page, once the runs were read, what is running, a line each."""
        self._running = running
        if not self._shows:
            self._app = _waiting("\n".join([*running, "There are no statements yet"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = self._labels and scope.get("path") == labelling.PATH
        headers = self._label_headers if own else self._headers

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        answer = self._first(Request(scope)) or self._app
        await answer(scope, receive, guarded)

    def _first(self, request: Request) -> Response | None:
        """The answer to a request that must not reach the application."""
        writes = self._labels and request.url.path == labelling.PATH and request.method == "POST"
        if request.method not in ("GET", "HEAD") and not writes:
            return PlainTextResponse("only GET", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            if _HERE.fullmatch(request.headers.get("host", "")):
                return None
            return PlainTextResponse("this view can only be opened on its own machine", 403)
        shown = request.query_params.get("token")
        path = request.url.path
        if path in ("/", labelling.PATH) and shown is not None and _same(shown, self._token):
            inside = RedirectResponse(path, 303)  # so that no address holds the token
            inside.set_cookie(
                COOKIE, self._session, httponly=True, samesite="lax",
                secure=request.url.scheme == "https",
            )  # fmt: skip
            return inside
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE, "")
        if (kind.lower() == "bearer" and _same(bearer, self._token)) or _same(
            cookie, self._session
        ):
            return None
        return PlainTextResponse(
            "this view needs its token: open its address with ?token=... at the end", 401,
            {"WWW-Authenticate": "Bearer"},
        )  # fmt: skip


def _waiting(why: str) -> Response:
    """The answer to every request until there is something to show."""
    return PlainTextResponse(
        f"{why}; this page opens by itself.", 503, {"Retry-After": "2", "Refresh": "2"}
    )


def _pages(view: ServedPage, read: Read[Any], apart: Read[Any], extra: Sequence[Route]) -> ASGIApp:
    """The routes: the page, a block of columns by name, a statement by number, and `extra` ones."""
    tags = {name: _tag(block) for name, block in view.blocks.items()}
    page = view.page.encode("utf-8")
    page_tag = _tag(page)

    def answered(request: Request, body: bytes, tag: str, kind: str) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, media_type=kind, headers={"ETag": tag})

    async def whole(request: Request) -> Response:
        return answered(request, page, page_tag, "text/html; charset=utf-8")

    def check(request: Request) -> None:
        """Refuse what was asked by a page of other data."""
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
        row = _number(request.path_params["row"])
        first = _number(request.query_params.get("first", "0"))
        if row >= view.placed.rows:
            raise HTTPException(404)
        try:
            return JSONResponse(await read(lambda: origin_of(view.placed, row, first)))
        except (KgbiasError, TimeoutError) as error:
            raise HTTPException(503, "the store cannot be read now") from error

    routes = [
        Route("/", whole),
        Route("/near", _near(view, read, apart, check)),
        Route("/data/{name}", data),
        Route("/statement/{row}", statement),
        *extra,
    ]
    return Starlette(routes=routes)


def _near(
    view: ServedPage, read: Read[Any], apart: Read[Any], check: Callable[[Request], None]
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that says what is near a row's statement, or a text."""
    placed, nearby = view.placed, dict[str, Nearby]()  # by run

    def of(source: int) -> Nearby:
        run = placed.sources[source].run.id
        if run not in nearby:
            nearby[run] = Nearby(placed, source)
        return nearby[run]

    async def near(request: Request) -> Response:
        check(request)
        row, text = request.query_params.get("row"), request.query_params.get("text", "")
        number = _number(request.query_params.get("source", "0") if row is None else row)
        if number >= (len(placed.sources) if row is None else placed.rows):
            raise HTTPException(404)
        source = number if row is None else placed.sources.index(placed.source(number))
        try:
            own = await read(lambda: of(source))
            if row is None:
                found = await apart(lambda: own.text(text[:_LONGEST]))
            else:
                found = await apart(lambda: own.statement(placed.triple_id(number)))
            return JSONResponse({"found": found})
        except MissingExtra as error:
            return JSONResponse({"problem": str(error)})
        except (KgbiasError, TimeoutError) as error:
            raise HTTPException(503, "the store cannot be read now") from error

    return near


def _fenced(policy: str) -> list[tuple[bytes, bytes]]:
    """The headers of every answer."""
    headers = {**_SENT, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _same(given: str, wanted: str) -> bool:
    """Whether two secrets are the same, in a time that does not reveal how much of them is."""
    digests = (hashlib.sha256(s.encode("utf-8", "surrogatepass")).digest() for s in (given, wanted))
    return hmac.compare_digest(*digests)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise HTTPException(404)
    return int(text)


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


PORT = 8765
TOKEN = "KGBIAS_SERVE_TOKEN"
_SHORTEST = 16  # characters of a token
_WAIT = 30.0  # seconds that a request waits for the store
_OPEN = 500  # connections at once
_HEADERS = 10.0  # seconds for the whole head of a request
_STOP = 5  # seconds that answers may take to finish


class Server:
    """A server of some runs. It listens inside a `with` statement; `show` reads what it shows, and
    `work` answers what needs the store, and reads the runs again when they have changed. Both must
    be called in the thread that opened the store.

    Attributes:
        url: where it listens.
    """

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = PORT, token: str | None = None
    ) -> None:
        try:
            import uvicorn

        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "starlette", "serve") from error
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        # One thread: the encoder is not made for several, and nothing gains by them.
        self._reader = ThreadPoolExecutor(1, "reader")
        self._app = Application(self._read, self._apart, token=checked_token(host, token))
        self._socket = _listening(host, port)
        name, port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{port}/"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                http=_protocol(_Connections()),
                lifespan="off",
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._again: Callable[[], None] | None = None
        self._live = Live(())

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(2 * _STOP)
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._socket.close()

    def show(
        self,
        runs: Sequence[StoredRun],
        *,
        selection: Selection | None = None,
        progress: Progress | None = None,
        labellings: Sequence[Labelling] = (),
    ) -> None:
        """Read the runs, and show them from then on; with `labellings`, one for each measure, also
        the page to label on. Until a crawl that is running has its first statements, say so."""
        desk = Desk(labellings) if labellings else None
        label = labelling.PATH if desk else ""
        self._live = Live(runs)
        self._live.look()

        def read(progress: Progress | None = None) -> None:
            if all(run.has_statements() or run.record.kind != "crawl" for run in runs):
                view = render_served(runs, selection=selection, progress=progress, label=label)
                self._app.show(view, desk)
                few = view.placed.rows <= AT_ONCE
                self._again = read if few else None

        self._again = read
        read(progress)
        self._app.tell(self._live.lines)

    def stop(self) -> None:
        """Stop listening; `work` then ends."""
        self._server.should_exit = True

    def work(self) -> None:
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
                self._follow()

    def _follow(self) -> None:
        """Read the runs again if they have changed; those of a large page only at the start."""
        if self._live.look() and self._again is not None:
            began = monotonic()
            self._again()
            self._live.been_read(monotonic() - began)
        self._app.tell(self._live.lines)

    def _read(self, read: Callable[[], Any]) -> Awaitable[Any]:
        answer: Future[Any] = Future()
        self._jobs.put((read, answer))
        return asyncio.wait_for(asyncio.wrap_future(answer), _WAIT)

    def _apart(self, think: Callable[[], Any]) -> Awaitable[Any]:
        # The first to ask waits for the encoder, on a busy machine for longer than `_WAIT`.
        return asyncio.wrap_future(self._reader.submit(think))


class _Connections:
    """The open connections. Anybody can hold one open that waits for a request, so waiting
    connections must keep nobody out: each has a limited time for the head of its request, and once
    the limit of connections is reached, the client with the most waiting ones loses its oldest to
    make room for the next."""

    def __init__(self) -> None:
        self._open: dict[Any, Any] = {}  # in order, with the request last seen on each

    def opened(self, connection: Any) -> None:
        waiting = [c for c in self._open if _waits(c)]
        if len(self._open) >= _OPEN:
            if not waiting:
                connection.transport.abort()
                return
            most = Counter(map(_peer, waiting)).most_common(1)[0][0]
            oldest = next(c for c in waiting if _peer(c) == most)
            self.closed(oldest)
            oldest.transport.abort()
        self._open[connection] = None
        self._look_later(connection)

    def closed(self, connection: Any) -> None:
        self._open.pop(connection, None)

    def _look_later(self, connection: Any) -> None:
        asyncio.get_running_loop().call_later(_HEADERS, self._look, connection)

    def _look(self, connection: Any) -> None:
        """Close a connection on which no request has begun since the last look."""
        if connection not in self._open:
            return
        if _waits(connection) and connection.cycle is self._open[connection]:
            connection.transport.close()
            return
        self._open[connection] = connection.cycle
        self._look_later(connection)


def _waits(connection: Any) -> bool:
    """Whether no request on it is being answered: none has arrived with its whole head, or the last
    has been answered."""
    return connection.cycle is None or connection.cycle.response_complete


def _peer(connection: Any) -> str:
    return str((connection.client or ("",))[0])


def _protocol(connections: _Connections) -> type[asyncio.Protocol]:
    """uvicorn's protocol, reporting its connections. A small answer is sent at once; otherwise it
    would wait 40 ms for the last one to be acknowledged."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Told(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if (own := transport.get_extra_info("socket")) is not None:
                own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.opened(self)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.closed(self)
            super().connection_lost(exc)

    return Told


def checked_token(host: str, token: str | None) -> str | None:
    """The token that requests must show: the given one, or that of KGBIAS_SERVE_TOKEN. Raises
    UsageError without one if `host` is more than this machine, and for one too short to be safe."""
    token = token if token is not None else os.environ.get(TOKEN) or None
    if token is None:
        if not _loopback(host):
            raise UsageError(
                f"to listen on {host}, where others can connect, set a token: "
                f"export {TOKEN}=$(openssl rand -hex 16)"
            )
    elif len(token) < _SHORTEST:
        raise UsageError(f"a token needs at least {_SHORTEST} characters ({TOKEN})")
    return token


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {host}, port {port}: {why}; choose another `port`"
        ) from error
