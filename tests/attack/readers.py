"""What reads files in kgbias, each with valid files of a few lines."""

import bz2
import gzip
import json
import lzma
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from kgbias.io.reading import read_toml
from tests.attack.commands import ROOT
from tests.rooms import import_parts

PACK = ROOT / "prompts" / "sentences"
DIGITS = "7" * 5000

TOML_SEEDS = """[trade]
singular = "a trade"
plural = "trades"
prefix = "Well,"
aliases = ["job"]
groups = ["Bakers", "Smiths | Blacksmiths"]
[trade.modifiers]
Bakers = "baking"
[trade.inside]
Bakers = "bakers"
"""
TOML_TESTS = """source = "here"
[[test]]
name = "t"
title = "T"
frames = ["{t} is a {a}."]
[test.x]
concept = "x"
slot = "name"
words = ["a", "b"]
adjectives = ["c"]
[test.y]
words = ["c", "d"]
[test.a]
words = ["e", "f"]
[test.b]
words = ["g", "h"]
[[test.simplified]]
x = ["he"]
y = ["she"]
frames = ["{t} is a {a}."]
"""
TRIPLES = (
    "group,predicate,object,category,count,arm\nWomen,like,music,g,2,none\nMen,fear,rain,g,1,b\n"
)
JSONL = (
    '{"group": "Women", "predicate": "like", "object": "music", "count": 2}\n'
    '{"group": "Men", "predicate": "fear", "object": "rain", "category": "g"}\n'
)
PROFILES = (
    "name,Ethnicity,hobbies,job\nAnna,X,\"['reading', 'tea']\",baker\n"
    "\"('BO', 'F')\",Y,\"('a', 1)\",smith\n"
)
SCORES = (
    "sentence,label,regard,toxicity\nWomen like music.,positive,0.5,0.1\nMen run.,negative,-1,0.9\n"
)
APX = "Group,descriptor,axis,apx_1,apx_2\na,x,k,1.5,2\na,y,k,1,2.5\nb,x,k,1,1\nb,y,k,2,2\n"
VECTORS = "".join(f"{w} {n}.5 -1 2e-1\n" for n, w in enumerate(("man", "woman", "kind", "bad")))
_BINARY = b"4 3\n" + b"".join(
    w + b" " + bytes(range(12)) + b"\n" for w in (b"man", b"woman", b"kind", b"bad")
)
_FASTTEXT = (793712314).to_bytes(4, "little") + (12).to_bytes(4, "little") + bytes(range(200))


PLAN = """store = "s.db"
output = "results"
[crawl]
models = ["smollm2"]
category = "gender"
iterations = 2
[[crawls]]
model = "reference"
name = "other"
[[imports]]
path = "triples.csv"
name = "more"
[measure]
topics = true
[[probe]]
model = "same"
runs = ["other"]
[[associate]]
models = ["smollm2"]
tests = ["C6"]
[[profiles]]
model = "reference"
names = "reference"
[[choose]]
model = "openai:m"
sample = 3
[[evidence]]
model = "same"
[[compare]]
runs = ["smollm2", "other"]
[[benchmark]]
models = ["smollm2"]
bbq = ["age.jsonl"]
device = "cpu"
[[query]]
name = "shared"
parameters = {group = "Women", other = "Men"}
[report]
[figures]
[[export]]
format = "csv"
"""
SETTINGS = """store = "s.db"
min-acceptability = 0.4
[crawl]
model = "smollm2"
category = ["gender"]
[probe.run]
device = "cpu"
"""
INDICATORS = """source = "here"
[pattern.trade]
slot = "people"
paraphrases = ["{plural}", ["{noun}s", "people who are {plural}"]]
[[group]]
name = "Bakers"
aliases = ["Baking people"]
concepts = ["bakers"]
[group.forms]
plural = "bakers"
[group.terms]
words = ["baker", "bakers"]
[group.names]
origins = ["german"]
[group.paraphrases]
pattern = "trade"
words = ["{Baking} people", {name = "bread folk", form = "{} folk", root = "baker", mark = "slur"}]
one_root = ["bakers", "Baking"]
narrower = ["bun bakers"]
[[group]]
name = "Men"
[group.terms]
concept_words = ["male terms"]
slot = "person"
[attributes.kind]
a = {words = ["kind", "good"]}
b = {words = ["bad", "mean"], concept = "meanness"}
[attributes.calm]
test = "weat1"
sides = ["a", "b"]
"""
RECIPE = json.dumps(
    {
        "run": "r",
        "id": "5d0e",
        "kind": "crawl",
        "model": {"name": "m", "revision": ""},
        "settings": [["dtype", "float32"]],
        "config": {"category": "gender", "samples": 3, "arms": ["none"]},
        "categories": [{"name": "gender", "singular": "", "plural": ""}],
        "scorers": {"regard": {"scorer": "s", "version": "1", "verbaliser": "v"}},
        "selection": {"min_acceptability": 0.5},
        "decisions": [
            {"generation": "g", "verdict": "reject", "decided": "now", "statement": list("abc")}
        ],
    }
)
PUBLISHED = '{"id": "a", "arm": "none", "count": 2, "group": "women", "regard": 0.5}\n'


