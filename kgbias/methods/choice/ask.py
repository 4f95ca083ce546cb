"""Ask a model which group each statement of a run is about."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import DataError, Interrupted, ModelError, UsageError
from kgbias.evidence.indicators import read_indicators
from kgbias.evidence.names import MIN_NAMES, group_names
from kgbias.graph.answers import LoggedModel
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Answer, ChoiceRun, ChosenEdge, Group, GroupName
from kgbias.ids import content_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.methods.choice.config import (
    FAILED,
    LETTERS,
    REFUSED,
    UNREADABLE,
    ChoiceConfig,
    configure_choice,
    read_choice,
)
from kgbias.methods.choice.result import CategoryChoices, ChoiceShares, RunChoices
from kgbias.models.base import Completer, PromptForm, Request
from kgbias.models.budget import Budget, Prices, estimate_tokens
from kgbias.models.kinds import form_for
from kgbias.models.score.base import Counts
from kgbias.models.spec import KINDS, is_on_server
from kgbias.parameters import SelectionOptions, as_names
from kgbias.probe.result import Statement
from kgbias.probe.run_probes import collect_statements, count_said, groups_by_category
from kgbias.stats.estimate import nan_to_none


def draw_offered_groups(
    groups: int, options: int, rounds: int, stream: Sequence[str]
) -> list[list[int]]:
    """The groups offered by each question about a statement, as numbers, in the order offered;
    `groups` questions in each round.

    A round is a cyclic design (John 1966): the groups stand in a circle in random order, and a
    random block of `options` places moves one step along it from question to question. So in each
    round each group is offered `options` times, once in each place; if all groups are offered at
    once, it is a Latin square. Which groups meet is left to the draw, in which every pair is
    equally likely. `stream` names the random draw.
    """
    orders = []
    for round_ in range(rounds):
        seed = int(content_id("choice", *stream, str(round_))[:15], 16)
        rng = np.random.Generator(np.random.PCG64(seed))
        circle, block = rng.permutation(groups), rng.permutation(groups)[:options]
        orders += [circle[(block + step) % groups].tolist() for step in range(groups)]
    return orders


READ = "read"
_MAX_QUESTIONS_AT_ONCE = 1024  # questions put to the model at once


@dataclass(frozen=True)
class ChoicePart:
    """One category of what is asked: its groups, the names that each is offered under, the
    statements about any of them, and how often the run said each [groups, statements]."""

    category: str
    groups: tuple[Group, ...]
    names: tuple[tuple[GroupName, ...], ...]
    statements: tuple[Statement, ...]
    said_counts: Counts


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A question: the number of the statement, and those of the groups in the order offered, each
    with the number of the name that stands for it."""

    statement: int
    options: tuple[tuple[int, int], ...]
    request: Request


@dataclass(frozen=True, slots=True, repr=False)
class ChoicePrice(Result):
    """What forced choices would ask.

    Attributes:
        statements: the number asked about; a statement counts once in each category.
        requests: the number of questions about them.
        prompt_tokens: their approximate total number of tokens, at four characters per token.
        answer_tokens_at_most: the largest number of tokens that the answers may have.
        prices: what tokens cost, if given.
    """

    statements: int
    requests: int
    prompt_tokens: int
    answer_tokens_at_most: int
    prices: Prices | None = None

    @property
    def cost(self) -> float | None:
        """The approximate cost if answers are as long as they may be; None without prices."""
        if self.prices is None:
            return None
        return self.prices.cost_of(self.prompt_tokens, self.answer_tokens_at_most)

    cost_at_most = cost

    def as_rows(self) -> Rows[Any]:
        """One row; columns: the fields of this class, and cost."""
        names = [name for name in self.__dataclass_fields__ if name != "prices"]
        row = {name: getattr(self, name) for name in names} | {"cost": self.cost}
        return Rows([row], columns=row)


