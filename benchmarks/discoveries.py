"""How often a first screen shows something about a model that gives no probabilities, if there is
nothing to find, and how much of what is planted it finds: the table of docs/methods/how-well.md.

    python benchmarks/discoveries.py [KIND ...] [--worlds 200] [--seed N]

The model is a function in memory that draws its answers from lists of words; a world is a crawl of
it about six groups, or its choices between them. In `null` worlds the groups are alike, and
whatever is found is false. In `planted` worlds it says of one group in a share of answers what it
seldom says of others, or chooses it more readily for some statements, or declines more often.

- `content`: what is said of one group more often than of the others, by crawls;
- `copies`: the same, for a model that repeats an example of its prompt in two of five answers;
- `choices`: chosen more, of groups with eight names; and of groups with one;
- `links`: attributes of stories;
- `screens`: whole first screens, of small crawls with regard, whose model was made to choose and
  declines a third of the prompts.

Printed for each: in how many worlds a first screen that looks at this alone would show something
that is not planted, with Wilson's interval, which is the Monte Carlo error (of `links`, which have
no such screen: in how many anything false has a verdict); the false-discovery rate of a group, at
which 5% are aimed: the mean, over groups and worlds, of the share of what was found of a group that
is false, with its standard error over worlds; and the share of what is planted that was found.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

import kgbias
from kgbias.graph.profiles import ProfilePart, Profile
from kgbias.graph.types import GroupName
from kgbias.probe.choice.ask import order_questions
from kgbias.probe.choice.result import ChoiceShares
from kgbias.report.findings import build_screen
from kgbias.report.run_data import RunData
from kgbias.stats.inference import proportion
from kgbias.stories.links import find_links

GROUPS = ("Bakers", "Cooks", "Farmers", "Nurses", "Pilots", "Sailors")
PLANTED_GROUP = "Farmers"
OBJECTS = (
    "early mornings", "crowded trains", "too much food", "old neighbours", "good advice",
    "long novels", "their keys", "new shoes", "loud music", "hard work", "quiet evenings",
    "strong coffee", "long walks", "good company", "clear rules", "warm weather", "honest talk",
    "cheap wine", "small dogs", "card games",
)  # fmt: skip
PLANTED_OBJECTS = ("muddy fields", "tall crops", "wide fields", "green crops")
VERBS = ("love", "hate", "want", "prefer", "need", "miss")
_OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)
_STATEMENT = re.compile(r"____ (.+)")
_DECLINES = "I'm sorry, but I can't help with that."


@dataclass
class World:
    """A model that says of every group what it says of the others, but for what is planted.

    Attributes:
        content: the share of answers about the planted group that are about its land.
        copied: the share of answers that repeat an example of the prompt.
        declined: the share of prompts that are declined, by a digest of the prompt.
        chosen: how many times as readily the planted group is chosen for what is planted of it.
    """

    seed: int
    content: float = 0.0
    copied: float = 0.0
    declined: float = 0.0
    chosen: float = 1.0
    draw: Random = field(init=False)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)

    def answers(self, prompts: Sequence[str]) -> list[str]:
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt: str) -> str:
        if options := _OPTION.findall(prompt):
            return f" {self._chosen(prompt, options)}"
        if self.declined and Random(f"{self.seed}/{prompt}").random() < self.declined:
            return _DECLINES
        *shown, last = prompt.rstrip().splitlines()
        group = next(name for name in GROUPS if last.startswith(name))
        verb = last.removeprefix(group).strip()
        if shown and self.draw.random() < self.copied:
            said = self.draw.choice(shown).partition(" ")[2]
            return f" {said.partition(' ')[2] if verb else said}\n"
        own = group == PLANTED_GROUP and self.draw.random() < self.content
        said = self.draw.choice(PLANTED_OBJECTS if own else OBJECTS)
        return f" {said}.\n" if verb else f" {self.draw.choice(VERBS)} {said}.\n"

    def _chosen(self, prompt: str, options: Sequence[tuple[str, str]]) -> str:
        (statement,) = _STATEMENT.findall(prompt)
        planted = any(thing in statement for thing in PLANTED_OBJECTS)
        weights = [self.chosen if planted and name == PLANTED_GROUP else 1.0 for _, name in options]
        return self.draw.choices([letter for letter, _ in options], weights)[0]


@dataclass
class Tally:
    """What was found over worlds: in each, whether a first screen would show anything false, and
    the false-discovery rate of its groups; and how much of what is planted was found."""

    shown: list[bool] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    true: int = 0
    planted: int = 0

    def add(
        self, found: Sequence[tuple[str, bool]], *, screen: bool, planted: int = 0, groups: int = 0
    ) -> None:
        """Add a world: the group of each thing that was `found`, and whether it is planted; whether
        a first screen would show it; how much is `planted`; and of how many `groups`."""
        by_group: dict[str, list[bool]] = {}
        for group, own in found:
            by_group.setdefault(group, []).append(own)
        false = [own.count(False) / len(own) for own in by_group.values()]
        self.shown.append(screen and any(false))
        self.rates.append(sum(false) / (groups or len(GROUPS)))
        self.true += sum(own for _, own in found)
        self.planted += planted

    def row(self, what: str) -> str:
        worlds = len(self.shown)
        some = proportion(sum(self.shown), worlds)
        error = np.std(self.rates, ddof=1) / np.sqrt(worlds) if worlds > 1 else float("nan")
        found = f"{self.true} of {self.planted}" if self.planted else "-"
        return (
            f"| {what} | {worlds} | {some.value:.3f} ({some.low:.3f} to {some.high:.3f}) | "
            f"{np.mean(self.rates):.3f} ± {error:.3f} | {found} |"
        )


def crawled(study: kgbias.Study, world: World, **size: int) -> kgbias.Run:
    return study.crawl(
        world.answers, called=f"world {world.seed}", name=f"world-{world.seed}",
        group=list(GROUPS), seed=world.seed, max_attempts=2, **size,
    )  # fmt: skip


def contents(worlds: int, seed: int, **how: float) -> Tally:
    """What is said more of one group, in crawls that were not measured."""
    tally = Tally()
    for n in range(worlds):
        with kgbias.open(None, progress=False) as study:
            run = crawled(study, World(seed + n, **how), samples=2, iterations=3)
            data = RunData(run.stored)
            arm = data.plain_arm
            assert arm is not None
            (test,) = arm.content
        planted = bool(how.get("content"))
        found = [(one.group, planted and _is_planted(one.group, one.feature)) for one in test.found]
        tally.add(_once(found), screen=test.p <= 0.05, planted=int(planted))
    return tally


def _once(found: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """The same with all that is planted as one."""
    planted = [one for one in found if one[1]]
    return [one for one in found if not one[1]] + planted[:1]


def _is_planted(group: str, feature: str) -> bool:
    words = {word for thing in PLANTED_OBJECTS for word in thing.split()}
    return group == PLANTED_GROUP and bool(words & set(feature.split()))


def choices(
    worlds: int, seed: int, *, names: int, times: float = 1.0, spread: float = 0.3
) -> Tally:
    """Choices of six groups for forty statements, of which the first group is chosen so many times
    as readily for five. Each name is liked by the model more or less (`spread`, of logarithms), for
    all statements and for each; the model prefers the first place."""
    tally = Tally()
    groups, statements, planted, options = len(GROUPS), 40, 5, 4
    for n in range(worlds):
        rng = np.random.default_rng([seed, n])
        liked = rng.normal(0, spread, (groups, names, 1))
        liked = liked + rng.normal(0, spread if names > 1 else 0.0, (groups, names, statements))
        liked[0, :, :planted] += np.log(times)
        chosen, answered = (np.zeros((groups * names, statements), dtype=np.int64) for _ in "ab")
        for s in range(statements):
            turn = np.zeros(groups, dtype=np.int64)
            for offered in order_questions(groups, options, 6, (str(seed), str(n), str(s))):
                own = [(g, int(turn[g]) % names) for g in offered]
                turn[offered] += 1
                weights = np.exp([liked[g, name, s] for g, name in own])
                weights[0] *= 1.5
                picked = rng.choice(options, p=weights / weights.sum())
                for place, (g, name) in enumerate(own):
                    answered[g * names + name, s] += 1
                    chosen[g * names + name, s] += place == picked
        called = [
            [GroupName(f"{g}{name}", str(g), "{}s", f"{g}{name}") for name in range(names)]
            for g in range(groups)
        ]
        shares = ChoiceShares.from_counts(chosen, answered, called if names > 1 else (), seed=n)
        found = [
            (str(g), times > 1 and g == 0 and s < planted)
            for g, s in np.argwhere(np.isin(shares.verdicts, ("chosen more", "of this name")))
        ]
        least = float(np.nanmin(shares.p_values)) * groups  # as `build_screen` has it
        tally.add(found, screen=least <= 0.05, planted=planted if times > 1 else 0)
    return tally


def links(worlds: int, seed: int, *, share: float = 0.0) -> Tally:
    """Stories of four groups with five wordings each, in eight samples; characters of the first are
    nurses in this share more of the stories."""
    tally = Tally()
    values = {a: [f"{a}{n}" for n in range(8)] for a in ("occupation", "home", "traits", "wants")}
    for n in range(worlds):
        draw = Random(f"{seed}/{n}")
        told = []
        for g in range(4):
            for w in range(5):
                for k in range(8):
                    said = {a: draw.choice(own) for a, own in values.items()}
                    if g == 0 and draw.random() < share:
                        said["occupation"] = "nurse"
                    parts = tuple(ProfilePart(a, f"{g}{w}{k}{a}", v) for a, v in said.items())
                    labels = {"group": f"g{g}", "category": "c"}
                    told.append(Profile("r", f"c/{g}/{w}/{k}", f"{g} {w}", f"g{g}", labels, parts))
        found = find_links(told, 8, deals=0).shown_links
        # Of nurses the others are told less often, and of other trades that group.
        own = [(k.group, bool(share) and k.attribute == "occupation") for k in found]
        tally.add(_once(own), screen=True, planted=int(bool(share)), groups=4)
    return tally


def screens(worlds: int, seed: int, *, content: float = 0.0, chosen: float = 1.0) -> Tally:
    """Whole first screens. All crawls share a store: a statement is scored once."""
    tally, topics = Tally(), Counter[str]()
    planted = content > 0
    with kgbias.open(None, progress=False) as study:
        for n in range(worlds):
            world = World(seed + n, content, declined=1 / 3, chosen=chosen)
            run = crawled(study, world, samples=2, iterations=2)
            run.measure(axes=False, scorers={"toxicity": None, "identity_attack": None})
            asked = kgbias.in_memory(world.answers, name=f"world {world.seed}")
            run.choose(asked, sample=20, samples=12)
            found = build_screen(RunData(run.stored)).findings
            topics.update(f.topic for f in found)
            own = [(f.said, planted and PLANTED_GROUP in f.said) for f in found]
            tally.add(_once(own), screen=True, planted=int(planted))
    print(f"| ({', '.join(f'{k}: {v}' for k, v in topics.items()) or 'nothing'}) | | | | |")
    return tally


Row = tuple[str, Callable[[], Tally]]


def rows(kinds: Collection[str], worlds: int, seed: int) -> Iterator[Row]:
    if "content" in kinds:
        yield "said more, null", lambda: contents(worlds, seed)
        yield "said more, in 15% of answers", lambda: contents(worlds // 4, seed, content=0.15)
        yield "said more, in 30% of answers", lambda: contents(worlds // 4, seed, content=0.3)
    if "copies" in kinds:
        yield "said more, null, copies examples", lambda: contents(worlds, seed, copied=0.4)
    if "choices" in kinds:
        for names, of in ((8, "eight names"), (1, "one name")):
            for times in (1.0, 4.0, 16.0):
                what = f"{times:.0f} times as readily" if times > 1 else "null"
                yield (
                    f"chosen more, {of}, {what}",
                    lambda names=names, times=times: choices(
                        worlds, seed, names=names, times=times
                    ),
                )
    if "links" in kinds:
        yield "links of stories, null", lambda: links(worlds, seed)
        yield "links of stories, in 30%", lambda: links(worlds, seed, share=0.3)
    if "screens" in kinds:
        yield "first screen, null", lambda: screens(worlds, seed)
        few = max(2, worlds // 8)
        yield (
            "first screen, in 30% of answers",
            lambda: screens(few, seed, content=0.3, chosen=16.0),
        )


KINDS = ("content", "copies", "choices", "links", "screens")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=KINDS)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("| found | worlds | in which something false | false-discovery rate | planted, found |")
    print("|---|---|---|---|---|")
    for what, made in rows(asked.kinds, asked.worlds, asked.seed):
        print(made().row(what), flush=True)


if __name__ == "__main__":
    main()
