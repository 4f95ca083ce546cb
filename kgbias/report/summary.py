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
from typing import NamedTuple

from markupsafe import Markup

from kgbias.compare.families import GroupTest
from kgbias.compare.refusals import list_retries
from kgbias.compare.run_setup import SETUP_WORDS, describe_setup
from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, TripleView
from kgbias.io.files import write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.resources import __version__
from kgbias.io.text import (
    CONTENT_WARNING,
    SAMPLE_CAVEAT,
    format_number,
    format_p_value,
    spoken_name,
)
from kgbias.io.wording import pluralise
from kgbias.measures import get_measure
from kgbias.models.base import ADDRESS_SETTING
from kgbias.report.findings import REGARD_SCALE, build_screen, join_names, p_value_words
from kgbias.report.pdf import write_markdown_pdf
from kgbias.report.run_data import RunData
from kgbias.stats.estimate import Estimate

MAX_SAMPLED_STATEMENTS = 20  # statements
_KEYS_SHOWN_ELSEWHERE = ("kind", "refused")  # what other lines of the page say
_KEY_WORDS = {key: words for key, words in SETUP_WORDS.items() if key not in _KEYS_SHOWN_ELSEWHERE}
_KEY_WORDS["form"] = "asked as"
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
    reporter = progress or SilentProgress()
    data = RunData(run, selection=selection, progress=reporter)
    text = "\n".join(_lines(run, data)) + "\n"
    if path.suffix.lower() == ".pdf":
        write_markdown_pdf(text, path, data.run.created, reporter)
    else:
        write_text(path, text)


def _lines(run: StoredRun, data: RunData) -> Iterator[str]:
    name = quote(data.run.name)
    about = _escape_markdown(", ".join(dict.fromkeys(g.category for g in data.run.groups)))
    yield f"# What {_escape_markdown(data.run.model.title)} says about {about}"
    yield from ("", f"> **{CONTENT_WARNING}** {SAMPLE_CAVEAT}", "")
    yield (
        "Intervals are 95%. Each section ends with the commands that give its numbers again; add "
        "`--store` if the store is not kgbias.db."
    )
    yield ""
    yield from _asked_lines(run, data, name)
    yield from _refusal_lines(data, name)
    yield from _finding_lines(data, name)
    yield from _limit_lines(data)
    yield from _sample_lines(data, name)


def _asked_lines(run: StoredRun, data: RunData, name: str) -> Iterator[str]:
    summary, settings_asked = data.summary, describe_setup(run)
    model, settings = data.run.model, dict(data.run.settings)
    yield from ("## What was asked", "")
    title = (
        model.title if model.title == model.public_name else f"{model.title} ({model.public_name})"
    )
    revision = model.revision or "not known" if run.record.kind != "import" else model.revision
    yield (
        f"- model: "
        f"{_escape_markdown(title)}{f', revision {_escape_markdown(revision)}' if revision else ''}"
    )
    if server := settings.get(ADDRESS_SETTING, settings.get("base_url")):
        yield f"- server: {_escape_markdown(server)}"
    for key, words in _KEY_WORDS.items():
        if key in settings_asked:
            yield f"- {words}: {_escape_markdown(settings_asked[key])}"
    for category in data.categories:
        groups = join_names([g.name for g in data.groups(category)])
        yield f"- {_escape_markdown(category)}: {_escape_markdown(groups)}"
    generations = [g for g in data.generations if g.strategy != READING_STRATEGY]
    prompts, again = len({_prompt_key(g) for g in generations}), len(list_retries(generations))
    if data.run.kind == "crawl":
        first_count = sum(not g.attempt for g in generations)
        yield (
            f"- {pluralise(prompts, 'prompt', spec=',')}, asked for "
            f"{pluralise(first_count, 'answer', spec=',')}; "
            f"{len(generations) - first_count:,} of "
            f"these were asked for again, {again:,} because the prompt was refused"
        )
    yield (
        f"- {pluralise(summary.generations, 'answer', spec=',')} in all: "
        f"{pluralise(summary.statements, 'statement', spec=',')} "
        f"({summary.triples:,} distinct),"
        f" {summary.refused:,} refused, {summary.invalid:,} not readable, {summary.echoes:,} that "
        f"repeat an example, "
        f"{summary.nonsense:,} that make too little sense, {summary.failed:,} failed"
    )
    yield from _other_model_lines(data)
    yield (
        f"- run {_escape_markdown(data.run.name)}, {data.run.created[:10] or 'no date'}, "
        f"{data.run.status}"
    )
    yield f"- kgbias {__version__}"
    yield ""
    yield (
        f"Again: `kgbias query asked --param run={name}` (all counts in one row), `kgbias query "
        f"refusals --param run={name}` (by group), `kgbias runs --json`, `kgbias cost {name}`."
    )
    yield ""


