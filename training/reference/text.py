"""The text that the world's people would have written, in the same prompts that the crawler uses:
those of both packs, lists of questions and answers, and sentences; and the tokens it is read as.

Every document is drawn afresh from a random stream; there is no fixed corpus to memorise. The
tokenizer is a unigram model with byte fallback: a word of the world is one token, anything else is
bytes. Every name of a group or person is a separate token, with and without a space before it, so
no part of a name can leak from one group to another.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any, TypeVar

from kgbias.packs import PUBLISHED, Example, Pack, load_pack
from kgbias.reference.world import INITIAL_PREDICATES, Statement, Truth

BOS, EOS, PAD, MASK = "<s>", "</s>", "<pad>", "<mask>"
_SPACE = "▁"


def build_tokenizer(words: Sequence[str], *, masked: bool) -> Any:
    """A PreTrainedTokenizerFast over these words, single characters and bytes. The causal one puts
    BOS before a text; the masked one puts BOS and EOS around it, as BERT does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = [PAD, BOS, EOS, MASK, "<unk>"]
    characters = [chr(code) for code in range(33, 127)]
    vocabulary = [(token, 0.0) for token in special]
    vocabulary += [(f"<0x{byte:02X}>", -30.0) for byte in range(256)]
    vocabulary += [(token, -10.0) for token in (_SPACE, "\n", *characters)]
    vocabulary += [(_SPACE + character, -10.5) for character in characters]
    # A whole word costs less than any way to spell it.
    vocabulary += [(start + word, -1.0) for word in words for start in ("", _SPACE)]
    inner = Tokenizer(models.Unigram(vocabulary, special.index("<unk>"), byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="never", split=False)
    inner.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    ids = [(BOS, special.index(BOS)), (EOS, special.index(EOS))]
    single = f"{BOS} $A {EOS}" if masked else f"{BOS} $A"
    inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        **({"mask_token": MASK, "cls_token": BOS, "sep_token": EOS} if masked else {}),
    )


AUGMENTED = 0.35  # the share of prompts that carry an augmentation
NAME_TEMPLATES = ("My name is {name} and I am {x}.", "{name} was {x}.", "{name} is {x}.")

# Shares of the kinds of documents. A causal model is asked in lists, and these are hard to learn; a
# masked model is asked about single sentences, and need know nothing else.
PROMPTS = {
    "completion": 0.15,
    "free_list": 0.19,
    "object_list": 0.17,
    "first_sentence": 0.12,
    "free_sentence": 0.13,
    "object_sentence": 0.11,
    "plain": 0.05,
    "name_sentence": 0.06,
    "seed_list": 0.02,
}
SENTENCES = {"plain": 0.60, "name_sentence": 0.34, "completion": 0.06}
LONGER = 0.2  # the share of prompts whose predicate has more words than the world's, as readers cut

T = TypeVar("T")
Table = tuple[list[T], list[float]]  # values and their cumulative shares


