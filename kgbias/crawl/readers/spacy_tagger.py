"""Tags the words of a sentence by spaCy's small English model (`kgbias.models.english`)."""

from typing import Any

from kgbias.crawl.readers import lexicon
from kgbias.crawl.readers.lexicon import Kind, Word, table
from kgbias.models import english

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("VB", "VBP", "VBZ", "VBD", "MD"), "verb"),
    "VBG": "-ing",
    "VBN": "participle",
    **dict.fromkeys(("RB", "RBR", "RBS"), "adverb"),
    **dict.fromkeys(("RP", "IN", "TO"), "preposition"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "adjective"),
}
_FINITE = frozenset(("VBP", "VBZ", "VBD", "MD"))


def model() -> Any:
    """The tagger. Raises as `kgbias.models.english.load`."""
    return english.load("tagger")


def tag(subject: str, line: str) -> list[Word]:
    """The words of the line that continues the subject, tagged in their context."""
    words = table("english")
    ahead = f"{subject} "
    tags = {token.idx - len(ahead): token.tag_ for token in model()(f"{ahead}{line}.")}
    by_table = lexicon.tag(line)
    tagged: list[Word] = []
    for word in by_table:
        kind = _KINDS.get(tags.get(word.start, ""), "other")
        if word.low in words["modals"] | words["be"] | words["auxiliaries"]:
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
