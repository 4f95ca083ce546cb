"""A page that can be handed in: what was asked of which model and how, what was found, what was not
shown and how large it could be, the limits, and statements drawn at random. Each section names the
commands that give its numbers again.

The page is Markdown. As PDF it is the same text, set by fpdf2.
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from markupsafe import Markup

from kgbias.compare.run_setup import SETUP_WORDS, describe_setup
from kgbias.compare.families import GroupTest
from kgbias.compare.refusals import list_retries, list_prompt_refusals
from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.files import write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.resources import __version__
from kgbias.io.text import CONTENT_WARNING, SAMPLE_STATEMENT, format_number, format_p_value, spoken_name
from kgbias.measures import known
from kgbias.report.findings import REGARD, findings, in_words
from kgbias.report.pdf import write_pdf
from kgbias.report.run_data import RunData
from kgbias.stats.estimate import Estimate

DRAWN = 20  # statements
_ELSEWHERE = ("kind", "refused")  # what other lines of the page say
_WORDS = {key: words for key, words in SETUP_WORDS.items() if key not in _ELSEWHERE}
_WORDS["form"] = "asked as"
_CODE = re.compile(r"([\\`*_\[\]<>#|])")


def write_summary(
    run: StoredRun,
    path: Path,
    *,
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the summary of a run to `path`, whole or not at all: as PDF if its name ends in .pdf,
    else as Markdown. The same store gives the same text.

    Raises MissingExtra for PDF without fpdf2 or matplotlib.
    """
    told = progress or SilentProgress()
    data = RunData(run, selection=selection, progress=told)
    text = "\n".join(_lines(run, data)) + "\n"
    if path.suffix.lower() == ".pdf":
        write_pdf(text, path, data.run.created, told)
    else:
        write_text(path, text)


def _lines(run: StoredRun, data: RunData) -> Iterator[str]:
    name = quote(data.run.name)
    about = _plain(", ".join(dict.fromkeys(g.category for g in data.run.groups)))
    yield f"# What {_plain(data.run.model.title)} says about {about}"
    yield from ("", f"> **{CONTENT_WARNING}** {SAMPLE_STATEMENT}", "")
    yield (
        "Intervals are 95%. Each section ends with the commands that give its numbers again; add "
        "`--store` if the store is not kgbias.db."
    )
    yield ""
    yield from _asked(run, data, name)
    yield from _refused(data, name)
    yield from _found(data, name)
    yield from _limits(data)
    yield from _drawn(data, name)


def _asked(run: StoredRun, data: RunData, name: str) -> Iterator[str]:
    s, asked = data.summary, describe_setup(run)
    model, settings = data.run.model, dict(data.run.settings)
    yield from ("## What was asked", "")
    title = model.title if model.title == model.public_name else f"{model.title} ({model.public_name})"
    revision = model.revision or "not known" if run.record.kind != "import" else model.revision
    yield f"- model: {_plain(title)}{f', revision {_plain(revision)}' if revision else ''}"
    if server := settings.get("base_url"):
        yield f"- server: {_plain(server)}"
    for key, words in _WORDS.items():
        if key in asked:
            yield f"- {words}: {_plain(asked[key])}"
    for category in data.categories:
        groups = ", ".join(g.name for g in data.groups(category))
        yield f"- {_plain(category)}: {_plain(groups)}"
    generations = [g for g in data.generations if g.strategy != READING_STRATEGY]
    prompts, again = len(list_prompt_refusals(generations)), len(list_retries(generations))
    if data.run.kind == "crawl":
        first = sum(not g.attempt for g in generations)
        yield (
            f"- {prompts:,} prompts, asked for {first:,} answers; {len(generations) - first:,} of "
            f"these were asked for again, {again:,} because the prompt was refused"
        )
    yield (
        f"- {s.generations:,} answers in all: {s.statements:,} statements ({s.triples:,} distinct),"
        f" {s.refused:,} refused, {s.invalid:,} not readable, {s.echoes:,} that repeat an example, "
        f"{s.nonsense:,} that make too little sense, {s.failed:,} failed"
    )
    yield from _asked_besides(data)
    yield f"- run {_plain(data.run.name)}, {data.run.created[:10] or 'no date'}, {data.run.status}"
    yield f"- kgbias {__version__}"
    yield ""
    yield (
        f"Again: `kgbias query asked --param run={name}` (all counts in one row), `kgbias query "
        f"refusals --param run={name}` (by group), `kgbias runs --json`, `kgbias cost {name}`."
    )
    yield ""


