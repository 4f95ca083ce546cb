"""Prompt packs: folders of templates with a manifest, `pack.toml`.

A pack says in what words a crawl asks: the templates of its strategies, the language, how a triple
is written as a sentence, which reader reads the answers, the example sentences in a prompt, and the
crawl settings that go with them. kgbias's own are folders of `prompts/`; other packages add theirs
by name (docs/how-to/extend.md).

`CrawlConfig`'s own defaults are the paper's. The front door takes those of a pack, and then what
the caller names. The text that the reference model learned from is written with the same packs.

What else must be known of a language is data of its pack, too: `language.toml` declares a reader
(`kgbias.crawl.readers.declared`), how refusals begin, what stands before names, and made-up names;
`names.toml` has the names of groups. docs/how-to/prompts.md says how to add one.

A pack is a stranger's file (`kgbias.io.templates` says how it is rendered). `read_manifest` also
reads the manifests of packs for profiles, stories and pairs. To add a pack, add a folder to
`prompts/`; its answers are read by a reader in `crawl/readers/`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Any, Protocol

from kgbias.errors import DataError, KgbiasError, UsageError, no_such
from kgbias.ids import content_id, normalise
from kgbias.io.plugins import PluginTable
from kgbias.io.reading import need_regular_files, read_text, read_toml
from kgbias.io.resources import folder_names, resource_path
from kgbias.io.templates import PromptTemplate, read_template, render_template

PUBLISHED, DEFAULT = "salinas-2023", "sentences"
MANIFEST = "pack.toml"
_CRAWL_FILE = "initialise.toml"  # only a crawl's pack has this file
DECLARED = "declared"
"""The reader that a manifest names if its language file declares one. A pack's `reader` is then
"declared:" and where the pack is found."""
_DEFAULT_VERBALISER = "{{ group }} {{ predicate }} {{ object }}."
_REQUIRED_KEYS: Mapping[str, type] = {"name": str, "version": int, "language": str, "source": str}
# The crawl settings that a manifest can set, with the type of each.
_CRAWL_SETTINGS: Mapping[str, type | tuple[type, ...]] = {
    "temperature": (int, float),
    "samples": int,
    "answers": int,
    "iterations": int,
    "predicate_prompts": int,
    "object_prompts": int,
    "shots": int,
    "top_k": int,
    "top_p": (int, float),
    "min_p": (int, float),
    "filters": list,
    "initial_predicates": list,
    "arms": list,
    "max_attempts": int,
    "redraw": bool,
}


class StatementLike(Protocol):
    """The parts of a statement that a prompt shows."""

    @property
    def group(self) -> str: ...
    @property
    def predicate(self) -> str: ...
    @property
    def object(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Example:
    """A statement as a prompt shows it."""

    group: str
    predicate: str
    object: str
    sentence: str


@dataclass(frozen=True)
class Pool:
    """Example sentences about everyday groups, and how many a prompt shows: `initialise` in the
    initialisation; in later rounds `expand`, or enough to make `minimum` together with the graph's
    own."""

    sentences: tuple[Example, ...] = ()
    initialise: int = 0
    expand: int = 0
    minimum: int = 0


@dataclass(frozen=True)
class LanguageWords:
    """What a pack declares of its language.

    Attributes:
        reader: the table of its reader (`kgbias.crawl.readers.declared`).
        refusals: how refusals begin, in lower case.
        carriers: what stands before names when beliefs are asked for.
        nonce: the parts of made-up names (`kgbias.evidence.names.NonceRoots`).
    """

    reader: Mapping[str, Any] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()
    nonce: Mapping[str, Any] = field(default_factory=dict)

    def is_refusal(self, answer: str) -> bool:
        """Whether the answer begins as a declared refusal does."""
        return answer.lstrip(" \t\n\"'*«„“").casefold().startswith(self.refusals)


@dataclass(frozen=True)
class Pack:
    """A prompt pack.

    Attributes:
        name, version: its name and version.
        language: the language of its prompts, as an ISO 639-1 code.
        source: where the prompts come from.
        reader: the reader of its answers (`kgbias.crawl.parse`).
        templates: its templates by name.
        verbaliser: the template that writes a triple as a sentence.
        pool: its own example sentences.
        crawl: its crawl settings, by the names of `CrawlConfig`'s parameters.
        preset: what `preset` sets in addition.
        groups: the file of its own groups, if any.
        words: what it declares of its language.
        names: the file of the names of its groups, if any (`kgbias.evidence.indicators`).
        hash: of all its files.
    """

    name: str
    version: int
    language: str
    source: str
    reader: str
    templates: Mapping[str, PromptTemplate]
    verbaliser: str = _DEFAULT_VERBALISER
    pool: Pool = Pool()
    crawl: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    groups: Path | None = None
    words: LanguageWords = LanguageWords()
    names: Path | None = None
    hash: str = ""

    @cached_property
    def english_names(self) -> Mapping[str, str]:
        """What the groups of a language are called in English, by their name as ids take it: the
        first alias in its file of names."""
        if self.names is None or self.language == "en":
            return {}
        english = {}
        groups = read_toml(self.names).get("group")  # whoever asks for beliefs is told of faults
        for group in groups if isinstance(groups, list) else ():
            match group:
                case {"name": str(name), "aliases": [str(first), *_]}:
                    if normalise(name) != normalise(first):
                        english[normalise(name)] = first
        return english

    def template(self, name: str) -> PromptTemplate:
        """The template of that name. Raises UsageError if the pack has none."""
        if name not in self.templates:
            raise UsageError(f"the prompts {self.name!r} have no template {name!r}")
        return self.templates[name]

    def example(self, statement: StatementLike) -> Example:
        """A statement as this pack's prompts show it."""
        return _build_example(
            self.verbaliser, statement.group, statement.predicate, statement.object
        )

    def opening_examples(self, predicate: str, rng: Random) -> list[Example]:
        """Sentences of the pool for an initial prompt, none with the predicate asked for."""
        return self._draw(self.pool.initialise, {normalise(predicate)}, rng)

    def mix_examples(self, statements: Sequence[StatementLike], rng: Random) -> list[Example]:
        """These statements of the graph as examples; if the pack has a pool, mixed in random order
        with sentences of it that have other predicates."""
        examples = [self.example(statement) for statement in statements]
        if self.pool.sentences:
            wanted_count = max(self.pool.expand, self.pool.minimum - len(statements))
            examples += self._draw(
                wanted_count, {normalise(statement.predicate) for statement in statements}, rng
            )
            rng.shuffle(examples)
        return examples

    def _draw(
        self, wanted_count: int, used_predicates: Collection[str], rng: Random
    ) -> list[Example]:
        """Up to `wanted_count` sentences of the pool, no two with the same group or predicate, none
        with a `used_predicates` predicate."""
        groups: set[str] = set()
        predicates = set(used_predicates)
        examples: list[Example] = []
        for sentence in rng.sample(self.pool.sentences, len(self.pool.sentences)):
            if len(examples) == wanted_count:
                break
            group, predicate = normalise(sentence.group), normalise(sentence.predicate)
            if group not in groups and predicate not in predicates:
                groups.add(group)
                predicates.add(predicate)
                examples.append(sentence)
        return examples


