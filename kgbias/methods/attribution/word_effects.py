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
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import MissingExtra, UsageError, no_such
from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.selection import select_most_hurtful, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric, TripleView, WordAttribution
from kgbias.io.columns import Column
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Rows
from kgbias.io.text import spoken_name
from kgbias.measure.scorers import Scorer, check_measure, require_language
from kgbias.measure.scorers._gradients import DifferentiableScorer, GradientReading, MaskingScorer
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap, mean

_INTEGRATION_STEPS = (32, 128, 512)
_BATCH_TEXTS = 32  # of them at once
_MAX_INTEGRATION_ERROR = 0.005  # how far the effects may miss adding up, in units of the score


def class_activation(reading: GradientReading) -> list[float]:
    """The effect of each word by its class activation: the final states of its tokens times the
    gradient of the evidence there, in log-odds. That is Grad-CAM (Selvaraju et al. 2017) without
    its ReLU, so that words against the score are kept, and with the gradient of each position
    instead of their mean."""
    import torch

    assert reading.halves is not None
    lower_half, upper_half = reading.halves
    with torch.no_grad():
        states = lower_half(reading.inputs)
    return _sum_by_word(
        reading, _gradient_at(lambda x: reading.value.evidence(upper_half(x)), states) * states
    )


def integrated_gradients(reading: GradientReading) -> list[float]:
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
    # The effects add up to the score but for the error of the integral: few steps mostly do.
    for steps in _INTEGRATION_STEPS:
        # cuDNN has no gradient of a recurrent network that is not in training.
        with cudnn.flags(enabled=False):
            contributions, convergence_gap = integrated.attribute(
                reading.inputs,
                baselines=reading.blank,
                n_steps=steps,
                method="gausslegendre",
                internal_batch_size=_BATCH_TEXTS,
                return_convergence_delta=True,
            )
        if abs(float(convergence_gap)) <= _MAX_INTEGRATION_ERROR:
            break
    return _sum_by_word(reading, contributions.detach())


def _gradient_at(value_at: Callable[[Any], Any], vectors: Any) -> Any:
    """The gradient of a value (batch) at a batch of vectors, one for each."""
    import torch

    vectors = vectors.detach().clone().requires_grad_(True)
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):  # its GRU has no gradient
        (slope,) = torch.autograd.grad(value_at(vectors).sum(), vectors)
    return slope


def _sum_by_word(reading: GradientReading, contributions: Any) -> list[float]:
    effects = [0.0] * len(reading.words)
    for owner, contribution in zip(reading.owners, contributions[0].sum(-1).tolist(), strict=True):
        if owner is not None:
            effects[owner] += contribution
    return [round(effect, 6) for effect in effects]


METHOD_VERSIONS = {  # each with its version, raised when its effects change
    "occlusion": "occlusion@2",
    "cam": "cam@1",
    "integrated": "integrated@1",
}
_GRADIENTS = {
    "cam": class_activation,
    "integrated": integrated_gradients,
}
_MAX_WORDS = 60  # words per sentence that get an effect
_BATCH_SENTENCES = 32  # sentences at once
_RANDOM_ORDERS = 5  # for each sentence, whose mean an attribution has to beat


class SentenceEffects(NamedTuple):
    """The words of a sentence, the effect of each, and the score of the whole."""

    words: list[str]
    effects: list[float]
    score: float


def measure_word_effects(
    scorer: Scorer, sentences: Sequence[str], method: str = "occlusion"
) -> list[SentenceEffects]:
    """The effects of the words of each sentence on its score, by a method of `METHOD_VERSIONS`;
    every method covers the same words, the first 60. Above 0: the word raises the score.

    Raises:
        UsageError: the scorer cannot do the method.
    """
    check_scorer_methods(scorer, [method])
    if method == "occlusion":
        return occlude(scorer, sentences)
    assert isinstance(scorer, DifferentiableScorer)
    words_and_effects = []
    for sentence, score in zip(sentences, _score_values(scorer, sentences), strict=True):
        reading = scorer.gradient_reading(sentence)
        by_word = _GRADIENTS[method](reading)
        words_and_effects.append(
            SentenceEffects(reading.words[:_MAX_WORDS], by_word[:_MAX_WORDS], score)
        )
    return words_and_effects