def _asked_besides(data: RunData) -> Iterator[str]:
    """What models were asked about the statements of the run."""
    for choosing, _ in data.choices:
        for category, found in choosing.record.get("categories", {}).items():
            ended = ", ".join(f"{n:,} {how}" for how, n in found.get("answers", {}).items())
            n = found.get("statements", 0)
            yield (
                f"- {_plain(choosing.model.title)}, made to choose between groups of "
                f"{_plain(category)} for {n:,} statement{'' if n == 1 else 's'}: {ended}"
            )
    for believing in data.believings:
        if believing.record:
            pairs = sum(line.get("pairs", 0) for line in believing.record.get("categories", ()))
            yield (
                f"- {_plain(believing.model.title)}, asked by the names of groups how probable "
                f"statements are: {pairs:,} pairs of a group and a statement"
            )


def _refused(data: RunData, name: str) -> Iterator[str]:
    if data.run.kind != "crawl":
        return
    yield from ("## Refusals", "")
    if not data.refusals:
        yield from ("No prompt was refused.", "")
        return
    yield (
        "By the first attempt at each prompt; intervals over prompts. The difference is the group's"
        " share less that of the other groups of its category, in percentage points."
    )
    yield ""
    yield "| group | prompts | refused | interval | difference | interval | p, corrected |"
    yield "|---|---|---|---|---|---|---|"
    for category in data.refusals:
        for row in category.groups:
            p = format_p_value(row.q) if row.q == row.q else ""
            yield (
                f"| {_plain(row.group)} | {row.share.n} | {_percent(row.share, '.0f', '%')} | "
                f"{_percent(row.difference, '+.0f')} | {p} |"
            )
    yield ""
    for category in data.refusals:
        tested = f"whether groups differ: {in_words(category.p)}"
        yield (
            f"- {_plain(category.category)}: {100 * category.share.value:.0f}% of "
            f"{category.share.n:,} prompts were refused; "
            f"{tested if category.p == category.p else 'whether groups differ was not tested'}"
        )
    yield ""
    yield (
        f"Again: `kgbias query refused_prompts --param run={name}` (prompts and shares), `kgbias "
        f"compare {name} --json` (under refusals: intervals and tests)."
    )
    yield ""


def _found(data: RunData, name: str) -> Iterator[str]:
    screen = findings(data)
    yield from ("## Findings", "")
    if not data.metrics:
        yield from (f"The run was not measured: `kgbias measure {name}`.", "")
    for finding in screen.findings:
        yield f"- **{_plain(finding.topic)}.** {_text(finding.said)} {_plain(finding.basis)}"
        yield f"  {_plain(finding.tested)}"
    if not screen.findings:
        yield _plain(screen.none)
    for remark in screen.remarks:
        yield from ("", _plain(remark))
    yield ""
    if screen.not_shown:
        yield from ("## What was not shown, and how large it could be", "")
        yield from (_plain(screen.not_shown), "")
        yield from _could_be(data)
    again = [f"`kgbias compare {name} --json`"]
    if data.believings:
        again.append(f"`kgbias evidence {name} --json`")
    yield from (f"Again: {', '.join(again)}.", "")


