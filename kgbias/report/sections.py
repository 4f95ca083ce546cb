"""The report's sections on topics, stereotype content, augmentations, tests, probes, associations
and attribution: each where the run has it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from kgbias import pages
from kgbias.measure.attribution import latest
from kgbias.report import cards
from kgbias.report.exhibits import exhibits
from kgbias.report.run_data import Exhibit, RunData
from kgbias.report.types import Section

TOPICS_SHOWN = 4  # of one category, those in which the groups differ most; `kgbias figures` has all
_ATTRIBUTIONS_SHOWN = 40

# anchor -> title, what it says, and the exhibits that belong there
_SECTIONS = {
    "beliefs": (
        "What it believes",
        "Statements that the model's probabilities tie to a group: likelier after the group's "
        "names, taken together, than after those of the other groups, with any one of the names "
        "left out too. What is found of names that mean nothing is the floor.",
        ("belief", "believed-", "said-believed"),
    ),
    "figures": (
        "Regard and toxicity",
        "Each bar is a group, with its 95% interval; select one for its statements. Many prompts "
        "give the predicate (such as hate), so the first figures are of statements whose predicate "
        "the model chose. How far a group is from 0 is as much the prompts' doing as the model's: "
        "hold groups against each other, by the tests below.",
        ("chosen-", "forms", "regard", "toxicity", "polarity", "groups"),
    ),
    "topics": (
        "Topics",
        "Topics are found in predicates and objects alone (BERTopic). Relative entropy says how "
        "far a group's topics are from those of the average group of its category: 0 is like the "
        "average. Intervals take the topics as given.",
        ("topics", "entropy", "topic-"),
    ),
    "stereotype-content": (
        "Warmth and competence",
        "Where each group's statements lie on the two axes of the Stereotype Content Model, "
        "according to sentence embeddings: -1 and 1 are the means of the seed words at both ends.",
        ("stereotype-content",),
    ),
    "augmentations": (
        "Augmentations",
        "What the same crawl yields when the prompts invite offensive statements (Salinas et al. "
        "2023, section 6.1). Each arm is counted for itself.",
        ("arms",),
    ),
    "measures": (
        "Other measures",
        "The mean of each further measure over the statements of a group, each as often as it was "
        "said.",
        ("mean-",),
    ),
    "scorers": (
        "Do the scorers agree?",
        "Where statements were judged by several scorers of one measure: how far their judgements "
        "agree, and which groups stand in another place by their bare means, which is no test. A "
        "finding that rests on one scorer is the scorer's.",
        ("scorers",),
    ),
    "tests": (
        "Differences between groups",
        "All groups of a category are tested together first (p of all), then each against all "
        "others. A difference is shown where both p are at most 0.05 and its interval leaves out "
        "0; a figure by itself shows none.",
        ("group-tests", "echoed"),
    ),
    "variance": (
        "How much is the wording?",
        "Where the variance of each measure lies. What a wording moves all groups by changes no "
        "comparison of groups; what it moves one group by beyond that does.",
        ("variance",),
    ),
    "profiles": (
        "Profiles",
        "Whether the groups that given names stand for can be told apart by the profiles that were "
        "written of them, by which attributes and by which words (Siddique et al. 2024). A name "
        "says nothing of the person who bears it.",
        ("profile-",),
    ),
    "probes": (
        "Said, and probable?",
        "Before how many statements each group has the lowest perplexity of its category, and "
        "where a group stands among the others before what was said of it. Each group is probed by "
        "one name: what is of the name and what of the group cannot be told apart here, and "
        "nothing is tested of a single statement. Beliefs take several names.",
        ("probes",),
    ),
    "choices": (
        "Made to choose",
        "Which group a model takes a statement to be about when it has to choose among groups. "
        "Another kind of evidence than a probability: no verdict rests on it.",
        ("choices",),
    ),
    "sofa": (
        "SoFa",
        "How much it matters to a model which group stands before a statement: the variance over "
        "groups of normalised perplexity (Marchiori Manerba et al. 2023). Models that were probed "
        "with the same groups and statements stand in the order of their scores, the highest "
        "first, each place with its interval; whether two of them differ is tested.",
        ("sofa-",),
    ),
    "associations": (
        "Association tests",
        "How much nearer the vectors of one group's words are to one set of words than to another, "
        "as an effect size with its interval. One that is near 0 does not show that there is none.",
        ("sc-weat", "association-tests"),
    ),
}

_METHODS = {
    "occlusion": "The score of the whole sentence minus the score without the word.",
    "integrated": "Integrated gradients: the mean gradient of the score on the way from a blank "
    "sentence to this one; the effects add up to what the words change.",
    "gradient": "Gradient times input, a first-order estimate in log-odds.",
    "cam": "Class activation maps: what the word's last state in the network says, in log-odds.",
}
_ATTRIBUTION = """<p>The effect of each word on its sentence's score. Blue words raise the score,
orange words lower it; the strongest is the darkest.</p>
{% for (measure, method), rows in found %}<h3>{{ measure }}, by {{ method }}</h3>
<p>{{ methods[method] }}</p><ol class="tokens">
{% for row in rows %}<li>{% for word, effect, weight in row.words %}
<span class="{{ 'up' if effect > 0 else 'down' }}" style="--weight: {{ weight }}%"
 title="{{ '%+.3f' | format(effect) }}">{{ word }}</span>{% endfor %}
