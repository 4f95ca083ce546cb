"""Attribution: which words of a sentence drive its score, by occlusion (Zeiler and Fergus 2014) or
by the gradients of the scorer's network; the words that drive the scores of each group, or of each
cell of the confusion between two scorers; and how far attributions can be relied on.

All gradient methods take a token's part as the sum over dimensions of a vector times a gradient.
The parts of a word's tokens are added up. Tokens of no word ([CLS], [SEP]) keep theirs.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from kgbias.errors import MissingExtra, UsageError, no_such
from kgbias.graph.selection import select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Attribution, Metric, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import spoken_name
from kgbias.measure.scorers import Scorer, check_measure, require_language
from kgbias.measure.scorers._reading import Masking, Readable, Reading
from kgbias.measures import known
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap

_STEPS = (32, 128, 512)
_TEXTS_AT_ONCE = 32  # of them at once
_CLOSE = 0.005  # how far the effects may miss adding up, in units of the score


def gradient_times_input(reading: Reading) -> list[float]:
    """The effect of each word by gradient x input (Shrikumar et al. 2016): its embedding times the
    gradient of the evidence (`Value.evidence`), in log-odds. A first-order estimate."""
    slope = _slope(lambda inputs: reading.value.evidence(reading.logits(inputs)), reading.inputs)
    return _by_word(reading, slope * reading.inputs)


def class_activation(reading: Reading) -> list[float]:
    """The effect of each word by its class activation: the final states of its tokens times the
    gradient of the evidence there, in log-odds. That is Grad-CAM (Selvaraju et al. 2017) without
    its ReLU, so that words against the score are kept, and with the gradient of each position
    instead of their mean."""
    import torch

    assert reading.halves is not None
    below, above = reading.halves
    with torch.no_grad():
        states = below(reading.inputs)
    return _by_word(reading, _slope(lambda x: reading.value.evidence(above(x)), states) * states)


def integrated_gradients(reading: Reading) -> list[float]:
    """The effect of each word by integrated gradients (Sundararajan et al. 2017, as in captum),
    in units of the score: the path from padding tokens in place of every word to the sentence,
    times the mean gradient of the score along it (Gauss-Legendre). Effects add up to the score
    minus that of the blank sentence; steps are added until they do so within 0.005, up to 512."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise MissingExtra("captum", extra="attribution") from error
    from torch.backends import cudnn

    integrated = IntegratedGradients(lambda x: reading.value.score(reading.logits(x)))
    for steps in _STEPS:
        with cudnn.flags(enabled=False):
            parts, off = integrated.attribute(
                reading.inputs,
                baselines=reading.blank,
                n_steps=steps,
                method="gausslegendre",
                internal_batch_size=_TEXTS_AT_ONCE,
                return_convergence_delta=True,
            )
        if abs(float(off)) <= _CLOSE:
            break
    return _by_word(reading, parts.detach())


def _slope(of: Callable[[Any], Any], at: Any) -> Any:
    """The gradient of a value (batch) at a batch of vectors, one for each."""
    import torch

    at = at.detach().clone().requires_grad_(True)
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):  # its GRU has no gradient
        (slope,) = torch.autograd.grad(of(at).sum(), at)
    return slope


def _by_word(reading: Reading, parts: Any) -> list[float]:
    effects = [0.0] * len(reading.words)
    for owner, part in zip(reading.owners, parts[0].sum(-1).tolist(), strict=True):
        if owner is not None:
            effects[owner] += part
    return [round(effect, 6) for effect in effects]


METHODS = {  # each with its version, raised when its effects change
    "occlusion": "occlusion@2",
    "cam": "cam@1",
    "gradient": "gradient@1",
    "integrated": "integrated@1",
}
_GRADIENTS = {
    "cam": class_activation,
    "gradient": gradient_times_input,
    "integrated": integrated_gradients,
}
_LONGEST = 60  # words per sentence that get an effect
_BATCH = 32  # sentences at once

Words = tuple[list[str], list[float], float]
"""The words of a sentence, the effect of each, and the score of the whole."""


def effects(scorer: Scorer, sentences: Sequence[str], method: str = "occlusion") -> list[Words]:
    """The effects of the words of each sentence on its score, by a method of `METHODS`; every
    method covers the same words, the first 60. Above 0: the word raises the score.

    Raises:
        UsageError: the scorer cannot do the method.
    """
    check_methods(scorer, [method])
    if method == "occlusion":
        return occlude(scorer, sentences)
    assert isinstance(scorer, Readable)
    found = []
    for sentence, score in zip(sentences, _values(scorer, sentences), strict=True):
        reading = scorer.reading(sentence)
        by_word = _GRADIENTS[method](reading)
        found.append((reading.words[:_LONGEST], by_word[:_LONGEST], score))
    return found


