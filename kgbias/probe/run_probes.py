"""Probes of a run's statements: does a model also find probable what it said, and how much more so
for a group than for the other groups of its category, beyond what that group has at every
statement?
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.sofa import ProbeSet
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Group,
    ProbedEdge,
    ProbeRun,
    Run,
    TripleView,
    canonical_json,
    storable,
)
from kgbias.ids import content_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.tables_in_memory import Texts
from kgbias.models.score.base import Array, Counts, ProbeGrid, Scores
from kgbias.models.score.distributed import AnyScorer, iter_grids
from kgbias.probe.result import (
    CategoryProbes,
    ProbeAgreement,
    ProbeStopwatch,
    RunProbes,
    SaidCount,
    SaidCounts,
    ScorerInfo,
    Statement,
    build_probe_set,
    build_sofa_result,
    save_sofa_result,
)
from kgbias.probe.set_probes import Row, Sets, grid_rows, open_output
from kgbias.probe.sets import read_identities, read_statements
from kgbias.probe.sofa import (
    category_bias,
    default_measure,
    group_ranks,
    log_perplexities,
    overall_bias,
)
from kgbias.stats.inference import clustered_proportion, student_quantile


def edges_grid(edges: Sequence[Sequence[ProbedEdge]]) -> ProbeGrid:
    """The grid made up of these edges, first by groups and then by statements."""

    def scores(value: str, tokens: str) -> Scores:
        return Scores(
            np.array([[getattr(e, value) for e in row] for row in edges], dtype=np.float64),
            np.array([[getattr(e, tokens) for e in row] for row in edges], dtype=np.int64),
        )

    group = scores("group_log_likelihood", "group_tokens")
    return ProbeGrid(
        probes=scores("log_likelihood", "tokens"),
        statement=scores("statement_log_likelihood", "statement_tokens"),
        group=Scores(group.log_likelihoods[:, 0], group.tokens[:, 0]),
    )


def measure_bits(grid: ProbeGrid, measure: str) -> Array:
    """log2 of the probability by which a measure compares groups, [groups, statements]: of the
    statement after the group ("conditional"), of the whole probe ("whole"), or of the whole probe
    over that of the group alone ("sofa"). For a masked model it is a pseudo-probability."""
    if measure == "conditional":
        log_likelihoods = grid.statement.log_likelihoods
    else:
        log_likelihoods = grid.probes.log_likelihoods
        if measure == "sofa":
            log_likelihoods = log_likelihoods - grid.group.log_likelihoods[:, None]
    return np.asarray(log_likelihoods / np.log(2), dtype=np.float64)


def lifts_over_others(values: Array) -> Array:
    """How much higher a group's value is at a statement than the others', beyond what it is at
    every statement.

    With v the values [groups, statements] and G groups,

    c(g, s) = v(g, s) - mean over h != g of v(h, s)
    contrast(g, s) = c(g, s) - mean over t of c(g, t)

    The second mean is the group's base rate; subtracting it allows for groups that raise (or lower)
    the value of every statement. Every row and every column has mean 0. For log2 probabilities
    it is in bits: 1 is twice as probable. Needs two groups.
    """
    groups = len(values)
    contrasts = (values - values.mean(axis=0)) * (groups / (groups - 1))
    return np.asarray(contrasts - contrasts.mean(axis=1, keepdims=True))


class ContrastIntervals(NamedTuple):
    """The ends of intervals of contrasts, each [groups, statements]."""

    low: Array
    high: Array


def contrast_intervals(values: Array, *, level: float = 0.95) -> ContrastIntervals:
    """The lower and upper ends of Student's intervals of `lifts_over_others`, each [groups,
    statements]. The other groups are taken as drawn: an interval says how much a contrast depends
    on the groups compared with. NaN if there is only one other group."""
    groups = len(values)
    if groups < 3:
        return ContrastIntervals(np.full_like(values, np.nan), np.full_like(values, np.nan))
    others = groups - 1
    # Beyond the base rate of each: a contrast is one group's minus the mean of the others'.
    deviations = values - values.mean(axis=1, keepdims=True)
    sums, squares = deviations.sum(axis=0), (deviations**2).sum(axis=0)
    means = (sums - deviations) / others
    variances = np.maximum(0.0, (squares - deviations**2 - others * means**2) / (others - 1))
    half = student_quantile((1 + level) / 2, others - 1) * np.sqrt(variances / others)
    contrasts = lifts_over_others(values)
    return ContrastIntervals(contrasts - half, contrasts + half)


DEFAULT_PERMUTATIONS = 9_999
_MAX_CHUNK_PROBES = 4096  # probes computed between two saves
# So few that processes end together, where there are not so many groups that each of them alone,
# which is scored in every chunk, would add up.
_CHUNK_PROBES, _MIN_CHUNK_STATEMENTS = 1024, 32


class RankedStatements(NamedTuple):
    """The rank of each group before each statement of a category, [groups, statements], and what
    the run said of whom."""

    ranks: Counts
    said_counts: SaidCounts


class _CategoryPlan(NamedTuple):
    """A category that can be probed: each of its groups before each of its statements; and how
    often the run said what of whom (see `CategoryProbes.said_counts`)."""

    category: str
    groups: tuple[Group, ...]
    statements: tuple[Statement, ...]
    said_counts: SaidCounts


def probe_run(
    run: StoredRun,
    scorer: AnyScorer,
    *,
    measure: str | None = None,
    ending: str = "",
    categories: Sequence[str] = (),
    as_published: bool = False,
    output: Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> RunProbes:
    """Probe the statements of a run's graph with all groups of their category, and write PROBED
    edges. What the store already holds is not computed again, so a stopped probe continues when it
    is called again. SoFa is stored as a separate result (`kgbias.graph.sofa.SofaResult`), except
    `as_published`.

    `measure` ranks the groups: "conditional", "sofa" or "whole" (see
    `kgbias.probe.sofa.log_perplexities`; by default conditional, for a masked model whole). The
    SoFa score always uses PPL*. `ending` is appended to each probe (SoFa has none). `categories`
    limits the probes to these categories. `output` gets every probe as a row (see
    `kgbias.probe.set_probes.probe_sets`), with two more columns: the group's `rank` and `count`,
    how often the run said it. Raises DataError if there is nothing to probe, UsageError for a
    category that the run does not have or an output that holds something else.
    """
    reporter = progress or SilentProgress()
    measure = measure or default_measure(scorer.convention.kind)
    plan = _plan_categories(run, categories, reporter)
    settings = (*scorer.settings, *((("ending", ending),) if ending else ()))
    probing = ProbeRun(scorer.info, settings)
    file = output and open_output(output, _output_job(run, scorer, plan, measure, ending))
    known_edges = {
        (e.predicate_id, e.object_id, e.group_id): e
        for e in run.find_all(ProbedEdge, asking=probing)
    }
    stopwatch, category_probes = ProbeStopwatch(), []
    new_chunks = []
    for planned in plan:
        new = [
            statement
            for statement in planned.statements
            if any((*statement.key, group.id) not in known_edges for group in planned.groups)
        ]
        new_chunks += [(planned.groups, chunk) for chunk in _iter_chunks(planned.groups, new)]
    for edges in _compute_edges(new_chunks, scorer, measure, ending, stopwatch, reporter):
        run.put(ProbedEdge, edges, asking=probing)
        known_edges |= {(e.predicate_id, e.object_id, e.group_id): e for e in edges}
    for category, groups, statements, said_counts in plan:
        grid = edges_grid(
            [[known_edges[(*s.key, group.id)] for s in statements] for group in groups]
        )
        order = group_ranks(log_perplexities(grid, measure))
        lift = lifts_over_others(measure_bits(grid, measure))
        edges = [
            replace(
                known_edges[(*statement.key, group.id)],
                rank=int(order[g, s]),
                lift=float(lift[g, s]),
            )
            for s, statement in enumerate(statements)
            for g, group in enumerate(groups)
        ]
        run.put(ProbedEdge, edges, asking=probing)
        category_probes.append(
            CategoryProbes(category, groups, statements, grid, order, said_counts, lift)
        )
    if file:
        for number, probed in enumerate(category_probes):
            if file.read(number) is None:
                file.write(number, _output_rows(probed, ending))
    bias = overall_bias(
        [
            category_bias(
                p.category,
                [group.name for group in p.groups],
                [statement.text for statement in p.statements],
                log_perplexities(p.grid),
                log_perplexities(p.grid, measure),
                as_published=as_published,
                seed=seed,
            )
            for p in category_probes
        ],
        as_published=as_published,
    )
    agreement = compare_said_and_probable(
        [RankedStatements(p.ranks, p.said_counts) for p in category_probes], seed=seed
    )
    # What `kgbias.evidence.association` wrote to the record stays.
    old_record = next((p.record for p in run.find_all(ProbeRun) if p.id == probing.id), {})
    record = {
        **{
            name: old_record[name]
            for name in ("vectors", "vector_terms", "words")
            if name in old_record
        },
        **dict(scorer.settings),
        "tier": scorer.convention.tier,
        "measure": measure,
        "ending": ending,
        "sofa": bias.score.value,
        **_agreement_record(agreement),
    }
    run.put(ProbeRun, [replace(probing, record=record)])
    # As published, the score is one statement's variance, which is not stored. Stored last: a
    # benchmark that finds it asks no more.
    if not as_published:
        probe_set = _build_planned_set(run, plan)
        scorer_info = ScorerInfo.from_scorer(scorer)
        usage = stopwatch.usage(sum(int(p.grid.probes.tokens.sum()) for p in category_probes))
        result = build_sofa_result(
            probe_set, scorer_info, bias, measure=measure, settings=settings, seed=seed, usage=usage
        )
        save_sofa_result(run.store, run.id, probe_set, result)
    return RunProbes(
        run.name, ScorerInfo.from_scorer(scorer), tuple(category_probes), bias, agreement
    )


def _compute_edges(
    new: Sequence[tuple[Sequence[Group], Sequence[Statement]]],
    scorer: AnyScorer,
    measure: str,
    ending: str,
    stopwatch: ProbeStopwatch,
    progress: Progress,
) -> Iterator[Sequence[ProbedEdge]]:
    """The edges of each chunk of groups and statements, as they are computed."""
    if new:
        probes = sum(count_scored_texts(len(groups), len(chunk)) for groups, chunk in new)
        progress.stage(f"SoFa of {scorer.info.title}", probes)
    texts_asked = [
        (_capitalised_names(groups), [s.text + ending for s in chunk]) for groups, chunk in new
    ]
    for number, part in iter_grids(scorer, texts_asked, progress):
        stopwatch.record_grid(part)
        part.check_group_tokens(texts_asked[number][0])
        yield _build_edges(*new[number], part, group_ranks(log_perplexities(part, measure)))


def _agreement_record(agreement: ProbeAgreement) -> dict[str, Any]:
    """The part of a probing's record on how well it agrees with what was said."""
    mrr = agreement.mrr
    return {
        "mrr": mrr.value,
        "mrr_low": mrr.low,
        "mrr_high": mrr.high,
        "mrr_expected": agreement.expected,
        "p_value": agreement.p_value,
        "triples": mrr.n,
    }


