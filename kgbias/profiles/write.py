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
from kgbias.graph.profiles import ProfilePart, Profile
from kgbias.graph.generation_run import GenerationSummary
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Generation, Outcome, Run, Triple, node_id, storable
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import find_object
from kgbias.io.rows import Result, Rows
from kgbias.io.templates import render_template
from kgbias.language.words import is_refusal
from kgbias.models.base import Completer, Request
from kgbias.models.budget import Budget, Prices, estimate_tokens
from kgbias.profiles.config import Named, ProfileConfig
from kgbias.profiles.pack import LENGTH, Attribute, fields, schema

MOST_WORDS = 8  # in a value that completes a line; anything longer is a story
_END = re.compile(r"[.;:!?\n](?:\s|$)")
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_NUMBER = re.compile(r"\d+(?:[.']\d+)?")
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_EDGES = " \t\"'“”‘’*_-–—()[]"


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of an answer, the reason, and its values by attribute."""

    outcome: Outcome
    reason: str = ""
    values: Mapping[str, Sequence[str]] | None = None


def read_profile(text: str, attributes: tuple[Attribute, ...], *, ended: bool) -> Found:
    """Read a profile as JSON: the first object in the answer, alone or first in a list, possibly in
    a code fence or after a remark. Anything that does not follow the schema is unparsable; an
    answer without JSON that begins like a refusal is refused."""
    found = find_object(text)
    if found is None:
        if is_refusal(text):
            return Found("refused", "refusal")
        return Found("unparsable", "no JSON" if ended else "cut off")
    if reason := _violation(found, attributes):
        return Found("unparsable", reason)
    values: dict[str, Sequence[str]] = {}
    for a in attributes:
        value = found[a.inside][a.name] if a.inside else found[a.name]
        said = [_tidy(str(v)) for v in (value if isinstance(value, list) else [value])]
        if not all(said):
            return Found("unparsable", f"{a.name} is empty")
        values[a.name] = said
    return Found("ok", values=values)


def read_value(text: str, attribute: Attribute, *, ended: bool) -> Found:
    """Read the value that completes a line: the words up to the end of the sentence; for a list, at
    most three. A number is not a word: small models write one instead of naming a hobby."""
    if is_refusal(text) or is_refusal(text.strip()[:1].upper() + text.strip()[1:]):
        return Found("refused", "refusal")
    clause = _END.split(text.strip() + " ", maxsplit=1)
    if len(clause) == 1 and not ended:
        return Found("unparsable", "cut off")
    if attribute.kind == "integer":
        number = _NUMBER.search(clause[0])
        if number is None:
            return Found("unparsable", "no number")
        return Found("ok", values={attribute.name: [number[0]]})
    parts = _AND.split(clause[0]) if attribute.kind == "list" else [clause[0]]
    said = [value for value in (_tidy(_ARTICLE.sub("", part.strip())) for part in parts) if value]
    said = list(dict.fromkeys(said))[:LENGTH]
    if not said:
        return Found("unparsable", "empty")
    if attribute.kind != "measure" and not all(any(c.isalpha() for c in v) for v in said):
        return Found("unparsable", "a number")
    if any(len(value.split()) > MOST_WORDS for value in said):
        return Found("unparsable", "too long")
    return Found("ok", values={attribute.name: said})


def _violation(found: Any, attributes: tuple[Attribute, ...]) -> str:
    """The first violation of the schema by an object; "" if it follows the schema."""
    try:
        from jsonschema import Draft202012Validator
    except ModuleNotFoundError as error:
        raise MissingExtra("jsonschema", extra="profiles") from error
    rules = json.loads(schema(attributes))
    errors = sorted(
        Draft202012Validator(rules).iter_errors(found), key=lambda e: list(map(str, e.path))
    )
    if not errors:
        return ""
    first = errors[0]
    place = ".".join(map(str, first.path))
    return storable(f"{place}: {first.validator}" if place else f"{first.validator}")[:200]


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(_EDGES).rstrip(".,")


_REJECTED = ("refused", "unparsable")
ARM = "none"


@dataclass
class ProfilesWritten(GenerationSummary):
    """What a call did. `outcomes` has answers, repeated attempts included; `profiles` and `whole`
    have the number of profiles, and how many of them are whole, by group."""

    profiles: Counter[str] = field(default_factory=Counter)
    whole: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Place:
    """One thing to ask: a profile, or one attribute of it."""

    named: Named
    sample: int
    attributes: tuple[Attribute, ...]
    form: str

    @property
    def profile(self) -> str:
        return f"{self.named.label}/{self.named.name}/{self.sample}"

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
) -> ProfilesWritten:
    """Ask for all profiles, sample by sample, and write each sample to the graph when it is
    complete.

    Raises Interrupted on Ctrl-C or when the budget is spent; the same call continues
    from there. Raises RunConflict if the name belongs to a run with other settings.
    """
    told = progress or SilentProgress()
    asker = LoggedModel(model, store, told, budget=budget)
    run = config.begin(store, model, name)
    result = ProfilesWritten(run, outcomes={g.name: Counter() for g in config.groups})

    profiles = list[Profile]()

    def write(sample: int) -> int:
        places = _places(config, sample)
        told.stage(f"profiles {sample + 1} of {config.samples}", len(places))
        settled = _settle(config, run, places, asker.ask, told)
        store.record_round(run.id, ARM, sample, [g for own in settled for a in own for g in a])
        _count(result, config, places, settled)
        profiles.extend(_profiles(run, places, settled))
        store.save_profiles(run.id, profiles)
        return len(profiles)

    result.write_rounds(store, asker, config.samples, write)
    return result


def _places(config: ProfileConfig, sample: int) -> list[_Place]:
    parts = [config.attributes] if config.form == "json" else [(a,) for a in config.attributes]
    return [_Place(n, sample, part, config.form) for n in config.names for part in parts]


def _settle(
    config: ProfileConfig,
    run: Run,
    places: Sequence[_Place],
    ask: Callable[[Sequence[Request]], list[Answer]],
    progress: Progress,
) -> list[list[list[Generation]]]:
    """The generations of each attempt at each place; the last attempt is the outcome. A rejected
    one is one generation without a statement, an accepted one has one for each value."""
    attempts: list[list[list[Generation]]] = [[] for _ in places]
    pending = list(enumerate(places))
    for attempt in range(config.max_attempts):
        requests = [_request(config, place, attempt) for _, place in pending]
        rejected = []
        for (n, place), request, answer in zip(pending, requests, ask(requests), strict=True):
            found = _generations(config, run, place, attempt, request, answer)
            attempts[n].append(found)
            if found[0].outcome in _REJECTED:
                progress.advance(0, **{found[0].outcome: 1})
                rejected.append((n, place))
        pending = rejected
        if not pending:
            break
        if attempt + 1 < config.max_attempts:
            progress.grow(len(pending))
    return attempts


def prompt_of(
    config: ProfileConfig, name: str, attributes: Sequence[Attribute]
) -> str | tuple[tuple[str, str], ...]:
    """The prompt about a name: for all of these attributes at once, as messages, or for a single
    attribute, as text."""
    template = config.pack.templates[config.template]
    if config.form == "json":
        return template.render("chat", name=name, fields=fields(attributes))
    line = render_template(attributes[0].line, {"name": name})
    return template.render("completion", name=name, line=line)


def _request(config: ProfileConfig, place: _Place, attempt: int) -> Request:
    return config.request(
        prompt_of(config, place.named.name, place.attributes),
        config.pack.templates[config.template].answer_limits(
            "chat" if config.form == "json" else "completion"
        ),
        place.path,
        str(attempt),
        schema=schema(place.attributes) if config.structured else None,
    )


def _generations(
    config: ProfileConfig, run: Run, place: _Place, attempt: int, request: Request, answer: Answer
) -> list[Generation]:
    ended = answer.finish != "length"
    if answer.finish == "error":
        found = Found("failed", answer.details)
    elif answer.finish == "refused":
        found = Found("refused", "withheld by the server")
    elif config.form == "json":
        found = read_profile(answer.text, place.attributes, ended=ended)
    else:
        found = read_value(answer.text, place.attributes[0], ended=ended)
    template = config.pack.templates[config.template]
    group = place.named.group
    first = Generation(
        run_id=run.id,
        path=f"{place.path}#{attempt}",
        group_id=node_id("group", group),
        arm=ARM,
        strategy="profile",
        iteration=place.sample,
        attempt=attempt,
        outcome=found.outcome,
        reason=found.reason,
        template=f"{template.label}:{'chat' if config.form == 'json' else 'completion'}",
        template_hash=template.hash,
        prompt=request.text,
        answer_key=answer.key,
    )
    if found.values is None:
        return [first]
    said = {a.name: a.predicate for a in place.attributes}
    return [
        replace(
            first,
            path=f"{first.path}/{name}/{number}",
            triple=Triple(group, said[name], value),
            strategy=name,
        )
        for name, values in found.values.items()
        for number, value in enumerate(values)
    ]


def _profiles(
    run: Run, places: Sequence[_Place], settled: Sequence[Sequence[Sequence[Generation]]]
) -> list[Profile]:
    """The profiles of a sample that have any content."""
    found: dict[str, Profile] = {}
    for place, attempts in zip(places, settled, strict=True):
        parts = tuple(ProfilePart(g.strategy, g.id) for g in attempts[-1] if g.triple is not None)
        if not parts:
            continue
        known = found.get(place.profile) or Profile(
            run.id,
            place.profile,
            place.named.name,
            node_id("group", place.named.group),
            place.named.labels,
        )
        found[place.profile] = replace(known, parts=known.parts + parts)
    return list(found.values())


def _count(
    result: ProfilesWritten,
    config: ProfileConfig,
    places: Sequence[_Place],
    settled: Sequence[Sequence[Sequence[Generation]]],
) -> None:
    had: dict[str, set[str]] = {}
    of: dict[str, str] = {}
    for place, attempts in zip(places, settled, strict=True):
        of[place.profile] = place.named.group
        for own in attempts:
            result.count_outcome(place.named.group, own[0])
        told = {g.strategy for g in attempts[-1] if g.triple is not None}
        had.setdefault(place.profile, set()).update(told)
    for profile, told in had.items():
        result.profiles[of[profile]] += bool(told)
        result.whole[of[profile]] += len(told) == len(config.attributes)


@dataclass(frozen=True, slots=True, repr=False)
class ProfilesPrice(Result):
    """The number of requests if every answer is readable at the first attempt, and the largest
    number, each with the tokens that the answers may have; the approximate number of tokens in a
    prompt, at four characters per token; and the approximate cost, if prices were given."""

    names: int
    groups: int
    samples: int
    form: str
    requests: int
    requests_at_most: int
    answer_tokens_at_most: int
    prompt_tokens: int
    prices: Prices | None = None

    @property
    def cost(self) -> float | None:
        """The approximate cost if every answer is readable at the first attempt and as long as it
        may be; None without prices."""
        return self._cost(self.requests)

    @property
    def cost_at_most(self) -> float | None:
        """The same if every attempt is used."""
        return self._cost(self.requests_at_most)

    def _cost(self, requests: int) -> float | None:
        if self.prices is None:
            return None
        limit = self.answer_tokens_at_most / max(1, self.requests_at_most)
        return self.prices.cost_of(requests * self.prompt_tokens, requests * limit)

    def as_rows(self) -> Rows[Any]:
        """One row; columns: the fields of this class, and cost."""
        names = [name for name in self.__dataclass_fields__ if name != "prices"]
        row = {name: getattr(self, name) for name in names} | {"cost": self.cost}
        return Rows([row], columns=row)


def profiles_price(config: ProfileConfig) -> ProfilesPrice:
    """The price of this configuration. Asks nothing and opens nothing."""
    most = config.requests * config.max_attempts
    form = "chat" if config.form == "json" else "completion"
    tokens = config.pack.templates[config.template].answer_limits(form)[0]  # type: ignore[arg-type]
    return ProfilesPrice(
        len(config.names),
        len(config.groups),
        config.samples,
        config.form,
        config.requests,
        most,
        most * tokens,
        _prompt_tokens(config),
    )


def _prompt_tokens(config: ProfileConfig) -> int:
    """The approximate number of tokens in a prompt, the mean over names and attributes."""
    parts = [config.attributes] if config.form == "json" else [(a,) for a in config.attributes]
    tokens = [estimate_tokens(prompt_of(config, n.name, part)) for n in config.names for part in parts]
    return round(sum(tokens) / max(1, len(tokens)))
