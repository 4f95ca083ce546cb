"""Sets of labelled statements that are not a run's: those that ship, those that others published,
and tables of one's own; each knows who labelled it, when, by what guide, and under what licence.

A table with the columns `text` and `label` (and, if it has them, `group` and `unit`) is a set if a
card lies beside it: STEM.card.toml, whose keys are the fields of `LabelledSet`. Three published
sets are read in the form in which they were published, without a card (`PUBLISHED_FORMS`). Labels
of a run's statements are rows of the store (`kgbias.graph.labels`).

Who labelled is worded by `kgbias.graph.labels.describe_raters`, for both. To add a published set,
add a row to `PUBLISHED_FORMS`, with its columns and what its labels mean.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, no_such
from kgbias.graph.labels import (
    RATER_KINDS,
    SKIPPED_LABEL,
    Label,
    RaterKind,
    describe_raters,
    labels_in_effect,
)
from kgbias.io.reading import read_head, read_text, read_toml
from kgbias.io.tables import TableFormat, is_missing, parse_literal, read_table
from kgbias.io.text import shorten
from kgbias.io.unsupported_sets import advise_on_columns
from kgbias.measures import MEASURES, get_measure

LABEL_TABLE = TableFormat(
    "labels: `kgbias scorers`",
    (("text",), ("label",)),
    ("group", "unit"),
    "HateCheck in eleven languages, SeeGULL, Sheng et al.",
)
SHIPPED_LABELS = Path(__file__).with_name("scorers") / "labelled.tsv"
ENGLISH = "en"
_OFFLINE_SCORER = "minilm-heads"  # the scorers that ship, as `Metric.scorer` has them


@dataclass(frozen=True, slots=True)
class LabelledStatement:
    """A labelled statement.

    Attributes:
        text: the sentence.
        label: one of the measure's labels.
        group: whom it is about; "" if that is not known.
        unit: what it shares with others that are like it, such as a template; "" if nothing.
        rating: a number that people gave, if the label was made of one.
        language: as `LabelledSet.language`.
    """

    text: str
    label: str
    group: str = ""
    unit: str = ""
    rating: float | None = None
    language: str = ENGLISH


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Statements that somebody labelled by one measure.

    Attributes:
        name: what the set is called.
        measure: the measure.
        kind: whether people or a model labelled.
        statements: the statements: each text once, or once for each rater.
        raters: their names; empty if they are not named.
        how: how a published set came to its labels, if not by raters who each labelled statements.
        guide: what they were told, as NAME@VERSION or a citation; "" if not known.
        labelled: when, as far as it is known.
        license: an SPDX id, or "" if none was stated.
        source: where it was published.
        learnt: scorers that learnt from it, whose agreement with it is flattered.
        language: of the statements, as an ISO 639-1 code.
        left_out: how many rows of a published set were left out, by reason.
    """

    name: str
    measure: str
    kind: RaterKind
    statements: tuple[LabelledStatement, ...] = ()
    raters: tuple[str, ...] = ()
    how: str = ""
    guide: str = ""
    labelled: str = ""
    license: str = ""
    source: str = ""
    learnt: tuple[str, ...] = ()
    language: str = ENGLISH
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def labelled_by(self) -> str:
        """Who labelled, in words."""
        return self.how or describe_raters(self.kind, self.raters)


def read_shipped_set(measure: str) -> LabelledSet | None:
    """The labelled statements that come with a measure, as many of each label as there were; for
    another package's measure, those of MEASURE.tsv in its folder. None if it has none."""
    folder = get_measure(measure).folder
    if folder is None:
        return _read_shipped().get(measure)
    path = folder / f"{measure}.tsv"
    if not path.is_file():
        return None
    if _card_path(path).is_file():
        card = _read_card(path, measure)
    else:
        card = LabelledSet(f"{measure}.tsv", measure, "person", how="whoever made the measure")
    rows = list(read_table(path, known=LABEL_TABLE.known_columns).rows)
    return replace(card, statements=_need_distinct(path, _read_own_rows(path, rows, card.measure)))


def describe_shipped_annotator() -> str:
    """Who gave the labels that ship with kgbias, and read the crawls for its cards, in words; shown
    wherever a figure rests on these labels."""
    return _read_card(SHIPPED_LABELS, "").labelled_by


