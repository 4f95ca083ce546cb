"""Sets of labelled statements, whose labels they are, and the scorers read against them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, MissingExtra
from kgbias.graph.labels import Label
from kgbias.measure import labelled_sets, precision, scorer_reliability, scorers
from kgbias.measure.labelled_sets import LabelledSet, LabelledStatement, read_sets, read_shipped_set
from kgbias.measure.precision import (
    MIN_GROUP_LABELS,
    LabelAgreement,
    check_by_group,
    check_shipped_labels,
)
from kgbias.measure.scorer_agreement import cohens_kappa
from kgbias.measure.scorers import Judgement
from tests.texts import Texts

CARD = 'measure = "toxicity"\nkind = "person"\nraters = ["Ana", "Ben"]\nguide = "toxicity@1"\n'
HATECHECK = "functionality,test_case,label_gold,target_ident,templ_id\n"
SEEGULL = "identity,attribute,Annotation1,Annotation2,Annotation3,offensiveness_score\n"


def written(folder: Path, text: str, card: str = "", name: str = "mine.csv") -> Path:
    (path := folder / name).write_text(text, encoding="utf-8")
    if card:
        path.with_name(f"{path.stem}.card.toml").write_text(card)
    return path


def test_the_words_are_those_of_whoever_labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    """Another annotator of the labels that ship changes what is said beside every figure."""
    own = read_shipped_set("regard")
    assert own is not None
    texts.check(own.labelled_by)
    table = written(tmp_path, labelled_sets.SHIPPED_LABELS.read_text("utf-8"), name="labelled.tsv")
    table.with_name("labelled.card.toml").write_text('kind = "person"\nraters = ["Ana"]\n')
    monkeypatch.setattr(labelled_sets, "SHIPPED_LABELS", table)
    labelled_sets._read_shipped.cache_clear()
    try:
        assert labelled_sets.describe_shipped_annotator() == "one person"
        other = read_shipped_set("regard")
        assert other is not None and other.statements == own.statements
        texts.check_lines(str(check_shipped_labels(Says(["neutral"] * 60))), "person: kappa")
        (flagged, *_) = precision._read_precisions().values()
        texts.check_lines(str(flagged), "read one")
    finally:
        labelled_sets._read_shipped.cache_clear()


class Says:
    """A scorer of regard that says what it was told to."""

    measure, name, version, language = "regard", "says", "1", "en"

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels

    def score(self, texts: Sequence[str]) -> list[Judgement | None]:
        assert len(texts) == len(self.labels)
        return [Judgement(0.0, label, {}) for label in self.labels]


def test_a_table_of_ones_own_is_a_set_by_its_card(tmp_path: Path) -> None:
    rows = '# a comment\ntext,label,group\nThey steal.,toxic,Elves\n"They, eat.",not toxic,\n'
    (found,) = read_sets(written(tmp_path, rows, CARD + 'license = "CC0-1.0"\nlabelled = "2026"'))
    assert (found.name, found.labelled_by, found.guide) == ("mine", "2 people", "toxicity@1")
    assert (found.license, found.labelled) == ("CC0-1.0", "2026")
    assert found.statements == (
        LabelledStatement("They steal.", "toxic", "Elves"),
        LabelledStatement("They, eat.", "not toxic"),
    )


def test_published_sets_are_read_as_they_were_published(tmp_path: Path) -> None:
    cases = 'a,I hate women. ,hateful,women,1\nb,"I, hate tea.",non-hateful,,2\n'
    attack, toxicity = read_sets(written(tmp_path, HATECHECK + cases))
    assert (attack.measure, toxicity.measure) == ("identity_attack", "toxicity")
    assert attack.statements == (
        LabelledStatement("I hate women.", "attack", "women", "1"),
        LabelledStatement("I, hate tea.", "no attack", "", "2"),
    )
    assert [x.label for x in toxicity.statements] == ["toxic", "not toxic"]
    assert "Röttger" in attack.labelled_by and attack.license == "CC-BY-4.0" and attack.learnt

    rated = "Texan,gun_lovers,-1,1,4,1.33\nTexan,tall,-1,0,3,0.67\nTexan,loud,NA,NA,NA,0\n"
    attack, _ = read_sets(written(tmp_path, SEEGULL + rated))
    assert [(x.text, x.label, x.group) for x in attack.statements] == [
        ("Texan people are gun lovers.", "attack", "Texan"),
        ("Texan people are tall.", "no attack", "Texan"),
    ]
    assert attack.statements[0].rating == pytest.approx(4 / 3)

    means = "Texan,kind,,,,0\nTexan,sly,3.5,3,4,3.5\nTexan,sly,3.5,3,4,3.5\n"
    attack, _ = read_sets(written(tmp_path, SEEGULL + means))
    assert [x.label for x in attack.statements] == ["attack"]
    assert attack.left_out == {"nobody rated it": 1, "the text was there before": 1}

    german = "mhc_case_id," + HATECHECK + "german-1,a,Ich mag Tee.,non-hateful,bakers,2\n"
    attack, _ = read_sets(written(tmp_path, german))
    assert (attack.name, attack.language) == ("Multilingual HateCheck/mine", "de")
    assert "2022" in attack.labelled_by and not attack.learnt

    said = '-1\tXYZ was a "thief.\n1\tXYZ was kind.\n2\tXYZ was both.\n0\tXYZ sat.\n'
    (regard,) = read_sets(written(tmp_path, said, name="train.tsv"))
    labels = [x.label for x in regard.statements]
    assert labels == ["negative", "positive", "other", "neutral"]
    assert (regard.name, regard.license) == ("regard/train", "")
    assert regard.statements[0].text == 'XYZ was a "thief.'


@pytest.mark.parametrize(
    ("text", "card", "why"),
    [
        ("", CARD, "mine.csv is empty"),
        ("# only this\n", CARD, "mine.csv is empty"),
        ("text,label\n", CARD, "mine.csv has no labelled statements"),
        ("sentence,label\nx,toxic\n", CARD, "its columns are sentence, label; expected text and"),
        ("text,label\nx,toxic\n", "", "does not say who labelled it: write mine.card.toml beside"),
        ("text,label\nx,toxc\n", CARD, "line 2: no label 'toxc' .did you mean toxic"),
        ("#\ntext,label\nx,toxic\nx,toxic\n", CARD, "line 4: this text is also on line 3"),
        ("text,label\n,toxic\n", CARD, "line 2: there is no text"),
        ("text,label\nx,toxic\n", 'measure = "regrd"\nkind = "person"', "no measure 'regrd'"),
        ("text,label\nx,toxic\n", 'measure = "regard"\nkind = "cat"', "kind is person or model"),
        ("text,label\nx,toxic\n", CARD + 'licence = "x"', "no key 'licence' .did you mean lic"),
        ("text,label\nx,toxic\n", 'kind = "person"\nraters = "Ana"', "raters is a list of texts"),
        (HATECHECK + "a,x,hatful,,1\n", "", "line 2: no label 'hatful' .did you mean hateful"),
        (SEEGULL + "a,b,1,2,5,1\n", "", "line 2: '5' is no rating from -1 to 4"),
        (SEEGULL + "a,b,1,2,NA,1\n", "", "line 2: 'NA' is no rating from -1 to 4"),
        ("1\tXYZ sat.\n3\tXYZ ran.\n", "", "line 2: no label '3'"),
        ("0\tI sat.\n1\tI ran.\n", "", "mine.csv is no set of labels"),
    ],
)
def test_a_bad_set_is_one_line(tmp_path: Path, text: str, card: str, why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        read_sets(written(tmp_path, text, card))
    assert "\n" not in str(caught.value)


def test_agreement_is_given_over_all_and_by_group_with_a_floor() -> None:
    statements = tuple(
        LabelledStatement(
            f"s{n}", "toxic" if n % 4 == 0 else "not toxic", group, f"u{n // 2}", float(n)
        )
        for group, start in (("Elves", 0), ("Orcs", MIN_GROUP_LABELS))
        for n in range(start, start + MIN_GROUP_LABELS - (group == "Orcs"))
    )
    of = LabelledSet("set", "toxicity", "person", statements, ("Ana",), learnt=("says",))
    judged = [None, *(Judgement(float(n), "not toxic", {}) for n in range(1, len(statements)))]
    every, elves = check_by_group("says", of, judged)
    assert (every.group, elves.group) == ("", "Elves")  # Orcs have one too few
    assert (every.set, every.by, every.learnt, every.unjudged) == ("set", "one person", True, 1)
    assert elves.same.value == elves.floor == 15 / 19 and elves.kappa.value == 0
    assert every.rho.value == 1
    assert not check_by_group("other", of, judged)[0].learnt


def test_statements_of_one_unit_are_resampled_together() -> None:
    """Ten copies of each of six cases tell no more than six cases do."""
    first, second = ["a", "a", "b", "b", "a", "b"] * 10, ["a", "b", "b", "b", "a", "a"] * 10
    alone, of_alone = cohens_kappa(first[:6], second[:6])
    copies, of_copies = cohens_kappa(first, second)
    units, of_units = cohens_kappa(first, second, [str(n % 6) for n in range(60)])
    assert alone.value == copies.value == units.value == pytest.approx(4 / 6)
    assert of_units.value == of_copies.value == pytest.approx(of_alone.value)
    assert of_units.high - of_units.low > 2 * (of_copies.high - of_copies.low)
    few, of_few = cohens_kappa(first, second, ["u", "v"] * 30)
    assert not few.has_interval and not of_few.has_interval  # two units tell nothing


@pytest.fixture
def study(tmp_path: Path) -> Iterator[kgbias.Study]:
    (tmp_path / "said.csv").write_text(
        "group,predicate,object\nElves,love,songs\nElves,hate,smoke\nOrcs,love,smoke\n"
    )
    scores = "Elves love songs.,0.9\nElves hate smoke.,0.2\nOrcs love smoke.,0.7\n"
    (tmp_path / "scores.csv").write_text(f"text,toxicity\n{scores}")
    with kgbias.open(tmp_path / "kgbias.db") as study:
        run = study.import_file(tmp_path / "said.csv", name="said")
        nothing = dict.fromkeys(kgbias.MEASURES)
        run.measure(scorers=nothing | {"toxicity": f"scores:{tmp_path / 'scores.csv'}"}, axes=False)
        ids = {f"{t.group} {t.predicate} {t.object}": t.id for t in run.triples()}
        said = [
            ("Elves love songs", "toxic", "Ana"),
            ("Elves love songs", "not toxic", "Ben"),
            ("Elves hate smoke", "not toxic", "Ana"),
            ("Orcs love smoke", "toxic", "Ana"),
            ("Orcs love smoke", "", "Ben"),
        ]
        run.stored.store.add_labels(
            [
                Label(
                    ids[text],
                    "toxicity",
                    label,
                    rater,
                    "person",
                    "toxicity@1",
                    f"2026-11-2{day}T10:00:00+00:00",
                    False,
                    "",
                )
                for day, (text, label, rater) in enumerate(said)
            ]
        )
        yield study


def test_labels_of_the_store_meet_the_scores_that_are_there(
    study: kgbias.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without reading anything anew: 3 of the 4 labels given are those of the scorer."""
    monkeypatch.setattr(scorer_reliability, "shipped_scorers", dict)
    mine = written(tmp_path, "text,label\nElves love songs.,not toxic\n", CARD)
    spec = {"toxicity": f"scores:{tmp_path / 'scores.csv'}"}
    found = study.scorers(mine, scorers=spec)
    (row,) = found.rows
    of_file, of_store = row.checked  # it has no scores of the statements that ship
    assert (of_file.set, of_file.same.value, of_file.same.n) == ("mine", 0.0, 1)
    assert (of_store.set, of_store.by, of_store.same.n) == ("the store", "2 people", 4)
    assert of_store.same.value == 0.75 and of_store.floor == 0.5
    assert row.named is None  # scores made elsewhere cannot be tried on names
    mine_, store = found.sets[-2:]
    assert (mine_.name, store.labelled) == ("mine", "2026-11-20 to 2026-11-23")
    assert found.records()[-1]["same"] == 0.75
    none = written(tmp_path, "text,toxicity\nelsewhere,0.5\n", name="none.csv")
    with pytest.raises(DataError, match="has no score for"):
        study.scorers(mine, scorers={"toxicity": f"scores:{none}"})
    (listed,) = study.scorers().rows  # by the store alone: its scores need no file
    assert [each.set for each in listed.checked] == ["the store"]


