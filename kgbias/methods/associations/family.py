"""Many tests by many methods on many models: one call, one family of results."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from kgbias.errors import DataError, UsageError
from kgbias.evidence.indicators import MIN_WORDS, Indicators, read_indicators
from kgbias.graph.selection import SelectedStatements, Selection, select_one_arm
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import GroupScore
from kgbias.io.drawing import draw_estimates
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.methods.associations.attributes import (
    PLEASANT,
    SetPair,
    attribute_pair,
    check_attributes,
    read_attributes,
    target_sets,
    too_few_error,
)
from kgbias.methods.associations.distributed_model import open_language_model
from kgbias.methods.associations.graph import (
    RegardAgreement,
    associate_groups,
    build_groups_test,
    find_targets,
    regard_attribute_sets,
    save_groups,
    save_results,
    topic_attribute_sets,
)
from kgbias.methods.associations.methods import (
    CONTEXT_PARAMETERS,
    METHODS,
    ModelSource,
    check_methods,
    run_method,
)
from kgbias.methods.associations.options import Groups, Parameters
from kgbias.methods.associations.result import Association, spread_sizes
from kgbias.methods.associations.sets import AssociationTest, Tests, find_tests, parse_tests
from kgbias.methods.associations.weat import (
    SetVectors,
    StaticSetVectors,
    TemplateSetVectors,
    WordVectors,
)
from kgbias.models.vectors import VectorInput, load_static_vectors, vectors_in_memory
from kgbias.parallel import LOCAL_EXECUTOR, Executor, check_executor, open_executor
from kgbias.parameters import UnusedParameter, check_applies
from kgbias.stats.estimate import nan_to_none
from kgbias.stats.inference import benjamini_hochberg, holm

if TYPE_CHECKING:
    from kgbias.models.in_memory import InMemoryModel

_RESULT_COLUMNS = (
    "test",
    "method",
    "model",
    "effect_size",
    "low",
    "high",
    "p_value",
    "p_holm",
    "p_bh",
)
REGARD_ATTRIBUTES = "regard"


class GroupTests(NamedTuple):
    """The tests, and why pairs were left out."""

    tests: list[AssociationTest]
    left_out: list[str]


@dataclass(frozen=True)
class GroupTestSets:
    """What stands for the groups of a run, and what they are tested against."""

    run: StoredRun
    attributes: str | None = None
    topics: tuple[str, str] | None = None
    targets: str | None = None
    indicators_file: Path | None = None
    arm: str | None = None

    @cached_property
    def indicators(self) -> Indicators:
        return read_indicators(self.indicators_file)

    @cached_property
    def statements(self) -> SelectedStatements:
        """The statements of the run that count, in one arm."""
        return select_one_arm(self.run, Selection(self.arm))

    @cached_property
    def attribute_pair(self) -> SetPair:
        """The attribute sets: two topics, the run's own words of regard, or a pair from the
        literature (pleasant and unpleasant by default)."""
        if self.topics is not None:
            pair = topic_attribute_sets(self.run.record, self.run.topics(), *self.topics)
            remedy = "measure more topic words, or name another topic"
        elif self.attributes == REGARD_ATTRIBUTES:
            pair = regard_attribute_sets(self.statements.triples)
            remedy = "crawl more, or take other `attributes`"
        else:
            pair = attribute_pair(
                self.attributes or PLEASANT, read_attributes(self.indicators_file)
            )
            remedy = f"declare more in {self.indicators.source_file}"
        check_attributes(pair, remedy)
        return pair

    def build_tests(self, groups: Groups) -> GroupTests:
        """The tests, and why pairs were left out; `groups` "all" means every pair within a category
        with indicators for both. Raises UsageError for two groups that cannot be tested, or if no
        pair can be."""
        if groups != "all":
            x, y = (self.run.find_group(name) for name in groups)
            return GroupTests(
                [
                    build_groups_test(
                        *target_sets(self.indicators, x, y, self.targets), *self.attribute_pair
                    )
                ],
                [],
            )
        tests_found: list[AssociationTest] = []
        left_out: dict[str, None] = {}
        for x, y in combinations(self.run.record.groups, 2):
            if x.category != y.category:
                continue
            try:
                sets = target_sets(self.indicators, x, y, self.targets)
            except UsageError as error:
                left_out[str(error)] = None
            else:
                tests_found.append(build_groups_test(*sets, *self.attribute_pair))
        if not tests_found:
            raise UsageError(next(iter(left_out), "no category of the run has two groups"))
        return GroupTests(tests_found, list(left_out))


_GROUP_PARAMETERS = frozenset({"topics", "attributes", "targets", "indicators"})
# The parameters that go with an input of `associate` rather than with a method.
_INPUT_PARAMETERS: dict[str, frozenset[str]] = {
    "vectors": frozenset({"vector_format", "exact_case"}),
    "models": frozenset({"device", "dtype", "cache", "executor", "processes"}),
    "contexts": CONTEXT_PARAMETERS,
    "contexts of lpbs": frozenset({"apart"}),
    "tests": frozenset({"methods", "as_published"}),
    "groups": _GROUP_PARAMETERS | {"methods", "as_published"},
    "every_group": _GROUP_PARAMETERS | {"arm"},
    "attributes regard": frozenset({"arm"}),
    "every_group of a model": frozenset({"encoding", "layer"}),
}


@dataclass(frozen=True, slots=True, repr=False)
class Associations(Result):
    """The results of one call, which are one family for the correction of p-values. `groups` is
    SC-WEAT of every group of the run, if it was asked for; `left_out` says why tests among those
    that "all" stood for were left out."""

    results: tuple[Association, ...]
    groups: RegardAgreement | None = None
    left_out: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Association]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def draw(self, ax: Any = None) -> Any:
        """Draw the effects with their intervals into axes of matplotlib (None: a figure of their
        own); returns the axes."""
        names = [f"{a.test.name}, {a.method}, {a.model.title}" for a in self.results]
        effects = [a.effect for a in self.results]
        return draw_estimates(list(zip(names, effects, strict=True)), "effect size", ax)

    def __str__(self) -> str:
        lines = [
            f"{a.test.name} by {a.method} on {a.model.title}: d = {a.effect}, "
            f"p = {a.test_p_value.value:.3g}"
            for a in self.results
        ]
        lines += [
            f"{g.group.name}: d = {g.effect}" for g in (self.groups.groups if self.groups else ())
        ]
        return "\n".join(lines) or "no association test"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: `results`, and `groups` if every group was asked for."""
        record: dict[str, Any] = {"results": self.test_records()}
        if self.groups is not None and self.groups.groups:
            record["groups"] = self.groups.records()
        if self.left_out:
            record["left_out"] = list(self.left_out)
        return nan_to_none(record)  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The results. Columns: test, method, model, effect_size, low, high, p_value, p_holm and
        p_bh (corrected over the family); in a frame also what they depend on, such as the number
        of words in each set (n_x, n_y, n_a, n_b)."""
        rows = [spread_sizes(row) for row in self.test_records()]
        names = tuple(rows[0]) if rows else _RESULT_COLUMNS
        return Rows(rows, names, shown=_RESULT_COLUMNS)

    def test_records(self) -> list[dict[str, Any]]:
        """The results as JSON and the store have them, all with the same names."""
        records = build_records(self.results)
        names = dict.fromkeys(name for record in records for name in record)
        return [{name: record.get(name) for name in names} for record in records]


def associate(
    tests: Tests = (),
    methods: Sequence[str] = (),
    *,
    models: "Sequence[str | InMemoryModel]" = (),
    vectors: WordVectors | str | Path | VectorInput | None = None,
    vector_format: str = "auto",
    exact_case: bool = False,
    tests_file: str | Path | None = None,
    run: StoredRun | None = None,
    groups: Groups | None = None,
    attributes: str | None = None,
    topics: tuple[str, str] | None = None,
    targets: str | None = None,
    indicators: str | Path | None = None,
    every_group: bool = False,
    arm: str | None = None,
    store: Store | None = None,
    as_published: bool = False,
    device: str = "auto",
    dtype: str = "float32",
    cache: bool = True,
    executor: str = LOCAL_EXECUTOR,
    processes: int | None = None,
    progress: Progress | None = None,
    **parameters: Unpack[Parameters],
) -> Associations:
    """Run every test by every method, on static `vectors` or on each of the `models` (specs).

    `tests` are published ones by name (weat1 to weat10, C1, C3-term ..., or "all"), those of
    `tests_file` (all of them if `tests` is empty) or your own
    (`kgbias.methods.associations.sets.parse_tests`), such as a dict of four lists of words. "all"
    leaves out, and names, tests with fewer than 8 words per set, or fewer that the model knows.
    `methods` are names of `METHODS`; by default weat for vectors and w-seat for models. `vectors`
    are a file, or what `kgbias.models.vectors.vectors_in_memory` takes.

    `groups` adds a test of two groups of `run`, or of every pair within a category ("all");
    `every_group` adds the single-category association of each group, beside its regard. Groups are
    represented by their indicators (`kgbias.evidence.indicators`), of which a test needs 8 per
    side: of the kind `targets` (terms, names or paraphrases), with those in a file `indicators` on
    top of the shipped ones. Their tests are two-tailed unless `tails` says one, because neither
    group is expected to be nearer. `attributes` names a pair of sets (pleasant, warmth, competence
    ...), or "regard", the words of the run's own statements of positive and negative regard;
    `topics` takes the words of two of its topics instead. The run's statements are those that count
    (`kgbias.graph.selection`); in a run with several arms, those of one `arm`.

    Results are written to the graph of `run` or, tied to no run, to `store`. With `exact_case`, Amy
    is not looked up as amy in the vectors. `as_published` takes each method's conventions from its
    paper, except those that `parameters` name. `device` and `dtype` say where and in what precision
    models compute ("auto": CUDA, else MPS, else the CPU); `cache=False` keeps no embeddings on
    disk. `executor` says where models read, as for `Run.probe`, and `processes` in how many
    processes of this machine; the results are the same.

    A parameter belongs to some of the methods (see `Parameters`) and reaches those that take it.
    Raises UsageError, before any work is done, for a parameter that none of them takes, and for
    names that do not exist.
    """
    progress, tests = progress or SilentProgress(), parse_tests(tests)
    tests_file = None if tests_file is None else Path(tests_file)
    indicators = None if indicators is None else Path(indicators)
    check_executor(executor, processes)
    if vectors is None and not models:
        raise UsageError("name what to test: vectors or a model")
    has_tests = bool(tests or tests_file or not (groups or every_group))
    chosen_methods = tuple(methods) or ("weat" if vectors is not None else "w-seat",)
    # Which parameters the caller gave, and which inputs there are to take them: one that nothing
    # takes is an error.
    given_parameters = {
        "vector_format": vector_format != "auto",
        "exact_case": exact_case,
        "topics": topics is not None,
        "attributes": attributes is not None,
        "targets": targets is not None,
        "indicators": indicators is not None,
        "arm": arm is not None,
        "methods": bool(methods),
        "as_published": as_published,
        "device": device != "auto",
        "dtype": dtype != "float32",
        "cache": not cache,
        "executor": executor != LOCAL_EXECUTOR,
        "processes": processes is not None,
    }
    has_corpus = isinstance(parameters.get("contexts"), (str, Path))
    inputs = {
        "vectors": vectors is not None,
        "models": bool(models),
        "contexts": has_corpus,
        "contexts of lpbs": has_corpus and bool({"lpbs", "ceat-lpbs"} & set(chosen_methods)),
        "tests": has_tests,
        "groups": groups is not None,
        "every_group": every_group,
        "attributes regard": attributes == REGARD_ATTRIBUTES,
        "every_group of a model": every_group and vectors is None,
    }
    if every_group and len(models) > 1:
        raise UsageError("every_group takes one model, because a group has one figure")
    check_applies(
        [*(name for name, is_given in given_parameters.items() if is_given), *parameters],
        {name: method.parameters for name, method in METHODS.items()} | _INPUT_PARAMETERS,
        [
            *(chosen_methods if has_tests or groups else ()),
            *(name for name, is_present in inputs.items() if is_present),
        ],
    )
    check_methods(chosen_methods, parameters, static=vectors is not None)
    if attributes is not None and topics is not None:
        raise UsageError("`attributes` and `topics` both name the words to test against: give one")
    # Which tests to run. Of those that "all" stands for, what a model cannot run is left out.
    wanted_tests = _find_wanted_tests(tests, tests_file, has_tests)
    lenient = set(wanted_tests) if "all" in tests and not tests_file else set()
    group_tests: set[AssociationTest] = set()
    left_out: list[str] = []
    group_sets = None
    if groups is not None or every_group:
        group_sets = GroupTestSets(_require_run(run), attributes, topics, targets, indicators, arm)
    if groups is not None and group_sets is not None:
        found_tests, left_out = group_sets.build_tests(groups)
        group_tests.update(found_tests)
        wanted_tests = list(dict.fromkeys([*wanted_tests, *found_tests]))
        lenient |= group_tests if groups == "all" else set()
    if vectors is not None:
        vectors = _open_vectors(vectors, vector_format, fold=not exact_case)
    # Run them, and write what came out.
    opening: dict[str, Any] = {"device": device, "dtype": dtype, "notify": progress.note}
    target = run.store if run is not None else store
    agreement = None
    with open_executor(executor, progress, processes) as workers:
        sources = [] if vectors is None else [ModelSource(vectors)]
        sources += [_open_source(spec, cache, opening, target, workers) for spec in models]
        progress.stage("associating", len(sources) * len(chosen_methods) * len(wanted_tests))
        results, too_few = _run_tests(
            product(sources, chosen_methods, wanted_tests),
            parameters,
            progress,
            lenient=lenient,
            group_tests=group_tests,
            as_published=as_published,
        )
        left_out += too_few
        if every_group and group_sets is not None:
            agreement = _associate_every_group(group_sets, sources[0], parameters)
    if agreement is not None and agreement.left_out:
        left_out.append(f"{', '.join(agreement.left_out)}: fewer than {MIN_WORDS} indicators")
    result = Associations(tuple(results), agreement, tuple(dict.fromkeys(left_out)))
    if target is not None:
        indicators_used = group_sets.indicators if group_sets else None
        save_results(
            target,
            run.record if run else None,
            result.results,
            result.test_records(),
            indicators_used,
        )
    if agreement is not None:
        save_groups(_require_run(run), agreement)
    return result


def _open_vectors(source: Any, format: str, *, fold: bool) -> WordVectors:
    """Word vectors in a file, in memory, or already opened."""
    if isinstance(source, str | Path):
        return load_static_vectors(Path(source), format, fold=fold)
    if hasattr(source, "find") and hasattr(source, "info"):
        opened: WordVectors = source
        return opened
    if format != "auto":
        raise UnusedParameter("vector_format", ("a file of vectors",))
    return vectors_in_memory(source, fold=fold)


class _TestResults(NamedTuple):
    """The result of each test, and why others were left out."""

    results: list[Association]
    left_out: list[str]


def _run_tests(
    asked: Iterable[tuple[ModelSource, str, AssociationTest]],
    parameters: Parameters,
    progress: Progress,
    *,
    lenient: Collection[AssociationTest],
    group_tests: Collection[AssociationTest],
    as_published: bool,
) -> _TestResults:
    """The result of each test by each method on each source, and why tests in `lenient` that cannot
    be run were left out."""
    results_found: list[Association] = []
    left_out: list[str] = []
    for source, name, test in asked:
        progress.advance()
        try:
            # Neither group is expected to be nearer.
            tails = {"tails": "two"} if test in group_tests and not as_published else {}
            result = run_method(test, name, source, {**tails, **parameters}, published=as_published)
            # A published test that was asked for by name runs with the words that it has; a record
            # says so.
            if result.has_few_words and (test in lenient or test in group_tests):
                raise DataError(_describe_too_few(result))
        except DataError as error:
            if test not in lenient:
                raise
            left_out.append(str(error))
        else:
            results_found.append(result)
    return _TestResults(results_found, left_out)


def build_records(results: Sequence[Association]) -> list[dict[str, Any]]:
    """The results as rows for JSON, with p-values corrected over this family: `p_holm` and `p_bh`,
    from the permutation p-value if a result has one. Scores without a p-value do not belong to the
    family."""
    p_values = np.array([result.test_p_value.value for result in results], dtype=np.float64)
    is_tested = ~np.isnan(p_values)
    corrected = np.full((2, len(p_values)), np.nan)
    corrected[:, is_tested] = (
        holm(p_values[is_tested].tolist()),
        benjamini_hochberg(p_values[is_tested].tolist()),
    )
    return [
        result.record() | {"p_holm": float(h), "p_bh": float(b), "family": int(is_tested.sum())}
        for result, h, b in zip(results, *corrected, strict=True)
    ]


def _open_source(
    spec: "str | InMemoryModel",
    cache: bool,
    opening: Mapping[str, Any],
    store: Store | None,
    executor: Executor | None,
) -> ModelSource:
    """A language model as a source: its vectors and, loaded on first use, its predictions."""
    model = open_language_model(spec, executor, cache=cache, **opening)
    writing = {"store": store, "dtype": opening["dtype"], "device": opening["device"]}
    # float32, the default, is not named.
    settings = dict(model.encoder.settings)
    if settings == {"dtype": "float32"}:
        settings = {}
    return ModelSource(model.encoder, model.encoder, model.predictor, writing, settings)


def _find_wanted_tests(
    tests: Sequence[str | AssociationTest], file: Path | None, has_tests: bool
) -> list[AssociationTest]:
    """The tests in their order, with names looked up."""
    if not has_tests:
        return []
    if not tests and file:
        tests = ["all"]
    tests_found: list[AssociationTest] = []
    for test in tests:
        tests_found += [test] if isinstance(test, AssociationTest) else find_tests([test], file)
    if not tests_found:
        raise UsageError("name at least one association test, for example weat6")
    return list(dict.fromkeys(tests_found))


def _describe_too_few(result: Association) -> str:
    role = min(result.sets, key=lambda role: len(result.sets[role].known))
    count = len(result.sets[role].known)
    concept = result.test.sets[role].concept
    return (
        f"{result.test.name} by {result.method}: {result.model.title} knows "
        f"{pluralise(count, 'word')} of "
        f"{concept}, and a test needs {MIN_WORDS} per side"
    )


def _associate_every_group(
    group_sets: GroupTestSets, source: ModelSource, parameters: Mapping[str, Any]
) -> RegardAgreement:
    vectors: SetVectors = StaticSetVectors(source.vectors)
    if source.encoder is not None:
        encoder_options = {
            name: parameters[name] for name in ("encoding", "layer") if name in parameters
        }
        vectors = TemplateSetVectors(source.encoder, **encoder_options)
    targets, left_out = find_targets(
        group_sets.run.record, group_sets.indicators, group_sets.targets
    )
    if not targets:
        raise too_few_error(group_sets.indicators, left_out[0], 0, group_sets.targets)
    statements = group_sets.statements
    regard = [
        s
        for s in group_sets.run.find_all(GroupScore)
        if s.arm == statements.arm_label(*statements.arms)
    ]
    return associate_groups(targets, *group_sets.attribute_pair, vectors, regard, left_out=left_out)


def _require_run(run: StoredRun | None) -> StoredRun:
    if run is None:
        raise UsageError("groups and every_group need a run")
    return run
