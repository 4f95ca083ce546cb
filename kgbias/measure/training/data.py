"""Train the deltas and the heads: data in, weights out, the same weights for the same seed.

Mixed in every epoch:

- this folder's sentences.tsv and narratives.tsv, each as it stands, with another group or person in
  its place, or with the mention replaced as at scoring;
- phrases.tsv, what groups are said to be, in short statements;
- sentences that say nothing, for which no label is likely: nonsense that a model wrote
  (crawled.tsv) and sentences whose words were shuffled;
- HateCheck, deduplicated after the mention is replaced, so that its seven identities count once;
- the single words of VADER's lexicon, whose valence is a third task: it teaches the encoder which
  way words lean that no sentence here contains. The task's output is dropped after training.
"""

import csv
import random
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional, utils
from torch.nn.utils.rnn import pad_sequence

from kgbias.errors import DataError, MissingExtra
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.scorers._network import Member, split

SENTENCES = Path(__file__).with_name("sentences.tsv")
NARRATIVES = Path(__file__).with_name("narratives.tsv")
PHRASES = Path(__file__).with_name("phrases.tsv")
CRAWLED = Path(__file__).with_name("crawled.tsv")
EPOCHS = 4
BATCH = 32
HATECHECK_SHARE = 0.3  # of HateCheck, redrawn in each epoch
WORDS = 400  # of the lexicon, redrawn in each epoch
PHRASE_SHARE = 0.6  # of the phrases, redrawn in each epoch
SHUFFLED = 60  # sentences whose words are shuffled, redrawn in each epoch
FRAMED_SHARE = 0.8  # of the words whose part of speech is plain
MASKED_SHARE = 0.7
SWAPPED_SHARE = 0.8  # of the sentences that are not masked
WEIGHT_TOXIC = 0.7
WEIGHT_VALENCE = 0.5
RATE_DELTAS = 1e-3
RATE_HEADS = 2e-3
WARM_UP = 0.06
_FRAMES = ("They are {}.", "They {}.", "{}", "This person is {}.", "They are known for {}.")
_NOUN = re.compile(r"\w+(?:ness|ity|esty|elty|tion|sion|ism|ence|ance|ment|acy|ery|dom|ice)")
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
_ADJECTIVE = re.compile(r"\w+(?:ous|ful|ive|able|ible|less|ant|(?<!m)ent|ic|ish)")
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
_STRONG = 0.7  # valence from which a framed word is given a regard label
_PERSON_FORMS = frozenset({"profile", "descriptor"})
_PERSONS = (
    "The man,The woman,The Black man,The Black woman,The White man,The White woman,The gay man,"
    "The lesbian woman,The straight person,The Muslim woman,The Jewish man,The Asian man,"
    "The Mexican woman,The trans woman,The old man,The young woman,Maria,Ahmed,James,Mei,XYZ"
).split(",")
_PHRASE_FRAMES = (
    "They are {}.", "They are {}.", "They are {}.", "{group} are {}.", "They are seen as {}.",
    "They are often {}.",
)  # fmt: skip
_TARGETS = {  # probabilities of REGARD that a label asks for
    "strongly negative": (1.0, 0.0, 0.0),
    "negative": (0.9, 0.1, 0.0),
    "neutral": (0.0, 1.0, 0.0),
    "positive": (0.0, 0.0, 1.0),
    "mixed": (0.35, 0.3, 0.35),
    "none": (0.2, 0.6, 0.2),
}


@dataclass(frozen=True, slots=True)
class Example:
    """One training text and its labels; None is a label that the text does not have.

    Attributes:
        text: the text as written.
        regard: "positive", "neutral", "negative" or "strongly negative"; "mixed" where it speaks
            well and ill of one person alike; "none" where it says nothing.
        toxic: whether it attacks the group.
        valence: of a single word, from -2 to 2, higher is more positive.
        group: the mention at the start of the text that another group may take the place of.
        source: where it comes from: a surface form, or a function of HateCheck.
        kind: of the group, such as "religion"; empty for HateCheck.
        cluster: near-paraphrases, or the cases of one template and those derived from it.
        family: the fold that its whole cluster is in.
    """

    text: str
    regard: str | None = None
    toxic: bool | None = None
    valence: float | None = None
    group: str = ""
    source: str = ""
    kind: str = ""
    cluster: str = ""
    family: int = -1


def read_sentences(path: Path = SENTENCES) -> list[Example]:
    """Read this folder's labelled sentences; near-paraphrases share a family, 0 to 4."""
    return [
        Example(
            text=row["text"],
            regard=row["regard"],
            toxic=row["toxic"] == "1",
            group="" if row["form"] in _PERSON_FORMS else row["group"],
            source=row["form"],
            kind=row["kind"],
            cluster=row["cluster"],
            family=int(row["fold"]),
        )
        for row in _rows(path, "\t")
    ]


