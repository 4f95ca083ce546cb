"""Questions to the graph in plain words: retrieval of statements, and answers with sources."""

from kgbias.ask.answer import Answer, Claim, claims, extractive, shown_figures
from kgbias.ask.retrieve import (
    TOP,
    Found,
    GroupFound,
    Neighbour,
    Question,
    Retrieved,
    read_question,
    retrieve,
)
from kgbias.ask.text2cypher import CypherAnswer

__all__ = [
    "TOP",
    "Answer",
    "Claim",
    "CypherAnswer",
    "Found",
    "GroupFound",
    "Neighbour",
    "Question",
    "Retrieved",
    "claims",
    "extractive",
    "read_question",
    "retrieve",
    "shown_figures",
]
