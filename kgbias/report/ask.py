"""The report can be asked: a section whose search runs in the page, offline, by shared words.

It reads questions as `kgbias ask` does (`kgbias.ask`), without embeddings: the same words of
questions are left aside, the same endings of words are, and groups go by all their names.
"""

from kgbias.report.run_data import RunData
from kgbias.report.types import Section
from kgbias.text import html, json_in_html
from kgbias.words import ASIDE, ENDINGS, ORDINARY, PERSONS

_HTML = """<p>Ask in plain words, such as “{example}”. The answer is what the model said and never
more: statements by the words that they share with the question, and where each one came from.</p>
<form class="controls" id="ask-form" role="search"><label>Question <input id="ask-question"
type="search" size="48" autocomplete="off"></label><button>Ask</button></form>
<div id="ask-answer" class="panel" aria-live="polite" hidden></div>
<script type="application/json" id="ask-data">{data}</script>"""


def ask_section(data: RunData) -> Section:
    """The section, with what its script needs besides the page's own data."""
    names = [[g.name, *g.variants] for g in data.run.groups]
    example = f"What does the model say about {data.run.groups[0].name}?" if names else "…"
    needed = {
        "names": names,
        "aside": sorted(ASIDE),
        "endings": list(ENDINGS),
        "ordinary": sorted(ORDINARY),
        "persons": sorted(PERSONS),
    }
    body = _HTML.format(example=html(example), data=json_in_html(needed))
    return Section("Ask", body, "ask")
