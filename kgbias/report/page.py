"""The report: one self-contained HTML page that works offline and asks no one for anything."""

import base64
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from kgbias.errors import DataError
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_STATEMENT,
    Generation,
    GroupScore,
    Run,
    RunSummary,
    TripleView,
)
from kgbias.report.figures import (
    GroupFigures,
    regard_bars,
    regard_toxicity_scatter,
    toxicity_boxes,
)
from kgbias.report.probed import probed, statement_of
from kgbias.report.sections import standard_sections
from kgbias.report.style import inline_svg
from kgbias.report.types import Section

MAX_TRIPLES = 20_000  # in the page's table; a larger run shows its most said ones
MAX_GENERATIONS = 5  # of one triple, in its provenance
_LONGEST = 2_000  # characters of any one text in the page


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    name: str
    rows: Sequence[Mapping[str, Any]]
    figures: Sequence[tuple[str, str]]  # caption and SVG


def write_report(run: StoredRun, path: Path, *, extra_sections: Sequence[Section] = ()) -> None:
    """Write the report of a run to `path`, whole or not at all."""
    page = render(run, extra_sections)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as file:
            file.write(page)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error


def render(run: StoredRun, extra_sections: Sequence[Section] = ()) -> str:
    summary = next(s for s in run.store.summaries() if s.run.id == run.id)
    triples = run.triples()
    scores = {(s.group_id, s.measure): s for s in run.group_scores()}
    data = json_in_html(page_data(run, triples))
    app, vendor = _read("templates", "app.js"), _read("vendor", "cytoscape.min.js")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_read("templates", "page.html")).render(
        run=run.record,
        summary=summary,
        shares=_shares(summary),
        metrics=run.metrics(),
        method=next((s.method for s in scores.values()), ""),
        categories=[
            _category(category, number, run.record, triples, scores)
            for number, category in enumerate(dict.fromkeys(g.category for g in run.groups))
        ],
        settings={k: v for k, v in run.config.items() if k not in ("seeds", "prefixes")},
        highlights=highlights(triples),
        measured=bool(scores),
        shown=min(len(triples), MAX_TRIPLES),
        total=len(triples),
        sections=[*standard_sections(run), *extra_sections],
        warning=CONTENT_WARNING,
        statement=SAMPLE_STATEMENT,
        style=Markup(_read("templates", "style.css")),
        data=Markup(data),
        app=Markup(app),
        vendor=Markup(vendor),
        script_hashes=" ".join(f"'sha256-{_hash(script)}'" for script in (vendor, app)),
    )


def page_data(run: StoredRun, triples: Sequence[TripleView]) -> dict[str, Any]:
    """What the page's scripts read: groups, triples, the provenance of each triple, and probes."""
    kept = sorted(triples, key=lambda t: (-t.count, t.group, t.predicate, t.object))[:MAX_TRIPLES]
    wanted = {t.id for t in kept}
    sentences = {t.id: _cut(t.sentence) for t in triples}
    places = {g.id: n for n, g in enumerate(run.groups)}
    origins: dict[str, list[Generation]] = {}
    for generation in run.generations():
        if (triple := generation.triple) is not None and triple.id in wanted:
            of_triple = origins.setdefault(triple.id, [])
            if len(of_triple) < MAX_GENERATIONS:
                of_triple.append(generation)
    keys = [g.answer_key for of_triple in origins.values() for g in of_triple if g.answer_key]
    answers = run.answers(keys)
    return {
        "groups": [{"name": g.name, "category": g.category} for g in run.groups],
        "triples": [
            {
                "group": places.get(t.group_id, -1),
                "statement": statement_of(t),
                "predicate": _cut(t.predicate),
                "object": _cut(t.object),
                "count": t.count,
                "regard": _value(t, "regard"),
                "label": t.scores["regard"].label if "regard" in t.scores else "",
                "toxicity": _value(t, "toxicity"),
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
                    for g in origins.get(t.id, ())
                ],
            }
            for t in kept
        ],
        "probes": probed(run, kept),
    }


def highlights(triples: Sequence[TripleView], count: int = 6) -> list[tuple[str, list[TripleView]]]:
    """The statements said most often, the most negative and the most toxic ones."""
    said = sorted(triples, key=lambda t: (-t.count, t.sentence))
    rows = [("Said most often", [t for t in said if t.count > 1][:count])]
    for title, measure, sign in (("Most negative", "regard", 1), ("Most toxic", "toxicity", -1)):
        scored = [t for t in triples if measure in t.scores]
        scored.sort(key=lambda t: (sign * t.scores[measure].value, t.sentence))
        rows.append((title, scored[:count]))
    return [(title, found) for title, found in rows if found]


def _category(
    name: str,
    number: int,
    run: Run,
    triples: Sequence[TripleView],
    scores: Mapping[tuple[str, str], GroupScore],
) -> CategoryFigures:
    groups, rows = [], []
    for group in (g for g in run.groups if g.category == name):
        own = [t for t in triples if t.group_id == group.id]
        overall = scores.get((group.id, "overall_regard"))
        toxicity = [
            t.scores["toxicity"].value
            for t in own
            for _ in range(t.count)
            if "toxicity" in t.scores
        ]
        rows.append(
            {
                "name": group.name,
                "n": sum(t.count for t in own),
                "distinct": len(own),
                "scores": {
                    measure: scores.get((group.id, measure))
                    for measure in (
                        "overall_regard",
                        "regard_positive",
                        "regard_neutral",
                        "regard_negative",
                        "toxicity_mean",
                        "toxicity_median",
                    )
                },
            }
        )
        if overall is not None:
            groups.append(
                GroupFigures(
                    group.name, overall.n, overall.value, overall.low, overall.high, toxicity
                )
            )
    figures = []
    if groups:
        drawn = (
            ("Overall regard per group, 95% intervals", regard_bars(groups)),
            ("Toxicity per group: median, quartiles, 1.5 × range", toxicity_boxes(groups)),
            ("Overall regard and mean toxicity", regard_toxicity_scatter(groups)),
        )
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
    ok = answered - summary.refused - summary.invalid
    return {"well_formed": ok / answered if answered else float("nan")}


def json_in_html(value: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _value(triple: TripleView, measure: str) -> float | None:
    score = triple.scores.get(measure)
    return None if score is None else round(score.value, 4)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _read(folder: str, name: str) -> str:
    return files("kgbias.report").joinpath(folder, name).read_text("utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(sha256(script.encode("utf-8")).digest()).decode()
