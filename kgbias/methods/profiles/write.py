"""Have a model write profiles, and put them into the graph.

Like a crawl, this is a pure function of its configuration and the model's answers: every answer is
kept in the answer log before it is read, and the same call again asks only for what is missing.

A raw answer becomes the values of a profile, or the reason why there are none.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.graph.answers import LoggedModel
from kgbias.graph.generation_run import CostEstimate, GenerationSummary
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Generation, Outcome, Run, Triple, node_id, storable
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import find_object
from kgbias.io.templates import render_template
from kgbias.language.words import is_refusal
from kgbias.methods.profiles.config import GivenName, ProfileConfig
from kgbias.methods.profiles.pack import (
    LIST_LENGTH,
    ProfileAttribute,
    describe_fields,
    profile_schema,
)
from kgbias.models.base import Completer, Request
from kgbias.models.budget import Budget, estimate_tokens

MAX_VALUE_WORDS = 8  # in a value that completes a line; anything longer is a story
_CLAUSE_END = re.compile(r"[.;:!?\n](?:\s|$)")
_LIST_SEPARATOR = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_NUMBER = re.compile(r"\d+(?:[.']\d+)?")
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_EDGE_CHARS = " \t\"'“”‘’*_-–—()[]"


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The outcome of an answer, the reason, and its values by attribute."""

    outcome: Outcome
    reason: str = ""
    values: Mapping[str, Sequence[str]] | None = None


def read_profile(
    text: str, attributes: tuple[ProfileAttribute, ...], *, is_complete: bool
) -> ReadAnswer:
    """Read a profile as JSON: the first object in the answer, alone or first in a list, possibly in
    a code fence or after a remark. Anything that does not follow the schema is unparsable; an
    answer without JSON that begins like a refusal is refused."""
    answer_object = find_object(text)
    if answer_object is None:
        if is_refusal(text):
            return ReadAnswer("refused", "refusal")
        return ReadAnswer("unparsable", "no JSON" if is_complete else "cut off")
    if reason := _schema_violation(answer_object, attributes):
        return ReadAnswer("unparsable", reason)
    values: dict[str, Sequence[str]] = {}
    for attribute in attributes:
        value = (
            answer_object[attribute.inside][attribute.name]
            if attribute.inside
            else answer_object[attribute.name]
        )
        values_read = [_tidy_value(str(v)) for v in (value if isinstance(value, list) else [value])]
        if not all(values_read):
            return ReadAnswer("unparsable", f"{attribute.name} is empty")
        values[attribute.name] = values_read
    return ReadAnswer("ok", values=values)


def read_value(text: str, attribute: ProfileAttribute, *, is_complete: bool) -> ReadAnswer:
    """Read the value that completes a line: the words up to the end of the sentence; for a list, at
    most three. A number is not a word: small models write one instead of naming a hobby."""
    if is_refusal(text):
        return ReadAnswer("refused", "refusal")
    # The space lets a full stop at the very end be one.
    clause = _CLAUSE_END.split(text.strip() + " ", maxsplit=1)
    if len(clause) == 1 and not is_complete:
        return ReadAnswer("unparsable", "cut off")
    if attribute.kind == "integer":
        number = _NUMBER.search(clause[0])
        if number is None:
            return ReadAnswer("unparsable", "no number")
        return ReadAnswer("ok", values={attribute.name: [number[0]]})
    items = _LIST_SEPARATOR.split(clause[0]) if attribute.kind == "list" else [clause[0]]
    values_read = [
        value for value in (_tidy_value(_ARTICLE.sub("", part.strip())) for part in items) if value
    ]
    values_read = list(dict.fromkeys(values_read))[:LIST_LENGTH]
    if not values_read:
        return ReadAnswer("unparsable", "empty")
    if attribute.kind != "measure" and not all(any(c.isalpha() for c in v) for v in values_read):
        return ReadAnswer("unparsable", "a number")
    if any(len(value.split()) > MAX_VALUE_WORDS for value in values_read):
        return ReadAnswer("unparsable", "too long")
    return ReadAnswer("ok", values={attribute.name: values_read})


def _schema_violation(answer_object: Any, attributes: tuple[ProfileAttribute, ...]) -> str:
    """The first violation of the schema by an object; "" if it follows the schema."""
    try:
        from jsonschema import Draft202012Validator
    except ModuleNotFoundError as error:
        raise MissingExtra("jsonschema", extra="profiles") from error
    rules = json.loads(profile_schema(attributes))
    # In one order, as the first becomes the reason that is stored.
    errors = sorted(
        Draft202012Validator(rules).iter_errors(answer_object), key=lambda e: list(map(str, e.path))
    )
    if not errors:
        return ""
    first_error = errors[0]
    place = ".".join(map(str, first_error.path))
    return storable(f"{place}: {first_error.validator}" if place else f"{first_error.validator}")[
        :200
    ]


