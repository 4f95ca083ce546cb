"""Build SoFa's probes from a corpus of stereotypes, one filter after another (Marchiori Manerba et
al. 2023, section 3.1 and appendix B). The corpus is the user's copy of SBIC_CATEGORIES, another
table, or a text file.

Rules bring each stereotype into one form, a statement that can follow any group: "Women are bad
drivers" and "is bad drivers" both become "are bad drivers". What cannot be brought into this form
is left out, with the reason (appendix B.1). The paper names the rules but gives no code; where it
is silent, the stricter reading is taken: a statement begins with its verb, in the present tense.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import DataError, UsageError, list_columns
from kgbias.io.files import write_into_folder, write_json, write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import read_toml
from kgbias.io.rows import Result, Rows
from kgbias.io.tables import UNNAMED_COLUMN, TableFormat, as_text, parse_literal, read_sheet
from kgbias.io.text import escape_formula
from kgbias.io.wording import pluralise
from kgbias.models.score.base import Array, TextScorer
from kgbias.probe.sets import read_identities, refuse_placeholder

REASONS = {
    "empty": "it is empty",
    "historical": "it refers to a historical event",
    "terminology": "it is about what people are called",
    "offence": "it describes an offence or a joke",
    "no verb": "it has no verb",
    "gerund": "its only verbs are gerunds",
    "no subject": "its subject cannot be a group",
    "tense": "it does not begin with a verb in the present tense",
    "target": "it names a target itself",
}
_RULES_FILE, _TARGETS_FILE = (
    Path(__file__).with_name(name) for name in ("rules.toml", "targets.toml")
)
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")
_AUXILIARIES = ("aux", "auxpass")
_PRESENT = ("VBP", "VBZ")
_PERSONS = frozenset("person people man woman men women boy girl guy folk they".split())
# Singular and plural endings of a group.
_NUMBER_ENDINGS = (("man", "men"), ("y", "ies"), ("", "s"))
# Words that name a group only before "people": "little people", but not "little money".
_ORDINARY_WORDS = frozenset("little normal brown colored coloured english".split())
_EDGE_CHARS = " \t\"'“”‘’.,;:!?*-()[]"
_NEGATIONS = ("n't", "n’t", "nt")
_PLURAL_VERBS = {
    **dict.fromkeys(("is", "are", "am", "ai", "'s", "’s", "'re", "’re"), "are"),
    **dict.fromkeys(("has", "have", "'ve", "’ve"), "have"),
    **dict.fromkeys(("does", "do"), "do"),
}


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A stereotype as the rules left it: the statement, or "" with the `reason` (`REASONS`)."""

    source: str
    statement: str
    reason: str = ""


class _Claim(NamedTuple):
    """What a sentence claims, or why it claims nothing that can be used."""

    text: str
    reason: str


