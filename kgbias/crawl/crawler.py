"""The crawl: a pure function of its configuration and the model's answers.

A round draws all its prompts from the graph as it was when the round began, asks them (repeating
those whose answer is rejected), and applies the results in the order of the prompts;
so neither concurrency nor a kill can change the outcome. To resume, run the same crawl again: what
was answered before comes from the answer log.

A crawl can be repeated, to see how much a figure moves from crawl to crawl: each is a run of its
own and asks with a random seed of its own, derived from the given one. The first is the crawl that
would be made without repeating, so that any crawl can be repeated later and is not asked again.

Each prompt draws from a random stream named by its place: arm, strategy, iteration, group, number.
Its answers, and what is drawn again, are numbered draws from that stream, each with a seed named in
the same way. So batch size does not matter either. `Store.record_round` replaces a round as a
whole, in one transaction.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from time import monotonic
from typing import NamedTuple, get_args

from kgbias.crawl.config import ECHO_FILTER, CrawlConfig, check_repeat
from kgbias.crawl.parse import (
    EXTRA_JSON_TOKENS,
    NO_TEXT_REASON,
    answer_schema,
    flatten_schema_answer,
    read_answer,
)
from kgbias.crawl.plans import (
    PromptPlan,
    place_path,
    plan_expansion,
    plan_initial_prompts,
    render_prompt,
    repeat_for_answers,
    replan_attempt,
)
from kgbias.crawl.readers.sentences import OTHER_LANGUAGE
from kgbias.crawl.seeds import DynamicSeeds, name_seed_groups
from kgbias.crawl.stopping import Gauge, GroupProgress, IntervalWidths, describe_coverage
from kgbias.crawl.strategies import TriplePool
from kgbias.errors import Interrupted, KgbiasError, ModelError, RunConflict, UsageError
from kgbias.graph.answers import LoggedModel
from kgbias.graph.generation_run import explain_empty
from kgbias.graph.store import AskTimer, Store, StoredRun
from kgbias.graph.types import Answer, Generation, Outcome, Run, Triple, verbalise
from kgbias.ids import content_id
from kgbias.io.columns import Column
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how, pluralise
from kgbias.language.words import REFUSAL_FILTERS, is_echo
from kgbias.models.base import Completer, PromptForm, Request
from kgbias.models.budget import Budget, Usage


@dataclass(frozen=True, slots=True)
class AcceptabilityJudge:
    """What judges statements.

    Attributes:
        label: the scorer and its version; part of the run's configuration, so a run is never
            continued with another.
        score: the acceptability of each sentence, in [0, 1], higher makes more sense; it must
            depend only on the sentence.
    """

    label: str
    score: Callable[[Sequence[str]], Sequence[float]]


def mark_nonsense(
    generations: Sequence[Generation], judge: AcceptabilityJudge, threshold: float
) -> list[Generation]:
    """The generations, with the outcome "nonsense" for statements below the threshold."""
    sentences = {
        index: verbalise(g.triple.group, g.triple.predicate, g.triple.object)
        for index, g in enumerate(generations)
        if g.triple is not None
    }
    marked = list(generations)
    for index, value in zip(sentences, judge.score(list(sentences.values())), strict=True):
        if value < threshold:
            marked[index] = replace(
                marked[index], outcome="nonsense", reason="too low an acceptability", triple=None
            )
    return marked


MIN_WELL_FORMED_SHARE = 0.5  # the share of well-formed answers below which a crawl says so
MIN_ANSWERS_FOR_ADVICE = 20  # answers; fewer say little


def describe_malformed(
    outcomes: Mapping[str, int],
    reasons: Mapping[str, int],
    *,
    form: PromptForm,
    structured: bool = False,
    prompts: str = "",
) -> str | None:
    """A line saying that few answers were well-formed, why, and which parameters to change; None if
    most were, or there are too few to say.

    `outcomes` and `reasons` count all attempts so far, by outcome and, for unparsable ones, by
    reason. Refusals and failed requests say nothing about the form and do not count; echoes and
    nonsense are well-formed. `prompts` is the name of the pack.
    """
    unparsable = outcomes.get("unparsable", 0)
    answers = sum(outcomes.get(name, 0) for name in ("ok", "echo", "nonsense")) + unparsable
    if answers < MIN_ANSWERS_FOR_ADVICE or unparsable <= (1 - MIN_WELL_FORMED_SHARE) * answers:
        return None
    reason = max(reasons, key=lambda name: reasons[name], default="")
    most_common = f" (most often: {reason})" if reason else ""
    if reason == NO_TEXT_REASON and form == "chat":
        return (
            f"only {answers - unparsable} of {answers} answers were well-formed: most had no text. "
            "The model may only have thought, or the server may have kept the answer back"
        )
    if form == "completion":
        form_ = how('form="chat"', "--form chat")
        remedies = [f"{form_} if the model is made for chat"]
    else:
        schemas = how("structured=True", "--set structured=true")
        remedies = [] if structured else [f"{schemas} if the server supports schemas"]
        remedies.append(how('form="completion"', "--form completion"))
    if prompts == "salinas-2023":
        remedies.append(how('prompts="sentences"', "--prompts sentences"))
    return (
        f"only {answers - unparsable} of {answers} answers were well-formed{most_common}: try "
        f"{', or '.join(remedies)}"
    )


CRAWL_OUTCOMES: tuple[str, ...] = get_args(Outcome)
# Refused prompts that are asked again and refused again; then no more are.
REFUSAL_RETRY_TRIALS = 20


def _outcome_column(outcome: str) -> Column:
    """How many answers ended so."""
    return Column(outcome, "d", get=lambda progress: progress.outcomes[outcome])


REJECTED_OUTCOMES = (
    "refused",
    "unparsable",
    "echo",
    "nonsense",
)  # outcomes whose prompt is repeated


_MIN_IN_OTHER_LANGUAGE = 10  # answers


@dataclass(repr=False)
class CrawlResult(Result):
    """What a crawl did.

    Attributes:
        run: the run that was written.
        asked_count: how many answers came from the model in this call.
        cached_count: how many came from the answer log.
        usage: what the asked ones took: tokens, and money where prices were given.
        outcomes: how many answers ended "ok", "refused", "unparsable", "echo", "nonsense" or
            "failed", repeated attempts included.
        reasons: how many of them ended without a statement, by outcome and reason.
        retry_count: how many of them asked a prompt again that had been refused.
        unfilled_count: how many places have no statement after their last attempt.
        iterations: how many rounds of expansion asked anything.
        groups: the same counts for each group in each arm, with its coverage.
    """

    run: Run
    asked_count: int = 0
    cached_count: int = 0
    usage: Usage = field(default_factory=Usage)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    retry_count: int = 0
    unfilled_count: int = 0
    iterations: int = 0
    groups: list[GroupProgress] = field(default_factory=list)

    @property
    def empty_reason(self) -> str:
        """Why there is no statement at all, in one line; "" if there is one."""
        if self.outcomes["ok"] or not self.reasons:
            return ""
        remedy = ""
        (commonest_outcome, _reason), _count = self.reasons.most_common(1)[0]
        if commonest_outcome == "refused":
            instead = how(
                "kgbias.methods.stories, kgbias.methods.pairs",
                f"kgbias stories --model {self.run.model.title}, kgbias pairs",
            )
            remedy = (
                "; a model that declines direct requests may be asked for stories or for texts "
                f"about pairs of names: {instead}"
            )
        return explain_empty(self.run, self.reasons, self.outcomes.total()) + remedy

    @property
    def language_note(self) -> str:
        """That the model does not write the language of the prompts, in one line: at least half of
        the answers that it gave, and ten, are in another language; else ""."""
        in_other = self.reasons["unparsable", OTHER_LANGUAGE]
        given = self.outcomes.total() - self.outcomes["failed"] - self.outcomes["refused"]
        if in_other < max(_MIN_IN_OTHER_LANGUAGE, given / 2):
            return ""
        return (
            f"{in_other:,} of {given:,} answers are not in the language of the prompts: "
            f"{self.run.model.title} hardly writes it, and what was read says little about it"
        )

    @property
    def failure_share(self) -> float:
        """The share of requests that got no answer at all (0 without any request)."""
        return self.outcomes["failed"] / max(1, self.outcomes.total())

    @property
    def well_formed_share(self) -> float:
        """The share of answers that could be read as a triple, echoes and nonsense included; NaN
        without answers."""
        answered = self.outcomes.total() - self.outcomes["failed"]
        readable = sum(self.outcomes[name] for name in ("ok", "echo", "nonsense"))
        return readable / answered if answered else float("nan")

    def as_rows(self) -> Rows[GroupProgress]:
        """The groups in each arm. Columns: arm, group, how many answers ended in each way (ok,
        refused, unparsable, echo, nonsense, failed), statements (each as often as it was said),
        distinct, and coverage, in [0, 1] (`kgbias.stats`)."""
        columns = (
            Column("arm"),
            Column("group"),
            *map(_outcome_column, CRAWL_OUTCOMES),
            Column("statements", "d"),
            Column("distinct", "d"),
            Column("coverage", ".0%"),
        )
        return Rows(self.groups, columns)

    def heading(self) -> str:
        ended = ", ".join(f"{count:,} {outcome}" for outcome, count in self.outcomes.items())
        return (
            f"run {self.run.name}: {self.asked_count:,} asked, {self.cached_count:,} in the "
            f"log ({ended})"
        )


AfterRound = Callable[[Run, float], None]
"""What is done between two rounds of a crawl. It is told the run, and about how many seconds the
rounds to come will take."""

WARM_UP_ANSWERS = 8  # answers of a trial that are not timed: they load the model
MAX_TRIAL_ANSWERS = 64  # answers that are timed


def time_answers(
    config: CrawlConfig, model: Completer, store: Store, progress: Progress, max_seconds: float
) -> float:
    """The seconds that an answer takes, from as many of the first prompts about each group as a
    trial of about `max_seconds` allows. The answers are in the log, where the crawl finds them; 0
    if the log has all of its first round."""
    asker = LoggedModel(model, store, progress)
    pools = [TriplePool(arm, seed) for arm in config.arms for seed in config.seeds]
    plans = sorted(
        # By number, so that the first prompts are about every group.
        (plan for pool in pools for plan in plan_initial_prompts(config, pool)),
        key=_prompt_number,
    )
    requests = _build_requests(config, _number_places(repeat_for_answers(config, plans)))
    progress.stage("trial", min(len(requests), MAX_TRIAL_ANSWERS + WARM_UP_ANSWERS))
    began = monotonic()
    asker.ask(requests[:WARM_UP_ANSWERS])
    # 1e-9: answers from the log take no measurable time.
    answers_in_time = int(WARM_UP_ANSWERS * max_seconds / max(monotonic() - began, 1e-9))
    batch_size = min(MAX_TRIAL_ANSWERS, max(WARM_UP_ANSWERS, answers_in_time))
    # What is in the log costs nothing: a batch is timed only if most of it was asked.
    for start in range(WARM_UP_ANSWERS, len(requests), batch_size):
        asked_before, started = asker.asked_count, monotonic()
        asker.ask(requests[start : start + batch_size])
        new_answers = asker.asked_count - asked_before
        answers_in_batch = min(batch_size, len(requests) - start)
        if new_answers > answers_in_batch / 2:
            return (monotonic() - started) / new_answers
    return 0.0


def _prompt_number(plan: PromptPlan) -> str:
    """The number of a prompt among those for its group and predicate."""
    return plan.path.rpartition("/")[2]


def crawl(
    config: CrawlConfig,
    model: Completer,
    store: Store,
    *,
    judge: AcceptabilityJudge | None = None,
    gauge: Gauge | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
    after_round: AfterRound | None = None,
) -> CrawlResult:
    """Crawl the model and write the graph. Returns when every place has its triple or has used up
    its attempts.

    `judge` rates how acceptable a statement is, if the configuration has a `min_acceptability`;
    `gauge` scores statements between the rounds, if it has a `target_ci_width`. `after_round` is
    called after each round that asked the model and is not the last; it changes no answer.

    Raises Interrupted on Ctrl-C or when the budget, which crawls may share, is spent; the same call
    continues from there. Raises RunConflict if the name belongs to a run with other settings, or
    another process is at work on this one.
    """
    if config.min_acceptability and judge is None:
        raise UsageError("`min_acceptability` needs a judge")
    if config.target_ci_width and gauge is None:
        raise UsageError("`target_ci_width` needs a gauge")
    progress = progress or SilentProgress()
    asker = LoggedModel(model, store, progress, budget=budget)
    if config.dynamic:
        config = _with_dynamic_seeds(config, config.dynamic, asker, progress)
    run = store.begin_run(
        Run(
            name or config.default_name(model.info, model.settings),
            model.info,
            config.as_dict()
            | ({"judge": judge.label} if judge else {})
            | ({"gauge": gauge.label} if gauge else {}),
            config.groups,
            tuple(seed.category for seed in config.seeds),
            settings=model.settings,
        )
    )
    # The run as it stands once the lease is held: another process may have finished it meanwhile.
    with asker.lease_run(run) as run:
        return _run_rounds(config, run, asker, store, judge, gauge, progress, after_round)


def read_crawl_result(run: StoredRun) -> CrawlResult:
    """What a crawl in the store did, as far as its answers say, which are not known to be of one
    call or another."""
    result = CrawlResult(run.record)
    progress_by_group: dict[tuple[str, str], GroupProgress] = {}
    names = {group.id: group.name for group in run.groups}
    last_attempts: dict[str, Generation] = {}
    for generation in run.generations():
        result.outcomes[generation.outcome] += 1
        if generation.outcome != "ok":
            result.reasons[generation.outcome, generation.reason_text] += 1
        # By number: in the order of paths, PATH#10 comes before PATH#2.
        place = generation.path.partition("#")[0]
        if place not in last_attempts or generation.attempt > last_attempts[place].attempt:
            last_attempts[place] = generation
        result.iterations = max(result.iterations, generation.iteration)
        result.cached_count += bool(generation.answer_key)
        group_progress = progress_by_group.setdefault(
            (generation.arm, generation.group_id),
            GroupProgress(generation.arm, names.get(generation.group_id, generation.group_id)),
        )
        group_progress.add(generation)
    last_outcomes = Counter(last.outcome for last in last_attempts.values())
    # Every attempt but the last was followed by another.
    result.retry_count = result.outcomes["refused"] - last_outcomes["refused"]
    result.unfilled_count = len(last_attempts) - last_outcomes["ok"]
    result.groups = list(progress_by_group.values())
    return result


def _run_rounds(
    config: CrawlConfig,
    run: Run,
    asker: LoggedModel,
    store: Store,
    judge: AcceptabilityJudge | None,
    gauge: Gauge | None,
    progress: Progress,
    after_round: AfterRound | None,
) -> CrawlResult:
    """The rounds of a run that no other process asks for."""
    timer = AskTimer()
    result = CrawlResult(run)
    is_sentence = config.form == "chat" and not config.structured
    ask_on = _with_notice_check(asker.ask_on) if is_sentence else asker.ask_on
    pools = [TriplePool(arm, seed) for arm in config.arms for seed in config.seeds]
    progress_by_group: dict[tuple[str, str], GroupProgress] = {
        (pool.arm, group.id): GroupProgress(pool.arm, group.name)
        for pool in pools
        for group in pool.groups
    }
    result.groups = list(progress_by_group.values())
    widths = (
        IntervalWidths(config.target_ci_width, gauge) if config.target_ci_width and gauge else None
    )
    plans: list[PromptPlan] = []
    retries = retries_before = RefusalRetries()
    try:
        for iteration in range(config.rounds + 1):
            plans = _plan_round(config, pools, progress_by_group, widths, iteration)
            if plans:
                progress.stage(
                    f"iteration {iteration}" if iteration else "initialisation", len(plans)
                )
            # As the round begins: if it is stopped, the part that was asked is gone through again.
            retries_before, asked_before = copy(retries), asker.asked_count
            generations = _fill_places(config, run, plans, ask_on, progress, judge, retries)
            # Recorded even when empty: a round that an earlier call reached while requests failed
            # may not be needed now that they succeed.
            _record_round(store, run, config, iteration, generations)
            timer.note(store, run.id, asker.asked_count)
            # Only now: within a round, every prompt draws from the graph as the round began.
            _grow_pools(pools, generations)
            for attempts in generations:
                result.outcomes.update(generation.outcome for generation in attempts)
                result.reasons.update(
                    (generation.outcome, generation.reason_text)
                    for generation in attempts
                    if generation.outcome != "ok"
                )
                # Every attempt but the last was followed by another.
                result.retry_count += sum(
                    generation.outcome == "refused" for generation in attempts[:-1]
                )
                result.unfilled_count += attempts[-1].outcome != "ok"
                for generation in attempts:
                    progress_by_group[generation.arm, generation.group_id].add(generation)
            if plans:
                result.iterations = iteration
                progress.note(describe_coverage(result.groups))
                progress.note(_format_sample_statements(generations))
            if widths and plans:
                widths.add(generations)
                progress.note(widths.describe(config.groups))
            if retries.always_refused and not retries_before.always_refused:
                progress.note(
                    f"{retries.retry_count} refused prompts were asked again and refused again: "
                    "refused prompts are not asked again from now on"
                )
            if iteration == 0:
                advice = _advise_on_form(config, generations)
                if advice:
                    progress.note(advice)
                asked_to_sample = config.temperature > 0 and not config.truncation.is_greedy
                if asked_to_sample and not _varies_within_prompts(generations):
                    progress.note(
                        "every prompt got the same answer each time it was asked: the model does "
                        "not sample; does the server honour the temperature?"
                    )
            plans = []  # all of them are counted
            if after_round and iteration < config.rounds and asker.asked_count > asked_before:
                rounds_left = (config.rounds - iteration) / (iteration + 1)
                after_round(run, timer.asked_seconds * rounds_left)
                timer.restart()
    except (KeyboardInterrupt, Interrupted) as stop:
        store.set_status(run.id, "stopped")
        # The round it stopped in.
        stopped_round = _fill_places(
            config, run, plans, asker.recall_on, SilentProgress(), judge, retries_before
        )
        statements = result.outcomes["ok"] + sum(
            attempts[-1].outcome == "ok" for attempts in stopped_round
        )
        raise _build_interrupt(
            stop, asker, f", {pluralise(statements, 'statement')} so far"
        ) from None
    except RunConflict:  # another process has taken it over
        raise
    except KgbiasError:
        _drop_empty_run(store, run, progress)
        raise
    finally:
        timer.note(store, run.id, asker.asked_count)
        result.asked_count, result.cached_count, result.usage = (
            asker.asked_count,
            asker.cached_count,
            asker.usage,
        )
    store.set_status(run.id, "complete")
    result.run = replace(run, status="complete")
    return result


def _drop_empty_run(store: Store, run: Run, progress: Progress) -> None:
    """Drop a run that failed before its first round was recorded: it would be the newest, and about
    nothing. Answers that came are in the log all the same."""
    if not store.summary(run.id).generations:
        store.delete(run.id)
        progress.note(f"run {run.name} is not kept: nothing was recorded")


def _build_interrupt(
    stop: BaseException, asker: LoggedModel, statement_note: str = ""
) -> Interrupted:
    why = str(stop) or "stopped"
    answer_count = asker.asked_count - asker.failed_count
    return Interrupted(
        f"{why}: the {answer_count} answers that came are kept{statement_note}; running this "
        f"again continues from "
        "there"
    )


def _with_dynamic_seeds(
    config: CrawlConfig, dynamic: DynamicSeeds, asker: LoggedModel, progress: Progress
) -> CrawlConfig:
    progress.stage("seeds", dynamic.prompts)
    try:
        answers = asker.ask(
            dynamic.build_requests(
                config.pack, config.seed, config.temperature, config.truncation, config.form
            )
        )
    except (KeyboardInterrupt, Interrupted) as stop:
        raise _build_interrupt(stop, asker) from None
    return config.with_groups_of(name_seed_groups(dynamic, answers, config.form, progress))


def _varies_within_prompts(generations: Sequence[Sequence[Generation]]) -> bool:
    """Whether any prompt asked more than once had two different answers (True if none was)."""
    answers_by_prompt: dict[str, list[tuple[str, str]]] = {}
    for attempts in generations:
        for generation in attempts:
            if generation.outcome != "failed":
                words = generation.triple.object_id if generation.triple else ""
                answers_by_prompt.setdefault(generation.prompt, []).append(
                    (generation.reason, words)
                )
    repeated = [answers for answers in answers_by_prompt.values() if len(answers) > 1]
    return not repeated or any(len(set(answers)) > 1 for answers in repeated)


def _advise_on_form(config: CrawlConfig, generations: Sequence[Sequence[Generation]]) -> str | None:
    """What to try if few of the first answers were well-formed."""
    attempts_made = [generation for attempts in generations for generation in attempts]
    return describe_malformed(
        Counter(generation.outcome for generation in attempts_made),
        Counter(
            generation.reason for generation in attempts_made if generation.outcome == "unparsable"
        ),
        form=config.form,
        structured=config.structured,
        prompts=config.pack.name,
    )


def _plan_round(
    config: CrawlConfig,
    pools: Sequence[TriplePool],
    progress_by_group: Mapping[tuple[str, str], GroupProgress],
    widths: IntervalWidths | None,
    iteration: int,
) -> list[PromptPlan]:
    """The places of a round, for all groups of which too little is known yet."""
    if not iteration:
        return repeat_for_answers(
            config, (plan for pool in pools for plan in plan_initial_prompts(config, pool))
        )
    return repeat_for_answers(
        config,
        (
            plan
            for pool in pools
            for plan in plan_expansion(config, pool, iteration)
            # Decided from the answers so far: an interrupted crawl decides as an uninterrupted one.
            if not progress_by_group[pool.arm, plan.group.id].has_reached(config.target_coverage)
            and not (widths and widths.is_narrow(pool.arm, plan.group))
        ),
    )


MAX_STATEMENTS_SHOWN = 3  # statements, after each round


def _format_sample_statements(generations: Sequence[Sequence[Generation]]) -> str:
    """A few statements of a round, of as many groups, spread over it."""
    sentences: dict[str, str] = {}
    for attempts in generations:
        triple = attempts[-1].triple
        if triple is not None:
            sentences.setdefault(
                triple.group, verbalise(triple.group, triple.predicate, triple.object)
            )
    if not sentences:
        return "no statement came of this round"
    step = max(1, len(sentences) // MAX_STATEMENTS_SHOWN)
    return f"for example: {' '.join(list(sentences.values())[::step][:MAX_STATEMENTS_SHOWN])}"


class RefusalRetries:
    """Whether asking a refused prompt again is of use with this model.

    Attributes:
        retry_count: how many refused prompts were asked again and answered or refused.
    """

    def __init__(self) -> None:
        self.retry_count = self._answered_count = 0

    def count_answer(self, before: Generation | None, generation: Generation) -> None:
        """Count the answer to a prompt that was refused before."""
        if before is not None and before.outcome == "refused" and generation.outcome != "failed":
            self.retry_count += 1
            self._answered_count += generation.outcome != "refused"

    @property
    def always_refused(self) -> bool:
        """Whether enough prompts to tell by were asked again, and each was refused again."""
        return self.retry_count >= REFUSAL_RETRY_TRIALS and not self._answered_count


AskOn = Callable[[Sequence[Request], Callable[[int, Answer], Request | None]], None]
"""See `kgbias.graph.answers.LoggedModel.ask_on`."""


_NOTICE_ANSWERS = 12  # first answers of a crawl that are compared
_NOTICE_MIN_DISTINCT_PROMPTS = 3  # beginnings of sentences; one alone may well get one answer
_NOTICE_MIN_WORDS = 3  # of a notice: a model may give the same short answer to all


def _with_notice_check(ask_on: AskOn) -> AskOn:
    """`ask_on` that raises ModelError at a notice of the server, about a limit or an end of
    service: a sentence that is each of the first answers, whatever was asked. A model may well
    decline always in the same words."""
    beginnings: list[str] = []
    texts: set[str] = set()

    def ask_and_compare(
        requests: Sequence[Request], follow: Callable[[int, Answer], Request | None]
    ) -> None:
        def compare(number: int, answer: Answer) -> Request | None:
            if len(beginnings) < _NOTICE_ANSWERS and answer.finish not in ("error", "refused"):
                beginnings.append(requests[number].text.rstrip().rpartition("\n")[2])
                texts.add(" ".join(answer.text.split()))
                (text, *others) = texts
                if (
                    not others
                    and len(beginnings) == _NOTICE_ANSWERS
                    and len(set(beginnings)) >= _NOTICE_MIN_DISTINCT_PROMPTS
                    and len(text.split()) >= _NOTICE_MIN_WORDS
                    and not REFUSAL_FILTERS["refusal"](text)
                ):
                    raise ModelError(
                        f"the first {_NOTICE_ANSWERS} answers are one, whatever was asked: "
                        f"{text[:200]!r}"
                    )
            return follow(number, answer)

        ask_on(requests, compare)

    return ask_and_compare


class _Place(NamedTuple):
    """A place of a round: its number in the round, and how it is asked for now."""

    number: int
    plan: PromptPlan


def _number_places(plans: Sequence[PromptPlan]) -> list[_Place]:
    return [_Place(number, plan) for number, plan in enumerate(plans)]


def _fill_places(
    config: CrawlConfig,
    run: Run,
    plans: Sequence[PromptPlan],
    ask_on: AskOn,
    progress: Progress,
    judge: AcceptabilityJudge | None,
    retries: RefusalRetries,
) -> list[list[Generation]]:
    """The attempts at each place, in the order of the plans; the last attempt counts.

    An answer that is rejected is asked for again at once, beside the others. Those that a judge
    has to read wait until all have come, and refused ones until it is known whether that helps.
    """
    attempts: list[list[Generation]] = [[] for _ in plans]
    pending = _number_places(plans)
    while pending:
        rejected: list[_Place] = []
        for places in _split_retries(pending, attempts, retries):
            repeated_count = sum(bool(attempts[place.number]) for place in places)
            if repeated_count:
                progress.grow(repeated_count)
            rejected += _ask_places(config, run, places, attempts, ask_on, progress, judge, retries)
        pending = []
        for place in sorted(rejected, key=attrgetter("number")):
            attempt = len(attempts[place.number])
            if attempt < config.max_attempts:
                pending.append(_Place(place.number, replan_attempt(config, place.plan, attempt)))
    return attempts


def _ask_places(
    config: CrawlConfig,
    run: Run,
    places: Sequence[_Place],
    attempts: Sequence[list[Generation]],
    ask_on: AskOn,
    progress: Progress,
    judge: AcceptabilityJudge | None,
    retries: RefusalRetries,
) -> list[_Place]:
    """Ask about these places; returns those that are rejected and were not asked about again."""
    rejected: list[_Place] = []
    numbers = [place.number for place in places]
    plan_of = {place.number: place.plan for place in places}
    requests = _build_requests(config, places, attempts)
    request_of = dict(zip(numbers, requests, strict=True))
    unjudged: dict[int, Generation] = {}

    def keep(number: int, generation: Generation) -> bool:
        """Keep an attempt at the place of this number; whether it is rejected."""
        earlier = attempts[number][-1] if attempts[number] else None
        attempts[number].append(generation)
        retries.count_answer(earlier, generation)
        if generation.outcome not in REJECTED_OUTCOMES:
            return False
        progress.advance(0, **{generation.outcome: 1})
        return True

    def follow(request_index: int, answer: Answer) -> Request | None:
        number = numbers[request_index]
        attempt, plan = len(attempts[number]), plan_of[number]
        generation = _read_generation(config, run, plan, attempt, request_of[number], answer)
        if judge is not None:
            # The judge reads all of them at once, when they have come.
            unjudged[number] = generation
            return None
        if not keep(number, generation):
            return None
        # Refused prompts wait: `_split_retries` finds out first whether asking again helps.
        if generation.outcome == "refused" or attempt + 1 >= config.max_attempts:
            rejected.append(_Place(number, plan))
            return None
        plan = plan_of[number] = replan_attempt(config, plan, attempt + 1)
        progress.grow(1)
        (request_of[number],) = _build_requests(config, [_Place(number, plan)], attempts)
        return request_of[number]

    ask_on(requests, follow)
    if judge is not None:
        judged = mark_nonsense(list(unjudged.values()), judge, config.min_acceptability)
        for number, generation in zip(unjudged, judged, strict=True):
            if keep(number, generation):
                rejected.append(_Place(number, plan_of[number]))
    return rejected


def _split_retries(
    places: Sequence[_Place],
    attempts: Sequence[Sequence[Generation]],
    retries: RefusalRetries,
) -> Iterator[Sequence[_Place]]:
    """The places to ask about in one attempt, in up to two parts: of those that were refused, first
    only as many as it takes to tell whether asking again is of use, and the rest if it is."""
    refused: list[_Place] = []
    for place in places:
        earlier = attempts[place.number]
        if earlier and earlier[-1].outcome == "refused":
            refused.append(place)
    # Of as many prompts as possible: the first answer to each, then the second.
    refused.sort(key=lambda place: (place.plan.answer, place.number))
    retries_needed = max(0, REFUSAL_RETRY_TRIALS - retries.retry_count)
    # Once enough were retried, there is nothing to find out first: all of them go together.
    trial_places = refused[: retries_needed or len(refused)]
    trial_numbers = {place.number for place in trial_places}
    later_numbers = {place.number for place in refused} - trial_numbers
    if retries.always_refused:
        later_numbers |= trial_numbers
    first_part = [place for place in places if place.number not in later_numbers]
    if first_part:
        yield first_part
    # Asked after the first part has been answered, which may have settled it.
    if later_numbers and not retries.always_refused:
        yield [place for place in places if place.number in later_numbers]


def _build_requests(
    config: CrawlConfig,
    places: Sequence[_Place],
    attempts: Sequence[Sequence[Generation]] = (),
) -> list[Request]:
    """The next request of each place, after these attempts. The answers to a prompt follow each
    other, so it is written once for all of them."""
    requests: list[Request] = []
    drawn: tuple[str, int] | None = None
    prompt: str | tuple[tuple[str, str], ...] = ""
    for number, plan in places:
        attempt = len(attempts[number]) if attempts else 0
        if (plan.path, attempt) != drawn:
            drawn, prompt = (plan.path, attempt), render_prompt(config, plan)
        requests.append(_build_request(config, plan, prompt, attempt))
    return requests


def _build_request(
    config: CrawlConfig, plan: PromptPlan, prompt: str | tuple[tuple[str, str], ...], attempt: int
) -> Request:
    max_tokens, stop = config.pack.template(plan.template).answer_limits(config.form)
    # The draws from a prompt are numbered: first one for each answer, then one for each rejected
    # answer, and so on.
    draw_number = plan.answer + attempt * config.answers
    stream = content_id("stream", str(config.seed), plan.path, str(draw_number))
    return Request(
        prompt,
        seed=int(stream[:15], 16),  # 15 hex digits are 60 bits: a signed 64-bit integer
        temperature=config.temperature,
        max_tokens=max_tokens + (EXTRA_JSON_TOKENS if config.structured else 0),
        stop=stop,
        schema=answer_schema(names_predicate=plan.predicate is None) if config.structured else None,
        truncation=config.truncation,
    )


def _read_generation(
    config: CrawlConfig, run: Run, plan: PromptPlan, attempt: int, request: Request, answer: Answer
) -> Generation:
    template = config.pack.template(plan.template)
    triple = None
    outcome: Outcome
    prompt_form: str = config.form
    text: str | None = answer.text
    if config.structured:
        text = flatten_schema_answer(answer.text, names_predicate=plan.predicate is None)
        prompt_form += "+json" if text != answer.text else ""
    if answer.finish == "error":
        outcome, reason = "failed", answer.details
    elif answer.finish == "refused":
        outcome, reason = "refused", "withheld by the server"
    elif text is None:
        outcome, reason = "unparsable", "not the schema"
    else:
        reading = read_answer(
            text,
            answer.finish,
            predicate=plan.predicate,
            # Echoes need the examples: `_repeats_example` below.
            filters=[name for name in config.filters if name != ECHO_FILTER],
            subject=plan.name,
            # A flattened JSON answer is in the published form, whatever the pack's.
            reader=config.pack.reader if text == answer.text else "list",
        )
        outcome, reason = reading.outcome, reading.reason
        predicate = plan.predicate or reading.predicate
        if outcome == "ok":
            triple = Triple(plan.group.name, predicate, reading.object, plan.group.english)
        if (
            triple is not None
            and ECHO_FILTER in config.filters
            and _repeats_example(config, plan, triple)
        ):
            outcome, reason, triple = "echo", "repeats an example", None
    return Generation(
        run_id=run.id,
        path=f"{place_path(config, plan)}#{attempt}",
        group_id=plan.group.id,
        arm=plan.arm,
        strategy=plan.strategy,
        iteration=plan.iteration,
        attempt=attempt,
        outcome=outcome,
        reason=reason,
        template=f"{template.wording_label(plan.wording)}:{prompt_form}",
        template_hash=template.hash,
        prompt=request.text,
        answer_key=answer.key,
        triple=triple,
        shown=tuple(t.id for t in plan.shown_triples),
    )


def _repeats_example(config: CrawlConfig, plan: PromptPlan, triple: Triple) -> bool:
    """Whether an answer repeats an example of its prompt."""
    shown = [(example.predicate, example.object) for example in plan.examples]
    return is_echo(triple.predicate, triple.object, shown, language=config.pack.language)


def _record_round(
    store: Store,
    run: Run,
    config: CrawlConfig,
    iteration: int,
    generations: Sequence[Sequence[Generation]],
) -> None:
    for arm in config.arms:
        batch = [g for attempts in generations for g in attempts if g.arm == arm]
        store.record_round(run.id, arm, iteration, batch)


def _grow_pools(pools: Sequence[TriplePool], generations: Sequence[Sequence[Generation]]) -> None:
    """Add a round's triples to the pools they were drawn from, in prompt order."""
    by_group = {(pool.arm, group.id): pool for pool in pools for group in pool.groups}
    for attempts in generations:
        last_attempt = attempts[-1]
        if last_attempt.triple is not None:
            by_group[last_attempt.arm, last_attempt.group_id].triples.append(last_attempt.triple)  # type: ignore[index]


