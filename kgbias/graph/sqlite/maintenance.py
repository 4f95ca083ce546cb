"""Maintenance of a file: deleting runs, checking, compacting and copying it."""

import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from kgbias.errors import UsageError
from kgbias.graph import shape
from kgbias.graph.decisions import DECISION_COLUMNS
from kgbias.graph.integrity import Fault, find_wrong_ids
from kgbias.graph.labels import LABEL_CONTENT
from kgbias.graph.node_records import NODE_RECORDS, checked_nodes
from kgbias.graph.row_types import CompactedSizes
from kgbias.graph.sqlite.connection import (
    WRONG_VALUE_ERRORS,
    Connection,
    damage_error,
    translate_errors,
)
from kgbias.graph.sqlite.crawls import SQLiteCrawls
from kgbias.graph.sqlite.file_check import is_store
from kgbias.graph.sqlite.schema import (
    SHARED_TABLES,
    expected_schema,
    key_column,
    latest_tables,
    list_references,
)
from kgbias.graph.sqlite.selects import NODE_SELECTS
from kgbias.io.files import replace_file, sha256_of, write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import read_text
from kgbias.measures import MEASURES

_BACKUP_STEP_PAGES = 10_000  # pages copied between two reports: 40 MB
_MAX_COUNT = 2**53  # the largest count that a float can tell from the next
_MAX_ROUNDS = 10**6  # the most rounds of a crawl, or attempts at a prompt
_COLUMNS_FROM_MINUS_ONE = ("number", "cluster", "community")  # -1: in none
_PROPERTIES = (
    *(p for node in shape.NODES for p in node.properties),
    *(p for edge in shape.EDGES for p in edge.properties),
)
_JSON_COLUMNS = {"details", "keys"} | {  # columns of JSON
    p.name for p in _PROPERTIES if p.json or p.type in ("texts", "numbers")
}
_ROUNDING_TOLERANCE = 1e-6  # how far rounding may take a sum beyond the range of a measure
_MAX_CHECK_MESSAGES = 20  # messages passed on from SQLite's own check

LABEL_BY_TABLE = {
    "category": "Category",
    "group": "SocialGroup",
    "predicate": "Predicate",
    "object": "Object",
    "triple": "Triple",
    "model": "Model",
    "run": "Run",
    "generation": "Generation",
    "topic": "Topic",
    "topic_model": "TopicModel",
    "statement": "Statement",
    "decision": "Decision",
    "passage": "Passage",
    "given_name": "GivenName",
    "descriptor": "Descriptor",
    "name": "Name",
    "stereotype": "Stereotype",
    **{node.table: node.label for node in NODE_RECORDS.values()},
}

# label -> a SELECT of its ids and what they are computed from (kgbias.graph.integrity.ID_BUILDERS)
_ID_QUERIES = {
    "SocialGroup": 'SELECT id, name FROM "group"',
    "Predicate": "SELECT id, text FROM predicate",
    "Object": "SELECT id, text FROM object",
    "Triple": "SELECT id, group_id, predicate_id, object_id FROM triple",
    "Statement": "SELECT id, predicate_id, object_id FROM statement",
    "Model": "SELECT id, name, revision FROM model",
    "Run": "SELECT run.id, kind, config, settings, model.name, revision FROM run "
    "JOIN model ON model.id = model_id",
    "Generation": "SELECT id, run_id, path FROM generation",
    "Topic": "SELECT id, category, words FROM topic",
    "Passage": "SELECT uid, run_id, id FROM passage",
    "GivenName": "SELECT id, name FROM given_name",
    "Descriptor": "SELECT id, text FROM descriptor",
    "Name": "SELECT id, text FROM name",
    "Profile": "SELECT id, run_id, path FROM profile",
    "Label": f"SELECT uid, triple_id, rater_id, {', '.join(LABEL_CONTENT)} FROM label",
    "Stereotype": "SELECT id, stereotype_table_id, people, attribute FROM stereotype",
    "Decision": f"SELECT uid, {', '.join(DECISION_COLUMNS)} FROM decision",
    **{n.label: f"SELECT id, {', '.join(n.checked)} FROM {n.table}" for n in checked_nodes()},
}


# The vectors of statements that no triple says, though others share their parts.
_DELETE_UNSAID_VECTORS = """
DELETE FROM vector
WHERE (predicate_id, object_id) NOT IN (SELECT predicate_id, object_id FROM triple)"""

