"""Copying runs from one store to another. Every write can be repeated: an interrupted copy is
finished by starting it again, and copying what the target already has changes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import TypeVar

from kgbias.errors import RunNotFound
from kgbias.graph.between import is_swapped
from kgbias.graph.profiles import READING
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import Generation, Triple, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import spoken_name

_CHUNK = 5_000
_T = TypeVar("_T")


def push(run: StoredRun, target: Store, progress: Progress | None = None) -> int:
    """Copy a run: its seeds, answers, generations, triples, what people decided about them, the
    scores of its current metrics, and everything found about it (figures, association tests,
    topics, probes, forced choices, beliefs, SoFa, near-duplicates, recorded stereotypes, the places
    of its nodes, profiles), and the labels of its triples. Returns the number of generations that
    the target did not have.

    Generations are streamed: a few thousand of an import are in memory at a time, or one round of
    any other run, which the target replaces as a whole. Raises RunConflict if the target has
    another run of that name."""
    progress = progress or SilentProgress()
    source = run.store
    new = not _has(target, run.record.name)
    target.begin(run.record)
    triples = run.triples()
    progress.stage("triples", len(triples))
    # Nodes first: they then show the same surface form in both stores.
    target.keep_triples(_shown(triples, progress))

    decisions = source.decisions(run.id)  # what was rejected may have been shown
    target.keep_triples([d.read for d in decisions if d.read])

    summary = source.summary(run.id)
    progress.stage("generations", summary.generations)
    if run.record.kind == "import":
        written = target.load(run.id, _lacking(run, target, progress, new=new))
    else:
        written = _copy_rounds(run, target, progress, new=new)

    target.decide(run.id, decisions)
    for metric in [m for m in source.scorers(run.id) if is_swapped(m)]:
        apart = source.scores(metric, [t.id for t in triples])
        target.save_scores(run.id, metric, list(apart.values()))
    for measure, metric in source.metrics(run.id).items():
        scores = [t.scores[measure] for t in triples if measure in t.scores]
        progress.stage(spoken_name(measure), len(scores))
        target.save_scores(run.id, metric, scores)
        progress.advance(len(scores))
    said = {t.id for t in triples}
    target.label([x for x in source.labels() if x.triple_id in said])
    target.save_group_scores(run.id, source.group_scores(run.id))
    target.save_topics(run.id, source.topics(run.id))
    target.save_associations(run.id, source.associations(run.id))
    target.save_attributions(source.attributions(run.id))
    for probing in source.probings(run.id):
        target.save_probing(run.id, probing)
        target.save_probes(run.id, probing, source.probes(run.id, probing.id))
    for choosing in source.choosings(run.id):
        choices = source.choices(run.id, choosing.id)
        for keys in chunks(sorted({key for e in choices for key in (*e.answers, *e.others)})):
            _copy_answers(source, target, keys)
        target.save_choices(run.id, choosing, choices)
    for believing in source.believings(run.id):
        target.keep_statements(source.statements(run.id, believing.id))
        target.save_names(source.names(run.id, believing.id))
        target.save_name_probes(run.id, believing, source.name_probes(run.id, believing.id))
        target.save_beliefs(run.id, believing, source.beliefs(run.id, believing.id))
        target.save_believing(run.id, believing)
    if results := source.sofa(run.id):
        wanted = {result.probe_set for result in results}
        for probe_set in source.probe_sets():
            if probe_set.id in wanted:
                target.save_probe_set(probe_set)
        target.save_sofa(run.id, results)
    target.save_near_duplicates(run.id, source.near_duplicates(run.id))
    for held in source.held(run.id):
        own = tuple(mark for mark in held.marks if mark.triple_id in said)
        target.save_held(run.id, replace(held, marks=own))
    target.save_places(run.id, source.places(run.id))
    for encoder in source.encoders():
        target.save_vectors(encoder, source.vectors(run.id, encoder))
    target.save_corpus(run.id, source.corpus(run.id))
    if profiles := source.profiles(run.id):
        target.save_profiles(run.id, profiles)
    if summary.seconds is not None and target.seconds(run.id) is None:
        target.add_work(run.id, summary.seconds)
    target.set_status(run.id, run.status)
    if run.status == "running":  # otherwise setting the status derived it
        target.derive(run.id)
    return written


def _shown(triples: Iterable[TripleView], progress: Progress) -> Iterator[Triple]:
    """The triples in the words that their nodes show."""
    for some in chunks(triples):
        yield from (Triple(t.group, t.predicate, t.object) for t in some)
        progress.advance(len(some))


def _has(target: Store, name: str) -> bool:
    """Whether the target has a run of that name. If not, it has none of its generations."""
    try:
        target.find_run(name)
    except RunNotFound:
        return False
    return True


def _lacking(
    run: StoredRun, target: Store, progress: Progress, *, new: bool
) -> Iterator[Generation]:
    """The generations of an import that the target lacks; their answers have been copied by then.
    They are looked up unless the run is `new` there."""
    for chunk in chunks(run.generations()):
        missing = _missing(run.store, target, chunk, new=new)
        progress.advance(len(chunk), new=len(missing))
        yield from missing


def _copy_rounds(run: StoredRun, target: Store, progress: Progress, *, new: bool) -> int:
    """Copy a crawl round by round: the target may hold an earlier version of a round. Returns the
    number of generations that it lacked."""
    written = 0
    for (iteration, arm), of_round in groupby(
        run.generations(), key=lambda g: (g.iteration, g.arm)
    ):
        batch = list(of_round)
        lacking = sum(len(_missing(run.store, target, c, new=new)) for c in chunks(batch))
        target.record(run.id, arm, iteration, batch)
        written += lacking
        # A summary does not count them.
        progress.grow(sum(g.strategy == READING for g in batch))
        progress.advance(len(batch), new=lacking)
    return written


def _missing(
    source: Store, target: Store, some: Sequence[Generation], *, new: bool
) -> list[Generation]:
    """The generations that the target lacks, once the answers of all of them have been copied."""
    _copy_answers(source, target, sorted({g.answer_key for g in some if g.answer_key}))
    known = set() if new else target.known_generations([g.id for g in some])
    return [g for g in some if g.id not in known]


def _copy_answers(source: Store, target: Store, keys: Sequence[str]) -> None:
    known = target.answers(keys) if keys else {}
    if missing := [key for key in keys if key not in known]:
        target.keep_answers(list(source.answers(missing).values()))


def chunks(items: Iterable[_T]) -> Iterator[list[_T]]:
    """The items in lists of a few thousand."""
    stream = iter(items)
    while chunk := list(islice(stream, _CHUNK)):
        yield chunk
