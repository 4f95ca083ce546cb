"""Write MODEL_CARD.md: what the heads are for, how good they are, and at what they fail."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgbias.estimate import Estimate
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._base import REGARD
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.measure.training.counterfactual import spread
from kgbias.measure.training.data import (
    Example,
    read_crawled,
    read_hatecheck,
    read_narratives,
    read_phrases,
    read_sentences,
)
from kgbias.measure.training.evaluation import (
    Floats,
    HeldOut,
    Ints,
    accuracy,
    auc,
    bootstrap,
    macro_auc,
    macro_f1,
    vader,
)
from kgbias.measure.training.regard_card import (
    class_table,
    crawled_table,
    identity_table,
    narrative_tables,
    seegull_table,
)

RELABELLED = 40  # of sentences.tsv, when hardship became negative
_TEMPLATE = Path(__file__).with_name("card_template.md")
_HEADER = (
    "| held out | scorer | accuracy | macro F1 | AUC |",
    "| --- | --- | --- | --- | --- |",
)


def render(
    held_out: HeldOut, heads: Path, hatecheck: Path, seegull: Path, rounds: int, time_taken: str
) -> str:
    """Return the card, in Markdown, for the heads in the file `heads`."""
    parts = (
        ("own sentences, whole clusters", held_out.sentences, held_out.own),
        ("HateCheck, whole template families", held_out.by_family, held_out.families),
        ("HateCheck, whole functions", held_out.by_function, held_out.functions),
    )
    regard, toxicity = [*_HEADER], [*_HEADER]
    for name, examples, logits in parts:
        regard += _regard_rows(name, examples, logits)
        toxicity += _toxicity_rows(name, examples, logits)
    scorer = OfflineScorer("regard", heads)
    sentences, narratives = read_sentences(), read_narratives()
    crawled = {use: read_crawled(use) for use in ("train", "development", "test")}
    counts = Counter(example.regard for example in sentences)
    told = [example for example in narratives if example.source != "identity"]
    tones = Counter(example.regard for example in told)
    stories, classes = narrative_tables(held_out.narratives, held_out.stories)
    fields = {
        "version": scorer.version,
        "encoder_sha": _minilm.WEIGHTS_SHA256,
        "size": f"{heads.stat().st_size / 1000:.0f} kB",
        "time": time_taken,
        "sentences": str(len(sentences)),
        "clusters": str(len({example.cluster for example in sentences})),
        "balance": ", ".join(f"{counts[label]} {label}" for label in reversed(REGARD)),
        "toxic": str(sum(bool(example.toxic) for example in sentences)),
        "hatecheck": str(len(read_hatecheck(hatecheck))),
        "rounds": "Five rounds" if rounds == 5 else f"{rounds} of five rounds",
        "relabelled": str(RELABELLED),
        "narratives": str(len(told)),
        "forms": str(len({example.source for example in told})),
        "tones": ", ".join(f"{tones[label]} {label}" for label in (*reversed(REGARD), "mixed")),
        "identities": str(len(narratives) - len(told)),
        "phrases": str(len(read_phrases())),
        "crawled": str(sum(map(len, crawled.values()))),
        "trained": str(len(crawled["train"])),
        "nonsense": str(sum(e.regard == "none" for e in crawled["train"])),
        "tested": str(len(crawled["test"])),
        "held_forms": ", ".join(sorted({e.source for e in held_out.narratives} - {"identity"})),
        "story_table": stories,
        "story_classes": classes,
        "crawled_table": crawled_table(scorer),
        "identity_table": identity_table(scorer, held_out.narratives, held_out.stories),
        "seegull_table": seegull_table(scorer, seegull),
        "regard_table": "\n".join(regard),
        "toxicity_table": "\n".join(toxicity),
        "class_table": class_table(*_truth_and_guess(held_out.sentences, held_out.own)),
        "form_table": _share_table(held_out.sentences, held_out.own, "form"),
        "kind_table": _share_table(held_out.sentences, held_out.own, "kind"),
        "function_table": _function_table(held_out.by_function, held_out.functions),
        "counterfactual": spread(heads),
    }
    card = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in fields.items():
        card = card.replace("{" + name + "}", value)
    return card


def _regard_rows(name: str, examples: Sequence[Example], logits: Floats) -> list[str]:
    kept = np.array([example.regard is not None for example in examples])
    labelled = [example for example in examples if example.regard]
    truth = np.array([REGARD.index(example.regard or "") for example in labelled])
    most = np.eye(len(REGARD))[np.full(len(truth), np.bincount(truth).argmax())]
    clusters = _clusters(name, labelled)
    rows = []
    for scorer, scores in (
        ("majority", most),
        ("VADER", vader([example.text for example in labelled])[0]),
        ("**heads**", logits[kept, : len(REGARD)]),
    ):
        guess, soft = scores.argmax(1), _softmax(scores)
        figures = (
            bootstrap(lambda i, guess=guess: accuracy(truth[i], guess[i]), clusters),  # type: ignore[misc]
            bootstrap(lambda i, guess=guess: macro_f1(truth[i], guess[i]), clusters),  # type: ignore[misc]
            bootstrap(lambda i, s=soft: macro_auc(truth[i], s[i]), clusters),  # type: ignore[misc]
        )
        rows.append(f"| {name} (n={len(truth)}) | {scorer} | {_shown(figures)} |")
    return rows


def _toxicity_rows(name: str, examples: Sequence[Example], logits: Floats) -> list[str]:
    kept = np.array([example.toxic is not None for example in examples])
    labelled = [example for example in examples if example.toxic is not None]
    truth = np.array([int(example.toxic or 0) for example in labelled])
    clusters = _clusters(name, labelled)
    rows = []
    for scorer, scores in (
        ("majority", np.full(len(truth), float(truth.mean() >= 0.5))),
        ("VADER", vader([example.text for example in labelled])[1]),
        ("**heads**", 1 / (1 + np.exp(-logits[kept, len(REGARD)]))),
    ):
        guess = (scores >= 0.5).astype(np.int64)
        figures = (
            bootstrap(lambda i, guess=guess: accuracy(truth[i], guess[i]), clusters),  # type: ignore[misc]
            bootstrap(lambda i, guess=guess: macro_f1(truth[i], guess[i]), clusters),  # type: ignore[misc]
            bootstrap(lambda i, scores=scores: auc(truth[i], scores[i]), clusters),  # type: ignore[misc]
        )
        rows.append(f"| {name} (n={len(truth)}) | {scorer} | {_shown(figures)} |")
    return rows


def _shown(figures: Sequence[Estimate]) -> str:
    """Figures with their intervals as cells of a table."""
    return " | ".join(f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in figures)


def _clusters(name: str, examples: Sequence[Example]) -> list[str]:
    """Name what is resampled together: functions where those were held out, else clusters."""
    return [e.source if name.endswith("functions") else e.cluster for e in examples]


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    normal: Floats = powers / powers.sum(axis=1, keepdims=True)
    return normal


def _truth_and_guess(examples: Sequence[Example], logits: Floats) -> tuple[Ints, Ints]:
    truth = np.array([REGARD.index(example.regard or "") for example in examples])
    return truth, logits[:, : len(REGARD)].argmax(1)


def _share_table(examples: Sequence[Example], logits: Floats, by: str) -> str:
    """Regard accuracy for each surface form or kind of group."""
    truth, guess = _truth_and_guess(examples, logits)
    right = guess == truth
    keys = np.array([example.source if by == "form" else example.kind for example in examples])
    lines = [f"| {by} | n | regard accuracy |", "| --- | --- | --- |"]
    for key, count in Counter(keys.tolist()).most_common():
        lines.append(f"| {key} | {count} | {right[keys == key].mean():.2f} |")
    return "\n".join(lines)


def _function_table(examples: Sequence[Example], logits: Floats) -> str:
    """Accuracy for each of HateCheck's functions, none of it seen in training."""
    lines = ["| function | n | toxicity accuracy | regard accuracy |", "| --- | --- | --- | --- |"]
    for source in sorted({example.source for example in examples}):
        rows = [i for i, example in enumerate(examples) if example.source == source]
        toxic = [
            (logits[i, len(REGARD)] >= 0) == examples[i].toxic
            for i in rows
            if examples[i].toxic is not None
        ]
        regard = [
            REGARD[logits[i, : len(REGARD)].argmax()] == examples[i].regard
            for i in rows
            if examples[i].regard
        ]
        shares = (f"{np.mean(right):.2f}" if right else "no label" for right in (toxic, regard))
        lines.append(f"| {source} | {len(rows)} | {' | '.join(shares)} |")
    return "\n".join(lines)
