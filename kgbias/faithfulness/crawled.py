"""Does a triple still say what the answer it was read from said? Checked for every generation of a
run, by rule and by a judge."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgbias.crawl.parse import parse_prompt, reread_answer
from kgbias.faithfulness.judges import Judge
from kgbias.faithfulness.metrics import retest
from kgbias.faithfulness.rules import Verdict, kept
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, verbalise
from kgbias.io.rows import Result, Rows
from kgbias.stats.inference import Estimate, proportion

_CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class Checked:
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
    rule: Verdict
    path: str
    judged: tuple[bool | None, ...] = ()

    @property
    def sentence(self) -> str:
        return verbalise(self.group, self.predicate, self.object)


@dataclass(frozen=True, slots=True)
class OfOutcome:
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
        checked: every statement with its verdict.
        without_answer: generations whose raw answer is not in the log, such as rows of a table.
        retest: the share of statements that two repeats of the judge judged alike.
        agreement: the share of statements on which rule and judge agree.
    """

    run: str
    judge: str
    outcomes: tuple[OfOutcome, ...]
    checked: tuple[Checked, ...]
    without_answer: int
    retest: Estimate
    agreement: Estimate

    @property
    def unfaithful(self) -> list[Checked]:
        """Statements with outcome "ok" that do not say what their answer said, by rule or judge."""
        return [
            c
            for c in self.checked
            if c.outcome == "ok" and (not c.rule.supported or c.judged[:1] == (False,))
        ]

    def as_rows(self) -> Rows[Checked]:
        """The statements. Columns: outcome, group, predicate, object, answer, supported (by rule),
        path."""
        columns = ("outcome", "group", "predicate", "object", "answer", "supported", "path")
        return Rows(
            self.checked,
            lambda c: {
                **{name: getattr(c, name) for name in columns if name != "supported"},
                "supported": c.rule.supported,
            },
            columns,
        )

    def heading(self) -> str:
        return f"run {self.run}: {len(self.unfaithful)} statements do not say what was answered"


def check_run(
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
    without = 0
    found: list[Checked] = []
    for g, checked in _checked(run):
        generations[g.outcome] += 1
        if checked is None:
            without += g.answer_key == ""
        else:
            found.append(checked)
    if judge is not None and found:
        found = _judged(found, judge, sample, repeats, seed)
    order = sorted(generations, key=lambda outcome: (outcome != "ok", outcome))
    judged = [c for c in found if c.judged]
    both = [c for c in judged if c.judged[0] is not None]
    return ParserFaithfulness(
        run.name,
        judge.name if judge else "",
        tuple(_of_outcome(name, generations[name], found) for name in order),
        tuple(found),
        without,
        retest([c.judged for c in judged]),
        proportion(sum(c.rule.supported == c.judged[0] for c in both), len(both)),
    )


def _checked(run: StoredRun) -> Iterator[tuple[Generation, Checked | None]]:
    """Each generation, checked by rule if its answer contains a statement."""
    groups = {g.id: g for g in run.groups}
    batch: list[Generation] = []
    for generation in run.generations():
        batch.append(generation)
        if len(batch) == _CHUNK:
            yield from _batch(run, groups, batch)
            batch = []
    yield from _batch(run, groups, batch)


def _batch(
    run: StoredRun, groups: Mapping[str, Group], batch: Sequence[Generation]
) -> Iterator[tuple[Generation, Checked | None]]:
    answers = run.store.answers([g.answer_key for g in batch if g.answer_key])
    for g in batch:
        answer, group = answers.get(g.answer_key), groups.get(g.group_id)
        if answer is None or (group is None and g.triple is None):
            yield g, None
            continue
        name = group.name if group else g.triple.group if g.triple else ""
        names = (name, *(group.variants if group else ()))
        subject, given = parse_prompt(g.prompt, names)
        if g.triple is not None:
            predicate, object = g.triple.predicate, g.triple.object
        else:
            predicate, object = reread_answer(answer.text, subject or name, given, run.config)
        if not object:
            yield g, None
            continue
        # The beginning that the prompt gave precedes the answer; the triple is also found in an
        # answer that repeats that beginning.
        said = " ".join(f"{subject or name} {given} {answer.text}".split(" "))
        verdict = max(
            (
                kept(said, own, predicate, object)
                for own in dict.fromkeys([subject or name, *names])
            ),
            key=lambda v: (v.supported, v.reason != "words"),
        )
        yield g, Checked(g.outcome, name, predicate, object, said, verdict, g.path)


def _judged(
    found: Sequence[Checked], judge: Judge, sample: int | None, repeats: int, seed: int
) -> list[Checked]:
    places = list(range(len(found)))
    if sample is not None and sample < len(places):
        places = sorted(random.Random(seed).sample(places, sample))
    asked_of = [(found[n].answer, (found[n].sentence,)) for n in places]
    rounds = [[v for (v,) in judge.verdicts(asked_of, n)] for n in range(repeats)]
    judged = list(found)
    for place, verdicts in zip(places, zip(*rounds, strict=True), strict=True):
        judged[place] = replace(found[place], judged=tuple(verdicts))
    return judged


def _of_outcome(outcome: str, generations: int, found: Sequence[Checked]) -> OfOutcome:
    own = [c for c in found if c.outcome == outcome]
    judged = [c.judged[0] for c in own if c.judged and c.judged[0] is not None]
    return OfOutcome(
        outcome,
        generations,
        len(own),
        proportion(sum(c.rule.supported for c in own), len(own)),
        proportion(sum(judged), len(judged)),
        dict(Counter(c.rule.reason for c in own if not c.rule.supported).most_common()),
    )
