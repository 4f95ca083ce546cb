"""Attribution: which words of a sentence drive its score, by occlusion (Zeiler and Fergus 2014)."""

from collections.abc import Sequence

from kgbias.errors import UsageError
from kgbias.graph.selection import select
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Attribution, Metric, TripleView
from kgbias.measure.language import require_language
from kgbias.measure.scorers import Scorer
from kgbias.measures import known
from kgbias.progress import Progress, Silent

_LONGEST = 60  # words of a sentence that are occluded; the rest stays as it is
_BATCH = 32  # sentences at once


def occlude(scorer: Scorer, sentences: Sequence[str]) -> list[tuple[list[str], list[float], float]]:
    """For each sentence its words, the effect of each, and the score of the whole.

    The effect of a word is the score of the whole sentence minus the score without the word: above
    0 where the word raises the score. It is measured from the scorer's answers alone, so it works
    for every scorer; effects need not sum to the score, since words act together. Only the first
    60 words are left out, one at a time."""
    texts: list[str] = []
    plans = []
    for sentence in sentences:
        words = sentence.split()
        start = len(texts)
        texts.append(sentence)
        texts += [_without(words, n) for n in range(min(len(words), _LONGEST))]
        plans.append((words[:_LONGEST], start))
    judgements = [judgement for judgement in scorer.score(texts) if judgement]
    if len(judgements) < len(texts):
        raise UsageError(f"{scorer.name} does not judge every text, as attribution needs")
    values = [judgement.value for judgement in judgements]
    return [
        (
            words,
            [round(values[start] - values[start + 1 + n], 6) for n in range(len(words))],
            values[start],
        )
        for words, start in plans
    ]


def _without(words: Sequence[str], place: int) -> str:
    text = " ".join([*words[:place], *words[place + 1 :]])
    if place == len(words) - 1 and words[place].endswith((".", "!", "?")):
        text += words[place][-1]
    return text[:1].upper() + text[1:]


def attribute(
    run: StoredRun,
    scorers: Sequence[Scorer],
    triples: Sequence[TripleView],
    progress: Progress | None = None,
) -> list[Attribution]:
    """Occlude the words of each triple's sentence under each scorer and write their effects to the
    store. Attributions that the store has are not recomputed. Raises UsageError where a scorer does
    not read the run's language."""
    require_language(run, scorers)
    progress = progress or Silent()
    known = {(a.metric.id, a.triple_id): a for a in run.attributions()}
    found = []
    for scorer in scorers:
        metric = Metric(scorer.measure, scorer.name, scorer.version)
        progress.stage(f"words: {scorer.measure}", len(triples))
        todo = [t for t in triples if (metric.id, t.id) not in known]
        found += [known[metric.id, t.id] for t in triples if (metric.id, t.id) in known]
        progress.advance(len(triples) - len(todo), cached=len(triples) - len(todo))
        for start in range(0, len(todo), _BATCH):
            batch = todo[start : start + _BATCH]
            new = [
                Attribution(t.id, metric, tuple(words), tuple(effects), score)
                for t, (words, effects, score) in zip(
                    batch, occlude(scorer, [t.sentence for t in batch]), strict=True
                )
            ]
            run.store.save_attributions(new)
            found += new
            progress.advance(len(batch))
    return found


def chosen(
    run: StoredRun, measure: str, *, top: int, search: str | None, everything: bool
) -> list[TripleView]:
    """The triples of a run to attribute: those whose sentence contains the text `search`, all of
    them, or the `top` most extreme ones of those that count by default, whatever their arm. Raises
    UsageError where there are none."""
    triples = run.triples()
    if search:
        found = [t for t in triples if search.casefold() in t.sentence.casefold()]
        if not found:
            raise UsageError(f"no statement of run {run.name!r} holds {search!r}")
        return found
    if not everything:
        counted = {t.id for t in select(run).triples}
        triples = telling([t for t in triples if t.id in counted], measure, top)
    if not triples:
        raise UsageError(f"run {run.name!r} has no {measure}: measure it first")
    return triples


def telling(triples: Sequence[TripleView], measure: str, count: int) -> list[TripleView]:
    """The `count` triples that hurt most by a measure (`Measure.worst`): of the most negative
    regard, the highest toxicity, the lowest warmth."""
    sign = 1 if known(measure).worst == "lowest" else -1
    scored = [t for t in triples if measure in t.scores]
    return sorted(scored, key=lambda t: (sign * t.scores[measure].value, t.sentence))[:count]