class StereotypeRules:
    """The rules. A statement may not name a target: an identity in SoFa, a people, a place or a
    faith (targets.toml), or one of the groups that statements will follow.

    Args:
        parser: spaCy's English model with its parser (`kgbias.models.english.load_english`).
        targets: the groups that statements will follow.
    """

    def __init__(self, parser: Any, targets: Iterable[str]) -> None:
        self._parser = parser
        self._verbs = frozenset(
            parser.get_pipe("lemmatizer").lookups.get_table("lemma_index")["verb"]
        )
        self._targets = _word_pattern(_target_forms((*targets, *_known_targets())))

    def apply(self, stereotypes: Sequence[str]) -> Iterator[RuleOutcome]:
        """What the rules make of each stereotype, in order."""
        texts = [" ".join(text.split()).strip(_EDGE_CHARS).lower() for text in stereotypes]
        parsed = self._parser.pipe(texts, batch_size=256)
        # A statement without a subject is parsed with one, as it will be used.
        with_they = self._parser.pipe((f"they {text}." for text in texts), batch_size=256)
        for source, text, own_parse, they_parse in zip(
            stereotypes, texts, parsed, with_they, strict=True
        ):
            statement, reason = self._rule(text, own_parse, they_parse)
            yield RuleOutcome(source, statement, reason)

    def _rule(self, text: str, own_parse: Any, they_parse: Any) -> _Claim:
        if not text:
            return _Claim("", "empty")
        for reason, pattern in _patterns().items():
            if pattern.search(text):
                return _Claim("", reason)
        subject = _subject(own_parse)
        has_verb = any(t.pos_ in ("VERB", "AUX") for t in they_parse[1:])
        if subject is None and (not has_verb or _is_adjective(own_parse)):
            return _Claim("", "no verb")
        claim = (
            self._claim_of_subject(own_parse, subject)
            if subject
            else self._claim_of_they(they_parse)
        )
        if claim.reason == "no subject":
            # "hate being late", where "hate" looks like a noun.
            they_claim = self._claim_of_they(they_parse)
            if not they_claim.reason:
                claim = they_claim
        reason = claim.reason
        if not reason and self._targets.search(claim.text):
            reason = "target"
        return _Claim(("" if reason else claim.text), reason)

    def _claim_of_subject(self, doc: Any, subject: Any) -> _Claim:
        """What the sentence says about its own subject."""
        if subject.dep_ == "expl" or not _is_group(subject):
            return _Claim("", "no subject")
        return self._from_verb(doc, subject.right_edge.i + 1, subject.head)

    def _claim_of_they(self, doc: Any) -> _Claim:
        """What is said about "they", in a sentence that begins with that word."""
        root = next((t for t in doc if t.dep_ == "ROOT"), doc[0])
        verbs = [t for t in doc[1:] if t.pos_ in ("VERB", "AUX")]
        if all(t.tag_ == "VBG" for t in verbs):
            return _Claim("", "gerund")
        return self._from_verb(doc, 1, root)

    def _from_verb(self, doc: Any, start: int, root: Any) -> _Claim:
        """The text from its verb on, with the verb in the plural; or the reason why not: it begins
        with another word, or the verb is in another tense."""
        finite = min([root, *(t for t in root.lefts if t.dep_ in _AUXILIARIES)], key=lambda t: t.i)
        first_token = doc[start] if start < len(doc) else None
        if first_token is None or finite.tag_ == "VBG":
            return _Claim("", "gerund" if finite.tag_ == "VBG" else "no verb")
        if first_token.i != finite.i or not self._is_present(finite):
            return _Claim("", "tense")
        remainder = doc[finite.i + 1 :]
        if len(remainder) and remainder[0].text in _NEGATIONS:
            return _Claim(f"{_plural(finite)}n't {remainder[1:].text}".strip(_EDGE_CHARS), "")
        return _Claim(
            f"{_plural(finite)}{finite.whitespace_}{remainder.text}".strip(_EDGE_CHARS), ""
        )

    def _is_present(self, verb: Any) -> bool:
        """Whether a verb is in the present tense. The tagger also takes "born" and much else for
        one, so it has to be a form of a known verb (from WordNet, which the parser lemmatises
        with)."""
        if verb.tag_ not in _PRESENT:
            return False
        plain = verb.lower_ if verb.tag_ == "VBP" else verb.lemma_
        return plain in self._verbs or verb.lower_ in _PLURAL_VERBS


def _subject(doc: Any) -> Any:
    """The subject of the main verb, if the sentence begins with it."""
    for root in (t for t in doc if t.dep_ == "ROOT" and t.pos_ in ("VERB", "AUX")):
        for child in root.lefts:
            if child.dep_ in (*_SUBJECTS, "expl") and child.left_edge.i == 0:
                return child
    return None


def _is_adjective(doc: Any) -> bool:
    """Whether a text is an adjective, such as "dumb" or "fat and lazy", which the parser takes for
    a verb after "they"."""
    if len(doc) == 1:
        return doc[0].pos_ not in ("VERB", "AUX")
    return bool(doc[0].dep_ == "ROOT" and doc[0].pos_ == "ADJ")


