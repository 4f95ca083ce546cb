"""What measuring will take, before anything is opened."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.graph.types import node_id
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.precision import SAMPLE_SIZE
from kgbias.measure.price import ScoringPrice
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.measures import MEASURES
from tests.texts import Texts

NOTHING: dict[str, Any] = dict.fromkeys(MEASURES)
NAMES = [f"thing {n}" for n in range(40)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("price")
    rows = "".join(f"Women,love,{name}\n" for name in NAMES)
    (folder / "said.csv").write_text(f"group,predicate,object\n{rows}")
    scores = "".join(f"Women love {name}.,0.5\n" for name in NAMES)
    (folder / "scores.csv").write_text(f"text,toxicity\n{scores}")
    with kgbias.open(folder / "kgbias.db") as study:
        run = study.import_file(folder / "said.csv", name="said")
        run.measure(scorers=NOTHING | {"toxicity": f"scores:{folder / 'scores.csv'}"}, axes=False)
    return folder / "kgbias.db"


@pytest.fixture
def run(store: Path) -> Iterator[kgbias.Run]:
    with kgbias.open(store) as study:
        yield study.run("said")


def test_every_scorer_reads_what_has_no_score(run: kgbias.Run, store: Path) -> None:
    specs = [f"scores:{store.parent / 'scores.csv'}", "offline"]
    rows = run.measure(scorers={"toxicity": specs}, dry_run=True)
    assert [(r.measure, r.statements, r.scored) for r in rows] == [
        ("regard", 40, 0),
        ("toxicity", 0, 40),
        ("toxicity", 40, 0),
        ("identity_attack", 40, 0),
        ("acceptability", 40, 0),
        ("warmth", 40, 0),
        ("competence", 40, 0),
        ("vectors", 40, 0),
    ]
    assert not any(row.requests for row in rows)


def test_judges_and_endpoints_are_asked(run: kgbias.Run) -> None:
    judge, endpoint = run.measure(
        dry_run=True,
        scorers=NOTHING | {"regard": "llm:openai:nothing", "toxicity": "openai-moderation"},
        axes=False,
    )
    first = 40 + SAMPLE_SIZE
    assert judge == ScoringPrice(
        "regard", "llm:openai:nothing", 40, 0, first, 3 * first, 72 * first
    )
    assert endpoint == ScoringPrice(
        "toxicity", "openai-moderation", 40, 0, 3, 3
    )  # 32, 8, and the first


def test_vectors_that_the_store_keeps_are_not_read_again(store: Path) -> None:
    """Each statement has one, whichever groups it is about."""
    rows = store.parent / "again.csv"
    rows.write_text("group,predicate,object\nMen,love,thing 1\nWomen,love,thing 1\nMen,are,x\n")
    with kgbias.open(store) as study:
        run = study.import_file(rows, name="again")
        axis, vectors = run.measure(
            scorers=NOTHING | {"warmth": "minilm"}, axes=False, dry_run=True
        )
        assert (axis.measure, axis.statements) == ("warmth", 3)
        assert vectors == ScoringPrice("vectors", "minilm", 2)
        said = node_id("predicate", "love"), node_id("object", "thing 1")
        rows_of = np.full((1, 384), 384**-0.5, dtype=np.float32)
        study.graph.save_vectors(SHIPPED_ENCODER, StatementVectors([said], rows_of))
        assert run.measure(dry_run=True)[-1] == ScoringPrice("vectors", "minilm", 1, 1)


def test_topics_are_of_what_counts(run: kgbias.Run) -> None:
    (row,) = run.measure(scorers=NOTHING, axes=False, topics=True, dry_run=True)
    assert row == ScoringPrice("topics", "minilm", 40)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"regard": "vader"}, "no regard scorer 'vader'"),
        ({"regard": "hf:"}, "no regard scorer 'hf:'"),
        ({"regard": ["offline", "offline"]}, "names one of regard twice"),
        ({"emotion": "offline"}, "no measure 'emotion'"),
        ({"warmth": ["minilm", "minilm"]}, "names one of warmth twice"),
    ],
)
def test_what_is_not_there_has_no_price(
    run: kgbias.Run, given: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run.measure(scorers=given, dry_run=True)


def test_the_command_shows_it_and_stops(store: Path, texts: Texts) -> None:
    asked = [
        "measure",
        "said",
        "--store",
        str(store),
        "--dry-run",
        "--scorer",
        "regard=llm:openai:nothing",
    ]
    shown = CliRunner().invoke(cli, asked)
    texts.check_lines(shown.stdout, "llm:openai:nothing")
    texts.check_lines(shown.stdout, "nothing was")
    data = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)
    assert data["run"] == "said" and data["scorers"][0]["answer_tokens_at_most"] == 7200
