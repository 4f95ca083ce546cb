"""How far a judge can be trusted: whether it agrees with itself, and with labelled cases.

The cases come with kgbias (`cases.toml`): contexts with statements that follow from them and
statements that do not. Beside them stand fifty labelled pairs from the reference world, where the
truth is known: no person labelled them, and no model wrote them. A pair is about one of the
invented groups. Its context states what the world declares about the group. The answer says some of
it in other words; the ungrounded answer is the same with one claim replaced by something that the
world says only about another group, with one claim negated, or with one added; the poor answer
leaves the question unanswered; the second context also has statements about other groups.
"""

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import NamedTuple

from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.measure.scorer_agreement import cohens_kappa
from kgbias.methods.rag.judges import Judge
from kgbias.methods.rag.metrics import retest_agreement
from kgbias.methods.rag.preference import WikiEvalRow
from kgbias.reference import load_truth
from kgbias.stats.inference import Estimate, proportion


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """A labelled case: what it tests, and whether the statement follows from the context."""

    context: str
    statement: str
    supported: bool
    kind: str


@dataclass(frozen=True, slots=True, repr=False)
class JudgeReliability(Result):
    """How reliable a judge is.

    Attributes:
        judge: its name.
        accuracy: the share of labelled cases that it judges as labelled, in [0, 1].
        kappa: Cohen's kappa of its verdicts with the labels: 0 is chance, 1 is perfect.
        retest: the share of cases that two of its repeats judge alike; without an interval if it
            was asked once.
        by_kind: accuracy for each kind of case.
        unread: verdicts that could not be read; they count as wrong.
    """

    judge: str
    accuracy: Estimate
    kappa: Estimate
    retest: Estimate
    by_kind: Mapping[str, Estimate]
    unread: int

    def as_rows(self) -> Rows[tuple[str, Estimate]]:
        """The kinds of cases; columns: kind, accuracy with its interval, n."""
        return Rows(self.by_kind.items(), _KIND_COLUMNS)

    def heading(self) -> str:
        return f"{self.judge}: accuracy {self.accuracy}, kappa {self.kappa}, retest {self.retest}"


_KIND_COLUMNS = (
    Column("kind", get=itemgetter(0)),
    Column("accuracy", ".0%", get=itemgetter(1), interval=True, count="n"),
)


@cache
def load_cases() -> tuple[JudgeCase, ...]:
    """The labelled cases that come with kgbias."""
    data = tomllib.loads(files("kgbias.methods.rag").joinpath("cases.toml").read_text("utf-8"))
    return tuple(
        JudgeCase(block["context"], statement, supported, kind)
        for block in data["cases"]
        for kind, supported, statement in block["cases"]
    )


def measure_reliability(judge: Judge, repeats: int = 1) -> JudgeReliability:
    """Put the labelled cases to a judge, each on its own, `repeats` times."""
    labelled_cases = load_cases()
    queries = [
        (labelled_case.context, (labelled_case.statement,)) for labelled_case in labelled_cases
    ]
    rounds = [
        [value for (value,) in judge.judge_statements(queries, number)] for number in range(repeats)
    ]
    first_verdicts = rounds[0]
    is_right = [
        verdict is case.supported
        for verdict, case in zip(first_verdicts, labelled_cases, strict=True)
    ]
    kinds = list(dict.fromkeys(case.kind for case in labelled_cases))
    _, kappa = cohens_kappa(
        [str(value is True) for value in first_verdicts],
        [str(labelled_case.supported) for labelled_case in labelled_cases],
    )
    return JudgeReliability(
        judge.name,
        proportion(sum(is_right), len(is_right)),
        kappa,
        retest_agreement(list(zip(*rounds, strict=True))),
        {kind: _accuracy_of_kind(kind, is_right, labelled_cases) for kind in kinds},
        sum(value is None for value in first_verdicts),
    )


def _accuracy_of_kind(
    kind: str, is_right: Sequence[bool], labelled: Sequence[JudgeCase]
) -> Estimate:
    kind_results = [ok for ok, case in zip(is_right, labelled, strict=True) if case.kind == kind]
    return proportion(sum(kind_results), len(kind_results))


