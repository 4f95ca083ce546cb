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
PROMPTS = f"""(SELECT avg(outcome = 'refused') AS refused {OF_RUN} AND attempt = 0
AND group_id IN (SELECT group_id FROM run_group JOIN "group" ON id = group_id
WHERE run_id = :run AND :about IN (name, category)) GROUP BY group_id, prompt, template_hash)"""
PLACE = "substr({0}.path, 1, instr({0}.path, '#') - 1)"
AGAIN = f"""FROM generation one JOIN generation two ON one.run_id = two.run_id
AND two.attempt = one.attempt - 1 AND {PLACE.format("one")} = {PLACE.format("two")}
WHERE one.run_id = :run AND two.outcome = 'refused'"""
SENSE = """FROM generation JOIN run_metric USING (run_id) JOIN score USING (metric_id, triple_id)
WHERE run_id = :run AND measure = 'acceptability' AND outcome = 'ok' AND value"""
SAID = """FROM triple JOIN "group" ON "group".id = group_id
JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id
WHERE "group".name || ' ' || predicate.text || ' ' || object.text = :about"""


class Check(NamedTuple):
    """A number or a word of a sentence, and what counts it; `about` is a parameter of the query."""

    sentence: str
    said: int | str
    query: str
    about: str = ""


def checks(text: str) -> Iterator[Check]:
    """What can be counted in the text of a summary."""
    number = r"([\d,]+)"
    asked = re.search(
        rf"{number} prompts, asked for {number} answers; {number} of these were asked for again, "
        rf"{number} because the prompt was refused", text,
    )  # fmt: skip
    if asked:
        for m, what in zip(
            asked.groups(),
            (
                f"count(DISTINCT group_id || prompt || template_hash) {OF_RUN} AND attempt = 0",
                f"count(*) {OF_RUN} AND attempt = 0",
                f"count(*) {OF_RUN} AND attempt > 0",
                f"count(*) {AGAIN}",
            ),
            strict=True,
        ):
            yield Check(asked[0], whole(m), f"SELECT {what}")
    every = re.search(
        rf"{number} answers in all: {number} statements \({number} distinct\), {number} refused, "
        rf"{number} not readable, {number} that repeat an example, {number} that make too little "
        rf"sense, {number} failed", text,
    )  # fmt: skip
    assert every, "this is no summary of a crawl"
    said = f"{OF_RUN} AND outcome = 'ok'"
    yield Check(every[0], whole(every[1]), f"SELECT count(*) {OF_RUN}")
    yield Check(every[0], whole(every[2]), f"SELECT count(*) {said}")
    yield Check(every[0], whole(every[3]), f"SELECT count(DISTINCT triple_id) {said}")
    outcomes = ("refused", "unparsable", "echo", "nonsense", "failed")
    for m, outcome in zip(every.groups()[3:], outcomes, strict=True):
        yield Check(every[0], whole(m), f"SELECT count(*) {OF_RUN} AND outcome = '{outcome}'")
    share = f"SELECT CAST(round(100 * avg(refused)) AS INT) FROM {PROMPTS}"
    for line, group, prompts, percent in re.findall(
        r"^(\| ([^|]+) \| (\d+) \| (\d+)% \|.*)$", text, re.MULTILINE
    ):
        yield Check(line, int(prompts), f"SELECT count(*) FROM {PROMPTS}", plain(group))
        yield Check(line, int(percent), share, plain(group))
    for line, category, percent, prompts in re.findall(
        rf"^- ((.+): (\d+)% of {number} prompts were refused)", text, re.MULTILINE
    ):
        yield Check(line, whole(prompts), f"SELECT count(*) FROM {PROMPTS}", plain(category))
        yield Check(line, int(percent), share, plain(category))
    if m := re.search(rf"left out {number} of {number} statements, those with an acceptab", text):
        yield Check(m[0], whole(m[1]), f"SELECT count(*) {SENSE} < 0.5")
        yield Check(m[0], whole(m[2]), f"SELECT count(*) {said}")
    if m := re.search(rf"Of the {number} distinct statements that count", text):
        left = f"{SENSE} >= 0.5" if "an acceptability below 0.5" in text else said
        yield Check(m[0], whole(m[1]), f"SELECT count(DISTINCT triple_id) {left}")
    for line, statement, times, regard in re.findall(
        r"^- ((.+)\. \((once|\d+ times)(?:; regard (\w+))?.*)$", text, re.MULTILINE
    ):
        count = 1 if times == "once" else int(times.split()[0])
        of = f"{OF_RUN} AND outcome = 'ok' AND triple_id IN (SELECT triple.id {SAID})"
        yield Check(line, count, f"SELECT count(*) {of}", plain(statement))
        if regard:
            scored = f"""SELECT DISTINCT label FROM score JOIN run_metric USING (metric_id)
            WHERE run_id = :run AND measure = 'regard' AND triple_id IN (SELECT triple.id {SAID})"""
            yield Check(line, regard, scored, plain(statement))


def whole(text: str) -> int:
    return int(text.replace(",", ""))


def plain(text: str) -> str:
    """Text of Markdown as the store has it."""
    return re.sub(r"\\(.)", r"\1", text)


def main() -> int:
    store, run, summary = sys.argv[1:]
    database = sqlite3.connect(f"{Path(store).resolve().as_uri()}?mode=ro", uri=True)
    (id,) = database.execute("SELECT id FROM run WHERE name = ?", (run,)).fetchone()
    wrong = total = 0
    for check in checks(Path(summary).read_text("utf-8")):
        given: dict[str, Any] = {"run": id, "about": check.about}
        found = [row[0] for row in database.execute(check.query, given)]
        same = found == [check.said]
        wrong, total = wrong + (not same), total + 1
        query = " ".join(check.query.split())
        about = f" with :about = {check.about}" if check.about else ""
        print(f"{'same' if same else 'DIFFERS'}\t{check.said}\t{found}\t{check.sentence}")
        print(f"\t{query}{about}")
    print(f"{total} numbers and labels, {wrong} of which differ from the store")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
