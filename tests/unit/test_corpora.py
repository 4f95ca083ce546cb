"""Documents become a run: chunks with their entities, and what is said of groups in them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import kgbias
from kgbias.errors import DataError, UsageError
from kgbias.ingest.corpus import build_corpus, split_chunks
from tests.hostile import HOSTILE_TEXTS


def letters(texts: Sequence[str]) -> np.ndarray:
    """An embedder to whom names are alike that have the same letters."""
    rows = np.array(
        [[text.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts],
        dtype=np.float64,
    )
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def test_documents_become_chunks_with_overlapping_entities() -> None:
    corpus = build_corpus(
        {"a.txt": "Women live in Oslo. " * 60 + "They know NATO.", "b.txt": "The people of Oslo."},
        letters,
    )
    kinds = [p.kind for p in corpus.passages]
    assert kinds == ["document", "chunk", "chunk", "document", "chunk"]
    first, second = corpus.passages[1:3]
    assert first.properties["entities"] == ["Oslo", "Women"]
    assert "NATO" in second.properties["entities"]
    relations = [r.kind for r in corpus.relations]
    assert relations == ["child", "child", "next", "child"] + 3 * ["entities_overlap"]
    score = corpus.relations[-2].properties
    assert score == {"entities_overlap_score": 0.5, "overlapped_items": [["Oslo", "Oslo"]]}


def test_chunks_hold_whole_sentences() -> None:
    text = "One two three. Four five six! Seven?"
    assert split_chunks(text, 4) == ["One two three.", "Four five six! Seven?"]


def test_a_folder_becomes_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.models.embed.SentenceVectors", lambda **_: letters)
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.md").write_text(
        "Some say that women are weak, and men are strong. Hatred of men is common.\n\n"
        + "\n\n".join(HOSTILE_TEXTS).replace("\0", ""),
        encoding="utf-8",
        errors="replace",
    )
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(folder)
        assert [t.sentence for t in run.triples()] == ["Men are strong.", "Women are weak."]
        assert run.import_result.passages >= 2
        with pytest.raises(UsageError, match="`count` is for tables"):
            study.import_file(folder, count="n")
        with pytest.raises(DataError, match="has no text"):
            (tmp_path / "empty").mkdir()
            study.import_file(tmp_path / "empty")
