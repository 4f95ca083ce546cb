"""The whole way in one call: what it gives, and how large a crawl and its probes may be to end in
time."""

import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from kgbias.compare.refusals import GroupRefusals, list_prompt_refusals, measure_refusals
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.plans import Price
from kgbias.errors import (
    DataError,
    KgbiasError,
    ModelError,
    PluginError,
    RunConflict,
    RunNotFound,
    UsageError,
)
from kgbias.evidence.indicators import read_indicators
from kgbias.evidence.names import MIN_NAMES, group_names
from kgbias.graph.cache import CacheEntry
from kgbias.graph.store import DEFAULT_STORE, Store
from kgbias.graph.types import BeliefRun, Group
from kgbias.graph.types import Run as Record
from kgbias.io.files import sha256_of, write_text
from kgbias.io.reading import read_json
from kgbias.io.resources import __version__
from kgbias.io.rows import Result, Rows
from kgbias.io.text import format_duration
from kgbias.io.wording import how, pluralise
from kgbias.models.base import Completer
from kgbias.models.http import shown_url
from kgbias.models.spec import KINDS, is_on_server, loadable_spec, parse_spec, resolve
from kgbias.parameters import as_names
from kgbias.study.context import Context
from kgbias.study.kinds import RUN_KINDS, RunKind, Suggestion
from kgbias.study.opening import split_model_options
from kgbias.study.probing import BeliefOptions
from kgbias.study.records import GroupRow
from kgbias.study.run import Run
from kgbias.study.substitutes import SUBSTITUTES

if TYPE_CHECKING:
    from kgbias.evidence import Evidence
    from kgbias.models.score.base import TextScorer

PAGE_SECONDS = 45.0  # seconds for the figures and the two pages
TRIAL_SHARE = 0.1  # of the time in all, for the trial that fixes the sizes
MIN_SECONDS_FOR_FIRST_REPORT = 60.0  # of a crawl, for which a first report is worth its time
REQUESTS_PER_ANSWER = 1.4  # requests an answer that is kept takes, and scoring it
MIN_PROBES = 500
MAX_CHOICES = 2_000  # questions about statements, of a model that gives no probabilities
_CARRIERS = ("", "The people:\n")
_NAMES = ("Anna", "Peter", "Maria", "John")
_VERBS = ("are known for", "love", "should", "are seen as")
_OBJECTS = ("their food", "hard work", "music and dance", "good at sports")
_STATEMENTS = tuple(f"{verb} {what}" for verb in _VERBS for what in _OBJECTS)
_MAX_CACHE_BYTES = 1 << 20  # bytes of the notes on pages, over all stores


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Result):
    """What `Study.map` made.

    Attributes:
        run: the crawl.
        groups: its figures, as `Run.measure` returns them.
        evidence: the rows of `Run.evidence`; empty if the model gives no probabilities.
        report, explorer: the two pages.
        left_out: what could not be done, and how to get it; "" if everything was.
        alternatives: what to ask a model that declines most of what it was asked, as lines, with
            the commands; none for any other.
        refusals: rows of `Run.refusals`, of the categories in which it declines often.
    """

    run: Run
    groups: Rows[GroupRow]
    evidence: "Rows[Evidence] | tuple[()]"
    report: Path
    explorer: Path
    left_out: str
    alternatives: tuple[str, ...] = ()
    refusals: tuple[GroupRefusals, ...] = ()

    def as_rows(self) -> Rows[GroupRow]:
        """The figures of the groups; columns as of `Run.measure`."""
        return self.groups

    def heading(self) -> str:
        left_out = f"; left out: {self.left_out}" if self.left_out else ""
        return f"run {self.run.name}: {self.report}, {self.explorer}{left_out}"


@dataclass(frozen=True, slots=True, repr=False)
class AuditPrice(Result):
    """What `Study.map` would ask.

    Attributes:
        answers: what the crawl would ask; `seconds` is about how long the answers take.
        probes: the largest number of probes; 0 if models of this kind give no probabilities.
        choices: at most this many questions, if it turns out that the model gives no probabilities
            and something else is asked instead (`kgbias.study.substitutes`).
        seconds: about how long that many probes take, at the slowest speed at which the store's
            runs were probed with this model; None if none was, and without probes.
        groups: the names of the groups; none where the model is to name them first.
        remark: a line about groups with too few names for a belief about them; "" for none.
    """

    answers: Price
    probes: int
    seconds: float | None
    choices: int = 0
    groups: tuple[str, ...] = ()
    remark: str = ""

    def as_rows(self) -> Rows[Any]:
        """The kinds of requests of the crawl; columns: the fields of
        `kgbias.crawl.plans.PriceStage`."""
        return self.answers.as_rows()

    def heading(self) -> str:
        probing = (
            f"{pluralise(self.probes, 'probe', spec=',')}"
            if self.probes
            else f"at most {self.choices:,} choices"
        )
        return f"{self.answers.heading()}; {probing}"


