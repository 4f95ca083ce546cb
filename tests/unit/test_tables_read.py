"""Tables that people hand over: what a file holds decides how it is read, at every door."""

import codecs
import gzip
import json
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgbias.cli import main
from kgbias.crawl.seeds import read_seeds
from kgbias.errors import DataError, UsageError
from kgbias.ingest.statement_file import read_file
from kgbias.ingest.statement_table import (
    TableRecord,
    TripleColumns,
    detect_format,
    read_records,
    read_triples,
)
from kgbias.io import stereoset_file
from kgbias.io.reading import use_fallback_encoding
from kgbias.io.stereoset_file import read_examples
from kgbias.io.tables import as_text, read_sheet, read_table
from kgbias.io.wording import in_commands
from kgbias.measure.labelled_sets import read_sets
from kgbias.measure.scorers._scores_file import FileScorer
from kgbias.probe import apx
from kgbias.probe.apx import read_apx
from kgbias.probe.sets import read_descriptors, read_identities, read_names, read_statements
from kgbias.study import review
from tests.rooms import list_readers
from tests.table_forms import FORMS, HandedTable, Rows, parquet
from tests.texts import Texts

word = st.text("abcdefghijklmnopqrstuvwxyzäéñßşжあ北", min_size=2, max_size=9)
# How tables write that there is no value.
word = word.filter(lambda text: text not in ("null", "nan", "na", "none"))
phrase = st.lists(word, min_size=1, max_size=3).map(" ".join)
WESTERN_LETTERS = str.maketrans("şжあ北", "çœøþ")


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.lists(
        st.fixed_dictionaries({"group": phrase, "attribute": phrase, "category": word}),
        min_size=2,
        max_size=6,
        unique_by=lambda row: row["group"].casefold(),
    )
)
def test_a_table_gives_the_same_rows_in_every_form_at_every_door(
    form: str, data: Rows, tmp_path: Path
) -> None:
    """The suffix says nothing: all files are called the same."""
    if form == "cp1252":  # which has other letters in the place of these
        data = [{k: v.translate(WESTERN_LETTERS) for k, v in row.items()} for row in data]
    with use_fallback_encoding(form) if form in ("gb18030", "cp1252") else nullcontext():
        same_at_every_door(form, data, tmp_path / "table.data")


def same_at_every_door(form: str, data: Rows, path: Path) -> None:
    rows = [
        {
            **row,
            "predicate": "are",
            "object": row["attribute"],
            "statement": row["attribute"],
            "name": row["group"],
            "score": "0.5",
            "sentence": f"{row['group']} are",
        }
        for row in data
    ]
    table = HandedTable(form, rows, path)
    table.write()
    columns, found = read_table(path, ("group", "attribute"))
    assert [dict(row) for _, row in found] == rows and columns == list(rows[0])
    assert [{k: as_text(v) for k, v in row.items()} for _, row in read_sheet(path).rows] == rows
    kept = {(t, c) for c, texts in read_statements(path).items() for t in texts}
    said = [(r["group"], r["attribute"], r["category"]) for r in rows]
    assert kept == {(t, c) for _, t, c in said}
    assert len(FileScorer("toxicity", str(path)).score([r["sentence"] for r in rows])) == len(rows)
    imported = read_file(path).statements
    assert [(s.triple.group, s.triple.object, s.category) for s in imported] == said

    alone = table.choose("group", "category")
    groups = {(g, s.category.name) for s in read_seeds(str(alone)) for g in s.groups}
    assert groups == {(g, c) for g, _, c in said}
    listed = {(g, c) for c, names in read_identities(str(alone)).items() for g in names}
    assert listed == groups

    # The doors of single commands, each with the columns that it declares.
    named = read_names(str(table.choose("name", "group")))
    assert named == tuple((g, g) for g, _, _ in said)
    told = read_descriptors(str(table.choose("attribute", descriptor="calm")))
    assert {d.text for d in told} == {"calm"} and len(told) == len(rows)
    whole_rows(table)
    for check in list_readers("TABLE_CHECKS"):
        check(table)
    (path.parent / "table.card.toml").write_text(
        'name = "own"\nmeasure = "toxicity"\nkind = "person"\nraters = ["Ana"]\n'
    )
    by_text = [{"text": r["group"], "label": "toxic"} for r in rows]
    path.write_bytes(FORMS[form](by_text))
    (own,) = read_sets(path)
    assert [one.text for one in own.statements] == [r["text"] for r in by_text]


