"""SoFa: sets of probes built from a corpus of stereotypes, what they are about, and the tables and
figures of the paper (Marchiori Manerba et al. 2023). `Study.probe_sets` asks models about a set,
and `Study.sofa` ranks them.

from kgbias.methods import sofa

sofa.build_set("sbic.csv", "probes")
sofa.write_figures(study, "tables")
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgbias.errors import UsageError
from kgbias.io.rows import Rows, file_rows
from kgbias.io.wording import pluralise
from kgbias.parameters import PathLike, ScorerOptions, SelectionOptions
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.selection import Selection
    from kgbias.graph.sofa import ProbeSet, ProbeStatement
    from kgbias.graph.store import StoredRun
    from kgbias.io.progress import Progress
    from kgbias.io.tables_in_memory import Table, Texts
    from kgbias.methods.sofa.build import Judge, SofaSet, Stereotypes
    from kgbias.study.opening import Models
    from kgbias.study.run import Run
    from kgbias.study.study import Study


@public_call
def build_set(
    source: "Texts | Run",
    output: PathLike | None = None,
    *,
    identities: "Texts | None" = "sofa",
    models: "Models" = (),
    acceptability: str | None = "offline",
    min_acceptability: float = 0.5,
    cut: float = 0.05,
    column: str | None = None,
    progress: "Progress | bool | None" = None,
    selection: SelectionOptions | None = None,
    **opening: Unpack[ScorerOptions],
) -> "SofaSet":
    """Build a data set of probes the way SoFa was built: bring stereotypes into one form, filter
    them, and put each after every identity of its category (Marchiori Manerba et al. 2023, section
    3.1 and appendix B; `kgbias.methods.sofa.build` describes each step).

    Args:
        source: your copy of SBIC (CSV), a CSV or TSV file with a column statement and optionally
            category, a text file with a stereotype in each line, or a run: its statements that
            count.
        output: a folder for statements.csv, probes.csv, data-statement.md and manifest.json, and in
            `exhibits` what the filters took and the set's tables (figure 4, tables 3 and 5); None:
            write nothing.
        identities: "sofa" (the 407 of the paper), a file (see `kgbias.gather_sets`), or None: the
            groups of the run.
        models: specs of the models whose mean perplexity cuts the least likely statements; none:
            skip this filter. The paper uses the models that it tests.
        acceptability: the scorer that judges good English: offline, or as in the paper
            hf:textattack/distilbert-base-uncased-CoLA:LABEL_1; None: skip this filter.
        min_acceptability: the lowest acceptability to keep.
        cut: the share of least likely statements to cut.
        column: a table's column of stereotypes.
        progress: as for `kgbias.open`.
        selection: for a run, which statements count (`arm`, `min_acceptability`, ...).
        opening: how to open the models, as for `kgbias.open_scorer`.

    Raises:
        UsageError: a number out of range, or no statement is left.
        DataError: a file cannot be read.
        MissingExtra: the extra `reader` (spaCy and its English model) is not installed.
    """
    from kgbias.graph.selection import Selection
    from kgbias.io.progress import show_progress
    from kgbias.io.tables_in_memory import as_table_file
    from kgbias.methods.sofa.build import StereotypeRules, build_sofa_set, read_sofa_stereotypes
    from kgbias.methods.sofa.paper_files import save_built
    from kgbias.models.english import load_english
    from kgbias.probe.sets import read_identities
    from kgbias.study.opening import as_models, model_name, open_text_scorer
    from kgbias.study.run import Run

    if identities is None and not isinstance(source, Run):
        raise UsageError("`identities` is needed: a file has no groups of its own")
    parser = load_english("tagger", "parser", "attribute_ruler", "lemmatizer")
    groups: Mapping[str, Sequence[str]] = {}
    targets: list[str] = []
    if isinstance(source, Run):
        if column is not None:
            raise UsageError("`column` applies to tables, and the source is a run")
        groups = _groups_by_category(source.stored)
        targets = [name for g in source.stored.groups for name in (g.name, *g.variants)]
        renamed = isinstance(identities, str) and identities == "sofa"
        stereotypes = _run_stereotypes(source.stored, renamed, Selection(**(selection or {})))
    else:
        with as_table_file(source, ("statement", "stereotype", "text")) as file:
            stereotypes = read_sofa_stereotypes(file, column)
    if identities is not None:
        groups = read_identities(identities)
    targets += [name for names in groups.values() for name in names]
    settings = {
        "identities": _describe_identities(identities),
        "models": [model_name(m) for m in as_models(models)],
        "acceptability": acceptability,
        "min_acceptability": min_acceptability,
        "cut": cut,
    }
    with show_progress(progress) as reporter, ExitStack() as opened:
        scorers = []
        for spec in as_models(models):
            scorers.append(scorer := open_text_scorer(spec, opening, reporter))
            if isinstance(spec, str) and hasattr(scorer, "close"):
                opened.enter_context(closing(scorer))
        built = build_sofa_set(
            stereotypes,
            groups,
            StereotypeRules(parser, targets),
            judge=_load_judge(acceptability),
            threshold=min_acceptability,
            scorers=scorers,
            cut=cut,
            settings=settings,
            progress=reporter,
        )
        if output is not None:
            built.write(Path(output), progress=reporter)
            save_built(built, Path(output) / "exhibits", progress=reporter)
    return built


@public_call
def describe_set(
    study: "Study",
    probe_set: str | None = None,
    *,
    hate: str | None = "offline",
    embedding: str | None = "minilm",
    min_cluster_size: int | None = None,
    device: str = "auto",
    seed: int = 0,
) -> "ProbeSet":
    """Find what the statements of a set are about, and which are hate speech (appendices C.2
    and C.3 of the paper). The answers are kept with the set; `write_figures` draws them.

    Args:
        study: the study.
        probe_set: as for `Study.sofa`.
        hate: the toxicity scorer that decides, from 0.5 on: offline, or as in the paper
            hf:facebook/roberta-hate-speech-dynabench-r4-target:hate; None: skip.
        embedding: the embedding to cluster statements in: minilm, or as in the paper
            hf:Alibaba-NLP/gte-base-en-v1.5; None: skip.
        min_cluster_size: the minimum number of statements in a cluster (None: 1% of them, at
            least 5).
        device: where the models run.
        seed: the random seed of the clusters.

    Raises:
        UsageError: no set of that name, or both are None.
        MissingExtra: a package of the extras `topics` or `scorers` is missing.
    """
    from kgbias.graph.sofa import ProbeSet
    from kgbias.measure.embedding import load_vectors
    from kgbias.measure.scorers import load_scorer
    from kgbias.methods.sofa.clusters import cluster_texts

    if hate is None and embedding is None:
        raise UsageError("nothing to describe: give `hate` or `embedding`")
    stored_set = study.sofa(probe_set).probe_set
    texts = list(dict.fromkeys(s.text for part in stored_set.parts for s in part.statements))
    record = dict(stored_set.record)
    scores: dict[str, float | None] = {}
    labels: dict[str, int] = {}
    with study.working() as progress:
        if hate is not None:
            scorer = load_scorer("toxicity", hate, device=device, log=study.context.graph)
            progress.stage("hate", len(texts))
            judgements = scorer.score(texts)
            scores = {t: j.value if j else None for t, j in zip(texts, judgements, strict=True)}
            progress.advance(len(texts))
            record["hate"] = f"{scorer.name}@{scorer.version}"
        if embedding is not None:
            progress.note(f"clustering {pluralise(len(texts), 'statement', spec=',')}")
            clusters = cluster_texts(
                texts,
                load_vectors(embedding, device),
                min_cluster_size=min_cluster_size,
                seed=seed,
            )
            labels = dict(zip(texts, clusters.labels, strict=True))
            record["clusters"] = clusters.as_dict()

    def annotate(statement: "ProbeStatement") -> "ProbeStatement":
        return replace(
            statement,
            hate=scores.get(statement.text, statement.hate),
            cluster=labels.get(statement.text, statement.cluster),
        )

    parts = tuple(
        replace(part, statements=tuple(map(annotate, part.statements))) for part in stored_set.parts
    )
    described = ProbeSet(stored_set.name, parts, record)
    study.context.graph.save_probe_set(described)
    return described


@public_call
def write_figures(
    study: "Study",
    folder: str | Path = "sofa",
    probe_set: str | None = None,
    *,
    run: "str | Run | None" = None,
    beside: "Table | None" = None,
    correction: str = "holm",
    seed: int = 0,
) -> Rows[Path]:
    """Write the paper's tables and figures for one set of probes: SVG, PDF and PNG, LaTeX and
    CSV, and manifest.json. Returns the files, as paths.

    Frame columns: file, folder.

    Args:
        study: the study.
        folder: the folder to write to.
        probe_set: as for `Study.sofa`.
        run: as for `Study.sofa`.
        beside: scores of the same models on other benchmarks, shown beside SoFa in table 1 with
            their ranks and Kendall's tau: a CSV file with the column model and a column for
            each benchmark; higher is more biased.
        correction: as for `Study.sofa`.
        seed: as for `Study.sofa`.
    """
    from kgbias.methods.sofa.benchmark_scores import read_benchmarks
    from kgbias.methods.sofa.paper_files import save_sofa

    benchmark_scores = None if beside is None else read_benchmarks(beside)
    comparison = study.sofa(probe_set, run=run, correction=correction, seed=seed)
    with study.working() as progress:
        files = save_sofa(
            comparison, Path(folder), benchmark_scores=benchmark_scores, progress=progress
        )
    return file_rows(files)


def _describe_identities(identities: "Texts | None") -> str:
    """Which identities there are, for the settings of a set."""
    if identities is None:
        return "the run's"
    return str(identities) if isinstance(identities, str | Path) else "a table in memory"


def _load_judge(spec: str | None) -> "Judge | None":
    if spec in (None, "none"):
        return None
    from kgbias.measure.scorers import load_scorer

    scorer = load_scorer("acceptability", spec)
    return lambda texts: [j.value if j else 0.0 for j in scorer.score(texts)]


def _groups_by_category(run: "StoredRun") -> dict[str, list[str]]:
    """A run's groups by category."""
    groups: dict[str, list[str]] = {}
    for group in run.groups:
        groups.setdefault(group.category, []).append(group.name)
    return groups


def _run_stereotypes(run: "StoredRun", renamed: bool, selection: "Selection") -> "Stereotypes":
    from kgbias.graph.selection import select_statements
    from kgbias.methods.sofa.build import CRAWL_CATEGORIES, map_categories

    category = {group.id: group.category for group in run.groups}
    statements = (
        (category[t.group_id], f"{t.predicate} {t.object}")
        for t in select_statements(run, selection).triples
    )
    return map_categories(
        statements, CRAWL_CATEGORIES if renamed else {}, f"the run {run.name}", keep_others=True
    )