def check_methods(scorer: Scorer, methods: Sequence[str]) -> None:
    """Raise UsageError unless the scorer can do each of the methods."""
    for method in methods:
        if method not in METHODS:
            raise UsageError(no_such("`method`", method, METHODS))
        if method != "occlusion" and not isinstance(scorer, Readable):
            raise UsageError(
                f"{scorer.name} gives no gradients of {scorer.measure}: use `method` occlusion"
            )
        if method == "cam" and isinstance(scorer, Readable) and not scorer.has_states:
            raise UsageError(
                f"{scorer.name} has no class activation maps, only the offline heads do: "
                "use `method` occlusion, gradient or integrated"
            )


def occlude(scorer: Scorer, sentences: Sequence[str]) -> list[Words]:
    """For each sentence its words, the effect of each, and the score of the whole.

    The effect of a word is the score of the whole sentence minus the score without the word. It is
    measured only from the scorer's answers, so it works for every scorer; effects need not sum to
    the score, since words act together. The words of a mention that the scorer masks are left out
    together. Only the first 60 words are left out, one at a time."""
    texts: list[str] = []
    plans = []
    for sentence in sentences:
        words = scorer.words(sentence) if isinstance(scorer, Masking) else sentence.split()
        start = len(texts)
        texts.append(sentence)
        texts += [without(words, {n}) for n in range(min(len(words), _LONGEST))]
        plans.append((words[:_LONGEST], start))
    values = _values(scorer, texts)
    return [
        (
            words,
            [round(values[start] - values[start + 1 + n], 6) for n in range(len(words))],
            values[start],
        )
        for words, start in plans
    ]


def _values(scorer: Scorer, texts: Sequence[str]) -> list[float]:
    judgements = [judgement for judgement in scorer.score(texts) if judgement]
    if len(judgements) < len(texts):
        raise UsageError(f"{scorer.name} does not judge every text, which attribution needs")
    return [judgement.value for judgement in judgements]


def without(words: Sequence[str], places: Collection[int]) -> str:
    """The sentence without those words, with its full stop."""
    text = " ".join(word for n, word in enumerate(words) if n not in places)
    last = words[-1] if words else ""
    if len(words) - 1 in places and last.endswith((".", "!", "?")) and text[-1:] != last[-1]:
        text += last[-1]
    return text[:1].upper() + text[1:]


def attribute(
    run: StoredRun,
    scorers: Sequence[Scorer],
    triples: Sequence[TripleView],
    progress: Progress | None = None,
    methods: Sequence[str] = ("occlusion",),
) -> list[Attribution]:
    """Find the effects of the words of each triple's sentence under each scorer by each method of
    `METHODS`, and write them to the store. Attributions already in the store are not recomputed.
    Raises UsageError if a scorer does not read the run's language or cannot do a method."""
    require_language(run, scorers)
    for scorer in scorers:
        check_methods(scorer, methods)
    progress = progress or SilentProgress()
    known = {(a.metric.id, a.triple_id, a.method): a for a in run.attributions()}
    found = []
    for scorer, method in product(scorers, methods):
        metric = Metric(scorer.measure, scorer.name, scorer.version)
        version = METHODS[method]
        progress.stage(f"words: {spoken_name(scorer.measure)}, {method}", len(triples))
        keys = {t.id: (metric.id, t.id, version) for t in triples}
        todo = [t for t in triples if keys[t.id] not in known]
        found += [known[keys[t.id]] for t in triples if keys[t.id] in known]
        progress.advance(len(triples) - len(todo), cached=len(triples) - len(todo))
        for start in range(0, len(todo), _BATCH):
            batch = todo[start : start + _BATCH]
            new = [
                Attribution(t.id, metric, tuple(words), tuple(by_word), score, version)
                for t, (words, by_word, score) in zip(
                    batch, effects(scorer, [t.sentence for t in batch], method), strict=True
                )
            ]
            run.store.save_attributions(new)
            found += new
            progress.advance(len(batch))
    return found


def latest(attributions: Sequence[Attribution]) -> list[Attribution]:
    """One attribution per metric, triple and method of `METHODS`: by the method's current version
    if the store has it, or else by an earlier one."""
    found: dict[tuple[str, str, str], Attribution] = {}
    for a in sorted(attributions, key=lambda a: a.method in METHODS.values()):
        method = a.method.partition("@")[0]
        if method in METHODS:
            found[a.metric.id, a.triple_id, method] = a
    return list(found.values())


