"""What a record says of itself is what is kept of it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kgbias.graph.record import (
    KeepsOrder,
    OrNaN,
    Property,
    StoredAs,
    build_record,
    properties,
    to_properties,
)
from kgbias.models.base import ModelInfo, Settings
from kgbias.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Whole:
    node_id: str
    id: Annotated[str, "what it is called", StoredAs("name")]
    kind: Annotated[Literal["a", "b"], "a or b"]
    note: Annotated[str | None, "said of it"]
    model: Annotated[ModelInfo, "name of the model"]
    settings: Annotated[Settings, "as JSON"]
    record: Annotated[Mapping[str, Any], "as JSON"]
    ordered: Annotated[Mapping[str, Any], "as JSON", KeepsOrder()]
    count: Annotated[int, "how often"]
    sure: Annotated[bool, "whether it is"]
    value: Annotated[OrNaN, "not always defined"]
    lift: Annotated[float | None, "not always known"]
    words: Annotated[tuple[str, ...], "its words"]
    bits: Annotated[tuple[float, ...], "their bits"]
    first: Annotated[Estimate, "a share"]
    other: Annotated[Estimate, "another"]
    extra: tuple[str, ...] = ("none",)

    @property
    def double(self) -> Annotated[int, "twice as often"]:
        return 2 * self.count

    @property
    def hidden(self) -> int:
        return -1


WHOLE = Whole(
    "n1",
    "\ud800x",
    "a",
    None,
    ModelInfo("m", "r1"),
    (("bos", "yes"),),
    {"b": 1, "a": [2]},
    {"b": 1, "a": 2},
    3,
    True,
    math.nan,
    None,
    ("a", "b"),
    (),
    Estimate(0.5, 0.25, math.nan, 4),
    Estimate(0.75, 0.5, 1.0, 4),
)
KEPT = {
    "name": "?x",
    "kind": "a",
    "note": None,
    "model": "m",
    "settings": '[["bos","yes"]]',
    "record": '{"a":[2],"b":1}',
    "ordered": '{"b": 1, "a": 2}',
    "count": 3,
    "sure": True,
    "value": None,
    "lift": None,
    "words": ["a", "b"],
    "bits": [],
    "first": 0.5,
    "low": 0.25,
    "high": None,
    "n": 4,
    "other": 0.75,
    "other_low": 0.5,
    "other_high": 1.0,
    "double": 6,
}


def test_what_is_kept() -> None:
    assert to_properties(WHOLE) == KEPT
    found = {p.name: p for p in properties(Whole)}
    assert list(found) == list(KEPT)
    assert found["name"] == Property("name", "text", "what it is called", always=True)
    assert found["record"] == Property("record", "text", "as JSON", always=True, json=True)
    assert found["high"] == Property("high", "number", "upper end of the 95% interval")
    assert found["other_low"].meaning == "lower end of its 95% interval"
    types = {p.type for p in found.values()}
    assert types == {"text", "integer", "number", "boolean", "texts", "numbers"}
    assert {p.name for p in found.values() if not p.always} == {
        "note",
        "value",
        "lift",
        "first",
        "low",
        "high",
        "other",
        "other_low",
        "other_high",
    }


def test_some_in_another_order() -> None:
    assert [p.name for p in properties(Whole, "sure", "count")] == ["sure", "count"]
    names = [p.name for p in properties(Whole, moved_first=("count",), moved_last=("name", "kind"))]
    assert names[:2] == ["count", "note"] and names[-3:] == ["double", "name", "kind"]
    assert sorted(names) == sorted(KEPT)
    assert [p.name for p in properties(Whole, excluded=("name", *names[3:]))] == [
        "note",
        "model",
        "count",
    ]


def test_what_was_kept_comes_back() -> None:
    row = KEPT | {
        "node_id": "n1",
        "spec": "m",
        "revision": "r1",
        "display_name": "",
        "of_no_field": 1,
    }
    as_sqlite = {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
    as_neo4j = {k: v for k, v in row.items() if v not in (None, [])}  # absent
    for kept in (row, as_sqlite | {"sure": 1}, as_neo4j):
        made = build_record(Whole, kept)
        assert to_properties(made) == KEPT and made.extra == ("none",)
        assert made.settings == WHOLE.settings and list(made.ordered) == ["b", "a"]
        assert math.isnan(made.value) and made.lift is None and made.note is None
        assert made.sure is True and made.words == ("a", "b") and made.bits == ()
        assert made.model == WHOLE.model and made.other == WHOLE.other
    assert build_record(Whole, row | {"extra": ("one",)}).extra == ("one",)
