"""The exhibit of two scorers of one measure: how far they agree on a run's statements."""

from collections.abc import Iterator

from kgbias.measure.agreement import Agreement
from kgbias.report.run_data import Exhibit, RunData
from kgbias.report.tables import Table, cells


def scorer_agreement(data: RunData, place: str) -> Iterator[Exhibit]:
    """A row for every two scorers of a measure that judged the run's statements."""
    if not data.agreements:
        return
    rows = [
        [
            a.measure, a.first, a.second, str(a.n), f"{a.same.value:.0%}", *cells(a.kappa, ".2f"),
            *cells(a.rho, ".2f"), moved(a) or "none",
        ]
        for a in data.agreements
    ]  # fmt: skip
    key = f"{place}-scorers"
    yield Exhibit(
        key, "", "Agreement of scorers", "", None,
        Table(
            key, "Scorers of the same measure on the statements that both judged.",
            ("Measure", "counts", "other", "n", "same label", "kappa", "95% interval", "rho",
             "95% interval", "groups in another place"), rows,
            "The figures of this report are by the scorer that counts. Kappa: Cohen's, of labels, "
            "0 is chance. Rho: Spearman's, of values. Places are by the bare means in a category, "
            "1 the most hurtful; whether these differ is not tested here.",
        ),
    )  # fmt: skip


def moved(agreement: Agreement) -> str:
    """The groups that change rank, in words: "Men 1 to 2, Women 2 to 1"."""
    return ", ".join(f"{m.group} {m.first:g} to {m.second:g}" for m in agreement.moved)