class FirstReport:
    """The report that is written during a crawl, after the first round that can be measured."""

    def __init__(self, context: Context, path: Path, measuring: Mapping[str, Any]) -> None:
        self._context, self._path, self._measuring = context, path, measuring
        self._began = monotonic()
        self._is_written = False

    def write(self, record: Record, seconds_left: float) -> None:
        """Write it, unless it was written before, or so few seconds of the crawl are left that the
        report at the end comes soon (`kgbias.crawl.crawler.AfterRound`)."""
        if self._is_written or seconds_left < MIN_SECONDS_FOR_FIRST_REPORT:
            return
        run = Run(self._context, record)
        try:
            run.measure(**self._measuring)
        except DataError:  # no statement yet
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        run.report(self._path)
        self._is_written = True
        self._context.remark(
            f"a first report, preliminary, after {format_duration(monotonic() - self._began)}: "
            f"{self._path}"
        )


def describe_few_names(groups: Sequence[Group], names: Path | None = None) -> str:
    """A line about the groups that have too few names for a belief about them; "" for none. `names`
    is the file of names of a pack."""
    indicators = read_indicators(names)
    too_few = [g.name for g in groups if len(group_names(g, indicators)) < MIN_NAMES]
    if not too_few:
        return ""
    return (
        f"no belief can be shown about {', '.join(too_few)}: it takes at least {MIN_NAMES} names "
        f"each "
        "(NAME | OTHER NAME ..., or the column `variants` of a file)"
    )


class NotedRun(NamedTuple):
    """The name of a run whose pages were written, and what was left out of them."""

    name: str
    left_out: str


class PagesNote:
    """A note on the pages that a call wrote, kept in the cache folder for as long as the store
    stays as it was (`kgbias.graph.cache`). The same call then has nothing to do.

    A store on a server does not tell its state: nothing is noted of it.
    """

    def __init__(self, store: Store | None, model: str, *call: object) -> None:
        self._store, self._model, self._arguments = store, model, call

    def _cache_entry(self) -> CacheEntry | None:
        if self._store is None:
            return None
        state = self._store.content_version()
        if state is None:
            return None
        weights = "" if is_on_server(self._model) else resolve(self._model).info.revision
        key = repr([__version__, self._model, weights, *self._arguments])
        return CacheEntry(("mapped", "json"), os.path.realpath(self._store.url), state, key)

    def save(self, result: AuditResult) -> None:
        """Note what was written. If the note cannot be written, it is simply not kept."""
        self._store = result.run.stored.store
        entry = self._cache_entry()
        if entry is None:
            return
        pages = {str(path): sha256_of(path) for path in (result.report, result.explorer)}
        note = {"run": result.run.name, "left_out": result.left_out, "pages": pages}
        with suppress(DataError, OSError):
            entry.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_text(entry.file, json.dumps(note))
            # The store may have changed meanwhile: then the note would be of another state.
            entry.make_room(lambda: self._cache_entry() == entry, _MAX_CACHE_BYTES)

    def load(self) -> NotedRun | None:
        """The run, and what was left out, if the pages are still as they were written."""
        entry = self._cache_entry()
        if entry is None:
            return None
        try:
            note = read_json(entry.file)
            for page, written_sha256 in note["pages"].items():
                if sha256_of(Path(page)) != written_sha256:
                    return None
            return NotedRun(note["run"], note["left_out"])
        except (KgbiasError, OSError, KeyError, TypeError, AttributeError):
            return None


def stored_sizes(store: Store | None, name: str, minutes: int) -> Mapping[str, object] | None:
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
        how_made = (
            f"for {pluralise(sized['minutes'], 'minute')}"
            if sized
            else "without a number of minutes"
        )
        raise RunConflict(f"run {name!r} was made {how_made}: give that, or another name")
    return {"samples": config["samples"], "iterations": config["iterations"], "sized": sized}


class _CrawlSize(NamedTuple):
    """Prompts per group and initial predicate, and rounds of expansion, as in `CrawlConfig`."""

    samples: int
    rounds: int


