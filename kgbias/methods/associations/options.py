"""The options of association tests, as `associate` and the calls of a study and a run take them.

What they are annotated with stands in quotes, so that opening a study imports none of the methods.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from kgbias.methods.associations.ceat import Variance
    from kgbias.methods.associations.contexts import ContextSource
    from kgbias.methods.associations.effect import SpreadKind
    from kgbias.methods.associations.lpbs import Pooling, WordChoice
    from kgbias.methods.associations.methods import PredictorKind
    from kgbias.methods.associations.permutation import PermutationMethod, Tails
    from kgbias.methods.associations.weat import WordVectors
    from kgbias.models.embed import Encoding
    from kgbias.models.vectors import VectorInput

Groups = tuple[str, str] | Literal["all"]


class Parameters(TypedDict, total=False):
    """How methods are run. A parameter that is not given takes the method's own default, or with
    `published_statistics` that of the method's paper.

    - Statistics (`kgbias.methods.associations.result.Statistics`): `spread`, `tails`, `how`,
      `samples`, `seed`; not CEAT: `strict`; SEAT and LPBS: `unit`; scores: none.
    - SEAT and CEAT: `encoding`, how a text becomes a vector, and `layer`, the hidden layer it is
      read from (0 is the input embeddings, -1 the last).
    - SEAT: `search` takes the best of all layers, and for s-SEAT of all encodings, with a p-value
      corrected for the search (see `kgbias.methods.associations.search.search_seat`).
    - All but WEAT: `contexts`, a corpus file with `most` contexts per word (LPBS: per target and
      attribute, at most `apart` words from each other) and `window` words on either side; without
      one, bleached templates. SEAT and CEAT also take a `ContextSource`, and CEAT `generate`, the
      number of contexts per word that the model writes.
    - CEAT and CEAT over LPBS: `draws`, `variance` (see `kgbias.methods.associations.ceat.ceat`).
    - LPBS: `words`, `pool` (see `kgbias.methods.associations.lpbs.lpbs`), and `kind`, "masked" or
      "causal" to insist on such a model.
    """

    spread: "SpreadKind"
    tails: "Tails"
    how: "PermutationMethod"
    samples: int
    seed: int
    strict: bool
    unit: str
    encoding: "Encoding"
    layer: int
    search: bool
    contexts: "Path | ContextSource"
    generate: int
    most: int
    window: int
    apart: int
    draws: int
    variance: "Variance"
    words: "WordChoice"
    pool: "Pooling"
    kind: "PredictorKind"


class AssociationOptions(Parameters, total=False):
    """The options of association tests beside models, tests and methods; see `associate`."""

    vectors: "WordVectors | str | Path | VectorInput | None"
    vector_format: str
    exact_case: bool
    tests_file: str | Path | None
    groups: Groups | None
    attributes: str | None
    topics: tuple[str, str] | None
    targets: str | None
    indicators: str | Path | None
    every_group: bool
    arm: str | None
    as_published: bool
    device: str
    dtype: str
    cache: bool
    executor: str
    processes: int | None
