"""Labels that raters give to statements: what they say a measure should have found.

A label is an edge from a rater to a statement, of one measure. Labels are never changed or
removed: the latest of a rater for a statement and a measure is in effect. Like a score, a label
belongs to the statement and not to a run, so every run that said the statement has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from kgbias.graph.node_records import NodeRecord, declare_node
from kgbias.graph.record import build_record
from kgbias.graph.types import storable
from kgbias.ids import content_id

RaterKind = Literal["person", "model"]
RATER_KINDS: tuple[RaterKind, ...] = get_args(RaterKind)
SKIPPED_LABEL = ""
"""In the place of a label: the rater saw the statement and gave none."""
RETRACTED_LABEL = "undo"
"""In the place of a label: the statement counts as not seen by the rater."""


@declare_node(
    NodeRecord("Rater", "who labels statements", "name", table="rater", checked=("name", "kind"))
)
@dataclass(frozen=True, slots=True)
class Rater:
    """Someone who labels, or a model that did."""

    name: Annotated[str, "as the rater is called"]
    kind: Annotated[RaterKind, "person or model"]

    @property
    def id(self) -> str:
        return content_id("rater", self.kind, storable(self.name))


@dataclass(frozen=True, slots=True)
class Label:
    """What one rater says of one statement.

    Attributes:
        label: one of the measure's labels; SKIPPED_LABEL ("") if the rater gave none,
            RETRACTED_LABEL ("undo") if the earlier label no longer counts.
        labelled: when, in ISO 8601, UTC.
        sample: the random sample that the statement was drawn in, as
            `kgbias.measure.sampling.LabelSample.id`; "" if it was not drawn at random.
        note: what the rater wrote; for a skipped statement, the reason.
    """

    triple_id: str
    measure: Annotated[str, "the measure that was judged"]
    label: Annotated[str, "one of the measure's labels; empty if skipped, undo if taken back"]
    rater: str
    kind: RaterKind
    guide: Annotated[str, "the guide that the rater had, as NAME@VERSION; empty if not known"]
    labelled: Annotated[str, "when, UTC; a rater's latest of a statement and measure is in effect"]
    masked: Annotated[bool, "whether the group's name was hidden"]
    sample: Annotated[str, "id of the random sample; empty if not drawn at random"]
    note: Annotated[str, "what the rater wrote; if skipped, why"] = ""

    @property
    def by(self) -> Rater:
        return Rater(self.rater, self.kind)

    @property
    def uid(self) -> Annotated[str, "id, computed from its content"]:
        return label_id(
            self.triple_id,
            self.by.id,
            self.measure,
            self.label,
            self.guide,
            self.labelled,
            self.masked,
            self.sample,
            self.note,
        )


LABEL_CONTENT = ("measure", "label", "guide", "labelled", "masked", "sample", "note")
"""The properties that a label's id is computed from, beside its two ends."""


def label_id(triple_id: str, rater_id: str, *content: str | bool) -> str:
    """The id of a label with this `LABEL_CONTENT`."""
    measure, label, guide, labelled, masked, sample, note = content
    parts = (measure, label, guide, labelled, "masked" if masked else "", sample, note)
    return content_id("label", triple_id, rater_id, *(storable(str(part)) for part in parts))


def describe_raters(kind: RaterKind, raters: Sequence[str]) -> str:
    """Who labelled, in words: people are counted, models are named. Without names, one annotator
    of that kind is meant if it is a model."""
    if kind == "model":
        names = " and ".join(f"the model {name}" for name in raters)
        return names or "one annotator, a language model"
    if not raters:
        return "people who are not named"
    return "one person" if len(raters) == 1 else f"{len(raters)} people"


def labels_in_effect(labels: Iterable[Label]) -> list[Label]:
    """The latest label of each rater for each statement and measure, oldest first, without those
    taken back. Skips are among them."""
    latest: dict[tuple[str, str, Rater], Label] = {}
    for label in sorted(labels, key=_label_age):
        latest[label.triple_id, label.measure, label.by] = label
    return sorted((x for x in latest.values() if x.label != RETRACTED_LABEL), key=_label_age)


def read_label(row: Mapping[str, Any]) -> Label:
    """The label with these properties, whose row has the rater's name as `rater`, and `kind`."""
    return build_record(Label, row)


def _label_age(label: Label) -> tuple[str, str]:
    return label.labelled, label.uid
