"""The reference world: what is planted, and the probabilities that follow from it.

A statement is a predicate and an object. A group says a statement of its own (its signature) with
probability `signature_share`; otherwise it draws a topic from its topic shares, a predicate of that
topic (the four initial predicates of the crawl together with probability
`INITIAL_PREDICATES_SHARE`), and one of the predicate's objects in that topic, of which each group
has a favourite. The topic given an initial predicate is therefore distributed as the topic without.

An augmented prompt (Salinas et al. 2023, section 3.3) moves a group's negative share p to
p + shift * (1 - p) and scales the rest.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from kgbias.ids import content_id, normalise
from kgbias.measures import MEASURES

WORLD_FILE = Path(__file__).with_name("world.toml")
INITIAL_PREDICATES = ("love", "hate", "are", "can't")
INITIAL_PREDICATES_SHARE = 0.68
_SIGNATURE_TOPICS = {"wear": "tradition", "grow": "food", "play": "arts"}

Statement = tuple[str, str]  # predicate, object


@dataclass(frozen=True)
class PlantedGroup:
    """A group of the world. `root` is the group whose beliefs it has: for the second of a planted
    null pair, the first. `topics` are its shares without augmentation."""

    name: str
    category: str
    root: str
    given_names: tuple[str, ...]
    topics: Mapping[str, float]
    signature: tuple[Statement, ...]
    descriptors: tuple[str, ...]


@dataclass(frozen=True)
class PlantedCategory:
    """A category of the world. `prefix` begins augmented prompts about its groups."""

    name: str
    singular: str
    plural: str
    prefix: str
    groups: tuple[str, ...]


class Truth:
    """What the world says. Groups are named by their surface form ("Velmari people", "Ostrans")."""

    def __init__(self, text: str) -> None:
        data = tomllib.loads(text)
        self.hash = sha256(text.encode()).hexdigest()[:16]
        self.regard_of: Mapping[str, str] = data["topics"]
        self.planted: Mapping[str, Any] = data["planted"]
        self.refusals: tuple[str, ...] = tuple(data["planted"]["refusals"])
        self._objects: dict[str, dict[str, list[str]]] = data["statements"]
        self.groups: dict[str, PlantedGroup] = {}
        self.categories: list[PlantedCategory] = []
        self.nulls: list[tuple[str, str]] = []
        for name in ("peoples", "faiths"):
            self._read_category(name, data[name])

    def _read_category(self, name: str, table: Mapping[str, Any]) -> None:
        surfaces = {key: entry["surface"] for key, entry in table["groups"].items()}
        for key, entry in table["groups"].items():
            root = entry.get("same_as", key)
            beliefs = table["groups"][root]
            self.groups[surfaces[key]] = PlantedGroup(
                surfaces[key],
                name,
                surfaces[root],
                tuple(entry["given_names"]),
                beliefs["topics"],
                tuple(beliefs["signature"].items()),
                tuple(beliefs["descriptors"]),
            )
            if root != key:
                self.nulls.append((surfaces[root], surfaces[key]))
        self.categories.append(
            PlantedCategory(
                name,
                table["singular"],
                table["plural"],
                table["prefix"],
                tuple(surfaces.values()),
            )
        )

    @cached_property
    def statements(self) -> dict[Statement, str]:
        """Every statement of the world with its topic. If two topics share words (one may hate
        learning or love it), the predicate tells them apart."""
        topic_of = {
            (predicate, object): topic
            for predicate, topics in self._objects.items()
            for topic, objects in topics.items()
            for object in objects
        }
        for group in self.groups.values():
            for predicate, object in group.signature:
                topic_of[predicate, object] = _SIGNATURE_TOPICS[predicate]
        return topic_of

    @cached_property
    def predicates(self) -> tuple[str, ...]:
        return (*self._objects, *_SIGNATURE_TOPICS)

    def joint_distribution(self, group: str, *, augmented: bool = False) -> dict[Statement, float]:
        """P(statement | group), summing to 1, when the group is free to choose the predicate."""
        return self._joint_by_name(group, augmented)

    @cache  # noqa: B019  # one Truth lives as long as the process
    def _joint_by_name(self, name: str, augmented: bool) -> dict[Statement, float]:
        group = self.groups[name]
        signature_share = self.planted["signature_share"]
        shares = {topic: (1 - signature_share) * share for topic, share in group.topics.items()}
        if augmented:
            negative = sum(s for t, s in shares.items() if self.regard_of[t] == "negative")
            shifted = negative + self.planted["negative_shift"] * (1 - negative)
            negative_factor, other_factor = shifted / negative, (1 - shifted) / (1 - negative)
            signature_share *= other_factor
            shares = {
                t: s * (negative_factor if self.regard_of[t] == "negative" else other_factor)
                for t, s in shares.items()
            }
        distribution = {
            statement: signature_share / len(group.signature) for statement in group.signature
        }
        for topic, share in shares.items():
            for predicate, weight in self._predicates_of(topic).items():
                objects = self._objects[predicate][topic]
                favourite = int(content_id("favourite", group.root, predicate, topic), 16)
                weights = [
                    self.planted["favourite_weight"] if n == favourite % len(objects) else 1.0
                    for n in range(len(objects))
                ]
                for object, part in zip(objects, weights, strict=True):
                    distribution[predicate, object] = share * weight * part / sum(weights)
        return distribution

    def _predicates_of(self, topic: str) -> dict[str, float]:
        others = [
            p
            for p, topics in self._objects.items()
            if topic in topics and p not in INITIAL_PREDICATES
        ]
        weights = dict.fromkeys(
            INITIAL_PREDICATES, INITIAL_PREDICATES_SHARE / len(INITIAL_PREDICATES)
        )
        return weights | dict.fromkeys(others, (1 - INITIAL_PREDICATES_SHARE) / len(others))

    def object_distribution(
        self, group: str, predicate: str, *, augmented: bool = False, temperature: float = 1.0
    ) -> dict[str, float]:
        """P(object | group, predicate), summing to 1. A temperature sharpens the distribution at
        each word that tells objects apart, like sampling token by token. The predicate can reach
        into the world's objects ("can't stop"); the object is then what is left of them."""
        distribution = self._joint_by_name(group, augmented)
        start = f"{predicate} "
        texts = {
            f"{own_predicate} {object}": p for (own_predicate, object), p in distribution.items()
        }
        object_shares = {t.removeprefix(start): p for t, p in texts.items() if t.startswith(start)}
        total = sum(object_shares.values())
        if not total:
            return {}
        shares = {o: p / total for o, p in object_shares.items()}
        return shares if temperature == 1 else _temper_by_word(shares, temperature)

    def free_distribution(
        self, group: str, *, augmented: bool = False, temperature: float = 1.0
    ) -> dict[Statement, float]:
        """P(statement | group) when the model names the predicate too, at a temperature."""
        distribution = self._joint_by_name(group, augmented)
        predicates: dict[str, float] = {}
        for (predicate, _), p in distribution.items():
            predicates[predicate] = predicates.get(predicate, 0.0) + p
        tempered = _apply_temperature(predicates, temperature)
        return {
            (predicate, object): share * p
            for predicate, share in tempered.items()
            for object, p in self.object_distribution(
                group, predicate, augmented=augmented, temperature=temperature
            ).items()
        }

    def regard_balance(self, group: str, *, augmented: bool = False) -> float:
        """Positive minus negative share of the group's statements, in [-1, 1]."""
        sign = MEASURES["regard"].signs
        return sum(
            p * sign.get(self.regard_of[self.statements[s]], 0.0)
            for s, p in self._joint_by_name(group, augmented).items()
        )

    def find_statement(self, predicate: str, object: str) -> Statement | None:
        """The statement of the world with these words, in any spelling that normalises to it, and
        wherever they are cut into predicate and object."""
        return self._by_text.get(normalise(f"{predicate} {object}"))

    @cached_property
    def _by_text(self) -> dict[str, Statement]:
        return {normalise(f"{p} {o}"): (p, o) for p, o in self.statements}

    def is_true_of(self, group: str, predicate: str, object: str) -> bool:
        """Whether the group may say this: planted with a probability above 0."""
        statement = self.find_statement(predicate, object)
        return statement is not None and self._joint_by_name(group, False).get(statement, 0.0) > 0


