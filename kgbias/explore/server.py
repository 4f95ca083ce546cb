"""The server of the explorer: runs too large for a file, or for a team, in a browser.

The columns of the statements are in its memory, compressed; prompts, answers and probes stay in the
store and are read statement by statement.

It answers GET alone, from memory and from the store by the number of a statement; no part of an
address becomes a path or a query. Without a token it answers only requests that were addressed to
this machine by a name that means this machine, so that no page of somebody else's can have its own
name point here (DNS rebinding). With one, every request must show it: as a bearer, or in the
address, once; a browser then keeps a cookie that is worth nothing after the server has stopped.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kgbias.errors import KgbiasError, MissingExtra, UsageError
from kgbias.explore.origins import origin_of
from kgbias.explore.served import ServedPage, render_served
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress

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
    "Cache-Control": "private, no-cache",  # kept, and asked about each time
}


class Application:
    """The application: until it is given something to show it says that this is being read."""

    def __init__(self, read: Read[object], *, token: str | None = None) -> None:
        """
        Args:
            read: calls a function that reads the store, where that may be done.
            token: what a request must show; None: requests addressed to this machine are answered.
        """
        self._read = read
        self._token = token
        self._session = secrets.token_urlsafe(32)
        self._app: ASGIApp = PlainTextResponse(
            "The statements are being read: this page opens by itself.", 503,
            {"Retry-After": "2", "Refresh": "2"},
        )  # fmt: skip
        self._headers = _fenced("default-src 'none'")

    def show(self, view: ServedPage) -> None:
        """Answer with this page, its columns and its statements from now on."""
        self._headers = _fenced(view.policy)
        self._app = _pages(view, self._read)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = self._headers

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        answer = self._first(Request(scope)) or self._app
        await answer(scope, receive, guarded)

    def _first(self, request: Request) -> Response | None:
        """The answer to a request that the application must not see."""
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("only GET", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            if _HERE.fullmatch(request.headers.get("host", "")):
                return None
            return PlainTextResponse("this view is for its own machine alone", 403)
        shown = request.query_params.get("token")
        if request.url.path == "/" and shown is not None and _same(shown, self._token):
            inside = RedirectResponse("/", 303)  # so that no address holds the token
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


def _pages(view: ServedPage, read: Read[object]) -> ASGIApp:
    """The page, a block of columns by its name, a statement by its number."""
    tags = {name: _tag(block) for name, block in view.blocks.items()}
    page = view.page.encode("utf-8")
    page_tag = _tag(page)

    def answered(request: Request, body: bytes, tag: str, kind: str) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, media_type=kind, headers={"ETag": tag})

    async def whole(request: Request) -> Response:
        return answered(request, page, page_tag, "text/html; charset=utf-8")

    async def data(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in view.blocks:
            raise HTTPException(404)
        return answered(request, view.blocks[name], tags[name], "application/octet-stream")

    async def statement(request: Request) -> Response:
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
        Route("/data/{name}", data),
        Route("/statement/{row}", statement),
    ]
    return Starlette(routes=routes)


def _fenced(policy: str) -> list[tuple[bytes, bytes]]:
    """The headers of every answer."""
    headers = {**_SENT, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _same(given: str, wanted: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell how much of them is."""
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
_STOP = 5  # seconds that answers may take to end


class Server:
    """A server of some runs, as they stand when they are read. It listens inside a `with`
    statement; `show` reads what it shows, `work` answers what needs the store. Both must be called
    in the thread in which the store was opened.

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
        self._app = Application(self._read, token=checked_token(host, token))
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

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(2 * _STOP)
        self._socket.close()

    def show(
        self,
        runs: Sequence[StoredRun],
        *,
        selection: Selection | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Read the runs, and show them from then on."""
        self._app.show(render_served(runs, selection=selection, progress=progress))

    def stop(self) -> None:
        """Stop listening; `work` then ends."""
        self._server.should_exit = True

    def work(self) -> None:
        """Answer what needs the store, until the server is stopped."""
        while self._thread.is_alive():
            with suppress(Empty):
                read, answer = self._jobs.get(timeout=0.2)
                if not answer.set_running_or_notify_cancel():
                    continue  # whoever asked has gone
                try:
                    answer.set_result(read())
                except Exception as error:
                    answer.set_exception(error)

    def _read(self, read: Callable[[], Any]) -> Awaitable[Any]:
        answer: Future[Any] = Future()
        self._jobs.put((read, answer))
        return asyncio.wait_for(asyncio.wrap_future(answer), _WAIT)


class _Connections:
    """The open connections. One that waits for a request, which anybody can hold open, keeps nobody
    out: it has a time for the head of its request, and where there are as many connections as may
    be, the oldest that waits of whoever has most of these makes room for the next."""

    def __init__(self) -> None:
        self._open: dict[Any, Any] = {}  # in their order, with the request last seen on each

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
    """Whether no request on it is being answered: none has come with its whole head, or the last is
    answered."""
    return connection.cycle is None or connection.cycle.response_complete


def _peer(connection: Any) -> str:
    return str((connection.client or ("",))[0])


def _protocol(connections: _Connections) -> type[asyncio.Protocol]:
    """uvicorn's protocol, which tells of its connections. A small answer leaves at once: it would
    wait for the last one to be acknowledged, 40 ms."""
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
    UsageError where there is none and `host` is more than this machine, and for one that is too
    short to be safe."""
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
