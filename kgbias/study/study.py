"""A study: a store of runs."""

import html
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Unpack, overload

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.configure import BudgetedCrawlOptions, configure
from kgbias.errors import ModelError, UsageError, no_such
from kgbias.graph.store import DEFAULT_STORE, Store
from kgbias.io.columns import Column
from kgbias.io.plugins import Plugin, PluginTable
from kgbias.io.progress import Progress
from kgbias.io.rows import Rows
from kgbias.io.tables_in_memory import Table, as_table_file
from kgbias.io.wording import pluralise
from kgbias.measures import MEASURES
from kgbias.models.base import Completer
from kgbias.models.spec import KINDS, is_on_server, parse_spec, with_display_name
from kgbias.packs import crawl_packs
from kgbias.parameters import Names, PathLike, check_options
from kgbias.study.calls import public_call
from kgbias.study.comparison import StudyComparison
from kgbias.study.context import Context
from kgbias.study.opening import (
    OPENING_OPTIONS,
    as_completer,
    load_gauge,
    load_judge,
    open_completer,
    open_text_scorer,
    settle_form,
    spec_of,
    split_model_options,
    split_prices,
)
from kgbias.study.probing import BeliefOptions, split_belief_options
from kgbias.study.records import summary_columns
from kgbias.study.run import Run
from kgbias.study.validation import StudyValidation

if TYPE_CHECKING:
    from kgbias.compare.paired_tests import PlannedPrompts
    from kgbias.crawl.crawler import AfterRound
    from kgbias.crawl.plans import Price
    from kgbias.models.in_memory import InMemory
    from kgbias.models.kinds import ModelKind
    from kgbias.query import NamedQuery
    from kgbias.study.maintenance import StoreMaintenance
    from kgbias.study.pipeline import AuditPrice, AuditResult
    from kgbias.study.series import Series


def open(
    store: PathLike | None = DEFAULT_STORE,
    *,
    progress: Progress | bool | None = None,
    query_timeout: float | None = None,
) -> "Study":
    """Open a study: the runs in a store.

    Use it in a `with` statement, or close it. A missing file is created by the first write.

    Args:
        store: the path of a SQLite file, a neo4j:// or bolt:// URL (the password is read from
            NEO4J_PASSWORD), or None for a temporary store that is deleted with the study.
        progress: whether to show the progress of long work: None in a terminal or a notebook, True
            always, False never; or a `kgbias.io.progress.Progress` to report to.
        query_timeout: the most seconds that a query may take; None for no limit.

    Raises:
        StoreError: the store cannot be opened or reached.
        UsageError: the URL is of another kind.

    Examples:
        >>> study = kgbias.open("kgbias.db", progress=False)
        >>> study
        <Study of kgbias.db>
    """
    return Study(Context(store, progress=progress, query_timeout=query_timeout))


def queries() -> Rows["NamedQuery"]:
    """The library of queries for `Study.query`: what each answers and takes.

    Frame columns: name, help, parameters.
    """
    from kgbias.query import load_query, query_names

    parameters = Column("parameters", get=lambda query: [p.name for p in query.parameters])
    return Rows(map(load_query, query_names()), ("name", "help", parameters))


def model_kinds() -> Rows["ModelKind"]:
    """The kinds of models and what each allows: writing text (`crawl`), answers in a schema, seeds,
    log-probabilities, probes, association tests, batches. Frame columns: those of `ModelKind`."""
    from kgbias.models.kinds import ModelKind, list_model_kinds

    return Rows(list_model_kinds(), ModelKind)


