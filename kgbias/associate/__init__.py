"""Association tests: the WEAT family.

`associate` runs tests by any of `METHODS`, on word vectors or language models, with `Parameters`;
every result is an `Association` that says what it rests on. `find_tests` finds the published word
sets by name. The individual methods are `kgbias.associate.weat.weat` and `.weat.seat`, `.ceat.ceat`
and `.lpbs.lpbs`.
"""

from kgbias.associate.effect import (
    effect_estimate,
    effect_size,
    measure_associations,
    single_category_effect,
)
from kgbias.associate.family import Associations, associate, build_records
from kgbias.associate.methods import METHODS, Parameters
from kgbias.associate.permutation import PValue, permutation_test
from kgbias.associate.result import Association, Statistics, published_statistics
from kgbias.associate.sets import AssociationTest, WordSet, find_tests, read_tests
from kgbias.stats.inference import benjamini_hochberg, holm

__all__ = [
    "METHODS",
    "Association",
    "AssociationTest",
    "Associations",
    "PValue",
    "Parameters",
    "Statistics",
    "WordSet",
    "associate",
    "benjamini_hochberg",
    "build_records",
    "effect_estimate",
    "effect_size",
    "find_tests",
    "holm",
    "measure_associations",
    "permutation_test",
    "published_statistics",
    "read_tests",
    "single_category_effect",
]
