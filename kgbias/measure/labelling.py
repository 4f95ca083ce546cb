"""Labelling: which statements a rater is shown, what the rater is told, and what is kept.

A rater sees the statements of the run's random sample (`kgbias.measure.sampling`) in its order,
without scores: those that nobody saw yet, and of one in five also those that one other rater saw,
so that their agreement can be measured. Labels, skips and what is taken back are rows of the store
(`kgbias.graph.labels`). What the labels mean is in a guide (`guides/MEASURE.toml`), whose name and
version each label carries.
"""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kgbias.errors import DataError, UsageError
from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.labels import SKIPPED_LABEL, RETRACTED_LABEL, Label
from kgbias.graph.record import timestamp
from kgbias.graph.store import StoredRun
from kgbias.graph.types import verbalise
from kgbias.io.files import replace_file
from kgbias.io.reading import read_toml
from kgbias.io.tables import read_table
from kgbias.io.text import escape_formula, is_plain, unescape_formula
from kgbias.measure.sampling import LabelSample, sample_of
from kgbias.measures import known
from kgbias.parameters import user_name

MASK = "these people"
"""In the place of the group's name if that is masked."""
SKIP = "skip"
"""What is written in a sheet in the place of a label for a statement that was not judged."""
LONGEST_NAME, LONGEST_NOTE = 80, 2_000
_ID = "s"  # before ids in a sheet, where an id of digits only would become a number
_SHEET = ("id", "label", "note", "statement", "measure", "masked", "guide", "rater")
_TWO = 2  # raters of a shared statement
_Wanted = tuple[str, str, str]  # a statement's id, the label and a note, as they are kept


@dataclass(frozen=True, slots=True)
class Meaning:
    """A label and what it means, with example sentences."""

    name: str
    meaning: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guide:
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
    labels: tuple[Meaning, ...]


@dataclass(frozen=True, slots=True)
class ToLabel:
    """A statement as a rater sees it: `text` is a sentence, in which the group may be masked;
    `shared` tells whether two raters are asked."""

    id: str
    text: str
    shared: bool


@dataclass(frozen=True, slots=True)
class Progress:
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


def guide_of(measure: str) -> Guide:
    """The guide of a measure; for another package's measure, MEASURE.guide.toml in its folder.
    Raises UsageError if there is none."""
    folder = known(measure).folder
    own = Path(__file__).with_name("guides") / f"{measure}.toml"
    path = folder / f"{measure}.guide.toml" if folder else own
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in own.parent.glob("*.toml")))
        raise UsageError(f"there is no guide for labelling {measure}; there are guides for {there}")
    found = read_toml(path)
    try:
        labels = tuple(
            Meaning(x["name"], x["meaning"], tuple(x["examples"])) for x in found["labels"]
        )
        id = f"{found['name']}@{found['version']}"
        return Guide(id, found["question"], tuple(found["rules"]), labels)
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is not a guide: {error} is missing or wrong") from error


class _Given:
    """What people say by one measure, kept in memory: the store is read again only when others have
    written, which shows in how many labels it has (`Store.label_count`)."""

    def __init__(self, run: StoredRun, measure: str) -> None:
        self._store, self._measure = run.store, measure
        self._latest: dict[tuple[str, str], Label] = {}
        self._count = 0

    def latest(self) -> Mapping[tuple[str, str], Label]:
        """The latest label of each statement and rater, oldest first, those taken back included."""
        if self._store.label_count(self._measure) != self._count:
            every = self._store.labels(self._measure)
            self._latest, self._count = {}, len(every)
            for label in every:
                self._put(label)
        return self._latest

    def add(self, labels: Sequence[Label]) -> None:
        """Write labels."""
        self._store.add_labels(labels)
        self._count += len(labels)
        for label in labels:
            self._put(label)

    def _put(self, label: Label) -> None:
        if label.kind == "person":
            key = label.triple_id, label.rater
            self._latest.pop(key, None)  # so that the latest is the last
            self._latest[key] = label


