"""Write MODEL_CARD.md: what regard is for, how good it is, and at what it fails."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.selection import SENSE
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._base import REGARD
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.statistics import rank_correlation
from training.scorers.counterfactual import spread
from training.scorers.data import (
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
    story_table, story_classes = narrative_tables(stories)
    fields = {
        "version": scorer.version,
        "encoder_sha": _minilm.WEIGHTS_SHA256,
        "size": f"{weights.stat().st_size / 1000:.0f} kB",
        "sentences": str(len(sentences)),
        "clusters": str(len({example.cluster for example in sentences})),
        "balance": _counts(sentences),
        "narratives": str(len(told)),
        "forms": str(len({example.source for example in told})),
        "tones": _counts(told),
        "identities": str(len(narratives) - len(told)),
        "phrases": str(len(read_phrases())),
        "crawled": str(len(crawled)),
        "crawled_balance": _counts(crawled),
        "learnt": str(len(learnt)),
        "learnt_crawls": str(len({e.cluster for e in learnt})),
        "learnt_balance": _counts(learnt),
        "hatecheck": str(len({e.text for e in held_out.hatecheck.examples})),
        "held_forms": ", ".join(sorted({e.source for e in stories.examples} - {"identity"})),
        "regard_table": regard_table(held_out),
        "story_table": story_table,
        "story_classes": story_classes,
        "crawled_table": crawled_table(held_out.crawled),
        "fresh_table": fresh_table(scorer),
        "reliability_table": reliability_table(held_out.crawled),
        "identity_table": identity_table(scorer, stories),
        "seegull_table": seegull_table(held_out.seegull),
        **_about_seegull(held_out.seegull),
        "class_table": class_table(*_truth_and_guess(own)),
        "form_table": _share_table(own, "form"),
        "kind_table": _share_table(own, "kind"),
        "function_table": _function_table(held_out.hatecheck),
        "counterfactual": spread(weights, ("regard",)),
    }
    card = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in fields.items():
        card = card.replace("{" + name + "}", value)
    return card


def _counts(examples: Sequence[Example]) -> str:
    """How many of each label: "3 positive, 1 none"."""
    counts = Counter(example.regard for example in examples)
    labels = (*reversed(REGARD), "mixed", "none")
    return ", ".join(f"{counts[label]} {label}" for label in labels if counts[label])


def regard_table(held_out: HeldOut) -> str:
    """Accuracy, macro F1 and AUC of the majority, of VADER and of the readers."""
    lines = [
        "| held out | scorer | accuracy | macro F1 | AUC |",
        "| --- | --- | --- | --- | --- |",
        *_regard_rows("own sentences, whole clusters", held_out.sentences),
        *_regard_rows("HateCheck, whole functions", held_out.hatecheck),
    ]
    return "\n".join(lines)


def _regard_rows(name: str, part: Predicted) -> list[str]:
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
        cells = " | ".join(shown(figure, ".3f") for figure in figures)
        rows.append(f"| {name} (n={len(truth)}) | {scorer} | {cells} |")
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


def narrative_tables(part: Predicted) -> tuple[str, str]:
    """On narrative sentences whose whole forms were left out: the scorers, and the classes.

    Sentences that speak well and ill alike have no right label and are left out.
    """
    kept = [i for i, e in enumerate(part.examples) if e.regard in REGARD and e.source != "identity"]
    told = [part.examples[i] for i in kept]
    truth = np.array([REGARD.index(e.regard or "") for e in told])
    forms = [e.source for e in told]
    lines = ["| scorer | accuracy | macro F1 |", "| --- | --- | --- |"]
    most = np.full(len(truth), np.bincount(truth).argmax())
    guesses = {
        "majority": most,
        "VADER": vader([e.text for e in told])[0].argmax(1),
        "**readers**": part.logits[kept].argmax(1),
    }
    for name, guess in guesses.items():
        right = bootstrap(lambda i, g=guess: accuracy(truth[i], g[i]), forms)  # type: ignore[misc]
        f1 = bootstrap(lambda i, g=guess: macro_f1(truth[i], g[i]), forms)  # type: ignore[misc]
        lines.append(f"| {name} | {shown(right, '.3f')} | {shown(f1, '.3f')} |")
    return "\n".join(lines), class_table(truth, guesses["**readers**"])


def class_table(truth: Ints, guess: Ints) -> str:
    """Confusion matrix with each class's precision, recall and F1."""
    table = confusion(truth, guess, len(REGARD))
    lines = [
        f"| truth | {' | '.join(f'said {label}' for label in REGARD)} | precision | recall | F1 |",
        "| --- |" + " --- |" * (len(REGARD) + 3),
    ]
    for k, label in enumerate(REGARD):
        precision = table[k, k] / max(1, table[:, k].sum())
        recall = table[k, k] / max(1, table[k].sum())
        f1 = 2 * table[k, k] / max(1, table[:, k].sum() + table[k].sum())
        counts = " | ".join(map(str, table[k]))
        lines.append(f"| {label} | {counts} | {precision:.3f} | {recall:.3f} | {f1:.3f} |")
    return "\n".join(lines)


