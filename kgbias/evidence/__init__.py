"""Said, believed, embedded: the three kinds of evidence on one triple, in one row.

- `joint`: for every triple of a run, what its crawl said, what a model finds probable and what its
  vectors hold, with a verdict; and how far the three agree for each group.
- `replicate`: whether findings are found again, with other names, carriers or crawls.
- `believe`: probes a run's statements by the names of its groups, and tests what is believed.
- `Beside`: what several models believe about the same statements.
- `known`: a run's statements, and what a model believes, beside stereotypes that people recorded.
- `embed_run`: measures the groups and statements of a probed run in a model's vectors.
"""

from kgbias.evidence.asked import Asked, Asking, price
from kgbias.evidence.association import embed_run
from kgbias.evidence.believe import believe, planned
from kgbias.evidence.beside import Beside, Both, Side
from kgbias.evidence.joint import (
    VERDICTS,
    Evidence,
    GroupAgreement,
    Joint,
    Parts,
    floor_of,
    joined,
    joint,
    kendall,
    others_asked,
    read_beliefs,
    telling,
)
from kgbias.evidence.replicate import Again, Replication, keep, replicate, with_carriers
from kgbias.evidence.tables import NameTable, name_tables

__all__ = [
    "VERDICTS",
    "Again",
    "Asked",
    "Asking",
    "Beside",
    "Both",
    "Evidence",
    "GroupAgreement",
    "Joint",
    "NameTable",
    "Parts",
    "Replication",
    "Side",
    "believe",
    "embed_run",
    "floor_of",
    "joined",
    "joint",
    "keep",
    "kendall",
    "name_tables",
    "others_asked",
    "planned",
    "price",
    "read_beliefs",
    "replicate",
    "telling",
    "with_carriers",
]