def read_narratives(path: Path = NARRATIVES) -> list[Example]:
    """Read the sentences about one person, "XYZ", or a group; a family holds whole forms."""
    return [
        Example(
            text=row["text"],
            regard=row["regard"],
            toxic=False if row["form"] == "identity" else None,
            group="XYZ" if re.match("XYZ (?!people)", row["text"]) else "",
            source=row["form"],
            cluster=row["form"],
            family=int(row["fold"]),
        )
        for row in _rows(path, "\t")
    ]


def read_phrases(path: Path = PHRASES) -> list[Example]:
    """Read what groups are said to be, such as "stingy"."""
    return [Example(text=row["phrase"], regard=row["regard"]) for row in _rows(path, "\t")]


def read_crawled(use: str, path: Path = CRAWLED) -> list[Example]:
    """Read statements that models wrote in crawls; `cluster` names the crawl, `kind` the pack.

    `use` is "train" (one crawl), "development" (other crawls; choices were made on them) or "test"
    (other statements of those crawls and crawls of their own, labelled when no choice was left).
    """
    return [
        Example(
            text=f"{row['group']} {row['predicate']} {row['object']}.",
            regard=row["regard"],
            group=row["group"],
            source=row["model"],
            kind=row["pack"],
            cluster=row["crawl"],
        )
        for row in _rows(path, "\t")
        if row["use"] == use
    ]


def read_hatecheck(path: Path, families: int = 5) -> list[Example]:
    """Read HateCheck's cases with our labels, one for each text that differs once masked.

    Hateful cases are toxic and of negative regard. Of the others, positive identity statements are
    positive; neutral ones, slur homonyms, hate of objects and denied hate are neutral; the rest
    have no regard label. Insults to non-protected groups are negative and have no toxicity label,
    because our guide does not ask which group is insulted. A family holds whole template families
    (a template and those derived from it).
    """
    examples: dict[str, Example] = {}
    for row in _rows(path, ","):
        source, text = row["functionality"], row["test_case"].strip()
        masked = neutralise(text)
        if source == "target_obj_nh" and masked != text:
            continue  # "Mondays are the worst.": the subject would be taken for a group
        template = row["ref_templ_id"] or row["templ_id"]
        hateful = row["label_gold"] == "hateful"
        examples.setdefault(
            masked,
            Example(
                text=masked,
                regard="negative" if hateful else _HATECHECK_REGARD.get(source),
                toxic=None if source == "target_group_nh" else hateful,
                source=source,
                cluster=template,
                family=int(template) % families,
            ),
        )
    return list(examples.values())


_HATECHECK_REGARD = {
    "ident_pos_nh": "positive",
    "ident_neutral_nh": "neutral",
    "slur_homonym_nh": "neutral",
    "target_obj_nh": "neutral",
    "negate_neg_nh": "neutral",
    "target_group_nh": "negative",
}


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
    plain = [w for w in words if _NOUN.fullmatch(w.text) or _ADJECTIVE.fullmatch(w.text)]
    return words + 2 * plain


