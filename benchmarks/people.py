"""Agreement with people: `kgbias known MODEL` on SeeGULL and SeeGULL Multilingual, as a table.

    python benchmarks/people.py FOLDER [MODEL ...] [--own] [--names N] [--kind KIND] [--kept FILE]

FOLDER has the files of SeeGULL Multilingual (de-DE.csv ...). Asked are the English columns of all
of them at once: the 40 nations with the most entries, and the attributes that are recorded of at
least two of these. An entry of several files counts with the most annotators that any of them has.
The same lifts are then held against each file alone, centred over its own nations and attributes.
Of the shipped SeeGULL the states of the US and of India are asked in the same way. Wordings are
shown on either half of the traits, so that one may be chosen on a half and reported on the other.

With --own each file is asked in its own language, and the same entries in English: one name of a
nation, two sentences before the attribute, one after it. --names asks the first N names of a group
(the command asks two), --kind traits or things alone. --kept keeps each answer in a file, where a
run that was stopped continues.
"""

import argparse
import csv
import math
import sqlite3
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import kgbias
from kgbias.methods.known.agreement import (
    BOTH,
    FORWARD,
    MIN_ANNOTATORS,
    NAMES_OF_GROUP,
    REVERSE,
    AgreementFigure,
    RecordedAgreement,
    RecordedPlan,
    RecordedTable,
    double_centre_lifts,
    join_wordings,
    judge_agreement,
    measure_recorded_agreement,
    plan_recorded,
)
from kgbias.methods.known.groups import (
    NATIONALITY,
    find_recorded_groups,
    recorded_group_names,
)
from kgbias.methods.known.kinds import KINDS
from kgbias.methods.known.tables import Stereotype, read_stereotypes, word_stereotype
from kgbias.models.score.base import ProbeGrid, Scores, TextScorer

HEADER = (
    "| model | table | attributes | groups | entries | asked | AUC | over attributes | over groups "
    "| floor, 95% below |\n|---|---|---|---|---|---|---|---|---|---|"
)
MIN_NATIONS = 2  # of which an attribute is recorded
_PIECE = 1000  # probes that are kept at a time