def _tidy_value(text: str) -> str:
    return " ".join(text.split()).strip(_EDGE_CHARS).rstrip(".,")


_RETRIED_OUTCOMES = ("refused", "unparsable")
ARM = "none"


@dataclass(repr=False)
class ProfilesSummary(GenerationSummary):
    """What a call did. `outcomes` has answers, repeated attempts included; `profiles` and
    `whole_profiles` have the number of profiles, and how many of them are whole, by group."""

    profiles: Counter[str] = field(default_factory=Counter)
    whole_profiles: Counter[str] = field(default_factory=Counter)

    def other_counts(self, group: str | None = None) -> dict[str, Any]:
        written, whole = self.profiles, self.whole_profiles
        if group is None:
            return {"profiles": written.total(), "whole": whole.total()}
        return {"profiles": written[group], "whole": whole[group]}


@dataclass(frozen=True, slots=True)
class _ProfilePlace:
    """One thing to ask: a profile, or one attribute of it."""

    given_name: GivenName
    sample: int
    attributes: tuple[ProfileAttribute, ...]
    form: str

    @property
    def profile(self) -> str:
        return f"{self.given_name.label}/{self.given_name.name}/{self.sample}"

    @property
    def path(self) -> str:
        return self.profile if self.form == "json" else f"{self.profile}/{self.attributes[0].name}"