class Labelling:
    """One rater's labelling of a run by one measure; `Run.label` begins one. Each label is durable
    when its method returns.

    Attributes:
        measure: the measure.
        masked: whether the rater sees `MASK` in the place of the group's name.
        guide: what the labels mean.
        by: the rater's name.
    """

    def __init__(
        self,
        run: StoredRun,
        measure: str,
        by: str | None = None,
        *,
        masked: bool = False,
        sample: LabelSample | None = None,
    ) -> None:
        self._run = run
        self.measure, self.masked, self.guide = measure, masked, guide_of(measure)
        self.by = _rater(by)
        self._sample = sample
        self._given = _Given(run, measure)

    def by_another(self, name: str) -> "Labelling":
        """The same labelling by another rater."""
        other = Labelling(self._run, self.measure, name, masked=self.masked, sample=self.sample)
        other.__dict__["_texts"], other._given = self._texts, self._given
        return other

    @property
    def sample(self) -> LabelSample:
        """The random sample that statements come from."""
        if self._sample is None:
            self._sample = sample_of(self._run, self.measure)
        return self._sample

    @property
    def labels(self) -> dict[str, str]:
        """The labels, by their keys "1", "2" ..."""
        return {str(n): label.name for n, label in enumerate(self.guide.labels, start=1)}

    def next(
        self, most: int = 1, *, held: Mapping[str, Collection[str]] | None = None
    ) -> list[ToLabel]:
        """The next statements for this rater, at most so many. `held` are the raters who have
        statements before them now, by statement: they count as having seen these."""
        seen = self._seen()
        found = []
        for id in self.sample.order:
            raters = seen.get(id, set()) | set((held or {}).get(id, ()))
            if self.by in seen.get(id, ()):
                continue
            if len(raters - {self.by}) < (_TWO if self.sample.shared(id) else 1):
                found.append(self.shown(id))
                if len(found) >= most:
                    break
        return found

    def shown(self, statement: str) -> ToLabel:
        """A statement as this rater sees it. Raises UsageError if the run has no such statement."""
        return ToLabel(statement, self._text(statement), self.sample.shared(statement))

    def label(self, statement: ToLabel | str, label: str, note: str = "") -> Label:
        """Label a statement. If the rater's label in effect is the same, nothing is written: to
        send a label again changes nothing.

        Args:
            statement: one that `next` gave, or the id of a statement of the run.
            label: one of `labels`, or its key.
            note: anything the rater wants to say.

        Raises:
            UsageError: no such statement or label.
        """
        return self._keep([self.checked(statement, label, note)])[0]

    def skip(self, statement: ToLabel | str, note: str = "") -> Label:
        """Give a statement no label: it counts as seen, and as not answered. `note` says why."""
        return self._keep([self.checked(statement, SKIP, note)])[0]

    def undo(self, statement: ToLabel | str | None = None) -> ToLabel | None:
        """Take back the rater's label or skip of a statement, or the latest of all. The row stays;
        a later one says that it does not count. Returns the statement, to be labelled again; None
        if there is nothing to take back."""
        id = statement.id if isinstance(statement, ToLabel) else statement or self.latest()
        if id is None or not any(x.triple_id == id for x in self._own()):
            return None
        shown = self.shown(id)
        self._keep([(id, RETRACTED_LABEL, "")])
        return shown

    def latest(self) -> str | None:
        """The statement that this rater labelled or skipped last, if any."""
        mine = [x.triple_id for x in self._own() if x.triple_id in self._texts]
        return mine[-1] if mine else None

    def progress(self) -> Progress:
        """How far this rater and all raters are."""
        found = [x for x in self._in_effect() if x.triple_id in self._texts]
        given = [x for x in found if x.label != SKIPPED_LABEL]
        own = [x for x in found if x.rater == self.by]
        skipped = sum(x.label == SKIPPED_LABEL for x in own)
        return Progress(
            len(own) - skipped,
            skipped,
            len({x.triple_id for x in given}),
            len({x.rater for x in given}),
            len(self.sample.order),
        )

    def write_sheet(self, path: str | Path, most: int = 100) -> int:
        """Write the next statements as a CSV file for a spreadsheet; returns how many. The rater
        fills in `label` (a label or its number, or "skip") and, if need be, `note`."""
        found = self.next(most)
        with replace_file(Path(path)) as partial, partial.open("w", encoding="utf-8-sig",
                                                             newline="") as file:  # fmt: skip
            writer = csv.writer(file)
            writer.writerow(_SHEET)
            for x in found:
                beside = (self.measure, "yes" if self.masked else "no", self.guide.id, self.by)
                writer.writerow([escape_formula(c) for c in (_ID + x.id, "", "", x.text, *beside)])
        return len(found)

    @cached_property
    def _texts(self) -> Mapping[str, tuple[str, str, str]]:
        """The run's statements, by id."""
        return {id: (group, p, o) for id, group, p, o in self._run.distinct_triples()}

    @cached_property
    def _named(self) -> MentionIndex:
        return MentionIndex(self._run.groups)

    def _text(self, id: str) -> str:
        if id not in self._texts:
            raise UsageError(f"run {self._run.name!r} has no statement {id!r}")
        group, predicate, object = self._texts[id]
        if self.masked:
            group, predicate = MASK, self._named.mask_names(predicate, MASK)
            object = self._named.mask_names(object, MASK)
        return verbalise(group, predicate, object)

    def _own(self) -> list[Label]:
        return [x for x in self._in_effect() if x.rater == self.by]

    def _in_effect(self) -> list[Label]:
        """What people say now, oldest first; skips are among it."""
        return [x for x in self._given.latest().values() if x.label != RETRACTED_LABEL]

    def _seen(self) -> dict[str, set[str]]:
        """Which raters saw each statement of a random sample."""
        seen: dict[str, set[str]] = {}
        for x in self._in_effect():
            if x.sample:
                seen.setdefault(x.triple_id, set()).add(x.rater)
        return seen

    def checked(self, statement: ToLabel | str, label: str, note: str) -> _Wanted:
        """The statement's id, the label and the note as they are kept. Raises as `label`."""
        id = statement.id if isinstance(statement, ToLabel) else statement
        self._text(id)
        name = self.labels.get(label, label)
        if name == SKIP:
            name = SKIPPED_LABEL
        elif name not in self.labels.values():
            there = ", ".join(f"{name} ({key})" for key, name in self.labels.items())
            raise UsageError(f"no label {label!r} of {self.measure}; use {there} or {SKIP}")
        if len(note) > LONGEST_NOTE:
            raise UsageError(f"a note has at most {LONGEST_NOTE:,} characters")
        return id, name, note

    def _keep(self, wanted: Sequence[_Wanted]) -> list[Label]:
        """Write labels, unless those in effect are the same; returns those now in effect."""
        found = self._made(wanted)
        if made := [x for x, new in found if new]:
            self._given.add(made)
        return [x for x, _ in found]

    def _made(self, wanted: Sequence[_Wanted], guide: str = "") -> list[tuple[Label, bool]]:
        """The labels that will be in effect, and whether each has yet to be written."""
        latest = self._given.latest()
        placed = {id for id, *_ in wanted} & set(self.sample.order)
        found = []
        for id, label, note in wanted:
            earlier = latest.get((id, self.by))
            if earlier and (earlier.label, earlier.note) == (label, note):
                found.append((earlier, False))
                continue
            sample = self.sample.id if id in placed else ""
            made = Label(
                id, self.measure, label, self.by, "person", guide or self.guide.id,
                timestamp(earlier.labelled if earlier else None), self.masked, sample, note,
            )  # fmt: skip
            found.append((made, True))
        return found


