"""Published forms of the benchmarks, as their authors lay them out.

Rows are invented; the layouts are those of the repositories named."""

import json
from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import DataError
from kgbias.methods.benchmarks.bbq import read_bbq
from kgbias.methods.benchmarks.stereoset import read_stereoset
from tests.methods.benchmarks.test_benchmarks import ROWS
from tests.unit.test_published_forms import csv_of


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
    form: str, tmp_path: Path
) -> None:
    path = tmp_path / "ambiguous"
    path.write_text(json.dumps(CBBQ) if form == "json" else csv_of(CBBQ))
    assert asked_of(path) == [
        ("ambig", True, 2, 2, 1, "不知道"),
        ("disambig", False, 1, 2, 0, "不知道"),
        ("disambig", True, 0, 2, None, "不知道"),
    ]
    assert "1 of 3 questions do not say" in read_bbq([path]).remarks([])[0]


def test_bbq_in_a_table_of_text(tmp_path: Path) -> None:
    """As pandas writes what the hub holds, with lists and objects in its cells."""
    rows = [{name: str(cell) for name, cell in row.items()} for row in ROWS]
    (tmp_path / "bbq.csv").write_text(csv_of(rows))
    (tmp_path / "bbq.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    assert asked_of(tmp_path / "bbq.csv") == asked_of(tmp_path / "bbq.jsonl")


def test_bbq_may_name_its_groups_beside_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "Age.jsonl"
    rows = [dict(row) for row in ROWS]
    before = asked_of_rows(path, rows)
    for row in rows:
        row["stereotyped_groups"] = row.pop("additional_metadata")["stereotyped_groups"]
    assert asked_of_rows(path, rows) == before
    for row in rows:
        del row["question_index"]
    with pytest.raises(DataError, match="line 1 is not a BBQ question: there is no 'question_ind"):
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