class Author:
    """Writes documents about a world, of the kinds in `mix`, in its shares."""

    def __init__(self, truth: Truth, rng: Random, mix: Mapping[str, float] = PROMPTS) -> None:
        self._truth = truth
        self._rng = rng
        self._names = list(truth.groups)
        self._lists, self._sentences = load_pack(PUBLISHED), load_pack("sentences")
        kinds: dict[str, Callable[[], str]] = {
            "completion": self.completion,
            "free_list": self.free_list,
            "object_list": self.object_list,
            "first_sentence": self.first_sentence,
            "free_sentence": self.free_sentence,
            "object_sentence": self.object_sentence,
            "plain": self.plain,
            "name_sentence": self.name_sentence,
            "seed_list": self.seed_list,
        }
        self._kinds = [kinds[name] for name in mix]
        self._weights = list(mix.values())
        self._statements: dict[Hashable, Table[Statement]] = {}
        self._objects: dict[Hashable, Table[str]] = {}

    def document(self) -> str:
        """One document of any kind."""
        return self._rng.choices(self._kinds, self._weights)[0]()

    def plain(self) -> str:
        """A plain sentence."""
        group = self._rng.choice(self._names)
        predicate, object = self._statement(group, False)
        return f"{group} {predicate} {object}.\n"

    def name_sentence(self) -> str:
        """A sentence about a person, who is like their group."""
        group = self._truth.groups[self._rng.choice(self._names)]
        name = self._rng.choice(group.given_names)
        if self._rng.random() < self._truth.planted["descriptor_share"]:
            x = self._rng.choice(group.descriptors)
        else:
            evaluative = ("warmth", "competence", "coldness", "incompetence")
            while True:
                x = self._object(group.name, "are", False)
                if self._truth.statements["are", x] in evaluative:
                    break
        return self._rng.choice(NAME_TEMPLATES).format(name=name, x=x) + "\n"

    def completion(self) -> str:
        """The initialisation template, with or without the prefix, and its completion."""
        group = self._rng.choice(self._names)
        augmented = self._rng.random() < AUGMENTED
        category = next(c for c in self._truth.categories if group in c.groups)
        predicate = self._rng.choice(INITIAL_PREDICATES)
        prompt = self._lists.template("initialise").render(
            group=group, predicate=predicate, prefix=category.prefix if augmented else ""
        )
        if refusal := self._refusal():
            return f"{prompt} {refusal}\n"
        if self._malformed():
            return f"{prompt}\n"
        return f"{prompt} {self._object(group, predicate, augmented)}.\n"

    def free_list(self) -> str:
        """The list of predicate diversity: each entry names its own predicate."""
        augmented = self._rng.random() < AUGMENTED
        *examples, last = self._groups()
        shown = [(group, *self._statement(group, augmented)) for group in examples]
        prompt = self._list("predicate", shown, last, augmented)
        if refusal := self._refusal():
            return f"{prompt} {refusal}\n"
        predicate, object = self._statement(last, augmented)
        if self._malformed():
            return f"{prompt} {predicate}\n"
        return f"{prompt} {predicate}\nA: {object}\n"

    def object_list(self) -> str:
        """The list of object diversity: one predicate, with an object for each group."""
        augmented = self._rng.random() < AUGMENTED
        predicate = self._rng.choice(self._truth.predicates)
        *examples, last = self._groups()
        shown = [(g, predicate, self._object(g, predicate, augmented)) for g in examples]
        prompt = self._list("object", shown, last, augmented, predicate)
        if refusal := self._refusal():
            return f"{prompt} {refusal}\n"
        if self._malformed():
            return f"{prompt}\n"
        return f"{prompt} {self._object(last, predicate, augmented)}\n"

    def first_sentence(self) -> str:
        """The initialisation among sentences about everyday groups, with or without the prefix."""
        group = self._rng.choice(self._names)
        augmented = self._rng.random() < AUGMENTED
        category = next(c for c in self._truth.categories if group in c.groups)
        predicate = self._rng.choice(INITIAL_PREDICATES)
        prompt = self._prompt(
            self._sentences,
            "initialise",
            group=group,
            predicate=predicate,
            prefix=category.prefix if augmented else "",
            examples=self._sentences.opening_examples(predicate, self._rng),
        )
        return self._answered(prompt, lambda: self._object(group, predicate, augmented))

    def free_sentence(self) -> str:
        """Predicate diversity among sentences: the last one is free."""
        augmented = self._rng.random() < AUGMENTED
        *others, last = self._groups()
        shown = [Example(group, *self._statement(group, augmented), "") for group in others]
        prompt = self._prompt(
            self._sentences,
            "predicate",
            group=last,
            offensive=augmented,
            examples=self._sentences.mix_examples(shown, self._rng),
        )
        return self._answered(prompt, lambda: " ".join(self._statement(last, augmented)))

    def object_sentence(self) -> str:
        """Object diversity among sentences: those from the graph begin alike."""
        augmented = self._rng.random() < AUGMENTED
        *others, last = self._groups()
        predicate = self._rng.choice(self._truth.predicates)
        if self._rng.random() < LONGER:
            said, object = self._statement(last, augmented)
            words = object.split()
            predicate = " ".join((said, *words[: self._rng.randrange(len(words))]))
        shown = [
            Example(group, predicate, self._object(group, predicate, augmented), "")
            for group in others
            if self._truth.object_distribution(group, predicate, augmented=augmented)
        ]
        prompt = self._prompt(
            self._sentences,
            "object",
            group=last,
            predicate=predicate,
            offensive=augmented,
            examples=self._sentences.mix_examples(shown, self._rng),
        )
        return self._answered(prompt, lambda: self._object(last, predicate, augmented))

    def _answered(self, prompt: str, rest: Callable[[], str]) -> str:
        """The prompt with the rest of its last sentence, or with a refusal, or with nothing."""
        if refusal := self._refusal():
            return f"{prompt} {refusal}\n"
        return f"{prompt}\n" if self._malformed() else f"{prompt} {rest()}.\n"

    def seed_list(self) -> str:
        """A list of most of a category's groups, in any order."""
        category = self._rng.choice(self._truth.categories)
        count = self._rng.randint(len(category.groups) * 3 // 4, len(category.groups))
        chosen = self._rng.sample(category.groups, count)
        prompt = self._lists.template("seeds").render(plural=category.plural)
        lines = [f"{n}. {group}" for n, group in enumerate(chosen, 1)]
        return str(prompt) + "\n".join(lines)[2:] + "\n"

    def _list(
        self,
        template: str,
        shown: Sequence[tuple[str, str, str]],
        group: str,
        augmented: bool,
        predicate: str = "",
    ) -> str:
        return self._prompt(
            self._lists,
            template,
            examples=[Example(*said, "") for said in shown],
            group=group,
            predicate=predicate,
            offensive=augmented,
        )

    def _prompt(self, pack: Pack, name: str, **values: Any) -> str:
        """A prompt of the pack, in one of its wordings."""
        template = pack.template(name)
        wording = self._rng.randrange(max(1, len(template.wordings)))
        return str(template.render(wording=wording, **values))

    def _groups(self) -> list[str]:
        """Two to four groups of one category: the last is asked about."""
        category = self._rng.choices(self._truth.categories, [3, 1])[0]
        return self._rng.sample(category.groups, self._rng.choice((2, 3, 3, 4, 4, 4)))

    def _refusal(self) -> str:
        refused = self._rng.random() < self._truth.planted["refusal_share"]
        return self._rng.choice(self._truth.refusals) if refused else ""

    def _malformed(self) -> bool:
        share: float = self._truth.planted["malformed_share"]
        return self._rng.random() < share

    def _statement(self, group: str, augmented: bool) -> Statement:
        return self._draw(
            self._statements,
            (group, augmented),
            lambda: self._truth.joint_distribution(group, augmented=augmented),
        )

    def _object(self, group: str, predicate: str, augmented: bool) -> str:
        return self._draw(
            self._objects,
            (group, predicate, augmented),
            lambda: self._truth.object_distribution(group, predicate, augmented=augmented),
        )

    def _draw(
        self, tables: dict[Hashable, Table[T]], key: Hashable, shares: Callable[[], dict[T, float]]
    ) -> T:
        if key not in tables:
            found = shares()
            tables[key] = (list(found), list(accumulate(found.values())))
        values, cumulative = tables[key]
        return self._rng.choices(values, cum_weights=cumulative)[0]


def vocabulary(truth: Truth) -> list[str]:
    """Every word of the world's text, including names of groups and persons."""
    texts = [*truth.refusals, "Q: A: # . 1 Provide a list of common Offensive Generalizations"]
    pack = load_pack("sentences")
    texts += [sentence.sentence for sentence in pack.pool.sentences]
    texts += [header for t in pack.templates.values() for header in t.wordings]
    for category in truth.categories:
        texts += [category.plural, category.singular, category.prefix]
    for name, group in truth.groups.items():
        texts += [name, *group.given_names, *group.descriptors]
    for predicate, object in truth.statements:
        texts += [predicate, object]
    texts += [template.format(name="", x="") for template in NAME_TEMPLATES]
    words = {word.strip(".:#") for text in texts for word in text.split()}
    return sorted(word for word in words if len(word) > 1)


def truth_text(truth: Truth) -> str:
    """The truth that ships beside the weights: everything that the world file implies."""
    facts = {
        "world": truth.hash,
        "regard_of_topics": dict(truth.regard_of),
        "nulls": [list(pair) for pair in truth.nulls],
        "groups": {
            name: {
                "category": group.category,
                "given_names": list(group.given_names),
                "descriptors": list(group.descriptors),
                "regard_balance": round(truth.regard_balance(name), 6),
                "regard_balance_augmented": round(truth.regard_balance(name, augmented=True), 6),
                "statements": [
                    [predicate, object, truth.statements[predicate, object], round(p, 8)]
                    for (predicate, object), p in sorted(truth.joint_distribution(name).items())
                ],
            }
            for name, group in truth.groups.items()
        },
    }
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
