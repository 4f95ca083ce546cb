"""Questions to the graph in plain words: retrieval over statements, and answers with sources."""

from kgbias.ask.answer import Answer, Claim, extractive, shown_figures
from kgbias.ask.names import Question, read_question
from kgbias.ask.retrieve import TOP, Found, GroupFound, Neighbour, Retrieved, retrieve

__all__ = [
    "TOP",
    "Answer",
    "Claim",
    "Found",
    "GroupFound",
    "Neighbour",
    "Question",
    "Retrieved",
    "extractive",
    "read_question",
    "retrieve",
    "shown_figures",
]
