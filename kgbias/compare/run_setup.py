"""In what runs differ that were asked in different ways: figures of a model that answers in a chat
and declines half of its prompts, and of one that continues text, are not about the same thing. Most
of that is said beside the comparison; runs that have nothing to compare are refused."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice
from typing import Any

from kgbias.compare.refusals import estimate_refusal_share, list_prompt_refusals
from kgbias.errors import UsageError, no_such
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, Metric
from kgbias.io.text import spoken_name
from kgbias.io.wording import how

MAX_ANSWERS_READ = 200  # answers by which is told whether a model thought before them
_TRUNCATION_SETTINGS = ("top_p", "min_p", "top_k")
SETUP_WORDS = {
    "kind": "made by",
    "form": "form",
    "prompts": "prompts",
    "language": "language",
    "temperature": "temperature",
    "truncation": "truncation",
    "dtype": "weights",
    "thinks": "thoughts before answers",
    "refused": "refused prompts",
}


def describe_setup(run: StoredRun) -> dict[str, str]:
    """How a run was asked, in words by what: `kind`, `form`, `prompts` (the pack), `language`,
    `temperature`, `truncation`, `dtype`, `thinks` and `refused`. What is not known of it (of an
    import, nearly all) is left out."""
    config, settings = run.config, dict(run.record.settings)
    pack = config.get("pack") or {}
    setup = {"kind": run.record.kind}
    if "form" in config:
        setup["form"] = str(config["form"])
        setup["prompts"] = f"{pack['name']} {pack['version']}" if pack else "as published"
        setup["language"] = str(pack.get("language", "en"))
        setup["temperature"] = f"{config.get('temperature', 1):g}"
        truncations = [
            f"{name} {config[name]:g}" for name in _TRUNCATION_SETTINGS if config.get(name)
        ]
        setup["truncation"] = ", ".join(truncations) or "none"
        setup["thinks"] = _thinking_note(run)
        setup["refused"] = _refusal_note(run)
    if "dtype" in settings:
        setup["dtype"] = settings["dtype"]
    return setup


def list_setup_differences(runs: Sequence[StoredRun]) -> list[str]:
    """In what runs differ, a line each: how they were asked, and about whom."""
    setups = [describe_setup(run) for run in runs]
    differences = []
    for name, words in SETUP_WORDS.items():
        values = [setup.get(name, "not known") for setup in setups]
        if len(set(values)) > 1 and not _differ_in_words_only(name, values):
            values_by_run = ", ".join(f"{r.name} {v}" for r, v in zip(runs, values, strict=True))
            differences.append(f"{words}: {values_by_run}")
    groups = [{g.name for g in run.groups} for run in runs]
    shared = set.intersection(*groups)
    if any(group_names != shared for group_names in groups):
        extra_groups = ", ".join(
            f"{len(group_names - shared)} more in {run.name}"
            for run, group_names in zip(runs, groups, strict=True)
            if group_names - shared
        )
        differences.append(f"groups: {len(shared)} in all of them, {extra_groups}")
    return differences


_STATEMENT_SUBJECTS = {"stories": "characters of stories", "profiles": "people of a name"}


def check_comparable(runs: Sequence[StoredRun], measures: Sequence[str] = ()) -> None:
    """Raise UsageError, which says what to do, for runs of which no figure can be compared: what
    was said in different languages, statements about different things, or measures that different
    scorers judged. Only these `measures`, if any are named."""
    for first, other in combinations(runs, 2):
        run_names = f"{first.name} and {other.name}"
        subjects = [_STATEMENT_SUBJECTS.get(run.record.kind, "groups") for run in (first, other)]
        if subjects[0] != subjects[1]:
            raise UsageError(
                f"{run_names} cannot be compared: statements are about {subjects[0]} in one and "
                f"about "
                f"{subjects[1]} in the other"
            )
        languages = [_prompt_language(run) for run in (first, other)]
        if None not in languages and languages[0] != languages[1]:
            raise UsageError(
                f"{run_names} cannot be compared: one is in {languages[0]!r} and the other in "
                f"{languages[1]!r}; crawl both with a pack of one language (`prompts`), or compare "
                "what a model believes in both: "
                + how(
                    "study.compare_languages(first, second)",
                    f"kgbias compare {first.name} {other.name}",
                )
            )
        first_metrics, other_metrics = first.metrics(), other.metrics()
        for name in sorted(first_metrics.keys() & other_metrics.keys()):
            if (not measures or name in measures) and _scorer_name(
                first_metrics[name]
            ) != _scorer_name(other_metrics[name]):
                raise UsageError(
                    f"{run_names} cannot be compared: {spoken_name(name)} was judged by "
                    f"{_scorer_name(first_metrics[name])} in one and by "
                    f"{_scorer_name(other_metrics[name])} in the other; "
                    f"measure both alike, or name other `measures`"
                )


def find_group_ids(wanted_names: Sequence[str], groups: Iterable[Group]) -> set[str]:
    """The ids of the groups of these names. Raises UsageError for a name that none of them has."""
    known = {group.id: group for group in groups}
    ids = set()
    for name in wanted_names:
        found = {id for id, group in known.items() if group.goes_by(name)}
        if not found:
            names = (group.name for group in known.values())
            raise UsageError(no_such("group", name, names, " in these runs"))
        ids |= found
    return ids


def check_measure_names(wanted_names: Sequence[str], runs: Sequence[StoredRun]) -> None:
    """Raise UsageError for a measure that none of the runs has."""
    measured = sorted({name for run in runs for name in run.metrics()})
    for name in wanted_names:
        if name not in measured:
            raise UsageError(no_such("measure", name, measured, " in these runs"))


def _prompt_language(run: StoredRun) -> str | None:
    """The language of a run's prompts; None if it has none, or is not known to have any."""
    pack = run.config.get("pack")
    return None if pack is None else str(pack.get("language", "en"))


def _scorer_name(metric: Metric) -> str:
    """The scorer of a measure; all files of scores are one, as each has the scores of one run."""
    by_file = metric.scorer.startswith("scores:")
    return "scores of a file" if by_file else f"{metric.scorer} {metric.version}"


def _differ_in_words_only(name: str, values: Sequence[str]) -> bool:
    """Whether values differ in words alone: no refusals worth the name in any of the runs."""
    return name == "refused" and all(v == "not known" or v.startswith(("0%", "1%")) for v in values)


def _refusal_note(run: StoredRun) -> str:
    prompts = list_prompt_refusals(run.generations())
    if not prompts:
        return "not known"
    share = estimate_refusal_share([p.share for p in prompts])
    return f"{100 * share.value:.0f}% of {share.n:,}"


def _thinking_note(run: StoredRun) -> str:
    """Whether the model thought before its answers, by the first of them."""
    keys = [g.answer_key for g in islice(run.generations(), MAX_ANSWERS_READ) if g.answer_key]
    answers = run.store.answers(keys)
    thinking_count = sum(bool(_parse_details(a.details).get("thought")) for a in answers.values())
    return "some" if 0 < thinking_count < len(answers) else "all" if thinking_count else "none"


def _parse_details(text: str) -> Mapping[str, Any]:
    try:
        details = json.loads(text) if text else {}
    except ValueError:
        return {}
    return details if isinstance(details, dict) else {}
