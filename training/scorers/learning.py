"""Train a reader of regard: examples in, weights out, the same weights for the same seed.

Mixed in every epoch:

- this folder's sentences, narratives and crawled statements, each as it stands, with another group
  or person in its place, or with the mention replaced as at scoring;
- sentences that only say who somebody is, with neutral regard;
- phrases, what groups are said to be, in short statements, by how negative they are;
- sentences with shuffled words, for which no label is likely;
- HateCheck, deduplicated after the mention is replaced, so its seven identities count once;
- the single words of VADER's lexicon, whose valence is a separate task: it teaches the direction of
  words that no sentence here contains. The task's output is dropped after training;
- what attacks a group and what does not (`attack_data`), as it is or with the group replaced.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.scorers._reader import LayerReader
from training.scorers.attack_data import HIDDEN
from training.scorers.data import ADJECTIVE, NOUN, REGARD, Example, Row
from training.scorers.fitting import States, fit

ATTACK, VALENCE = len(REGARD), len(REGARD) + 1  # columns of the logits, after those of REGARD
COLUMNS = len(REGARD) + 2
EPOCHS = 10
BATCH = 64
RATE = 2e-3
HATECHECK_SHARE = 0.3  # of HateCheck, redrawn in each epoch
WORDS = 400  # of the lexicon, redrawn in each epoch
IDENTITIES = 120  # sentences that only say who somebody is, redrawn in each epoch
PHRASE_SHARE = 0.6  # of the phrases, redrawn in each epoch
ATTACK_SHARE = 0.45  # of the rows of attacks, redrawn in each epoch
SHUFFLED = 60  # sentences with shuffled words, redrawn in each epoch
FRAMED_SHARE = 0.8  # of the words with a clear part of speech
MASKED_SHARE = 0.7
SWAPPED_SHARE = 0.8  # of the sentences that are not masked
WEIGHT_VALENCE = 0.5
_FRAMES = ("They are {}.", "They {}.", "{}", "This person is {}.", "They are known for {}.")
_NOUN_FRAMES = {  # which way the frame turns the word's valence
    "They love {}.": 1,
    "They value {}.": 1,
    "They believe in {}.": 1,
    "They spread {}.": 1,
    "They are full of {}.": 1,
    "They hate {}.": -1,
    "They can't stand {}.": -1,
    "They fight against {}.": -1,
    "They reject {}.": -1,
    "They have no {}.": -1,
}
_ADJECTIVE_FRAMES = {
    "They are {}.": 1,
    "They are seen as {}.": 1,
    "They can't stop being {}.": 1,
    "They are not {}.": -1,
    "They are never {}.": -1,
    "They can't be {}.": -1,
    "They hate {} people.": -1,
    "They refuse to be {}.": -1,
}
_STRONG = 0.7  # least valence at which a framed word gets a regard label
_PERSONS = (
    "The man,The woman,The Black man,The Black woman,The White man,The White woman,The gay man,"
    "The lesbian woman,The straight person,The Muslim woman,The Jewish man,The Asian man,"
    "The Mexican woman,The trans woman,The old man,The young woman,Maria,Ahmed,James,Mei,XYZ"
).split(",")
_PHRASE_FRAMES = (
    "They are {}.",
    "They are {}.",
    "They are {}.",
    "{group} are {}.",
    "They are seen as {}.",
    "They are often {}.",
)
_TARGETS = {  # probabilities of REGARD that a label asks for
    "strongly negative": (1.0, 0.0, 0.0),
    "negative": (0.9, 0.1, 0.0),
    "mildly negative": (0.65, 0.3, 0.05),
    "hardly negative": (0.25, 0.65, 0.1),
    "neutral": (0.0, 1.0, 0.0),
    "positive": (0.0, 0.0, 1.0),
    "mixed": (0.35, 0.3, 0.35),
    "none": (0.1, 0.8, 0.1),
}


Lesson = Example | Row


@dataclass(frozen=True, slots=True)
class Sources:
    """What a reader is trained on.

    Attributes:
        sentences: all of them in each epoch: our own, and statements of crawls.
        identities, phrases, hatecheck, words: some of them in each epoch.
        attacks: a share of them in each epoch, for the attack logit; the others are for regard and
            valence.
    """

    sentences: Sequence[Example]
    identities: Sequence[Example]
    phrases: Sequence[Example]
    hatecheck: Sequence[Example]
    words: Sequence[Example]
    attacks: Sequence[Row]

    def without(self, held: Collection[str]) -> "Sources":
        """Leave out whatever is held out under these names, and its texts in every source."""
        lessons: list[Lesson] = [*self.sentences, *self.hatecheck, *self.attacks]
        texts = {neutralise(lesson.text) for lesson in lessons if lesson.held in held}
        return replace(
            self,
            sentences=[e for e in self.sentences if neutralise(e.text) not in texts],
            hatecheck=[e for e in self.hatecheck if neutralise(e.text) not in texts],
            attacks=[r for r in self.attacks if neutralise(r.text) not in texts],
        )


def train(sources: Sources, states: States, seed: int) -> LayerReader:
    """Train a reader of COLUMNS outputs. The same seed gives the same weights."""
    rng = random.Random(seed)
    batches = [batch for _ in range(EPOCHS) for batch in _epoch(sources, rng)]
    return fit(COLUMNS, batches, lambda reader, batch: _loss(reader, batch, states), RATE, seed)


def _epoch(sources: Sources, rng: random.Random) -> Iterator[list[Lesson]]:
    """Yield an epoch's batches, texts of similar length together."""
    groups = [e.group for e in sources.sentences if e.group and e.group != "XYZ"]
    texts = [_augment(example, groups, rng) for example in sources.sentences]
    texts += [_shuffle(example, rng) for example in rng.sample(sources.sentences, SHUFFLED)]
    texts += [_augment(e, groups, rng) for e in rng.sample(sources.identities, IDENTITIES)]
    for phrase in rng.sample(sources.phrases, int(len(sources.phrases) * PHRASE_SHARE)):
        frame = rng.choice(_PHRASE_FRAMES)
        texts.append(replace(phrase, text=frame.format(phrase.text, group=rng.choice(groups))))
    texts += rng.sample(sources.hatecheck, int(len(sources.hatecheck) * HATECHECK_SHARE))
    texts += [_frame(word, rng) for word in rng.sample(sources.words, WORDS)]
    attacks = rng.sample(sources.attacks, int(len(sources.attacks) * ATTACK_SHARE))
    lessons: list[Lesson] = [*texts, *(hide(row, rng) for row in attacks)]
    rng.shuffle(lessons)
    for start in range(0, len(lessons), 16 * BATCH):
        chunk = sorted(lessons[start : start + 16 * BATCH], key=lambda lesson: len(lesson.text))
        batches = [chunk[i : i + BATCH] for i in range(0, len(chunk), BATCH)]
        rng.shuffle(batches)
        yield from batches


