"""The list of places that read a stranger's bytes (tests/attack/README.md), held to the code."""

import ast
import re
from pathlib import Path

import kgbias
from tests.conftest import ROOT

PACKAGE = Path(kgbias.__file__).parent
# What takes in bytes that somebody else may have written: files, stores, models, servers, keys.
READERS = re.compile(
    r"(.*\.)?(read_text|read_bytes)|(kgbias\.reading\.)?(read_(json|toml|(saved_)?table)|parse_json)"
    r"|(json|tomllib|pickle)\.loads?|np\.frombuffer|sqlite3\.connect|(kglite|spacy)\.load|load_file"
    r"|KeyedVectors\.load_word2vec_format|load_facebook_vectors|utils\.open|.*parquet\.read_table"
    r"|neo4j\.GraphDatabase\.driver|load_pretrained|SentenceTransformer|LLMEngine\.from_engine_args"
    r"|parse_body|openai\.AsyncOpenAI|anthropic\.AsyncAnthropic|genai\.Client|ray\.init|uvicorn\.Server"
    r"|click\.(prompt|confirm|getchar)|open|(.*\.)?urlopen|(np|torch)\.load(txt)?|(pd|pandas)\.read_.*"
    r"|zipfile\.ZipFile|shutil\.unpack_archive|(sys\.stdin(\.buffer)?|.*rfile)\.read(line)?|input"
    r"|httpx2?\.(get|post|request|stream|(Async)?Client)|subprocess\.check_output"
)
NOT_FILES = (  # what is opened there is no file
    "kgbias.open",
    "os.open",
    "self.open",
    "super().open",
    "work.open",
    "unpacked.open",
    "scorer.open",
    "self.network.open",
)


def reads(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if READERS.fullmatch(name):
        return True
    if not name.endswith(".open") or name in NOT_FILES:
        return False
    mode = (
        call.args[0]
        if call.args
        else next((k.value for k in call.keywords if k.arg == "mode"), ast.Constant("r"))
    )
    return not isinstance(mode, ast.Constant) or not set("wax") & set(str(mode.value))


def found() -> set[str]:
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(isinstance(n, ast.Call) and reads(n) for n in ast.walk(ast.parse(path.read_text())))
    }


def test_every_place_that_reads_what_others_wrote_is_in_the_list() -> None:
    text = (ROOT / "tests" / "attack" / "README.md").read_text("utf-8")
    section = text.split("## Every place that reads what others wrote")[1].split("\n## ")[0]
    kinds = {row.split("|")[1] for row in section.splitlines() if row.startswith("|")}
    rows = section.splitlines()
    for path in ROOT.glob("tests/*/*/inputs.md"):
        own_rows = [row for row in path.read_text("utf-8").splitlines() if row.startswith("|")]
        assert {row.split("|")[1] for row in own_rows} <= kinds, f"{path} has a row of its own"
        rows += own_rows
    places = [re.findall(r"`([a-z_0-9/]+\.py)`", row) for row in rows]
    assert all(len(row) == len(set(row)) for row in places), "a place is listed twice"
    listed, there = {place for row in places for place in row}, found()
    assert not there - listed, (
        f"{', '.join(sorted(there - listed))} reads what somebody else may have written: add it to "
        "the row of that section whose last column is true of it (what bounds its size, its form "
        "and its time), or write a row that says what does; of a method, in its inputs.md"
    )
    assert not listed - there, f"{', '.join(sorted(listed - there))} no longer reads: take it out"


def test_the_scan_sees_what_reads() -> None:
    for text, seen in (
        ("path.open()", True),
        ("path.open('rb')", True),
        ("path.open('w')", False),
        ("path.open(mode='wb')", False),
        ("kgbias.open(x)", False),
        ("json.loads(x)", True),
        ("read_toml(path)", True),
        ("json.dumps(x)", False),
        ("a.b.read_bytes()", True),
    ):
        call = ast.parse(text).body[0]
        assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
        assert reads(call.value) is seen, text
