"""Runs that are asked for in rounds, each answer once or a few times: profiles, stories, pairs.

Every answer is in the log before it is read, and a round is written when it is complete: the same
call again asks only for what is missing. Here is what the three have in common: whom a model is
asked about, the settings, the request, the run, rounds and resuming, how an answer ended, what a
call did, and the price. The options that their commands share are in `kgbias.cli.options`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from kgbias.errors import Interrupted, UsageError
from kgbias.graph.answers import LoggedModel
from kgbias.graph.store import AskTimer, Store
from kgbias.graph.types import Answer, Category, Generation, Group, Outcome, Run
from kgbias.ids import content_id
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.language.words import is_refusal
from kgbias.models.base import Completer, ModelInfo, PromptForm, Request, Settings
from kgbias.models.budget import Prices, Usage
from kgbias.models.kinds import abilities_of, form_for
from kgbias.models.truncate import Truncation
from kgbias.packs import hash_files
from kgbias.parameters import TEMPERATURE, Parameter, check_parameters, record_parameters


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody a model is asked about: the words for them in the prompt ("a middle-aged nurse"),
    and the group and category that they stand for."""

    name: str
    group: str
    category: str


@dataclass(frozen=True, kw_only=True)
class PromptPack:
    """How such a run asks: where it is from, and how tokens are drawn unless the user says."""

    name: str
    version: int
    language: str
    source: str
    hash: str
    temperature: float = 1.0
    min_p: float | None = None


def pack_entries(manifest: Mapping[str, Any], *files: Path) -> dict[str, Any]:
    """What every such pack has: from its manifest, and from the files that it is made of."""
    return {
        **{name: manifest[name] for name in ("name", "version", "language", "source")},
        "hash": hash_files(*files),
        "temperature": float(manifest.get("temperature", 1.0)),
        "min_p": manifest.get("min_p"),
    }


def takes_schema(model: str) -> bool:
    """Whether the model with this spec takes a JSON schema, as servers do."""
    model_abilities = abilities_of(model)
    return model_abilities is not None and model_abilities.structured != "no"


def choose_form(model: str, form: PromptForm | None) -> PromptForm:
    """The form in which the model with this spec is asked: messages if it is a server, unless
    another is given."""
    return form_for(model, form) or ("chat" if takes_schema(model) else "completion")


