"""The report: one self-contained HTML page that works offline and fetches nothing.

It has sections on topics, stereotype content, augmentations, tests, probes and what methods add,
each if the run has it, and one that answers questions: a search by shared words that runs in the
page. It reads questions as `kgbias ask` does (`kgbias.ask`), without embeddings: it
ignores the same question words and word endings, and knows groups by all their names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from kgbias.evidence.names import list_shipped_groups_besides
from kgbias.graph.selection import Selection, merge_sentences, select_most_hurtful
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_CAVEAT,
    Generation,
    Metric,
    RunSummary,
    TripleView,
)
from kgbias.graph.vectors import find_neighbours
from kgbias.io import pages
from kgbias.io.files import replace_file
from kgbias.io.progress import Progress
from kgbias.io.text import format_duration, html, json_in_html
from kgbias.language.words import (
    IRREGULAR_FORMS,
    ORDINARY_ADJECTIVES,
    PERSON_WORDS,
    QUESTION_STOP_WORDS,
    is_negated,
)
from kgbias.measure.figures import describe_intervals
from kgbias.measure.precision import describe_hurtful_label
from kgbias.measure.semantic_search import MIN_SIMILAR_COSINE
from kgbias.measures import Measure, column_measures, order_measures, scored_measures
from kgbias.report import cards
from kgbias.report.cards import copy_texts
from kgbias.report.evidence import evidence_data, evidence_section
from kgbias.report.exhibits import SECTIONS, run_exhibits
from kgbias.report.findings import MIN_STATEMENTS, build_screen, render_screen
from kgbias.report.parts import place_sections, report_parts
from kgbias.report.run_data import RunData
from kgbias.report.style import Section, page_head, read_template_file
from kgbias.report.tables import Exhibit

MAX_TOPICS = 4  # per category, those in which groups differ most; `kgbias figures` has all

_OPEN_SECTIONS = ("beliefs", "figures", "topics", "tests")
"""The sections whose first figures are in sight; the others are one line until they are opened.
Before anything is unfolded, a page (`cards`, `multi_run` too) has at most eight screens of 1280 by
800, which a test measures."""


def standard_sections(
    data: RunData, run_exhibits_found: Sequence[Exhibit] | None = None
) -> list[Section]:
    """The sections of a report that the run has something for. `run_exhibits_found` are the run's
    exhibits, if they have already been made."""
    if run_exhibits_found is None:
        run_exhibits_found = list(run_exhibits(data))
    sections = []
    parts = report_parts()
    for section in place_sections(SECTIONS, (part.sections for part in parts)):
        groups = list(_section_groups(data, run_exhibits_found, section.key_prefixes))
        if not groups:
            continue
        shown = cards.render_groups(groups, folded=section.anchor in _OPEN_SECTIONS)
        body = Markup("<p>{}</p>{}").format(section.about, shown)
        heading = _beliefs_title(data) if section.anchor == "beliefs" else section.title
        sections.append(Section(heading, body, section.anchor))
    made = [part.make_section(data) for part in parts if part.make_section]
    return [*sections, *(section for section in made if section is not None)]


def _beliefs_title(data: RunData) -> str:
    """The title of the section of beliefs: they may be those of another model."""
    believing = data.evidence.belief_run
    other = believing is not None and believing.model.id != data.run.model.id
    return f"What {believing.model.title} believes" if believing and other else "What it believes"


def _section_groups(
    data: RunData, all_exhibits: Sequence[Exhibit], key_prefixes: tuple[str, ...]
) -> Iterator[cards.CardGroup]:
    for category in (*data.categories, ""):  # "" stands for the whole run
        telling = _telling_topics(data, category)
        section_exhibits = []
        for exhibit in all_exhibits:
            # A key is its place, and what it is: "01-topic-07".
            kind = exhibit.key.partition("-")[2]
            if exhibit.category != category or not kind.startswith(key_prefixes):
                continue
            if kind.startswith("topic-") and int(kind.partition("-")[2]) not in telling:
                continue
            section_exhibits.append(exhibit)
        if section_exhibits:
            figures = [e for e in section_exhibits if e.draw is not None]
            heading = cards.heading_of(category, data.categories)
            yield cards.build_group(
                heading, figures, [e.table for e in section_exhibits if e.in_tables]
            )


def _telling_topics(data: RunData, category: str) -> set[int]:
    """The topics whose shares differ most between groups (by their standard deviation)."""
    shares = [s for arm in data.arms for s in arm.shares(category)]
    if not shares:
        return set()
    rows = np.array([s.counts / max(1, s.n) for s in shares])
    return {int(n) for n in np.argsort(-rows.std(axis=0), kind="stable")[:MAX_TOPICS]}


MAX_PROBES = 20_000  # per model in a page


def probe_data(data: RunData, triples: Sequence[TripleView]) -> list[dict[str, Any]]:
    """For each model that the run was probed with, its name and, by statement, the probes of the
    triples' statements as [place of the group in the run, rank, tokens, bits], likeliest group
    first. If there are too many, those of the first `triples` are kept."""
    places = {g.id: n for n, g in enumerate(data.run.groups)}
    statement_ids = dict.fromkeys(t.statement_id for t in triples)
    model_probes = []
    for probing, edges in data.probes:
        by_statement: dict[str, list[list[Any]]] = {}
        for edge in edges:
            if edge.pieces and edge.group_id in places and edge.statement_id in statement_ids:
                row = [places[edge.group_id], edge.rank, edge.pieces, edge.bits]
                by_statement.setdefault(edge.statement_id, []).append(row)
        by_statement_kept: dict[str, list[list[Any]]] = {}
        room_left = MAX_PROBES
        for statement in statement_ids:
            rows = by_statement.get(statement, [])
            # Whole statements only: a rank means nothing without the other groups'.
            if rows and len(rows) <= room_left:
                by_statement_kept[statement] = sorted(rows, key=lambda row: (row[1], row[0]))
                room_left -= len(rows)
        if by_statement_kept:
            model_probes.append({"model": probing.model.title, "statements": by_statement_kept})
    return model_probes


def similar_statements(data: RunData, triples: Sequence[TripleView]) -> dict[int, list[list[int]]]:
    """The statements similar to each (`kgbias.measure.semantic_search.MIN_SIMILAR_COSINE`), by the
    place of the first of `triples` that says it, each as [place, cosine in hundredths], negative if
    only one of the two is negated. Of the statements whose vectors the store keeps."""
    place: dict[str, int] = {}
    for number, triple in enumerate(triples):
        place.setdefault(triple.statement_id, number)
    vectors = data.vectors
    vector_rows = [row for row, id in enumerate(vectors.ids) if id in place]
    triple_places = [place[vectors.ids[row]] for row in vector_rows]
    nearest = find_neighbours(vectors.rows[vector_rows], MAX_SIMILAR, MIN_SIMILAR_COSINE)
    denies = [is_negated(f"{triples[n].predicate} {triples[n].object}") for n in triple_places]
    similar = {}
    for number, matches in enumerate(nearest):
        if matches:
            similar[triple_places[number]] = [
                # A sentence and its denial have vectors that are near, too: a negative number
                # marks them.
                [triple_places[m], round(100 * cosine) * (1 if denies[m] == denies[number] else -1)]
                for m, cosine in matches
            ]
    return similar


_ASK_TEMPLATE = """\
<p>Ask in plain words, such as “{example}”. The answer is only ever what the model said:
statements that share words with the question{similar}, and where each one came from.</p>
<form class="controls" id="ask-form" role="search"><label>Question <input id="ask-question"
type="search" size="48" autocomplete="off"></label><button>Ask</button></form>
<div id="ask-answer" class="panel" aria-live="polite" hidden></div>
<script type="application/json" id="ask-data">{data}</script>"""


def ask_section(data: RunData) -> Section:
    """The section, with what its script needs besides the page's own data."""
    names = [[g.name, *g.variants] for g in data.groups_with_names]
    example = f"What does the model say about {data.run.groups[0].name}?" if names else "…"
    ask_data = {
        "names": names,
        "absent": [
            [g.name, *g.variants] for g in list_shipped_groups_besides(data.groups_with_names)
        ],
        "aside": sorted(QUESTION_STOP_WORDS),
        "irregular": IRREGULAR_FORMS,
        "ordinary": sorted(ORDINARY_ADJECTIVES),
        "persons": sorted(PERSON_WORDS),
    }
    similar_words = ", those that are similar to them" if data.vectors.ids else ""
    body = _ASK_TEMPLATE.format(
        example=html(example), similar=similar_words, data=json_in_html(ask_data)
    )
    return Section("Ask", body, "ask")