def whole_rows(table: HandedTable) -> None:
    """The doors whose columns no other door has, one name or attribute a row."""
    groups, attributes = table.groups, table.attributes
    measured = read_apx(
        table.fill(apx.TABLE_FORMAT.columns, Group=groups, descriptor="calm", apx_1="0.5")
    )
    assert measured.groups == tuple(groups) and measured.values.tolist() == [[[0.5]] * len(groups)]
    decided = review._read_decisions(table.fill(review.DECISIONS_FORMAT.columns, id=groups))
    assert [one[3] for one in decided] == attributes
    people = read_file(table.fill(("name", "trait"), name=groups), format="profiles").statements
    assert [(s.triple.group, s.triple.object) for s in people] == list(
        zip(groups, attributes, strict=True)
    )
    coded = {"sentence": [f"They sing {n}." for n in range(3)], "gold_label": [0, 1, 2]}
    examples, _ = read_examples(
        table.fill(
            stereoset_file.TABLE_FORMAT.columns,
            context="They BLANK.",
            target=groups,
            sentences=str(coded),
        )
    )
    assert [one.target for one in examples] == groups


@pytest.mark.parametrize("encoding", ["cp1252", "mac_roman", "latin-1"])
def test_another_encoding_is_named_with_its_remedy_and_read_when_given(
    encoding: str, tmp_path: Path, texts: Texts
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("group,category\nKöche,trade\nMänner,gender\n".encode(encoding))
    byte = "ö".encode(encoding).hex()
    with texts.raises(DataError) as caught:
        read_seeds(str(path))
    assert f"0x{byte}" in str(caught.value)
    with use_fallback_encoding(encoding):
        assert [s.groups for s in read_seeds(str(path))] == [("Köche",), ("Männer",)]
        assert read_identities("sofa")  # what ships is UTF-8 all the same
    with pytest.raises(UsageError, match="no encoding 'klingon'"), use_fallback_encoding("klingon"):
        pass


def test_the_commands_take_an_encoding(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    texts: Texts,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "group;predicate;object;note\nKöche;are;fröhlich;x\n"
    Path("said.csv").write_bytes(text.encode("cp1252"))
    monkeypatch.setattr("sys.argv", ["kgbias", "import", "said.csv", "--run", "a"])
    with pytest.raises(SystemExit):
        main()
    assert "--encoding" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", [*sys.argv, "--encoding", "cp1252"])
    with suppress(SystemExit):
        main()
    told = capsys.readouterr()
    assert "1 statement" in told.out
    texts.check(told.err)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("love bread, butter\nare kind\n# a comment\n\nhate snow\n", 3),
        ("statement\tcategory\nlove bread\ttrade\nare kind\ttrade\n", 2),
        ('{"trade": ["love bread", "are kind"]}', 2),
        ('["love bread", "are kind"]', 2),
        ("sentence\nlove bread\n", 1),
        ('"text"\n"love bread, and butter"\n', 1),
    ],
)
def test_statements_as_people_write_them(text: str, found: int, tmp_path: Path) -> None:
    for name in ("st.txt", "st.csv", "st.json", "st"):
        (tmp_path / name).write_text(text)
        assert sum(map(len, read_statements(tmp_path / name).values())) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"trade": [["baker", "bakers"], ["nurse", "nurses"]]}', "trade, entry 1: .*is no text"),
        ("['woman', 'women']\n", "no text of one value a line"),
        ("[subj] Christian\n", "this is UnQover .*take .subj. and what is in brackets away"),
        ("love bread\ttrade\nare kind\ttrade\n", "has no column 'group'.*its columns are 'love"),
        ("JAMES  3.318  3.318  1\nJOHN  3.271  6.589  2\n", "columns of a fixed width"),
        ("SMITH,2442977,1\nJOHNSON,1932812,2\n", "comma-separated, and has no column 'group'"),
        ("<!DOCTYPE html>\n<p>x</p>\n", "is an HTML page"),
        ("version https://git-lfs.github.com/spec/v1\noid x\n", "pointer of Git LFS"),
        ("%PDF-1.7\n", "is a PDF"),
        ('[{"group": "Bakers"}', "is not JSON"),
    ],
)
def test_what_is_no_list_of_groups_is_refused_in_one_line(
    text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "ids.txt").write_text(text)
    with pytest.raises(DataError, match=why) as caught:
        read_identities(str(tmp_path / "ids.txt"))
    assert len(str(caught.value).splitlines()) == 1


