"""The door to transformers' loaders: nothing of a model's own code, nobody asked."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import kgbias
from kgbias.errors import ModelError
from kgbias.models.pretrained import create_untrained, empty_stdin, load_pretrained
from tests.texts import Texts

PACKAGE = Path(kgbias.__file__).parent
TABLE_FORMAT = PACKAGE / "models" / "pretrained.py"
# Calls that load a model, a tokenizer, a configuration or an engine, of whatever library.
LOADS = (
    "from_pretrained",
    "from_config",
    "pipeline",
    "SentenceTransformer",
    "CrossEncoder",
    "EngineArgs",
    "AsyncEngineArgs",
    "LLM",
    "get_class_from_dynamic_module",
)


def calls() -> list[tuple[Path, ast.Call, str]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
                found.append((path, node, name))
    return found


def test_every_load_says_that_no_code_of_a_model_runs() -> None:
    loads = [(path, node, name) for path, node, name in calls() if name in LOADS]
    assert {path.name for path, *_ in loads} == {
        "pretrained.py",
        "sentence_transformers.py",
        "engine.py",
    }
    for path, node, name in loads:
        given = {k.arg: k.value for k in node.keywords}
        trusted = given.get("trust_remote_code")
        assert isinstance(trusted, ast.Constant) and trusted.value is False, (path, node.lineno)
        assert path == TABLE_FORMAT or name in ("SentenceTransformer", "EngineArgs")


def test_stdin_is_read_by_our_own_prompts_alone() -> None:
    """`input`, and click's prompts, which read from a terminal; a question to our own processes."""
    asks = {
        path.relative_to(PACKAGE).as_posix()
        for path, node, name in calls()
        if name in ("input", "getpass", "prompt", "confirm", "getchar", "pause", "raw_input")
    }
    assert asks == {"cli/options.py", "cli/store.py", "cli/review.py", "cli/show.py"}


class _Auto:
    """A class of transformers that asks whether to run a model's code, as it does."""

    given: dict[str, object]

    @classmethod
    def from_pretrained(cls, location: str, **options: object) -> str:
        cls.given = options
        if options.get("trust_remote_code") is None and input("Run it? [y/N] ") == "y":
            return "its own code"
        if location == "own":
            raise ValueError("... Please pass the argument `trust_remote_code=True` to allow it")
        if location == "asks":
            return input("What now? ")
        if location == "broken":
            raise ValueError("no weights")
        return location

    @classmethod
    def from_config(cls, config: object, **options: object) -> object:
        cls.given = options
        return config


@pytest.fixture
def auto(monkeypatch: pytest.MonkeyPatch) -> type[_Auto]:
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoModel=_Auto))
    monkeypatch.setattr(sys, "stdin", iter(["y\n"] * 9))
    return _Auto


def test_nobody_is_asked(auto: type[_Auto], texts: Texts) -> None:
    stdin = sys.stdin
    assert load_pretrained("AutoModel", "folder", dtype="x") == "folder"
    assert auto.given == {"trust_remote_code": False, "dtype": "x"}
    config = SimpleNamespace(name_or_path="folder")
    assert create_untrained("AutoModel", config) is config and auto.given == {
        "trust_remote_code": False
    }
    with texts.raises(ModelError):
        load_pretrained("AutoModel", "own")
    with pytest.raises(EOFError):
        load_pretrained("AutoModel", "asks")
    with pytest.raises(ValueError, match="no weights"):
        load_pretrained("AutoModel", "broken")
    with empty_stdin(), empty_stdin():
        assert sys.stdin.read() == ""
    assert sys.stdin is stdin