@cache
def load_truth() -> Truth:
    """The truth of the shipped world."""
    return Truth(WORLD_FILE.read_text("utf-8"))


def _apply_temperature(shares: Mapping[Any, float], temperature: float) -> dict[Any, float]:
    powers = {key: share ** (1 / temperature) for key, share in shares.items()}
    total = sum(powers.values())
    return {key: power / total for key, power in powers.items()}


def _temper_by_word(shares: Mapping[str, float], temperature: float) -> dict[str, float]:
    """The shares of texts when each word is drawn at a temperature, given the words before it."""

    def walk(texts: Sequence[tuple[tuple[str, ...], str]], scale: float) -> dict[str, float]:
        branches: dict[str | None, list[tuple[tuple[str, ...], str]]] = {}
        for words, text in texts:
            branches.setdefault(words[0] if words else None, []).append((words[1:], text))
        heated = _apply_temperature(
            {word: sum(shares[t] for _, t in branch) for word, branch in branches.items()},
            temperature,
        )
        tempered: dict[str, float] = {}
        for word, branch in branches.items():
            if word is None:
                tempered[branch[0][1]] = scale * heated[word]
            else:
                tempered |= walk(branch, scale * heated[word])
        return tempered

    return walk([(tuple(text.split()), text) for text in shares], 1.0)