def fit_sizes(
    config: CrawlConfig,
    minutes: int,
    seconds_spent: float,
    answer_seconds: float,
    probe_seconds: float | None,
) -> dict[str, object]:
    """The largest sizes with which everything should end in time, as parameters of a crawl.

    Args:
        config: the crawl at its full size, which is never exceeded.
        minutes: the time in all.
        seconds_spent: how much of it is gone.
        answer_seconds: how long an answer takes.
        probe_seconds: how long a probe takes; None if the model gives no probabilities: then
            something else is asked, and a question is taken to last as long as an answer.

    Half of the time is for what follows the answers; choices can be left out if the smallest crawl
    takes longer.

    Raises UsageError, with the number of minutes needed, if the smallest crawl takes longer.
    """
    seconds_left = 60 * minutes - seconds_spent - PAGE_SECONDS
    # Half for the answers, half for what is asked about them.
    crawl_seconds = seconds_left / 2
    smallest = _CrawlSize(samples=1, rounds=0)

    def seconds_for(size: _CrawlSize) -> float:
        sized_config = replace(config, samples=size.samples, iterations=size.rounds)
        return sized_config.place_count * answer_seconds * REQUESTS_PER_ANSWER

    # Rounds are given up first, then prompts of the initialisation.
    candidates = [_CrawlSize(config.samples, rounds) for rounds in range(config.rounds, -1, -1)]
    candidates += [_CrawlSize(samples, 0) for samples in range(config.samples - 1, 0, -1)]
    size = next((each for each in candidates if seconds_for(each) <= crawl_seconds), None)
    if size is None and probe_seconds is None and seconds_for(smallest) <= seconds_left:
        size = smallest
    question_count = 0  # of probes, or of questions instead
    if size is not None:
        question_seconds = answer_seconds if probe_seconds is None else probe_seconds
        # 1e-9: answers from the log take no time.
        question_count = int((seconds_left - seconds_for(size)) / max(question_seconds, 1e-9))
    if size is None or (probe_seconds is not None and question_count < MIN_PROBES):
        min_seconds = seconds_for(smallest)
        if probe_seconds is not None:
            min_seconds = max(2 * min_seconds, min_seconds + MIN_PROBES * probe_seconds)
        minutes_needed = math.ceil((min_seconds + seconds_spent + PAGE_SECONDS) / 60) + 1
        raise UsageError(
            f"too few for {pluralise(len(config.groups), 'group')}: "
            f"{pluralise(minutes, 'minute')}; give about {pluralise(minutes_needed, 'minute')}, "
            "or fewer groups"
        )
    sized = {"minutes": minutes}
    if probe_seconds is None:
        sized["choices"] = min(question_count, MAX_CHOICES)
    else:
        sized["probes"] = question_count
    return {"samples": size.samples, "iterations": size.rounds, "sized": sized}


def default_name(config: CrawlConfig, model: Completer, minutes: int) -> str:
    """The default name of a run whose sizes follow from a number of minutes."""
    sized_config = replace(config, sized={"minutes": minutes})
    return sized_config.default_name(model.info, model.settings)


def seconds_per_answer(store: Store | None, model: str) -> float | None:
    """The seconds that an answer took that was kept, in the slowest crawl of this model: the others
    may have found theirs in the log. None if the store has no crawl of it."""
    model_name = model
    with suppress(UsageError):  # an open model's name need not be a spec
        model_name = loadable_spec(model)
    durations = [
        summary.seconds / summary.statements
        for summary in (() if store is None else store.summaries())
        if summary.run.kind == "crawl"
        and summary.run.model.name == model_name
        and summary.seconds
        and summary.statements
    ]
    return max(durations, default=None)


def seconds_per_stored_probe(store: Store | None, model: str) -> float | None:
    """The seconds that a probe took, in the slowest run that was probed by names with this model.
    None if the store has no such run."""
    if store is None:
        return None
    model_name = loadable_spec(model)
    durations = []
    for run in store.runs():
        for belief_run in store.find_all(run.id, BeliefRun):
            seconds = belief_run.record.get("took", {}).get("seconds")
            if belief_run.model.name == model_name and seconds:
                durations.append(seconds)
    return max(durations, default=None)


def seconds_per_probe(scorer: "TextScorer") -> float | None:
    """The seconds a probe takes, from a few; None if the model gives no probabilities."""
    stems = [f"{carrier}{name}" for carrier in _CARRIERS for name in _NAMES]
    try:
        scorer.grid(stems[:2], _STATEMENTS[:2])  # loads the weights
        began = monotonic()
        scorer.grid(stems, _STATEMENTS)
    except KgbiasError:
        return None
    return (monotonic() - began) / (len(stems) * len(_STATEMENTS))


class FoundBeliefs(NamedTuple):
    """What a model believes, and a line about what was left out of it; "" for nothing."""

    rows: "Rows[Evidence] | tuple[()]"
    left_out: str


def find_beliefs(
    run: Run,
    model: str,
    opening: Mapping[str, Any],
    asking: BeliefOptions,
    limits: Mapping[str, Any],
) -> FoundBeliefs:
    """What the model believes; nothing, and a line that says so, if it gives no probabilities: then
    something else is asked, if there are no `limits` on what may be asked."""
    reason = f"{model} gives no probabilities"
    if KINDS[parse_spec(model).kind].scorer:
        try:
            return FoundBeliefs(run.evidence(model, asking=asking, **opening), "")
        except (DataError, ModelError) as error:
            if not is_on_server(model):
                raise
            reason = str(error)
    return FoundBeliefs((), _ask_instead(run, model, reason, limits))


