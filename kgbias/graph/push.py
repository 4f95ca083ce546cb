"""Copy runs from one store to another. Every write is one that may be repeated, so a copy that was
cut off is taken up by doing it again, and a copy of what is there changes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TypeVar

from kgbias.graph.store import Store
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, Triple
from kgbias.progress import Progress, Silent

_CHUNK = 5_000
_T = TypeVar("_T")


def push(run: StoredRun, target: Store, progress: Progress | None = None) -> int:
    """Copy a run: its seeds, answers, generations, triples, the scores of its current metrics, and
    all that was found about it (figures, association tests, topics, probes, near-duplicates, the
    places of its nodes). Returns the number of generations that the target did not have.

    Raises RunConflict where the target has another run of that name."""
    progress = progress or Silent()
    source = run.store
    target.begin(run.record)
    triples = run.triples()
    progress.stage("triples", len(triples))
    for chunk in chunks(triples):
        # Nodes first, so that they show the same surface form in both stores.
        target.keep_triples([Triple(t.group, t.predicate, t.object) for t in chunk])
        progress.advance(len(chunk))

    written = 0
    generations = list(source.generations(run.id))
    progress.stage("generations", len(generations))
    rounds = groupby(
        sorted(generations, key=lambda g: (g.iteration, g.arm)), lambda g: (g.iteration, g.arm)
    )
    for (iteration, arm), stream in rounds:
        batch = list(stream)
        known: set[str] = set()
        for some in chunks(batch):
            _copy_answers(source, target, some)
            known |= target.known_generations([g.id for g in some])
        missing = [g for g in batch if g.id not in known]
        if run.record.kind == "crawl":
            target.record(run.id, arm, iteration, batch)  # a round may have been made anew
        else:
            target.load(run.id, missing)
        written += len(missing)
        progress.advance(len(batch), new=len(missing))

    for measure, metric in source.metrics(run.id).items():
        scores = [t.scores[measure] for t in triples if measure in t.scores]
        progress.stage(measure, len(scores))
        target.save_scores(run.id, metric, scores)
        progress.advance(len(scores))
    target.save_group_scores(run.id, source.group_scores(run.id))
    target.save_associations(run.id, source.associations(run.id))
    target.save_topics(run.id, source.topics(run.id))
    target.save_attributions(source.attributions(run.id))
    for probing in source.probings(run.id):
        target.save_probing(run.id, probing)
        target.save_probes(run.id, probing, source.probes(run.id, probing.id))
    target.save_near_duplicates(run.id, source.near_duplicates(run.id))
    target.save_places(run.id, source.places(run.id))
    target.set_status(run.id, run.status)
    return written


def _copy_answers(source: Store, target: Store, batch: Sequence[Generation]) -> None:
    keys = sorted({g.answer_key for g in batch if g.answer_key})
    missing = [key for key in keys if key not in target.answers(keys)] if keys else []
    if missing:
        target.keep_answers(list(source.answers(missing).values()))


def chunks(items: Iterable[_T]) -> Iterator[list[_T]]:
    """The items in lists of a few thousand."""
    stream = iter(items)
    while chunk := list(islice(stream, _CHUNK)):
        yield chunk