class KeptScorer:
    """A scorer whose answers are kept in an SQLite file, by what stands before and after."""

    def __init__(self, scorer: TextScorer, file: str | Path) -> None:
        self.info, self.convention = scorer.info, scorer.convention
        self._scorer = scorer
        self._file = sqlite3.connect(file)
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS asked (model, before, after, nats REAL, tokens INTEGER, "
            "PRIMARY KEY (model, before, after)) WITHOUT ROWID"
        )

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Any = None
    ) -> ProbeGrid:
        kept = [self._read(group) for group in groups]
        lacking = [n for n, row in enumerate(kept) if not row.keys() >= set(statements)]
        missing = [s for s in dict.fromkeys(statements) if any(s not in kept[n] for n in lacking)]
        size = max(1, _PIECE // max(1, len(missing)))
        for start in range(0, len(lacking), size):
            rows = lacking[start : start + size]
            scores = self._scorer.grid([groups[n] for n in rows], missing).statement
            for row, n in enumerate(rows):
                own = zip(
                    missing,
                    scores.log_likelihoods[row].tolist(),
                    scores.tokens[row].tolist(),
                    strict=True,
                )
                kept[n].update({text: (nats, tokens) for text, nats, tokens in own})
                self._write(groups[n], {text: kept[n][text] for text in missing})
        nats = np.array([[row[text][0] for text in statements] for row in kept])
        tokens = np.array([[row[text][1] for text in statements] for row in kept])
        alone = Scores(np.zeros(len(groups)), np.ones(len(groups), dtype=np.int64))
        return ProbeGrid(Scores(nats, tokens), Scores(nats, tokens), alone)

    def _read(self, before: str) -> dict[str, tuple[float, int]]:
        query = "SELECT after, nats, tokens FROM asked WHERE model = ? AND before = ?"
        with closing(self._file.execute(query, (self.info.name, before))) as rows:
            return {after: (nats, tokens) for after, nats, tokens in rows}

    def _write(self, before: str, answers: dict[str, tuple[float, int]]) -> None:
        rows = [(self.info.name, before, after, *answer) for after, answer in answers.items()]
        self._file.executemany("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?)", rows)
        self._file.commit()


# In each language what stands before an attribute and behind it, and before names: in the masculine
# plural.
SENTENCES = {
    "ar": (
        (("{names}", "{attribute}"), ("{names} معروفون بأنهم", "{attribute}")),
        "سؤال: من هم الناس المعروفون بأنهم {attribute}؟ جواب:",
    ),
    "de": (
        (("{names} sind", "{attribute}"), ("{names} gelten als", "{attribute}")),
        "Wer ist besonders {attribute}?",
    ),
    "es": (
        (("{names} son", "{attribute}"), ("{names} tienen fama de ser", "{attribute}")),
        "¿Quiénes son los más {attribute}?",
    ),
    "hi": (
        (
            ("{names}", "{attribute} होते हैं"),
            ("कहा जाता है कि {names}", "{attribute} होते हैं"),
        ),
        "सबसे ज़्यादा {attribute} कौन होते हैं?",
    ),
    "it": (
        (("{names} sono", "{attribute}"), ("{names} hanno fama di essere", "{attribute}")),
        "Chi sono i più {attribute}?",
    ),
    "nl": (
        (("{names} zijn", "{attribute}"), ("{names} staan bekend als", "{attribute}")),
        "Wie zijn er bijzonder {attribute}?",
    ),
    "pt": (
        (("{names} são", "{attribute}"), ("{names} têm fama de ser", "{attribute}")),
        "Quem são os mais {attribute}?",
    ),
    "en": (
        (("{names} are", "{attribute}"), ("{names} have a reputation for being", "{attribute}")),
        "Who are the most {attribute}?",
    ),
}
FILES = {
    "ar-AE": "ar",
    "de-DE": "de",
    "es-ES": "es",
    "es-MX": "es",
    "hi-IN": "hi",
    "it-IT": "it",
    "nl-NL": "nl",
    "pt-BR": "pt",
}
WORDS = Path(__file__).with_name("people_words.csv")  # as the files have them, in the plural


def clean(text: str) -> str:
    return text.strip(" ,.").lower()


def merge_tables(folder: Path) -> list[dict[str, object]]:
    """One table of all files in English: group, attribute, annotators (`stereotype`),
    offensiveness."""
    best: dict[tuple[str, str], Stereotype] = {}
    for path in sorted(folder.glob("*-*.csv")):
        for entry in read_stereotypes(path):
            key = clean(entry.group), clean(entry.attribute)
            if key not in best or (entry.annotators or 0) > (best[key].annotators or 0):
                best[key] = entry
    return [
        {
            "group": entry.group,
            "attribute": attribute,
            "stereotype": entry.annotators,
            "offensiveness": "" if math.isnan(entry.offensiveness) else entry.offensiveness,
        }
        for (_, attribute), entry in best.items()
    ]


def table_row(model: str, source: str, figure: AgreementFigure, table: RecordedTable) -> str:
    over_groups = (
        ""
        if math.isnan(figure.low_over_groups)
        else f"{figure.low_over_groups:.2f} to {figure.high_over_groups:.2f}"
    )
    floor = "" if math.isnan(figure.floor) else f"{figure.floor:.2f}, {figure.floor_high:.2f}"
    asked = figure.direction if figure.by == "attribute" else f"{figure.direction}: {figure.by}"
    return (
        f"| {model} | {source} | {table.kinds.count(figure.kind)} {figure.kind}s | "
        f"{len(table.groups)} | {figure.entries} | {asked} | {figure.auc.value:.3f} | "
        f"{figure.auc.format_interval('.2f')} | {over_groups} | {floor} |"
    )


def print_figures(
    model: str, source: str, figures: Sequence[AgreementFigure], table: RecordedTable
) -> None:
    for figure in figures:
        print(table_row(model, source, figure, table), flush=True)


def columns_of_plan(plan: RecordedPlan, columns: Sequence[int]) -> RecordedPlan:
    return replace(
        plan,
        table=take_columns(plan.table, columns),
        statements=tuple(plan.statements[n] for n in columns),
    )


def take_columns(table: RecordedTable, columns: Sequence[int]) -> RecordedTable:
    return RecordedTable(
        table.groups,
        tuple(table.attributes[n] for n in columns),
        tuple(table.kinds[n] for n in columns),
        table.recorded[:, columns],
        table.offensiveness[:, columns],
    )


def take_names(plan: RecordedPlan, count: int) -> RecordedPlan:
    first, last = (
        {group: names[:count] for group, names in table.items()}
        for table in (plan.names, plan.last_names)
    )
    return replace(plan, names=first, last_names=last)


def take_kinds(plan: RecordedPlan, kinds: Sequence[str]) -> RecordedPlan:
    return columns_of_plan(plan, [n for n, kind in enumerate(plan.table.kinds) if kind in kinds])


def plan_nations(folder: Path) -> RecordedPlan:
    """What is asked of the files together."""
    entries = [
        Stereotype(
            "all",
            str(row["group"]),
            str(row["attribute"]),
            offensiveness=float(str(row["offensiveness"] or "nan")),
            annotators=row["stereotype"] if isinstance(row["stereotype"], int) else None,
        )
        for row in merge_tables(folder)
    ]
    groups = find_recorded_groups(entries)
    nations = {text for text, group in groups.items() if group.category == NATIONALITY}
    entries = [entry for entry in entries if entry.group in nations]
    plan = plan_recorded(entries, probes=1_000_000)
    support = plan.table.strong.sum(axis=0)
    return columns_of_plan(plan, np.flatnonzero(support >= MIN_NATIONS).tolist())


def statement_of(attribute: str) -> str:
    return word_stereotype(Stereotype("", "", attribute)).casefold()


def centre_kinds(lifts: np.ndarray, table: RecordedTable) -> np.ndarray:
    """The lifts centred over the attributes of each kind."""
    centred = np.zeros_like(lifts)
    for kind in set(table.kinds):
        columns = [n for n, own_kind in enumerate(table.kinds) if own_kind == kind]
        centred[:, columns] = double_centre_lifts(lifts[:, columns], table.categories)
    return centred


def hold_against(
    found: RecordedAgreement, entries: Sequence[Stereotype]
) -> tuple[RecordedTable, list[AgreementFigure]]:
    """The figures of lifts that were asked already, against one file: its nations and attributes
    alone, with the lifts centred over these."""
    attributes = {statement_of(a): a for a in found.table.attributes}
    groups = find_recorded_groups(entries)
    asked = set(found.table.groups)
    own = [
        (groups[entry.group], replace(entry, attribute=attributes[statement]))
        for entry in entries
        if groups.get(entry.group) in asked
        and (statement := statement_of(clean(entry.attribute))) in attributes
        and (entry.annotators or 0) > 0
    ]
    strong = [(g, entry) for g, entry in own if (entry.annotators or 0) >= MIN_ANNOTATORS]
    nations = {group for group, _ in strong}
    chosen = {entry.attribute for _, entry in strong}
    columns = [n for n, a in enumerate(found.table.attributes) if a in chosen]
    rows = [n for n, group in enumerate(found.table.groups) if group in nations]
    table = RecordedTable.from_entries(
        [(group, entry) for group, entry in own if group in nations],
        [found.table.attributes[n] for n in columns],
        dict(zip(found.table.attributes, found.table.kinds, strict=True)),
        nations,
    )
    wordings = {
        direction: {
            name: centre_kinds(lifts[np.ix_(rows, columns)], table)
            for name, lifts in tables.items()
        }
        for direction, tables in found.wordings.items()
    }
    return table, judge_agreement(join_wordings(wordings, table.kinds), table)


def print_wordings(found: RecordedAgreement) -> None:
    """The AUC of each wording over traits, if any were asked, on either half of them."""
    traits = [n for n, kind in enumerate(found.table.kinds) if kind == "trait"]
    if not traits:
        return
    print("\n| wording | traits | one half | the other |\n|---|---|---|---|")
    shown = {
        f"{direction}: {wording}": lifts
        for direction, tables in found.wordings.items()
        for wording, lifts in tables.items()
    }
    for name, lifts in {**shown, **found.lifts}.items():
        halves = [
            [n for n in traits if zlib.crc32(found.table.attributes[n].encode()) % 2 == half]
            for half in (0, 1)
        ]
        cells = " | ".join(
            f"{mean_auc(lifts, found.table, chosen):.3f}" for chosen in (traits, *halves)
        )
        print(f"| {name} | {cells} |")


def mean_auc(lifts: np.ndarray, table: RecordedTable, columns: Sequence[int]) -> float:
    part = take_columns(table, columns)
    return judge_agreement({FORWARD: lifts[:, columns]}, part)[0].auc.value


def read_own_table(
    folder: Path, file: str, language: str
) -> tuple[RecordedTable, dict[str, list[str]]]:
    """The entries of a language's file about nations, and the words of names and attributes in that
    language and in English."""
    with WORDS.open(encoding="utf-8") as words_file:
        words = {
            row["english"]: row["word"]
            for row in csv.DictReader(words_file)
            if row["language"] == language
        }
    entries = read_stereotypes(folder / f"{file}.csv")
    groups = find_recorded_groups(entries)
    nations = {group for group in groups.values() if group.name in words}
    known = [
        (groups[entry.group], entry)
        for entry in entries
        if groups.get(entry.group) in nations and clean(entry.attribute) in words
    ]
    support = Counter(clean(e.attribute) for _, e in known if (e.annotators or 0) >= MIN_ANNOTATORS)
    attributes = sorted(attribute for attribute, groups in support.items() if groups > 1)
    table = RecordedTable.from_entries(known, attributes, {}, nations)
    english = [recorded_group_names(group)[0].text for group in table.groups]
    return table, {
        language: [words[g.name] for g in table.groups] + [words[a] for a in attributes],
        "en": [n if n.startswith("the ") else f"the {n}" for n in english] + attributes,
    }


def ask_own(
    scorer: Any, table: RecordedTable, language: str, words: Sequence[str]
) -> dict[str, np.ndarray]:
    """The lifts of a language: after the names, before the names, both."""
    names, attributes = words[: len(table.groups)], words[len(table.groups) :]
    sentences, question = SENTENCES[language]
    capitalised = [name[:1].upper() + name[1:] for name in names]
    after = [
        scorer.grid(
            [before.format(names=name) for name in capitalised],
            [behind.format(attribute=attribute) for attribute in attributes],
        )
        for before, behind in sentences
    ]
    before = scorer.grid([question.format(attribute=a) for a in attributes], capitalised)
    bits = {
        FORWARD: np.mean([grid.statement.log_likelihoods for grid in after], axis=0),
        REVERSE: before.statement.log_likelihoods.T,
    }
    lifts = {name: double_centre_lifts(table_, table.categories) for name, table_ in bits.items()}
    return lifts | {BOTH: sum(table_ / table_.std() for table_ in lifts.values())}


def ask_tables(scorer: Any, folder: Path, names: int, kinds: Sequence[str]) -> None:
    name = scorer.info.name
    plan = take_kinds(take_names(plan_nations(folder), names), kinds)
    found = measure_recorded_agreement(scorer, plan, "eight files")
    print_figures(name, "eight files", found.figures, found.table)
    for path in sorted(folder.glob("*-*.csv")):
        table, figures = hold_against(found, read_stereotypes(path))
        print_figures(name, path.stem, figures, table)
    for strongest in found.strongest:
        print(f"\n{name}: {strongest}\n")
    print_wordings(found)
    states = read_stereotypes("seegull")
    for category in ("us-states", "indian-states"):
        plan = plan_recorded([entry for entry in states if entry.category == category])
        plan = take_kinds(take_names(plan, names), kinds)
        if not plan.statements:
            continue
        found = measure_recorded_agreement(scorer, plan, category)
        print_figures(name, category, found.figures, found.table)


def ask_own_tables(scorer: Any, folder: Path) -> None:
    for file, language in FILES.items():
        table, words = read_own_table(folder, file, language)
        for asked, own_words in words.items():
            lifts = ask_own(scorer, table, asked, own_words)
            figures = judge_agreement(lifts, table)
            print_figures(scorer.info.name, f"{file} in {asked}", figures, table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", default=["smollm2"])
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--names", type=int, default=NAMES_OF_GROUP)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--kept", default=":memory:", metavar="FILE")
    chosen = parser.parse_args()
    print(HEADER)
    for spec in chosen.models:
        kept = KeptScorer(kgbias.open_scorer(spec), chosen.kept)
        if chosen.own:
            ask_own_tables(kept, chosen.folder)
        else:
            ask_tables(kept, chosen.folder, chosen.names, [chosen.kind] if chosen.kind else KINDS)
