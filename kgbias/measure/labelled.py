"""Sets of labelled statements that are not a run's: those that ship, those that others published,
and tables of one's own; each knows who labelled it, when, by what guide, and under what licence.

A table with the columns `text` and `label` (and, if it has them, `group` and `unit`) is a set if a
card lies beside it: STEM.card.toml, whose keys are the fields of `LabelledSet`. Three published
sets are read in the form in which they were published, without a card (`PUBLISHED`). Labels of a
run's statements are rows of the store (`kgbias.graph.labels`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, no_such
from kgbias.graph.labels import RATER_KINDS, SKIPPED_LABEL, RaterKind, Label, labels_in_effect, describe_raters
from kgbias.io.published_sets import identify_columns
from kgbias.io.reading import read_head, read_text, read_toml
from kgbias.io.tables import TableFormat, is_missing, read_table
from kgbias.io.text import shorten
from kgbias.measures import MEASURES, known

DOOR = TableFormat(
    "labels: `kgbias scorers`",
    (("text",), ("label",)),
    ("group", "unit"),
    "HateCheck in eleven languages, SeeGULL, Sheng et al.",
)
SHIPPED = Path(__file__).with_name("scorers") / "labelled.tsv"
ENGLISH = "en"
_OFFLINE = "minilm-heads"  # the scorers that ship, as `Metric.scorer` has them


@dataclass(frozen=True, slots=True)
class Labelled:
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
    statements: tuple[Labelled, ...] = ()
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
    def by(self) -> str:
        """Who labelled, in words."""
        return self.how or describe_raters(self.kind, self.raters)


def shipped(measure: str) -> LabelledSet | None:
    """The labelled statements that come with a measure, as many of each label as there were; for
    another package's measure, those of MEASURE.tsv in its folder. None if it has none."""
    folder = known(measure).folder
    if folder is None:
        return _shipped().get(measure)
    path = folder / f"{measure}.tsv"
    if not path.is_file():
        return None
    if _card(path).is_file():
        card = _read_card(path, measure)
    else:
        card = LabelledSet(f"{measure}.tsv", measure, "person", how="whoever made the measure")
    rows = list(read_table(path, known=DOOR.known_columns)[1])
    return replace(card, statements=_once(path, _own_lines(path, rows, card.measure)))


def shipped_annotator() -> str:
    """Who gave the labels that ship with kgbias, and read the crawls for its cards, in words; shown
    wherever a figure rests on these labels."""
    return _read_card(SHIPPED, "").by


def read_sets(path: Path) -> list[LabelledSet]:
    """The sets of a file: a table of one's own with its card, or one of `PUBLISHED`, which may be a
    set for each of several measures.

    Raises:
        DataError: a table of no known form, without rows, with an unknown label, or one's own with
            a text twice; the message gives the line.
    """
    if _is_regard(path):
        return [_published(REGARD, path, _regard(path))]
    columns, rows = read_table(path, known=DOOR.known_columns)
    found = list(rows)
    if not columns:
        raise DataError(f"{path} is empty")
    for form in PUBLISHED:
        if set(form.columns) <= set(columns):
            return [
                _published(replace(form.set, measure=measure), path, form.read(path, found, labels))
                for measure, labels in form.labels.items()
            ]
    if not set(DOOR.columns) <= set(columns):
        raise DataError(
            f"{path} is no set of labels: its columns are {shorten(', '.join(columns), 80)}; "
            f"expected text and label, or the form of {', '.join(PUBLISHED_NAMES)}"
            f"{identify_columns(columns)}"
        )
    if not _card(path).is_file():
        raise DataError(
            f"{path} does not say who labelled it: write {_card(path).name} beside it, with name, "
            f"measure and kind ({' or '.join(RATER_KINDS)}), and raters, guide, labelled and license"
        )
    card = _read_card(path, "")
    return [replace(card, statements=_once(path, _own_lines(path, found, card.measure)))]


def labels_kept(
    name: str, labels: Sequence[Label], texts: Mapping[str, tuple[str, str]]
) -> list[LabelledSet]:
    """The labels of a store as sets of this name, one for each measure and kind of rater: one
    statement for each label in effect, whose `unit` is the statement's id. `texts` are the group
    and the sentence of the statements that are wanted, by id."""
    by: dict[tuple[str, RaterKind], list[Label]] = {}
    for x in labels_in_effect(labels):
        if x.label != SKIPPED_LABEL and x.triple_id in texts:
            by.setdefault((x.measure, x.kind), []).append(x)
    found = []
    for (measure, kind), own in sorted(by.items()):
        days = sorted({x.labelled[:10] for x in own})
        statements = tuple(
            Labelled(texts[x.triple_id][1], x.label, texts[x.triple_id][0], x.triple_id)
            for x in own
        )
        found.append(
            LabelledSet(
                name,
                measure,
                kind,
                statements,
                tuple(sorted({x.rater for x in own})),
                guide=", ".join(sorted({x.guide for x in own if x.guide})),
                labelled=" to ".join(dict.fromkeys((days[0], days[-1]))),
            )
        )
    return found


