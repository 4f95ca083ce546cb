"""How far a text is borne out by its sources: the metrics of RAGAS, judges and their reliability,
and whether the parser of a crawl kept what answers said."""

from kgbias.faithfulness.judge_reliability import (
    JudgeCase,
    JudgeReliability,
    load_cases,
    make_world_pairs,
    measure_reliability,
)
from kgbias.faithfulness.judges import LOCAL_JUDGES, Judge, LocalJudge, ModelJudge
from kgbias.faithfulness.metrics import (
    AnswerRecord,
    RagasMetric,
    RecordScore,
    answer_relevance,
    context_relevance,
    faithfulness,
    read_records,
)
from kgbias.faithfulness.parser_check import (
    CheckedTriple,
    OutcomeFaithfulness,
    ParserFaithfulness,
    check_run,
)
from kgbias.faithfulness.preference import (
    JudgeAccuracy,
    WikiEvalRow,
    pairwise_accuracy,
    read_wikieval,
)

__all__ = [
    "LOCAL_JUDGES",
    "AnswerRecord",
    "CheckedTriple",
    "Judge",
    "JudgeAccuracy",
    "JudgeCase",
    "JudgeReliability",
    "LocalJudge",
    "ModelJudge",
    "OutcomeFaithfulness",
    "ParserFaithfulness",
    "RagasMetric",
    "RecordScore",
    "WikiEvalRow",
    "answer_relevance",
    "check_run",
    "context_relevance",
    "faithfulness",
    "load_cases",
    "make_world_pairs",
    "measure_reliability",
    "pairwise_accuracy",
    "read_records",
    "read_wikieval",
]
