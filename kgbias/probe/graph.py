"""Probes of a run's statements: does a model also find probable what it said, and how much more so
for a group than for the other groups of its category, beyond what that group has at every
statement?
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    Agreement,
    Probed,
    RunProbes,
    ScoredBy,
    Statement,
    Watch,
    keep,
    run_set,
    sofa_result,
)
from kgbias.probe.sets import read_identities, read_statements
from kgbias.probe.sofa import category_bias, measure_for, normalised, overall, ranks
from kgbias.probe.stream import Row, Sets, grid_rows, opened
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate


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


def bits(grid: ProbeGrid, measure: str) -> Array:
    """log2 of the probability by which a measure compares groups, [groups, statements]: of the
    statement after the group ("conditional"), of the whole probe ("whole"), or of the whole probe
    over that of the group alone ("sofa"). For a masked model it is a pseudo-probability."""
    if measure == "conditional":
        found = grid.statement.log_likelihoods
    else:
        found = grid.probes.log_likelihoods
        if measure == "sofa":
            found = found - grid.group.log_likelihoods[:, None]
    return np.asarray(found / np.log(2), dtype=np.float64)


def contrast(values: Array) -> Array:
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
    own = (values - values.mean(axis=0)) * (groups / (groups - 1))
    return np.asarray(own - own.mean(axis=1, keepdims=True))


def contrast_intervals(
    values: Array, *, draws: int = DEFAULT_DRAWS, seed: int = 0, level: float = 0.95
) -> tuple[Array, Array]:
    """The lower and upper ends of the percentile bootstrap intervals of `contrast`, each [groups,
    statements]. The other groups are drawn with replacement: an interval says how much a contrast
    depends on the groups compared with. NaN if there is only one other group."""
    groups, statements = values.shape
    low, high = np.full((2, groups, statements), np.nan)
    if groups < 3:
        return low, high
    rng = np.random.Generator(np.random.PCG64(seed))
    tail = (1 - level) / 2
    for g in range(groups):
        others = np.delete(values, g, axis=0)
        n = groups - 1
        weights = rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
        offset = weights @ others.mean(axis=1)
        base = values[g].mean() - offset
        for start in range(0, statements, 512):
            part = slice(start, start + 512)
            drawn = values[g, part] - weights @ others[:, part] - base[:, None]
            low[g, part], high[g, part] = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high


PERMUTATIONS = 9_999
_CHUNK = 4096  # probes computed between two saves

Said = tuple[tuple[int, int, int], ...]
_Part = tuple[str, tuple[Group, ...], tuple[Statement, ...], Said]


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
    `kgbias.probe.sofa.normalised`; by default conditional, for a masked model whole). The SoFa
    score always uses PPL*. `ending` is appended to each probe (SoFa has none). `categories` limits
    the probes to these categories. `output` gets every probe as a row (see
    `kgbias.probe.stream.probe_sets`), with two more columns: the group's `rank` and `count`, how
    often the run said it. Raises DataError if there is nothing to probe, UsageError for a
    category that the run does not have or an output that holds something else.
    """
    told = progress or SilentProgress()
    measure = measure or measure_for(scorer.convention.kind)
    plan = _plan(run, categories, told)
    settings = (*scorer.settings, *((("ending", ending),) if ending else ()))
    probing = ProbeRun(scorer.info, settings)
    file = output and opened(output, _job(run, scorer, plan, measure, ending))
    known = {(e.predicate_id, e.object_id, e.group_id): e for e in run.probes(probing.id)}
    watch, found = Watch(), []
    new = [
        (groups, chunk)
        for _, groups, statements, _ in plan
        for chunk in _chunks(
            groups, [s for s in statements if any((*s.key, g.id) not in known for g in groups)]
        )
    ]
    for edges in _computed(new, scorer, measure, ending, watch, told):
        run.save_probes(probing, edges)
        known |= {(e.predicate_id, e.object_id, e.group_id): e for e in edges}
    for category, groups, statements, said in plan:
        grid = edges_grid([[known[(*s.key, group.id)] for s in statements] for group in groups])
        order = ranks(normalised(grid, measure))
        lift = contrast(bits(grid, measure))
        edges = [
            replace(
                known[(*statement.key, group.id)],
                rank=int(order[g, s]),
                lift=float(lift[g, s]),
            )
            for s, statement in enumerate(statements)
            for g, group in enumerate(groups)
        ]
        run.save_probes(probing, edges)
        found.append(Probed(category, groups, statements, grid, order, said, lift))
    if file:
        for number, probed in enumerate(found):
            if file.read(number) is None:
                file.write(number, _rows(probed, ending))
    bias = overall(
        [
            category_bias(
                p.category,
                [group.name for group in p.groups],
                [statement.text for statement in p.statements],
                normalised(p.grid),
                normalised(p.grid, measure),
                as_published=as_published,
                seed=seed,
            )
            for p in found
        ],
        as_published=as_published,
    )
    agreement = said_and_probable([(p.ranks, p.said) for p in found], seed=seed)
    before = next((p.record for p in run.probe_runs() if p.id == probing.id), {})
    record = {
        **{name: before[name] for name in ("vectors", "stands", "words") if name in before},
        **dict(scorer.settings),
        "tier": scorer.convention.tier,
        "measure": measure,
        "ending": ending,
        "sofa": bias.score.value,
        **_of_agreement(agreement),
    }
    run.save_probe_run(replace(probing, record=record))
    # As published, the score is one statement's variance, which is not stored. Stored last: a
    # benchmark that finds it asks no more.
    if not as_published:
        probe_set, by = run_set(run.name, (part[:3] for part in plan)), ScoredBy.of(scorer)
        took = watch.took(sum(int(p.grid.probes.tokens.sum()) for p in found))
        result = sofa_result(
            probe_set, by, bias, measure=measure, settings=settings, seed=seed, took=took
        )
        keep(run.store, run.id, probe_set, result)
    return RunProbes(run.name, ScoredBy.of(scorer), tuple(found), bias, agreement)