def read_sheet(run: StoredRun, path: str | Path, by: str | None = None) -> list[Label]:
    """Keep the labels of a sheet that `Labelling.write_sheet` wrote and a rater filled in, all or
    none; returns those that are in effect now. A row without a label changes nothing.

    Args:
        run: the run whose statements they are.
        path: the sheet.
        by: the rater; None: the one named in each row.

    Raises:
        DataError: an invalid row; the message gives its line.
    """
    opened: dict[tuple[str, str, bool], Labelling] = {}
    wanted: dict[tuple[str, str, bool], dict[str, list[_Wanted]]] = {}
    labelled: set[tuple[str, str, str]] = set()
    for where, row in _filled(Path(path)):
        try:
            key = (row["measure"].strip(), _rater(by or unescape_formula(row["rater"])), _masked(row))
            if key not in opened:
                opened[key] = Labelling(run, *key[:2], masked=key[2])
            label, note = row["label"].strip().casefold(), unescape_formula(row["note"]).strip()
            one = opened[key].checked(row["id"].strip().removeprefix(_ID), label, note)
            if (one[0], *key[:2]) in labelled:
                raise UsageError("this statement has a second label by the same rater")
        except UsageError as error:
            raise DataError(f"{where}{error}") from error
        labelled.add((one[0], *key[:2]))
        wanted.setdefault(key, {}).setdefault(row["guide"].strip(), []).append(one)
    found = [
        each
        for key, by_guide in wanted.items()
        for guide, rows in by_guide.items()
        for each in opened[key]._made(rows, guide)
    ]
    run.store.add_labels([x for x, new in found if new])
    return [x for x, _ in found]


def _filled(path: Path) -> Iterable[tuple[str, dict[str, str]]]:
    """The rows of a sheet with a label, each with its place for messages."""
    _, lines = read_table(path, _SHEET)
    return [(f"{path}, line {n}: ", row) for n, row in lines if row["label"].strip()]


def _masked(row: Mapping[str, str]) -> bool:
    said = row["masked"].strip().casefold()
    if said not in ("yes", "no"):
        raise UsageError(f"masked is yes or no, not {row['masked']!r}")
    return said == "yes"


def _rater(name: str | None) -> str:
    """The name of a rater: the given one, or the user's."""
    name = " ".join((user_name() if name is None else name).split())
    if not name:
        raise UsageError("who labels? a rater needs a name")
    if len(name) > LONGEST_NAME or not is_plain(name):
        raise UsageError(f"the name of a rater is one line of at most {LONGEST_NAME} characters")
    return name