def test_two_scores_of_one_text_are_refused(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "s.csv").write_text("text,score\nBakers are kind,0.2\nBakers are kind,0.7\n")
    with texts.raises(DataError):
        FileScorer("toxicity", str(tmp_path / "s.csv"))


def example(n: int) -> dict[str, Any]:
    texts = {"anti-stereotype": "kind", "stereotype": "loud", "unrelated": "wet"}
    sentences = [{"gold_label": k, "sentence": f"The baker is {w}."} for k, w in texts.items()]
    return {
        "id": str(n),
        "target": "baker",
        "bias_type": "profession",
        "context": "The baker is BLANK.",
        "sentences": sentences,
    }


def test_stereoset_as_it_is_published_and_as_the_hub_has_it(tmp_path: Path) -> None:
    rows = [example(1), example(2)]
    coded = [
        row
        | {
            "sentences": {
                "gold_label": [0, 1, 2],
                "sentence": [s["sentence"] for s in row["sentences"]],
            }
        }
        for row in rows
    ]
    texts = {
        "a.json": json.dumps({"version": "1", "data": {"intrasentence": rows}}),
        "b.json": json.dumps(rows),
        "c.jsonl": "\n".join(map(json.dumps, rows)),
        "d.jsonl": "\n".join(map(json.dumps, coded)),
    }
    found = []
    files = {name: text.encode() for name, text in texts.items()}
    for name, content in {**files, "e.parquet": parquet(rows)}.items():
        (tmp_path / name).write_bytes(content)
        found.append(read_examples(tmp_path / name)[0])
        for read in list_readers("STEREOSET_READERS"):
            assert read(tmp_path / name) == [("baker", "loud")]
    assert all(examples == found[0] for examples in found)
    assert found[0][0].sentences[0] == "The baker is loud."


@pytest.mark.parametrize(
    "text",
    [
        "Group,CATEGORY\nElves,folk\nOrcs,folk\n",
        ",group,category\n0,Elves,folk\n1,Orcs,folk\n",  # pandas' index
        "group,category,\nElves,folk,\nOrcs,folk,\n",
        "group,category\nElves,folk\nGroup,category\nOrcs,folk\n",  # two files put together
        "sep=;\ngroup;category\nElves;folk\nOrcs;folk\n",
        "group|category\nElves|folk\nOrcs|folk\n",
        "# from a paper\ngroup,category\nElves,folk\nOrcs,folk\n",
        '\ufeffgroup , category\n"Elves",folk\n"Orcs",folk\n',
        "group,category\rElves,folk\rOrcs,folk\r",
        'group,category\n"Elves\n",folk\nOrcs,folk\n',
        '{"group": ["Elves", "Orcs"], "category": ["folk", "folk"]}',
        '{"columns": ["group", "category"], "index": [0, 1], "data": [["Elves", "folk"], '
        '["Orcs", "folk"]]}',
        '[["group", "category"], ["Elves", "folk"], ["Orcs", "folk"]]',
        '{"features": [{"name": "group"}], "rows": [{"row_idx": 0, "row": {"group": "Elves", '
        '"category": "folk"}}, {"row_idx": 1, "row": {"group": "Orcs", "category": "folk"}}]}',
        '{"folk": ["Elves", "Orcs"]}',
    ],
)
def test_a_table_of_groups_as_other_programs_write_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(text.encode())
    (seed,) = read_seeds(str(tmp_path / "x"))
    assert (seed.category.name, seed.groups) == ("folk", ("Elves", "Orcs"))
    assert read_identities(str(tmp_path / "x")) == {"folk": ("Elves", "Orcs")}