@dataclass(frozen=True)
class Reader:
    """What reads a file: a function (module:name, called with the path), and its valid files by
    extension."""

    name: str
    function_path: str
    files: dict[str, bytes]
    read_file: Callable[[Callable[..., Any], Path], Any] = lambda read, path: read(path)


def _read_all(values: Any) -> Any:
    return list(values)


def _import_reader(kind: str) -> Callable[[Callable[..., Any], Path], Any]:
    def call(read: Callable[..., Any], path: Path) -> Any:
        from kgbias.ingest import ProfileColumns, TripleColumns

        if kind == "profiles":
            return _read_all(read(path, "csv", ProfileColumns()))
        suffix = path.suffix.lstrip(".")
        return _read_all(
            read(path, suffix if suffix in ("csv", "tsv") else "jsonl", TripleColumns())
        )

    return call


def _scores_reader(measure: str) -> Callable[[Callable[..., Any], Path], Any]:
    return lambda load, path: load(measure, f"scores:{path}")


def _folder_reader(name: str) -> Callable[[Callable[..., Any], Path], Any]:
    """For what reads a folder: the file is put where the folder has it."""

    def call(read: Callable[..., Any], path: Path) -> Any:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            place = Path(folder) / name
            place.parent.mkdir(exist_ok=True)
            shutil.copy(path, place)
            return read(Path(folder))

    return call


def _replacing_reader(others: Path, name: str) -> Callable[[Callable[..., Any], Path], Any]:
    """For what reads a folder that has other files too: one of them is replaced."""

    def call(read: Callable[..., Any], path: Path) -> Any:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            place = Path(folder) / "it"
            shutil.copytree(others, place)
            shutil.copy(path, place / name)
            return read(place)

    return call


def _read_settings(read: Callable[..., Any], path: Path) -> Any:
    """The settings of a folder, put to every command as the command line does."""
    from kgbias.cli import cli
    from kgbias.cli.commands import COMMANDS

    data = read_toml(path)
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        read(path, data, COMMANDS, name, command)


def _read_embedded(read: Callable[..., Any], path: Path) -> Any:
    return _folder_reader("a.txt")(
        lambda folder: read(folder, lambda texts: np.ones((len(texts), 1))), path
    )


