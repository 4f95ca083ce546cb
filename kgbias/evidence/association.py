"""Association in a model's vectors: how near a group and a statement are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kgbias.errors import DataError
from kgbias.evidence.indicators import Indicators
from kgbias.evidence.names import declared_indicators
from kgbias.evidence.probe_tables import build_group_tables
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, ProbedEdge, ProbeRun, canonical_json
from kgbias.ids import content_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.measure.embedding import load_vectors, normalise_rows
from kgbias.models.embed import Span, open_encoder
from kgbias.probe.result import Statement
from kgbias.probe.run_probes import lifts_over_others
from kgbias.stats.inference import Values

_MAX_TEXT_CHARACTERS = 400  # characters of a text, far below what models read


def compute_associations(similarity: Values) -> Values:
    """The association of groups and statements, [groups, statements], from their cosines.

    It is the contrast of the cosines (`kgbias.probe.run_probes.lifts_over_others`: a group against
    the others, beyond what it has at every statement), divided by the group's standard deviation
    over
    statements: an effect size as in the single-category test of Caliskan et al. (2017). Positive is
    nearer to this group than to the others. 0 if a group is equally near to every statement.
    """
    values = lifts_over_others(similarity)
    return np.asarray(values / spread_over_statements(values))


def spread_over_statements(values: Values) -> Values:
    """The standard deviation of each row over statements, [groups, 1]; 1 in place of 0."""
    deviations = values.std(axis=1, keepdims=True)
    return np.where(deviations > 1e-12, deviations, 1.0)


GROUP_NAMES = "group names"
GroupTerms = tuple[str, tuple[tuple[str, ...], ...]]  # the kind of words, and each group's


def choose_group_terms(groups: Sequence[Group], indicators: Indicators) -> GroupTerms:
    """The words that stand for the groups of a category in vectors: the kind of declared indicators
    that most have (`Indicators.choose_for_category`), or, if any group has fewer than 8, the names
    of all groups, because words of two kinds differ by more than their groups."""
    kind, sets = indicators.choose_for_category(groups)
    if len(sets) < len(groups):
        return GROUP_NAMES, tuple((group.name, *group.variants) for group in groups)
    return kind, tuple(sets[group].words for group in groups)


def compute_similarities(
    words: Sequence[Sequence[str]], statements: Sequence[str], vectors: "TextEmbedder"
) -> Values:
    """The cosines of groups and statements, [groups, statements]; a group's is the mean over the
    `words` that stand for it."""
    term_vectors = vectors.embed([term for group_terms in words for term in group_terms])
    statement_vectors = vectors.embed(statements)
    # All terms are embedded in one call, then parted by group.
    ends = np.cumsum([len(group_terms) for group_terms in words])[:-1]
    means = np.stack([part.mean(axis=0) for part in np.split(term_vectors, ends)])
    return np.asarray(means @ statement_vectors.T)


class TextEmbedder:
    """Vectors of texts, of length 1, from a table of word vectors ("vectors:FILE", the mean over
    words) or any local model (the mean over the tokens of its last layer, each text by itself).

    `name` names the source, with its revision."""

    def __init__(
        self, spec: str, *, device: str = "auto", progress: Progress | None = None
    ) -> None:
        self._table = self._encoder = None
        if spec.startswith("vectors:"):
            self._table = load_vectors(spec, device)
            self.name = f"{self._table.name} {self._table.version}".strip()
        else:
            notify = progress.note if progress else None
            self._encoder = open_encoder(spec, device=device, notify=notify)
            self.name = f"{self._encoder.info.title} {self._encoder.info.revision}".strip()

    def embed(self, texts: Sequence[str]) -> Values:
        """[n, d], each row of length 1, or 0 for a text without a vector."""
        if self._table is not None:
            return self._table.embed(texts)
        assert self._encoder is not None
        spans = [Span(text[:_MAX_TEXT_CHARACTERS] or ".") for text in texts]
        order = sorted(set(spans), key=lambda span: span.text)  # batches depend only on the set
        rows = self._encoder.embed(order, "mean").astype(np.float64)
        place = {span: n for n, span in enumerate(order)}
        return normalise_rows(rows[[place[span] for span in spans]])


def embed_run(
    run: StoredRun,
    probe_run: ProbeRun,
    spec: str,
    *,
    indicators: Indicators | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> ProbeRun:
    """Write `similarity` and `association` on the edges of a probing, from the vectors of the model
    that `spec` names, unless the store already holds them. `indicators` are the words that stand
    for groups (None: the shipped ones). Returns the probing, whose record names the vectors, and
    for each category the kind of words.

    Raises UsageError for a spec that gives no vectors, DataError for a probing without edges.
    """
    reporter = progress or SilentProgress()
    vectors = TextEmbedder(spec, device=device, progress=progress)
    stated_pairs = [(t.group_id, Statement(t.predicate, t.object)) for t in run.triples()]
    tables = list(
        build_group_tables(
            run.groups, probe_run, run.find_all(ProbedEdge, asking=probe_run), stated_pairs
        ).values()
    )
    if not tables:
        raise DataError(f"run {run.name} has no probes by {probe_run.model.title}")
    declared = indicators or declared_indicators(run)
    terms_by_category = {
        table.category: choose_group_terms(table.groups, declared) for table in tables
    }
    embedded = {
        "vectors": vectors.name,
        "vector_terms": {category: kind for category, (kind, _) in terms_by_category.items()},
        "words": content_id("words", canonical_json(terms_by_category)),
    }
    is_current = all(probe_run.record.get(name) == value for name, value in embedded.items())
    if is_current and all(e.similarity is not None for t in tables for row in t.edges for e in row):
        return probe_run
    for table in tables:
        reporter.stage(f"embed {table.category}", len(table.statements))
        similarity = compute_similarities(
            terms_by_category[table.category][1], [s.text for s in table.statements], vectors
        )
        reporter.advance(len(table.statements))
        association = compute_associations(similarity)
        run.put(
            ProbedEdge,
            [
                replace(
                    edge, similarity=float(similarity[g, s]), association=float(association[g, s])
                )
                for g, row in enumerate(table.edges)
                for s, edge in enumerate(row)
            ],
            asking=probe_run,
        )
    probe_run = replace(probe_run, record={**probe_run.record, **embedded})
    run.put(ProbeRun, [probe_run])
    return probe_run
