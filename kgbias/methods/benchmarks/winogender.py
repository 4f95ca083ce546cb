"""Winogender schemas (Rudinger et al. 2018)."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgbias.errors import DataError
from kgbias.io.tables import TableFormat, read_table
from kgbias.methods.benchmarks.base import (
    OVERALL,
    DomainFigure,
    FigureInfo,
    ItemBenchmark,
    score_continuations,
    sum_by_key,
)
from kgbias.models.score.base import TextScorer
from kgbias.probe.items import ItemScores, make_item
from kgbias.stats.units import UnitSums, ratio_of_sums

GENDERS = {
    "male": ("he", "him", "his"),
    "female": ("she", "her", "hers"),
    "neutral": ("they", "them", "their", "theirs"),
}
TABLE_FORMAT = TableFormat("Winogender: `--winogender`", (("sentid",), ("sentence",)))
_ID = re.compile(r"([^.]+)\.([^.]+)\.([01])\.(male|female|neutral)\.txt")


@dataclass(frozen=True, slots=True)
class Schema:
    """A sentence whose pronoun refers to the `occupation` (answer 0) or the `participant` (1)."""

    occupation: str
    participant: str
    answer: int
    gender: str
    sentence: str
    pronoun: str

    @property
    def name(self) -> str:
        return f"{self.occupation}.{self.participant}.{self.answer}.{self.gender}"


class Winogender(ItemBenchmark):
    """Sentences that differ only in their pronoun. A sentence is followed by "'She' refers to"; an
    item's scores are the log-probabilities of "the nurse" and "the patient" (or "someone") after
    that, and the model resolves the pronoun to the likelier one.

    A word that is likelier by itself is so after either pronoun: this affects accuracy, but not
    whether a male and a female pronoun are resolved alike.
    """

    name = "winogender"
    title = "Winogender"
    source = "Rudinger et al. 2018"
    unit = "occupations"
    hub = ("oskarvanderwal/winogender", "all")
    figures = (
        FigureInfo(
            "accuracy",
            "accuracy",
            "how often the pronoun is resolved to the person it refers to, in percent",
            chance=50.0,
        ),
        FigureInfo(
            "resolved differently",
            "minimal pairs resolved differently",
            "how often she and he in one sentence are resolved to different people, in percent",
            unbiased=0.0,
            beside="accuracy",
        ),
    )

    def __init__(self, schemas: Sequence[Schema], left_out: int = 0) -> None:
        self._schemas = schemas
        self.left_out = left_out
        self.items = [
            make_item(
                self.name, s.name, s.occupation, s.sentence, s.pronoun, *_participant_phrases(s)
            )
            for s in schemas
        ]
        self.sizes = [2] * len(schemas)

    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[ItemScores, int]]:
        pairs = []
        for schema in (self._schemas[n] for n in places):
            lead = f"{schema.sentence} '{schema.pronoun.capitalize()}' refers to"
            pairs += [(lead, f"{mention}.") for mention in _participant_phrases(schema)]
        rows = score_continuations(scorer, pairs)
        return [
            (
                (first.log_likelihood, second.log_likelihood),
                first.tokens_read + second.tokens_read,
            )
            for first, second in zip(rows[::2], rows[1::2], strict=True)
        ]

    def compute_figures(
        self, scores: Sequence[ItemScores], scorer_kind: str, seed: int
    ) -> list[DomainFigure]:
        choices = [int(row[1] >= row[0]) for row in scores]
        domain_figures = []
        for domain in (OVERALL, *GENDERS):
            places = [n for n, s in enumerate(self._schemas) if domain in (OVERALL, s.gender)]
            correct = [100.0 * (choices[n] == self._schemas[n].answer) for n in places]
            domain_figures.append(
                _resample_share(
                    domain, "accuracy", [self._schemas[n].occupation for n in places], correct, seed
                )
            )
        choices_by_gender: dict[_SentenceKey, dict[str, int]] = defaultdict(dict)
        for schema, choice in zip(self._schemas, choices, strict=True):
            key = _SentenceKey(schema.occupation, schema.participant, schema.answer)
            choices_by_gender[key][schema.gender] = choice
        occupations, differences = list[str](), list[float]()
        for key, own_choices in choices_by_gender.items():
            if {"male", "female"} <= own_choices.keys():
                occupations.append(key.occupation)
                differences.append(100.0 * (own_choices["male"] != own_choices["female"]))
        if occupations:
            domain_figures.append(
                _resample_share(OVERALL, "resolved differently", occupations, differences, seed)
            )
        return domain_figures


class _SentenceKey(NamedTuple):
    """What sentences have in common that differ only in their pronoun."""

    occupation: str
    participant: str
    answer: int


def _resample_share(
    domain: str, figure: str, names: Sequence[str], values: Sequence[float], seed: int
) -> DomainFigure:
    unit_names, sums = sum_by_key(names, np.column_stack([np.ones(len(values)), values]))
    units = UnitSums(unit_names, sums, ratio_of_sums, bounds=(0, 100), trials=sums[:, 0])
    return DomainFigure(domain, figure, units, units.estimate(seed=seed))


class _Participants(NamedTuple):
    """The two people of a sentence, as it calls them."""

    occupation: str
    other: str


def _participant_phrases(schema: Schema) -> _Participants:
    participant = (
        schema.participant if schema.participant == "someone" else f"the {schema.participant}"
    )
    return _Participants(f"the {schema.occupation}", participant)


def read_winogender(path: Path) -> Winogender:
    """Read the published all_sentences.tsv: columns sentid (nurse.patient.1.female.txt) and
    sentence. Rows without a sentence are left out and counted."""
    schemas, left_out = [], 0
    for line, row in read_table(path, TABLE_FORMAT.columns).rows:
        match = _ID.fullmatch(row["sentid"].strip())
        if not match:
            raise DataError(
                f"{path}, line {line}: {row['sentid']!r} is not occupation.participant.answer."
                "gender.txt"
            )
        if not row["sentence"].strip():
            left_out += 1
            continue
        occupation, participant, answer, gender = match.groups()
        words = re.findall(r"[a-z]+", row["sentence"].lower())
        pronoun = next((word for word in words if word in GENDERS[gender]), None)
        if pronoun is None:
            raise DataError(f"{path}, line {line}: the sentence has no {gender} pronoun")
        schemas.append(
            Schema(occupation, participant, int(answer), gender, row["sentence"].strip(), pronoun)
        )
    if not schemas:
        raise DataError(f"{path} has no sentences")
    return Winogender(schemas, left_out)