def chosen(
    run: StoredRun, measure: str, *, top: int, search: str | None, everything: bool
) -> list[TripleView]:
    """The triples of a run to attribute: those whose sentence contains the text `search`, all of
    them, or the `top` most extreme of those that count by default, in any arm. Raises UsageError if
    there are none."""
    triples = run.triples()
    if search:
        found = [t for t in triples if search.casefold() in t.sentence.casefold()]
        if not found:
            raise UsageError(f"no statement of run {run.name!r} contains {search!r}")
        return found
    if not everything:
        counted = {t.id for t in select_statements(run).triples}
        triples = telling([t for t in triples if t.id in counted], measure, top)
    if not triples:
        check_measure(measure)
        raise UsageError(f"run {run.name!r} has no {measure}: measure it first")
    return triples


def telling(triples: Sequence[TripleView], measure: str, count: int) -> list[TripleView]:
    """The `count` most hurtful triples by a measure (`Measure.worst`): with the most negative
    regard, the highest toxicity, the lowest warmth."""
    sign = 1 if known(measure).worst == "lowest" else -1
    scored = [t for t in triples if measure in t.scores]
    return sorted(scored, key=lambda t: (sign * t.scores[measure].value, t.sentence))[:count]


_PUNCTUATION = ".,;:!?\"'()[]“”‘’"


@dataclass(frozen=True, slots=True)
class WordEffect:
    """The effect of a word on the scores of one group's statements, or one cell's.

    Attributes:
        measure, method: which effects; their unit is the method's.
        cell: the group; or, in a confusion, "LABEL / LABEL": the scorer's and the other's.
        statements: the statements of the cell.
        word: in lower case, without punctuation at its ends.
        n: the statements of the cell that contain the word.
        effect: the mean effect on those; if a statement contains it twice, the sum counts.
        total: the sum of its effects over all statements of the cell.
    """

    measure: str
    method: str
    cell: str
    statements: int
    word: str
    n: int
    effect: float
    total: float


def word_effects(
    attributions: Sequence[Attribution], cells: Mapping[str, str], *, top: int = 10
) -> list[WordEffect]:
    """The words of each cell with the largest totals, up or down, by measure, method and cell.
    `cells` maps triples to cells; triples without one are left out."""
    found: dict[tuple[str, str, str], list[Attribution]] = defaultdict(list)
    for a in attributions:
        if a.triple_id in cells:
            method = a.method.partition("@")[0]
            found[a.metric.measure, method, cells[a.triple_id]].append(a)
    rows: list[WordEffect] = []
    for (measure, method, cell), here in sorted(found.items()):
        effects: dict[str, list[float]] = defaultdict(list)
        for a in here:
            own: dict[str, float] = defaultdict(float)
            for word, effect in zip(a.tokens, a.effects, strict=True):
                own[word.casefold().strip(_PUNCTUATION)] += effect
            for word, effect in own.items():
                effects[word].append(effect)
        words = [
            WordEffect(measure, method, cell, len(here), word, len(e), sum(e) / len(e), sum(e))
            for word, e in effects.items()
            if word
        ]
        rows += sorted(words, key=lambda w: (-abs(w.total), w.word))[:top]
    return rows


PARTS = ("group", "predicate", "object, word 1", "word 2", "word 3", "later words")
"""The places of a mean map: the parts of a statement, and the object's words by their order."""


@dataclass(frozen=True, slots=True)
class MeanMap:
    """The mean effect of each part of the statements of one cell: a label, a group, or a cell of a
    confusion.

    Attributes:
        measure, method: which effects; their unit is the method's.
        cell: which statements.
        statements: how many of them.
        parts: by `PARTS`, the mean over the statements that have the part, with a bootstrap
            interval over them, or an `Estimate` without a value if none has it. Above 0: words
            there raise the score.
    """

    measure: str
    method: str
    cell: str
    statements: int
    parts: tuple[Estimate, ...]

    def distance(self, other: "MeanMap") -> float:
        """The root mean square difference of two maps over the parts that both have, in the unit of
        the effects; 0 if they are alike."""
        both = np.array([[a.value, b.value] for a, b in zip(self.parts, other.parts, strict=True)])
        x, y = both[~np.isnan(both).any(axis=1)].T
        return float(np.sqrt(np.mean((x - y) ** 2)))