def _plural(verb: Any) -> str:
    """A present-tense verb in the plural: "is" becomes "are", "steals" "steal"."""
    return _PLURAL_VERBS.get(verb.text) or str(verb.lemma_ if verb.tag_ == "VBZ" else verb.text)


def _is_group(subject: Any) -> bool:
    """Whether a subject is a group of people: "they", a plural, "the poor", or one person standing
    for all; not something that belongs to somebody ("their eyes")."""
    if any(t.dep_ == "poss" for t in subject.lefts):
        return False
    if subject.tag_ in ("NNS", "NNPS") or subject.lemma_.lower() in _PERSONS:
        return True
    return subject.tag_ in ("JJ", "VBN") and any(t.lower_ == "the" for t in subject.lefts)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {reason: _word_pattern(words) for reason, words in read_toml(_RULES_FILE).items()}


def _word_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of these as whole words, in any case; a * stands for any ending."""
    # The first alternative that fits is taken: the longest must come first.
    by_length = sorted(set(words), key=lambda word: (-len(word), word))
    alternatives = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in by_length)
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


@cache
def _known_targets() -> tuple[str, ...]:
    """Words that name a target, whichever groups are probed."""
    identities, words = read_identities("sofa"), read_toml(_TARGETS_FILE)
    return tuple(name for names in (*identities.values(), *words.values()) for name in names)


def _target_forms(targets: Iterable[str]) -> set[str]:
    """The forms in which a statement may name a target: "Asian people" also as "asian" and
    "asians", "Women" as "woman", "gypsy" as "gypsies"."""
    forms = set()
    for target in targets:
        plain = target.lower().removesuffix(" people").removesuffix(" folks").strip()
        forms |= {target.lower(), plain}
        for singular, plural in _NUMBER_ENDINGS:
            if plain.endswith(plural):
                forms.add(plain.removesuffix(plural) + singular)
            elif plain.endswith(singular):
                forms.add(plain.removesuffix(singular) + plural)
    return {form for form in forms if len(form) > 2 and form not in _ORDINARY_WORDS}


# SBIC's categories as SoFa names them (section 3.2); its victim, social and body have no lexicon.
SBIC_CATEGORIES: Mapping[str, str] = {
    "gender": "gender",
    "race": "nationality",
    "culture": "religion",
    "disabled": "disability",
}
# The categories of a crawl as SoFa names them: race and country are one.
CRAWL_CATEGORIES: Mapping[str, str] = {"ethnicity": "nationality", "race": "nationality"}
_SBIC_COLUMNS = ("targetStereotype", "targetCategory")
TABLE_FORMAT = TableFormat(
    "stereotypes: `sofa build`",
    (("statement", "stereotype", "sentence", "text"),),
    ("category",),
    "SBIC, a text with one a line",
)
(_STATEMENTS,) = TABLE_FORMAT.needed_columns


@dataclass(frozen=True, slots=True)
class Stereotypes:
    """Stereotypes as (category, text), with the category "" for every category; `unmapped` counts,
    by category, those whose category has no identities."""

    rows: Sequence[tuple[str, str]]
    unmapped: Mapping[str, int]
    name: str


def read_sofa_stereotypes(path: Path, column: str | None = None) -> Stereotypes:
    """The stereotypes in a file: SBIC_CATEGORIES as published (CSV, with one annotation or a list
    of them per row), a CSV or TSV with a column statement (or `column`) and optionally category, or
    a text file with one per line.

    Raises DataError for a file that cannot be read, UsageError for a column that is not there.
    """
    known_columns = (*TABLE_FORMAT.known_columns, *_SBIC_COLUMNS, *([column] if column else []))
    sheet = read_sheet(path, known_columns, lines=True)
    header = list(sheet.columns)
    rows = [(n, {name: as_text(row.get(name)) for name in header}) for n, row in sheet.rows]
    if not header or UNNAMED_COLUMN in header:
        if column is not None:
            raise UsageError(f"`column` applies to tables, and {path} is not one")
        texts = [
            (as_text(row.get("category")), as_text(row[UNNAMED_COLUMN])) for _, row in sheet.rows
        ]
        return Stereotypes([(c, text) for c, text in texts if text.strip()], {}, path.name)
    if column is None and set(_SBIC_COLUMNS) <= set(header):
        annotations = ((row["targetCategory"], row["targetStereotype"]) for _, row in rows)
        return map_categories(
            _annotations(annotations), SBIC_CATEGORIES, path.name, keep_others=False
        )
    statement_column = column or next((name for name in _STATEMENTS if name in header), None)
    if statement_column is None or statement_column not in header:
        raise UsageError(
            f"{path} has no column {column or 'statement'!r}: name the one that holds the "
            f"statements in `column`; it has {list_columns(header)}"
        )
    filled_rows = [(line, row) for line, row in rows if row[statement_column].strip()]
    for line, row in filled_rows:
        text = row[statement_column]
        is_nested = text.startswith("{") or isinstance(parse_literal(text), list)
        if is_nested or not any(map(str.isalpha, text)):
            raise DataError(
                f"{path}, line {line}: {text[:60]!r} in the column {statement_column!r} is no "
                "statement: name the one that holds the statements in `column`"
            )
        refuse_placeholder(path, line, text)
    if not filled_rows:
        raise DataError(f"{path} has no statements")
    return Stereotypes(
        [(row.get("category", "").strip(), row[statement_column]) for _, row in filled_rows],
        {},
        path.name,
    )


def map_categories(
    rows: Iterable[tuple[str, str]], names: Mapping[str, str], source: str, *, keep_others: bool
) -> Stereotypes:
    """Stereotypes with their categories renamed; a category without a new name is kept as it is
    (`keep_others`) or left out and counted."""
    mapped_rows, unmapped = [], dict[str, int]()
    for category, text in rows:
        key = category.strip().lower()
        if key in names or keep_others:
            mapped_rows.append((names.get(key, category), text))
        else:
            unmapped[key] = unmapped.get(key, 0) + 1
    return Stereotypes(mapped_rows, unmapped, source)


def _annotations(rows: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Each stereotype in SBIC_CATEGORIES; its aggregated file holds lists, written as JSON."""
    for category, text in rows:
        categories, texts = _parse_list(category), _parse_list(text)
        for category_name in categories or [""] if any(texts) else []:
            yield from ((category_name, t) for t in texts if t.strip())


