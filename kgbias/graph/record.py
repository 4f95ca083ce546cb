"""How a record says what it is made of and how it is kept.

A field or property of the class whose type is `Annotated` with its meaning is a property of the
graph:

    class NameProbe:
        name_id: str  # an end of the edge
        bits: Annotated[tuple[float, ...], "log2 p(statement), at most 0 ..."]

The shape (`kgbias.graph.shape`), the columns of SQLite, what both stores write and read, and the
exports follow from that: to add a property, add a field.

A text, a whole number, a number or a truth value is kept as it is; a tuple of texts or numbers as a
list; a mapping, or pairs, as JSON; a model by its title, and read back from its spec, revision and
own name. A figure with its interval (`Estimate`) is
kept as NAME, low, high and n; a second one in the same record as NAME, NAME_low and NAME_high. What
is not known (None) or not defined (NaN) is absent.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from kgbias.io.text import storable
from kgbias.stats.estimate import Estimate

PropertyType = Literal["text", "integer", "number", "boolean", "texts", "numbers"]
Row = Mapping[str, Any]
Record = TypeVar("Record")
JsonReader = Callable[[str], Any]  # of JSON


def timestamp(after: str | None = None) -> str:
    """The present time as rows keep it (ISO 8601, UTC), but always later than `after`, whatever the
    clock says."""
    current = datetime.now(UTC)
    if after is not None:
        current = max(current, datetime.fromisoformat(after) + timedelta(microseconds=1))
    return current.isoformat(timespec="microseconds")


LOW_MEANING, HIGH_MEANING = "lower end of the 95% interval", "upper end of the 95% interval"


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a node or an edge. Without a value it is absent, never NaN; with `always`, it
    has a value in every record. A text may be `json`."""

    name: str
    type: PropertyType
    meaning: str
    always: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Marks a field whose property has another name."""

    name: str


class KeepsOrder:
    """Marks a mapping whose JSON keeps its order, so that it is read back as it was."""


class _MayBeNaN:
    """Marks a number that may be NaN."""


OrNaN = Annotated[float, _MayBeNaN()]
"""A number that is NaN if it is not defined."""


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_json(properties: Mapping[str, Any]) -> str:
    """A mapping as JSON, in its order."""
    return storable(json.dumps(dict(properties), ensure_ascii=False))


def read_settings(text: str, read: JsonReader = json.loads) -> tuple[tuple[str, str], ...]:
    """How a model was asked, from the JSON that stores keep."""
    return tuple((name, value) for name, value in read(text))


def properties(
    kind: type,
    *names: str,
    excluded: Collection[str] = (),
    moved_first: Sequence[str] = (),
    moved_last: Sequence[str] = (),
) -> tuple[Property, ...]:
    """The properties of a class's records: those of these names, or all but those `excluded`, with
    some moved to the front or the end."""
    by_name = {p.property.name: p.property for p in _record_parts(kind)}
    middle = names or [
        name for name in by_name if name not in (*excluded, *moved_first, *moved_last)
    ]
    return tuple(by_name[name] for name in (*moved_first, *middle, *moved_last))


def to_properties(record: Any) -> dict[str, Any]:
    """A record's properties as a graph holds them, by name; None is absent."""
    kind: type = type(record)
    return {name: value(record) for name, value in property_getters(kind).items()}


