"""The exhibit of said against believed: how often each statement was said of a group, and how much
likelier a model finds it of that group than of the others."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kgbias.evidence.names import FEWEST
from kgbias.graph.types import BelievedEdge
from kgbias.io.text import number
from kgbias.probe.belief import BELIEVED
from kgbias.probe.result import Statement
from kgbias.report.run_data import ArmData, Exhibit
from kgbias.report.style import COLUMN, INK, LINE, NEUTRAL, POSITIVE, figure_style, subplots
from kgbias.report.tables import Table, cells
from kgbias.stats.inference import Estimate, Values, bootstrap_clusters

_LANE = 0.36  # half of the height that points of one count spread over, for none to hide another


@dataclass(frozen=True, slots=True)
class Pair:
    """A group and a statement that the model was asked about, and how often it was said."""

    group: str
    predicate: str
    object: str
    said: int
    edge: BelievedEdge

    @property
    def believed(self) -> bool:
        return self.edge.verdict == BELIEVED


def said_believed(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibit of a category; none where nothing was probed by names."""
    found = pairs(data, category)
    if data.whole.beliefs is None or not found:
        return
    model = data.whole.beliefs[0].model.name
    shown = sorted(
        (p for p in found if p.said or p.believed),
        key=lambda p: (-p.said, -p.edge.lift, p.group, p.predicate, p.object),
    )
    key = f"{place}-said-believed"
    yield Exhibit(
        key, category, f"Said, and believed by {model}", "", partial(scatter, found),
        Table(
            key, f"How often statements about {category} were said, and their lifts.",
            ("Group", "statement", "said", "lift", "95% interval", "verdict"),
            [
                [
                    p.group, f"{p.predicate} {p.object}", str(p.said),
                    *cells(Estimate(p.edge.lift, p.edge.low, p.edge.high, p.edge.names), "+.2f"),
                    p.edge.verdict,
                ]
                for p in shown
            ],
            f"Lifts in bits, with 95% intervals over names. {_note(found, len(shown))}",
        ),
        tabled=False,
    )  # fmt: skip


def pairs(data: ArmData, category: str) -> list[Pair]:
    """All pairs of a group and a statement that the model was asked about, of groups that
    something can be said of."""
    if data.whole.beliefs is None:
        return []
    believing, edges = data.whole.beliefs
    groups = {g.id: g.name for g in data.groups(category)}
    given = [Statement(*words) for words in believing.record.get("given", {}).values()]
    stated = [Statement(t.predicate, t.object) for t in data.whole.triples]
    texts = {s.key: s for s in (*given, *stated)}
    said: Counter[tuple[str, str]] = Counter()
    for t in data.triples:
        said[t.group_id, Statement(t.predicate, t.object).words] += t.count
    return [
        Pair(
            groups[e.group_id], texts[key].predicate, texts[key].object,
            said[e.group_id, texts[key].words], e,
        )
        for e in edges
        if e.group_id in groups
        and e.names >= FEWEST
        and (key := (e.predicate_id, e.object_id)) in texts
    ]  # fmt: skip


def difference(found: Sequence[Pair]) -> Estimate:
    """By how many bits the mean lift of what was said of a group is above that of what was said of
    others alone, with its interval over statements, those of one predicate drawn together."""
    lifts = np.array([p.edge.lift for p in found])
    said = np.array([p.said > 0 for p in found], dtype=np.float64)

    def above(weights: Values) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            own, rest = ((weights * part) @ lifts / (weights @ part) for part in (said, 1.0 - said))
        return np.asarray(own - rest)

    return bootstrap_clusters([p.edge.predicate_id for p in found], above)


def _note(found: Sequence[Pair], shown: int) -> str:
    left = len(found) - shown
    text = (
        f"The figure has {left:,} more pairs of a group and a statement, which were said of other "
        "groups alone and are not believed of this one."
    )
    apart = difference(found)
    if apart.has_interval:
        text += (
            " The mean lift of what was said of a group is "
            f"{number(apart.value, '+.2f')} bits [{apart.interval('+.2f').replace(' to ', ', ')}] "
            "above that of what was said of others alone (resampled over statements, those of one "
            "predicate together)."
        )
    return text


def scatter(found: Sequence[Pair]) -> Any:
    """Lifts in bits, to the right, and how often each pair was said, upwards; filled what is
    believed."""
    counts = np.array([p.said for p in found])
    lifts = np.array([p.edge.lift for p in found])
    believed = np.array([p.believed for p in found], dtype=bool)
    # A place that follows from the number, and leaves no gaps (the golden ratio).
    apart = (np.arange(len(found)) * 0.6180339887 % 1.0 - 0.5) * 2 * _LANE
    lanes = np.where(counts > 0, np.log2(np.maximum(counts, 1)) + 1, 0.0)
    with figure_style():
        figure, axes = subplots(figsize=(COLUMN, 0.9 + 0.42 * (2 + float(lanes.max()))))
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.axhline(0.5, color=LINE, linewidth=0.6)
        for own, colour, face, size in (
            (~believed, NEUTRAL, "none", 5), (believed, POSITIVE, POSITIVE, 9)
        ):  # fmt: skip
            axes.scatter(
                lifts[own], (lanes + apart)[own], s=size, facecolor=face, edgecolor=colour,
                linewidth=0.5, zorder=3 if colour == POSITIVE else 2,
            )  # fmt: skip
        ticks = range(int(lanes.max()) + 1)
        axes.set_yticks(ticks, ["never", *(f"{2**n}×" for n in ticks[:-1])])
        axes.set_ylabel("said of the group")
        axes.set_xlabel("lift (bits); filled: believed")
        return figure
