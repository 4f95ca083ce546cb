"""The whole way in one call: what it gives, and how large a crawl and its probes may be to end in
time."""

import csv
import io
import json
import math
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from kgbias.associate.indicators import shipped_indicators
from kgbias.compare.refusals import list_prompt_refusals
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.plans import Price
from kgbias.errors import (
    DataError,
    KgbiasError,
    ModelError,
    RunConflict,
    RunNotFound,
    UsageError,
)
from kgbias.evidence.names import MIN_NAMES, group_names
from kgbias.graph.cache import CacheEntry
from kgbias.graph.generation_run import Person
from kgbias.graph.store import DEFAULT_STORE, Store
from kgbias.graph.types import Group
from kgbias.io.files import sha256_of, write_text
from kgbias.io.reading import read_json
from kgbias.io.resources import __version__
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.models.base import Completer
from kgbias.models.spec import KINDS, loadable_spec, is_on_server, parse_spec, resolve
from kgbias.models.http import without_password
from kgbias.parameters import as_names
from kgbias.stories.config import load_story_pack
from kgbias.study.opening import parted
from kgbias.study.probed import BelievingOptions
from kgbias.study.records import GroupRow
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.evidence import Evidence
    from kgbias.models.score.base import TextScorer

PAGES = 45.0  # seconds for the figures and the two pages
AGAIN = 1.4  # requests an answer that is kept takes, and scoring it
FEWEST_PROBES = 500
MAX_CHOICES = 2_000  # questions about statements, of a model that gives no probabilities
_CARRIERS = ("", "The people:\n")
_NAMES = ("Anna", "Peter", "Maria", "John")
_VERBS = ("are known for", "love", "should", "are seen as")
_OBJECTS = ("their food", "hard work", "music and dance", "good at sports")
_SAID = tuple(f"{verb} {what}" for verb in _VERBS for what in _OBJECTS)
_ROOM = 1 << 20  # bytes of the notes on pages, over all stores


@dataclass(frozen=True, slots=True)
class Mapped:
    """What `Study.map` made.

    Attributes:
        run: the crawl.
        groups: its figures, as `Run.measure` returns them.
        evidence: the rows of `Run.evidence`; empty if the model gives no probabilities.
        report, explorer: the two pages.
        left_out: what could not be done, and how to get it; "" if everything was.
        instead: what to ask a model that declines most of what it was asked, as lines, with the
            commands; none for any other.
    """

    run: Run
    groups: Rows[GroupRow]
    evidence: "Rows[Evidence] | tuple[()]"
    report: Path
    explorer: Path
    left_out: str
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class MapPrice(Result):
    """What `Study.map` would ask.

    Attributes:
        answers: what the crawl would ask; `seconds` is about how long the answers take.
        probes: the largest number of probes; 0 if models of this kind give no probabilities.
        choices: at most this many questions, if it turns out that the model gives no probabilities
            and it is made to choose between groups.
        seconds: about how long that many probes take, at the slowest speed at which the store's
            runs were probed with this model; None if none was, and without probes.
    """

    answers: Price
    probes: int
    seconds: float | None
    choices: int = 0

    def as_rows(self) -> Rows[Any]:
        """The kinds of requests of the crawl; columns: the fields of `kgbias.crawl.plans.PriceStage`."""
        return self.answers.as_rows()

    def heading(self) -> str:
        asked = f"{self.probes:,} probes" if self.probes else f"at most {self.choices:,} choices"
        return f"{self.answers.heading()}; {asked}"


def few_names(groups: Sequence[Group]) -> str:
    """A line about the groups that have too few names for a belief about them; "" for none."""
    known = shipped_indicators()
    few = [g.name for g in groups if len(group_names(g, known)) < MIN_NAMES]
    if not few:
        return ""
    return (
        f"no belief can be shown about {', '.join(few)}: it takes at least {MIN_NAMES} names each "
        "(NAME | OTHER NAME ..., or the column `variants` of a file)"
    )


class Noted:
    """A note on the pages that a call wrote, kept in the cache folder for as long as the store
    stays as it was (`kgbias.graph.cache`). The same call then has nothing to do.

    A store on a server does not tell its state: nothing is noted of it.
    """

    def __init__(self, store: Store | None, model: str, *call: object) -> None:
        self._store, self._model, self._call = store, model, call

    def _place(self) -> CacheEntry | None:
        if self._store is None or (state := self._store.content_version()) is None:
            return None
        weights = "" if is_on_server(self._model) else resolve(self._model).info.revision
        holds = repr([__version__, self._model, weights, *self._call])
        return CacheEntry(("mapped", "json"), os.path.realpath(self._store.url), state, holds)

    def keep(self, mapped: Mapped) -> None:
        """Note what was written. If the note cannot be written, it is simply not kept."""
        self._store = mapped.run.stored.store
        if (place := self._place()) is None:
            return
        pages = {str(path): sha256_of(path) for path in (mapped.report, mapped.explorer)}
        note = {"run": mapped.run.name, "left_out": mapped.left_out, "pages": pages}
        with suppress(DataError, OSError):
            place.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_text(place.file, json.dumps(note))
            place.make_room(lambda: self._place() == place, _ROOM)

    def kept(self) -> Mapping[str, str] | None:
        """The run, and what was left out, if the pages are still as they were written."""
        if (place := self._place()) is None:
            return None
        try:
            note = read_json(place.file)
            if any(sha256_of(Path(page)) != was for page, was in note["pages"].items()):
                return None
            return {"run": note["run"], "left_out": note["left_out"]}
        except (KgbiasError, OSError, KeyError, TypeError, AttributeError):
            return None


