"""What the first screen of a report says: findings, of several kinds (`kgbias.report.findings`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the first screen.

    Attributes:
        topic: what it is about.
        said: the sentence, its figures with their intervals, as HTML.
        tested: how it was tested, among how many, and how the p-value was corrected.
        basis: what it rests on.
        links: where to look, as (text, address).
        category: the category of groups that it is about, if it is about one.
        p_value: its corrected p-value, by which findings are ordered.
        size: breaks ties in p: its size over the width of its interval or, of what is said more,
            its log-odds with an informative prior.
    """

    topic: str
    said: Markup
    tested: str
    basis: str = ""
    links: Sequence[tuple[str, str]] = ()
    p_value: float = math.nan
    size: float = 0.0
    category: str = ""

    @property
    def order(self) -> tuple[float, float]:
        return self.p_value, -self.size


@dataclass(frozen=True, slots=True)
class FindingKind:
    """All findings of one kind.

    Attributes:
        p_value: the p-value of there being nothing at all of this kind.
        findings: what was shown, each after its own correction, strongest first.
        nothing: what was not shown, as part of a sentence, if the kind is not shown.
        rest_not_shown: the same if it is.
        remark: a sentence about all of its findings.
        examined: in what a difference between groups was looked for, as part of a sentence; "" for
            a kind that compares no groups.
    """

    p_value: float
    findings: Sequence[Finding]
    nothing: str
    rest_not_shown: str = ""
    remark: str = ""
    examined: str = ""
