"""Views of a SQLite store are kept in the engine's process and on disk, and are never stale.

Each test runs a script in a process of its own: the engine may not be loaded beside PyTorch.
"""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not find_spec("kglite"), reason="kglite is not installed"),
]

GROUPS = (Group("Elves", "peoples"),)
RUN = Run("r", ModelInfo("m"), {}, GROUPS)

BEGIN = """
import os, sqlite3, sys
from pathlib import Path
from kgbias.graph.sqlite import SQLiteStore, view_cache
from kgbias.graph.sqlite.engine import answer_query
from kgbias.graph.types import Group, Triple
import kglite

kglite.set_query_warning_policy("silent")
view_cache._MIN_SAVED_SIZE = 0
url = sys.argv[1]
built = []
build = view_cache._build_view
view_cache._build_view = lambda *given: (built.append(1), build(*given))[1]
kept = view_cache.ViewCache()
OBJECTS = "MATCH (o:Object) RETURN o.text AS text ORDER BY text"

def ask(text=OBJECTS, names=("Object",), by=kept):
    rows = answer_query(by, url, text, {}, names).rows
    by.save()
    return [row[0] for row in rows]

def files():
    return sorted((Path(os.environ["KGBIAS_CACHE"]) / "views").glob("*"))
"""


def script(store: SQLiteStore, tmp_path: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code, store.url],
        capture_output=True,
        text=True,
        env={**os.environ, "KGBIAS_CACHE": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def filled(store: SQLiteStore) -> SQLiteStore:
    store.begin_run(RUN)
    triples = [Triple("Elves", "love", f"song {n}") for n in range(3)]
    store.record_round(
        RUN.id,
        "none",
        0,
        [
            Generation(RUN.id, f"{n}", GROUPS[0].id, "none", "object", 0, 0, "ok", triple=t)
            for n, t in enumerate(triples)
        ],
    )
    return store


def test_a_view_is_kept_in_the_process_and_on_disk(filled: SQLiteStore, tmp_path: Path) -> None:
    code = """
before = ask(), ask()
assert built == [1] and len(files()) == 1
assert ask(by=view_cache.ViewCache()) == before[0] == before[1] == ["song 0", "song 1", "song 2"]
assert built == [1]
"""
    script(filled, tmp_path, code)
    filled.close()  # which moves the log into the file, and changes nothing
    script(filled, tmp_path, 'ask(); assert built == [], "built again"')


def test_a_view_with_too_little_is_not_used(filled: SQLiteStore, tmp_path: Path) -> None:
    code = """
ask()
edge = "MATCH (t:Triple)-[:OBJECT]->(o) RETURN o.text AS text ORDER BY text"
everything = "MATCH (n) RETURN labels(n)[0] AS label ORDER BY label"
assert len(ask(edge, ("Triple", "OBJECT"))) == 3
assert len(ask(edge, None)) == 3
assert set(ask(everything, None)) >= {"Run", "Model", "Generation", "Triple", "Category"}
assert len(built) == 3
assert len(ask(edge, ("OBJECT",))) == 3 and len(built) == 3
"""
    script(filled, tmp_path, code)


def test_the_first_view_has_the_named_properties_and_the_next_has_all(
    filled: SQLiteStore, tmp_path: Path
) -> None:
    code = """
paths = "MATCH (n:Generation) RETURN n.path AS path ORDER BY path"
arms = "MATCH (n:Generation) RETURN n.arm AS arm"
assert ask(paths, ("Generation", "path")) == ["0", "1", "2"]
assert ask(arms, ("Generation", "path")) == [None] * 3 and len(built) == 1
assert ask(arms, ("Generation", "arm")) == ["none"] * 3 and len(built) == 2
assert ask(paths, ("Generation",)) == ["0", "1", "2"] and len(built) == 2
"""
    script(filled, tmp_path, code)


def test_a_query_looks_its_names_up_in_the_view_that_it_reads(
    filled: SQLiteStore, tmp_path: Path
) -> None:
    code = """
from kgbias.query import load_query

class Local:
    def query(self, text, parameters=None, *, names):
        return answer_query(kept, url, text, parameters or {}, names)

values = {"group": "elves", "predicate": "love", "object": "song 1"}
assert len(load_query("lineage").run(Local(), values).rows) == 1 and len(built) == 1
kept = view_cache.ViewCache()
assert load_query("flagged").run(Local(), {}).rows == [] and len(built) == 2
assert load_query("flagged").explain_no_rows(Local(), {}) and len(built) == 2
"""
    script(filled, tmp_path, code)


def test_no_edges_are_merged_into_those_of_another_label(
    filled: SQLiteStore, tmp_path: Path
) -> None:
    code = """
loads = [
    (table.add.keywords["connection_type"], table.add.keywords["source_type"])
    for table in view_cache._list_tables(view_cache._ALL_NAMES)
    if table.add.func is kglite.KnowledgeGraph.add_relationships
]
assert ("PLACED", "Run") in loads and len(loads) == len(set(loads))
"""
    script(filled, tmp_path, code)


def test_every_write_is_seen(filled: SQLiteStore, tmp_path: Path) -> None:
    code = """
assert len(ask()) == 3
store = SQLiteStore(url)
for n in range(3, 8):
    store.keep_triples([Triple("Elves", "love", f"song {n}")])
    assert len(ask()) == len(ask(by=view_cache.ViewCache())) == n + 1
    assert len(files()) == 1, "one state is kept"
store.close()
other = sqlite3.connect(url, isolation_level=None)
for n in range(5):
    other.execute("UPDATE object SET text = ? WHERE text LIKE 'song 7%'", (f"song 7{n}",))
    if n % 2:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert ask()[-1] == ask(by=view_cache.ViewCache())[-1] == f"song 7{n}"
"""
    script(filled, tmp_path, code)


def test_a_line_says_what_the_first_query_of_a_large_graph_waits_for(
    filled: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    filled.close()
    with closing(sqlite3.connect(filled.url)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) "
            "INSERT INTO object (id, text) SELECT 'o' || x, x || hex(zeroblob(100)) FROM n"
        )
    lines: list[str] = []
    with SQLiteStore(filled.url, notify=lines.append) as store:
        store.query("MATCH (r:Run) RETURN count(r)", names={"Run"})
        assert lines == []
        for _ in range(2):
            assert store.query("MATCH (o:Object) RETURN count(o)").rows == [(20_003,)]
    texts.check("\n".join(lines))


def test_a_view_is_saved_after_the_answer_and_before_the_store_is_closed(
    filled: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
answer_query(kept, url, OBJECTS, {}, ("Object",))
assert files() == []
kept.save()
assert len(files()) == 1
"""
    script(filled, tmp_path, code)
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "other"))
    filled.close()
    with closing(sqlite3.connect(filled.url)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) "
            "INSERT INTO object (id, text) SELECT 'o' || x, 'thing ' || x FROM n"
        )
    with SQLiteStore(filled.url) as store:
        store.query("MATCH (o:Object) RETURN count(o)", names={"Object"})
    assert len(list((tmp_path / "other" / "views").iterdir())) == 1


def test_a_view_that_comes_late_does_not_take_the_place_of_a_newer_one(
    filled: SQLiteStore, tmp_path: Path
) -> None:
    code = """
save = view_cache._save_view

def late(graph, key):  # while a view is made, the store changes and a newer view is saved
    view_cache._save_view = save
    with SQLiteStore(url) as store:
        store.keep_triples([Triple("Elves", "love", "song 3")])
    assert len(ask(by=view_cache.ViewCache())) == 4
    newer = files()
    save(graph, key)
    assert files() == newer and len(newer) == 1

view_cache._save_view = late
assert len(ask()) == 3 and len(built) == 2
assert len(ask()) == 4
"""
    script(filled, tmp_path, code)


def test_a_damaged_view_is_rebuilt(filled: SQLiteStore, tmp_path: Path) -> None:
    code = """
whole = ask()
(file,) = files()
right = file.read_bytes()
cuts = [b"", b"not a view", right[: len(right) // 2]]
flips = []
for place in range(0, len(right), max(1, len(right) // 40)):
    wrong = bytearray(right)
    wrong[place] ^= 16
    flips.append(bytes(wrong))
for wrong in cuts + flips:
    file.write_bytes(wrong)
    assert ask(by=view_cache.ViewCache()) == whole
assert len(built) >= 1 + len(cuts)
"""
    script(filled, tmp_path, code)


def test_the_cache_is_bounded_and_may_be_missing(filled: SQLiteStore, tmp_path: Path) -> None:
    code = """
view_cache._MAX_CACHE_BYTES = 1
ask(), ask(names=("Object", "Run"))
assert files() == []
Path(os.environ["KGBIAS_CACHE"], "views").rmdir()
Path(os.environ["KGBIAS_CACHE"], "views").write_text("in the way")
view_cache._MAX_CACHE_BYTES = 1 << 30
assert len(ask(names=("Object", "Model"))) == 3
"""
    script(filled, tmp_path, code)


def test_processes_make_a_view_at_once(filled: SQLiteStore, tmp_path: Path) -> None:
    """One that moves the store's log into the file makes another state of it; when all have ended,
    the view of the newest state is there, alone."""
    code = BEGIN + "print(ask())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, filled.url],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "KGBIAS_CACHE": str(tmp_path / "cache")},
        )
        for _ in range(3)
    ]
    said = {process.communicate(timeout=DEADLINE_SECONDS)[0] for process in running}
    assert said == {"['song 0', 'song 1', 'song 2']\n"}
    assert len(list((tmp_path / "cache" / "views").iterdir())) == 1
