"""The public names: the list of them, their docstrings, and what the pages say of them."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgbias
from tests.conftest import ROOT

PUBLIC = {
    "AssociationTest", "CrawlConfig", "DataError", "Estimate", "Figure", "Interrupted", "Judgement",
    "KgbiasError", "MEASURES", "MissingExtra", "ModelError", "Price", "Rows", "Run", "RunConflict",
    "RunNotFound", "Scorer", "SeedCategory", "StoreError", "Study", "UsageError", "WordSet",
    "__version__", "crows_pairs", "errors", "find_tests", "flag_apx", "gather_sets", "known_seeds",
    "load_scorer", "open", "open_model", "open_scorer", "price", "probe_apx", "probe_sets",
    "queries", "read_tests", "stereoset", "surprisals",
}  # fmt: skip
STUDY = {
    "associate", "calibrate", "close", "compare", "crawl", "cypher", "import_file", "price", "push",
    "query", "run", "runs", "store", "working",
}  # fmt: skip
RUN = {
    "arm_tests", "associate", "associations", "attribute", "attributions", "categories", "compare",
    "config", "crawled", "created", "export", "figure", "figures", "generations", "groups", "id",
    "imported", "kind", "measure", "merge", "model", "name", "probe", "probes", "report",
    "settings", "status", "stored", "structure", "summary", "tests", "to_networkx", "topic_models",
    "topics", "triples",
}  # fmt: skip
HEAVY = (
    "torch", "transformers", "bertopic", "spacy", "neo4j", "openai", "matplotlib", "pandas",
    "sentence_transformers", "scipy", "networkx", "numpy", "rich", "click", "sqlite3",
)  # fmt: skip
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_list_of_public_names() -> None:
    assert set(kgbias.__all__) == PUBLIC == set(dir(kgbias))
    for name in kgbias.__all__:
        assert getattr(kgbias, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kgbias.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(("of", "names"), [(kgbias.Study, STUDY), (kgbias.Run, RUN)])
def test_the_list_of_methods(of: type, names: set[str]) -> None:
    assert {name for name in dir(of) if not name.startswith("_")} == names


def test_every_public_name_has_a_docstring() -> None:
    for name in PUBLIC - {"__version__", "MEASURES"}:
        value = getattr(kgbias, name)
        assert inspect.getdoc(value), name
        if value in (kgbias.Run, kgbias.Study, kgbias.Rows):
            for method in dir(value):
                if not method.startswith("_"):
                    assert inspect.getdoc(getattr(value, method)), f"{name}.{method}"


def test_importing_kgbias_is_light() -> None:
    code = f"import sys, kgbias; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_front_door_is_light(tmp_path: Path) -> None:
    code = (
        f"import sys, kgbias; s = kgbias.open({str(tmp_path / 'a.db')!r})\n"
        "print(s.price('smollm2').requests, kgbias.queries()[0].name != '')\n"
        "print([m for m in ('torch', 'pandas', 'networkx', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["300 True", "[]"]


def blocks(page: Path) -> Iterator[str]:
    """The Python code blocks of a page."""
    inside, lines = False, []
    for line in page.read_text("utf-8").splitlines():
        if line.strip().startswith("```"):
            if inside:
                yield inspect.cleandoc("\n".join(lines))
            inside, lines = line.strip() == "```python", []
        elif inside:
            lines.append(line)


def named(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What code asks of kgbias, of a `study` and of a `run`: (of what, name)."""
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            yield part.value.id, part.attr
        if isinstance(part, ast.ImportFrom) and part.module == "kgbias":
            yield from (("kgbias", alias.name) for alias in part.names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_the_pages_exist(page: Path) -> None:
    of = {"kgbias": kgbias, "study": kgbias.Study, "run": kgbias.Run}
    for block in blocks(page):
        for owner, name in named(ast.parse(block)):
            if owner in of:
                assert hasattr(of[owner], name), f"{owner}.{name}"