_UNSWEPT_TABLES = {"association_test", "sofa"}  # one may belong to no run


_DERIVED_LABELS = ("Category", "Statement")  # some exist only as names in a run or a set of probes


class _DryRunEnded(Exception):
    """Raised to undo a dry run of a deletion."""


class SQLiteMaintenance(SQLiteCrawls):
    def delete(self, run_id: str, *, dry_run: bool = False) -> dict[str, int]:
        deleted_counts: dict[str, int] = {}
        try:
            with self._transaction():
                self._note_loose("run", "SELECT ?", run_id)
                for decision in self.decisions(run_id):  # nothing else refers to what was rejected
                    if decision.read:
                        self._note_loose("triple", "SELECT ?", decision.read.id)
                counts_before = {label: self._count_nodes(label) for label in _DERIVED_LABELS}
                self._remove_noted("run", deleted_counts)
                self._sweep_tables(("answer", *SHARED_TABLES), deleted_counts)
                self._db.execute(_DELETE_UNSAID_VECTORS)
                deleted_counts |= {
                    label: n - self._count_nodes(label) for label, n in counts_before.items()
                }
                if dry_run:
                    raise _DryRunEnded
        except _DryRunEnded:
            pass
        return shape.order_by_shape(deleted_counts)

    def compact(self, progress: Progress | None = None) -> CompactedSizes:
        progress = progress or SilentProgress()
        size_before = self._size()
        removed_counts: dict[str, int] = {}
        progress.stage("file", 1)
        for (line,) in self._db.execute("PRAGMA quick_check(1)"):  # what is damaged may have no end
            if line != "ok":
                raise damage_error(self.url, line)
        progress.advance()
        progress.stage("unused nodes", 1)
        with self._transaction():
            swept_tables = [table for table in SHARED_TABLES if table not in _UNSWEPT_TABLES]
            for table in swept_tables:
                self._note_loose(table, f'SELECT {key_column(table)} FROM "{table}"')
            self._sweep_tables(swept_tables, removed_counts)
            self._db.execute(_DELETE_UNSAID_VECTORS)
        progress.advance()
        for label, count in shape.order_by_shape(removed_counts).items():
            progress.note(f"removed {count:,} {label} that nothing referred to")
        progress.stage("rewritten file", 1)
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA optimize")
        self.checkpoint()
        progress.advance()
        return CompactedSizes(size_before, self._size())

    def find_faults(self, progress: Progress | None = None) -> list[Fault]:
        progress = progress or SilentProgress()
        faults = list(_find_changed_backup(Path(self.url)))
        progress.stage("file", 1)
        messages = [
            line for (line,) in self._db.execute(f"PRAGMA integrity_check({_MAX_CHECK_MESSAGES})")
        ]
        faults += [Fault("file", line) for line in messages if line != "ok"]
        progress.advance()
        if messages != ["ok"]:
            return faults  # the tables of a damaged file may have no end
        firm_references = [reference for reference in list_references() if not reference.loose]
        progress.stage("references", len(firm_references))
        for reference in firm_references:
            count, example = self._db.execute(
                f'SELECT count(*), min({reference.column}) FROM "{reference.table}" WHERE '
                f"{reference.where} "
                f"AND {reference.column} IS NOT NULL "
                f"AND {reference.column} NOT IN (SELECT {key_column(reference.to)} FROM "
                f'"{reference.to}")'
            ).fetchone()
            if count:
                fault_text = (
                    f"{reference.table}.{reference.column} that refers to no "
                    f"{reference.to.replace('_', ' ')}"
                )
                faults.append(Fault("reference", fault_text, count, example))
            progress.advance()
        faults += _find_missing_indexes(self._db)
        self._db.create_function("sound_json", 1, _sound_json, deterministic=True)
        progress.stage("values", len(latest_tables()))
        for table in latest_tables():
            faults += _find_wrong_values(self._db, table)
            progress.advance()
        progress.stage("ids", len(_ID_QUERIES))
        for label, query in _ID_QUERIES.items():
            faults += find_wrong_ids(label, self._db.execute(query))
            progress.advance()
        return faults

    def __exit__(self, *raised: object) -> None:
        """Close the store. If a wrong value was the error and the file is damaged, say so."""
        error = raised[1]
        try:
            if isinstance(error, WRONG_VALUE_ERRORS):
                for fault in self.find_faults():
                    if fault.kind != "checksum":
                        raise damage_error(self.url, fault.what) from error
        finally:
            self.close()

    def backup(self, path: Path, progress: Progress | None = None) -> None:
        progress = progress or SilentProgress()
        _check_target(Path(self.url), path)
        with replace_file(path) as partial:
            # Nobody else knows the new file, so it needs no locks, which its disk may not have.
            target_url = f"{partial.absolute().as_uri()}?nolock=1"
            with self.read_snapshot(), closing(sqlite3.connect(target_url, uri=True)) as copy:
                self._db.execute("SELECT token FROM state").fetchone()  # the moment begins
                pages = self._db.execute("PRAGMA page_count").fetchone()[0]
                progress.stage("pages", pages)
                copied_pages = 0

                def report(_: int, remaining_pages: int, total: int) -> None:
                    nonlocal copied_pages
                    progress.advance(total - remaining_pages - copied_pages)
                    copied_pages = total - remaining_pages

                copy.execute("PRAGMA journal_mode = OFF")  # a failure leaves no file at all
                with translate_errors(str(path)):
                    self._db.backup(copy, pages=_BACKUP_STEP_PAGES, progress=report)
            digest = sha256_of(partial)
        write_text(_checksum_path(path), f"{digest}  {path.name}\n")

    def _size(self) -> int:
        self.checkpoint()
        return Path(self.url).stat().st_size

    def _count_nodes(self, label: str) -> int:
        """The number of nodes with a label, some of which have no row of their own."""
        return int(self._db.execute(f"SELECT count(*) FROM ({NODE_SELECTS[label]})").fetchone()[0])

    def _note_loose(self, table: str, query: str, *values: str) -> None:
        """Note rows of a table by key, to be removed if nothing refers to them."""
        self._db.execute(f"CREATE TEMP TABLE IF NOT EXISTS loose_{table} (id PRIMARY KEY)")
        self._db.execute(f"INSERT OR IGNORE INTO loose_{table} {query}", values)

    def _remove_noted(self, table: str, removed_counts: dict[str, int]) -> None:
        """Remove the noted rows of a table, with their parts, and note what all of these referred
        to."""
        noted_ids = f"SELECT id FROM temp.loose_{table}"
        for reference in (
            reference for reference in list_references() if reference.to == table and reference.part
        ):
            part_condition = f"{reference.column} IN ({noted_ids})"
            if any(
                p.to == reference.table and p.part for p in list_references()
            ):  # with parts of their own
                self._note_loose(
                    reference.table,
                    f'SELECT {key_column(reference.table)} FROM "{reference.table}" WHERE '
                    f"{part_condition}",
                )
                self._remove_noted(reference.table, removed_counts)
            else:
                self._remove_where(reference.table, part_condition, removed_counts)
        self._remove_where(table, f"{key_column(table)} IN ({noted_ids})", removed_counts)
        self._db.execute(f"DROP TABLE temp.loose_{table}")

    def _remove_where(self, table: str, condition: str, removed_counts: dict[str, int]) -> None:
        for reference in list_references():
            if reference.table == table and reference.to in ("answer", *SHARED_TABLES):
                self._note_loose(
                    reference.to,
                    f'SELECT {reference.column} FROM "{table}" '
                    f"WHERE {reference.where} AND {reference.column} IS NOT NULL AND {condition}",
                )
        removed = self._db.execute(f'DELETE FROM "{table}" WHERE {condition}').rowcount
        if table in LABEL_BY_TABLE:
            removed_counts[LABEL_BY_TABLE[table]] = (
                removed_counts.get(LABEL_BY_TABLE[table], 0) + removed
            )

    def _sweep_tables(self, tables: Collection[str], removed_counts: dict[str, int]) -> None:
        """Remove the noted rows that no row refers to any more."""
        for table in tables:
            self._note_loose(table, "SELECT NULL WHERE FALSE")  # so that there is a list
            for reference in (
                reference
                for reference in list_references()
                if reference.to == table and not reference.part
            ):
                self._db.execute(
                    f"DELETE FROM temp.loose_{table} WHERE id IN (SELECT loose.id "
                    f'FROM temp.loose_{table} AS loose JOIN "{reference.table}" ON loose.id = '
                    f"{reference.column} "
                    f"WHERE {reference.where})"
                )
            self._remove_noted(table, removed_counts)
        for table in tables:  # including rows noted after their table was swept
            self._db.execute(f"DROP TABLE IF EXISTS temp.loose_{table}")


