"""Repeat a published run, and compare it with what was published."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from kgbias.errors import UsageError
from kgbias.graph.selection import MIN_ACCEPTABILITY, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric
from kgbias.io.progress import Progress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.models.base import Completer
from kgbias.parameters import ModelOptions, PathLike
from kgbias.study.calls import public_call
from kgbias.study.context import Context
from kgbias.study.opening import open_completer, spec_of

if TYPE_CHECKING:
    from kgbias.publish import Recipe

# Floating-point sums differ a little between machines; scores are in [-1, 1].
DEFAULT_ROUNDING = 1e-3

# The names in metrics of the models that come with kgbias.
_OFFLINE_SCORER, _MINILM_ENCODER = "minilm-heads", "all-MiniLM-L6-v2"
_ACCEPTABILITY = "acceptability"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that differs from what was published.

    Attributes:
        what: "file" (does not match its checksum), "model" (or how it was asked), "scorer",
            "statement" (made only here, or only there), "count", or the name of a measure.
        arm, group, predicate, object: the statement, if it is about one.
        published: what was published ("" for nothing).
        here: what was made here ("" for nothing).
    """

    what: str
    published: str
    here: str
    arm: str = ""
    group: str = ""
    predicate: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Reproduction(Result):
    """A published run, repeated.

    Attributes:
        run: its name.
        statements: how many rows were published, and `made`, how many were made here (None if
            only checksums were compared).
        asked: how many answers the model gave here, and `cached`, how many the store had already.
        differences: what differs; empty if everything is as published.
        notes: what could not be repeated, a line for each.
    """

    run: str
    statements: int
    made: int | None
    asked: int
    cached: int
    differences: Rows[Difference]
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def as_rows(self) -> Rows[Difference]:
        """What differs; columns: the fields of `Difference`."""
        return self.differences

    def heading(self) -> str:
        ended = "as published" if self.same else "not as published"
        made = "" if self.made is None else f", {self.made:,} made here"
        return (
            f"run {self.run}: {ended}; "
            f"{pluralise(self.statements, 'statement', spec=',')} published{made}"
        )


@public_call
def reproduce(
    folder: PathLike,
    *,
    check: bool = False,
    store: PathLike | None = None,
    model: str | Completer | None = None,
    prompts: PathLike | None = None,
    rounding: float = DEFAULT_ROUNDING,
    progress: Progress | bool | None = None,
    **opening: Unpack[ModelOptions],
) -> Reproduction:
    """Repeat a published run, and say what differs.

    The files are checked against their checksums. Then the model is asked again with the published
    configuration and seed, people's decisions are applied, statements are scored by the same
    scorers, and each is compared with the published one: whether it exists, how often it was made,
    and its scores.

    Args:
        folder: a folder written by `Run.publish`.
        check: only check the files against their checksums.
        store: the store to make the run in (None: a temporary one). With a store of your own,
            repeat the call to continue where it stopped; answers in the store are not asked for
            again.
        model: ask this model instead, given by its spec or opened by `kgbias.open_model`. Needed if
            the published spec is a folder on another machine.
        prompts: the folder of the prompt pack, if it does not come with kgbias.
        rounding: scores that differ by no more than this count as the same.
        progress: as for `kgbias.open`.
        opening: how to open the model (see `kgbias.open_model`). The address of a server is never
            taken from the folder.

    Raises:
        DataError: the folder is not as kgbias published it, or this version would ask differently.
        UsageError: the run was not a crawl, so there is nothing to ask again.
        ModelError: the model is not available, or has another revision.
    """
    from kgbias.publish import find_altered, read_published_statements, read_recipe

    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    if not rounding >= 0:
        raise UsageError("`rounding` cannot be negative")
    files = [Difference("file", name, problem) for name, problem in find_altered(folder).items()]
    recipe = read_recipe(folder)
    published = read_published_statements(folder)
    if check:
        return Reproduction(recipe.name, len(published), None, 0, 0, _difference_rows(files))
    if recipe.kind != "crawl":
        raise UsageError(
            f"run {recipe.name!r} cannot be repeated: it is of the kind {recipe.kind}, not a "
            "crawl; `check` only checks the files against their checksums"
        )
    with (
        Context(store, progress=progress) as context,
        context.working() as display,
        ExitStack() as opened,
    ):
        completer = _open_model(recipe, model, opening, opened, display)
        repeated = _repeat_crawl(recipe, completer, context.writable(), prompts, display)
        run = repeated.run
        notes = _apply_decisions(recipe, run)
        scored_measures, score_notes = _score_again(recipe, run, display)
        statements, has_extra = _current_statements(recipe, run, scored_measures)
        differences = [
            *files,
            *_setting_differences(recipe, run),
            *_statement_differences(
                published, statements, scored_measures, rounding, ignore_extra=has_extra
            ),
        ]
    return Reproduction(
        recipe.name,
        len(published),
        len(statements),
        repeated.asked_count,
        repeated.cached_count,
        _difference_rows(differences),
        (*notes, *score_notes),
    )