def read_sets(path: Path) -> list[LabelledSet]:
    """The sets of a file: a table of one's own with its card, or one of `PUBLISHED_FORMS`, which
    may be a set for each of several measures.

    Raises:
        DataError: a table of no known form, without rows, with an unknown label, or one's own with
            a text twice; the message gives the line.
    """
    if _is_regard_file(path):
        return [_build_published_set(REGARD_SET, path, _read_regard(path))]
    columns, rows = read_table(path, known=LABEL_TABLE.known_columns)
    numbered_rows = list(rows)
    if not columns:
        raise DataError(f"{path} is empty")
    for form in PUBLISHED_FORMS:
        if set(form.columns) <= set(columns):
            return [
                _build_published_set(
                    replace(form.set, measure=measure), path, form.read(path, numbered_rows, labels)
                )
                for measure, labels in form.labels.items()
            ]
    if not set(LABEL_TABLE.columns) <= set(columns):
        raise DataError(
            f"{path} is no set of labels: its columns are {shorten(', '.join(columns), 80)}; "
            f"expected text and label, or the form of {', '.join(PUBLISHED_NAMES)}"
            f"{advise_on_columns(columns)}"
        )
    if not _card_path(path).is_file():
        raise DataError(
            f"{path} does not say who labelled it: write {_card_path(path).name} beside it, with "
            f"name, measure and kind ({' or '.join(RATER_KINDS)}), and raters, guide, labelled and "
            f"license"
        )
    card = _read_card(path, "")
    return [
        replace(
            card, statements=_need_distinct(path, _read_own_rows(path, numbered_rows, card.measure))
        )
    ]


def sets_of_labels(
    name: str, labels: Sequence[Label], texts: Mapping[str, tuple[str, str]]
) -> list[LabelledSet]:
    """The labels of a store as sets of this name, one for each measure and kind of rater: one
    statement for each label in effect, whose `unit` is the statement's id. `texts` are the group
    and the sentence of the statements that are wanted, by id."""
    labels_by_measure: dict[tuple[str, RaterKind], list[Label]] = {}
    for label in labels_in_effect(labels):
        if label.label != SKIPPED_LABEL and label.triple_id in texts:
            labels_by_measure.setdefault((label.measure, label.kind), []).append(label)
    sets = []
    for (measure, kind), kind_labels in sorted(labels_by_measure.items()):
        days = sorted({label.labelled[:10] for label in kind_labels})
        statements = tuple(
            LabelledStatement(
                texts[label.triple_id][1], label.label, texts[label.triple_id][0], label.triple_id
            )
            for label in kind_labels
        )
        sets.append(
            LabelledSet(
                name,
                measure,
                kind,
                statements,
                tuple(sorted({label.rater for label in kind_labels})),
                guide=", ".join(sorted({label.guide for label in kind_labels if label.guide})),
                labelled=" to ".join(dict.fromkeys((days[0], days[-1]))),
            )
        )
    return sets


_NumberedRows = Sequence[tuple[int, Mapping[str, str]]]  # with their lines
_NumberedStatements = Iterator[tuple[int, LabelledStatement]]
_UNRATED_STATEMENT = LabelledStatement("", "")  # a row of a published set that nobody rated


@dataclass(frozen=True, slots=True)
class _PublishedForm:
    """A published set: its columns, and for each measure what its labels mean."""

    columns: tuple[str, ...]
    set: LabelledSet
    labels: Mapping[str, Mapping[str, str]]
    read: Callable[[Path, _NumberedRows, Mapping[str, str]], _NumberedStatements]


def _read_hatecheck(
    path: Path, rows: _NumberedRows, labels: Mapping[str, str]
) -> _NumberedStatements:
    for line, row in rows:
        label = _known_label(row["label_gold"], labels, path, line)
        yield (
            line,
            LabelledStatement(
                row["test_case"].strip(), label, row["target_ident"], row["templ_id"]
            ),
        )


def _read_seegull(
    path: Path, rows: _NumberedRows, labels: Mapping[str, str]
) -> _NumberedStatements:
    """Those that people rated: offensive if two of the three annotators gave 1 to 4; -1 is not
    offensive, 0 unsure. The sentence is ours: the set has an identity and an attribute."""
    for line, row in rows:
        cells = [row[f"Annotation{n}"].strip() for n in (1, 2, 3)]
        if all(is_missing(cell) for cell in cells):
            yield line, _UNRATED_STATEMENT
            continue
        ratings = [_read_rating(cell, path, line) for cell in cells]
        set_label = labels["offensive" if sum(r >= 1 for r in ratings) >= 2 else "not offensive"]
        text = f"{row['identity']} people are {row['attribute'].replace('_', ' ')}."
        rating = sum(ratings) / len(ratings)
        yield line, LabelledStatement(text, set_label, row["identity"], row["attribute"], rating)