def load_pack(name: str | Path = DEFAULT) -> Pack:
    """The pack of that name, or in that folder.

    Raises UsageError for an unknown name, DataError for a folder with a faulty file.
    """
    own_folder = crawl_packs().get(str(name)) if _is_plain_name(str(name)) else None
    if own_folder is not None:
        return _read_pack(own_folder)
    folder = Path(name)
    if not (folder / MANIFEST).is_file():
        raise UsageError(
            f"{no_such('prompts', str(name), pack_names())}, or name a folder with a {MANIFEST}"
        )
    return _read_pack(folder)


@cache
def crawl_packs() -> PluginTable[Path]:
    """The folders of the crawl packs, by name: those that come with kgbias, then those that other
    packages add."""
    own_folders = {name: resource_path("prompts", name) for name in shipped_folders(_CRAWL_FILE)}
    return PluginTable("pack", Path, own_folders, _find_fault)


def _find_fault(name: str, folder: Path) -> str:
    """What is wrong with another package's pack; "" if nothing is."""
    if not (folder / MANIFEST).is_file():
        return f"{folder} has no {MANIFEST}"
    pack_name = _read_pack(folder).name
    return "" if pack_name == name else f"its pack is called {pack_name!r}"


def pack_names() -> list[str]:
    """The names of the crawl packs."""
    return list(crawl_packs())