def _computed(
    new: Sequence[tuple[Sequence[Group], Sequence[Statement]]],
    scorer: AnyScorer,
    measure: str,
    ending: str,
    watch: Watch,
    told: Progress,
) -> Iterator[Sequence[ProbedEdge]]:
    """The edges of each chunk of groups and statements, as they are computed."""
    if new:
        probes = sum(texts_of_groups(len(groups), len(chunk)) for groups, chunk in new)
        told.stage(f"SoFa of {scorer.info.title}", probes)
    asked = [(_names(groups), [s.text + ending for s in chunk]) for groups, chunk in new]
    for number, part in iter_grids(scorer, asked, told):
        watch.saw(part)
        part.check_group_tokens(asked[number][0])
        yield _edges(*new[number], part, ranks(normalised(part, measure)))


def _of_agreement(agreement: Agreement) -> dict[str, Any]:
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


def said_and_probable(
    found: Sequence[tuple[Counts, Said]],
    *,
    permutations: int = PERMUTATIONS,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
) -> Agreement:
    """Compare what was said with the ranks of the probes (see `Agreement`): for each category, the
    ranks [groups, statements] and what was said, as in `Probed`. Each triple counts once, however
    often it was said. Raises DataError if nothing was said.

    Statements are permuted within their category, so a group that is likely before every statement,
    and is also the most talked about, does not count as evidence.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    own, statements, shuffled = [], [], np.zeros(permutations)
    for number, (order, said) in enumerate(found):
        if not said:
            continue
        g, s = (np.array(column) for column in list(zip(*said, strict=True))[:2])
        reciprocal = 1 / order
        own.append(reciprocal[g, s])
        statements.append(s + (number << 32))
        for n in range(permutations):
            shuffled[n] += reciprocal[g, rng.permutation(s)].sum()
    if not own:
        raise DataError("no triple was said of the groups that were probed")
    values = np.concatenate(own)
    shuffled /= len(values)
    mrr = float(values.mean())
    _, cluster = np.unique(np.concatenate(statements), return_inverse=True)
    sizes = np.bincount(cluster)
    counts = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=draws)
    weights = counts @ sizes

    def interval(figures: Array) -> Estimate:
        sums = np.bincount(cluster, figures)
        low, high = np.quantile((counts @ sums) / weights, [0.025, 0.975])
        return Estimate(float(figures.mean()), float(low), float(high), len(figures))

    # The same numbers summed in a different order differ by rounding.
    reached = int((shuffled >= mrr - 1e-12).sum())
    return Agreement(
        mrr=interval(values),
        first=interval((values == 1).astype(np.float64)),
        expected=float(shuffled.mean()),
        p_value=(reached + 1) / (permutations + 1),
    )


def set_of_run(run: StoredRun) -> ProbeSet:
    """The groups and statements of a run that `probe_run` probes. Raises the same DataError."""
    return run_set(run.name, (part[:3] for part in _plan(run, (), SilentProgress())))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plan(run: StoredRun, categories: Sequence[str], progress: Progress) -> list[_Part]:
    """The categories that can be probed: those with two groups or more, and statements."""
    triples = run.triples()
    plan: list[_Part] = []
    for category, groups in categories_of(run.record, categories).items():
        statements, said = statements_of(groups, triples)
        if len(groups) < 2 or not statements:
            progress.note(f"category {category} has nothing to compare and is left out")
        else:
            plan.append((category, groups, statements, said))
    if not plan:
        raise DataError(f"run {run.name} has no category with two groups and statements to probe")
    return plan


def _job(
    run: StoredRun,
    scorer: AnyScorer,
    plan: Sequence[_Part],
    measure: str,
    ending: str,
) -> dict[str, Any]:
    """Everything that determines the output of this probe."""
    asked = [
        [category, [g.name for g in groups], [s.text for s in statements], said]
        for category, groups, statements, said in plan
    ]
    return {
        "run": run.id,
        "model": [scorer.info.name, scorer.info.revision, scorer.settings],
        "measure": measure,
        "ending": ending,
        "asked": content_id("probes", canonical_json(asked)),
    }


def _rows(p: Probed, ending: str) -> list[Row]:
    """The probes of a category for an output."""
    rows = grid_rows(p.category, _names(p.groups), [s.text + ending for s in p.statements], p.grid)
    counts = said_table(p.said, p.ranks.shape)
    for row, rank, times in zip(rows, p.ranks.ravel(), counts.ravel(), strict=True):
        row |= {"rank": int(rank), "count": int(times)}
    return rows


def said_table(said: Said, shape: tuple[int, ...]) -> Counts:
    """How often each statement was said about each group, [groups, statements]."""
    counts = np.zeros(shape, dtype=np.int64)
    for g, s, count in said:
        counts[g, s] += count
    return counts


def categories_of(run: Run, names: Sequence[str]) -> dict[str, tuple[Group, ...]]:
    found: dict[str, list[Group]] = {}
    for group in run.groups:
        found.setdefault(group.category, []).append(group)
    if unknown := [name for name in names if name not in found]:
        raise UsageError(no_such("category", unknown[0], found, f" in run {run.name!r}"))
    return {name: tuple(groups) for name, groups in found.items() if not names or name in names}


def statements_of(
    groups: Sequence[Group], triples: Sequence[TripleView]
) -> tuple[tuple[Statement, ...], Said]:
    """The statements about any of the groups, and which groups they were said about."""
    places = {group.id: n for n, group in enumerate(groups)}
    statements: dict[tuple[str, str], tuple[int, Statement]] = {}
    said = []
    for triple in triples:
        if triple.group_id not in places:
            continue
        statement = Statement(triple.predicate, triple.object)
        if not statement.text.strip():
            continue
        number, _ = statements.setdefault(statement.key, (len(statements), statement))
        said.append((places[triple.group_id], number, triple.count))
    return tuple(statement for _, statement in statements.values()), tuple(said)


def texts_of_groups(groups: int, statements: int) -> int:
    """How many texts a model scores to probe statements with the names of groups: each group before
    each statement and, in every piece that is computed at once, each group by itself."""
    return groups * (statements + -(-statements // _piece(groups)))


def texts_of_run(run: StoredRun) -> tuple[int, int]:
    """How many texts `probe_run` has a model score of a run that was never probed, and how many
    statements there are, which `kgbias.evidence.embed_run` embeds. Raises DataError as it does."""
    plan = [(len(groups), len(said)) for _, groups, said, _ in _plan(run, (), SilentProgress())]
    return sum(texts_of_groups(*both) for both in plan), sum(said for _, said in plan)


def _piece(groups: int) -> int:
    """How many statements are computed at once."""
    return max(1, _CHUNK // groups)


def _chunks(
    groups: Sequence[Group], statements: Sequence[Statement]
) -> Iterator[Sequence[Statement]]:
    step = _piece(len(groups))
    for start in range(0, len(statements), step):
        yield statements[start : start + step]


def _names(groups: Sequence[Group]) -> list[str]:
    return [_capital(group.name) for group in groups]


def _edges(
    groups: Sequence[Group], statements: Sequence[Statement], grid: ProbeGrid, order: Counts
) -> list[ProbedEdge]:
    def edge(g: int, s: int) -> ProbedEdge:
        read = grid.surprisals(g, s) if grid.surprisals else []
        return ProbedEdge(
            *statements[s].key,
            groups[g].id,
            float(grid.probes.log_likelihoods[g, s]),
            int(grid.probes.tokens[g, s]),
            float(grid.statement.log_likelihoods[g, s]),
            int(grid.statement.tokens[g, s]),
            float(grid.group.log_likelihoods[g]),
            int(grid.group.tokens[g]),
            int(order[g, s]),
            tuple(storable(piece) for piece, _ in read),
            tuple(round(bits, 4) for _, bits in read),
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
    """The sets that `kgbias.probe.stream.probe_sets` takes: category to (groups, statements).

    `identities` are the groups: the named set "sofa" (407 of them), a file (see
    `kgbias.probe.sets.read_identities`) or category to groups; without them, the run's groups.
    `statements` come from a file (see `read_statements`) or a list, and those of the run's graph
    are added. `categories` limits the groups to these; `ending` is appended to each statement.
    Raises UsageError if there are no groups, no statements, or none in the same category.

    Args:
        identities: the groups.
        statements: the statements.
        run: a run, as `Run.stored` gives it.
        categories: only these categories.
        ending: text after each statement, such as ".".
    """
    said = {} if statements is None else read_statements(statements)
    groups = {} if identities is None else read_identities(identities)
    if run is not None:
        own_groups, own_statements = run_sets(run)
        groups = groups or own_groups
        said[""] = tuple(dict.fromkeys((*said.get("", ()), *own_statements)))
    if not groups or not said:
        raise UsageError("sets need groups (identities or a run) and statements (a file or a run)")
    if unknown := [c for c in categories if c not in groups]:
        raise UsageError(no_such("category", unknown[0], groups))
    sets = {}
    for category, members in groups.items():
        own = dict.fromkeys((*said.get(category, ()), *said.get("", ())))
        if own and (not categories or category in categories):
            sets[category or "all"] = (members, tuple(statement + ending for statement in own))
    if not sets:
        raise UsageError("none of the statements belongs to any of the categories")
    return sets


def run_sets(run: StoredRun) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The run's groups by category, and all its statements, as texts."""
    statements, _ = statements_of(run.groups, run.triples())
    groups = {
        category: tuple(_capital(group.name) for group in members)
        for category, members in categories_of(run.record, ()).items()
    }
    return groups, tuple(statement.text for statement in statements)