@pytest.mark.parametrize("text", ["Elves\nOrcs\n", "- Elves\n- Orcs\n", "1. Elves\n2) Orcs\n"])
def test_a_list_of_groups_as_people_write_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    assert read_seeds(str(tmp_path / "x"))[0].groups == ("Elves", "Orcs")
    assert read_identities(str(tmp_path / "x")) == {"": ("Elves", "Orcs")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("group,category\nElves,folk\nNA,folk\n", "line 3: .*empty"),
        ("category,group\nfolk,Elves\n,Orcs\n", "category"),
        ("category,group\nfolk,\"['Elves', 'Orcs']\"\n", "line 2: .*is a list"),
        ("Table 1\n\ngroup,category\nElves,folk\n", "'group,category' names the columns.*delete"),
        ("| group | category |\n|---|---|\n| Elves | folk |\n", "table in Markdown"),
        ("folk:\n  - Elves\n  - Orcs\n", "as in YAML"),
        ("Elves, Orcs, Dwarves\n", "has a comma"),
    ],
)
def test_what_is_no_group_is_never_taken_for_one(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    for door in (read_seeds, read_identities):
        with pytest.raises((DataError, UsageError), match=why) as caught:
            door(str(tmp_path / "x"))
        assert len(str(caught.value).splitlines()) == 1


def test_cells_of_triples_and_scores_as_other_programs_write_them(
    tmp_path: Path, texts: Texts
) -> None:
    path = tmp_path / "x"
    path.write_text(
        'Group,predicate,object,Count\nElves,are,kind,"1,234"\nElves,are,NA,1\n'
        "Orcs,are,\"['loud', 'tall']\",NA\n"
    )
    read = read_file(path)
    assert [(s.triple.object, s.count) for s in read.statements] == [
        ("kind", 1234),
        ("loud", 1),
        ("tall", 1),
    ]
    assert read.incomplete_rows == 1
    path.write_text("text;Score\nElves are kind;0,25\nOrcs are loud;\n")
    (found,) = FileScorer("toxicity", str(path)).score(["Elves are kind"])
    assert found.value == 0.25
    with texts.raises(DataError):
        FileScorer("toxicity", str(path)).score(["Orcs are loud"])


def test_what_an_export_guards_is_its_text_at_every_door(tmp_path: Path) -> None:
    for name, between in (("a.csv", ","), ("a.tsv", "\t"), ("a.txt", ";")):
        path = tmp_path / name
        path.write_text(
            f"group{between}category\n'=Mathematicians{between}'-ists\n'quoted'{between}\n"
        )
        rows = [row for _, row in read_sheet(path, ("group",)).rows]
        assert [tuple(row.values()) for row in rows] == [
            ("=Mathematicians", "-ists"),
            ("'quoted'", ""),
        ]


@pytest.mark.parametrize(
    "text",
    [
        # A quoted text with line breaks, so that lines have other numbers of cells than rows.
        'q_id,d_id,query,document\na,b,best cooks,"Cooks, who\nall love bread,\nare kind"\n',
        "index,subset,en_sentences,de_sentences\n1.0,_original,Elves sing.,Elben singen.\n",
        "prompt,answer,\nElves sing,yes,\nOrcs sing,no\nMen sing,no,\n",
    ],
)
def test_a_table_of_other_columns_is_no_list_of_statements(
    text: str, tmp_path: Path, texts: Texts
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with texts.raises(DataError):
        read_statements(path)
    for read in list_readers("STATEMENT_READERS"):
        with pytest.raises(DataError, match="has no column 'statement'"):
            read(path)


def test_statements_with_commas_are_statements(tmp_path: Path) -> None:
    path = tmp_path / "statements.txt"
    path.write_text("are kind, loyal\nlove bread, mostly\nhate, fear\n")
    assert read_statements(path)[""] == ("are kind, loyal", "love bread, mostly", "hate, fear")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\xff\xff\xff\xff\x90/\0\0", "an Arrow file"),
        (b"ARROW1\0\0", "an Arrow file"),
        (b"\x80\x03]q\0.", "a Python pickle"),
        (gzip.compress(b"RDX3\nX\n\0\0\0\3", mtime=0), "an R workspace"),
        (gzip.compress(b"a.csv".ljust(257, b"\0") + b"ustar", mtime=0), "an archive"),
        (b"BZh91AY", "an archive"),
    ],
)
def test_what_is_no_text_and_no_table_is_named_at_every_door(
    data: bytes, name: str, tmp_path: Path
) -> None:
    def read_rows(path: Path) -> list[TableRecord]:
        return list(read_records(path, detect_format(path)))

    path = tmp_path / "table.csv"
    path.write_bytes(data)
    own = (read_identities, read_statements, read_sets, read_rows)
    for read in (*own, *list_readers("FILE_READERS")):
        with pytest.raises(DataError, match=f"is {name}"):
            read(path)