def shipped_folders(file: str) -> list[str]:
    """The folders of prompts that come with kgbias and have this file, which tells what they are
    for."""
    return [
        name
        for name in folder_names("prompts")
        if (resource_path("prompts", name) / file).is_file()
    ]


def find_folder(name: str | Path, file: str) -> Path:
    """The folder of prompts with this file: one of kgbias's by its name, or the user's. Raises
    UsageError if there is none."""
    if _is_plain_name(str(name)) and str(name) in shipped_folders(file):
        return resource_path("prompts", str(name))
    if not (Path(name) / file).is_file():
        raise UsageError(
            f"{no_such('prompts', str(name), shipped_folders(file))}, or name a folder with "
            f"{MANIFEST} and "
            f"{file}"
        )
    return Path(name)


def read_manifest(folder: Path, what: str, **kinds: type) -> dict[str, Any]:
    """The manifest of a pack that is not a crawl's: a name, version, language and source, and these
    other entries; a `Path` is the name of a file beside it. Raises DataError if one is missing or
    of the wrong kind."""
    path = folder / MANIFEST
    data = read_toml(path)
    for key, kind in {**_REQUIRED_KEYS, **kinds}.items():
        if not isinstance(data.get(key), str if kind is Path else kind):
            raise DataError(f"{path}: a pack of {what} needs {key!r}")
        if kind is Path and not _is_plain_name(data[key]):
            raise DataError(f"{path}: {key!r} must be the name of a file beside it")
    for key in ("temperature", "min_p"):
        if isinstance(data.get(key, 1.0), bool) or not isinstance(data.get(key, 1.0), int | float):
            raise DataError(f"{path}: {key!r} must be a number")
    return data


def hash_files(*files: Path) -> str:
    """The hash of a pack of these files: of their names and texts."""
    return content_id("pack", *(text for f in files for text in (f.name, read_text(f))))


def _is_file_name(name: Any) -> bool:
    return isinstance(name, str) and _is_plain_name(name)


def _is_plain_name(name: str) -> bool:
    return bool(name) and name == Path(name).name


@cache
def _read_pack(folder: Path) -> Pack:
    path = folder / MANIFEST
    data = read_toml(path)
    for key, kind in {"name": str, "version": int, "language": str, "reader": str}.items():
        if not isinstance(data.get(key), kind):
            raise DataError(f"{path}: a pack needs {key!r}, {_KIND_WORDS[kind]}")
    for key in ("source", "verbaliser"):
        if not isinstance(data.get(key, ""), str):
            raise DataError(f"{path}: {key!r} must be a text")
    examples = data.get("examples", {})
    if not isinstance(examples, dict) or (examples and not _is_file_name(examples.get("pool"))):
        raise DataError(f"{path}: [examples] needs 'pool', the name of a file beside it")
    for key in _FILE_KEYS:
        if key in data and not _is_file_name(data[key]):
            raise DataError(f"{path}: {key!r} must be the name of a file beside it")
    preset = data.get("preset", {})
    if not isinstance(preset, dict):
        raise DataError(f"{path}: [preset] must be a table")
    other_files = (*(data.get(key) for key in _FILE_KEYS), examples.get("pool"))
    non_templates = {MANIFEST, *filter(None, other_files)}
    need_regular_files(folder)
    for name in sorted(non_templates):
        if not (folder / name).is_file():
            raise DataError(f"{folder} has no {name}")
    words = _read_words(folder / data["words"]) if "words" in data else LanguageWords()
    if data["reader"] == DECLARED and not words.reader:
        raise DataError(f"{path}: reader = {DECLARED!r} needs 'words', a file with a [reader]")
    files = {file.name: file for file in sorted(folder.glob("*.toml"))}
    templates = {f.stem: read_template(f) for name, f in files.items() if name not in non_templates}
    if missing_templates := {"initialise", "predicate", "object"} - templates.keys():
        raise DataError(f"{folder} has no {min(missing_templates)}.toml")
    pack = Pack(
        name=data["name"],
        version=data["version"],
        language=data["language"],
        source=data.get("source", ""),
        reader=_locate_reader(data["reader"], data["name"], folder),
        templates=templates,
        verbaliser=data.get("verbaliser", _DEFAULT_VERBALISER),
        crawl=_check_settings(path, "crawl", data.get("crawl", {})),
        preset=_check_settings(path, "preset.crawl", preset.get("crawl", {})),
        groups=folder / data["groups"] if "groups" in data else None,
        words=words,
        names=folder / data["names"] if "names" in data else None,
        hash=hash_files(*files.values()),
    )
    return pack if not examples else _add_pool(pack, folder, examples)


