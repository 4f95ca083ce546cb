"""The marks of a run held against recorded stereotypes: kept, and shown wherever statements are."""

import csv
import json
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import kgbias
from kgbias.errors import StoreError
from kgbias.explore import beliefs, statements
from kgbias.explore.columns import ColumnBlock
from kgbias.export import write_export
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.stereotypes import (
    BestMatch,
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
    best_matches,
)
from kgbias.graph.types import BeliefRun
from kgbias.io.files import sha256_of
from kgbias.io.progress import SilentProgress
from kgbias.methods import known
from kgbias.methods.known.report_part import stereotype_comparison_exhibits
from kgbias.methods.known.report_part import stereotype_exhibits as of_tables
from kgbias.report.exhibits import run_exhibits
from kgbias.report.multi_run import render_multi_run
from kgbias.report.multi_run_data import MultiRunData
from kgbias.report.page import standard_sections
from kgbias.report.run_data import RunData
from tests.methods.known.test_known import SAID, TABLE, believed, embed
from tests.report_data import shown_rows
from tests.texts import Texts

COLUMNS = ("recorded", "recorded_as", "recorded_source")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """A store with a run, and a table with an entry that a spreadsheet would run."""
    monkeypatch.setattr("kgbias.models.embed.SentenceVectors", lambda **_: embed)
    (tmp_path / "said.csv").write_text(SAID + "Texans,are,=sum\x07,1,states\n", "utf-8")
    (tmp_path / "own.csv").write_text(TABLE + "Texan,=sum\x07,4\n", "utf-8")
    db = str(tmp_path / "kgbias.db")
    with kgbias.open(db) as study:
        study.import_file(tmp_path / "said.csv", name="said")
    return db, tmp_path / "own.csv"


def marks(run: kgbias.Run) -> dict[str, BestMatch]:
    found = best_matches(run.stored.stereotype_matches())
    return {t.sentence: found[t.id] for t in run.stored.triples() if t.id in found}


def test_a_run_keeps_what_it_was_held_against(files: tuple[str, Path]) -> None:
    db, table = files
    believed(db)
    with kgbias.open(db) as study:
        run = study.run("said")
        assert run.stored.stereotype_matches() == []
        found = known.match_stereotypes(run, table)
        (kept,) = run.stored.stereotype_matches()
        assert kept.table == StereotypeTable("own", "", sha256_of(table))
        own = marks(run)
        assert {sentence: mark.mark for sentence, mark in own.items()} == {
            row.triple.sentence: row.mark for row in found.rows
        }
        rude = own["Texans are rude."]
        assert (rude.matched_by, rude.source) == ("words", "own")
        assert rude.entry and (rude.entry.group, rude.entry.offensiveness) == ("Texan", 2.5)
        assert own["Ohioans wear hats."] == BestMatch("new", "own")
        assert "Martians are rude." not in own  # the table lacks them
        for name, share in found.shares.items():
            assert kept.shares[name].as_dict() == share.as_dict()
        assert kept.strongest == found.unrecorded_beliefs
        heard = {(h.group, h.entry.attribute): (h.statements, h.believed) for h in kept.heard}
        assert heard["Texans", "rude"] == (1, True) and heard["Iowans", "rude"] == (1, None)
        assert not study.store.verify()
        table.write_text("group,attribute\nOhioans,hat\n", "utf-8")
        known.match_stereotypes(run, table)
        assert {mark.mark for mark in marks(run).values()} == {"new"}


def test_a_store_that_cannot_be_written_keeps_nothing_and_all_is_found(
    files: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    texts: Texts,
) -> None:
    def refused(*_: object) -> None:
        raise StoreError("it is read-only")

    db, table = files
    with kgbias.open(db) as study:
        monkeypatch.setattr(
            type(study.run("said").stored.store), "save_stereotype_matches", refused
        )
        assert known.match_stereotypes(study.run("said"), table).rows
    texts.check_lines("\n".join(caplog.messages), "is read-only")