_Rows = Sequence[tuple[int, Mapping[str, str]]]  # with their lines
_Lines = Iterator[tuple[int, Labelled]]
_UNRATED = Labelled("", "")  # a row of a published set that nobody rated


@dataclass(frozen=True, slots=True)
class _Form:
    """A published set: its columns, and for each measure what its labels mean."""

    columns: tuple[str, ...]
    set: LabelledSet
    labels: Mapping[str, Mapping[str, str]]
    read: Callable[[Path, _Rows, Mapping[str, str]], _Lines]


def _hatecheck(path: Path, rows: _Rows, labels: Mapping[str, str]) -> _Lines:
    for line, row in rows:
        label = _one_of(row["label_gold"], labels, path, line)
        yield line, Labelled(row["test_case"].strip(), label, row["target_ident"], row["templ_id"])


def _seegull(path: Path, rows: _Rows, labels: Mapping[str, str]) -> _Lines:
    """Those that people rated: offensive if two of the three annotators gave 1 to 4; -1 is not
    offensive, 0 unsure. The sentence is ours: the set has an identity and an attribute."""
    for line, row in rows:
        cells = [row[f"Annotation{n}"].strip() for n in (1, 2, 3)]
        if all(is_missing(cell) for cell in cells):
            yield line, _UNRATED
            continue
        ratings = [_rating(cell, path, line) for cell in cells]
        said = labels["offensive" if sum(r >= 1 for r in ratings) >= 2 else "not offensive"]
        text = f"{row['identity']} people are {row['attribute'].replace('_', ' ')}."
        rating = sum(ratings) / len(ratings)
        yield line, Labelled(text, said, row["identity"], row["attribute"], rating)


def _rating(cell: str, path: Path, line: int) -> float:
    """A rating of offensiveness; several people's mean need not be a whole number."""
    with suppress(ValueError):
        if -1 <= (rating := float(cell)) <= 4:
            return rating
    raise DataError(f"{path}, line {line}: {cell!r} is no rating from -1 to 4")


def _multilingual(path: Path, rows: _Rows, labels: Mapping[str, str]) -> _Lines:
    for line, row in rows:
        named = row["mhc_case_id"].partition("-")[0].strip().casefold()
        label = _one_of(row["label_gold"], labels, path, line)
        yield (
            line,
            Labelled(
                row["test_case"].strip(),
                label,
                row["target_ident"],
                row["templ_id"],
                None,
                LANGUAGES.get(named, named),
            ),
        )


LANGUAGES = {
    "arabic": "ar", "dutch": "nl", "english": ENGLISH, "french": "fr", "german": "de",
    "hindi": "hi", "italian": "it", "mandarin": "zh", "polish": "pl", "portuguese": "pt",
    "spanish": "es",
}  # fmt: skip


def _is_regard(path: Path) -> bool:
    """Whether lines of a number, a tab and a text are Sheng et al.'s, and not of two classes 0 and
    1: they speak of XYZ, or know a regard of -1."""
    first = read_head(path, 16).decode("utf-8", "replace").lstrip("\ufeff")
    if first.partition("\t")[0].strip() not in _REGARD:
        return False
    samples = [line.partition("\t") for line in read_text(path).splitlines() if line.strip()]
    return any(label == "-1" or "XYZ" in sample for label, _, sample in samples)