def plan_choices(
    run: StoredRun,
    *,
    categories: Sequence[str] = (),
    sample: int | None = None,
    selection: Selection | None = None,
    names: Mapping[str, Sequence[GroupName]] = MappingProxyType({}),
    seed: int = 0,
) -> list[ChoicePart]:
    """What can be asked about a run: its statements that count, by category, at most `sample` in
    each, drawn at random. A group is offered under its `names` (by group id) in turn, or under its
    own name if it has none there. Raises DataError if no category has two groups and a statement,
    UsageError for a category that the run does not have."""
    if sample is not None and sample < 1:
        raise UsageError("`sample` must be at least 1")
    triples = select_statements(run, selection).triples
    parts = []
    for category, groups in groups_by_category(run.record, categories).items():
        statements, said_counts = collect_statements(groups, triples)
        if len(groups) < 2 or not statements:
            continue
        table = count_said(said_counts, (len(groups), len(statements)))
        if sample is not None and sample < len(statements):
            rng = np.random.Generator(np.random.PCG64(_seed_number("sample", str(seed), category)))
            sampled = np.sort(rng.choice(len(statements), sample, replace=False))
            statements, table = tuple(statements[n] for n in sampled), table[:, sampled]
        names_by_group = {g.id: names[g.id] for g in groups if len(names.get(g.id, ())) > 1}
        if len(names_by_group) < 2:  # one group alone cannot be compared
            names_by_group = {}
        offered = tuple(
            tuple(names_by_group.get(g.id, ())) or (GroupName(g.name, g.id, "", ""),)
            for g in groups
        )
        parts.append(ChoicePart(category, groups, offered, statements, table))
    if not parts:
        raise DataError(f"run {run.name} has no category with two groups and statements to ask of")
    return parts


def choice_price(
    parts: Sequence[ChoicePart], config: ChoiceConfig, prices: Prices | None = None
) -> ChoicePrice:
    """What asking would cost. Asks nothing."""
    requests, tokens = 0, 0
    for part in parts:
        requests_each = len(part.groups) * config.rounds(len(part.groups))[1]
        requests += requests_each * len(part.statements)
        # All questions about a statement are about as long as the first.
        firsts = (next(_statement_questions(config, part, n)) for n in range(len(part.statements)))
        tokens += requests_each * sum(
            estimate_tokens(question.request.prompt) for question in firsts
        )
    max_tokens = config.template.answer_limits(config.form).max_tokens
    statements = sum(len(part.statements) for part in parts)
    return ChoicePrice(statements, requests, tokens, requests * max_tokens, prices)


def first_requests(part: ChoicePart, config: ChoiceConfig) -> dict[PromptForm, Request]:
    """The first request of a part, in each form."""
    forms: tuple[PromptForm, ...] = ("chat", "completion")
    return {
        form: next(_statement_questions(replace(config, form=form), part, 0)).request
        for form in forms
    }


