"""How far a text is borne out by its sources: the metrics of RAGAS, judges and their reliability,
and whether the parser of a crawl kept what answers said."""

from kgbias.faithfulness.parser_check import CheckedTriple, OutcomeFaithfulness, ParserFaithfulness, check_run
from kgbias.faithfulness.judges import LOCAL_JUDGES, Judge, LocalJudge, ModelJudge
from kgbias.faithfulness.metrics import (
    RagasMetric,
    AnswerRecord,
    RecordScore,
    answer_relevance,
    context_relevance,
    faithfulness,
    read_records,
)
from kgbias.faithfulness.preference import JudgeAccuracy, WikiEvalRow, pairwise_accuracy, read_wikieval
from kgbias.faithfulness.judge_reliability import JudgeCase, JudgeReliability, load_cases, measure_reliability, make_world_pairs

__all__ = [
    "LOCAL_JUDGES",
    "JudgeAccuracy",
    "JudgeCase",
    "CheckedTriple",
    "Judge",
    "LocalJudge",
    "RagasMetric",
    "ModelJudge",
    "OutcomeFaithfulness",
    "ParserFaithfulness",
    "AnswerRecord",
    "JudgeReliability",
    "WikiEvalRow",
    "RecordScore",
    "answer_relevance",
    "load_cases",
    "check_run",
    "context_relevance",
    "faithfulness",
    "pairwise_accuracy",
    "read_wikieval",
    "read_records",
    "measure_reliability",
    "make_world_pairs",
]