def _read_rating(cell: str, path: Path, line: int) -> float:
    """A rating of offensiveness; several people's mean need not be a whole number."""
    with suppress(ValueError):
        if -1 <= (rating := float(cell)) <= 4:
            return rating
    raise DataError(f"{path}, line {line}: {cell!r} is no rating from -1 to 4")


def _read_multilingual(
    path: Path, rows: _NumberedRows, labels: Mapping[str, str]
) -> _NumberedStatements:
    for line, row in rows:
        # Case ids begin with the language: "spanish-1".
        language_name = row["mhc_case_id"].partition("-")[0].strip().casefold()
        label = _known_label(row["label_gold"], labels, path, line)
        yield (
            line,
            LabelledStatement(
                row["test_case"].strip(),
                label,
                row["target_ident"],
                row["templ_id"],
                None,
                LANGUAGES.get(language_name, language_name),
            ),
        )


LANGUAGES = {
    "arabic": "ar",
    "dutch": "nl",
    "english": ENGLISH,
    "french": "fr",
    "german": "de",
    "hindi": "hi",
    "italian": "it",
    "mandarin": "zh",
    "polish": "pl",
    "portuguese": "pt",
    "spanish": "es",
}


def _is_regard_file(path: Path) -> bool:
    """Whether lines of a number, a tab and a text are Sheng et al.'s, and not of two classes 0 and
    1: they speak of XYZ, or know a regard of -1."""
    # The first bytes rule out nearly every other file; 16 may cut a letter in two.
    first_text = read_head(path, 16).decode("utf-8", "replace").lstrip("\ufeff")
    if first_text.partition("\t")[0].strip() not in _REGARD_LABELS:
        return False
    samples = [line.partition("\t") for line in read_text(path).splitlines() if line.strip()]
    return any(label == "-1" or "XYZ" in sample for label, _, sample in samples)