def kept_sizes(store: Store | None, name: str, minutes: int) -> Mapping[str, object] | None:
    """The sizes that an earlier call with the same number of minutes fixed for the run of this
    name, as parameters of a crawl; None if there is no such run. Raises RunConflict for a run that
    was not made so."""
    if store is None:
        return None
    try:
        config = store.find_run(name).config
    except RunNotFound:
        return None
    sized = config.get("sized", {})
    if sized.get("minutes") != minutes:
        made = f"for {sized['minutes']} minutes" if sized else "without a number of minutes"
        raise RunConflict(f"run {name!r} was made {made}: give that, or another name")
    return {"samples": config["samples"], "iterations": config["iterations"], "sized": sized}


def sizes(
    config: CrawlConfig, minutes: int, seconds: float, answer: float, probe: float | None
) -> dict[str, object]:
    """The largest sizes with which everything should end in time, as parameters of a crawl.

    Args:
        config: the crawl at its full size, which is never exceeded.
        minutes: the time in all.
        seconds: how much of it is gone.
        answer: seconds an answer takes.
        probe: seconds a probe takes; None if the model gives no probabilities: then it is made to
            choose, where a question is taken to last as long as an answer.

    Half of the time is for what follows the answers; choices can be left out if the smallest crawl
    takes longer.

    Raises UsageError, with the number of minutes needed, if the smallest crawl takes longer.
    """
    left = 60 * minutes - seconds - PAGES
    share = left / 2

    def takes(samples: int, rounds: int) -> float:
        return replace(config, samples=samples, iterations=rounds).place_count * answer * AGAIN

    tried = [(config.samples, rounds) for rounds in range(config.rounds, -1, -1)]
    tried += [(samples, 0) for samples in range(config.samples - 1, 0, -1)]
    fit = next(((s, i) for s, i in tried if takes(s, i) <= share), None)
    if fit is None and probe is None and takes(1, 0) <= left:
        fit = (1, 0)
    asked = 0
    if fit is not None:
        asked = int((left - takes(*fit)) / max(answer if probe is None else probe, 1e-9))
    if fit is None or (probe is not None and asked < FEWEST_PROBES):
        least = takes(1, 0)
        if probe is not None:
            least = max(2 * least, least + FEWEST_PROBES * probe)
        needed = math.ceil((least + seconds + PAGES) / 60) + 1
        raise UsageError(
            f"{minutes} minutes are too few for {len(config.groups)} groups: give about "
            f"{needed} minutes, or fewer groups"
        )
    samples, rounds = fit
    then = {"choices": min(asked, MAX_CHOICES)} if probe is None else {"probes": asked}
    sized = {"minutes": minutes} | then
    return {"samples": samples, "iterations": rounds, "sized": sized}


def name_for(config: CrawlConfig, model: Completer, minutes: int) -> str:
    """The default name of a run whose sizes follow from a number of minutes."""
    asked = replace(config, sized={"minutes": minutes})
    return asked.default_name(model.info, model.settings)


def seconds_per_answer(store: Store | None, model: str) -> float | None:
    """The seconds that an answer took that was kept, in the slowest crawl of this model: the others
    may have found theirs in the log. None if the store has no crawl of it."""
    known = loadable_spec(model)
    found = [
        s.seconds / kept
        for s in (() if store is None else store.summaries())
        if s.run.kind == "crawl" and s.run.model.name == known and s.seconds
        if (kept := s.statements)
    ]
    return max(found, default=None)


def seconds_per_kept_probe(store: Store | None, model: str) -> float | None:
    """The seconds that a probe took, in the slowest run that was probed by names with this model.
    None if the store has no such run."""
    if store is None:
        return None
    known = loadable_spec(model)
    found = [
        seconds
        for s in store.summaries()
        for b in store.belief_runs(s.run.id)
        if b.model.name == known and (seconds := b.record.get("took", {}).get("seconds"))
    ]
    return max(found, default=None)


def seconds_per_probe(scorer: "TextScorer") -> float | None:
    """The seconds a probe takes, from a few; None if the model gives no probabilities."""
    stems = [f"{carrier}{name}" for carrier in _CARRIERS for name in _NAMES]
    try:
        scorer.grid(stems[:2], _SAID[:2])  # loads the weights
        began = monotonic()
        scorer.grid(stems, _SAID)
    except KgbiasError:
        return None
    return (monotonic() - began) / (len(stems) * len(_SAID))


