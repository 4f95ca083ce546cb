"""What the report shows of SoFa: the models that a run was probed with, ranked."""

from collections.abc import Iterator

from kgbias.compare.sofa import compare_stored_sofa
from kgbias.methods.sofa.exhibits import sofa_exhibits
from kgbias.report.parts import ReportPart, SectionOfExhibits
from kgbias.report.run_data import RunData
from kgbias.report.tables import Exhibit


def exhibits_of_run(data: RunData, place: str) -> Iterator[Exhibit]:
    """The models that the run was probed with, by SoFa; nothing if there were none."""
    if found := data.stored.sofa_results():
        yield from sofa_exhibits(compare_stored_sofa(data.stored.store, found), place)


REPORT_PART = ReportPart(
    of_run=exhibits_of_run,
    sections=(
        SectionOfExhibits(
            "sofa",
            "SoFa",
            "How much it matters to a model which group stands before a statement: the variance "
            "over groups of normalised perplexity (Marchiori Manerba et al. 2023). Models that "
            "were probed with the same groups and statements are listed by score, highest first, "
            "each rank with its interval; whether two of them differ is tested.",
            ("sofa-",),
            after="in-stories",
        ),
    ),
)
