"""What is measured by default, by a preset, and by what is given beside it."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import ModelError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Group, GroupScore, Topic, TopicAssignment, TopicModel
from kgbias.measure.configure import MeasureConfig, configure_measurement
from tests.report_data import measured_run
from tests.texts import Texts

PAPER = "salinas-2023"


def test_nothing_given_is_the_default() -> None:
    config, selection, said = configure_measurement()
    assert (config, selection, said) == (MeasureConfig(), {}, "")
    assert configure_measurement(scorers={"regard": None})[0].scorer_specs["regard"] is None
    assert configure_measurement()[0].scorer_specs == {
        **dict.fromkeys(("regard", "toxicity", "identity_attack", "acceptability"), "offline"),
        **dict.fromkeys(("warmth", "competence"), "minilm"),
    }


def test_the_preset_sets_everything_to_the_paper(texts: Texts) -> None:
    config, selection, said = configure_measurement(PAPER)
    assert config.scorer_specs["regard"] == "hf:sasha/regardv3"
    assert config.scorer_specs["toxicity"] == "hf:unitary/unbiased-toxic-roberta:identity_attack"
    assert (
        config.scorer_specs["identity_attack"] is None
        and config.scorer_specs["acceptability"] is None
    )
    assert not config.axes and config.scorer_specs["warmth"] is None
    assert config.topics and config.entropy == "as_published" and config.outliers == "keep"
    assert config.topic_settings.min_topic_statements(4000) == 100  # all triples / 40
    assert selection == {"min_acceptability": 0}
    texts.check_lines(said, "give embedding")


def test_what_is_given_beside_the_preset_wins_and_is_said(texts: Texts) -> None:
    scorers = {"regard": "offline", "toxicity": None}
    given = {"scorers": scorers, "embedding": "vectors:g.txt", "topics": False}
    config, selection, said = configure_measurement(PAPER, min_acceptability=0.5, **given)  # type: ignore[arg-type]
    assert (config.scorer_specs["regard"], config.scorer_specs["toxicity"]) == ("offline", None)
    assert config.scorer_specs["identity_attack"] is None and not config.topics  # the preset's
    assert config.embedding == "vectors:g.txt" and selection == {"min_acceptability": 0.5}
    mine = said.partition("given instead: ")[2]
    texts.check(mine)
    assert "GloVe" not in said


def test_a_preset_or_a_parameter_that_is_not_there_is_refused(texts: Texts) -> None:
    with texts.raises(UsageError):
        configure_measurement("paper")
    with pytest.raises(UsageError, match="no option 'toxic'"):
        configure_measurement(toxic="offline")  # type: ignore[call-arg]
    with texts.raises(UsageError):
        configure_measurement(scorers={"toxic": "offline"})


def test_a_scorer_of_the_preset_that_cannot_be_had_is_one_line(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_run(store, (Group("Women", "gender"), Group("Men", "gender")), ["food"])

    def missing(*_: object, **__: object) -> object:
        raise ModelError("no model 'sasha/regardv3'")

    monkeypatch.setattr("kgbias.study.measuring.load_scorers", missing)
    with kgbias.open(store.url) as study:
        with pytest.raises(ModelError, match=r"sasha/regardv3.*with the preset \(`scorers`"):
            study.run().measure(preset=PAPER)
        with pytest.raises(ModelError, match=r"^no model 'sasha/regardv3'$"):
            study.run().measure()
    done = CliRunner().invoke(cli, ["measure", "--store", store.url, "--preset", PAPER])
    assert isinstance(done.exception, ModelError)
    assert "(--scorer)" in str(done.exception) and "\n" not in str(done.exception)


@pytest.fixture
def named(store: SQLiteStore) -> SQLiteStore:
    run = measured_run(store, (Group("Women", "gender"), Group("Men", "gender")), ["food", "rain"])
    topics = (
        Topic("gender", 0, ("eat", "food", "pie", "meal", "cook"), 2, -0.25, 0.875),
        Topic("gender", 1, ("rain", "wet"), 2),
    )
    about = tuple(
        TopicAssignment(t.id, topics[t.object == "rain"].id, 0.5)
        for t in sorted(store.triples(run.id), key=lambda t: t.id)
    )
    settings = {
        "documents": 4,
        "statements": 4,
        "min_cluster_size": 5,
        "outliers": 0,
        "seeds": 5,
        "outliers_before": 0,
        "adjusted_rand": 0.4,
        "largest_share": 0.5,
    }
    store.save_topics(run.id, [TopicModel("gender", topics, about, settings)])
    return store


def test_topics_are_shown_with_what_to_try_and_named_by_hand(
    named: SQLiteStore, texts: Texts
) -> None:
    def run(*options: str) -> str:
        done = CliRunner().invoke(cli, ["topics", "--store", named.url, *options])
        assert done.exit_code == 0, done.exception
        return done.output

    shown = run()
    texts.check_lines(shown, "eat, food,")
    texts.check_lines(shown, "rain, wet")
    texts.check_lines(shown, "relative entropy")
    texts.check_lines(shown, "min-topic-size above")
    assert "  Meals: eat, food" in run("--rename", "gender:0", "Meals")
    found = json.loads(run("--json"))["categories"][0]
    assert [t["name"] for t in found["topics"]] == ["Meals", "rain wet"]
    assert "below 0.5" in found["unfit"]
    assert "Meals" not in run("--rename", "Meals", "")


def test_names_that_are_none_are_refused(named: SQLiteStore, texts: Texts) -> None:
    with kgbias.open(named.url) as study:
        run = study.run()
        assert run.rename_topic("wet", " Weather ").given == "Weather"
        assert [t.name for t in run.topics()] == ["eat food pie meal", "Weather"]
        for name in ("two\nlines", "x" * 81):
            with texts.raises(UsageError):
                run.rename_topic("0", name)
        with texts.raises(UsageError):
            run.rename_topic("7", "Seven")


def test_frames_json_and_tables_say_why_a_figure_is_withheld(
    named: SQLiteStore, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    from kgbias.graph.selection import select_statements
    from kgbias.graph.store import StoredRun
    from kgbias.measure.topics.run import ENTROPY_MEASURES, run_entropies

    stored = StoredRun(named, named.find_run(None))
    stored.put(
        GroupScore,
        run_entropies(stored, select_statements(stored)),
        replacing={"measure": ENTROPY_MEASURES},
    )
    with kgbias.open(named.url) as study:
        row = study.run().groups()[0]
        figure = row.figures["relative_entropy"]
        assert "adjusted Rand index 0.40" in figure.withheld
        assert figure.as_dict()["value"] is None and figure.as_dict()["withheld"] == figure.withheld
        texts.check(str(figure))
        record = study.run().groups().records()[0]
        assert record["relative_entropy_withheld"] == figure.withheld
        assert "overall_regard_withheld" not in record
    every = ("regard", "toxicity", "identity_attack", "acceptability")
    plain = [word for name in every for word in ("--scorer", f"{name}=none")]
    call = ["measure", "--store", named.url, *plain, "--no-axes"]
    assert "withheld" in CliRunner().invoke(cli, call).output
    data = json.loads(CliRunner().invoke(cli, [*call, "--json"]).stdout)
    assert data["groups"][0]["relative_entropy"]["value"] is None
    assert "below 0.5" in data["groups"][0]["relative_entropy"]["withheld"]


@pytest.mark.parametrize("scorers", ["regard", ["regard"]])
def test_scorers_that_name_no_measure_are_refused(scorers: Any, texts: Texts) -> None:
    with texts.raises(UsageError):
        configure_measurement(scorers=scorers)
