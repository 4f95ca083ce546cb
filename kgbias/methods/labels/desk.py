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
from kgbias.explore.writing_pages import WritingPageKind
from kgbias.graph.store import StoredRun
from kgbias.io import pages
from kgbias.io.reading import parse_json
from kgbias.io.text import CONTENT_WARNING, json_in_html
from kgbias.methods.labels.labelling import SKIP_WORD, Labelling

LABEL_PATH = "/label"
PAGE_HEADER = "x-kgbias"
"""A header that only the page's own script can send: another site's form cannot."""
_MAX_REQUEST_BYTES = 16_384  # bytes of a request
_MAX_BODY_SECONDS = 10.0  # seconds for it
_HOLD_SECONDS = 600.0  # seconds for which a statement stays with the rater who has it open


class LabelDesk:
    """What raters do, in the thread of the store.

    Args:
        labellings: one for each measure.
    """

    path = LABEL_PATH

    def __init__(self, labellings: Sequence[Labelling]) -> None:
        self._labellings = {x.measure: x for x in labellings}
        for labelling in labellings:
            labelling.sample  # noqa: B018 - read now, not at the first request
        self._by_rater: dict[tuple[str, str], Labelling] = {}
        self._open_statements: dict[
            tuple[str, str], tuple[str, float]
        ] = {}  # (measure, rater): statement

    def build_page(self) -> tuple[str, str]:
        """The page, and its Content-Security-Policy."""
        measures = [
            {"name": x.measure, "masked": x.is_masked, **asdict(x.guide)}
            for x in self._labellings.values()
        ]
        script = pages.bundle_scripts(pages.read_asset("kgbias.methods.labels", "page", "label.js"))
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            f"connect-src 'self'; script-src {pages.script_policy(script)}"
        )
        return pages.fill_template(
            pages.read_asset("kgbias.methods.labels", "page", "label.html"),
            style=pages.page_style(pages.read_asset("kgbias.methods.labels", "page", "label.css")),
            about=Markup(json_in_html({"measures": measures})),
            warning=CONTENT_WARNING,
            script=script,
            policy=Markup(policy),
        ), policy

    def build_routes(self, read: Callable[[Callable[[], Any]], Any]) -> tuple[list[Route], str]:
        """The routes of labelling, and the policy of its page."""
        page, policy = self.build_page()

        async def whole(request: Request) -> Response:
            return Response(page, media_type="text/html; charset=utf-8")

        async def act(request: Request) -> Response:
            if (reason := refusal_reason(request)) is not None:
                return JSONResponse({"error": reason}, 403)
            try:
                fields = parse_json((await _read_body(request)).decode("utf-8"), "the request")
                if not isinstance(fields, dict):
                    raise UsageError("not a request of the page: open it again")
                return JSONResponse(await read(lambda: self.handle_request(fields)))
            except (UsageError, DataError, UnicodeDecodeError) as error:
                return JSONResponse({"error": str(error)}, 400)
            except (KgbiasError, TimeoutError) as error:
                raise HTTPException(503, "the store cannot be written now") from error

        return [
            Route(LABEL_PATH, whole, methods=["GET"]),
            Route(LABEL_PATH, act, methods=["POST"]),
        ], policy

    def handle_request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a request asks, then give the rater's next statement and progress. Raises
        UsageError for a request that makes no sense."""
        fields = {k: v for k, v in request.items() if isinstance(v, str)}
        if fields.keys() != {"measure", "rater", "do", "statement", "label", "note"}:
            raise UsageError("not a request of the page: open it again")
        labelling = self._find_labelling(fields["measure"], fields["rater"])
        undone = None
        if fields["do"] == "label":
            labelling.label_statement(fields["statement"], fields["label"], fields["note"])
        elif fields["do"] == SKIP_WORD:
            labelling.skip_statement(fields["statement"], fields["note"])
        elif fields["do"] == "undo":
            undone = labelling.undo_label(fields["statement"] or None)
        elif fields["do"] != "next":
            raise UsageError("not a request of the page: open it again")
        next_statement = undone or next(
            iter(labelling.next_tasks(held_statements=self._held_by_others(labelling))), None
        )
        key = (labelling.measure, labelling.rater)
        if next_statement is None:
            self._open_statements.pop(key, None)
        else:
            self._open_statements[key] = (next_statement.id, time.monotonic())
        return {
            "rater": labelling.rater,
            "statement": None
            if next_statement is None
            else {"id": next_statement.id, "text": next_statement.text},
            "latest": labelling.latest_statement() or "",
            "progress": asdict(labelling.read_progress()),
        }

    def _find_labelling(self, measure: str, rater: str) -> Labelling:
        if measure not in self._labellings:
            raise UsageError("this server does not ask for labels of that measure")
        if (measure, rater) not in self._by_rater:
            self._by_rater[measure, rater] = self._labellings[measure].for_rater(rater)
        return self._by_rater[measure, rater]

    def _held_by_others(self, labelling: Labelling) -> dict[str, set[str]]:
        """Who has which statement open, other than this rater."""
        raters_by_statement: dict[str, set[str]] = {}
        for (measure, rater), (id, since) in self._open_statements.items():
            is_recent = time.monotonic() - since < _HOLD_SECONDS
            if measure == labelling.measure and rater != labelling.rater and is_recent:
                raters_by_statement.setdefault(id, set()).add(rater)
        return raters_by_statement


def refusal_reason(request: Request) -> str | None:
    """Why a request that would write is refused: it must come from a page of this server, or from a
    program that shows the token itself."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return "a label is sent as JSON"
    if not request.headers.get(PAGE_HEADER):
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


async def _read_body(request: Request) -> bytes:
    """The body of a request, if it is small and comes in time."""
    body = b""

    async def read() -> None:
        nonlocal body
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_REQUEST_BYTES:
                raise HTTPException(413, "too long for a label")

    try:
        await asyncio.wait_for(read(), _MAX_BODY_SECONDS)
    except TimeoutError as error:
        raise HTTPException(408, "the request did not come in time") from error
    return body


def open_desk(run: StoredRun, measures: Sequence[str], *, masked: bool) -> LabelDesk:
    """The page on which the run's statements are labelled by these measures."""
    return LabelDesk([Labelling(run, measure, "server", masked=masked) for measure in measures])


DESK = WritingPageKind("kgbias.methods.labels.desk:open_desk")
