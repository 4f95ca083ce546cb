"""Copying runs from one store to another. Every write can be repeated: an interrupted copy is
finished by starting it again, and copying what the target already has changes nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import TypeVar

from kgbias.errors import RunNotFound
from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.edge_records import edges_by_asking, plain_edges
from kgbias.graph.node_records import held_nodes
from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import BeliefRun, ChosenEdge, Generation, Triple, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import spoken_name

_CHUNK_ROWS = 5_000
_T = TypeVar("_T")


def push_run(run: StoredRun, target: Store, progress: Progress | None = None) -> int:
    """Copy a run: its seeds, answers, generations, triples, what people decided about them, the
    scores of its current metrics, and everything found about it (figures, association tests,
    topics, probes, forced choices, beliefs, SoFa, near-duplicates, recorded stereotypes, the
    centralities of its nodes, profiles), and the labels of its triples. Returns the number of
    generations that the target did not have.

    Generations are streamed: a few thousand of an import are in memory at a time, or one round of
    any other run, which the target replaces as a whole. Raises RunConflict if the target has
    another run of that name."""
    progress = progress or SilentProgress()
    source = run.store
    # Then no generation need be looked up there.
    is_new = not _has_run(target, run.record.name)
    target.begin_run(run.record)
    triples = run.triples()
    progress.stage("triples", len(triples))
    # Nodes first: they then show the same surface form in both stores.
    english = {group.id: group.english for group in run.groups}
    target.keep_triples(_shown_triples(triples, english, progress))

    decisions = source.decisions(run.id)  # what was rejected may have been shown
    target.keep_triples([d.read for d in decisions if d.read])

    summary = source.summary(run.id)
    progress.stage("generations", summary.generations)
    if run.record.kind == "import":
        written_count = target.load_import(
            run.id, _lacking_generations(run, target, progress, is_new=is_new)
        )
    else:
        written_count = _copy_rounds(run, target, progress, is_new=is_new)

    target.add_decisions(run.id, decisions)
    # First: saving scores makes a metric the current one, and the current ones come last.
    for metric in [m for m in source.scorers(run.id) if is_swapped(m)]:
        swapped_scores = source.scores(metric, [t.id for t in triples])
        target.save_scores(run.id, metric, list(swapped_scores.values()))
    for measure, metric in source.metrics(run.id).items():
        scores = [t.scores[measure] for t in triples if measure in t.scores]
        progress.stage(spoken_name(measure), len(scores))
        target.save_scores(run.id, metric, scores)
        progress.advance(len(scores))
    triple_ids = {t.id for t in triples}
    target.add_labels([x for x in source.labels() if x.triple_id in triple_ids])
    target.save_topics(run.id, source.topics(run.id))
    target.save_associations(run.id, source.associations(run.id))
    target.save_attributions(source.attributions(run.id))
    for node in held_nodes():  # first: edges may have them as ends
        target.put(run.id, node.record, source.find_all(run.id, node.record))
    for edge in plain_edges():
        target.put(run.id, edge.record, source.find_all(run.id, edge.record))
    for belief_run in source.find_all(run.id, BeliefRun):
        target.keep_statements(source.statements(run.id, belief_run.id))
        target.save_names(source.names(run.id, belief_run.id))
    for asking_kind, edges in edges_by_asking().items():
        for asking in source.find_all(run.id, asking_kind.record):
            for edge in edges:
                records = source.find_all(run.id, edge.record, asking=asking)
                if edge.record is ChosenEdge:
                    _copy_choice_answers(source, target, records)
                target.put(run.id, edge.record, records, asking=asking)
            # Last: it says that nothing is missing.
            target.put(run.id, asking_kind.record, [asking])
    if results := source.sofa_results(run.id):
        probe_set_ids = {result.probe_set for result in results}
        for probe_set in source.probe_sets():
            if probe_set.id in probe_set_ids:
                target.save_probe_set(probe_set)
        target.save_sofa_results(run.id, results)
    target.save_near_duplicates(run.id, source.near_duplicates(run.id))
    for matches in source.stereotype_matches(run.id):
        # Without the marks of statements that a review has rejected since.
        own_matches = tuple(mark for mark in matches.marks if mark.triple_id in triple_ids)
        target.save_stereotype_matches(run.id, replace(matches, marks=own_matches))
    target.save_centralities(run.id, source.centralities(run.id))
    for encoder in source.encoders():
        target.save_vectors(encoder, source.vectors(run.id, encoder))
    target.save_corpus(run.id, source.corpus(run.id))
    if profiles := source.profiles(run.id):
        target.save_profiles(run.id, profiles)
    # Only once: a repeated push would add them up.
    if summary.seconds is not None and target.run_seconds(run.id) is None:
        target.add_work(run.id, summary.seconds)
    target.set_status(run.id, run.status)
    if run.status == "running":  # otherwise setting the status derived it
        target.derive_edges(run.id)
    return written_count


def _shown_triples(
    triples: Iterable[TripleView], english: Mapping[str, str], progress: Progress
) -> Iterator[Triple]:
    """The triples in the words that their nodes show; `english` has the names of groups, by id."""
    for chunk in iter_chunks(triples):
        yield from (
            Triple(t.group, t.predicate, t.object, english.get(t.group_id, "")) for t in chunk
        )
        progress.advance(len(chunk))


def _has_run(target: Store, name: str) -> bool:
    """Whether the target has a run of that name. If not, it has none of its generations."""
    try:
        target.find_run(name)
    except RunNotFound:
        return False
    return True


def _lacking_generations(
    run: StoredRun, target: Store, progress: Progress, *, is_new: bool
) -> Iterator[Generation]:
    """The generations of an import that the target lacks; their answers have been copied by then.
    They are looked up unless the run is `is_new` there."""
    for chunk in iter_chunks(run.generations()):
        missing = _find_missing(run.store, target, chunk, is_new=is_new)
        progress.advance(len(chunk), new=len(missing))
        yield from missing


def _copy_rounds(run: StoredRun, target: Store, progress: Progress, *, is_new: bool) -> int:
    """Copy a crawl round by round: the target may hold an earlier version of a round. Returns the
    number of generations that it lacked."""
    written_count = 0
    for (iteration, arm), round_generations in groupby(
        run.generations(), key=lambda g: (g.iteration, g.arm)
    ):
        batch = list(round_generations)
        lacking = sum(
            len(_find_missing(run.store, target, c, is_new=is_new)) for c in iter_chunks(batch)
        )
        target.record_round(run.id, arm, iteration, batch)
        written_count += lacking
        # A summary does not count them.
        progress.grow(sum(g.strategy == READING_STRATEGY for g in batch))
        progress.advance(len(batch), new=lacking)
    return written_count


def _find_missing(
    source: Store, target: Store, generations: Sequence[Generation], *, is_new: bool
) -> list[Generation]:
    """The generations that the target lacks, once the answers of all of them have been copied."""
    _copy_answers(source, target, sorted({g.answer_key for g in generations if g.answer_key}))
    known_ids = set() if is_new else target.known_generations([g.id for g in generations])
    return [g for g in generations if g.id not in known_ids]


def _copy_answers(source: Store, target: Store, keys: Sequence[str]) -> None:
    known_answers = target.answers(keys) if keys else {}
    if missing_keys := [key for key in keys if key not in known_answers]:
        target.keep_answers(list(source.answers(missing_keys).values()))


def _copy_choice_answers(source: Store, target: Store, choices: Sequence[ChosenEdge]) -> None:
    """Copy the answers that choices rest on."""
    for keys in iter_chunks(sorted({key for e in choices for key in (*e.answers, *e.others)})):
        _copy_answers(source, target, keys)


def iter_chunks(items: Iterable[_T]) -> Iterator[list[_T]]:
    """The items in lists of a few thousand."""
    stream = iter(items)
    while chunk := list(islice(stream, _CHUNK_ROWS)):
        yield chunk