def write_profiles(
    config: ProfileConfig,
    model: Completer,
    store: Store,
    *,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> ProfilesSummary:
    """Ask for all profiles, sample by sample, and write each sample to the graph when it is
    complete.

    Raises Interrupted on Ctrl-C or when the budget is spent; the same call continues
    from there. Raises RunConflict if the name belongs to a run with other settings.
    """
    reporter = progress or SilentProgress()
    asker = LoggedModel(model, store, reporter, budget=budget)
    run = config.begin(store, model, name)
    result = ProfilesSummary(run, outcomes={g.name: Counter() for g in config.groups})

    profiles = list[Profile]()

    def write(sample: int) -> int:
        places = _list_places(config, sample)
        reporter.stage(f"profiles {sample + 1} of {config.samples}", len(places))
        attempts_by_place = _ask_until_read(config, run, places, asker.ask, reporter)
        store.record_round(
            run.id,
            ARM,
            sample,
            [g for attempts in attempts_by_place for attempt in attempts for g in attempt],
        )
        _count_profiles(result, config, places, attempts_by_place)
        profiles.extend(_build_profiles(run, places, attempts_by_place))
        store.save_profiles(run.id, profiles)
        return len(profiles)

    result.write_rounds(store, asker, config.samples, write)
    return result


def _list_places(config: ProfileConfig, sample: int) -> list[_ProfilePlace]:
    parts = [config.attributes] if config.form == "json" else [(a,) for a in config.attributes]
    return [_ProfilePlace(n, sample, part, config.form) for n in config.names for part in parts]


def _ask_until_read(
    config: ProfileConfig,
    run: Run,
    places: Sequence[_ProfilePlace],
    ask: Callable[[Sequence[Request]], list[Answer]],
    progress: Progress,
) -> list[list[list[Generation]]]:
    """The generations of each attempt at each place; the last attempt is the outcome. A rejected
    one is one generation without a statement, an accepted one has one for each value."""
    attempts: list[list[list[Generation]]] = [[] for _ in places]
    pending = list(enumerate(places))
    for attempt in range(config.max_attempts):
        requests = [_profile_request(config, place, attempt) for _, place in pending]
        rejected = []
        for (number, place), request, answer in zip(pending, requests, ask(requests), strict=True):
            generations = _build_generations(config, run, place, attempt, request, answer)
            attempts[number].append(generations)
            if generations[0].outcome in _RETRIED_OUTCOMES:
                progress.advance(0, **{generations[0].outcome: 1})
                rejected.append((number, place))
        pending = rejected
        if not pending:
            break
        if attempt + 1 < config.max_attempts:
            progress.grow(len(pending))
    return attempts


def profile_prompt(
    config: ProfileConfig, name: str, attributes: Sequence[ProfileAttribute]
) -> str | tuple[tuple[str, str], ...]:
    """The prompt about a name: for all of these attributes at once, as messages, or for a single
    attribute, as text."""
    template = config.pack.templates[config.template]
    if config.form == "json":
        return template.render("chat", name=name, fields=describe_fields(attributes))
    line = render_template(attributes[0].line, {"name": name})
    return template.render("completion", name=name, line=line)


def _profile_request(config: ProfileConfig, place: _ProfilePlace, attempt: int) -> Request:
    return config.request(
        profile_prompt(config, place.given_name.name, place.attributes),
        config.pack.templates[config.template].answer_limits(
            "chat" if config.form == "json" else "completion"
        ),
        place.path,
        str(attempt),
        schema=profile_schema(place.attributes) if config.structured else None,
    )


def _build_generations(
    config: ProfileConfig,
    run: Run,
    place: _ProfilePlace,
    attempt: int,
    request: Request,
    answer: Answer,
) -> list[Generation]:
    is_complete = answer.finish != "length"
    if answer.finish == "error":
        read_answer = ReadAnswer("failed", answer.details)
    elif answer.finish == "refused":
        read_answer = ReadAnswer("refused", "withheld by the server")
    elif config.form == "json":
        read_answer = read_profile(answer.text, place.attributes, is_complete=is_complete)
    else:
        read_answer = read_value(answer.text, place.attributes[0], is_complete=is_complete)
    template = config.pack.templates[config.template]
    group = place.given_name.group
    first_generation = Generation(
        run_id=run.id,
        path=f"{place.path}#{attempt}",
        group_id=node_id("group", group),
        arm=ARM,
        strategy="profile",
        iteration=place.sample,
        attempt=attempt,
        outcome=read_answer.outcome,
        reason=read_answer.reason,
        template=f"{template.label}:{'chat' if config.form == 'json' else 'completion'}",
        template_hash=template.hash,
        prompt=request.text,
        answer_key=answer.key,
    )
    if read_answer.values is None:
        return [first_generation]
    predicates = {a.name: a.predicate for a in place.attributes}
    return [
        replace(
            first_generation,
            path=f"{first_generation.path}/{name}/{number}",
            triple=Triple(group, predicates[name], value),
            strategy=name,
        )
        for name, values in read_answer.values.items()
        for number, value in enumerate(values)
    ]


def _build_profiles(
    run: Run,
    places: Sequence[_ProfilePlace],
    attempts_by_place: Sequence[Sequence[Sequence[Generation]]],
) -> list[Profile]:
    """The profiles of a sample that have any content."""
    profiles: dict[str, Profile] = {}
    for place, attempts in zip(places, attempts_by_place, strict=True):
        parts = tuple(ProfilePart(g.strategy, g.id) for g in attempts[-1] if g.triple is not None)
        if not parts:
            continue
        profile = profiles.get(place.profile) or Profile(
            run.id,
            place.profile,
            place.given_name.name,
            node_id("group", place.given_name.group),
            place.given_name.labels,
        )
        profiles[place.profile] = replace(profile, parts=profile.parts + parts)
    return list(profiles.values())


def _count_profiles(
    result: ProfilesSummary,
    config: ProfileConfig,
    places: Sequence[_ProfilePlace],
    attempts_by_place: Sequence[Sequence[Sequence[Generation]]],
) -> None:
    read_by_profile: dict[str, set[str]] = {}
    group_of_profile: dict[str, str] = {}
    for place, attempts in zip(places, attempts_by_place, strict=True):
        group_of_profile[place.profile] = place.given_name.group
        for attempt in attempts:
            result.count_outcome(place.given_name.group, attempt[0])
        attributes_read = {g.strategy for g in attempts[-1] if g.triple is not None}
        read_by_profile.setdefault(place.profile, set()).update(attributes_read)
    for profile, attributes_read in read_by_profile.items():
        result.profiles[group_of_profile[profile]] += bool(attributes_read)
        result.whole_profiles[group_of_profile[profile]] += len(attributes_read) == len(
            config.attributes
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfilesPrice(CostEstimate):
    """What the profiles cost: how many names, of how many groups, how many `samples` of each, and
    how many `attempts` an answer has that cannot be read."""

    names: int
    groups: int
    samples: int
    attempts: int

    @property
    def requests_at_most(self) -> int:
        """The number of requests if every attempt is used."""
        return self.requests * self.attempts


def profiles_price(config: ProfileConfig) -> ProfilesPrice:
    """The price of this configuration. Asks nothing and opens nothing."""
    form = "chat" if config.form == "json" else "completion"
    tokens = config.pack.templates[config.template].answer_limits(form).max_tokens  # type: ignore[arg-type]
    return ProfilesPrice(
        names=len(config.names),
        groups=len(config.groups),
        samples=config.samples,
        attempts=config.max_attempts,
        form=config.form,
        requests=config.requests,
        answer_tokens_at_most=config.requests * config.max_attempts * tokens,
        prompt_tokens=_prompt_tokens(config),
    )


def _prompt_tokens(config: ProfileConfig) -> int:
    """The approximate number of tokens in a prompt, the mean over names and attributes."""
    parts = [config.attributes] if config.form == "json" else [(a,) for a in config.attributes]
    tokens = [
        estimate_tokens(profile_prompt(config, n.name, part))
        for n in config.names
        for part in parts
    ]
    return round(sum(tokens) / max(1, len(tokens)))
