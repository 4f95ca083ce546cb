"""Computations on a run's statements."""

import math
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, Unpack, overload

from kgbias.errors import ModelError, UsageError, no_such
from kgbias.graph.selection import (
    SelectedStatements,
    Selection,
    need_one_arm,
    need_statements,
    run_language,
    select_statements,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import MIN_SAME_COSINE, NodeCentrality, Topic
from kgbias.io.columns import Column
from kgbias.io.progress import Progress
from kgbias.io.rows import Rows
from kgbias.io.text import format_p_value, printable
from kgbias.measure.configure import MeasureCall, configure_measurement, options_for_language
from kgbias.parallel import open_executor
from kgbias.parameters import ExclusionOptions, Names, SelectionOptions, as_names
from kgbias.study import records
from kgbias.study.context import RunPart

if TYPE_CHECKING:
    from kgbias.compare.content_tests import DistinctiveFeature
    from kgbias.compare.families import GroupTest
    from kgbias.compare.refusals import GroupRefusals
    from kgbias.measure.figures import PromptTypeMean
    from kgbias.measure.merge import MergeResult
    from kgbias.measure.price import ScorersLike, ScoringPrice
    from kgbias.measure.scorers import Scorer
    from kgbias.report.findings import OmnibusQuestion
    from kgbias.stats.variance import VarianceComponents

_MAX_TOPIC_NAME_CHARS = 80

_QUESTION_COLUMNS = (
    Column("kind"),
    Column("category"),
    Column("measure"),
    Column("p_value", format_p_value, get=attrgetter("p")),
    Column("p_adjusted", format_p_value, get=attrgetter("p_corrected")),
    Column("asked", "d"),
    Column("tried_by_kind", get=attrgetter("tried")),
    Column("share", ".0%", interval=True, ends=("low", "high")),
    Column("prompts", "d", get=attrgetter("share.n")),
)
_PROMPT_TYPE_COLUMNS = (
    Column("measure"),
    Column("category"),
    Column("group"),
    Column("arm"),
    Column("form"),
    Column("n", "d"),
    replace(records.VALUE_COLUMN, count=""),
)
_VARIANCE_COLUMNS = (
    Column("measure"),
    Column("category"),
    Column("arm"),
    Column("n", "d"),
    Column("groups", ".3g", interval=True),
    Column("wordings", ".3g", interval=True, get=attrgetter("wordings.common")),
    Column("groups_by_wordings", ".3g", interval=True, get=attrgetter("wordings.interaction")),
    Column("recrawls", ".3g", interval=True, get=attrgetter("recrawls.common")),
    Column("groups_by_recrawls", ".3g", interval=True, get=attrgetter("recrawls.interaction")),
    Column("within", ".3g"),
    Column("verdict"),
)
_TEST_COLUMNS = (
    Column("arm"),
    Column("measure"),
    Column("category"),
    *records.PAIR_COLUMNS,
    Column("p_value", format_p_value, get=attrgetter("p")),
    Column("p_adjusted", format_p_value),
    Column("omnibus_p_value", format_p_value, get=attrgetter("omnibus_p")),
    Column("chosen", "+.3f", get=lambda test: _form_value(test, "chosen")),
    Column("raw", "+.3f", get=lambda test: _form_value(test, "raw")),
    *records.corrected_columns("label_corrected_difference"),
    Column("shrunken", "+.3f", get=attrgetter("shrunken.value")),
    Column("detectable", ".3g"),
    Column("verdict"),
)


def _form_value(test: "GroupTest", form: str) -> float:
    """The difference of means over the statements of this form; NaN without any."""
    return test.forms[form].value if form in test.forms else math.nan


class RunMeasuring(RunPart):
    """Computations on a run's statements; a part of `Run`."""

    @overload
    def measure(
        self,
        *,
        preset: str | None = None,
        dry_run: Literal[False] = False,
        **options: Unpack[MeasureCall],
    ) -> Rows[records.GroupRow]: ...

    @overload
    def measure(
        self,
        *,
        preset: str | None = None,
        dry_run: Literal[True],
        **options: Unpack[MeasureCall],
    ) -> Rows["ScoringPrice"]: ...

    def measure(
        self, *, preset: str | None = None, dry_run: bool = False, **options: Unpack[MeasureCall]
    ) -> "Rows[records.GroupRow] | Rows[ScoringPrice]":
        """Score every triple and compute each group's figures; returns `groups()`.

        The store keeps the figures over the statements that count by default, arm by arm. Topics
        are found in the statements of all arms that the selection keeps.

        Beside the offline scorers and axes, the same encoder reads what each statement says without
        its group; the store keeps these vectors, by which statements are found by what they mean.

        Scores by the same version of the same scorer are reused, so this may be stopped and
        repeated. In a run in another language, measures that you name no scorer of are scored by
        `multilingual:LANGUAGE` where that was tested, and else left out. Scorers that read only
        English, and topics, refuse such a run.

        Frame columns: as of `groups`; of a dry run those of `kgbias.measure.price.ScoringPrice`.

        Args:
            preset: "salinas-2023" sets everything as in that paper; other arguments override it.
            dry_run: open and ask nothing, and return the statements that each scorer would read,
                and the requests to models and servers. Topics have a row, the statements to embed,
                which are those that count by the current scores; so have the vectors that the
                store keeps.
            options: the `scorers` by measure, `axes`, `topics` and how to find them, `embedding`
                and `device`, described at `kgbias.measure.configure.MeasureConfig`; and which
                statements the topics and the returned figures cover, as in `counted_statements`.

        Examples:
            >>> for row in run.measure(axes=False):
            ...     print(row.group, row.statements, row.figures["overall_regard"].value)
            Velmari people 16 -6.0
            Orunthi people 16 0.0
        """
        if dry_run:
            return self._price_measure(preset, options)
        from kgbias.measure.scorers._joint_scoring import reads_jointly
        from kgbias.measure.scoring import measure_run as measure_run
        from kgbias.measure.semantic_search import store_vectors
        from kgbias.measure.topics.run import measure_topics, open_topic_vectors
        from kgbias.measure.topics.shares import entropy_verdict, explain_unfit

        run = self.stored
        need_statements(self.stored)
        in_language = ""
        if preset is None:
            options, in_language = options_for_language(run_language(run.config), options)
        config, selection, remark = configure_measurement(preset, **options)
        topics_device = _device_for(config.embedding, config.device)
        with self._context.working() as progress:
            self._context.remark(remark or in_language)
            if config.topics:  # refused now, not after minutes of scoring
                open_topic_vectors(run, config.embedding, topics_device)
            try:
                scorers = load_scorers(
                    run, config.scorer_specs, progress, device=config.device, labels=config.labels
                )
            except ModelError as error:
                if preset is None:
                    raise
                scored_by = " and ".join(f"{m} by {s}" for m, s in config.scorers.items() if s)
                raise ModelError(
                    f"{error}: {preset} scores {scored_by}; download them where there is a "
                    f"network, or "
                    "give other scorers with the preset (`scorers`)"
                ) from error
            with open_executor(config.executor, progress) as executor:
                counted = measure_run(
                    run, scorers, progress, processes=config.processes, executor=executor
                )
                if any(reads_jointly(scorer) for scorer in scorers):  # their encoder is open
                    store_vectors(
                        run,
                        progress,
                        device=config.device,
                        processes=config.processes,
                        executor=executor,
                    )
            if config.topics:
                models = measure_topics(
                    run,
                    config.topic_settings,
                    progress,
                    device=topics_device,
                    selection=Selection(**selection),
                )
                for model in models:
                    if explain_unfit(model):
                        progress.note(f"{model.category}: {entropy_verdict(model)}")
        criteria = Selection(**selection)
        counted = self._select_statements(criteria, counted if criteria == Selection() else None)
        return records.group_rows(run, counted, criteria)

    def _price_measure(self, preset: str | None, options: MeasureCall) -> Rows["ScoringPrice"]:
        from kgbias.measure.price import ScoringPrice, price_measurement

        if preset is None:
            options, in_language = options_for_language(run_language(self.stored.config), options)
            self._context.remark(in_language)
        config, selection, _ = configure_measurement(preset, **options)
        scorings = price_measurement(self.stored, config.scorer_specs)
        if config.topics:
            triples = select_statements(self.stored, Selection(**selection)).triples
            scorings.append(ScoringPrice("topics", config.embedding, len({t.id for t in triples})))
        return Rows(scorings, ScoringPrice)

    def rename_topic(self, topic: str, name: str) -> Topic:
        """Name a topic, wherever it is shown; returns the topic.

        A topic is defined by its words: it keeps the name if topics are found again with the same
        words, and has it in every run of the store with these words in this category.

        Args:
            topic: its category and number ("gender:0"), its number where that is unambiguous, its
                name, or a word that only it has.
            name: one line of at most 80 characters; "" removes the name, and the topic is named by
                its words again.
        """
        from kgbias.measure.topics import find_topic

        new_name = name.strip()
        if new_name != printable(new_name) or len(new_name) > _MAX_TOPIC_NAME_CHARS:
            raise UsageError(
                f"a topic's name is one line of at most {_MAX_TOPIC_NAME_CHARS} characters"
            )
        models = self.stored.topics()
        if not any(model.topics for model in models):
            raise UsageError(f"run {self.name!r} has no topics: measure it with `topics`")
        match = find_topic(models, topic)
        self.stored.store.name_topic(match.id, new_name)
        return find_topic(self.stored.topics(), f"{match.category}:{match.number}")

    def structure(
        self, *, seed: int = 0, **selection: Unpack[SelectionOptions]
    ) -> Rows[NodeCentrality]:
        """Find central groups and objects, communities, and the objects that bridge groups, in the
        statements of one arm that count (`counted_statements`), and write them to the graph. `seed`
        is for the search for communities.

        Frame columns: kind (group or object), node_id, label, degree, betweenness, community,
        groups (how many an object was said of).

        Args:
            seed: the random seed of the search.
            selection: which statements count, as for `counted_statements`; `arm` names one in a run
                with several.
        """
        from kgbias.graph.structure import measure_structure

        statements = need_one_arm(self.stored, self._select_statements(Selection(**selection)))
        with self._context.working() as progress:
            centralities = measure_structure(statements.triples, seed=seed, progress=progress)
        self.stored.save_centralities(centralities)
        return Rows(centralities, NodeCentrality)

    def merge(
        self,
        *,
        threshold: float = MIN_SAME_COSINE,
        encoder: str = "minilm",
        undo: bool = False,
        device: str = "auto",
    ) -> "MergeResult":
        """Link statements that say the same in other words, of whichever group (near-duplicates).

        Nothing is merged: triples stay as they were said. `triples(merged=True)` and
        `export(merged=True)` count linked statements as one, and `undo` removes the links.

        Args:
            threshold: the cosine similarity, above 0 and at most 1, from which statements are
                linked. The default was measured (docs/methods/how-well.md).
            encoder: what places the statements, as for `measure`: with minilm, the vectors that
                `measure` kept are used.
            undo: remove the links.
            device: where the encoder runs, as for `measure`.
        """
        from kgbias.measure.merge import merge_run

        with self._context.working() as progress:
            return merge_run(
                self.stored,
                threshold=threshold,
                encoder=encoder,
                undo=undo,
                device=device,
                progress=progress,
            )

    def compare_groups(
        self,
        *,
        pairwise: bool = False,
        groups: Names = (),
        measures: Names = (),
        correction: str = "holm",
        **selection: Unpack[SelectionOptions],
    ) -> Rows["GroupTest"]:
        """Test whether groups differ in the statements that count (`counted_statements`): first all
        of a category together (`omnibus_p_value`), then each against the others, or, with
        `pairwise`, every pair. Differences are of means at one mix of prompts, tested two-sided by
        permutation of whole prompts; p-values are corrected ("holm" or "bh") over each family, one
        measure in one category of one arm (docs/methods/statistics.md). Where people labelled
        enough, the difference that labels correct has a test of its own
        (`GroupTest.label_corrected_difference`).

        Frame columns: arm, measure, category, first, second, n_first, n_second, mean_first,
        mean_second, difference with low and high, p_value, p_adjusted, omnibus_p_value, chosen and
        raw (the difference where the model chose the predicate, and at any mix of prompts),
        corrected with corrected_low, corrected_high, corrected_p_value, corrected_p_adjusted and
        labels (by people's labels), shrunken, detectable, verdict.

        Args:
            pairwise: test every pair of groups.
            groups: only these: one is compared with the rest of its category, several with each
                other. Groups left out are not part of a family.
            measures: only these.
            correction: "holm" or "bh".
            selection: as for `counted_statements`.

        Examples:
            >>> for test in run.compare_groups(measures="regard"):
            ...     print(test.verdict)
            mean regard at one mix of prompts: too few statements to tell Velmari people from
            Orunthi people
        """
        from kgbias.compare.families import (
            attach_label_differences,
            compared_measures,
            run_group_tests,
        )
        from kgbias.graph.cross_mentions import exclude_cross_mentions, explain_costly_measures
        from kgbias.graph.draws import Draws
        from kgbias.measure.ppi_figures import CorrectedDifferences

        run, metrics = self.stored, self.stored.metrics()
        too_costly = explain_costly_measures(metrics)
        need_statements(run)
        counted = select_statements(run, Selection(**selection))
        tested_measures = resolve_measures(run, counted, measures) or compared_measures(
            counted.triples
        )
        counted = exclude_cross_mentions(
            run, counted, {m: each for m, each in metrics.items() if m in tested_measures}
        )
        note = f"groups against each other: {counted.note}" if counted.note else ""
        for line in (
            note,
            *counted.remarks,
            *(too_costly[m] for m in tested_measures if m in too_costly),
        ):
            self._context.remark(line)
        with self._context.working() as progress:
            results = run_group_tests(
                self._record,
                counted.triples,
                pairing="pairs" if pairwise else "rest",
                correction=correction,
                measures=[measure for measure in tested_measures if measure not in too_costly],
                groups=[run.find_group(name).name for name in as_names(groups)] or None,
                draws=Draws.from_run(run, counted),
                progress=progress,
            )
        group_names = [run.find_group(name).name for name in as_names(groups)]
        labelled = CorrectedDifferences(run, counted, Selection(**selection), group_names)
        return _test_rows(attach_label_differences(results, labelled.difference))

    def arm_tests(
        self, *, measures: Names = (), correction: str = "holm", **leaving: Unpack[ExclusionOptions]
    ) -> Rows["GroupTest"]:
        """Test whether the run's augmentation arms differ (Salinas et al. 2023, section 6.1), as
        `compare_groups` does for groups; by what scorers say, also where people labelled.

        Frame columns: as of `compare_groups`.

        Args:
            measures: as for `compare_groups`.
            correction: as for `compare_groups`.
            leaving: which statements count, as for `counted_statements`, in all arms.
        """
        from kgbias.compare.families import run_arm_tests
        from kgbias.graph.draws import Draws

        category = {g.id: g.category for g in self._record.groups}
        counted = self._select_statements(Selection(**leaving))
        return _test_rows(
            run_arm_tests(
                counted.triples,
                correction=correction,
                measures=resolve_measures(self.stored, counted, measures),
                categories=category,
                draws=Draws.from_run(self.stored, counted),
            )
        )

    def refusals(self) -> Rows["GroupRefusals"]:
        """How often the model declined to answer about each group: the share of its prompts whose
        first answer was a refusal, with its interval over prompts, and the difference from the
        other groups of its category, tested by dealing whole prompts anew
        (`kgbias.compare.refusals`).

        Frame columns: category, group, refused (the share), low, high, prompts, difference,
        difference_low, difference_high, p_value, p_adjusted (over the groups, by the same deals).
        """
        from kgbias.compare.refusals import measure_refusals

        comparisons = measure_refusals(self._record.groups, self.stored.generations())
        category = {g.name: g.category for g in self._record.groups}

        columns = (
            Column("category", get=lambda refusal: category[refusal.group]),
            Column("group"),
            Column("refused", ".0%", interval=True, get=attrgetter("share"), ends=("low", "high")),
            Column("prompts", "d", get=attrgetter("share.n")),
            Column("difference", "+.0%", interval=True),
            Column("p_value", format_p_value, get=attrgetter("p")),
            Column("p_adjusted", format_p_value, get=attrgetter("q")),
        )
        return Rows([g for c in comparisons for g in c.groups], columns)

    def said_more(self, **selection: Unpack[SelectionOptions]) -> Rows["DistinctiveFeature"]:
        """What the model says of each group more often than of the others of its category: words,
        attributes, predicates, clusters of statements that mean nearly the same, and topics
        (docs/methods/statistics.md); by group, the largest log-odds first. The first screen shows
        those whose `category_p_value`, corrected for the number of categories, is at most 0.05.

        Args:
            selection: as for `counted_statements`; without an arm, the one that was asked plainly.

        Frame columns: category, group, arm, kind, feature, prompts, group_total (how many of the
        group's prompts led to it, of how many), others, others_total (the same for the other
        groups), difference (of the two shares, at one mix of prompts), difference_low,
        difference_high, log_odds, p_value, q_value (corrected over all features of the group),
        category_p_value (of no group of the category differing in any feature), sentence (the most
        frequent statement that has it), triples (the ids of all of them). Empty if nothing was
        found.
        """
        from kgbias.report.run_data import RunData

        need_statements(self.stored)
        arm = RunData(self.stored, selection=Selection(**selection)).plain_arm
        tests = [] if arm is None else arm.content
        sentences = {} if arm is None else {t.id: t.sentence for t in arm.triples}
        category = {g.name: g.category for g in self._record.groups}
        category_p = {test.category: test.p for test in tests}

        def sentence(feature: "DistinctiveFeature") -> str:
            return next((sentences[t] for t in feature.triples if t in sentences), "")

        arm_label = "" if arm is None else arm.label
        columns = (
            Column("category", get=lambda feature: category[feature.group]),
            Column("group"),
            Column("arm", get=lambda feature: arm_label),
            Column("kind"),
            Column("feature"),
            Column("prompts", "d"),
            Column("group_total", "d"),
            Column("others", "d"),
            Column("others_total", "d"),
            Column("difference", "+.0%", interval=True),
            Column("log_odds", "+.2f"),
            Column("p_value", format_p_value, get=attrgetter("p")),
            Column("q_value", format_p_value, get=attrgetter("q")),
            Column(
                "category_p_value",
                format_p_value,
                get=lambda feature: category_p[category[feature.group]],
            ),
            Column("sentence", get=sentence),
            Column("triples", get=lambda feature: list(feature.triples)),
        )
        place = {group: n for n, group in enumerate(category)}
        found = [one for test in tests for one in test.found]
        return Rows(sorted(found, key=lambda one: place[one.group]), columns)

    def questions(self, **selection: Unpack[SelectionOptions]) -> Rows["OmnibusQuestion"]:
        """Whether the groups of each category differ at all: in what is said of them ("said more"),
        in the tone of it by each measure ("tone"), and in how often prompts about them were refused
        ("refusals"). The first screen of a report and its summary name a difference only where
        `p_adjusted` is at most 0.05.

        Frame columns: kind, category, measure, p_value, p_adjusted (Holm, over the questions of the
        kind), asked (how many these are), tried_by_kind (a dict, for "said more": how many words,
        predicates ... were tried of each group), share with low and high (for "refusals": of the
        prompts of the category), prompts (how many).

        Args:
            selection: as for `said_more`.
        """
        from kgbias.report.findings import list_omnibus_questions
        from kgbias.report.run_data import RunData

        need_statements(self.stored)

        data = RunData(self.stored, selection=Selection(**selection))
        return Rows(list_omnibus_questions(data), _QUESTION_COLUMNS)

    def means_by_prompt_type(
        self, *, measures: Names = (), **selection: Unpack[SelectionOptions]
    ) -> Rows["PromptTypeMean"]:
        """The groups' means by what the prompts supplied: the model chose the predicate, or the
        prompt gave this initial one, or another (docs/methods/measure.md).

        Frame columns: measure, category, group, arm, form, n, value, low, high. Empty for an
        import, whose prompts are not known.

        Args:
            measures: only these (default: all).
            selection: which statements count, as for `counted_statements`.
        """
        from kgbias.measure.figures import means_by_prompt_type

        need_statements(self.stored)
        means = means_by_prompt_type(self.stored, Selection(**selection), as_names(measures))
        return Rows(means, _PROMPT_TYPE_COLUMNS)

    def variance(self, **selection: Unpack[SelectionOptions]) -> Rows["VarianceComponents"]:
        """How much of a measure's variance lies between groups, between the wordings of their
        prompts, between the crawls of a series (`Study.series`; those measured in the store), and
        between the statements of one group, wording and crawl. The amount by which a wording or a
        crawl moves all groups is separated from the amount by which it moves one group beyond
        that. One row for each measure, category and arm
        (`kgbias.stats.variance.VarianceComponents`), over the statements that count.

        Frame columns: measure, category, arm, n; groups, wordings, groups_by_wordings, recrawls,
        groups_by_recrawls (variances, each with its 95% interval in _low and _high; NaN with only
        one unit); within; and verdict: which is larger, in words, if the interval of the difference
        excludes 0.
        """
        from kgbias.compare.variance_components import variance_table

        series = self._context.series(self.name)
        runs = [run for run in series if run.status == "complete" or run.id == self.id]
        return Rows(variance_table(runs, Selection(**selection)), _VARIANCE_COLUMNS)


def load_scorers(
    run: StoredRun,
    requested: "Mapping[str, ScorersLike | None]",
    progress: Progress,
    *,
    device: str = "auto",
    labels: Mapping[str, str] | None = None,
) -> "list[Scorer]":
    """The scorers of each measure, by their specs; the first spec of a measure comes last, since
    the last scores count. A language model is checked against labelled statements before its
    judgements are used, and the agreement is shown.

    Raises UsageError for a spec that does not exist or is given twice."""
    from kgbias.measure.precision import check_shipped_labels
    from kgbias.measure.price import list_specs
    from kgbias.measure.scorers import labels_error, load_scorer, takes_labels, wrap_scorer

    scorers, labels_used = [], False
    for measure, specs in list_specs(requested).items():
        for spec in reversed(specs):
            if not isinstance(spec, str):
                scorers.append(wrap_scorer(measure, spec))
                continue
            needs_labels = takes_labels(measure, spec)
            labels_used |= needs_labels
            scorer = load_scorer(
                measure,
                spec,
                device=_device_for(spec, device),
                labels=labels if needs_labels else None,
                log=run.store,
            )
            scorers.append(scorer)
            if spec.startswith("llm:"):
                progress.note(str(check_shipped_labels(scorer)))
    if labels and not labels_used:
        raise labels_error()
    return scorers


def resolve_measures(
    run: StoredRun, counted: SelectedStatements, measures: Names
) -> list[str] | None:
    """The named measures, which the run must have; None for all."""
    from kgbias.compare.families import compared_measures

    available = compared_measures(counted.triples)
    unknown = [m for m in as_names(measures) if m not in available]
    if unknown:
        if not available:
            raise UsageError(f"run {run.name!r} has no measure {unknown[0]!r}; measure it first")
        raise UsageError(no_such("measure", unknown[0], available, f" of run {run.name!r}"))
    return list(as_names(measures)) or None


def _device_for(spec: str, device: str) -> str:
    """Where the model of a spec runs; "auto" for vectors and scores from files."""
    return "auto" if spec.startswith(("vectors:", "scores:")) else device


def _test_rows(tests: "list[GroupTest]") -> Rows["GroupTest"]:
    return Rows(tests, _TEST_COLUMNS)
