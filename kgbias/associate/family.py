"""Many tests by many methods on many models: one call, one family of results."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from kgbias.associate.graph import (
    RegardAgreement,
    group_associations,
    groups_test,
    regard_sets,
    save,
    save_groups,
    targets_of,
    topic_sets,
)
from kgbias.associate.indicators import (
    PLEASANT,
    Indicators,
    Pair,
    need_attributes,
    read_indicators,
)
from kgbias.associate.methods import (
    CONTEXTS,
    METHODS,
    Parameters,
    Source,
    check_methods,
    run_method,
)
from kgbias.associate.result import Association
from kgbias.associate.sets import FEW, AssociationTest, Tests, find_tests, tests_of
from kgbias.associate.weat import SetVectors, StaticSets, WordsInTemplates, WordVectors
from kgbias.errors import DataError, UsageError
from kgbias.graph.selection import SelectedStatements, Selection, select_one_arm
from kgbias.graph.store import Store, StoredRun
from kgbias.io.drawing import draw_estimates
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.models.distributed import open_language_model
from kgbias.models.vectors import VectorInput, load_vectors, vectors_in_memory
from kgbias.parallel import LOCAL_EXECUTOR, Executor, check_executor, open_executor
from kgbias.parameters import DoesNotApply, check_applies
from kgbias.stats.estimate import nan_to_none
from kgbias.stats.inference import benjamini_hochberg, holm

if TYPE_CHECKING:
    from kgbias.models.in_memory import InMemoryModel

_COLUMNS = ("test", "method", "model", "effect_size", "low", "high", "p_value", "p_holm", "p_bh")
Groups = tuple[str, str] | Literal["all"]
REGARD = "regard"


@dataclass(frozen=True)
class Asked:
    """What stands for the groups of a run, and what they are tested against."""

    run: StoredRun
    attributes: str | None = None
    topics: tuple[str, str] | None = None
    targets: str | None = None
    file: Path | None = None
    arm: str | None = None

    @cached_property
    def indicators(self) -> Indicators:
        return read_indicators(self.file)

    @cached_property
    def counted(self) -> SelectedStatements:
        """The statements of the run that count, in one arm."""
        return select_one_arm(self.run, Selection(self.arm))

    @cached_property
    def pair(self) -> Pair:
        """The attribute sets: two topics, the run's own words of regard, or a pair from the
        literature (pleasant and unpleasant by default)."""
        if self.topics is not None:
            pair = topic_sets(self.run.record, self.run.topics(), *self.topics)
            where = "measure more topic words, or name another topic"
        elif self.attributes == REGARD:
            pair = regard_sets(self.counted.triples)
            where = "crawl more, or take other `attributes`"
        else:
            pair = self.indicators.pair(self.attributes or PLEASANT)
            where = f"declare more in {self.indicators.where}"
        need_attributes(pair, where)
        return pair

    def tests(self, groups: Groups) -> tuple[list[AssociationTest], list[str]]:
        """The tests, and why pairs were left out; `groups` "all" means every pair within a category
        with indicators for both. Raises UsageError for two groups that cannot be tested, or if no
        pair can be."""
        if groups != "all":
            x, y = (self.run.find_group(name) for name in groups)
            return [groups_test(*self.indicators.targets(x, y, self.targets), *self.pair)], []
        found: list[AssociationTest] = []
        left_out: dict[str, None] = {}
        for x, y in combinations(self.run.record.groups, 2):
            if x.category != y.category:
                continue
            try:
                sets = self.indicators.targets(x, y, self.targets)
            except UsageError as error:
                left_out[str(error)] = None
            else:
                found.append(groups_test(*sets, *self.pair))
        if not found:
            raise UsageError(next(iter(left_out), "no category of the run has two groups"))
        return found, list(left_out)


_OF_GROUPS = frozenset({"topics", "attributes", "targets", "indicators"})
# The parameters that go with an input of `associate` rather than with a method.
_INPUTS: dict[str, frozenset[str]] = {
    "vectors": frozenset({"vector_format", "exact_case"}),
    "models": frozenset({"device", "dtype", "cache", "executor", "processes"}),
    "contexts": CONTEXTS,
    "contexts of lpbs": frozenset({"apart"}),
    "tests": frozenset({"methods", "as_published"}),
    "groups": _OF_GROUPS | {"methods", "as_published"},
    "every_group": _OF_GROUPS | {"arm", "seed"},
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
            f"p = {a.test_p.value:.3g}"
            for a in self.results
        ]
        lines += [
            f"{g.group.name}: d = {g.effect}" for g in (self.groups.groups if self.groups else ())
        ]
        return "\n".join(lines) or "no association test"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: `results`, and `groups` if every group was asked for."""
        answer: dict[str, Any] = {"results": self.records()}
        if self.groups is not None and self.groups.groups:
            answer["groups"] = self.groups.records()
        if self.left_out:
            answer["left_out"] = list(self.left_out)
        return nan_to_none(answer)  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The results. Columns: test, method, model, effect_size, low, high, p_value, p_holm and
        p_bh (corrected over the family), and the whole record in `records`."""
        columns = dict.fromkeys(name for row in records(self.results) for name in row)
        names = tuple(columns) or _COLUMNS
        rows = [{name: row.get(name) for name in names} for row in records(self.results)]
        return Rows(rows, columns=names, summary=lambda row: {n: row[n] for n in _COLUMNS})


class AssociationOptions(Parameters, total=False):
    """The options of association tests beside models, tests and methods; see `associate`."""

    vectors: WordVectors | str | Path | VectorInput | None
    vector_format: str
    exact_case: bool
    tests_file: str | Path | None
    groups: Groups | None
    attributes: str | None
    topics: tuple[str, str] | None
    targets: str | None
    indicators: str | Path | None
    every_group: bool
    arm: str | None
    as_published: bool
    device: str
    dtype: str
    cache: bool
    executor: str
    processes: int | None


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
    `tests_file` (all of them if `tests` is empty) or your own (`kgbias.associate.sets.tests_of`),
    such as a dict of four lists of words. "all" leaves out, and names, tests with fewer
    than 8 words per set, or fewer that the model knows. `methods` are names of `METHODS`; by
    default weat for vectors and w-seat for models. `vectors` are a file, or what
    `kgbias.models.vectors.vectors_in_memory` takes.

    `groups` adds a test of two groups of `run`, or of every pair within a category ("all");
    `every_group` adds the single-category association of each group, beside its regard. Groups are
    represented by their indicators (`kgbias.associate.indicators`), of which a test needs 8 per
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
    progress, tests = progress or SilentProgress(), tests_of(tests)
    tests_file = None if tests_file is None else Path(tests_file)
    indicators = None if indicators is None else Path(indicators)
    check_executor(executor, processes)
    if vectors is None and not models:
        raise UsageError("name what to test: vectors or a model")
    asked = bool(tests or tests_file or not (groups or every_group))
    chosen = tuple(methods) or ("weat" if vectors is not None else "w-seat",)
    given = {
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
    corpus = isinstance(parameters.get("contexts"), (str, Path))
    inputs = {
        "vectors": vectors is not None,
        "models": bool(models),
        "contexts": corpus,
        "contexts of lpbs": corpus and bool({"lpbs", "ceat-lpbs"} & set(chosen)),
        "tests": asked,
        "groups": groups is not None,
        "every_group": every_group,
        "attributes regard": attributes == REGARD,
        "every_group of a model": every_group and vectors is None,
    }
    if every_group and len(models) > 1:
        raise UsageError("every_group takes one model, because a group has one figure")
    check_applies(
        [*(name for name, is_given in given.items() if is_given), *parameters],
        {name: method.takes for name, method in METHODS.items()} | _INPUTS,
        [*(chosen if asked or groups else ()), *(name for name, there in inputs.items() if there)],
    )
    check_methods(chosen, parameters, static=vectors is not None)
    if attributes is not None and topics is not None:
        raise UsageError("`attributes` and `topics` both name the words to test against: give one")
    wanted = _tests(tests, tests_file, asked)
    lenient = set(wanted) if "all" in tests and not tests_file else set()
    of_groups: set[AssociationTest] = set()
    left_out: list[str] = []
    asked_of = None
    if groups is not None or every_group:
        asked_of = Asked(_needed(run), attributes, topics, targets, indicators, arm)
    if groups is not None and asked_of is not None:
        found_tests, left_out = asked_of.tests(groups)
        of_groups.update(found_tests)
        wanted = list(dict.fromkeys([*wanted, *found_tests]))
        lenient |= of_groups if groups == "all" else set()
    if vectors is not None:
        vectors = _static(vectors, vector_format, fold=not exact_case)
    opening: dict[str, Any] = {"device": device, "dtype": dtype, "notify": progress.note}
    target = run.store if run is not None else store
    agreement = None
    with open_executor(executor, progress, processes) as workers:
        sources = [] if vectors is None else [Source(vectors)]
        sources += [_model(spec, cache, opening, target, workers) for spec in models]
        progress.stage("associating", len(sources) * len(chosen) * len(wanted))
        results, few = _results(
            product(sources, chosen, wanted), parameters, progress, lenient=lenient,
            of_groups=of_groups, as_published=as_published,
        )  # fmt: skip
        left_out += few
        if every_group and asked_of is not None:
            agreement = _every_group(asked_of, sources[0], parameters)
    if agreement is not None and agreement.left_out:
        left_out.append(f"{', '.join(agreement.left_out)}: fewer than {FEW} indicators")
    found = Associations(tuple(results), agreement, tuple(dict.fromkeys(left_out)))
    if target is not None:
        known = asked_of.indicators if asked_of else None
        save(target, run.record if run else None, found.results, found.records(), known)
    if agreement is not None:
        save_groups(_needed(run), agreement)
    return found


def _static(given: Any, format: str, *, fold: bool) -> WordVectors:
    """Word vectors in a file, in memory, or already opened."""
    if isinstance(given, str | Path):
        return load_vectors(Path(given), format, fold=fold)
    if hasattr(given, "find") and hasattr(given, "info"):
        opened: WordVectors = given
        return opened
    if format != "auto":
        raise DoesNotApply("vector_format", ("a file of vectors",))
    return vectors_in_memory(given, fold=fold)


def _results(
    asked: Iterable[tuple[Source, str, AssociationTest]],
    parameters: Parameters,
    progress: Progress,
    *,
    lenient: Collection[AssociationTest],
    of_groups: Collection[AssociationTest],
    as_published: bool,
) -> tuple[list[Association], list[str]]:
    """The result of each test by each method on each source, and why tests in `lenient` that cannot
    be run were left out."""
    found: list[Association] = []
    left_out: list[str] = []
    for source, name, test in asked:
        progress.advance()
        try:
            # Neither group is expected to be nearer.
            tails = {"tails": "two"} if test in of_groups and not as_published else {}
            result = run_method(test, name, source, {**tails, **parameters}, published=as_published)
            if result.few and (test in lenient or test in of_groups):
                raise DataError(_few(result))
        except DataError as error:
            if test not in lenient:
                raise
            left_out.append(str(error))
        else:
            found.append(result)
    return found, left_out


def records(results: Sequence[Association]) -> list[dict[str, Any]]:
    """The results as rows for JSON, with p-values corrected over this family: `p_holm` and `p_bh`,
    from the permutation p-value if a result has one. Scores without a p-value do not belong to the
    family."""
    p = np.array([result.test_p.value for result in results], dtype=np.float64)
    tested = ~np.isnan(p)
    corrected = np.full((2, len(p)), np.nan)
    corrected[:, tested] = holm(p[tested].tolist()), benjamini_hochberg(p[tested].tolist())
    return [
        result.record() | {"p_holm": float(h), "p_bh": float(b), "family": int(tested.sum())}
        for result, h, b in zip(results, *corrected, strict=True)
    ]


def _model(
    spec: "str | InMemoryModel",
    cache: bool,
    opening: Mapping[str, Any],
    store: Store | None,
    executor: Executor | None,
) -> Source:
    """A language model as a source: its vectors and, loaded on first use, its predictions."""
    model = open_language_model(spec, executor, cache=cache, **opening)
    writing = {"store": store, "dtype": opening["dtype"], "device": opening["device"]}
    # float32, the default, is not named.
    settings = dict(model.encoder.settings)
    if settings == {"dtype": "float32"}:
        settings = {}
    return Source(model.encoder, model.encoder, model.predictor, writing, settings)


def _tests(
    tests: Sequence[str | AssociationTest], file: Path | None, asked: bool
) -> list[AssociationTest]:
    """The tests in their order, with names looked up."""
    if not asked:
        return []
    if not tests and file:
        tests = ["all"]
    found: list[AssociationTest] = []
    for test in tests:
        found += [test] if isinstance(test, AssociationTest) else find_tests([test], file)
    if not found:
        raise UsageError("name at least one association test, for example weat6")
    return list(dict.fromkeys(found))


def _few(result: Association) -> str:
    role = min(result.sets, key=lambda role: len(result.sets[role].used))
    count = len(result.sets[role].used)
    concept = result.test.sets[role].concept
    return (
        f"{result.test.name} by {result.method}: {result.model.title} knows {count} words of "
        f"{concept}, and a test needs {FEW} per side"
    )


def _every_group(asked: Asked, source: Source, parameters: Mapping[str, Any]) -> RegardAgreement:
    vectors: SetVectors = StaticSets(source.vectors)
    if source.encoder is not None:
        how = {name: parameters[name] for name in ("encoding", "layer") if name in parameters}
        vectors = WordsInTemplates(source.encoder, **how)
    seed = {"seed": parameters["seed"]} if "seed" in parameters else {}
    targets, left_out = targets_of(asked.run.record, asked.indicators, asked.targets)
    if not targets:
        raise asked.indicators.too_few(left_out[0], 0, asked.targets)
    counted = asked.counted
    regard = [s for s in asked.run.group_scores() if s.arm == counted.arm_label(*counted.arms)]
    return group_associations(targets, *asked.pair, vectors, regard, left_out=left_out, **seed)


def _needed(run: StoredRun | None) -> StoredRun:
    if run is None:
        raise UsageError("groups and every_group need a run")
    return run
