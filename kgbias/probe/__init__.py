"""Perplexity probes: which groups a model ties to which statements.

Each function takes a model that scores texts (`kgbias.models.score.load.open_scorer`) and returns a
result that knows its JSON (`as_dict`):

- `probe_run`: the statements of a run's graph, written back to it.
- `probe_sets`: any groups before any statements (`gather_sets` reads them); for large jobs.
- `probe_apx`: names x descriptors x templates.
- `surprisals`: the surprisal of each token of a text.
"""

from kgbias.probe.names import probe_apx
from kgbias.probe.result import (
    ApxFlags,
    CategoryProbes,
    ProbeAgreement,
    RunProbes,
    ScorerInfo,
    SetProbes,
    Statement,
    TextSurprisals,
    surprisals,
)
from kgbias.probe.run_probes import gather_sets, probe_run
from kgbias.probe.set_probes import probe_sets
from kgbias.probe.sofa import CategoryBias, SofaBias

__all__ = [
    "ApxFlags",
    "CategoryBias",
    "CategoryProbes",
    "ProbeAgreement",
    "RunProbes",
    "ScorerInfo",
    "SetProbes",
    "SofaBias",
    "Statement",
    "TextSurprisals",
    "gather_sets",
    "probe_apx",
    "probe_run",
    "probe_sets",
    "surprisals",
]