def _frame(word: Example, rng: random.Random) -> Example:
    """Put a word of the lexicon into a short statement that keeps or turns its valence.

    "They love cruelty." is as negative as the word, "They hate cruelty." as positive as it is
    negative. If the word is strong and its part of speech clear, that is also a regard label.
    """
    for pattern, frames in ((NOUN, _NOUN_FRAMES), (ADJECTIVE, _ADJECTIVE_FRAMES)):
        if pattern.fullmatch(word.text) and rng.random() < FRAMED_SHARE:
            frame, sign = rng.choice(sorted(frames.items()))
            valence = sign * (word.valence or 0.0)
            label = "positive" if valence > 0 else "negative"
            return Example(
                text=frame.format(word.text),
                valence=valence,
                regard=label if abs(valence) >= _STRONG else None,
            )
    return replace(word, text=rng.choice(_FRAMES).format(word.text))


def _augment(example: Example, groups: Sequence[str], rng: random.Random) -> Example:
    if rng.random() < MASKED_SHARE:
        return replace(example, text=neutralise(example.text))
    if example.group and rng.random() < SWAPPED_SHARE:
        others = _PERSONS if example.group == "XYZ" else groups
        return replace(example, text=rng.choice(others) + example.text[len(example.group) :])
    return example


def _shuffle(example: Example, rng: random.Random) -> Example:
    """Word salad: the words after the subject in another order."""
    subject, *words = neutralise(example.text).rstrip(".").split()
    rng.shuffle(words)
    return Example(text=" ".join([subject, *words]) + ".", regard="none")


def hide(row: Row, rng: random.Random) -> Row:
    """The row as it is, or with its group replaced, which leaves open whether a trope attacks."""
    text = neutralise(row.text) if rng.random() < HIDDEN else row.text
    if text == row.text or row.hidden is None:
        return replace(row, text=text)
    return replace(row, text=text, attack=row.hidden, weight=row.weight / 2)


def _loss(reader: LayerReader, batch: Sequence[Lesson], states: States) -> Tensor:
    """Sum the tasks' losses, each over the rows that have its label, by the batch's size."""
    logits: Tensor = reader(*states([lesson.text for lesson in batch]))
    loss = logits.sum() * 0
    rows = {i: one for i, one in enumerate(batch) if isinstance(one, Row)}
    if rows:
        loss = loss + functional.binary_cross_entropy_with_logits(
            logits[list(rows), ATTACK],
            torch.tensor([row.attack for row in rows.values()]),
            weight=torch.tensor([row.weight for row in rows.values()]),
            reduction="sum",
        )
    examples = {i: one for i, one in enumerate(batch) if isinstance(one, Example)}
    if regard := {i: _TARGETS[one.regard] for i, one in examples.items() if one.regard}:
        loss = loss + functional.cross_entropy(
            logits[list(regard), : len(REGARD)],
            torch.tensor(list(regard.values())),
            reduction="sum",
            label_smoothing=0.05,
        )
    if valence := {i: one.valence for i, one in examples.items() if one.valence is not None}:
        loss = loss + WEIGHT_VALENCE * functional.mse_loss(
            logits[list(valence), VALENCE], torch.tensor(list(valence.values())), reduction="sum"
        )
    return loss / len(batch)
