"""Labelling: which statements a rater is shown, what the rater is told, and what is kept.

A rater sees the statements of the run's random sample (`kgbias.measure.sampling`) in its order,
without scores: those that nobody saw yet, and of one in five also those that one other rater saw,
so that their agreement can be measured. Labels, skips and what is taken back are rows of the store
(`kgbias.graph.labels`). What the labels mean is in a guide (`guides/MEASURE.toml`), whose name and
version each label carries.

The command, sheets and the page of the server (`kgbias.methods.labels.desk`) call what is here. A
changed guide has another version.
"""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kgbias.errors import DataError, UsageError
from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.labels import RETRACTED_LABEL, SKIPPED_LABEL, Label
from kgbias.graph.record import timestamp
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Triple, verbalise
from kgbias.io.files import replace_file
from kgbias.io.reading import read_toml
from kgbias.io.tables import TableFormat, read_table
from kgbias.io.text import escape_formula, is_plain, unescape_formula
from kgbias.measure.sampling import LabelSample, draw_sample
from kgbias.measures import get_measure
from kgbias.parameters import user_name

MASKED_GROUP = "these people"
"""In the place of the group's name if that is masked."""
SKIP_WORD = "skip"
"""What is written in a sheet in the place of a label for a statement that was not judged."""
MAX_NAME_CHARACTERS, MAX_NOTE_CHARACTERS = 80, 2_000
_ID_PREFIX = "s"  # before ids in a sheet, where an id of digits only would become a number
_SHEET_COLUMNS = ("id", "label", "note", "statement", "measure", "masked", "guide", "rater")
SHEET_FORMAT = TableFormat(
    "labels filled in: `label RUN SHEET`", tuple((name,) for name in _SHEET_COLUMNS)
)
_SHARED_RATERS = 2  # raters of a shared statement


class _LabelRow(NamedTuple):
    """A label of a statement and the rater's note, as they are kept."""

    statement_id: str
    label: str
    note: str


class _LabelInEffect(NamedTuple):
    """A label that holds once rows are written, and whether it has yet to be written."""

    label: Label
    is_new: bool


class _SheetPart(NamedTuple):
    """What rows of a sheet have in common that one `Labelling` writes."""

    measure: str
    rater: str
    is_masked: bool


@dataclass(frozen=True, slots=True)
class LabelMeaning:
    """A label and what it means, with example sentences."""

    name: str
    meaning: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelGuide:
    """What raters are told about a measure.

    Attributes:
        id: NAME@VERSION, which every label carries. A changed guide has another version.
        question: the question that a label answers.
        rules: what to do in doubt.
        labels: the possible answers, in the order of their keys 1, 2 ...
    """

    id: str
    question: str
    rules: tuple[str, ...]
    labels: tuple[LabelMeaning, ...]


@dataclass(frozen=True, slots=True)
class LabelTask:
    """A statement as a rater sees it: `text` is a sentence, in which the group may be masked;
    `shared` tells whether two raters are asked."""

    id: str
    text: str
    shared: bool


@dataclass(frozen=True, slots=True)
class LabellingProgress:
    """How far a labelling is.

    Attributes:
        labelled, skipped: statements that this rater labelled and skipped.
        by_all: distinct statements that any rater labelled.
        raters: how many persons labelled any.
        statements: how many statements the sample has.
    """

    labelled: int
    skipped: int
    by_all: int
    raters: int
    statements: int


def read_guide(measure: str) -> LabelGuide:
    """The guide of a measure; for another package's measure, MEASURE.guide.toml in its folder.
    Raises UsageError if there is none."""
    folder = get_measure(measure).folder
    shipped_path = Path(__file__).with_name("guides") / f"{measure}.toml"
    path = folder / f"{measure}.guide.toml" if folder else shipped_path
    if not path.is_file():
        guide_names = ", ".join(sorted(p.stem for p in shipped_path.parent.glob("*.toml")))
        raise UsageError(
            f"there is no guide for labelling {measure}; there are guides for {guide_names}"
        )
    guide_values = read_toml(path)
    try:
        labels = tuple(
            LabelMeaning(x["name"], x["meaning"], tuple(x["examples"]))
            for x in guide_values["labels"]
        )
        guide_id = f"{guide_values['name']}@{guide_values['version']}"
        return LabelGuide(guide_id, guide_values["question"], tuple(guide_values["rules"]), labels)
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is not a guide: {error} is missing or wrong") from error


