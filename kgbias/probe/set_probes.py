"""Large jobs: probes in chunks, each saved when it is done (in a file, or in the answer log of a
store), which bounds memory and lets the same call continue where the last one stopped."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from kgbias.errors import DataError, MissingExtra, UsageError
from kgbias.graph.store import Store
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_CAVEAT, Answer, canonical_json
from kgbias.ids import content_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import read_text
from kgbias.models.score.base import Array, ProbeGrid, Scores
from kgbias.models.score.distributed import AnyScorer, ScorerSource, iter_grids, resolve_scorer
from kgbias.probe.result import ProbeStopwatch, ScorerInfo, SetProbes
from kgbias.probe.sofa import category_bias, default_measure, log_perplexities, overall_bias

Sets = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
Row = dict[str, Any]

_MAX_CHUNK_PROBES = 4096  # probes
COLUMNS = (
    "category",
    "group",
    "statement",
    "perplexity",
    "group_perplexity",
    "log_likelihood",
    "tokens",
    "statement_log_likelihood",
    "statement_tokens",
    "group_log_likelihood",
    "group_tokens",
)
_FIGURE_COLUMNS = COLUMNS[5:]  # the rest follow from these


class _Block(NamedTuple):
    """Statements of a category that are scored together, with its groups."""

    category: str
    groups: Sequence[str]
    statements: Sequence[str]

    @property
    def probe_count(self) -> int:
        """How many texts are scored: each group is also scored alone, once a block."""
        return len(self.groups) * (len(self.statements) + 1)


class _BlockValues(NamedTuple):
    """What a block was measured to be: log10 PPL* and the values that rank the groups, each
    [groups, statements], and how many tokens its probes have."""

    star: Array
    ranking: Array
    tokens: int


class RowFile(Protocol):
    """Rows on disk, by chunk."""

    def read(self, chunk: int) -> list[Row] | None: ...

    def write(self, chunk: int, rows: list[Row]) -> None: ...


def probe_sets(
    scorer: AnyScorer | ScorerSource,
    sets: Sets,
    *,
    measure: str | None = None,
    output: Path | None = None,
    store: Store | None = None,
    as_published: bool = False,
    chunk: int = _MAX_CHUNK_PROBES,
    seed: int = 0,
    progress: Progress | None = None,
) -> SetProbes:
    """SoFa over sets: category to (groups, statements); `kgbias.probe.gather_sets` reads them.

    `measure` ranks the groups: "conditional", "sofa" or "whole" (see
    `kgbias.probe.sofa.log_perplexities`; by default conditional, for a masked model whole).
    `output` gets every probe as a row of `COLUMNS`: a .jsonl file, or a .parquet folder of parts
    (which pandas, DuckDB and Arrow read as one table), with a manifest beside or in it. A stopped
    job continues from its output, and takes what is missing there from the answer log of `store`;
    without an output, the log keeps what is computed. Raises UsageError if the output belongs to
    other settings.

    Args:
        scorer: an open scorer of texts, such as `kgbias.open_scorer` gives.
        sets: category to (groups, statements).
        measure: what ranks the groups.
        output: the file or folder for the probes.
        store: whose answer log keeps the scores.
        as_published: compute as the paper's code did, slips included.
        chunk: how many probes are scored at a time.
        seed: the random seed of the intervals.
        progress: shows the work.
    """
    reporter, scorer = progress or SilentProgress(), resolve_scorer(scorer)
    measure = measure or default_measure(scorer.convention.kind)
    job = {
        "model": [scorer.info.name, scorer.info.revision, scorer.settings],
        "chunk": chunk,
        "sets": content_id("sets", canonical_json({k: list(v) for k, v in sets.items()})),
    }
    log = _LoggedRows(store, scorer, job) if store else None
    row_file = open_output(output, job) if output else log
    blocks = [
        _Block(category, groups, block_statements)
        for category, (groups, statements) in sets.items()
        for block_statements in _split_blocks(statements, max(1, chunk // len(groups)))
    ]
    reporter.stage(f"SoFa of {scorer.info.title}", sum(block.probe_count for block in blocks))
    block_values: dict[int, _BlockValues] = {}  # by the block's number

    def add(number: int, grid: ProbeGrid) -> None:
        grid.check_group_tokens(blocks[number].groups)
        block_values[number] = _BlockValues(
            star=log_perplexities(grid),
            ranking=log_perplexities(grid, measure),
            tokens=int(grid.probes.tokens.sum()),
        )

    for number, block in enumerate(blocks):
        rows_in_file = row_file.read(number) if row_file else None
        known_rows = log.read(number) if log and rows_in_file is None else rows_in_file
        if known_rows is None:
            continue
        grid = _rebuild_grid(known_rows, len(block.groups), len(block.statements))
        add(number, grid)
        reporter.advance(block.probe_count)
        if row_file and rows_in_file is None and row_file is not log:
            row_file.write(number, grid_rows(*block, grid))
    missing_blocks = [number for number in range(len(blocks)) if number not in block_values]
    stopwatch = ProbeStopwatch()
    missing_texts = [
        (blocks[number].groups, blocks[number].statements) for number in missing_blocks
    ]
    for place, grid in iter_grids(scorer, missing_texts, reporter):
        stopwatch.record_grid(grid)
        number = missing_blocks[place]
        if row_file:
            row_file.write(number, grid_rows(*blocks[number], grid))
        add(number, grid)
    biases = []
    for category, (groups, statements) in sets.items():
        category_blocks = [
            block_values[number]
            for number, block in enumerate(blocks)
            if block.category == category
        ]
        stars = np.concatenate([values.star for values in category_blocks], axis=1)
        ranking_values = np.concatenate([values.ranking for values in category_blocks], axis=1)
        biases.append(
            category_bias(
                category,
                groups,
                statements,
                stars,
                ranking_values,
                as_published=as_published,
                seed=seed,
            )
        )
    bias = overall_bias(biases, as_published=as_published)
    usage = stopwatch.usage(sum(values.tokens for values in block_values.values()))
    return SetProbes(ScorerInfo.from_scorer(scorer), bias, usage)


def _split_blocks(statements: Sequence[str], step: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(statements), step):
        yield statements[start : start + step]


def grid_rows(
    category: str, groups: Sequence[str], statements: Sequence[str], grid: ProbeGrid
) -> list[Row]:
    """The probes of a grid as rows of `COLUMNS`, group by group."""
    whole_perplexities, group_perplexities = grid.probes.perplexities, grid.group.perplexities
    return [
        dict(
            zip(
                COLUMNS,
                (
                    category,
                    group,
                    statement,
                    float(whole_perplexities[g, s]),
                    float(group_perplexities[g]),
                    float(grid.probes.log_likelihoods[g, s]),
                    int(grid.probes.tokens[g, s]),
                    float(grid.statement.log_likelihoods[g, s]),
                    int(grid.statement.tokens[g, s]),
                    float(grid.group.log_likelihoods[g]),
                    int(grid.group.tokens[g]),
                ),
                strict=True,
            )
        )
        for g, group in enumerate(groups)
        for s, statement in enumerate(statements)
    ]


def _rebuild_grid(rows: list[Row], groups: int, statements: int) -> ProbeGrid:
    def scores(name: str) -> Scores:
        values = np.array([row[f"{name}log_likelihood"] for row in rows], dtype=np.float64)
        tokens = np.array([row[f"{name}tokens"] for row in rows], dtype=np.int64)
        return Scores(values, tokens).reshape(groups, statements)

    group_scores = scores("group_")
    return ProbeGrid(
        scores(""),
        scores("statement_"),
        Scores(group_scores.log_likelihoods[:, 0], group_scores.tokens[:, 0]),
    )


def open_output(output: Path, job: Mapping[str, Any]) -> RowFile:
    """The output of a job, with the chunks that it already holds. Raises UsageError if it holds
    those of another job, or cannot be written."""
    try:
        if output.suffix == ".jsonl":
            manifest = output.with_suffix(".manifest.json")
            if output.exists() and not manifest.exists():
                raise UsageError(f"{output} exists: name another output")
            _claim_output(manifest, job)
            return _LinesFile(output)
        if output.suffix == ".parquet":
            output.mkdir(parents=True, exist_ok=True)
            _claim_output(output / "_manifest.json", job)
            return _ParquetFolder(output)
    except OSError as error:
        raise UsageError(f"cannot write to {output}: {error}") from error
    raise UsageError(f"{output} must end in .jsonl or .parquet")


def _claim_output(manifest: Path, job: Mapping[str, Any]) -> None:
    """Write a manifest that says which job the output belongs to, or check the existing one."""
    # As it will be read: JSON makes lists of tuples.
    current_job = json.loads(json.dumps(job))
    if manifest.exists():
        try:
            earlier_job = json.loads(manifest.read_text("utf-8")).get("job")
        except (ValueError, AttributeError):
            earlier_job = None
        if earlier_job != current_job:
            raise UsageError(
                f"{manifest} shows that the output has other settings: name another output"
            )
        return
    note = {"warning": CONTENT_WARNING, "sample": SAMPLE_CAVEAT, "job": current_job}
    _replace_file(manifest, (json.dumps(note, indent=2) + "\n").encode())


def _replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, and durably, because a job continues from it."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


class _ParquetFolder:
    """One Parquet file per chunk."""

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError as error:
            raise MissingExtra("pyarrow", extra="parquet") from error
        self._arrow = pyarrow
        self._folder = folder

    def read(self, chunk: int) -> list[Row] | None:
        path = self._path(chunk)
        if not path.exists():
            return None
        # By default, pyarrow makes columns of folders that are called NAME=VALUE.
        rows: list[Row] = self._arrow.parquet.read_table(path, partitioning=None).to_pylist()
        return rows

    def write(self, chunk: int, rows: list[Row]) -> None:
        buffer = self._arrow.BufferOutputStream()
        self._arrow.parquet.write_table(self._arrow.Table.from_pylist(rows), buffer)
        _replace_file(self._path(chunk), buffer.getvalue().to_pybytes())

    def _path(self, chunk: int) -> Path:
        return self._folder / f"part-{chunk:06}.parquet"


class _LoggedRows:
    """Rows in the answer log of a store: the figures of each chunk, column by column."""

    def __init__(self, store: Store, scorer: AnyScorer, job: Mapping[str, Any]) -> None:
        self._store, self._model, self._job = store, scorer.info.id, canonical_json(dict(job))

    def read(self, chunk: int) -> list[Row] | None:
        answer = self._store.answers([self._key(chunk)]).get(self._key(chunk))
        if answer is None:
            return None
        columns: dict[str, list[Any]] = json.loads(answer.text)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def write(self, chunk: int, rows: list[Row]) -> None:
        columns = {name: [row[name] for row in rows] for name in _FIGURE_COLUMNS}
        self._store.keep_answers(
            [Answer(self._key(chunk), self._model, canonical_json(columns), "stop")]
        )

    def _key(self, chunk: int) -> str:
        return content_id("probes", self._job, str(chunk))


class _LinesFile:
    """Rows in one file, with its chunks in order: one done early waits for those before it. A chunk
    that was cut short is written again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._early_chunks: dict[int, list[Row]] = {}
        self._chunk_ends: list[int] = []  # where each whole chunk ends
        self._index_path = path.with_suffix(".chunks")
        if self._index_path.exists():
            self._chunk_ends = self._read_ends()
        if path.exists():
            with path.open("r+b") as file:
                # What a call that was killed had written of its last chunk.
                file.truncate(self._chunk_ends[-1] if self._chunk_ends else 0)

    def _read_ends(self) -> list[int]:
        """The ends in the index. Raises DataError, before anything is cut, if they cannot be
        right."""
        words = read_text(self._index_path).split()
        size = self._path.stat().st_size if self._path.exists() else 0
        # No file is longer than 18 digits say, and `int` refuses thousands of them with an error of
        # its own.
        ends = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]
        if len(ends) < len(words) or ends != sorted(set(ends)) or (ends and ends[-1] > size):
            raise DataError(
                f"{self._index_path} does not match {self._path}: one of them was changed; delete "
                f"both "
                "to start again"
            )
        return ends

    def read(self, chunk: int) -> list[Row] | None:
        if chunk >= len(self._chunk_ends):
            return None
        start = self._chunk_ends[chunk - 1] if chunk else 0
        with self._path.open("rb") as file:
            file.seek(start)
            lines = file.read(self._chunk_ends[chunk] - start).splitlines()
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise DataError(f"{self._path} was changed by something else: {error}") from error

    def write(self, chunk: int, rows: list[Row]) -> None:
        self._early_chunks[chunk] = rows
        while rows := self._early_chunks.pop(len(self._chunk_ends), []):
            self._append(rows)

    def _append(self, rows: list[Row]) -> None:
        with self._path.open("ab") as file:
            file.write("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows).encode())
            file.flush()
            os.fsync(file.fileno())
            self._chunk_ends.append(file.tell())
        _replace_file(self._index_path, "".join(f"{end}\n" for end in self._chunk_ends).encode())