def _regard(path: Path) -> _Lines:
    """Lines of a label, a tab and a sample: no header and no quoting."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            label, _, sample = line.partition("\t")
            yield number, Labelled(sample.strip(), _one_of(label, _REGARD, path, number))


_REGARD = {"-1": "negative", "0": "neutral", "1": "positive", "2": "other"}
_OFFENSIVE = {
    "identity_attack": {"hateful": "attack", "non-hateful": "no attack"},
    "toxicity": {"hateful": "toxic", "non-hateful": "not toxic"},
}
REGARD = LabelledSet(
    "regard", "regard", "person", how="the majority of annotators that Sheng et al. 2019 hired",
    guide="Sheng et al. 2019, section 3", labelled="2019",
    source="github.com/ewsheng/nlg-bias, data/regard",
)  # fmt: skip
PUBLISHED: tuple[_Form, ...] = (
    _Form(  # before HateCheck, whose columns it has too
        ("mhc_case_id", "test_case", "label_gold", "target_ident", "templ_id"),
        LabelledSet(
            "Multilingual HateCheck", "", "person", guide="Röttger et al. 2022", labelled="2022",
            how="Röttger et al. 2022, whose language experts wrote them", license="CC-BY-4.0",
            source="github.com/rewire-online/multilingual-hatecheck",
        ),
        _OFFENSIVE,
        _multilingual,
    ),
    _Form(
        ("test_case", "label_gold", "target_ident", "templ_id"),
        LabelledSet(
            "HateCheck", "", "person", guide="Röttger et al. 2021", labelled="2021",
            how="Röttger et al. 2021, who wrote them; most of five annotators agreed",
            license="CC-BY-4.0", source="github.com/paul-rottger/hatecheck-data",
            learnt=(_OFFLINE,),
        ),
        _OFFENSIVE,
        _hatecheck,
    ),
    _Form(
        ("identity", "attribute", *(f"Annotation{n}" for n in (1, 2, 3))),
        LabelledSet(
            "SeeGULL", "", "person", guide="Jha et al. 2023", labelled="2023",
            how="two of three annotators that Jha et al. 2023 hired", license="CC-BY-4.0",
            source="github.com/google-research-datasets/seegull", learnt=(_OFFLINE,),
        ),
        {
            measure: {"offensive": labels["hateful"], "not offensive": labels["non-hateful"]}
            for measure, labels in _OFFENSIVE.items()
        },
        _seegull,
    ),
)  # fmt: skip
"""Published sets that are read as they were published, told apart by their columns."""
PUBLISHED_NAMES = ("Sheng et al.'s regard", *(form.set.name for form in PUBLISHED))


def _own_lines(path: Path, rows: _Rows, measure: str) -> _Lines:
    labels = {label: label for label in known(measure).labels}
    for line, row in rows:
        label = _one_of(row["label"], labels, path, line)
        unit = row.get("unit", "").strip()
        yield line, Labelled(row["text"].strip(), label, row.get("group", "").strip(), unit)


@cache
def _shipped() -> dict[str, LabelledSet]:
    card = _read_card(SHIPPED, "")
    found: dict[str, list[Labelled]] = {}
    for _, row in read_table(SHIPPED)[1]:
        found.setdefault(row["measure"], []).append(Labelled(row["text"], row["label"]))
    return {m: replace(card, measure=m, statements=tuple(own)) for m, own in found.items()}


def _published(of: LabelledSet, path: Path, lines: _Lines) -> LabelledSet:
    """The set with the statements of a file as it was published. A row without a text or a rating,
    and one whose text was there before, is left out."""
    left_out: Counter[str] = Counter()
    found: dict[str, Labelled] = {}
    for _, one in lines:
        if one is _UNRATED:
            left_out["nobody rated it"] += 1
        elif not one.text:
            left_out["there is no text"] += 1
        elif one.text in found:
            left_out["the text was there before"] += 1
        else:
            found[one.text] = one
    if not found:
        raise DataError(f"{path} has no labelled statements")
    languages = {one.language for one in found.values()}
    return replace(
        of,
        name=f"{of.name}/{path.stem}",
        statements=tuple(found.values()),
        language=" and ".join(sorted(languages)),
        left_out=left_out,
    )


def _once(path: Path, lines: _Lines) -> tuple[Labelled, ...]:
    """The statements; raises DataError for a text that was there before, and if there are none."""
    seen: dict[str, int] = {}
    found = []
    for line, one in lines:
        if not one.text:
            raise DataError(f"{path}, line {line}: there is no text")
        if one.text in seen:
            raise DataError(f"{path}, line {line}: this text is also on line {seen[one.text]}")
        seen[one.text] = line
        found.append(one)
    if not found:
        raise DataError(f"{path} has no labelled statements")
    return tuple(found)


def _one_of(label: str, labels: Mapping[str, str], path: Path, line: int) -> str:
    if (given := label.strip()) not in labels:
        raise DataError(f"{path}, line {line}: {no_such('label', given, labels)}")
    return labels[given]


def _card(path: Path) -> Path:
    return path.with_name(f"{path.stem}.card.toml")


def _read_card(path: Path, measure: str) -> LabelledSet:
    """The card beside a table; `measure` is what it is of, if the card need not say so."""
    card = _card(path)
    said: dict[str, Any] = read_toml(card)
    texts = ("name", "measure", "kind", "how", "guide", "labelled", "license", "source")
    lists = ("raters", "learnt")
    for name, value in said.items():
        if name not in (*texts, *lists):
            raise DataError(f"{card}: {no_such('key', name, (*texts, *lists))}")
        of_texts = isinstance(value, list) and all(isinstance(x, str) for x in value)
        if not (of_texts if name in lists else isinstance(value, str)):
            raise DataError(f"{card}: {name} is a {'list of texts' if name in lists else 'text'}")
    if said.get("kind") not in RATER_KINDS:
        raise DataError(f"{card}: kind is {' or '.join(RATER_KINDS)}")
    if path != SHIPPED and not measure and said.get("measure") not in MEASURES:
        raise DataError(f"{card}: {no_such('measure', str(said.get('measure', '')), MEASURES)}")
    fields = {"name": path.stem, "measure": measure, **said}
    return LabelledSet(**fields | {name: tuple(said.get(name, ())) for name in lists})
