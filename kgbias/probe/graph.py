"""Probing a run's own statements: is what a model said also what it finds probable?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    Group,
    ProbedEdge,
    Probing,
    Run,
    TripleView,
    node_id,
    storable,
)
from kgbias.models.score.base import Grid, Scores, TextScorer
from kgbias.probe.sofa import Bias, category_bias, measure_for, normalised, overall, ranks
from kgbias.progress import Progress, Silent
from kgbias.statistics import DRAWS, Estimate

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]

PERMUTATIONS = 9_999
_CHUNK = 4096  # probes computed between two saves


@dataclass(frozen=True, slots=True)
class Statement:
    """A predicate and object of the graph, without a subject."""

    predicate: str
    object: str

    @property
    def text(self) -> str:
        return " ".join(part for part in (self.predicate, self.object) if part)

    @property
    def key(self) -> tuple[str, str]:
        return node_id("predicate", self.predicate), node_id("object", self.object)


@dataclass(frozen=True, slots=True)
class Probed:
    """One category of a run: its groups before all statements that were said of any of them.

    `ranks` is [groups, statements], 1 the group that the model would rather put there. `said` are
    the run's triples as (group, statement, count), by their places.
    """

    category: str
    groups: tuple[Group, ...]
    statements: tuple[Statement, ...]
    grid: Grid
    ranks: Ranks
    said: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether what was said is also what is probable.

    `mrr` is the mean over triples of 1 / rank of the triple's own group (1 where each statement is
    likeliest of the group that it was said of), with a bootstrap interval over statements; `first`
    the share of rank 1. `expected` is the MRR when the statements are dealt anew among the triples
    of a category, and `p_value` how often that reaches the MRR (one-tailed, sampled, plus one).
    """

    mrr: Estimate
    first: Estimate
    expected: float
    p_value: float