def request_settings(
    model: str, pack: PromptPack, form: PromptForm | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The form in which the model with this spec is asked, and the parameters, those of the pack
    where they are None. The pack's `min_p` is not for servers."""
    defaults: dict[str, Any] = {"temperature": pack.temperature}
    # At 0 no token is drawn, and `min_p` would be refused.
    if settings.get("temperature") != 0:
        defaults["min_p"] = None if takes_schema(model) else pack.min_p
    defaults |= {name: value for name, value in settings.items() if value is not None}
    return {**defaults, "form": choose_form(model, form)}


@dataclass(frozen=True, kw_only=True)
class GenerationConfig(ABC):
    """The settings that such runs share, frozen so that the same command is the same run: how many
    `samples`, and how tokens are drawn. `min_p` cuts off those that are improbable beside the most
    probable one (`kgbias.models.truncate.Truncation`).

    What each parameter is to people stands at its field (`kgbias.parameters.Parameter`). To add
    one, add a field to the configuration of a kind, and its type to the options of its calls."""

    kind: ClassVar[str]
    samples: Annotated[
        int, Parameter("How often everything is asked", typed=True, at_least=1, always=True)
    ] = 1
    temperature: Annotated[
        float,
        replace(TEMPERATURE, unset="1, unless the pack has another"),
    ] = 1.0
    # `truncation` checks it, and keeps it in the record.
    min_p: Annotated[
        float | None,
        Parameter(
            "Draw from tokens at least this fraction as probable as the most probable one; 0 for "
            "all",
            metavar="SHARE",
            unset="the pack's, 0.1; none for a server",
            always=True,
        ),
    ] = None
    seed: Annotated[int, Parameter("The random seed", typed=True, always=True)] = 0

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.truncation and not self.temperature:
            raise UsageError("`min_p` needs a `temperature` above 0: at 0 no token is drawn")
        spelled: dict[str, str] = {}
        for group in self.groups:
            spelling = spelled.setdefault(group.id, group.name)
            if spelling != group.name:
                raise UsageError(
                    f"{spelling!r} and {group.name!r} are the same group: spell it one way"
                )

    @property
    def truncation(self) -> Truncation:
        """Which tokens can be drawn."""
        return Truncation(None, None, self.min_p)

    @property
    @abstractmethod
    def groups(self) -> tuple[Group, ...]:
        """The groups that the run is about."""

    @property
    def categories(self) -> tuple[Category, ...]:
        return tuple(Category(name) for name in dict.fromkeys(g.category for g in self.groups))

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What the record of every run of this kind keeps, in its order."""

    def as_dict(self) -> dict[str, Any]:
        """The configuration as stored with the run, whose id follows from it."""
        return {**self.record(), **record_parameters(self, always=False)}

    def default_name(self, model: ModelInfo, settings: Settings = ()) -> str:
        """A name for the run, for example "smollm2-stories-1f0c"."""
        configured_id = model.configured_id(settings)
        return (
            f"{model.short_name}-{self.kind}-"
            f"{content_id('name', configured_id, repr(self.as_dict()))[:4]}"
        )

    def begin(self, store: Store, model: Completer, name: str | None) -> Run:
        """The run, begun or gone on with in the store. Raises RunConflict if the name belongs to a
        run with other settings."""
        return store.begin_run(
            Run(
                name or self.default_name(model.info, model.settings),
                model.info,
                self.as_dict(),
                self.groups,
                self.categories,
                kind=self.kind,
                settings=model.settings,
            )
        )

    def request(
        self,
        prompt: str | tuple[tuple[str, str], ...],
        limits: tuple[int, tuple[str, ...]],
        *place: str,
        schema: str | None = None,
    ) -> Request:
        """The request of a place, which names its random stream; `limits` are the template's."""
        stream_id = content_id("stream", str(self.seed), *place)
        return Request(
            prompt,
            seed=int(stream_id[:15], 16),
            temperature=self.temperature,
            max_tokens=limits[0],
            stop=limits[1],
            schema=schema,
            truncation=self.truncation,
        )


def pack_identity(pack: PromptPack) -> dict[str, Any]:
    """What a run's configuration says of its pack."""
    return {name: getattr(pack, name) for name in ("name", "version", "language", "hash")}


OUTCOMES = ("ok", "refused", "unparsable", "failed")


@dataclass(repr=False)
class GenerationSummary(Result):
    """What a call did.

    Attributes:
        run: the run that was written.
        asked_count, cached_count: how many answers came from the model in this call, and from the
            answer log.
        usage: what the new answers cost: tokens, and money if prices were given.
        outcomes: how many answers ended "ok", "refused", "unparsable" or "failed", by group.
        reasons: how many of them were not "ok", by outcome and reason.
    """

    run: Run
    asked_count: int = 0
    cached_count: int = 0
    usage: Usage = field(default_factory=Usage)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The groups, each with how many answers about it ended in each way. Columns: group, ok,
        refused, unparsable, failed."""
        columns = [Column(outcome, "d") for outcome in OUTCOMES]
        rows = [
            {"group": group} | {outcome: counts[outcome] for outcome in OUTCOMES}
            for group, counts in self.outcomes.items()
        ]
        return Rows(rows, (Column("group"), *columns))

    def other_counts(self, group: str | None = None) -> dict[str, Any]:
        """What this kind of runs counts besides, of a group or in all."""
        return {}

    def heading(self) -> str:
        return f"run {self.run.name}: {self.asked_count:,} asked, {self.cached_count:,} in the log"

    def count_outcome(self, group: str, generation: Generation) -> None:
        """Count how an answer about a group ended."""
        self.outcomes[group][generation.outcome] += 1
        if generation.outcome != "ok":
            self.reasons[generation.outcome, generation.reason_text] += 1

    @property
    def outcome_totals(self) -> Counter[str]:
        """The number of answers by outcome, over all groups."""
        return sum(self.outcomes.values(), Counter())

    @property
    def empty_reason(self) -> str:
        """Why nothing at all came of it, in one line; "" if something did: what was read, or, in a
        run of pairs, a refusal."""
        total = self.outcome_totals
        if total["ok"] or (self.run.kind == "pairs" and total["refused"]):
            return ""
        return explain_empty(self.run, self.reasons, total.total())

    @property
    def failure_reason(self) -> str:
        """The commonest reason of failed requests; "" if none failed."""
        failures = Counter(
            {
                reason_text: n
                for (outcome, reason_text), n in self.reasons.items()
                if outcome == "failed"
            }
        )
        if not failures:
            return ""
        reason, times = failures.most_common(1)[0]
        return f"{times} of the {failures.total()} failed requests: {reason}"

    @property
    def failure_share(self) -> float:
        """The share of requests that got no answer at all."""
        return self.outcome_totals["failed"] / max(1, self.outcome_totals.total())

    def write_rounds(
        self,
        store: Store,
        asker: LoggedModel,
        rounds: int,
        write_round: Callable[[int], int],
        other_askers: Sequence[LoggedModel] = (),
    ) -> None:
        """Write the run round by round, and mark it complete. `write_round` asks for a round
        (`asker`, and `other_askers` if several models are asked), records it, and returns how many
        of what the run is made of there are so far. Raises Interrupted on Ctrl-C or when the budget
        is spent; RunConflict if another process is at work on the run."""
        with asker.lease_run(self.run) as self.run:
            self._write_rounds(store, asker, rounds, write_round, other_askers)

    def _write_rounds(
        self,
        store: Store,
        asker: LoggedModel,
        rounds: int,
        write_round: Callable[[int], int],
        other_askers: Sequence[LoggedModel],
    ) -> None:
        timer, written_count, run = AskTimer(), 0, self.run
        askers = (asker, *other_askers)
        try:
            for number in range(rounds):
                written_count = write_round(number)
                timer.note(store, run.id, sum(each.asked_count for each in askers))
        except (KeyboardInterrupt, Interrupted) as interruption:
            store.set_status(run.id, "stopped")
            answer_count = sum(each.asked_count - each.failed_count for each in askers)
            raise Interrupted(
                f"{str(interruption) or 'stopped'}: the {answer_count} answers that came are kept, "
                f"{written_count} {run.kind} so far; running this again continues from there"
            ) from None
        finally:
            self.asked_count = sum(each.asked_count for each in askers)
            self.cached_count = sum(each.cached_count for each in askers)
            timer.note(store, run.id, self.asked_count)
            self.usage = Usage(
                sum(each.usage.prompt_tokens for each in askers),
                sum(each.usage.completion_tokens for each in askers),
                asker.usage.prices,
            )
        store.set_status(run.id, "complete")
        self.run = replace(run, status="complete")


def explain_empty(run: Run, reasons: Counter[tuple[str, str]], total: int) -> str:
    """Why a run is empty, in one line: the commonest of the reasons, by outcome and reason."""
    if not reasons:
        return ""
    (outcome, reason), times = reasons.most_common(1)[0]
    ending = "failed" if outcome == "failed" else f"were {outcome}"
    nouns = {"crawl": "no statement", "stories": "no character", "profiles": "no profile"}
    noun = nouns.get(run.kind, "no answer")
    return f"run {run.name} has {noun}: {times:,} of {total:,} requests {ending} ({reason})"


class ClassifiedAnswer(NamedTuple):
    """How an answer ended, and why."""

    outcome: Outcome
    reason: str


def classify_answer(answer: Answer) -> ClassifiedAnswer:
    """How an answer in free text ended, and why: "failed", "refused" or "ok"."""
    if answer.finish == "error":
        return ClassifiedAnswer("failed", answer.details)
    if answer.finish == "refused":
        return ClassifiedAnswer("refused", "withheld by the server")
    return (
        ClassifiedAnswer("refused", "refusal")
        if is_refusal(answer.text)
        else ClassifiedAnswer("ok", "")
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CostEstimate(Result):
    """What asking costs if each request is made once: the number of requests, the approximate
    number of tokens in a prompt, at four characters per token, and the approximate cost, if prices
    were given; and the tokens that the answers to all attempts may have."""

    form: str
    requests: int
    answer_tokens_at_most: int
    prompt_tokens: int
    prices: Prices | None = None

    @property
    def requests_at_most(self) -> int:
        """The number of requests if every attempt is used: of most kinds of runs, there is one."""
        return self.requests

    @property
    def cost(self) -> float | None:
        """The approximate cost if every answer is as long as it may be; None without prices."""
        return self._cost_of(self.requests)

    @property
    def cost_at_most(self) -> float | None:
        """The same if every attempt is used."""
        return self._cost_of(self.requests_at_most)

    def _cost_of(self, requests: int) -> float | None:
        if self.prices is None:
            return None
        answer_tokens = self.answer_tokens_at_most * requests / max(1, self.requests_at_most)
        return self.prices.cost_of(requests * self.prompt_tokens, answer_tokens)

    def as_rows(self) -> Rows[Any]:
        """One row; columns: the fields of this class, and cost."""
        columns = [name for name in self.__dataclass_fields__ if name != "prices"]
        row = {name: getattr(self, name) for name in columns} | {"cost": self.cost}
        return Rows([row], columns=row)
