"""Maintenance of a file: deleting runs, checking, compacting and copying it."""

import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from kgbias.errors import UsageError
from kgbias.graph import shape
from kgbias.graph.decisions import COLUMNS
from kgbias.graph.keeping import Fault, wrong_ids
from kgbias.graph.labels import CONTENT
from kgbias.graph.sqlite.crawls import Crawls
from kgbias.graph.sqlite.file import is_store
from kgbias.graph.sqlite.guard import WRONG_VALUES, Connection, damage, guarded
from kgbias.graph.sqlite.rows import NODES
from kgbias.graph.sqlite.schema import (
    LABELS,
    SHARED,
    expected,
    key,
    references,
    tables,
)
from kgbias.io.files import sha256_of, replace_file, write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import read_text
from kgbias.measures import MEASURES

_STEP = 10_000  # pages copied between two reports: 40 MB
_COUNTS = 2**53  # the largest count that a float can tell from the next
_ROUNDS = 10**6  # the most rounds of a crawl, or attempts at a prompt
_FROM_MINUS_ONE = ("number", "cluster", "community")  # -1: in none
_JSON = {"details", "keys"} | {  # columns of JSON
    p.name
    for own in (*(n.properties for n in shape.NODES), *(e.properties for e in shape.EDGES))
    for p in own
    if p.json or p.type in ("texts", "numbers")
}
_ROUNDED = 1e-6  # how far rounding may take a sum beyond the range of a measure
_MOST = 20  # messages passed on from SQLite's own check

# label -> a SELECT of its ids and what they are computed from (kgbias.graph.keeping.IDS)
_CONTENT = {
    "SocialGroup": 'SELECT id, name FROM "group"',
    "Predicate": "SELECT id, text FROM predicate",
    "Object": "SELECT id, text FROM object",
    "Triple": "SELECT id, group_id, predicate_id, object_id FROM triple",
    "Statement": "SELECT id, predicate_id, object_id FROM statement",
    "Model": "SELECT id, name, revision FROM model",
    "Run": "SELECT run.id, kind, config, settings, model.name, revision FROM run "
    "JOIN model ON model.id = model_id",
    "Generation": "SELECT id, run_id, path FROM generation",
    "Metric": "SELECT id, measure, scorer, version, verbaliser FROM metric",
    "Topic": "SELECT id, category, words FROM topic",
    "Passage": "SELECT uid, run_id, id FROM passage",
    "GivenName": "SELECT id, name FROM given_name",
    "Descriptor": "SELECT id, text FROM descriptor",
    "Name": "SELECT id, text FROM name",
    "Profile": "SELECT id, run_id, path FROM profile",
    "Rater": "SELECT id, name, kind FROM rater",
    "Label": f"SELECT uid, triple_id, rater_id, {', '.join(CONTENT)} FROM label",
    "StereotypeTable": "SELECT id, name, checksum FROM stereotype_table",
    "Stereotype": "SELECT id, stereotype_table_id, people, attribute FROM stereotype",
    "Decision": f"SELECT uid, {', '.join(COLUMNS)} FROM decision",
}


# The vectors of statements that no triple says, though others share their parts.
_UNSAID = """
DELETE FROM vector
WHERE (predicate_id, object_id) NOT IN (SELECT predicate_id, object_id FROM triple)"""

_NOT_SWEPT = {"association_test", "sofa"}  # one may belong to no run


_DERIVED = ("Category", "Statement")  # some exist only as names in a run or a set of probes


class _Undone(Exception):
    """Raised to undo a dry run of a deletion."""


