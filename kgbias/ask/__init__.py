"""Questions to the graph in plain words: retrieval of statements, and answers with sources."""

from kgbias.ask.answer import (
    AnswerClaim,
    QuestionAnswer,
    build_extractive_answer,
    format_figures,
    split_claims,
)
from kgbias.ask.retrieval import (
    DEFAULT_TOP,
    Neighbour,
    ParsedQuestion,
    Retrieval,
    RetrievedGroup,
    RetrievedStatement,
    parse_question,
    retrieve_statements,
)
from kgbias.ask.text2cypher import CypherAnswer

__all__ = [
    "DEFAULT_TOP",
    "AnswerClaim",
    "CypherAnswer",
    "Neighbour",
    "ParsedQuestion",
    "QuestionAnswer",
    "Retrieval",
    "RetrievedGroup",
    "RetrievedStatement",
    "build_extractive_answer",
    "format_figures",
    "parse_question",
    "retrieve_statements",
    "split_claims",
]
