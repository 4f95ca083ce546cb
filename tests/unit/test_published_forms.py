"""Published data sets as their authors lay them out: read as they mean them, or refused by name.

Rows are invented; the layouts are those of the repositories named."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kgbias.crawl.seeds import read_seeds
from kgbias.errors import DataError
from kgbias.evidence.stereotype_tables import read_stereotypes
from kgbias.measure.labelled_sets import read_sets
from kgbias.methods.benchmarks.bbq import read_bbq
from kgbias.methods.benchmarks.crows import read_crows_pairs
from kgbias.methods.benchmarks.stereoset import read_stereoset
from kgbias.methods.benchmarks.winogender import read_winogender
from kgbias.methods.sofa.build import read_stereotypes as build_stereotypes
from kgbias.probe.sets import read_identities, read_statements
from tests.methods.benchmarks.test_benchmarks import ROWS, stereo_file


def csv_of(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def test_rows_without_a_text_are_left_out_and_counted(tmp_path: Path) -> None:
    """As in the French CrowS-Pairs, one of whose sentences is missing."""
    (tmp_path / "fr.csv").write_text(
        "id\tsent_more\tsent_less\tstereo_antistereo\tbias_type\n"
        "1\tLes elfes crient.\tLes orques crient.\tstereo\trace\n"
        "2\tLes elfes dorment.\t\tstereo\trace\n"
    )
    (tmp_path / "wino.tsv").write_text(
        "sentid\tsentence\nnurse.patient.0.female.txt\tThe nurse told the patient that she left.\n"
        "nurse.patient.1.female.txt\t\n"
    )
    data = json.loads(stereo_file(tmp_path / "stereo.json").read_text())
    data["data"]["intrasentence"][0]["context"] = ""
    (tmp_path / "stereo.json").write_text(json.dumps(data))
    (tmp_path / "bbq.jsonl").write_text(
        "\n".join(json.dumps(row) for row in (ROWS[0], ROWS[1] | {"question": " "}))
    )
    for read, kept in (
        (read_crows_pairs(tmp_path / "fr.csv"), 1),
        (read_winogender(tmp_path / "wino.tsv"), 1),
        (read_stereoset(tmp_path / "stereo.json"), 3),
        (read_bbq([tmp_path / "bbq.jsonl"]), 1),
    ):
        assert (read.count, read.left_out) == (kept, 1)
        (told,) = read._without_text()
        assert told.startswith(f"1 of the file's {kept + 1} rows are left out")


HONEST = (
    "template_masked\traw\tidentity\tnumber\tcategory\ttype\n"
    "the woman should work as a [M].\t[I] should work as a [M]\tthe woman\tsingular\tfemale\tjob\n"
    "the man should work as a [M].\t[I] should work as a [M]\tthe man\tsingular\tmale\tjob\n"
)
BOLD = '{"American_actors": {"Jo_Doe": ["Jo Doe is an American actor whose "]}}'
HOLISTIC = '{"ability": {"visual": [{"descriptor": "blind"}]}, "body_type": {"fit": ["fit"]}}'
SHADES = "index\tsubset\tstereotype_valid_langs\ten_biased_sentences\n1\t_original\ten\tElves\n"
WINOBIAS = "1 [The developer] argued with the designer because [she] did not like it.\n"
UNQOVER = "# names\n\n[subj] Elf\n[subj:dem] Elvish\n"
IMPLICIT = (
    '{"context": "Ana spoke.", "question": "Who?", "answers": ["Ana", "Eva", "?"], "label": 2, '
    '"attribute_present_implicitly": true, "example_id": 0}\n'
) * 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (BOLD, "BOLD"),
        (HOLISTIC, "HolisticBias"),
        (SHADES, "SHADES"),
        (WINOBIAS, "WinoBias"),
        (UNQOVER, "UnQover"),
        (IMPLICIT, "ImplicitBBQ"),
        (HONEST, "HONEST"),
    ],
)
def test_sets_that_no_door_reads_are_refused_by_name(text: str, name: str, tmp_path: Path) -> None:
    """In one line that says what to do, at each door whose columns or texts they do not have."""
    path = tmp_path / "file.txt"
    path.write_text(text)
    doors = [
        lambda: read_seeds(str(path)),
        lambda: read_identities(str(path)),
        lambda: read_statements(path),
        lambda: read_stereotypes(path),
        lambda: read_bbq([path]),
        lambda: read_crows_pairs(path),
        lambda: read_winogender(path),
        lambda: read_sets(path),
    ]
    if name == "HONEST":
        del doors[1]
        assert read_identities(str(path)) == {"female": ("the woman",), "male": ("the man",)}
    for door in doors:
        with pytest.raises(DataError) as caught:
            door()
        assert f"this is {name}" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


def test_the_noun_phrases_of_holisticbias_are_groups(tmp_path: Path) -> None:
    (tmp_path / "noun_phrases.csv").write_text(
        "axis,bucket,descriptor,noun,plural_noun_phrase\nability,visual,blind,elf,blind elves\n"
    )
    assert read_identities(str(tmp_path / "noun_phrases.csv")) == {"ability": ("blind elves",)}


EEC = (
    "ID,Sentence,Template,Person,Gender,Race,Emotion,Emotion word\n"
    "2018-En-1,Ana feels glad.,<person subject> feels <emotion word>.,Ana,female,,joy,glad\n"
    "2018-En-2,Ben feels glad.,<person subject> feels <emotion word>.,Ben,male,,joy,glad\n"
)


def test_a_table_of_sentences_is_no_list_of_its_rows(tmp_path: Path) -> None:
    """The Equity Evaluation Corpus, whose header has a name of two words and whose rows no number:
    `sofa build` took each row for a stereotype, the header too."""
    path = tmp_path / "eec.csv"
    path.write_text(EEC)
    assert build_stereotypes(path).rows == [("", "Ana feels glad."), ("", "Ben feels glad.")]
    path.write_text(EEC.replace("Sentence", "Wording"))
    for read in (build_stereotypes, read_statements, lambda p: read_identities(str(p))):
        with pytest.raises(DataError, match="'ID', 'Wording', 'Template'"):
            read(path)


def test_a_table_of_r_has_its_columns_at_every_door(tmp_path: Path) -> None:
    path = tmp_path / "groups.txt"
    path.write_text('"group" "region"\n"1" "Bakers" "north"\n"2" "Tailors" "south"\n')
    assert read_identities(str(path)) == {"": ("Bakers", "Tailors")}
    with pytest.raises(DataError, match=r"its columns are '?.*'group', 'region'"):
        read_statements(path)


@pytest.mark.parametrize(
    "template",
    [
        "The $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN sang.",
        "I saw {{NAME1}} in town.",
        "[MASK] is a baker.",
        "<person subject> feels glad.",
    ],
)
@pytest.mark.parametrize("read", [read_statements, build_stereotypes])
def test_a_template_is_no_statement(read: Any, template: str, tmp_path: Path) -> None:
    path = tmp_path / "templates.csv"
    path.write_text(csv_of([{"answer": "0", "sentence": "Bakers sing."}] * 2))
    assert read(path)
    path.write_text(csv_of([{"answer": "0", "sentence": template}]))
    with pytest.raises(DataError, match=r"line 2: .* to be filled: write whole statements"):
        read(path)


def test_kinds_of_bias_by_number_have_their_names(tmp_path: Path) -> None:
    """CrowS-Pairs as the Hugging Face hub writes it."""
    pair = {"sent_more": "Bakers sing.", "sent_less": "Tailors sing.", "stereo_antistereo": 0}
    rows = [{**pair, "bias_type": number} for number in (0, 5)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    read = read_crows_pairs(tmp_path / "pairs.jsonl")
    assert [item.category for item in read.items] == ["race-color", "sexual-orientation"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Olivia,F,17535\nEmma,F,15581\n", r"a table begins with a line of their names"),
        (',count,tweet\n0,3,"x, y"\n', r"choose from count, tweet \("),
        ("[trade]\nnames = ['a', 'b']\n", "the first line is not the names of columns"),
    ],
)
def test_what_to_do_is_said_of_a_table_without_the_columns(
    text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataError, match=why):
        read_crows_pairs(tmp_path / "file")


def test_what_stereoset_needs_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "pairs.json").write_text('[["a", "b"], ["c", "d"]]')
    with pytest.raises(DataError, match="a list of objects with context, target"):
        read_stereoset(tmp_path / "pairs.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@relation groups\n@data\nBakers\n", "is an ARFF file"),
        ('group,attribute\n"Bakers,late\nTailors,slow\n', "mark is opened and not closed"),
    ],
)
@pytest.mark.parametrize("read", [read_seeds, read_identities, read_stereotypes])
def test_what_is_broken_or_of_another_format_is_refused(
    read: Any, text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file.csv").write_text(text)
    path = tmp_path / "file.csv"
    with pytest.raises(DataError, match=why):
        read(path if read is read_stereotypes else str(path))


def test_two_names_of_columns_are_no_statement(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("group,attribute\nBakers,late\nTailors,slow\n")
    with pytest.raises(DataError, match="its columns are 'group', 'attribute'"):
        read_statements(tmp_path / "file.csv")


def test_typographic_quotation_marks_around_all_are_taken_off(tmp_path: Path) -> None:
    (tmp_path / "groups.txt").write_text("“Bakers”\n“Tailors”\n")
    assert read_identities(str(tmp_path / "groups.txt")) == {"": ("Bakers", "Tailors")}
    (tmp_path / "groups.txt").write_text("“Bakers”\nTailors\n")
    assert read_identities(str(tmp_path / "groups.txt")) == {"": ("“Bakers”", "Tailors")}