class Keeping(Crawls):
    def delete(self, run_id: str, *, dry_run: bool = False) -> dict[str, int]:
        gone: dict[str, int] = {}
        try:
            with self._transaction():
                self._loose("run", "SELECT ?", run_id)
                for decision in self.decisions(run_id):  # nothing else refers to what was rejected
                    if decision.read:
                        self._loose("triple", "SELECT ?", decision.read.id)
                derived = {label: self._there(label) for label in _DERIVED}
                self._remove("run", gone)
                self._sweep(("answer", *SHARED), gone)
                self._db.execute(_UNSAID)
                gone |= {label: n - self._there(label) for label, n in derived.items()}
                if dry_run:
                    raise _Undone
        except _Undone:
            pass
        return shape.by_label(gone)

    def compact(self, progress: Progress | None = None) -> tuple[int, int]:
        progress = progress or SilentProgress()
        before = self._size()
        gone: dict[str, int] = {}
        progress.stage("file", 1)
        for (line,) in self._db.execute("PRAGMA quick_check(1)"):  # what is damaged may have no end
            if line != "ok":
                raise damage(self.url, line)
        progress.advance()
        progress.stage("unused nodes", 1)
        with self._transaction():
            swept = [table for table in SHARED if table not in _NOT_SWEPT]
            for table in swept:
                self._loose(table, f'SELECT {key(table)} FROM "{table}"')
            self._sweep(swept, gone)
            self._db.execute(_UNSAID)
        progress.advance()
        for label, count in shape.by_label(gone).items():
            progress.note(f"removed {count:,} {label} that nothing referred to")
        progress.stage("rewritten file", 1)
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA optimize")
        self.checkpoint()
        progress.advance()
        return before, self._size()

    def faults(self, progress: Progress | None = None) -> list[Fault]:
        progress = progress or SilentProgress()
        found = list(_changed_backup(Path(self.url)))
        progress.stage("file", 1)
        said = [line for (line,) in self._db.execute(f"PRAGMA integrity_check({_MOST})")]
        found += [Fault("file", line) for line in said if line != "ok"]
        progress.advance()
        if said != ["ok"]:
            return found  # the tables of a damaged file may have no end
        firm = [r for r in references() if not r.loose]
        progress.stage("references", len(firm))
        for r in firm:
            count, example = self._db.execute(
                f'SELECT count(*), min({r.column}) FROM "{r.table}" WHERE {r.where} '
                f"AND {r.column} IS NOT NULL "
                f'AND {r.column} NOT IN (SELECT {key(r.to)} FROM "{r.to}")'
            ).fetchone()
            if count:
                what = f"{r.table}.{r.column} that refers to no {r.to.replace('_', ' ')}"
                found.append(Fault("reference", what, count, example))
            progress.advance()
        found += _missing(self._db)
        self._db.create_function("sound_json", 1, _sound_json, deterministic=True)
        progress.stage("values", len(tables()))
        for table in tables():
            found += _wrong_values(self._db, table)
            progress.advance()
        progress.stage("ids", len(_CONTENT))
        for label, query in _CONTENT.items():
            found += wrong_ids(label, self._db.execute(query))
            progress.advance()
        return found

    def __exit__(self, *raised: object) -> None:
        """Close the store. If a wrong value was the error and the file is damaged, say so."""
        error = raised[1]
        try:
            if isinstance(error, WRONG_VALUES):
                for fault in self.faults():
                    if fault.kind != "checksum":
                        raise damage(self.url, fault.what) from error
        finally:
            self.close()

    def backup(self, path: Path, progress: Progress | None = None) -> None:
        progress = progress or SilentProgress()
        _check_target(Path(self.url), path)
        with replace_file(path) as partial:
            # Nobody else knows the new file, so it needs no locks, which its disk may not have.
            new = f"{partial.absolute().as_uri()}?nolock=1"
            with self.one_moment(), closing(sqlite3.connect(new, uri=True)) as copy:
                self._db.execute("SELECT token FROM state").fetchone()  # the moment begins
                pages = self._db.execute("PRAGMA page_count").fetchone()[0]
                progress.stage("pages", pages)
                done = 0

                def shown(_: int, left: int, total: int) -> None:
                    nonlocal done
                    progress.advance(total - left - done)
                    done = total - left

                copy.execute("PRAGMA journal_mode = OFF")  # a failure leaves no file at all
                with guarded(str(path)):
                    self._db.backup(copy, pages=_STEP, progress=shown)
            digest = sha256_of(partial)
        write_text(_checksum(path), f"{digest}  {path.name}\n")

    def _size(self) -> int:
        self.checkpoint()
        return Path(self.url).stat().st_size

    def _there(self, label: str) -> int:
        """The number of nodes with a label, some of which have no row of their own."""
        return int(self._db.execute(f"SELECT count(*) FROM ({NODES[label]})").fetchone()[0])

    def _loose(self, table: str, query: str, *values: str) -> None:
        """Note rows of a table by key, to be removed if nothing refers to them."""
        self._db.execute(f"CREATE TEMP TABLE IF NOT EXISTS loose_{table} (id PRIMARY KEY)")
        self._db.execute(f"INSERT OR IGNORE INTO loose_{table} {query}", values)

    def _remove(self, table: str, gone: dict[str, int]) -> None:
        """Remove the noted rows of a table, with their parts, and note what all of these referred
        to."""
        noted = f"SELECT id FROM temp.loose_{table}"
        for r in (r for r in references() if r.to == table and r.part):
            parts = f"{r.column} IN ({noted})"
            if any(p.to == r.table and p.part for p in references()):  # with parts of their own
                self._loose(r.table, f'SELECT {key(r.table)} FROM "{r.table}" WHERE {parts}')
                self._remove(r.table, gone)
            else:
                self._remove_where(r.table, parts, gone)
        self._remove_where(table, f"{key(table)} IN ({noted})", gone)
        self._db.execute(f"DROP TABLE temp.loose_{table}")

    def _remove_where(self, table: str, condition: str, gone: dict[str, int]) -> None:
        for r in references():
            if r.table == table and r.to in ("answer", *SHARED):
                self._loose(
                    r.to,
                    f'SELECT {r.column} FROM "{table}" '
                    f"WHERE {r.where} AND {r.column} IS NOT NULL AND {condition}",
                )
        removed = self._db.execute(f'DELETE FROM "{table}" WHERE {condition}').rowcount
        if table in LABELS:
            gone[LABELS[table]] = gone.get(LABELS[table], 0) + removed

    def _sweep(self, tables: Collection[str], gone: dict[str, int]) -> None:
        """Remove the noted rows that no row refers to any more."""
        for table in tables:
            self._loose(table, "SELECT NULL WHERE FALSE")  # so that there is a list
            for r in (r for r in references() if r.to == table and not r.part):
                self._db.execute(
                    f"DELETE FROM temp.loose_{table} WHERE id IN (SELECT loose.id "
                    f'FROM temp.loose_{table} AS loose JOIN "{r.table}" ON loose.id = {r.column} '
                    f"WHERE {r.where})"
                )
            self._remove(table, gone)
        for table in tables:  # including rows noted after their table was swept
            self._db.execute(f"DROP TABLE IF EXISTS temp.loose_{table}")