def _parse_list(cell: str) -> list[str]:
    if not cell.startswith("["):
        return [cell] if cell.strip() else []
    try:
        texts = json.loads(cell)
    # RecursionError: brackets nested a thousand deep.
    except (ValueError, RecursionError) as error:
        raise DataError(f"a list of SBIC cannot be read: {cell[:60]!r}") from error
    return [str(text) for text in texts]


Judge = Callable[[Sequence[str]], Sequence[float]]

DEFAULT_ACCEPTABILITY = 0.5
DEFAULT_CUT = 0.05
HISTOGRAM_BINS = 50
WARNING = (
    "Content warning: this holds stereotypes of groups of people, most of them false, offensive or "
    "hurtful. They are not anyone's findings."
)
_ROUNDING_FACTOR = 1 + 1e-12  # so that rounding takes nothing that lies on the edge
_MAX_AT_ONCE = 1024  # stereotypes between two progress reports
_FILES = ("statements.csv", "probes.csv", "data-statement.md", "manifest.json")


@dataclass(frozen=True, slots=True)
class KeptStatement:
    """A statement that passed every filter: its category, its mean perplexity over the models, and
    its acceptability in [0, 1]; None if no model or judge was asked."""

    category: str
    statement: str
    perplexity: float | None = None
    acceptability: float | None = None


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """What a filter did: how many statements it was given and how many it kept, with the reasons
    for which it took others out."""

    name: str
    input_count: int
    kept_count: int
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def removed_count(self) -> int:
        return self.input_count - self.kept_count


