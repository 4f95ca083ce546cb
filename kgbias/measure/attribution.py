"""Attribution: which words of a sentence drive its score, by occlusion (Zeiler and Fergus 2014) or
by the gradients of the scorer's network (`kgbias.measure.gradients`)."""

from collections.abc import Collection, Sequence
from itertools import product

from kgbias.errors import UsageError
from kgbias.graph.selection import select
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Attribution, Metric, TripleView
from kgbias.io.progress import Progress, Silent
from kgbias.measure.gradients import (
    class_activation,
    gradient_times_input,
    integrated_gradients,
)
from kgbias.measure.scorers import Scorer, require_language
from kgbias.measure.scorers._reading import Masking, Readable
from kgbias.measures import known

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
            raise UsageError(f"no `method` {method!r}: choose {', '.join(METHODS)}")
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
    progress = progress or Silent()
    known = {(a.metric.id, a.triple_id, a.method): a for a in run.attributions()}
    found = []
    for scorer, method in product(scorers, methods):
        metric = Metric(scorer.measure, scorer.name, scorer.version)
        version = METHODS[method]
        progress.stage(f"words: {scorer.measure}, {method}", len(triples))
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
        counted = {t.id for t in select(run).triples}
        triples = telling([t for t in triples if t.id in counted], measure, top)
    if not triples:
        raise UsageError(f"run {run.name!r} has no {measure}: measure it first")
    return triples


def telling(triples: Sequence[TripleView], measure: str, count: int) -> list[TripleView]:
    """The `count` most hurtful triples by a measure (`Measure.worst`): with the most negative
    regard, the highest toxicity, the lowest warmth."""
    sign = 1 if known(measure).worst == "lowest" else -1
    scored = [t for t in triples if measure in t.scores]
    return sorted(scored, key=lambda t: (sign * t.scores[measure].value, t.sentence))[:count]
