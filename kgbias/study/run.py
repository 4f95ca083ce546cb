"""A run of a study, and all that can be done with it."""

from kgbias.export import FORMATS
from kgbias.io.plugins import Plugin
from kgbias.measures import MEASURES
from kgbias.models.kinds import ModelKind, kinds_of_models
from kgbias.models.spec import KINDS
from kgbias.packs import packs
from kgbias.study.asking import Asking
from kgbias.study.attributing import Attributing
from kgbias.study.choosing import Choosing
from kgbias.study.costing import Costing
from kgbias.study.evidence import Evidencing
from kgbias.study.exploring import Exploring
from kgbias.study.exporting import Exporting
from kgbias.study.judging import JudgingRuns
from kgbias.study.measuring import Measuring
from kgbias.study.probing import Probing
from kgbias.study.profiling import Profiling
from kgbias.study.publishing import Publishing
from kgbias.study.review import Review
from kgbias.study.rows import Rows


def model_kinds() -> Rows[ModelKind]:
    """The kinds of models and what each allows: writing text (`crawl`), answers in a schema, seeds,
    log-probabilities, probes, association tests, batches. Frame columns: those of a `ModelKind`."""
    return Rows(kinds_of_models(), columns=tuple(ModelKind.__dataclass_fields__))


def plugins() -> Rows[Plugin]:
    """What installed packages add to kgbias: measures, kinds of models, export formats, prompt
    packs (docs/how-to/extend.md), each with what is wrong with it, if anything. Imports all of
    them. Frame columns: adds, name, package, problem."""
    tables = (MEASURES, KINDS, FORMATS, packs())
    found = [plugin for table in tables for plugin in table.plugins()]
    return Rows(found, columns=tuple(Plugin.__dataclass_fields__))


class Run(
    Measuring,
    Attributing,
    Probing,
    Choosing,
    Profiling,
    Evidencing,
    Asking,
    JudgingRuns,
    Exporting,
    Exploring,
    Publishing,
    Costing,
):
    """A crawl or an import in a study's store.

    Made by the methods of `Study`. Methods that compute something write their results to the store
    and return them; methods that only read (`triples`, `groups`, `figure` ...) read the store each
    time. All of it belongs to the model that was asked: statements are what a model says, not
    evidence of what is true of anyone.
    """

    def review(self, *, by: str | None = None) -> Review:
        """Begin a review by hand: rejected answers are shown, and restored where they were rejected
        by mistake; statements that should not count are rejected (appendix A.3 of Salinas et al.
        2023). Decisions are rows with who and when, and can be taken back. `measure` again after
        them.

        Args:
            by: who decides (None: the user's name).
        """
        return Review(self.stored, by)
