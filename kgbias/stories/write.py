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
from kgbias.graph.rounds import AskedOnce, Person, Written, ended
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Generation, Run, Triple, node_id
from kgbias.io.progress import Progress, Silent
from kgbias.models.base import Completer, Request
from kgbias.models.budget import Budget, about_tokens
from kgbias.stories.config import StoryConfig
from kgbias.stories.read import parser, read_story

ARM = "story"
NOTHING = "nothing was read"


@dataclass
class StoriesWritten(Written):
    """What a call did. `outcomes` has stories: "ok" if something was read, "unparsable" if nothing
    was; `read`, in how many stories each attribute was read, by group."""

    read: dict[str, Counter[str]] = field(default_factory=dict)


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
    run = config.begin(store, model, name)
    result = StoriesWritten(run)
    for group in config.groups:
        result.outcomes[group.name], result.read[group.name] = Counter(), Counter()

    profiles = list[Profile]()

    def write(sample: int) -> int:
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
        profiles.extend(story.profile for story in stories if story.profile)
        store.save_profiles(run.id, profiles)
        return len(profiles)

    result.in_rounds(store, asker, config.samples, write)
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
    limits = config.pack.template.limits(config.form)
    return config.request(prompt_of(config, person, sample), limits, _place(person, sample))


def _read(
    config: StoryConfig, run: Run, person: Person, sample: int, request: Request, answer: Answer
) -> _Told:
    template, prompt, place = config.pack.template, request.prompt, _place(person, sample)
    predicates = {a.name: a.predicate for a in config.attributes(person)}
    outcome, reason = ended(answer)
    said = []
    if outcome == "ok":
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoriesPrice(AskedOnce):
    """What the stories cost, and of how many people and groups there are how many each."""

    people: int
    groups: int
    samples: int


def stories_price(config: StoryConfig) -> StoriesPrice:
    """The price of this configuration. Asks nothing and opens nothing."""
    requests = len(config.people) * config.samples
    tokens: Sequence[int] = [about_tokens(prompt_of(config, p, 0)) for p in config.people]
    return StoriesPrice(
        people=len(config.people),
        groups=len(config.groups),
        samples=config.samples,
        form=config.form,
        requests=requests,
        answer_tokens_at_most=requests * config.pack.template.limits(config.form)[0],
        prompt_tokens=round(sum(tokens) / len(tokens)),
    )