def choose(
    run: StoredRun,
    model: Completer,
    parts: Sequence[ChoicePart],
    config: ChoiceConfig,
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> RunChoices:
    """Ask which group each statement is about, and write CHOSEN edges, replacing those of an
    earlier call with the same model and settings. Answers are saved as they arrive: the same call
    again asks only for the rest.

    Raises Interrupted on Ctrl-C or when the budget is spent; ModelError if no question was
    answered."""
    reporter = progress or SilentProgress()
    asker = LoggedModel(model, run.store, reporter, budget=budget)
    category_choices, edges = [], []
    try:
        for part in parts:
            choices, new_edges = _choose_part(part, config, asker, reporter)
            category_choices.append(choices)
            edges += new_edges
    except (KeyboardInterrupt, Interrupted) as stop:
        raise Interrupted(
            f"{str(stop) or 'stopped'}: the {asker.asked_count - asker.failed_count} answers that "
            f"came are "
            "kept; running this again continues from there"
        ) from None
    choosing = ChoiceRun(
        model.info, (*model.settings, *config.settings), _summary_record(category_choices)
    )
    run.put(ChosenEdge, edges, asking=choosing)
    run.put(ChoiceRun, [choosing])
    return RunChoices(
        run.name,
        choosing,
        tuple(category_choices),
        asker.asked_count,
        asker.cached_count,
        asker.usage,
    )


class _ChosenPart(NamedTuple):
    """What a model chose in a category, and the edges that follow."""

    choices: CategoryChoices
    edges: list[ChosenEdge]


class _AnswerKeys(NamedTuple):
    """The keys in the log of the answers that chose a group for a statement, and of the others."""

    chosen: list[str]
    others: list[str]


def _choose_part(
    part: ChoicePart, config: ChoiceConfig, asker: LoggedModel, progress: Progress
) -> _ChosenPart:
    shape = (len(part.groups), len(part.statements))
    first_names = np.cumsum([0, *map(len, part.names)])  # where each group's names begin
    offered, answer_counts, chosen_counts = (
        np.zeros((first_names[-1], len(part.statements)), dtype=np.int64) for _ in range(3)
    )
    options, rounds = config.rounds(len(part.groups))
    option_counts, outcomes = [0] * options, Counter[str]()
    answer_keys = {place: _AnswerKeys([], []) for place in np.ndindex(*shape)}
    progress.stage(f"choose {part.category}", len(part.groups) * rounds * len(part.statements))
    for question, answer in _ask_questions(part, config, asker):
        choice = _read_answer(
            answer, [_accepted_names(part, *option) for option in question.options]
        )
        outcome = READ if isinstance(choice, int) else choice
        outcomes[outcome] += 1
        if outcomes.total() == MIN_ANSWERS_NOTED:
            note = _unread_note(outcomes)
            if note:
                progress.note(note)
        if outcome not in (READ, FAILED):
            progress.advance(0, **{outcome: 1})
        if isinstance(choice, int):
            option_counts[choice] += 1
        for place, (group, name) in enumerate(question.options):
            name_place = (first_names[group] + name, question.statement)
            offered[name_place] += 1
            answer_counts[name_place] += outcome == READ
            chosen_counts[name_place] += place == choice
            if outcome != FAILED:
                keys = answer_keys[group, question.statement]
                (keys.chosen if place == choice else keys.others).append(answer.key)
    if outcomes[FAILED] == outcomes.total():
        raise ModelError("the model answered none of the questions")
    shares = ChoiceShares.from_counts(chosen_counts, answer_counts, part.names)
    offered = np.add.reduceat(offered, first_names[:-1], axis=0)
    choices = CategoryChoices(
        part.category,
        part.groups,
        part.names,
        part.statements,
        options,
        part.said_counts,
        shares,
        tuple(option_counts),
        outcomes,
    )
    return _ChosenPart(
        choices,
        [_build_edge(choices, offered, place, keys) for place, keys in answer_keys.items()],
    )


MIN_ANSWERS_NOTED = 50  # answers, after which it is said that most cannot be read


def _unread_note(outcomes: Counter[str]) -> str:
    """What to do if fewer than half of the answers could be read; "" if enough could."""
    answer_count = outcomes.total() - outcomes[FAILED]
    if not answer_count or outcomes[READ] >= answer_count / 2:
        return ""
    bad_counts = ", ".join(f"{outcomes[n]} {n}" for n in (REFUSED, UNREADABLE) if outcomes[n])
    read_words = f"only {outcomes[READ]} name" if outcomes[READ] > 1 else "one names"
    if not outcomes[READ]:
        read_words = "none names"
    return (
        f"of the first "
        f"{pluralise(answer_count, 'answer')} {read_words} an option ({bad_counts}): Ctrl-C "
        "stops, and what came is kept; the other form (`form`), or a question of your own "
        "(`prompts`), may be answered better"
    )


def _capital_name(name: GroupName) -> str:
    return name.text[:1].upper() + name.text[1:]


def _accepted_names(part: ChoicePart, group: int, name: int) -> list[str]:
    """What an answer may call an option; first, the name it was offered under."""
    group_node, all_names = part.groups[group], part.names[group]
    return [
        all_names[name].text,
        group_node.name,
        *group_node.variants,
        *(other.text for other in all_names),
    ]


def _read_answer(answer: Answer, names: Sequence[Sequence[str]]) -> int | str:
    if answer.finish in ("error", "refused"):  # refused: the server withheld it
        return FAILED if answer.finish == "error" else REFUSED
    return read_choice(answer.text, names)


def _ask_questions(
    part: ChoicePart, config: ChoiceConfig, asker: LoggedModel
) -> Iterator[tuple[ChoiceQuestion, Answer]]:
    pending: list[ChoiceQuestion] = []
    enough = MIN_ANSWERS_NOTED  # a few at first, which tell whether answers can be read
    for statement in range(len(part.statements)):
        pending += _statement_questions(config, part, statement)
        if len(pending) >= enough or statement == len(part.statements) - 1:
            answers = asker.ask([question.request for question in pending])
            yield from zip(pending, answers, strict=True)
            pending, enough = [], _MAX_QUESTIONS_AT_ONCE


def _statement_questions(
    config: ChoiceConfig, part: ChoicePart, number: int
) -> Iterator[ChoiceQuestion]:
    """The questions about a statement."""
    statement, groups = part.statements[number], part.groups
    options, rounds = config.rounds(len(groups))
    max_tokens, stop = config.template.answer_limits(config.form)
    stream = (str(config.seed), part.category, statement.id)
    rng = np.random.Generator(np.random.PCG64(_seed_number("names", *stream)))
    turns = [cycle(rng.permutation(len(group_names)).tolist()) for group_names in part.names]
    for turn, order in enumerate(draw_offered_groups(len(groups), options, rounds, stream)):
        offered = tuple((g, next(turns[g])) for g in order)
        prompt = config.template.render(
            config.form,
            statement=statement.text,
            options=[
                (LETTERS[place], _capital_name(part.names[g][name]))
                for place, (g, name) in enumerate(offered)
            ],
        )
        request = Request(
            prompt,
            seed=_seed_number("answer", *stream, str(turn)),
            temperature=config.temperature,
            max_tokens=max_tokens,
            stop=stop,
        )
        yield ChoiceQuestion(number, offered, request)


def _seed_number(*stream: str) -> int:
    return int(content_id("choice", *stream)[:15], 16)


def _build_edge(
    choices: CategoryChoices,
    offered: Counts,
    place: tuple[int, int],
    keys: _AnswerKeys,
) -> ChosenEdge:
    group, statement = place
    table = choices.shares
    figures = ("share", "low", "high", "lift", "lift_low", "lift_high")
    return ChosenEdge(
        *choices.statements[statement].key,
        choices.groups[group].id,
        int(offered[place]),
        int(table.answer_counts[place]),
        int(table.chosen_counts[place]),
        base=nan_to_none(table.base[group].value),
        q_value=nan_to_none(float(table.q_values[place])),
        names=int(table.names[group]),
        verdict=str(table.verdicts[place]),
        answers=tuple(keys.chosen),
        others=tuple(keys.others),
        **{name: nan_to_none(float(getattr(table, name)[place])) for name in figures},
    )


def _summary_record(category_choices: Sequence[CategoryChoices]) -> dict[str, object]:
    """A summary of the result for the store."""
    record: dict[str, object] = nan_to_none({c.category: c.as_dict() for c in category_choices})
    return {"categories": record}


class PlannedQuestions(NamedTuple):
    """The parts of the questions, and their configuration."""

    parts: list[ChoicePart]
    config: ChoiceConfig


def plan_questions(run: StoredRun, spec: str, options: dict[str, Any]) -> PlannedQuestions:
    """The parts and the configuration for these options."""
    criteria = Selection(
        **{name: options.pop(name) for name in SelectionOptions.__annotations__ if name in options}
    )
    category, sample = as_names(options.pop("category", ())), options.pop("sample", None)
    declared = options.pop("indicators", None)
    indicators = read_indicators(Path(declared) if declared else None)
    all_names = {g.id: group_names(g, indicators) for g in run.groups}
    names = {id: own for id, own in all_names.items() if len(own) >= MIN_NAMES}
    # An open model may have any name, which is no spec.
    is_served = spec.partition(":")[0] in KINDS and is_on_server(spec)
    default_form: PromptForm = "chat" if is_served else "completion"
    form = form_for(spec, options.pop("form", None))
    config = configure_choice(run, form=form or default_form, **options)
    parts = plan_choices(
        run,
        categories=category,
        sample=sample,
        selection=criteria,
        names=names,
        seed=config.seed,
    )
    return PlannedQuestions(parts, config)
