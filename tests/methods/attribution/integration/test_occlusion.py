"""Which words drive a score, by leaving them out; kept in the store and shown in the report."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kgbias.graph.selection import select_most_hurtful
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group
from kgbias.measure.scorers import Judgement
from kgbias.measure.scoring import measure_run
from kgbias.methods.attribution.word_effects import attribute_triples, occlude
from kgbias.report.page import standard_sections
from kgbias.report.run_data import RunData
from tests.report_data import measured_run

pytestmark = pytest.mark.integration
GROUPS = [Group("Women", "gender"), Group("Men", "gender")]


class Counter:
    """Toxicity is a tenth for each "bad"."""

    measure, name, version, language = "toxicity", "counter", "1", None

    def __init__(self) -> None:
        self.read = 0

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        self.read += len(texts)
        return [Judgement(t.lower().count("bad") / 10, "", {}) for t in texts]


def test_occlusion_finds_the_words() -> None:
    ((words, effects, score),) = occlude(Counter(), ["Men are bad and bad."])
    assert words == ["Men", "are", "bad", "and", "bad."] and score == 0.2
    assert effects == pytest.approx([0, 0, 0.1, 0, 0.1])
    ((long, some, _),) = occlude(Counter(), ["bad " * 1000])
    assert len(long) == len(some) == 60
    assert occlude(Counter(), []) == []


def test_attribution_is_kept_and_shown(store: SQLiteStore) -> None:
    run = measured_run(store, GROUPS, ["bad food", "<i>rain</i>"], with_scores=False)
    scorer = Counter()
    measure_run(StoredRun(store, run), [scorer])
    chosen = select_most_hurtful(store.triples(run.id), "toxicity", 2)
    assert all("bad" in t.object for t in chosen)
    found = attribute_triples(StoredRun(store, run), [scorer], chosen)
    assert len(found) == 2 and max(found[0].effects) == pytest.approx(0.1)
    read = scorer.read
    assert (
        attribute_triples(StoredRun(store, run), [scorer], chosen) == found and scorer.read == read
    )
    (section,) = (
        s for s in standard_sections(RunData(StoredRun(store, run))) if s.anchor == "words"
    )
    assert 'class="up"' in section.html and "bad" in section.html
    assert "toxicity, by occlusion" in section.html
    store.save_attributions([replace(a, method="occlusion@1", tokens=("old",)) for a in found])
    (same,) = (s for s in standard_sections(RunData(StoredRun(store, run))) if s.anchor == "words")
    assert same.html == section.html
