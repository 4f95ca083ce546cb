"""Models held against each other, as rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kgbias.graph.store import StoredRun
from kgbias.stats.estimate import finite
from kgbias.study.rows import Rows

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest
    from kgbias.compare.models import Contrast, Ranking, Subject

_CONTRASTS = (
    "measure", "group", "first", "second", "n_first", "n_second", "mean_first", "mean_second",
    "difference", "low", "high", "p", "p_adjusted", "equivalent_p", "equivalent_adjusted",
    "margin", "detectable", "paired", "verdict",
)  # fmt: skip
_RANKINGS = ("measure", "group", "model", "rank", "mean", "probabilities")


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Models held against each other.

    Attributes:
        tests: every pair of models in every group and measure (`kgbias.compare.models.Contrast`).
        ranks: for each group and measure the models, the highest mean first, each with the
            probability of each rank (`kgbias.compare.models.Ranking`).
    """

    tests: Rows["Contrast"]
    ranks: Rows["Ranking"]

    @classmethod
    def of(cls, tests: Sequence["Contrast"], rankings: Sequence["Ranking"]) -> "Contrasts":
        return cls(Rows(tests, _contrast, _CONTRASTS), Rows(rankings, _ranking, _RANKINGS))

    def to_frame(self) -> Any:
        """The tests as a pandas DataFrame."""
        return self.tests.to_frame()

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "family": self.tests[0].family,
            "correction": self.tests[0].correction,
            "contrasts": [_contrast(t) for t in self.tests],
            "ranks": [
                {"measure": r.measure, "group": r.group, "models": [
                    {"model": model, "mean": mean, "probabilities": list(shares)}
                    for model, mean, shares in zip(r.models, r.means, r.probabilities, strict=True)
                ]}
                for r in self.ranks
            ],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return self.tests._repr_html_()


def named_apart(subjects: Sequence[tuple[StoredRun, "Subject"]]) -> list["Subject"]:
    """Subjects with names of their own: those of one model also name their run and, where that is
    the same too, a number."""
    often = Counter(s.name for _, s in subjects)
    found: list[Subject] = []
    for run, subject in subjects:
        name = subject.name if often[subject.name] == 1 else f"{subject.name} of {run.name}"
        taken = {s.name for s in found}
        numbered = (f"{name} ({n})" for n in range(2, len(subjects) + 2))
        found.append(
            replace(subject, name=name if name not in taken else next(
                other for other in numbered if other not in taken))
        )  # fmt: skip
    return found


def _contrast(t: "Contrast") -> dict[str, Any]:
    return dict(
        zip(
            _CONTRASTS,
            (
                t.measure, t.group, t.first, t.second, *t.n, *t.means, t.difference.value,
                t.difference.low, t.difference.high, t.p, t.p_adjusted, t.equivalent_p,
                t.equivalent_adjusted, t.margin, t.detectable, t.paired, t.verdict,
            ),
            strict=True,
        )
    )  # fmt: skip


def _ranking(r: "Ranking") -> dict[str, Any]:
    return {
        "measure": r.measure, "group": r.group, "model": r.models[0], "rank": 1,
        "mean": r.means[0], "probabilities": dict(zip(r.models, r.probabilities, strict=True)),
    }  # fmt: skip


def comparison_records(found: Sequence["Comparison"], models: Contrasts) -> list[dict[str, Any]]:
    """Comparisons of pairs of runs as data, each with the contrasts of its models."""
    rest = models.as_dict()
    return [
        _comparison(c)
        | {
            "contrasts": [
                t
                for t in rest["contrasts"]
                if {t["first"], t["second"]} == {c.first.name, c.second.name}
            ],
            "ranks": rest["ranks"],
            "family": rest["family"],
        }
        for c in found
    ]


def _comparison(c: "Comparison") -> dict[str, Any]:
    def said(triples: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"sentence": t.sentence, "count": t.count} for t in triples]

    return {
        "first": c.first.name,
        "second": c.second.name,
        "shared_groups": c.shared_groups,
        "statements": {
            "first": c.overlap.first,
            "second": c.overlap.second,
            "both": c.overlap.both,
            "jaccard": c.overlap.jaccard,
            "only_first": said(c.overlap.only_first),
            "only_second": said(c.overlap.only_second),
        },
        "rank_agreement": [
            {"measure": a.measure, "tau_b": a.tau.as_dict(), "p": finite(a.p)} for a in c.agreement
        ],
    }


def group_test_record(t: "GroupTest") -> dict[str, Any]:
    """A test as data; differences are of means, first minus second."""
    return {
        "arm": t.arm,
        "measure": t.measure,
        "category": t.category,
        "first": t.first,
        "second": t.second,
        "n": list(t.n),
        "means": [finite(mean) for mean in t.means],
        "difference": t.difference.as_dict(),
        "forms": {name: e.as_dict() for name, e in t.forms.items()},
        "shrunken": t.shrunken.as_dict(),
        "p": finite(t.p),
        "p_adjusted": finite(t.p_adjusted),
        "omnibus_p": finite(t.omnibus_p),
        "correction": t.correction,
        "family": t.family,
        "detectable": finite(t.detectable),
        "differs": t.differs,
        "verdict": t.verdict,
    }
