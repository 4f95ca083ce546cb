"""What kinds of models there are."""

from kgbias.models.kinds import ModelKind, kinds_of_models
from kgbias.study.rows import Rows


def model_kinds() -> Rows[ModelKind]:
    """The kinds of models and what each allows: writing text (`crawl`), answers in a schema, seeds,
    log-probabilities, probes, association tests, batches. Frame columns: those of a `ModelKind`."""
    return Rows(kinds_of_models(), columns=tuple(ModelKind.__dataclass_fields__))
