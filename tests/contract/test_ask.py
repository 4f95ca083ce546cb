"""The same answer from either store: compared in memory, and on the server."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import kgbias
from tests.conftest import require_modules

CSV = """\
group,predicate,object,count
Women,love,hard work,3
Women,are,kind to dogs,2
Men,love,puppies,1
Men,are,fond of cats,1
Men,are fond of,cats,2
Men,hate,hard work,1
"""


class Axes:
    """An embedder of two axes: how much a text is about animals, and about work."""

    name = "axes"

    def __init__(self, *_: object, **__: object) -> None: ...

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.array(
            [[any(w in t for w in ("dog", "pupp", "animal")), "work" in t, 0.1] for t in texts],
            dtype=np.float64,
        )
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.integration
def test_both_stores_answer_alike(
    tmp_path: Path, empty_neo4j: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_modules("neo4j")
    if not find_spec("kglite"):  # imported in a process of its own, never beside PyTorch
        pytest.skip("kglite is not installed")
    monkeypatch.setattr("kgbias.models.embed.SentenceVectors", Axes)
    (tmp_path / "s.csv").write_text(CSV)
    # Another run has more statements about animals than a question to a server once looked at.
    many = "".join(f"Elves,are,animal {n},1\n" for n in range(1_050))
    (tmp_path / "large.csv").write_text(f"group,predicate,object,count\n{many}")
    answers = []
    for url in (str(tmp_path / "k.db"), empty_neo4j):
        with kgbias.open(url) as study:
            run = study.import_file(tmp_path / "s.csv", name="small")
            large = study.import_file(tmp_path / "large.csv", name="large")
            assert large.ask("animals").statements  # from now on, the server has their vectors
            for question in (
                "animals",
                "women and animals",
                "Who likes work?",
                "Martians",
                "males and cats",
                "Jews",
            ):
                answers.append(run.ask(question).as_dict())
            assert ("on the server" in run.ask("animals").retrieval.method) == (url == empty_neo4j)
    half = len(answers) // 2
    for here, there in zip(answers[:half], answers[half:], strict=True):
        for record in (here, there):
            record["retrieval"].pop("method")
            for statement in (*record["statements"], *record["nearest"]):
                statement["similarity"] = round(statement["similarity"], 4)
        assert here == there
    assert [s["object"] for s in answers[0]["statements"]] == ["kind to dogs", "puppies"]
    assert [(s["object"], s["count"]) for s in answers[4]["statements"]] == [("cats", 3)]
    assert answers[5]["statements"] == []
    assert answers[5]["answer"].startswith("Run 'small' has no group Jews. Its groups are")