def believed(
    run: Run,
    model: str,
    opening: Mapping[str, Any],
    asking: BelievingOptions,
    limits: Mapping[str, Any],
) -> "tuple[Rows[Evidence] | tuple[()], str]":
    """What the model believes; nothing, and a line that says so, if it gives no probabilities: then
    it is made to choose, if there are no `limits` on what may be asked."""
    why = f"{model} gives no probabilities"
    if KINDS[parse_spec(model).kind].scorer:
        try:
            return run.evidence(model, asking=asking, **opening), ""
        except (DataError, ModelError) as error:
            if not is_on_server(model):
                raise
            why = str(error)
    return (), _chosen(run, model, limits) or (
        f"what {model} believes is left out ({why}); instead it was asked to choose between groups"
    )


def _chosen(run: Run, model: str, limits: Mapping[str, Any]) -> str:
    """Have a model that gives no probabilities choose between groups, about as many statements as
    `MAX_CHOICES` questions allow; a line that says why it did not, "" if it did."""
    chooses = how(f"run.choose({model!r})", f"kgbias probe choice {run.name} --model {model}")
    left_out = f"what {model} believes is left out; {chooses} has it choose between groups instead"
    if any(limits.get(name) for name in ("max_requests", "max_tokens", "max_cost")):
        return f"{left_out} (which the limits of this call do not cover)"
    try:
        how_asked: Any = parted(limits)[0] | {"form": limits.get("form")}
        each = run.price_choices(model, sample=1).requests
        most = limits.get("sized", {}).get("choices", MAX_CHOICES)
        if "sized" in limits and most < each:
            return f"{how} (for which these minutes are too few)"
        run.choose(model, sample=max(1, most // max(1, each)), **how_asked)
    except (DataError, ModelError, UsageError) as error:
        return f"{left_out} ({error})"
    return ""


MOST = 0.5  # of the prompts declined: then there is better to ask than for sentences
_PEOPLE = ("one of the {}", "a young person, one of the {}", "an old person, one of the {}")


def instead(run: Run, model: str, folder: Path, base_url: str | None) -> tuple[str, ...]:
    """What to ask a model that declines most prompts about the groups of a run, as lines with the
    calls or commands. Groups about which there are no people to tell stories of get a file of them
    in the folder."""
    from kgbias.pairs.config import load_pairs_pack

    prompts = list_prompt_refusals(run.stored.generations())
    declined = sum(prompt.share >= MOST for prompt in prompts)
    if 2 * declined <= len(prompts):
        return ()
    groups = run.stored.groups
    there = Counter(g.category for g in groups)
    known = _known(groups, load_story_pack().people)
    told = [category for category, n in known.items() if n == there[category] > 1]
    own = [group for group in groups if group.category not in told]
    paired = [c for c, n in _known(groups, load_pairs_pack().people).items() if n > 1]
    store = run.stored.store.url
    options = [] if base_url is None else ["--base-url", _told(base_url)]
    options += [] if store == DEFAULT_STORE else ["--store", store]

    def asked(method: str, command: str, **given: str | list[str]) -> str:
        flags: list[str] = []
        for name, value in given.items():
            for one in as_names(value):
                flags += [f"--{name}", one]
        own = given if base_url is None else {"base_url": _told(base_url), **given}
        named = [repr(model), *(f"{name}={value!r}" for name, value in own.items())]
        call = f"study.{method}({', '.join(named)})"
        shell = shlex.join(["kgbias", command, "--model", model, *options, *flags])
        return f"  {how(call, shell)}"

    lines = [
        f"it declined {declined:,} of {len(prompts):,} prompts about these groups; such models "
        "mostly do as they are asked where nobody asks for an opinion:"
    ]
    if told:
        lines.append(asked("write_stories", "stories", category=told))
    if paired:
        lines.append(asked("ask_pairs", "pairs", category=paired))
    if own:
        path = folder / "people.csv"
        if not path.exists():  # or somebody has chosen better words
            rows = [(form.format(g.name), g.name, g.category) for g in own for form in _PEOPLE]
            file = io.StringIO()
            csv.writer(file, lineterminator="\n").writerows([("name", "group", "category"), *rows])
            write_text(path, file.getvalue())
        lines.append(asked("write_stories", "stories", people=str(path)))
        lines.append(f"look first at the words for the people in {path}")
    return tuple(lines)


def _told(url: str) -> str:
    """A server's address as part of a command that is printed: a screen may be a log that others
    read, so one with a password, a query or a token is to be put in again."""
    return url if without_password(url) == url else "YOUR_URL"


def _known(groups: Sequence[Group], people: Sequence[Person]) -> Counter[str]:
    """How many groups of each category are among the people of a pack."""
    there = {(p.category, p.group) for p in people}
    return Counter(g.category for g in groups if (g.category, g.name) in there)