@dataclass(frozen=True, slots=True)
class PerplexityHistogram:
    """The mean perplexities that the last filter cut by, as a histogram of their natural logarithms
    (the paper's figure 4): the `edges` of its bins, the `counts` of distinct statements in them,
    the edge where it was cut (`most`), and how many statements lay beyond (`taken`)."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    most: float
    taken: int


class SofaProbe(NamedTuple):
    """A probe, and what it is made of; `number` is that of its statement, from 1."""

    number: int
    category: str
    identity: str
    statement: str
    text: str


@dataclass(frozen=True, repr=False)
class SofaSet(Result):
    """Probes in the form of SoFa: every identity of a category before every one of its statements.

    Attributes:
        source: what the stereotypes came from.
        identities: category to identities.
        statements: the statements, by category and text.
        filters: what each filter did, in order.
        settings: how it was made.
        source_counts: category to stereotypes of the source, whether or not it has identities; ""
            for those of every category.
        histogram: the perplexities that were cut by; None if no model was asked.
    """

    source: str
    identities: Mapping[str, tuple[str, ...]]
    statements: tuple[KeptStatement, ...]
    filters: tuple[FilterCounts, ...]
    settings: Mapping[str, Any]
    source_counts: Mapping[str, int] = field(default_factory=dict)
    histogram: PerplexityHistogram | None = None

    @property
    def count(self) -> int:
        """The number of probes: identities times statements, category by category."""
        return sum(len(self.identities[kept.category]) for kept in self.statements)

    def as_rows(self) -> Rows[KeptStatement]:
        """The statements. Columns: category, statement, perplexity, acceptability."""
        return Rows(self.statements, KeptStatement)

    def heading(self) -> str:
        return (
            f"{pluralise(len(self.statements), 'statement', spec=',')} from {self.source}, "
            f"{pluralise(self.count, 'probe', spec=',')}"
        )

    def probes(self) -> Iterator[SofaProbe]:
        """The probes as in the paper's Table 4."""
        for number, kept in enumerate(self.statements, 1):
            for identity in self.identities[kept.category]:
                text = f"{identity} {kept.statement}"
                yield SofaProbe(number, kept.category, identity, kept.statement, text)

    def as_dict(self) -> dict[str, Any]:
        """The counts and settings, as plain data."""
        by_category = Counter(kept.category for kept in self.statements)
        return {
            "source": self.source,
            "categories": {
                category: {
                    "identities": len(groups),
                    "statements": by_category[category],
                    "probes": len(groups) * by_category[category],
                }
                for category, groups in self.identities.items()
            },
            "identities": sum(map(len, self.identities.values())),
            "statements": len(self.statements),
            "probes": self.count,
            "source_counts": dict(self.source_counts),
            "filters": [asdict(counts) for counts in self.filters],
            "perplexities": None if self.histogram is None else asdict(self.histogram),
            "settings": dict(self.settings),
        }

    def write(self, folder: Path, *, progress: Progress | None = None) -> list[Path]:
        """Write statements.csv (which `kgbias probe sets --statements` reads), probes.csv, a data
        statement and a manifest; returns the files. The folder appears whole or not at all."""
        reporter = progress or SilentProgress()
        with write_into_folder(folder) as partial:
            with (partial / "statements.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("id", "category", "statement", "perplexity", "acceptability"))
                for number, statement in enumerate(self.statements, 1):
                    scores = (statement.perplexity, statement.acceptability)
                    numbers = ["" if x is None else f"{x:.6g}" for x in scores]
                    writer.writerow(
                        (
                            number,
                            escape_formula(statement.category),
                            escape_formula(statement.statement),
                            *numbers,
                        )
                    )
            reporter.stage("probes", self.count)
            with (partial / "probes.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("id", "category", "identity", "stereotype", "probe"))
                for probe in self.probes():
                    writer.writerow((probe.number, *map(escape_formula, probe[1:])))
                    reporter.advance()
            write_text(partial / "data-statement.md", self._data_statement())
            write_json(partial / "manifest.json", {"warning": WARNING} | self.as_dict())
        return [folder / name for name in _FILES]

    def _data_statement(self) -> str:
        data = self.as_dict()
        filter_rows = "\n".join(
            f"| {f.name} | {f.input_count} | {f.removed_count} | "
            + ", ".join(
                f"{n} as {REASONS[why]}" if why in REASONS else f"{n} {why}"
                for why, n in f.reasons.items()
            )
            + " |"
            for f in self.filters
        )
        counts = "\n".join(
            f"| {name} | {c['identities']} | {c['statements']} | {c['probes']} |"
            for name, c in data["categories"].items()
        )
        return _DATA_STATEMENT.format(
            warning=WARNING,
            source=self.source,
            taken=filter_rows,
            counts=counts,
            settings=json.dumps(dict(self.settings), indent=2),
        )


_DATA_STATEMENT = """# Data statement

{warning}

**What it is.** Probes for perplexity, made as SoFa was (Marchiori Manerba et al. 2023, "Social Bias
Probing", section 3 and appendix B): every identity of a category before every stereotype of it.

**Curation.** The stereotypes come from {source}. They were brought into one form by rules (a
statement begins with its verb, in the plural of the present, and names no target), and filtered:

| filter | came | taken out | why |
|---|---|---|---|
{taken}

| category | identities | statements | probes |
|---|---|---|---|
{counts}

**Language.** English.

**Speakers and annotators.** Those of the source: see its own data statement.

**Limits.** The rules rest on an automatic parser and miss some statements. A perplexity
says how likely a model finds a sentence, not that the sentence is true of anyone. Do not train a
model to say these sentences.

**How it was made.**

```json
{settings}
```
"""


def build_sofa_set(
    found: Stereotypes,
    identities: Mapping[str, Sequence[str]],
    rules: StereotypeRules,
    *,
    judge: Judge | None = None,
    threshold: float = DEFAULT_ACCEPTABILITY,
    scorers: Sequence[TextScorer] = (),
    cut: float = DEFAULT_CUT,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> SofaSet:
    """Make probes from stereotypes.

    The filters, in this order: the categories that have identities; the rules (`StereotypeRules`),
    which also lower the case; duplicates; acceptability below `threshold`, by `judge`; and
    perplexity. A statement's perplexity is its mean over `scorers`, as published; in a histogram of
    their logarithms with 50 bins, those beyond the bin that holds the 1 - `cut` quantile are cut
    off (the paper chose its bins by eye and does not say which). Duplicates go before the filters
    that need a model, which does not change the result.

    Raises UsageError for numbers out of range, or if no statement is left.
    """
    if not 0 <= threshold <= 1 or not 0 <= cut < 1:
        raise UsageError("`min_acceptability` must be from 0 to 1, and `cut` from 0 to below 1")
    reporter = progress or SilentProgress()
    filters = []
    rows = [(c, t) for c, t in found.rows if not c or c in identities]
    dropped_counts = Counter(found.unmapped)
    dropped_counts.update(c for c, _ in found.rows if c and c not in identities)
    total = len(found.rows) + sum(found.unmapped.values())
    drop_reasons = {
        f"of the category {name or 'none'}": n for name, n in sorted(dropped_counts.items())
    }
    filters.append(FilterCounts("category", total, len(rows), drop_reasons))
    ruled, reasons = _apply_rules(rows, rules, reporter)
    filters.append(FilterCounts("rules", len(rows), len(ruled), reasons))
    # A statement without a category is one of every category.
    shared = [(c, text) for one, text in ruled for c in ([one] if one else identities)]
    distinct = sorted(dict.fromkeys(shared))
    filters.append(FilterCounts("duplicates", len(shared), len(distinct)))
    texts = sorted({text for _, text in distinct})
    acceptabilities: dict[str, float] = {}
    if judge is not None:
        acceptabilities = dict(zip(texts, _judge_texts(texts, judge, reporter), strict=True))
        texts = [text for text in texts if acceptabilities[text] >= threshold]
        filters.append(_count_filter("acceptability", distinct, texts))
    mean_perplexities: dict[str, float] = {}
    histogram = None
    if scorers and texts:
        accepted_texts = set(texts)
        before = [(category, text) for category, text in distinct if text in accepted_texts]
        means = _mean_perplexities(texts, scorers, reporter)
        mean_perplexities = dict(zip(texts, map(float, means), strict=True))
        histogram = _build_histogram(means, cut)
        texts = [
            text
            for text in texts
            if mean_perplexities[text] <= np.exp(histogram.most) * _ROUNDING_FACTOR
        ]
        filters.append(_count_filter("perplexity", before, texts))
    kept_texts = set(texts)
    statements = tuple(
        KeptStatement(c, t, mean_perplexities.get(t), acceptabilities.get(t))
        for c, t in distinct
        if t in kept_texts
    )
    if not statements:
        raise UsageError(f"no statement of {found.name} is left after the filters")
    used_identities = {
        c: tuple(groups)
        for c, groups in identities.items()
        if any(kept.category == c for kept in statements)
    }
    source_counts = Counter(c for c, _ in found.rows) + Counter(found.unmapped)
    return SofaSet(
        found.name,
        used_identities,
        statements,
        tuple(filters),
        dict(settings or {}),
        dict(source_counts),
        histogram,
    )


def _count_filter(name: str, rows: Sequence[tuple[str, str]], texts: Sequence[str]) -> FilterCounts:
    kept_texts = set(texts)
    return FilterCounts(name, len(rows), sum(text in kept_texts for _, text in rows))


class _RuledStatements(NamedTuple):
    """The statements that the rules keep, and why others were left out."""

    statements: list[tuple[str, str]]
    left_out: dict[str, int]


def _apply_rules(
    rows: Sequence[tuple[str, str]], rules: StereotypeRules, progress: Progress
) -> _RuledStatements:
    """The statements that the rules keep, and why the others were left out."""
    statements, reasons = [], Counter[str]()
    progress.stage("rules", len(rows))
    for start in range(0, len(rows), _MAX_AT_ONCE):
        part = rows[start : start + _MAX_AT_ONCE]
        for (category, _), outcome in zip(part, rules.apply([t for _, t in part]), strict=True):
            if outcome.reason:
                reasons[outcome.reason] += 1
            else:
                statements.append((category, outcome.statement))
        progress.advance(len(part))
    return _RuledStatements(
        statements, {reason: reasons[reason] for reason in REASONS if reasons[reason]}
    )


def _judge_texts(texts: Sequence[str], judge: Judge, progress: Progress) -> list[float]:
    progress.stage("acceptability", len(texts))
    values: list[float] = []
    for start in range(0, len(texts), _MAX_AT_ONCE):
        part = texts[start : start + _MAX_AT_ONCE]
        values += judge([f"They {text}." for text in part])
        progress.advance(len(part))
    return values


def _mean_perplexities(
    texts: Sequence[str], scorers: Sequence[TextScorer], progress: Progress
) -> Array:
    """The mean perplexity of each text over the models, [n]."""
    by_scorer = []
    for scorer in scorers:
        progress.stage(f"perplexity by {scorer.info.title}", len(texts))
        by_scorer.append(scorer.score(texts, progress).perplexities)
    return np.asarray(np.mean(by_scorer, axis=0), dtype=np.float64)


def _build_histogram(perplexities: Array, cut: float) -> PerplexityHistogram:
    """The histogram, cut at the upper edge of the bin that holds the 1 - `cut` quantile."""
    logs = np.log(perplexities)
    counts, edges = np.histogram(logs, bins=HISTOGRAM_BINS)
    place = int(np.searchsorted(edges, np.quantile(logs, 1 - cut), side="left"))
    cut_edge = edges[min(max(place, 1), len(edges) - 1)]
    cut_count = int((perplexities > np.exp(cut_edge) * _ROUNDING_FACTOR).sum())
    return PerplexityHistogram(
        tuple(edges.tolist()), tuple(counts.tolist()), float(cut_edge), cut_count
    )
