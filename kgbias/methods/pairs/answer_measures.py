"""What is measured of an answer: its length, its reading ease, and what scorers say of its
sentences. English only.

Before anything is measured, the person's name or words and everything that shows gender is made
neutral (`neutralise_person`): two answers that differ in nothing else measure exactly the same, so
no scorer can tell the groups apart by what the request already said.

Flesch reading ease (Flesch 1948): 206.835 - 1.015 words per sentence - 84.6 syllables per word;
higher is easier, 100 very easy and 0 very hard. Syllables are counted by groups of vowels, without
a silent e.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from kgbias.graph.prompting import LoggedPrompter, load_prompts
from kgbias.methods.pairs.config import SlotPerson

Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
WORDS, REFUSED, EASE, ADVICE = "words", "refused", "reading ease", "advice"
SCORED_MEASURES = ("regard", "toxicity")
MEASURES = (WORDS, REFUSED, EASE, *SCORED_MEASURES)
"""What every answer is measured by; the first three need nothing installed."""
NEUTRAL_NAME = "the person"
_ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])[\"”')\]]*\s+|\n+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_GRADE = re.compile(r"\W*([1-5])\b")
_VOWELS = re.compile(r"[aeiouy]+")
_NEUTRAL_WORDS: Mapping[str, str] = {
    form: neutral
    for forms, neutral in (
        ("she he", "they"),
        ("her him his hers", "them"),
        ("herself himself", "themselves"),
        ("woman man lady gentleman girl boy female male", "person"),
        ("women men ladies gentlemen girls boys females males", "people"),
        ("daughter son", "child"),
        ("daughters sons", "children"),
        ("mother father mom dad mum", "parent"),
        ("sister brother", "sibling"),
        ("wife husband", "spouse"),
        ("princess prince", "royal"),
        ("queen king", "ruler"),
        ("madam ma'am sir", "madam"),
        ("ms mrs miss mr", "mx"),
    )
    for form in forms.split()
}
_GENDER = re.compile(
    rf"\b(?:{'|'.join(sorted(_NEUTRAL_WORDS, key=len, reverse=True))})\b", re.IGNORECASE
)


def neutralise_person(text: str, person: SlotPerson) -> str:
    """A text without what shows whom it is about: "the person" for the name or words, and words
    without gender ("they", "them", "child") for those that have one."""
    words = _ARTICLE.sub("", person.name)
    if person.slot == "group":
        pattern, flags = rf"(?:\b(?:an?|the)\s+)?(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE
    else:  # a name is a name only with its capital: "Will", not "will"
        either = "|".join(map(re.escape, sorted({words, *words.split()}, key=len, reverse=True)))
        pattern, flags = rf"(?<!\w)(?:{either})(?:\s+(?:{either}))*(?!\w)", re.NOFLAG
    text = re.sub(pattern, NEUTRAL_NAME, text, flags=flags)
    return _GENDER.sub(lambda found: _NEUTRAL_WORDS[found[0].lower()], text)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, those with at least one word; lines end sentences."""
    parts = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [part for part in parts if _WORD.search(part)]


def repeats_sentence(text: str) -> bool:
    """Whether a text says a sentence three times or more, as small models do that do not find an
    end."""
    return max(Counter(split_sentences(text)).values(), default=0) >= 3


def word_count(text: str) -> int:
    """The number of words."""
    return len(_WORD.findall(text))


def count_syllables(word: str) -> int:
    """About how many syllables an English word has, at least 1."""
    low = word.lower()
    count = len(_VOWELS.findall(low))
    if low.endswith("e") and not low.endswith(("le", "ee", "ye")):
        count -= 1
    return max(1, count)


def reading_ease(text: str) -> float:
    """Flesch reading ease; NaN for a text without words."""
    words = _WORD.findall(text)
    if not words:
        return math.nan
    per_sentence = len(words) / max(1, len(split_sentences(text)))
    return 206.835 - 1.015 * per_sentence - 84.6 * sum(map(count_syllables, words)) / len(words)


def mean_scores(measure: str, texts: Sequence[str]) -> Values:
    """The mean score of each text's sentences by the measure's own scorer; NaN for a text without
    sentences."""
    from kgbias.measure.scorers import load_scorer

    sentences_by_text = [split_sentences(text) for text in texts]
    different = list(
        dict.fromkeys(s for text_sentences in sentences_by_text for s in text_sentences)
    )
    judgements = load_scorer(measure).score(different)
    value = {s: j.value for s, j in zip(different, judgements, strict=True) if j is not None}
    return np.array(
        [
            _mean([value[s] for s in text_sentences if s in value])
            for text_sentences in sentences_by_text
        ]
    )


def embed_texts(texts: Sequence[str]) -> Values:
    """The direction of each text: the mean of its sentences' vectors (all-MiniLM-L6-v2), of length
    1, [texts, d]; zeros for a text without sentences."""
    from kgbias.measure.embedding import load_vectors

    sentences_by_text = [split_sentences(text) for text in texts]
    different = list(
        dict.fromkeys(s for text_sentences in sentences_by_text for s in text_sentences)
    )
    if not different:
        return np.zeros((len(texts), 1))
    sentence_vectors = load_vectors().embed(different)
    place = {s: n for n, s in enumerate(different)}
    rows = np.zeros((len(texts), sentence_vectors.shape[1]))
    for n, text_sentences in enumerate(sentences_by_text):
        if text_sentences:
            rows[n] = sentence_vectors[[place[s] for s in text_sentences]].mean(axis=0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0))


Advice = Callable[[Sequence[tuple[str, str]]], Values]
"""Grades of (request, answer): one for each, NaN for none."""


def model_advice(judge: LoggedPrompter, prompts: str | Path | None = None) -> Advice:
    """Grades by a language model: how much an answer encourages to aim high, 1 to 5. `prompts` is a
    folder with advice.toml, which has the `text` of the request and the `answer`. NaN: it said 0
    (no advice) or nothing that is a grade."""
    template = load_prompts(prompts or "pairs", {"advice": {"text": "", "answer": ""}})["advice"]

    def grade_advice(requests_and_answers: Sequence[tuple[str, str]]) -> Values:
        replies = judge.ask(
            template, [{"text": text, "answer": answer} for text, answer in requests_and_answers]
        )
        grades = (_GRADE.match(reply) for reply in replies)
        return np.array([float(grade[1]) if grade else math.nan for grade in grades])

    return grade_advice


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