def crawled_table(part: Predicted) -> str:
    """On crawled statements, each crawl left out as a whole: accuracy, and how often the negative
    label is right. What says nothing, or speaks well and ill alike, counts as neutral. The last row
    is of the statements that figures keep by default."""
    statements, probabilities = part.examples, _probabilities(part)
    said = [REGARD[k] for k in probabilities.argmax(1)]
    truth = [e.regard if e.regard in REGARD else "neutral" for e in statements]
    values = probabilities[:, 2] - probabilities[:, 0]
    lines = [
        "| crawl | pack | n | accuracy | called negative | rightly | its precision | its recall "
        "| precision below -0.7 |",
        "| --- |" + " --- |" * 8,
    ]
    sense = OfflineScorer("acceptability").score([e.text for e in statements])
    everything = range(len(statements))
    parts = {
        crawl: [i for i in everything if statements[i].cluster == crawl]
        for crawl in sorted({e.cluster for e in statements})
    }
    parts["all"] = list(everything)
    parts["all that make sense"] = [i for i in everything if sense[i].value >= SENSE]
    for crawl, rows in parts.items():
        flagged = [i for i in rows if said[i] == "negative"]
        rightly = sum(truth[i] == "negative" for i in flagged)
        negative = sum(truth[i] == "negative" for i in rows)
        sure = [truth[i] == "negative" for i in rows if values[i] < SURE]
        right = np.mean([said[i] == truth[i] for i in rows])
        pack = "" if crawl.startswith("all") else statements[rows[0]].kind
        lines.append(
            f"| {crawl} | {pack} | {len(rows)} | {right:.3f} | {len(flagged)} | {rightly} | "
            f"{rightly / max(1, len(flagged)):.3f} | {rightly / max(1, negative):.3f} | "
            f"{sum(sure) / max(1, len(sure)):.3f} ({len(sure)}) |"
        )
    return "\n".join(lines)


def fresh_table(scorer: OfflineScorer) -> str:
    """On statements of a crawl of its own: each label's precision and recall, with intervals."""
    labelled = [(text, regard) for text, regard, _ in read_fresh() if regard]
    truth = np.array([REGARD.index(r) if r in REGARD else 1 for _, r in labelled])
    said = scorer.score([text for text, _ in labelled])
    guess = np.array([REGARD.index(judgement.label) for judgement in said])
    rows = [str(n) for n in range(len(truth))]
    right = bootstrap(lambda i: accuracy(truth[i], guess[i]), rows)
    lines = [
        f"{len(rows)} statements, right: {shown(right, '.2f')}.",
        "",
        "| label | read | said | precision | recall |",
        "| --- | --- | --- | --- | --- |",
    ]
    for k, label in enumerate(REGARD):
        read, called = truth == k, guess == k
        precision = bootstrap(lambda i, a=read, b=called: share(a[i], b[i]), rows)  # type: ignore[misc]
        recall = bootstrap(lambda i, a=read, b=called: share(b[i], a[i]), rows)  # type: ignore[misc]
        cells = f"{shown(precision, '.2f')} | {shown(recall, '.2f')}"
        lines.append(f"| {label} | {read.sum()} | {called.sum()} | {cells} |")
    return "\n".join(lines)


