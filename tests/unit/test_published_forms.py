"""Published data sets as their authors lay them out: read as they mean them, or refused by name.

Rows are invented; the layouts are those of the repositories named."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgbias.crawl.seeds import read_seeds
from kgbias.errors import DataError
from kgbias.measure.labelled_sets import read_sets
from kgbias.probe.sets import read_identities, read_statements
from tests.rooms import list_readers
from tests.texts import Texts


def csv_of(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


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


UNREAD_SETS = [
    (BOLD, "BOLD"),
    (HOLISTIC, "HolisticBias"),
    (SHADES, "SHADES"),
    (WINOBIAS, "WinoBias"),
    (WINOBIAS[2:], "WinoBias"),  # as copies without the numbers have it
    (WINOBIAS[2:].replace("[The", "The").replace("the designer", "[the designer]"), "WinoBias"),
    (UNQOVER, "UnQover"),
    (IMPLICIT, "ImplicitBBQ"),
    (HONEST, "HONEST"),
]


def check_refused_by_name(read: Callable[[], object], name: str) -> None:
    """In one line that says what to do."""
    with pytest.raises(DataError) as caught:
        read()
    assert f"this is {name}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("text", "name"), UNREAD_SETS)
def test_sets_that_no_door_reads_are_refused_by_name(text: str, name: str, tmp_path: Path) -> None:
    """At each door whose columns or texts they do not have; those of benchmarks have a test of
    their own."""
    path = tmp_path / "file.txt"
    path.write_text(text)
    doors = [
        lambda: read_seeds(str(path)),
        lambda: read_identities(str(path)),
        lambda: read_statements(path),
        *(lambda read=read: read(path) for read in list_readers("STEREOTYPE_READERS")),
        lambda: read_sets(path),
    ]
    if name == "HONEST":
        del doors[1]
        assert read_identities(str(path)) == {"female": ("the woman",), "male": ("the man",)}
    for door in doors:
        check_refused_by_name(door, name)


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


@pytest.mark.parametrize("read", [read_statements, lambda path: read_identities(str(path))])
def test_a_table_of_sentences_is_no_list_of_its_rows(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "eec.csv"
    path.write_text(EEC.replace("Sentence", "Wording"))
    with pytest.raises(DataError, match="'ID', 'Wording', 'Template'"):
        read(path)


def test_a_table_of_r_has_its_columns_at_every_door(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "groups.txt"
    path.write_text('"group" "region"\n"1" "Bakers" "north"\n"2" "Tailors" "south"\n')
    assert read_identities(str(path)) == {"": ("Bakers", "Tailors")}
    with texts.raises(DataError):
        read_statements(path)


TEMPLATES = [
    "The $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN sang.",
    "I saw {{NAME1}} in town.",
    "[MASK] is a baker.",
    "<person subject> feels glad.",
]


def check_refused_as_template(read: Callable[[Path], object], template: str, folder: Path) -> None:
    path = folder / "templates.csv"
    path.write_text(csv_of([{"answer": "0", "sentence": "Bakers sing."}] * 2))
    assert read(path)
    path.write_text(csv_of([{"answer": "0", "sentence": template}]))
    with pytest.raises(DataError, match=r"line 2: .* to be filled: write whole statements"):
        read(path)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_no_statement(template: str, tmp_path: Path) -> None:
    check_refused_as_template(read_statements, template, tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@relation groups\n@data\nBakers\n", "is an ARFF file"),
        ('group,attribute\n"Bakers,late\nTailors,slow\n', "mark is opened and not closed"),
    ],
)
@pytest.mark.parametrize("read", [read_seeds, read_identities, *list_readers("STEREOTYPE_READERS")])
def test_what_is_broken_or_of_another_format_is_refused(
    read: Any, text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file.csv").write_text(text)
    with pytest.raises(DataError, match=why):
        read(str(tmp_path / "file.csv"))


def test_two_names_of_columns_are_no_statement(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "file.csv").write_text("group,attribute\nBakers,late\nTailors,slow\n")
    with texts.raises(DataError):
        read_statements(tmp_path / "file.csv")


def test_typographic_quotation_marks_around_all_are_taken_off(tmp_path: Path) -> None:
    (tmp_path / "groups.txt").write_text("“Bakers”\n“Tailors”\n")
    assert read_identities(str(tmp_path / "groups.txt")) == {"": ("Bakers", "Tailors")}
    (tmp_path / "groups.txt").write_text("“Bakers”\nTailors\n")
    assert read_identities(str(tmp_path / "groups.txt")) == {"": ("“Bakers”", "Tailors")}
