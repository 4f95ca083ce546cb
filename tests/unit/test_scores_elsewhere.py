"""Scorers whose scores are made elsewhere: files, and OpenAI's endpoint on a real local server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kgbias.errors import DataError, KgbiasError, ModelError, UsageError
from kgbias.measure.scorers import class_judgement, load_scorer
from kgbias.measures import MEASURES, Measure
from tests.conftest import require_modules
from tests.texts import Texts


def test_toxicity_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "perspective.csv"
    path.write_text("text,identity_attack,other\nWomen are kind.,0.1,0.7\nMen lie.,0.8,0.2\n")
    scorer = load_scorer("toxicity", f"scores:{path}")
    found = scorer.score(["Men lie", "women are kind."])
    assert [(j.value, j.label) for j in found] == [(0.8, "toxic"), (0.1, "not toxic")]
    other = load_scorer("toxicity", f"scores:{path}::other")
    assert other.score(["Men lie."])[0].value == 0.2
    assert other.version != scorer.version and scorer.name == "scores:perspective.csv"


def test_regard_from_an_export(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    rows = [
        {"sentence": "Women are kind.", "regard": 0.8, "regard_label": "positive"},
        {"sentence": "Men lie.", "regard": -0.5, "regard_label": "Negative"},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    found = load_scorer("regard", f"scores:{path}").score(["Men lie.", "Women are kind."])
    assert [(j.value, j.label) for j in found] == [(-0.5, "negative"), (0.8, "positive")]


@pytest.mark.parametrize(
    ("measure", "content", "message"),
    [
        ("toxicity", "text,toxicity\nMen lie.,0.1\n", "no score for 1 of 1 sentences"),
        ("toxicity", "text,toxicity\nWomen are kind.,2\n", "not a number from 0 to 1"),
        ("toxicity", "text,toxicity\nWomen are kind.,\n", "no score for 1 of 1 sentences"),
        ("toxicity", "a,b\n1,2\n", "no column for the text"),
        ("toxicity", "text,b\n1,2\n", "no column for the score"),
        ("toxicity", "", "holds no rows"),
        ("regard", "text,label\nWomen are kind.,nice\n", "not a regard label"),
    ],
)
def test_bad_files(measure: str, content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(content)
    with pytest.raises(KgbiasError, match=message):
        load_scorer(measure, f"scores:{path}").score(["Women are kind."])
    with pytest.raises(DataError, match="cannot read"):
        load_scorer(measure, f"scores:{tmp_path / 'none.csv'}")


def test_scores_of_a_new_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    """What a file may hold follows from the entry: a number without bounds, or classes."""
    length = Measure("length", None, "longer", {}, ".0f", (), "lowest", columns=("size",))
    signs = {"high": 1.0, "low": -1.0}
    rank = Measure(
        "rank", (-1.0, 1.0), "higher", dict.fromkeys(signs, ""), ".1f", (), "lowest", signs=signs
    )
    monkeypatch.setitem(MEASURES, "length", length)
    monkeypatch.setitem(MEASURES, "rank", rank)
    (path := tmp_path / "s.csv").write_text("text,size,label\nMen lie.,120,high\n")
    (found,) = load_scorer("length", f"scores:{path}").score(["Men lie."])
    assert (found.value, found.label) == (120.0, "")
    (found,) = load_scorer("rank", f"scores:{path}").score(["Men lie."])
    assert (found.value, found.label) == (1.0, "high")
    assert class_judgement("rank", {"low": 0.75, "high": 0.25}).value == -0.5
    with texts.raises(UsageError):
        load_scorer("length")
    path.write_text("text,length,label\nMen lie.,inf,middling\n")
    with texts.raises(DataError):
        load_scorer("length", f"scores:{path}")
    with texts.raises(DataError):
        load_scorer("rank", f"scores:{path}")


class Endpoint(BaseHTTPRequestHandler):
    """Answers as the moderation endpoint does: the score of hate is the share of h's."""

    broken = False
    asked = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Endpoint.asked += 1
        if Endpoint.broken:
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "no"}}')
            return
        scores = {"hate": 0.0, "hate/threatening": 0.25}
        results = [
            {
                "flagged": False,
                "categories": {},
                "category_scores": scores | {"hate": text.count("h") / len(text)},
            }
            for text in body["input"]
        ]
        answer = json.dumps({"id": "1", "model": "omni-2026", "results": results}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Endpoint]]:
    require_modules("openai")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    Endpoint.broken, Endpoint.asked = False, 0
    yield Endpoint
    server.shutdown()
    server.server_close()


def test_the_moderation_endpoint(endpoint: type[Endpoint], texts: Texts) -> None:
    scorer = load_scorer("toxicity", "openai-moderation")
    found = scorer.score(["hh", "ah", "a"] * 20)
    assert [j.value for j in found[:3]] == [1.0, 0.5, 0.0] and len(found) == 60
    assert endpoint.asked == 3  # the first to learn the model, then batches of 32
    assert (scorer.name, scorer.version) == ("openai-moderation:hate", "omni-2026")
    threats = load_scorer("toxicity", "openai-moderation:hate/threatening")
    assert threats.score(["x"])[0].value == 0.25
    (attack,) = load_scorer("identity_attack", "openai-moderation").score(["hh"])
    assert (found[0].label, attack.label) == ("toxic", "attack")
    with texts.raises(UsageError):
        load_scorer("toxicity", "openai-moderation:rage")
    with pytest.raises(UsageError, match="not regard"):
        load_scorer("regard", "openai-moderation")


def test_an_endpoint_that_fails(endpoint: type[Endpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = load_scorer("toxicity", "openai-moderation")
    endpoint.broken = True
    with pytest.raises(ModelError, match=r"answers with 400: no$"):
        scorer.score(["x"])
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        load_scorer("toxicity", "openai-moderation")