def check_scorer_methods(scorer: Scorer, methods: Sequence[str]) -> None:
    """Raise UsageError unless the scorer can do each of the methods."""
    for method in methods:
        if method not in METHOD_VERSIONS:
            raise UsageError(no_such("`method`", method, METHOD_VERSIONS))
        if method != "occlusion" and not isinstance(scorer, DifferentiableScorer):
            raise UsageError(
                f"{scorer.name} gives no gradients of {scorer.measure}: use `method` occlusion"
            )
        if method == "cam" and isinstance(scorer, DifferentiableScorer) and not scorer.has_states:
            raise UsageError(
                f"{scorer.name} has no class activation maps, only the offline heads do: "
                "use `method` occlusion or integrated"
            )


def occlude(scorer: Scorer, sentences: Sequence[str]) -> list[SentenceEffects]:
    """The effects of the words of each sentence by occlusion.

    The effect of a word is the score of the whole sentence minus the score without the word. It is
    measured only from the scorer's answers, so it works for every scorer; effects need not sum to
    the score, since words act together. The words of a mention that the scorer masks are left out
    together. Only the first 60 words are left out, one at a time."""
    texts: list[str] = []
    words_and_starts = []
    for sentence in sentences:
        words = scorer.words(sentence) if isinstance(scorer, MaskingScorer) else sentence.split()
        start = len(texts)
        texts.append(sentence)
        texts += [remove_words(words, {n}) for n in range(min(len(words), _MAX_WORDS))]
        words_and_starts.append((words[:_MAX_WORDS], start))
    values = _score_values(scorer, texts)
    return [
        SentenceEffects(
            words,
            [round(values[start] - values[start + 1 + n], 6) for n in range(len(words))],
            values[start],
        )
        for words, start in words_and_starts
    ]


def _score_values(scorer: Scorer, texts: Sequence[str]) -> list[float]:
    judgements = [judgement for judgement in scorer.score(texts) if judgement]
    if len(judgements) < len(texts):
        raise UsageError(f"{scorer.name} does not judge every text, which attribution needs")
    return [judgement.value for judgement in judgements]


def remove_words(words: Sequence[str], places: Collection[int]) -> str:
    """The sentence without those words, with its full stop."""
    text = " ".join(word for n, word in enumerate(words) if n not in places)
    last_word = words[-1] if words else ""
    if (
        len(words) - 1 in places
        and last_word.endswith((".", "!", "?"))
        and text[-1:] != last_word[-1]
    ):
        text += last_word[-1]
    return text[:1].upper() + text[1:]


def attribute_triples(
    run: StoredRun,
    scorers: Sequence[Scorer],
    triples: Sequence[TripleView],
    progress: Progress | None = None,
    methods: Sequence[str] = ("occlusion",),
) -> list[WordAttribution]:
    """Find the effects of the words of each triple's sentence under each scorer by each method of
    `METHOD_VERSIONS`, and write them to the store. Attributions already in the store are not
    recomputed. Raises UsageError if a scorer does not read the run's language or cannot do a
    method."""
    require_language(run, scorers)
    for scorer in scorers:
        check_scorer_methods(scorer, methods)
    progress = progress or SilentProgress()
    known_attributions = {(a.metric.id, a.triple_id, a.method): a for a in run.attributions()}
    attributions = []
    for scorer, method in product(scorers, methods):
        metric = Metric(scorer.measure, scorer.name, scorer.version)
        version = METHOD_VERSIONS[method]
        progress.stage(f"words: {spoken_name(scorer.measure)}, {method}", len(triples))
        keys = {triple.id: (metric.id, triple.id, version) for triple in triples}
        todo = [triple for triple in triples if keys[triple.id] not in known_attributions]
        attributions += [
            known_attributions[keys[triple.id]]
            for triple in triples
            if keys[triple.id] in known_attributions
        ]
        progress.advance(len(triples) - len(todo), cached=len(triples) - len(todo))
        for start in range(0, len(todo), _BATCH_SENTENCES):
            batch = todo[start : start + _BATCH_SENTENCES]
            sentences = [triple.sentence for triple in batch]
            new_attributions = [
                WordAttribution(
                    triple.id, metric, tuple(one.words), tuple(one.effects), one.score, version
                )
                for triple, one in zip(
                    batch, measure_word_effects(scorer, sentences, method), strict=True
                )
            ]
            run.store.save_attributions(new_attributions)
            attributions += new_attributions
            progress.advance(len(batch))
    return attributions


