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

Type = Literal["text", "integer", "number", "boolean", "texts", "numbers"]
Row = Mapping[str, Any]
Record = TypeVar("Record")
Reader = Callable[[str], Any]  # of JSON


def now(after: str | None = None) -> str:
    """The present time as rows keep it (ISO 8601, UTC), but always later than `after`, whatever the
    clock says."""
    found = datetime.now(UTC)
    if after is not None:
        found = max(found, datetime.fromisoformat(after) + timedelta(microseconds=1))
    return found.isoformat(timespec="microseconds")


LOW, HIGH = "lower end of the 95% interval", "upper end of the 95% interval"


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a node or an edge. Without a value it is absent, never NaN; with `always`, it
    has a value in every record. A text may be `json`."""

    name: str
    type: Type
    meaning: str
    always: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """Marks a field whose property has another name."""

    name: str


class InOrder:
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


def read_settings(text: str, read: Reader = json.loads) -> tuple[tuple[str, str], ...]:
    """How a model was asked, from the JSON that stores keep."""
    return tuple((name, value) for name, value in read(text))


def properties(
    kind: type,
    *names: str,
    but: Collection[str] = (),
    first: Sequence[str] = (),
    last: Sequence[str] = (),
) -> tuple[Property, ...]:
    """The properties of a class's records: those of these names, or all `but` some, with some moved
    to the front or the end."""
    own = {p.property.name: p.property for p in _parts(kind)}
    middle = names or [name for name in own if name not in (*but, *first, *last)]
    return tuple(own[name] for name in (*first, *middle, *last))


def in_graph(record: Any) -> dict[str, Any]:
    """A record's properties as a graph holds them, by name; None is absent."""
    kind: type = type(record)
    return {name: value(record) for name, value in getters(kind).items()}