def plugins() -> Rows[Plugin]:
    """What installed packages add to kgbias: measures, kinds of models, import and export formats,
    prompt packs (docs/how-to/extend.md), each with what is wrong with it, if anything. Imports all
    of them. Frame columns: adds, name, package, problem."""
    from kgbias.calibrate.method_rows import CALIBRATION_ROWS
    from kgbias.evidence.added_columns import STATEMENT_COLUMNS
    from kgbias.explore.writing_pages import WRITING_PAGES
    from kgbias.export import FORMATS
    from kgbias.graph.stores import STORES
    from kgbias.ingest import IMPORT_FORMATS
    from kgbias.models.batch_providers import BATCH_PROVIDERS
    from kgbias.parallel.executors import EXECUTORS
    from kgbias.report.parts import REPORT_PARTS
    from kgbias.study.kinds import RUN_KINDS
    from kgbias.study.steps import STEPS
    from kgbias.study.substitutes import SUBSTITUTES

    tables: tuple[PluginTable[Any], ...] = (
        MEASURES,
        KINDS,
        IMPORT_FORMATS,
        FORMATS,
        crawl_packs(),
        REPORT_PARTS,
        STATEMENT_COLUMNS,
        EXECUTORS,
        STORES,
        BATCH_PROVIDERS,
        WRITING_PAGES,
        CALIBRATION_ROWS,
        RUN_KINDS,
        STEPS,
        SUBSTITUTES,
    )
    rows = [plugin for table in tables for plugin in table.list_plugins()]
    return Rows(rows, Plugin)


@public_call
def price(
    model: str | Completer, *, repeat: int | None = None, **options: Unpack[BudgetedCrawlOptions]
) -> "Price":
    """What `Study.crawl` would ask with these parameters, and the difference between groups that it
    could show. Asks and opens nothing.

    Frame columns: stage, requests, requests_at_most, answer_tokens_at_most, prompt_tokens.

    Args:
        model: the spec of the model, or an open one.
        repeat: how many crawls (None: one).
        options: as for `Study.crawl`.
    """
    from kgbias.crawl.plans import price_crawl

    prices, asking = split_prices(check_options(options, BudgetedCrawlOptions), model)
    config = configure(spec_of(model, {}), **asking)
    estimate = price_crawl(config, 1 if repeat is None else repeat)
    return replace(
        estimate,
        prices=prices,
        detectable_differences={} if estimate.until else detectable_differences(config),
    )


def detectable_differences(config: CrawlConfig) -> dict[str, float]:
    """The smallest difference in mean regard that a crawl would find, for each category of two or
    more groups (`kgbias.compare.paired_tests.minimum_detectable_difference`)."""
    from kgbias.compare.paired_tests import minimum_detectable_difference

    group_counts = {seed.category.name: len(seed.groups) for seed in config.seeds}
    prompt_counts = _prompt_counts(config)
    differences: dict[int, float] = {
        n: minimum_detectable_difference(prompt_counts, n)
        for n in set(group_counts.values())
        if n > 1
    }
    return {name: differences[n] for name, n in group_counts.items() if n in differences}


def _prompt_counts(config: CrawlConfig) -> "dict[Hashable, PlannedPrompts]":
    """The prompts about a group in one arm, by what they supply."""
    from kgbias.compare.paired_tests import PlannedPrompts

    first_step, *other_steps = config.steps
    counts: dict[Hashable, PlannedPrompts] = {
        predicate: PlannedPrompts(first_step.name, config.samples, config.answers)
        for predicate in config.initial_predicates
    }
    for step in other_steps:
        if step.prompts:
            counts[step.name,] = PlannedPrompts(step.name, step.prompts, config.answers)
    return counts


class _SizedRun(NamedTuple):
    """The name of a run, and its sizes, as parameters of a crawl."""

    name: str
    sizes: dict[str, Any]


