"""How far a text is borne out by its sources: the metrics of RAGAS, judges and their reliability,
and whether the parser of a crawl kept what answers said."""

from kgbias.faithfulness.crawled import Checked, OfOutcome, ParserFaithfulness, check_run
from kgbias.faithfulness.judges import LOCAL, Judge, LocalJudge, ModelJudge
from kgbias.faithfulness.metrics import (
    Metric,
    Record,
    Scored,
    answer_relevance,
    context_relevance,
    faithfulness,
    read_records,
)
from kgbias.faithfulness.pairs import Accuracy, Row, pairwise, read_pairs
from kgbias.faithfulness.reliability import Case, Reliability, cases, reliability, world_pairs

__all__ = [
    "LOCAL",
    "Accuracy",
    "Case",
    "Checked",
    "Judge",
    "LocalJudge",
    "Metric",
    "ModelJudge",
    "OfOutcome",
    "ParserFaithfulness",
    "Record",
    "Reliability",
    "Row",
    "Scored",
    "answer_relevance",
    "cases",
    "check_run",
    "context_relevance",
    "faithfulness",
    "pairwise",
    "read_pairs",
    "read_records",
    "reliability",
    "world_pairs",
]