@cache
def property_getters(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    """The functions that give each property of a class's records, as a graph holds it."""
    return {p.property.name: p.value for p in _record_parts(kind)}


def build_record(kind: type[Record], row: Row, read_json: JsonReader = json.loads) -> Record:
    """The record of a row that has its properties by name and its other fields as they are. A field
    that is not a property and not in the row has its default. `read_json` reads JSON, and lists too
    in a store that keeps them as JSON."""
    record_class: type = kind
    arguments = {}
    for field in _record_fields(record_class):
        if field.make is not None:
            arguments[field.name] = field.make(row, read_json)
        elif field.name in row:
            arguments[field.name] = row[field.name]
    return kind(**arguments)


@dataclass(frozen=True, slots=True)
class _Codec:
    """How a Python type is kept: as what, how a value becomes that, and how it is read back, when
    it may be absent."""

    type: PropertyType
    to_stored: Callable[[Any], Any]
    from_stored: Callable[[Any, JsonReader], Any] | None  # None: the value is kept as it is
    json: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A property of a record, and the function that gives its value as a graph holds it."""

    property: Property
    value: Callable[[Any], Any]


def _make_part(property: Property, place: str, to_stored: Callable[[Any], Any]) -> _Part:
    """The property whose value is at `place` in a record."""
    value = attrgetter(place)
    return _Part(
        property, value if to_stored is _unchanged else lambda record: to_stored(value(record))
    )


@dataclass(frozen=True, slots=True)
class _Field:
    """A field, the properties that it is kept as, and how it is made from a row; none of these if
    it has no meaning in the graph."""

    name: str
    parts: tuple[_Part, ...] = ()
    make: Callable[[Row, JsonReader], Any] | None = None


@cache
def _record_fields(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    record_fields: list[_Field] = []
    for field in fields(kind):
        has_count = any(p.property.name == "n" for earlier in record_fields for p in earlier.parts)
        record_fields.append(_make_field(field.name, hints[field.name], has_count))
    return tuple(record_fields)


@cache
def _record_parts(kind: type) -> tuple[_Part, ...]:
    """The properties that a class's records are kept as: their fields, then the properties of the
    class that are annotated with a meaning."""
    # Base classes first: a class's own property takes the place of an inherited one.
    members = {name: value for c in reversed(kind.__mro__) for name, value in vars(c).items()}
    computed_fields = (
        _make_field(name, get_type_hints(value.fget, include_extras=True).get("return"))
        for name, value in members.items()
        if isinstance(value, property)
    )
    return tuple(
        part for field in (*_record_fields(kind), *computed_fields) for part in field.parts
    )


def _make_field(name: str, hint: Any, shares_count: bool = False) -> _Field:
    """A field, from its type; a `shares_count` one follows an estimate and shares its n."""
    hint, *markers = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    meaning = next((marker for marker in markers if isinstance(marker, str)), None)
    if meaning is None:
        return _Field(name)
    if hint is Estimate:
        return _estimate_field(name, meaning, shares_count)
    stored_name = next((marker.name for marker in markers if isinstance(marker, StoredAs)), name)
    optional = get_origin(hint) in (Union, UnionType)
    if optional:
        (hint,) = (t for t in get_args(hint) if t is not type(None))
    if is_dataclass(hint):  # a model
        model: Any = hint
        part = _make_part(
            Property(stored_name, "text", meaning, True), f"{name}.title", _store_text
        )
        return _Field(
            name, (part,), lambda row, _: model(row["spec"], row["revision"], row["display_name"])
        )
    form = (
        _ORDERED_JSON_CODEC
        if any(isinstance(marker, KeepsOrder) for marker in markers)
        else _codec_of(hint)
    )
    always = not optional and not any(isinstance(marker, _MayBeNaN) for marker in markers)
    stored_property = Property(stored_name, form.type, meaning, always, form.json)
    return _Field(
        name,
        (_make_part(stored_property, name, form.to_stored),),
        _make_reader(stored_name, form, optional),
    )


def _make_reader(name: str, codec: _Codec, optional: bool) -> Callable[[Row, JsonReader], Any]:
    """The function that reads a property from a row."""
    from_stored = codec.from_stored
    if from_stored is None:
        return lambda row, read: row.get(name)
    if optional:
        return lambda row, read: None if (v := row.get(name)) is None else from_stored(v, read)
    return lambda row, read: from_stored(row.get(name), read)


def _estimate_field(name: str, meaning: str, shares_count: bool) -> _Field:
    """A figure with its interval; unless it is the first, its name is also in those of the ends."""
    low, high = (f"{name}_low", f"{name}_high") if shares_count else ("low", "high")
    determiner = "its" if shares_count else "the"
    parts = [
        _make_part(
            Property(part_name, "number", part_meaning), f"{name}.{attribute}", _store_number
        )
        for part_name, part_meaning, attribute in (
            (name, meaning, "value"),
            (low, f"lower end of {determiner} 95% interval", "low"),
            (high, f"upper end of {determiner} 95% interval", "high"),
        )
    ]
    if not shares_count:
        n = Property("n", "integer", "statements or names behind it", always=True)
        parts.append(_make_part(n, f"{name}.n", _unchanged))

    def make(row: Row, read: JsonReader) -> Estimate:
        value, lower, upper = (_read_number(row.get(own), read) for own in (name, low, high))
        return Estimate(value, lower, upper, row["n"])

    return _Field(name, tuple(parts), make)


def _codec_of(hint: Any) -> _Codec:
    if get_origin(hint) is Literal:
        return _CODECS[str]
    if get_origin(hint) is Mapping:
        return _JSON_CODEC
    if get_origin(hint) is tuple:
        return _LIST_CODECS.get(get_args(hint)[0], _PAIRS_CODEC)
    return _CODECS[hint]


def _unchanged(value: Any) -> Any:
    return value


def _store_text(value: str | None) -> str | None:
    return None if value is None else storable(value)


def _store_number(value: Any) -> Any:
    return None if value != value else value  # NaN cannot be sorted by


def _store_boolean(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _read_number(value: Any, _: JsonReader) -> Any:
    return math.nan if value is None else value


def _read_list(value: Any, read: JsonReader) -> tuple[Any, ...]:
    """Of a list, or its JSON; absent where neo4j-admin imported an empty one."""
    return tuple(read(value) if isinstance(value, str) else value or ())


_CODECS: Mapping[Any, _Codec] = {
    str: _Codec("text", _store_text, lambda v, _: v or ""),
    int: _Codec("integer", _unchanged, None),
    float: _Codec("number", _store_number, _read_number),
    bool: _Codec("boolean", _store_boolean, lambda v, _: bool(v)),
}
_LIST_CODECS: Mapping[Any, _Codec] = {
    str: _Codec("texts", list, _read_list),
    float: _Codec("numbers", list, _read_list),
}


def _json_codec(
    to_stored: Callable[[Any], str], from_stored: Callable[[Any, JsonReader], Any] | None = None
) -> _Codec:
    return _Codec("text", to_stored, from_stored or (lambda v, read: read(v)), json=True)


_JSON_CODEC = _json_codec(lambda v: storable(canonical_json(dict(v))))
_ORDERED_JSON_CODEC = _json_codec(as_json)
_PAIRS_CODEC = _json_codec(lambda v: storable(canonical_json(v)), read_settings)