class _StoredLabels:
    """What people say by one measure, kept in memory: the store is read again only when others have
    written, which shows in how many labels it has (`Store.label_count`)."""

    def __init__(self, run: StoredRun, measure: str) -> None:
        self._store, self._measure = run.store, measure
        self._latest: dict[tuple[str, str], Label] = {}
        self._count = 0

    def latest_labels(self) -> Mapping[tuple[str, str], Label]:
        """The latest label of each statement and rater, oldest first, those taken back included."""
        if self._store.label_count(self._measure) != self._count:
            every = self._store.labels(self._measure)
            self._latest, self._count = {}, len(every)
            for label in every:
                self._remember(label)
        return self._latest

    def add_labels(self, labels: Sequence[Label]) -> None:
        """Write labels."""
        self._store.add_labels(labels)
        self._count += len(labels)
        for label in labels:
            self._remember(label)

    def _remember(self, label: Label) -> None:
        if label.kind == "person":
            key = label.triple_id, label.rater
            self._latest.pop(key, None)  # so that the latest is the last
            self._latest[key] = label


class Labelling:
    """One rater's labelling of a run by one measure; `labels.begin_labelling(run)` begins one.
    Each label is durable when its method returns.

    Attributes:
        measure: the measure.
        is_masked: whether the rater sees `MASKED_GROUP` in the place of the group's name.
        guide: what the labels mean.
        rater: the rater's name.
    """

    def __init__(
        self,
        run: StoredRun,
        measure: str,
        rater: str | None = None,
        *,
        masked: bool = False,
        sample: LabelSample | None = None,
    ) -> None:
        self._run = run
        self.measure, self.is_masked, self.guide = measure, masked, read_guide(measure)
        self.rater = _rater_name(rater)
        self._sample = sample
        self._stored_labels = _StoredLabels(run, measure)

    def __repr__(self) -> str:
        return f"<Labelling of run {self._run.name!r}: {self.measure}, by {self.rater}>"

    def for_rater(self, name: str) -> "Labelling":
        """The same labelling by another rater."""
        other_labelling = Labelling(
            self._run, self.measure, name, masked=self.is_masked, sample=self.sample
        )
        # Fills its cached property: the statements and labels are read once for all raters.
        other_labelling.__dict__["_statements"] = self._statements
        other_labelling._stored_labels = self._stored_labels
        return other_labelling

    @property
    def sample(self) -> LabelSample:
        """The random sample that statements come from."""
        if self._sample is None:
            self._sample = draw_sample(self._run, self.measure)
        return self._sample

    @property
    def labels(self) -> dict[str, str]:
        """The labels, by their keys "1", "2" ..."""
        return {str(n): label.name for n, label in enumerate(self.guide.labels, start=1)}

    def next_tasks(
        self, limit: int = 1, *, held_statements: Mapping[str, Collection[str]] | None = None
    ) -> list[LabelTask]:
        """The next statements for this rater, at most so many. `held_statements` are the raters who
        have statements before them now, by statement: they count as having seen these."""
        raters_by_statement = self._raters_by_statement()
        tasks = []
        for statement_id in self.sample.order:
            raters = raters_by_statement.get(statement_id, set()) | set(
                (held_statements or {}).get(statement_id, ())
            )
            if self.rater in raters_by_statement.get(statement_id, ()):
                continue
            # What this rater holds but has not labelled is still this rater's.
            if len(raters - {self.rater}) < (
                _SHARED_RATERS if self.sample.is_shared(statement_id) else 1
            ):
                tasks.append(self.make_task(statement_id))
                if len(tasks) >= limit:
                    break
        return tasks

    def make_task(self, statement: str) -> LabelTask:
        """A statement as this rater sees it. Raises UsageError if the run has no such statement."""
        return LabelTask(statement, self._task_text(statement), self.sample.is_shared(statement))

    def label_statement(self, statement: LabelTask | str, label: str, note: str = "") -> Label:
        """Label a statement. If the rater's label in effect is the same, nothing is written: to
        send a label again changes nothing.

        Args:
            statement: one that `next_tasks` gave, or the id of a statement of the run.
            label: one of `labels`, or its key.
            note: anything the rater wants to say.

        Raises:
            UsageError: no such statement or label.
        """
        return self._write_labels([self.check_label(statement, label, note)])[0]

    def skip_statement(self, statement: LabelTask | str, note: str = "") -> Label:
        """Give a statement no label: it counts as seen, and as not answered. `note` says why."""
        return self._write_labels([self.check_label(statement, SKIP_WORD, note)])[0]

    def undo_label(self, statement: LabelTask | str | None = None) -> LabelTask | None:
        """Take back the rater's label or skip of a statement, or the latest of all. The row stays;
        a later one says that it does not count. Returns the statement, to be labelled again; None
        if there is nothing to take back."""
        statement_id = (
            statement.id
            if isinstance(statement, LabelTask)
            else statement or self.latest_statement()
        )
        if statement_id is None or not any(x.triple_id == statement_id for x in self._own_labels()):
            return None
        task = self.make_task(statement_id)
        self._write_labels([_LabelRow(statement_id, RETRACTED_LABEL, "")])
        return task

    def latest_statement(self) -> str | None:
        """The statement that this rater labelled or skipped last, if any."""
        own_ids = [x.triple_id for x in self._own_labels() if x.triple_id in self._statements]
        return own_ids[-1] if own_ids else None

    def read_progress(self) -> LabellingProgress:
        """How far this rater and all raters are."""
        current_labels = [
            label for label in self._labels_in_effect() if label.triple_id in self._statements
        ]
        given_labels = [label for label in current_labels if label.label != SKIPPED_LABEL]
        own_labels = [label for label in current_labels if label.rater == self.rater]
        skipped_count = sum(label.label == SKIPPED_LABEL for label in own_labels)
        return LabellingProgress(
            len(own_labels) - skipped_count,
            skipped_count,
            len({label.triple_id for label in given_labels}),
            len({label.rater for label in given_labels}),
            len(self.sample.order),
        )

    def write_sheet(self, path: str | Path, limit: int = 100) -> int:
        """Write the next statements as a CSV file for a spreadsheet; returns how many. The rater
        fills in `label` (a label or its number, or "skip") and, if need be, `note`."""
        tasks = self.next_tasks(limit)
        with (
            replace_file(Path(path)) as partial,
            # Without the byte order mark, Excel takes a CSV file for one in a local encoding.
            partial.open("w", encoding="utf-8-sig", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(_SHEET_COLUMNS)
            for task in tasks:
                other_cells = (
                    self.measure,
                    "yes" if self.is_masked else "no",
                    self.guide.id,
                    self.rater,
                )
                writer.writerow(
                    [
                        escape_formula(c)
                        for c in (_ID_PREFIX + task.id, "", "", task.text, *other_cells)
                    ]
                )
        return len(tasks)

    @cached_property
    def _statements(self) -> Mapping[str, Triple]:
        """The run's statements, by id."""
        return {id: Triple(group, p, o) for id, group, p, o in self._run.distinct_triples()}

    @cached_property
    def _mentions(self) -> MentionIndex:
        return MentionIndex(self._run.groups)

    def _task_text(self, statement_id: str) -> str:
        if statement_id not in self._statements:
            raise UsageError(f"run {self._run.name!r} has no statement {statement_id!r}")
        statement = self._statements[statement_id]
        if not self.is_masked:
            return verbalise(statement.group, statement.predicate, statement.object)
        predicate = self._mentions.mask_names(statement.predicate, MASKED_GROUP)
        object = self._mentions.mask_names(statement.object, MASKED_GROUP)
        return verbalise(MASKED_GROUP, predicate, object)

    def _own_labels(self) -> list[Label]:
        return [x for x in self._labels_in_effect() if x.rater == self.rater]

    def _labels_in_effect(self) -> list[Label]:
        """What people say now, oldest first; skips are among it."""
        return [
            x for x in self._stored_labels.latest_labels().values() if x.label != RETRACTED_LABEL
        ]

    def _raters_by_statement(self) -> dict[str, set[str]]:
        """Which raters saw each statement of a random sample."""
        raters_by_statement: dict[str, set[str]] = {}
        for x in self._labels_in_effect():
            if x.sample:
                raters_by_statement.setdefault(x.triple_id, set()).add(x.rater)
        return raters_by_statement

    def check_label(self, statement: LabelTask | str, label: str, note: str) -> _LabelRow:
        """The statement's id, the label and the note as they are kept. Raises as
        `label_statement`."""
        statement_id = statement.id if isinstance(statement, LabelTask) else statement
        # Raises for a statement that the run does not have.
        self._task_text(statement_id)
        name = self.labels.get(label, label)
        if name == SKIP_WORD:
            name = SKIPPED_LABEL
        elif name not in self.labels.values():
            label_names = ", ".join(f"{name} ({key})" for key, name in self.labels.items())
            raise UsageError(
                f"no label {label!r} of {self.measure}; use {label_names} or {SKIP_WORD}"
            )
        if len(note) > MAX_NOTE_CHARACTERS:
            raise UsageError(f"a note has at most {MAX_NOTE_CHARACTERS:,} characters")
        return _LabelRow(statement_id, name, note)

    def _write_labels(self, rows: Sequence[_LabelRow]) -> list[Label]:
        """Write labels, unless those in effect are the same; returns those now in effect."""
        labels = self._make_labels(rows)
        new_labels = [x.label for x in labels if x.is_new]
        if new_labels:
            self._stored_labels.add_labels(new_labels)
        return [x.label for x in labels]

    def _make_labels(self, rows: Sequence[_LabelRow], guide: str = "") -> list[_LabelInEffect]:
        """The labels that will be in effect."""
        latest = self._stored_labels.latest_labels()
        sampled_ids = {row.statement_id for row in rows} & set(self.sample.order)
        labels = []
        for statement_id, label, note in rows:
            earlier = latest.get((statement_id, self.rater))
            # A form that is sent twice, or a sheet that is read twice, adds no row.
            if earlier and (earlier.label, earlier.note) == (label, note):
                labels.append(_LabelInEffect(earlier, is_new=False))
                continue
            sample = self.sample.id if statement_id in sampled_ids else ""
            new_label = Label(
                statement_id,
                self.measure,
                label,
                self.rater,
                "person",
                guide or self.guide.id,
                # Later than the label it replaces, even if the clock was set back.
                timestamp(earlier.labelled if earlier else None),
                self.is_masked,
                sample,
                note,
            )
            labels.append(_LabelInEffect(new_label, is_new=True))
        return labels


def read_label_sheet(run: StoredRun, path: str | Path, rater: str | None = None) -> list[Label]:
    """Keep the labels of a sheet that `Labelling.write_sheet` wrote and a rater filled in, all or
    none; returns those that are in effect now. A row without a label changes nothing.

    Args:
        run: the run whose statements they are.
        path: the sheet.
        rater: the rater; None: the one named in each row.

    Raises:
        DataError: an invalid row; the message gives its line.
    """
    labellings: dict[_SheetPart, Labelling] = {}
    rows_by_guide: dict[_SheetPart, dict[str, list[_LabelRow]]] = {}
    labelled_keys: set[tuple[str, str, str]] = set()  # statement, measure and rater
    for place, row in _filled_rows(Path(path)):
        try:
            part = _SheetPart(
                row["measure"].strip(),
                _rater_name(rater or unescape_formula(row["rater"])),
                _is_masked(row),
            )
            if part not in labellings:
                labellings[part] = Labelling(run, part.measure, part.rater, masked=part.is_masked)
            label, note = row["label"].strip().casefold(), unescape_formula(row["note"]).strip()
            checked_row = labellings[part].check_label(
                row["id"].strip().removeprefix(_ID_PREFIX), label, note
            )
            labelled_key = (checked_row.statement_id, part.measure, part.rater)
            if labelled_key in labelled_keys:
                raise UsageError("this statement has a second label by the same rater")
        except UsageError as error:
            raise DataError(f"{place}{error}") from error
        labelled_keys.add(labelled_key)
        rows_by_guide.setdefault(part, {}).setdefault(row["guide"].strip(), []).append(checked_row)
    labels: list[_LabelInEffect] = []
    for part, by_guide in rows_by_guide.items():
        for guide, rows in by_guide.items():
            labels += labellings[part]._make_labels(rows, guide)
    # At once and last: an invalid row above has left nothing written.
    run.store.add_labels([x.label for x in labels if x.is_new])
    return [x.label for x in labels]


def _filled_rows(path: Path) -> Iterable[tuple[str, dict[str, str]]]:
    """The rows of a sheet with a label, each with its place for messages."""
    _, lines = read_table(path, SHEET_FORMAT.columns)
    return [(f"{path}, line {n}: ", row) for n, row in lines if row["label"].strip()]


def _is_masked(row: Mapping[str, str]) -> bool:
    cell = row["masked"].strip().casefold()
    if cell not in ("yes", "no"):
        raise UsageError(f"masked is yes or no, not {row['masked']!r}")
    return cell == "yes"


def _rater_name(name: str | None) -> str:
    """The name of a rater: the given one, or the user's."""
    name = " ".join((user_name() if name is None else name).split())
    if not name:
        raise UsageError("who labels? a rater needs a name")
    if len(name) > MAX_NAME_CHARACTERS or not is_plain(name):
        raise UsageError(
            f"the name of a rater is one line of at most {MAX_NAME_CHARACTERS} characters"
        )
    return name
