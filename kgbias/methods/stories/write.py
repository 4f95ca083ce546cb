"""Have a model write stories, read the characters in them, and put both into the graph.

Like a crawl, this is a pure function of its configuration and the model's answers: every story is
kept whole in the answer log before it is read, and the same call again asks only for what is
missing. A story is asked for once: a refusal is a result. If a model reads the stories, each that
was told is followed by a request to read it, kept in the same way; a story that it does not read
has no character, because nothing is known of it.

Every story that was told and read has a profile, even if nothing was found in it: it counts among
the stories that do not say something.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kgbias.graph.answers import LoggedModel
from kgbias.graph.generation_run import CostEstimate, GenerationSummary, Person, classify_answer
from kgbias.graph.profiles import READING_STRATEGY, Profile, ProfilePart, describe_reader
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import Answer, Generation, Outcome, Run, Triple, node_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.methods.stories.config import RULE_READER_VERSION, RULES, StoryConfig
from kgbias.methods.stories.model_reader import Reading, read_reading, reading_request
from kgbias.methods.stories.rule_reader import StoryClaim, load_parser, read_story
from kgbias.models.base import Completer, Request
from kgbias.models.budget import Budget, estimate_tokens

ARM = "story"
NOTHING_READ = "nothing was read"
MAX_REASON_CHARS = 500


@dataclass(repr=False)
class StoriesSummary(GenerationSummary):
    """What a call did. `outcomes` has stories: "ok" if something was read, "unparsable" if nothing
    was, or a reader that is a model did not read it; `read_counts`, in how many stories each
    attribute was read, and `invented_counts`, how many values such a reader gave that the story
    does not have, by group. `reader` is what read them; `readings` has the outcomes of requests to
    read, by a model."""

    reader: str = RULE_READER_VERSION
    read_counts: dict[str, Counter[str]] = field(default_factory=dict)
    invented_counts: Counter[str] = field(default_factory=Counter)
    readings: Counter[str] = field(default_factory=Counter)

    def other_counts(self, group: str | None = None) -> dict[str, Any]:
        if group is None:
            return {"reader": self.reader, "readings": dict(self.readings)}
        return {"read": dict(self.read_counts[group]), "invented": self.invented_counts[group]}


@dataclass(frozen=True, slots=True)
class _Story:
    """A story that was asked for: its place, prompt and answer, and how it ended."""

    person: Person
    sample: int
    request: Request
    answer: Answer
    outcome: Outcome
    reason: str

    @property
    def place(self) -> str:
        return f"{self.person.category}/{self.person.group}/{self.person.name}/{self.sample}"

    @property
    def opening(self) -> str:
        """The beginning of the story, if the prompt gave it."""
        prompt = self.request.prompt
        return prompt.rpartition("\n")[2] if isinstance(prompt, str) else ""


@dataclass(frozen=True, slots=True)
class _ReadStory:
    """A story and what was read from it: a generation for each value, or a single one that says
    why there is none, and that of a request to read it; and the character, None if no story was
    told or it was not read."""

    person: Person
    generations: list[Generation]
    profile: Profile | None


class _ModelReading(NamedTuple):
    """What a model read from a story, and the generation that keeps what it was asked."""

    reading: Reading
    generation: Generation


class StoryCharacter(NamedTuple):
    """The main character of a story, the generation that asked for the story, and its text."""

    profile: Profile
    generation: Generation
    text: str


def write_stories(
    config: StoryConfig,
    model: Completer,
    store: Store,
    *,
    reader: Completer | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> StoriesSummary:
    """Ask for all stories, round by round, and write each round to the graph when it is complete.
    `reader` is the model that reads them, if the configuration names another than `model`.

    Raises MissingExtra without spaCy and its English model, before anything is asked; Interrupted
    on Ctrl-C or when the budget is spent (the same call continues from there); RunConflict if the
    name belongs to a run with other settings.
    """
    load_parser()  # so that a missing model stops the call before anything is paid for
    reporter, budget = progress or SilentProgress(), budget or Budget()
    asker = LoggedModel(model, store, reporter, budget=budget)
    reading = None
    if config.reader != RULES:
        reading_model = reader or model
        reading = LoggedModel(reader, store, reporter, budget=budget) if reader else asker
        config = replace(
            config,
            read_by=(
                reading_model.info.public_name,
                reading_model.info.configured_id(reading_model.settings),
            ),
        )
    run = config.begin(store, model, name)
    result = StoriesSummary(run, reader=describe_reader(run.config))
    for group in config.groups:
        result.outcomes[group.name], result.read_counts[group.name] = Counter(), Counter()

    profiles = list[Profile]()

    def write(sample: int) -> int:
        reporter.stage(f"stories {sample + 1} of {config.samples}", len(config.people))
        requests = [_story_request(config, person, sample) for person in config.people]
        stories = [
            _Story(person, sample, request, answer, *classify_answer(answer))
            for person, request, answer in zip(
                config.people, requests, asker.ask(requests), strict=True
            )
        ]
        readings = _read_by_model(config, run, stories, reading, reporter) if reading else {}
        read_stories = [
            _build_story(config, run, story, readings.get(story.place)) for story in stories
        ]
        store.record_round(
            run.id, ARM, sample, [g for one in read_stories for g in one.generations]
        )
        _count_stories(result, read_stories, readings)
        profiles.extend(one.profile for one in read_stories if one.profile)
        store.save_profiles(run.id, profiles)
        return len(profiles)

    other_askers = (reading,) if reading and reading is not asker else ()
    result.write_rounds(store, asker, config.samples, write, other_askers)
    return result


def _count_stories(
    result: StoriesSummary,
    stories: Sequence[_ReadStory],
    readings: Mapping[str, _ModelReading],
) -> None:
    for story in stories:
        group = story.person.group
        result.count_outcome(group, story.generations[0])
        result.read_counts[group].update(
            {p.attribute for p in story.profile.parts} if story.profile else ()
        )
        place = story.generations[0].path.rpartition("#")[0]
        if place in readings:
            reading = readings[place].reading
            result.readings[reading.outcome] += 1
            result.invented_counts[group] += len(reading.invented)


def collect_stories(run: StoredRun) -> list[StoryCharacter]:
    """The characters of a run of stories, in its order."""
    first_generations: dict[str, Generation] = {}
    for generation in run.generations():
        if generation.strategy != READING_STRATEGY:
            first_generations.setdefault(generation.path.rpartition("#")[0], generation)
    profiles = run.profiles()
    generations = [first_generations[profile.path] for profile in profiles]
    answers = run.store.answers([generation.answer_key for generation in generations])
    return [
        StoryCharacter(profile, generation, answers[generation.answer_key].text)
        for profile, generation in zip(profiles, generations, strict=True)
    ]


def story_prompt(
    config: StoryConfig, person: Person, sample: int
) -> str | tuple[tuple[str, str], ...]:
    """The prompt for the story about a person in a round."""
    return config.pack.template.render(
        config.form, wording=config.wording(sample), person=person.name
    )


def _story_request(config: StoryConfig, person: Person, sample: int) -> Request:
    limits = config.pack.template.answer_limits(config.form)
    place = f"{person.category}/{person.group}/{person.name}/{sample}"
    return config.request(story_prompt(config, person, sample), limits, place)


def _read_by_model(
    config: StoryConfig, run: Run, stories: Sequence[_Story], asker: LoggedModel, progress: Progress
) -> dict[str, _ModelReading]:
    """What a model reads from the stories that were told, by their place; and the generation that
    keeps what it was asked and how that ended."""
    told_stories = [story for story in stories if story.outcome == "ok"]
    progress.stage("readings", len(told_stories))
    attributes_asked = [
        tuple(a.name for a in config.attributes(story.person)) for story in told_stories
    ]
    requests = [
        reading_request(config, f"{s.opening} {s.answer.text}".lstrip(), names)
        for s, names in zip(told_stories, attributes_asked, strict=True)
    ]
    readings = {}
    for story, names, request, answer in zip(
        told_stories, attributes_asked, requests, asker.ask(requests), strict=True
    ):
        reading = read_reading(
            answer, story.answer.text, story.person.name, names, opening=story.opening
        )
        assert config.pack.reading is not None
        left_out = ", ".join(f"{attribute}: {value}" for attribute, value in reading.invented)
        reading_generation = Generation(
            run_id=run.id,
            path=f"{story.place}#0/{READING_STRATEGY}",
            group_id=node_id("group", story.person.group),
            arm=ARM,
            strategy=READING_STRATEGY,
            iteration=story.sample,
            attempt=0,
            outcome=reading.outcome,
            reason=f"not in the story: {left_out}"[:MAX_REASON_CHARS]
            if left_out
            else reading.reason,
            template=f"{config.pack.reading.label}:{config.reading_form}",
            template_hash=config.pack.reading.hash,
            prompt=request.text,
            answer_key=answer.key,
        )
        readings[story.place] = _ModelReading(reading, reading_generation)
    return readings


def _build_story(
    config: StoryConfig, run: Run, story: _Story, model_reading: _ModelReading | None
) -> _ReadStory:
    template, person = config.pack.template, story.person
    outcome, reason = story.outcome, story.reason
    predicates = {a.name: a.predicate for a in config.attributes(person)}
    claims: Sequence[StoryClaim] = ()
    was_read = outcome == "ok"
    if model_reading:
        reading = model_reading.reading
        claims = reading.claims
        if reading.outcome != "ok":
            # The story itself is no refusal, whatever its reader answered.
            was_read = False
            outcome = "failed" if reading.outcome == "failed" else "unparsable"
            reason = f"not read: {reading.reason}"
    elif was_read:
        claims = read_story(story.answer.text, person.name, predicates, opening=story.opening)
    if was_read and not claims:
        outcome, reason = "unparsable", NOTHING_READ
    first_generation = Generation(
        run_id=run.id,
        path=f"{story.place}#0",
        group_id=node_id("group", person.group),
        arm=ARM,
        strategy="story",
        iteration=story.sample,
        attempt=0,
        outcome=outcome,
        reason=reason,
        template=f"{template.wording_label(config.wording(story.sample))}:{config.form}",
        template_hash=template.hash,
        prompt=story.request.text,
        answer_key=story.answer.key,
    )
    labels = {"group": person.group, "category": person.category}
    profile = Profile(run.id, story.place, person.name, first_generation.group_id, labels)
    reading_generations = [model_reading.generation] if model_reading else []
    if not claims:
        return _ReadStory(
            person, [first_generation, *reading_generations], profile if was_read else None
        )
    generations = [
        replace(
            first_generation,
            path=f"{first_generation.path}/{s.attribute}/{number}",
            triple=Triple(person.group, predicates[s.attribute], s.value),
            strategy=s.attribute,
        )
        for number, s in enumerate(claims)
    ]
    profile_parts = tuple(
        ProfilePart(s.attribute, g.id, "", s.begins, s.ends)
        for s, g in zip(claims, generations, strict=True)
    )
    return _ReadStory(
        person, [*generations, *reading_generations], replace(profile, parts=profile_parts)
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoriesPrice(CostEstimate):
    """What the stories cost: how many people, of how many groups, and how many `samples` of each.
    If a model reads them (`reader`, a spec or "model"; "rules" ask nothing), `readings` of the
    requests are to read a story; each is counted as if the story were as long as it may be."""

    people: int
    groups: int
    samples: int
    reader: str = RULES
    readings: int = 0


def stories_price(config: StoryConfig) -> StoriesPrice:
    """The price of this configuration. Asks nothing and opens nothing."""
    stories = len(config.people) * config.samples
    max_tokens = config.pack.template.answer_limits(config.form).max_tokens
    tokens = [estimate_tokens(story_prompt(config, p, 0)) for p in config.people]
    prompts, answers, readings = sum(tokens) / len(tokens), max_tokens, 0
    if config.reader != RULES and config.pack.reading:
        readings = stories
        names = [a.name for a in config.pack.attributes]
        reading_tokens = estimate_tokens(reading_request(config, "", names).prompt) + max_tokens
        prompts, answers = (
            (prompts + reading_tokens) / 2,
            max_tokens + config.pack.reading.answer_limits(config.reading_form).max_tokens,
        )
    return StoriesPrice(
        people=len(config.people),
        groups=len(config.groups),
        samples=config.samples,
        form=config.form,
        requests=stories + readings,
        answer_tokens_at_most=stories * answers,
        prompt_tokens=round(prompts),
        reader=config.reader,
        readings=readings,
    )
