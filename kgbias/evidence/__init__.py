"""Said, believed, embedded: the three kinds of evidence on one triple, in one row.

- `joint`: for every triple of a run, what its crawl said, what a model finds probable and what its
  vectors hold, with a verdict; and how far the three agree for each group.
- `embed_run`: puts the groups and statements of a probed run into the vectors of a model.
"""

from kgbias.evidence.agreement import GroupAgreement, kendall
from kgbias.evidence.association import embed_run
from kgbias.evidence.joint import Joint, Parts, joined, joint
from kgbias.evidence.row import Evidence, telling
from kgbias.evidence.verdicts import VERDICTS

__all__ = [
    "VERDICTS",
    "Evidence",
    "GroupAgreement",
    "Joint",
    "Parts",
    "embed_run",
    "joined",
    "joint",
    "kendall",
    "telling",
]