def has_substitute() -> bool:
    """Whether there is something to ask a model that gives no probabilities."""
    return any(SUBSTITUTES.own_names) or any(not p.problem for p in SUBSTITUTES.list_plugins())


def _ask_instead(run: Run, model: str, reason: str, limits: Mapping[str, Any]) -> str:
    """Ask a model that gives no probabilities, for this reason, something else instead
    (`SUBSTITUTES`), about as many statements as `MAX_CHOICES` questions allow; a line that says how
    it answered, or why it was not asked."""
    left_out = f"what {model} believes is left out"
    name = next(iter(SUBSTITUTES), None)
    if name is None:
        return f"{left_out} ({reason})"
    try:
        substitute = SUBSTITUTES[name]
    except PluginError as error:
        return f"{left_out} ({reason}); {error}"
    by_hand = how(
        substitute.call.format(run=run.name, model=model),
        substitute.command.format(run=run.name, model=model),
    )
    hint = f"{left_out}; {by_hand} has it {substitute.does} instead"
    if any(limits.get(limit) for limit in ("max_requests", "max_tokens", "max_cost")):
        return f"{hint} (which the limits of this call do not cover)"
    try:
        options: Any = split_model_options(limits)[0] | {"form": limits.get("form")}
        min_questions = SUBSTITUTES.import_part(name, substitute.min_questions)(run, model)
        max_questions = limits.get("sized", {}).get("choices", MAX_CHOICES)
        if "sized" in limits and max_questions < min_questions:
            return f"{hint} (for which these minutes are too few)"
        ask = SUBSTITUTES.import_part(name, substitute.ask)
        answered = ask(run, model, max_questions, **options)
    except (DataError, ModelError, UsageError) as error:
        return f"{hint} ({error})"
    return f"{left_out} ({reason}); instead it was asked to {substitute.does}: {answered}"


def list_notable_refusals(run: Run) -> tuple[GroupRefusals, ...]:
    """How often it declines to answer about each group, where it does so often enough to say so."""
    categories = measure_refusals(run.stored.groups, run.stored.generations())
    return tuple(row for category in categories if category.is_notable for row in category.groups)


MIN_DECLINED_SHARE = 0.5  # of the prompts declined: then there is better to ask than for sentences


def suggest_alternatives(
    run: Run, model: str, folder: Path, base_url: str | None
) -> tuple[str, ...]:
    """What to ask a model that declines most prompts about the groups of a run, as lines with the
    calls or commands of the methods that are there. Groups about which there are no people to tell
    stories of get a file of them in the folder."""
    prompts = list_prompt_refusals(run.stored.generations())
    declined = sum(prompt.share >= MIN_DECLINED_SHARE for prompt in prompts)
    if 2 * declined <= len(prompts):
        return ()
    lines = [
        f"it declined {declined:,} of {len(prompts):,} prompts about these groups; such models "
        "mostly do as they are asked where nobody asks for an opinion:"
    ]
    for name, kind in RUN_KINDS.own_entries.items():
        if not kind.suggest:
            continue
        for suggestion in RUN_KINDS.import_part(name, kind.suggest)(run.stored.groups, folder):
            lines.append(_word_call(run, name, kind, model, base_url, suggestion))
            if suggestion.note:
                lines.append(suggestion.note)
    return tuple(lines) if len(lines) > 1 else ()


def _word_call(
    run: Run, name: str, kind: RunKind, model: str, base_url: str | None, suggestion: Suggestion
) -> str:
    """A suggestion as the call, or the command, that follows it."""
    store = run.stored.store.url
    flags = [] if base_url is None else ["--base-url", _printable_url(base_url)]
    flags += [] if store == DEFAULT_STORE else ["--store", store]
    for option, value in suggestion.arguments.items():
        for one in as_names(value):
            flags += [f"--{option}", one]
    address = {} if base_url is None else {"base_url": _printable_url(base_url)}
    named = [f"{option}={value!r}" for option, value in (address | suggestion.arguments).items()]
    function = f"{name}.{kind.write.rpartition(':')[2]}"
    call = f"{function}({', '.join(['study', repr(model), *named])})"
    return f"  {how(call, shlex.join(['kgbias', name, '--model', model, *flags]))}"


def _printable_url(url: str) -> str:
    """A server's address as part of a command that is printed: a screen may be a log that others
    read, so one with a password, a query or a token is to be put in again."""
    return url if shown_url(url) == url else "YOUR_URL"
