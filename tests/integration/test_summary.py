"""The page that can be handed in, of a model that declines by hash: what it says is what was
planted."""

import re
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("torch")

import kgbias
from kgbias.compare.refusals import list_retries
from kgbias.io.text import CONTENT_WARNING, SAMPLE_CAVEAT
from kgbias.report.refusals import refusal_exhibits
from kgbias.report.run_data import RunData
from tests.texts import Texts

pytestmark = pytest.mark.integration

AUDIT = Path(__file__).parents[2] / "benchmarks" / "audit_sql.py"
GROUPS = ("Bakers", "Cooks", "Nurses", "Pilots")
WORDS = "kind loud late tall calm rich poor slow warm proud".split()


def number(text: str) -> int:
    return int(sha256(text.encode()).hexdigest()[:8], 16)


def answers(prompts: Sequence[str]) -> list[str]:
    """Declines 30% of its prompts by their hash, and 65% of those about nurses."""
    found = []
    for prompt in prompts:
        last = prompt.rstrip().rpartition("\n")[2]
        share = 0.65 if "Nurses" in last else 0.3
        if number(prompt) / 16**8 < share:
            found.append("I'm sorry, but I can't help with that.")
        else:
            word = WORDS[number(prompt + "x") % len(WORDS)]
            found.append(f" are {word} people who live here.\n")
    return found


def test_the_summary_says_what_was_planted(tmp_path: Path, texts: Texts) -> None:
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.crawl(
            lambda prompts: answers(prompts),
            model_name="planted",
            group=list(GROUPS),
            samples=20,
            iterations=2,
            name="world_1",
        )
        run.measure(topics=False)
        again = len(list_retries(run.stored.generations()))
        asked = len({g.prompt for g in run.stored.generations()})
        path = run.summarise(tmp_path / "summary.md")
        text = path.read_text("utf-8")
        assert run.summarise(tmp_path / "again.md").read_text("utf-8") == text
        pdf = run.summarise(tmp_path / "summary.pdf").read_bytes()
        assert run.summarise(tmp_path / "again.pdf").read_bytes() == pdf
        assert pdf.startswith(b"%PDF-") and pdf.count(b"/Type /Page\n") >= 1
        refused = {row["group"]: row for row in run.refusals().records()}
        (of,) = study.query("asked", run="world_1")
        questions = {(q["kind"], q["category"]): q for q in run.questions().records()}
        shares = study.query("refused_prompts", run="world_1")
        data = RunData(run.stored)
        (exhibit,) = refusal_exhibits(data, data.categories[0], "01")
        figure = exhibit.draw()
    # The exhibit of a paper has the same shares, and draws a bar for each.
    in_table = {group: (prompts, share.value) for group, prompts, share, *_ in exhibit.table.rows}
    assert in_table == {g: (row["prompts"], row["refused"]) for g, row in refused.items()}
    assert [len(axes.patches) for axes in figure.axes] == [len(GROUPS)]
    # Every count is what the store has, by queries of its tables.
    counted = [str(AUDIT), str(tmp_path / "k.db"), "world_1", str(path)]
    checked = subprocess.run([sys.executable, *counted], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert (
        int(
            re.search(
                r"(\d+) numbers and labels, 0 "
                r"of",
                checked.stdout,
            )[1]
        )
        > 40
    )  # type: ignore[index]
    assert CONTENT_WARNING in text and SAMPLE_CAVEAT in text
    headings = ("What was asked", "Refusals", "Findings", "Limits")
    for heading in (*headings, "What was not shown, and how large it could be"):
        assert f"## {heading}" in text
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)% \| (\d+) to (\d+) \|", text, re.MULTILINE)
    assert {row[0] for row in rows} == set(GROUPS)
    for group, prompts, share, low, high in rows:
        planted = 65 if group == "Nurses" else 30
        assert int(low) - 6 <= planted <= int(high) + 6
        assert int(prompts) == refused[group]["prompts"]
        assert int(share) == round(100 * refused[group]["refused"])
    # A sentence that was read in two ways is one sentence.
    sampled = re.findall(r"^- (.*) \((once|\d+ times)", text, re.MULTILINE)
    assert len({sentence for sentence, _ in sampled}) == len(sampled)
    # The same by the queries that the page names.
    for query in ("asked", "refused_prompts"):
        assert f"`kgbias query {query} --param run=world_1`" in text
    assert {(row[0], int(row[1]), int(row[2])) for row in rows} == {
        (row["group"], row["prompts"], round(row["refused_percent"])) for row in shares
    }
    assert f"{of['prompts']:,}" in text
    assert f"{of['first']:,}" in text
    assert f"{of['again']:,}" in text
    assert f"{of['after_refusal']:,}" in text
    texts.check_lines(text, "these were")
    assert f"- {of['answers']:,} answers in all: {of['statements']:,} statements (" in text
    assert f"{of['refused']:,}" in text
    assert f"{of['unparsable']:,}" in text
    assert f"{of['echoes']:,}" in text
    assert f"{of['nonsense']:,}" in text
    assert f"{of['failed']:,}" in text
    texts.check_lines(text, "little sense,")
    texts.check_lines(text, "declines more")
    refusals = questions["refusals", "custom"]
    assert f"- custom: {100 * refusals['share']:.0f}% of {refusals['prompts']:,} prompts" in text
    for kind, count in questions["said more", "custom"]["tried_by_kind"].items():
        assert f"{count} {kind}" in text or kind == "meaning"
    assert f"- {asked:,} prompts, asked for " in text
    assert f"{again:,}" in text
    texts.check_lines(text, "because the")
    assert len(re.findall(r"^- .*\((?:once|\d+ times)", text, re.MULTILINE)) > 5
    assert r"world\_1" in text  # nothing of a name is Markdown
