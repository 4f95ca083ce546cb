"""The page to label statements on, and what it asks of the server: one statement at a time, without
scores. It is the only part of the server that writes (docs/security.md).

Each label is durable before its answer leaves. To send one again changes nothing, so the page sends
what was not acknowledged until it is. A statement that one rater has open is not given to another
for a while, so several can label at once.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.io import pages
from kgbias.io.reading import parse_json
from kgbias.io.text import CONTENT_WARNING, json_in_html
from kgbias.measure.labelling import SKIP_WORD, Labelling

PATH = "/label"
SENT_BY = "x-kgbias"
"""A header that only the page's own script can send: another site's form cannot."""
_LARGEST = 16_384  # bytes of a request
_BODY = 10.0  # seconds for it
_HELD = 600.0  # seconds for which a statement stays with the rater who has it open


class Desk:
    """What raters do, in the thread of the store.

    Args:
        labellings: one for each measure.
    """

    def __init__(self, labellings: Sequence[Labelling]) -> None:
        self._own = {x.measure: x for x in labellings}
        for labelling in labellings:
            labelling.sample  # noqa: B018 - read now, not at the first request
        self._by: dict[tuple[str, str], Labelling] = {}
        self._held: dict[tuple[str, str], tuple[str, float]] = {}  # (measure, rater): statement

    def page(self) -> tuple[str, str]:
        """The page, and its Content-Security-Policy."""
        measures = [
            {"name": x.measure, "masked": x.is_masked, **asdict(x.guide)} for x in self._own.values()
        ]
        script = pages.join_scripts(pages.read_asset("kgbias.explore", "page", "label.js"))
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            f"connect-src 'self'; script-src {pages.script_policy(script)}"
        )
        return pages.fill_template(
            pages.read_asset("kgbias.explore", "page", "label.html"),
            style=pages.page_style(pages.read_asset("kgbias.explore", "page", "label.css")),
            about=Markup(json_in_html({"measures": measures})),
            warning=CONTENT_WARNING,
            script=script,
            policy=Markup(policy),
        ), policy

    def done(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a request asks, then give the rater's next statement and progress. Raises
        UsageError for a request that makes no sense."""
        given = {k: v for k, v in asked.items() if isinstance(v, str)}
        if given.keys() != {"measure", "rater", "do", "statement", "label", "note"}:
            raise UsageError("not a request of the page: open it again")
        labelling = self._labelling(given["measure"], given["rater"])
        again = None
        if given["do"] == "label":
            labelling.label_statement(given["statement"], given["label"], given["note"])
        elif given["do"] == SKIP_WORD:
            labelling.skip_statement(given["statement"], given["note"])
        elif given["do"] == "undo":
            again = labelling.undo_label(given["statement"] or None)
        elif given["do"] != "next":
            raise UsageError("not a request of the page: open it again")
        shown = again or next(iter(labelling.next_tasks(held_statements=self._others(labelling))), None)
        key = (labelling.measure, labelling.rater)
        if shown is None:
            self._held.pop(key, None)
        else:
            self._held[key] = (shown.id, time.monotonic())
        return {
            "rater": labelling.rater,
            "statement": None if shown is None else {"id": shown.id, "text": shown.text},
            "latest": labelling.latest_statement() or "",
            "progress": asdict(labelling.read_progress()),
        }

    def _labelling(self, measure: str, rater: str) -> Labelling:
        if measure not in self._own:
            raise UsageError("this server does not ask for labels of that measure")
        if (measure, rater) not in self._by:
            self._by[measure, rater] = self._own[measure].for_rater(rater)
        return self._by[measure, rater]

    def _others(self, labelling: Labelling) -> dict[str, set[str]]:
        """Who has which statement open, other than this rater."""
        held: dict[str, set[str]] = {}
        for (measure, rater), (id, since) in self._held.items():
            fresh = time.monotonic() - since < _HELD
            if measure == labelling.measure and rater != labelling.rater and fresh:
                held.setdefault(id, set()).add(rater)
        return held


def routes(desk: Desk, read: Callable[[Callable[[], Any]], Any]) -> tuple[list[Route], str]:
    """The routes of labelling, and the policy of its page."""
    page, policy = desk.page()

    async def whole(request: Request) -> Response:
        return Response(page, media_type="text/html; charset=utf-8")

    async def act(request: Request) -> Response:
        if (refused := refusal(request)) is not None:
            return JSONResponse({"error": refused}, 403)
        try:
            asked = parse_json((await _body(request)).decode("utf-8"), "the request")
            if not isinstance(asked, dict):
                raise UsageError("not a request of the page: open it again")
            return JSONResponse(await read(lambda: desk.done(asked)))
        except (UsageError, DataError, UnicodeDecodeError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except (KgbiasError, TimeoutError) as error:
            raise HTTPException(503, "the store cannot be written now") from error

    return [Route(PATH, whole, methods=["GET"]), Route(PATH, act, methods=["POST"])], policy


def refusal(request: Request) -> str | None:
    """Why a request that would write is refused: it must come from a page of this server, or from a
    program that shows the token itself."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return "a label is sent as JSON"
    if not request.headers.get(SENT_BY):
        return "a label is sent by the page itself"
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return "a label is sent from this server's own page"
    if origin is None:
        by_token = request.headers.get("authorization", "").lower().startswith("bearer ")
        return None if by_token else "a label is sent from this server's own page"
    if urlsplit(origin).netloc.lower() != host.lower():
        return "a label is sent from this server's own page"
    return None


async def _body(request: Request) -> bytes:
    """The body of a request, if it is small and comes in time."""
    body = b""

    async def read() -> None:
        nonlocal body
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST:
                raise HTTPException(413, "too long for a label")

    try:
        await asyncio.wait_for(read(), _BODY)
    except TimeoutError as error:
        raise HTTPException(408, "the request did not come in time") from error
    return body