MAX_TRIPLES = 20_000  # in the page's table; a larger run shows the most frequent
MAX_SIMILAR = 10  # statements similar to one
MAX_GENERATIONS = 5  # in the provenance of one triple
_MAX_TEXT_CHARS = 2_000  # characters of any one text in the page
SCRIPTS = ("app", "evidence", "ask", "copy", "folds")
"""The page's own scripts, in order."""


def write_report(
    run: StoredRun,
    path: Path,
    *,
    extra_sections: Sequence[Section] = (),
    selection: Selection | None = None,
    progress: Progress | None = None,
    explorer: str = "",
) -> None:
    """Write the report of a run to `path`, whole or not at all. `selection` says which statements
    count; `progress` is told what was left out; `explorer` is the address, relative to the page, of
    an explorer for its links to lead to. Raises DataError, before anything is read or drawn, if
    `path` cannot be written."""
    with replace_file(path) as partial:
        data = RunData(run, selection=selection, progress=progress)
        if progress is not None and data.counted.note:
            progress.note(data.counted.note)
        page = render_report(data, extra_sections, explorer)
        partial.write_text(page, encoding="utf-8", newline="")


def render_report(data: RunData, extra_sections: Sequence[Section] = (), explorer: str = "") -> str:
    """The page as text. `explorer` is the address of the run's explorer, "" without one."""
    run, summary, triples = data.run, data.summary, data.triples
    all_exhibits, first_screen = list(run_exhibits(data)), build_screen(data, explorer)
    script = pages.bundle_scripts(
        *pages.read_shared_scripts(*pages.STATEMENT_SCRIPTS),
        *(read_template_file(f"{name}.js") for name in SCRIPTS),
    )
    standard = {section.anchor: section for section in standard_sections(data, all_exhibits)}
    pairs = [e for e in all_exhibits if e.key.endswith("-pair")]
    first_category = next((f.category for f in first_screen.findings if f.category), "")
    # The picture is of the category that the first finding is about.
    pairs.sort(key=lambda e: e.category != first_category)
    other_groups = [cards.build_group(e.category, [e], ()) for e in pairs[1:]]
    return pages.fill_template(
        read_template_file("page.html"),
        head=page_head(run.name, script),
        run=run,
        summary=summary,
        took="" if summary.seconds is None else format_duration(summary.seconds),
        shares=_answer_shares(summary),
        arms=data.arms,
        several=data.counted.has_several_arms,
        metrics=data.metrics,
        methods=describe_intervals(data.scores),
        measures=column_measures(data.metrics),
        subjects=data.subjects,
        settings={k: v for k, v in run.config.items() if k not in ("seeds", "prefixes")},
        highlights=find_highlights(triples, data.metrics),
        measured=bool(data.scores),
        shown=min(len(triples), MAX_TRIPLES),
        total=len(triples),
        distinct=len({t.id for t in triples}),
        told=render_screen(first_screen),
        fewest=MIN_STATEMENTS,
        picture=cards.FigureCard(pairs[0], cards.render_figure(pairs[0])) if pairs else None,
        pairs=cards.render_folded("Two groups of each other category", other_groups)
        if other_groups
        else "",
        first=evidence_section(
            data, [e.table for e in all_exhibits if e.key.endswith("-agreement")]
        ),
        beliefs=standard.get("beliefs"),
        figures=standard.get("figures"),
        open=[standard[anchor] for anchor in ("topics", "tests") if anchor in standard],
        ask=ask_section(data),
        sections=[
            *(s for s in standard.values() if s.anchor not in _OPEN_SECTIONS),
            *extra_sections,
        ],
        warning=CONTENT_WARNING,
        statement=SAMPLE_CAVEAT,
        data=Markup(json_in_html(page_data(data))),
        exhibits=Markup(json_in_html(copy_texts((e.table for e in all_exhibits), run.name))),
        script=script,
        explorer=explorer,
    )


