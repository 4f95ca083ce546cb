"""The data of a report and its exhibits: a run with its measures, read once.

It alone reads the store for `kgbias.report`; the page, its sections and the exhibits render from
it. A report of several runs has `multi_run_data`.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kgbias.compare.content_tests import ContentTest, run_content_tests
from kgbias.compare.families import (
    GroupTest,
    OmnibusTest,
    attach_label_differences,
    compared_measures,
    run_arm_tests,
    run_omnibus_tests,
)
from kgbias.compare.refusals import CategoryRefusals, measure_refusals
from kgbias.compare.variance_components import compute_variances
from kgbias.crawl.seeds import CUSTOM_CATEGORY
from kgbias.evidence.added_columns import MethodColumns
from kgbias.evidence.evidence_table import (
    EvidenceInputs,
    EvidenceTable,
    StoredBeliefs,
    assemble_evidence,
    read_beliefs,
)
from kgbias.evidence.model_agreement import BeliefComparison
from kgbias.evidence.names import groups_with_all_variants
from kgbias.evidence.picture import BeliefLookup
from kgbias.evidence.probe_tables import NameTable, build_name_tables
from kgbias.evidence.story_evidence import StoryEvidence
from kgbias.graph.cross_mentions import exclude_cross_mentions, explain_costly_measures
from kgbias.graph.draws import Draws
from kgbias.graph.selection import (
    SelectedStatements,
    Selection,
    count_first_attempt_echoes,
    select_statements,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    BeliefRun,
    ChoiceRun,
    ChosenEdge,
    Generation,
    Group,
    GroupScore,
    Metric,
    ProbedEdge,
    ProbeRun,
    Run,
    RunSummary,
    TopicModel,
    TripleView,
    WordAttribution,
)
from kgbias.graph.vectors import StatementVectors
from kgbias.io.progress import Progress, SilentProgress
from kgbias.measure.figures import read_figures, share_making_sense
from kgbias.measure.ppi_figures import CorrectedDifferences
from kgbias.measure.scorer_agreement import ScorerAgreement, compare_scorers
from kgbias.measure.semantic_search import MIN_SIMILAR_COSINE, SHIPPED_ENCODER
from kgbias.measure.topics.shares import GroupShares, topic_shares
from kgbias.measures import get_measure, measure_values
from kgbias.probe.result import ProbeAgreement as SaidAndProbable
from kgbias.probe.run_probes import (
    RankedStatements,
    collect_statements,
    compare_said_and_probable,
)
from kgbias.report.figures import GroupFigures
from kgbias.stats.inference import Estimate, bootstrap, mean, proportion
from kgbias.stats.poststratification import MODEL_CHOSEN_FORM
from kgbias.stats.variance import VarianceComponents

_MAX_TITLE_GROUPS = 4  # groups in the title, if they have no category


class RunData:
    """A run with everything that can be shown about it. Each part is read from the store at most
    once, when first asked for.

    Args:
        stored_run: the run in its store, `stored` from then on.
        correction: of the p-values over a family of tests, "holm" or "bh".
        selection: which statements count.
        is_thorough: whether to take the time that files for a paper are worth, and a page is not.
    """

    def __init__(
        self,
        stored_run: StoredRun,
        *,
        correction: str = "holm",
        selection: Selection | None = None,
        progress: Progress | None = None,
        is_thorough: bool = False,
    ) -> None:
        self.is_thorough = is_thorough
        self.progress = progress or SilentProgress()
        self.run = stored_run.record
        self.correction = correction
        self.selection = selection or Selection()
        self.stored = stored_run

    @cached_property
    def groups_with_names(self) -> list[Group]:
        """The run's groups with all that they are called as variants."""
        return groups_with_all_variants(self.stored)

    @cached_property
    def summary(self) -> RunSummary:
        """The run's counts."""
        return self.stored.store.summary(self.run.id)

    @cached_property
    def refusals(self) -> list[CategoryRefusals]:
        """About whom the model declined to answer, by category; of crawls, where each answer is
        about a group."""
        if self.run.kind != "crawl" or not self.summary.refused:
            return []
        return measure_refusals(self.run.groups, self.generations, None)

    @cached_property
    def associations(self) -> Sequence[AssociationNode]:
        """The association tests of the run."""
        return self.stored.associations()

    @cached_property
    def attributions(self) -> Sequence[WordAttribution]:
        """The effects of words on scores."""
        return self.stored.attributions()

    @cached_property
    def vectors(self) -> StatementVectors:
        """The vectors of the run's statements that the store keeps, by the encoder that ships."""
        return self.stored.vectors(SHIPPED_ENCODER)

    @cached_property
    def counted(self) -> SelectedStatements:
        """The statements that count, and what was left out."""
        return select_statements(self.stored, self.selection)

    @cached_property
    def comparable_statements(self) -> SelectedStatements:
        """What counts when groups are compared with each other."""
        return exclude_cross_mentions(self.stored, self.counted, self.metrics, self.scorers)

    def labels(self, metric: Metric) -> dict[str, str]:
        """What a scorer called each statement that counts and that it judged."""
        scores = self.stored.store.scores(metric, list({t.id for t in self.triples}))
        return {id: score.label for id, score in scores.items()}

    @cached_property
    def scorers(self) -> Sequence[Metric]:
        """Everything that judged statements of the run."""
        return self.stored.scorers()

    @cached_property
    def draws(self) -> Draws:
        """How the statements were drawn."""
        return Draws.from_run(self.stored, self.counted)

    @cached_property
    def arms(self) -> "list[ArmData]":
        """The arms that count, each with its statements and figures."""
        return [ArmData(self, arm) for arm in self.counted.arms]

    @property
    def plain_arm(self) -> "ArmData | None":
        """The arm that was asked plainly, or else the first."""
        return next((arm for arm in self.arms if arm.name == "none"), next(iter(self.arms), None))

    @property
    def triples(self) -> Sequence[TripleView]:
        """The statements that count; with several arms, a row for each."""
        return self.counted.triples

    @cached_property
    def scores(self) -> Sequence[GroupScore]:
        """The figures of groups in each arm."""
        return read_figures(self.stored, self.selection, self.counted)

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """What each measure of the run was scored by."""
        return self.stored.metrics()

    @cached_property
    def models(self) -> Mapping[str, TopicModel]:
        """The topics of each category that has any."""
        return {m.category: m for m in self.stored.topics()}

    @cached_property
    def generations(self) -> Sequence[Generation]:
        return list(self.stored.generations())

    @cached_property
    def echoes_let_pass(self) -> Mapping[str, int]:
        """By arm, how many first attempts yielded a statement that repeats an example and that the
        crawl itself let pass."""
        return count_first_attempt_echoes(self.stored)

    @cached_property
    def probes(self) -> Sequence[tuple[ProbeRun, list[ProbedEdge]]]:
        """Each probing of the run, with its edges."""
        return [
            (p, self.stored.find_all(ProbedEdge, asking=p)) for p in self.stored.find_all(ProbeRun)
        ]

    @cached_property
    def choices(self) -> Sequence[tuple[ChoiceRun, list[ChosenEdge]]]:
        """The forced choices of each model that was asked about the run."""
        return [
            (c, self.stored.find_all(ChosenEdge, asking=c)) for c in self.stored.find_all(ChoiceRun)
        ]

    @cached_property
    def belief_runs(self) -> Sequence[BeliefRun]:
        """How models were asked what they believe."""
        return self.stored.find_all(BeliefRun)

    @cached_property
    def evidence(self) -> EvidenceTable:
        """What was said, believed and embedded, from the store."""
        story_evidence = StoryEvidence.read(self.stored)
        return assemble_evidence(
            EvidenceInputs(
                self.run,
                self.counted,
                self.generations,
                self.probes,
                self.beliefs,
                stories=story_evidence,
                added=MethodColumns.read(self.stored),
            )
        )

    @cached_property
    def beliefs(self) -> StoredBeliefs | None:
        """What a model believes: the run's own, or else the first that was probed by names."""
        return read_beliefs(self.stored, belief_runs=self.belief_runs)

    @cached_property
    def picture_beliefs(self) -> BeliefLookup:
        """The same, as pictures of groups need it."""
        return BeliefLookup.from_edges(self.stored, self.beliefs)

    def compare_beliefs(self, category: str) -> BeliefComparison | None:
        """What several models believe about the run's statements; None for a single model, or if
        they were asked about different groups."""
        return BeliefComparison.from_run(self.stored, category, self.belief_runs, self.triples)

    @cached_property
    def name_tables(self) -> Mapping[str, NameTable]:
        """The lifts of each name of the groups of a category; none if nothing was probed by
        names."""
        believing = self.evidence.belief_run
        return build_name_tables(self.stored, believing, self.triples) if believing else {}

    @cached_property
    def agreements(self) -> Sequence[ScorerAgreement]:
        """How far scorers of one measure agree, if several judged the statements."""
        return compare_scorers(self.stored, self.triples, self.metrics, self.scorers)

    @cached_property
    def variance(self) -> Sequence[VarianceComponents]:
        """Where the variance of each measure lies."""
        return compute_variances(
            self.run.groups,
            [self.comparable_statements],
            [self.draws],
            explain_costly_measures(self.metrics),
        )

    def answers(self, generations: Sequence[Generation]) -> Mapping[str, Answer]:
        """The model's answers in these generations, by answer key."""
        return self.stored.store.answers([g.answer_key for g in generations if g.answer_key])

    @property
    def subjects(self) -> list[str]:
        """What the run is about: its categories and, of groups that were given without one, some
        names."""
        found = []
        for category in self.categories:
            names = [g.name for g in self.groups(category)]
            few = (
                names
                if len(names) <= _MAX_TITLE_GROUPS
                else [*names[: _MAX_TITLE_GROUPS - 1], "others"]
            )
            found += few if category == CUSTOM_CATEGORY else [category]
        return found

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(g.category for g in self.run.groups))

    def groups(self, category: str) -> list[Group]:
        return [g for g in self.run.groups if g.category == category]

    @cached_property
    def label_corrected_differences(self) -> CorrectedDifferences:
        """The differences between groups that labels correct."""
        return CorrectedDifferences(self.stored, self.comparable_statements, self.selection)

    @cached_property
    def arm_tests(self) -> list[GroupTest]:
        """The tests of arms against each other; none for a single arm."""
        category = {g.id: g.category for g in self.run.groups}
        return run_arm_tests(
            self.triples, correction=self.correction, categories=category, draws=self.draws
        )