def test_of_several_tables_the_strongest_mark_counts() -> None:
    def held(name: str, mark: str, by: str, similarity: float = math.nan) -> StereotypeMatches:
        entry, table = Stereotype(name, "Texan", name * 2), StereotypeTable(name)
        id = None if mark == "new" else entry.uid(table.id)
        return StereotypeMatches(
            table,
            {},
            (StereotypeCount(entry, "T", 1, 0.0),),
            (StereotypeMatch("t", id, mark, by, similarity),),
        )

    a, b = held("a", "new", ""), held("b", "new", "")
    assert best_matches([a, b])["t"] == BestMatch("new", "a, b")
    related = held("c", "related", "meaning", 0.7)
    found = best_matches([a, related, b])["t"]
    assert (found.mark, found.attribute, found.source) == ("related", "cc", "c")
    words, alike = held("d", "known", "words"), held("e", "known", "meaning", 0.99)
    assert best_matches([related, alike, words])["t"].source == "d"
    assert best_matches([related, alike, held("f", "known", "meaning", 0.9)])["t"].source == "e"


def test_the_report_says_that_what_was_found_is_older(files: tuple[str, Path]) -> None:
    db, table = files
    believed(db)
    with kgbias.open(db) as study:
        run = study.run("said")
        known.match_stereotypes(run, table)
        held, asked = run.stored.stereotype_matches(), run.stored.find_all(BeliefRun)
        now = select_statements(run.stored)

        def note(counted: Any, believings: Sequence[BeliefRun]) -> str:
            stored = SimpleNamespace(stereotype_matches=lambda: held)
            data = SimpleNamespace(stored=stored, counted=counted, belief_runs=believings)
            return next(of_tables(cast(RunData, data), "1")).table.note

        assert "when kgbias known was run" not in note(now, asked)
        assert "probed again" not in note(now, asked)
        more = SimpleNamespace(as_dict=lambda: now.as_dict() | {"statements": now.total + 1000})
        assert f"this report counts {now.total + 1000:,}, by another" in note(more, asked)
        nonce = {"kind": "nonce", "category": "x", "tested": 7, "found": 5, "finds": [5]}
        other = {"floor": [nonce], "categories": [{"category": "x", "pairs": 7}]}
        assert "was probed again" in note(now, [replace(b, record=other) for b in asked])
        renamed = [replace(b, model=replace(b.model, display_name="judge 2")) for b in asked]
        assert "renamed since" in note(now, renamed)


def test_exports_have_the_marks(files: tuple[str, Path], tmp_path: Path, texts: Texts) -> None:
    db, table = files
    with kgbias.open(db) as study:
        run = study.run("said")
        before, after = tmp_path / "before.csv", tmp_path / "after.csv"
        write_export(run.stored, before)
        assert "recorded" not in before.read_text("utf-8")
        assert "recorded" not in run.evidence().columns
        known.match_stereotypes(run, table)
        write_export(run.stored, after)
        with after.open(encoding="utf-8", newline="") as file:
            rows = {
                row["sentence"]: [row[name] for name in COLUMNS] for row in csv.DictReader(file)
            }
        assert rows["Texans are rude."] == ["known", "rude", "own"]
        assert rows["Ohioans wear hats."] == ["new", "", "own"]
        assert rows["Martians are rude."] == ["", "", ""]
        assert rows["Texans are =sum\x07."] == ["known", "'=sum\x07", "own"]
        write_export(run.stored, tmp_path / "a.jsonl")
        lines = map(json.loads, (tmp_path / "a.jsonl").read_text("utf-8").splitlines())
        assert [line["recorded_as"] for line in lines if line["recorded"] == "related"] == ["rude"]
        for name in ("a.graphml", "a.gexf", "a.ttl", "a.json", "a.csv-pair"):
            write_export(
                run.stored,
                tmp_path / name,
                name.partition(".")[2]
                if "-" in name
                else "node-link"
                if name == "a.json"
                else None,
            )
        for name in ("a.graphml", "a.gexf"):
            ElementTree.parse(tmp_path / name)  # the entry's control character is not in it
        for path in tmp_path.glob("a*"):
            if path.is_file() and "manifest" not in path.name and "nodes" not in path.name:
                assert "recorded_as" in path.read_text("utf-8"), path
        run.publish(tmp_path / "set")
        card = (tmp_path / "set" / "README.md").read_text("utf-8")
        texts.check_lines(card, "these tables:")
        assert all(f"`{name}`" in card for name in COLUMNS)
        frame = run.evidence().to_frame()
        assert set(frame["recorded"]) == {"known", "related", "new", ""}
        assert list(frame.columns[-3:]) == list(COLUMNS)


