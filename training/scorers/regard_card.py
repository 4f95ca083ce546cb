"""Write MODEL_CARD.md: what regard is for, how good it is, and where it fails."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.selection import MIN_ACCEPTABILITY
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import rank_correlation
from training.scorers.card import Rows, fill
from training.scorers.counterfactual import spread
from training.scorers.data import (
    REGARD,
    Example,
    is_stance,
    read_crawled,
    read_fresh,
    read_learnt,
    read_narratives,
    read_phrases,
    read_sentences,
)
from training.scorers.evaluation import (
    Floats,
    HeldOut,
    Ints,
    Predicted,
    accuracy,
    auc,
    bootstrap,
    confusion,
    macro_auc,
    macro_f1,
    share,
    shown,
    vader,
)

NAME = "MODEL_CARD.md"
_TEMPLATE = Path(__file__).with_name("regard_card_template.md")
HALVES = ("development", "held out")
SURE = -0.7


def render(held_out: HeldOut, weights: Path) -> str:
    """Return the card, in Markdown, for the readers in the file `weights`."""
    scorer = OfflineScorer("regard", weights)
    sentences, narratives, crawled = read_sentences(), read_narratives(), read_crawled()
    learnt = read_learnt()
    told = [example for example in narratives if example.source != "identity"]
    own, stories = held_out.sentences, held_out.narratives
    story, story_classes = narrative_rows(stories)
    fresh_right, fresh = fresh_rows(scorer)
    fields = {
        "version": scorer.version,
        "encoder_sha": _minilm.WEIGHTS_SHA256,
        "size": f"{weights.stat().st_size / 1000:.0f}",
        "sentences": len(sentences),
        "clusters": len({example.cluster for example in sentences}),
        "balance": _counts(sentences),
        "narratives": len(told),
        "forms": len({example.source for example in told}),
        "tones": _counts(told),
        "identities": len(narratives) - len(told),
        "phrases": len(read_phrases()),
        "crawled": len(crawled),
        "crawled_balance": _counts(crawled),
        "learnt": len(learnt),
        "learnt_crawls": len({e.cluster for e in learnt}),
        "learnt_balance": _counts(learnt),
        "hatecheck": len({e.text for e in held_out.hatecheck.examples}),
        "held_forms": ", ".join(sorted({e.source for e in stories.examples} - {"identity"})),
        "regard": regard_rows(held_out),
        "story": story,
        "story_classes": story_classes,
        "crawled_rows": crawled_rows(held_out.crawled),
        "fresh_n": fresh_right.n,
        "fresh_right": shown(fresh_right, ".2f"),
        "fresh": fresh,
        "reliability": reliability_rows(held_out.crawled),
        "identity": identity_rows(scorer, stories),
        "seegull": seegull_rows(held_out.seegull),
        **_about_seegull(held_out.seegull),
        "class": class_rows(*_truth_and_guess(own)),
        "form": _share_rows(own, "form"),
        "kind": _share_rows(own, "kind"),
        "function": _function_rows(held_out.hatecheck),
        "counterfactual": spread(weights, ("regard",)),
    }
    return fill(_TEMPLATE, fields)


def _counts(examples: Sequence[Example]) -> str:
    """The number of each label: "3 positive, 1 none"."""
    counts = Counter(example.regard for example in examples)
    labels = (*reversed(REGARD), "mixed", "none")
    return ", ".join(f"{counts[label]} {label}" for label in labels if counts[label])


def regard_rows(held_out: HeldOut) -> Rows:
    """Accuracy, macro F1 and AUC of the majority, of VADER and of the readers."""
    return [
        *_rows_of("own sentences, whole clusters", held_out.sentences),
        *_rows_of("HateCheck, whole functions", held_out.hatecheck),
    ]


def _rows_of(name: str, part: Predicted) -> Rows:
    truth, _ = _truth_and_guess(part)
    most = np.eye(len(REGARD))[np.full(len(truth), np.bincount(truth).argmax())]
    clusters = [example.cluster or example.source for example in part.examples]
    rows = []
    for scorer, scores in (
        ("majority", most),
        ("VADER", vader([example.text for example in part.examples])[0]),
        ("**readers**", part.logits),
    ):
        guess, soft = scores.argmax(1), _softmax(scores)
        figures = (
            bootstrap(lambda i, g=guess: accuracy(truth[i], g[i]), clusters),  # type: ignore[misc]
            bootstrap(lambda i, g=guess: macro_f1(truth[i], g[i]), clusters),  # type: ignore[misc]
            bootstrap(lambda i, s=soft: macro_auc(truth[i], s[i]), clusters),  # type: ignore[misc]
        )
        cells = (shown(figure, ".3f") for figure in figures)
        rows.append((f"{name} (n={len(truth)})", scorer, *cells))
    return rows


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    normal: Floats = powers / powers.sum(axis=1, keepdims=True)
    return normal


def _probabilities(part: Predicted) -> Floats:
    return _softmax(part.logits)


def _truth_and_guess(part: Predicted) -> tuple[Ints, Ints]:
    truth = np.array([REGARD.index(example.regard or "") for example in part.examples])
    return truth, part.logits.argmax(1)


def narrative_rows(part: Predicted) -> tuple[Rows, Rows]:
    """On narrative sentences with whole forms left out: the scorers, and the classes.

    Sentences that speak both well and ill have no right label and are left out.
    """
    kept = [i for i, e in enumerate(part.examples) if e.regard in REGARD and e.source != "identity"]
    told = [part.examples[i] for i in kept]
    truth = np.array([REGARD.index(e.regard or "") for e in told])
    forms = [e.source for e in told]
    rows = []
    most = np.full(len(truth), np.bincount(truth).argmax())
    guesses = {
        "majority": most,
        "VADER": vader([e.text for e in told])[0].argmax(1),
        "**readers**": part.logits[kept].argmax(1),
    }
    for name, guess in guesses.items():
        right = bootstrap(lambda i, g=guess: accuracy(truth[i], g[i]), forms)  # type: ignore[misc]
        f1 = bootstrap(lambda i, g=guess: macro_f1(truth[i], g[i]), forms)  # type: ignore[misc]
        rows.append((name, shown(right, ".3f"), shown(f1, ".3f")))
    return rows, class_rows(truth, guesses["**readers**"])


def class_rows(truth: Ints, guess: Ints) -> Rows:
    """Confusion matrix with each class's precision, recall and F1."""
    table = confusion(truth, guess, len(REGARD))
    rows = []
    for k, label in enumerate(REGARD):
        precision = table[k, k] / max(1, table[:, k].sum())
        recall = table[k, k] / max(1, table[k].sum())
        f1 = 2 * table[k, k] / max(1, table[:, k].sum() + table[k].sum())
        rows.append((label, *table[k], f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}"))
    return rows


def crawled_rows(part: Predicted) -> Rows:
    """On crawled statements, with each crawl left out as a whole: accuracy, and how often the
    negative label is right. What says nothing, or speaks both well and ill, counts as neutral. The
    last row is for the statements that figures keep by default."""
    statements, probabilities = part.examples, _probabilities(part)
    said = [REGARD[k] for k in probabilities.argmax(1)]
    truth = [e.regard if e.regard in REGARD else "neutral" for e in statements]
    values = probabilities[:, 2] - probabilities[:, 0]
    found = []
    sense = OfflineScorer("acceptability").score([e.text for e in statements])
    everything = range(len(statements))
    parts = {
        crawl: [i for i in everything if statements[i].cluster == crawl]
        for crawl in sorted({e.cluster for e in statements})
    }
    parts["all"] = list(everything)
    parts["all that make sense"] = [i for i in everything if sense[i].value >= MIN_ACCEPTABILITY]
    for crawl, rows in parts.items():
        flagged = [i for i in rows if said[i] == "negative"]
        rightly = sum(truth[i] == "negative" for i in flagged)
        negative = sum(truth[i] == "negative" for i in rows)
        sure = [truth[i] == "negative" for i in rows if values[i] < SURE]
        right = np.mean([said[i] == truth[i] for i in rows])
        pack = "" if crawl.startswith("all") else statements[rows[0]].kind
        found.append(
            (
                crawl,
                pack,
                len(rows),
                f"{right:.3f}",
                len(flagged),
                rightly,
                f"{rightly / max(1, len(flagged)):.3f}",
                f"{rightly / max(1, negative):.3f}",
                f"{sum(sure) / max(1, len(sure)):.3f} ({len(sure)})",
            )
        )
    return found


def fresh_rows(scorer: OfflineScorer) -> tuple[Estimate, Rows]:
    """On statements of a separate crawl: accuracy, and each label's precision and recall, with
    intervals."""
    labelled = [(text, regard) for text, regard, _ in read_fresh() if regard]
    truth = np.array([REGARD.index(r) if r in REGARD else 1 for _, r in labelled])
    said = scorer.score([text for text, _ in labelled])
    guess = np.array([REGARD.index(judgement.label) for judgement in said])
    rows = [str(n) for n in range(len(truth))]
    right = bootstrap(lambda i: accuracy(truth[i], guess[i]), rows)
    found = []
    for k, label in enumerate(REGARD):
        read, called = truth == k, guess == k
        precision = bootstrap(lambda i, a=read, b=called: share(a[i], b[i]), rows)  # type: ignore[misc]
        recall = bootstrap(lambda i, a=read, b=called: share(b[i], a[i]), rows)  # type: ignore[misc]
        figures = (shown(precision, ".2f"), shown(recall, ".2f"))
        found.append((label, read.sum(), called.sum(), *figures))
    return right, found


def reliability_rows(part: Predicted) -> Rows:
    """By fifths of the label's probability: the number of statements of held-out crawls, their mean
    probability, and the share that is right."""
    probabilities = _probabilities(part)
    sure, guess = probabilities.max(1), probabilities.argmax(1)
    truth = np.array([REGARD.index(e.regard) if e.regard in REGARD else 1 for e in part.examples])
    rows = []
    for low, high in pairwise((1 / 3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)):
        own = (sure >= low) & (sure < high)
        if own.any():
            right = np.mean(truth[own] == guess[own])
            bounds = f"{low:.2f} to {min(high, 1):.2f}"
            rows.append((bounds, own.sum(), f"{sure[own].mean():.2f}", f"{right:.2f}"))
    return rows


def identity_rows(scorer: OfflineScorer, part: Predicted) -> Rows:
    """On sentences that only say that somebody is gay, a Muslim, deaf ...: regard as shipped
    (trained on them) and when they were left out of training."""
    own = [e for e in read_narratives() if e.source == "identity"]
    soft = _probabilities(part)[[e.source == "identity" for e in part.examples]]
    shipped = np.array([judgement.value for judgement in scorer.score([e.text for e in own])])
    rows = []
    for name, values in (("as shipped", shipped), ("left out", soft[:, 2] - soft[:, 0])):
        figures = (f"{each:.2f}" for each in (values.min(), values.mean(), values.max()))
        rows.append((name, len(values), *figures, (values < -0.3).sum()))
    return rows


def seegull_rows(part: Predicted) -> Rows:
    """Spearman's rho of regard with mean human offensiveness, on two halves of the identities, and
    the AUC of telling what offends (mean above 0) from what does not."""
    texts, who = [e.text for e in part.examples], [e.source for e in part.examples]
    half = {name: HALVES[k % 2] for k, name in enumerate(sorted(set(who)))}
    probabilities, offence = _probabilities(part), _offence(part)
    values = probabilities[:, 2] - probabilities[:, 0]
    unkind = vader(texts)[1]
    rows = []
    offends = (offence > 0).astype(np.int64)
    parts = {name: np.array([half[identity] == name for identity in who]) for name in HALVES}
    parts["all"] = np.ones(len(who), bool)
    parts["all but stances"] = ~_stances(part)
    for name, kept in parts.items():
        rho = bootstrap(
            lambda i, v=values[kept], o=offence[kept]: rank_correlation(v[i], o[i]),  # type: ignore[misc]
            [identity for identity, keep in zip(who, kept, strict=True) if keep],
        )
        figures = (
            -rank_correlation(unkind[kept], offence[kept]),
            auc(offends[kept], -values[kept]),
            auc(offends[kept], unkind[kept]),
        )
        cells = (f"{figure:.2f}" for figure in figures)
        rows.append((name, kept.sum(), shown(rho, ".2f"), *cells))
    return rows


def _offence(part: Predicted) -> Floats:
    return np.array([e.offence for e in part.examples], dtype=np.float64)


def _stances(part: Predicted) -> NDArray[np.bool_]:
    """Which stereotypes are political stances."""
    return np.array([is_stance(e.text) for e in part.examples])


def _about_seegull(part: Predicted) -> dict[str, str]:
    """How many stereotypes are stances, and the largest rho of a score without ties."""
    offence = _offence(part)
    untied = np.argsort(np.argsort(-offence, kind="stable")).astype(np.float64)
    return {
        "stances": str(_stances(part).sum()),
        "ceiling": f"{rank_correlation(untied, offence):.2f}",
    }


def _share_rows(part: Predicted, by: str) -> Rows:
    """Regard accuracy for each surface form or kind of group."""
    truth, guess = _truth_and_guess(part)
    right = guess == truth
    keys = np.array([e.source if by == "form" else e.kind for e in part.examples])
    return [
        (key, count, f"{right[keys == key].mean():.2f}")
        for key, count in Counter(keys.tolist()).most_common()
    ]


def _function_rows(part: Predicted) -> Rows:
    """Accuracy for each of HateCheck's functions, none of it seen in training."""
    truth, guess = _truth_and_guess(part)
    functions = np.array([example.source for example in part.examples])
    rows = []
    for function in sorted(set(functions.tolist())):
        own = functions == function
        rows.append((function, own.sum(), f"{np.mean(truth[own] == guess[own]):.2f}"))
    return rows