_FILE_KEYS = ("groups", "words", "names")


def _locate_reader(reader: str, name: str, folder: Path) -> str:
    """The reader by which answers are read again later; of a declared one, with its pack."""
    if reader != DECLARED:
        return reader
    is_own = name in shipped_folders(_CRAWL_FILE) and resource_path("prompts", name) == folder
    return f"{DECLARED}:{name if is_own else folder.resolve()}"


def _read_words(path: Path) -> LanguageWords:
    data = read_toml(path)
    kinds: Mapping[str, type] = {"reader": dict, "refusals": list, "carriers": list, "nonce": dict}
    for key, value in data.items():
        if key not in kinds:
            raise DataError(f"{path}: {no_such('entry', key, kinds)}")
        if not isinstance(value, kinds[key]):
            kind = "a table" if kinds[key] is dict else "a list of texts"
            raise DataError(f"{path}: {key!r} must be {kind}")
    lists = {key: data.get(key, []) for key in ("refusals", "carriers")}
    for key, texts in lists.items():
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"{path}: {key!r} must be a list of texts")
    return LanguageWords(
        data.get("reader", {}),
        tuple(text.casefold() for text in lists["refusals"] if text.strip()),
        tuple(lists["carriers"]),
        data.get("nonce", {}),
    )


def find_run_pack(config: Mapping[str, Any]) -> Pack | None:
    """The pack of a run with this configuration; None for an import, or if it is gone."""
    described = config.get("pack") or {}
    reader = str(described.get("reader", "")).rpartition("@")[0]
    place = reader.removeprefix(f"{DECLARED}:") if reader.startswith(f"{DECLARED}:") else ""
    try:
        return load_pack(place or described["name"])
    except (KeyError, KgbiasError):
        return None


def _add_pool(pack: Pack, folder: Path, examples: Mapping[str, Any]) -> Pack:
    manifest = folder / MANIFEST
    counts = {}
    for key in ("initialise", "expand", "minimum"):
        counts[key] = examples.get(key, 0)
        if not isinstance(counts[key], int) or not 0 <= counts[key] <= 50:
            raise DataError(f"{manifest}: {key!r} of [examples] must be a number from 0 to 50")
    path = folder / examples["pool"]
    sentences = []
    for line in read_toml(path).get("sentences", []):
        words = [part.strip() for part in line.split("|")] if isinstance(line, str) else []
        if len(words) != 3 or not all(words):
            raise DataError(f"{path}: {line!r} is not GROUP | PREDICATE | OBJECT")
        group, predicate, object = words
        sentences.append(_build_example(pack.verbaliser, group, predicate, object))
    if not sentences:
        raise DataError(f"{path} has no 'sentences'")
    return replace(pack, pool=Pool(tuple(sentences), **counts))


def _build_example(verbaliser: str, group: str, predicate: str, object: str) -> Example:
    values = {"group": group, "predicate": predicate, "object": object}
    return Example(group, predicate, object, render_template(verbaliser, values))


def _check_settings(path: Path, table: str, settings: Any) -> Mapping[str, Any]:
    if not isinstance(settings, dict):
        raise DataError(f"{path}: [{table}] must be a table")
    for name, value in settings.items():
        kind = _CRAWL_SETTINGS.get(name)
        if kind is None:
            raise DataError(
                f"{path}: [{table}] cannot set {name!r}, only {', '.join(_CRAWL_SETTINGS)}"
            )
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            raise DataError(f"{path}: {name!r} of [{table}] has a value of the wrong type")
        if isinstance(value, list) and not all(isinstance(word, str) for word in value):
            raise DataError(f"{path}: {name!r} of [{table}] must be a list of texts")
    return {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()}


_KIND_WORDS = {str: "a text", int: "a whole number"}
