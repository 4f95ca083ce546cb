"""The report: one self-contained HTML page that works offline and asks no one for anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias import pages
from kgbias.files import whole_file
from kgbias.graph.selection import Selection
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_STATEMENT,
    Generation,
    Metric,
    RunSummary,
    TripleView,
)
from kgbias.measure.attribution import telling
from kgbias.measure.precision import caution
from kgbias.measures import MEASURES, Measure, columns
from kgbias.progress import Progress
from kgbias.report.ask import ask_section
from kgbias.report.cards import copied, told
from kgbias.report.evidence import evidence_data, evidence_section
from kgbias.report.exhibits import exhibits
from kgbias.report.findings import findings
from kgbias.report.probed import probed, statement_of
from kgbias.report.run_data import RunData
from kgbias.report.sections import standard_sections
from kgbias.report.types import Section
from kgbias.text import duration, json_in_html

MAX_TRIPLES = 20_000  # in the page's table; of a larger run, the most frequent ones
MAX_GENERATIONS = 5  # of one triple, in its provenance
_LONGEST = 2_000  # characters of any one text in the page
SCRIPTS = ("app", "evidence", "ask", "copy")
"""The page's own scripts, in the order in which they stand in it."""


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
    count; `progress` is told what was left out; `explorer` is the address, seen from the page, of
    an explorer that its links lead to. Raises DataError, before anything is read or drawn, where it
    cannot be written."""
    with whole_file(path) as partial:
        data = RunData(run, selection=selection, progress=progress)
        if progress is not None and data.counted.note:
            progress.note(data.counted.note)
        page = render(data, extra_sections, explorer)
        partial.write_text(page, encoding="utf-8", newline="")


def render(data: RunData, extra_sections: Sequence[Section] = (), explorer: str = "") -> str:
    """The page as text. `explorer` is where the explorer of the run is, "" where there is none."""
    run, summary, triples = data.run, data.summary, data.triples
    found = list(exhibits(data))
    scripts = [_read("vendor", "cytoscape.min.js")]
    scripts += [_read("templates", f"{name}.js") for name in SCRIPTS]
    standard = {section.anchor: section for section in standard_sections(data, found)}
    beliefs, figures = standard.pop("beliefs", None), standard.pop("figures", None)
    return (
        pages.environment()
        .from_string(_read("templates", "page.html"))
        .render(
            run=run,
            summary=summary,
            took="" if summary.seconds is None else duration(summary.seconds),
            shares=_shares(summary),
            arms=data.arms,
            several=data.counted.several,
            metrics=data.metrics,
            method=next((s.method for s in data.scores), ""),
            measures=columns(data.metrics),
            categories=data.categories,
            settings={k: v for k, v in run.config.items() if k not in ("seeds", "prefixes")},
            highlights=highlights(triples, data.metrics),
            measured=bool(data.scores),
            shown=min(len(triples), MAX_TRIPLES),
            total=len(triples),
            distinct=len({t.id for t in triples}),
            told=told(findings(data, explorer)),
            first=evidence_section(data, [e.table for e in found if e.key.endswith("-agreement")]),
            beliefs=beliefs,
            figures=figures,
            sections=[ask_section(data), *standard.values(), *extra_sections],
            warning=CONTENT_WARNING,
            statement=SAMPLE_STATEMENT,
            style=Markup(pages.style(_read("templates", "style.css"))),
            data=Markup(json_in_html(page_data(data))),
            exhibits=Markup(json_in_html(copied((e.table for e in found), run.name))),
            scripts=[Markup(script) for script in scripts],
            script_hashes=pages.allowed(*scripts),
            explorer=explorer,
        )
    )


def page_data(data: RunData) -> dict[str, Any]:
    """What the page's scripts read: measures, groups, triples, the provenance of each triple, and
    probes."""
    triples = data.triples
    kept = sorted(triples, key=lambda t: (-t.count, t.group, t.predicate, t.object))[:MAX_TRIPLES]
    wanted = {(t.arm, t.id) for t in kept}
    sentences = {t.id: _cut(t.sentence) for t in triples}
    places = {g.id: n for n, g in enumerate(data.run.groups)}
    arms = list(data.counted.arms)
    origins: dict[tuple[str, str], list[Generation]] = {}
    for generation in data.generations:
        if (triple := generation.triple) is not None and (generation.arm, triple.id) in wanted:
            of_triple = origins.setdefault((generation.arm, triple.id), [])
            if len(of_triple) < MAX_GENERATIONS:
                of_triple.append(generation)
    answers = data.answers([g for of_triple in origins.values() for g in of_triple])
    measures = columns(data.metrics)
    return {
        "measures": [_measure(measure) for measure in measures],
        "arms": arms if data.counted.several else [],
        "groups": [{"name": g.name, "category": g.category} for g in data.run.groups],
        "triples": [
            {
                "group": places.get(t.group_id, -1),
                "statement": statement_of(t),
                "predicate": _cut(t.predicate),
                "object": _cut(t.object),
                "count": t.count,
                "arm": arms.index(t.arm),
                **{m.name: _value(t, m.name) for m in measures},
                "label": t.scores["regard"].label if "regard" in t.scores else "",
                "from": [
                    {
                        "prompt": _cut(g.prompt),
                        "answer": _cut(answers[g.answer_key].text)
                        if g.answer_key in answers
                        else "",
                        "strategy": g.strategy,
                        "arm": g.arm,
                        "iteration": g.iteration,
                        "attempt": g.attempt + 1,
                        "template": f"{g.template} {g.template_hash[:8]}",
                        "shown": [sentences.get(id, id) for id in g.shown],
                    }
                    for g in origins.get((t.arm, t.id), ())
                ],
            }
            for t in kept
        ],
        "probes": probed(data, kept),
        "evidence": evidence_data(data, {(t.arm, t.id): n for n, t in enumerate(kept)}),
    }


def _measure(measure: Measure) -> dict[str, Any]:
    """How the page's scripts print a measure."""
    digits = int("".join(c for c in measure.form.partition(".")[2] if c.isdigit()) or 2)
    return {"name": measure.name, "signed": measure.form.startswith("+"), "digits": digits}


@dataclass(frozen=True, slots=True)
class Highlight:
    """Statements that stand out: what they are, what is to be known of them, and the measure they
    were chosen by, if any."""

    title: str
    triples: Sequence[TripleView]
    note: str = ""
    measure: str = ""


def highlights(
    triples: Sequence[TripleView], metrics: Mapping[str, Metric], count: int = 6
) -> list[Highlight]:
    """The most frequent statements, and the most hurtful ones by each measure that lists them."""
    said = sorted(triples, key=lambda t: (-t.count, t.sentence))
    found = [Highlight("Said most often", [t for t in said if t.count > 1][:count])]
    distinct = list({t.id: t for t in triples}.values())
    for measure in MEASURES.values():
        if measure.highlight and (worst := telling(distinct, measure.name, count)):
            note = caution(measure, metrics.get(measure.name), distinct)
            found.append(Highlight(measure.highlight, worst, note, measure.name))
    return [one for one in found if one.triples]


def _shares(summary: RunSummary) -> dict[str, float]:
    answered = summary.generations - summary.failed
    read = answered - summary.refused - summary.invalid
    return {"well_formed": read / answered if answered else float("nan")}


def _value(triple: TripleView, measure: str) -> float | None:
    score = triple.scores.get(measure)
    return None if score is None else round(score.value, 4)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _read(folder: str, name: str) -> str:
    return files("kgbias.report").joinpath(folder, name).read_text("utf-8")
