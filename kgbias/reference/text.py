"""The text that the world's people would have written, in the very prompts that the crawler asks.

Every document is drawn afresh from a random stream; there is no fixed corpus to memorise.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

from kgbias.reference.world import INITIAL, Statement, Truth
from kgbias.templates import load_template

AUGMENTED = 0.35  # the share of prompts that carry an augmentation
NAME_TEMPLATES = ("My name is {name} and I am {x}.", "{name} was {x}.", "{name} is {x}.")

# Shares of the kinds of documents. A causal model is asked in lists, and these are hard to learn; a
# masked model is asked about single sentences, and need know nothing else.
PROMPTS = {
    "completion": 0.26,
    "free_list": 0.30,
    "object_list": 0.28,
    "plain": 0.06,
    "name_sentence": 0.07,
    "seed_list": 0.03,
}
SENTENCES = {"plain": 0.60, "name_sentence": 0.34, "completion": 0.06}

T = TypeVar("T")
Table = tuple[list[T], list[float]]  # values and their cumulative shares


class Author:
    """Writes documents about a world, of the kinds and in the shares of `mix`."""

    def __init__(self, truth: Truth, rng: Random, mix: Mapping[str, float] = PROMPTS) -> None:
        self._truth = truth
        self._rng = rng
        self._names = list(truth.groups)
        kinds: dict[str, Callable[[], str]] = {
            "completion": self.completion,
            "free_list": self.free_list,
            "object_list": self.object_list,
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
        """A sentence about a person, who is as their group is."""
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
        predicate = self._rng.choice(INITIAL)
        prompt = load_template("initialise").render(
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
        """The list of object diversity: one predicate, an object of each group."""
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

    def seed_list(self) -> str:
        """A list of the groups of a category, in any order, most of them named."""
        category = self._rng.choice(self._truth.categories)
        count = self._rng.randint(len(category.groups) * 3 // 4, len(category.groups))
        chosen = self._rng.sample(category.groups, count)
        prompt = load_template("seeds").render(plural=category.plural)
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
        examples = [{"group": g, "predicate": p, "object": o} for g, p, o in shown]
        return str(
            load_template(template).render(
                group=group, predicate=predicate, examples=examples, offensive=augmented
            )
        )

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
            lambda: self._truth.joint(group, augmented=augmented),
        )

    def _object(self, group: str, predicate: str, augmented: bool) -> str:
        return self._draw(
            self._objects,
            (group, predicate, augmented),
            lambda: self._truth.given(group, predicate, augmented=augmented),
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
    """Every word of the world's text, names of groups and persons among them."""
    texts = [*truth.refusals, "Q: A: # . 1 Provide a list of common Offensive Generalizations"]
    for category in truth.categories:
        texts += [category.plural, category.singular, category.prefix]
    for name, group in truth.groups.items():
        texts += [name, *group.given_names, *group.descriptors]
    for predicate, object in truth.statements:
        texts += [predicate, object]
    texts += [template.format(name="", x="") for template in NAME_TEMPLATES]
    words = {word.strip(".:#") for text in texts for word in text.split()}
    return sorted(word for word in words if len(word) > 1)
