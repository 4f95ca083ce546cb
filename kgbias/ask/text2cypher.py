"""Questions as Cypher: a model writes a query against the shape of the graph, and the store runs it
like any other, read-only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgbias.errors import UsageError
from kgbias.graph.cypher import QueryResult, strip_comments
from kgbias.graph.prompting import LoggedPrompter
from kgbias.graph.shape import EDGES, NODES
from kgbias.graph.store import StoredRun
from kgbias.io.templates import PromptTemplate

ATTEMPTS = 2
# The part that questions are about; the rest of the shape records how the data came about.
_ABOUT = frozenset(
    "Category SocialGroup Predicate Object Triple Run Metric Topic IN_CATEGORY SUBJECT PREDICATE "
    "OBJECT SEEDED SCORED FIGURE ABOUT NEAR STEREOTYPE".split()
)
_FENCE = re.compile(r"```(?:cypher|sql)?\s*\n?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_BEGIN = re.compile(r"\b(?:OPTIONAL\s+MATCH|MATCH|WITH|UNWIND|RETURN|CALL)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CypherAnswer:
    """A question as a query: the last one that the model wrote, and its rows; `error` says in one
    line why none of its attempts could be run ("" if one could)."""

    question: str
    run: str
    model: str
    query: str
    result: QueryResult
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        return {
            "question": self.question,
            "run": self.run,
            "model": self.model,
            "cypher": self.query,
            "rows": self.result.records(),
            "error": self.error,
        }


def schema() -> str:
    """The part of the graph's shape that questions are about, in the words given to a model."""
    lines = [
        f"(:{n.label} {{{', '.join(f'{p.name}: {p.type}' for p in n.properties)}}})  // {n.meaning}"
        for n in NODES
        if n.label in _ABOUT
    ]
    for e in EDGES:
        if e.type in _ABOUT:
            own = ", ".join(f"{p.name}: {p.type}" for p in e.properties)
            lines += [
                f"(:{a})-[:{e.type}{f' {{{own}}}' if own else ''}]->(:{b})  // {e.meaning}"
                for a, b in e.ends
                if {a, b} <= _ABOUT
            ]
    return "\n".join(lines)


def ask_in_cypher(
    run: StoredRun, question: str, model: LoggedPrompter, prompts: Mapping[str, PromptTemplate]
) -> CypherAnswer:
    """Let a model write a query, and run it; a query that fails is shown to the model once with the
    error. $run is the run's name. The store refuses a query that might do more than read the
    graph."""
    query = error = ""
    for _ in range(ATTEMPTS):
        values = {
            "question": question,
            "schema": schema(),
            "run": run.name,
            "group": run.groups[0].name if run.groups else "Women",
            "failed": query,
            "error": error,
        }
        (text,) = model.ask(prompts["cypher"], [values])
        query = read_query(text)
        if not query:
            error = "the answer contains no query"
            continue
        try:
            query = strip_comments(query)  # the query shown is the one that runs
            result = run.store.query(query, {"run": run.name})
        except UsageError as problem:
            error = str(problem)
            continue
        return CypherAnswer(question, run.name, model.name, query, result)
    return CypherAnswer(question, run.name, model.name, query, QueryResult((), []), error)


def read_query(text: str) -> str:
    """The query in an answer: the content of a code block, or the text from its first clause on."""
    block = _FENCE.search(text)
    found = block[1] if block else text
    begin = _BEGIN.search(found)
    return found[begin.start() :].strip().rstrip(";").strip() if begin else ""