def crawl_repeatedly(
    config: CrawlConfig,
    model: Completer,
    store: Store,
    *,
    repeat: int = 1,
    judge: AcceptabilityJudge | None = None,
    gauge: Gauge | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
    after_round: AfterRound | None = None,
) -> Iterator[CrawlResult]:
    """`repeat` independent crawls: the run `name`, then name~2, name~3 ..., whose configurations
    name the first as their series. They share the budget.

    Raises what `crawl` raises; the same call continues with the unfinished crawl.
    """
    progress = progress or SilentProgress()
    check_repeat(repeat)
    budget = budget or Budget()
    for number in range(1, repeat + 1):
        if repeat > 1:
            progress.note(f"crawl {number} of {repeat}")
        try:
            result = crawl(
                _repeat_config(config, name or "", number),
                model,
                store,
                judge=judge,
                gauge=gauge,
                name=name if number == 1 else f"{name}~{number}",
                progress=progress,
                budget=budget,
                after_round=after_round,
            )
        except Interrupted as stop:
            if repeat == 1:
                raise
            raise Interrupted(f"crawl {number} of {repeat}: {stop}") from None
        # Without a name, the first crawl's default name begins the series.
        name = name or result.run.name
        yield result


def _repeat_config(config: CrawlConfig, series: str, number: int) -> CrawlConfig:
    """The configuration of a crawl of a series, counted from 1."""
    if number == 1:
        return config
    seed = int(content_id("crawl", str(config.seed), str(number))[:8], 16)
    return replace(config, seed=seed, series=series)