def _find_missing_indexes(db: Connection) -> Iterator[Fault]:
    """The indexes that the file lacks, without which seconds become hours."""
    present_indexes = {
        name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
    }
    for name in sorted(expected_schema()[0] - present_indexes):
        yield Fault("file", f"the index {name} is missing")


def _find_wrong_values(db: Connection, table: str) -> Iterator[Fault]:
    """The columns of a table with values that kgbias never writes there: of the wrong type, not
    finite, or out of range."""
    column_types = {c: kind for (t, c), kind in expected_schema()[1].items() if t == table}
    key = next(iter(column_types))
    test_by_column = {
        c: _sound_condition(table, c, kind, full) for c, (kind, full) in column_types.items()
    }
    checks = ", ".join(
        f'count(*) FILTER (WHERE NOT ({test})), min("{key}") FILTER (WHERE NOT ({test}))'
        for test in test_by_column.values()
    )
    row = db.execute(f'SELECT {checks} FROM "{table}"').fetchone()
    for column, count, example in zip(test_by_column, row[::2], row[1::2], strict=True):
        if count:
            yield Fault("value", f"{table}.{column} out of its range or type", count, str(example))
    if table == "run_metric":
        count, example = db.execute(
            "SELECT count(*), min(run_id) FROM run_metric JOIN metric ON metric.id = metric_id "
            "WHERE metric.measure <> run_metric.measure"
        ).fetchone()
        if count:
            yield Fault("value", "run_metric.measure that is not its metric's", count, example)
    if table == "score":
        for name, measure in MEASURES.own_entries.items():
            if measure.range is None:
                continue
            count, example = db.execute(
                "SELECT count(*), min(triple_id) FROM score JOIN metric ON metric.id = metric_id "
                "WHERE measure = ? AND value NOT BETWEEN ? AND ?",
                (
                    name,
                    measure.range[0] - _ROUNDING_TOLERANCE,
                    measure.range[1] + _ROUNDING_TOLERANCE,
                ),
            ).fetchone()
            if count:
                yield Fault("value", f"a score of {name} out of its range", count, example)


