"""The texts that the readers learn from and are evaluated on: this folder's tables, HateCheck, and
VADER's lexicon."""

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

from kgbias.errors import DataError, MissingExtra
from kgbias.measure.scorers._masking import neutralise
from kgbias.measures import MEASURES

SENTENCES = Path(__file__).with_name("sentences.tsv")
NARRATIVES = Path(__file__).with_name("narratives.tsv")
PHRASES = Path(__file__).with_name("phrases.tsv")
CRAWLED = Path(__file__).with_name("crawled.tsv")
LEARNT = Path(__file__).with_name("crawled_learnt.tsv")
FRESH = Path(__file__).with_name("fresh.tsv")
WORDS = Path(__file__).with_name("attack_words.tsv")
_HEADS = MEASURES["regard"].heads
assert _HEADS
REGARD = _HEADS.outputs
"""The classes of regard, in the order of the columns of its reader's logits."""
_GRADES = {  # of regard, by how much a word attacks
    "1": "strongly negative",
    "0.85": "strongly negative",
    "0.6": "negative",
    "0.4": "mildly negative",
    "0.2": "hardly negative",
}
_PERSON_FORMS = frozenset({"profile", "descriptor"})
NOUN = re.compile(r"\w+(?:ness|ity|esty|elty|tion|sion|ism|ence|ance|ment|acy|ery|dom|ice)")
ADJECTIVE = re.compile(r"\w+(?:ous|ful|ive|able|ible|less|ant|(?<!m)ent|ic|ish)")


@dataclass(frozen=True, slots=True)
class Example:
    """One training text and its labels; None is a label that the text does not have.

    Attributes:
        text: the text as written.
        regard: "positive", "neutral" or "negative", for phrases also "strongly", "mildly" or
            "hardly negative"; "mixed" if it speaks both well and ill of one person; "none" if it
            says nothing.
        toxic: whether it attacks the group.
        valence: of a single word, from -2 to 2; higher is more positive.
        offence: how much it offends people, from -1 (not) to 4.
        group: the mention at the start of the text, which another group may replace.
        source: where it comes from: a surface form, or a function of HateCheck.
        kind: of the group, such as "religion"; empty for HateCheck.
        cluster: near-paraphrases, the cases of one template and those derived from it, or a crawl.
        held: what it is left out of training with, such as "crawl qa-gemma"; "" for never.
    """

    text: str
    regard: str | None = None
    toxic: bool | None = None
    valence: float | None = None
    offence: float | None = None
    group: str = ""
    source: str = ""
    kind: str = ""
    cluster: str = ""
    held: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A text, and how much it attacks a group.

    Attributes:
        text: the text as written.
        attack: how much it attacks, from 0 to 1.
        weight: how much it counts.
        hidden: how much it attacks once its group is replaced; None: just as much.
        source: which of this module's sources it comes from.
        name: for SeeGULL, the identity; for HateCheck, the function; for what models said, the
            crawl.
        held: what it is left out of training with, such as "crawl qa-gemma"; "" for never.
    """

    text: str
    attack: float
    weight: float = 1.0
    source: str = ""
    name: str = ""
    held: str = ""
    hidden: float | None = None


def read_sentences(path: Path = SENTENCES) -> list[Example]:
    """Read this folder's labelled sentences; near-paraphrases share a fold, 0 to 4."""
    return [
        Example(
            text=row["text"],
            regard=row["regard"],
            toxic=row["toxic"] == "1",
            group="" if row["form"] in _PERSON_FORMS else row["group"],
            source=row["form"],
            kind=row["kind"],
            cluster=row["cluster"],
            held=f"fold {row['fold']}",
        )
        for row in _rows(path, "\t")
    ]


def read_narratives(path: Path = NARRATIVES) -> list[Example]:
    """Read the sentences about one person, "XYZ", or a group; a fold holds whole forms."""
    return [
        Example(
            text=row["text"],
            regard=row["regard"],
            toxic=False if row["form"] == "identity" else None,
            group="XYZ" if re.match("XYZ (?!people)", row["text"]) else "",
            source=row["form"],
            cluster=row["form"],
            held=f"fold {row['fold']}",
        )
        for row in _rows(path, "\t")
    ]