READERS: tuple[Reader, ...] = (
    Reader(
        "seeds",
        "kgbias.crawl.seeds:read_seeds",
        {"toml": TOML_SEEDS.encode(), "txt": b"Bakers\nSmiths | Blacksmiths # c\n"},
        lambda read, path: read(str(path)),
    ),
    Reader(
        "triples",
        "kgbias.ingest:read_triples",
        {
            "csv": TRIPLES.encode(),
            "tsv": TRIPLES.replace(",", "\t").encode(),
            "jsonl": JSONL.encode(),
        },
        _import_reader("triples"),
    ),
    Reader(
        "profiles",
        "kgbias.ingest:read_profiles",
        {"csv": PROFILES.encode()},
        _import_reader("profiles"),
    ),
    Reader(
        "scores of toxicity",
        "kgbias.measure.scorers:load_scorer",
        {"csv": SCORES.encode(), "jsonl": b'{"text": "Women like music.", "toxicity": 0.25}\n'},
        _scores_reader("toxicity"),
    ),
    Reader(
        "scores of regard",
        "kgbias.measure.scorers:load_scorer",
        {"csv": SCORES.encode()},
        _scores_reader("regard"),
    ),
    Reader("APX", "kgbias.probe.apx:read_apx", {"csv": APX.encode()}),
    Reader(
        "identities",
        "kgbias.probe.sets:read_identities",
        {
            "json": b'{"gender": ["women", "men"], "trade": ["bakers", "smiths"]}',
            "csv": b"category,group\ngender,women\ngender,men\n",
            "txt": b"women\nmen\n",
        },
        lambda read, path: read(str(path)),
    ),
    Reader(
        "statements",
        "kgbias.probe.sets:read_statements",
        {
            "csv": b"category,statement\ngender,are kind\ngender,are bad\n",
            "txt": b"are kind\nare bad\n",
        },
    ),
    Reader(
        "names",
        "kgbias.probe.sets:read_names",
        {"csv": b"name,group\nAnna,x\nBo,y\n"},
        lambda read, path: read(str(path)),
    ),
    Reader(
        "descriptors",
        "kgbias.probe.sets:read_descriptors",
        {"csv": b"descriptor,axis,label,partial_1\nkind,a,x,am kind\nbad,a,y,am bad\n"},
        lambda read, path: read(str(path)),
    ),
    Reader(
        "vectors",
        "kgbias.models.vectors:load_static_vectors",
        {
            "txt": VECTORS.encode(),
            "w2v.txt": b"4 3\n" + VECTORS.encode(),
            "bin": _BINARY,
            "txt.gz": gzip.compress(VECTORS.encode()),
            "ft.bin": _FASTTEXT,
            "txt.bz2": bz2.compress(VECTORS.encode()),
            "txt.xz": lzma.compress(VECTORS.encode()),
        },
    ),
    Reader(
        "review",
        "kgbias.study.review:_read_decisions",
        {"csv": b"id,decision,predicate,object\ng1,restore,love,tea\ng2,reject,,\n"},
    ),
    Reader("plan", "kgbias.study.plan:read_plan", {"toml": PLAN.encode()}),
    Reader(
        "settings", "kgbias.cli.settings:file_defaults", {"toml": SETTINGS.encode()}, _read_settings
    ),
    Reader(
        "indicators", "kgbias.evidence.indicators:read_indicators", {"toml": INDICATORS.encode()}
    ),
    Reader(
        "documents",
        "kgbias.ingest.corpus:read_folder",
        {"txt": b"Women like tea. Men fear rain.\n\nBakers sing.\n"},
        _read_embedded,
    ),
    Reader(
        "published run",
        "kgbias.publish.recipe:read_recipe",
        {"json": RECIPE.encode()},
        _folder_reader("run.json"),
    ),
    Reader(
        "published statements",
        "kgbias.publish.recipe:read_published_statements",
        {"jsonl": PUBLISHED.encode()},
        _folder_reader("data/statements.jsonl"),
    ),
    Reader(
        "prompt pack",
        "kgbias.packs:load_pack",
        {"toml": (PACK / "pack.toml").read_bytes()},
        _replacing_reader(PACK, "pack.toml"),
    ),
    Reader(
        "template",
        "kgbias.packs:load_pack",
        {"toml": (PACK / "predicate.toml").read_bytes()},
        _replacing_reader(PACK, "predicate.toml"),
    ),
    Reader(
        "examples of a pack",
        "kgbias.packs:load_pack",
        {"toml": (PACK / "pool.toml").read_bytes()},
        _replacing_reader(PACK, "pool.toml"),
    ),
)
# Those of methods, which need what stands above: `READERS` in `tests/methods/NAME/readers.py`.
PARTS = import_parts("readers")
READERS += tuple(reader for part in PARTS for reader in part.READERS)
READING_COMMANDS: tuple[tuple[str, ...], ...] = tuple(
    argv for part in PARTS for argv in getattr(part, "READING_COMMANDS", ())
)
"""Commands of methods that read the run "r"."""
EXPORTS: dict[str, tuple[str, ...]] = {
    f"export {name}": ("export", "r", "--format", name, "-o", f"out{ending}")
    for part in PARTS
    for name, ending in getattr(part, "EXPORT_ENDINGS", {}).items()
}
"""Exports of the run "r" in formats of methods."""
