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
from kgbias.io.rows import Result, Rows
from kgbias.io.templates import PromptTemplate

MAX_ATTEMPTS = 2
# The part that questions are about; the rest of the shape records how the data came about.
_DESCRIBED_PARTS = frozenset(
    "Category SocialGroup Predicate Object Triple Run Metric Topic IN_CATEGORY SUBJECT PREDICATE "
    "OBJECT SEEDED SCORED FIGURE ABOUT NEAR STEREOTYPE".split()
)
_CODE_BLOCK = re.compile(r"```(?:cypher|sql)?\s*\n?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_FIRST_CLAUSE = re.compile(r"\b(?:OPTIONAL\s+MATCH|MATCH|WITH|UNWIND|RETURN|CALL)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class CypherAnswer(Result):
    """A question as a query: the last one that the model wrote, and its rows, with the columns that
    it returns; `error` says in one line why none of its attempts could be run ("" if one could)."""

    question: str
    run: str
    model: str
    query: str
    result: QueryResult
    error: str = ""

    def as_rows(self) -> Rows[dict[str, Any]]:
        """What the query returned."""
        return Rows(self.result.records(), self.result.columns)

    def heading(self) -> str:
        return self.error or self.query

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


def describe_schema() -> str:
    """The part of the graph's shape that questions are about, in the words given to a model."""
    lines = [
        f"(:{node.label} {{{', '.join(f'{p.name}: {p.type}' for p in node.properties)}}})  // "
        f"{node.meaning}"
        for node in NODES
        if node.label in _DESCRIBED_PARTS
    ]
    for edge in EDGES:
        if edge.type in _DESCRIBED_PARTS:
            properties = ", ".join(f"{p.name}: {p.type}" for p in edge.properties)
            lines += [
                f"(:{a})-[:{edge.type}{f' {{{properties}}}' if properties else ''}]->(:{b})  // "
                f"{edge.meaning}"
                for a, b in edge.ends
                if {a, b} <= _DESCRIBED_PARTS
            ]
    return "\n".join(lines)


def ask_in_cypher(
    run: StoredRun, question: str, model: LoggedPrompter, prompts: Mapping[str, PromptTemplate]
) -> CypherAnswer:
    """Let a model write a query, and run it; a query that fails is shown to the model once with the
    error. $run is the run's name. The store refuses a query that might do more than read the
    graph."""
    query = error = ""
    for _ in range(MAX_ATTEMPTS):
        values = {
            "question": question,
            "schema": describe_schema(),
            "run": run.name,
            "group": run.groups[0].name if run.groups else "Women",
            "failed": query,
            "error": error,
        }
        (text,) = model.ask(prompts["cypher"], [values])
        query = extract_query(text)
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


def extract_query(text: str) -> str:
    """The query in an answer: the content of a code block, or the text from its first clause on."""
    block = _CODE_BLOCK.search(text)
    query_text = block[1] if block else text
    first_clause = _FIRST_CLAUSE.search(query_text)
    if first_clause is None:
        return ""
    return query_text[first_clause.start() :].strip().rstrip(";").strip()
