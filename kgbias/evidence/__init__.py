"""Said, believed, embedded: the three kinds of evidence on one triple, in one row.

- `build_evidence`: for every triple of a run, what its crawl said, what a model finds probable and what its
  vectors hold, with a verdict; and how far the three agree for each group.
- `replicate_findings`: whether findings are found again, with other names, carriers or crawls.
- `probe_beliefs`: probes a run's statements by the names of its groups, and tests what is believed.
- `BeliefComparison`: what several models believe about the same statements.
- `known`: a run's statements, and what a model believes, beside stereotypes that people recorded.
- `embed_run`: measures the groups and statements of a probed run in a model's vectors.
"""

from kgbias.evidence.probe_plan import ProbePlan, ProbeSettings, price_plans
from kgbias.evidence.association import embed_run
from kgbias.evidence.belief_probing import probe_beliefs, plan_belief_run
from kgbias.evidence.model_agreement import BeliefComparison, ModelAgreement, ModelBeliefs
from kgbias.evidence.evidence_table import (
    VERDICTS,
    Evidence,
    GroupAgreement,
    EvidenceTable,
    EvidenceInputs,
    summarise_floor,
    assemble_evidence,
    build_evidence,
    jackknife_kendall_tau,
    describe_other_models,
    read_beliefs,
    select_top_rows,
)
from kgbias.evidence.replication import ReplicationRate, Replication, save_replication, replicate_findings, retry_with_carriers
from kgbias.evidence.probe_tables import NameTable, build_name_tables

__all__ = [
    "VERDICTS",
    "ReplicationRate",
    "ProbePlan",
    "ProbeSettings",
    "BeliefComparison",
    "ModelAgreement",
    "Evidence",
    "GroupAgreement",
    "EvidenceTable",
    "NameTable",
    "EvidenceInputs",
    "Replication",
    "ModelBeliefs",
    "probe_beliefs",
    "embed_run",
    "summarise_floor",
    "assemble_evidence",
    "build_evidence",
    "save_replication",
    "jackknife_kendall_tau",
    "build_name_tables",
    "describe_other_models",
    "plan_belief_run",
    "price_plans",
    "read_beliefs",
    "replicate_findings",
    "select_top_rows",
    "retry_with_carriers",
]