def _difference_rows(differences: Sequence[Difference]) -> Rows[Difference]:
    return Rows(differences, Difference)


def _open_model(
    recipe: "Recipe",
    model: str | Completer | None,
    opening: ModelOptions,
    opened: ExitStack,
    progress: Progress,
) -> Completer:
    """The model to ask: the published one at its revision, or the one that was named."""
    from kgbias.models.spec import is_on_server, spec_with_settings

    set_options = {name: value for name, value in opening.items() if value is not None}
    if model is None and " (" in recipe.model.name:
        raise UsageError(
            f"{recipe.model.name} was a file or folder on the publisher's machine: give yours with "
            f"`model`; its revision must be {recipe.model.revision or 'the same'}"
        )
    spec = spec_of(model or spec_with_settings(recipe.model, recipe.settings), set_options)
    if not isinstance(model, str | None):
        return model
    options: dict[str, Any] = set_options
    if not is_on_server(spec):
        options = {**recipe.opening, **set_options}
        if model is None:
            options["revision"] = recipe.model.revision or None
    return opened.enter_context(open_completer(spec, options, progress))


class _RepeatedCrawl(NamedTuple):
    """The repeated run, and how many answers were asked for and how many were in the store."""

    run: StoredRun
    asked_count: int
    cached_count: int


def _repeat_crawl(
    recipe: "Recipe",
    model: Completer,
    store: Any,
    prompts: PathLike | None,
    progress: Progress,
) -> _RepeatedCrawl:
    from kgbias.crawl.config import read_crawl_config
    from kgbias.crawl.crawler import crawl
    from kgbias.study.opening import load_gauge, load_judge

    config = read_crawl_config(recipe.config, recipe.categories, prompts)
    judge = load_judge(config.pack.language) if config.min_acceptability else None
    result = crawl(
        config,
        model,
        store,
        judge=judge,
        gauge=load_gauge(config),
        name=recipe.name,
        progress=progress,
    )
    return _RepeatedCrawl(StoredRun(store, result.run), result.asked_count, result.cached_count)


def _apply_decisions(recipe: "Recipe", run: StoredRun) -> list[str]:
    """Apply the published decisions to their answers."""
    answer_ids = {g.id for g in run.generations()} if recipe.decisions else set()
    applicable = [d for d in recipe.decisions if d.generation_id in answer_ids]
    if applicable:
        run.add_decisions(applicable)
    missing = len(recipe.decisions) - len(applicable)
    return (
        [f"{pluralise(missing, 'decision')} by hand are about answers that were not given here"]
        if missing
        else []
    )


class _ScoredAgain(NamedTuple):
    """The measures that were scored again, and a line for each that was not."""

    measures: set[str]
    notes: list[str]


def _score_again(recipe: "Recipe", run: StoredRun, progress: Progress) -> _ScoredAgain:
    """Score the run as it was scored. Returns the measures, and a line for each not scored."""
    from kgbias.measure.scorers import load_scorer
    from kgbias.measure.scoring import measure_run

    scorers, notes = [], []
    for metric in recipe.metrics:
        spec = _scorer_spec(metric)
        if spec is None:
            notes.append(f"{metric.measure} was not scored again; the scorer is {metric.scorer}")
        else:
            scorers.append(load_scorer(metric.measure, spec))
    if scorers:
        measure_run(run, scorers, progress)
    return _ScoredAgain({scorer.measure for scorer in scorers}, notes)


