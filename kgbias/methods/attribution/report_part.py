"""What the report shows of attribution: the words of statements by their effects, and maps of where
in a statement a score lies."""

from collections.abc import Sequence
from typing import Any

from kgbias.graph.types import WordAttribution
from kgbias.io import pages
from kgbias.methods.attribution.word_effects import latest_attributions
from kgbias.methods.attribution.word_maps import word_maps
from kgbias.report.parts import ReportPart, SectionOfExhibits
from kgbias.report.run_data import RunData
from kgbias.report.style import Section

_MAX_ATTRIBUTIONS = 40

_METHODS = {
    "occlusion": "The score of the whole sentence minus the score without the word.",
    "integrated": "Integrated gradients: the mean gradient of the score on the way from a blank "
    "sentence to this one; the effects add up to what the words change.",
    "cam": "Class activation maps: what the word's last state in the network says, in log-odds.",
}
_ATTRIBUTION_TEMPLATE = """\
<p>The effect of each word on its sentence's score. Blue words raise the score,
orange words lower it; the strongest is the darkest.</p>
{% for (measure, method), rows in found %}<h3>{{ measure }}, by {{ method }}</h3>
<p>{{ methods[method] }}</p><ol class="tokens">
{% for row in rows %}<li>{% for word, effect, weight in row.words %}
<span class="{{ 'up' if effect > 0 else 'down' }}" style="--weight: {{ weight }}%"
 title="{{ '%+.3f' | format(effect) }}">{{ word }}</span>{% endfor %}
<small>{{ row.score }}</small></li>{% endfor %}</ol>{% endfor %}"""


def words_section(data: RunData) -> Section | None:
    """The strongest word effects by measure and method; None if there are none."""
    attributions = data.attributions
    if not attributions:
        return None
    return Section("Words behind the scores", _render_attributions(data, attributions), "words")


def _render_attributions(data: RunData, found: Sequence[WordAttribution]) -> str:
    by_method: dict[tuple[str, str], list[dict[str, Any]]] = {}
    triple_ids = {t.id for t in data.triples}
    attributions = sorted(
        latest_attributions(found),
        key=lambda attribution: (-abs(attribution.score), attribution.triple_id),
    )
    for attribution in attributions:
        method = attribution.method.partition("@")[0]
        rows = by_method.setdefault((attribution.metric.measure, method), [])
        if attribution.triple_id not in triple_ids or len(rows) >= _MAX_ATTRIBUTIONS:
            continue
        largest = max((abs(e) for e in attribution.effects), default=0) or 1.0
        words = [
            (token[:60], effect, round(70 * abs(effect) / largest))
            for token, effect in zip(attribution.tokens, attribution.effects, strict=True)
        ]
        rows.append({"words": words[:60], "score": f"{attribution.score:+z.3f}"})
    return pages.fill_template(
        _ATTRIBUTION_TEMPLATE, found=sorted(by_method.items()), methods=_METHODS
    )


REPORT_PART = ReportPart(
    of_run=word_maps,
    sections=(
        SectionOfExhibits(
            "word-maps",
            "Where in a statement a score lies",
            "The mean effect of each part of a statement on its score, over all statements of a "
            "label, of a group, and of each cell of the confusion of two scorers, as far as they "
            "were attributed. Blue parts raise the score, orange parts lower it. A mean hides what "
            "cancels, and groups are not tested here. Effects by cam do not add up to the score: "
            "read them only against each other.",
            ("word-map",),
            after="scorers",
        ),
    ),
    make_section=words_section,
)
