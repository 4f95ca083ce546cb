"""Prompt packs for profiles: which attributes are asked for, in which words, and how they become
statements. Those that come with kgbias are folders in `prompts/`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.generation_run import PromptPack, pack_entries
from kgbias.graph.types import canonical_json
from kgbias.io.templates import PromptTemplate, read_template, render_template
from kgbias.packs import MANIFEST, find_folder, read_manifest

AttributeKind = Literal["text", "integer", "measure", "list"]
DEFAULT, REFERENCE = "profiles", "profiles-reference"
LIST_LENGTH = 3  # values of a list
_KIND_WORDS: Mapping[str, str] = {
    "text": "string",
    "integer": "integer",
    "measure": "string",
    "list": f"list of strings, length {LIST_LENGTH}",
}
_KIND_SCHEMAS: Mapping[str, Any] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "measure": {"type": ["string", "number"]},  # heights are written as either
    "list": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": LIST_LENGTH,
        "maxItems": LIST_LENGTH,
    },
}


@dataclass(frozen=True, slots=True)
class ProfileAttribute:
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
    kind: AttributeKind
    predicate: str
    line: str
    inside: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class ProfilePack(PromptPack):
    """How profiles are asked for: the attributes, and the templates "profile" (one profile as JSON;
    a pack that only asks attribute by attribute has none) and "attribute". `min_p` cuts off
    improbable tokens when attributes are asked for one by one (None: none)."""

    attributes: tuple[ProfileAttribute, ...]
    templates: Mapping[str, PromptTemplate]

    def select_attributes(self, names: Sequence[str]) -> tuple[ProfileAttribute, ...]:
        """These attributes in the order of the pack; all if none is named."""
        known_names = [a.name for a in self.attributes]
        if unknown := [name for name in names if name not in known_names]:
            raise UsageError(no_such("attribute", unknown[0], known_names))
        return tuple(a for a in self.attributes if not names or a.name in names)


def describe_fields(attributes: Sequence[ProfileAttribute]) -> list[str]:
    """The fields of the JSON, one per line, worded as in the published prompt."""
    lines = ['"name" - string']
    inside: dict[str, list[str]] = {}
    for attribute in attributes:
        if attribute.inside:
            inside.setdefault(attribute.inside, []).append(
                f"{attribute.name} ({attribute.hint})" if attribute.hint else attribute.name
            )
            if len(inside[attribute.inside]) == 1:
                lines.append(attribute.inside)
        else:
            lines.append(f'"{attribute.name}" - {_KIND_WORDS[attribute.kind]}')
    return [
        f'"{line}" - dictionary with keys {", ".join(inside[line])}' if line in inside else line
        for line in lines
    ]


@cache
def profile_schema(attributes: tuple[ProfileAttribute, ...]) -> str:
    """The JSON schema of one profile, as text."""
    properties: dict[str, Any] = {"name": {"type": "string"}}
    for attribute in attributes:
        if attribute.inside:
            properties.setdefault(attribute.inside, {})[attribute.name] = _KIND_SCHEMAS[
                attribute.kind
            ]
        else:
            properties[attribute.name] = _KIND_SCHEMAS[attribute.kind]
    dictionaries = {attribute.inside for attribute in attributes if attribute.inside}
    return canonical_json(
        _object_schema(
            {k: _object_schema(v) if k in dictionaries else v for k, v in properties.items()}
        )
    )


def _object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def load_profile_pack(name: str | Path = DEFAULT) -> ProfilePack:
    """The pack with that name, or in that folder. Raises UsageError for an unknown name, DataError
    for a folder with a faulty file."""
    return _load_pack(find_folder(name, _ATTRIBUTE_FILE))


_ATTRIBUTE_FILE = "attribute.toml"


@cache
def _load_pack(folder: Path) -> ProfilePack:
    path = folder / MANIFEST
    data = read_manifest(folder, "profiles", attributes=dict)
    attributes = tuple(
        _read_attribute(path, name, entry) for name, entry in data["attributes"].items()
    )
    if not attributes:
        raise DataError(f"{path}: a pack of profiles needs at least one entry in [attributes]")
    files = sorted(file for file in folder.glob("*.toml") if file.name != MANIFEST)
    return ProfilePack(
        **pack_entries(data, path, *files),
        attributes=attributes,
        templates={file.stem: read_template(file) for file in files},
    )


def _read_attribute(path: Path, name: str, entry: Any) -> ProfileAttribute:
    known_keys = set(ProfileAttribute.__dataclass_fields__) - {"name"}
    if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
        raise DataError(f"{path}: [attributes.{name}] must be a table of texts")
    if unknown_keys := [key for key in entry if key not in known_keys]:
        raise DataError(f"{path}: [attributes.{name}] has no {unknown_keys[0]!r}")
    if missing_keys := [key for key in ("kind", "predicate", "line") if not entry.get(key)]:
        raise DataError(f"{path}: [attributes.{name}] needs {missing_keys[0]!r}")
    if entry["kind"] not in get_args(AttributeKind):
        raise DataError(
            f"{path}: the kind of {name} must be one of {', '.join(get_args(AttributeKind))}"
        )
    render_template(entry["line"], {"name": ""})
    return ProfileAttribute(name=name, **entry)