def test_the_explorer_has_the_marks(files: tuple[str, Path]) -> None:
    db, table = files
    with kgbias.open(db) as study:
        run = study.run("said")

        def block() -> ColumnBlock:
            made = ColumnBlock()
            found = statements.read_statement_table(
                [run.stored], Selection(min_acceptability=0), SilentProgress()
            )
            beliefs.add_recorded_marks(found, made)
            return made

        assert not block().columns
        known.match_stereotypes(run, table)
        made = block()
        assert {"row.mark", "mark", "row.recorded", "recorded"} <= made.columns.keys()
        texts = b"".join(made._parts).decode("utf-8", "replace")
        assert "not comparedknownrelatednew" in texts
        assert "rude (own, of Texan; matched by words; offensiveness +2.5)" in texts
        assert "nothing similar about this group in own" in texts


def test_the_report_has_the_figures(files: tuple[str, Path]) -> None:
    db, table = files
    with kgbias.open(db) as study:
        run = study.run("said")
        assert not [e for e in run_exhibits(RunData(run.stored)) if "recorded" in e.key]
        known.match_stereotypes(run, table)
        shown = [e for e in run_exhibits(RunData(run.stored)) if "recorded" in e.key]
        (section,) = (s for s in standard_sections(RunData(run.stored), shown))
        assert (section.anchor, section.title) == ("recorded", "Recorded by people")
        believed(db)
        found = known.match_stereotypes(run, table)
        said, unrecorded = (e.table for e in of_tables(RunData(run.stored), "02"))
        rows = {(row[0], row[1]): row[2:] for row in shown_rows(said)}
        share = found.shares["said"].value
        assert rows["recorded stereotypes", "said of their group"] == [f"{share:.1%}", "-", "5"]
        assert rows["recorded stereotypes asked about", "believed of their group"][0] == "50.0%"
        assert "neither true nor common" in said.note and "Martians" in said.note
        assert shown_rows(unrecorded)[0] == [
            "Ohioans",
            "support tea",
            "+3.00",
            "+2.60 to +3.40",
            "5",
        ]


def test_several_runs_are_side_by_side(
    files: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setattr(MultiRunData, "merged_statement_ids", None)  # which loads an encoder
    db, table = files
    believed(db)
    other = table.with_name("other.csv")
    other.write_text("group,predicate,object,category\nTexans,are,rude,states\n", "utf-8")
    with kgbias.open(db) as study:
        study.import_file(other, name="other")
        stored = [study.run(name).stored for name in ("said", "other")]
        known.match_stereotypes(study.run("said"), table)
        assert (
            list(stereotype_comparison_exhibits(MultiRunData(stored), "02")) == []
        )  # the other was held to none
        known.match_stereotypes(study.run("other"), table)
        (found,) = stereotype_comparison_exhibits(MultiRunData(stored), "02")
        alone = next(e.table for e in of_tables(RunData(stored[0]), "02") if e.table)
        with monkeypatch.context() as without_beliefs:
            without_beliefs.setattr(MultiRunData, "beliefs", lambda *_: None)
            page = render_multi_run(MultiRunData(stored))
    assert found.table and [column.name for column in found.table.columns[2::2]] == [
        "said",
        "other",
    ]
    assert [[*row[:5]] for row in shown_rows(found.table)] == shown_rows(alone)
    told = {tuple(row[:2]): row[5:] for row in shown_rows(found.table)}
    assert told["recorded stereotypes", "said of their group"] == ["33.3%", "-", "3"]
    assert told["recorded stereotypes asked about", "believed of their group"] == ["", "", ""]
    texts.check_lines(found.table.note, "different groups")
    assert "Believed: by judge (said)." in found.table.note
    assert 'id="recorded"' in page