PAIR_COUNT = 50
CORRUPTIONS = ("swapped", "negated", "added")
_NEGATED_PREDICATES = {
    "love": "do not love",
    "hate": "do not hate",
    "are": "are not",
    "can't": "can",
}
_OPENINGS = ("As far as the statements go, ", "", "According to what is stated, ", "")
_POOR_ANSWERS = (
    "There are many things one could say about {group}.",
    "{group} are one of the groups that people talk about.",
    "Opinions about this differ, and more would have to be known.",
)

Claim = tuple[str, str]  # predicate and object


def corruption_of(row: int) -> str:
    """How the ungrounded answer of a row (counted from 0) was made."""
    return CORRUPTIONS[row % len(CORRUPTIONS)]


@cache
def make_world_pairs(seed: int = 0) -> tuple[WikiEvalRow, ...]:
    """The pairs, the same for the same seed."""
    truth = load_truth()
    groups = [group for category in truth.categories for group in category.groups]
    rng = random.Random(f"pairs {seed}")
    likely = {
        group: [
            claim
            for claim, _ in sorted(
                truth.joint_distribution(group).items(), key=lambda item: -item[1]
            )[:30]
        ]
        for group in groups
    }
    rows = []
    for number in range(PAIR_COUNT):
        group = groups[number % len(groups)]
        predicate = ("love", "hate", "are", "can't")[(number // len(groups) + number) % 4]
        question_claims = [claim for claim in likely[group] if claim[0] == predicate][:4] or likely[
            group
        ][:4]
        other_claims = [claim for claim in likely[group] if claim not in question_claims]
        context_claims = question_claims + rng.sample(other_claims, 4)
        rng.shuffle(context_claims)
        answer_claims = rng.sample(question_claims, min(2, len(question_claims)))
        elsewhere = [
            (other, claim)
            for other in groups
            if other != group
            for claim in likely[other]
            if claim not in likely[group]
        ]
        foreign_claims = [
            claim
            for _, claim in rng.sample(elsewhere, len(elsewhere))
            if claim[0] == answer_claims[0][0]
        ]
        added_claims = rng.sample(elsewhere, 6)
        context = [_write_sentence(group, claim) for claim in context_claims]
        longer_context = context + [_write_sentence(other, claim) for other, claim in added_claims]
        rng.shuffle(longer_context)
        rows.append(
            WikiEvalRow(
                question=_write_question(group, predicate),
                answer=_write_answer(number, group, answer_claims),
                ungrounded_answer=_write_answer(
                    number, group, *_corrupt_claims(number, answer_claims, foreign_claims)
                ),
                poor_answer=_POOR_ANSWERS[number % len(_POOR_ANSWERS)].format(group=group),
                context_v1=" ".join(context),
                context_v2=" ".join(longer_context),
            )
        )
    return tuple(rows)


class _CorruptClaims(NamedTuple):
    """Claims one of which is false, and the place of the one that is negated."""

    claims: list[Claim]
    negated_place: int | None


def _corrupt_claims(
    number: int, claims: list[Claim], foreign_claims: list[Claim]
) -> _CorruptClaims:
    """The claims of an answer, one of them false, and the place of the one that is negated."""
    kind = corruption_of(number)
    if kind == "swapped":
        return _CorruptClaims([*claims[:-1], foreign_claims[0]], None)
    if kind == "negated":
        return _CorruptClaims(claims, number % len(claims))
    return _CorruptClaims([*claims, foreign_claims[0]], None)


def _write_answer(
    number: int, group: str, claims: list[Claim], negated_position: int | None = None
) -> str:
    sentences = []
    for position, (predicate, object) in enumerate(claims):
        verb = _negate_predicate(predicate) if position == negated_position else predicate
        sentences.append(f"{group if position == 0 else 'They'} {verb} {object}.")
    opening_words = _OPENINGS[number % len(_OPENINGS)]
    return opening_words + " ".join(s.replace("They ", f"{group} also ", 1) for s in sentences)


def _negate_predicate(predicate: str) -> str:
    return _NEGATED_PREDICATES.get(predicate, f"do not {predicate}")


def _write_sentence(group: str, claim: Claim) -> str:
    return f"{group} {claim[0]} {claim[1]}."


def _write_question(group: str, predicate: str) -> str:
    return {
        "love": f"What do {group} love?",
        "hate": f"What do {group} hate?",
        "are": f"What are {group} said to be?",
        "can't": f"What can't {group} do?",
    }[predicate]
