"""Whether the sentences of a summary are what the store says: each number beside an SQL query that
counts it from the store's tables, without kgbias.

    kgbias report RUN --summary -o summary.md
    python benchmarks/audit_sql.py kgbias.db RUN summary.md

Prints each sentence, what it says, what the query finds, and the query; exits with 1 if any of them
differs. The store is a SQLite file. Intervals and p-values are no counts: benchmarks/audit.py holds
those to what was planted.
"""

import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

OF_RUN = "FROM generation WHERE run_id = :run"
PROMPT_ROWS = f"""(SELECT avg(outcome = 'refused') AS refused {OF_RUN} AND attempt = 0
AND group_id IN (SELECT group_id FROM run_group JOIN "group" ON id = group_id
WHERE run_id = :run AND :about IN (name, category)) GROUP BY group_id, prompt, template_hash)"""
PLACE = "substr({0}.path, 1, instr({0}.path, '#') - 1)"
RETRY_ROWS = f"""FROM generation one JOIN generation two ON one.run_id = two.run_id
AND two.attempt = one.attempt - 1 AND {PLACE.format("one")} = {PLACE.format("two")}
WHERE one.run_id = :run AND two.outcome = 'refused'"""
SCORE_ROWS = """FROM generation JOIN run_metric USING (run_id) JOIN score USING (metric_id,
    triple_id)
WHERE run_id = :run AND measure = 'acceptability' AND outcome = 'ok' AND value"""
PARTS = """triple JOIN "group" ON "group".id = group_id
JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id"""
SENTENCE = "\"group\".name || ' ' || predicate.text || ' ' || object.text"
TRIPLE_ROWS = f"FROM {PARTS} WHERE {SENTENCE} = :about"


class SentenceCheck(NamedTuple):
    """A number or a word of a sentence, and what counts it; `about` is a parameter of the query."""

    sentence: str
    stated: int | str
    query: str
    about: str = ""


def list_checks(text: str) -> Iterator[SentenceCheck]:
    """What can be counted in the text of a summary."""
    number = r"([\d,]+)"
    prompt_counts = re.search(
        rf"{number} prompts, asked for {number} answers; {number} of these were asked for again, "
        rf"{number} because the prompt was refused",
        text,
    )
    if prompt_counts:
        for m, what in zip(
            prompt_counts.groups(),
            (
                f"count(DISTINCT group_id || prompt || template_hash) {OF_RUN} AND attempt = 0",
                f"count(*) {OF_RUN} AND attempt = 0",
                f"count(*) {OF_RUN} AND attempt > 0",
                f"count(*) {RETRY_ROWS}",
            ),
            strict=True,
        ):
            yield SentenceCheck(prompt_counts[0], parse_count(m), f"SELECT {what}")
    totals = re.search(
        rf"{number} answers in all: {number} statements \({number} distinct\), {number} refused, "
        rf"{number} not readable, {number} that repeat an example, {number} that make too little "
        rf"sense, {number} failed",
        text,
    )
    assert totals, "this is no summary of a crawl"
    ok_rows = f"{OF_RUN} AND outcome = 'ok'"
    yield SentenceCheck(totals[0], parse_count(totals[1]), f"SELECT count(*) {OF_RUN}")
    yield SentenceCheck(totals[0], parse_count(totals[2]), f"SELECT count(*) {ok_rows}")
    yield SentenceCheck(
        totals[0], parse_count(totals[3]), f"SELECT count(DISTINCT triple_id) {ok_rows}"
    )
    outcomes = ("refused", "unparsable", "echo", "nonsense", "failed")
    for m, outcome in zip(totals.groups()[3:], outcomes, strict=True):
        yield SentenceCheck(
            totals[0], parse_count(m), f"SELECT count(*) {OF_RUN} AND outcome = '{outcome}'"
        )
    share = f"SELECT CAST(round(100 * avg(refused)) AS INT) FROM {PROMPT_ROWS}"
    for line, group, prompts, percent in re.findall(
        r"^(\| ([^|]+) \| (\d+) \| (\d+)% \|.*)$", text, re.MULTILINE
    ):
        yield SentenceCheck(
            line, int(prompts), f"SELECT count(*) FROM {PROMPT_ROWS}", strip_escapes(group)
        )
        yield SentenceCheck(line, int(percent), share, strip_escapes(group))
    for line, category, percent, prompts in re.findall(
        rf"^- ((.+): (\d+)% of {number} prompts were refused)", text, re.MULTILINE
    ):
        yield SentenceCheck(
            line,
            parse_count(prompts),
            f"SELECT count(*) FROM {PROMPT_ROWS}",
            strip_escapes(category),
        )
        yield SentenceCheck(line, int(percent), share, strip_escapes(category))
    if m := re.search(rf"left out {number} of {number} statements, those with an acceptab", text):
        yield SentenceCheck(m[0], parse_count(m[1]), f"SELECT count(*) {SCORE_ROWS} < 0.5")
        yield SentenceCheck(m[0], parse_count(m[2]), f"SELECT count(*) {ok_rows}")
    if m := re.search(rf"Of the {number} distinct sentences that count", text):
        counted_rows = f"{SCORE_ROWS} >= 0.5" if "an acceptability below 0.5" in text else ok_rows
        counted = f"SELECT triple_id {counted_rows}"
        yield SentenceCheck(
            m[0],
            parse_count(m[1]),
            f"SELECT count(DISTINCT {SENTENCE}) FROM {PARTS} WHERE triple.id IN ({counted})",
        )
    for line, statement, times, regard in re.findall(
        r"^- ((.+)\. \((once|\d+ times)(?:; regard (\w+))?.*)$", text, re.MULTILINE
    ):
        count = 1 if times == "once" else int(times.split()[0])
        statement_rows = (
            f"{OF_RUN} AND outcome = 'ok' AND triple_id IN (SELECT triple.id {TRIPLE_ROWS})"
        )
        yield SentenceCheck(
            line, count, f"SELECT count(*) {statement_rows}", strip_escapes(statement)
        )
        if regard:
            label_query = f"""SELECT DISTINCT label FROM score JOIN run_metric USING (metric_id)
            WHERE run_id = :run AND measure = 'regard' AND triple_id IN (SELECT triple.id
                {TRIPLE_ROWS})"""
            yield SentenceCheck(line, regard, label_query, strip_escapes(statement))


def parse_count(text: str) -> int:
    return int(text.replace(",", ""))


def strip_escapes(text: str) -> str:
    """Text of Markdown as the store has it."""
    return re.sub(r"\\(.)", r"\1", text)


def main() -> int:
    store, run, summary = sys.argv[1:]
    database = sqlite3.connect(f"{Path(store).resolve().as_uri()}?mode=ro", uri=True)
    (id,) = database.execute("SELECT id FROM run WHERE name = ?", (run,)).fetchone()
    wrong = total = 0
    for check in list_checks(Path(summary).read_text("utf-8")):
        parameters: dict[str, Any] = {"run": id, "about": check.about}
        results = [row[0] for row in database.execute(check.query, parameters)]
        is_same = results == [check.stated]
        wrong, total = wrong + (not is_same), total + 1
        query = " ".join(check.query.split())
        about = f" with :about = {check.about}" if check.about else ""
        print(f"{'same' if is_same else 'DIFFERS'}\t{check.stated}\t{results}\t{check.sentence}")
        print(f"\t{query}{about}")
    print(f"{total} numbers and labels, {wrong} of which differ from the store")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
