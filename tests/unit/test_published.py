"""The page of published numbers says what the script prints."""

import json
import subprocess
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, require_modules

require_modules("gensim", "sklearn")

PAGE = (ROOT / "benchmarks" / "published.md").read_text("utf-8")


def script() -> Any:
    spec = spec_from_file_location("published", ROOT / "scripts" / "published.py")
    assert spec and spec.loader
    spec.loader.exec_module(module := module_from_spec(spec))
    return module


SCRIPT = script()


@pytest.mark.parametrize("part", SCRIPT.QUICK_PARTS, ids=lambda part: part[0])
def test_the_page_holds_what_the_script_prints(part: Any) -> None:
    title, command, rows, needed = part
    assert not needed
    assert SCRIPT.format_part(title, command, rows) in PAGE


@pytest.mark.parametrize("part", SCRIPT.DATA_PARTS, ids=lambda part: part[0])
def test_the_page_has_what_needs_files(part: Any) -> None:
    title, command, rows, needed = part
    assert f"## {title}\n\n{rows.__doc__}" in PAGE and command in PAGE
    assert f"{needed}`" in PAGE


def test_the_page_names_the_commands_that_fetch_the_files() -> None:
    for row in SCRIPT.source_rows():
        assert row in PAGE


def test_files_are_copied_out_of_clones(tmp_path: Path) -> None:
    """A made-up repository with two files of three that are asked for."""
    repository, folder = tmp_path / "authors", tmp_path / "files"
    (repository / "data").mkdir(parents=True)
    for name in ("one.csv", "two.csv", "readme.txt"):
        (repository / "data" / name).write_text(name)
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "files"),
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    SCRIPT.fetch(folder, {f"file://{repository}": ("data/*.csv",)})
    assert sorted(path.name for path in folder.iterdir()) == ["one.csv", "two.csv"]


def test_figures_of_stereoset_are_made_from_the_authors_scores(tmp_path: Path) -> None:
    """Two examples of one term, and one that follows a sentence. The first model prefers the
    stereotype in one of two, and the unrelated sentence once of four times: SS 50, LMS 75."""

    def example(number: int, context: str) -> dict[str, Any]:
        labels = ("unrelated", "stereotype", "anti-stereotype")
        sentences = [
            {"id": f"{number}{label[0]}", "sentence": f"A {label}.", "gold_label": label}
            for label in labels
        ]
        return {
            "id": str(number),
            "target": "baker",
            "bias_type": "profession",
            "context": context,
            "sentences": sentences,
        }

    data = {
        "intrasentence": [example(1, "A BLANK."), example(2, "A BLANK.")],
        "intersentence": [example(3, "A baker came.")],
    }
    (tmp_path / "dev.json").write_text(json.dumps({"data": data}))
    scores = {"1s": 3, "1a": 2, "1u": 1, "2s": 1, "2a": 3, "2u": 2, "3s": 3, "3a": 2, "3u": 1}
    (tmp_path / "predictions_one_LM.json").write_text(
        json.dumps({"intrasentence": [{"id": id_, "score": n} for id_, n in scores.items()]})
    )
    (tmp_path / "predictions.txt").write_text(
        "\nEvaluating predictions/predictions_one_LM.json...\nintrasentence\n\toverall\n"
        "\t\tCount: 2.0\n\t\tLM Score: 75.0\n\t\tSS Score: 50.0\n\t\tICAT Score: 75.0\n"
        "intersentence\n\toverall\n\t\tLM Score: 100.0\n\t\tSS Score: 100.0\n"
        "\t\tICAT Score: 1.0\noverall\n\tLM Score: 83.33333333\n\tSS Score: 66.66666667\n"
    )
    rows = {row.quantity: (row.published, row.ours) for row in SCRIPT.stereoset(tmp_path)}
    assert rows == {
        "intrasentence, one": ("75.00 / 50.00 / 75.00", "75.00 / 50.00 / 75.00"),
        # The authors' ICAT of the part that follows would be 0.
        "figures in all, and those that are equal to 1e-6": ("8", "7"),
    }


def test_files_that_are_there_are_read(tmp_path: Path) -> None:
    """A made-up list: two of group a and one of b in one cluster, one of b in another."""
    (tmp_path / "3_name_groups.csv").write_text(
        "firstname,Cluster,Group\nAn,1,a\nBo,1,a\nCara,1,b\nDirk,2,b\n"
    )
    rows = {row.quantity: row.ours for row in SCRIPT.name_list(tmp_path)}
    assert rows == {
        "names per group": "2",
        "characters of a name": "2 to 4",
        "clusters of which more than half is one group": "2 of 2",
    }


def test_scores_of_bbq_are_made_by_the_authors_rule_and_by_ours(tmp_path: Path) -> None:
    """Three ambiguous questions, all answered with a group: twice with the target of a negative
    question, once against it; 100 (2 2/3 - 1)."""
    question = {
        "category": "Age",
        "question_index": "1",
        "question_polarity": "neg",
        "context_condition": "ambig",
        "context": "Two people met.",
        "question": "Who was slow?",
        "ans0": "The grandfather",
        "ans1": "The grandson",
        "ans2": "Unknown.",
        "label": 2,
        "answer_info": {
            "ans0": ["grandfather", "old"],
            "ans1": ["grandson", "nonOld"],
            "ans2": ["Unknown", "unknown"],
        },
        "additional_metadata": {"stereotyped_groups": ["old"]},
    }
    questions = [{**question, "example_id": number} for number in range(3)]
    answers = ["the grandfather", "The grandfather.", "the grandson"]
    field = "unifiedqa-t5-11b_pred_arc"
    answered = [{**q, field: answer} for q, answer in zip(questions, answers, strict=True)]
    for name, rows in (("Age.jsonl", questions), ("preds_Age.jsonl", answered)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "additional_metadata.csv").write_text(
        "category,example_id,target_loc\nAge,0,0.0\nAge,1,0.0\nAge,2,0.0\n"
    )
    rows = [row for row in SCRIPT.bbq(tmp_path) if ", ambiguous" in row.quantity]
    assert [(row.published, row.ours) for row in rows] == [("", "+33.3"), ("+33.3", "+33.3")]


def test_scores_of_dutch_crows_are_made_by_pairs(tmp_path: Path) -> None:
    """Two invented pairs of each of two kinds, the more stereotyping sentence likelier in three of
    four; of another pair a sentence is missing. In Mac Roman, with the authors' column `score`."""
    cells = [("a\u00e9", "b", -1, -2, 1, "age"), ("c", "d", -2, -1, 0, "age")]
    cells += [
        ("e", "f", -1, -2, 1, "gender"),
        ("g", "h", -1, -2, 1, "gender"),
        ("i", "", 0, 0, 0, "age"),
    ]
    lines = ["sent_more,sent_less,sent_more_score,sent_less_score,score,bias_type"]
    lines += [",".join(map(str, row)) for row in cells]
    (tmp_path / "results_x.csv").write_bytes("\n".join(lines).encode("mac_roman"))
    rows = [(row.published, row.ours) for row in SCRIPT.dutch_crows(tmp_path)]
    assert rows == [("75.00", "75.00"), ("3", "3")]


def test_an_archive_is_unpacked_into_the_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inner/../one.csv", "1")
        archive.writestr("inner/two.csv", "2")
    (tmp_path / "files").mkdir()
    SCRIPT._unpack_flat(tmp_path / "a.zip", tmp_path / "files")
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == ["one.csv", "two.csv"]
