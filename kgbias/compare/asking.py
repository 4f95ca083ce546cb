"""In what runs differ that were asked in different ways: figures of a model that answers in a chat
and declines half of its prompts, and of one that continues text, are not about the same thing. Most
of that is said beside the comparison; runs that have nothing to compare are refused."""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import Any

from kgbias.compare.refusals import refused_prompts, share_of
from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric
from kgbias.io.text import spoken_name

MAX_READ = 200  # answers by which is told whether a model thought before them
_TRUNCATION = ("top_p", "min_p", "top_k")
WORDS_FOR = {
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


def how_asked(run: StoredRun) -> dict[str, str]:
    """How a run was asked, in words by what: `kind`, `form`, `prompts` (the pack), `language`,
    `temperature`, `truncation`, `dtype`, `thinks` and `refused`. What is not known of it (of an
    import, nearly all) is left out."""
    config, settings = run.config, dict(run.record.settings)
    pack = config.get("pack") or {}
    found = {"kind": run.record.kind}
    if "form" in config:
        found["form"] = str(config["form"])
        found["prompts"] = f"{pack['name']} {pack['version']}" if pack else "as published"
        found["language"] = str(pack.get("language", "en"))
        found["temperature"] = f"{config.get('temperature', 1):g}"
        cut = [f"{name} {config[name]:g}" for name in _TRUNCATION if config.get(name)]
        found["truncation"] = ", ".join(cut) or "none"
        found["thinks"] = _thinks(run)
        found["refused"] = _refused(run)
    if "dtype" in settings:
        found["dtype"] = settings["dtype"]
    return found


def asked_apart(runs: Sequence[StoredRun]) -> list[str]:
    """In what runs differ, a line each: how they were asked, and about whom."""
    asked = [how_asked(run) for run in runs]
    found = []
    for name, words in WORDS_FOR.items():
        values = [own.get(name, "not known") for own in asked]
        if len(set(values)) > 1 and not _alike(name, values):
            listed = ", ".join(f"{r.name} {v}" for r, v in zip(runs, values, strict=True))
            found.append(f"{words}: {listed}")
    groups = [{g.name for g in run.groups} for run in runs]
    shared = set.intersection(*groups)
    if any(own != shared for own in groups):
        more = ", ".join(
            f"{len(own - shared)} more in {run.name}"
            for run, own in zip(runs, groups, strict=True)
            if own - shared
        )
        found.append(f"groups: {len(shared)} in all of them, {more}")
    return found


_STATEMENTS = {"stories": "characters of stories", "profiles": "people of a name"}


def check_comparable(runs: Sequence[StoredRun], measures: Sequence[str] = ()) -> None:
    """Raise UsageError, which says what to do, for runs of which no figure can be compared: what
    was said in different languages, statements about different things, or measures that different
    scorers judged. Only these `measures`, if any are named."""
    for first, other in combinations(runs, 2):
        both = f"{first.name} and {other.name}"
        said = [_STATEMENTS.get(run.record.kind, "groups") for run in (first, other)]
        if said[0] != said[1]:
            raise UsageError(
                f"{both} cannot be compared: statements are about {said[0]} in one and about "
                f"{said[1]} in the other"
            )
        spoken_in = [_language(run) for run in (first, other)]
        if None not in spoken_in and spoken_in[0] != spoken_in[1]:
            raise UsageError(
                f"{both} cannot be compared: one is in {spoken_in[0]!r} and the other in "
                f"{spoken_in[1]!r}; crawl both with a pack of one language (`prompts`)"
            )
        own, others = first.metrics(), other.metrics()
        for name in sorted(own.keys() & others.keys()):
            if (not measures or name in measures) and _judge(own[name]) != _judge(others[name]):
                raise UsageError(
                    f"{both} cannot be compared: {spoken_name(name)} was judged by "
                    f"{_judge(own[name])} in one and by {_judge(others[name])} in the other; "
                    f"measure both alike, or name other `measures`"
                )


def _language(run: StoredRun) -> str | None:
    """The language of a run's prompts; None if it has none, or is not known to have any."""
    pack = run.config.get("pack")
    return None if pack is None else str(pack.get("language", "en"))


def _judge(metric: Metric) -> str:
    """The scorer of a measure; all files of scores are one, as each has the scores of one run."""
    by_file = metric.scorer.startswith("scores:")
    return "scores of a file" if by_file else f"{metric.scorer} {metric.version}"


def _alike(name: str, values: Sequence[str]) -> bool:
    """Whether values differ in words alone: no refusals worth the name in any of the runs."""
    return name == "refused" and all(v == "not known" or v.startswith(("0%", "1%")) for v in values)


def _refused(run: StoredRun) -> str:
    prompts = refused_prompts(run.generations())
    if not prompts:
        return "not known"
    share = share_of([p.share for p in prompts])
    return f"{100 * share.value:.0f}% of {share.n:,}"


def _thinks(run: StoredRun) -> str:
    """Whether the model thought before its answers, by the first of them."""
    keys = [g.answer_key for g in islice(run.generations(), MAX_READ) if g.answer_key]
    answers = run.store.answers(keys)
    thought = sum(bool(_details(a.details).get("thought")) for a in answers.values())
    return "some" if 0 < thought < len(answers) else "all" if thought else "none"


def _details(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
