"""What public calls return: rows, or a result that converts to them, or what is listed here."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pkgutil import resolve_name
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest

import kgbias
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows, file_rows
from kgbias.methods import iter_calls
from kgbias.stats.estimate import Estimate
from kgbias.study.beliefs import RunBeliefs
from kgbias.study.maintenance import StoreMaintenance
from kgbias.study.series import Series
from tests.texts import Texts

OBJECTS = (kgbias.Study, kgbias.Run, StoreMaintenance, RunBeliefs, Series)
# What a call may return that is neither, and why.
NOT_ROWS = {
    "None": "nothing",
    "int": "a count",
    "str": "a name",
    "Path": "one file",
    "MultiDiGraph": "a graph, in networkx's own object",
    "Explorer": "a page, which shows itself",
    "AbstractContextManager": "a context, in which other calls are made",
    "Study": "has calls of its own",
    "Run": "has calls of its own",
    "Plan": "has calls of its own",
    "Review": "has calls of its own",
    "Labelling": "has calls of its own",
    "Completer": "a model, for other calls",
    "TextScorer": "a model, for other calls",
    "Scorer": "a scorer, for other calls",
    "Mapping": "groups and statements by category, for `probe_sets`",
    "dict": "counts by name, or groups by category",
    "CompactionResult": "two numbers",
    "CrawlSpread": "one figure of a series, a row of `Series.figures`",
    "Topic": "one record, a row of `Run.topics`",
}
OWN_RESULTS = ("crawl_result", "generation_summary", "import_result", "summary")


def _calls() -> Iterator[tuple[str, Any]]:
    for of in OBJECTS:
        for name, value in inspect.getmembers_static(of):
            if name in OWN_RESULTS:
                yield f"{of.__name__}.{name}", value.fget
            elif inspect.isfunction(value) and not name.startswith("_"):
                yield f"{of.__name__}.{name}", value
    for name in kgbias.__all__:
        if inspect.isfunction(getattr(kgbias, name)):
            yield name, getattr(kgbias, name)
    yield from iter_calls()


# Of sequences and results, what every one of them has.
CALLS = {
    name: call
    for name, call in _calls()
    if name.partition(".")[2] not in ("index", "count", "as_rows", "records", "to_frame", "draw")
}


def _returned(call: Any) -> Iterator[str | type]:
    """The kinds that a call may return: a class, or the name of one."""
    annotation = inspect.signature(inspect.unwrap(call)).return_annotation
    if isinstance(annotation, str):
        for part in annotation.split("|"):
            yield part.strip().partition("[")[0].rpartition(".")[2]
        return
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    for part in parts:
        yield "None" if part is None else get_origin(part) or part


def _name(kind: str | type) -> str:
    return kind if isinstance(kind, str) else kind.__name__


def _class_of(name: str, call: Any) -> type:
    """The class of this name in the module of the call, which may import it for types alone."""
    module = inspect.getmodule(inspect.unwrap(call))
    if found := getattr(module, name, None):
        return found  # type: ignore[no-any-return]
    for node in ast.walk(ast.parse(inspect.getsource(module))):  # type: ignore[arg-type]
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return resolve_name(f"{node.module}:{name}")  # type: ignore[no-any-return]
    raise AssertionError(f"there is no {name} in {module}")


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_returns_converts(name: str) -> None:
    for kind in _returned(CALLS[name]):
        if _name(kind) in NOT_ROWS:
            continue
        found: Any = kind if isinstance(kind, type) else _class_of(kind, CALLS[name])
        assert issubclass(found, Rows | Result), found
        assert found is Rows or found.as_rows is not Result.as_rows
        assert all(hasattr(found, each) for each in ("to_frame", "records", "draw", "_repr_html_"))


def test_what_is_no_rows_is_returned_somewhere() -> None:
    returned = {_name(kind) for call in CALLS.values() for kind in _returned(call)}
    assert not set(NOT_ROWS) - returned


def test_columns_of_lists_are_named_so() -> None:
    from kgbias.study import records

    kinds = [
        k for k in vars(records).values() if is_dataclass(k) and k.__module__ == records.__name__
    ]
    for kind in kinds:
        for field in fields(kind):
            if get_origin(field.type) in (tuple, list):
                assert field.name.endswith("s"), (kind, field.name)


FIGURES = [
    {"group": "Men", "n": 3, "bias": Estimate(0.5, 0.2, 0.8, 3), "other": Estimate(1, 0, 2, 3)},
    {"group": "Women", "n": 3, "bias": None, "other": Estimate(2, 1, 3, 3)},
]
COLUMNS = (
    Column("group"),
    Column("n", "d"),
    Column("bias", ".2f", interval=True),
    Column("other", ".2f", interval=True),
)


def test_rows_with_intervals_draw_themselves(texts: Texts) -> None:
    pytest.importorskip("matplotlib")
    rows = Rows(FIGURES, COLUMNS)
    axes = rows.draw()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Men"]
    assert axes.get_xlabel() == "bias"
    other = rows.draw(column="other")
    assert [label.get_text() for label in other.get_yticklabels()] == ["Men", "Women"]
    assert rows.draw(axes, column="other") is axes
    with texts.raises(kgbias.UsageError):
        rows.draw(column="othr")
    with texts.raises(kgbias.UsageError):
        Rows(FIGURES, COLUMNS[:2]).draw()
    with texts.raises(kgbias.UsageError):
        rows[1:].draw()


def test_files_that_were_written_are_rows(texts: Texts) -> None:
    from pathlib import Path

    paths = [Path("figures") / f"{n:02}-bars.svg" for n in range(60)]
    files = file_rows(paths)
    assert list(files) == paths and files[0].name == "00-bars.svg"
    assert files.records()[0] == {"file": "00-bars.svg", "folder": "figures"}
    assert len(repr(files)) < 500
    texts.check_lines(repr(files), "first 10")
    assert not file_rows([]) and file_rows([]).columns == ("file", "folder")


SAID = [
    {"group": group, "predicate": "love", "object": thing}
    for group in ("Men", "Women")
    for thing in ("rain", "tea", "hats")
]


def test_what_was_made_shows_and_converts_itself() -> None:
    with kgbias.open(None, progress=False) as study:
        run = study.import_file(SAID, name="said")
        (row,) = run.import_result.records()
        assert row == {
            "run": "said",
            "statements": 6,
            "triples": 6,
            "left_out": 0,
            "passages": 0,
            "relations": 0,
        }
        assert len(repr(run.import_result)) < 300
        series = study.series("said")
        assert [row["name"] for row in series.records()] == ["said"]
    assert series._repr_html_().startswith("<pre>&lt;Series")
    (figure,) = kgbias.Figure(0.5, 0.2, 0.8, 9, "Men", "overall_regard").records()
    assert (figure["group"], figure["value"], figure["high"], figure["n"]) == ("Men", 0.5, 0.8, 9)


def test_results_without_rows_of_their_own_have_some(texts: Texts) -> None:
    from collections import Counter

    from kgbias.graph.generation_run import GenerationSummary
    from kgbias.graph.sofa import ProbeSet
    from kgbias.graph.types import Group, TopicModel
    from kgbias.graph.types import Run as StoredRun
    from kgbias.models.base import ModelInfo
    from kgbias.study.records import topic_model_rows
    from kgbias.study.reproduction import Difference, Reproduction

    run = StoredRun("told", ModelInfo("m"), {}, (Group("Men", "gender"),))
    summary = GenerationSummary(run, 3, 1, outcomes={"Men": Counter(ok=3, refused=1)})
    assert summary.records() == [
        {"group": "Men", "ok": 3, "refused": 1, "unparsable": 0, "failed": 0}
    ]
    texts.check(repr(summary))
    probe_set = ProbeSet.from_texts("own", {"gender": (("Men", "Women"), ("love rain",))})
    assert probe_set.records() == [{"category": "gender", "groups": 2, "statements": 1}]
    made = Reproduction("r", 5, 4, 9, 0, Rows([Difference("statement", "1", "0")], Difference))
    assert made.to_frame().shape[0] == 1
    texts.check(repr(made))
    (topics,) = topic_model_rows([TopicModel("gender", (), (), {})]).records()
    assert topics == {"category": "gender", "topics": 0, "statements": 0}
