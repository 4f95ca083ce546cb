"""`kgbias probe`: its parts, the forms of when it was one command, and options that do nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import kgbias
from kgbias.cli import cli
from kgbias.errors import KgbiasError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Scores
from kgbias.probe import gather_sets, probe_run
from tests.conftest import require_modules
from tests.texts import Texts
from tests.unit.test_probe import BELIEVED, RUN, Beliefs, probed_store  # noqa: F401


class Tokens(Beliefs):
    def surprisals(self, text: str) -> list[tuple[str, float]]:
        return [(word, 1.0) for word in text.split()]

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(map(len, text.split()))

    def token_scores(self, texts: Any, places: Any, progress: Any = None) -> list[Any]:
        return [
            -np.array([ids[place] for place in own]) for ids, own in zip(texts, places, strict=True)
        ]

    def score(self, texts: Any, progress: Any = None) -> Scores:
        lengths = np.array([len(text.split()) for text in texts])
        return Scores(-lengths * np.array([len(text) for text in texts]) / 9, lengths)


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: Tokens(BELIEVED))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["probe", *map(str, arguments)], standalone_mode=False)


def answer(*arguments: object) -> Any:
    result = run(*arguments, "--json")
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def refusal(*arguments: object) -> str:
    error = run(*arguments).exception
    assert isinstance(error, KgbiasError) and "\n" not in str(error)
    return str(error)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    names = {"groups": "g.json", "statements": "s.txt"}
    paths = {name: tmp_path / file for name, file in names.items()}
    paths["groups"].write_text('{"gender": ["Women", "Men"], "age": ["Old", "Young"]}')
    paths["statements"].write_text("love food\nhate rain\n")
    return paths


# options that did nothing


@pytest.mark.parametrize("name", ["probes.jsonl", "probes.parquet"])
def test_the_probes_of_a_run_are_written(
    probed_store: SQLiteStore,  # noqa: F811
    tmp_path: Path,
    name: str,
    texts: Texts,
) -> None:
    if name.endswith("parquet"):
        require_modules("pyarrow")
    output = tmp_path / name
    where = ("r", "--model", "any", "--store", probed_store.url, "-o", output)
    for _ in range(2):  # the same command again finds its own output
        assert run(*where).exception is None
        if name.endswith("jsonl"):
            rows = [json.loads(line) for line in output.read_text().splitlines()]
        else:
            import pyarrow.parquet

            rows = pyarrow.parquet.read_table(output, partitioning=None).to_pylist()
        assert len(rows) == 6
        said = {(r["group"], r["statement"]): (r["rank"], r["count"]) for r in rows}
        assert said["Women", "love food"] == (1, 1) and said["Women", "hate rain"] == (2, 0)
        assert rows[0]["perplexity"] > 0 and rows[0]["category"] == "gender"
    assert "other settings" in refusal(*where, "--set", "ending=.")
    texts.check_lines(refusal(*where[:-1], tmp_path / "x.csv"), "must end")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "--ending", "."), "ending is a setting: kgbias --set ending=VALUE probe run"),
        (("surprisal", "x", "--store", "x.db"), "probe surprisal does not take --store"),
        (("surprisal", "x", "-o", "f.jsonl"), "probe surprisal does not take -o"),
        (("surprisal", "x", "--seed", "1"), "probe surprisal does not take --seed"),
        (("surprisal", "x", "--as-published"), "probe surprisal does not take --as-published"),
        (("pairs", "--stereoset", "f", "--set", "ending=."), "probe pairs has no setting 'ending'"),
        (("pairs", "--stereoset", "f", "-o", "f.jsonl"), "probe pairs does not take -o"),
        (
            ("pairs", "--bbq", "f", "--set", "convention=original"),
            "convention has no effect here, only with --stereoset",
        ),
        (
            ("--set", "convention=original"),
            "probe run has no setting 'convention'; probe pairs does",
        ),
        (("pairs", "--stereoset", "f", "--crows-pairs", "f"), "give one file"),
    ],
)
def test_an_option_that_does_not_apply_is_one_line(arguments: tuple[str, ...], why: str) -> None:
    assert why in refusal(*arguments, "--model", "any")


def test_an_option_that_nobody_has_is_clicks_own_error() -> None:
    assert "No such option" in str(run("--nonsense").exception)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--model", "openai:m", "--set", "bos=eos"), "bos does not apply to openai:m"),
        (("--model", "reference", "--base-url", "x"), "--base-url does not apply to reference"),
    ],
)
def test_what_a_model_does_not_take(
    arguments: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    require_modules("transformers")
    assert why in refusal("surprisal", "x", *arguments)


# the parts


def test_the_run_is_the_default(probed_store: SQLiteStore) -> None:  # noqa: F811
    where = ("--model", "any", "--store", probed_store.url)
    found = answer("run", "r", *where)
    assert found["run"] == "r" and found["model"] == {
        "name": "beliefs",
        "revision": "1",
        "kind": "causal",
        "tier": "",
    }
    assert answer("r", *where) == answer(*where) == found
    assert "has no setting 'concurrency'" in refusal("r", *where, "--set", "concurrency=2")


def test_a_run_named_as_a_part_is_reached(probed_store: SQLiteStore) -> None:  # noqa: F811
    from dataclasses import replace

    from kgbias.graph.types import Generation, Triple

    named = replace(RUN, name="sets", config={"seed": 1})
    probed_store.begin_run(named)
    triple = Triple("women", "love", "food")
    generation = Generation(
        named.id, "0", triple.group_id, "none", "object", 0, 0, "ok", triple=triple
    )
    probed_store.record_round(named.id, "none", 0, [generation])
    where = ("--model", "any", "--store", probed_store.url)
    assert answer("run", "sets", *where)["run"] == "sets"
    assert "probe run sets" in refusal("sets", *where)


def test_sets_of_files(files: dict[str, Path], probed_store: SQLiteStore) -> None:  # noqa: F811
    asked = ("--identities", files["groups"], "--statements", files["statements"], "--model", "any")
    found = answer("sets", *asked)
    assert list(found["categories"]) == ["gender", "age"]
    assert list(answer("sets", *asked, "--category", "age")["categories"]) == ["age"]
    # the run's statements before other groups
    of_run = answer("sets", "r", *asked[:2], "--model", "any", "--store", probed_store.url)
    assert of_run["categories"]["gender"]["statements"] == 4


def test_surprisals() -> None:
    found = answer("surprisal", "Men love food", "rain", "--model", "any")
    assert found["surprisals"][0] == {
        "text": "Men love food",
        "tokens": [["Men", 1.0], ["love", 1.0], ["food", 1.0]],
    }


def test_pairs_of_either_benchmark(tmp_path: Path) -> None:
    crows, stereo = tmp_path / "crows.csv", tmp_path / "stereo.json"
    crows.write_text("sent_more,sent_less,bias_type\nMen are tall,Women are tall,gender\n")
    found = answer("pairs", "--crows-pairs", crows, "--model", "any")
    assert found["convention"] == "original"
    assert found["figures"]["gender metric score"]["n"] == 1
    words = {"stereotype": "kind", "anti-stereotype": "unkind", "unrelated": "fish"}
    entry = {
        "target": "men",
        "bias_type": "gender",
        "context": "men are BLANK.",
        "sentences": [{"gold_label": g, "sentence": f"men are {w}."} for g, w in words.items()],
    }
    stereo.write_text(json.dumps({"data": {"intrasentence": [entry]}}))
    asked = ("--stereoset", stereo, "--set", "convention=bias-bench", "--model", "any")
    found = answer("pairs", *asked, "--set", "seed=1")
    assert found["convention"] == "bias-bench"
    assert {"overall LMS", "overall SS", "overall ICAT"} <= set(found["figures"])
    assert "ICAT" in run("pairs", *asked).stdout


def test_help_names_the_parts() -> None:
    shown = run("--help").output
    for part in ("run", "sets", "pairs", "surprisal"):
        assert f"\n  {part} " in shown
        assert "Usage:" in run(part, "--help").output


# the library


def test_sets_from_lists(texts: Texts) -> None:
    sets = gather_sets(identities={"c": ["a", "b", "a"]}, statements=["s", "s", "t"], ending=".")
    assert sets == {"c": (("a", "b"), ("s.", "t."))}
    for asked in ({}, {"identities": "sofa"}, {"statements": ["s"]}):
        with pytest.raises(UsageError, match="sets need groups"):
            gather_sets(**asked)  # type: ignore[arg-type]
    with texts.raises(UsageError):
        gather_sets(identities={"c": ["a", "b"]}, statements=["s"], categories=["d"])


def test_an_output_that_cannot_be_is_refused_before_any_work(
    probed_store: SQLiteStore,  # noqa: F811
    tmp_path: Path,
) -> None:
    from kgbias.graph.store import StoredRun

    scorer: Any = Beliefs(BELIEVED)
    with pytest.raises(UsageError, match="must end in"):
        probe_run(StoredRun(probed_store, RUN), scorer, output=tmp_path / "x.txt")
    assert scorer.asked == 0 and scorer.info == ModelInfo("beliefs", "1")


# several models


class Others(Tokens):
    """A model for each spec: the more letters its name has, the less it minds the group."""

    def __init__(self, spec: str) -> None:
        super().__init__(BELIEVED if len(spec) < 4 else set())
        self.info = ModelInfo(spec, "1")


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The specs that were opened, and in which order."""
    opened: list[str] = []

    def open_scorer(spec: str, **_: Any) -> Others:
        opened.append(spec)
        return Others(spec)

    monkeypatch.setattr("kgbias.models.score.load.open_scorer", open_scorer)
    monkeypatch.setattr("kgbias.models.load.unload", lambda: opened.append("unload"))
    monkeypatch.setattr("kgbias.models.spec.parse_spec", lambda spec: spec)
    return opened