def latest_attributions(attributions: Sequence[WordAttribution]) -> list[WordAttribution]:
    """One attribution per metric, triple and method of `METHOD_VERSIONS`: by the method's current
    version if the store has it, or else by an earlier one."""
    latest_by_key: dict[tuple[str, str, str], WordAttribution] = {}
    # Those of current versions come last, and replace older ones.
    for a in sorted(attributions, key=lambda a: a.method in METHOD_VERSIONS.values()):
        method = a.method.partition("@")[0]
        if method in METHOD_VERSIONS:
            latest_by_key[a.metric.id, a.triple_id, method] = a
    return list(latest_by_key.values())


def choose_triples(
    run: StoredRun, measure: str, *, top: int, search: str | None, all_triples: bool
) -> list[TripleView]:
    """The triples of a run to attribute: those whose sentence contains the text `search`, all of
    them, or the `top` most extreme of those that count by default, in any arm. Raises UsageError if
    there are none."""
    triples = run.triples()
    if search:
        matching = [triple for triple in triples if search.casefold() in triple.sentence.casefold()]
        if not matching:
            raise UsageError(f"no statement of run {run.name!r} contains {search!r}")
        return matching
    if not all_triples:
        counted_ids = {triple.id for triple in select_statements(run).triples}
        triples = select_most_hurtful(
            [triple for triple in triples if triple.id in counted_ids], measure, top
        )
    if not triples:
        check_measure(measure)
        raise UsageError(f"run {run.name!r} has no {measure}: measure it first")
    return triples


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


def rank_word_effects(
    attributions: Sequence[WordAttribution], cells: Mapping[str, str], *, top: int = 10
) -> list[WordEffect]:
    """The words of each cell with the largest totals, up or down, by measure, method and cell.
    `cells` maps triples to cells; triples without one are left out."""
    by_cell: dict[tuple[str, str, str], list[WordAttribution]] = defaultdict(list)
    for a in attributions:
        if a.triple_id in cells:
            method = a.method.partition("@")[0]
            by_cell[a.metric.measure, method, cells[a.triple_id]].append(a)
    rows: list[WordEffect] = []
    for (measure, method, cell), cell_attributions in sorted(by_cell.items()):
        effects: dict[str, list[float]] = defaultdict(list)
        for a in cell_attributions:
            statement_effects: dict[str, float] = defaultdict(float)
            for word, effect in zip(a.tokens, a.effects, strict=True):
                statement_effects[word.casefold().strip(_PUNCTUATION)] += effect
            for word, effect in statement_effects.items():
                effects[word].append(effect)
        words = [
            WordEffect(
                measure, method, cell, len(cell_attributions), word, len(e), sum(e) / len(e), sum(e)
            )
            for word, e in effects.items()
            if word
        ]
        rows += sorted(words, key=lambda w: (-abs(w.total), w.word))[:top]
    return rows


STATEMENT_PARTS = ("group", "predicate", "object, word 1", "word 2", "word 3", "later words")
"""The places of a mean map: the parts of a statement, and the object's words by their order."""


