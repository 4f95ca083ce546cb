"""A run as a data set for others, and the run made again from it."""

import builtins
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kgbias
from kgbias.crawl.config import CrawlConfig, read_crawl_config
from kgbias.crawl.configure import configure
from kgbias.errors import DataError, ModelError, UsageError
from kgbias.export import tables
from kgbias.graph.sqlite import SQLiteStore
from kgbias.io.text import CONTENT_WARNING, markdown
from kgbias.models.base import Request
from tests.export_data import hostile_run
from tests.report_data import measured_run
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

WORDS = ["tea.", "music", "rain.", "long walks", "old songs.", "noise", "bread.", "cold mornings"]


def reply(request: Request) -> str:
    return f" {WORDS[request.seed % len(WORDS)]}"


def crawled(store: Path, **options: Any) -> kgbias.Run:
    study = kgbias.open(store, progress=False)
    given = {
        "prompts": "salinas-2023",
        "group": ["Brewers", "Bakers | Baker folk"],
        "samples": 2,
        "iterations": 1,
        "predicate_prompts": 0,
        "object_prompts": 2,
        "name": "small",
    }
    return study.crawl(ScriptedModel(reply), **(given | options))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("publish")
    run = crawled(folder / "a.db")
    run.publish(folder / "out", license="CC-BY-4.0", author=["Ada", 'B: "C"'])
    return folder / "out"


@pytest.fixture
def copy(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "out"))


def again(folder: Path, model: Callable[[Request], str] = reply, **options: Any) -> Any:
    return kgbias.reproduce(folder, model=ScriptedModel(model), progress=False, **options)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = read(folder / "run.json")
    change(record)
    (folder / "run.json").write_text(json.dumps(record), "utf-8")


def test_the_files_of_a_published_run(published: Path) -> None:
    files = {p.relative_to(published).as_posix() for p in published.rglob("*") if p.is_file()}
    assert files == {
        "CITATION.cff",
        "README.md",
        "SHA256SUMS",
        "croissant.json",
        "data/statements.jsonl",
        "data/statements.parquet",
        "results.json",
        "run.json",
    }
    lines = (published / "data/statements.jsonl").read_text("utf-8").splitlines()
    row = json.loads(lines[0])
    assert {
        "id",
        "group",
        "category",
        "predicate",
        "object",
        "sentence",
        "count",
        "arm",
        "language",
        "regard",
        "regard_label",
        "toxicity",
        "toxicity_label",
        "strategy",
        "iteration",
    } == set(row)
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(published / "data/statements.parquet").to_pylist() == [
        json.loads(line) for line in lines
    ]


def test_others_check_the_sums(published: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("there is no sha256sum here")
    done = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=published)
    assert done.returncode == 0


def test_the_card_and_the_citation_are_yaml(published: Path) -> None:
    yaml = pytest.importorskip("yaml")
    _, head, text = (published / "README.md").read_text("utf-8").split("---\n", 2)
    metadata = yaml.safe_load(head)
    assert metadata["license"] == "cc-by-4.0"
    assert metadata["language"] == ["en"]
    (config,) = metadata["configs"]
    assert (published / config["data_files"][0]["path"]).is_file()
    assert text.index(CONTENT_WARNING) < text.index("Brewers")
    assert "CC-BY-4.0" in text and "$ kgbias reproduce ." in text
    cited = yaml.safe_load((published / "CITATION.cff").read_text("utf-8"))
    assert [a["name"] for a in cited["authors"]] == ["Ada", 'B: "C"']
    assert (cited["type"], cited["license"]) == ("dataset", "CC-BY-4.0")


@pytest.mark.parametrize(
    ("license", "metadata"),
    [
        ("", {"license": "unknown"}),
        ("The model's own terms", {"license": "other", "license_name": "The model's own terms"}),
    ],
)
def test_a_licence_is_what_the_user_states(
    tmp_path: Path, license: str, metadata: dict[str, str]
) -> None:
    yaml = pytest.importorskip("yaml")
    run = crawled(tmp_path / "a.db")
    run.publish(tmp_path / "out", license=license)
    head = yaml.safe_load((tmp_path / "out/README.md").read_text("utf-8").split("---\n")[1])
    assert {name: value for name, value in head.items() if "license" in name} == metadata
    assert read(tmp_path / "out/croissant.json").get("license", "") == license