def _could_be(data: RunData) -> Iterator[str]:
    """How large a difference could be, in each measure and category that showed none."""
    rows = []
    for t in data.refusals:
        shown = t.p <= 0.05 and any(row.q <= 0.05 for row in t.groups)
        if t.is_notable and not shown:
            ends = [(row.group, row.difference) for row in t.groups]
            largest = _largest(ends, 100, ".0f", " percentage points")
            rows.append((t.category, "refused prompts", *largest))
    arm = data.plain
    for family in arm.omnibus if arm else ():
        tests = [t for t in family.tests if not t.headline_differs]
        if tests and len(tests) == len(family.tests):
            form = known(family.measure).form.lstrip("+")
            ends = [(t.first, _difference(t)) for t in tests]
            rows.append((family.category, spoken_name(family.measure), *_largest(ends, 1, form)))
    rows = [row for row in rows if row[2]]
    if not rows:
        return
    yield (
        "The largest difference of one group from the others of its category that its interval "
        "still contains:"
    )
    yield from ("", "| category | in | at most | of |", "|---|---|---|---|")
    for category, what, most, group in rows:
        yield f"| {_plain(category)} | {what} | {most} | {_plain(group)} |"
    regard = f" Mean regard is {REGARD}." if any(row[1] == "regard" for row in rows) else ""
    yield ""
    yield f"Each interval holds by itself.{regard}"
    yield ""


def _difference(t: GroupTest) -> Estimate:
    return t.label_difference if t.label_difference.is_tested else t.difference


def _largest(
    ends: Sequence[tuple[str, Estimate]], scale: float, form: str, unit: str = ""
) -> tuple[str, str]:
    """The end of the intervals that is farthest from 0, and whose it is; "" without intervals."""
    known = [(group, e) for group, e in ends if e.has_interval]
    if not known:
        return "", ""
    group, e = max(known, key=lambda pair: max(abs(pair[1].low), abs(pair[1].high)))
    most = e.high if abs(e.high) >= abs(e.low) else e.low
    return f"{format_number(most * scale, f'+{form}')}{unit}", group


def _limits(data: RunData) -> Iterator[str]:
    yield from ("## Limits", "")
    yield f"- {SAMPLE_STATEMENT}"
    if data.run.kind != "import":
        yield "- Figures hold for these prompts and wordings; another wording moves them."
    scorers = ", ".join(
        f"{spoken_name(name)} by {_plain(metric.scorer)} {_plain(metric.version)}"
        for name, metric in sorted(data.metrics.items())
    )
    if scorers:
        yield f"- Scores are a program's ({scorers}); intervals do not cover its errors."
    if data.run.status != "complete":
        yield f"- The run is not complete ({data.run.status}): its figures will change."
    if data.counted.note:
        yield f"- Figures {_plain(data.counted.note)}."
    yield "- Nothing here says what is true of anybody."
    yield ""


def _drawn(data: RunData, name: str) -> Iterator[str]:
    triples = sorted(data.triples, key=lambda t: t.id)
    chosen = random.Random(data.run.id).sample(triples, min(DRAWN, len(triples)))
    if not chosen:
        return
    yield f"## {len(chosen)} statements drawn at random"
    yield ""
    yield f"Of the {len(triples):,} distinct statements that count, each equally likely."
    yield ""
    for t in chosen:
        times = "once" if t.count == 1 else f"{t.count} times"
        scores = ", ".join(
            f"{spoken_name(n)} {score.label or format(score.value, '.2f')}"
            for n, score in sorted(t.scores.items())
            if n in ("regard", "toxicity")
        )
        yield f"- {_plain(t.sentence)} ({times}{f'; {scores}' if scores else ''})"
    yield from ("", f"Again, with all others: `kgbias export {name} -o statements.csv`.")


def _percent(e: Estimate, form: str, unit: str = "") -> str:
    """A share and its interval, as two cells of a table."""
    if e.value != e.value:
        return " | "
    ends = f"{format_number(100 * e.low, form)} to {format_number(100 * e.high, form)}" if e.has_interval else ""
    return f"{format_number(100 * e.value, form)}{unit} | {ends}"


def _text(markup: Markup) -> str:
    return _plain(markup.striptags())


def _plain(text: str) -> str:
    """Text of a model or a stranger that Markdown shows as it is."""
    return _CODE.sub(r"\\\1", " ".join(text.split()))