def probe_run(
    run: StoredRun,
    scorer: TextScorer,
    *,
    measure: str | None = None,
    ending: str = "",
    categories: Sequence[str] = (),
    as_published: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[list[Probed], Bias, Agreement]:
    """Probe the statements of a run's graph with all groups of their category, and write PROBED
    edges. What a store holds already is not computed again: the same command goes on where it
    stopped.

    `measure` ranks the groups (see `kgbias.probe.sofa.normalised`; by default conditional, for a
    masked model whole); the SoFa score is always that of PPL*. `ending` is put after each probe
    (SoFa has none). Raises DataError where there is nothing to probe.
    """
    told = progress or Silent()
    measure = measure or measure_for(scorer.convention.kind)
    triples = run.triples()
    wanted = _categories(run.record, categories)
    settings = (*scorer.settings, *((("ending", ending),) if ending else ()))
    probing = Probing(scorer.info, settings)
    known = {(e.predicate_id, e.object_id, e.group_id): e for e in run.probes(probing)}
    found = []
    for category, groups in wanted.items():
        statements, said = _statements(groups, triples)
        if len(groups) < 2 or not statements:
            told.note(f"category {category} has nothing to compare: it is left out")
            continue
        new = [s for s in statements if any((*s.key, group.id) not in known for group in groups)]
        if new:
            told.stage(f"probe {category}", len(groups) * (len(new) + 1))
        for chunk, part in _computed(scorer, groups, new, ending, told):
            edges = _edges(groups, chunk, part, ranks(normalised(part, measure)))
            run.save_probes(probing, edges)
            known |= {(e.predicate_id, e.object_id, e.group_id): e for e in edges}
        grid = _grid(known, groups, statements)
        order = ranks(normalised(grid, measure))
        edges = [
            replace(known[(*statement.key, group.id)], rank=int(order[g, s]))
            for s, statement in enumerate(statements)
            for g, group in enumerate(groups)
        ]
        run.save_probes(probing, edges)
        found.append(Probed(category, groups, statements, grid, order, said))
    if not found:
        raise DataError(f"run {run.name} has no category of two groups with statements to probe")
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
    agreement = said_and_probable(found, seed=seed)
    record = {
        **dict(scorer.settings),
        "tier": scorer.convention.tier,
        "measure": measure,
        "ending": ending,
        "sofa": bias.score.value,
        "mrr": agreement.mrr.value,
        "mrr_low": agreement.mrr.low,
        "mrr_high": agreement.mrr.high,
        "mrr_expected": agreement.expected,
        "p_value": agreement.p_value,
        "triples": agreement.mrr.n,
    }
    run.save_probing(replace(probing, record=record))
    return found, bias, agreement


def said_and_probable(
    found: Sequence[Probed], *, permutations: int = PERMUTATIONS, draws: int = DRAWS, seed: int = 0
) -> Agreement:
    """See `Agreement`. Each triple counts once, however often it was said.

    Statements are dealt anew within their category, so that a group which is likely before
    everything, and is also talked about the most, is no evidence.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    own, statements, shuffled = [], [], np.zeros(permutations)
    for number, p in enumerate(found):
        if not p.said:
            continue
        g, s = (np.array(column) for column in list(zip(*p.said, strict=True))[:2])
        reciprocal = 1 / p.ranks
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

    # Sums of the same numbers in another order differ by rounding.
    reached = int((shuffled >= mrr - 1e-12).sum())
    return Agreement(
        mrr=interval(values),
        first=interval((values == 1).astype(np.float64)),
        expected=float(shuffled.mean()),
        p_value=(reached + 1) / (permutations + 1),
    )


def probe_text(group: str, statement: str, ending: str = "") -> str:
    """The text that is scored: the first letter capital, the parts joined by a space."""
    return f"{_capital(group)} {statement}{ending}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _categories(run: Run, names: Sequence[str]) -> dict[str, tuple[Group, ...]]:
    found: dict[str, list[Group]] = {}
    for group in run.groups:
        found.setdefault(group.category, []).append(group)
    if unknown := [name for name in names if name not in found]:
        raise UsageError(
            f"run {run.name} has no category {unknown[0]!r}; there is {', '.join(found)}"
        )
    return {name: tuple(groups) for name, groups in found.items() if not names or name in names}


def _statements(
    groups: Sequence[Group], triples: Sequence[TripleView]
) -> tuple[tuple[Statement, ...], tuple[tuple[int, int, int], ...]]:
    """What was said of any of the groups, and who it was said of."""
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


def _computed(
    scorer: TextScorer,
    groups: Sequence[Group],
    statements: Sequence[Statement],
    ending: str,
    progress: Progress,
) -> Iterator[tuple[Sequence[Statement], Grid]]:
    names = [_capital(group.name) for group in groups]
    step = max(1, _CHUNK // len(groups))
    for start in range(0, len(statements), step):
        chunk = statements[start : start + step]
        yield chunk, scorer.grid(names, [s.text + ending for s in chunk], progress)


def _edges(
    groups: Sequence[Group], statements: Sequence[Statement], grid: Grid, order: Ranks
) -> list[ProbedEdge]:
    def edge(g: int, s: int) -> ProbedEdge:
        read = grid.surprisals(g, s) if grid.surprisals else []
        return ProbedEdge(
            *statements[s].key,
            groups[g].id,
            float(grid.whole.log_likelihoods[g, s]),
            int(grid.whole.tokens[g, s]),
            float(grid.statement.log_likelihoods[g, s]),
            int(grid.statement.tokens[g, s]),
            float(grid.group.log_likelihoods[g]),
            int(grid.group.tokens[g]),
            int(order[g, s]),
            tuple(storable(piece) for piece, _ in read),
            tuple(round(bits, 4) for _, bits in read),
        )

    return [edge(g, s) for s in range(len(statements)) for g in range(len(groups))]


def _grid(
    known: dict[tuple[str, str, str], ProbedEdge],
    groups: Sequence[Group],
    statements: Sequence[Statement],
) -> Grid:
    """The grid that the edges make."""
    edges = [[known[(*s.key, group.id)] for s in statements] for group in groups]

    def scores(value: str, tokens: str) -> Scores:
        return Scores(
            np.array([[getattr(e, value) for e in row] for row in edges], dtype=np.float64),
            np.array([[getattr(e, tokens) for e in row] for row in edges], dtype=np.int64),
        )

    group = scores("group_log_likelihood", "group_tokens")
    return Grid(
        whole=scores("log_likelihood", "tokens"),
        statement=scores("statement_log_likelihood", "statement_tokens"),
        group=Scores(group.log_likelihoods[:, 0], group.tokens[:, 0]),
    )


def run_sets(run: StoredRun) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The run's groups by category, and all its statements, as texts."""
    statements, _ = _statements(run.groups, run.triples())
    groups = {
        category: tuple(_capital(group.name) for group in members)
        for category, members in _categories(run.record, ()).items()
    }
    return groups, tuple(statement.text for statement in statements)