class MeanWithEchoes(NamedTuple):
    """A mean in which echoes count, and how many there are; NaN without any."""

    mean: float
    echoes: int


class ArmData:
    """Everything that can be shown about one arm of a run (`run_data`)."""

    def __init__(self, run_data: RunData, arm: str) -> None:
        self.run_data, self.name = run_data, arm
        self._values_by_measure: dict[str, Mapping[str, float]] = {}
        self.counted = run_data.counted.restrict_to_arm(arm)
        self.triples = self.counted.triples

    @property
    def run(self) -> Run:
        return self.run_data.run

    @cached_property
    def comparable_statements(self) -> SelectedStatements:
        """What counts in the arm when groups are compared with each other."""
        return self.run_data.comparable_statements.restrict_to_arm(self.name)

    @cached_property
    def comparable_by_group(self) -> Mapping[str, list[TripleView]]:
        """The same by the group's id."""
        triples_by_group: dict[str, list[TripleView]] = defaultdict(list)
        for triple in self.comparable_statements.triples:
            triples_by_group[triple.group_id].append(triple)
        return triples_by_group

    @property
    def label(self) -> str:
        """The name of the arm if the report has several, or else ""."""
        return self.name if self.run_data.counted.has_several_arms else ""

    @cached_property
    def by_group(self) -> Mapping[str, list[TripleView]]:
        """The triples of each group, by its id."""
        triples_by_group: dict[str, list[TripleView]] = defaultdict(list)
        for triple in self.triples:
            triples_by_group[triple.group_id].append(triple)
        return triples_by_group

    @cached_property
    def scores(self) -> Mapping[tuple[str, str], GroupScore]:
        """The figures of groups, by the group's id and the figure's name."""
        arm_names = ("", self.counted.arm_label(self.name))
        return {(s.group_id, s.measure): s for s in self.run_data.scores if s.arm in arm_names}

    @cached_property
    def sense(self) -> Estimate:
        """The share of the arm's statements that make sense, of all those measured for it."""
        return share_making_sense(self.counted.including_unacceptable)

    @cached_property
    def distinct(self) -> float:
        """The share of distinct statements among those that count; NaN without any."""
        said_count = sum(t.count for t in self.triples)
        return len(self.triples) / said_count if said_count else math.nan

    @cached_property
    def echo_rate(self) -> Estimate:
        """The share of first attempts that repeat an example of their prompt, among those that
        could be read, with its Wilson interval. An import has none."""
        first_answers = [
            g for g in self.run_data.generations if g.arm == self.name and not g.attempt
        ]
        echoes = sum(
            g.outcome == "echo" for g in first_answers
        ) + self.run_data.echoes_let_pass.get(self.name, 0)
        read_count = sum(g.outcome in ("ok", "echo", "nonsense") for g in first_answers)
        shows_examples = any(g.shown for g in first_answers)
        return (
            proportion(echoes, read_count) if shows_examples and read_count else Estimate.missing()
        )

    @cached_property
    def _first_answers(self) -> Mapping[str, tuple[list[str], list[tuple[str, ...]]]]:
        """By group, what first stood at each place, as if echoes had not been retried: the triples
        that were said at once and, for echoes, the triples that their prompts showed."""
        places: dict[str, dict[str, Generation]] = defaultdict(dict)
        for generation in sorted(
            self.run_data.generations, key=lambda generation: generation.attempt
        ):
            if generation.arm == self.name and (
                generation.triple is not None or (generation.outcome == "echo" and generation.shown)
            ):
                places[generation.group_id].setdefault(
                    generation.path.rpartition("#")[0], generation
                )
        return {
            group: (
                [
                    generation.triple.id
                    for generation in first.values()
                    if generation.triple is not None
                ],
                [generation.shown for generation in first.values() if generation.triple is None],
            )
            for group, first in places.items()
        }

    def mean_with_echoes(self, group: Group, measure: str) -> MeanWithEchoes:
        """The mean of a measure if the first answer of each place counted, an echo as the mean of
        the examples that its prompt showed; and the number of such echoes. NaN without any."""
        said_ids, shown_ids = self._first_answers.get(group.id, ([], []))
        if not shown_ids:
            return MeanWithEchoes(math.nan, 0)
        all_values = self._values(measure)
        counted_ids = {t.id for t in self.comparable_by_group.get(group.id, ())}
        values = [all_values[id] for id in said_ids if id in counted_ids and id in all_values]
        examples = [[all_values[id] for id in ids if id in all_values] for ids in shown_ids]
        echoes = [math.fsum(found) / len(found) for found in examples if found]
        if not echoes:
            return MeanWithEchoes(math.nan, 0)
        all_means = [*values, *echoes]
        # Exact sums: the order in which a store reads its rows changes no digit.
        return MeanWithEchoes(math.fsum(all_means) / len(all_means), len(echoes))

    def _values(self, measure: str) -> Mapping[str, float]:
        """What a measure says of each triple, counted or not: read once for all groups."""
        if measure not in self._values_by_measure:
            read_value = get_measure(measure).read
            self._values_by_measure[measure] = {
                t.id: read_value(t.scores[measure])
                for t in self.comparable_statements.triples
                if measure in t.scores
            }
        return self._values_by_measure[measure]

    def groups(self, category: str) -> list[Group]:
        return self.run_data.groups(category)

    @cached_property
    def omnibus(self) -> list[OmnibusTest]:
        """The groups against each other, by measure and category; with differences that labels
        correct, where there are enough."""
        too_costly = explain_costly_measures(self.run_data.metrics)
        families = run_omnibus_tests(
            self.run,
            self.comparable_statements.triples,
            correction=self.run_data.correction,
            measures=[
                name
                for name in compared_measures(self.comparable_statements.triples)
                if name not in too_costly
            ],
            draws=self.run_data.draws,
            progress=self.run_data.progress,
        )
        corrected_of = self.run_data.label_corrected_differences.difference
        return [
            replace(f, tests=tuple(attach_label_differences(f.tests, corrected_of)))
            for f in families
        ]

    @cached_property
    def content(self) -> list[ContentTest]:
        """What is said more of each group than of the others, by category."""
        whole = self.run_data
        return run_content_tests(
            self.run.groups,
            self.by_group,
            whole.draws,
            whole.models,
            named_groups=whole.groups_with_names,
            vectors=whole.vectors,
            min_cosine=MIN_SIMILAR_COSINE,
        )

    @property
    def group_tests(self) -> list[GroupTest]:
        """Each group against the rest of its category."""
        return [test for family in self.omnibus for test in family.tests]

    def figures_of(self, category: str) -> list[GroupFigures]:
        """The groups of a category that have a regard, in the form that the figures need."""
        return [
            GroupFigures(
                g.name,
                overall,
                measure_values(self.comparable_by_group.get(g.id, ()), "toxicity"),
                self.scores.get((g.id, "toxicity_mean")),
            )
            for g in self.groups(category)
            if (overall := self.scores.get((g.id, "overall_regard")))
        ]

    def mean(self, group: Group, measure: str) -> Estimate:
        """The mean of a measure over all statements of a group."""
        triples = self.comparable_by_group.get(group.id, ())
        return bootstrap(self.run_data.draws.sample(triples, measure), mean)

    def prompted_note(self, category: str) -> str:
        """How many statements about a category have a predicate that their prompt gave, in words;
        "" if that is not known."""
        triples = [t for g in self.groups(category) for t in self.comparable_by_group.get(g.id, ())]
        sample = self.run_data.draws.stratified_sample(triples, "regard")
        if not (prompted := sample.prompted_count):
            return ""
        return f"In {prompted} of {sample.n} statements the prompt gave the predicate."

    @cached_property
    def probe_ranks(self) -> Sequence[Mapping[str, RankedStatements]]:
        """For each probing of the run, by category: the ranks of groups before the statements of
        the arm that count, and the triples that count. Only of categories of two groups or more,
        and of statements probed after all of them."""
        ranks_by_probing = []
        for _, edges in self.run_data.probes:
            ranks = {(e.group_id, e.predicate_id, e.object_id): e.rank for e in edges}
            by_category = {}
            for category in self.run_data.categories:
                groups = self.groups(category)
                statements, said_counts = collect_statements(groups, self.triples)
                rows = [[ranks.get((g.id, *s.key), 0) for s in statements] for g in groups]
                order = np.array(rows, dtype=np.int64)
                # 0 stands for a group that was not probed before the statement.
                complete = [s for s in range(len(statements)) if (order[:, s] > 0).all()]
                place = {s: n for n, s in enumerate(complete)}
                if len(groups) > 1 and complete:
                    kept_counts = tuple(
                        said._replace(statement=place[said.statement])
                        for said in said_counts
                        if said.statement in place
                    )
                    by_category[category] = RankedStatements(order[:, complete], kept_counts)
            ranks_by_probing.append(by_category)
        return ranks_by_probing

    @cached_property
    def said_and_probable(self) -> Sequence[SaidAndProbable | None]:
        """For each probing of the run, whether what counts of the arm is also probable, over all
        categories; None if nothing that counts was probed."""
        return [
            compare_said_and_probable(list(p.values())) if p else None for p in self.probe_ranks
        ]

    def wordings_note(self, category: str, measure: str, *, chosen: bool = False) -> str:
        """How many wordings of prompts are behind each group's mean of a measure (`chosen`: where
        the model chose the predicate), in words; "" if all have one, or that is not known."""
        wording_counts = set()
        for group in self.groups(category):
            stratified = self.run_data.draws.stratified_sample(
                self.comparable_by_group.get(group.id, ()), measure
            )
            sample = stratified.form_sample(MODEL_CHOSEN_FORM) if chosen else stratified.sample
            if sample.design is not None and sample.places is not None and len(sample.values):
                of_place = sample.design.levels.get("wordings")
                if of_place is not None:
                    wording_counts.add(len(np.unique(of_place[sample.places])))
        if not wording_counts or max(wording_counts) < 2:
            return ""
        fewest, most_wordings = min(wording_counts), max(wording_counts)
        unless = " if it has several" if fewest < 2 else ""
        return (
            f"Behind each mean are "
            f"{fewest if fewest == most_wordings else f'{fewest} to {most_wordings}'} wordings "
            f"of the prompts; its interval allows for other wordings{unless}, and is wide where "
            "these few disagree."
        )

    def named_scores(self, category: str, figure: str) -> list[tuple[str, GroupScore]]:
        """The groups of a category that have this figure, by name."""
        scores = [(g.name, self.scores.get((g.id, figure))) for g in self.groups(category)]
        return [(name, score) for name, score in scores if score is not None]

    def shares(self, category: str) -> list[GroupShares]:
        """How the statements about each group of a category spread over its topics."""
        model = self.run_data.models.get(category)
        return (
            topic_shares(self.run, self.triples, model, self.run_data.draws)
            if model and model.topics
            else []
        )
