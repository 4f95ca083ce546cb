"""A profile as the classifier sees it.

Each value of each attribute is an entry of 1, as it was written: capitals count, since to write
"Catholic" here and "catholic" there is a habit as well. Every profile is then scaled to length 1,
so that one with many values does not weigh more than one with few.

The paper (section 6.1) has one-hot vectors for attributes of one value, as here, and for lists the
shares of their words; docs/methods/profiles.md says what was tried, and what gives the published
accuracies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgbias.errors import MissingExtra
from kgbias.graph.profiles import Profile


@dataclass(frozen=True, slots=True)
class Features:
    """The entries of all profiles under each attribute: a sparse matrix [profiles, values] each."""

    of: Mapping[str, Any]

    def matrix(self, attributes: Sequence[str]) -> Any:
        """The profiles under these attributes together, each of length 1 (or 0, where it says
        nothing under any of them)."""
        from scipy.sparse import csr_matrix, diags, hstack

        whole = csr_matrix(hstack([self.of[a] for a in attributes]))
        lengths = np.sqrt(np.asarray(whole.multiply(whole).sum(axis=1)).ravel())
        return csr_matrix(diags(1 / np.where(lengths > 0, lengths, 1)) @ whole)


def encode(profiles: Sequence[Profile], attributes: Sequence[str]) -> Features:
    """The features of profiles under these attributes."""
    try:
        from sklearn.feature_extraction import DictVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error
    found = {}
    for attribute in attributes:
        rows = [dict.fromkeys(p.values(attribute), 1.0) for p in profiles]
        found[attribute] = DictVectorizer().fit_transform(rows)
    return Features(found)
