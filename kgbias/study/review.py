"""Review of a run by hand: restoring rejected answers, rejecting accepted ones."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self

from kgbias.errors import DataError, UsageError
from kgbias.graph.decisions import VERDICTS, Decision, Verdict, latest_decisions
from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.record import timestamp
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Triple
from kgbias.ids import normalise
from kgbias.io.columns import Column
from kgbias.io.files import replace_file
from kgbias.io.rows import Rows
from kgbias.io.tables import TableFormat, read_table
from kgbias.io.text import escape_formula, unescape_formula
from kgbias.parameters import Names, as_names, user_name

_SHEET_COLUMNS = (
    "id",
    "decision",
    "predicate",
    "object",
    "group",
    "asked",
    "answer",
    "outcome",
    "reason",
    "earlier",
    "reviewer",
    "decided",
)
DECISIONS_FORMAT = TableFormat(
    "decisions filled in: `review RUN --from`",
    (("id",), ("decision",), ("predicate",), ("object",)),
)
_ID_PREFIX = "g"  # before ids in a sheet, where an id of digits only would become a number


class _DecisionRow(NamedTuple):
    """A decision as it was given: where in a file, for messages ("" outside one), about which
    answer, and the statement to restore."""

    location: str
    answer_id: str
    verdict: str
    predicate: str
    object: str


class _CountedAnswer(NamedTuple):
    """The group that an answer is about, and the statement that it counts as."""

    group: str
    triple: Triple | None


@dataclass(frozen=True, slots=True)
class ReviewedAnswer:
    """An answer, as shown to a reviewer.

    Attributes:
        id: the id of its generation.
        group: the group that was asked about.
        asked: the beginning of the sentence in the prompt.
        answer: what the model said, raw.
        outcome: the crawl's outcome: ok, refused, unparsable, echo or nonsense.
        reason: the reason for the outcome.
        predicate: the predicate of the statement that it counts as; for a rejected answer, of what
            the reader finds in it without filters ("" if nothing).
        object: as `predicate`.
        accepted: whether it counts as a statement.
        decision: the decision in effect ("" for none).
        reviewer: who made it.
        decided: when it was made (ISO 8601, UTC).
    """

    id: str
    group: str
    asked: str
    answer: str
    outcome: str
    reason: str
    predicate: str
    object: str
    accepted: bool
    decision: str = ""
    reviewer: str = ""
    decided: str = ""


class Review:
    """A person's review of a run; `Run.review` begins one.

    Each decision is written at once, with its author and time. It changes what the answer counts
    as, but not the crawl's own outcome; a later decision replaces an earlier one, which is kept. In
    Neo4j, STEREOTYPE edges are updated at the end of a `with` statement, or after each call outside
    one.
    """

    def __init__(self, run: StoredRun, by: str | None = None) -> None:
        if by is not None and not by.strip():
            raise UsageError("`by` is empty: who decides?")
        self._run = run
        self._by = by
        self._in_context = self._needs_derive = False
        self._answers_by_id: dict[str, _CountedAnswer] = {}

    def __repr__(self) -> str:
        return f"<Review of run {self._run.name!r}>"

    @property
    def by(self) -> str:
        """Who decides: the given name, or the user's."""
        if self._by is None:
            self._by = user_name()
        return self._by

    def answers(
        self,
        *,
        reason: Names = (),
        group: Names = (),
        search: str | None = None,
        accepted: bool = False,
        decided: bool = False,
    ) -> Rows[ReviewedAnswer]:
        """The rejected answers not yet decided about, by outcome and reason, then by group and
        place in the run.

        Args:
            reason: only with these outcomes or reasons, such as "refused" or "unfinished".
            group: only about these groups.
            search: only with this text in the answer or its statement, in any case.
            accepted: instead, the answers that count as statements.
            decided: also the answers already decided about.
        """
        groups = {self._run.find_group(name).id for name in as_names(group)}
        reasons = {normalise(name) for name in as_names(reason)}
        generations = [
            g
            for g in self._run.generations()
            if g.outcome != "failed"
            # What a model answered that read a story is no statement.
            and g.strategy != READING_STRATEGY
            and (g.triple is not None) == accepted
            and (not groups or g.group_id in groups)
            and (not reasons or reasons & {g.outcome, normalise(g.reason)})
        ]
        order = {g.id: n for n, g in enumerate(self._run.groups)}
        generations.sort(key=lambda g: (g.outcome, g.reason, order.get(g.group_id, len(order))))
        effective = latest_decisions(self._run.decisions())
        rows = (
            row
            for row in self._rows(generations, effective)
            if (decided or row.decision in ("", "undo"))
            and (search is None or _contains_text(row, search.casefold()))
        )
        return Rows(rows, ReviewedAnswer)

    def decide(
        self,
        answers: ReviewedAnswer | str | Iterable[ReviewedAnswer | str],
        verdict: Verdict,
        predicate: str | None = None,
        object: str | None = None,
    ) -> Rows[Decision]:
        """Decide about answers, given by their rows or ids.

        Args:
            answers: one, or several with the same decision.
            verdict: "restore": count it as a statement; "reject": do not; "undo": count it as the
                crawl read it.
            predicate: the predicate of a restored statement (None: that of the row).
            object: as `predicate`.

        Returns:
            The decisions written; one that the same person made last is not written again.

        Raises:
            UsageError: an answer that is not in the run, or a statement that lacks a part.
        """
        answer_list = [answers] if isinstance(answers, ReviewedAnswer | str) else list(answers)
        decision_rows = []
        for answer in answer_list:
            if isinstance(answer, str):
                row = _DecisionRow("", answer, verdict, predicate or "", object or "")
            else:
                new_predicate = answer.predicate if predicate is None else predicate
                new_object = answer.object if object is None else object
                row = _DecisionRow("", answer.id, verdict, new_predicate, new_object)
            decision_rows.append(row)
        return self._decide(decision_rows)

    def undo(self, answers: Iterable[ReviewedAnswer | str] | None = None) -> Rows[Decision]:
        """Take back the decisions in effect about these answers, or all."""
        if answers is None:
            effective = latest_decisions(self._run.decisions())
            answers = [g.id for g in self._run.generations() if g.id in effective]
        return self.decide(answers, "undo")

    def history(self) -> Rows[Decision]:
        """All decisions, oldest first."""
        columns = (
            Column("decided"),
            Column("reviewer"),
            Column("verdict"),
            Column("group", get=lambda one: _part_of(one.statement or one.read, "group")),
            Column("predicate", get=lambda one: _part_of(one.statement, "predicate")),
            Column("object", get=lambda one: _part_of(one.statement, "object")),
            Column("read_predicate", get=lambda one: _part_of(one.read, "predicate")),
            Column("read_object", get=lambda one: _part_of(one.read, "object")),
            Column("id", get=attrgetter("generation_id")),
        )
        return Rows(self._run.decisions(), columns)

    def write_sheet(self, path: str | Path, answers: Iterable[ReviewedAnswer]) -> int:
        """Write answers as a CSV file for a spreadsheet; returns how many. A person fills in the
        column `decision` (restore, reject or undo) and, when restoring, corrects `predicate` and
        `object`; `earlier` is the decision in effect."""
        total = 0
        with (
            replace_file(Path(path)) as partial,
            # Without the mark at the beginning, Excel takes UTF-8 for something else.
            partial.open("w", encoding="utf-8-sig", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(_SHEET_COLUMNS)
            for answer in answers:
                cells = asdict(answer) | {
                    "id": _ID_PREFIX + answer.id,
                    "decision": "",
                    "earlier": answer.decision,
                }
                writer.writerow([escape_formula(cells[name]) for name in _SHEET_COLUMNS])
                total += 1
        return total

    def read_sheet(self, path: str | Path) -> Rows[Decision]:
        """Make the decisions in such a file, all or none. A row without a decision changes nothing.

        Raises:
            DataError: an invalid row; the message gives its line.
        """
        return self._decide(_read_decisions(Path(path)))

    def __enter__(self) -> Self:
        self._in_context = True
        return self

    def __exit__(self, *_: object) -> None:
        self._in_context = False
        self._derive_graph()

    def _derive_graph(self) -> None:
        if self._needs_derive and not self._in_context:
            self._run.derive_edges()
            self._needs_derive = False

    def _rows(
        self, generations: Sequence[Generation], effective: Mapping[str, Decision]
    ) -> Iterator[ReviewedAnswer]:
        from kgbias.crawl.parse import parse_prompt, reread_answer

        groups = {group.id: group for group in self._run.groups}
        answers = self._run.store.answers(
            [generation.answer_key for generation in generations if generation.answer_key]
        )
        for generation in generations:
            group = groups.get(generation.group_id)
            names = (group.name, *group.variants) if group else ()
            subject, prompt_words = parse_prompt(generation.prompt, names)
            answer = answers[generation.answer_key].text if generation.answer_key in answers else ""
            statement_words = (
                (generation.triple.predicate, generation.triple.object)
                if generation.triple
                else None
            )
            decision = effective.get(generation.id)
            yield ReviewedAnswer(
                generation.id,
                group.name if group else "",
                f"{subject} {prompt_words}".strip(),
                answer,
                generation.outcome,
                generation.reason,
                *(
                    statement_words
                    or reread_answer(answer, subject, prompt_words, self._run.config)
                ),
                generation.triple is not None,
                *((decision.verdict, decision.reviewer, decision.decided) if decision else ()),
            )

    def _decide(self, decision_rows: Sequence[_DecisionRow]) -> Rows[Decision]:
        """Write decisions, all or none."""
        answers = self._load_answers(row.answer_id for row in decision_rows)
        effective = latest_decisions(self._run.decisions())
        english = {group.name: group.english for group in self._run.groups}
        decisions: dict[str, Decision] = {}
        for location, answer_id, verdict, *words in decision_rows:
            error = DataError if location else UsageError
            if answer_id not in answers:
                raise error(f"{location}run {self._run.name!r} has no answer {answer_id!r}")
            if answer_id in decisions:
                raise error(f"{location}this answer has two decisions")
            if verdict not in VERDICTS:
                raise error(f"{location}no decision {verdict!r}; use {', '.join(VERDICTS)} or none")
            (group, triple), earlier = answers[answer_id], effective.get(answer_id)
            statement = None
            if verdict == "restore":
                predicate, object = (" ".join(part.split()) for part in words)
                if not (normalise(predicate) and normalise(object)):
                    raise error(f"{location}a statement to restore needs a predicate and an object")
                statement = Triple(group, predicate, object, english.get(group, ""))
            decision = Decision(
                answer_id,
                verdict,
                self.by,
                timestamp(earlier.decided if earlier else None),
                statement,
                earlier.read if earlier else triple,
            )
            if not _is_repeated(earlier, decision):
                decisions[answer_id] = decision
        if decisions:
            self._run.add_decisions(list(decisions.values()))
            self._needs_derive = True
            self._derive_graph()
        return Rows(decisions.values(), Decision)

    def _load_answers(self, ids: Iterable[str]) -> Mapping[str, _CountedAnswer]:
        """The run's answers by id: the group, and what each counts as. A run may have many, so they
        are read once, and again only for a new one."""
        if any(id not in self._answers_by_id for id in ids):
            names = {g.id: g.name for g in self._run.groups}
            self._answers_by_id = {
                g.id: _CountedAnswer(
                    g.triple.group if g.triple else names.get(g.group_id, ""), g.triple
                )
                for g in self._run.generations()
                if g.outcome != "failed"
            }
        return self._answers_by_id


def _read_decisions(path: Path) -> list[_DecisionRow]:
    """The decisions filled in."""
    _, lines = read_table(path, DECISIONS_FORMAT.columns)
    return [
        _DecisionRow(
            f"{path}, line {number}: ",
            row["id"].strip().removeprefix(_ID_PREFIX),
            row["decision"].strip().casefold(),
            unescape_formula(row["predicate"]),
            unescape_formula(row["object"]),
        )
        for number, row in lines
        if row["decision"].strip()
    ]


def _is_repeated(earlier: Decision | None, decision: Decision) -> bool:
    """Whether a decision repeats its reviewer's last one, or has nothing to take back."""
    if decision.verdict == "undo":
        return earlier is None or earlier.verdict == "undo"
    return earlier is not None and (
        (earlier.verdict, earlier.statement, earlier.reviewer)
        == (decision.verdict, decision.statement, decision.reviewer)
    )


def _contains_text(row: ReviewedAnswer, text: str) -> bool:
    return any(text in part.casefold() for part in (row.answer, f"{row.predicate} {row.object}"))


def _part_of(triple: Triple | None, part: str) -> str:
    """The group, predicate or object of a triple; "" without one."""
    return "" if triple is None else str(getattr(triple, part))