def _read_regard(path: Path) -> _NumberedStatements:
    """Lines of a label, a tab and a sample: no header and no quoting."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            label, _, sample = line.partition("\t")
            yield (
                number,
                LabelledStatement(
                    sample.strip(), _known_label(label, _REGARD_LABELS, path, number)
                ),
            )


_REGARD_LABELS = {"-1": "negative", "0": "neutral", "1": "positive", "2": "other"}
_OFFENSIVE_LABELS = {
    "identity_attack": {"hateful": "attack", "non-hateful": "no attack"},
    "toxicity": {"hateful": "toxic", "non-hateful": "not toxic"},
}
REGARD_SET = LabelledSet(
    "regard",
    "regard",
    "person",
    how="the majority of annotators that Sheng et al. 2019 hired",
    guide="Sheng et al. 2019, section 3",
    labelled="2019",
    source="github.com/ewsheng/nlg-bias, data/regard",
)
PUBLISHED_FORMS: tuple[_PublishedForm, ...] = (
    _PublishedForm(  # before HateCheck, whose columns it has too
        ("mhc_case_id", "test_case", "label_gold", "target_ident", "templ_id"),
        LabelledSet(
            "Multilingual HateCheck",
            "",
            "person",
            guide="Röttger et al. 2022",
            labelled="2022",
            how="Röttger et al. 2022, whose language experts wrote them",
            license="CC-BY-4.0",
            source="github.com/rewire-online/multilingual-hatecheck",
        ),
        _OFFENSIVE_LABELS,
        _read_multilingual,
    ),
    _PublishedForm(
        ("test_case", "label_gold", "target_ident", "templ_id"),
        LabelledSet(
            "HateCheck",
            "",
            "person",
            guide="Röttger et al. 2021",
            labelled="2021",
            how="Röttger et al. 2021, who wrote them; most of five annotators agreed",
            license="CC-BY-4.0",
            source="github.com/paul-rottger/hatecheck-data",
            learnt=(_OFFLINE_SCORER,),
        ),
        _OFFENSIVE_LABELS,
        _read_hatecheck,
    ),
    _PublishedForm(
        ("identity", "attribute", *(f"Annotation{n}" for n in (1, 2, 3))),
        LabelledSet(
            "SeeGULL",
            "",
            "person",
            guide="Jha et al. 2023",
            labelled="2023",
            how="two of three annotators that Jha et al. 2023 hired",
            license="CC-BY-4.0",
            source="github.com/google-research-datasets/seegull",
            learnt=(_OFFLINE_SCORER,),
        ),
        {
            measure: {"offensive": labels["hateful"], "not offensive": labels["non-hateful"]}
            for measure, labels in _OFFENSIVE_LABELS.items()
        },
        _read_seegull,
    ),
)
"""Published sets that are read as they were published, told apart by their columns."""
PUBLISHED_NAMES = ("Sheng et al.'s regard", *(form.set.name for form in PUBLISHED_FORMS))


def _read_own_rows(path: Path, rows: _NumberedRows, measure: str) -> _NumberedStatements:
    labels = {label: label for label in get_measure(measure).labels}
    for line, row in rows:
        label = _known_label(row["label"], labels, path, line)
        unit = row.get("unit", "").strip()
        if isinstance(parse_literal(row["text"]), list):
            raise DataError(f"{path}, line {line}: the text is a list: write one a row")
        yield (
            line,
            LabelledStatement(row["text"].strip(), label, row.get("group", "").strip(), unit),
        )


@cache
def _read_shipped() -> dict[str, LabelledSet]:
    card = _read_card(SHIPPED_LABELS, "")
    statements_by_measure: dict[str, list[LabelledStatement]] = {}
    for _, row in read_table(SHIPPED_LABELS).rows:
        statements_by_measure.setdefault(row["measure"], []).append(
            LabelledStatement(row["text"], row["label"])
        )
    return {
        m: replace(card, measure=m, statements=tuple(measure_statements))
        for m, measure_statements in statements_by_measure.items()
    }


def _build_published_set(
    labelled_set: LabelledSet, path: Path, lines: _NumberedStatements
) -> LabelledSet:
    """The set with the statements of a file as it was published. A row without a text or a rating,
    and one whose text was there before, is left out."""
    left_out: Counter[str] = Counter()
    statements_by_text: dict[str, LabelledStatement] = {}
    for _, statement in lines:
        if statement is _UNRATED_STATEMENT:
            left_out["nobody rated it"] += 1
        elif not statement.text:
            left_out["there is no text"] += 1
        elif statement.text in statements_by_text:
            left_out["the text was there before"] += 1
        else:
            statements_by_text[statement.text] = statement
    if not statements_by_text:
        raise DataError(f"{path} has no labelled statements")
    languages = {statement.language for statement in statements_by_text.values()}
    return replace(
        labelled_set,
        name=f"{labelled_set.name}/{path.stem}",
        statements=tuple(statements_by_text.values()),
        language=" and ".join(sorted(languages)),
        left_out=left_out,
    )


def _need_distinct(path: Path, lines: _NumberedStatements) -> tuple[LabelledStatement, ...]:
    """The statements; raises DataError for a text that was there before, and if there are none."""
    lines_by_text: dict[str, int] = {}
    statements = []
    for line, statement in lines:
        if not statement.text:
            raise DataError(f"{path}, line {line}: there is no text")
        if statement.text in lines_by_text:
            raise DataError(
                f"{path}, line {line}: this text is also on line {lines_by_text[statement.text]}"
            )
        lines_by_text[statement.text] = line
        statements.append(statement)
    if not statements:
        raise DataError(f"{path} has no labelled statements")
    return tuple(statements)


def _known_label(label: str, labels: Mapping[str, str], path: Path, line: int) -> str:
    if (given_label := label.strip()) not in labels:
        raise DataError(f"{path}, line {line}: {no_such('label', given_label, labels)}")
    return labels[given_label]


def _card_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.card.toml")


def _read_card(path: Path, measure: str) -> LabelledSet:
    """The card beside a table; `measure` is what it is of, if the card need not say so."""
    card = _card_path(path)
    card_values: dict[str, Any] = read_toml(card)
    texts = ("name", "measure", "kind", "how", "guide", "labelled", "license", "source")
    lists = ("raters", "learnt")
    for name, value in card_values.items():
        if name not in (*texts, *lists):
            raise DataError(f"{card}: {no_such('key', name, (*texts, *lists))}")
        is_text_list = isinstance(value, list) and all(isinstance(x, str) for x in value)
        if not (is_text_list if name in lists else isinstance(value, str)):
            raise DataError(f"{card}: {name} is a {'list of texts' if name in lists else 'text'}")
    if card_values.get("kind") not in RATER_KINDS:
        raise DataError(f"{card}: kind is {' or '.join(RATER_KINDS)}")
    if path != SHIPPED_LABELS and not measure and card_values.get("measure") not in MEASURES:
        raise DataError(
            f"{card}: {no_such('measure', str(card_values.get('measure', '')), MEASURES)}"
        )
    fields = {"name": path.stem, "measure": measure, **card_values}
    # TOML has lists; a frozen record has tuples.
    return LabelledSet(**fields | {name: tuple(card_values.get(name, ())) for name in lists})
