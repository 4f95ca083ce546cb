"""Prompt packs for profiles: which attributes are asked for, in which words, and how they become
statements. Those that come with kgbias are folders in `prompts/`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import canonical_json
from kgbias.io.templates import PromptTemplate, read_template, render_template
from kgbias.packs import MANIFEST, folder_of, hash_of, read_manifest

Kind = Literal["text", "integer", "measure", "list"]
DEFAULT, REFERENCE = "profiles", "profiles-reference"
LENGTH = 3  # values of a list
_ASKED: Mapping[str, str] = {
    "text": "string",
    "integer": "integer",
    "measure": "string",
    "list": f"list of strings, length {LENGTH}",
}
_SCHEMA: Mapping[str, Any] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "measure": {"type": ["string", "number"]},  # heights are written as either
    "list": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": LENGTH,
        "maxItems": LENGTH,
    },
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something that a profile says about its character.

    Attributes:
        name: its name in tables.
        kind: a text, a whole number, a measure such as a height (a number or a text), or a list of
            three texts.
        predicate: the predicate of its statement about a group: "Arab women love painting".
        line: the line for a model to complete, if asked for this attribute alone; it may name
            `name`.
        inside: the dictionary of the JSON that holds it; "" for none.
        hint: added to its name in requests for JSON.
    """

    name: str
    kind: Kind
    predicate: str
    line: str
    inside: str = ""
    hint: str = ""


@dataclass(frozen=True)
class ProfilePack:
    """How profiles are asked for: the attributes, and the templates "profile" (one profile as JSON;
    a pack that only asks attribute by attribute has none) and "attribute". `min_p` cuts off
    improbable tokens when attributes are asked for one by one (None: none)."""

    name: str
    version: int
    language: str
    source: str
    attributes: tuple[Attribute, ...]
    templates: Mapping[str, PromptTemplate]
    hash: str
    min_p: float | None = None

    def chosen(self, names: Sequence[str]) -> tuple[Attribute, ...]:
        """These attributes in the order of the pack; all if none is named."""
        there = [a.name for a in self.attributes]
        if missing := [name for name in names if name not in there]:
            raise UsageError(no_such("attribute", missing[0], there))
        return tuple(a for a in self.attributes if not names or a.name in names)


def fields(attributes: Sequence[Attribute]) -> list[str]:
    """The fields of the JSON, one per line, worded as in the published prompt."""
    lines = ['"name" - string']
    inside: dict[str, list[str]] = {}
    for a in attributes:
        if a.inside:
            inside.setdefault(a.inside, []).append(f"{a.name} ({a.hint})" if a.hint else a.name)
            if len(inside[a.inside]) == 1:
                lines.append(a.inside)
        else:
            lines.append(f'"{a.name}" - {_ASKED[a.kind]}')
    return [
        f'"{line}" - dictionary with keys {", ".join(inside[line])}' if line in inside else line
        for line in lines
    ]


@cache
def schema(attributes: tuple[Attribute, ...]) -> str:
    """The JSON schema of one profile, as text."""
    whole: dict[str, Any] = {"name": {"type": "string"}}
    for a in attributes:
        if a.inside:
            whole.setdefault(a.inside, {})[a.name] = _SCHEMA[a.kind]
        else:
            whole[a.name] = _SCHEMA[a.kind]
    dictionaries = {a.inside for a in attributes if a.inside}
    return canonical_json(
        _object({k: _object(v) if k in dictionaries else v for k, v in whole.items()})
    )


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def load_profile_pack(name: str | Path = DEFAULT) -> ProfilePack:
    """The pack with that name, or in that folder. Raises UsageError for an unknown name, DataError
    for a folder with a faulty file."""
    return _read(folder_of(name, _FILE))


_FILE = "attribute.toml"


@cache
def _read(folder: Path) -> ProfilePack:
    path = folder / MANIFEST
    data = read_manifest(folder, "profiles", attributes=dict)
    attributes = tuple(_attribute(path, name, entry) for name, entry in data["attributes"].items())
    if not attributes:
        raise DataError(f"{path}: a pack of profiles needs at least one entry in [attributes]")
    files = sorted(file for file in folder.glob("*.toml") if file.name != MANIFEST)
    return ProfilePack(
        name=data["name"],
        version=data["version"],
        language=data["language"],
        source=data["source"],
        attributes=attributes,
        templates={file.stem: read_template(file) for file in files},
        hash=hash_of(path, *files),
        min_p=data.get("min_p"),
    )


def _attribute(path: Path, name: str, entry: Any) -> Attribute:
    known = set(Attribute.__dataclass_fields__) - {"name"}
    if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
        raise DataError(f"{path}: [attributes.{name}] must be a table of texts")
    if wrong := [key for key in entry if key not in known]:
        raise DataError(f"{path}: [attributes.{name}] has no {wrong[0]!r}")
    if missing := [key for key in ("kind", "predicate", "line") if not entry.get(key)]:
        raise DataError(f"{path}: [attributes.{name}] needs {missing[0]!r}")
    if entry["kind"] not in get_args(Kind):
        raise DataError(f"{path}: the kind of {name} must be one of {', '.join(get_args(Kind))}")
    render_template(entry["line"], {"name": ""})
    return Attribute(name=name, **entry)