def _sound_condition(table: str, column: str, kind: str, full: bool) -> str:
    """The SQL condition for a value that kgbias could have written."""
    name = f'"{column}"'
    if kind == "TEXT":
        test = f"typeof({name}) = 'text'"
        if column in _JSON_COLUMNS:
            test += f" AND ({name} = '' OR sound_json({name}))"
    elif kind == "INTEGER":
        low = -1 if column in _COLUMNS_FROM_MINUS_ONE else 0
        high = _MAX_ROUNDS if column in ("iteration", "attempt") else _MAX_COUNT
        test = f"typeof({name}) = 'integer' AND {name} BETWEEN {low} AND {high}"
    elif kind == "BLOB":
        # Vectors: two bytes a number.
        test = f"typeof({name}) = 'blob' AND length({name}) % 2 = 0"
    else:
        # 9e999 is infinite. A model may exclude a text: then its log-likelihood is -infinity.
        low_end = f"{name} > -9e999" if "likelihood" not in column else "TRUE"
        test = f"typeof({name}) = 'real' AND {name} < 9e999 AND {low_end}"
    return f"({test})" if full else f"{name} IS NULL OR ({test})"


def _sound_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _check_target(store: Path, path: Path) -> None:
    """Raise UsageError for a path where a backup would do damage."""
    if path.exists() and path.samefile(store):
        raise UsageError("a store cannot be backed up to itself: name another file")
    is_store(str(path))  # never overwrite another program's file
    if Path(f"{path}-wal").exists():
        raise UsageError(f"{path} is a store in use: name another file")


def _checksum_path(path: Path) -> Path:
    """The path of a backup's checksum, in the form that `sha256sum --check` reads."""
    return path.with_name(path.name + ".sha256")


def _find_changed_backup(path: Path) -> Iterator[Fault]:
    """The fault of a backup that has changed since it was written."""
    file, log = _checksum_path(path), Path(f"{path}-wal")
    if not file.exists():
        return
    has_unmoved_log = log.exists() and log.stat().st_size > 0  # and not yet moved into the file
    if has_unmoved_log or read_text(file).split()[:1] != [sha256_of(path)]:
        yield Fault("checksum", f"{path.name} does not match its checksum in {file.name}")
