"""Published forms of the benchmarks, as their authors lay them out.

Rows are invented; the layouts are those of the repositories named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import DataError
from kgbias.methods.benchmarks.bbq import read_bbq
from kgbias.methods.benchmarks.command import benchmark
from kgbias.methods.benchmarks.crows import read_crows_pairs
from kgbias.methods.benchmarks.stereoset import read_stereoset
from kgbias.methods.benchmarks.winogender import read_winogender
from tests.methods.benchmarks.test_benchmarks import ROWS, stereo_file
from tests.texts import Texts
from tests.unit.test_published_forms import UNREAD_SETS, check_refused_by_name, csv_of


def esbbq(n: int, question: str, polarity: str, label: int, *, flat: bool) -> dict[str, Any]:
    """A row of langtech-bsc/EsBBQ-CaBBQ, in its JSON lines or its CSV."""
    info = {"ans0": ["Norte", "el Norte"], "ans1": ["Sur", "el Sur"], "ans2": ["unknown"] * 2}
    cells: dict[str, Any] = {
        "instance_id": n,
        "template_id": 1,
        "template_label": "t",
        "question_polarity": polarity,
        "context_condition": "ambig" if label == 2 else "disambig",
        "category": "Region",
        "stereotyped_groups": ["el Sur"],
        "context": "Ana y Eva hablan.",
        "question": question,
        "ans0": "Ana",
        "ans1": "Eva",
        "ans2": "unknown",
        "label": label,
    }
    if not flat:
        return cells | {"answer_info": info}
    cells["stereotyped_groups"] = str(cells["stereotyped_groups"])
    return cells | {f"answer_info.{name}": str(own) for name, own in info.items()}


KOBBQ = [
    {
        "sample_id": f"trade-001a-002-{condition}-{asked}",
        "context": "빵집과 시장.",
        "question": "누가 늦었습니까?",
        "choices": "['제빵사', '간호사', '알 수 없음']",
        "biased_answer": biased,
        "answer": answer,
        "bbq_id": "1.0",
        "bbq_category": "",
    }
    for condition, asked, biased, answer in (
        ("amb", "bsd", "간호사", "알 수 없음"),
        ("amb", "cnt", "제빵사", "알 수 없음"),
        ("dis", "bsd", "간호사", "제빵사"),
    )
]
CBBQ = [
    {
        "\ufeffexample_id": "1",
        "question_index": "3",
        "question_polarity": polarity,
        "context_condition": condition,
        "category": "trade",
        "bias_targeted_groups": group,
        "context": "面包师和护士。",
        "question": "谁迟到？",
        "ans0": "面包师",
        "ans1": "护士",
        "ans2": "不知道",
        "label": label,
    }
    for condition, polarity, group, label in (
        ("ambiguous", "neg", "护士", "2"),
        ("disambiguous", "non_neg", "护士", "1"),
        ("disambiguous", "neg", "护理人员", "0"),
    )
]


def asked_of(path: Path) -> list[tuple[Any, ...]]:
    return [
        (q.condition, q.negative, q.label, q.unknown, q.biased, q.answers[q.unknown])
        for q in read_bbq([path])._questions
    ]


@pytest.mark.parametrize("flat", [False, True])
def test_the_spanish_and_catalan_bbq(flat: bool, tmp_path: Path) -> None:
    rows = [
        esbbq(0, "¿Quién llegó tarde?", "neg", 2, flat=flat),
        esbbq(1, "Qui va arribar tard?", "nonneg", 1, flat=flat),
    ]
    text = csv_of(rows) if flat else "\n".join(map(json.dumps, rows))
    (tmp_path / "Region.full").write_text(text)
    assert asked_of(tmp_path / "Region.full") == [
        ("ambig", True, 2, 2, 1, "No se sabe"),
        ("disambig", False, 1, 2, 0, "No se sap"),
    ]


def test_the_korean_bbq_says_which_answer_is_biased(tmp_path: Path) -> None:
    (tmp_path / "samples.tsv").write_text(csv_of(KOBBQ, "\t"))
    assert asked_of(tmp_path / "samples.tsv") == [
        ("ambig", True, 2, 2, 1, "알 수 없음"),
        ("ambig", False, 2, 2, 0, "알 수 없음"),
        ("disambig", True, 0, 2, 1, "알 수 없음"),
    ]
    read = read_bbq([tmp_path / "samples.tsv"])
    assert {q.template for q in read._questions} == {"trade 001"} and not read.remarks([])


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_chinese_bbq_counts_for_accuracy_where_no_answer_is_the_group(
    form: str, tmp_path: Path, texts: Texts
) -> None:
    path = tmp_path / "ambiguous"
    path.write_text(json.dumps(CBBQ) if form == "json" else csv_of(CBBQ))
    assert asked_of(path) == [
        ("ambig", True, 2, 2, 1, "不知道"),
        ("disambig", False, 1, 2, 0, "不知道"),
        ("disambig", True, 0, 2, None, "不知道"),
    ]
    texts.check_lines(read_bbq([path]).remarks([])[0], "questions do")


def test_bbq_in_a_table_of_text(tmp_path: Path) -> None:
    """As pandas writes what the hub holds, with lists and objects in its cells."""
    rows = [{name: str(cell) for name, cell in row.items()} for row in ROWS]
    (tmp_path / "bbq.csv").write_text(csv_of(rows))
    (tmp_path / "bbq.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    assert asked_of(tmp_path / "bbq.csv") == asked_of(tmp_path / "bbq.jsonl")


def test_bbq_may_name_its_groups_beside_its_columns(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "Age.jsonl"
    rows = [dict(row) for row in ROWS]
    before = asked_of_rows(path, rows)
    for row in rows:
        row["stereotyped_groups"] = row.pop("additional_metadata")["stereotyped_groups"]
    assert asked_of_rows(path, rows) == before
    for row in rows:
        del row["question_index"]
    with texts.raises(DataError):
        asked_of_rows(path, rows)


def asked_of_rows(path: Path, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    path.write_text("\n".join(map(json.dumps, rows)))
    return asked_of(path)


def test_stereoset_in_a_table_of_text(tmp_path: Path) -> None:
    """As pandas writes what the hub holds."""
    sentences = {
        "sentence": ["The baker was late.", "The baker was early.", "The baker was fish."],
        "gold_label": [1, 0, 2],
    }
    row = {"id": "a", "target": "baker", "bias_type": "profession"}
    row |= {"context": "The baker was BLANK.", "sentences": str(sentences)}
    (tmp_path / "dev.csv").write_text(csv_of([row]))
    assert len(read_stereoset(tmp_path / "dev.csv").items) == 1


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


def test_what_stereoset_needs_is_said_in_words(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "pairs.json").write_text('[["a", "b"], ["c", "d"]]')
    with texts.raises(DataError):
        read_stereoset(tmp_path / "pairs.json")


@pytest.mark.parametrize(("text", "name"), UNREAD_SETS)
@pytest.mark.parametrize("read", [lambda path: read_bbq([path]), read_crows_pairs, read_winogender])
def test_sets_that_are_no_benchmark_are_refused_by_name(
    read: Callable[[Path], object], text: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    check_refused_by_name(lambda: read(path), name)


def test_the_command_takes_an_encoding() -> None:
    """The published Dutch CrowS-Pairs are in Mac Roman."""
    assert any("--encoding" in option.opts for option in benchmark.params)