@dataclass(frozen=True, slots=True)
class MeanMap:
    """The mean effect of each part of the statements of one cell: a label, a group, or a cell of a
    confusion.

    Attributes:
        measure, method: which effects; their unit is the method's.
        cell: which statements.
        statements: how many of them.
        parts: by `STATEMENT_PARTS`, the mean over the statements that have the part, with a
            bootstrap interval over them, or an `Estimate` without a value if none has it. Above 0:
            words there raise the score.
    """

    measure: str
    method: str
    cell: str
    statements: int
    parts: tuple[Estimate, ...]

    def distance_to(self, other: "MeanMap") -> float:
        """The root mean square difference of two maps over the parts that both have, in the unit of
        the effects; 0 if they are alike."""
        part_values = np.array(
            [[a.value, b.value] for a, b in zip(self.parts, other.parts, strict=True)]
        )
        own_values, other_values = part_values[~np.isnan(part_values).any(axis=1)].T
        return float(np.sqrt(np.mean((own_values - other_values) ** 2)))


def mean_maps(
    attributions: Sequence[WordAttribution],
    triples: Mapping[str, TripleView],
    cells: Mapping[str, str],
    *,
    seed: int = 0,
) -> list[MeanMap]:
    """The mean maps of cells, by measure, method and cell: class-level activation maps (James et
    al. 2024, section 3.4), by any method. `cells` maps triples to cells. A statement is left out if
    its words cannot be told apart into parts (`part_effects`)."""
    effects_by_cell: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
    for a in attributions:
        statement_effects = part_effects(a, triples[a.triple_id]) if a.triple_id in cells else None
        if statement_effects is not None:
            method = a.method.partition("@")[0]
            effects_by_cell[a.metric.measure, method, cells[a.triple_id]].append(statement_effects)
    maps = []
    for (measure, method, cell), rows in sorted(effects_by_cell.items()):
        columns = np.array(rows).T
        part_values = [column[~np.isnan(column)] for column in columns]
        estimates = [
            bootstrap(values_of_part, mean, seed=seed)
            if len(values_of_part)
            else Estimate.missing()
            for values_of_part in part_values
        ]
        maps.append(MeanMap(measure, method, cell, len(rows), tuple(estimates)))
    return maps


def part_effects(attribution: WordAttribution, triple: TripleView) -> list[float] | None:
    """The summed effects of the words of each of `STATEMENT_PARTS`; NaN for a part that the
    statement lacks. The object's words are the last, the predicate's stand before them, and the
    group is what remains. None if the words do not end as the statement does."""
    last_words = f"{triple.predicate} {triple.object}".split()
    spoken_words = [word.casefold().strip(_PUNCTUATION) for word in attribution.tokens]
    start = len(spoken_words) - len(triple.object.split())
    verb_start = start - len(triple.predicate.split())
    expected_words = [word.casefold().strip(_PUNCTUATION) for word in last_words]
    # The scorer may read the verb in another number ("loves" as "love").
    if verb_start < 1 or spoken_words[start:] != expected_words[start - verb_start :]:
        return None
    part_sums = [float("nan")] * len(STATEMENT_PARTS)
    part_sums[0], part_sums[1] = (
        sum(attribution.effects[:verb_start]),
        sum(attribution.effects[verb_start:start]),
    )
    for n, effect in enumerate(attribution.effects[start:]):
        place = min(2 + n, len(STATEMENT_PARTS) - 1)
        part_sums[place] = effect if np.isnan(part_sums[place]) else part_sums[place] + effect
    return part_sums


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


class _Removal(NamedTuple):
    """An order in which the words of a sentence are removed, and the score of the whole."""

    words: list[str]
    order: list[int]
    score: float