def test_croissant_describes_the_files(published: Path) -> None:
    from kgbias.io.files import sha256_of

    metadata = read(published / "croissant.json")
    assert "http://mlcommons.org/croissant/1.1" in metadata["conformsTo"]
    for file in metadata["distribution"]:
        assert file["sha256"] == sha256_of(published / file["contentUrl"])
    columns = [f["source"]["extract"]["column"] for f in metadata["recordSet"][0]["field"]]
    line = (published / "data/statements.jsonl").read_text("utf-8").splitlines()[0]
    assert columns == list(json.loads(line))
    for name in (
        "dataCollection",
        "dataBiases",
        "dataLimitations",
        "personalSensitiveInformation",
        "dataUseCases",
        "dataSocialImpact",
    ):
        assert metadata[f"rai:{name}"]


# What eval.schema.json 0.2.1 of Every Eval Ever asks of the parts that are written.
EVALUATIONS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "schema_version",
        "evaluation_id",
        "retrieved_timestamp",
        "source_metadata",
        "model_info",
        "eval_library",
        "evaluation_results",
    ],
    "properties": {
        "schema_version": {"type": "string"},
        "evaluation_id": {"type": "string"},
        "evaluation_timestamp": {"type": "string"},
        "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "source_metadata": {
            "required": ["source_type", "source_organization_name", "evaluator_relationship"],
            "properties": {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "source_organization_name": {"type": "string"},
                "evaluator_relationship": {
                    "enum": ["first_party", "third_party", "collaborative", "other"]
                },
            },
        },
        "eval_library": {"required": ["name", "version"]},
        "model_info": {
            "required": ["name", "id"],
            "properties": {"additional_details": {"additionalProperties": {"type": "string"}}},
        },
        "evaluation_results": {
            "type": "array",
            "minItems": 1,
            "items": {
                "required": ["evaluation_name", "source_data", "metric_config", "score_details"],
                "properties": {
                    "source_data": {
                        "required": ["dataset_name", "source_type"],
                        "properties": {
                            "source_type": {"const": "other"},
                            "additional_details": {"additionalProperties": {"type": "string"}},
                        },
                    },
                    "metric_config": {
                        "required": ["lower_is_better", "min_score", "max_score"],
                        "properties": {
                            "lower_is_better": {"type": "boolean"},
                            "score_type": {"const": "continuous"},
                            "min_score": {"type": "number"},
                            "max_score": {"type": "number"},
                            "additional_details": {"additionalProperties": {"type": "string"}},
                        },
                    },
                    "score_details": {
                        "required": ["score"],
                        "properties": {
                            "score": {"type": "number"},
                            "uncertainty": {
                                "properties": {
                                    "confidence_interval": {
                                        "required": ["lower", "upper"],
                                        "properties": {
                                            "lower": {"type": "number"},
                                            "upper": {"type": "number"},
                                        },
                                    },
                                    "num_samples": {"type": "integer"},
                                }
                            },
                        },
                    },
                    "generation_config": {
                        "properties": {
                            "generation_args": {
                                "additionalProperties": False,
                                "properties": {
                                    "temperature": {"type": ["null", "number"]},
                                    "top_p": {"type": ["null", "number"]},
                                    "top_k": {"type": ["null", "number"]},
                                    "max_attempts": {"type": "integer"},
                                },
                            },
                            "additional_details": {"additionalProperties": {"type": "string"}},
                        }
                    },
                },
            },
        },
    },
}