def _missing(db: Connection) -> Iterator[Fault]:
    """The indexes that the file lacks, without which seconds become hours."""
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    for name in sorted(expected()[0] - there):
        yield Fault("file", f"the index {name} is missing")


def _wrong_values(db: Connection, table: str) -> Iterator[Fault]:
    """The columns of a table with values that kgbias never writes there: of the wrong type, not
    finite, or out of range."""
    kinds = {c: kind for (t, c), kind in expected()[1].items() if t == table}
    key = next(iter(kinds))
    tests = {c: _sound(table, c, kind, full) for c, (kind, full) in kinds.items()}
    checks = ", ".join(
        f'count(*) FILTER (WHERE NOT ({test})), min("{key}") FILTER (WHERE NOT ({test}))'
        for test in tests.values()
    )
    row = db.execute(f'SELECT {checks} FROM "{table}"').fetchone()
    for column, count, example in zip(tests, row[::2], row[1::2], strict=True):
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
                (name, measure.range[0] - _ROUNDED, measure.range[1] + _ROUNDED),
            ).fetchone()
            if count:
                yield Fault("value", f"a score of {name} out of its range", count, example)


def _sound(table: str, column: str, kind: str, full: bool) -> str:
    """The SQL condition for a value that kgbias could have written."""
    name = f'"{column}"'
    if kind == "TEXT":
        test = f"typeof({name}) = 'text'"
        if column in _JSON:
            test += f" AND ({name} = '' OR sound_json({name}))"
    elif kind == "INTEGER":
        low = -1 if column in _FROM_MINUS_ONE else 0
        high = _ROUNDS if column in ("iteration", "attempt") else _COUNTS
        test = f"typeof({name}) = 'integer' AND {name} BETWEEN {low} AND {high}"
    elif kind == "BLOB":
        test = f"typeof({name}) = 'blob' AND length({name}) % 2 = 0"
    else:
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


def _checksum(path: Path) -> Path:
    """The path of a backup's checksum, in the form that `sha256sum --check` reads."""
    return path.with_name(path.name + ".sha256")


def _changed_backup(path: Path) -> Iterator[Fault]:
    """The fault of a backup that has changed since it was written."""
    file, log = _checksum(path), Path(f"{path}-wal")
    if not file.exists():
        return
    written = log.exists() and log.stat().st_size > 0  # and not yet moved into the file
    if written or read_text(file).split()[:1] != [sha256_of(path)]:
        yield Fault("checksum", f"{path.name} does not match its checksum in {file.name}")