def deletion_curves(
    scorer: Scorer,
    by_method: Mapping[str, Sequence[SentenceEffects]],
    *,
    max_removed: int = 3,
    seed: int = 0,
) -> list[Deletion]:
    """Remove the words of sentences one by one, starting with those that most support the score,
    and score what is left (Samek et al. 2017), against random order (the mean of 5 orders).

    Args:
        scorer: whose scores the attributions are of.
        by_method: the attributions of the same sentences by each method, as
            `kgbias.methods.attribution.word_effects.measure_word_effects` gives them.
        max_removed: the most words to remove; sentences with no more words than that are left out.
        seed: of the random orders.
    """
    rng = random.Random(f"deletion:{seed}")
    # By method, the removals of each sentence: a method has one order, "random" has several.
    removals: dict[str, list[list[_Removal]]] = {"random": []}
    for method, attributed in by_method.items():
        removals[method] = [
            [_Removal(sentence.words, _support_order(sentence), sentence.score)]
            for sentence in attributed
            if len(sentence.words) > max_removed
        ]
    for sentence in next(iter(by_method.values()), ()):
        count = len(sentence.words)
        if count > max_removed:
            random_orders = [rng.sample(range(count), count) for _ in range(_RANDOM_ORDERS)]
            removals["random"].append(
                [_Removal(sentence.words, order, sentence.score) for order in random_orders]
            )
    curves = []
    for method, by_sentence in removals.items():
        for count in range(1, max_removed + 1):
            texts = [
                remove_words(removal.words, set(removal.order[:count]))
                for own_removals in by_sentence
                for removal in own_removals
            ]
            remaining_scores = iter(scorer.score(texts))
            drops = []
            for own_removals in by_sentence:
                drops_of_orders = []
                for removal in own_removals:
                    judgement = next(remaining_scores)
                    if judgement:
                        drop_of_order = removal.score - judgement.value
                        drops_of_orders.append(_sign(removal.score) * drop_of_order)
                if drops_of_orders:
                    drops.append(sum(drops_of_orders) / len(drops_of_orders))
            drop = bootstrap(np.array(drops), mean) if drops else None
            curves.append(Deletion(scorer.measure, method, count, drop or Estimate.missing()))
    return curves


def _support_order(sentence: SentenceEffects) -> list[int]:
    """The places of the words, first what most supports the score: of a negative one, what makes it
    negative."""
    sign = _sign(sentence.score)
    return sorted(range(len(sentence.words)), key=lambda n: -sign * sentence.effects[n])


def _sign(score: float) -> int:
    return -1 if score < 0 else 1


WORD_COLUMNS = (
    Column("measure"),
    Column("method"),
    Column("cell"),
    Column("statements", "d"),
    Column("word"),
    Column("n", "d"),
    Column("effect", "+.3f"),
    Column("total", "+.3f"),
)
DELETION_COLUMNS = (
    Column("measure"),
    Column("method"),
    Column("removed", "d"),
    Column("n", "d", get=attrgetter("drop.n")),
    Column("drop", "+.3f", interval=True, ends=("low", "high")),
)


def confusion_cells(
    run: StoredRun, metric: Metric, against: str, triples: list[str]
) -> dict[str, str]:
    """The cell of each triple that both scorers judged."""
    scorers = [m for m in run.scorers() if not is_swapped(m)]
    others = [m for m in scorers if m.measure == metric.measure and m != metric]
    matches = [m for m in others if against in (m.scorer, f"{m.scorer}@{m.version}")]
    if len(matches) != 1:
        names = ", ".join(f"{m.scorer}@{m.version}" for m in others) or "none"
        raise UsageError(
            f"`against` must name one other scorer of {metric.measure}, not {against!r}; "
            f"the others: {names}"
        )
    scores, other_scores = run.store.scores(metric, triples), run.store.scores(matches[0], triples)
    return {
        id: f"{scores[id].label} / {other_scores[id].label}"
        for id in triples
        if id in scores and id in other_scores
    }


def attribution_rows(
    run: StoredRun, attributions: Sequence[WordAttribution]
) -> Rows[WordAttribution]:
    """Attributions, with each word's effect as lists in the columns `tokens` and `effects`."""
    sentences = {t.id: t.sentence for t in run.triples()}

    columns = (
        Column("sentence", get=lambda attribution: sentences.get(attribution.triple_id, "")),
        Column("measure", get=attrgetter("metric.measure")),
        Column("score", ".3f"),
        Column("tokens"),
        Column("effects", "+.3f"),
        Column("scorer", get=attrgetter("metric.scorer")),
        Column("version", get=attrgetter("metric.version")),
        Column("method"),
        Column("id", get=attrgetter("triple_id")),
    )
    return Rows(attributions, columns)
