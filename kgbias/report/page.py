"""The report: one self-contained HTML page that works offline and asks no one for anything."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from kgbias.files import write_text
from kgbias.graph.selection import Selection
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_STATEMENT,
    Generation,
    RunSummary,
    TripleView,
)
from kgbias.measure.attribution import telling
from kgbias.measures import MEASURES, Figure, Measure, columns
from kgbias.progress import Progress
from kgbias.report.ask import ask_section
from kgbias.report.evidence import evidence_data, evidence_section
from kgbias.report.figures import regard_bars, regard_toxicity_scatter, toxicity_boxes
from kgbias.report.probed import probed, statement_of
from kgbias.report.run_data import RunData
from kgbias.report.sections import standard_sections
from kgbias.report.style import inline_svg
from kgbias.report.types import Section
from kgbias.text import json_in_html

MAX_TRIPLES = 20_000  # in the page's table; of a larger run, the most frequent ones
MAX_GENERATIONS = 5  # of one triple, in its provenance
_LONGEST = 2_000  # characters of any one text in the page


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """The first section's part on one category: a row a group, and figures as (caption, SVG)."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    figures: Sequence[tuple[str, str]]


def write_report(
    run: StoredRun,
    path: Path,
    *,
    extra_sections: Sequence[Section] = (),
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the report of a run to `path`, whole or not at all. `selection` says which statements
    count; `progress` is told what was left out. Raises DataError where it cannot be written."""
    data = RunData(run, selection=selection, progress=progress)
    if progress is not None and data.counted.note:
        progress.note(data.counted.note)
    write_text(path, render(data, extra_sections))


def render(data: RunData, extra_sections: Sequence[Section] = ()) -> str:
    """The page as text."""
    run, summary, triples = data.run, data.summary, data.triples
    app, vendor = _read("templates", "app.js"), _read("vendor", "cytoscape.min.js")
    ask = _read("templates", "ask.js")
    quadrants = _read("templates", "evidence.js")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_read("templates", "page.html")).render(
        run=run,
        summary=summary,
        shares=_shares(summary),
        arms=data.arms,
        several=data.counted.several,
        metrics=data.metrics,
        method=next((s.method for s in data.scores), ""),
        figures=overview(data),
        measures=columns(data.metrics),
        categories=[
            _category(data, category, number) for number, category in enumerate(data.categories)
        ],
        settings={k: v for k, v in run.config.items() if k not in ("seeds", "prefixes")},
        highlights=highlights(triples),
        measured=bool(data.scores),
        shown=min(len(triples), MAX_TRIPLES),
        total=len(triples),
        distinct=len({t.id for t in triples}),
        sections=[ask_section(data), *standard_sections(data), *extra_sections],
        warning=CONTENT_WARNING,
        statement=SAMPLE_STATEMENT,
        style=Markup(_read("templates", "style.css")),
        data=Markup(json_in_html(page_data(data))),
        app=Markup(app),
        ask=Markup(ask),
        quadrants=Markup(quadrants),
        first=evidence_section(data),
        vendor=Markup(vendor),
        script_hashes=" ".join(
            f"'sha256-{_hash(script)}'" for script in (vendor, app, quadrants, ask)
        ),
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


def overview(data: RunData) -> list[Figure]:
    """The figures that the first table of groups has columns for: of the measures that every table
    has, and of those that the run has."""
    return [f for m in columns(data.metrics) for f in m.figures if f.overview]


def highlights(triples: Sequence[TripleView], count: int = 6) -> list[tuple[str, list[TripleView]]]:
    """The most frequent statements, and the most hurtful ones by each measure that lists them."""
    said = sorted(triples, key=lambda t: (-t.count, t.sentence))
    rows = [("Said most often", [t for t in said if t.count > 1][:count])]
    for measure in MEASURES.values():
        if measure.highlight:
            distinct = {t.id: t for t in triples}.values()
            rows.append((measure.highlight, telling(list(distinct), measure.name, count)))
    return [(title, found) for title, found in rows if found]


def _category(data: RunData, name: str, number: int) -> CategoryFigures:
    rows = []
    for group in data.groups(name):
        for arm in data.arms:
            own = arm.by_group.get(group.id, [])
            rows.append(
                {
                    "name": group.name,
                    "arm": arm.name,
                    "n": sum(t.count for t in own),
                    "distinct": len(own),
                    "scores": {f.name: arm.scores.get((group.id, f.name)) for f in overview(data)},
                }
            )
    drawn: list[tuple[str, Any]] = []
    for arm in data.arms:
        if groups := arm.figures_of(name):
            end = f", arm {arm.label}" if arm.label else ""
            if out := sum(arm.counted.left_out.values()):
                end += f"; {out} of {arm.counted.total} statements left out"
            drawn += [
                (f"Overall regard per group, 95% intervals{end}", regard_bars(groups)),
                (
                    f"Toxicity per group: median, quartiles, 1.5 × range{end}",
                    toxicity_boxes(groups),
                ),
                (f"Overall regard and mean toxicity{end}", regard_toxicity_scatter(groups)),
            ]
    figures = [
        (
            caption,
            Markup(
                inline_svg(
                    figure,
                    f"f{number}{place}",
                    f"{caption}, {name}",
                    "The numbers are in the table below the figures.",
                )
            ),
        )
        for place, (caption, figure) in enumerate(drawn)
    ]
    return CategoryFigures(name, rows, figures)


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


def _hash(script: str) -> str:
    return base64.b64encode(sha256(script.encode("utf-8")).digest()).decode()