@cache
def getters(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    """The functions that give each property of a class's records, as a graph holds it."""
    return {p.property.name: p.value for p in _parts(kind)}


def record_of(kind: type[Record], row: Row, read: Reader = json.loads) -> Record:
    """The record of a row that has its properties by name and its other fields as they are. A field
    that is not a property and not in the row has its default. `read` reads JSON, and lists too in a
    store that keeps them as JSON."""
    of: type = kind
    made = {}
    for field in _fields(of):
        if field.make is not None:
            made[field.name] = field.make(row, read)
        elif field.name in row:
            made[field.name] = row[field.name]
    return kind(**made)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a Python type is kept: as what, how a value becomes that, and how it is read back, when
    it may be absent."""

    type: Type
    kept: Callable[[Any], Any]
    made: Callable[[Any, Reader], Any] | None  # None: the value is kept as it is
    json: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A property of a record, and the function that gives its value as a graph holds it."""

    property: Property
    value: Callable[[Any], Any]


def _part(property: Property, place: str, kept: Callable[[Any], Any]) -> _Part:
    """The property whose value is at `place` in a record."""
    value = attrgetter(place)
    return _Part(property, value if kept is _same else lambda record: kept(value(record)))


@dataclass(frozen=True, slots=True)
class _Field:
    """A field, the properties that it is kept as, and how it is made from a row; none of these if
    it has no meaning in the graph."""

    name: str
    parts: tuple[_Part, ...] = ()
    make: Callable[[Row, Reader], Any] | None = None


@cache
def _fields(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found: list[_Field] = []
    for field in fields(kind):
        counted = any(p.property.name == "n" for own in found for p in own.parts)
        found.append(_field(field.name, hints[field.name], counted))
    return tuple(found)


@cache
def _parts(kind: type) -> tuple[_Part, ...]:
    """The properties that a class's records are kept as: their fields, then the properties of the
    class that are annotated with a meaning."""
    own = {name: value for c in reversed(kind.__mro__) for name, value in vars(c).items()}
    computed = (
        _field(name, get_type_hints(value.fget, include_extras=True).get("return"))
        for name, value in own.items()
        if isinstance(value, property)
    )
    return tuple(part for field in (*_fields(kind), *computed) for part in field.parts)


def _field(name: str, hint: Any, counted: bool = False) -> _Field:
    """A field, from its type; a `counted` one follows an estimate and shares its n."""
    hint, *said = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    meaning = next((m for m in said if isinstance(m, str)), None)
    if meaning is None:
        return _Field(name)
    if hint is Estimate:
        return _estimate(name, meaning, counted)
    called = next((m.name for m in said if isinstance(m, Called)), name)
    optional = get_origin(hint) in (Union, UnionType)
    if optional:
        (hint,) = (t for t in get_args(hint) if t is not type(None))
    if is_dataclass(hint):  # a model
        model: Any = hint
        part = _part(Property(called, "text", meaning, True), f"{name}.title", _text)
        return _Field(
            name, (part,), lambda row, _: model(row["spec"], row["revision"], row["own_name"])
        )
    form = _JSON_IN_ORDER if any(isinstance(m, InOrder) for m in said) else _form(hint)
    always = not optional and not any(isinstance(m, _MayBeNaN) for m in said)
    own = Property(called, form.type, meaning, always, form.json)
    return _Field(name, (_part(own, name, form.kept),), _maker(called, form, optional))


def _maker(name: str, form: _Form, optional: bool) -> Callable[[Row, Reader], Any]:
    """The function that reads a property from a row."""
    made = form.made
    if made is None:
        return lambda row, read: row.get(name)
    if optional:
        return lambda row, read: None if (v := row.get(name)) is None else made(v, read)
    return lambda row, read: made(row.get(name), read)


def _estimate(name: str, meaning: str, counted: bool) -> _Field:
    """A figure with its interval; unless it is the first, its name is also in those of the ends."""
    low, high = (f"{name}_low", f"{name}_high") if counted else ("low", "high")
    its = "its" if counted else "the"
    parts = [
        _part(Property(own, "number", of), f"{name}.{part}", _number)
        for own, of, part in (
            (name, meaning, "value"),
            (low, f"lower end of {its} 95% interval", "low"),
            (high, f"upper end of {its} 95% interval", "high"),
        )
    ]
    if not counted:
        n = Property("n", "integer", "statements or names behind it", always=True)
        parts.append(_part(n, f"{name}.n", _same))

    def make(row: Row, read: Reader) -> Estimate:
        value, lower, upper = (_or_nan(row.get(own), read) for own in (name, low, high))
        return Estimate(value, lower, upper, row["n"])

    return _Field(name, tuple(parts), make)


def _form(hint: Any) -> _Form:
    if get_origin(hint) is Literal:
        return _FORMS[str]
    if get_origin(hint) is Mapping:
        return _JSON
    if get_origin(hint) is tuple:
        return _LISTS.get(get_args(hint)[0], _PAIRS)
    return _FORMS[hint]


def _same(value: Any) -> Any:
    return value


def _text(value: str | None) -> str | None:
    return None if value is None else storable(value)


def _number(value: Any) -> Any:
    return None if value != value else value  # NaN cannot be sorted by


def _truth(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _or_nan(value: Any, _: Reader) -> Any:
    return math.nan if value is None else value


def _listed(value: Any, read: Reader) -> tuple[Any, ...]:
    """Of a list, or its JSON; absent where neo4j-admin imported an empty one."""
    return tuple(read(value) if isinstance(value, str) else value or ())


_FORMS: Mapping[Any, _Form] = {
    str: _Form("text", _text, lambda v, _: v or ""),
    int: _Form("integer", _same, None),
    float: _Form("number", _number, _or_nan),
    bool: _Form("boolean", _truth, lambda v, _: bool(v)),
}
_LISTS: Mapping[Any, _Form] = {
    str: _Form("texts", list, _listed),
    float: _Form("numbers", list, _listed),
}


def _json(kept: Callable[[Any], str], made: Callable[[Any, Reader], Any] | None = None) -> _Form:
    return _Form("text", kept, made or (lambda v, read: read(v)), json=True)


_JSON = _json(lambda v: storable(canonical_json(dict(v))))
_JSON_IN_ORDER = _json(as_json)
_PAIRS = _json(lambda v: storable(canonical_json(v)), read_settings)