def reliability_table(part: Predicted) -> str:
    """By fifths of the probability of the label: how many statements of held-out crawls, the mean
    probability, and the share that is right."""
    probabilities = _probabilities(part)
    sure, guess = probabilities.max(1), probabilities.argmax(1)
    truth = np.array([REGARD.index(e.regard) if e.regard in REGARD else 1 for e in part.examples])
    lines = ["| probability of the label | n | mean | right |", "| --- | --- | --- | --- |"]
    for low, high in pairwise((1 / 3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)):
        own = (sure >= low) & (sure < high)
        if own.any():
            right = np.mean(truth[own] == guess[own])
            bounds = f"{low:.2f} to {min(high, 1):.2f}"
            lines.append(f"| {bounds} | {own.sum()} | {sure[own].mean():.2f} | {right:.2f} |")
    return "\n".join(lines)


def identity_table(scorer: OfflineScorer, part: Predicted) -> str:
    """On sentences that say no more than that somebody is gay, a Muslim, deaf ...: regard as
    shipped (trained on them) and where they were left out of training."""
    own = [e for e in read_narratives() if e.source == "identity"]
    soft = _probabilities(part)[[e.source == "identity" for e in part.examples]]
    shipped = np.array([judgement.value for judgement in scorer.score([e.text for e in own])])
    lines = ["| sentences | n | lowest | mean | highest | below -0.3 |", "| --- |" + " --- |" * 5]
    for name, values in (("as shipped", shipped), ("left out", soft[:, 2] - soft[:, 0])):
        lines.append(
            f"| {name} | {len(values)} | {values.min():.2f} | {values.mean():.2f} | "
            f"{values.max():.2f} | {int((values < -0.3).sum())} |"
        )
    return "\n".join(lines)


def seegull_table(part: Predicted) -> str:
    """Spearman's rho of regard with mean human offensiveness, on two halves of the identities, and
    the AUC of telling what offends (mean above 0) from what does not."""
    texts, who = [e.text for e in part.examples], [e.source for e in part.examples]
    half = {name: HALVES[k % 2] for k, name in enumerate(sorted(set(who)))}
    probabilities, offence = _probabilities(part), _offence(part)
    values = probabilities[:, 2] - probabilities[:, 0]
    unkind = vader(texts)[1]
    lines = [
        "| identities | stereotypes | rho, regard | rho, VADER | AUC, regard | AUC, VADER |",
        "| --- |" + " --- |" * 5,
    ]
    offends = (offence > 0).astype(np.int64)
    parts = {name: np.array([half[identity] == name for identity in who]) for name in HALVES}
    parts["all"] = np.ones(len(who), bool)
    parts["all but stances"] = ~_stances(part)
    for name, kept in parts.items():
        rho = bootstrap(
            lambda i, v=values[kept], o=offence[kept]: rank_correlation(v[i], o[i]),  # type: ignore[misc]
            [identity for identity, keep in zip(who, kept, strict=True) if keep],
        )
        lines.append(
            f"| {name} | {kept.sum()} | {shown(rho, '.2f')} | "
            f"{-rank_correlation(unkind[kept], offence[kept]):.2f} | "
            f"{auc(offends[kept], -values[kept]):.2f} | {auc(offends[kept], unkind[kept]):.2f} |"
        )
    return "\n".join(lines)


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


def _share_table(part: Predicted, by: str) -> str:
    """Regard accuracy for each surface form or kind of group."""
    truth, guess = _truth_and_guess(part)
    right = guess == truth
    keys = np.array([e.source if by == "form" else e.kind for e in part.examples])
    lines = [f"| {by} | n | regard accuracy |", "| --- | --- | --- |"]
    for key, count in Counter(keys.tolist()).most_common():
        lines.append(f"| {key} | {count} | {right[keys == key].mean():.2f} |")
    return "\n".join(lines)


def _function_table(part: Predicted) -> str:
    """Accuracy for each of HateCheck's functions, none of it seen in training."""
    truth, guess = _truth_and_guess(part)
    functions = np.array([example.source for example in part.examples])
    lines = ["| function | n | regard accuracy |", "| --- | --- | --- |"]
    for function in sorted(set(functions.tolist())):
        own = functions == function
        lines.append(f"| {function} | {own.sum()} | {np.mean(truth[own] == guess[own]):.2f} |")
    return "\n".join(lines)
