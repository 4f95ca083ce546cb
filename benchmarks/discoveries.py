"""How often a first screen shows something about a model that gives no probabilities, if there is
nothing to find, and how much of what is planted it finds: the table of docs/methods/how-well.md.

    python benchmarks/discoveries.py [KIND ...] [--worlds 200] [--seed N]

The model is a function in memory that draws its answers from lists of words; a world is a crawl of
it about six groups, or its choices between them. In `null` worlds the groups are alike, and
whatever is found is false. In `planted` worlds it says of one group in a share of answers what it
seldom says of others, or chooses it more readily for some statements, or declines more often.

- `content`: what is said of one group more often than of the others, by crawls;
- `copies`: the same, for a model that repeats an example of its prompt in two of five answers;
- `tally_choices`: chosen more, of groups with eight names; and of groups with one;
- `tally_links`: attributes of stories;
- `tally_screens`: whole first screens, of small crawls with regard, whose model was made to choose
  and declines a third of the prompts.

Printed for each: in how many worlds a first screen that looks at this alone would show something
that is not planted, with Wilson's interval, which is the Monte Carlo error (of `tally_links`, which
have no such screen: in how many anything false has a verdict); the false-discovery rate of a group,
at which 5% are aimed: the mean, over groups and worlds, of the share of what was found of a group
that is false, with its standard error over worlds; and the share of what is planted that was found.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

import kgbias
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.types import GroupName
from kgbias.methods import choice
from kgbias.methods.choice.ask import draw_offered_groups
from kgbias.methods.choice.result import ChoiceShares
from kgbias.methods.stories.links import find_links
from kgbias.report.findings import build_screen
from kgbias.report.run_data import RunData
from kgbias.stats.inference import proportion

GROUPS = ("Bakers", "Cooks", "Farmers", "Nurses", "Pilots", "Sailors")
PLANTED_GROUP = "Farmers"
OBJECTS = (
    "early mornings",
    "crowded trains",
    "too much food",
    "old neighbours",
    "good advice",
    "long novels",
    "their keys",
    "new shoes",
    "loud music",
    "hard work",
    "quiet evenings",
    "strong coffee",
    "long walks",
    "good company",
    "clear rules",
    "warm weather",
    "honest talk",
    "cheap wine",
    "small dogs",
    "card games",
)
PLANTED_OBJECTS = ("muddy fields", "tall crops", "wide fields", "green crops")
VERBS = ("love", "hate", "want", "prefer", "need", "miss")
_OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)
_STATEMENT = re.compile(r"____ (.+)")
_DECLINES = "I'm sorry, but I can't help with that."


@dataclass
class ScriptedWorld:
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
            return f" {self._choose(prompt, options)}"
        if self.declined and Random(f"{self.seed}/{prompt}").random() < self.declined:
            return _DECLINES
        *examples, last_line = prompt.rstrip().splitlines()
        group = next(name for name in GROUPS if last_line.startswith(name))
        verb = last_line.removeprefix(group).strip()
        if examples and self.draw.random() < self.copied:
            text = self.draw.choice(examples).partition(" ")[2]
            return f" {text.partition(' ')[2] if verb else text}\n"
        is_planted = group == PLANTED_GROUP and self.draw.random() < self.content
        text = self.draw.choice(PLANTED_OBJECTS if is_planted else OBJECTS)
        return f" {text}.\n" if verb else f" {self.draw.choice(VERBS)} {text}.\n"

    def _choose(self, prompt: str, options: Sequence[tuple[str, str]]) -> str:
        (statement,) = _STATEMENT.findall(prompt)
        is_planted = any(thing in statement for thing in PLANTED_OBJECTS)
        weights = [
            self.chosen if is_planted and name == PLANTED_GROUP else 1.0 for _, name in options
        ]
        return self.draw.choices([letter for letter, _ in options], weights)[0]


@dataclass
class DiscoveryTally:
    """What was found over worlds: in each, whether a first screen would show anything false, and
    the false-discovery rate of its groups; and how much of what is planted was found."""

    false_screens: list[bool] = field(default_factory=list)
    false_rates: list[float] = field(default_factory=list)
    true_finds: int = 0
    planted_finds: int = 0

    def add(
        self, finds: Sequence[tuple[str, bool]], *, screen: bool, planted: int = 0, groups: int = 0
    ) -> None:
        """Add a world: the group of each thing that was `finds`, and whether it is planted; whether
        a first screen would show it; how much is `planted`; and of how many `groups`."""
        by_group: dict[str, list[bool]] = {}
        for group, marks in finds:
            by_group.setdefault(group, []).append(marks)
        false = [marks.count(False) / len(marks) for marks in by_group.values()]
        self.false_screens.append(screen and any(false))
        self.false_rates.append(sum(false) / (groups or len(GROUPS)))
        self.true_finds += sum(marks for _, marks in finds)
        self.planted_finds += planted

    def row(self, title: str) -> str:
        worlds = len(self.false_screens)
        share = proportion(sum(self.false_screens), worlds)
        error = np.std(self.false_rates, ddof=1) / np.sqrt(worlds) if worlds > 1 else float("nan")
        finds = f"{self.true_finds} of {self.planted_finds}" if self.planted_finds else "-"
        return (
            f"| {title} | {worlds} | {share.value:.3f} ({share.low:.3f} to {share.high:.3f}) | "
            f"{np.mean(self.false_rates):.3f} ± {error:.3f} | {finds} |"
        )


def crawl_world(study: kgbias.Study, world: ScriptedWorld, **size: int) -> kgbias.Run:
    return study.crawl(
        world.answers,
        model_name=f"world {world.seed}",
        name=f"world-{world.seed}",
        group=list(GROUPS),
        seed=world.seed,
        max_attempts=2,
        **size,
    )


def tally_contents(worlds: int, seed: int, **how: float) -> DiscoveryTally:
    """What is said more of one group, in crawls that were not measured."""
    tally = DiscoveryTally()
    for n in range(worlds):
        with kgbias.open(None, progress=False) as study:
            run = crawl_world(study, ScriptedWorld(seed + n, **how), samples=2, iterations=3)
            data = RunData(run.stored)
            arm = data.plain_arm
            assert arm is not None
            (test,) = arm.content
        planted = bool(how.get("content"))
        finds = [(one.group, planted and _is_planted(one.group, one.feature)) for one in test.found]
        tally.add(_merge_planted(finds), screen=test.p <= 0.05, planted=int(planted))
    return tally


def _merge_planted(finds: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """The same with all that is planted as one."""
    planted = [one for one in finds if one[1]]
    return [one for one in finds if not one[1]] + planted[:1]


def _is_planted(group: str, feature: str) -> bool:
    words = {word for thing in PLANTED_OBJECTS for word in thing.split()}
    return group == PLANTED_GROUP and bool(words & set(feature.split()))


def tally_choices(
    worlds: int, seed: int, *, names: int, times: float = 1.0, spread: float = 0.3
) -> DiscoveryTally:
    """Choices of six groups for forty statements, of which the first group is chosen so many times
    as readily for five. Each name is liked by the model more or less (`spread`, of logarithms), for
    all statements and for each; the model prefers the first place."""
    tally = DiscoveryTally()
    groups, statements, planted, options = len(GROUPS), 40, 5, 4
    for n in range(worlds):
        rng = np.random.default_rng([seed, n])
        likings = rng.normal(0, spread, (groups, names, 1))
        likings = likings + rng.normal(0, spread if names > 1 else 0.0, (groups, names, statements))
        likings[0, :, :planted] += np.log(times)
        chosen_counts, offered_counts = (
            np.zeros((groups * names, statements), dtype=np.int64) for _ in "ab"
        )
        for s in range(statements):
            turn = np.zeros(groups, dtype=np.int64)
            for offered in draw_offered_groups(groups, options, 6, (str(seed), str(n), str(s))):
                offers = [(g, int(turn[g]) % names) for g in offered]
                turn[offered] += 1
                weights = np.exp([likings[g, name, s] for g, name in offers])
                weights[0] *= 1.5
                pick = rng.choice(options, p=weights / weights.sum())
                for place, (g, name) in enumerate(offers):
                    offered_counts[g * names + name, s] += 1
                    chosen_counts[g * names + name, s] += place == pick
        group_names = [
            [GroupName(f"{g}{name}", str(g), "{}s", f"{g}{name}") for name in range(names)]
            for g in range(groups)
        ]
        shares = ChoiceShares.from_counts(
            chosen_counts, offered_counts, group_names if names > 1 else (), seed=n
        )
        finds = [
            (str(g), times > 1 and g == 0 and s < planted)
            for g, s in np.argwhere(np.isin(shares.verdicts, ("chosen more", "of this name")))
        ]
        min_p = float(np.nanmin(shares.p_values)) * groups  # as `build_screen` has it
        tally.add(finds, screen=min_p <= 0.05, planted=planted if times > 1 else 0)
    return tally


def tally_links(worlds: int, seed: int, *, share: float = 0.0) -> DiscoveryTally:
    """Stories of four groups with five wordings each, in eight samples; characters of the first are
    nurses in this share more of the stories."""
    tally = DiscoveryTally()
    values = {a: [f"{a}{n}" for n in range(8)] for a in ("occupation", "home", "traits", "wants")}
    for n in range(worlds):
        draw = Random(f"{seed}/{n}")
        profiles = []
        for g in range(4):
            for w in range(5):
                for k in range(8):
                    story = {a: draw.choice(own) for a, own in values.items()}
                    if g == 0 and draw.random() < share:
                        story["occupation"] = "nurse"
                    parts = tuple(ProfilePart(a, f"{g}{w}{k}{a}", v) for a, v in story.items())
                    labels = {"group": f"g{g}", "category": "c"}
                    profiles.append(
                        Profile("r", f"c/{g}/{w}/{k}", f"{g} {w}", f"g{g}", labels, parts)
                    )
        found_links = find_links(profiles, 8, deals=0).shown_links
        # Of nurses the others are told less often, and of other trades that group.
        own = [(k.group, bool(share) and k.attribute == "occupation") for k in found_links]
        tally.add(_merge_planted(own), screen=True, planted=int(bool(share)), groups=4)
    return tally


def tally_screens(
    worlds: int, seed: int, *, content: float = 0.0, choice_factor: float = 1.0
) -> DiscoveryTally:
    """Whole first screens. All crawls share a store: a statement is scored once."""
    tally, topics = DiscoveryTally(), Counter[str]()
    planted = content > 0
    with kgbias.open(None, progress=False) as study:
        for n in range(worlds):
            world = ScriptedWorld(seed + n, content, declined=1 / 3, chosen=choice_factor)
            run = crawl_world(study, world, samples=2, iterations=2)
            run.measure(axes=False, scorers={"toxicity": None, "identity_attack": None})
            chooser = kgbias.in_memory(world.answers, name=f"world {world.seed}")
            choice.choose(run, chooser, sample=20, samples=12)
            first_findings = build_screen(RunData(run.stored)).findings
            topics.update(f.topic for f in first_findings)
            finds = [(f.said, planted and PLANTED_GROUP in f.said) for f in first_findings]
            tally.add(_merge_planted(finds), screen=True, planted=int(planted))
    print(f"| ({', '.join(f'{k}: {v}' for k, v in topics.items()) or 'nothing'}) | | | | |")
    return tally


Row = tuple[str, Callable[[], DiscoveryTally]]


def list_rows(kinds: Collection[str], worlds: int, seed: int) -> Iterator[Row]:
    if "content" in kinds:
        yield "said more, null", lambda: tally_contents(worlds, seed)
        yield (
            "said more, in 15% of answers",
            lambda: tally_contents(worlds // 4, seed, content=0.15),
        )
        yield "said more, in 30% of answers", lambda: tally_contents(worlds // 4, seed, content=0.3)
    if "copies" in kinds:
        yield "said more, null, copies examples", lambda: tally_contents(worlds, seed, copied=0.4)
    if "choices" in kinds:
        for names, name_text in ((8, "eight names"), (1, "one name")):
            for times in (1.0, 4.0, 16.0):
                title = f"{times:.0f} times as readily" if times > 1 else "null"
                yield (
                    f"chosen more, {name_text}, {title}",
                    lambda names=names, times=times: tally_choices(
                        worlds, seed, names=names, times=times
                    ),
                )
    if "links" in kinds:
        yield "links of stories, null", lambda: tally_links(worlds, seed)
        yield "links of stories, in 30%", lambda: tally_links(worlds, seed, share=0.3)
    if "screens" in kinds:
        yield "first screen, null", lambda: tally_screens(worlds, seed)
        few_worlds = max(2, worlds // 8)
        yield (
            "first screen, in 30% of answers",
            lambda: tally_screens(few_worlds, seed, content=0.3, choice_factor=16.0),
        )


KINDS = ("content", "copies", "choices", "links", "screens")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=KINDS)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| found | worlds | in which something false | false-discovery rate | planted, found |")
    print("|---|---|---|---|---|")
    for title, make_tally in list_rows(arguments.kinds, arguments.worlds, arguments.seed):
        print(make_tally().row(title), flush=True)


if __name__ == "__main__":
    main()
