"""Said, believed, embedded: the three kinds of evidence on one triple, in one row.

- `build_evidence`: for every triple of a run, what its crawl said, what a model finds probable and
  what its vectors hold, with a verdict; and how far the three agree for each group.
- `replicate_findings`: whether findings are found again, with other names, carriers or crawls.
- `probe_beliefs`: probes a run's statements by the names of its groups, and tests what is believed.
- `BeliefComparison`: what several models believe about the same statements.
- `language_pairs`: what one model believes of the same groups in two languages.
- `embed_run`: measures the groups and statements of a probed run in a model's vectors.
"""

from kgbias.evidence.association import embed_run
from kgbias.evidence.belief_probing import plan_belief_run, probe_beliefs
from kgbias.evidence.evidence_table import (
    VERDICTS,
    Evidence,
    EvidenceInputs,
    EvidenceTable,
    GroupAgreement,
    assemble_evidence,
    build_evidence,
    describe_other_models,
    jackknife_kendall_tau,
    read_beliefs,
    select_top_rows,
    summarise_floor,
)
from kgbias.evidence.model_agreement import BeliefComparison, ModelAgreement, ModelBeliefs
from kgbias.evidence.probe_plan import ProbePlan, ProbeSettings, price_plans
from kgbias.evidence.probe_tables import NameTable, build_name_tables
from kgbias.evidence.replication import (
    Replication,
    ReplicationRate,
    replicate_findings,
    retry_with_carriers,
    save_replication,
)

__all__ = [
    "VERDICTS",
    "BeliefComparison",
    "Evidence",
    "EvidenceInputs",
    "EvidenceTable",
    "GroupAgreement",
    "ModelAgreement",
    "ModelBeliefs",
    "NameTable",
    "ProbePlan",
    "ProbeSettings",
    "Replication",
    "ReplicationRate",
    "assemble_evidence",
    "build_evidence",
    "build_name_tables",
    "describe_other_models",
    "embed_run",
    "jackknife_kendall_tau",
    "plan_belief_run",
    "price_plans",
    "probe_beliefs",
    "read_beliefs",
    "replicate_findings",
    "retry_with_carriers",
    "save_replication",
    "select_top_rows",
    "summarise_floor",
]