def _prompt_key(generation: Generation) -> tuple[str, ...]:
    """What is one prompt to a group; an import may not say what it was."""
    place = generation.prompt or generation.path
    return (
        generation.group_id,
        generation.arm,
        generation.strategy,
        generation.template_hash,
        place,
    )


def _other_model_lines(data: RunData) -> Iterator[str]:
    """What models were asked about the statements of the run."""
    for choosing, _ in data.choices:
        for category, record in choosing.record.get("categories", {}).items():
            answer_counts = ", ".join(
                f"{n:,} {how}" for how, n in record.get("answers", {}).items()
            )
            n = record.get("statements", 0)
            yield (
                f"- {_escape_markdown(choosing.model.title)}, made to choose between groups of "
                f"{_escape_markdown(category)} for {pluralise(n, 'statement', spec=',')}: "
                f"{answer_counts}"
            )
    for believing in data.belief_runs:
        if believing.record:
            pairs = sum(line.get("pairs", 0) for line in believing.record.get("categories", ()))
            yield (
                f"- {_escape_markdown(believing.model.title)}, asked by the names of groups how "
                f"probable "
                f"statements are: {pluralise(pairs, 'pair', spec=',')} of a group and a statement"
            )


def _refusal_lines(data: RunData, name: str) -> Iterator[str]:
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
            p_words = format_p_value(row.q) if row.q == row.q else ""
            yield (
                f"| {_escape_markdown(row.group)} | {row.share.n} | "
                f"{_percent_cells(row.share, '.0f', '%')} | "
                f"{_percent_cells(row.difference, '+.0f')} | {p_words} |"
            )
    yield ""
    for category in data.refusals:
        test_words = f"whether groups differ: {p_value_words(category.p)}"
        yield (
            f"- {_escape_markdown(category.category)}: {100 * category.share.value:.0f}% of "
            f"{category.share.n:,} prompts were refused; "
            f"{test_words if category.p == category.p else 'whether groups differ was not tested'}"
        )
    yield ""
    again = (
        f"`kgbias compare {name} --json` (under refusals: intervals and tests of groups; under "
        "questions: of categories)"
        if data.triples
        else "`run.refusals()` in Python (intervals)"
    )
    yield (
        f"Again: `kgbias query refused_prompts --param run={name}` (prompts and shares), {again}."
    )
    yield ""


def _finding_lines(data: RunData, name: str) -> Iterator[str]:
    screen = build_screen(data)
    yield from ("## Findings", "")
    if not data.triples:
        yield from ("Without statements, nothing but refusals can be compared.", "")
    elif not data.metrics:
        yield from (f"The run was not measured: `kgbias measure {name}`.", "")
    for finding in screen.findings:
        yield (
            f"- **{_escape_markdown(finding.topic)}.** {_markup_text(finding.said)} "
            f"{_escape_markdown(finding.basis)}"
        )
        yield f"  {_escape_markdown(finding.tested)}"
    if not screen.findings:
        is_compared = any(len(data.groups(category)) > 1 for category in data.categories)
        alone = "No groups were compared: there is one in each category."
        yield _escape_markdown(screen.none if is_compared else alone)
    for remark in screen.remarks:
        yield from ("", _escape_markdown(remark))
    yield ""
    if screen.not_shown:
        yield from ("## What was not shown, and how large it could be", "")
        yield from (f"- {_escape_markdown(line)}" for line in screen.not_shown)
        yield ""
        yield from _possible_size_lines(data)
    again = [
        f"`kgbias compare {name} --json` (under groups, arms and said_more: each comparison; under "
        "questions: whether groups differ at all, what was tried and for how many questions p is "
        "corrected)"
    ]
    if data.belief_runs:
        again.append(f"`kgbias evidence {name} --json`")
    if data.triples:
        yield from (f"Again: {', '.join(again)}.", "")


