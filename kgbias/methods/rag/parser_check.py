"""Does a triple still say what the answer it was read from said? Checked for every generation of a
run, by rule and by a judge."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from kgbias.crawl.parse import parse_prompt, reread_answer
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, verbalise
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.methods.rag.judges import Judge
from kgbias.methods.rag.metrics import retest_agreement
from kgbias.methods.rag.rules import RuleVerdict, check_triple
from kgbias.stats.inference import Estimate, proportion

_BATCH_GENERATIONS = 2_000


@dataclass(frozen=True, slots=True)
class CheckedTriple:
    """A generation, what its answer said (with the beginning that the prompt gave), and what was
    read from it.

    Attributes:
        outcome: how the generation ended.
        group, predicate, object: the triple; for an answer that yielded none, what the reader finds
            in it without filters.
        answer: the whole sentence.
        rule: whether the triple says what the answer said, by rule.
        judged: the same by a judge, one for each repeat; empty if no judge was asked.
        path: the generation's place in the run.
    """

    outcome: str
    group: str
    predicate: str
    object: str
    answer: str
    rule: RuleVerdict
    path: str
    judged: tuple[bool | None, ...] = ()

    @property
    def sentence(self) -> str:
        return verbalise(self.group, self.predicate, self.object)


@dataclass(frozen=True, slots=True)
class OutcomeFaithfulness:
    """The generations with one outcome: how many there are, how many contain a statement, the share
    of these that is faithful by rule and by the judge, and why the others are not, by rule."""

    outcome: str
    generations: int
    statements: int
    by_rule: Estimate
    by_judge: Estimate
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class ParserFaithfulness(Result):
    """How faithful the parser of a run was.

    Attributes:
        run: the run's name.
        judge: who judged besides the rule; "" for nobody.
        outcomes: the generations by outcome, "ok" first.
        statements: every statement with its verdict.
        without_answer: generations whose raw answer is not in the log, such as rows of a table.
        retest: the share of statements that two repeats of the judge judged alike.
        agreement: the share of statements on which rule and judge agree.
    """

    run: str
    judge: str
    outcomes: tuple[OutcomeFaithfulness, ...]
    statements: tuple[CheckedTriple, ...]
    without_answer: int
    retest: Estimate
    agreement: Estimate

    @property
    def unfaithful(self) -> list[CheckedTriple]:
        """Statements with outcome "ok" that do not say what their answer said, by rule or judge."""
        return [
            statement
            for statement in self.statements
            if statement.outcome == "ok"
            and (not statement.rule.supported or statement.judged[:1] == (False,))
        ]

    def as_rows(self) -> Rows[CheckedTriple]:
        """The statements. Columns: outcome, group, predicate, object, answer, supported (by rule),
        path."""
        supported = Column("supported", get=attrgetter("rule.supported"))
        columns = ("outcome", "group", "predicate", "object", "answer", supported, "path")
        return Rows(self.statements, columns)

    def heading(self) -> str:
        count = len(self.unfaithful)
        verb = "does" if count == 1 else "do"
        return f"run {self.run}: {pluralise(count, 'statement')} {verb} not say what was answered"


def check_generations(
    run: StoredRun,
    judge: Judge | None = None,
    *,
    sample: int | None = None,
    repeats: int = 1,
    seed: int = 0,
) -> ParserFaithfulness:
    """Check every generation of a run by rule, and those that contain a statement (or a random
    `sample` of them) by a judge."""
    generations: Counter[str] = Counter()
    without_answer = 0
    statements: list[CheckedTriple] = []
    for generation, statement in _check_generations(run):
        generations[generation.outcome] += 1
        if statement is None:
            without_answer += generation.answer_key == ""
        else:
            statements.append(statement)
    if judge is not None and statements:
        statements = _judge_statements(statements, judge, sample, repeats, seed)
    order = sorted(generations, key=lambda outcome: (outcome != "ok", outcome))
    judged_statements = [statement for statement in statements if statement.judged]
    comparable = [statement for statement in judged_statements if statement.judged[0] is not None]
    return ParserFaithfulness(
        run.name,
        judge.name if judge else "",
        tuple(_summarise_outcome(name, generations[name], statements) for name in order),
        tuple(statements),
        without_answer,
        retest_agreement([statement.judged for statement in judged_statements]),
        proportion(
            sum(statement.rule.supported == statement.judged[0] for statement in comparable),
            len(comparable),
        ),
    )


def _check_generations(run: StoredRun) -> Iterator[tuple[Generation, CheckedTriple | None]]:
    """Each generation, checked by rule if its answer contains a statement."""
    groups = {group.id: group for group in run.groups}
    batch: list[Generation] = []
    for generation in run.generations():
        batch.append(generation)
        if len(batch) == _BATCH_GENERATIONS:
            yield from _check_batch(run, groups, batch)
            batch = []
    yield from _check_batch(run, groups, batch)


def _check_batch(
    run: StoredRun, groups: Mapping[str, Group], batch: Sequence[Generation]
) -> Iterator[tuple[Generation, CheckedTriple | None]]:
    answers = run.store.answers(
        [generation.answer_key for generation in batch if generation.answer_key]
    )
    for generation in batch:
        answer, group = answers.get(generation.answer_key), groups.get(generation.group_id)
        if answer is None or (group is None and generation.triple is None):
            yield generation, None
            continue
        name = generation.triple.group if generation.triple else ""
        name = group.name if group else name
        names = (name, *(group.variants if group else ()))
        subject, predicate_beginning = parse_prompt(generation.prompt, names)
        if generation.triple is not None:
            predicate, object = generation.triple.predicate, generation.triple.object
        else:
            predicate, object = reread_answer(
                answer.text, subject or name, predicate_beginning, run.config
            )
        if not object:
            yield generation, None
            continue
        # The beginning that the prompt gave precedes the answer; the triple is also found in an
        # answer that repeats that beginning.
        sentence = " ".join(f"{subject or name} {predicate_beginning} {answer.text}".split(" "))
        verdict = max(
            (
                check_triple(sentence, name_, predicate, object)
                for name_ in dict.fromkeys([subject or name, *names])
            ),
            key=lambda option: (option.supported, option.reason != "words"),
        )
        yield (
            generation,
            CheckedTriple(
                generation.outcome, name, predicate, object, sentence, verdict, generation.path
            ),
        )


def _judge_statements(
    statements: Sequence[CheckedTriple], judge: Judge, sample: int | None, repeats: int, seed: int
) -> list[CheckedTriple]:
    positions = list(range(len(statements)))
    if sample is not None and sample < len(positions):
        positions = sorted(random.Random(seed).sample(positions, sample))
    queries = [(statements[number].answer, (statements[number].sentence,)) for number in positions]
    rounds = [
        [value for (value,) in judge.judge_statements(queries, number)] for number in range(repeats)
    ]
    judged = list(statements)
    for position, verdicts in zip(positions, zip(*rounds, strict=True), strict=True):
        judged[position] = replace(statements[position], judged=tuple(verdicts))
    return judged


def _summarise_outcome(
    outcome: str, generations: int, all_statements: Sequence[CheckedTriple]
) -> OutcomeFaithfulness:
    statements = [statement for statement in all_statements if statement.outcome == outcome]
    verdicts = [
        statement.judged[0]
        for statement in statements
        if statement.judged and statement.judged[0] is not None
    ]
    return OutcomeFaithfulness(
        outcome,
        generations,
        len(statements),
        proportion(sum(statement.rule.supported for statement in statements), len(statements)),
        proportion(sum(verdicts), len(verdicts)),
        dict(
            Counter(
                statement.rule.reason for statement in statements if not statement.rule.supported
            ).most_common()
        ),
    )