class Study(StudyComparison, StudyValidation):
    """A store of runs; `kgbias.open` opens one."""

    @property
    def url(self) -> str:
        """The path or URL of the store."""
        return self._context.url

    @property
    def store(self) -> "StoreMaintenance":
        """The care of the store: `store.verify()`, `compact`, `backup`, `delete` and `push`."""
        from kgbias.study.maintenance import StoreMaintenance

        return StoreMaintenance(self._context)

    @property
    def graph(self) -> Store:
        """The graph in the store, for work below this layer. Raises StoreError if there is no store
        yet, or the study is closed."""
        return self._context.graph

    def close(self) -> None:
        """Close the store. The study cannot be used afterwards."""
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    # Runs

    def runs(self) -> Rows[Run]:
        """All runs, oldest first. Frame columns: name, model, revision, kind, language (of the
        prompts; empty of what was collected elsewhere), status, created, groups, categories, counts
        of triples, generations, refusals and tokens, and the series that a crawl belongs to.

        Examples:
            >>> [run.name for run in study.runs()]
            ['peoples', 'collected']
        """
        summaries = {s.run.id: s for s in self._context.graph.summaries()}
        return Rows(
            (Run(self._context, s.run) for s in summaries.values()),
            summary_columns(lambda run: summaries[run.id]),
        )

    def run(self, name: str | None = None, *, kind: str | None = None) -> Run:
        """The run of this name, or the newest that has statements; with a `kind` ("crawl",
        "import", "profiles", "stories" or "pairs"), the newest of it. Raises RunNotFound, which
        lists the runs.

        Args:
            name: the name of the run; None: the newest.
            kind: only runs of this kind.
        """
        return Run(self._context, self._context.graph.find_run(name, kind))

    def series(self, name: str) -> "Series":
        """The crawls of a series, by the name of any of them; a crawl that was not repeated is a
        series of one. Raises RunNotFound, which lists the runs."""
        from kgbias.study.series import Series

        return Series(Run(self._context, stored.record) for stored in self._context.series(name))

    @overload
    def crawl(
        self,
        model: "str | Completer | InMemory",
        *,
        name: str | None = None,
        repeat: None = None,
        model_name: str | None = None,
        dry_run: Literal[False] = False,
        **options: Unpack[BudgetedCrawlOptions],
    ) -> Run: ...

    @overload
    def crawl(
        self,
        model: "str | Completer | InMemory",
        *,
        name: str | None = None,
        repeat: int,
        model_name: str | None = None,
        dry_run: Literal[False] = False,
        **options: Unpack[BudgetedCrawlOptions],
    ) -> "Series": ...

    @overload
    def crawl(
        self,
        model: "str | Completer | InMemory",
        *,
        name: str | None = None,
        repeat: int | None = None,
        model_name: str | None = None,
        dry_run: Literal[True],
        **options: Unpack[BudgetedCrawlOptions],
    ) -> "Price": ...

    def crawl(
        self,
        model: "str | Completer | InMemory",
        *,
        name: str | None = None,
        repeat: int | None = None,
        model_name: str | None = None,
        dry_run: bool = False,
        **options: Unpack[BudgetedCrawlOptions],
    ) -> "Run | Series | Price":
        """Ask a model what it says about groups of people, and keep the answers as a graph.

        The method and its defaults are those of Salinas et al. 2023. Repeat the call to continue
        where it stopped; nothing that was answered is asked again.

        Args:
            model: a spec, such as smollm2, reference, hf:ID-or-PATH or openai:ID, a model opened by
                `kgbias.open_model` or `kgbias.in_memory`, or, with `model_name`, what `in_memory`
                takes: a transformers model with its tokenizer, a pipeline, a function, an OpenAI
                client.
            name: a name for the run (None: a descriptive one).
            repeat: crawl this many times, each with its own random seed derived from `seed`: the
                runs name, name~2 ..., returned as a `Series`, which shows how much a figure varies
                from crawl to crawl. The first is the same crawl as without `repeat`.
            model_name: your own name for the model, under which everything shows it from now on; it
                is part of no id, and the same call with another one renames it ("" takes it away).
            dry_run: ask nothing, and return what the call would ask (`kgbias.price`), with about
                how long the answers would take if the store has a crawl of this model.
            options: limits, at which the call stops and raises Interrupted: `max_requests`,
                `max_tokens` (prompts and answers together) and `max_cost`, which needs your prices
                of a million prompt tokens (`price_in`) and answer tokens (`price_out`), or a file
                of `prices` (`kgbias.models.budget.read_prices`); `batch`: send requests to the
                provider in batches, round by round, at its lower price, which takes hours and
                survives Ctrl-C; how to open a spec (`device`, `dtype` and `batch_size` for a local
                model, `base_url`, `concurrency` and `timeout` for a server; see
                `kgbias.open_model`); whom to ask about (`category`, `group`, `seeds`, `intersect`,
                `dynamic` ...; see `kgbias.crawl.configure.configure`); and how to ask (`samples`,
                `iterations`, `temperature`, `min_p`, `arms` ...; see `CrawlConfig`).

        Raises:
            UsageError: an unknown name, a number out of range, parameters that exclude each other,
                or a name (`model_name`) that another model of the store has.
            RunConflict: `name` is taken by a run with other settings.
            ModelError: the model cannot be loaded or reached.
            Interrupted: on Ctrl-C or when a budget is spent; answers so far are kept.

        Examples:
            >>> run = study.crawl(
            ...     "reference",
            ...     group=["Velmari people", "Orunthi people"],
            ...     initial_predicates=["wear", "love"],
            ...     samples=2,
            ...     iterations=0,
            ...     name="peoples",
            ... )
            >>> run
            <Run 'peoples': reference, 2 groups, complete>
            >>> peoples = ["Velmari people", "Orunthi people"]
            >>> study.crawl("reference", group=peoples, samples=1, dry_run=True).requests
            384
        """
        if dry_run:
            return self._price_crawl(model, repeat, model_name, options)
        return self._crawl(model, name, repeat, model_name, options)

    def _crawl(
        self,
        model: "str | Completer | InMemory",
        name: str | None,
        repeat: int | None,
        model_name: str | None,
        options: BudgetedCrawlOptions,
        after_round: "AfterRound | None" = None,
    ) -> "Run | Series":
        """See `crawl`; `after_round` as for `kgbias.crawl.crawler.crawl`."""
        from kgbias.crawl.config import check_repeat
        from kgbias.crawl.crawler import crawl_repeatedly
        from kgbias.crawl.seeds import describe_singular
        from kgbias.models.budget import split_budget

        opening, call_options = split_model_options(check_options(options, BudgetedCrawlOptions))
        completer_given = as_completer(model, model_name)
        if completer_given is not model:
            model, model_name = completer_given, None  # it has that name
        spec = spec_of(model, opening)
        budget, asking = split_budget(call_options, spec)
        # Before the model is opened: what is wrong with the parameters is said at once.
        config = configure(spec, **asking)
        times = 1 if repeat is None else repeat
        check_repeat(times)
        if config.pack.language == "en":
            self._context.remark(describe_singular(group.name for group in config.groups))
        judge = load_judge(config.pack.language) if config.min_acceptability else None
        gauge = load_gauge(config)
        with self.working() as progress, open_completer(model, opening, progress) as completer:
            self._set_display_name(completer, model_name)
            if asking.get("form") is None:
                store = self._context.existing_store
                asking["form"] = settle_form(completer, "crawl", "completion", store, progress)
                config = configure(spec, **asking)
            results = crawl_repeatedly(
                config,
                completer,
                self._context.writable(),
                repeat=times,
                judge=judge,
                gauge=gauge,
                name=name,
                progress=progress,
                budget=budget,
                after_round=after_round,
            )
            runs = [Run(self._context, result.run, crawl_result=result) for result in results]
        self._context.remark(next(filter(None, (r.crawl_result.language_note for r in runs)), ""))
        if repeat is None:
            return runs[0]
        from kgbias.study.series import Series

        return Series(runs)

    def _set_display_name(self, completer: Completer, name: str | None) -> None:
        """Give the model a person's own name, if there is one."""
        if name is not None:
            self._context.writable().set_display_name(with_display_name(completer.info, name))
        self._context.apply_display_name(completer)

    @overload
    def map(
        self,
        model: str,
        *,
        name: str | None = None,
        folder: PathLike = ".",
        minutes: int | None = None,
        model_name: str | None = None,
        asking: BeliefOptions | None = None,
        dry_run: Literal[False] = False,
        **options: Unpack[BudgetedCrawlOptions],
    ) -> "AuditResult": ...

    @overload
    def map(
        self,
        model: str,
        *,
        name: str | None = None,
        folder: PathLike = ".",
        minutes: int | None = None,
        model_name: str | None = None,
        asking: BeliefOptions | None = None,
        dry_run: Literal[True],
        **options: Unpack[BudgetedCrawlOptions],
    ) -> "AuditPrice": ...

    def map(
        self,
        model: "str",  # in quotes: what else is handed over is refused below
        *,
        name: str | None = None,
        folder: PathLike = ".",
        minutes: int | None = None,
        model_name: str | None = None,
        asking: BeliefOptions | None = None,
        dry_run: bool = False,
        **options: Unpack[BudgetedCrawlOptions],
    ) -> "AuditResult | AuditPrice":
        """Crawl a model, measure what it says, find what it believes, and write the report and the
        explorer. Repeat the call to continue where it stopped: what the store holds is neither
        asked nor computed again. If nothing has changed since the last call, in a file, the pages
        stay as they are.

        If the crawl goes on for more than a minute after its first round, a first report is written
        then: it says that it is preliminary, and the one at the end replaces it.

        Args:
            model: a spec, as for `crawl`.
            name: a name for the run (None: a descriptive one).
            folder: where to write report.html and explorer.html.
            minutes: about how long all of it may take. The sizes of the crawl and the number of
                probes are fixed before it begins, by a short trial whose answers count, and are
                part of the run's configuration: the same call continues the same crawl.
            model_name: your own name for the model, as for `crawl`.
            asking: how to ask what the model believes, as for `Run.evidence`.
            dry_run: ask nothing, and return what the call would ask in full size, and about how
                long that takes at the speed of what the store has of this model.
            options: as for `crawl`.

        Raises:
            UsageError: also for too few minutes, with the number needed.
            RunConflict: `name` is taken by a run with other settings.
            ModelError: the model cannot be loaded or reached.
            Interrupted: on Ctrl-C; what was finished is kept.
        """
        from kgbias.models.budget import split_budget
        from kgbias.study.pipeline import (
            AuditResult,
            FirstReport,
            PagesNote,
            describe_few_names,
            find_beliefs,
            list_notable_refusals,
            suggest_alternatives,
        )

        if not isinstance(model, str):
            raise UsageError(
                "`map` opens a model by its spec: with one in memory call `crawl`, then the run's "
                "`measure`, `evidence` and `report`"
            )
        if dry_run:
            return self._price_map(model, asking, options)
        belief_options: BeliefOptions = {**(asking or {})}
        folder = Path(folder)
        report, explorer = folder / "report.html", folder / "explorer.html"
        model_options, call_options = split_model_options(options)
        config = configure(model, **split_budget(call_options, model)[1])
        if KINDS[parse_spec(model).kind].scorer:
            self._context.remark(describe_few_names(config.groups, config.pack.names))
        arguments = (
            config.as_dict(),
            name,
            minutes,
            model_name,
            sorted(belief_options.items()),
            model_options,
            folder.resolve(),
        )
        # Nothing to do if neither the store nor the call has changed since the pages were written.
        note = PagesNote(self._context.existing_store, model, *arguments)
        noted = note.load()
        if noted is not None:
            run = self.run(noted.name)
            self._context.remark("nothing has changed since the pages were written")
            rows: Any = () if noted.left_out else run.evidence()
            advice = suggest_alternatives(run, model, folder, options.get("base_url"))
            refusals = list_notable_refusals(run)
            return AuditResult(
                run, run.groups(), rows, report, explorer, noted.left_out, advice, refusals
            )
        if minutes is not None:
            sized: Any
            name, sized = self._fit_sizes(model, name, minutes, model_name, options)
            options |= sized
            # A model that gives no probabilities has a number of choices there instead.
            belief_options |= {
                "probes": sized["sized"].get("probes") or belief_options.get("probes")
            }
        device: Any = {k: v for k, v in options.items() if k == "device" and v}
        # What it says.
        first_report = FirstReport(self._context, report, device)
        crawled: Any = self._crawl(model, name, None, model_name, options, first_report.write)
        run = crawled
        folder.mkdir(parents=True, exist_ok=True)
        advice = suggest_alternatives(run, model, folder, options.get("base_url"))
        empty_reason = run.crawl_result.empty_reason
        if empty_reason:
            for line in advice:
                self._context.remark(line)
            raise ModelError(empty_reason)
        opening: Any = {k: v for k, v in options.items() if k in ("device", "base_url") and v}
        # How it is judged, what is believed, and the pages of both.
        groups = run.measure(**device)
        # With `minutes`, `options` has the form that the crawl settled on: another kind of question
        # settles on its own.
        as_given: Any = {**options, "form": call_options.get("form")}
        rows, left_out = find_beliefs(run, model, opening, belief_options, as_given)
        self.report(run, report, explorer=explorer)
        refusals = list_notable_refusals(run)
        result = AuditResult(run, groups, rows, report, explorer, left_out, advice, refusals)
        note.save(result)
        return result

    def _fit_sizes(
        self,
        model: str,
        name: str | None,
        minutes: int,
        model_name: str | None,
        options: BudgetedCrawlOptions,
    ) -> _SizedRun:
        """The name of the run, and the sizes that were kept or that a trial gives."""
        from kgbias.crawl.crawler import time_answers
        from kgbias.models.budget import split_budget
        from kgbias.study.pipeline import (
            TRIAL_SHARE,
            default_name,
            fit_sizes,
            seconds_per_probe,
            stored_sizes,
        )

        began = monotonic()
        opening, call_options = split_model_options(options)
        config = configure(model, **split_budget(call_options, model)[1])
        if config.dynamic or config.stop_rule:
            raise UsageError("`minutes` is for crawls of named groups and a fixed size")
        with self.working() as progress, open_completer(model, opening, progress) as completer:
            self._set_display_name(completer, model_name)
            if call_options.get("form") is None:
                store = self._context.existing_store
                call_options["form"] = settle_form(
                    completer, "crawl", "completion", store, progress
                )
                config = configure(model, **split_budget(call_options, model)[1])
            name = name or default_name(config, completer, minutes)
            earlier_sizes = stored_sizes(self._context.existing_store, name, minutes)
            if earlier_sizes:
                return _SizedRun(name, dict(earlier_sizes))
            trial_seconds = 60 * minutes * TRIAL_SHARE
            store = self._context.writable()
            answer_seconds = time_answers(config, completer, store, progress, trial_seconds)
            probe_seconds = None
            if KINDS[parse_spec(model).kind].scorer:
                scorer_options: Any = {k: v for k, v in opening.items() if k in OPENING_OPTIONS}
                scorer = open_text_scorer(model, scorer_options, progress)
                probe_seconds = seconds_per_probe(scorer)
            seconds_spent = monotonic() - began
            fitted: Any = fit_sizes(config, minutes, seconds_spent, answer_seconds, probe_seconds)
            sized: dict[str, int] = fitted["sized"]
            progress.note(
                f"sizes for {pluralise(minutes, 'minute')}: "
                f"{pluralise(fitted['samples'], 'prompt')} per group and initial "
                f"predicate, {pluralise(fitted['iterations'], 'round')} of expansion"
                + "".join(f", {n} {what}" for what, n in sized.items() if what != "minutes")
            )
        return _SizedRun(name, {**fitted, "form": config.form})

    def _price_map(
        self, model: str, asking: BeliefOptions | None, options: BudgetedCrawlOptions
    ) -> "AuditPrice":
        from kgbias.evidence.probe_plan import estimate_max_probes
        from kgbias.study.pipeline import (
            MAX_CHOICES,
            AuditPrice,
            describe_few_names,
            has_substitute,
            seconds_per_stored_probe,
        )

        answers = self._price_crawl(model, None, None, options)
        config = configure(model, **split_prices(options, model)[1])
        groups = config.groups
        names = tuple(group.name for group in groups)
        limited = any(options.get(n) for n in ("max_requests", "max_tokens", "max_cost"))
        asks_instead = is_on_server(model) and not limited and has_substitute()
        choices = MAX_CHOICES if asks_instead else 0
        if not KINDS[parse_spec(model).kind].scorer:
            return AuditPrice(answers, 0, None, choices, names)
        settings = split_belief_options(asking, config.pack.language).settings
        probes = settings.probes
        if groups and not config.dynamic:
            probes = estimate_max_probes(groups, config.count_places(1), settings)
        seconds_per_probe = seconds_per_stored_probe(self._context.existing_store, model)
        return AuditPrice(
            answers,
            probes,
            None if seconds_per_probe is None else seconds_per_probe * probes,
            choices,
            names,
            describe_few_names(groups, config.pack.names),
        )

    def _price_crawl(
        self,
        model: "str | Completer | InMemory",
        repeat: int | None,
        model_name: str | None,
        options: BudgetedCrawlOptions,
    ) -> "Price":
        from kgbias.study.pipeline import seconds_per_answer

        named_or_open = as_completer(model, model_name)
        estimate = price(named_or_open, repeat=repeat, **options)
        spec = spec_of(named_or_open, {})
        seconds_each = seconds_per_answer(self._context.existing_store, spec)
        return (
            estimate
            if seconds_each is None
            else replace(estimate, seconds=seconds_each * estimate.requests)
        )

    def import_file(
        self,
        path: Table,
        *,
        name: str | None = None,
        model: str = "unknown",
        format: str | None = None,
        group: str | None = None,
        predicate: str = "predicate",
        object: str = "object",
        category: str | None = None,
        count: str | None = None,
        arm: str | None = None,
        category_name: str = "imported",
        attribute: Names = (),
        attribute_predicates: Mapping[str, str] | None = None,
    ) -> Run:
        """Make a run from statements collected elsewhere: a CSV, TSV or JSON-lines table with one
        row per statement; character profiles; or the statements about groups in a folder of
        documents or in a knowledge graph from RAGAS, whose passages the run keeps; or a run of
        stories from a table in the form of StereoTales.

        Args:
            path: the file, the folder of documents, or a table in memory: a frame, a list of
                dicts, or a dict of lists by column.
            name: a name for the run (None: a descriptive one).
            model: the source of the statements; in stereotales, the model to read (needed if the
                table has several).
            format: csv, tsv, jsonl, profiles, documents or one that a method adds, such as ragas or
                stereotales (None: by the file's extension; documents for a folder).
            group: the column of the group (None: "group"; in profiles "name").
            predicate: the column of the predicate.
            object: the column of the object.
            category: the column of the group's category (None: "category", if there is one).
            count: the column of how often a statement was made (None: "count", if there is one).
            arm: the column of the augmentation arm (None: "arm", if there is one).
            category_name: the category of groups whose rows name none.
            attribute: in profiles, the columns to read (none: all that describe the character).
            attribute_predicates: in profiles, the predicate of an attribute, such as {"hobbies":
                "love"}.

        Examples:
            >>> said = [{"group": "Velmari people", "predicate": "wear", "object": "amber scarves"}]
            >>> study.import_file(said, name="collected")
            <Run 'collected': unknown, 1 group, complete>
        """
        from kgbias.ingest import IMPORT_FORMATS, import_file
        from kgbias.ingest.formats import FOLDER_FORMAT, format_names
        from kgbias.ingest.statement_file import TABLE_FORMATS, read_file

        with as_table_file(path, (group or "group", predicate, object)) as file:
            columns = {
                "group": group,
                "category": category,
                "count": count,
                "arm": arm,
                "attribute": attribute,
                "attribute_predicates": attribute_predicates,
            }
            given_columns = [parameter for parameter, value in columns.items() if value]
            if format is None and file.is_dir():
                format = FOLDER_FORMAT
            if format is not None and format not in TABLE_FORMATS:
                if format not in IMPORT_FORMATS:
                    raise UsageError(no_such("format", format, format_names()))
                if given_columns:
                    raise UsageError(
                        f"`{given_columns[0]}` is for tables of statements, and {format} is none"
                    )
                with self.working() as progress:
                    result = IMPORT_FORMATS[format].read(
                        self._context.writable(), file, name=name, model=model, progress=progress
                    )
                return Run(self._context, result.run, import_result=result)
            table = read_file(
                file,
                format=format,
                group=group,
                predicate=predicate,
                object=object,
                category=category,
                count=count,
                arm=arm,
                attribute=attribute,
                attribute_predicates=attribute_predicates,
                notify=self._context.remark,
            )
            imported = import_file(
                self._context.writable(),
                file,
                table,
                name=name,
                model=model,
                category=category_name,
            )
            return Run(self._context, imported.run, import_result=imported)

    # Questions

    def query(self, name: str, /, **parameters: Any) -> Rows[dict[str, Any]]:
        """Run a query of the library, such as `query("shared", group="Women", other="Men")`.

        `kgbias.queries()` lists the queries with their parameters; for a query that takes a `run`,
        the default is the newest. With the most hurtful statements, a remark says how many with
        such a label deserve it; if there are no rows because nothing of the kind was made, one says
        what makes it. Raises UsageError for an unknown query or parameter.

        Frame columns: those that the query returns.

        Args:
            name: the name of the query.
            parameters: the values of its parameters; those that have a default may be left out.
        """
        from kgbias.query import load_query

        query = load_query(name)
        result = query.run(self._context.graph, parameters)
        if not result.rows:
            self._context.remark(query.explain_no_rows(self._context.graph, parameters))
        measure = query.judged_by
        if measure:
            # Imported here: most queries need no NumPy.
            from kgbias.measure.precision import describe_precision
            from kgbias.measures import MEASURES

            metrics = self.run(parameters.get("run")).stored.metrics()
            self._context.remark(describe_precision(MEASURES[measure], metrics.get(measure)))
        return Rows(result.records(), columns=result.columns)

    def cypher(self, text: str, /, **parameters: Any) -> Rows[dict[str, Any]]:
        """Run your own read-only Cypher query, on either kind of store; $NAME in the text stands
        for the parameter of that name. A remark says which of its labels, edge types and properties
        no graph has: they match nothing.

        Frame columns: those that the query returns.

        Args:
            text: the query.
            parameters: the values of the parameters that it names.
        """
        from kgbias.query import explain_unknown_words, find_labels_and_types

        result = self._context.graph.query(text, parameters, names=find_labels_and_types(text))
        for line in explain_unknown_words(text):
            self._context.remark(line)
        return Rows(result.records(), columns=result.columns)

    def __repr__(self) -> str:
        return f"<Study of {self.url}{', closed' if self._context.closed else ''}>"

    def _repr_html_(self) -> str:
        is_open = not self._context.closed and self._context.existing_store is not None
        runs = self.runs()._repr_html_() if is_open else ""
        closed = ", closed" if self._context.closed else ""
        return f"<p>Study of <code>{html.escape(self.url)}</code>{closed}</p>{runs}"