def page_data(data: RunData) -> dict[str, Any]:
    """The data that the page's scripts read: measures, groups, triples, the provenance of each
    triple, and probes."""
    triples = data.triples
    shown_triples = sorted(triples, key=lambda t: (-t.count, t.group, t.predicate, t.object))[
        :MAX_TRIPLES
    ]
    shown_keys = {(t.arm, t.id) for t in shown_triples}
    sentences = {t.id: _shorten_text(t.sentence) for t in triples}
    places = {g.id: n for n, g in enumerate(data.run.groups)}
    arms = list(data.counted.arms)
    origins: dict[tuple[str, str], list[Generation]] = {}
    for generation in data.generations:
        if (triple := generation.triple) is not None and (generation.arm, triple.id) in shown_keys:
            of_triple = origins.setdefault((generation.arm, triple.id), [])
            if len(of_triple) < MAX_GENERATIONS:
                of_triple.append(generation)
    answers = data.answers([g for of_triple in origins.values() for g in of_triple])
    measures = column_measures(data.metrics)

    def origin_record(generation: Generation) -> dict[str, Any]:
        """The prompt and the answer of a triple."""
        answer = answers.get(generation.answer_key)
        return {
            "prompt": _shorten_text(generation.prompt),
            "answer": _shorten_text(answer.text) if answer else "",
            "strategy": generation.strategy,
            "arm": generation.arm,
            "iteration": generation.iteration,
            "attempt": generation.attempt + 1,
            "template": f"{generation.template} {generation.template_hash[:8]}",
            "shown": [sentences.get(id, id) for id in generation.shown],
        }

    return {
        "measures": [_measure_form(measure) for measure in measures],
        "arms": arms if data.counted.has_several_arms else [],
        "groups": [{"name": g.name, "category": g.category} for g in data.run.groups],
        "triples": [
            {
                "group": places.get(t.group_id, -1),
                "statement": t.statement_id,
                "predicate": _shorten_text(t.predicate),
                "object": _shorten_text(t.object),
                "count": t.count,
                "arm": arms.index(t.arm),
                **{m.name: _score_value(t, m.name) for m in measures},
                "label": t.scores["regard"].label if "regard" in t.scores else "",
                "from": [origin_record(g) for g in origins.get((t.arm, t.id), ())],
            }
            for t in shown_triples
        ],
        "probes": probe_data(data, shown_triples),
        "similar": similar_statements(data, shown_triples),
        "evidence": evidence_data(data, {(t.arm, t.id): n for n, t in enumerate(shown_triples)}),
    }