def test_of_many_columns_a_line_names_the_first(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "table.csv"
    path.write_text(",".join(f"c{n}" for n in range(72)) + "\n" + ",".join("x" * 72) + "\n")
    with texts.raises(DataError):
        read_identities(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("identity term\nElves\nOrcs\n", "'identity term', which seems to name the column"),
        ("identity_terms\nElves\nOrcs\n", "'identity_terms', which seems to name the column"),
        ("Demographics\nElves\nOrcs\n", "'Demographics', which seems to name the column"),
        ("2 30\n" + "Elves" + " 0.1" * 30 + "\nOrcs" + " -1e-3" * 30 + "\n", "fixed width"),
        ("name: a\npeople: [Elves]\n", "as in YAML"),
        (";;;;\nElves\n", "has no letter"),
        ("Elves ||| Elben\nOrcs ||| Orks\n", "holds two texts"),
        ("\\begin{tabular}{l}\nElves\n\\end{tabular}\n", "is a text in LaTeX"),
        ("--- a/x\n+++ b/x\n-Elves\n+Orcs\n", "is a difference of two files"),
        ("From: ana\nTo: bo\n\nElves\n", "is a mail"),
        ("2026-11-28 05:00:01 started\nElves\n", "is a log"),
        ("import os\nElves\n", "is a program"),
        ("elves\norcs[all]>=1.2,<2\n", "is a list of requirements ('orcs[all]>=1.2,<2')"),
        ("orcs == 1.2 ; python_version < '3.12'\n", "is a list of requirements"),
        ("total 8\n-rw-r--r-- 1 ana staff 12 Nov 28 05:00 elves.txt\n", "is the output of ls"),
        ("drwxr-xr-x@ 2 ana staff 64 Nov 28 05:00 Orcs\n", "is the output of ls"),
        ("12\n", "has no letter"),
        ("null\n", "stands for no value"),
        ("\tID\tEmotion word\n0\t7\tElves\n1\t8\tOrcs\n", "tab-separated"),
    ],
)
def test_what_is_no_list_is_not_read_as_one(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(text)
    for read in (read_identities, read_statements, read_seeds, *list_readers("STATEMENT_READERS")):
        with pytest.raises(DataError, match=re.escape(why)):
            read(str(path) if read is read_seeds else path)  # type: ignore[operator]


def test_an_age_is_no_version(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("Elves\naged>=65\norcs >= 65.5 winters old\n")
    (groups,) = read_identities(tmp_path / "x").values()
    assert groups == ("Elves", "aged>=65", "orcs >= 65.5 winters old")


def test_the_name_of_a_group_is_short(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "groups.txt"
    path.write_text("Elves who live " + "far " * 30 + "away\n")
    with texts.raises(DataError):
        read_identities(path)


TRIPLES = [("Elves", "love", "trees"), ("Orcs", "hate", "light")]


@pytest.mark.parametrize(
    "text",
    [
        # As R writes row names; with a delimiter at the end of rows; with spaces after it; below
        # empty lines; with spaces that are none at the names; between bars and between spaces; as
        # Python prints rows; and by ids.
        '"group","predicate","object"\n"1","Elves","love","trees"\n"2","Orcs","hate","light"\n',
        "group\tpredicate\tobject\n1\tElves\tlove\ttrees\n2\tOrcs\thate\tlight\n",
        "group,predicate,object\nElves,love,trees,\nOrcs,hate,light,,\n",
        'group, predicate, object\nElves, love, "trees"\nOrcs, hate, light\n',
        "\n\r\ngroup,predicate,object\n\nElves,love,trees\nOrcs,hate,light\n\n",
        "group\u00a0,predicate,object\u200b\nElves,love,trees\nOrcs,hate,light\n",
        "group|predicate|object\nElves|love|trees\nOrcs|hate|light\n",
        '"group" "category"\n"1" "Elves" "folk"\n"2" "Orcs" "folk"\n',
        "{'group': 'Elves', 'predicate': 'love', 'object': 'trees'}\n"
        "{'group': 'Orcs', 'predicate': 'hate', 'object': 'light'}\n",
        '{"a": {"group": "Elves", "predicate": "love", "object": "trees", "n": [1]}, '
        '"b": {"group": "Orcs", "predicate": "hate", "object": "light"}}',
    ],
)
def test_a_table_as_other_programs_write_it_at_both_readers(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    assert read_seeds(str(path))[0].groups == ("Elves", "Orcs")
    assert tuple(read_identities(path).values()) == (("Elves", "Orcs"),)
    if "predicate" not in text:
        return
    assert [
        (row.triple.group, row.triple.predicate, row.triple.object)
        for row in read_triples(path, detect_format(path), TripleColumns())
        if row
    ] == TRIPLES


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# Groups\n\n| group | object |\n|---|---|\n| Elves | trees |\n", "a table in Markdown"),
        ("| group | object |\n|---|---|\n| Elves | trees |\n", "a table in Markdown"),
        (" \n<!DOCTYPE html><html></html>", "an HTML page"),
        ('{"@context": {}, "@type": "sc:Dataset", "name": "set"}', "describes a data set"),
        ('{"train": [{"group": "Elves"}], "test": [{"group": "Orcs"}]}', "several tables, 'train'"),
        ("group,object\nElves,trees\n".encode("utf-16-le").decode(), "byte 0x00 is not UTF-8"),
        ("group,object\nEl\0ves,trees\n", "line 2: the byte 0x00"),
    ],
)
def test_what_holds_no_table_is_refused_at_both_readers(
    text: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    with pytest.raises(DataError, match=why):
        list(read_triples(path, detect_format(path), TripleColumns()))
    with pytest.raises(DataError, match=why):
        read_identities(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_without_their_mark_are_read_when_named(
    encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "groups.csv"
    path.write_bytes("group,category\nÉlves,folk\n".encode(encoding))
    with use_fallback_encoding(encoding):
        assert read_identities(path) == {"folk": ("Élves",)}


def test_the_sheet_with_the_columns_is_read_and_of_several_none(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["About this set"])
    for name, group in (("data", "Elves"), ("more", "Orcs")):
        sheet = book.create_sheet(name)
        sheet.append(["group", "category"])
        sheet.append([group, "folk"])
        book.save(path := tmp_path / f"{name}.xlsx")
        if name == "data":
            assert read_identities(path) == {"folk": ("Elves",)}
    with pytest.raises(DataError, match="several sheets, 'data', 'more'"):
        read_identities(path)


def test_scores_in_json_lines_need_not_share_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text('{"sentence": "Elves sing"}\n{"sentence": "Orcs sing", "toxicity": 0.5}\n')
    assert FileScorer("toxicity", str(path)).score(["Orcs sing"])[0].value == 0.5


def test_a_number_is_no_statement(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("statement\n0\n")
    with pytest.raises(DataError, match="'0' is no statement"):
        read_statements(path)


def test_a_byte_that_a_named_encoding_lacks_is_said_with_its_name(
    tmp_path: Path, texts: Texts
) -> None:
    path = tmp_path / "groups.txt"
    path.write_bytes("Crème\n".encode("mac_roman"))  # 0x8f, which cp1252 lacks
    with use_fallback_encoding("cp1252"), texts.raises(DataError):
        read_identities(path)
    with use_fallback_encoding("mac_roman"):
        assert read_identities(path) == {"": ("Crème",)}


def qualtrics(rows: list[str]) -> str:
    return "\n".join([rows[0], "What is it?,What is it?", '"{""ImportId"":""Q1""}",x', *rows[1:]])


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF8 + b'[{"name": "Ana", "group": "Thai women"}]',
        '[{"name": "Ana", "group": "Thai women"}]'.encode("utf-16"),
        b"name,group\nAna,Thai women\n,\n# the end\n",
        qualtrics(["name,group", "Ana,Thai women"]).encode(),
    ],
    ids=["JSON with a mark", "JSON in UTF-16", "an empty row and a comment", "Qualtrics"],
)
def test_forms_of_a_table_of_which_nothing_is_taken_for_a_row(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    assert [row for _, row in read_table(path, ["name", "group"]).rows] == [
        {"name": "Ana", "group": "Thai women"}
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Names\nname,group\nAna,Thai women\n", "line 2 names the columns: delete what is above"),
        ("name,\nname,group\nAna,Thai women\n", "line 2 names the columns"),
        ("name | group\n:--- | :---\nAna | Thai women\n", "a table in Markdown"),
        ('name\tgroup\nAna\t"Thai women\nEva\tThai women\n', "opened and not closed"),
        ('name\tgroup\n"Ana\tThai\n"Eva\tThai\n', "opened and not closed"),
        ('name,group\nAna,Thai women\nEva,"Thai women\nBea,x\n', "opened and not closed"),
        ('[{"name": ["Ana"], "group": "Thai women"}]', "row 1: name is a list"),
        ('{"name": "x", "resources": [{"path": "a.csv"}]}', "describes a data set"),
        ("HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!0", "is a SAS file"),
        ("ASCII SPSS PORT FILE", "is an SPSS file"),
    ],
)
def test_what_would_lose_or_invent_rows_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=why) as caught:
        list(read_table(path, ["name", "group"]).rows)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("start", [b"r\x02\x01\x00", b"s\x01\x01\x00"])
def test_old_stata_files_are_refused_by_name(start: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.dta").write_bytes(start + bytes(50))
    with pytest.raises(DataError, match="is a Stata file"):
        read_table(tmp_path / "a.dta")


LICENCE = """MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LICENCE, "is prose whose lines are broken"),
        ("-DOCSTART- -X- O\n\nElves NNP B-GRP\n", "in CoNLL's form"),
        ("Elves NNP B-GRP\nsing VBP O\n", "in CoNLL's form"),
        ("T1\tGroup 0 5\tElves\nR1\tsays Arg1:T1 Arg2:T2\n", "brat's annotations"),
        ("https://x.org/a\nhttps://x.org/b\n", "is an address"),
        ("/*O_o*/\nf({});\n", "is a program"),
        ('They sing,all\n"They love long, cold days",all\n', "has no column 'statement'"),
    ],
)
def test_what_is_no_list_of_statements_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "st.txt").write_text(text)
    with pytest.raises(DataError, match=why):
        read_statements(tmp_path / "st.txt")


def test_a_list_of_long_and_short_texts_is_no_prose(tmp_path: Path) -> None:
    """Some begin in small letters, and none ends a sentence."""
    lines = ["They love long walks in the cold rain with all their friends", "hate rain", "sing"]
    (tmp_path / "st.txt").write_text("\n".join(lines))
    assert read_statements(tmp_path / "st.txt") == {"": tuple(lines)}


@pytest.mark.parametrize("read", [read_identities, read_seeds])
def test_a_sentence_is_no_group(
    read: Callable[[str], object], tmp_path: Path, texts: Texts
) -> None:
    (tmp_path / "groups.txt").write_text("Elves\nPlease cite us if you use it.\n")
    with texts.raises(DataError):
        read(str(tmp_path / "groups.txt"))
    (tmp_path / "groups.txt").write_text("Elves\npeople of the U.S.\n")
    read(str(tmp_path / "groups.txt"))


def test_a_folder_is_no_file(tmp_path: Path, texts: Texts) -> None:
    with texts.raises(DataError):
        read_table(tmp_path)


def test_utf_16_without_its_mark_is_told_by_its_zeros(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("name,group\n".encode("utf-16-le"))
    with in_commands(), pytest.raises(DataError, match=r"--encoding .utf-16-le"):
        read_table(tmp_path / "a.csv")