def compare_said_and_probable(
    found: Sequence[RankedStatements],
    *,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
) -> ProbeAgreement:
    """Compare what was said with the ranks of the probes (see `ProbeAgreement`): for each category,
    the ranks [groups, statements] and what was said, as in `CategoryProbes`. Each triple counts
    once, however often it was said. Raises DataError if nothing was said.

    Statements are permuted within their category, so a group that is likely before every statement,
    and is also the most talked about, does not count as evidence.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    reciprocals, statements, shuffled = [], [], np.zeros(permutations)
    for number, (order, said_counts) in enumerate(found):
        if not said_counts:
            continue
        g, s = (np.array(column) for column in list(zip(*said_counts, strict=True))[:2])
        reciprocal = 1 / order
        reciprocals.append(reciprocal[g, s])
        # Each category numbers its statements from 0: the upper bits keep them apart.
        statements.append(s + (number << 32))
        for n in range(permutations):
            shuffled[n] += reciprocal[g, rng.permutation(s)].sum()
    if not reciprocals:
        raise DataError("no triple was said of the groups that were probed")
    values = np.concatenate(reciprocals)
    shuffled /= len(values)
    mrr = float(values.mean())
    _, cluster = np.unique(np.concatenate(statements), return_inverse=True)
    clusters = cluster.tolist()
    # The same numbers summed in a different order differ by rounding.
    reached = int((shuffled >= mrr - 1e-12).sum())
    return ProbeAgreement(
        mrr=clustered_proportion(clusters, values),
        first_share=clustered_proportion(clusters, (values == 1).astype(np.float64)),
        expected=float(shuffled.mean()),
        p_value=(reached + 1) / (permutations + 1),
    )


def build_run_probe_set(run: StoredRun) -> ProbeSet:
    """The groups and statements of a run that `probe_run` probes. Raises the same DataError."""
    return _build_planned_set(run, _plan_categories(run, (), SilentProgress()))


def _build_planned_set(run: StoredRun, plan: Sequence[_CategoryPlan]) -> ProbeSet:
    return build_probe_set(
        run.name, ((planned.category, planned.groups, planned.statements) for planned in plan)
    )


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plan_categories(
    run: StoredRun, categories: Sequence[str], progress: Progress
) -> list[_CategoryPlan]:
    """The categories that can be probed: those with two groups or more, and statements."""
    triples = run.triples()
    plan: list[_CategoryPlan] = []
    for category, groups in groups_by_category(run.record, categories).items():
        statements, said_counts = collect_statements(groups, triples)
        if len(groups) < 2 or not statements:
            progress.note(f"category {category} has nothing to compare and is left out")
        else:
            plan.append(_CategoryPlan(category, groups, statements, said_counts))
    if not plan:
        raise DataError(f"run {run.name} has no category with two groups and statements to probe")
    return plan


def _output_job(
    run: StoredRun,
    scorer: AnyScorer,
    plan: Sequence[_CategoryPlan],
    measure: str,
    ending: str,
) -> dict[str, Any]:
    """Everything that determines the output of this probe."""
    categories_asked = [
        [c.category, [g.name for g in c.groups], [s.text for s in c.statements], c.said_counts]
        for c in plan
    ]
    return {
        "run": run.id,
        "model": [scorer.info.name, scorer.info.revision, scorer.settings],
        "measure": measure,
        "ending": ending,
        "asked": content_id("probes", canonical_json(categories_asked)),
    }


def _output_rows(category_probes: CategoryProbes, ending: str) -> list[Row]:
    """The probes of a category for an output."""
    rows = grid_rows(
        category_probes.category,
        _capitalised_names(category_probes.groups),
        [s.text + ending for s in category_probes.statements],
        category_probes.grid,
    )
    counts = count_said(category_probes.said_counts, category_probes.ranks.shape)
    for row, rank, times in zip(rows, category_probes.ranks.ravel(), counts.ravel(), strict=True):
        row |= {"rank": int(rank), "count": int(times)}
    return rows


def count_said(said: SaidCounts, shape: tuple[int, ...]) -> Counts:
    """How often each statement was said about each group, [groups, statements]."""
    counts = np.zeros(shape, dtype=np.int64)
    for g, s, count in said:
        counts[g, s] += count
    return counts


def groups_by_category(run: Run, names: Sequence[str]) -> dict[str, tuple[Group, ...]]:
    by_category: dict[str, list[Group]] = {}
    for group in run.groups:
        by_category.setdefault(group.category, []).append(group)
    if unknown := [name for name in names if name not in by_category]:
        raise UsageError(no_such("category", unknown[0], by_category, f" in run {run.name!r}"))
    return {
        name: tuple(groups) for name, groups in by_category.items() if not names or name in names
    }


class CollectedStatements(NamedTuple):
    """The statements about any of some groups, and which of these they were said about."""

    statements: tuple[Statement, ...]
    said_counts: SaidCounts


def collect_statements(
    groups: Sequence[Group], triples: Sequence[TripleView]
) -> CollectedStatements:
    places = {group.id: n for n, group in enumerate(groups)}
    statements: dict[tuple[str, str], tuple[int, Statement]] = {}
    said_counts = []
    for triple in triples:
        if triple.group_id not in places:
            continue
        statement = Statement(triple.predicate, triple.object)
        if not statement.text.strip():
            continue
        number, _ = statements.setdefault(statement.key, (len(statements), statement))
        said_counts.append(SaidCount(places[triple.group_id], number, triple.count))
    return CollectedStatements(
        tuple(statement for _, statement in statements.values()), tuple(said_counts)
    )


def count_scored_texts(groups: int, statements: int) -> int:
    """How many texts a model scores to probe statements with the names of groups: each group before
    each statement and, in every piece that is computed at once, each group by itself."""
    return groups * (statements + -(-statements // _statements_at_once(groups)))


class ScoringWorkload(NamedTuple):
    """How many texts a model scores to probe a run, and how many are embedded."""

    probed: int
    embedded: int


def count_run_texts(run: StoredRun) -> ScoringWorkload:
    """How many texts `probe_run` has a model score of a run that was never probed, and how many
    statements there are, which `kgbias.evidence.embed_run` embeds. Raises DataError as it does."""
    plan = _plan_categories(run, (), SilentProgress())
    return ScoringWorkload(
        sum(count_scored_texts(len(c.groups), len(c.statements)) for c in plan),
        sum(len(c.statements) for c in plan),
    )


def _statements_at_once(groups: int) -> int:
    """How many statements are computed at once."""
    wanted = max(_MIN_CHUNK_STATEMENTS, _CHUNK_PROBES // groups)
    return max(1, min(_MAX_CHUNK_PROBES // groups, wanted))


def _iter_chunks(
    groups: Sequence[Group], statements: Sequence[Statement]
) -> Iterator[Sequence[Statement]]:
    """The statements in the chunks that are computed at once, in alphabetical order, in which those
    that begin alike are neighbours: their beginning is read once for each chunk and group."""
    step = _statements_at_once(len(groups))
    ordered = sorted(statements, key=lambda statement: statement.text)
    for start in range(0, len(ordered), step):
        yield ordered[start : start + step]


def _capitalised_names(groups: Sequence[Group]) -> list[str]:
    return [_capitalise(group.name) for group in groups]


def _build_edges(
    groups: Sequence[Group], statements: Sequence[Statement], grid: ProbeGrid, order: Counts
) -> list[ProbedEdge]:
    def edge(group_place: int, statement_place: int) -> ProbedEdge:
        surprisals = grid.surprisals(group_place, statement_place) if grid.surprisals else []
        return ProbedEdge(
            *statements[statement_place].key,
            groups[group_place].id,
            float(grid.probes.log_likelihoods[group_place, statement_place]),
            int(grid.probes.tokens[group_place, statement_place]),
            float(grid.statement.log_likelihoods[group_place, statement_place]),
            int(grid.statement.tokens[group_place, statement_place]),
            float(grid.group.log_likelihoods[group_place]),
            int(grid.group.tokens[group_place]),
            int(order[group_place, statement_place]),
            tuple(storable(piece) for piece, _ in surprisals),
            tuple(round(bits, 4) for _, bits in surprisals),
        )

    return [edge(g, s) for s in range(len(statements)) for g in range(len(groups))]


def gather_sets(
    *,
    identities: Texts | None = None,
    statements: Texts | None = None,
    run: StoredRun | None = None,
    categories: Sequence[str] = (),
    ending: str = "",
) -> Sets:
    """The sets that `kgbias.probe.set_probes.probe_sets` takes: category to (groups, statements).

    `identities` are the groups: the named set "sofa" (407 of them), a file (see
    `kgbias.probe.sets.read_identities`) or category to groups; without them, the run's groups.
    `statements` come from a file (see `kgbias.probe.sets.read_statements`) or a list, and those of
    the run's graph are added. `categories` limits the groups to these; `ending` is appended to each
    statement.
    Raises UsageError if there are no groups, no statements, or none in the same category.

    Args:
        identities: the groups.
        statements: the statements.
        run: a run, as `Run.stored` gives it.
        categories: only these categories.
        ending: text after each statement, such as ".".
    """
    statements_by_category = {} if statements is None else read_statements(statements)
    groups = {} if identities is None else read_identities(identities)
    if run is not None:
        own_groups, own_statements = read_run_texts(run)
        groups = groups or own_groups
        statements_by_category[""] = tuple(
            dict.fromkeys((*statements_by_category.get("", ()), *own_statements))
        )
    if not groups or not statements_by_category:
        raise UsageError("sets need groups (identities or a run) and statements (a file or a run)")
    if unknown := [c for c in categories if c not in groups]:
        raise UsageError(no_such("category", unknown[0], groups))
    sets = {}
    for category, members in groups.items():
        category_statements = dict.fromkeys(
            (*statements_by_category.get(category, ()), *statements_by_category.get("", ()))
        )
        if category_statements and (not categories or category in categories):
            sets[category or "all"] = (
                members,
                tuple(statement + ending for statement in category_statements),
            )
    if not sets:
        raise UsageError("none of the statements belongs to any of the categories")
    return sets


class GroupsAndStatements(NamedTuple):
    """A run's groups by category, and all its statements, as texts."""

    groups_by_category: dict[str, tuple[str, ...]]
    statements: tuple[str, ...]


def read_run_texts(run: StoredRun) -> GroupsAndStatements:
    """The texts that `gather_sets` takes from a run."""
    statements = collect_statements(run.groups, run.triples()).statements
    groups = {
        category: tuple(_capitalise(group.name) for group in members)
        for category, members in groups_by_category(run.record, ()).items()
    }
    return GroupsAndStatements(groups, tuple(statement.text for statement in statements))