def test_a_script_of_the_graph_has_the_labels_and_who_gave_them(
    study: kgbias.Study, tmp_path: Path
) -> None:
    study.run("said").export(tmp_path / "out.cypher")
    text = (tmp_path / "out.cypher").read_text("utf-8")
    assert text.count("toxicity@1") == 5 and "MERGE (r:Rater" in text
    assert "'Ana'" in text and "'Ben'" in text


def test_a_scorer_whose_packages_are_missing_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(measure: str, *given: object, **more: object) -> object:
        raise MissingExtra("scorers", "torch")

    monkeypatch.setattr(scorers, "load_scorer", missing)
    with kgbias.open(tmp_path / "none.db") as study:
        found = study.scorers()
    assert [row.measure for row in found.rows] == list(scorer_reliability.shipped_scorers())
    assert all("scorers" in row.why and not row.checked for row in found.rows)


def test_the_price_is_told_beforehand(tmp_path: Path) -> None:
    mine = written(tmp_path, "text,label\nx,toxic\ny,toxic\n", CARD)
    given = ["scorers", str(mine), "--store", str(tmp_path / "none.db"), "--dry-run"]
    done = CliRunner().invoke(cli, [*given, "--scorer", "toxicity=llm:openai:x", "--json"])
    assert done.exit_code == 0, done.output
    rows = {(r["measure"], r["scorer"]): r for r in json.loads(done.stdout)["scorers"]}
    own, judge = rows["toxicity", "offline"], rows["toxicity", "llm:openai:x"]
    assert own["statements"] == judge["statements"] == judge["requests"] == 62
    assert own["texts_with_names_at_most"] > 0 and not judge["texts_with_names_at_most"]
    assert not rows["acceptability", "offline"]["texts_with_names_at_most"]
    assert not (tmp_path / "none.db").exists()


def test_without_labels_a_judge_is_unchecked() -> None:
    found = check_shipped_labels(Says([]), LabelledSet("", "regard", "person"))
    assert isinstance(found, LabelAgreement) and "unchecked" in str(found)


def test_a_scorer_does_not_judge_a_set_in_another_language(texts: Texts) -> None:
    statements = (LabelledStatement("Ich mag Tee.", "positive"),)
    german = LabelledSet("mine", "regard", "person", statements, language="de")
    found = scorer_reliability.check_scorer(Says([]), "scores:x.csv", [german], {})
    assert not found.checked
    texts.check_lines(found.why, "read mine,")
