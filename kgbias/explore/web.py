"""The served explorer as a web application: what it answers, and whom.

It answers GET alone, from memory and from the store by the number of a statement; no part of an
address becomes a path or a query. Without a token it answers only requests that were addressed to
this machine by a name that means this machine, so that no page of somebody else's can have its own
name point here (DNS rebinding). With one, every request must show it: as a bearer, or in the
address, once; a browser then keeps a cookie that is worth nothing after the server has stopped.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kgbias.errors import KgbiasError
from kgbias.explore.origins import origin_of
from kgbias.explore.served import ServedPage

T = TypeVar("T")
Read = Callable[[Callable[[], T]], Awaitable[T]]

COOKIE = "kgbias"
_HERE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_HEADERS = {
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
    headers = {**_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
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