def _scorer_spec(metric: Metric) -> str | None:
    """The spec that reopens a scorer; None if it needs a file, a server or a person's labels."""
    if metric.scorer == _OFFLINE_SCORER:
        return "offline"
    if metric.scorer.startswith("axis:"):
        spec = metric.scorer.removeprefix("axis:")
        if spec == _MINILM_ENCODER:
            return "minilm"
        return spec if spec.startswith("hf:") else None
    revision, _, label = metric.version.partition(":")
    on_disk = " (" in metric.scorer  # of whoever published it (ModelInfo.public)
    if not metric.scorer.startswith("hf:") or on_disk or "=" in label:
        return None
    return f"{metric.scorer}@{revision}{'' if metric.measure == 'regard' else f':{label}'}"


class _CurrentStatements(NamedTuple):
    """The statements that count here, and whether more may do than when they were published."""

    rows: list[dict[str, Any]]
    has_extra: bool


def _current_statements(
    recipe: "Recipe", run: StoredRun, scored_measures: set[str]
) -> _CurrentStatements:
    """The statements that count here, and whether more may do, because the acceptability that left
    some out was not scored again."""
    from kgbias.export.content import ExportContent
    from kgbias.export.tables import iter_rows

    selection: Selection = recipe.selection
    threshold = (
        MIN_ACCEPTABILITY if selection.min_acceptability is None else selection.min_acceptability
    )
    was_judged = any(metric.measure == _ACCEPTABILITY for metric in recipe.metrics)
    has_extra = was_judged and threshold > 0 and _ACCEPTABILITY not in scored_measures
    if has_extra:
        selection = replace(selection, min_acceptability=0.0)
    statements = select_statements(run, selection)
    return _CurrentStatements(
        list(iter_rows(ExportContent(run, list(statements.triples), statements))), has_extra
    )


def _setting_differences(recipe: "Recipe", run: StoredRun) -> Iterator[Difference]:
    """The differences in the model, in how it was asked, and in the scorers."""
    for published, here in (
        (
            f"{recipe.model.title} {recipe.model.revision}",
            f"{run.model.title} {run.model.revision}",
        ),
        (_format_settings(recipe.settings), _format_settings(run.record.settings)),
    ):
        if published != here:
            yield Difference("model", published.strip(), here.strip())
    metrics_here = run.metrics()
    for metric in recipe.metrics:
        metric_here = metrics_here.get(metric.measure)
        if metric_here and metric_here != metric:
            yield Difference(
                "scorer",
                f"{metric.scorer} {metric.version}",
                f"{metric_here.scorer} {metric_here.version}",
            )


def _format_settings(settings: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings)


def _statement_differences(
    published: Sequence[Mapping[str, Any]],
    current: Sequence[Mapping[str, Any]],
    measures: set[str],
    rounding: float,
    *,
    ignore_extra: bool,
) -> Iterator[Difference]:
    """What differs between two lists of statements; `ignore_extra`: but for those only here."""
    current_rows = {(row["arm"], row["id"]): row for row in current}
    published_keys = {(row["arm"], row["id"]) for row in published}
    for row in published:
        match = current_rows.get((row["arm"], row["id"]))
        if match is None:
            yield _build_difference("statement", row, str(row["count"]), "")
            continue
        if match["count"] != row["count"]:
            yield _build_difference("count", row, str(row["count"]), str(match["count"]))
        for measure in sorted(measures):
            published_value, current_value = row.get(measure), match.get(measure)
            if not _is_close(published_value, current_value, rounding):
                yield _build_difference(
                    measure, row, _format_number(published_value), _format_number(current_value)
                )
    if not ignore_extra:
        for key, row in current_rows.items():
            if key not in published_keys:
                yield _build_difference("statement", row, "", str(row["count"]))


def _build_difference(what: str, row: Mapping[str, Any], published: str, here: str) -> Difference:
    arm, group, predicate, object = (
        str(row.get(name, "")) for name in ("arm", "group", "predicate", "object")
    )
    return Difference(what, published, here, arm, group, predicate, object)


def _is_close(first: Any, second: Any, rounding: float) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) <= rounding
    return first is None and second is None


def _format_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else ""