def _possible_size_lines(data: RunData) -> Iterator[str]:
    """How large a difference could be, in each measure and category that showed none."""
    rows = []
    for test in data.refusals:
        is_shown = test.p <= 0.05 and any(row.q <= 0.05 for row in test.groups)
        if test.is_notable and not is_shown:
            ends = [(row.group, row.difference) for row in test.groups]
            found = _find_largest_end(ends)
            if found is not None:
                text = f"{format_number(100 * found.value, '+.0f')} percentage points"
                rows.append((test.category, "refused prompts", text, found.group))
    arm = data.plain_arm
    for family in arm.omnibus if arm else ():
        tests = [test for test in family.tests if not test.headline_differs]
        if tests and len(tests) == len(family.tests):
            form = get_measure(family.measure).form.lstrip("+")
            found = _find_largest_end([(test.first, _shown_difference(test)) for test in tests])
            if found is not None:
                text = format_number(found.value, f"+{form}")
                rows.append((family.category, spoken_name(family.measure), text, found.group))
    if not rows:
        return
    yield (
        "The largest difference of one group from the others of its category that its interval "
        "still contains:"
    )
    yield from ("", "| category | in | at most | of |", "|---|---|---|---|")
    for category, measure_words, largest_words, group in rows:
        yield (
            f"| {_escape_markdown(category)} | {measure_words} | {largest_words} | "
            f"{_escape_markdown(group)} |"
        )
    regard = f" Mean regard is {REGARD_SCALE}." if any(row[1] == "regard" for row in rows) else ""
    yield ""
    yield f"Each interval holds by itself.{regard}"
    yield ""


def _shown_difference(test: GroupTest) -> Estimate:
    return (
        test.label_corrected_difference
        if test.label_corrected_difference.is_tested
        else test.difference
    )


class _IntervalEnd(NamedTuple):
    """An end of an interval, and the group whose it is."""

    value: float
    group: str


def _find_largest_end(estimates: Sequence[tuple[str, Estimate]]) -> _IntervalEnd | None:
    """The end of the intervals that is farthest from 0; None without intervals."""
    ends = [
        _IntervalEnd(end, group)
        for group, estimate in estimates
        if estimate.has_interval
        for end in (estimate.high, estimate.low)
    ]
    return max(ends, key=lambda end: abs(end.value), default=None)


def _limit_lines(data: RunData) -> Iterator[str]:
    yield from ("## Limits", "")
    yield f"- {SAMPLE_CAVEAT}"
    if data.run.kind != "import":
        yield "- Figures hold for these prompts and wordings; another wording moves them."
    scorers = ", ".join(
        f"{spoken_name(name)} by {_escape_markdown(metric.scorer)} "
        f"{_escape_markdown(metric.version)}"
        for name, metric in sorted(data.metrics.items())
    )
    if scorers:
        yield f"- Scores are a program's ({scorers}); intervals do not cover its errors."
    if data.run.status != "complete":
        yield f"- The run is not complete ({data.run.status}): its figures will change."
    if data.counted.note:
        name = quote(data.run.name)
        yield (
            f"- Figures {_escape_markdown(data.counted.note)}. Again: `kgbias compare {name} "
            "--json` (under counted)."
        )
    yield "- Nothing here says what is true of anybody."
    yield ""


def _sample_lines(data: RunData, name: str) -> Iterator[str]:
    # One sentence may be several triples ("are | fond of tea", "are fond of | tea").
    by_sentence: dict[str, list[TripleView]] = {}
    for triple in sorted(data.triples, key=lambda triple: triple.id):
        by_sentence.setdefault(triple.sentence, []).append(triple)
    sample = random.Random(data.run.id).sample(
        sorted(by_sentence), min(MAX_SAMPLED_STATEMENTS, len(by_sentence))
    )
    if not sample:
        return
    yield f"## {len(sample)} statements drawn at random"
    yield ""
    yield f"Of the {len(by_sentence):,} distinct sentences that count, each equally likely."
    yield ""
    for sentence in sample:
        triples = by_sentence[sentence]
        count = sum(triple.count for triple in triples)
        times = "once" if count == 1 else f"{count} times"
        scores = ", ".join(
            f"{spoken_name(n)} {score.label or format(score.value, '.2f')}"
            for n, score in sorted(triples[0].scores.items())
            if n in ("regard", "toxicity")
        )
        yield f"- {_escape_markdown(sentence)} ({times}{f'; {scores}' if scores else ''})"
    yield from ("", f"Again, with all others: `kgbias export {name} -o statements.csv`.")


def _percent_cells(estimate: Estimate, form: str, unit: str = "") -> str:
    """A share and its interval, as two cells of a table."""
    if estimate.value != estimate.value:
        return " | "
    ends = (
        f"{format_number(100 * estimate.low, form)} to {format_number(100 * estimate.high, form)}"
        if estimate.is_shown
        else ""
    )
    return f"{format_number(100 * estimate.value, form)}{unit} | {ends}"


def _markup_text(markup: Markup) -> str:
    return _escape_markdown(markup.striptags())


def _escape_markdown(text: str) -> str:
    """Text of a model or a stranger that Markdown shows as it is."""
    return _CODE.sub(r"\\\1", " ".join(text.split()))