def _measure_form(measure: Measure) -> dict[str, Any]:
    """How the page's scripts print a measure."""
    digits = int("".join(c for c in measure.form.partition(".")[2] if c.isdigit()) or 2)
    return {"name": measure.name, "signed": measure.form.startswith("+"), "digits": digits}


@dataclass(frozen=True, slots=True)
class HighlightList:
    """Statements that stand out: what they are, what to know about them, the measure they were
    chosen by, if any, and how many more there are that stand out as much as the last."""

    title: str
    triples: Sequence[TripleView]
    note: str = ""
    measure: str = ""
    more: int = 0


def find_highlights(
    triples: Sequence[TripleView], metrics: Mapping[str, Metric], count: int = 6
) -> list[HighlightList]:
    """The most frequent statements, and the most hurtful by each measure that lists them. A
    sentence that was cut in two in different places is listed once, with the sum of its counts."""
    by_frequency = [sentence for sentence, _ in merge_sentences(triples)]
    most_said = sorted(
        (t for t in by_frequency if t.count > 1), key=lambda t: (-t.count, t.sentence)
    )
    more = sum(t.count == most_said[count - 1].count for t in most_said[count:])
    highlights_found = [HighlightList("Said most often", most_said[:count], more=more)]
    distinct = list({t.id: t for t in triples}.values())
    once = list({(t.group_id, t.sentence): t for t in by_frequency}.values())
    for measure in order_measures(scored_measures(distinct)):
        if measure.highlight and (
            worst_triples := select_most_hurtful(once, measure.name, len(once))
        ):
            note = describe_hurtful_label(measure, metrics.get(measure.name), distinct)
            values = [t.scores[measure.name].value for t in worst_triples]
            more = sum(value == values[count - 1] for value in values[count:])
            highlights_found.append(
                HighlightList(measure.highlight, worst_triples[:count], note, measure.name, more)
            )
    return [one for one in highlights_found if one.triples]


def _answer_shares(summary: RunSummary) -> dict[str, float]:
    answered = summary.generations - summary.failed
    read = answered - summary.refused - summary.invalid
    return {"well_formed": read / answered if answered else float("nan")}


def _score_value(triple: TripleView, measure: str) -> float | None:
    score = triple.scores.get(measure)
    return None if score is None else round(score.value, 4)


def _shorten_text(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + "…"