<small>{{ row.score }}</small></li>{% endfor %}</ol>{% endfor %}"""


def standard_sections(data: RunData, found: Sequence[Exhibit] | None = None) -> list[Section]:
    """The sections of a report, each where the run has something for it. `found` are the run's
    exhibits, where they were made before."""
    if found is None:
        found = list(exhibits(data))
    sections = [
        Section(title, Markup("<p>{}</p>{}").format(about, cards.render(groups)), anchor)
        for anchor, (title, about, kinds) in _SECTIONS.items()
        if (groups := list(_groups(data, found, kinds)))
    ]
    if data.attributions:
        sections.append(Section("Words behind the scores", _attribution(data), "words"))
    return sections


def _groups(
    data: RunData, found: Sequence[Exhibit], kinds: tuple[str, ...]
) -> Iterator[cards.Group]:
    for category in (*data.categories, ""):  # "" is what belongs to the whole run
        telling = _telling(data, category)
        own = [
            e
            for e in found
            if e.category == category
            and (kind := e.key.partition("-")[2]).startswith(kinds)
            and not (kind.startswith("topic-") and int(kind.partition("-")[2]) not in telling)
        ]
        if own:
            figures = [e for e in own if e.draw is not None]
            yield cards.group(category, figures, [e.table for e in own if e.tabled])


def _telling(data: RunData, category: str) -> set[int]:
    """The topics whose shares differ most between groups (by their standard deviation)."""
    shares = [s for arm in data.arms for s in arm.shares(category)]
    if not shares:
        return set()
    rows = np.array([s.counts / max(1, s.n) for s in shares])
    return {int(n) for n in np.argsort(-rows.std(axis=0), kind="stable")[:TOPICS_SHOWN]}


def _attribution(data: RunData) -> str:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    known = {t.id for t in data.triples}
    worst = sorted(latest(data.attributions), key=lambda a: (-abs(a.score), a.triple_id))
    for a in worst:
        method = a.method.partition("@")[0]
        rows = found.setdefault((a.metric.measure, method), [])
        if a.triple_id not in known or len(rows) >= _ATTRIBUTIONS_SHOWN:
            continue
        largest = max((abs(e) for e in a.effects), default=0) or 1.0
        words = [
            (token[:60], effect, round(70 * abs(effect) / largest))
            for token, effect in zip(a.tokens, a.effects, strict=True)
        ]
        rows.append({"words": words[:60], "score": f"{a.score:+z.3f}"})
    return (
        pages.environment()
        .from_string(_ATTRIBUTION)
        .render(found=sorted(found.items()), methods=_METHODS)
    )