def test_results_are_in_the_schema_of_every_eval_ever(store: SQLiteStore, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    groups = crawled(tmp_path / "a.db").stored.groups
    measured_run(store, groups, ["tea", "rain", "noise"])
    with kgbias.open(tmp_path / "kgbias.db", progress=False) as study:
        run = study.run("by hand")
        run.publish(tmp_path / "out")
        found = read(tmp_path / "out/results.json")
        jsonschema.validate(found, EVALUATIONS)
        results = {r["evaluation_name"]: r for r in found["evaluation_results"]}
        for row in run.groups():
            for name in ("overall_regard", "toxicity_mean"):
                figure = row.figures[name]
                own = next(
                    r
                    for r in results.values()
                    if r["source_data"]["additional_details"]["group"] == row.group
                    and r["metric_config"]["additional_details"]["figure"] == name
                )
                assert own["score_details"]["score"] == figure.value
                bounds = own["metric_config"]
                assert bounds["min_score"] <= figure.value <= bounds["max_score"]
                assert bounds["lower_is_better"] is (name == "toxicity_mean")


def test_hostile_text_stays_text(store: SQLiteStore, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    hostile_run(store)
    with kgbias.open(tmp_path / "kgbias.db", progress=False) as study:
        run = study.run()
        run.publish(tmp_path / "out", license="a: b\n---", author="<script>\x07 |")
        _, head, text = (tmp_path / "out/README.md").read_text("utf-8").split("---\n", 2)
        assert yaml.safe_load(head)["license_name"] == "a: b ---"
        assert yaml.safe_load((tmp_path / "out/CITATION.cff").read_text("utf-8"))["title"]
        assert "<script" not in text
        table = text.partition("## Groups\n\n")[2].partition("\n\n")[0].splitlines()
        bars = {line.replace("\\\\", "").replace("\\|", "").count("|") for line in table}
        assert len(table) == 2 + 4 and len(bars) == 1
        assert len(kgbias.reproduce(tmp_path / "out", check=True).differences) == 0
    assert markdown("a|b\n<i>*") == "a\\|b &lt;i&gt;\\*"


def test_a_folder_is_published_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = crawled(tmp_path / "a.db")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    with pytest.raises(UsageError, match="not empty"):
        run.publish(tmp_path / "full")

    def stop(*_: object) -> None:
        raise DataError("no")

    monkeypatch.setattr("kgbias.publish.folder.write_checksums", stop)
    with pytest.raises(DataError):
        run.publish(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unfinished_run_is_not_published(tmp_path: Path) -> None:
    run = crawled(tmp_path / "a.db")
    run.stored.store.set_status(run.id, "stopped")
    with kgbias.open(tmp_path / "a.db") as study, pytest.raises(UsageError, match="not finished"):
        study.run().publish(tmp_path / "out")


def test_a_run_is_made_again(published: Path, tmp_path: Path) -> None:
    found = again(published)
    assert found.same and found.made == found.statements > 0
    assert found.asked > 0 and found.cached == 0
    kept = tmp_path / "kept.db"
    assert again(published, store=kept).asked == found.asked
    assert again(published, store=kept).asked == 0


def test_what_differs_is_said(published: Path) -> None:
    def other(request: Request) -> str:
        return reply(request).replace("tea", "coffee")

    found = again(published, other)
    assert not found.same
    statements = [d for d in found.differences if d.what == "statement"]
    assert {d.object for d in statements if d.here} == {"coffee"}
    assert {d.object for d in statements if d.published} == {"tea"}
    model = ScriptedModel(reply, name="another")
    (first, *_) = kgbias.reproduce(published, model=model, progress=False).differences
    assert (first.what, first.published, first.here) == ("model", "scripted 1", "another 1")


def test_counts_and_scores_are_held_against_each_other(copy: Path) -> None:
    path = copy / "data/statements.jsonl"
    first, *rest = path.read_text("utf-8").splitlines()
    row = json.loads(first)
    changed = json.dumps(row | {"count": row["count"] + 1})
    path.write_text("\n".join([changed, *rest]), "utf-8")
    found = again(copy).differences
    assert [(d.what, d.published) for d in found] == [
        ("file", "data/statements.jsonl"),
        ("count", str(row["count"] + 1)),
    ]


def test_scores_differ_beyond_rounding() -> None:
    from kgbias.study.reproduction import _statement_differences

    def rows(value: float | None) -> list[dict[str, Any]]:
        return [{"arm": "none", "id": "a", "count": 1, "regard": value}]

    def differ(a: float | None, b: float | None) -> list[str]:
        return [
            d.what
            for d in _statement_differences(rows(a), rows(b), {"regard"}, 1e-3, ignore_extra=False)
        ]

    assert differ(0.5, 0.5009) == differ(None, None) == []
    assert differ(0.5, 0.502) == differ(0.5, None) == differ(None, 0.5) == ["regard"]


def test_only_checksums(copy: Path) -> None:
    assert kgbias.reproduce(copy, check=True).same
    with (copy / "README.md").open("a") as file:
        file.write("!")
    (copy / "CITATION.cff").unlink()
    found = kgbias.reproduce(copy, check=True)
    assert {(d.published, d.here) for d in found.differences} == {
        ("README.md", "changed"),
        ("CITATION.cff", "missing"),
    }
    (copy / "SHA256SUMS").write_text(f"{'0' * 64}  ../secret\n")
    with pytest.raises(DataError, match="line 1"):
        kgbias.reproduce(copy, check=True)


def test_decisions_and_the_selection_are_made_again(tmp_path: Path) -> None:
    run = crawled(tmp_path / "a.db", arms=["none", "prefix"])
    whole = len(run.triples(arm="none"))
    with run.review(by="A Reviewer") as review:
        answer = next(a for a in review.answers(accepted=True))
        same = [
            a
            for a in review.answers(accepted=True)
            if (a.group, a.predicate, a.object) == (answer.group, answer.predicate, answer.object)
        ]
        review.decide(same, "reject")
    run.publish(tmp_path / "out", arm="none")
    assert "A Reviewer" not in (tmp_path / "out/run.json").read_text("utf-8")
    found = again(tmp_path / "out")
    assert found.same and found.made == whole - 1 and not found.notes


def test_an_import_cannot_be_made_again(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("group,predicate,object\nBrewers,love,tea\n")
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        study.import_file(tmp_path / "a.csv").publish(tmp_path / "out")
    assert "cannot be made again" in (tmp_path / "out/README.md").read_text("utf-8")
    assert kgbias.reproduce(tmp_path / "out", check=True).same
    with pytest.raises(UsageError, match="not a crawl"):
        kgbias.reproduce(tmp_path / "out")


def test_a_folder_of_a_stranger_is_read_with_care(copy: Path, tmp_path: Path, texts: Texts) -> None:
    edit(copy, lambda r: r["config"].update(samples=3, extra=1))
    with pytest.raises(DataError, match="would ask differently: extra"):
        again(copy)
    edit(copy, lambda r: r["config"].update(pack={"name": str(tmp_path)}))
    with texts.raises(UsageError):
        again(copy)
    edit(copy, lambda r: r["config"].pop("seeds"))
    with pytest.raises((DataError, UsageError)):
        again(copy)
    edit(copy, lambda r: r.update(config=[1], categories=3))
    with pytest.raises(DataError, match="not what kgbias publishes"):
        again(copy)
    with pytest.raises(UsageError, match="there is no folder"):
        kgbias.reproduce(tmp_path / "nothing")


def test_the_published_revision_is_asked_for(copy: Path) -> None:
    edit(copy, lambda r: r.update(model={"name": "reference", "revision": "sha256:old"}))
    with pytest.raises(ModelError, match="no longer sha256:old"):
        kgbias.reproduce(copy, progress=False)


def test_the_address_of_a_server_is_not_taken_from_a_folder(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: dict[str, Any] = {}

    def open_model(spec: str, **options: Any) -> ScriptedModel:
        opened.update(options, spec=spec)
        return ScriptedModel(reply)

    monkeypatch.setattr("kgbias.models.open_model", open_model)
    edit(
        copy,
        lambda r: r.update(
            model={"name": "openai:m", "revision": ""},
            settings=[["base_url", "http://evil.example"]],
        ),
    )
    kgbias.reproduce(copy, progress=False)
    assert opened["spec"] == "openai:m" and "base_url" not in opened and "revision" not in opened


CONFIGS = (
    configure("m", category="gender"),
    configure("m", prompts="german", group="Bauern | Landwirte"),
    configure("m", preset="salinas-2023", category="religion", target_coverage=0.8),
    configure("m", intersect="gender,religion", top_k=5, temperature=0.5, shots=2),
    configure("m", group="Brewers", min_acceptability=0.3, structured=False),
)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_configuration_is_read_back_from_its_record(config: CrawlConfig) -> None:
    record = json.loads(json.dumps(config.as_dict()))
    categories = [seed.category for seed in config.seeds]
    assert read_crawl_config(record, categories).as_dict() == config.as_dict()


def test_groups_that_the_model_named_are_asked_for_again() -> None:
    config = configure("m", dynamic="gender", category="religion", group="women | females")
    assert config.dynamic
    own = config.dynamic.category
    from dataclasses import replace

    from kgbias.crawl.seeds import name_seed_groups
    from kgbias.graph.types import Answer
    from kgbias.io.progress import SilentProgress

    lists = [Answer(f"k{n}", "m", " Females\n2. Sailors\n3. Men", "stop") for n in range(5)]
    named = name_seed_groups(config.dynamic, lists, "completion", SilentProgress())
    whole = config.with_groups_of(named)
    record = json.loads(json.dumps(whole.as_dict()))
    before = read_crawl_config(record, [seed.category for seed in whole.seeds])
    assert before.place_count < before.count_places(len(whole.groups)) == whole.place_count
    assert before.dynamic and [s.category.name for s in before.seeds] == ["religion"]
    assert own.category == before.dynamic.category.category
    again = before.with_groups_of(
        name_seed_groups(before.dynamic, lists, "completion", SilentProgress())
    )
    assert again.as_dict() == whole.as_dict()
    assert replace(whole, dynamic=None).as_dict() != whole.as_dict()


def test_other_tools_load_the_folder(published: Path) -> None:
    datasets = pytest.importorskip("datasets")
    found = datasets.load_dataset(str(published), split="train")
    lines = (published / "data/statements.jsonl").read_text("utf-8").splitlines()
    assert found.to_list() == [json.loads(line) for line in lines]


def test_mlcroissant_reads_the_metadata(published: Path) -> None:
    croissant = pytest.importorskip("mlcroissant")
    dataset = croissant.Dataset(str(published / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    lines = (published / "data/statements.jsonl").read_text("utf-8").splitlines()
    assert len(list(dataset.records("statements"))) == len(lines)


def test_a_pipe_in_a_published_folder_is_not_waited_for(copy: Path, texts: Texts) -> None:
    for name in ("SHA256SUMS", "run.json", "data/more"):
        (copy / name).unlink(missing_ok=True)
        os.mkfifo(copy / name)
        with texts.raises(DataError):
            kgbias.reproduce(copy, check=True)
        (copy / name).unlink()
        (copy / name).symlink_to("/dev/zero")
        with texts.raises(DataError):
            kgbias.reproduce(copy, check=True)
        (copy / name).unlink()


def test_what_pyarrow_cannot_do_is_told(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    content: Any = SimpleNamespace(measures=(), statements=SimpleNamespace(as_dict=dict))
    monkeypatch.setattr(tables, "iter_rows", lambda _: [])
    monkeypatch.setattr(tables, "column_names", lambda _: ["id"])
    for error in (arrow.ArrowMemoryError("malloc"), RuntimeError("can't start new thread")):
        monkeypatch.setattr(parquet, "write_table", lambda *_, e=error: _raise(e))
        with pytest.raises(DataError, match=r"pyarrow cannot write x\.parquet: "):
            tables.write_parquet(content, tmp_path / "x.parquet")
    real = builtins.__import__

    def lacking(name: str, *more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError("libarrow.so: failed to map segment")
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with texts.raises(DataError):
        tables.write_parquet(content, tmp_path / "x.parquet")


def _raise(error: Exception) -> None:
    raise error
