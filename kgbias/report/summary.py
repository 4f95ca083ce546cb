"""A page that can be handed in: what was asked of which model and how, what was found, what was not
shown, the limits, and statements drawn at random. Each section names the command that gives its
numbers again."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from markupsafe import Markup

from kgbias.compare.asking import WORDS_FOR, how_asked
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.files import write_text
from kgbias.io.progress import Progress
from kgbias.io.resources import __version__
from kgbias.io.text import CONTENT_WARNING, SAMPLE_STATEMENT, p_value, spoken
from kgbias.report.findings import findings, in_words
from kgbias.report.run_data import RunData
from kgbias.stats.estimate import Estimate

DRAWN = 20  # statements
_ELSEWHERE = ("kind", "refused")  # what other lines of the page say
_WORDS = {key: words for key, words in WORDS_FOR.items() if key not in _ELSEWHERE}
_WORDS["form"] = "asked as"
_CODE = re.compile(r"([\\`*_\[\]<>#|])")


def write_summary(
    run: StoredRun,
    path: Path,
    *,
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the summary of a run as Markdown to `path`, whole or not at all. The same store gives
    the same text."""
    data = RunData(run, selection=selection, progress=progress)
    write_text(path, "\n".join(_lines(run, data)) + "\n")


def _lines(run: StoredRun, data: RunData) -> Iterator[str]:
    model, name = data.run.model, quote(data.run.name)
    categories = list(dict.fromkeys(g.category for g in data.run.groups))
    yield f"# What {_plain(model.title)} says about {_plain(', '.join(categories))}"
    yield from ("", f"> **{CONTENT_WARNING}** {SAMPLE_STATEMENT}", "")
    yield from _asked(run, data)
    yield from _refused(data, name)
    yield from _found(data, name)
    yield from _limits(data)
    yield from _drawn(data, name)


def _asked(run: StoredRun, data: RunData) -> Iterator[str]:
    s, asked = data.summary, how_asked(run)
    yield "## What was asked"
    yield ""
    revision = f" ({_plain(data.run.model.revision)})" if data.run.model.revision else ""
    yield f"- model: {_plain(data.run.model.title)}{revision}"
    for key, words in _WORDS.items():
        if key in asked:
            yield f"- {words}: {_plain(asked[key])}"
    yield f"- groups: {_plain(', '.join(g.name for g in data.run.groups))}"
    yield (
        f"- answers, repeated attempts included: {s.generations:,}, of which {s.refused:,} were "
        f"refused, {s.invalid:,} could not be read, {s.echoes:,} repeated an example, "
        f"{s.failed:,} failed; {s.statements:,} statements, {s.triples:,} distinct"
    )
    yield f"- run {_plain(data.run.name)}, {data.run.created[:10] or 'no date'}, {data.run.status}"
    yield f"- kgbias {__version__}"
    yield from ("", f"Again: `kgbias runs --json`, `kgbias cost {quote(data.run.name)}`.", "")


def _refused(data: RunData, name: str) -> Iterator[str]:
    if not data.refusals:
        return
    yield "## Refusals"
    yield ""
    yield "By the first attempt of each prompt, with 95% intervals over prompts."
    yield ""
    yield "| group | prompts | refused | | less the others' | | p, corrected |"
    yield "|---|---|---|---|---|---|---|"
    for category in data.refusals:
        for row in category.groups:
            yield (
                f"| {_plain(row.group)} | {row.share.n} | {_percent(row.share)} | "
                f"{_percent(row.difference, '+')} | {p_value(row.q)} |"
            )
    yield ""
    for category in data.refusals:
        differs = in_words(category.p) if category.p == category.p else "not tested"
        yield (
            f"Of {_plain(category.category)}, {100 * category.share.value:.0f}% of "
            f"{category.share.n:,} prompts were refused; whether groups differ: {differs}."
        )
    yield from ("", f"Again: `kgbias compare {name} --json`, under refusals.", "")


def _found(data: RunData, name: str) -> Iterator[str]:
    screen = findings(data)
    yield "## Findings"
    yield ""
    if not data.metrics:
        yield f"The run was not measured: `kgbias measure {name}`."
        yield ""
    for finding in screen.findings:
        yield f"- **{_plain(finding.topic)}.** {_text(finding.said)} {_plain(finding.basis)}"
        yield f"  {_plain(finding.tested)}"
    if not screen.findings:
        yield _plain(screen.none)
    for remark in screen.remarks:
        yield from ("", _plain(remark))
    yield ""
    if screen.not_shown:
        yield from ("## What was not shown", "", _plain(screen.not_shown), "")
    yield f"Again: `kgbias compare {name} --json`, `kgbias evidence {name} --json`."
    yield ""


def _limits(data: RunData) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield f"- {SAMPLE_STATEMENT}"
    yield "- Figures hold for these prompts and wordings; another wording moves them."
    scorers = ", ".join(
        f"{spoken(name)} by {_plain(metric.scorer)} {_plain(metric.version)}"
        for name, metric in sorted(data.metrics.items())
    )
    if scorers:
        yield f"- Scores are a program's ({scorers}); intervals do not cover its errors."
    if data.counted.note:
        yield f"- {_plain(data.counted.note)}"
    yield "- Nothing here says what is true of anybody."
    yield ""


def _drawn(data: RunData, name: str) -> Iterator[str]:
    triples = sorted(data.triples, key=lambda t: t.id)
    chosen = random.Random(data.run.id).sample(triples, min(DRAWN, len(triples)))
    if not chosen:
        return
    yield f"## {len(chosen)} statements drawn at random"
    yield ""
    for t in chosen:
        times = "once" if t.count == 1 else f"{t.count} times"
        scores = ", ".join(
            f"{spoken(n)} {score.label or format(score.value, '.2f')}"
            for n, score in sorted(t.scores.items())
            if n in ("regard", "toxicity")
        )
        yield f"- {_plain(t.sentence)} ({times}{f'; {scores}' if scores else ''})"
    yield from ("", f"Again, with all others: `kgbias export {name} -o statements.csv`.")


def _percent(e: Estimate, sign: str = "") -> str:
    if e.value != e.value:
        return "- | "
    interval = f"{100 * e.low:{sign}.0f} to {100 * e.high:{sign}.0f}" if e.has_interval else ""
    return f"{100 * e.value:{sign}.0f}% | {interval}"


def _text(markup: Markup) -> str:
    return _plain(markup.striptags())


def _plain(text: str) -> str:
    """Text of a model or a stranger that Markdown shows as it is."""
    return _CODE.sub(r"\\\1", " ".join(text.split()))