def read_phrases(path: Path = PHRASES, words: Path = WORDS) -> list[Example]:
    """Read what groups are said to be, such as "stingy", and how negative it is."""
    found = {row["phrase"]: row["regard"] for row in _rows(path, "\t")}
    for row in _rows(words, "\t"):
        for word in row["words"].split("|") if row["attack"] in _GRADES else ():
            found.setdefault(word, _GRADES[row["attack"]])
    return [Example(text=phrase, regard=regard) for phrase, regard in found.items()]


def read_crawled(path: Path = CRAWLED) -> list[Example]:
    """Read statements that models wrote in crawls; `cluster` names the crawl, `kind` the pack."""
    return [
        Example(
            text=f"{row['group']} {row['predicate']} {row['object']}.",
            regard=row["regard"],
            group=row["group"],
            source=row["model"],
            kind=row["pack"],
            cluster=row["crawl"],
            held=f"crawl {row['crawl']}",
        )
        for row in _rows(path, "\t")
    ]


def read_learnt(path: Path = LEARNT) -> list[Example]:
    """Read statements of other crawls, which readers learn from and are not evaluated on."""
    return [replace(example, held="") for example in read_crawled(path)]


def read_fresh(path: Path = FRESH) -> list[tuple[str, str, str]]:
    """Read statements of a crawl that nothing learns from, drawn at random: text, regard, and
    whether it attacks ("1" or "0"); "" if human readers could not decide."""
    return [
        (f"{row['group']} {row['predicate']} {row['object']}.", row["regard"], row["attack"])
        for row in _rows(path, "\t")
    ]


def read_hatecheck(path: Path) -> list[Example]:
    """Read HateCheck's cases with our labels, one for each text that differs once masked.

    Hateful cases have negative regard. Of the others, positive identity statements are positive;
    neutral ones, slur homonyms, hate of objects and denied hate are neutral; insults to
    non-protected groups are negative; the rest have no label and are left out.
    """
    examples: dict[str, Example] = {}
    for row in _rows(path, ","):
        source, text = row["functionality"], row["test_case"].strip()
        masked = neutralise(text)
        if source == "target_obj_nh" and masked != text:
            continue  # "Mondays are the worst.": the subject would be taken for a group
        regard = "negative" if row["label_gold"] == "hateful" else _HATECHECK_REGARD.get(source)
        if regard:
            held = f"function {source}"
            examples.setdefault(masked, Example(masked, regard, source=source, held=held))
    return list(examples.values())


_HATECHECK_REGARD = {
    "ident_pos_nh": "positive",
    "ident_neutral_nh": "neutral",
    "slur_homonym_nh": "neutral",
    "target_obj_nh": "neutral",
    "negate_neg_nh": "neutral",
    "target_group_nh": "negative",
}


def read_seegull(folder: Path) -> list[tuple[str, str, str, float]]:
    """Read the stereotypes of states that people rated: identity, attribute, sentence, and how much
    it offends on average, from -1 (not) to 4."""
    found = []
    for path in sorted(folder.glob("stereotypes_*.csv")):
        for row in _rows(path, ","):
            if {row[f"Annotation{k}"] for k in (1, 2, 3)} != {"NA"}:  # else the score says 0
                attribute = row["attribute"].replace("_", " ")
                text = f"{row['identity']} people are {attribute}."
                offence = float(row["offensiveness_score"])
                found.append((row["identity"], row["attribute"], text, offence))
    if not found:
        raise DataError(f"{folder} has no stereotypes_*.csv with offensiveness scores")
    return found


def is_stance(text: str) -> bool:
    """Whether a stereotype is a political stance, such as "Texan people are pro-life."."""
    return bool(re.search(r" are (?:pro|anti)[-_ ]", text))


def _rows(path: Path, delimiter: str) -> list[dict[str, str]]:
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = (line for line in file if not line.startswith("# Content warning"))
            return list(csv.DictReader(lines, delimiter=delimiter, quoting=quoting))  # type: ignore[call-overload]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def read_words() -> list[Example]:
    """Read VADER's words, valence halved to [-2, 2]; plain nouns and adjectives three times."""
    try:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    except ImportError as error:
        raise MissingExtra("vaderSentiment", extra="train") from error
    lexicon: dict[str, float] = SentimentIntensityAnalyzer().lexicon
    words = [
        Example(text=word, valence=value / 2)
        for word, value in sorted(lexicon.items())
        if re.fullmatch("[a-z]{3,}", word)
    ]
    plain = [w for w in words if NOUN.fullmatch(w.text) or ADJECTIVE.fullmatch(w.text)]
    return words + 2 * plain