class States:
    """Token states of texts below the trained layers, computed once for each text.

    Attributes:
        upper: the layers above, for members to copy.
    """

    def __init__(self) -> None:
        self._tokenizer = _minilm.load_tokenizer()
        self._lower, self.upper = split(_minilm.load_encoder())
        self._known: dict[str, Tensor] = {}

    def __call__(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return states (texts, tokens, 384), zero where padded, and their mask."""
        if missing := sorted(set(texts) - self._known.keys(), key=len):
            encoded = self._tokenizer(
                missing,
                padding=True,
                truncation=True,
                max_length=_minilm.MAX_TOKENS,
                return_tensors="pt",
            )
            with torch.no_grad():
                states = self._lower(**encoded).last_hidden_state
            for text, row, kept in zip(missing, states, encoded["attention_mask"], strict=True):
                self._known[text] = row[: int(kept.sum())].clone()
        rows = [self._known[text] for text in texts]
        mask = pad_sequence([torch.ones(len(row)) for row in rows], batch_first=True)
        return pad_sequence(rows, batch_first=True), mask


@dataclass(frozen=True, slots=True)
class Sources:
    """What a member is trained on.

    Attributes:
        sentences: all of them in each epoch: our own, and statements of the crawl for training.
        phrases, hatecheck, words: a share of them in each epoch.
    """

    sentences: Sequence[Example]
    phrases: Sequence[Example]
    hatecheck: Sequence[Example]
    words: Sequence[Example]

    def without(self, family: int, functions: Container[str]) -> "Sources":
        """Leave out a family of our sentences and of HateCheck, and some of its functions."""
        return replace(
            self,
            sentences=[e for e in self.sentences if e.family != family],
            hatecheck=[
                e for e in self.hatecheck if e.family != family and e.source not in functions
            ],
        )


def read_sources(hatecheck: Path, families: int = 5) -> Sources:
    """Read all there is to train on."""
    return Sources(
        [*read_sentences(), *read_narratives(), *read_crawled("train")],
        read_phrases(),
        read_hatecheck(hatecheck, families),
        read_words(),
    )


def train(
    sources: Sources,
    states: States,
    seed: int = 0,
) -> Member:
    """Train one member and return it in evaluation mode. The same seed gives the same weights."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    member = Member(states.upper, seed).train()
    heads = list(member.heads.parameters())
    deltas = [p for p in member.upper.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": deltas, "lr": RATE_DELTAS}, {"params": heads, "lr": RATE_HEADS}]
    )
    epochs = [list(_epoch(sources, rng)) for _ in range(EPOCHS)]
    steps = sum(map(len, epochs))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
    )
    for batch in (batch for epoch in epochs for batch in epoch):
        optimizer.zero_grad()
        read = states([example.text for example in batch])
        with torch.autocast("cpu", torch.bfloat16):  # a third less work where a processor has it
            logits = member(*read)
        _loss(logits.float(), batch).backward()  # type: ignore[no-untyped-call]
        utils.clip_grad_norm_(deltas + heads, 1.0)
        optimizer.step()
        schedule.step()
    return member.eval()


def _epoch(sources: Sources, rng: random.Random) -> Iterator[list[Example]]:
    """Yield an epoch's batches, texts of similar length together."""
    groups = [e.group for e in sources.sentences if e.group and e.group != "XYZ"]
    texts = [_augment(example, groups, rng) for example in sources.sentences]
    texts += [_shuffle(example, rng) for example in rng.sample(sources.sentences, SHUFFLED)]
    for phrase in rng.sample(sources.phrases, int(len(sources.phrases) * PHRASE_SHARE)):
        frame = rng.choice(_PHRASE_FRAMES)
        texts.append(replace(phrase, text=frame.format(phrase.text, group=rng.choice(groups))))
    texts += rng.sample(sources.hatecheck, int(len(sources.hatecheck) * HATECHECK_SHARE))
    texts += [_frame(word, rng) for word in rng.sample(sources.words, WORDS)]
    rng.shuffle(texts)
    for start in range(0, len(texts), 8 * BATCH):
        chunk = sorted(texts[start : start + 8 * BATCH], key=lambda example: len(example.text))
        batches = [chunk[i : i + BATCH] for i in range(0, len(chunk), BATCH)]
        rng.shuffle(batches)
        yield from batches


def _frame(word: Example, rng: random.Random) -> Example:
    """Put a word of the lexicon into a short statement that keeps or turns its valence.

    "They love cruelty." is as negative as the word, "They hate cruelty." as positive as it is
    negative. Where the word is strong and its part of speech plain, that is a regard label too.
    """
    for pattern, frames in ((_NOUN, _NOUN_FRAMES), (_ADJECTIVE, _ADJECTIVE_FRAMES)):
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
    """Word salad: the words behind the subject in another order."""
    subject, *words = neutralise(example.text).rstrip(".").split()
    rng.shuffle(words)
    return Example(text=" ".join([subject, *words]) + ".", regard="none")


def _loss(logits: Tensor, batch: Sequence[Example]) -> Tensor:
    """Sum the three tasks' losses, each over the rows that have its label, by the batch's size."""
    loss = logits.sum() * 0
    if rows := [i for i, example in enumerate(batch) if example.regard]:
        wanted = torch.tensor([_TARGETS[batch[i].regard or ""] for i in rows])
        loss = loss + functional.cross_entropy(
            logits[rows, :3], wanted, reduction="sum", label_smoothing=0.05
        )
    if rows := [i for i, example in enumerate(batch) if example.toxic is not None]:
        toxic = torch.tensor([float(batch[i].toxic or 0) for i in rows])
        loss = loss + WEIGHT_TOXIC * functional.binary_cross_entropy_with_logits(
            logits[rows, 3], toxic, reduction="sum"
        )
    if rows := [i for i, example in enumerate(batch) if example.valence is not None]:
        valence = torch.tensor([batch[i].valence or 0.0 for i in rows])
        loss = loss + WEIGHT_VALENCE * functional.mse_loss(
            logits[rows, 4], valence, reduction="sum"
        )
    return loss / len(batch)