def test_several_models_probe_a_run(
    probed_store: SQLiteStore,  # noqa: F811
    several: list[str],
    tmp_path: Path,
    texts: Texts,
) -> None:
    """One after another, each forgotten before the next, and the JSON of one is as ever."""
    where = ("r", "--store", probed_store.url)
    both = ("--model", "one", "--model", "three", "--model", "one")
    found = answer(*where, *both, "-o", tmp_path / "p.jsonl")
    assert several == ["one", "unload", "three"]
    assert [m["model"]["name"] for m in found["models"]] == ["one", "three"]
    assert found["models"][0] == answer(*where, "--model", "one")
    assert {p.name for p in tmp_path.glob("*.jsonl")} == {"p-one.jsonl", "p-three.jsonl"}
    ranked = found["comparison"]["models"]
    assert [(m["model"], m["rank"]) for m in ranked] == [("one", 1), ("three", 2)]
    assert ranked[0]["sofa"] == found["models"][0]["sofa"]
    shown = run(*where, *both).stdout
    texts.check_lines(shown, "3 statements,")


def test_several_models_probe_sets(
    files: dict[str, Path], tmp_path: Path, several: list[str], texts: Texts
) -> None:
    """Kept where a store is named, with what each chunk cost: the same command asks nothing."""
    asked = ("sets", "--identities", files["groups"], "--statements", files["statements"])
    both = (*asked, "--model", "one", "--model", "three")
    found = answer(*both)
    assert len(found["models"]) == 2 and found["comparison"]["probe_set"]["name"] == "s"
    store = tmp_path / "kept.db"
    assert answer(*both, "--store", store) == found
    with kgbias.open(store) as study:
        sets = gather_sets(identities=str(files["groups"]), statements=files["statements"])
        asked_before = Others("one")
        rows = study.probe_sets(asked_before, sets, name="s")
        (again,), (row,) = rows, rows.records()
        assert row["model"] == again.model.info.title and row["sofa"] == again.bias.score.value
        assert row["sofa_low"] == again.bias.score.low
        assert not asked_before.asked and again.as_dict() == found["models"][0]
        assert study.sofa("s").as_dict() == found["comparison"]
        with texts.raises(UsageError):
            study.sofa("x")
    listed = CliRunner().invoke(cli, ["sofa", "results", "--store", str(store), "--json"])
    assert json.loads(listed.stdout) == found["comparison"]
