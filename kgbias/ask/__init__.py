"""Questions to the graph in plain words: retrieval of statements, and answers with sources."""

from kgbias.ask.answer import QuestionAnswer, AnswerClaim, split_claims, build_extractive_answer, format_figures
from kgbias.ask.retrieval import (
    DEFAULT_TOP,
    RetrievedStatement,
    RetrievedGroup,
    Neighbour,
    ParsedQuestion,
    Retrieval,
    parse_question,
    retrieve_statements,
)
from kgbias.ask.text2cypher import CypherAnswer

__all__ = [
    "DEFAULT_TOP",
    "QuestionAnswer",
    "AnswerClaim",
    "CypherAnswer",
    "RetrievedStatement",
    "RetrievedGroup",
    "Neighbour",
    "ParsedQuestion",
    "Retrieval",
    "split_claims",
    "build_extractive_answer",
    "parse_question",
    "retrieve_statements",
    "format_figures",
]
