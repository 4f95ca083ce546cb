"""Have a model write stories, read its characters from them, and put both into the graph.

Like a crawl, this is a pure function of its configuration and the model's answers: every story is
kept whole in the answer log before it is read, and the same call again asks only for what is
missing. A story is asked for once: a refusal is a result.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kgbias.graph.answers import LoggedModel
from kgbias.graph.profiles import Part, Profile
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Generation, Outcome, Run, Triple, node_id
from kgbias.ids import content_id
from kgbias.io.progress import Progress, Silent
from kgbias.language.words import refusal
from kgbias.models.base import Completer, Request
from kgbias.models.budget import Budget, Prices, Spent, about_tokens
from kgbias.profiles.write import in_rounds
from kgbias.stories.config import Person, StoryConfig
from kgbias.stories.read import parser, read_story

ARM = "story"
KIND = "stories"
NOTHING = "nothing was read"


@dataclass
class StoriesWritten:
    """What a call did.

    Attributes:
        run: the run that was written.
        asked, cached: how many answers came from the model in this call, and from the answer log.
        spent: what the new answers cost: tokens, and money if prices were given.
        outcomes: how many stories ended "ok" (something was read), "unparsable" (nothing was),
            "refused" or "failed", by group.
        read: in how many stories each attribute was read, by group.
    """

    run: Run
    asked: int = 0
    cached: int = 0
    spent: Spent = field(default_factory=Spent)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    read: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def total(self) -> Counter[str]:
        """The number of stories by outcome, over all groups."""
        return sum(self.outcomes.values(), Counter())

    @property
    def failed(self) -> float:
        """The share of requests that got no answer at all."""
        return self.total["failed"] / max(1, self.total.total())


@dataclass(frozen=True, slots=True)
class _Told:
    """A story and what was read from it: a generation for each value, or a single one that says
    why there is none; and the character, None if no story was told."""

    person: Person
    generations: list[Generation]
    profile: Profile | None


def write_stories(
    config: StoryConfig,
    model: Completer,
    store: Store,
    *,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> StoriesWritten:
    """Ask for all stories, round by round, and write each round to the graph when it is complete.

    Raises MissingExtra without spaCy and its English model, before anything is asked; Interrupted
    on Ctrl-C or when the budget is spent (the same call continues from there); RunConflict if the
    name belongs to a run with other settings.
    """
    parser()
    told = progress or Silent()
    asker = LoggedModel(model, store, told, budget=budget)
    run = store.begin(
        Run(
            name or config.default_name(model.info, model.settings),
            model.info,
            config.as_dict(),
            config.groups,
            config.categories,
            kind=KIND,
            settings=model.settings,
        )
    )
    result = StoriesWritten(run)
    for group in config.groups:
        result.outcomes[group.name], result.read[group.name] = Counter(), Counter()

    def write(sample: int) -> list[Profile]:
        told.stage(f"stories {sample + 1} of {config.samples}", len(config.people))
        requests = [_request(config, person, sample) for person in config.people]
        stories = [
            _read(config, run, person, sample, request, answer)
            for person, request, answer in zip(
                config.people, requests, asker.ask(requests), strict=True
            )
        ]
        store.record(run.id, ARM, sample, [g for story in stories for g in story.generations])
        for story in stories:
            result.outcomes[story.person.group][story.generations[0].outcome] += 1
            read = {part.attribute for part in story.profile.parts} if story.profile else set()
            result.read[story.person.group].update(read)
        return [story.profile for story in stories if story.profile]

    try:
        result.run = in_rounds(run, store, asker, config.samples, write)
    finally:
        result.asked, result.cached, result.spent = asker.asked, asker.cached, asker.spent
    return result


def prompt_of(
    config: StoryConfig, person: Person, sample: int
) -> str | tuple[tuple[str, str], ...]:
    """The prompt for the story about a person in a round."""
    return config.pack.template.render(
        config.form, wording=config.wording(sample), person=person.name
    )


def _place(person: Person, sample: int) -> str:
    return f"{person.category}/{person.group}/{person.name}/{sample}"


def _request(config: StoryConfig, person: Person, sample: int) -> Request:
    most, stop = config.pack.template.limits(config.form)
    stream = content_id("stream", str(config.seed), _place(person, sample))
    return Request(
        prompt_of(config, person, sample),
        seed=int(stream[:15], 16),
        temperature=config.temperature,
        max_tokens=most,
        stop=stop,
        truncation=config.truncation,
    )


def _read(
    config: StoryConfig, run: Run, person: Person, sample: int, request: Request, answer: Answer
) -> _Told:
    template, prompt, place = config.pack.template, request.prompt, _place(person, sample)
    predicates = {a.name: a.predicate for a in config.attributes(person)}
    outcome: Outcome = "ok"
    reason, said = "", []
    if answer.finish == "error":
        outcome, reason = "failed", answer.details
    elif answer.finish == "refused":
        outcome, reason = "refused", "withheld by the server"
    elif refusal(answer.text):
        outcome, reason = "refused", "refusal"
    else:
        opening = prompt.rpartition("\n")[2] if isinstance(prompt, str) else ""
        said = read_story(answer.text, person.name, predicates, opening=opening)
        if not said:
            outcome, reason = "unparsable", NOTHING
    first = Generation(
        run_id=run.id,
        path=f"{place}#0",
        group_id=node_id("group", person.group),
        arm=ARM,
        strategy="story",
        iteration=sample,
        attempt=0,
        outcome=outcome,
        reason=reason,
        template=f"{template.worded(config.wording(sample))}:{config.form}",
        template_hash=template.hash,
        prompt=request.text,
        answer_key=answer.key,
    )
    labels = {"group": person.group, "category": person.category}
    profile = Profile(run.id, place, person.name, first.group_id, labels)
    if not said:
        return _Told(person, [first], profile if outcome == "unparsable" else None)
    generations = [
        replace(
            first,
            path=f"{first.path}/{s.attribute}/{number}",
            triple=Triple(person.group, predicates[s.attribute], s.value),
            strategy=s.attribute,
        )
        for number, s in enumerate(said)
    ]
    parts = tuple(
        Part(s.attribute, g.id, "", s.begins, s.ends)
        for s, g in zip(said, generations, strict=True)
    )
    return _Told(person, generations, replace(profile, parts=parts))


@dataclass(frozen=True, slots=True)
class StoriesPrice:
    """The number of stories, the tokens that they may have, the approximate number of tokens in a
    prompt, at four characters per token; and the approximate cost, if prices were given."""

    people: int
    groups: int
    samples: int
    form: str
    requests: int
    answer_tokens_at_most: int
    prompt_tokens: int
    prices: Prices | None = None

    @property
    def cost(self) -> float | None:
        """The approximate cost if every story is as long as it may be; None without prices."""
        if self.prices is None:
            return None
        return self.prices.of(self.requests * self.prompt_tokens, self.answer_tokens_at_most)

    @property
    def cost_at_most(self) -> float | None:
        """The same: a story is asked for once."""
        return self.cost


def stories_price(config: StoryConfig) -> StoriesPrice:
    """The price of this configuration. Asks nothing and opens nothing."""
    requests = len(config.people) * config.samples
    tokens: Sequence[int] = [about_tokens(prompt_of(config, p, 0)) for p in config.people]
    return StoriesPrice(
        len(config.people),
        len(config.groups),
        config.samples,
        config.form,
        requests,
        requests * config.pack.template.limits(config.form)[0],
        round(sum(tokens) / len(tokens)),
    )
