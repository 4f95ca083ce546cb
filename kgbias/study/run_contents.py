"""A run's properties and contents."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import UsageError, no_such
from kgbias.graph.selection import SelectedStatements, Selection, need_one_arm, select_statements
from kgbias.graph.types import (
    CONTENT_WARNING,
    Category,
    RunSummary,
    TopicModel,
    TripleView,
)
from kgbias.io.rows import Rows
from kgbias.io.wording import pluralise
from kgbias.models.base import ModelInfo, Settings
from kgbias.parameters import SelectionOptions
from kgbias.study import records
from kgbias.study.context import RunPart
from kgbias.study.records import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kgbias.crawl.crawler import CrawlResult
    from kgbias.graph.generation_run import GenerationSummary
    from kgbias.ingest.import_run import ImportResult
    from kgbias.measure.scorer_agreement import ScorerAgreement


class RunContents(RunPart):
    """A run's properties and contents; a part of `Run`. Reads the store each time."""

    @property
    def kind(self) -> str:
        """ "crawl", "import", "profiles", "stories" or "pairs"."""
        return self._record.kind

    @property
    def status(self) -> str:
        """ "running", "complete", "stopped", or "abandoned": whoever asked for it died."""
        if self._record.status == "running" and not self._context.closed:
            return self.stored.state
        return self._record.status

    @property
    def created(self) -> str:
        """When it was begun (ISO 8601, UTC)."""
        return self._record.created

    @property
    def model(self) -> ModelInfo:
        """The weights that were asked: name and revision."""
        return self._record.model

    @property
    def settings(self) -> Settings:
        """How the model was asked: name-value pairs."""
        return self._record.settings

    @property
    def config(self) -> Mapping[str, Any]:
        """The frozen configuration."""
        return self._record.config

    @property
    def categories(self) -> tuple[Category, ...]:
        """The categories that the groups belong to."""
        return self._record.categories

    @property
    def crawl_result(self) -> "CrawlResult":
        """What the crawl did: how many answers were refused and read, and each group's coverage;
        for the run that `Study.crawl` returned, also what that call asked for. Raises UsageError
        for a run of another kind."""
        if self._crawl_result is None:
            from kgbias.crawl.crawler import read_crawl_result

            if self.kind != "crawl":
                raise UsageError(f"run {self.name!r} is no crawl: it is of the kind {self.kind}")
            return read_crawl_result(self.stored)
        return self._crawl_result

    @property
    def import_result(self) -> "ImportResult":
        """What the `Study.import_file` call that returned this run read. Raises UsageError for a
        run opened by name."""
        if self._import_result is None:
            raise UsageError(f"run {self.name!r} was not imported in this session")
        return self._import_result

    @property
    def generation_summary(self) -> "GenerationSummary":
        """What the call that made this run by asking a model did: stories, profiles, pairs. Raises
        UsageError for a run opened by name."""
        if self._generation_summary is None:
            raise UsageError(f"run {self.name!r} was not made in this session")
        return self._generation_summary

    # Contents

    @property
    def summary(self) -> RunSummary:
        """Counts of triples, answers, refusals and tokens, and how long asking took."""
        return self.stored.store.summary(self.id)

    def counted_statements(self, **selection: Unpack[SelectionOptions]) -> SelectedStatements:
        """The statements that count, and how many were left out for each reason.

        Methods that read statements take the same parameters and count the same statements.

        Args:
            selection: `arm`, `min_acceptability` and `exclude_echoes`, described at
                `kgbias.graph.selection.Selection`. By default each arm of a run counts separately,
                and statements measured to make no sense (an acceptability below 0.5) are left out;
                `min_acceptability=0` keeps all.
        """
        return select_statements(self.stored, Selection(**selection))

    def triples(
        self, *, merged: bool = False, **selection: Unpack[SelectionOptions]
    ) -> Rows[TripleView]:
        """The distinct statements that count (`counted_statements`), by arm, group, predicate and
        object.

        Frame columns: group, predicate, object, count (how often the arm said it), arm, a column
        for each measure (regard in [-1, 1], higher is more positive; toxicity and acceptability in
        [0, 1]; NaN before `measure`) and for its label (regard_label ...), category, sentence,
        names_other (other groups of the run that it names), id. With `merged`,
        near-duplicates that `merge` linked count as one.

        Args:
            merged: whether near-duplicates that `merge` linked count as one.
            selection: which statements count, as for `counted_statements`.

        Examples:
            >>> for triple in run.triples()[:2]:
            ...     print(triple.count, triple.sentence)
            1 Velmari people love doing nothing.
            1 Velmari people love folk tales.
        """
        run = self.stored
        triples = list(self._select_statements(Selection(**selection)).triples)
        if merged:
            from kgbias.measure.merge import explain_no_links, merge_triples

            links = run.near_duplicates()
            if not links:
                self._context.remark(explain_no_links())
            triples = merge_triples(triples, links)
        return records.triple_rows(run, triples)

    def groups(self, **selection: Unpack[SelectionOptions]) -> Rows[records.GroupRow]:
        """The groups in the order of the seeds, each in each arm with its figures, over the
        statements that count (`counted_statements`).

        Frame columns: group, category, arm, statements, distinct, and for each measure MEASURE,
        MEASURE_low, MEASURE_high and MEASURE_n, and MEASURE_withheld, the reason, if a value is
        withheld.
        """
        criteria = Selection(**selection)
        return records.group_rows(self.stored, self._select_statements(criteria), criteria)

    def figure(self, group: str, measure: str, **selection: Unpack[SelectionOptions]) -> Figure:
        """A figure of a group: `value`, its 95% interval `low` to `high`, and the number `n` of
        statements, over those that count (`counted_statements`).

        `group` may be in any case, or another of its names. Raises UsageError for a group or
        measure that the run lacks, and for a run with several arms if `arm` names none.

        Args:
            group: the group.
            measure: the name of the figure, such as "overall_regard"
                (`kgbias.measures.figures_by_name`).
            selection: which statements count, as for `counted_statements`; `arm` names one in a run
                with several.

        Examples:
            >>> figure = run.figure("Velmari people", "overall_regard")
            >>> print(figure.value, figure.n)
            -6.0 16
        """
        from kgbias.measure.figures import read_figures

        stored_group, criteria = self.stored.find_group(group), Selection(**selection)
        statements = need_one_arm(self.stored, self._select_statements(criteria))
        figures = read_figures(self.stored, criteria, statements)
        scores = {s.measure: s for s in figures if s.group_id == stored_group.id}
        if measure not in scores:
            hint = f"it has {', '.join(scores)}" if scores else "measure the run first"
            raise UsageError(f"run {self.name!r} has no {measure!r} of {stored_group.name}; {hint}")
        return records.figure_of(scores[measure], stored_group.name)

    def draw(
        self, measure: str, ax: "Axes | None" = None, **selection: Unpack[SelectionOptions]
    ) -> "Axes":
        """Draw a figure of every group with its 95% intervals, over the statements that count
        (`counted_statements`); returns the axes.

        Args:
            measure: the name of the figure, such as "regard_chosen"
                (`kgbias.measures.figures_by_name`).
            ax: axes of matplotlib to draw in (None: a figure of its own, `draw(...).figure`).
            selection: as for `counted_statements`; `arm` names one in a run with several.

        Raises UsageError for a measure that the run lacks.
        """
        from kgbias.io.drawing import draw_estimates
        from kgbias.measures import figures_by_name

        need_one_arm(self.stored, self._select_statements(Selection(**selection)))
        rows = self.groups(**selection)
        estimates = [(row.group, row.figures[measure]) for row in rows if measure in row.figures]
        if not estimates:
            names = sorted({name for row in rows for name in row.figures})
            problem = no_such("measure", measure, names) if names else "measure the run first"
            raise UsageError(f"run {self.name!r}: {problem}")
        figure_info = figures_by_name({measure}).get(measure)
        result: Axes = draw_estimates(estimates, figure_info.title if figure_info else measure, ax)
        return result

    def generations(self) -> Rows[records.GenerationRow]:
        """Every answer of the model with its prompt, template, examples and outcome, including
        refusals, unparsable answers, echoes and repeated attempts.

        Frame columns: group, predicate, object, count, outcome, reason, arm, strategy, iteration,
        attempt, template, template_hash, prompt, answer, examples, path.
        """
        return records.generation_rows(self.stored)

    def probes(self, model: str | None = None) -> Rows[records.ProbeRow]:
        """The probed statements: each with each group before it, under one model or under each that
        `probe` asked.

        Frame columns: model, category, group, predicate, object, rank, said,
        conditional_perplexity, perplexity, log_likelihood, tokens.
        """
        return records.probe_rows(self.stored, model)

    def topics(self) -> Rows[records.TopicRow]:
        """The topics that `measure(topics=True)` found, by category and number.

        Frame columns: category, number, size, words, name, coherence, stability, kept.
        """
        return records.topic_rows(self.topic_models())

    def topic_models(self) -> Rows[TopicModel]:
        """The topics of each category, with the statements about them (`about`), and how they were
        found and how far they can be trusted (`settings`). `topics` has a row for each topic.

        Frame columns: category, topics (how many), statements (how many are about one of them).
        """
        return records.topic_model_rows(self.stored.topics())

    def agreement(self, **selection: Unpack[SelectionOptions]) -> Rows["ScorerAgreement"]:
        """How far each two scorers of a measure agree on the statements that count
        (`counted_statements`): kappa of their labels, rank correlation of their values, and the
        groups that change rank. The scorer that counts for the run comes first.

        Frame columns: measure, first, second, n, same (the share of equal labels), kappa and rho
        with `_low` and `_high`, moved.
        """
        from kgbias.measure.scorer_agreement import compare_scorers

        run = self.stored
        triples = self._select_statements(Selection(**selection)).triples
        return records.agreement_rows(compare_scorers(run, triples, run.metrics()))

    def cost(
        self,
        *,
        price_in: float | None = None,
        price_out: float | None = None,
        prices: str | Path | None = None,
    ) -> Rows[records.GroupCost]:
        """The cost of the run's answers, by group and in all: in tokens and, given your prices of a
        million prompt tokens (`price_in`) and answer tokens (`price_out`), or a file of `prices`
        (`kgbias.models.budget.read_prices`), in money; batches at the file's price of batches. An
        import cost nothing.

        Raises UsageError or DataError for impossible prices.

        Frame columns: group, answers, prompt_tokens, completion_tokens, cost, seconds, retries,
        retry_tokens, retry_cost.

        Args:
            price_in: the price of a million prompt tokens.
            price_out: the price of a million answer tokens.
            prices: a file of prices, in place of both.
        """
        from kgbias.models.budget import split_budget

        options = {"price_in": price_in, "price_out": price_out, "prices": prices, "batch": True}
        return records.cost_rows(
            self.stored, split_budget(options, self.model.name)[0].usage.prices
        )

    def __repr__(self) -> str:
        count = len(self._record.groups)
        return (
            f"<Run {self.name!r}: {self.model.title}, {pluralise(count, 'group')}, "
            f"{self.status}{', of a closed study' if self._context.closed else ''}>"
        )

    def _repr_html_(self) -> str:
        if self._context.closed:
            return f"<p>{html.escape(repr(self))}</p>"
        summary = self.summary
        names = ", ".join(group.name for group in self._record.groups)
        rows = {
            "model": f"{self.model.title} {self.model.revision}".strip(),
            "groups": names if len(names) < 300 else f"{len(self._record.groups)}",
            "status": self.status,
            "triples": f"{summary.triples:,}",
            "answers": f"{summary.generations:,} ({summary.refused:,} refused, "
            f"{summary.invalid:,} unparsable, "
            f"{pluralise(summary.echoes, 'echo', 'echoes', spec=',')}, {summary.nonsense:,} "
            f"nonsense, {summary.failed:,} failed)",
            "measured": ", ".join(self.stored.metrics()) or "not yet: run.measure()",
        }
        body = "".join(
            f'<tr><th style="text-align: left">{name}</th>'
            f'<td style="text-align: left">{html.escape(text)}</td></tr>'
            for name, text in rows.items()
        )
        return (
            f"<p><b>{html.escape(self.name)}</b></p><table>{body}</table>"
            f"<p><small>{html.escape(CONTENT_WARNING)}</small></p>"
        )