def mean_maps(
    attributions: Sequence[Attribution],
    triples: Mapping[str, TripleView],
    cells: Mapping[str, str],
    *,
    seed: int = 0,
) -> list[MeanMap]:
    """The mean maps of cells, by measure, method and cell: class-level activation maps (James et
    al. 2024, section 3.4), by any method. `cells` maps triples to cells. A statement is left out if
    its words cannot be told apart into parts (`part_effects`)."""
    found: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
    for a in attributions:
        own = part_effects(a, triples[a.triple_id]) if a.triple_id in cells else None
        if own is not None:
            method = a.method.partition("@")[0]
            found[a.metric.measure, method, cells[a.triple_id]].append(own)
    maps = []
    for (measure, method, cell), rows in sorted(found.items()):
        columns = np.array(rows).T
        parts = [column[~np.isnan(column)] for column in columns]
        estimates = [
            bootstrap(part, lambda v: v.mean(axis=-1), seed=seed) if len(part) else
            Estimate.missing() for part in parts
        ]  # fmt: skip
        maps.append(MeanMap(measure, method, cell, len(rows), tuple(estimates)))
    return maps


def part_effects(a: Attribution, triple: TripleView) -> list[float] | None:
    """The summed effects of the words of each of `PARTS`; NaN for a part that the statement lacks.
    The object's words are the last, the predicate's stand before them, and the group is what
    remains. None if the words do not end as the statement does."""
    ends = f"{triple.predicate} {triple.object}".split()
    said = [word.casefold().strip(_PUNCTUATION) for word in a.tokens]
    start = len(said) - len(triple.object.split())
    verb = start - len(triple.predicate.split())
    plain = [word.casefold().strip(_PUNCTUATION) for word in ends]
    # The scorer may read the verb in another number ("loves" as "love").
    if verb < 1 or said[start:] != plain[start - verb :]:
        return None
    found = [float("nan")] * len(PARTS)
    found[0], found[1] = sum(a.effects[:verb]), sum(a.effects[verb:start])
    for n, effect in enumerate(a.effects[start:]):
        place = min(2 + n, len(PARTS) - 1)
        found[place] = effect if np.isnan(found[place]) else found[place] + effect
    return found


@dataclass(frozen=True, slots=True)
class Deletion:
    """How far the score falls when a sentence loses its most effective words.

    Attributes:
        measure: what is scored.
        method: by whose effects words are removed; "random": in random order.
        removed: how many words.
        drop: the mean over sentences of how far the score moved back towards the other side of 0,
            in units of the score, with a bootstrap interval over sentences. A good attribution has
            a larger drop than random order, after fewer words.
    """

    measure: str
    method: str
    removed: int
    drop: Estimate


def deletion_curves(
    scorer: Scorer, by_method: Mapping[str, Sequence[Words]], *, removed: int = 3, seed: int = 0
) -> list[Deletion]:
    """Remove the words of sentences one by one, starting with those that most support the score,
    and score what is left (Samek et al. 2017), against random order (the mean of 5 orders).

    Args:
        scorer: whose scores the attributions are of.
        by_method: the attributions of the same sentences by each method, as
            `kgbias.measure.attribution.effects` gives them.
        removed: the most words to remove; sentences with no more words than that are left out.
        seed: of the random orders.
    """
    rng = random.Random(f"deletion:{seed}")
    orders: dict[str, list[list[tuple[list[str], list[int], float]]]] = {"random": []}
    for method, attributed in by_method.items():
        orders[method] = [
            [(words, sorted(range(len(words)), key=lambda n: -_side(score) * effects[n]), score)]
            for words, effects, score in attributed
            if len(words) > removed
        ]
    for words, _, score in next(iter(by_method.values()), ()):
        if len(words) > removed:
            shuffled = [rng.sample(range(len(words)), len(words)) for _ in range(5)]
            orders["random"].append([(words, order, score) for order in shuffled])
    found = []
    for method, sentences in orders.items():
        for count in range(1, removed + 1):
            texts = [without(w, set(order[:count])) for same in sentences for w, order, _ in same]
            left = iter(scorer.score(texts))
            drops = []
            for same in sentences:
                judged = [(score, next(left)) for _, _, score in same]
                moved = [_side(score) * (score - j.value) for score, j in judged if j]
                if moved:
                    drops.append(sum(moved) / len(moved))
            drop = bootstrap(np.array(drops), lambda v: v.mean(axis=-1)) if drops else None
            found.append(Deletion(scorer.measure, method, count, drop or Estimate.missing()))
    return found


def _side(score: float) -> int:
    return -1 if score < 0 else 1
